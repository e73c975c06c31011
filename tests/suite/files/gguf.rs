//! Files of llama.cpp.

use swath::io::gguf::{self, Value};
use swath::prelude::*;

use super::opened;
use crate::support::files::Scratch;

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

fn value(key: &str, kind: u32, content: &[u8]) -> Vec<u8> {
    [&text(key)[..], &kind.to_le_bytes(), content].concat()
}

fn tensor(name: &str, extents: &[u64], kind: u32, offset: u64) -> Vec<u8> {
    let extents: Vec<u8> = extents.iter().flat_map(|n| n.to_le_bytes()).collect();
    let rank = (extents.len() as u32 / 8).to_le_bytes();
    [&text(name)[..], &rank, &extents, &kind.to_le_bytes(), &offset.to_le_bytes()].concat()
}

fn file(values: &[Vec<u8>], tensors: &[Vec<u8>], alignment: usize, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend((tensors.len() as u64).to_le_bytes());
    bytes.extend((values.len() as u64).to_le_bytes());
    bytes.extend(values.concat());
    bytes.extend(tensors.concat());
    bytes.resize(bytes.len().next_multiple_of(alignment), 0);
    bytes.extend(data);
    bytes
}

fn good() -> Vec<u8> {
    let words = [&8u32.to_le_bytes()[..], &2u64.to_le_bytes(), &text("ab"), &text("")].concat();
    let nested = [
        &9u32.to_le_bytes()[..],
        &1u64.to_le_bytes(),
        &0u32.to_le_bytes(),
        &3u64.to_le_bytes(),
        &[7, 8, 9],
    ];
    let values = [
        value("general.alignment", 4, &64u32.to_le_bytes()),
        value("general.name", 8, &text("tiny")),
        value("eps", 6, &0.5f32.to_le_bytes()),
        value("flag", 7, &[1]),
        value("words", 9, &words),
        value("nested", 9, &nested.concat()),
    ];
    let tensors =
        [tensor("w", &[3, 2], 0, 0), tensor("q", &[32, 2], 8, 64), tensor("h", &[1], 1, 192)];
    let mut data: Vec<u8> = (0..6i16).flat_map(|x| f32::from(x).to_le_bytes()).collect();
    data.resize(64, 0);
    data.extend((0..68).map(|i| i as u8));
    data.resize(192, 0);
    data.extend([0x00, 0x3C]);
    file(&values, &tensors, 64, &data)
}

#[test]
fn tensors_and_values_are_read() {
    let folder = Scratch::new("gguf");
    let file = opened(&folder, "x.gguf", &good()).unwrap();
    assert!(file.names().eq(["h", "q", "w"]));
    let w = file.get::<CpuBackend>("w").unwrap();
    assert_eq!(
        (w.dims(), w.to_vec::<f32>().unwrap()),
        (&[2, 3][..], vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    );
    assert!(file.is_in_place("w").unwrap());
    assert_eq!(file.get_as::<CpuBackend>("h", DType::F32).unwrap().to_vec::<f32>().unwrap(), [1.0]);
    let info = file.info("q").unwrap();
    assert_eq!((info.dtype_name(), info.shape().dims(), info.bytes()), ("Q8_0", &[2, 32][..], 68));
    assert_eq!(file.bytes("q").unwrap()[67], 67);
    assert!(file.get::<CpuBackend>("q").unwrap_err().to_string().contains("Q8_0"));
    assert_eq!(
        (&file.metadata()["general.name"][..], &file.metadata()["eps"][..]),
        ("tiny", "0.5")
    );
    let values = gguf::metadata(file.path()).unwrap();
    assert!(matches!(values["flag"], Value::Bool(true)));
    let Value::Array(words) = &values["words"] else { panic!("{:?}", values["words"]) };
    let texts: Vec<String> = words.iter().map(|word| word.to_string()).collect();
    assert_eq!((texts, words.len()), (vec!["ab".to_owned(), String::new()], 2));
    let Value::Array(nested) = &values["nested"] else { panic!("{:?}", values["nested"]) };
    let Some(Value::Array(inner)) = nested.iter().next() else { panic!("{nested:?}") };
    assert_eq!(inner.iter().map(|x| x.to_string()).collect::<String>(), "789");
}

/// Number, name, elements and bytes of a block of each type, as the package gguf has them
/// (`tests/vectors/make_files.py`).
const SIZES: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/files/gguf-sizes.txt"));

#[test]
fn blocks_have_their_sizes() {
    let folder = Scratch::new("gguf-sizes");
    for row in SIZES.lines() {
        let [number, name, elements, bytes] = row.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        // llama.cpp's block of Q8_1, which it never writes to a file, has two numbers of 16 bits, not of 32.
        let bytes: usize = if name == "Q8_1" { 36 } else { bytes.parse().unwrap() };
        let tensor =
            tensor("t", &[3 * elements.parse::<u64>().unwrap()], number.parse().unwrap(), 0);
        let file = opened(&folder, "x", &file(&[], &[tensor], 32, &vec![0; 3 * bytes])).unwrap();
        let info = file.info("t").unwrap();
        assert_eq!((info.dtype_name(), info.bytes()), (name, 3 * bytes));
    }
    // One that is not known does not stand in the way.
    let tensors = [tensor("new", &[4], 4, 0), tensor("t", &[1], 0, 0)];
    let file = opened(&folder, "x", &file(&[], &tensors, 32, &[0; 4])).unwrap();
    assert!(file.names().eq(["t"]) && file.unreadable().next().unwrap().1.contains("number 4"));
}

#[test]
fn malformed_files_are_errors() {
    let folder = Scratch::new("gguf-malformed");
    let short = |kind: u32, extents: &[u64], offset: u64| {
        file(&[], &[tensor("t", extents, kind, offset)], 32, &[0; 64])
    };
    let deep = (0..20)
        .flat_map(|_| [&9u32.to_le_bytes()[..], &1u64.to_le_bytes()].concat())
        .collect::<Vec<u8>>();
    let many = [&8u32.to_le_bytes()[..], &u64::MAX.to_le_bytes()].concat();
    for (bytes, part) in [
        (b"GGUF\x01\0\0\0".to_vec(), "version 1"),
        (b"GGUF\x03\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0\0\0\0\0\0\0".to_vec(), "do not fit"),
        (short(0, &[17], 0), "beyond the file"),
        (short(0, &[u64::MAX, 2], 0), "t"),
        (short(0, &[4], u64::MAX - 8), "overflows"),
        (short(0, &[4], 4), "multiple of 32"),
        (short(8, &[33], 0), "whole blocks"),
        (short(8, &[16, 2], 0), "whole blocks"),
        (short(0, &[1; 9], 0), "more than 8 axes"),
        (
            file(&[], &[tensor("t", &[1], 0, 0), tensor("t", &[1], 0, 0)], 32, &[0; 4]),
            "two tensors",
        ),
        // One of them is of a type that is not known.
        (
            file(&[], &[tensor("t", &[1], 0, 0), tensor("t", &[1], 4, 0)], 32, &[0; 4]),
            "two tensors",
        ),
        (file(&[value("k", 7, &[2])], &[], 32, &[]), "bool byte 2"),
        (file(&[value("k", 99, &[])], &[], 32, &[]), "number 99"),
        (file(&[value("k", 9, &deep)], &[], 32, &[]), "deep"),
        (file(&[value("k", 9, &many)], &[], 32, &[]), "ends within"),
        (file(&[value("k", 0, &[1]), value("k", 0, &[1])], &[], 32, &[]), "two values"),
        (file(&[value("general.alignment", 4, &3u32.to_le_bytes())], &[], 32, &[]), "power of two"),
    ] {
        let error = opened(&folder, "x.gguf", &bytes).map(|_| ()).unwrap_err();
        assert!(error.contains(part), "{part}: {error}");
    }
    for len in 0..good().len() {
        assert!(opened(&folder, "x.gguf", &good()[..len]).is_err(), "{len}");
    }
}

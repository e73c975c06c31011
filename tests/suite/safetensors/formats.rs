//! Round trips of every dtype, and agreement with the format's reference implementation.

use std::collections::HashMap;
use std::fs;

use half::{bf16, f16};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};
use swath::io::safetensors::{Metadata, load, load_metadata, save};
use swath::prelude::*;

use super::T;
use crate::support::files::{Scratch, file_of};

/// A tensor of each dtype, with its expected bytes.
fn every_dtype() -> Vec<(&'static str, T, Dtype, Vec<u8>)> {
    let from = |bytes: &[&[u8]]| bytes.concat();
    let nan = f32::from_bits(0xFFC0_1234);
    vec![
        (
            "a.f16",
            T::from_vec(vec![f16::from_f32(1.5), f16::NEG_INFINITY], 2).unwrap(),
            Dtype::F16,
            vec![0x00, 0x3E, 0x00, 0xFC],
        ),
        (
            "a.bf16",
            T::from_vec(vec![bf16::from_f32(-2.0)], (1, 1)).unwrap(),
            Dtype::BF16,
            vec![0x00, 0xC0],
        ),
        (
            "b.f32",
            T::from_vec(vec![1f32, -0.0, nan, 1e-45], (2, 2)).unwrap(),
            Dtype::F32,
            from(&[
                &[0, 0, 0x80, 0x3F],
                &[0, 0, 0, 0x80],
                &[0x34, 0x12, 0xC0, 0xFF],
                &[1, 0, 0, 0],
            ]),
        ),
        (
            "b.f64",
            T::from_vec(vec![1f64], ()).unwrap(),
            Dtype::F64,
            vec![0, 0, 0, 0, 0, 0, 0xF0, 0x3F],
        ),
        (
            "c.i64",
            T::from_vec(vec![-2i64, i64::MAX], 2).unwrap(),
            Dtype::I64,
            from(&[&[0xFE], &[0xFF; 7], &[0xFF; 7], &[0x7F]]),
        ),
        (
            "c.u64",
            T::from_vec(vec![u64::MAX - 1], 1).unwrap(),
            Dtype::U64,
            from(&[&[0xFE], &[0xFF; 7]]),
        ),
        ("c.i32", T::from_vec(vec![-2i32], 1).unwrap(), Dtype::I32, vec![0xFE, 0xFF, 0xFF, 0xFF]),
        ("c.u32", T::from_vec(vec![258u32], 1).unwrap(), Dtype::U32, vec![2, 1, 0, 0]),
        ("c.u16", T::from_vec(vec![0xFE01u16], 1).unwrap(), Dtype::U16, vec![1, 0xFE]),
        ("c.i16", T::from_vec(vec![-2i16], 1).unwrap(), Dtype::I16, vec![0xFE, 0xFF]),
        ("d.i8", T::from_vec(vec![-128i8, 127], 2).unwrap(), Dtype::I8, vec![0x80, 0x7F]),
        ("d.u8", T::from_vec(vec![7u8, 255, 0], 3).unwrap(), Dtype::U8, vec![7, 255, 0]),
        ("d.bool", T::from_vec(vec![true, false], 2).unwrap(), Dtype::BOOL, vec![1, 0]),
        ("e.empty", T::zeros((0, 3), DType::F32).unwrap(), Dtype::F32, vec![]),
    ]
}

fn named() -> Vec<(String, T)> {
    every_dtype().into_iter().map(|(name, tensor, ..)| (name.to_owned(), tensor)).collect()
}

/// Bytes of a tensor, by other code than that which writes files.
fn bytes(tensor: &T) -> Vec<u8> {
    macro_rules! bytes {
        ($($t:ty)*) => {
            match tensor.dtype() {
                $(dtype if dtype == <$t as Element>::DTYPE => {
                    tensor.to_vec::<$t>().unwrap().iter().flat_map(|x| x.to_le_bytes()).collect()
                })*
                _ => tensor.to_vec::<bool>().unwrap().into_iter().map(u8::from).collect(),
            }
        };
    }
    bytes!(f16 bf16 f32 f64 i64 i32 u32 u8 i8 i16 u16 u64)
}

#[test]
fn every_dtype_round_trips_bit_for_bit_with_its_shape() {
    let folder = Scratch::new("tensors-round-trip");
    let path = folder.0.join("all.safetensors");
    save(&path, named(), &Metadata::new()).unwrap();
    let loaded = load::<CpuBackend>(&path).unwrap();
    let reference = load::<ReferenceBackend>(&path).unwrap();
    assert_eq!(loaded.len(), every_dtype().len());
    for (name, tensor, _, expected) in every_dtype() {
        let found = &loaded[name];
        assert_eq!((found.shape(), found.dtype()), (tensor.shape(), tensor.dtype()), "{name}");
        assert_eq!(bytes(found), expected, "{name}");
        assert!(!found.is_tracked());
        if name != "b.f32" {
            // NaN stays NaN but with other bits, because the reference backend computes in f64.
            let there = reference[name].to_backend::<CpuBackend>().unwrap();
            assert_eq!(bytes(&there), expected, "{name}");
        }
    }
}

#[test]
fn the_reference_implementation_reads_our_files() {
    let folder = Scratch::new("tensors-theirs");
    let path = folder.0.join("all.safetensors");
    let awkward = "quote\" back\\slash \u{1}\n é 😀";
    let metadata = Metadata::from([(awkward.to_owned(), awkward.to_owned())]);
    let tensors = named().into_iter().chain([(awkward.to_owned(), tensor![1.0])]);
    save(&path, tensors, &metadata).unwrap();

    let file = fs::read(&path).unwrap();
    let (_, theirs) = SafeTensors::read_metadata(&file).unwrap();
    let texts = theirs.metadata().as_ref().unwrap();
    assert_eq!(texts.get(awkward).map(String::as_str), Some(awkward));
    let theirs = SafeTensors::deserialize(&file).unwrap();
    assert_eq!(theirs.len(), every_dtype().len() + 1);
    assert_eq!(theirs.tensor(awkward).unwrap().data(), 1f32.to_le_bytes());
    for (name, tensor, dtype, expected) in every_dtype() {
        let found = theirs.tensor(name).unwrap();
        assert_eq!((found.shape(), found.dtype()), (tensor.dims(), dtype), "{name}");
        assert_eq!(found.data(), expected, "{name}");
        // Aligned, so that the file can be memory-mapped.
        let offset = found.data().as_ptr().addr() - file.as_ptr().addr();
        assert_eq!(offset % tensor.dtype().size(), 0, "{name}");
    }
    assert_eq!(load::<CpuBackend>(&path).unwrap()[awkward].to_vec::<f32>().unwrap(), [1.0]);
    assert_eq!(load_metadata(&path).unwrap(), metadata);
}

#[test]
fn we_read_files_of_the_reference_implementation() {
    let folder = Scratch::new("tensors-ours");
    let path = folder.0.join("all.safetensors");
    let rows = every_dtype();
    let views = rows.iter().map(|(name, tensor, dtype, bytes)| {
        (*name, TensorView::new(*dtype, tensor.dims().to_vec(), bytes).unwrap())
    });
    let texts = HashMap::from([("framework".to_owned(), "none".to_owned())]);
    fs::write(&path, serialize(views, Some(texts)).unwrap()).unwrap();
    let loaded = load::<CpuBackend>(&path).unwrap();
    for (name, tensor, _, expected) in &rows {
        assert_eq!(loaded[*name].shape(), tensor.shape(), "{name}");
        assert_eq!(&bytes(&loaded[*name]), expected, "{name}");
    }
    assert_eq!(load_metadata(&path).unwrap()["framework"], "none");
}

#[test]
fn a_handwritten_file_with_any_order_of_keys_and_blanks_is_read() {
    let folder = Scratch::new("tensors-by-hand");
    let path = folder.0.join("a.safetensors");
    let header = r#" { "b" : {"shape":[2], "data_offsets":[4,6], "dtype":"U8"},
        "\u0061\ud83d\ude00": {"dtype":"F32","shape":[],"data_offsets":[0,4]},
        "__metadata__": {"k": "\u00e9"} }    "#;
    fs::write(&path, file_of(header, &[0, 0, 0x80, 0x3F, 5, 6])).unwrap();
    let loaded = load::<CpuBackend>(&path).unwrap();
    assert_eq!(loaded["a😀"].item::<f32>().unwrap(), 1.0);
    assert_eq!(loaded["b"].to_vec::<u8>().unwrap(), [5, 6]);
    assert_eq!(load_metadata(&path).unwrap()["k"], "é");
}

#[test]
fn the_same_content_gives_the_same_bytes_in_any_order() {
    let folder = Scratch::new("tensors-order");
    let (one, other) = (folder.0.join("one"), folder.0.join("other"));
    let metadata: Metadata = (0..20).map(|i| (format!("key {i}"), "text".to_owned())).collect();
    save(&one, named(), &metadata).unwrap();
    save(&other, named().into_iter().rev(), &metadata).unwrap();
    assert_eq!(fs::read(&one).unwrap(), fs::read(&other).unwrap());
}

#[test]
fn views_are_saved_in_row_major_order() {
    let folder = Scratch::new("tensors-views");
    let path = folder.0.join("view");
    let x = tensor![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    let view = x.t().unwrap().narrow(0, 1, 2).unwrap();
    save(&path, [("x", view)], &Metadata::new()).unwrap();
    let loaded = &load::<CpuBackend>(&path).unwrap()["x"];
    assert_eq!(loaded.dims(), [2, 2]);
    assert_eq!(loaded.to_vec::<f32>().unwrap(), [2.0, 5.0, 3.0, 6.0]);
}

#[test]
fn names_that_a_file_cannot_have_are_errors() {
    let folder = Scratch::new("tensors-names");
    let path = folder.0.join("a");
    let twice = [("x", tensor![1.0]), ("x", tensor![2.0])];
    let error = save(&path, twice, &Metadata::new()).unwrap_err().to_string();
    assert!(error.contains("`x`"), "{error}");
    let reserved = [("__metadata__", tensor![1.0])];
    assert!(save(&path, reserved, &Metadata::new()).is_err());
    assert!(folder.names().is_empty());
}

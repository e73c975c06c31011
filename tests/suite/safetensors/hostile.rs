//! Invalid files: errors that name the file and the tensor, and models that are unchanged.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use safetensors::SafeTensors;
use swath::Rng;
use swath::io::safetensors::{load, load_metadata, load_module, save_module};
use swath::nn::{Linear, Visit, for_each_tensor};
use swath::prelude::*;

use crate::support::files::{Scratch, file_of};

/// Description of the fault, the file, parts of the message.
type Row = (&'static str, Vec<u8>, Vec<String>);

fn row(what: &'static str, file: Vec<u8>, parts: &[&str]) -> Row {
    (what, file, parts.iter().map(|&part| part.to_owned()).collect())
}

/// A file of the tensor `w`, whose header entry is `info`.
fn with_info(info: &str, data: usize) -> Vec<u8> {
    file_of(&format!(r#"{{"w":{{{info}}}}}"#), &vec![0; data])
}

fn rows() -> Vec<Row> {
    let u8s = |name: &str, begin: u64, end: u64| {
        let shape = end.wrapping_sub(begin);
        format!(r#""{name}":{{"dtype":"U8","shape":[{shape}],"data_offsets":[{begin},{end}]}}"#)
    };
    let good = format!("{{{}}}", u8s("w", 0, 4));
    let two = |a: String, b: String| format!("{{{a},{b}}}");
    let nested = |open: &str, close: &str| {
        let (open, close) = (open.repeat(100_000), close.repeat(100_000));
        file_of(&format!(r#"{{"w":{{"dtype":{open}{close}}}}}"#), &[])
    };
    vec![
        row("empty", vec![], &["0 bytes"]),
        row("shorter than the length field", vec![1, 0, 0], &["3 bytes"]),
        row("header beyond the file", file_of(&good, &[])[..20].to_vec(), &["does not fit"]),
        row("longest header", [[0xFF; 8], [b'{'; 8]].concat(), &["does not fit"]),
        row("incomplete JSON", file_of("{\"w\":", &[]), &["header", "EOF"]),
        row("not an object", file_of("[1]", &[]), &["header"]),
        row("text after the object", file_of(&format!("{good}x"), &[0; 4]), &["trailing"]),
        row("control character", file_of("{\"\u{1}\":1}", &[]), &["header"]),
        row(
            "not UTF-8",
            file_of(&good, &[0; 4]).into_iter().map(|b| if b == b'w' { 0xFF } else { b }).collect(),
            &["header"],
        ),
        row(
            "unpaired surrogate",
            file_of(&good.replace("\"w\"", "\"\\ud800\""), &[0; 4]),
            &["header"],
        ),
        row("deeply nested lists", nested("[", "]"), &["`w`", "header"]),
        row("deeply nested objects", nested("{\"a\":", "}"), &["`w`", "header"]),
        row("no dtype", with_info(r#""shape":[4],"data_offsets":[0,4]"#, 4), &["`w`", "dtype"]),
        row("no shape", with_info(r#""dtype":"U8","data_offsets":[0,4]"#, 4), &["`w`", "shape"]),
        row("no offsets", with_info(r#""dtype":"U8","shape":[4]"#, 4), &["`w`", "data_offsets"]),
        row(
            "unknown dtype",
            with_info(r#""dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]"#, 4),
            &["`w`", "F8_E4M3"],
        ),
        row(
            "unknown field",
            with_info(r#""dtype":"U8","shape":[4],"data_offsets":[0,4],"more":1"#, 4),
            &["`w`", "more"],
        ),
        row(
            "duplicate field",
            with_info(r#""dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]"#, 4),
            &["`w`", "dtype", "twice"],
        ),
        row(
            "size that does not fit the shape",
            with_info(r#""dtype":"F32","shape":[2],"data_offsets":[0,4]"#, 4),
            &["`w`", "[0, 4]", "F32", "[2]"],
        ),
        row(
            "negative extent",
            with_info(r#""dtype":"U8","shape":[-4],"data_offsets":[0,4]"#, 4),
            &["`w`", "-4"],
        ),
        row(
            "fractional extent",
            with_info(r#""dtype":"U8","shape":[4.5],"data_offsets":[0,4]"#, 4),
            &["`w`", "4.5"],
        ),
        row(
            "extent beyond 64 bits",
            with_info(r#""dtype":"U8","shape":[18446744073709551620],"data_offsets":[0,4]"#, 4),
            &["`w`"],
        ),
        row(
            "product that wraps to 4",
            with_info(r#""dtype":"U8","shape":[4611686018427387905,4],"data_offsets":[0,4]"#, 4),
            &["`w`", "address"],
        ),
        row(
            "bytes that wrap to 4",
            with_info(r#""dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]"#, 4),
            &["`w`", "address"],
        ),
        row(
            "extent of 0 times an overflow",
            with_info(r#""dtype":"F32","shape":[0,9223372036854775807],"data_offsets":[0,0]"#, 0),
            &["`w`", "address"],
        ),
        row(
            "nine axes",
            with_info(r#""dtype":"U8","shape":[1,1,1,1,1,1,1,1,4],"data_offsets":[0,4]"#, 4),
            &["`w`", "8 axes"],
        ),
        row(
            "end before begin",
            with_info(r#""dtype":"U8","shape":[4],"data_offsets":[4,0]"#, 4),
            &["`w`", "[4, 0]"],
        ),
        row(
            "offsets that wrap",
            with_info(r#""dtype":"U8","shape":[4],"data_offsets":[18446744073709551614,2]"#, 4),
            &["`w`", "[18446744073709551614, 2]"],
        ),
        row(
            "three offsets",
            with_info(r#""dtype":"U8","shape":[4],"data_offsets":[0,4,4]"#, 4),
            &["`w`"],
        ),
        row("truncated data", file_of(&good, &[0; 3]), &["`w`", "truncated"]),
        row(
            "beyond the data",
            file_of(&format!("{{{}}}", u8s("w", 0, 1 << 62)), &[0; 4]),
            &["`w`"],
        ),
        row("data after the last", file_of(&good, &[0; 9]), &["5 bytes after"]),
        row("data without tensors", file_of("{}", &[0; 9]), &["9 bytes after"]),
        row(
            "overlap",
            file_of(&two(u8s("w", 0, 4), u8s("v", 3, 6)), &[0; 6]),
            &["`v`", "overlaps", "`w`"],
        ),
        row(
            "two tensors of the same bytes",
            file_of(&two(u8s("w", 0, 4), u8s("v", 0, 4)), &[0; 4]),
            &["overlaps"],
        ),
        row(
            "empty inside another",
            file_of(&two(u8s("w", 0, 4), u8s("v", 2, 2)), &[0; 4]),
            &["`v`", "overlaps", "`w`"],
        ),
        row(
            "a gap",
            file_of(&two(u8s("w", 0, 4), u8s("v", 5, 6)), &[0; 6]),
            &["`v`", "bytes 4 to 5"],
        ),
        row(
            "a gap before the first",
            file_of(&format!("{{{}}}", u8s("w", 1, 4)), &[0; 4]),
            &["`w`", "bytes 0 to 1"],
        ),
        row(
            "duplicate name",
            file_of(&two(u8s("w", 0, 4), u8s("w", 4, 8)), &[0; 8]),
            &["`w`", "two tensors"],
        ),
        row(
            "duplicate name, once escaped",
            file_of(&two(u8s("w", 0, 4), u8s("\\u0077", 4, 8)), &[0; 8]),
            &["`w`", "two tensors"],
        ),
        row(
            "duplicate metadata",
            file_of(r#"{"__metadata__":{},"__metadata__":{}}"#, &[]),
            &["__metadata__", "twice"],
        ),
        row("metadata of numbers", file_of(r#"{"__metadata__":{"a":1}}"#, &[]), &["header"]),
        row(
            "invalid bool byte",
            file_of(r#"{"w":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}}"#, &[1, 2]),
            &["`w`", "bool byte"],
        ),
    ]
}

#[test]
fn every_kind_of_invalid_file_is_an_error_that_names_file_and_tensor() {
    let folder = Scratch::new("tensors-hostile");
    for (i, (what, bytes, parts)) in rows().into_iter().enumerate() {
        let name = format!("bad-{i}.safetensors");
        let path = folder.0.join(&name);
        fs::write(&path, bytes).unwrap();
        let error = load::<CpuBackend>(&path).expect_err(what);
        assert!(matches!(error, Error::File { .. }), "{what}: {error:?}");
        let message = error.to_string();
        for part in parts.iter().map(String::as_str).chain([name.as_str()]) {
            assert!(message.contains(part), "{what}: no {part} in {message}");
        }
        let there = load::<ReferenceBackend>(&path).expect_err(what);
        assert_eq!(there.to_string(), message, "{what}");
    }
}

#[test]
fn duplicate_metadata_keys_are_an_error_when_metadata_is_loaded() {
    let scratch = Scratch::new("tensors-texts");
    fs::write(scratch.file(), file_of(r#"{"__metadata__":{"a":"b","\u0061":"c"}}"#, &[])).unwrap();
    let message = load_metadata(scratch.file()).unwrap_err().to_string();
    assert!(message.contains("__metadata__") && message.contains("twice"), "{message}");
}

#[test]
fn folders_and_missing_files_are_errors() {
    let folder = Scratch::new("tensors-no-file");
    for path in [folder.0.join("missing"), folder.0.clone()] {
        let shown = path.display().to_string();
        let errors = [
            load::<CpuBackend>(&path).unwrap_err(),
            load_metadata(&path).unwrap_err(),
            load_module(&path, &mut model(1)).unwrap_err(),
        ];
        for error in errors {
            assert!(error.to_string().contains(&shown), "{error}");
        }
    }
}

fn model(seed: u64) -> Linear {
    Linear::new(3, 2, &mut Rng::seed(seed)).unwrap()
}

fn values(model: &dyn Visit<CpuBackend>) -> Vec<Vec<u32>> {
    let mut values = Vec::new();
    for_each_tensor(model, |_, tensor, _| {
        let bits = tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits);
        values.push(bits.collect());
    });
    values
}

/// Files of a `Linear` whose tensors do not match the model's.
fn misfits() -> Vec<(&'static str, Vec<u8>, &'static [&'static str])> {
    let tensor = |name: &str, dtype: &str, shape: &str, begin: usize, end: usize| {
        format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}"#)
    };
    let file = |tensors: &[String], data: usize| {
        file_of(&format!("{{{}}}", tensors.join(",")), &vec![0; data])
    };
    let weight = || tensor("weight", "F32", "[2,3]", 0, 24);
    vec![
        ("no bias", file(&[weight()], 24), &["`bias`", "the file has not"]),
        (
            "an extra tensor",
            file(
                &[weight(), tensor("bias", "F32", "[2]", 24, 32), tensor("c", "U8", "[]", 32, 33)],
                33,
            ),
            &["`c`", "the model has no such"],
        ),
        (
            "different shape",
            file(&[weight(), tensor("bias", "F32", "[2,1]", 24, 32)], 32),
            &["`bias`", "[2, 1]", "[2]"],
        ),
        (
            "different dtype",
            file(&[weight(), tensor("bias", "F64", "[2]", 24, 40)], 40),
            &["`bias`", "f64", "f32"],
        ),
    ]
}

#[test]
fn a_file_that_does_not_fit_the_model_names_the_tensor_and_changes_nothing() {
    let folder = Scratch::new("tensors-misfits");
    let path = folder.0.join("other.safetensors");
    for (what, bytes, parts) in misfits() {
        fs::write(&path, bytes).unwrap();
        let mut model = model(1);
        let before = values(&model);
        let message = load_module(&path, &mut model).expect_err(what).to_string();
        for part in parts.iter().chain(&["other.safetensors"]) {
            assert!(message.contains(part), "{what}: no {part} in {message}");
        }
        assert_eq!(values(&model), before, "{what}");
    }
}

/// Checks a valid file with some bytes changed or cut off.
fn check_damaged(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    let mut model = model(1);
    let before = values(&model);
    match load_module(path, &mut model) {
        Err(error) => {
            assert!(matches!(error, Error::File { .. }), "{error:?}");
            assert_eq!(values(&model), before, "partly loaded");
        }
        Ok(()) => {
            // Only data or irrelevant bytes were changed: the reference implementation reads the same.
            let theirs = SafeTensors::deserialize(bytes).expect("we accepted what they refuse");
            let words = |name: &str| -> Vec<u32> {
                let view = theirs.tensor(name).expect("we found what they do not");
                let words = view.data().chunks_exact(4);
                words.map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
            };
            assert_eq!(values(&model), [words("weight"), words("bias")]);
        }
    }
}

#[test]
fn every_truncation_is_an_error_and_changes_nothing() {
    let folder = Scratch::new("tensors-truncated");
    let path = folder.0.join("a");
    save_module(&path, &model(2)).unwrap();
    let good = fs::read(&path).unwrap();
    for length in 0..good.len() {
        fs::write(&path, &good[..length]).unwrap();
        let mut model = model(1);
        let before = values(&model);
        assert!(load_module(&path, &mut model).is_err(), "{length} of {}", good.len());
        assert_eq!(values(&model), before, "{length}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn no_damage_to_bytes_panics_or_loads_a_part(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        thread_local! {
            static PLACE: (Scratch, Vec<u8>) = {
                let folder = Scratch::new("tensors-damaged");
                save_module(folder.0.join("good"), &model(2)).unwrap();
                let good = fs::read(folder.0.join("good")).unwrap();
                (folder, good)
            };
        }
        PLACE.with(|(folder, good)| {
            let mut bytes = good.clone();
            for (place, value) in &changes {
                bytes[place.index(good.len())] = *value;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(good.len()));
            }
            check_damaged(&folder.0.join("bad"), &bytes);
        });
    }
}

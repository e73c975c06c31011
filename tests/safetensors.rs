//! Files of tensors: what goes out comes in again, and nothing else does.

#[path = "support/files.rs"]
mod files;

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};
use swath::io::safetensors::{
    load, load_module, module_tensors, restore_module, save, save_module,
};
use swath::nn::{self, Linear, Sequential};
use swath::prelude::*;

use files::{Scratch, file_of};

type T = Tensor<CpuBackend>;

fn one_of_each() -> Vec<(String, T)> {
    let floats = tensor![[1.5, -2.0, f32::INFINITY], [0.0, -0.0, 1e-40]];
    let integers = tensor![i64; 1, 0, 200];
    let mut tensors = vec![
        ("f32".to_owned(), floats.clone()),
        ("i64".to_owned(), tensor![i64; i64::MIN, -1, i64::MAX]),
        ("scalar".to_owned(), T::full((), 2.5f64).unwrap()),
        ("empty".to_owned(), T::zeros((3, 0, 2), DType::F16).unwrap()),
        ("permuted \"ü\\".to_owned(), floats.t().unwrap()),
        ("eight".to_owned(), T::arange(0., 256., 1.).unwrap().reshape([2; 8]).unwrap()),
    ];
    for dtype in [DType::F16, DType::BF16, DType::F64] {
        tensors.push((format!("{dtype:?}"), floats.to_dtype(dtype).unwrap()));
    }
    for dtype in [DType::U8, DType::Bool, DType::I32, DType::U32] {
        tensors.push((format!("{dtype:?}"), integers.to_dtype(dtype).unwrap()));
    }
    tensors
}

fn bits(x: &T) -> (DType, Vec<usize>, Vec<u64>) {
    let values = match x.dtype() {
        dtype if dtype.is_float() => {
            let wide = x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
            wide.into_iter().map(f64::to_bits).collect()
        }
        _ => {
            let wide = x.to_dtype(DType::I64).unwrap().to_vec::<i64>().unwrap();
            wide.into_iter().map(|x| x as u64).collect()
        }
    };
    (x.dtype(), x.dims().to_vec(), values)
}

#[test]
fn every_dtype_and_shape_comes_back() {
    let scratch = Scratch::new("round-trip");
    let tensors = one_of_each();
    save(scratch.file(), &tensors).unwrap();
    let loaded = load::<CpuBackend>(scratch.file()).unwrap();
    assert_eq!(loaded.len(), tensors.len());
    for (name, tensor) in &tensors {
        assert_eq!(bits(&loaded[name]), bits(tensor), "{name}");
    }
    // Another backend reads the same.
    let reference = load::<ReferenceBackend>(scratch.file()).unwrap();
    for (name, tensor) in &loaded {
        assert_eq!(bits(&reference[name].to_backend().unwrap()), bits(tensor), "{name}");
    }
    assert_eq!(scratch.names(), ["tensors.safetensors"]);
}

#[test]
fn the_same_tensors_make_the_same_file_in_any_order() {
    let scratch = Scratch::new("order");
    let mut tensors = one_of_each();
    save(scratch.file(), &tensors).unwrap();
    let first = fs::read(scratch.file()).unwrap();
    tensors.reverse();
    save(scratch.file(), &tensors).unwrap();
    assert_eq!(fs::read(scratch.file()).unwrap(), first);
    // The data begins at a multiple of 8, for readers that map it.
    assert_eq!(u64::from_le_bytes(first[..8].try_into().unwrap()) % 8, 0);
}

#[test]
fn a_file_made_by_hand_is_read() {
    let scratch = Scratch::new("by-hand");
    let header = r#" { "__metadata__": {"format": "pt"},
        "b": {"dtype": "F32", "shape": [1, 2], "data_offsets": [3, 11]},
        "aA": {"data_offsets": [0, 3], "shape": [3], "dtype": "BOOL"} } "#;
    let data = [&[1, 0, 1][..], &1.5f32.to_le_bytes(), &(-3f32).to_le_bytes()].concat();
    fs::write(scratch.file(), file_of(header, &data)).unwrap();
    let loaded = load::<CpuBackend>(scratch.file()).unwrap();
    assert_eq!(loaded.keys().collect::<Vec<_>>(), ["aA", "b"]);
    assert_eq!(loaded["b"].to_vec::<f32>().unwrap(), [1.5, -3.0]);
    assert_eq!(loaded["aA"].to_vec::<bool>().unwrap(), [true, false, true]);
}

/// Header, bytes of data, the tensor that the error names (empty: none), a part of the reason.
const HOSTILE: &[(&str, usize, &str, &str)] = &[
    (r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, 7, "a", "of 7 that the file has"),
    (r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, 9, "", "8 bytes are described"),
    (r#"{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#, 8, "a", "takes 12"),
    (r#"{"a":{"dtype":"F64","shape":[2],"data_offsets":[0,8]}}"#, 8, "a", "takes 16"),
    (r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}"#, 8, "a", "8..0"),
    (
        r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}"#,
        6,
        "b",
        "overlap",
    ),
    (
        r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}}"#,
        6,
        "b",
        "gap",
    ),
    (
        r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}"#,
        4,
        "a",
        "twice",
    ),
    (
        r#"{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}"#,
        0,
        "a",
        "beyond memory",
    ),
    (
        r#"{"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[1,0]}}"#,
        0,
        "a",
        "beyond memory",
    ),
    (
        r#"{"a":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,0]}}"#,
        0,
        "a",
        "its description",
    ),
    (r#"{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}}"#, 0, "a", "its description"),
    (r#"{"a":{"dtype":"C64","shape":[1],"data_offsets":[0,8]}}"#, 8, "a", "its description"),
    (r#"{"a":{"dtype":"I16","shape":[4],"data_offsets":[0,8]}}"#, 8, "a", "not supported"),
    (r#"{"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}}"#, 1, "a", "9 axes"),
    (r#"{"a":{"dtype":"U8","shape":[1]}}"#, 1, "a", "its description"),
    (r#"{"a":7}"#, 1, "a", "its description"),
    (r#"["a"]"#, 0, "", "header"),
    (r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}} x"#, 1, "", "header"),
    (r#"{"a":{"dtype":"U8""#, 0, "", "header"),
    ("", 0, "", "header"),
];

#[test]
fn hostile_files_are_refused_by_name() {
    let scratch = Scratch::new("hostile");
    for (header, bytes, tensor, reason) in HOSTILE {
        fs::write(scratch.file(), file_of(header, &vec![1; *bytes])).unwrap();
        let error = load::<CpuBackend>(scratch.file()).unwrap_err();
        let text = error.to_string();
        let Error::File { tensor: named, .. } = error else { panic!("{header}: {text}") };
        assert_eq!(named.as_deref().unwrap_or(""), *tensor, "{header}: {text}");
        assert!(text.contains(reason), "{header}: {text}");
        assert!(text.contains("tensors.safetensors"), "{text}");
    }
    let truth = r#"{"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}}"#;
    fs::write(scratch.file(), file_of(truth, &[1, 2])).unwrap();
    let text = load::<CpuBackend>(scratch.file()).unwrap_err().to_string();
    assert!(text.contains("\"a\"") && text.contains("truth value"), "{text}");
}

fn model(seed: u64) -> Sequential {
    let mut rng = Rng::seed(seed);
    Sequential::new()
        .push(Linear::new(3, 4, &mut rng).unwrap())
        .push(nn::Dropout::new(0.5, &mut rng).unwrap())
        .push(Linear::new(4, 2, &mut rng).unwrap())
}

fn all_bits(model: &Sequential) -> Vec<(DType, Vec<usize>, Vec<u64>)> {
    module_tensors(model).iter().map(|(_, tensor)| bits(tensor)).collect()
}

#[test]
fn a_module_gets_all_values_or_none() {
    let scratch = Scratch::new("module");
    let (saved, mut other) = (model(1), model(2));
    save_module(scratch.file(), &saved).unwrap();
    let leaves = module_tensors(&other);
    load_module(scratch.file(), &mut other).unwrap();
    assert_eq!(all_bits(&other), all_bits(&saved));
    // The parameters are the leaves they were: gradients of an older loss are still theirs.
    let loss = leaves[0].1.square().unwrap().sum(None, false).unwrap();
    assert!(loss.backward().unwrap().get(&module_tensors(&other)[0].1).is_some());

    let before = all_bits(&other);
    let tensors: BTreeMap<String, T> = load(scratch.file()).unwrap();
    type Change = fn(&mut BTreeMap<String, T>);
    let changes: [(&str, Change); 4] = [
        ("0.weight", |t| drop(t.insert("0.weight".into(), T::zeros((3, 4), DType::F32).unwrap()))),
        ("2.bias", |t| drop(t.insert("2.bias".into(), T::zeros(2, DType::F64).unwrap()))),
        ("2.weight", |t| drop(t.remove("2.weight"))),
        ("3.weight", |t| drop(t.insert("3.weight".into(), T::zeros(1, DType::F32).unwrap()))),
    ];
    for (name, change) in changes {
        let mut wrong = tensors.clone();
        change(&mut wrong);
        let list: Vec<_> = wrong.iter().map(|(n, t)| (n.clone(), t.clone())).collect();
        save(scratch.file(), &list).unwrap();
        let error = load_module(scratch.file(), &mut other).unwrap_err();
        assert!(matches!(&error, Error::File { tensor: Some(t), .. } if t == name), "{error}");
        let error = restore_module(&mut other, wrong).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(all_bits(&other), before);
    }
}

#[test]
fn a_save_that_fails_leaves_the_last_file_and_nothing_else() {
    let scratch = Scratch::new("failing");
    save(scratch.file(), &one_of_each()).unwrap();
    let before = fs::read(scratch.file()).unwrap();
    let twice = vec![("a".to_owned(), tensor![1.0]), ("a".to_owned(), tensor![2.0])];
    let error = save(scratch.file(), &twice).unwrap_err();
    assert!(matches!(error, Error::File { tensor: Some(_), .. }), "{error}");
    assert_eq!(fs::read(scratch.file()).unwrap(), before);
    assert_eq!(scratch.names(), ["tensors.safetensors"]);
    // A folder cannot be replaced by a file: the write succeeds, the rename does not.
    fs::create_dir_all(scratch.0.join("folder/inside")).unwrap();
    assert!(save(scratch.0.join("folder"), &one_of_each()).is_err());
    let mut names = scratch.names();
    names.sort();
    assert_eq!(names, ["folder", "tensors.safetensors"]);
    assert!(save(scratch.0.join("no/such/folder/x"), &one_of_each()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever becomes of a file, loading it is an error or gives whole tensors.
    #[test]
    fn damaged_files_never_panic_or_half_load(cut in 0usize..400, at in 0usize..400, byte: u8) {
        let scratch = Scratch::new(&format!("damaged-{cut}-{at}-{byte}"));
        save_module(scratch.file(), &model(1)).unwrap();
        let mut bytes = fs::read(scratch.file()).unwrap();
        let (cut, at) = (cut % bytes.len(), at % bytes.len());
        bytes[at] = byte;
        bytes.truncate(bytes.len() - cut);
        fs::write(scratch.file(), &bytes).unwrap();
        let mut other = model(2);
        let before = all_bits(&other);
        if load_module(scratch.file(), &mut other).is_err() {
            prop_assert_eq!(all_bits(&other), before);
        } else {
            prop_assert_eq!(cut, 0);
        }
    }
}

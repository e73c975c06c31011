//! Files of named tensors: opened by memory map, in shards, of NumPy and of llama.cpp, and loaded into models.

mod gguf;
mod load;
mod npy;
mod others;
mod tables;

use std::fs;

use swath::io::{File, Files, safetensors};
use swath::prelude::*;

use crate::support::files::{Scratch, file_of};

type T = Tensor<CpuBackend>;

/// Opens a file of these bytes, or returns the message of the error.
fn opened(folder: &Scratch, name: &str, bytes: &[u8]) -> std::result::Result<File, String> {
    let path = folder.0.join(name);
    fs::write(&path, bytes).unwrap();
    File::open(&path).map_err(|error| {
        let error = error.to_string();
        assert!(error.contains(&path.display().to_string()), "{error} does not name the file");
        error
    })
}

#[test]
fn a_tensor_is_in_the_memory_of_its_file_if_it_is_aligned() {
    let folder = Scratch::new("files-aligned");
    for odd in 0..4 {
        let header = format!(
            r#"{{"x":{{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}}}{}"#,
            " ".repeat(odd)
        );
        let data: Vec<u8> = [1f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let start = 8 + header.len();
        let file = opened(&folder, &format!("{odd}"), &file_of(&header, &data)).unwrap();
        let x = file.get::<CpuBackend>("x").unwrap();
        assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, -2.0]);
        assert_eq!(file.is_in_place("x").unwrap(), start.is_multiple_of(4), "{odd}");
        let is_same = x.as_bytes().unwrap().as_ptr() == file.bytes("x").unwrap().as_ptr();
        assert_eq!(is_same, start.is_multiple_of(4), "{odd}");
        // The tensor keeps the file mapped.
        drop(file);
        assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, -2.0]);
    }
}

#[test]
fn a_tensor_of_another_type_does_not_stand_in_the_way() {
    let folder = Scratch::new("files-types");
    let header = concat!(
        r#"{"__metadata__":{"k":"v"},"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]},"#,
        r#""b":{"dtype":"F4","shape":[2,2],"data_offsets":[2,4]},"#,
        r#""c":{"dtype":"C64","shape":[1],"data_offsets":[4,12]},"#,
        r#""h.0.attn.weight":{"dtype":"F16","shape":[1,1],"data_offsets":[12,14]},"#,
        r#""t":{"dtype":"BOOL","shape":[2],"data_offsets":[14,16]},"#,
        r#""u":{"dtype":"F2_E1","shape":[4],"data_offsets":[16,17]},"#,
        r#""v":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[17,18]}}"#
    );
    let data = [0x38, 0xFE, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3C, 1, 2, 3, 4];
    let file = opened(&folder, "types", &file_of(header, &data)).unwrap();
    assert!(file.names().eq(["a", "b", "c", "h.0.attn.weight", "t"]));
    assert_eq!(file.metadata()["k"], "v");
    let info = file.info("a").unwrap();
    assert_eq!((info.dtype(), info.dtype_name(), info.bytes()), (None, "F8_E4M3", 2));
    let message = |name: &str| file.get::<CpuBackend>(name).unwrap_err().to_string();
    assert!(
        message("a").contains("F8_E4M3") && message("a").contains("get_as"),
        "{}",
        message("a")
    );
    let a = file.get_as::<CpuBackend>("a", DType::F64).unwrap();
    assert_eq!(a.to_vec::<f64>().unwrap(), [1.0, -448.0]);
    assert_eq!(&*file.bytes("b").unwrap(), [1, 2]);
    let error = file.get_as::<CpuBackend>("c", DType::F32).unwrap_err().to_string();
    assert!(error.contains("C64"), "{error}");
    let weight = file.get_as::<CpuBackend>("h.0.attn.weight", DType::F32).unwrap();
    assert_eq!(weight.to_vec::<f32>().unwrap(), [1.0]);
    assert!(message("t").contains("bool byte 2"), "{}", message("t"));
    assert!(file.unreadable().map(|(name, _)| name).eq(["u", "v"]));
    assert!(message("u").contains("F2_E1"), "{}", message("u"));
    assert!(message("v").contains("more than 8 axes"), "{}", message("v"));
    assert!(
        message("h.1.attn.weight").contains("h.0.attn.weight"),
        "{}",
        message("h.1.attn.weight")
    );
    // The eager loader names the tensor and the way.
    let error = swath::io::safetensors::load::<CpuBackend>(file.path()).unwrap_err().to_string();
    assert!(error.contains("tensor `a`") && error.contains("get_as"), "{error}");
}

#[test]
fn shards_are_opened_by_their_index_or_folder() {
    let folder = Scratch::new("files-shards");
    let one = |name: &str, value: f32| {
        let header = format!(r#"{{"{name}":{{"dtype":"F32","shape":[],"data_offsets":[0,4]}}}}"#);
        file_of(&header, &value.to_le_bytes())
    };
    let put = |name: &str, bytes: &[u8]| fs::write(folder.0.join(name), bytes).unwrap();
    put("a.safetensors", &one("x", 1.0));
    put("b.safetensors", &one("y", 2.0));
    put("notes.txt", b"no tensors");
    let files = Files::open(&folder.0).unwrap();
    assert!(files.names().eq(["x", "y"]) && files.iter().count() == 2);
    assert_eq!(files.get::<CpuBackend>("y").unwrap().item::<f32>().unwrap(), 2.0);
    assert!(files.get::<CpuBackend>("z").unwrap_err().to_string().contains("none of 2 files"));
    // An index chooses.
    let index = |text: &str| put("model.safetensors.index.json", text.as_bytes());
    index(r#"{"metadata":{"total_size":4},"weight_map":{"y":"b.safetensors"}}"#);
    assert!(Files::open(&folder.0).unwrap().names().eq(["y"]));
    assert!(Files::open(folder.0.join("model.safetensors.index.json")).unwrap().names().eq(["y"]));
    assert!(Files::open(folder.0.join("a.safetensors")).unwrap().names().eq(["x"]));
    for (text, part) in [
        (r#"{"weight_map":{"x":"b.safetensors"}}"#, "it is not in"),
        (r#"{"weight_map":{"x":"../a.safetensors"}}"#, "beside the index"),
        (r#"{"weight_map":{"x":"/etc/passwd"}}"#, "beside the index"),
        (r#"{"weight_map":{"x":7}}"#, "weight_map"),
        (r#"{"weight_map":{"x":"none.safetensors"}}"#, "none.safetensors"),
        (r#"{"weight_map":[]}"#, "weight_map"),
        ("{", "index"),
    ] {
        index(text);
        let error = Files::open(&folder.0).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    fs::remove_file(folder.0.join("model.safetensors.index.json")).unwrap();
    put("c.safetensors", &one("x", 3.0));
    let error = Files::open(&folder.0).unwrap_err().to_string();
    assert!(error.contains("a.safetensors") && error.contains("c.safetensors"), "{error}");
    let empty = Scratch::new("files-none");
    assert!(Files::open(&empty.0).unwrap_err().to_string().contains("*.safetensors"));
}

#[test]
fn a_model_is_saved_in_shards_and_replaced() {
    let folder = Scratch::new("files-sharded");
    let tensor = |value: f32| T::full(8, value).unwrap();
    let tensors = |value: f32| ["a", "b", "c", "d"].map(|name| (name, tensor(value)));
    let save = |tensors: Vec<(&str, T)>, bytes| {
        safetensors::save_sharded(&folder.0, tensors, bytes, &Default::default())
    };
    let found = || {
        Files::open(&folder.0).unwrap().get::<CpuBackend>("c").unwrap().to_vec::<f32>().unwrap()[0]
    };
    save(tensors(1.0).into(), 64).unwrap();
    let first = [
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
    ];
    assert_eq!((folder.names(), found()), (first.map(str::to_owned).to_vec(), 1.0));
    let index = fs::read_to_string(folder.0.join(first[2])).unwrap();
    assert!(
        index.contains("\"total_size\": 128")
            && index.contains("\"c\": \"model-00002-of-00002.safetensors\""),
        "{index}"
    );
    // The second model has other names until the index names it; then the first one's files go.
    save(tensors(2.0).into(), 64).unwrap();
    assert_eq!((folder.names().len(), found()), (3, 2.0));
    assert!(folder.names()[0].starts_with("model-2-00001"));
    // Smaller parts than a tensor; a failure changes nothing.
    save(tensors(3.0).into(), 0).unwrap();
    assert_eq!((folder.names().len(), found()), (5, 3.0));
    let before = folder.names();
    assert!(save(vec![("a", tensor(4.0)), ("z", tensor(4.0)), ("a", tensor(4.0))], 64).is_err());
    assert!(save(vec![("a", tensor(4.0)), ("__metadata__", tensor(4.0))], 0).is_err());
    assert_eq!((folder.names(), found()), (before, 3.0));
    save(vec![], 64).unwrap();
    assert_eq!(folder.names(), ["model.safetensors.index.json"]);
    assert_eq!(Files::open(&folder.0).unwrap().names().count(), 0);
}

#[test]
fn a_file_lists_no_more_tensors_than_its_size_allows() {
    let folder = Scratch::new("files-many");
    let entry = |i: usize| format!(r#""{i}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#);
    let many = (0..20_000).map(entry).collect::<Vec<_>>().join(",");
    let error = opened(&folder, "many", &file_of(&format!("{{{many}}}"), &[])).unwrap_err();
    assert!(error.contains("more than") && error.contains("tensors"), "{error}");
    let few = (0..10_000).map(entry).collect::<Vec<_>>().join(",");
    assert_eq!(
        opened(&folder, "few", &file_of(&format!("{{{few}}}"), &[])).unwrap().names().count(),
        10_000
    );
}

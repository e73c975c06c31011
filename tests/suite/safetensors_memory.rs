//! Loading allocates at most the file's size and 1 MiB, for any file. The test runs in its own process
//! because it measures the memory of all threads.

use std::fs;
use std::path::Path;

use swath::io::safetensors::{
    Metadata, TrainingState, load, load_metadata, load_module, module_tensors, save, save_module,
};
use swath::io::{File, Load};
use swath::nn::{self, TransformerBlock, TransformerBlockOptions};
use swath::prelude::*;

use crate::support::files::{Scratch, file_of};
use crate::support::{alone, counting};

type T = Tensor<CpuBackend>;

const MIB: usize = 1 << 20;

/// A file with this header and `data` bytes of data.
fn file(header: &str, data: usize) -> Vec<u8> {
    file_of(header, &vec![0; data])
}

/// `count` tensors of `size` bytes, with names of `name + 8` bytes.
fn many(count: usize, size: usize, name: usize) -> Vec<u8> {
    let tensor = |i: usize| {
        let (begin, end) = (i * size, (i + 1) * size);
        let name = format!("{i:08}") + &"n".repeat(name);
        format!(r#""{name}":{{"dtype":"U8","shape":[{size}],"data_offsets":[{begin},{end}]}}"#)
    };
    let tensors: Vec<String> = (0..count).map(tensor).collect();
    file(&format!("{{{}}}", tensors.join(",")), count * size)
}

/// The file with one more byte.
fn with_extra_byte(mut file: Vec<u8>) -> Vec<u8> {
    file.push(0);
    file
}

/// Two tensors with the same long name.
fn twice(name: usize) -> Vec<u8> {
    let tensor = |begin: usize| {
        let (name, end) = ("n".repeat(name), begin + 1);
        format!(r#""{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{begin},{end}]}}"#)
    };
    file(&format!("{{{},{}}}", tensor(0), tensor(1)), 2)
}

fn block(width: usize, seed: u64) -> TransformerBlock {
    let options = TransformerBlockOptions::default();
    TransformerBlock::with_options(width, 4, options, &mut Rng::seed(seed)).unwrap()
}

/// Many tensors of 16 bytes, and one that is larger than all of them.
fn mixed() -> Vec<u8> {
    let small = (0..2000).map(|i| (i, 16 * i, 16 * i + 16));
    let tensors = small.chain([(2000, 32_000, 32_000 + 4 * MIB)]).map(|(i, begin, end)| {
        let size = end - begin;
        format!(r#""a.rather.long.name.{i}":{{"dtype":"U8","shape":[{size}],"data_offsets":[{begin},{end}]}}"#)
    });
    let tensors: Vec<String> = tensors.collect();
    file(&format!("{{{}}}", tensors.join(",")), 32_000 + 4 * MIB)
}

fn texts(count: usize, size: usize, data: usize) -> Vec<u8> {
    let text = |i: usize| format!(r#""{i}":"{}""#, "t".repeat(size));
    let texts: Vec<String> = (0..count).map(text).collect();
    let tensor = format!(r#""x":{{"dtype":"U8","shape":[{data}],"data_offsets":[0,{data}]}}"#);
    file(&format!(r#"{{"__metadata__":{{{}}},{tensor}}}"#, texts.join(",")), data)
}

/// Description, the file, and true if it is valid.
fn files() -> Vec<(&'static str, Vec<u8>, bool)> {
    let wrong = r#"{"w":{"dtype":"U8","shape":[4611686018427387904],"data_offsets":[0,4611686018427387904]}}"#;
    let long = |text: &str, times: usize| text.repeat(times);
    vec![
        ("one large tensor", many(1, 9 * MIB + 1, 1), true),
        ("sizes just above a size class", many(20, MIB / 2 + 64, 1), true),
        ("a thousand tensors", many(1000, 4096, 40), true),
        ("two thousand small tensors and a large one", mixed(), true),
        ("many tiny tensors", many(1500, 8, 40), true),
        ("long metadata and much data", texts(30, 9000, MIB), true),
        ("too many tiny tensors", many(100_000, 1, 1), false),
        ("too many empty tensors", many(100_000, 0, 1), false),
        ("metadata that is not requested", texts(100_000, 1, 0), true),
        ("long metadata that is not requested", texts(4, MIB, 0), true),
        ("long names, and bytes of no tensor", with_extra_byte(many(3, 4, 3 * MIB)), false),
        ("many tensors, and bytes of no tensor", with_extra_byte(many(17_000, 2, 1)), false),
        ("duplicate long names", twice(MIB), false),
        ("a long name of escapes", file(&format!("{{\"{}\":1}}", long("\\n", MIB)), 0), false),
        ("a value of escapes", file(&format!("{{\"w\":\"{}\"}}", long("\\n", MIB)), 0), false),
        ("a size beyond the file", file(wrong, 0), false),
        ("digits", file(&format!("{{\"w\":{{\"shape\":[{}]}}}}", long("1", 3 * MIB)), 0), false),
        ("extents", file(&format!("{{\"w\":{{\"shape\":[{}1]}}}}", long("1,", MIB)), 0), false),
        ("opening brackets", file(&format!("{{\"w\":{}", long("[", 3 * MIB)), 0), false),
        ("blanks", file(&format!("{{{}", long(" ", 3 * MIB)), 0), false),
        ("only the length field", u64::MAX.to_le_bytes().to_vec(), false),
        (
            "the length field and few bytes",
            [&(1u64 << 33).to_le_bytes()[..], &[b'{'; 100]].concat(),
            false,
        ),
    ]
}

fn size_of_file(path: &Path) -> usize {
    fs::metadata(path).unwrap().len() as usize
}

fn check(what: &str, path: &Path, good: bool, f: impl FnOnce() -> Result<()>) {
    let size = size_of_file(path);
    let (result, peak) = counting::peak_of(f);
    println!("{what}: {peak} bytes for a file of {size}");
    assert_eq!(result.is_ok(), good, "{what}: {result:?}");
    assert!(peak <= size + MIB, "{what}: {peak} bytes for a file of {size}");
}

#[test]
fn loading_allocates_at_most_the_files_size_and_a_mib() {
    alone(
        "safetensors_memory::loading_allocates_at_most_the_files_size_and_a_mib",
        measure_loading,
    );
}

fn measure_loading() {
    let scratch = Scratch::new("tensors-memory");
    let path = &scratch.file();
    save(path, [("x", tensor![1.0])], &Metadata::new()).unwrap();
    load::<CpuBackend>(path).unwrap();
    for (what, bytes, good) in files() {
        fs::write(path, bytes).unwrap();
        check(what, path, good, || load::<CpuBackend>(path).map(drop));
        let (_, peak) = counting::peak_of(|| File::open(path).map(drop));
        assert!(peak <= size_of_file(path) + MIB, "{what}: opening took {peak} bytes");
        if !good {
            check(what, path, false, || load_metadata(path).map(drop));
            check(what, path, false, || TrainingState::<CpuBackend>::load(path).map(drop));
            check(what, path, false, || load_module(path, &mut block(4, 1)));
        }
    }

    // Valid files that do not fit the model: an error before tensors are allocated.
    fs::write(path, many(17_000, 2, 1)).unwrap();
    let mut model = block(4, 1);
    check("tensors of another model", path, false, || load_module(path, &mut model));
    let (mut model, mut other) = (block(256, 1), block(128, 2));
    save_module(path, &block(256, 3)).unwrap();
    check("a model", path, true, || load_module(path, &mut model));
    check("a model of different shapes", path, false, || load_module(path, &mut other));
    check("all tensors", path, true, || load::<CpuBackend>(path).map(drop));

    // A model without values, in the file's memory, and converted: the model and one tensor.
    let large = || block(256, 1);
    save_module(path, &large()).unwrap();
    let empty = || nn::empty(|| Ok(large())).unwrap();
    let (file, peak) = counting::peak_of(|| File::open(path).unwrap());
    assert!(peak <= MIB / 8, "opening took {peak} bytes");
    let (_, peak) = counting::peak_of(|| Load::new(&file).fill(empty()).unwrap());
    assert!(peak <= MIB / 8, "loading in place took {peak} bytes");
    let half = |x: &T| {
        let dtype = if x.dtype().is_float() { DType::F16 } else { x.dtype() };
        x.detach().to_dtype(dtype).unwrap()
    };
    let tensors = module_tensors(&large()).into_iter().map(|(name, x)| (name, half(&x)));
    save(path, tensors, &Metadata::new()).unwrap();
    let file = File::open(path).unwrap();
    let (_, peak) =
        counting::peak_of(|| Load::new(&file).convert(DType::F32).fill(empty()).unwrap());
    let (all, largest) = (2 * size_of_file(path), 4 * 256 * 1024);
    assert!(peak <= all + largest + MIB / 4, "{peak} bytes for a model of {all}");

    let large = T::zeros((1 << 20, 3), DType::F32).unwrap();
    // Every number of tiny tensors that can be saved can be loaded; larger numbers cannot be saved.
    let zeros = |count: usize| {
        let zero = T::zeros((), DType::U8).unwrap();
        (0..count).map(move |i| (format!("{i}"), zero.clone()))
    };
    save(path, zeros(17_000), &Metadata::new()).unwrap();
    assert_eq!(load::<CpuBackend>(path).unwrap().len(), 17_000);
    assert!(save(path, zeros(18_000), &Metadata::new()).is_err());
    assert_eq!(load::<CpuBackend>(path).unwrap().len(), 17_000);

    let (saved, peak) = counting::peak_of(|| save(path, [("x", large)], &Metadata::new()));
    saved.unwrap();
    assert!(peak <= 13 * MIB, "saving took {peak} bytes");
}

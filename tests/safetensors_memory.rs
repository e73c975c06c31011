//! What loading a file of tensors asks the system for. The counts are the whole process's: one test.

#[path = "support/counting.rs"]
mod counting;
#[path = "support/files.rs"]
mod files;

use std::fs;

use swath::io::safetensors::{load, save};
use swath::prelude::*;

use files::{Scratch, file_of};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

type T = Tensor<CpuBackend>;

#[test]
fn memory_is_bounded_by_the_file() {
    lengths_that_lie_take_no_memory();
    loading_takes_as_much_memory_as_the_file_and_a_mebibyte_at_most();
}

fn lengths_that_lie_take_no_memory() {
    let scratch = Scratch::new("lengths");
    let mut huge = u64::MAX.to_le_bytes().to_vec();
    huge.extend([b' '; 100]);
    let over = [&(101u64).to_le_bytes()[..], &[b' '; 100]].concat();
    for bytes in [&b""[..], b"1234567", &huge, &over, &u64::MAX.to_le_bytes()] {
        fs::write(scratch.file(), bytes).unwrap();
        let (result, peak) = counting::peak_of(|| load::<CpuBackend>(scratch.file()));
        assert!(matches!(result, Err(Error::File { .. })));
        assert!(peak <= bytes.len() + (1 << 20), "{peak}");
    }
    assert!(matches!(load::<CpuBackend>(scratch.0.join("none")), Err(Error::File { .. })));
    assert!(matches!(load::<CpuBackend>(&scratch.0), Err(Error::File { .. })));
}

fn loading_takes_as_much_memory_as_the_file_and_a_mebibyte_at_most() {
    let scratch = Scratch::new("memory");
    // Sizes just above those of recycled blocks, one large, and many names.
    let mut tensors: Vec<(String, T)> = (0..3000)
        .map(|i| (format!("a.rather.long.name.of.a.tensor.{i}"), T::ones(3, DType::F32).unwrap()))
        .collect();
    tensors.push(("large".into(), T::ones((1 << 22) + 1, DType::F32).unwrap()));
    tensors.push(("middle".into(), T::ones((1 << 18) + 1, DType::F64).unwrap()));
    save(scratch.file(), &tensors).unwrap();
    drop(tensors);
    let size = fs::metadata(scratch.file()).unwrap().len() as usize;
    let (loaded, peak) = counting::peak_of(|| load::<CpuBackend>(scratch.file()).unwrap());
    assert_eq!(loaded.len(), 3002);
    assert!(peak <= size + (1 << 20), "{} over {size}", peak.saturating_sub(size));

    // A header that is all there is, of tensors without elements.
    let entry = |i| format!(r#""{i}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#);
    let header = format!("{{{}}}", (0..60_000).map(entry).collect::<Vec<_>>().join(","));
    let mut broken = file_of(&header, b"");
    let size = broken.len();
    broken.push(0);
    fs::write(scratch.file(), &broken).unwrap();
    drop((header, broken));
    let (result, peak) = counting::peak_of(|| load::<CpuBackend>(scratch.file()));
    assert!(result.is_err());
    assert!(peak <= size + (1 << 20), "{peak} for {size}");
}

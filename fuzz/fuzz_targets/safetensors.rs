//! Files of any bytes: an error that names the file, or tensors that the file holds, which are read again after they
//! are saved.

#![no_main]

mod input;

use std::fs;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use swath::CpuBackend;
use swath::io::safetensors::{load, load_metadata, save};

fuzz_target!(|bytes: &[u8]| {
    let file = drawn(&mut Unstructured::new(bytes)).expect("zeros follow the last byte");
    let path = std::env::temp_dir().join(format!("swath-fuzz-{}.safetensors", std::process::id()));
    fs::write(&path, &file).expect("the folder of temporary files");
    let (tensors, metadata) = (load::<CpuBackend>(&path), load_metadata(&path));
    match tensors {
        Ok(tensors) => {
            let held: usize = tensors.values().map(|x| x.numel() * x.dtype().size()).sum();
            assert!(held <= file.len(), "{held} bytes of tensors in a file of {}", file.len());
            let metadata = metadata.expect("a header that was read");
            save(&path, tensors.clone(), &metadata).expect("tensors and metadata of a file");
            let again = load::<CpuBackend>(&path).expect("a file that was saved");
            assert!(tensors.keys().eq(again.keys()), "{tensors:?} {again:?}");
            assert_eq!(load_metadata(&path).expect("a file that was saved"), metadata);
        }
        Err(error) => {
            let (error, path) = (error.to_string(), path.display().to_string());
            assert!(error.contains(&path), "{error} does not name {path}");
        }
    }
});

/// A header of drawn entries, or of any bytes, and data.
fn drawn(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    if u.ratio(1, 4)? {
        return Ok(u.bytes(u.len())?.to_vec());
    }
    let (mut entries, mut end) = (Vec::new(), 0usize);
    for name in ["a", "b", "a", "__metadata__", "c\u{fe}"] {
        if u.arbitrary::<bool>()? {
            continue;
        }
        if name == "__metadata__" {
            entries.push(format!(r#""{name}":{{"k":"v"}}"#));
            continue;
        }
        let dtypes = ["F32", "F64", "F16", "BF16", "I64", "I16", "U64", "I8", "BOOL", "F8_E4M3"];
        let at = input::below(u, dtypes.len());
        let size = [4, 8, 2, 2, 8, 2, 8, 1, 1, 1][at];
        let mut extent = || -> Result<usize> {
            Ok(if u.ratio(1, 24)? { u.arbitrary()? } else { u.int_in_range(0..=3)? })
        };
        let shape = [extent()?, extent()?];
        let bytes = shape[0].wrapping_mul(shape[1]).wrapping_mul(size);
        let wrong = if u.ratio(1, 12)? { u.arbitrary::<i8>()? as isize } else { 0 };
        let (begin, stop) = (end, end.wrapping_add(bytes).wrapping_add_signed(wrong));
        entries.push(format!(
            r#""{name}":{{"dtype":"{}","shape":[{},{}],"data_offsets":[{begin},{stop}]}}"#,
            dtypes[at], shape[0], shape[1]
        ));
        end = stop;
    }
    let header = format!("{{{}}}", entries.join(","));
    let mut len = header.len() as u64;
    if u.ratio(1, 16)? {
        len = u.arbitrary()?;
    }
    let mut file = [&len.to_le_bytes()[..], header.as_bytes()].concat();
    // Bytes of the input, as many as the tensors have; zeros and ones suit booleans.
    let byte = |u: &mut Unstructured<'_>| u.arbitrary::<u8>().map(|byte| byte & 1);
    for _ in 0..end.min(1 << 12) + usize::from(u.ratio(1, 16)?) {
        file.push(byte(u)?);
    }
    Ok(file)
}

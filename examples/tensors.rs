//! Lists the tensors of files, and writes them as another file.
//!
//! ```text
//! cargo run --release --example tensors -- model.pt                        name, type, shape and bytes of each
//! cargo run --release --example tensors -- arrays.npz weights.safetensors  converts
//! ```
//!
//! Read are safetensors (also an index of shards, or their folder), GGUF, `.npy`, `.npz` and PyTorch's `.pt`; written are
//! `.safetensors`, `.npz`, and a folder of shards of 4 GB if the name has no ending.

use std::path::Path;
use std::process::ExitCode;

use swath::io::{Files, npy, safetensors};
use swath::prelude::*;

fn main() -> ExitCode {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let (from, to) = match &paths[..] {
        [from] => (from, None),
        [from, to] => (from, Some(Path::new(to))),
        _ => {
            eprintln!("usage: tensors FILE-OR-FOLDER [TO.safetensors | TO.npz | FOLDER]");
            return ExitCode::FAILURE;
        }
    };
    match run(Path::new(from), to) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tensors: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(from: &Path, to: Option<&Path>) -> Result<()> {
    let files = Files::open(from)?;
    let (mut tensors, mut total) = (Vec::new(), 0);
    for file in files.iter() {
        for name in file.names() {
            let info = file.info(name)?;
            total += info.bytes();
            let Some(to) = to else {
                println!("{name}  {} {}  {} bytes", info.dtype_name(), info.shape(), info.bytes());
                continue;
            };
            // Types that tensors cannot hold are left out, with a word.
            match file.get::<CpuBackend>(name) {
                Ok(x) => tensors.push((name.to_owned(), x)),
                Err(error) => eprintln!("not written to {}: {error}", to.display()),
            }
        }
        for (name, reason) in file.unreadable() {
            eprintln!("{name}: {reason}");
        }
    }
    let Some(to) = to else {
        println!("{total} bytes");
        return Ok(());
    };
    match to.extension().and_then(|end| end.to_str()) {
        Some("safetensors") => safetensors::save(to, tensors, &Default::default()),
        Some("npz") => npy::save_all(to, tensors),
        _ => safetensors::save_sharded(to, tensors, 4_000_000_000, &Default::default()),
    }
}

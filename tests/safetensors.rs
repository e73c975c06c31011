//! Files of tensors: what is saved is loaded, by us and by the format's own implementation; what is
//! not a good file is an error that names it and changes nothing; a save that fails harms nothing.

#[path = "safetensors/atomic.rs"]
mod atomic;
#[path = "safetensors/formats.rs"]
mod formats;
#[path = "safetensors/hostile.rs"]
mod hostile;
#[path = "safetensors/models.rs"]
mod models;

use std::fs;
use std::path::{Path, PathBuf};

use swath::prelude::*;

type T = Tensor<CpuBackend>;

/// A folder of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("safetensors-{}-{name}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Names of what is in it, sorted.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file of the format from its parts.
fn with_header(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

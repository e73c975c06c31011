//! Temporary folders, and files written by the specification of the format.

#![allow(dead_code, reason = "each test uses a part")]

use std::fs;
use std::path::PathBuf;

/// A test's temporary folder, removed when dropped.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Makes the folder, empty.
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("swath-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    pub fn file(&self) -> PathBuf {
        self.0.join("tensors.safetensors")
    }

    /// Sorted names of its files.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file by the specification of the format.
pub fn file_of(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

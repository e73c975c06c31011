//! Files replaced whole.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::Failure;

/// Writes a file beside `path` with `write`, and puts it in its place once it is complete.
pub fn replace(
    path: &Path,
    write: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    let written = write(&new).and_then(|()| {
        File::open(&new)?.sync_all()?;
        Ok(fs::rename(&new, path)?)
    });
    written.map_err(|error| {
        let _ = fs::remove_file(&new);
        format!("cannot write {}: {error}", path.display()).into()
    })
}

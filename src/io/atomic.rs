//! Files replaced whole: what was there stays until all that replaces it is on the disk.
//!
//! ```text
//! write a file of another name beside it; sync it; rename it over the old one; sync the folder
//! ```
//!
//! A reader sees the old file or the new one. An error or a kill on the way leaves the old one; after an
//! error nothing else is left.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Replaces the file by what `write` writes.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let new = beside(path)?;
    let written = write_new(&new, write).and_then(|()| fs::rename(&new, path));
    if let Err(error) = written {
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    sync_folder(path)
}

fn write_new(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 16, File::create_new(path)?);
    write(&mut file)?;
    file.flush()?;
    file.get_ref().sync_all()
}

/// A name in the same folder that no other writer has.
fn beside(path: &Path) -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
    };
    let mut new = std::ffi::OsString::from(".");
    new.push(name);
    new.push(format!(".{}-{}.new", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    Ok(path.with_file_name(new))
}

/// Makes the renaming itself last, where the system can.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Some systems cannot open folders: there the rename is all that can be had.
    match File::open(folder) {
        Ok(folder) => folder.sync_all(),
        Err(_) => Ok(()),
    }
}

//! [`replace_file`]: atomic replacement of a file.
//!
//! ```text
//! write a new file beside the old one        (a failure so far: remove it, the old one is untouched)
//! fsync it, so that its bytes are on disk before its name is
//! rename it over the old one                 (atomic)
//! fsync the folder, so that the name is on disk
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::Place;
use crate::error::Result;

/// Largest number of temporary names that are tried: files of killed processes may still exist.
const ATTEMPTS: u64 = 10_000;

/// Replaces a file atomically: if `write` fails, the disk is full or the process is killed, an
/// existing file is unchanged. On an error nothing is left behind; a killed process may leave a
/// file `.swath-*.tmp` in the same folder.
///
/// ```
/// use std::io::Write;
/// # let folder = std::env::temp_dir();
/// let path = folder.join("swath-replace-file.txt");
/// swath::io::replace_file(&path, |file| writeln!(file, "all or nothing"))?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "all or nothing\n");
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), swath::Error>(())
/// ```
///
/// # Errors
/// [`Error::File`](crate::Error::File).
pub fn replace_file(
    path: impl AsRef<Path>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let place = Place { op: "replace_file", path: path.as_ref() };
    replace(place, |file| write(file).map_err(|error| place.cannot_write(error)))
}

/// Like [`replace_file`], for a `write` that returns this crate's errors.
pub(super) fn replace(
    place: Place<'_>,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
) -> Result<()> {
    let failed = |error: io::Error| place.cannot_write(error);
    // Links are followed: the file that a link points to is replaced.
    let target = fs::canonicalize(place.path).unwrap_or_else(|_| place.path.to_owned());
    let old = fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return Err(place.error(None, "cannot write: expected a regular file or none"));
    }
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let (file, mut temporary) = Temporary::create(folder).map_err(failed)?;
    let mut writer = BufWriter::with_capacity(64 << 10, file);
    write(&mut writer)?;
    let file = writer.into_inner().map_err(|error| failed(error.into_error()))?;
    if let Some(old) = old {
        // Failing to copy the permissions is not an error.
        let _ = file.set_permissions(old.permissions());
    }
    file.sync_all().map_err(failed)?;
    drop(file);
    fs::rename(&temporary.path, &target).map_err(failed)?;
    temporary.renamed = true;
    // Systems on which folders cannot be opened need no fsync of them.
    File::open(folder).map_or(Ok(()), |folder| folder.sync_all()).map_err(failed)
}

/// A temporary file, removed on drop unless it has been renamed.
struct Temporary {
    path: PathBuf,
    renamed: bool,
}

impl Temporary {
    fn create(folder: &Path) -> io::Result<(File, Temporary)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut result = Err(ErrorKind::AlreadyExists.into());
        for _ in 0..ATTEMPTS {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".swath-{}-{number}.tmp", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok((file, Temporary { path, renamed: false })),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => result = Err(error),
                Err(error) => return Err(error),
            }
        }
        result
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

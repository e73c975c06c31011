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

/// Largest number of symbolic links that are followed, as on Linux.
const MAX_LINKS: usize = 40;

/// Replaces a file atomically: if `write` fails, the disk is full or the process is killed, an
/// existing file is unchanged. On an error nothing is left behind; a killed process may leave a
/// file `.swath-*.tmp` in the same folder.
///
/// Symbolic links are followed, to a file that does not exist yet too. The new file has the permissions of the
/// old one without setuid, setgid and sticky bits, and its group and owner where the system allows it: if the
/// group cannot be kept, its permissions are those of others. While it is written, only its owner can read it. A
/// file that did not exist is created like any other. Other hard links of the old file keep the old content.
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
/// [`Error::File`](crate::Error::File). If only the last step fails, which makes the new name survive a loss of
/// power, its message says that the file was replaced.
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
    let target = follow_links(place.path).map_err(failed)?;
    let old = fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return Err(place.error(None, "cannot write: expected a regular file or none"));
    }
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let (file, mut temporary) = Temporary::create(folder, old.is_some()).map_err(failed)?;
    let mut writer = BufWriter::with_capacity(64 << 10, file);
    write(&mut writer)?;
    let file = writer.into_inner().map_err(|error| failed(error.into_error()))?;
    if let Some(old) = old {
        system::take_over(&file, &old).map_err(failed)?;
    }
    file.sync_all().map_err(failed)?;
    drop(file);
    fs::rename(&temporary.path, &target).map_err(failed)?;
    temporary.renamed = true;
    // Systems on which folders cannot be opened need no fsync of them.
    File::open(folder).map_or(Ok(()), |folder| folder.sync_all()).map_err(|error| {
        place
            .error(None, format_args!("was replaced, but may not survive a loss of power: {error}"))
    })
}

/// Returns the path that a file at `path` is written to: the end of a chain of symbolic links, which need not exist.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(link) = fs::read_link(&target) else { return Ok(target) };
        // A relative link begins in the folder that holds it.
        target = target.parent().unwrap_or(Path::new("")).join(link);
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// Owner and permissions.
#[cfg(unix)]
mod system {
    use std::fs::{File, Metadata, OpenOptions, Permissions};
    use std::io;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};

    /// Makes a file that is created readable by its owner alone.
    pub fn keep_private(options: &mut OpenOptions) {
        options.mode(0o600);
    }

    /// Gives a file owner, group and permissions of the old one as far as they can be kept.
    pub fn take_over(file: &File, old: &Metadata) -> io::Result<()> {
        let (owner, group) = (Some(old.uid()), Some(old.gid()));
        let _ = fchown(file, owner, group).or_else(|_| fchown(file, None, group));
        let mut mode = old.mode() & 0o777;
        if file.metadata()?.gid() != old.gid() {
            mode = mode & 0o707 | (mode & 0o7) << 3;
        }
        file.set_permissions(Permissions::from_mode(mode))
    }
}

/// Permissions.
#[cfg(not(unix))]
mod system {
    use std::fs::{File, Metadata, OpenOptions};
    use std::io;

    pub fn keep_private(_: &mut OpenOptions) {}

    pub fn take_over(file: &File, old: &Metadata) -> io::Result<()> {
        file.set_permissions(old.permissions())
    }
}

/// A temporary file, removed on drop unless it has been renamed.
struct Temporary {
    path: PathBuf,
    renamed: bool,
}

impl Temporary {
    fn create(folder: &Path, is_private: bool) -> io::Result<(File, Temporary)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut result = Err(ErrorKind::AlreadyExists.into());
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if is_private {
            system::keep_private(&mut options);
        }
        for _ in 0..ATTEMPTS {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".swath-{}-{number}.tmp", std::process::id()));
            match options.open(&path) {
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

//! [`Map`]: a file as memory.

use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;

use super::Place;
use crate::error::Result;

/// A file as read-only memory: a memory map, of which the system loads the parts that are read, or bytes.
pub(super) struct Map(Box<dyn AsRef<[u8]> + Send + Sync>);

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes().len())
    }
}

impl Map {
    /// Maps a regular file.
    pub fn open(place: Place<'_>) -> Result<Arc<Self>> {
        let failed = |error| place.cannot_read(error);
        // Checked before opening, which would block for a pipe.
        let metadata = fs::metadata(place.path).map_err(failed)?;
        if metadata.is_dir() {
            return Err(place.error(None, "it is a folder: open its shards with Files::open"));
        }
        if !metadata.is_file() {
            return Err(place.error(None, "expected a regular file"));
        }
        let file = fs::File::open(place.path).map_err(failed)?;
        // SAFETY: the memory is only read, as bytes of which any value is valid. That nobody changes or shortens the
        // file meanwhile is the condition under which the documentation of `File` lets it be opened; `replace_file`,
        // with which this crate writes files, makes a new one.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        Ok(Arc::new(Map(Box::new(map))))
    }

    pub fn of(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Map(Box::new(bytes)))
    }

    pub fn bytes(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// A file as read-only memory, of which the system loads the parts that are read: for formats that this crate does not
/// read. [`Tensor::from_owner_bytes`](crate::Tensor::from_owner_bytes) makes tensors in it.
///
/// Nobody may change or shorten the file meanwhile, as for [`File`](super::File).
///
/// ```
/// use swath::io::MappedFile;
/// # let path = std::env::temp_dir().join(format!("swath-mapped-{}", std::process::id()));
/// # std::fs::write(&path, [1, 2, 3]).unwrap();
/// let bytes = MappedFile::open(&path)?;
/// assert_eq!(bytes.as_ref(), [1, 2, 3]);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), swath::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MappedFile(Arc<Map>);

impl MappedFile {
    /// Maps a file.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) if it is no regular file, or cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Map::open(Place { op: "MappedFile::open", path: path.as_ref() }).map(MappedFile)
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// A range of a mapped file, which stays mapped as long.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub map: Arc<Map>,
    pub range: Range<usize>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.map.bytes()[self.range.clone()]
    }
}

//! [`Map`]: a file as memory.

use std::fs;
use std::ops::Range;
use std::sync::Arc;

use memmap2::Mmap;

use super::Place;
use crate::error::Result;

/// A file as read-only memory, of which the system loads the parts that are read.
#[derive(Debug)]
pub(super) struct Map(Mmap);

impl Map {
    /// Maps a regular file.
    pub fn open(place: Place<'_>) -> Result<Arc<Self>> {
        let failed = |error| place.cannot_read(error);
        // Checked before opening, which would block for a pipe.
        if !fs::metadata(place.path).map_err(failed)?.is_file() {
            return Err(place.error(None, "expected a regular file"));
        }
        let file = fs::File::open(place.path).map_err(failed)?;
        // SAFETY: the memory is only read, as bytes of which any value is valid. That nobody changes or shortens the
        // file meanwhile is the condition under which the documentation of `File` lets it be opened; `replace_file`,
        // with which this crate writes files, makes a new one.
        Ok(Arc::new(Map(unsafe { Mmap::map(&file) }.map_err(failed)?)))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
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

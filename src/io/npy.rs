//! Arrays in NumPy's files: [`.npy`](https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), one array,
//! and `.npz`, an archive of named ones.
//!
//! ```
//! use swath::io::{File, npy};
//! use swath::prelude::*;
//! # let folder = std::env::temp_dir();
//! let path = folder.join("swath-array.npy");
//! npy::save(&path, &tensor![[1.0, 2.0], [3.0, 4.0]])?;
//! let x: Tensor<CpuBackend> = npy::load(&path)?;
//! assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
//!
//! let path = folder.join("swath-arrays.npz");
//! npy::save_all(&path, [("x", x.clone()), ("ids", tensor![i64; 7, 8])])?;
//! let arrays = File::open(&path)?;
//! assert!(arrays.names().eq(["ids", "x"]));
//! assert_eq!(arrays.get::<CpuBackend>("ids")?.to_vec::<i64>()?, [7, 8]);
//! # Ok::<(), Error>(())
//! ```
//!
//! Arrays of either memory order and byte order are read, those of texts, dates, records and objects are not: the error
//! names the type, and the other arrays of an archive can be had. Numbers of 16 bits that NumPy has no type for (bf16) are written as NumPy's `V2`, which the package
//! `ml_dtypes` reads with `view`.

mod header;

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use std::path::Path;
use std::sync::Arc;

use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

use super::Place;
use super::atomic::replace;
use super::mmap::{Map, Part};
use super::store::{File, Listing, Metadata, most_tensors};
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use header::Header;

/// The name of the only array of a `.npy` file that is opened as a [`File`].
pub const ARRAY: &str = "array";

/// Reads the array of a `.npy` file. It stays in the file's memory where [`File::get`] says so.
///
/// # Errors
/// [`Error::File`].
pub fn load<B: Backend>(path: impl AsRef<Path>) -> Result<Tensor<B>> {
    let place = Place { op: "npy::load", path: path.as_ref() };
    open(place, Map::open(place)?)?.get(ARRAY)
}

/// Writes a tensor as a `.npy` file, which is replaced atomically.
///
/// # Errors
/// [`Error::File`].
pub fn save<B: Backend>(path: impl AsRef<Path>, x: &Tensor<B>) -> Result<()> {
    let place = Place { op: "npy::save", path: path.as_ref() };
    replace(place, |file| write(place, file, x))
}

/// Writes named tensors as a `.npz` archive, which is replaced atomically. They are not compressed, as with
/// `numpy.savez`.
///
/// # Errors
/// [`Error::File`]; [`Error::InvalidArgument`] for a repeated name.
pub fn save_all<B: Backend>(
    path: impl AsRef<Path>,
    arrays: impl IntoIterator<Item = (impl Into<String>, Tensor<B>)>,
) -> Result<()> {
    let place = Place { op: "npy::save_all", path: path.as_ref() };
    let mut sorted = BTreeMap::new();
    for (name, x) in arrays {
        let name = name.into();
        if sorted.insert(name.clone(), x).is_some() {
            let reason = format!("there are two arrays of the name `{name}`");
            return Err(Error::InvalidArgument { op: place.op, reason });
        }
    }
    replace(place, |file| {
        // The archive's directory follows its entries, so that it is written without seeking back.
        let mut archive = ZipWriter::new_stream(&mut *file);
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        for (name, x) in &sorted {
            let large = options.large_file(x.numel() * x.dtype().size() > u32::MAX as usize / 2);
            let failed = |error| place.error(Some(name), format_args!("cannot write: {error}"));
            archive.start_file(format!("{name}.npy"), large).map_err(failed)?;
            write(place, &mut archive, x)?;
        }
        let finished = archive.finish().map(drop);
        finished.map_err(|error| place.error(None, format_args!("cannot write: {error}")))
    })
}

fn write<B: Backend>(place: Place<'_>, file: &mut impl Write, x: &Tensor<B>) -> Result<()> {
    let failed = |error| place.cannot_write(error);
    file.write_all(&header::text(x.dtype(), x.shape())).map_err(failed)?;
    super::for_each_chunk(x, &mut |bytes| file.write_all(bytes).map_err(failed))
}

/// Lists the array of a mapped `.npy` file.
pub(super) fn open(place: Place<'_>, map: Arc<Map>) -> Result<File> {
    let header = Header::read(map.bytes()).map_err(|reason| place.error(None, reason))?;
    let info = header.info(0, map.bytes().len()).map_err(|reason| place.error(None, reason))?;
    let mut listing = Listing::default();
    listing.insert(ARRAY.to_owned(), Ok(info)).map_err(|problem| place.problem(problem))?;
    Ok(File::new(place.path, map, listing, |_| Metadata::new()))
}

/// Lists the arrays of a mapped `.npz` archive.
pub(super) fn open_archive(place: Place<'_>, map: Arc<Map>) -> Result<File> {
    let failed = |name: Option<&str>, error: &dyn std::fmt::Display| place.error(name, error);
    let part = Part { map: map.clone(), range: 0..map.bytes().len() };
    let mut archive = ZipArchive::new(Cursor::new(part)).map_err(|e| failed(None, &e))?;
    let mut listing = Listing::default();
    let most = most_tensors(map.bytes().len());
    if archive.len() > most {
        return Err(place.error(None, format_args!("more than {most} arrays, for such a file")));
    }
    for i in 0..archive.len() {
        let mut entry = archive.by_index(i).map_err(|error| failed(None, &error))?;
        let name = entry.name().map_err(|error| failed(None, &error))?.into_owned();
        let Some(name) = name.strip_suffix(".npy").map(str::to_owned) else { continue };
        let info = match (entry.compression(), entry.data_start()) {
            (CompressionMethod::Stored, Some(start)) => {
                let start = start as usize;
                let bytes =
                    map.bytes().get(start..).and_then(|rest| rest.get(..entry.size() as usize));
                let bytes = bytes.ok_or_else(|| "its data is beyond the file".to_owned());
                bytes.and_then(|bytes| {
                    Header::read(bytes).and_then(|header| header.info(start, start + bytes.len()))
                })
            }
            _ => {
                let mut start = Vec::new();
                let read = (&mut entry).take(header::MAX_BYTES).read_to_end(&mut start);
                read.map_err(|error| error.to_string()).and_then(|_| {
                    Header::read(&start).and_then(|header| header.compressed(i, entry.size()))
                })
            }
        };
        listing.insert(name, info).map_err(|problem| place.problem(problem))?;
    }
    let file = File::new(place.path, map, listing, |_| Metadata::new());
    Ok(file.with_archive(archive))
}

/// An archive whose list of entries has been read; clones share it.
pub(super) type Archive = ZipArchive<Cursor<Part>>;

/// The bytes of a compressed array of an archive, `skip` bytes after its beginning.
pub(super) fn inflate(
    mut archive: Archive,
    entry: usize,
    skip: usize,
    bytes: usize,
) -> std::result::Result<Vec<u8>, String> {
    let mut entry = archive.by_index(entry).map_err(|error| error.to_string())?;
    let mut read = || -> std::io::Result<Vec<u8>> {
        std::io::copy(&mut (&mut entry).take(skip as u64), &mut std::io::sink())?;
        // Grows as the archive yields bytes, whatever the header promises.
        let mut data = Vec::new();
        (&mut entry).take(bytes as u64).read_to_end(&mut data)?;
        Ok(data)
    };
    let data = read().map_err(|error| error.to_string())?;
    match data.len() == bytes {
        true => Ok(data),
        false => Err(format!("expected {bytes} bytes, the archive has {}", data.len())),
    }
}

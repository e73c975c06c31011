//! Named tensors in [safetensors](https://huggingface.co/docs/safetensors) files, a format that
//! other tools read and write too.
//!
//! ```
//! use swath::io::safetensors;
//! use swath::nn::{Linear, Module};
//! use swath::prelude::*;
//!
//! # let folder = std::env::temp_dir();
//! let path = folder.join("swath-linear.safetensors");
//! let model: Linear = Linear::new(3, 2, &mut Rng::seed(1))?;
//! safetensors::save_module(&path, &model)?;
//!
//! let mut other: Linear = Linear::new(3, 2, &mut Rng::seed(2))?;
//! safetensors::load_module(&path, &mut other)?;
//! let x = tensor![[1.0, 2.0, 3.0]];
//! assert_eq!(model.forward(&x)?.to_vec::<f32>()?, other.forward(&x)?.to_vec::<f32>()?);
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), Error>(())
//! ```
//!
//! **Saving** replaces a file atomically ([`replace_file`](super::replace_file)): an interrupted
//! save never damages the previous file. The same content gives the same bytes.
//!
//! **Loading** does not trust the file. A malformed file, or a tensor of another shape or dtype
//! than in the model, gives an [`Error::File`] that names the file and the tensor, and nothing is
//! changed. A malformed file makes the loader use at most the file's size plus 1 MiB of memory.
//! Tensors are read directly into their storage: with [`CpuBackend`](crate::CpuBackend), loading
//! takes the file's size and about half a KiB per tensor. To keep this bound, files with many
//! tensors and almost no data (beyond 17,000 tensors, and one per 48 bytes) are refused, in saving
//! too.
//!
//! [`save_sharded`] writes several files and their index. [`TrainingState`] saves the state of a training run in one file.

mod header;
mod shards;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;

use super::atomic::replace;
use super::mmap::Map;
use super::module::{Wanted, check_module, check_tied, set_values};
use super::store::{Data, File, Info, Listing, Order, most_tensors};
use super::stored::name_of;
use super::{Place, Problem, for_each_chunk};
use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::nn::Visit;
use crate::shape::Shape;
use crate::tensor::Tensor;
use header::{Description, Header, METADATA};

pub use super::module::module_tensors;
pub use super::store::Metadata;
pub use shards::save_sharded;
pub use state::TrainingState;

pub(super) use shards::open_shards;

/// Writes named tensors and metadata to a file, which is replaced atomically.
///
/// ```
/// use swath::io::safetensors::{self, Metadata};
/// use swath::prelude::*;
///
/// # let folder = std::env::temp_dir();
/// let path = folder.join("swath-pair.safetensors");
/// let metadata = Metadata::from([("unit".to_owned(), "metre".to_owned())]);
/// safetensors::save(&path, [("x", tensor![1.0, 2.0]), ("y", tensor![[3.0]])], &metadata)?;
///
/// let tensors = safetensors::load::<CpuBackend>(&path)?;
/// assert_eq!(tensors["x"].to_vec::<f32>()?, [1.0, 2.0]);
/// assert_eq!(safetensors::load_metadata(&path)?["unit"], "metre");
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::File`] if the file cannot be written; [`Error::InvalidArgument`] for a duplicate name,
/// or the name `__metadata__`. An existing file is then unchanged.
pub fn save<B: Backend>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (impl Into<String>, Tensor<B>)>,
    metadata: &Metadata,
) -> Result<()> {
    let tensors = tensors.into_iter().map(|(name, tensor)| (name.into(), tensor)).collect();
    write(Place { op: "safetensors::save", path: path.as_ref() }, tensors, metadata)
}

/// Reads all tensors of a file.
///
/// # Errors
/// [`Error::File`].
pub fn load<B: Backend>(path: impl AsRef<Path>) -> Result<BTreeMap<String, Tensor<B>>> {
    Source::open(Place { op: "safetensors::load", path: path.as_ref() })?.read()
}

/// Reads the metadata of a file.
///
/// # Errors
/// [`Error::File`].
pub fn load_metadata(path: impl AsRef<Path>) -> Result<Metadata> {
    let place = Place { op: "safetensors::load_metadata", path: path.as_ref() };
    Source::open(place)?.metadata()
}

/// Writes the parameters and buffers of a model, named by their paths.
///
/// # Errors
/// Errors of [`save`].
pub fn save_module<B: Backend>(
    path: impl AsRef<Path>,
    model: &(impl Visit<B> + ?Sized),
) -> Result<()> {
    let place = Place { op: "safetensors::save_module", path: path.as_ref() };
    write(place, module_tensors(model), &Metadata::new())
}

/// Loads the values that [`save_module`] wrote into a model. Parameters remain the same leaves, and
/// frozen ones remain frozen. Counters and seeds, such as those of [`Dropout`](crate::nn::Dropout),
/// keep their values if the file lacks them.
///
/// # Errors
/// [`Error::File`] unless the file has exactly the model's other tensors, with the same shapes and
/// dtypes; [`Error::InvalidArgument`] for a part of the model that more than one
/// [`Arc`] holds. The model is then unchanged.
pub fn load_module<B: Backend>(
    path: impl AsRef<Path>,
    model: &mut (impl Visit<B> + ?Sized),
) -> Result<()> {
    let place = Place { op: "safetensors::load_module", path: path.as_ref() };
    let source = Source::open(place)?;
    let wanted = Wanted::of(model, "")?;
    let header = &source.header;
    let checked = header.for_each(&mut |name, x| {
        let (dtype, shape) = held(name, &x)?;
        wanted.check(name, &shape, dtype)
    });
    checked.map_err(|problem| place.problem(problem))?;
    if header.count() < wanted.tensors.len() {
        let mut names = BTreeSet::new();
        let listed = header.for_each(&mut |name, _| {
            names.insert(name.to_owned());
            Ok(())
        });
        listed.map_err(|problem| place.problem(problem))?;
        let complete = wanted.check_complete(|name| names.contains(name));
        complete.map_err(|problem| place.problem(problem))?;
    }
    let values = source.read()?;
    check_tied(place, model, &values, "")?;
    set_values(model, |name| values.get(name).map(|x| x.data().clone()))
}

/// Like [`load_module`], from tensors by path.
///
/// # Errors
/// As for [`load_module`]; the file is named "tensors".
pub fn restore_module<B: Backend>(
    model: &mut (impl Visit<B> + ?Sized),
    tensors: BTreeMap<String, Tensor<B>>,
) -> Result<()> {
    let place = Place { op: "safetensors::restore_module", path: Path::new("tensors") };
    check_module(place, model, &tensors, "")?;
    check_tied(place, model, &tensors, "")?;
    set_values(model, |name| tensors.get(name).map(|x| x.data().clone()))
}

/// An open file whose header has been checked.
struct Source<'a> {
    place: Place<'a>,
    /// Positioned at the beginning of the data.
    file: BufReader<fs::File>,
    header: Header<Vec<u8>>,
}

impl<'a> Source<'a> {
    fn open(place: Place<'a>) -> Result<Self> {
        let path = place.path;
        let failed = |reason: String| place.error(None, reason);
        let io_failed = |error| place.cannot_read(error);
        // Checked before opening, which would block for a pipe.
        if !fs::metadata(path).map_err(io_failed)?.is_file() {
            return Err(failed("expected a regular file".to_owned()));
        }
        let file = fs::File::open(path).map_err(io_failed)?;
        let size = file.metadata().map_err(io_failed)?.len();
        let mut file = BufReader::with_capacity(64 << 10, file);
        let mut first = [0; 8];
        let length = match size {
            ..8 => header_length(place, None, size)?,
            _ => {
                file.read_exact(&mut first).map_err(io_failed)?;
                header_length(place, Some(first), size)?
            }
        };
        let too_large = || failed(format!("no memory for a header of {length} bytes"));
        let bytes = usize::try_from(length).map_err(|_| too_large())?;
        let mut text = Vec::new();
        text.try_reserve_exact(bytes).map_err(|_| too_large())?;
        text.resize(bytes, 0);
        file.read_exact(&mut text).map_err(io_failed)?;
        let header = Header::check(text, size - 8 - length);
        let header = header.map_err(|problem| place.problem(problem))?;
        Ok(Source { place, file, header })
    }

    fn metadata(&self) -> Result<Metadata> {
        self.header.metadata().map_err(|problem| self.place.problem(problem))
    }

    /// Reads all tensors. The entries cover the data without gaps, so nothing is skipped.
    fn read<B: Backend>(mut self) -> Result<BTreeMap<String, Tensor<B>>> {
        let place = self.place;
        let mut tensors = BTreeMap::new();
        let entries = self.header.into_entries().map_err(|problem| place.problem(problem))?;
        for (name, description) in entries {
            let contents = held(&name, &description).map_err(|problem| place.problem(problem));
            let (dtype, shape) = contents?;
            let mut fill = |bytes: &mut [u8]| {
                let read = self.file.read_exact(bytes);
                read.map_err(|error| place.error(Some(&name), format_args!("cannot read: {error}")))
            };
            let data = B::read(shape, dtype, &mut fill).map_err(|error| match error {
                error @ Error::File { .. } => error,
                error => place.error(Some(&name), error),
            })?;
            tensors.insert(name, Tensor::from_data(data));
        }
        Ok(tensors)
    }
}

/// Dtype and shape of a tensor that is loaded as it is.
fn held(name: &str, description: &Description) -> std::result::Result<(DType, Shape), Problem> {
    let (stored, shape) = match &description.contents {
        Ok(contents) => *contents,
        Err(reason) => return Err(Problem::with(name, reason.as_str())),
    };
    let Some(dtype) = stored.dtype() else {
        let reason = format!(
            "tensors have no elements of type {}: use File::get_as or File::bytes",
            stored.name()
        );
        return Err(Problem::with(name, reason));
    };
    Ok((dtype, shape))
}

/// Checks the length of the header, which the first 8 bytes of a file of `size` bytes give.
fn header_length(place: Place<'_>, first: Option<[u8; 8]>, size: u64) -> Result<u64> {
    let Some(first) = first else {
        return Err(place.error(None, format_args!("{size} bytes are no safetensors file")));
    };
    let length = u64::from_le_bytes(first);
    if length <= size - 8 && length <= header::MAX_BYTES {
        return Ok(length);
    }
    let format = other_format(&first).filter(|_| length > header::MAX_BYTES);
    let reason = match format {
        Some(format) => format!("it is no safetensors file, but {format}"),
        None if length > size - 8 => {
            format!("a header of {length} bytes does not fit in {size}: truncated?")
        }
        None => format!("a header of {length} bytes is too long"),
    };
    Err(place.error(None, reason))
}

/// Reads the list of tensors of a mapped file.
pub(super) fn open(place: Place<'_>, map: Arc<Map>) -> Result<File> {
    let failed = |problem| place.problem(problem);
    let (bytes, size) = (map.bytes(), map.bytes().len() as u64);
    let length = header_length(place, bytes.first_chunk().copied(), size)? as usize;
    let (text, start) = (&bytes[8..8 + length], 8 + length);
    let header = Header::check(text, size - start as u64).map_err(failed)?;
    let most = most_tensors(bytes.len());
    if header.count() > most {
        return Err(place.error(None, format_args!("more than {most} tensors, for such a file")));
    }
    let mut listing = Listing::default();
    for (name, Description { contents, range }) in header.into_entries().map_err(failed)? {
        let data = Data::Mapped(start + range[0] as usize..start + range[1] as usize);
        let info = contents.map(|(stored, shape)| Info {
            stored,
            shape,
            data,
            order: Order::default(),
            view: None,
        });
        listing.insert(name, info).map_err(failed)?;
    }
    let metadata = |map: &Arc<Map>| {
        // The header has been checked before.
        let length = map.bytes().first_chunk().map_or(0, |first| u64::from_le_bytes(*first));
        let text = map.bytes().get(8..).and_then(|rest| rest.get(..length as usize));
        header::metadata(text.unwrap_or_default()).unwrap_or_default()
    };
    Ok(File::new(place.path, map, listing, metadata))
}

/// The format of a file that begins with these bytes, if it is a well-known one.
fn other_format(first: &[u8; 8]) -> Option<&'static str> {
    const FORMATS: [(&[u8], &str); 8] = [
        (
            b"PK\x03\x04",
            "a zip archive, such as a PyTorch .pt or .bin file (convert it with safetensors.torch.save_file) or .npz",
        ),
        (b"GGUF", "a GGUF file"),
        (b"\x93NUMPY", "a NumPy .npy file"),
        (b"\x89HDF\r\n", "an HDF5 file, such as a Keras .h5 model"),
        (b"version ", "a Git LFS pointer: fetch the file itself with git lfs pull"),
        (b"<!", "a page of HTML: the download failed"),
        (b"<html", "a page of HTML: the download failed"),
        (
            b"{",
            "JSON without the length of a safetensors header, such as an index of shards (Files::open)",
        ),
    ];
    let pickle = "a pickle, such as an old PyTorch .pt or .bin file: convert it with safetensors.torch.save_file";
    match first {
        [0x80, 2..=5, ..] => Some(pickle),
        _ => FORMATS.iter().find(|(magic, _)| first.starts_with(magic)).map(|(_, name)| *name),
    }
}

/// Writes the largest elements first, so that each tensor is aligned for its dtype, then by name.
fn write<B: Backend>(
    place: Place<'_>,
    mut tensors: Vec<(String, Tensor<B>)>,
    metadata: &Metadata,
) -> Result<()> {
    tensors.sort_by(|(a, _), (b, _)| a.cmp(b));
    let invalid = |reason: String| Error::InvalidArgument { op: "save", reason };
    if let Some(pair) = tensors.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(invalid(format!("there are two tensors of the name `{}`", pair[0].0)));
    }
    if tensors.iter().any(|(name, _)| name == METADATA) {
        return Err(invalid(format!("`{METADATA}` cannot be the name of a tensor")));
    }
    tensors.sort_by_key(|(_, tensor)| std::cmp::Reverse(tensor.dtype().size()));
    let (header, data) = describe(&tensors, metadata);
    if header.len() as u64 > header::MAX_BYTES {
        return Err(invalid(format!("names and texts take {} bytes: too many", header.len())));
    }
    // A file that could not be loaded is not saved.
    let checked = Header::check(header.as_bytes(), data);
    checked.map_err(|problem| place.problem(problem))?;
    replace(place, |file| {
        let mut put =
            |bytes: &[u8]| file.write_all(bytes).map_err(|error| place.cannot_write(error));
        put(&(header.len() as u64).to_le_bytes())?;
        put(header.as_bytes())?;
        tensors.iter().try_for_each(|(_, tensor)| for_each_chunk(tensor, &mut put))
    })
}

/// Returns the header, padded with spaces to a multiple of 8 bytes, and the number of bytes of
/// data.
fn describe<B: Backend>(tensors: &[(String, Tensor<B>)], metadata: &Metadata) -> (String, u64) {
    use std::fmt::Write as _;
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut header = String::from("{");
    if !metadata.is_empty() {
        let texts = metadata.iter().map(|(key, text)| format!("{}:{}", quoted(key), quoted(text)));
        let texts = texts.collect::<Vec<_>>().join(",");
        let _ = write!(header, "\"{METADATA}\":{{{texts}}},");
    }
    let mut end = 0;
    for (name, tensor) in tensors {
        let begin = end;
        end += tensor.numel() * tensor.dtype().size();
        let dims: Vec<String> = tensor.dims().iter().map(usize::to_string).collect();
        let _ = write!(
            header,
            r#"{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{begin},{end}]}},"#,
            quoted(name),
            name_of(tensor.dtype()),
            dims.join(","),
        );
    }
    if header.ends_with(',') {
        header.pop();
    }
    header.push('}');
    let padding = header.len().next_multiple_of(8) - header.len();
    header.extend(std::iter::repeat_n(' ', padding));
    (header, end as u64)
}

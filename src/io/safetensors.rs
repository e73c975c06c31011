//! The safetensors format: named tensors in one file, readable from Python and everywhere else.
//!
//! ```
//! use swath::io::safetensors::{load_module, save_module};
//! use swath::nn::Linear;
//! use swath::prelude::*;
//!
//! let path = std::env::temp_dir().join("swath-doc.safetensors");
//! let model = Linear::<CpuBackend>::new(3, 2, &mut Rng::seed(1))?;
//! save_module(&path, &model)?;
//! let mut other = Linear::<CpuBackend>::new(3, 2, &mut Rng::seed(2))?;
//! load_module(&path, &mut other)?;
//! assert_eq!(other.weight.to_vec::<f32>()?, model.weight.to_vec::<f32>()?);
//! # std::fs::remove_file(path).ok();
//! # Ok::<(), Error>(())
//! ```
//!
//! - *Saving* replaces the file whole: an interrupted save leaves the last one as it was. The same
//!   tensors give the same bytes, in whatever order they come.
//! - *Loading* checks all that the file says of itself, and, into a module, every name, shape and dtype,
//!   before anything is changed. Each tensor is read straight into its memory: beside the tensors
//!   themselves, about as much is needed as the header takes.

mod header;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use safetensors::tensor::TensorInfo;

use super::atomic;
use crate::backend::Backend;
use crate::dtype::{DType, Element, HostData, for_dtype, swap_little_endian};
use crate::error::{Error, Result};
use crate::nn::{Visit, for_each_tensor, for_each_tensor_mut};
use crate::tensor::Tensor;
use header::{Entry, Header, Refused, format_dtype};

fn failed(op: &'static str, path: &Path, refused: Refused) -> Error {
    let Refused { tensor, reason } = refused;
    Error::File { op, path: path.display().to_string(), tensor, reason }
}

/// Writes tensors to a file, which it replaces whole.
///
/// # Errors
/// [`Error::File`] if a name is there twice, or the file cannot be written: the last one is as it was.
pub fn save<B: Backend>(path: impl AsRef<Path>, tensors: &[(String, Tensor<B>)]) -> Result<()> {
    let (op, path) = ("safetensors::save", path.as_ref());
    let mut sorted: Vec<&(String, Tensor<B>)> = tensors.iter().collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let refused =
            Refused { tensor: Some(pair[0].0.clone()), reason: "is there twice".to_owned() };
        return Err(failed(op, path, refused));
    }
    let header = header_of(&sorted).map_err(|error| failed(op, path, error.into()))?;
    let mut failure = None;
    let written = atomic::replace(path, |file| {
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        for (_, tensor) in &sorted {
            match B::to_host(tensor.data()) {
                Ok(values) => write_values(file, values)?,
                Err(error) => {
                    failure = Some(error);
                    return Err(io::Error::other("a tensor cannot be read"));
                }
            }
        }
        Ok(())
    });
    match failure {
        Some(error) => Err(error),
        None => written.map_err(|error| failed(op, path, error.into())),
    }
}

/// The header of tensors that follow one another in this order; its length is a multiple of 8.
fn header_of<B: Backend>(tensors: &[&(String, Tensor<B>)]) -> io::Result<String> {
    let mut text = String::from("{");
    let mut at = 0;
    for (name, tensor) in tensors {
        let bytes = tensor.numel() * tensor.dtype().size();
        let info = TensorInfo {
            dtype: format_dtype(tensor.dtype()),
            shape: tensor.dims().to_vec(),
            data_offsets: (at, at + bytes),
        };
        at += bytes;
        if text.len() > 1 {
            text.push(',');
        }
        text += &serde_json::to_string(name)?;
        text.push(':');
        text += &serde_json::to_string(&info)?;
    }
    text.push('}');
    while !text.len().is_multiple_of(8) {
        text.push(' ');
    }
    Ok(text)
}

fn write_values(file: &mut dyn Write, values: HostData) -> io::Result<()> {
    let dtype = values.dtype();
    for_dtype!(dtype, T => {
        let Some(values) = T::host_slice(&values) else { return Ok(()) };
        let mut stored = [<<T as Element>::Stored as bytemuck::Zeroable>::zeroed(); 1024];
        for values in values.chunks(stored.len()) {
            let stored = &mut stored[..values.len()];
            stored.iter_mut().zip(values).for_each(|(stored, value)| *stored = value.to_stored());
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(stored);
            swap_little_endian(dtype, bytes);
            file.write_all(bytes)?;
        }
    });
    Ok(())
}

/// Reads every tensor of a file, untracked.
///
/// # Errors
/// [`Error::File`] names the tensor at fault: of a file that cannot be read, is no safetensors file, ends
/// early, or whose tensors overlap, leave gaps, reach beyond it, are there twice, or have a shape or dtype
/// that cannot be held.
pub fn load<B: Backend>(path: impl AsRef<Path>) -> Result<BTreeMap<String, Tensor<B>>> {
    let (op, path) = ("safetensors::load", path.as_ref());
    load_checked(op, path, |_| Ok(()))
}

/// Reads a file after each of its entries has passed `check`.
fn load_checked<B: Backend>(
    op: &'static str,
    path: &Path,
    mut check: impl FnMut(&Entry<'_>) -> std::result::Result<(), Refused>,
) -> Result<BTreeMap<String, Tensor<B>>> {
    let refuse = |refused| failed(op, path, refused);
    let open = || -> io::Result<_> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok((BufReader::new(file), length))
    };
    let (mut file, length) = open().map_err(|error| refuse(error.into()))?;
    let header = Header::read(&mut file, length).map_err(refuse)?;
    for entry in header.entries() {
        entry.and_then(|entry| check(&entry)).map_err(refuse)?;
    }
    let mut tensors = BTreeMap::new();
    for entry in header.entries() {
        let entry = entry.map_err(refuse)?;
        let of_tensor = |reason: String| {
            refuse(Refused { tensor: Some(entry.name.clone().into_owned()), reason })
        };
        let data = B::read(entry.shape, entry.dtype, &mut |bytes| {
            file.read_exact(bytes).map_err(|error| of_tensor(error.to_string()))
        });
        let data = data.map_err(|error| match error {
            Error::File { .. } => error,
            other => of_tensor(other.to_string()),
        })?;
        tensors.insert(entry.name.into_owned(), Tensor::from_data(data));
    }
    Ok(tensors)
}

/// The tensors of a module by path.
pub fn module_tensors<B: Backend>(model: &(impl Visit<B> + ?Sized)) -> Vec<(String, Tensor<B>)> {
    let mut tensors = Vec::new();
    for_each_tensor(model, |path, tensor, _| tensors.push((path.to_owned(), tensor.clone())));
    tensors
}

/// Writes a module's parameters and buffers by path, as [`save`].
///
/// # Errors
/// As [`save`].
pub fn save_module<B: Backend>(
    path: impl AsRef<Path>,
    model: &(impl Visit<B> + ?Sized),
) -> Result<()> {
    save(path, &module_tensors(model))
}

/// Reads a module's parameters and buffers. Names, shapes and dtypes must be the module's, none missing
/// and none left over. Parameters stay the leaves they are.
///
/// # Errors
/// As [`load`]; [`Error::File`] names the first tensor that does not fit. The module has not changed then.
pub fn load_module<B: Backend>(
    path: impl AsRef<Path>,
    model: &mut (impl Visit<B> + ?Sized),
) -> Result<()> {
    let (op, path) = ("safetensors::load_module", path.as_ref());
    let wanted = Wanted::of(model);
    let mut found = 0;
    let tensors = load_checked(op, path, |entry| {
        found += 1;
        wanted.check(&entry.name, entry.dtype, entry.shape.dims())
    })?;
    if found < wanted.by_path.len() {
        return Err(failed(op, path, wanted.missing(|name| tensors.contains_key(name))));
    }
    replace_values(model, tensors)
}

/// Gives a module the tensors under its paths, all or, on an error, none. Others are refused.
///
/// # Errors
/// [`Error::InvalidArgument`] names the first tensor that is missing, unknown, or of another shape or
/// dtype.
pub fn restore_module<B: Backend>(
    model: &mut (impl Visit<B> + ?Sized),
    tensors: BTreeMap<String, Tensor<B>>,
) -> Result<()> {
    let op = "safetensors::restore_module";
    let wanted = Wanted::of(model);
    let invalid = |refused: Refused| {
        let name = refused.tensor.unwrap_or_default();
        Error::InvalidArgument { op, reason: format!("tensor \"{name}\": {}", refused.reason) }
    };
    for (name, tensor) in &tensors {
        wanted.check(name, tensor.dtype(), tensor.dims()).map_err(invalid)?;
    }
    if tensors.len() < wanted.by_path.len() {
        return Err(invalid(wanted.missing(|name| tensors.contains_key(name))));
    }
    replace_values(model, tensors)
}

/// What a module's tensors are.
struct Wanted {
    by_path: HashMap<String, (DType, Vec<usize>)>,
}

impl Wanted {
    fn of<B: Backend>(model: &(impl Visit<B> + ?Sized)) -> Self {
        let mut by_path = HashMap::new();
        for_each_tensor(model, |path, tensor, _| {
            by_path.insert(path.to_owned(), (tensor.dtype(), tensor.dims().to_vec()));
        });
        Wanted { by_path }
    }

    fn check(&self, name: &str, dtype: DType, dims: &[usize]) -> std::result::Result<(), Refused> {
        let reason = match self.by_path.get(name) {
            None => "the module has none of this name".to_owned(),
            Some((wanted, shape)) if *wanted != dtype || shape != dims => {
                format!("{dtype} {dims:?}, the module has {wanted} {shape:?}")
            }
            Some(_) => return Ok(()),
        };
        Err(Refused { tensor: Some(name.to_owned()), reason })
    }

    fn missing(&self, is_there: impl Fn(&str) -> bool) -> Refused {
        let missing = self.by_path.keys().filter(|name| !is_there(name)).min();
        Refused { tensor: missing.cloned(), reason: "is missing".to_owned() }
    }
}

/// The tensors have been found to fit.
fn replace_values<B: Backend>(
    model: &mut (impl Visit<B> + ?Sized),
    mut tensors: BTreeMap<String, Tensor<B>>,
) -> Result<()> {
    for_each_tensor_mut(model, |path, tensor, _| match tensors.remove(path) {
        Some(values) => tensor.change_values(|data| {
            *data = values.data().clone();
            Ok(())
        }),
        None => Ok(()),
    })
}

//! Files of tensors. Each format has a feature.
//!
//! | file | what |
//! |---|---|
//! | `safetensors.rs` | models and named tensors in safetensors files |
//! | `safetensors/header.rs` | the header of such a file, and its checks |
//! | `safetensors/state.rs` | the state of a training run in one file |
//! | `safetensors/shards.rs` | models in several files |
//! | `npy.rs` | NumPy's arrays |
//! | `idx.rs` | MNIST's arrays |
//! | `csv.rs` | tables of numbers |
//! | `image.rs` | images |
//! | `pytorch.rs` | PyTorch's files |
//! | `store.rs` | `File`, named tensors in a memory-mapped file of any format |
//! | `stored.rs` | types of elements in files |
//! | `gguf.rs` | llama.cpp's files |
//! | `load.rs` | `Load`, values of a file for a model |
//! | `module.rs` | the tensors of a model by name |
//! | `mmap.rs` | memory maps |
//! | `atomic.rs` | atomic replacement of files |

mod atomic;
#[cfg(feature = "csv")]
pub mod csv;
pub mod gguf;
#[cfg(feature = "idx")]
pub mod idx;
#[cfg(feature = "image")]
pub mod image;
mod load;
mod mmap;
mod module;
#[cfg(feature = "npy")]
pub mod npy;
#[cfg(feature = "npy")]
mod pytorch;
pub mod safetensors;
mod store;
mod stored;

use std::fmt::Display;
use std::path::Path;

use crate::backend::Backend;
use crate::dtype::{Element, for_dtype, swap_little_endian};
use crate::error::{Error, Result};
use crate::tensor::Tensor;

pub use atomic::replace_file;
pub use load::{Load, Report};
pub use mmap::MappedFile;
pub use store::{File, Files, Info, Metadata};

/// An operation on a file, for error messages.
#[derive(Clone, Copy)]
struct Place<'a> {
    op: &'static str,
    path: &'a Path,
}

impl Place<'_> {
    fn problem(self, problem: Problem) -> Error {
        self.error(problem.tensor.as_deref(), problem.reason)
    }

    fn error(self, tensor: Option<&str>, reason: impl Display) -> Error {
        let (op, path) = (self.op, self.path.display().to_string());
        Error::File { op, path, tensor: tensor.map(shortened), reason: reason.to_string() }
    }

    fn cannot_read(self, error: std::io::Error) -> Error {
        self.error(None, format_args!("cannot read: {error}"))
    }

    fn cannot_write(self, error: std::io::Error) -> Error {
        self.error(None, format_args!("cannot write: {error}"))
    }
}

/// Longest name in error messages, in characters.
const MAX_NAME: usize = 200;

/// The beginning of a name for a message: a name may be as long as the file.
fn shortened(name: &str) -> String {
    name.chars().take(MAX_NAME).collect()
}

/// An error, and the tensor it concerns.
#[derive(Debug, PartialEq)]
pub(super) struct Problem {
    pub tensor: Option<String>,
    pub reason: String,
}

impl From<String> for Problem {
    fn from(reason: String) -> Self {
        Problem { tensor: None, reason }
    }
}

impl Problem {
    pub fn with(name: &str, reason: impl Into<String>) -> Self {
        Problem { tensor: Some(shortened(name)), reason: reason.into() }
    }
}

/// Passes the elements, in row-major order and as stored in the file, to `put` in pieces.
fn for_each_chunk<B: Backend>(
    tensor: &Tensor<B>,
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let host = B::to_host(tensor.data())?;
    for_dtype!(host.dtype(), T => {
        for values in T::host_slice(&host).unwrap_or(&[]).chunks(8192) {
            let mut stored: Vec<_> = values.iter().map(|value| value.to_stored()).collect();
            let bytes = bytemuck::cast_slice_mut(&mut stored);
            swap_little_endian(host.dtype(), bytes);
            put(bytes)?;
        }
    });
    Ok(())
}

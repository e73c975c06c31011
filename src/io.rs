//! Tensors in files. With feature `safetensors`.
//!
//! | file | what |
//! |---|---|
//! | `safetensors.rs` | models, and tensors by name, in safetensors files |
//! | `safetensors/header.rs` | what such a file says of its tensors, checked |
//! | `safetensors/state.rs` | all that training goes on from, in one file |
//! | `atomic.rs` | files that are replaced as a whole or not at all |

mod atomic;
pub mod safetensors;

use std::fmt::Display;
use std::path::Path;

use crate::error::Error;

pub use atomic::replace_file;

fn file_error(path: &Path, tensor: Option<&str>, reason: impl Display) -> Error {
    let (path, tensor) = (path.to_owned(), tensor.map(str::to_owned));
    Error::File { path, tensor, reason: reason.to_string() }
}

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

/// What is being done with which file, for messages.
#[derive(Clone, Copy)]
struct Place<'a> {
    op: &'static str,
    path: &'a Path,
}

impl Place<'_> {
    fn error(self, tensor: Option<&str>, reason: impl Display) -> Error {
        let (op, path) = (self.op, self.path.display().to_string());
        Error::File { op, path, tensor: tensor.map(str::to_owned), reason: reason.to_string() }
    }

    fn cannot_read(self, error: std::io::Error) -> Error {
        self.error(None, format_args!("cannot read: {error}"))
    }

    fn cannot_write(self, error: std::io::Error) -> Error {
        self.error(None, format_args!("cannot write: {error}"))
    }
}

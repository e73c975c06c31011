//! Files of tensors. Requires the feature `safetensors`.
//!
//! | file | what |
//! |---|---|
//! | `safetensors.rs` | models and named tensors in safetensors files |
//! | `safetensors/header.rs` | the header of such a file, and its checks |
//! | `safetensors/state.rs` | the state of a training run in one file |
//! | `atomic.rs` | atomic replacement of files |

mod atomic;
pub mod safetensors;

use std::fmt::Display;
use std::path::Path;

use crate::error::Error;

pub use atomic::replace_file;

/// An operation on a file, for error messages.
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

//! Errors of this crate.

use std::fmt;
use std::path::PathBuf;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that cannot be read or written.
    #[error("{path}: {reason}", path = path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Bytes that are no model, or a model that contradicts itself.
    #[error("not a valid model: {0}")]
    Invalid(String),
    /// Operators, types and the like that this crate does not have; all that the model needs.
    #[error("the model needs what is not supported: {}", .0.join("; "))]
    Unsupported(Vec<String>),
    /// A node that cannot be computed, or that is not as its operator demands.
    #[error("in node {node}: {source}")]
    Node {
        /// Operator, name and, where they are known, the dtypes and shapes of the inputs.
        node: String,
        /// The reason.
        source: Box<Error>,
    },
    /// An input of the model that is missing, unknown, or of another dtype or shape.
    #[error("input {name:?}: {reason}")]
    Input {
        /// The name of the input.
        name: String,
        /// The reason.
        reason: String,
    },
    /// What an operator demands of its inputs and attributes.
    #[error("{0}")]
    Operator(String),
    /// An error of an operation of swath.
    #[error(transparent)]
    Swath(#[from] swath::Error),
}

impl Error {
    /// An error of an operator: what it demands.
    pub(crate) fn operator(reason: impl fmt::Display) -> Self {
        Error::Operator(reason.to_string())
    }

    /// The error of swath within, for a trait whose errors are those of swath.
    pub(crate) fn into_swath(self) -> swath::Error {
        match self {
            Error::Swath(error) => error,
            other => swath::Error::InvalidArgument { op: "onnx", reason: other.to_string() },
        }
    }
}

//! [`Error`]: the failed operation, its shapes and the reason.

mod words;

use std::fmt;

use crate::dtype::DType;
use crate::shape::{MAX_RANK, Shape};
use words::{Misfit, shape_of, tensor_of};

/// Result of a fallible operation of the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reason why an operation failed. Every variant names the operation.
///
/// Its `Debug` text is its `Display` text, so that `fn main() -> Result<()>` prints a sentence:
///
/// ```
/// use swath::prelude::*;
/// let error = tensor![[1.0, 2.0]].matmul(&tensor![3.0]).unwrap_err();
/// assert_eq!(format!("{error:?}"), "matmul: inner extents 2 and 1 differ for shapes [1, 2] and [1]");
/// ```
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operation cannot combine the two shapes.
    #[error("{op}: {}", Misfit(op, lhs, rhs))]
    ShapeMismatch {
        /// The operation.
        op: &'static str,
        /// Shape of the left (or only) operand.
        lhs: Shape,
        /// Shape of the right operand, or the shape asked for.
        rhs: Shape,
    },
    /// The extents of two shapes along one axis do not fit.
    #[error(
        "{op}: extents along axis {axis} differ: {} in {lhs}, {} in {rhs}",
        lhs.dim(usize::from(*axis)), rhs.dim(usize::from(*axis))
    )]
    ExtentMismatch {
        /// The operation.
        op: &'static str,
        /// The axis.
        axis: u8,
        /// Shape of the left (or first) operand.
        lhs: Shape,
        /// Shape of the right operand, or of the index.
        rhs: Shape,
    },
    /// The operation does not accept the shape.
    #[error("{op}: shape {shape}: {reason}")]
    InvalidShape {
        /// The operation.
        op: &'static str,
        /// The shape.
        shape: Shape,
        /// The requirement that the shape violates.
        reason: &'static str,
    },
    /// More axes than a shape supports.
    #[error("{op}: {rank} axes, at most {MAX_RANK} are supported")]
    TooManyAxes {
        /// The operation.
        op: &'static str,
        /// Number of axes asked for.
        rank: usize,
    },
    /// The number of values differs from the number of elements of the shape.
    #[error("{op}: {len} values do not fill shape {shape}")]
    LengthMismatch {
        /// The operation.
        op: &'static str,
        /// Number of values given.
        len: usize,
        /// The shape to fill.
        shape: Shape,
    },
    /// The shape does not have the axis.
    #[error("{op}: axis {axis} is out of range for shape {shape}")]
    AxisOutOfRange {
        /// The operation.
        op: &'static str,
        /// The axis as given; negative axes count from the end.
        axis: isize,
        /// The shape.
        shape: Shape,
    },
    /// An axis was given twice.
    #[error("{op}: axis {axis} appears twice for shape {shape}")]
    RepeatedAxis {
        /// The operation.
        op: &'static str,
        /// The axis.
        axis: usize,
        /// The shape.
        shape: Shape,
    },
    /// An index or range exceeds an axis.
    #[error("{op}: index {index} is out of range for axis {axis} of shape {shape}")]
    IndexOutOfRange {
        /// The operation.
        op: &'static str,
        /// The index.
        index: i64,
        /// The axis it indexes.
        axis: usize,
        /// The shape.
        shape: Shape,
    },
    /// The operands have different element types. There is no promotion; convert one with `to_dtype`.
    #[error("{op}: dtypes {lhs} (of shape {shape}) and {rhs} differ; convert one with to_dtype")]
    DTypeMismatch {
        /// The operation.
        op: &'static str,
        /// dtype of the left operand.
        lhs: DType,
        /// dtype of the right operand, or the dtype asked for.
        rhs: DType,
        /// Shape of the left (or only) operand.
        shape: Shape,
    },
    /// The operation is not defined for this element type.
    #[error("{op}: not defined for {dtype} (of shape {shape})")]
    UnsupportedDType {
        /// The operation.
        op: &'static str,
        /// The element type.
        dtype: DType,
        /// Shape of the (left) operand.
        shape: Shape,
    },
    /// An argument is invalid.
    #[error("{op}: {reason}")]
    InvalidArgument {
        /// The operation.
        op: &'static str,
        /// The requirement that the argument violates.
        reason: String,
    },
    /// The reduction is undefined for zero elements.
    #[error("{op}: no elements to reduce in shape {shape}")]
    EmptyReduction {
        /// The operation.
        op: &'static str,
        /// Shape of the operand.
        shape: Shape,
    },
    /// Integer division by zero, or the overflowing quotient `MIN / -1`.
    #[error("{op}: integer division by zero or overflow in shape {shape}")]
    IntegerDivision {
        /// The operation.
        op: &'static str,
        /// Shape of the result.
        shape: Shape,
    },
    /// The shape has more elements or bytes than the machine can address.
    #[error("{op}: shape {shape} holds more elements than this machine can address")]
    Overflow {
        /// The operation.
        op: &'static str,
        /// The shape.
        shape: Shape,
    },
    /// Memory could not be allocated.
    #[error("{op}: cannot allocate {bytes} bytes{}", shape_of(.shape))]
    OutOfMemory {
        /// The operation.
        op: &'static str,
        /// Bytes asked for.
        bytes: usize,
        /// Shape of the tensor that they are for, if it is known.
        shape: Option<Shape>,
    },
    /// The backend does not implement the operation.
    #[error("{op}: not supported by backend {backend}")]
    Unsupported {
        /// The operation.
        op: &'static str,
        /// The backend.
        backend: &'static str,
    },
    /// A device failed, or cannot be opened.
    #[error("{op}: {backend}: {reason}")]
    Device {
        /// The operation.
        op: &'static str,
        /// The backend.
        backend: &'static str,
        /// What the device reports.
        reason: String,
    },
    /// `backward` was called on a tensor that does not have exactly one element.
    #[error(
        "backward: the tensor has shape {shape}, not one element; reduce it first or give the \
         upstream gradient with backward_with"
    )]
    NotScalar {
        /// Shape of the tensor.
        shape: Shape,
    },
    /// A gradient was requested of a tensor for which none was recorded.
    #[error("{op}: no gradient: {reason}")]
    NoGradient {
        /// The operation.
        op: &'static str,
        /// The tensor, and why it has no gradient.
        reason: String,
    },
    /// The graph's saved tensors were released by an earlier backward pass.
    #[error(
        "{op}: the graph was released by an earlier backward pass; run the first one with \
         retain_graph"
    )]
    GraphReleased {
        /// The recorded operation whose saved tensors were released.
        op: &'static str,
    },
    /// The gradient of an intermediate tensor was computed but not kept.
    #[error(
        "gradients are kept for leaves only: the gradient of {name} (result of {op}) was not; call \
         retain_grad() on it before backward, or use Keep::All"
    )]
    GradientNotKept {
        /// The operation that made the tensor.
        op: &'static str,
        /// The tensor's name, or its id.
        name: String,
    },
    /// An operation made NaN or infinity from finite values, inside `detect_anomaly`.
    #[error("{op}: {what} of shape {shape} is {value} at index {index:?}, made from finite values")]
    Anomaly {
        /// The operation, or the one whose derivative it was.
        op: &'static str,
        /// The result, or the gradient of one of the inputs.
        what: String,
        /// Its shape.
        shape: Shape,
        /// Index of the first element that is not finite.
        index: Vec<usize>,
        /// The element.
        value: f64,
    },
    /// An analytic gradient differs from finite differences.
    #[error("check_gradients: {report}")]
    GradientCheck {
        /// The input, the direction and both values.
        report: String,
    },
    /// A file cannot be read or written, or has invalid content.
    #[error("{op}: {path}{}: {reason}", tensor_of(.tensor))]
    File {
        /// The operation.
        op: &'static str,
        /// The file.
        path: String,
        /// The affected tensor, if any.
        tensor: Option<String>,
        /// The cause.
        reason: String,
    },
    /// The ranks of a [`World`](crate::distributed::World) do not do the same.
    #[error("rank {rank}: {what}")]
    Mismatch {
        /// The first rank that failed, left, or differs from rank 0.
        rank: usize,
        /// What differs.
        what: String,
    },
    /// A rank did not answer within the deadline.
    #[error("{what}: rank {waiting_for} did not answer for {seconds} s")]
    Stalled {
        /// The rank.
        waiting_for: usize,
        /// The operation that it was waited for in.
        what: &'static str,
        /// How long it was waited for.
        seconds: u64,
    },
    /// More ranks than micro-batches: some would have nothing to do.
    #[error("{ranks} ranks for {micro_batches} micro-batches: expected at most one rank for each")]
    TooManyRanks {
        /// The number of ranks.
        ranks: usize,
        /// The number of micro-batches.
        micro_batches: usize,
    },
    /// The launcher of one MPI library started a program that was built with another.
    #[error(
        "the launcher started {launched} processes, but MPI says {size}: the launcher belongs to another MPI \
         library than the program; use the mpirun of the library that its mpicc belongs to"
    )]
    WrongLauncher {
        /// The number of processes, as the launcher says.
        launched: usize,
        /// Their number, as MPI says.
        size: usize,
    },
    /// Messages between ranks cannot be exchanged.
    #[error("{op}: {reason}")]
    Transport {
        /// The operation.
        op: &'static str,
        /// The cause.
        reason: String,
    },
    /// A part of a model failed: [`nn::locate`](crate::nn::locate).
    #[error("in `{path}`: {source}")]
    In {
        /// The path of the part, such as `blocks.2.linear`.
        path: String,
        /// The error of the part, never one of this variant.
        source: Box<Error>,
    },
    /// `SWATH_ISA` or another run-time setting is invalid.
    #[error("{0}")]
    Runtime(String),
}

impl Error {
    /// Replaces the operation's name by that of the method that the user called on the same operands.
    pub(crate) fn named(mut self, op: &'static str) -> Error {
        use Error::*;
        match &mut self {
            ShapeMismatch { op: name, .. }
            | ExtentMismatch { op: name, .. }
            | InvalidShape { op: name, .. }
            | TooManyAxes { op: name, .. }
            | LengthMismatch { op: name, .. }
            | AxisOutOfRange { op: name, .. }
            | RepeatedAxis { op: name, .. }
            | IndexOutOfRange { op: name, .. }
            | DTypeMismatch { op: name, .. }
            | UnsupportedDType { op: name, .. }
            | InvalidArgument { op: name, .. }
            | EmptyReduction { op: name, .. }
            | IntegerDivision { op: name, .. }
            | Overflow { op: name, .. }
            | OutOfMemory { op: name, .. }
            | Unsupported { op: name, .. }
            | Device { op: name, .. }
            | Transport { op: name, .. }
            | File { op: name, .. } => *name = op,
            // Errors of a backward pass name the recorded operation, not the one called.
            NotScalar { .. }
            | NoGradient { .. }
            | GraphReleased { .. }
            | GradientNotKept { .. }
            | GradientCheck { .. }
            | Anomaly { .. }
            | Mismatch { .. }
            | Stalled { .. }
            | TooManyRanks { .. }
            | WrongLauncher { .. }
            | In { .. }
            | Runtime(_) => {}
        }
        self
    }

    /// Names the shape of the tensor for which there was no memory, if that is the error.
    pub(crate) fn of_shape(mut self, of: &Shape) -> Error {
        if let Error::OutOfMemory { shape, .. } = &mut self {
            shape.get_or_insert(*of);
        }
        self
    }

    /// The error itself, without the path that [`Error::In`] puts in front.
    pub fn root(&self) -> &Error {
        match self {
            Error::In { source, .. } => source.root(),
            error => error,
        }
    }

    /// Names the part of a model in which the error arose: puts `name` in front of the path that the error has.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let error = tensor![[1.0, 2.0]].matmul(&tensor![3.0]).unwrap_err();
    /// let error = error.within("head").within("decoder");
    /// let text = "in `decoder.head`: matmul: inner extents 2 and 1 differ for shapes [1, 2] and [1]";
    /// assert_eq!(error.to_string(), text);
    /// ```
    #[must_use]
    pub fn within(self, name: &str) -> Error {
        match self {
            Error::In { path, source } => Error::In { path: format!("{name}.{path}"), source },
            source => Error::In { path: name.to_owned(), source: Box::new(source) },
        }
    }

    /// Attributes the error of an internal step to `op`. The step's shapes may differ from those of the
    /// operands, so `given` describes the operands.
    pub(crate) fn in_step_of(self, op: &'static str, given: impl FnOnce() -> String) -> Error {
        match self {
            Error::OutOfMemory { .. }
            | Error::Unsupported { .. }
            | Error::Device { .. }
            | Error::Runtime(_) => self.named(op),
            step => Error::InvalidArgument { op, reason: format!("{}: {step}", given()) },
        }
    }
}

/// Fails unless all of the named options are finite and at least 0.
pub(crate) fn check_options(op: &'static str, options: &[(&str, f64)]) -> Result<()> {
    for (name, value) in options {
        if !(value.is_finite() && *value >= 0.0) {
            let reason = format!("{name} must be finite and at least 0, got {value}");
            return Err(Error::InvalidArgument { op, reason });
        }
    }
    Ok(())
}

/// An empty vector with memory for `len` elements.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(crate) fn reserved<T>(op: &'static str, len: usize) -> Result<Vec<T>> {
    let mut elements = Vec::new();
    let bytes = len.saturating_mul(size_of::<T>());
    elements.try_reserve_exact(len).map_err(|_| Error::OutOfMemory { op, bytes, shape: None })?;
    Ok(elements)
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::Error;
    use crate::dtype::DType;
    use crate::shape::Shape;

    #[test]
    fn every_error_of_an_operation_takes_the_called_methods_name() {
        let (op, shape, lhs, rhs) = ("before", Shape::scalar(), DType::F32, DType::F64);
        let (reason, path) = (String::new, String::new());
        for error in [
            Error::ShapeMismatch { op, lhs: shape, rhs: shape },
            Error::ExtentMismatch { op, axis: 0, lhs: shape, rhs: shape },
            Error::InvalidShape { op, shape, reason: "" },
            Error::TooManyAxes { op, rank: 9 },
            Error::LengthMismatch { op, len: 2, shape },
            Error::AxisOutOfRange { op, axis: 1, shape },
            Error::RepeatedAxis { op, axis: 1, shape },
            Error::IndexOutOfRange { op, index: 1, axis: 0, shape },
            Error::DTypeMismatch { op, lhs, rhs, shape },
            Error::UnsupportedDType { op, dtype: lhs, shape },
            Error::InvalidArgument { op, reason: reason() },
            Error::EmptyReduction { op, shape },
            Error::IntegerDivision { op, shape },
            Error::Overflow { op, shape },
            Error::OutOfMemory { op, bytes: 1, shape: None },
            Error::Unsupported { op, backend: "cpu" },
            Error::Device { op, backend: "wgpu", reason: reason() },
            Error::Transport { op, reason: reason() },
            Error::File { op, path, tensor: None, reason: reason() },
        ] {
            let text = error.named("after").to_string();
            assert!(text.starts_with("after: "), "{text}");
        }
    }
}

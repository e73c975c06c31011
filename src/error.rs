//! [`Error`]: what went wrong, in which operation, on which shapes.

use crate::dtype::DType;
use crate::shape::{MAX_RANK, Shape};

/// What every fallible operation of the crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation could not be carried out. Every variant names the operation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two shapes that the operation cannot combine.
    #[error("{op}: shapes {lhs} and {rhs} do not fit")]
    ShapeMismatch {
        /// The operation.
        op: &'static str,
        /// Shape of the left (or only) operand.
        lhs: Shape,
        /// Shape of the right operand, or the shape asked for.
        rhs: Shape,
    },
    /// One shape that the operation cannot take.
    #[error("{op}: shape {shape}: {reason}")]
    InvalidShape {
        /// The operation.
        op: &'static str,
        /// The shape.
        shape: Shape,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// More axes than a shape can hold.
    #[error("{op}: {rank} axes, at most {MAX_RANK} are supported")]
    TooManyAxes {
        /// The operation.
        op: &'static str,
        /// Number of axes asked for.
        rank: usize,
    },
    /// The number of values given is not the number of elements of the shape.
    #[error("{op}: {len} values do not fill shape {shape}")]
    LengthMismatch {
        /// The operation.
        op: &'static str,
        /// Number of values given.
        len: usize,
        /// The shape they should fill.
        shape: Shape,
    },
    /// An axis that the shape does not have.
    #[error("{op}: axis {axis} is out of range for shape {shape}")]
    AxisOutOfRange {
        /// The operation.
        op: &'static str,
        /// The axis as it was given; negative axes count from the end.
        axis: isize,
        /// The shape.
        shape: Shape,
    },
    /// An axis named twice.
    #[error("{op}: axis {axis} appears twice for shape {shape}")]
    RepeatedAxis {
        /// The operation.
        op: &'static str,
        /// The axis.
        axis: usize,
        /// The shape.
        shape: Shape,
    },
    /// An index or range outside an axis.
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
    /// Operands of different element types: there is no promotion, convert with `to_dtype`.
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
    /// An argument outside its range.
    #[error("{op}: {reason}")]
    InvalidArgument {
        /// The operation.
        op: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A reduction that has no value on no elements.
    #[error("{op}: no elements to reduce in shape {shape}")]
    EmptyReduction {
        /// The operation.
        op: &'static str,
        /// Shape of the operand.
        shape: Shape,
    },
    /// Integer division by zero, or the one quotient that overflows (`MIN / -1`).
    #[error("{op}: integer division by zero or overflow in shape {shape}")]
    IntegerDivision {
        /// The operation.
        op: &'static str,
        /// Shape of the result.
        shape: Shape,
    },
    /// A number of elements or bytes that the machine cannot address.
    #[error("{op}: shape {shape} holds more elements than this machine can address")]
    Overflow {
        /// The operation.
        op: &'static str,
        /// The shape.
        shape: Shape,
    },
    /// The memory for a result cannot be had.
    #[error("{op}: cannot allocate {bytes} bytes")]
    OutOfMemory {
        /// The operation.
        op: &'static str,
        /// Bytes asked for.
        bytes: usize,
    },
    /// The backend lacks the operation.
    #[error("{op}: not supported by backend {backend}")]
    Unsupported {
        /// The operation.
        op: &'static str,
        /// The backend.
        backend: &'static str,
    },
    /// `backward` was called on a tensor of more (or fewer) than one element.
    #[error(
        "backward: the tensor has shape {shape}, not one element; reduce it first or give the \
         upstream gradient with backward_with"
    )]
    NotScalar {
        /// Shape of the tensor.
        shape: Shape,
    },
    /// A gradient was asked for where none was recorded.
    #[error("{op}: no gradient: {reason}")]
    NoGradient {
        /// The operation.
        op: &'static str,
        /// Which tensor, and why it has none.
        reason: String,
    },
    /// A second backward pass through a graph whose saved values were released by the first.
    #[error(
        "{op}: the graph was released by an earlier backward pass; run the first one with \
         retain_graph"
    )]
    GraphReleased {
        /// The recorded operation whose saved values are gone.
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
    /// An analytic gradient that differs from finite differences.
    #[error("check_gradients: {report}")]
    GradientCheck {
        /// Which input, which direction, both values.
        report: String,
    },
    /// A file that cannot be read or written, or does not hold what it should.
    #[error("{op}: {path}{}: {reason}", tensor_of(.tensor))]
    File {
        /// The operation.
        op: &'static str,
        /// The file.
        path: String,
        /// The tensor at fault, if there is one.
        tensor: Option<String>,
        /// What is wrong.
        reason: String,
    },
    /// `SWATH_ISA` or another setting of the run time that cannot be followed.
    #[error("{0}")]
    Runtime(String),
}

impl Error {
    /// Under the name of the method that was called, which another one does the work of on the same operands.
    pub(crate) fn named(mut self, op: &'static str) -> Error {
        use Error::*;
        match &mut self {
            ShapeMismatch { op: name, .. }
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
            | File { op: name, .. } => *name = op,
            // Those of backward passes name an operation that was recorded, not the one called.
            NotScalar { .. }
            | NoGradient { .. }
            | GraphReleased { .. }
            | GradientNotKept { .. }
            | GradientCheck { .. }
            | Runtime(_) => {}
        }
        self
    }

    /// As the error of `op`, one of whose steps it comes from: the step's shapes need not be the operands',
    /// which `given` names.
    pub(crate) fn in_step_of(self, op: &'static str, given: impl FnOnce() -> String) -> Error {
        match self {
            Error::OutOfMemory { .. } | Error::Unsupported { .. } | Error::Runtime(_) => {
                self.named(op)
            }
            step => Error::InvalidArgument { op, reason: format!("{}: {step}", given()) },
        }
    }
}

fn tensor_of(name: &Option<String>) -> String {
    name.as_ref().map_or(String::new(), |name| format!(", tensor `{name}`"))
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
            Error::OutOfMemory { op, bytes: 1 },
            Error::Unsupported { op, backend: "cpu" },
            Error::File { op, path, tensor: None, reason: reason() },
        ] {
            let text = error.named("after").to_string();
            assert!(text.starts_with("after: "), "{text}");
        }
    }
}

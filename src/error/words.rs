//! Words of errors that depend on shapes.

use std::fmt;

use crate::shape::Shape;

/// The operation and two shapes that it cannot combine, as a text with the numbers that differ, where the operation
/// says which must be equal.
pub(super) struct Misfit<'a>(pub &'a str, pub &'a Shape, pub &'a Shape);

impl fmt::Display for Misfit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Misfit(op, lhs, rhs) = self;
        match (op, lhs.dims(), rhs.dims()) {
            ("reshape", ..) => {
                write!(f, "{} elements of {lhs} do not fill {rhs} ({})", lhs.numel(), rhs.numel())
            }
            ("matmul", [.., a], [b] | [.., b, _]) if a != b => {
                write!(f, "inner extents {a} and {b} differ for shapes {lhs} and {rhs}")
            }
            ("matmul", [a @ .., _, _], [b @ .., _, _]) => {
                write!(
                    f,
                    "leading axes {a:?} and {b:?} do not broadcast for shapes {lhs} and {rhs}"
                )
            }
            ("cat" | "gather" | "scatter_add", a, b) if a.len() != b.len() => {
                let (a, b) = (a.len(), b.len());
                write!(f, "numbers of axes {a} and {b} differ for shapes {lhs} and {rhs}")
            }
            ("linear" | "linear_activation", [.., found], [_, expected]) => {
                write!(f, "{expected} inputs expected, found {found}, for shapes {lhs} and {rhs}")
            }
            (op, [expected, ..], [found])
                if op.starts_with("linear")
                    || op.starts_with("conv") && !op.contains("transpose") =>
            {
                write!(
                    f,
                    "a bias of {expected} expected, found {found}, for shapes {lhs} and {rhs}"
                )
            }
            _ => write!(f, "shapes {lhs} and {rhs} do not fit"),
        }
    }
}

/// The shape as the end of a sentence, or nothing.
pub(super) fn shape_of(shape: &Option<Shape>) -> String {
    shape.map_or(String::new(), |shape| format!(" for a tensor of shape {shape}"))
}

/// The tensor as a part of a sentence, or nothing.
pub(super) fn tensor_of(name: &Option<String>) -> String {
    name.as_ref().map_or(String::new(), |name| format!(", tensor `{name}`"))
}

//! `dot`.

use smallvec::smallvec;

use super::super::{ReferenceTensor, check_same, exact};
use super::{check_float, flat, operand, tensor};
use crate::backend::{Results, TensorData};
use crate::error::{Error, Result};
use crate::shape::Shape;

/// One exact sum of exact products.
pub(super) fn dot(operands: &[Option<&ReferenceTensor>]) -> Result<Results<ReferenceTensor>> {
    let op = "dot";
    let (a, b) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    check_float(op, a)?;
    if a.shape().ndim() != 1 {
        return Err(Error::ShapeMismatch { op, lhs: *a.shape(), rhs: *b.shape() });
    }
    check_same(op, a, b)?;
    let y = exact::dot(flat(a).into_iter().zip(flat(b)));
    Ok(smallvec![tensor(op, Shape::scalar(), a.dtype, [y])?])
}

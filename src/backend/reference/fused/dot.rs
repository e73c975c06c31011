//! `dot`.

use smallvec::smallvec;

use super::super::{ReferenceTensor, check_same, exact};
use super::{check_float, flat, operand, tensor};
use crate::backend::{Results, TensorData};
use crate::error::{Error, Result};

/// One exact sum of exact products for each row.
pub(super) fn dot(operands: &[Option<&ReferenceTensor>]) -> Result<Results<ReferenceTensor>> {
    let op = "dot";
    let (a, b) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    check_float(op, a)?;
    let Some(last) = a.shape().ndim().checked_sub(1) else {
        return Err(Error::ShapeMismatch { op, lhs: *a.shape(), rhs: *b.shape() });
    };
    check_same(op, a, b)?;
    let n = a.shape().dim(last);
    let shape = a.shape().with_axis(last, None);
    let (a_values, b_values) = (flat(a), flat(b));
    let row = |i: usize| {
        let range = i * n..(i + 1) * n;
        exact::dot(a_values[range.clone()].iter().copied().zip(b_values[range].iter().copied()))
    };
    Ok(smallvec![tensor(op, shape, a.dtype, (0..shape.numel()).map(row))?])
}

//! Tests of numbers and the choice by a mask.

use super::{ReferenceTensor, build, check_same};
use crate::backend::TensorData;
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Error, Result};
use crate::ops::NumberTest;

pub(super) fn test(op: NumberTest, x: &ReferenceTensor) -> Result<ReferenceTensor> {
    build(op.name(), *x.shape(), DType::Bool, |index| {
        Ok(Scalar::Int(i64::from(op.apply(x.at(index).to_f64()))))
    })
}

pub(super) fn where_cond(
    mask: &ReferenceTensor,
    a: &ReferenceTensor,
    b: &ReferenceTensor,
) -> Result<ReferenceTensor> {
    check_same("where_cond", a, b)?;
    if mask.shape() != a.shape() {
        let (lhs, rhs) = (*mask.shape(), *a.shape());
        return Err(Error::ShapeMismatch { op: "where_cond", lhs, rhs });
    }
    build("where_cond", *a.shape(), a.dtype, |index| {
        let chosen = if bool::from_scalar(mask.at(index)) { a } else { b };
        Ok(chosen.at(index))
    })
}

//! `sincos`, as the two functions that it is.

use smallvec::smallvec;

use super::super::ReferenceTensor;
use super::{check_float, flat, operand, tensor};
use crate::backend::{Results, TensorData};
use crate::error::Result;
use crate::ops::UnaryOp;

pub(super) fn sincos(operands: &[Option<&ReferenceTensor>]) -> Result<Results<ReferenceTensor>> {
    let op = "sincos";
    let x = operand(op, operands, 0)?;
    check_float(op, x)?;
    let of = |f: UnaryOp| {
        let values = flat(x).into_iter().map(f.reference());
        tensor(op, *x.shape(), x.dtype, values)
    };
    Ok(smallvec![of(UnaryOp::Sin)?, of(UnaryOp::Cos)?])
}

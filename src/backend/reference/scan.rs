//! Running totals: every one computed from all elements up to it.

use super::{ReferenceTensor, build, check_axis, exact};
use crate::backend::TensorData;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::ScanOp;
use crate::shape::AxisSet;

pub(super) fn scan(op: ScanOp, x: &ReferenceTensor, axis: usize) -> Result<ReferenceTensor> {
    let (name, shape, dtype) = (op.name(), *x.shape(), x.dtype);
    check_axis(name, &shape, axis)?;
    if !dtype.has_arithmetic() {
        return Err(Error::UnsupportedDType { op: name, dtype, shape });
    }
    let result = if dtype.is_float() { dtype } else { DType::I64 };
    build(name, shape, result, |index| {
        let mut place: AxisSet = index.iter().copied().collect();
        let up_to = (0..=index[axis]).map(|i| {
            place[axis] = i;
            x.at(&place)
        });
        Ok(match (op, dtype.is_float()) {
            (ScanOp::Sum, true) => Scalar::Float(exact::sum(up_to.map(|x| x.to_f64()))),
            (ScanOp::Product, true) => Scalar::Float(up_to.map(|x| x.to_f64()).product()),
            (ScanOp::Sum, false) => {
                Scalar::Int(up_to.fold(0, |total, x| total.wrapping_add(x.to_i64())))
            }
            (ScanOp::Product, false) => {
                Scalar::Int(up_to.fold(1, |total, x| total.wrapping_mul(x.to_i64())))
            }
        })
    })
}

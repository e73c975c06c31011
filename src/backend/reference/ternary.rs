//! Functions of three tensors.

use super::{ReferenceTensor, build, common, no_tensor, operand};
use crate::backend::Arg;
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::ops::TernaryOp;

pub(super) fn ternary(
    op: TernaryOp,
    operands: [Arg<'_, ReferenceTensor>; 3],
) -> Result<ReferenceTensor> {
    let name = op.name();
    let first = operands.iter().find(|x| x.tensor().is_some()).ok_or_else(|| no_tensor(name))?;
    let (mut shape, mut dtype) = common(name, first, first)?;
    for x in &operands {
        (shape, dtype) = common(name, first, x)?;
    }
    if !dtype.is_float() {
        return Err(Error::UnsupportedDType { op: name, dtype, shape });
    }
    let f = op.reference();
    build(name, shape, dtype, |index| {
        let [a, b, c] = operands.each_ref().map(|x| operand(x, index, dtype).to_f64());
        Ok(Scalar::Float(f(a, b, c)))
    })
}

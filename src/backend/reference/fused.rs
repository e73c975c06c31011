//! Definitions of the fused ops.

mod attention;
mod linear;

use super::{Backend, ReferenceBackend, ReferenceTensor};
use crate::backend::Results;
use crate::error::{Error, Result};
use crate::ops::FusedOp;

pub(super) fn fused(
    op: &FusedOp,
    operands: &[Option<&ReferenceTensor>],
) -> Result<Results<ReferenceTensor>> {
    match op {
        FusedOp::Attention(parameters) => attention::attention(parameters, operands),
        FusedOp::AttentionGrad(parameters) => attention::attention_grad(parameters, operands),
        FusedOp::Linear => linear::linear(operands),
        _ => Err(Error::Unsupported { op: op.name(), backend: ReferenceBackend::NAME }),
    }
}

/// Operand `i`, which the op cannot do without.
fn operand<'a>(
    op: &'static str,
    operands: &[Option<&'a ReferenceTensor>],
    i: usize,
) -> Result<&'a ReferenceTensor> {
    let missing = || Error::InvalidArgument { op, reason: format!("operand {i} is missing") };
    operands.get(i).copied().flatten().ok_or_else(missing)
}

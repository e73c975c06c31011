//! Fused ops: several passes over memory in one.

use super::{Backend, CpuBackend, CpuTensor, Results};
use crate::error::{Error, Result};
use crate::ops::FusedOp;

pub(super) fn fused(op: &FusedOp, _operands: &[Option<&CpuTensor>]) -> Result<Results<CpuTensor>> {
    Err(Error::Unsupported { op: op.name(), backend: CpuBackend::NAME })
}

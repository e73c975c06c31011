//! Steps of optimizers, in place.

use super::{Backend, CpuBackend, CpuTensor};
use crate::error::{Error, Result};
use crate::ops::UpdateOp;

pub(super) fn update(
    op: &UpdateOp,
    _parameter: &mut CpuTensor,
    _gradient: &CpuTensor,
    _state: &mut [CpuTensor],
) -> Result<()> {
    Err(Error::Unsupported { op: op.name(), backend: CpuBackend::NAME })
}

//! Definitions of the optimizers' steps.

use super::{Backend, ReferenceBackend, ReferenceTensor};
use crate::error::{Error, Result};
use crate::ops::UpdateOp;

pub(super) fn update(
    op: &UpdateOp,
    _parameter: &mut ReferenceTensor,
    _gradient: &ReferenceTensor,
    _state: &mut [ReferenceTensor],
) -> Result<()> {
    Err(Error::Unsupported { op: op.name(), backend: ReferenceBackend::NAME })
}

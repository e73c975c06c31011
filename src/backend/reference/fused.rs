//! Definitions of the fused ops.

use super::{Backend, ReferenceBackend, ReferenceTensor};
use crate::backend::Results;
use crate::error::{Error, Result};
use crate::ops::FusedOp;

pub(super) fn fused(
    op: &FusedOp,
    _operands: &[Option<&ReferenceTensor>],
) -> Result<Results<ReferenceTensor>> {
    Err(Error::Unsupported { op: op.name(), backend: ReferenceBackend::NAME })
}

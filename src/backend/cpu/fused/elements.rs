//! Element-wise fused ops: dropout, and sine with cosine.

use swath_kernels as kernels;

use super::super::elementwise::{self, CHUNK};
use super::super::rows::compute;
use super::super::tensor::CpuTensor;
use super::super::working::{Working, for_float};
use crate::backend::{Results, TensorData};
use crate::error::Result;
use crate::ops::DropoutMask;
use crate::runtime::parallel::Cost;

/// Cost of an element of any type; the random number generator takes most of the time.
const DROPOUT_COST: Cost = Cost(1000);

pub(super) fn dropout(x: &CpuTensor, mask: DropoutMask) -> Result<Results<CpuTensor>> {
    let DropoutMask { p, seed, stream } = mask;
    let (op, outputs) = ("dropout", [(x.shape(), CHUNK)]);
    let work = (x.numel().div_ceil(CHUNK), DROPOUT_COST.times(CHUNK));
    for_float!(op, x, T => {
        compute::<T, _, _, _>(op, work, [(x, CHUNK)], outputs, [], |chunks, [x], [y], []| {
            let first = (chunks.start * CHUNK) as u64;
            kernels::dropout(kernels::Dropout { p, seed, stream, first }, x, y);
        })
    })
}

pub(super) fn sincos(x: &CpuTensor) -> Result<Results<CpuTensor>> {
    let (op, chunks, outputs) = ("sincos", x.numel().div_ceil(CHUNK), [(x.shape(), CHUNK); 2]);
    for_float!(op, x, T => {
        let work = (chunks, elementwise::cost::<<T as Working>::Wide>(false).times(CHUNK));
        compute::<T, _, _, _>(op, work, [(x, CHUNK)], outputs, [], |_, [x], [sine, cosine], []| {
            kernels::sincos(x, sine, cosine);
        })
    })
}

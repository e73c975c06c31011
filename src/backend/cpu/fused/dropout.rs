//! Dropout: the words of the generator are made as they are needed.

use smallvec::smallvec;
use swath_kernels as kernels;

use super::super::elementwise::CHUNK;
use super::super::parallel::{Band, Cost, for_each_band};
use super::super::{CpuTensor, Output, Results, copy};
use super::operand;
use super::working::{Working, for_float};
use crate::backend::{TensorData, check_mask};
use crate::error::Result;
use crate::ops::DropoutMask;

/// Of an element, whatever its type: it is the generator's.
const COST: Cost = Cost(1000);

pub(super) fn dropout(
    operands: &[Option<&CpuTensor>],
    mask: &DropoutMask,
) -> Result<Results<CpuTensor>> {
    let x = operand("dropout", operands, 0)?;
    check_mask("dropout", mask)?;
    for_float!("dropout", x, T => elements::<T>(x, mask))
}

fn elements<T: Working>(x: &CpuTensor, mask: &DropoutMask) -> Result<Results<CpuTensor>> {
    let &DropoutMask { p, seed, stream } = mask;
    let mut out = Output::new("dropout", x.shape(), x.dtype())?;
    let x = copy::contiguous("dropout", x)?;
    let x = x.run::<T>();
    let y = Band::new(out.elements::<T>(), CHUNK);
    for_each_band(x.len().div_ceil(CHUNK), COST.times(CHUNK), y, |range, y| {
        let first = range.start * CHUNK;
        let x = &x[first..][..y.len()];
        let mut wide = [[<T::Wide as kernels::Float>::ZERO; CHUNK]; 2];
        let [x_wide, y_wide] = &mut wide;
        for (i, (x, y)) in x.chunks(CHUNK).zip(y.chunks_mut(CHUNK)).enumerate() {
            let first = (first + i * CHUNK) as u64;
            let x = T::read(x, x_wide);
            let mask = kernels::Dropout { p, seed, stream, first };
            T::write(y, y_wide, |y| kernels::dropout(mask, x, y));
        }
    });
    Ok(smallvec![out.finish()])
}

//! Sine and cosine of the same elements.

use smallvec::smallvec;
use swath_kernels as kernels;

use super::super::elementwise;
use super::super::elementwise::CHUNK;
use super::super::parallel::{Band, for_each_band};
use super::super::{CpuTensor, Output, Results, copy};
use super::operand;
use super::working::{Working, for_each_group, for_float};
use crate::backend::TensorData;
use crate::error::Result;

pub(super) fn sincos(operands: &[Option<&CpuTensor>]) -> Result<Results<CpuTensor>> {
    let x = operand("sincos", operands, 0)?;
    for_float!("sincos", x, T => elements::<T>(x))
}

fn elements<T: Working>(x: &CpuTensor) -> Result<Results<CpuTensor>> {
    let op = "sincos";
    let mut sine = Output::new(op, x.shape(), x.dtype())?;
    let mut cosine = Output::new(op, x.shape(), x.dtype())?;
    let x = copy::contiguous(op, x)?;
    let x = x.run::<T>();
    let bands = [&mut sine, &mut cosine].map(|y| Band::new(y.elements::<T>(), CHUNK));
    let cost = elementwise::cost::<T::Wide>(false).times(CHUNK);
    for_each_band(x.len().div_ceil(CHUNK), cost, bands, |range, [sine, cosine]| {
        let x = &x[range.start * CHUNK..][..sine.len()];
        for_each_group::<T, 3>(x.len(), 1, |span, [x_wide, sine_wide, cosine_wide]| {
            let (sine, cosine) = (&mut sine[span.clone()], &mut cosine[span.clone()]);
            let x = T::read(&x[span], x_wide);
            T::write(sine, sine_wide, |sine| {
                T::write(cosine, cosine_wide, |cosine| kernels::sincos(x, sine, cosine));
            });
        });
    });
    Ok(smallvec![sine.finish(), cosine.finish()])
}

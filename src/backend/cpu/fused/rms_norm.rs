//! Rms norm of rows and its two gradients.

use smallvec::smallvec;
use swath_kernels::{RmsNormGradRows, RmsNormRows, rms_norm_grad_rows, rms_norm_rows};

use super::super::parallel::{Band, Cost, for_each_band};
use super::super::{CpuTensor, Output, Results, copy};
use super::norm::{parameter, statistics_shape, sum_over_rows};
use super::working::{Working, for_each_group, for_float};
use super::{check_dtype, check_shape, columns, operand, optional};
use crate::backend::TensorData;
use crate::dtype::Element;
use crate::error::Result;

/// Of an `f32`; an `f64` takes about twice as long.
const FORWARD_COST: usize = 250;
const BACKWARD_COST: usize = 450;

pub(super) fn forward(operands: &[Option<&CpuTensor>], eps: f64) -> Result<Results<CpuTensor>> {
    let x = operand("rms_norm", operands, 0)?;
    for_float!("rms_norm", x, T => rows::<T>(operands, x, eps))
}

fn rows<T: Working>(
    operands: &[Option<&CpuTensor>],
    x: &CpuTensor,
    eps: f64,
) -> Result<Results<CpuTensor>> {
    let op = "rms_norm";
    let cols = columns(op, x)?;
    let weight = parameter::<T>(op, x, cols, optional(operands, 1))?;
    let weight = weight.as_ref().map(|weight| weight.run::<T::Wide>());
    let shape = statistics_shape(x);
    let mut y = Output::new(op, x.shape(), x.dtype())?;
    let mut reciprocal = Output::new(op, &shape, <T::Wide as Element>::DTYPE)?;
    let x = copy::contiguous(op, x)?;
    let x = x.run::<T>();
    let cost = Cost(FORWARD_COST).times(cols.max(1) * size_of::<T::Wide>() / 4);
    let statistics = Band::new(reciprocal.elements::<T::Wide>(), 1);
    let bands = (Band::new(y.elements::<T>(), cols), statistics);
    for_each_band(shape.numel(), cost, bands, |range, (y, reciprocal)| {
        let x = &x[range.start * cols..range.end * cols];
        for_each_group::<T, 2>(range.len(), cols, |group, [x_wide, y_wide]| {
            let span = group.start * cols..group.end * cols;
            let rows = RmsNormRows { x: T::read(&x[span.clone()], x_wide), weight, eps };
            let reciprocal = &mut reciprocal[group];
            T::write(&mut y[span], y_wide, |y| rms_norm_rows(rows, y, reciprocal));
        });
    });
    Ok(smallvec![y.finish(), reciprocal.finish()])
}

pub(super) fn backward(operands: &[Option<&CpuTensor>]) -> Result<Results<CpuTensor>> {
    let x = operand("rms_norm_grad", operands, 1)?;
    for_float!("rms_norm_grad", x, T => gradients::<T>(operands, x))
}

fn gradients<T: Working>(
    operands: &[Option<&CpuTensor>],
    x: &CpuTensor,
) -> Result<Results<CpuTensor>> {
    let op = "rms_norm_grad";
    let cols = columns(op, x)?;
    let g = operand(op, operands, 0)?;
    check_dtype(op, g, x.dtype())?;
    check_shape(op, g, x.shape())?;
    let weight = parameter::<T>(op, x, cols, optional(operands, 2))?;
    let weight = weight.as_ref().map(|weight| weight.run::<T::Wide>());
    let shape = statistics_shape(x);
    let reciprocal = operand(op, operands, 3)?;
    check_dtype(op, reciprocal, <T::Wide as Element>::DTYPE)?;
    check_shape(op, reciprocal, &shape)?;
    let mut dx = Output::new(op, x.shape(), x.dtype())?;
    let (g, x) = (copy::contiguous(op, g)?, copy::contiguous(op, x)?);
    let reciprocal = copy::contiguous(op, reciprocal)?;
    let (g, x, reciprocal) = (g.run::<T>(), x.run::<T>(), reciprocal.run::<T::Wide>());
    let size = [shape.numel(), cols];
    let cost = Cost(BACKWARD_COST).times(size_of::<T::Wide>() / 4);
    let out = dx.elements::<T>();
    let [dweight] = sum_over_rows(op, size, cost, out, |rows, dx, [dweight]| {
        for_each_group::<T, 3>(rows.len(), cols, |group, [g_wide, x_wide, dx_wide]| {
            let here = rows.start + group.start..rows.start + group.end;
            let span = here.start * cols..here.end * cols;
            let rows = RmsNormGradRows {
                g: T::read(&g[span.clone()], g_wide),
                x: T::read(&x[span], x_wide),
                weight,
                reciprocal_rms: &reciprocal[here],
            };
            let dx = &mut dx[group.start * cols..group.end * cols];
            T::write(dx, dx_wide, |dx| rms_norm_grad_rows(rows, dx, dweight));
        });
    })?;
    Ok(smallvec![dx.finish(), dweight])
}

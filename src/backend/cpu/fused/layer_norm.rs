//! Layer norm of rows and its three gradients.

use smallvec::smallvec;
use swath_kernels::{LayerNormGradRows, LayerNormRows, layer_norm_grad_rows, layer_norm_rows};

use super::super::parallel::{Band, Cost, for_each_band};
use super::super::{CpuTensor, Output, Results, copy};
use super::norm::{parameter, statistics_shape, sum_over_rows};
use super::working::{Working, for_each_group, for_float};
use super::{check_dtype, check_shape, columns, operand, optional};
use crate::backend::TensorData;
use crate::dtype::Element;
use crate::error::Result;

/// Of an `f32`; an `f64` takes about twice as long.
const FORWARD_COST: usize = 300;
const BACKWARD_COST: usize = 500;

pub(super) fn forward(operands: &[Option<&CpuTensor>], eps: f64) -> Result<Results<CpuTensor>> {
    let x = operand("layer_norm", operands, 0)?;
    for_float!("layer_norm", x, T => rows::<T>(operands, x, eps))
}

fn rows<T: Working>(
    operands: &[Option<&CpuTensor>],
    x: &CpuTensor,
    eps: f64,
) -> Result<Results<CpuTensor>> {
    let op = "layer_norm";
    let cols = columns(op, x)?;
    let weight = parameter::<T>(op, x, cols, optional(operands, 1))?;
    let bias = parameter::<T>(op, x, cols, optional(operands, 2))?;
    let [weight, bias] = [&weight, &bias].map(|p| p.as_ref().map(|p| p.run::<T::Wide>()));
    let shape = statistics_shape(x);
    let wide = <T::Wide as Element>::DTYPE;
    let mut y = Output::new(op, x.shape(), x.dtype())?;
    let (mut mean, mut deviation) =
        (Output::new(op, &shape, wide)?, Output::new(op, &shape, wide)?);
    let x = copy::contiguous(op, x)?;
    let x = x.run::<T>();
    let cost = Cost(FORWARD_COST).times(cols.max(1) * size_of::<T::Wide>() / 4);
    let statistics = [&mut mean, &mut deviation].map(|s| Band::new(s.elements::<T::Wide>(), 1));
    let bands = (Band::new(y.elements::<T>(), cols), statistics);
    for_each_band(shape.numel(), cost, bands, |range, (y, [mean, deviation])| {
        let x = &x[range.start * cols..range.end * cols];
        for_each_group::<T, 2>(range.len(), cols, |group, [x_wide, y_wide]| {
            let span = group.start * cols..group.end * cols;
            let x = T::read(&x[span.clone()], x_wide);
            let rows = LayerNormRows { x, weight, bias, eps };
            let (mean, deviation) = (&mut mean[group.clone()], &mut deviation[group]);
            T::write(&mut y[span], y_wide, |y| layer_norm_rows(rows, y, mean, deviation));
        });
    });
    Ok(smallvec![y.finish(), mean.finish(), deviation.finish()])
}

pub(super) fn backward(operands: &[Option<&CpuTensor>]) -> Result<Results<CpuTensor>> {
    let x = operand("layer_norm_grad", operands, 1)?;
    for_float!("layer_norm_grad", x, T => gradients::<T>(operands, x))
}

fn gradients<T: Working>(
    operands: &[Option<&CpuTensor>],
    x: &CpuTensor,
) -> Result<Results<CpuTensor>> {
    let op = "layer_norm_grad";
    let cols = columns(op, x)?;
    let g = operand(op, operands, 0)?;
    check_dtype(op, g, x.dtype())?;
    check_shape(op, g, x.shape())?;
    let weight = parameter::<T>(op, x, cols, optional(operands, 2))?;
    let weight = weight.as_ref().map(|weight| weight.run::<T::Wide>());
    let shape = statistics_shape(x);
    let deviation = operand(op, operands, 3)?;
    check_dtype(op, deviation, <T::Wide as Element>::DTYPE)?;
    check_shape(op, deviation, &shape)?;
    let mut dx = Output::new(op, x.shape(), x.dtype())?;
    let (g, x) = (copy::contiguous(op, g)?, copy::contiguous(op, x)?);
    let deviation = copy::contiguous(op, deviation)?;
    let (g, x, deviation) = (g.run::<T>(), x.run::<T>(), deviation.run::<T::Wide>());

    let size = [shape.numel(), cols];
    let cost = Cost(BACKWARD_COST).times(size_of::<T::Wide>() / 4);
    let out = dx.elements::<T>();
    let parameters = sum_over_rows(op, size, cost, out, |rows, dx, [dweight, dbias]| {
        for_each_group::<T, 3>(rows.len(), cols, |group, [g_wide, x_wide, dx_wide]| {
            let here = rows.start + group.start..rows.start + group.end;
            let span = here.start * cols..here.end * cols;
            let rows = LayerNormGradRows {
                g: T::read(&g[span.clone()], g_wide),
                x: T::read(&x[span], x_wide),
                weight,
                reciprocal_deviation: &deviation[here],
            };
            let dx = &mut dx[group.start * cols..group.end * cols];
            T::write(dx, dx_wide, |dx| layer_norm_grad_rows(rows, dx, dweight, dbias));
        });
    })?;
    let [dweight, dbias] = parameters;
    Ok(smallvec![dx.finish(), dweight, dbias])
}

//! Cross-entropy of rows of logits, and its gradient.

use smallvec::smallvec;
use swath_kernels::{CrossEntropyRows, cross_entropy_grad_rows, cross_entropy_rows};

use super::super::parallel::{Band, Cost, for_each_band};
use super::super::{CpuTensor, Output, Results, copy};
use super::working::{Working, for_each_group, for_float};
use super::{check_dtype, check_shape, operand};
use crate::backend::TensorData;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Of an `f32` logit; an `f64` takes about twice as long.
const FORWARD_COST: usize = 360;
const BACKWARD_COST: usize = 250;

/// Logits and targets, row-major and checked.
struct Rows {
    logits: CpuTensor,
    targets: CpuTensor,
    cols: usize,
    ignore_index: Option<i64>,
    label_smoothing: f64,
}

impl Rows {
    fn new(
        op: &'static str,
        logits: &CpuTensor,
        targets: &CpuTensor,
        ignore_index: Option<i64>,
        label_smoothing: f64,
    ) -> Result<Self> {
        check_dtype(op, targets, DType::I64)?;
        if logits.shape().ndim() != 2 || targets.shape().dims() != &logits.shape().dims()[..1] {
            let (lhs, rhs) = (*logits.shape(), *targets.shape());
            return Err(Error::ShapeMismatch { op, lhs, rhs });
        }
        let cols = logits.shape().dim(1);
        let targets = copy::contiguous(op, targets)?;
        let is_class = |&target: &i64| {
            ignore_index == Some(target) || usize::try_from(target).is_ok_and(|t| t < cols)
        };
        if let Some(&index) = targets.run::<i64>().iter().find(|target| !is_class(target)) {
            let shape = *logits.shape();
            return Err(Error::IndexOutOfRange { op, index, axis: 1, shape });
        }
        let logits = copy::contiguous(op, logits)?;
        Ok(Rows { logits, targets, cols, ignore_index, label_smoothing })
    }

    /// The kernel's view of some rows.
    fn kernel<'a, T: Working>(
        &'a self,
        logits: &'a [T::Wide],
        rows: std::ops::Range<usize>,
    ) -> CrossEntropyRows<'a, T::Wide> {
        CrossEntropyRows {
            logits,
            targets: &self.targets.run::<i64>()[rows],
            ignore_index: self.ignore_index,
            label_smoothing: self.label_smoothing,
        }
    }
}

pub(super) fn forward(
    operands: &[Option<&CpuTensor>],
    ignore_index: Option<i64>,
    label_smoothing: f64,
) -> Result<Results<CpuTensor>> {
    let op = "cross_entropy";
    let (logits, targets) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    let rows = Rows::new(op, logits, targets, ignore_index, label_smoothing)?;
    for_float!(op, logits, T => losses::<T>(op, &rows))
}

fn losses<T: Working>(op: &'static str, rows: &Rows) -> Result<Results<CpuTensor>> {
    let (count, cols) = (rows.targets.numel(), rows.cols);
    let mut losses = Output::new(op, rows.targets.shape(), T::DTYPE)?;
    let statistic = || Output::new(op, rows.targets.shape(), <T::Wide as Element>::DTYPE);
    let (mut largest, mut rest) = (statistic()?, statistic()?);
    let statistics = [&mut largest, &mut rest].map(|s| Band::new(s.elements::<T::Wide>(), 1));
    let bands = (Band::new(losses.elements::<T>(), 1), statistics);
    let cost = Cost(FORWARD_COST).times(cols * size_of::<T::Wide>() / 4);
    let x = rows.logits.run::<T>();
    for_each_band(count, cost, bands, |range, (losses, [largest, rest])| {
        for_each_group::<T, 2>(range.len(), cols.max(1), |group, [x_wide, losses_wide]| {
            let here = range.start + group.start..range.start + group.end;
            let x = T::read(&x[here.start * cols..here.end * cols], x_wide);
            let kernel = rows.kernel::<T>(x, here);
            let (largest, rest) = (&mut largest[group.clone()], &mut rest[group.clone()]);
            T::write(&mut losses[group], losses_wide, |losses| {
                cross_entropy_rows(kernel, losses, largest, rest);
            });
        });
    });
    Ok(smallvec![losses.finish(), largest.finish(), rest.finish()])
}

pub(super) fn backward(
    operands: &[Option<&CpuTensor>],
    ignore_index: Option<i64>,
    label_smoothing: f64,
) -> Result<Results<CpuTensor>> {
    let op = "cross_entropy_grad";
    let (g, logits) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    let targets = operand(op, operands, 2)?;
    let saved = [operand(op, operands, 3)?, operand(op, operands, 4)?];
    let rows = Rows::new(op, logits, targets, ignore_index, label_smoothing)?;
    let shape: &Shape = targets.shape();
    check_dtype(op, g, logits.dtype())?;
    check_shape(op, g, shape)?;
    saved.into_iter().try_for_each(|x| check_shape(op, x, shape))?;
    for_float!(op, logits, T => gradient::<T>(op, &rows, g, saved))
}

fn gradient<T: Working>(
    op: &'static str,
    rows: &Rows,
    g: &CpuTensor,
    saved: [&CpuTensor; 2],
) -> Result<Results<CpuTensor>> {
    saved.into_iter().try_for_each(|x| check_dtype(op, x, <T::Wide as Element>::DTYPE))?;
    let (count, cols) = (rows.targets.numel(), rows.cols);
    let mut dx = Output::new(op, rows.logits.shape(), T::DTYPE)?;
    let g = copy::contiguous(op, g)?;
    let saved = [copy::contiguous(op, saved[0])?, copy::contiguous(op, saved[1])?];
    let (x, g, saved) =
        (rows.logits.run::<T>(), g.run::<T>(), saved.each_ref().map(|x| x.run::<T::Wide>()));
    let cost = Cost(BACKWARD_COST).times(cols * size_of::<T::Wide>() / 4);
    for_each_band(count, cost, Band::new(dx.elements::<T>(), cols), |range, dx| {
        for_each_group::<T, 3>(range.len(), cols.max(1), |group, [x_wide, g_wide, dx_wide]| {
            let here = range.start + group.start..range.start + group.end;
            let x = T::read(&x[here.start * cols..here.end * cols], x_wide);
            let g = T::read(&g[here.clone()], g_wide);
            let [largest, rest] = saved.map(|x| &x[here.clone()]);
            let kernel = rows.kernel::<T>(x, here);
            let dx = &mut dx[group.start * cols..group.end * cols];
            T::write(dx, dx_wide, |dx| cross_entropy_grad_rows(kernel, g, largest, rest, dx));
        });
    });
    Ok(smallvec![dx.finish()])
}

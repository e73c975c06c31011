//! Cross-entropy of rows or columns of logits, and its gradient.

use std::ops::Range;

use swath_kernels::{
    CrossEntropyColumns, CrossEntropyRows, cross_entropy_columns, cross_entropy_grad_columns,
    cross_entropy_grad_rows, cross_entropy_rows,
};

use super::super::copy;
use super::super::rows::compute;
use super::super::strips::{self, Planes};
use super::super::tensor::CpuTensor;
use super::super::working::for_float;
use super::{columns, cost_of, work};
use crate::backend::{Results, TensorData};
use crate::error::{Error, Result};

/// Picoseconds per `f32` logit.
const FORWARD_COST: usize = 360;
const BACKWARD_COST: usize = 250;

/// Logits with checked, contiguous targets.
pub(super) struct Logits<'a> {
    op: &'static str,
    logits: &'a CpuTensor,
    targets: CpuTensor,
    ignore_index: Option<i64>,
    label_smoothing: f64,
}

impl<'a> Logits<'a> {
    /// # Errors
    /// [`Error::IndexOutOfRange`] for a target that is neither a class nor ignored.
    pub fn new(
        op: &'static str,
        logits: &'a CpuTensor,
        targets: &CpuTensor,
        ignore_index: Option<i64>,
        label_smoothing: f64,
    ) -> Result<Self> {
        let (targets, classes) = (copy::contiguous(op, targets)?, columns(logits));
        let is_class = |&target: &i64| {
            ignore_index == Some(target) || usize::try_from(target).is_ok_and(|t| t < classes)
        };
        if let Some(&index) = targets.run::<i64>().iter().find(|target| !is_class(target)) {
            let shape = *logits.shape();
            return Err(Error::IndexOutOfRange { op, index, axis: shape.ndim() - 1, shape });
        }
        Ok(Logits { op, logits, targets, ignore_index, label_smoothing })
    }

    /// Arguments of the kernels for a range of rows.
    fn rows<'r, E>(&'r self, logits: &'r [E], rows: Range<usize>) -> CrossEntropyRows<'r, E> {
        let Logits { ignore_index, label_smoothing, .. } = *self;
        let targets = &self.targets.run::<i64>()[rows];
        CrossEntropyRows { logits, targets, ignore_index, label_smoothing }
    }

    /// Arguments of the kernels for a range of columns.
    fn columns<'r, E>(
        &'r self,
        (logits, stride): strips::Columns<'r, E>,
        range: Range<usize>,
    ) -> CrossEntropyColumns<'r, E> {
        let Logits { ignore_index, label_smoothing, .. } = *self;
        let (classes, targets) = (columns(self.logits), &self.targets.run::<i64>()[range]);
        CrossEntropyColumns { logits, stride, classes, targets, ignore_index, label_smoothing }
    }
}

pub(super) fn forward(rows: &Logits<'_>) -> Result<Results<CpuTensor>> {
    let Logits { op, logits, ref targets, .. } = *rows;
    let (cols, shape) = (columns(logits), targets.shape());
    let outputs = [(shape, 1)];
    if let Some(planes) = Planes::of(logits) {
        let x = planes.in_memory(op, logits)?;
        return for_float!(op, x, T => {
            let work = (&planes, cost_of::<T>(cols, FORWARD_COST));
            let inputs = [(&x, cols)];
            strips::compute::<T, _, _, _>(
                op,
                work,
                inputs,
                outputs,
                [shape; 2],
                |range, [x], [mut y], [m, rest]| {
                    cross_entropy_columns(rows.columns(x, range), y.row_mut(0), m, rest);
                },
            )
        });
    }
    let inputs = [(logits, cols)];
    for_float!(op, logits, T => {
        let work = work::<T>(logits, FORWARD_COST);
        compute::<T, _, _, _>(op, work, inputs, outputs, [shape; 2], |range, [x], [y], [m, rest]| {
            cross_entropy_rows(rows.rows(x, range), y, m, rest);
        })
    })
}

pub(super) fn backward(
    rows: &Logits<'_>,
    g: &CpuTensor,
    [largest, rest]: [&CpuTensor; 2],
) -> Result<Results<CpuTensor>> {
    let Logits { op, logits, .. } = *rows;
    let cols = columns(logits);
    let (largest, rest) = (copy::contiguous(op, largest)?, copy::contiguous(op, rest)?);
    if let Some(planes) = Planes::of(logits) {
        let x = planes.in_memory(op, logits)?;
        let (inputs, outputs) = ([(&x, cols), (g, 1)], [(x.shape(), cols)]);
        let mut results = for_float!(op, x, T => {
            let work = (&planes, cost_of::<T>(cols, BACKWARD_COST));
            strips::compute::<T, _, _, _>(op, work, inputs, outputs, [], |range, [x, g], [dx], []| {
                let [largest, rest] = [&largest, &rest].map(|x| &x.run()[range.clone()]);
                let g = &g.0[..range.len()];
                cross_entropy_grad_columns(rows.columns(x, range), g, largest, rest, dx);
            })
        })?;
        results[0] = planes.logical(op, &results[0])?;
        return Ok(results);
    }
    let (inputs, outputs) = ([(logits, cols), (g, 1)], [(logits.shape(), cols)]);
    for_float!(op, logits, T => {
        let work = work::<T>(logits, BACKWARD_COST);
        compute::<T, _, _, _>(op, work, inputs, outputs, [], |range, [x, g], [dx], []| {
            let [largest, rest] = [&largest, &rest].map(|x| &x.run()[range.clone()]);
            cross_entropy_grad_rows(rows.rows(x, range), g, largest, rest, dx);
        })
    })
}

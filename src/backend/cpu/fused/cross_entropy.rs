//! Cross-entropy of rows of logits, and its gradient.

use std::ops::Range;

use swath_kernels::{CrossEntropyRows, cross_entropy_grad_rows, cross_entropy_rows};

use super::super::rows::compute;
use super::super::working::for_float;
use super::super::{CpuTensor, Results, copy};
use super::{columns, work};
use crate::backend::TensorData;
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
            return Err(Error::IndexOutOfRange { op, index, axis: 1, shape });
        }
        Ok(Logits { op, logits, targets, ignore_index, label_smoothing })
    }

    /// Arguments of the kernels for a range of rows.
    fn kernel<'r, E>(&'r self, logits: &'r [E], rows: Range<usize>) -> CrossEntropyRows<'r, E> {
        let Logits { ignore_index, label_smoothing, .. } = *self;
        let targets = &self.targets.run::<i64>()[rows];
        CrossEntropyRows { logits, targets, ignore_index, label_smoothing }
    }
}

pub(super) fn forward(rows: &Logits<'_>) -> Result<Results<CpuTensor>> {
    let Logits { op, logits, ref targets, .. } = *rows;
    let (inputs, shape) = ([(logits, columns(logits))], targets.shape());
    for_float!(op, logits, T => {
        let work = work::<T>(logits, FORWARD_COST);
        let outputs = [(shape, 1)];
        compute::<T, _, _, _>(op, work, inputs, outputs, [shape; 2], |range, [x], [y], [m, rest]| {
            cross_entropy_rows(rows.kernel(x, range), y, m, rest);
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
    let (inputs, outputs) = ([(logits, cols), (g, 1)], [(logits.shape(), cols)]);
    let (largest, rest) = (copy::contiguous(op, largest)?, copy::contiguous(op, rest)?);
    for_float!(op, logits, T => {
        let work = work::<T>(logits, BACKWARD_COST);
        compute::<T, _, _, _>(op, work, inputs, outputs, [], |range, [x, g], [dx], []| {
            let [largest, rest] = [&largest, &rest].map(|x| &x.run()[range.clone()]);
            cross_entropy_grad_rows(rows.kernel(x, range), g, largest, rest, dx);
        })
    })
}

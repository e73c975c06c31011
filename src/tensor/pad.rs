//! `pad`.

use std::ops::Range;

use crate::autodiff::graph::record;
use crate::autodiff::ops::view::pad_rule;
use crate::backend::Backend;
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::layout::AxisPart;

use super::base::Tensor;

/// Elements that [`Tensor::pad`] adds. The examples are those of `1 2 3`, with two more at each end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PadMode {
    /// This number, converted to the dtype as by [`to_dtype`](Tensor::to_dtype): `0 0 1 2 3 0 0`.
    Constant(f64),
    /// The elements mirrored at the outermost one, which is not repeated: `3 2 1 2 3 2 1`.
    Reflect,
    /// The outermost element, repeated: `1 1 1 2 3 3 3`.
    Replicate,
    /// The elements at the other end: `2 3 1 2 3 1 2`.
    Circular,
}

impl PadMode {
    /// The parts of an axis of which the elements of `kept` stay, with so many before and after them.
    fn parts(self, kept: Range<usize>, [before, after]: [usize; 2]) -> Vec<AxisPart> {
        let (first, end) = (kept.start, kept.end);
        let part = |len, is_before: bool| {
            let from = |start, step| AxisPart::From { start, len, step };
            match self {
                _ if len == 0 => AxisPart::Fill(0),
                PadMode::Constant(_) => AxisPart::Fill(len),
                PadMode::Replicate => from(if is_before { first } else { end - 1 }, 0),
                PadMode::Circular => from(if is_before { end - len } else { first }, 1),
                PadMode::Reflect => from(if is_before { first + len } else { end - 2 }, -1),
            }
        };
        let middle = AxisPart::From { start: first, len: end - first, step: 1 };
        vec![part(before, true), middle, part(after, false)]
    }
}

/// # Padding
impl<B: Backend> Tensor<B> {
    /// Adds elements before and after axes: one pair of numbers for each of the last axes, in the order of
    /// the axes. A negative number removes so many elements. All are removed before any are added, so that an
    /// axis repeats only what it keeps; PyTorch may repeat elements that it then removes. Any dtype.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0, 3.0]];
    /// assert_eq!(x.pad(&[(1, 2)], PadMode::Reflect)?.to_vec::<f32>()?, [2.0, 1.0, 2.0, 3.0, 2.0, 1.0]);
    /// let y = x.pad(&[(0, 1), (-1, 1)], PadMode::Constant(9.0))?;
    /// assert_eq!(y.dims(), [2, 3]);
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 3.0, 9.0, 9.0, 9.0, 9.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for more pairs than axes, if more elements are removed than there are, or
    /// if an axis has too few: fewer than are added to an end for [`PadMode::Circular`], not more for
    /// [`PadMode::Reflect`], none for [`PadMode::Replicate`]. [`Error::Overflow`] if the result is too large.
    pub fn pad(&self, pads: &[(isize, isize)], mode: PadMode) -> Result<Self> {
        B::engine_pad(self, pads, mode)
    }

    pub(crate) fn pad_body(x: &Tensor<B>, pads: &[(isize, isize)], mode: PadMode) -> Result<Self> {
        let op = "pad";
        let invalid = |reason| Error::InvalidArgument { op, reason };
        let first = x.rank().checked_sub(pads.len()).ok_or_else(|| {
            invalid(format!("{} pairs for the axes of shape {}", pads.len(), x.shape()))
        })?;
        let mut axes = vec![Vec::new(); x.rank()];
        for (axis, &(before, after)) in (first..).zip(pads) {
            let [start, end] = [before, after].map(|count| count.min(0).unsigned_abs());
            let [before, after] = [before, after].map(|count| count.max(0).unsigned_abs());
            let most = before.max(after);
            let least = match mode {
                _ if most == 0 => 0,
                PadMode::Constant(_) => 0,
                PadMode::Reflect => most + 1,
                PadMode::Replicate => 1,
                PadMode::Circular => most,
            };
            let len = x.dims()[axis].checked_sub(start).and_then(|len| len.checked_sub(end));
            let len = len.filter(|&len| len >= least).ok_or_else(|| {
                invalid(format!(
                    "{mode:?} by {} and {} along axis {axis} of shape {} needs at least {least} \
                     elements after the removal of {start} and {end}",
                    pads[axis - first].0,
                    pads[axis - first].1,
                    x.shape()
                ))
            })?;
            if (before, after, len) != (0, 0, x.dims()[axis]) {
                axes[axis] = mode.parts(start..start + len, [before, after]);
            }
        }
        x.padded(axes, mode)
    }

    /// Adds so many elements before and after an axis, which has those that the mode repeats.
    pub(super) fn extended(
        &self,
        axis: usize,
        [before, after]: [usize; 2],
        mode: PadMode,
    ) -> Result<Self> {
        let mut axes = vec![Vec::new(); self.rank()];
        if (before, after) != (0, 0) {
            axes[axis] = mode.parts(0..self.dims()[axis], [before, after]);
        }
        self.padded(axes, mode)
    }

    fn padded(&self, axes: Vec<Vec<AxisPart>>, mode: PadMode) -> Result<Self> {
        let op = "pad";
        if axes.iter().all(Vec::is_empty) {
            return Ok(self.clone());
        }
        let fill = match mode {
            PadMode::Constant(value) => value,
            _ => 0.0,
        };
        let data = B::assemble(self.data(), &axes, Scalar::Float(fill)).map_err(|e| e.named(op))?;
        Ok(record(op, data, &[self], |_| pad_rule(*self.shape(), axes)))
    }
}

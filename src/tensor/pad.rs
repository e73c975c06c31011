//! `pad`.

use crate::backend::Backend;
use crate::dtype::Scalar;
use crate::error::{Error, Result};

use super::Tensor;

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
        let mut y = x.clone();
        for (axis, &(before, after)) in (first..).zip(pads) {
            let [start, end] = [before, after].map(|count| count.min(0).unsigned_abs());
            let most = before.max(after).max(0).unsigned_abs();
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
                    "{mode:?} by {before} and {after} along axis {axis} of shape {} needs at least {least} \
                     elements after the removal of {start} and {end}",
                    x.shape()
                ))
            })?;
            y = y.narrow(axis, start, len)?;
        }
        for (axis, &(before, after)) in (first..).zip(pads) {
            y = y.extended(axis, [before, after].map(|count| count.max(0).unsigned_abs()), mode)?;
        }
        Ok(y)
    }

    /// Adds so many elements before and after an axis, which has those that the mode repeats.
    pub(super) fn extended(
        &self,
        axis: usize,
        [before, after]: [usize; 2],
        mode: PadMode,
    ) -> Result<Self> {
        let op = "pad";
        if before == 0 && after == 0 {
            return Ok(self.clone());
        }
        let extent = self.dims()[axis];
        let part = |count: usize, is_before: bool| {
            let shape = self.shape().with_axis(axis, Some(count));
            let from = |first, last| if is_before { first } else { last };
            match mode {
                PadMode::Constant(value) => {
                    let value = Scalar::Float(value);
                    Tensor::full_scalar(op, ().into(), value, self.dtype())?.broadcast_to(shape)
                }
                PadMode::Replicate => {
                    self.narrow(axis, from(0, extent - 1), 1)?.broadcast_to(shape)
                }
                PadMode::Circular => self.narrow(axis, from(extent - count, 0), count),
                PadMode::Reflect => {
                    self.narrow(axis, from(1, extent - 1 - count), count)?.flip(axis)
                }
            }
        };
        let parts = || Tensor::cat(&[&part(before, true)?, self, &part(after, false)?], axis);
        parts().map_err(|error| error.named(op))
    }
}

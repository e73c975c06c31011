//! Arrays, matrices and tensors of other libraries, in and out, each behind a feature of its name: `ndarray`,
//! `nalgebra`, `faer`, `serde` and `dlpack`. `docs/INTEROP.md` says for each what is copied.
//!
//! The methods are those of [`Tensor`](crate::Tensor) and [`View`].

#[cfg(feature = "dlpack")]
pub mod dlpack;
#[cfg(feature = "faer")]
mod faer;
#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(feature = "serde")]
mod serde;

use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::tensor::View;

/// The elements from the first in memory on, and their layout after axes with negative strides are reversed.
#[allow(dead_code, reason = "libraries without negative strides, each behind its feature")]
fn ascending<'a, E: Copy>(view: &View<'a, E>) -> (&'a [E], Layout) {
    let mut layout = *view.layout();
    if layout.numel() == 0 {
        return (&[], Layout::contiguous(*layout.shape()));
    }
    for axis in 0..layout.dims().len() {
        if layout.strides()[axis] < 0 {
            layout = layout.flip(axis);
        }
    }
    (&view.storage()[layout.offset()..], layout)
}

/// Rows and columns of a tensor with two axes.
#[allow(dead_code, reason = "libraries of matrices, each behind its feature")]
fn matrix(op: &'static str, layout: &Layout) -> Result<[usize; 2]> {
    let shape = *layout.shape();
    let reason = "a matrix has two axes";
    layout.dims().try_into().map_err(|_| Error::InvalidShape { op, shape, reason })
}

//! Iteration over the positions of a loop nest.

use crate::layout::{LoopNest, position_of};
use crate::shape::MAX_RANK;

/// Positions of a loop nest in row-major order.
pub(super) struct Odometer<'a> {
    dims: &'a [usize],
    strides: &'a [isize],
    index: [usize; MAX_RANK],
    pub position: usize,
}

impl<'a> Odometer<'a> {
    /// Starts at element `flat` in row-major order.
    pub fn new(nest: &'a LoopNest, mut flat: usize, offset: usize) -> Self {
        let (dims, strides) = (nest.dims(), nest.strides(0));
        let position = position_of(dims, strides, flat, offset);
        let mut index = [0; MAX_RANK];
        for (index, &dim) in index.iter_mut().zip(dims).rev() {
            *index = flat % dim;
            flat /= dim;
        }
        Odometer { dims, strides, index, position }
    }

    /// Iterates over all loops but the innermost.
    pub fn outer(nest: &'a LoopNest, offset: usize) -> Self {
        let outer = nest.dims().len().saturating_sub(1);
        let (dims, strides) = (&nest.dims()[..outer], &nest.strides(0)[..outer]);
        Odometer { dims, strides, index: [0; MAX_RANK], position: offset }
    }

    /// Advances to the next element.
    pub fn step(&mut self) {
        for axis in (0..self.dims.len()).rev() {
            let (dim, stride) = (self.dims[axis], self.strides[axis]);
            self.index[axis] += 1;
            if self.index[axis] < dim {
                self.position = self.position.wrapping_add_signed(stride);
                return;
            }
            self.index[axis] = 0;
            let back = (dim as isize - 1).wrapping_mul(stride);
            self.position = self.position.wrapping_add_signed(back.wrapping_neg());
        }
    }
}

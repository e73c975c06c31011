//! Positions of elements, one loop after the other.

use crate::layout::LoopNest;
use crate::shape::MAX_RANK;

/// Positions along a nest of loops, one after the other.
pub(super) struct Odometer<'a> {
    dims: &'a [usize],
    strides: &'a [isize],
    index: [usize; MAX_RANK],
    pub position: usize,
}

impl<'a> Odometer<'a> {
    /// From index number `flat` on.
    pub fn new(nest: &'a LoopNest, mut flat: usize, offset: usize) -> Self {
        let (dims, strides) = (nest.dims(), nest.strides(0));
        let mut odometer = Odometer { dims, strides, index: [0; MAX_RANK], position: offset };
        for (axis, (&dim, &stride)) in dims.iter().zip(strides).enumerate().rev() {
            odometer.index[axis] = flat % dim;
            let shift = (flat % dim) as isize * stride;
            odometer.position = odometer.position.wrapping_add_signed(shift);
            flat /= dim;
        }
        odometer
    }

    /// Over all loops but the innermost.
    pub fn outer(nest: &'a LoopNest, offset: usize) -> Self {
        let outer = nest.dims().len().saturating_sub(1);
        let (dims, strides) = (&nest.dims()[..outer], &nest.strides(0)[..outer]);
        Odometer { dims, strides, index: [0; MAX_RANK], position: offset }
    }

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

//! [`Strides`].

use std::fmt;

use super::{MAX_RANK, Shape};

/// Distance in elements between neighbours along each axis. A stride of 0 repeats an element, a
/// negative one runs backwards.
#[derive(Clone, Copy)]
pub struct Strides {
    steps: [isize; MAX_RANK],
    rank: usize,
}

impl Strides {
    /// Strides with these steps. Axes beyond [`MAX_RANK`] are dropped.
    pub fn new(steps: impl AsRef<[isize]>) -> Self {
        steps.as_ref().iter().copied().collect()
    }

    /// Strides of a scalar.
    pub(crate) const fn scalar() -> Self {
        Strides { steps: [0; MAX_RANK], rank: 0 }
    }

    pub(crate) fn zeros(rank: usize) -> Self {
        Strides { rank: rank.min(MAX_RANK), ..Strides::scalar() }
    }

    /// Sets the row-major strides of `shape`.
    pub(crate) fn set_contiguous(&mut self, shape: &Shape) {
        self.rank = shape.ndim();
        let mut step = 1isize;
        for (stride, &dim) in self.as_mut_slice().iter_mut().zip(shape.dims()).rev() {
            *stride = step;
            step = step.wrapping_mul(dim.max(1) as isize);
        }
    }

    /// The steps, outermost axis first.
    pub fn as_slice(&self) -> &[isize] {
        &self.steps[..self.rank]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [isize] {
        &mut self.steps[..self.rank]
    }
}

impl FromIterator<isize> for Strides {
    fn from_iter<I: IntoIterator<Item = isize>>(iter: I) -> Self {
        let mut strides = Strides::scalar();
        for (slot, step) in strides.steps.iter_mut().zip(iter) {
            *slot = step;
            strides.rank += 1;
        }
        strides
    }
}

impl PartialEq for Strides {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Strides {}

impl fmt::Debug for Strides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

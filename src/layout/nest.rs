//! Joint iteration over several layouts of one shape.

use crate::shape::{AxisSet, MAX_RANK};

use super::Layout;

/// Loop nest over several operands of one shape. Axes that are mergeable in every operand are merged, and
/// axes of extent 1 are dropped. Made by [`merge_axes`].
#[derive(Clone, Debug)]
pub struct LoopNest {
    dims: AxisSet,
    strides: smallvec::SmallVec<[smallvec::SmallVec<[isize; MAX_RANK]>; 3]>,
}

impl LoopNest {
    /// Extents of the merged axes, outermost first.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Strides of operand `i` along the merged axes.
    pub fn strides(&self, i: usize) -> &[isize] {
        &self.strides[i]
    }
}

/// Merges the axes of operands of one shape for iteration in row-major order.
///
/// Adjacent axes `i` and `i + 1` are merged if `stride[i] = dim[i + 1] * stride[i + 1]` for every
/// operand. A contiguous tensor has one merged axis, a scalar none.
pub fn merge_axes(layouts: &[&Layout]) -> LoopNest {
    let rank = layouts.first().map_or(0, |layout| layout.dims().len());
    merge_some_axes(layouts, 0..rank)
}

/// Position of element `i`, in row-major order, of axes with these extents and strides.
#[inline]
pub fn position_of(dims: &[usize], strides: &[isize], mut i: usize, offset: usize) -> usize {
    let mut position = offset;
    for (&dim, &stride) in dims.iter().zip(strides).rev() {
        position = position.wrapping_add_signed((i % dim) as isize * stride);
        i /= dim;
    }
    position
}

/// Merges the given axes alone, in the given order; see [`merge_axes`].
pub fn merge_some_axes(layouts: &[&Layout], axes: impl IntoIterator<Item = usize>) -> LoopNest {
    let mut nest = LoopNest {
        dims: AxisSet::new(),
        strides: layouts.iter().map(|_| Default::default()).collect(),
    };
    let Some(first) = layouts.first() else { return nest };
    for axis in axes {
        let dim = first.dims()[axis];
        if dim == 1 {
            continue;
        }
        let mergeable = !nest.dims.is_empty()
            && nest.strides.iter().zip(layouts).all(|(merged, layout)| {
                merged.last().copied() == layout.strides()[axis].checked_mul(dim as isize)
            });
        if mergeable {
            *nest.dims.last_mut().expect("not empty: just tested") *= dim;
        } else {
            nest.dims.push(dim);
        }
        for (merged, layout) in nest.strides.iter_mut().zip(layouts) {
            if mergeable {
                *merged.last_mut().expect("as long as dims") = layout.strides()[axis];
            } else {
                merged.push(layout.strides()[axis]);
            }
        }
    }
    nest
}

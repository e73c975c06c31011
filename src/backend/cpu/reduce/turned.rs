//! Results of elements that do not lie as rows or columns, many at a time: what they reduce is copied into columns,
//! in row-major order of the reduced axes, which vectors reduce side by side in the same tree.

use bytemuck::Pod;
use smallvec::SmallVec;
use swath_kernels::Permute;

use super::super::copy;
use super::Plan;
use super::columns::OfColumns;
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{self, Cost};
use crate::shape::MAX_RANK;

/// Fewest results whose elements are copied together.
const FEWEST_RESULTS: usize = 32;

/// Elements that are copied at a time where results have few, 8 KiB of `f32`.
const TURNED: usize = 2048;

/// Elements of a result up to which those that do not lie as one run are copied so, 64 KiB of `f32` at a time;
/// beyond, a copy of the whole tensor into rows takes less time.
const MOST_SCATTERED: usize = 512;

impl Plan<'_> {
    /// True if results reduce so few elements that a call of a kernel for each takes longer than its work: at
    /// most `short` of one run, or [`MOST_SCATTERED`] that do not lie as rows or columns.
    pub(super) fn is_turned(&self) -> bool {
        let results: usize = self.kept.dims().iter().product();
        let most = if self.is_one_run() { self.short } else { MOST_SCATTERED };
        results >= FEWEST_RESULTS && self.count <= most && !self.is_columns()
    }

    /// Calls `f(elements, distance of rows, results)` for results whose elements were copied into columns; `cost`
    /// is that of an element.
    pub(super) fn each_turned<T: Pod + Sync, Y: Send>(
        &self,
        cost: Cost,
        out: &mut [Y],
        f: &OfColumns<'_, T, Y>,
    ) {
        let (data, count) = (self.x.elements::<T>(), self.count);
        let (dims, strides) = (self.kept.dims(), self.kept.strides(0));
        let most = (TURNED / count).max(FEWEST_RESULTS);
        // A tile is some indices of one kept axis and all of those below it.
        let (mut axis, mut below) = (dims.len() - 1, 1);
        while axis > 0 && below * dims[axis] <= most {
            below *= dims[axis];
            axis -= 1;
        }
        let axes = |one: usize| -> SmallVec<[usize; MAX_RANK]> {
            let kept = std::iter::once(one).chain(dims[axis + 1..].iter().copied());
            self.reduced.dims().iter().copied().chain(kept).collect()
        };
        let steps = self.reduced.strides(0).iter().chain(&strides[axis..]);
        let steps: SmallVec<[isize; MAX_RANK]> = steps.copied().collect();
        parallel::for_each_chunk_mut(out, below, cost.times(count), &|first, mut out| {
            let mut scratch = Buffer::scratch(most * count * size_of::<T>());
            let scratch = scratch.as_slice_mut::<T>();
            let mut at = first;
            while !out.is_empty() {
                let indices = (dims[axis] - at % dims[axis]).min(out.len() / below);
                let indices = indices.min((most / below).max(1));
                let (y, rest) = out.split_at_mut(indices * below);
                let turned = &mut scratch[..count * y.len()];
                let (dims, offset) = (axes(indices), self.position(at * below));
                copy::permute(data, Permute { dims: &dims, strides: &steps, offset }, turned);
                f(turned, y.len(), y);
                (out, at) = (rest, at + indices);
            }
        });
    }
}

//! Reductions of few elements that are neither rows nor columns in memory: the elements of many results are
//! copied into columns, in row-major order of the reduced axes, and reduced side by side in the same tree.

use bytemuck::Pod;
use smallvec::SmallVec;
use swath_kernels::Permute;

use super::super::copy;
use super::Plan;
use super::columns::ColumnKernel;
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{self, Cost};
use crate::shape::MAX_RANK;

/// Minimum number of results per tile.
const MIN_RESULTS: usize = 32;

/// Elements of a tile if results have few: 8 KiB of `f32`.
const TILE_LEN: usize = 2048;

/// Maximum number of elements per result that are copied if they are not one run: tiles of 64 KiB of `f32`.
/// For more elements, copying the whole tensor into rows takes less time.
const MAX_SCATTERED: usize = 512;

impl Plan<'_> {
    /// True if results have so few elements that one kernel call per result takes longer than the reduction: at
    /// most `max_short` in one run, or [`MAX_SCATTERED`] that are neither rows nor columns.
    pub(super) fn is_transposed(&self) -> bool {
        let results: usize = self.kept.dims().iter().product();
        let most = if self.is_one_run() { self.max_short } else { MAX_SCATTERED };
        results >= MIN_RESULTS && self.count <= most && !self.is_columns()
    }

    /// Calls `f(elements, leading dimension, results)` for tiles of results whose elements were copied into
    /// columns. `cost` is that of an element.
    pub(super) fn each_transposed<T: Pod + Sync, Y: Send>(
        &self,
        cost: Cost,
        out: &mut [Y],
        f: &ColumnKernel<'_, T, Y>,
    ) {
        let (data, count) = (self.x.elements::<T>(), self.count);
        let (dims, strides) = (self.kept.dims(), self.kept.strides(0));
        let most = (TILE_LEN / count).max(MIN_RESULTS);
        // A tile is a range of one kept axis and all indices of the axes below it.
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
        let order = self.nearest_first(&steps);
        parallel::for_each_chunk_mut(out, below, cost.times(count), &|first, mut out| {
            let mut scratch = Buffer::scratch(2 * most * count * size_of::<T>());
            let (scratch, middle) = scratch.as_slice_mut::<T>().split_at_mut(most * count);
            let mut at = first;
            while !out.is_empty() {
                let indices = (dims[axis] - at % dims[axis]).min(out.len() / below);
                let indices = indices.min((most / below).max(1));
                let (y, rest) = out.split_at_mut(indices * below);
                let tile = &mut scratch[..count * y.len()];
                let (dims, offset) = (axes(indices), self.position(at * below));
                let shape = Permute { dims: &dims, strides: &steps, offset };
                match &order {
                    None => copy::permute(data, shape, tile),
                    Some(order) => in_two_steps(data, shape, order, middle, tile),
                }
                f(tile, y.len(), y);
                (out, at) = (rest, at + indices);
            }
        });
    }

    /// The order of axes in which a tile is copied first, if elements are nearest along the last of several reduced
    /// axes: that axis, then the others as they lie in memory. `steps` are the steps of the tile's axes.
    fn nearest_first(&self, steps: &[isize]) -> Option<SmallVec<[usize; MAX_RANK]>> {
        let nearest = self.reduced.dims().len().checked_sub(1)?;
        let pays = nearest > 0 && steps[nearest] == 1 && steps.last() != Some(&1);
        let mut order: SmallVec<[usize; MAX_RANK]> = (0..steps.len()).collect();
        order.sort_by_key(|&axis| (axis != nearest, -steps[axis].abs()));
        pays.then_some(order)
    }
}

/// Copies into `middle` with the axes in another order, and from there into `tile`, in runs.
fn in_two_steps<T: Pod>(
    data: &[T],
    shape: Permute<'_>,
    order: &[usize],
    middle: &mut [T],
    tile: &mut [T],
) {
    let pick = |axis: &usize| (shape.dims[*axis], shape.strides[*axis]);
    let (dims, strides): (SmallVec<[usize; MAX_RANK]>, SmallVec<[isize; MAX_RANK]>) =
        order.iter().map(pick).unzip();
    let middle = &mut middle[..tile.len()];
    copy::permute(data, Permute { dims: &dims, strides: &strides, ..shape }, middle);
    let (mut strides, mut below) = (strides, 1);
    for &axis in order.iter().rev() {
        strides[axis] = below as isize;
        below *= shape.dims[axis];
    }
    copy::permute(middle, Permute { strides: &strides, offset: 0, ..shape }, tile);
}

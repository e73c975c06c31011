//! Results of few adjacent elements each, many at a time: what they fold is turned into columns, which
//! vectors fold side by side in the same tree.

use bytemuck::Pod;
use swath_kernels::Permute;

use super::super::copy;
use super::super::memory::Buffer;
use super::super::parallel::{self, Cost};
use super::Plan;
use super::columns::OfNeighbours;

/// Fewest neighbouring results.
const FEWEST_RESULTS: usize = 32;

/// Elements that are turned at a time.
const TURNED: usize = 2048;

impl Plan<'_> {
    /// Whether results fold so few elements each, at most `most`, that a call of a kernel for each takes
    /// longer than its work.
    pub(super) fn is_short(&self, most: usize) -> bool {
        let neighbours = self.kept.dims().last().copied().unwrap_or(1);
        self.is_one_run() && self.count <= most && neighbours >= FEWEST_RESULTS
    }

    /// `f(elements, distance of rows, results)` for neighbouring results, whose elements are columns; `cost`
    /// is that of an element.
    pub(super) fn each_short<T: Pod + Sync, Y: Send>(
        &self,
        cost: Cost,
        out: &mut [Y],
        f: &OfNeighbours<'_, T, Y>,
    ) {
        let (data, count) = (self.x.elements::<T>(), self.count);
        let neighbours = self.kept.dims().last().copied().unwrap_or(1);
        let stride = self.kept.strides(0).last().copied().unwrap_or(1);
        parallel::for_each_chunk_mut(out, 1, cost.times(count), &|first, mut out| {
            let mut scratch = Buffer::scratch(TURNED * size_of::<T>());
            let scratch = scratch.as_slice_mut::<T>();
            let mut at = first;
            while !out.is_empty() {
                let len = (neighbours - at % neighbours).min(out.len()).min(TURNED / count);
                let (y, rest) = out.split_at_mut(len);
                let turned = &mut scratch[..count * len];
                let (dims, strides) = (&[count, len], &[1, stride]);
                copy::permute(data, Permute { dims, strides, offset: self.position(at) }, turned);
                f(turned, len, y);
                (out, at) = (rest, at + len);
            }
        });
    }
}

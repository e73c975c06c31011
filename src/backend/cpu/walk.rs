//! Iterates over operands of any layout and a contiguous result.
//!
//! ```text
//! merge the axes that can be merged in every operand; the innermost one gives the runs
//! split the result into parts, one per thread
//! for each piece of a part: pass every operand as slices (stride 1), as a number (stride 0) or, for any other
//! stride, as a copy in scratch memory
//! ```
//!
//! A *run* is a sequence of elements of the result along the innermost merged axis. A *part* is the range of the
//! result that one thread computes, a *piece* what one kernel call computes: a range of a run, or several runs at
//! equal distances. A *tile* is a rectangle of rows and columns of the result for which a transposed operand is copied
//! at once, a *strip* the rows of adjacent tiles.
//!
//! 1. Contiguous operands and numbers are one run: one kernel call per part.
//! 2. Broadcasting is a stride of 0, without a copy. All rows along an axis are one kernel call.
//! 3. An operand with a smaller stride along another axis than along the last, such as a transpose, is read in tiles:
//!    each is transposed into scratch memory, so that a cache line is fetched once, not once per element. [`GROUP`]
//!    strips are computed together, one column of tiles after the other, so that consecutive tiles read adjacent memory
//!    of the operand.
//! 4. Large results are written with non-temporal stores where the instruction set has them ([`with_place`] says from
//!    which size on), unless an operand is in the same memory.
//! 5. If runs are short, a kernel call per run would cost more than its work. Operands whose elements are not in
//!    the order of the result are then copied into scratch memory, many runs at a time.

mod fetch;

use std::ops::Range;

use bytemuck::Pod;
use smallvec::SmallVec;
use swath_kernels::{Block, Permute, Place, with_place};

use super::copy;
use super::written::Written;
use crate::layout::{Layout, LoopNest, merge_axes};
use crate::runtime::parallel::{self, Cost};
use crate::shape::MAX_RANK;
pub(super) use fetch::Fetch;
use fetch::Scratch;

/// Maximum number of elements of a piece if an operand of another stride than 0 or 1 is copied; pieces of tiles and of
/// short runs have at most [`TILE_LEN`].
const SCRATCH_LEN: usize = 1024;

/// Rows and columns, in the result, of a tile of a transposed operand: 64 elements are whole cache lines of
/// the operand, and runs of 128 let the prefetcher follow the other operand and the result.
const TILE: [usize; 2] = [64, 128];

/// Minimum number of rows of a usual tile: tiles have as many if there are too few strips for the threads, and a result
/// with fewer rows has wider tiles.
const SMALL_TILE_ROWS: usize = TILE[0] / 4;

/// Elements of a tile.
pub(super) const TILE_LEN: usize = TILE[0] * TILE[1];

/// Strips that are computed together, column of tiles by column, so that the operand is read along its rows within the
/// reach of the TLB. Zen 3, `a.t() + b`, time divided by that of a triad, with groups of 1 and of 8 strips: on one thread
/// 3.4 and 2.8 (1024²), 2.0 and 2.0 (4096²); on two threads 2.7 and 1.8, 2.2 and 1.9.
const GROUP: usize = 8;

/// With fewer strips per thread than this, strips get fewer rows.
const MIN_STRIPS_PER_THREAD: usize = 4;

/// Minimum extent of both axes of a tile.
const TILE_MIN: usize = 4;

/// Minimum number of elements of a tile with short runs.
const SMALLEST_TILE: usize = 512;

/// Minimum length of runs for one kernel call per run. A call for each of the runs of `[n, 4] + [1, 4]` would take 6 ns per
/// element.
const SHORTEST_RUN: usize = 64;

/// Parts begin at multiples of this many elements, whole cache lines of every type.
const PART_UNIT: usize = 64;

/// Maximum number of operands.
pub(super) const MAX_OPERANDS: usize = 3;

type Positions = [usize; MAX_OPERANDS];

/// Function that computes a piece of the result. It is a trait object, so that a walk is compiled once per result type
/// instead of once per op.
type ComputePiece<'f, T> = dyn Fn(&mut Fetch<'_>, &mut Place<'_, T>) + Sync + 'f;

/// Computes pieces and counts their elements.
struct Counted<'f, T> {
    f: &'f ComputePiece<'f, T>,
    written: &'f Written,
}

impl<T> Counted<'_, T> {
    #[inline(always)]
    fn run(&self, mut fetch: Fetch<'_>, piece: &mut Place<'_, T>) {
        let Block { rows, cols, .. } = fetch.shape();
        (self.f)(&mut fetch, piece);
        self.written.add(rows * cols);
    }
}

/// An operand of a walk: its whole storage, and how its elements are accessed.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a, T> {
    data: &'a [T],
    /// Index among the operands of the walk.
    slot: usize,
    /// Stride along a run; 1 if short runs are contiguous in the order of the result.
    stride: isize,
    /// True if it is copied tile by tile.
    tiled: bool,
    /// True if many runs are copied at a time.
    gathered: bool,
}

impl<'a, T> Operand<'a, T> {
    /// True if kernels read the storage itself, not a copy.
    pub fn is_direct(&self) -> bool {
        !self.tiled && !self.gathered && matches!(self.stride, 0 | 1)
    }
}

/// The plan of a walk over operands of one shape.
pub(super) struct Walk {
    nest: LoopNest,
    offsets: Positions,
    operands: usize,
    /// The axis along which tiled operands have the smallest stride, and the operands that are tiled.
    tile: Option<(usize, [bool; MAX_OPERANDS])>,
    /// True if runs are too short for a kernel call each; pieces then span many runs.
    has_short_runs: bool,
    len: usize,
}

impl Walk {
    /// A walk over layouts of one shape.
    pub fn new(layouts: &[&Layout]) -> Walk {
        let nest = merge_axes(layouts);
        let mut offsets = [0; MAX_OPERANDS];
        for (offset, layout) in offsets.iter_mut().zip(layouts) {
            *offset = layout.offset();
        }
        let len = layouts.first().map_or(0, |layout| layout.numel());
        let operands = layouts.len();
        let mut walk = Walk { nest, offsets, operands, tile: None, has_short_runs: false, len };
        walk.tile = walk.find_tile();
        walk.has_short_runs =
            walk.tile.is_none() && walk.nest.dims().len() > 1 && walk.inner_len() < SHORTEST_RUN;
        walk
    }

    /// The tiled axis and operands, if tiles are worth their copies.
    fn find_tile(&self) -> Option<(usize, [bool; MAX_OPERANDS])> {
        let dims = self.nest.dims();
        let inner = dims.len().checked_sub(1).filter(|&inner| dims[inner] >= TILE_MIN)?;
        let axis_of = |i: usize| {
            let step = |axis: usize| self.nest.strides(i)[axis].unsigned_abs();
            let is_smaller = |axis: &usize| (1..step(inner)).contains(&step(*axis));
            let axes = (0..inner).rev().filter(|&axis| dims[axis] >= TILE_MIN);
            let axis = axes.filter(is_smaller).min_by_key(|&axis| step(axis));
            // Short runs are gathered without tiles, unless a gathered piece would hold fewer than `SMALL_TILE_ROWS`
            // neighbours along `axis` and a tile is large enough.
            axis.filter(|&axis| {
                let below: usize = dims[axis + 1..].iter().product();
                let tile = dims[axis].min(TILE[0]) * dims[inner];
                let is_far = below > TILE_LEN / SMALL_TILE_ROWS && tile >= SMALLEST_TILE;
                dims[inner] >= SHORTEST_RUN || is_far
            })
        };
        let axis = (0..self.operands).find_map(axis_of)?;
        let mut tiled = [false; MAX_OPERANDS];
        for (i, tiled) in tiled.iter_mut().enumerate().take(self.operands) {
            *tiled = axis_of(i) == Some(axis);
        }
        Some((axis, tiled))
    }

    /// The operand of index `slot`, with the storage `data`.
    pub fn operand<'a, T>(&self, slot: usize, data: &'a [T]) -> Operand<'a, T> {
        let strides = self.nest.strides(slot);
        let stride = strides.last().copied().unwrap_or(0);
        if self.has_short_runs {
            let (stride, gathered) = if self.is_in_order(slot) {
                (1, false)
            } else if strides.iter().all(|&stride| stride == 0) {
                (0, false)
            } else {
                (stride, true)
            };
            return Operand { data, slot, stride, tiled: false, gathered };
        }
        let tiled = self.tile.is_some_and(|(_, tiled)| tiled[slot]);
        Operand { data, slot, stride, tiled, gathered: false }
    }

    /// True if the operand's elements are contiguous in the order of the result.
    fn is_in_order(&self, slot: usize) -> bool {
        let mut step = 1;
        self.nest.dims().iter().zip(self.nest.strides(slot)).rev().all(|(&dim, &stride)| {
            let fits = stride == step;
            step *= dim as isize;
            fits
        })
    }

    /// Calls `f` on every piece of the result, with a [`Fetch`] of its operands. `cost` is that of an element.
    pub fn run<T: Copy + Send>(
        &self,
        out: (&mut [T], &Written),
        cost: Cost,
        f: &ComputePiece<'_, T>,
    ) {
        self.pieces(out, self.len, cost, f);
    }

    /// Like [`Walk::run`], for a result whose previous elements `f` reads.
    pub fn run_in_place<T: Copy + Send>(
        &self,
        out: (&mut [T], &Written),
        cost: Cost,
        f: &ComputePiece<'_, T>,
    ) {
        self.pieces(out, 0, cost, f);
    }

    /// Calls `f` on every piece. `whole` is the length of the result, by which [`with_place`] decides on non-temporal
    /// stores; 0 for ordinary stores.
    fn pieces<T: Copy + Send>(
        &self,
        (out, written): (&mut [T], &Written),
        whole: usize,
        cost: Cost,
        f: &ComputePiece<'_, T>,
    ) {
        debug_assert_eq!(out.len(), self.len);
        if self.len == 0 {
            return;
        }
        let f = &Counted { f, written };
        match self.tile {
            Some((axis, _)) => self.run_tiles(axis, out, whole, cost, f),
            None => {
                let unit = PART_UNIT.min(self.len);
                parallel::for_each_chunk_mut(out, unit, cost, &|first, part| {
                    with_place(part, whole, |part| self.run_range(first * unit, part, f));
                });
            }
        }
    }

    fn inner_len(&self) -> usize {
        self.nest.dims().last().copied().unwrap_or(1)
    }

    /// Maximum number of elements of a piece, which scratch memory limits if an operand needs it.
    fn longest_piece(&self) -> usize {
        let inner = |i: usize| self.nest.strides(i).last().copied().unwrap_or(0);
        let direct = (0..self.operands).all(|i| matches!(inner(i), 0 | 1));
        if direct { usize::MAX } else { SCRATCH_LEN }
    }

    /// Index along every axis of element `flat` of the result.
    fn index_of(&self, mut flat: usize) -> [usize; MAX_RANK] {
        let mut index = [0; MAX_RANK];
        for (axis, &dim) in self.nest.dims().iter().enumerate().rev() {
            index[axis] = flat % dim;
            flat /= dim;
        }
        index
    }

    fn positions_of(&self, index: &[usize; MAX_RANK]) -> Positions {
        let mut positions = self.offsets;
        for (i, position) in positions.iter_mut().enumerate().take(self.operands) {
            for (&index, &stride) in index.iter().zip(self.nest.strides(i)) {
                *position = position.wrapping_add_signed(index as isize * stride);
            }
        }
        positions
    }

    /// Advances by `count` indices along axis `axes - 1`, at most to its end. There its index becomes 0 and the axis
    /// before advances by one.
    fn advance(
        &self,
        index: &mut [usize; MAX_RANK],
        positions: &mut Positions,
        axes: usize,
        mut count: usize,
    ) {
        for axis in (0..axes).rev() {
            let old = index[axis];
            let wrapped = old + count == self.nest.dims()[axis];
            let steps = if wrapped { -(old as isize) } else { count as isize };
            for (i, position) in positions.iter_mut().enumerate().take(self.operands) {
                *position = position.wrapping_add_signed(steps * self.nest.strides(i)[axis]);
            }
            if !wrapped {
                index[axis] += count;
                return;
            }
            index[axis] = 0;
            count = 1;
        }
    }

    /// Computes the elements of the result from `start` on that `out` holds.
    fn run_range<T>(&self, start: usize, mut out: Place<'_, T>, f: &Counted<'_, T>) {
        let (inner, longest) = (self.inner_len(), self.longest_piece());
        let outer_axes = self.nest.dims().len().saturating_sub(1);
        let scratch = &mut Scratch::default();
        if self.has_short_runs {
            // All runs count as one: `column` is the index in the whole result.
            let positions = self.offsets;
            for first in (0..out.len()).step_by(TILE_LEN) {
                let (column, len) = (start + first, (out.len() - first).min(TILE_LEN));
                let piece = &mut out.range(first..first + len);
                f.run(Fetch::of_run(self, positions, column, len, scratch), piece);
            }
            return;
        }
        let mut index = self.index_of(start);
        // `positions` are those of the outer axes; `column` is the index within the run.
        let mut column = std::mem::take(&mut index[outer_axes]);
        let mut positions = self.positions_of(&index);
        let mut done = 0;
        while done < out.len() {
            let len = (inner - column).min(longest).min(out.len() - done);
            // Whole rows are passed together, up to the end of the axis above.
            let rows = match outer_axes.checked_sub(1) {
                Some(axis) if column == 0 && len == inner => {
                    let most = (out.len() - done).min(longest) / inner;
                    most.min(self.nest.dims()[axis] - index[axis])
                }
                _ => 1,
            };
            let piece = &mut out.range(done..done + rows * len);
            let fetch = Fetch::of_run(self, positions, column, len, scratch);
            f.run(fetch.with_rows(rows, outer_axes.saturating_sub(1), len), piece);
            done += rows * len;
            column += len;
            if column == inner {
                column = 0;
                self.advance(&mut index, &mut positions, outer_axes, rows);
            }
        }
    }

    /// Copies the operand's elements for the elements of the result from `start` on. Each step copies the largest
    /// subarray that begins at the next element and fits the rest of `out`.
    fn gather<T: Pod>(&self, operand: &Operand<'_, T>, start: usize, out: &mut [T]) {
        let (dims, strides) = (self.nest.dims(), self.nest.strides(operand.slot));
        let (mut at, mut rest) = (start, out);
        while !rest.is_empty() {
            let (mut axis, mut below) = (dims.len() - 1, 1);
            while axis > 0 {
                let whole = below * dims[axis];
                if whole > rest.len() || !at.is_multiple_of(whole) {
                    break;
                }
                (axis, below) = (axis - 1, whole);
            }
            let index = self.index_of(at);
            let count = (rest.len() / below).min(dims[axis] - index[axis]);
            let (part, after) = rest.split_at_mut(count * below);
            let mut extents: SmallVec<[usize; MAX_RANK]> = dims[axis..].into();
            extents[0] = count;
            let offset = self.positions_of(&index)[operand.slot];
            let shape = Permute { dims: &extents, strides: &strides[axis..], offset };
            copy::permute(operand.data, shape, part);
            (at, rest) = (at + count * below, after);
        }
    }

    /// Splits the result into strips of rows along `axis`, which are contiguous in the result, and computes each tile
    /// by tile.
    fn run_tiles<T: Copy + Send>(
        &self,
        axis: usize,
        out: &mut [T],
        whole: usize,
        cost: Cost,
        f: &Counted<'_, T>,
    ) {
        let (dims, inner) = (self.nest.dims(), self.inner_len());
        let below: usize = dims[axis + 1..].iter().product();
        let outer: usize = dims[..axis].iter().product();
        let threads = parallel::threads();
        let has_few_strips =
            threads > 1 && outer * dims[axis].div_ceil(TILE[0]) < MIN_STRIPS_PER_THREAD * threads;
        // If there are only a few rows, such as the channels of an image, every thread gets some.
        let few_rows = SMALL_TILE_ROWS.min(dims[axis].div_ceil(threads));
        let tile_rows = if has_few_strips { few_rows } else { TILE[0] };
        let tile_cols =
            if dims[axis] < SMALL_TILE_ROWS { TILE_LEN / SMALL_TILE_ROWS } else { TILE[1] };
        let strips = dims[axis].div_ceil(tile_rows);
        let strip_start = |strip: usize| {
            let (above, row) = (strip / strips, strip % strips * tile_rows);
            (above * dims[axis] + row) * below
        };
        let total = outer * strips;
        let parts = parallel::parts(total, cost.times(tile_rows.min(dims[axis]) * below));
        let first = |part| parallel::even_start(total, parts, part);
        parallel::for_each_part_mut(out, parts, &|part| strip_start(first(part)), &|part, out| {
            let mut scratch = Scratch::default();
            let start = strip_start(first(part));
            with_place(out, whole, |mut out| {
                let strips = first(part)..first(part + 1);
                for from in strips.clone().step_by(GROUP) {
                    for (middle, column) in (0..below / inner).flat_map(|middle| {
                        (0..inner).step_by(tile_cols).map(move |column| (middle, column))
                    }) {
                        let columns = column..inner.min(column + tile_cols);
                        for strip in from..(from + GROUP).min(strips.end) {
                            let (begin, end) = (strip_start(strip), strip_start(strip + 1));
                            let piece = out.range(begin - start..end - start);
                            let columns = (middle, columns.clone());
                            self.run_tile(axis, begin, columns, piece, &mut scratch, f);
                        }
                    }
                }
            });
        });
    }

    /// Computes one tile: a range of columns of the `middle`-th run of each row of the strip that begins at
    /// element `start` of the result.
    fn run_tile<T>(
        &self,
        axis: usize,
        start: usize,
        (middle, columns): (usize, Range<usize>),
        mut out: Place<'_, T>,
        scratch: &mut Scratch,
        f: &Counted<'_, T>,
    ) {
        let (dims, inner) = (self.nest.dims(), self.inner_len());
        let below: usize = dims[axis + 1..].iter().product();
        let (rows, column) = (out.len() / below, columns.start);
        let len = columns.len();
        let mut index = self.index_of(start);
        let mut flat = middle;
        for i in (axis + 1..dims.len() - 1).rev() {
            index[i] = flat % dims[i];
            flat /= dims[i];
        }
        let positions = self.positions_of(&index);
        let first = middle * inner + column;
        let piece = &mut out.range(first..first + (rows - 1) * below + len);
        let fetch = Fetch::of_run(self, positions, column, len, scratch);
        f.run(fetch.with_rows(rows, axis, below), piece);
    }
}

/// Splits a new result over threads, at multiples of `unit` elements, and calls `f(index of the first unit, place)` on
/// each part.
pub(super) fn write_chunks<T: Copy + Send>(
    out: &mut [T],
    unit: usize,
    cost: Cost,
    f: &(dyn Fn(usize, &mut Place<'_, T>) + Sync),
) {
    let whole = out.len();
    parallel::for_each_chunk_mut(out, unit, cost, &|first, part| {
        with_place(part, whole, |mut part| f(first, &mut part));
    });
}

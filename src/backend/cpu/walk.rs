//! Iterates over operands of any layout and a contiguous result.
//!
//! ```text
//! merge the axes that are mergeable in every operand; the innermost one gives the runs
//! cut the result into parts, which threads share
//! for each run of a part: pass every operand as a slice (stride 1), a number (stride 0) or, for any other
//! stride, as a copy in scratch memory; equidistant runs are passed together, as a block
//! ```
//!
//! 1. Contiguous operands and numbers are one run: one kernel call per part.
//! 2. Broadcasting is a stride of 0, without a copy. All rows along an axis are one kernel call.
//! 3. An operand with a smaller stride along another axis than along the result's last (such as a transpose)
//!    is walked in tiles: parts of it are transposed into scratch memory, and the rows of the tile are runs.
//!    Every cache line is then fetched once instead of once per element. Blocks of rows are walked together,
//!    so that consecutive tiles follow the operand's rows.
//! 4. Results larger than the caches are written with non-temporal stores (`with_place`), unless an operand is
//!    in the same memory.
//! 5. If runs are short, a kernel call per run would cost more than its work. Operands whose elements are not in
//!    the order of the result are then copied into scratch memory, many runs at a time.

mod fetch;

use std::ops::Range;

use bytemuck::Pod;
use smallvec::SmallVec;
use swath_kernels::{Permute, Place, with_place};

use super::copy;
use crate::layout::{Layout, LoopNest, merge_axes};
use crate::runtime::parallel::{self, Cost};
use crate::shape::MAX_RANK;
pub(super) use fetch::Fetch;
use fetch::Scratch;

/// Maximum number of elements of a piece of a run if an operand is copied into scratch memory.
const SCRATCH_LEN: usize = 1024;

/// Rows and columns, in the result, of a tile of a transposed operand: 64 elements are whole cache lines of
/// the operand, and runs of 128 let the prefetcher follow the other operand and the result.
const TILE: [usize; 2] = [64, 128];

/// Rows of a tile if the result has too few rows for the threads.
const FEW_ROWS: usize = TILE[0] / 4;

/// Elements of a tile.
pub(super) const TILE_LEN: usize = TILE[0] * TILE[1];

/// Blocks of tile rows that are walked together, column by column, so that the operand is read along its rows
/// within the reach of the TLB. Time of `a.t() + b` over a triad with groups of 1 and 8: 3.4 and 2.8 at 1024²,
/// 2.0 and 2.0 at 4096²; on two threads 2.7 and 1.8, 2.2 and 1.9.
const GROUP: usize = 8;

/// Minimum number of blocks of rows per thread for an even share.
const FEW_PARTS: usize = 4;

/// Minimum extent of both axes of a tile.
const TILE_MIN: usize = 4;

/// Minimum number of elements of a tile with short runs.
const SMALLEST_TILE: usize = 512;

/// Minimum length of runs for one kernel call per run: with calls, `[n, 4] + [1, 4]` takes 6 ns per element.
const SHORTEST_RUN: usize = 64;

/// Maximum number of operands.
const MAX_OPERANDS: usize = 3;

type Positions = [usize; MAX_OPERANDS];

/// Function that computes a piece of the result, a block of rows. It is a trait object, so that a walk is
/// compiled once per result type instead of once per op.
type Piece<'f, T> = dyn Fn(&mut Fetch<'_>, &mut Place<'_, T>) + Sync + 'f;

/// An operand of a walk: its whole storage, and how its elements are accessed.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a, T> {
    data: &'a [T],
    slot: usize,
    stride: isize,
    tiled: bool,
    gathered: bool,
}

impl<'a, T> Operand<'a, T> {
    /// True if the runs are used in place.
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

    /// The tiled axis and operands, if tiles pay.
    fn find_tile(&self) -> Option<(usize, [bool; MAX_OPERANDS])> {
        let dims = self.nest.dims();
        let inner = dims.len().checked_sub(1).filter(|&inner| dims[inner] >= TILE_MIN)?;
        let axis_of = |i: usize| {
            let step = |axis: usize| self.nest.strides(i)[axis].unsigned_abs();
            let is_smaller = |axis: &usize| (1..step(inner)).contains(&step(*axis));
            let axes = (0..inner).rev().filter(|&axis| dims[axis] >= TILE_MIN);
            let axis = axes.filter(is_smaller).min_by_key(|&axis| step(axis));
            // Short runs are gathered without tiles, unless neighbours along `axis` are too far apart to be in
            // one gathered piece and a tile is large enough.
            axis.filter(|&axis| {
                let below: usize = dims[axis + 1..].iter().product();
                let tile = dims[axis].min(TILE[0]) * dims[inner];
                let is_far = below > TILE_LEN / FEW_ROWS && tile >= SMALLEST_TILE;
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
            let (stride, gathered) = match () {
                () if self.is_in_order(slot) => (1, false),
                () if strides.iter().all(|&stride| stride == 0) => (0, false),
                () => (stride, true),
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
    pub fn run<T: Copy + Send>(&self, out: &mut [T], cost: Cost, f: &Piece<'_, T>) {
        self.pieces(out, self.len, cost, f);
    }

    /// Like [`Walk::run`], for a result whose previous elements `f` reads.
    pub fn run_in_place<T: Copy + Send>(&self, out: &mut [T], cost: Cost, f: &Piece<'_, T>) {
        self.pieces(out, 0, cost, f);
    }

    /// Calls `f` on every piece; `whole` is the number of elements to be written past the caches, or 0.
    fn pieces<T: Copy + Send>(&self, out: &mut [T], whole: usize, cost: Cost, f: &Piece<'_, T>) {
        debug_assert_eq!(out.len(), self.len);
        if self.len == 0 {
            return;
        }
        match self.tile {
            Some((axis, _)) => self.run_tiles(axis, out, whole, cost, f),
            None => parallel::for_each_chunk_mut(out, 64.min(self.len), cost, &|first, part| {
                with_place(part, whole, |part| self.run_range(first * 64.min(self.len), part, f));
            }),
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

    /// Advances by `count` indices along axis `axes - 1`, at most to its end, where it wraps to the next index of
    /// the axes before.
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
    fn run_range<T>(&self, start: usize, mut out: Place<'_, T>, f: &Piece<'_, T>) {
        let (inner, longest) = (self.inner_len(), self.longest_piece());
        let outer_axes = self.nest.dims().len().saturating_sub(1);
        let scratch = &mut Scratch::default();
        if self.has_short_runs {
            let positions = self.offsets;
            for first in (0..out.len()).step_by(TILE_LEN) {
                let (column, len) = (start + first, (out.len() - first).min(TILE_LEN));
                let piece = &mut out.range(first..first + len);
                f(&mut Fetch::of_run(self, positions, column, len, scratch), piece);
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
            f(&mut fetch.with_rows(rows, outer_axes.saturating_sub(1), len), piece);
            done += rows * len;
            column += len;
            if column == inner {
                column = 0;
                self.advance(&mut index, &mut positions, outer_axes, rows);
            }
        }
    }

    /// Copies the operand's elements from `start` of the result on. Each step copies as many whole indices as
    /// possible of the outermost possible axis.
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

    /// Cuts the result into blocks of rows along `axis`, which are contiguous in the result, and walks each block
    /// tile by tile.
    fn run_tiles<T: Copy + Send>(
        &self,
        axis: usize,
        out: &mut [T],
        whole: usize,
        cost: Cost,
        f: &Piece<'_, T>,
    ) {
        let (dims, inner) = (self.nest.dims(), self.inner_len());
        let below: usize = dims[axis + 1..].iter().product();
        let outer: usize = dims[..axis].iter().product();
        let threads = parallel::threads();
        let has_few_blocks =
            threads > 1 && outer * dims[axis].div_ceil(TILE[0]) < FEW_PARTS * threads;
        // If there are only a few rows, such as the channels of an image, every thread gets some.
        let few_rows = FEW_ROWS.min(dims[axis].div_ceil(threads));
        let tile_rows = if has_few_blocks { few_rows } else { TILE[0] };
        let tile_cols = if dims[axis] < FEW_ROWS { TILE_LEN / FEW_ROWS } else { TILE[1] };
        let blocks = dims[axis].div_ceil(tile_rows);
        let block_start = |block: usize| {
            let (above, row) = (block / blocks, block % blocks * tile_rows);
            (above * dims[axis] + row) * below
        };
        let total = outer * blocks;
        let parts = parallel::parts(total, cost.times(tile_rows.min(dims[axis]) * below));
        let first = |part| parallel::even_start(total, parts, part);
        parallel::for_each_part_mut(out, parts, &|part| block_start(first(part)), &|part, out| {
            let mut scratch = Scratch::default();
            let start = block_start(first(part));
            with_place(out, whole, |mut out| {
                let blocks = first(part)..first(part + 1);
                for from in blocks.clone().step_by(GROUP) {
                    for (middle, column) in (0..below / inner).flat_map(|middle| {
                        (0..inner).step_by(tile_cols).map(move |column| (middle, column))
                    }) {
                        let columns = column..inner.min(column + tile_cols);
                        for block in from..(from + GROUP).min(blocks.end) {
                            let (begin, end) = (block_start(block), block_start(block + 1));
                            let piece = out.range(begin - start..end - start);
                            let columns = (middle, columns.clone());
                            self.run_tile(axis, begin, columns, piece, &mut scratch, f);
                        }
                    }
                }
            });
        });
    }

    /// Computes one tile: a range of columns of the `middle`-th run of each row of the block that begins at
    /// element `start` of the result.
    fn run_tile<T>(
        &self,
        axis: usize,
        start: usize,
        (middle, columns): (usize, Range<usize>),
        mut out: Place<'_, T>,
        scratch: &mut Scratch,
        f: &Piece<'_, T>,
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
        f(&mut fetch.with_rows(rows, axis, below), piece);
    }
}

/// Cuts a new result into as many parts of whole units of `unit` elements as the work is worth, and calls
/// `f(first unit, place)` on each. Results larger than the caches are written with non-temporal stores.
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

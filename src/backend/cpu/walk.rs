//! Walks operands of any layout while the result is written front to back.
//!
//! ```text
//! merge the axes that lie as one in every operand; the innermost that is left gives the runs
//! cut the result into parts for the threads
//! for each run of a part: hand every operand as a slice (stride 1), a number (stride 0) or, for any
//! other stride, copied into scratch memory in the cache; runs evenly apart together, as a block
//! ```
//!
//! 1. Contiguous operands, and a scalar beside them, are one run: one kernel call a part.
//! 2. A row, column or scalar that broadcasts is a stride of 0: nothing is materialised. All rows of an
//!    axis are one call.
//! 3. An operand whose elements are nearer to one another along another axis than along the result's
//!    last (a transpose, of every other column too) is walked in
//!    tiles: parts of it are transposed into scratch memory, then its rows are
//!    runs like any other. Every line of memory is then fetched once instead of once an element.
//!    Blocks of rows are walked together, so that tiles follow one another along the operand's rows.
//! 4. Results too large for the caches are stored past them (`with_place`), if no operand is read from
//!    their memory.
//! 5. Where runs would be short, a kernel call each would cost more than its work: operands that do
//!    not lie in order are copied into scratch memory, many runs at a time.

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

/// Elements of a piece of one run of which some operand passes through scratch memory.
const SCRATCH_LEN: usize = 1024;

/// Rows and columns, of the result, of a tile of a transposed operand. 64 elements are whole lines of each
/// row of the operand's storage; runs of 128 keep the other operand and the result in streams.
const TILE: [usize; 2] = [64, 128];

/// Rows of the tiles of a result that has too few for the threads: a quarter of a tile's.
const FEW_ROWS: usize = TILE[0] / 4;

/// Elements of a tile.
pub(super) const TILE_LEN: usize = TILE[0] * TILE[1];

/// Blocks of a tile's rows that are walked together, column of tiles by column: so that the tiled
/// operand is read along its rows, and no more pages are in turn than the processor has addresses of.
/// `a.t() + b` over a triad, 1 and 8: 3.4 and 2.8 at 1024², 2.0 and 2.0 at 4096²; on two threads 2.7 and
/// 1.8, 2.2 and 1.9.
const GROUP: usize = 8;

/// Blocks of rows a thread below which they are too few to be shared evenly.
const FEW_PARTS: usize = 4;

/// Below this extent a tile is not worth its set-up.
const TILE_MIN: usize = 4;

/// Elements below which a tile of short runs is not.
const SMALLEST_TILE: usize = 512;

/// Shortest runs that are worth a kernel call each. `[n, 4] + [1, 4]` takes 6 ns an element by runs.
const SHORTEST_RUN: usize = 64;

/// Most operands of an op.
const MAX_OPERANDS: usize = 3;

type Positions = [usize; MAX_OPERANDS];

/// What computes a piece of the result, a block of rows. Through a pointer: a walk is compiled once for
/// each type of result, not once for each op.
type Piece<'f, T> = dyn Fn(&mut Fetch<'_>, &mut Place<'_, T>) + Sync + 'f;

/// An operand: all of its storage; where its elements lie says the walk.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a, T> {
    data: &'a [T],
    slot: usize,
    stride: isize,
    tiled: bool,
    gathered: bool,
}

impl<'a, T> Operand<'a, T> {
    /// True if its runs can be used where they lie.
    pub fn is_direct(&self) -> bool {
        !self.tiled && !self.gathered && matches!(self.stride, 0 | 1)
    }
}

/// The plan of a walk over operands of one shape.
pub(super) struct Walk {
    nest: LoopNest,
    offsets: Positions,
    operands: usize,
    /// The axis along which elements of tiled operands are the nearest, and which they are.
    tile: Option<(usize, [bool; MAX_OPERANDS])>,
    /// Whether the result is cut without regard to runs, which are too short.
    short: bool,
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
        let mut walk = Walk { nest, offsets, operands, tile: None, short: false, len };
        walk.tile = walk.find_tile();
        walk.short =
            walk.tile.is_none() && walk.nest.dims().len() > 1 && walk.inner_len() < SHORTEST_RUN;
        walk
    }

    fn find_tile(&self) -> Option<(usize, [bool; MAX_OPERANDS])> {
        let dims = self.nest.dims();
        let inner = dims.len().checked_sub(1).filter(|&inner| dims[inner] >= TILE_MIN)?;
        let axis_of = |i: usize| {
            let step = |axis: usize| self.nest.strides(i)[axis].unsigned_abs();
            let is_nearer = |axis: &usize| (1..step(inner)).contains(&step(*axis));
            let axes = (0..inner).rev().filter(|&axis| dims[axis] >= TILE_MIN);
            let axis = axes.filter(is_nearer).min_by_key(|&axis| step(axis));
            // Of short runs many are copied at once, beside one another if need be, unless those that are
            // lie too far apart for it and are enough for a tile.
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

    /// Operand `slot`, whose storage is `data`.
    pub fn operand<'a, T>(&self, slot: usize, data: &'a [T]) -> Operand<'a, T> {
        let strides = self.nest.strides(slot);
        let stride = strides.last().copied().unwrap_or(0);
        if self.short {
            let (stride, gathered) = match () {
                () if self.lies_in_order(slot) => (1, false),
                () if strides.iter().all(|&stride| stride == 0) => (0, false),
                () => (stride, true),
            };
            return Operand { data, slot, stride, tiled: false, gathered };
        }
        let tiled = self.tile.is_some_and(|(_, tiled)| tiled[slot]);
        Operand { data, slot, stride, tiled, gathered: false }
    }

    /// True if the operand's elements lie in the order of the result.
    fn lies_in_order(&self, slot: usize) -> bool {
        let mut step = 1;
        self.nest.dims().iter().zip(self.nest.strides(slot)).rev().all(|(&dim, &stride)| {
            let fits = stride == step;
            step *= dim as isize;
            fits
        })
    }

    /// Calls `f` on every piece of the result, with what fetches the operands of that piece. `cost`
    /// is that of one element.
    pub fn run<T: Copy + Send>(&self, out: &mut [T], cost: Cost, f: &Piece<'_, T>) {
        self.pieces(out, self.len, cost, f);
    }

    /// As [`Walk::run`] of a result that `f` also reads.
    pub fn change<T: Copy + Send>(&self, out: &mut [T], cost: Cost, f: &Piece<'_, T>) {
        self.pieces(out, 0, cost, f);
    }

    /// `whole` is how many elements leave the caches.
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

    /// Most elements of a piece: as many as scratch memory holds, if some operand passes through it.
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

    /// Moves positions by `count` indices along the last of the axes before `axes`, at most to its end:
    /// from there to the next index of the axes before.
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

    /// The elements from `start` on that `out` holds.
    fn run_range<T>(&self, start: usize, mut out: Place<'_, T>, f: &Piece<'_, T>) {
        let (inner, longest) = (self.inner_len(), self.longest_piece());
        let outer_axes = self.nest.dims().len().saturating_sub(1);
        let scratch = &mut Scratch::default();
        if self.short {
            let positions = self.offsets;
            for first in (0..out.len()).step_by(TILE_LEN) {
                let (column, len) = (start + first, (out.len() - first).min(TILE_LEN));
                let piece = &mut out.range(first..first + len);
                f(&mut Fetch::of_run(self, positions, column, len, scratch), piece);
            }
            return;
        }
        let mut index = self.index_of(start);
        // `positions` follow the outer axes; `column` is where in the run the part begins.
        let mut column = std::mem::take(&mut index[outer_axes]);
        let mut positions = self.positions_of(&index);
        let mut done = 0;
        while done < out.len() {
            let len = (inner - column).min(longest).min(out.len() - done);
            // Whole rows, up to the end of the axis that leads from one to the next.
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

    /// Copies the operand's elements from `start` of the result on: each time as many whole indices as
    /// can be of an axis as far out as can be.
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

    /// Cuts the result into blocks of a tile's rows of indices of `axis`, which are contiguous in
    /// it, and walks each tile by tile.
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
        let are_few = threads > 1 && outer * dims[axis].div_ceil(TILE[0]) < FEW_PARTS * threads;
        // Of a few rows, as the channels of an image are, every thread takes some.
        let few_rows = FEW_ROWS.min(dims[axis].div_ceil(threads));
        let tile_rows = if are_few { few_rows } else { TILE[0] };
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
                            self.run_tile(
                                axis,
                                begin,
                                (middle, columns.clone()),
                                piece,
                                &mut scratch,
                                f,
                            );
                        }
                    }
                }
            });
        });
    }

    /// The tile of a block, which begins with element `start` of the result, from a column on of the
    /// `middle`-th run of its rows.
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

/// Cuts a new result evenly by `unit` elements into as many parts as the work is worth and runs
/// `f(first unit, place)` on each; past the caches if they could not hold it.
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

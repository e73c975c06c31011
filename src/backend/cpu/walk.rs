//! Walks operands of any layout while the result is written front to back.
//!
//! ```text
//! merge the axes that lie as one in every operand; the innermost that is left gives the runs
//! cut the result into parts for the threads
//! for each run of a part: hand every operand as a slice (stride 1), a number (stride 0) or, for any
//! other stride, copied into scratch memory in the cache
//! ```
//!
//! 1. Contiguous operands, and a scalar beside them, are one run: one kernel call a part.
//! 2. A row, column or scalar that broadcasts is a stride of 0: nothing is materialised.
//! 3. An operand that is contiguous along another axis than the result (a transpose) is walked in
//!    tiles: TILE_ROWS x TILE_COLS of it are transposed into scratch memory, then its rows are
//!    runs like any other. Every line of memory is then fetched once instead of once an element.
//! 4. Results too large for the caches are stored past them (`with_place`), if no operand is read from
//!    their memory.
//! 5. Where runs would be short, a kernel call each would cost more than its work: operands that do
//!    not lie in order are gathered into scratch memory, many runs at a time.

use bytemuck::Pod;
use swath_kernels::{Arg, Place, prefetch, with_place};

use super::memory::Buffer;
use super::parallel::{self, Cost};
use crate::layout::{Layout, LoopNest, merge_axes};
use crate::shape::MAX_RANK;

/// Elements that an operand's scratch memory holds: runs that need it are cut to this length.
pub(super) const SCRATCH_LEN: usize = 1024;

/// A tile of a transposed operand: rows are those of the result. 64 elements are whole lines of each
/// row of the operand's storage; runs of 128 keep the other operand and the result in streams.
const TILE_ROWS: usize = 64;
const TILE_COLS: usize = 128;

/// Rows of a tile by which an operand that is read where it lies is asked for ahead: its runs are too
/// short for the hardware to foresee. `a.t() + b` of 4096² over a triad, ahead by 0: 2.4, 1: 2.2,
/// 4: 1.85, 8: 1.8.
const ROWS_AHEAD: usize = 8;

/// Below this extent a tile is not worth its set-up.
const TILE_MIN: usize = 4;

/// Shortest runs that are worth a kernel call each. `[n, 4] + [1, 4]` takes 6 ns an element by runs.
const SHORTEST_RUN: usize = 64;

/// Most operands of an op.
const MAX_OPERANDS: usize = 3;

type Positions = [usize; MAX_OPERANDS];

/// What computes a piece of the result. One call a run, through a pointer: a walk is compiled once
/// for each type of result, not once for each op.
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
    /// The axis along which tiled operands are contiguous, and which they are.
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
            let strides = self.nest.strides(i);
            match strides[inner] {
                0 | 1 => None,
                _ => (0..inner).rfind(|&axis| strides[axis] == 1 && dims[axis] >= TILE_MIN),
            }
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

    /// Longest run: cut where some operand passes through scratch memory.
    fn longest_run(&self) -> usize {
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

    /// Moves positions to the next index along the axes before `axes`.
    fn advance(&self, index: &mut [usize; MAX_RANK], positions: &mut Positions, axes: usize) {
        for axis in (0..axes).rev() {
            let dim = self.nest.dims()[axis];
            index[axis] += 1;
            let wrapped = index[axis] == dim;
            for (i, position) in positions.iter_mut().enumerate().take(self.operands) {
                let stride = self.nest.strides(i)[axis];
                let shift = if wrapped { -(dim as isize - 1) * stride } else { stride };
                *position = position.wrapping_add_signed(shift);
            }
            if !wrapped {
                return;
            }
            index[axis] = 0;
        }
    }

    /// The elements from `start` on that `out` holds.
    fn run_range<T>(&self, start: usize, mut out: Place<'_, T>, f: &Piece<'_, T>) {
        let (inner, longest) = (self.inner_len(), self.longest_run());
        let outer_axes = self.nest.dims().len().saturating_sub(1);
        let scratch = &mut Scratch::default();
        if self.short {
            let positions = self.offsets;
            for first in (0..out.len()).step_by(SCRATCH_LEN) {
                let (column, len) = (start + first, (out.len() - first).min(SCRATCH_LEN));
                let piece = &mut out.range(first..first + len);
                f(&mut Fetch { walk: self, positions, column, len, tile_row: 0, scratch }, piece);
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
            let piece = &mut out.range(done..done + len);
            f(&mut Fetch { walk: self, positions, column, len, tile_row: 0, scratch }, piece);
            done += len;
            column += len;
            if column == inner {
                column = 0;
                self.advance(&mut index, &mut positions, outer_axes);
            }
        }
    }

    /// Copies the operand's elements from `start` of the result on, run by run.
    fn gather<T: Pod>(&self, operand: &Operand<'_, T>, start: usize, out: &mut [T]) {
        let inner = self.inner_len();
        let outer_axes = self.nest.dims().len().saturating_sub(1);
        let mut index = self.index_of(start);
        let mut column = std::mem::take(&mut index[outer_axes]);
        let mut positions = self.positions_of(&index);
        let mut rest = out;
        while !rest.is_empty() {
            let (run, after) = rest.split_at_mut((inner - column).min(rest.len()));
            rest = after;
            let first = positions[operand.slot];
            for (i, y) in (column..).zip(run) {
                *y = operand.data[first.wrapping_add_signed(i as isize * operand.stride)];
            }
            column = 0;
            self.advance(&mut index, &mut positions, outer_axes);
        }
    }

    /// Cuts the result into blocks of at most `TILE_ROWS` indices of `axis`, which are contiguous in
    /// it, and walks each.
    fn run_tiles<T: Copy + Send>(
        &self,
        axis: usize,
        out: &mut [T],
        whole: usize,
        cost: Cost,
        f: &Piece<'_, T>,
    ) {
        let dims = self.nest.dims();
        let below: usize = dims[axis + 1..].iter().product();
        let blocks = dims[axis].div_ceil(TILE_ROWS);
        let outer: usize = dims[..axis].iter().product();
        let block_start = |block: usize| {
            let (above, row) = (block / blocks, block % blocks * TILE_ROWS);
            (above * dims[axis] + row) * below
        };
        let total = outer * blocks;
        let parts = parallel::parts(total, cost.times(TILE_ROWS.min(dims[axis]) * below));
        let first = |part| parallel::even_start(total, parts, part);
        parallel::for_each_part_mut(out, parts, &|part| block_start(first(part)), &|part, out| {
            let mut scratch = Scratch::default();
            let start = block_start(first(part));
            with_place(out, whole, |mut out| {
                for block in first(part)..first(part + 1) {
                    let (begin, end) = (block_start(block), block_start(block + 1));
                    let piece = out.range(begin - start..end - start);
                    self.run_block(axis, begin, piece, &mut scratch, f);
                }
            });
        });
    }

    fn run_block<T>(
        &self,
        axis: usize,
        start: usize,
        mut out: Place<'_, T>,
        scratch: &mut Scratch,
        f: &Piece<'_, T>,
    ) {
        let dims = self.nest.dims();
        let inner = self.inner_len();
        let below: usize = dims[axis + 1..].iter().product();
        let (rows, middle) = (out.len() / below, below / inner);
        let mut index = self.index_of(start);
        for m in 0..middle {
            let mut flat = m;
            for i in (axis + 1..dims.len() - 1).rev() {
                index[i] = flat % dims[i];
                flat /= dims[i];
            }
            for column in (0..inner).step_by(TILE_COLS) {
                let len = (inner - column).min(TILE_COLS);
                let corner = self.positions_of(&index);
                let filled = [false; MAX_OPERANDS];
                scratch.tile = Some(Tile { axis, corner, column, rows, cols: len, filled });
                let mut positions = corner;
                for tile_row in 0..rows {
                    let begin = tile_row * below + m * inner + column;
                    let piece = &mut out.range(begin..begin + len);
                    let walk = self;
                    f(&mut Fetch { walk, positions, column, len, tile_row, scratch }, piece);
                    for (i, position) in positions.iter_mut().enumerate().take(self.operands) {
                        *position = position.wrapping_add_signed(self.nest.strides(i)[axis]);
                    }
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Tile {
    axis: usize,
    corner: Positions,
    column: usize,
    rows: usize,
    cols: usize,
    filled: [bool; MAX_OPERANDS],
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

/// Memory that operands pass through, taken from the pool when first needed.
#[derive(Default)]
struct Scratch {
    buffers: [Option<Buffer>; MAX_OPERANDS],
    tile: Option<Tile>,
}

/// Fetches the operands of one piece of the result.
pub(super) struct Fetch<'a> {
    walk: &'a Walk,
    positions: Positions,
    column: usize,
    len: usize,
    tile_row: usize,
    scratch: &'a mut Scratch,
}

impl Fetch<'_> {
    /// An operand of this piece.
    pub fn one<'s, T: Pod>(&'s mut self, operand: &Operand<'s, T>) -> Arg<'s, T> {
        self.prepare(operand);
        self.get(operand)
    }

    /// Two operands of this piece.
    pub fn two<'s, A: Pod, B: Pod>(
        &'s mut self,
        a: &Operand<'s, A>,
        b: &Operand<'s, B>,
    ) -> (Arg<'s, A>, Arg<'s, B>) {
        self.prepare(a);
        self.prepare(b);
        (self.get(a), self.get(b))
    }

    /// Three operands of this piece.
    pub fn three<'s, A: Pod, B: Pod, C: Pod>(
        &'s mut self,
        a: &Operand<'s, A>,
        b: &Operand<'s, B>,
        c: &Operand<'s, C>,
    ) -> (Arg<'s, A>, Arg<'s, B>, Arg<'s, C>) {
        self.prepare(a);
        self.prepare(b);
        self.prepare(c);
        (self.get(a), self.get(b), self.get(c))
    }

    fn position<T>(&self, operand: &Operand<'_, T>) -> usize {
        let shift = self.column as isize * operand.stride;
        self.positions[operand.slot].wrapping_add_signed(shift)
    }

    /// Copies the operand into its scratch memory if it cannot be used where it lies.
    fn prepare<T: Pod>(&mut self, operand: &Operand<'_, T>) {
        if operand.is_direct() {
            return;
        }
        let position = self.position(operand);
        let Scratch { buffers, tile } = &mut *self.scratch;
        let buffer = buffers[operand.slot].get_or_insert_with(|| {
            let len = if operand.tiled { TILE_ROWS * TILE_COLS } else { SCRATCH_LEN };
            Buffer::scratch(len * size_of::<T>())
        });
        let scratch = buffer.as_slice_mut::<T>();
        match tile {
            Some(tile) if operand.tiled => {
                if !std::mem::replace(&mut tile.filled[operand.slot], true) {
                    let shift = tile.column as isize * operand.stride;
                    let corner = tile.corner[operand.slot].wrapping_add_signed(shift);
                    let (rows, cols) = (tile.rows, tile.cols);
                    let out = &mut scratch[..rows * cols];
                    super::copy::transpose(operand.data, corner, operand.stride, [rows, cols], out);
                }
            }
            _ if operand.gathered => {
                self.walk.gather(operand, self.column, &mut scratch[..self.len]);
            }
            _ => {
                let out = &mut scratch[..self.len];
                super::copy::strided(operand.data, position, operand.stride, out);
            }
        }
    }

    fn get<'s, T: Pod>(&'s self, operand: &Operand<'s, T>) -> Arg<'s, T> {
        let position = self.position(operand);
        match (&self.scratch.buffers[operand.slot], operand.stride) {
            (_, 1) if operand.is_direct() => {
                if let Some(tile) =
                    self.scratch.tile.filter(|t| self.tile_row + ROWS_AHEAD < t.rows)
                {
                    let step = self.walk.nest.strides(operand.slot)[tile.axis];
                    let ahead = position.wrapping_add_signed(step * ROWS_AHEAD as isize);
                    prefetch(&operand.data[ahead..ahead + self.len]);
                }
                Arg::Slice(&operand.data[position..position + self.len])
            }
            (_, 0) if operand.is_direct() => Arg::Scalar(operand.data[position]),
            (Some(buffer), _) => {
                let begin = if operand.tiled { self.tile_row * self.len } else { 0 };
                Arg::Slice(&buffer.as_slice::<T>()[begin..begin + self.len])
            }
            (None, _) => unreachable!("prepare fills the scratch memory of indirect operands"),
        }
    }
}

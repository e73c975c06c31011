//! Hands the operands of a piece to what computes it: where they lie, or through scratch memory.

use bytemuck::Pod;
use swath_kernels::{Arg, Block, BlockArg, prefetch};

use super::super::copy;
use super::super::memory::Buffer;
use super::{MAX_OPERANDS, Operand, Positions, SCRATCH_LEN, TILE_LEN, Walk};

/// Rows of a tile by which an operand that is read where it lies is asked for ahead: its runs are too
/// short for the hardware to foresee. As many as kernels ask for ahead in blocks.
const ROWS_AHEAD: usize = 8;

/// A tile of the result, and which operands of it have been transposed.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub axis: usize,
    pub corner: Positions,
    pub column: usize,
    pub rows: usize,
    pub cols: usize,
    pub filled: [bool; MAX_OPERANDS],
}

/// Memory that operands pass through, taken from the pool when first needed.
#[derive(Default)]
pub(super) struct Scratch {
    buffers: [Option<Buffer>; MAX_OPERANDS],
    pub tile: Option<Tile>,
}

/// Fetches the operands of one piece of the result.
pub struct Fetch<'a> {
    walk: &'a Walk,
    positions: Positions,
    column: usize,
    len: usize,
    /// Of a tile: which row of it this piece is.
    pub(super) tile_row: usize,
    /// Of a block: its rows, the axis along which they follow one another, the distance in the result.
    rows: usize,
    row_axis: usize,
    stride: usize,
    scratch: &'a mut Scratch,
}

impl<'a> Fetch<'a> {
    /// A piece that is one run.
    pub(super) fn of_run(
        walk: &'a Walk,
        positions: Positions,
        column: usize,
        len: usize,
        scratch: &'a mut Scratch,
    ) -> Self {
        let (tile_row, rows, row_axis, stride) = (0, 1, 0, len);
        Fetch { walk, positions, column, len, tile_row, rows, row_axis, stride, scratch }
    }

    /// A piece of several.
    pub(super) fn with_rows(self, rows: usize, row_axis: usize, stride: usize) -> Self {
        Fetch { rows, row_axis, stride, ..self }
    }

    /// The rows of this piece.
    pub fn shape(&self) -> Block {
        Block { rows: self.rows, cols: self.len, stride: self.stride }
    }

    /// An operand of this piece, which may be of several rows.
    pub fn block_of_one<'s, T: Pod>(&'s mut self, operand: &Operand<'s, T>) -> BlockArg<'s, T> {
        self.prepare(operand);
        self.get_block(operand)
    }

    /// Two operands of this piece, which may be of several rows.
    pub fn block_of_two<'s, A: Pod, B: Pod>(
        &'s mut self,
        a: &Operand<'s, A>,
        b: &Operand<'s, B>,
    ) -> (BlockArg<'s, A>, BlockArg<'s, B>) {
        self.prepare(a);
        self.prepare(b);
        (self.get_block(a), self.get_block(b))
    }

    fn get_block<'s, T: Pod>(&'s self, operand: &Operand<'s, T>) -> BlockArg<'s, T> {
        if operand.is_direct() {
            let strides = self.walk.nest.strides(operand.slot);
            let stride = if self.rows > 1 { strides[self.row_axis] } else { 0 };
            let (data, start) = (operand.data, self.position(operand));
            return BlockArg { data, start, stride, is_value: operand.stride == 0 };
        }
        let buffer = self.scratch.buffers[operand.slot].as_ref();
        let data = buffer.expect("prepare fills the memory of indirect operands").as_slice();
        let start = if operand.tiled { self.tile_row * self.len } else { 0 };
        BlockArg { data, start, stride: self.len as isize, is_value: false }
    }

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
            let len = if operand.tiled { TILE_LEN } else { SCRATCH_LEN };
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
                    copy::transpose(operand.data, corner, operand.stride, [rows, cols], out);
                }
            }
            _ if operand.gathered => {
                self.walk.gather(operand, self.column, &mut scratch[..self.len]);
            }
            _ => {
                let out = &mut scratch[..self.len];
                copy::strided(operand.data, position, operand.stride, out);
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

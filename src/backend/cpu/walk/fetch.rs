//! Provides the operands of a piece of a walk: in place, or copied into scratch memory.

use bytemuck::Pod;
use swath_kernels::{Block, BlockArg, Permute};

use super::super::copy;
use super::{MAX_OPERANDS, Operand, Positions, SCRATCH_LEN, TILE_LEN, Walk};
use crate::runtime::memory::Buffer;

/// Scratch memory of the operands, allocated when first needed.
pub(super) type Scratch = [Option<Buffer>; MAX_OPERANDS];

/// Provider of the operands of one piece of the result.
pub struct Fetch<'a> {
    walk: &'a Walk,
    positions: Positions,
    column: usize,
    len: usize,
    /// Number of rows, the axis along which they follow one another, and their stride in the result.
    rows: usize,
    row_axis: usize,
    stride: usize,
    scratch: &'a mut Scratch,
}

impl<'a> Fetch<'a> {
    /// A piece of one run.
    pub(super) fn of_run(
        walk: &'a Walk,
        positions: Positions,
        column: usize,
        len: usize,
        scratch: &'a mut Scratch,
    ) -> Self {
        let (rows, row_axis, stride) = (1, 0, len);
        Fetch { walk, positions, column, len, rows, row_axis, stride, scratch }
    }

    /// A piece of several rows.
    pub(super) fn with_rows(self, rows: usize, row_axis: usize, stride: usize) -> Self {
        Fetch { rows, row_axis, stride, ..self }
    }

    /// The rows of this piece.
    pub fn shape(&self) -> Block {
        Block { rows: self.rows, cols: self.len, stride: self.stride }
    }

    /// Rows of the operands in this piece.
    pub fn rows<'s, T: Pod, const N: usize>(
        &'s mut self,
        operands: &[Operand<'s, T>; N],
    ) -> [BlockArg<'s, T>; N] {
        self.rows_of_two_types(operands, &[] as &[Operand<'s, T>; 0]).0
    }

    /// Like [`Fetch::rows`], for operands of two types.
    pub fn rows_of_two_types<'s, A: Pod, B: Pod, const N: usize, const M: usize>(
        &'s mut self,
        a: &[Operand<'s, A>; N],
        b: &[Operand<'s, B>; M],
    ) -> ([BlockArg<'s, A>; N], [BlockArg<'s, B>; M]) {
        a.iter().for_each(|x| self.prepare(x));
        b.iter().for_each(|x| self.prepare(x));
        (a.each_ref().map(|x| self.get(x)), b.each_ref().map(|x| self.get(x)))
    }

    /// Position of the operand's first element.
    fn position<T>(&self, operand: &Operand<'_, T>) -> usize {
        let shift = self.column as isize * operand.stride;
        self.positions[operand.slot].wrapping_add_signed(shift)
    }

    /// Stride from a row of the operand to the next.
    fn row_stride<T>(&self, operand: &Operand<'_, T>) -> isize {
        if self.rows > 1 { self.walk.nest.strides(operand.slot)[self.row_axis] } else { 0 }
    }

    /// Copies the operand into its scratch memory, row by row, unless it is used in place.
    fn prepare<T: Pod>(&mut self, operand: &Operand<'_, T>) {
        if operand.is_direct() {
            return;
        }
        let (position, row_stride) = (self.position(operand), self.row_stride(operand));
        let by_run = self.walk.tile.is_none() && !self.walk.has_short_runs;
        let len = if by_run { SCRATCH_LEN } else { TILE_LEN };
        let buffer =
            self.scratch[operand.slot].get_or_insert_with(|| Buffer::scratch(len * size_of::<T>()));
        let out = &mut buffer.as_slice_mut::<T>()[..self.rows * self.len];
        if operand.tiled {
            let dims = &[self.rows, self.len];
            let strides = &[row_stride, operand.stride];
            copy::permute(operand.data, Permute { dims, strides, offset: position }, out);
        } else if operand.gathered {
            self.walk.gather(operand, self.column, out);
        } else {
            for (r, out) in out.chunks_exact_mut(self.len).enumerate() {
                let first = position.wrapping_add_signed(r as isize * row_stride);
                copy::strided(operand.data, first, operand.stride, out);
            }
        }
    }

    fn get<'s, T: Pod>(&'s self, operand: &Operand<'s, T>) -> BlockArg<'s, T> {
        if operand.is_direct() {
            let (start, stride) = (self.position(operand), self.row_stride(operand));
            return BlockArg { data: operand.data, start, stride, is_value: operand.stride == 0 };
        }
        let buffer = self.scratch[operand.slot].as_ref();
        let data = buffer.expect("prepared before").as_slice();
        BlockArg { data, start: 0, stride: self.len as isize, is_value: false }
    }
}

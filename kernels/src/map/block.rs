//! Arguments of element-wise functions: slices, scalars, and blocks of evenly spaced rows.

use bytemuck::{Pod, cast_slice};

use super::Input;
use crate::copy::LINE;
use crate::simd::prefetch;

/// An argument of an element-wise function: a slice, or one value for all elements.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a, E> {
    /// One value per element.
    Slice(&'a [E]),
    /// The same value for every element.
    Scalar(E),
}

/// Evenly spaced rows of a slice, in either direction: one for each row of a [`Block`].
#[derive(Clone, Copy, Debug)]
pub struct BlockArg<'a, E> {
    /// The slice that holds the rows.
    pub data: &'a [E],
    /// Index of the first row's first element.
    pub start: usize,
    /// Distance between rows, in elements; 0 repeats one row.
    pub stride: isize,
    /// True if each row is one element, used for all columns.
    pub is_value: bool,
}

impl<'a, E: Copy> BlockArg<'a, E> {
    /// Returns row `r`, of `cols` elements.
    ///
    /// # Panics
    /// If the row exceeds the slice.
    #[track_caller]
    pub fn row(&self, r: usize, cols: usize) -> Arg<'a, E> {
        let shift = isize::try_from(r).ok().and_then(|r| r.checked_mul(self.stride));
        let start = shift.and_then(|shift| self.start.checked_add_signed(shift));
        let start = start.expect("a row that the slice holds");
        match self.is_value {
            true => Arg::Scalar(self.data[start]),
            false => Arg::Slice(&self.data[start..start + cols]),
        }
    }

    /// Prefetches row `r + ROWS_AHEAD` if rows are short and have gaps between them.
    #[inline]
    pub(crate) fn prefetch_ahead(&self, r: usize, shape: Block) {
        let (rows, cols) = (shape.rows, shape.cols);
        let has_gaps = !self.is_value && self.stride != 0 && self.stride != cols as isize;
        if has_gaps && r + ROWS_AHEAD < rows && cols * size_of::<E>() <= LONGEST_AHEAD {
            let first = self.data.as_ptr().wrapping_add(self.start);
            prefetch_row(first.wrapping_offset((r + ROWS_AHEAD) as isize * self.stride), cols);
        }
    }

    /// The same rows as elements of another type of the same size, bit for bit.
    ///
    /// # Panics
    /// If the types' sizes differ.
    pub fn cast<U: Pod>(&self) -> BlockArg<'a, U>
    where
        E: Pod,
    {
        assert!(
            size_of::<E>() == size_of::<U>(),
            "BlockArg::cast: the types have elements of different sizes"
        );
        let BlockArg { data, start, stride, is_value } = *self;
        BlockArg { data: cast_slice(data), start, stride, is_value }
    }

    /// The rows for a kernel; call [`BlockArg::check`] first.
    #[inline]
    pub(super) fn input(&self) -> Input<E> {
        // The first row may be anywhere in the slice, since the stride may be negative; without
        // rows, it may also be outside.
        let first = self.data.as_ptr().wrapping_add(self.start);
        Input { first, stride: self.stride, is_value: self.is_value }
    }

    /// The `cols` elements of row `r`, or its one value.
    #[inline(always)]
    pub(crate) fn elements(&self, r: usize, cols: usize) -> &'a [E] {
        let first = self.start.wrapping_add_signed(r as isize * self.stride);
        &self.data[first..][..if self.is_value { 1 } else { cols }]
    }

    /// Panics unless the slice holds the rows and columns of the block.
    #[inline]
    #[track_caller]
    pub(crate) fn check(&self, name: &str, shape: Block) {
        let BlockArg { data, start, stride, is_value } = *self;
        if shape.rows == 0 || shape.cols == 0 {
            return;
        }
        let width = if is_value { 1 } else { shape.cols };
        let reach = isize::try_from(shape.rows - 1).ok().and_then(|rows| rows.checked_mul(stride));
        let last = reach.and_then(|reach| start.checked_add_signed(reach));
        let end = last.and_then(|last| last.max(start).checked_add(width));
        if end.is_none_or(|end| end > data.len()) {
            rows_exceed(name, data.len(), shape);
        }
    }
}

impl<'a, E> From<&'a [E]> for Arg<'a, E> {
    fn from(x: &'a [E]) -> Self {
        Arg::Slice(x)
    }
}

impl<E> Arg<'_, E> {
    /// The argument as a block of one row.
    #[inline]
    pub fn as_row(&self) -> BlockArg<'_, E> {
        let (data, is_value) = match self {
            Arg::Slice(x) => (*x, false),
            Arg::Scalar(x) => (core::slice::from_ref(x), true),
        };
        BlockArg { data, start: 0, stride: 0, is_value }
    }
}

/// Rows of a result, evenly spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Number of rows.
    pub rows: usize,
    /// Elements of a row.
    pub cols: usize,
    /// Distance between the starts of rows; at least `cols`.
    pub stride: usize,
}

/// Rows of up to `LONGEST_AHEAD` bytes are prefetched `ROWS_AHEAD` rows ahead; the hardware
/// prefetches along longer ones. `a.t() + b` of 4096², in rows of 512 bytes, takes 2.4 times a
/// triad without prefetch, 1.8 times with it.
pub(super) const ROWS_AHEAD: usize = 8;
pub(super) const LONGEST_AHEAD: usize = 1024;

/// Prefetches the cache lines of a row, which need not exist.
pub(super) fn prefetch_row<T>(first: *const T, len: usize) {
    for at in (0..len * size_of::<T>()).step_by(LINE) {
        prefetch(first.cast::<u8>().wrapping_add(at));
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn rows_exceed(name: &str, len: usize, shape: Block) -> ! {
    panic!("{name}: {shape:?} exceeds {len} elements");
}

impl Block {
    /// A block of one row of `cols` elements.
    #[inline]
    pub fn row(cols: usize) -> Self {
        Block { rows: 1, cols, stride: cols }
    }

    /// Returns the block if a result of `len` elements holds it, and panics otherwise. An empty
    /// block becomes all zeros.
    #[inline]
    #[track_caller]
    pub(crate) fn checked(self, name: &str, len: usize) -> Block {
        let Block { rows, cols, stride } = self;
        if rows == 0 || cols == 0 {
            return Block { rows: 0, cols: 0, stride: 0 };
        }
        let end = (rows - 1).checked_mul(stride).and_then(|start| start.checked_add(cols));
        if end.is_none_or(|end| end > len) || (rows > 1 && stride < cols) {
            rows_exceed(name, len, self);
        }
        self
    }
}

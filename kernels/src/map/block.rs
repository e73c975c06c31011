//! Arguments of element-wise functions: slices, single values, and blocks of evenly spaced rows.

use bytemuck::{Pod, cast_slice};

use super::Input;
use crate::copy::LINE;
use crate::simd::prefetch;

/// Argument of an element-wise function: a slice, or one value for all elements.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a, E> {
    /// One value an element.
    Slice(&'a [E]),
    /// The same value for every element.
    Scalar(E),
}

/// Rows of an argument, evenly spaced in a slice in either direction: one for each row of a [`Block`].
#[derive(Clone, Copy, Debug)]
pub struct BlockArg<'a, E> {
    /// Where the rows lie.
    pub data: &'a [E],
    /// The first row's first element.
    pub start: usize,
    /// From a row to the next, in elements; 0 for one row again and again.
    pub stride: isize,
    /// Whether a row is one element, the value for all columns.
    pub is_value: bool,
}

impl<'a, E: Copy> BlockArg<'a, E> {
    /// Row `r`, of `cols` elements.
    ///
    /// # Panics
    /// If it exceeds the slice.
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

    /// Prefetches the row [`ROWS_AHEAD`] rows after row `r`, if rows are short and have gaps.
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

    /// Its rows for a kernel, once they were checked.
    #[inline]
    pub(super) fn input(&self) -> Input<E> {
        // Inside the slice if there are rows; relative to all of it, since they may go backwards.
        let first = self.data.as_ptr().wrapping_add(self.start);
        Input { first, stride: self.stride, is_value: self.is_value }
    }

    /// The elements of row `r`, `cols` of them, or the value alone.
    #[inline(always)]
    pub(crate) fn elements(&self, r: usize, cols: usize) -> &'a [E] {
        let first = self.start.wrapping_add_signed(r as isize * self.stride);
        &self.data[first..][..if self.is_value { 1 } else { cols }]
    }

    /// Panics unless the slice holds as many rows and columns as the block has.
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
    /// The argument of a block of one row.
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
    /// From the start of a row to the next; at least `cols`.
    pub stride: usize,
}

/// Rows by which rows are prefetched ahead, and the longest rows, in bytes, that are: along longer ones the
/// hardware does it. `a.t() + b` of 4096², in rows of 512 bytes, over a triad, ahead by 0: 2.4, 1: 2.2,
/// 4: 1.85, 8: 1.8.
pub(super) const ROWS_AHEAD: usize = 8;
pub(super) const LONGEST_AHEAD: usize = 1024;

/// Prefetches the lines of a row, which need not exist.
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
    /// One row of so many elements.
    #[inline]
    pub fn row(cols: usize) -> Self {
        Block { rows: 1, cols, stride: cols }
    }

    /// Itself, if a result of `len` elements holds these rows.
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

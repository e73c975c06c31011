//! Two-argument functions and what they take: slices, values, and the rows of a block, many in one
//! call.

use crate::output::Output;

/// An argument of a function of several: a slice, or one value for all elements.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a, E> {
    /// One value an element.
    Slice(&'a [E]),
    /// The same value for every element.
    Scalar(E),
}

/// An argument of a function of a [`Block`]: rows evenly apart in a slice, in either direction.
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

    /// The block from a row and a column on.
    #[inline]
    pub fn starting_at(&self, row: usize, column: usize) -> Self {
        let start = self.start.wrapping_add_signed(row as isize * self.stride);
        BlockArg { start: if self.is_value { start } else { start + column }, ..*self }
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

/// The rows that a function of many, such as [`Binary::run_block`], writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Number of rows.
    pub rows: usize,
    /// Elements of a row.
    pub cols: usize,
    /// From the start of a row to the next; at least `cols`.
    pub stride: usize,
}

/// A two-argument element-wise function of slices of `E`.
///
/// ```
/// use swath_kernels::{Arg, Binary, math::Sub};
///
/// let mut x = [1.0f32, 2.0, 3.0];
/// Sub::run_in_place_right(Arg::Scalar(1.0), &mut x);
/// assert_eq!(x, [0.0, -1.0, -2.0]);
/// ```
pub trait Binary<E> {
    /// The function's name.
    const NAME: &'static str;
    /// `y[i] = f(a[i], b[i])`.
    ///
    /// # Panics
    /// If a slice's length is not that of `y`.
    #[track_caller]
    fn run<O: Output<E> + ?Sized>(a: Arg<E>, b: Arg<E>, y: &mut O);
    /// `a[i] = f(a[i], b[i])`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[track_caller]
    fn run_in_place_left(a: &mut [E], b: Arg<E>);
    /// `b[i] = f(a[i], b[i])`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[track_caller]
    fn run_in_place_right(a: Arg<E>, b: &mut [E]);
    /// `y[r · stride + c] = f(a[r, c], b[r, c])` for all rows and columns, and nothing between.
    ///
    /// ```
    /// use swath_kernels::{Binary, Block, BlockArg, math::Sub};
    ///
    /// let (a, b) = ([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 10.0]);
    /// let mut y = [0.0; 6];
    /// let a = BlockArg { data: &a, start: 0, stride: 3, is_value: false };
    /// let column = BlockArg { data: &b, start: 0, stride: 1, is_value: true };
    /// Sub::run_block(a, column, Block { rows: 2, cols: 3, stride: 3 }, &mut y);
    /// assert_eq!(y, [0.0, 1.0, 2.0, -6.0, -5.0, -4.0]);
    /// ```
    ///
    /// # Panics
    /// If a row of an argument or of the result exceeds its slice, or rows of the result overlap.
    #[track_caller]
    fn run_block<O: Output<E> + ?Sized>(a: BlockArg<E>, b: BlockArg<E>, shape: Block, y: &mut O);
    /// As [`run_block`](Binary::run_block); an argument that is `None` is `y` itself.
    ///
    /// # Panics
    /// As [`run_block`](Binary::run_block).
    #[track_caller]
    fn run_block_in_place(arguments: [Option<BlockArg<E>>; 2], shape: Block, y: &mut [E]);
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

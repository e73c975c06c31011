//! Strided views of the operands. Bounds are checked here, once; everything below relies on them.

use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

use super::bounds::is_inside;
use crate::fold::strips::StripMut;
use crate::simd::Isa;

/// The reason why a view cannot be made or a product cannot be computed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum GemmError {
    /// An element of the view lies outside of the slice, or its index overflows.
    OutOfBounds {
        /// Index of element (0, 0).
        offset: usize,
        /// Rows and columns.
        shape: [usize; 2],
        /// Elements between rows and between columns.
        strides: [isize; 2],
        /// Elements in the slice.
        len: usize,
    },
    /// Two elements of an output share memory, or the check cannot rule it out.
    Overlap {
        /// Rows and columns.
        shape: [usize; 2],
        /// Elements between rows and between columns.
        strides: [isize; 2],
    },
    /// The operands do not have the shapes `[m, k]`, `[k, n]`, `[m, n]`.
    ShapeMismatch {
        /// Shape of A.
        a: [usize; 2],
        /// Shape of B.
        b: [usize; 2],
        /// Shape of C.
        c: [usize; 2],
    },
    /// The length of a bias is not the number of columns, or of rows, of C.
    BiasLength {
        /// Elements of the bias.
        len: usize,
        /// Columns or rows of C.
        expected: usize,
    },
    /// `beta` is not zero, but C is uninitialised memory.
    UninitializedOutput {
        /// Shape of C.
        c: [usize; 2],
    },
    /// B was packed for another instruction set than the one that runs the product.
    PackedForOtherIsa {
        /// The instruction set that B was packed for.
        packed: Isa,
        /// The instruction set that runs the product.
        running: Isa,
    },
}

impl fmt::Display for GemmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfBounds { offset, shape, strides, len } => write!(
                f,
                "gemm: a matrix of shape {shape:?} with strides {strides:?} at offset {offset} \
                 does not fit in {len} elements"
            ),
            Self::Overlap { shape, strides } => write!(
                f,
                "gemm: elements of an output of shape {shape:?} with strides {strides:?} overlap"
            ),
            Self::ShapeMismatch { a, b, c } => {
                write!(f, "gemm: the product of {a:?} and {b:?} does not have the shape {c:?}")
            }
            Self::BiasLength { len, expected } => {
                write!(f, "gemm: expected a bias of {expected} elements, got {len}")
            }
            Self::UninitializedOutput { c } => write!(
                f,
                "gemm: beta is not zero but the output of shape {c:?} is uninitialised memory"
            ),
            Self::PackedForOtherIsa { packed, running } => {
                write!(f, "gemm: B was packed for {packed} but the product runs on {running}")
            }
        }
    }
}

impl std::error::Error for GemmError {}

#[inline]
fn check_bounds(
    len: usize,
    offset: usize,
    shape: [usize; 2],
    strides: [isize; 2],
) -> Result<(), GemmError> {
    match is_inside(len, offset, shape, strides) {
        true => Ok(()),
        false => Err(GemmError::OutOfBounds { offset, shape, strides, len }),
    }
}

/// Returns the strides of contiguous rows, if `len` elements hold them.
#[inline]
fn rows_of(len: usize, shape: [usize; 2]) -> Result<[isize; 2], GemmError> {
    let strides = [isize::try_from(shape[1]).unwrap_or(isize::MAX), 1];
    match shape[0].checked_mul(shape[1]) {
        Some(count) if count <= len => Ok(strides),
        _ => Err(GemmError::OutOfBounds { offset: 0, shape, strides, len }),
    }
}

/// Checks that no two elements share an index: the axis with the smaller stride must end before one
/// step of the other.
fn check_distinct(shape: [usize; 2], strides: [isize; 2]) -> Result<(), GemmError> {
    let axis = |i: usize| (strides[i].unsigned_abs(), shape[i]);
    let (inner, outer) =
        if axis(0).0 < axis(1).0 { (axis(0), axis(1)) } else { (axis(1), axis(0)) };
    let distinct = match (inner.1 > 1, outer.1 > 1) {
        (false, false) => true,
        (true, false) => inner.0 > 0,
        (false, true) => outer.0 > 0,
        (true, true) => {
            inner.0 > 0 && inner.0.checked_mul(inner.1 - 1).is_some_and(|reach| reach < outer.0)
        }
    };
    let empty = shape.contains(&0);
    if distinct || empty { Ok(()) } else { Err(GemmError::Overlap { shape, strides }) }
}

/// A matrix to read: element (i, j) is `data[offset + i * strides[0] + j * strides[1]]`.
///
/// ```
/// use swath_kernels::MatRef;
/// let data = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let rows = MatRef::row_major(&data, [2, 3])?;
/// assert_eq!(rows.t().shape(), [3, 2]);
/// assert!(MatRef::new(&data, 0, [2, 3], [4, 1]).is_err()); // (1, 2) would be data[6]
/// # Ok::<(), swath_kernels::GemmError>(())
/// ```
#[derive(Debug)]
pub struct MatRef<'a, E> {
    /// Element (0, 0); with `shape` and `strides` all elements are inside the borrowed slice.
    pub(super) data: *const E,
    pub(super) shape: [usize; 2],
    pub(super) strides: [isize; 2],
    borrow: PhantomData<&'a [E]>,
}

// SAFETY: a MatRef is a shared borrow of elements, as `&[E]` is.
unsafe impl<E: Sync> Send for MatRef<'_, E> {}
// SAFETY: a MatRef is a shared borrow of elements, as `&[E]` is.
unsafe impl<E: Sync> Sync for MatRef<'_, E> {}

impl<E> Clone for MatRef<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for MatRef<'_, E> {}

impl<'a, E> MatRef<'a, E> {
    /// Makes a view of `data` with `shape` = `[rows, columns]` and any strides, also zero and
    /// negative.
    ///
    /// # Errors
    /// [`GemmError::OutOfBounds`] if an element lies outside of `data`.
    #[inline]
    pub fn new(
        data: &'a [E],
        offset: usize,
        shape: [usize; 2],
        strides: [isize; 2],
    ) -> Result<Self, GemmError> {
        check_bounds(data.len(), offset, shape, strides)?;
        let data = data.as_ptr().wrapping_add(offset);
        Ok(MatRef { data, shape, strides, borrow: PhantomData })
    }

    /// Makes a row-major view of `data`, without gaps.
    ///
    /// # Errors
    /// [`GemmError::OutOfBounds`] if `data` is shorter than the matrix.
    #[inline]
    pub fn row_major(data: &'a [E], shape: [usize; 2]) -> Result<Self, GemmError> {
        let strides = rows_of(data.len(), shape)?;
        Ok(MatRef { data: data.as_ptr(), shape, strides, borrow: PhantomData })
    }

    /// `[rows, columns]`.
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// Elements between rows and between columns.
    pub fn strides(&self) -> [isize; 2] {
        self.strides
    }

    /// The address of element (0, 0), which exists if the matrix is not empty.
    pub fn as_ptr(&self) -> *const E {
        self.data
    }

    /// Returns the transpose, a view of the same memory.
    #[must_use]
    #[inline(always)]
    pub fn t(self) -> Self {
        let ([rows, cols], [down, right]) = (self.shape, self.strides);
        MatRef { shape: [cols, rows], strides: [right, down], ..self }
    }

    /// Splits into rows `..at` and rows `at..`.
    ///
    /// # Panics
    /// If `at` is beyond the number of rows.
    #[must_use]
    pub fn split_rows(self, at: usize) -> (Self, Self) {
        let [rows, cols] = self.shape;
        assert!(at <= rows, "split_rows: row {at} is beyond the shape {:?}", self.shape);
        let below = step(self.data.cast_mut(), at, self.strides[0]);
        (
            MatRef { shape: [at, cols], ..self },
            MatRef { data: below, shape: [rows - at, cols], ..self },
        )
    }

    /// Splits into columns `..at` and columns `at..`.
    ///
    /// # Panics
    /// If `at` is beyond the number of columns.
    #[must_use]
    pub fn split_cols(self, at: usize) -> (Self, Self) {
        let (left, right) = self.t().split_rows(at);
        (left.t(), right.t())
    }

    /// Returns the part of `shape` that begins at element `at`.
    ///
    /// # Panics
    /// If the part exceeds the matrix.
    #[inline(always)]
    pub(super) fn part(self, at: [usize; 2], shape: [usize; 2]) -> Self {
        for axis in 0..2 {
            let rest = self.shape[axis].checked_sub(at[axis]);
            assert!(rest.is_some_and(|rest| shape[axis] <= rest), "a part beyond the matrix");
        }
        let row = step(self.data.cast_mut(), at[0], self.strides[0]);
        MatRef { data: step(row, at[1], self.strides[1]), shape, ..self }
    }
}

/// The pointer `count` strides further. The product cannot overflow for elements of a checked view,
/// and a pointer past its end is never read.
#[inline(always)]
pub(super) fn step<E>(data: *mut E, count: usize, stride: isize) -> *mut E {
    data.wrapping_offset((count as isize).wrapping_mul(stride))
}

/// A matrix to write, initialised or not, whose elements share no memory.
///
/// [`MatMut::split_rows`] and [`MatMut::split_cols`] split it into parts that threads may own.
///
/// ```
/// use swath_kernels::MatMut;
/// let mut data = [0.0f32; 6];
/// assert!(MatMut::new(&mut data, 0, [2, 3], [3, 1]).is_ok());
/// assert!(MatMut::new(&mut data, 0, [2, 3], [1, 1]).is_err()); // (0, 1) and (1, 0) are the same
/// ```
#[derive(Debug)]
pub struct MatMut<'a, E> {
    /// Element (0, 0); with `shape` and `strides` it gives elements that nobody else can access.
    pub(super) data: *mut E,
    pub(super) shape: [usize; 2],
    pub(super) strides: [isize; 2],
    pub(super) initialized: bool,
    borrow: PhantomData<&'a mut [E]>,
}

// SAFETY: a MatMut is an exclusive borrow of its elements, as `&mut [E]` is.
unsafe impl<E: Send> Send for MatMut<'_, E> {}
// SAFETY: a shared MatMut gives no access to its elements.
unsafe impl<E: Sync> Sync for MatMut<'_, E> {}

impl<'a, E> MatMut<'a, E> {
    fn checked(
        (data, len): (*mut E, usize),
        offset: usize,
        shape: [usize; 2],
        strides: [isize; 2],
        initialized: bool,
    ) -> Result<Self, GemmError> {
        check_bounds(len, offset, shape, strides)?;
        check_distinct(shape, strides)?;
        let data = data.wrapping_add(offset);
        Ok(MatMut { data, shape, strides, initialized, borrow: PhantomData })
    }

    /// Makes a view of initialised memory: element (i, j) is
    /// `data[offset + i * strides[0] + j * strides[1]]`.
    ///
    /// # Errors
    /// [`GemmError::OutOfBounds`] if an element lies outside of `data`, [`GemmError::Overlap`] if
    /// the strides do not keep the elements apart.
    pub fn new(
        data: &'a mut [E],
        offset: usize,
        shape: [usize; 2],
        strides: [isize; 2],
    ) -> Result<Self, GemmError> {
        Self::checked((data.as_mut_ptr(), data.len()), offset, shape, strides, true)
    }

    /// [`MatMut::new`] on memory that may be uninitialised; a product with `beta` = 0 initialises
    /// every element of the view.
    ///
    /// # Errors
    /// Those of [`MatMut::new`].
    pub fn uninit(
        data: &'a mut [MaybeUninit<E>],
        offset: usize,
        shape: [usize; 2],
        strides: [isize; 2],
    ) -> Result<Self, GemmError> {
        Self::checked((data.as_mut_ptr().cast(), data.len()), offset, shape, strides, false)
    }

    /// Makes a row-major view of initialised memory, without gaps.
    ///
    /// # Errors
    /// [`GemmError::OutOfBounds`] if `data` is shorter than the matrix.
    #[inline]
    pub fn row_major(data: &'a mut [E], shape: [usize; 2]) -> Result<Self, GemmError> {
        let strides = rows_of(data.len(), shape)?;
        Ok(MatMut {
            data: data.as_mut_ptr(),
            shape,
            strides,
            initialized: true,
            borrow: PhantomData,
        })
    }

    /// `[rows, columns]`.
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// Elements between rows and between columns.
    pub fn strides(&self) -> [isize; 2] {
        self.strides
    }

    /// Copies `row` to row `i`.
    ///
    /// # Panics
    /// If the lengths differ or the row does not exist.
    pub(super) fn write_row(&mut self, i: usize, row: &[E])
    where
        E: Copy,
    {
        let ([rows, cols], [down, right]) = (self.shape, self.strides);
        assert!(i < rows && row.len() == cols, "write_row: {} elements", row.len());
        if cols == 0 {
            return;
        }
        let first = step(self.data, i, down);
        if right == 1 {
            // SAFETY: i < rows, and there are columns: the row's `cols` elements are contiguous,
            // and in the slice that `self` borrows exclusively.
            unsafe { first.copy_from_nonoverlapping(row.as_ptr(), cols) };
            return;
        }
        for (j, &x) in row.iter().enumerate() {
            // SAFETY: i < rows and j < cols: the element is in the slice that `self` borrows
            // exclusively.
            unsafe { step(first, j, right).write(x) };
        }
    }

    /// Returns the part of `shape` that begins at element `at`.
    ///
    /// # Panics
    /// If the part exceeds the matrix.
    pub(super) fn part(&mut self, at: [usize; 2], shape: [usize; 2]) -> MatMut<'_, E> {
        let rows = self.reborrow().split_rows(at[0]).1.split_rows(shape[0]).0;
        rows.split_cols(at[1]).1.split_cols(shape[1]).0
    }

    /// True if there are no elements. The view's start is then meaningless, because no offset was
    /// checked.
    pub(super) fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// True if the matrix is row-major without gaps.
    pub(super) fn is_list(&self) -> bool {
        self.strides == [self.shape[1] as isize, 1]
    }

    /// Flattens a row-major matrix without gaps into one row.
    pub(super) fn flat(self) -> Self {
        assert!(self.is_list(), "flat: rows with gaps");
        MatMut { shape: [1, self.shape[0] * self.shape[1]], ..self }
    }

    /// Returns row `i` of an initialised output whose columns are contiguous.
    ///
    /// # Panics
    /// If the row does not exist, or the output is not of that kind.
    pub fn row_mut(&mut self, i: usize) -> &mut [E] {
        let [rows, cols] = self.shape;
        let plain = self.initialized && (self.strides[1] == 1 || cols <= 1);
        assert!(i < rows && plain, "row_mut: row {i} of the shape {:?}", self.shape);
        if cols == 0 {
            return &mut [];
        }
        // SAFETY: i < rows, and there are columns: the row's elements are initialised, contiguous,
        // and in the slice that `self` borrows exclusively.
        unsafe { core::slice::from_raw_parts_mut(step(self.data, i, self.strides[0]), cols) }
    }

    /// Returns the elements of an initialised output with contiguous rows, for the function `name`.
    ///
    /// # Panics
    /// If the output is not of that kind.
    #[track_caller]
    pub(crate) fn into_strip(self, name: &str) -> StripMut<'a, E> {
        let ([rows, cols], [down, right]) = (self.shape, self.strides);
        let stride = if rows > 1 { usize::try_from(down).ok() } else { Some(0) };
        let plain = self.initialized && (right == 1 || cols <= 1);
        assert!(plain && stride.is_some(), "{name}: the rows of the result are not contiguous");
        // SAFETY: the rows' elements are initialised, contiguous, and in the slice that `self` borrows exclusively.
        unsafe { StripMut::new(self.data, stride.unwrap_or(0), self.shape) }
    }

    /// Returns all elements of an initialised output that is row-major without gaps.
    pub fn list_mut(&mut self) -> Option<&mut [E]> {
        let [rows, cols] = self.shape;
        if !self.initialized || !self.is_list() {
            return None;
        }
        if self.is_empty() {
            return Some(&mut []);
        }
        // SAFETY: there are elements: the matrix's `rows * cols` from the first one on are
        // initialised, and in the slice that `self` borrows exclusively.
        Some(unsafe { core::slice::from_raw_parts_mut(self.data, rows * cols) })
    }

    /// The address of element (0, 0), which exists if the matrix is not empty.
    pub fn as_mut_ptr(&mut self) -> *mut E {
        self.data
    }

    /// Returns a view of the same elements with a shorter lifetime.
    pub fn reborrow(&mut self) -> MatMut<'_, E> {
        MatMut { borrow: PhantomData, ..*self }
    }

    /// Returns the transpose, a view of the same memory.
    #[must_use]
    #[inline(always)]
    pub fn t(self) -> Self {
        let ([rows, cols], [down, right]) = (self.shape, self.strides);
        MatMut { shape: [cols, rows], strides: [right, down], ..self }
    }

    /// Splits into rows `..at` and rows `at..`.
    ///
    /// # Panics
    /// If `at` is beyond the number of rows.
    #[must_use]
    pub fn split_rows(self, at: usize) -> (Self, Self) {
        let [rows, cols] = self.shape;
        assert!(at <= rows, "split_rows: row {at} is beyond the shape {:?}", self.shape);
        let below = step(self.data, at, self.strides[0]);
        let above = MatMut { shape: [at, cols], ..self };
        (above, MatMut { data: below, shape: [rows - at, cols], ..self })
    }

    /// Splits into columns `..at` and columns `at..`.
    ///
    /// # Panics
    /// If `at` is beyond the number of columns.
    #[must_use]
    pub fn split_cols(self, at: usize) -> (Self, Self) {
        let (left, right) = self.t().split_rows(at);
        (left.t(), right.t())
    }
}

//! Loops down the columns of a strip, for kernels that have already entered their instruction set: what
//! `rows.rs` does with one row is done here with a vector of columns. The functions passed must be
//! `#[inline(always)]` closures.
//!
//! ```text
//! maxima     m[c] = max x[i][c]
//! map        y[i][c] = f(x[i][c], …; p[c], …)
//! sums       s[c] = Σ f(x[i][c], …)                 terms in f64
//! sums_of    s[c] = Σ f(x[i][c]; p[c])              terms rounded to E
//! ```
//!
//! A column is summed in the tree of [the parent module](super), so its result has the bits of a row
//! of the same elements.

use core::marker::PhantomData;

use super::columns::Matrix;
use super::floats::load;
use super::{BLOCK, F64, LANES, Widen};
use crate::map::{Map, rows};
use crate::math::{Exp, Log};
use crate::simd::{Float, Lanes, MAX_LANES, Simd, Vector};

/// Columns of a row-major matrix, with checked bounds.
pub(crate) struct Strip<'a, E> {
    first: *const E,
    stride: usize,
    rows: usize,
    cols: usize,
    borrow: PhantomData<&'a [E]>,
}

impl<E> Clone for Strip<'_, E> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Strip<'_, E> {}

impl<'a, E> Strip<'a, E> {
    /// The elements `x[i * stride + c]`, i < `rows` and c < `cols`.
    ///
    /// # Panics
    /// If the last row ends beyond the slice.
    #[inline]
    #[track_caller]
    pub fn new(name: &str, (x, stride): (&'a [E], usize), [rows, cols]: [usize; 2]) -> Self {
        Strip::of(Matrix::new(name, x, rows, cols, stride))
    }

    /// The elements of a checked matrix.
    #[inline]
    pub fn of(Matrix { x, rows, cols, stride }: Matrix<&'a [E]>) -> Self {
        Strip { first: x.as_ptr(), stride, rows, cols, borrow: PhantomData }
    }

    /// Columns `from..from + cols`.
    ///
    /// # Panics
    /// If there are not as many.
    #[inline(always)]
    pub fn columns(self, from: usize, cols: usize) -> Self {
        assert!(from <= self.cols && cols <= self.cols - from, "columns beyond the strip");
        Strip { first: self.first.wrapping_add(from), cols, ..self }
    }

    /// The address of an element of column `c`, which may be one beyond the last.
    #[inline(always)]
    fn at(&self, row: usize, c: usize) -> *const E {
        self.first.wrapping_add(row * self.stride + c)
    }

    /// Reads one element.
    ///
    /// # Panics
    /// If the element does not exist.
    #[inline(always)]
    pub fn get(&self, row: usize, c: usize) -> E
    where
        E: Copy,
    {
        assert!(row < self.rows && c < self.cols, "an element beyond the strip");
        // SAFETY: the element is one of those that `new` checked, borrowed for `'a`.
        unsafe { self.at(row, c).read() }
    }
}

/// Columns of a row-major matrix to write.
pub(crate) struct StripMut<'a, E> {
    places: Strip<'a, E>,
    borrow: PhantomData<&'a mut [E]>,
}

impl<'a, E> StripMut<'a, E> {
    /// The elements at `first + i * stride + c`, i < `rows` and c < `cols`.
    ///
    /// # Safety
    /// They are initialised and borrowed exclusively.
    #[inline]
    pub unsafe fn new(first: *const E, stride: usize, [rows, cols]: [usize; 2]) -> Self {
        StripMut {
            places: Strip { first, stride, rows, cols, borrow: PhantomData },
            borrow: PhantomData,
        }
    }

    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        [self.places.rows, self.places.cols]
    }

    /// See [`Strip::columns`].
    #[inline(always)]
    pub fn columns(&mut self, from: usize, cols: usize) -> StripMut<'_, E> {
        StripMut { places: self.places.columns(from, cols), borrow: PhantomData }
    }

    /// The elements to read.
    #[inline(always)]
    pub fn read(&self) -> Strip<'_, E> {
        self.places
    }

    /// Writes one element.
    ///
    /// # Panics
    /// If the element does not exist.
    #[inline(always)]
    pub fn set(&mut self, row: usize, c: usize, value: E) {
        assert!(row < self.places.rows && c < self.places.cols, "an element beyond the strip");
        // SAFETY: the element is one of the matrix's, which is borrowed exclusively.
        unsafe { self.places.at(row, c).cast_mut().write(value) };
    }
}

/// Loads a vector of each slice, of the elements from `c` on.
#[inline(always)]
fn load_slices<E: Float, S: Lanes<E>, const K: usize>(
    simd: S,
    p: [&[E]; K],
    c: usize,
) -> [S::V; K] {
    let mut values = [simd.splat(E::ZERO); K];
    let mut k = 0;
    while k < K {
        let p = &p[k][c..];
        // SAFETY: the slice has that many elements.
        values[k] = unsafe { simd.load_up_to(p.as_ptr(), p.len()) };
        k += 1;
    }
    values
}

/// Loads a vector of each strip, of row `row` from column `c` on.
///
/// # Safety
/// The strips have the row.
#[inline(always)]
unsafe fn load_strips<E: Float, S: Lanes<E>, const N: usize>(
    simd: S,
    x: [Strip<'_, E>; N],
    row: usize,
    c: usize,
) -> [S::V; N] {
    let mut values = [simd.splat(E::ZERO); N];
    let mut k = 0;
    while k < N {
        // SAFETY: the caller promises the row, and columns beyond the strip are not read.
        values[k] = unsafe { simd.load_up_to(x[k].at(row, c), x[k].cols - c) };
        k += 1;
    }
    values
}

/// Panics unless all strips have this shape.
#[inline(always)]
fn same_shapes<E, const N: usize>(x: [Strip<'_, E>; N], rows: usize, cols: usize) {
    let mut k = 0;
    while k < N {
        assert!(x[k].rows == rows && x[k].cols == cols, "strips of different shapes");
        k += 1;
    }
}

/// Writes the largest element of each column, ignoring NaN and the sign of zero; −∞ if there is none.
#[inline(always)]
pub(crate) fn maxima<E: Float, S: Lanes<E>>(simd: S, x: Strip<'_, E>, y: &mut [E]) {
    assert!(y.len() == x.cols, "{} columns into {} results", x.cols, y.len());
    for c in (0..x.cols).step_by(S::LANES) {
        let mut best = simd.splat(-E::INFINITY);
        for row in 0..x.rows {
            // SAFETY: the row exists.
            let [x] = unsafe { load_strips(simd, [x], row, c) };
            best = x.max_or_other(best);
        }
        let y = &mut y[c..];
        // SAFETY: the slice has that many elements.
        unsafe { simd.store_up_to(y.as_mut_ptr(), y.len(), best) };
    }
}

/// Writes `y[i][c] = f(x[0][i][c], …; p[0][c], …)`.
#[inline(always)]
pub(crate) fn map<E: Float, S: Lanes<E>, const N: usize, const K: usize>(
    simd: S,
    x: [Strip<'_, E>; N],
    p: [&[E]; K],
    y: &mut StripMut<'_, E>,
    f: impl FnMut([S::V; N], [S::V; K]) -> S::V,
) {
    // SAFETY: `y` is borrowed exclusively.
    unsafe { write(simd, x, p, y.places, f) }
}

/// Writes `y[i][c] = f(y[i][c]; p[0][c], …)`, in place.
#[inline(always)]
pub(crate) fn change<E: Float, S: Lanes<E>, const K: usize>(
    simd: S,
    p: [&[E]; K],
    y: &mut StripMut<'_, E>,
    f: impl FnMut([S::V; 1], [S::V; K]) -> S::V,
) {
    // SAFETY: `y` is borrowed exclusively; every element is read before it is written.
    unsafe { write(simd, [y.places], p, y.places, f) }
}

/// # Safety
/// The elements of `y` may be written. One of `x` may be `y`.
#[inline(always)]
unsafe fn write<E: Float, S: Lanes<E>, const N: usize, const K: usize>(
    simd: S,
    x: [Strip<'_, E>; N],
    p: [&[E]; K],
    y: Strip<'_, E>,
    mut f: impl FnMut([S::V; N], [S::V; K]) -> S::V,
) {
    same_shapes(x, y.rows, y.cols);
    for c in (0..y.cols).step_by(S::LANES) {
        let p = load_slices(simd, p, c);
        for row in 0..y.rows {
            // SAFETY: all strips have the row, as compared above; the caller promises that `y` may
            // be written.
            unsafe {
                let value = f(load_strips(simd, x, row, c), p);
                simd.store_up_to(y.at(row, c).cast_mut(), y.cols - c, value);
            }
        }
    }
}

/// Writes `s[c] = Σ f(x[0][i][c], …)`, the terms computed in `f64`.
#[inline(always)]
pub(crate) fn sums<E: Float + Widen, S: Simd + Lanes<E>, const N: usize>(
    simd: S,
    x: [Strip<'_, E>; N],
    s: &mut [f64],
    mut f: impl FnMut([F64<S>; N]) -> F64<S>,
) {
    let rows = x[0].rows;
    same_shapes(x, rows, s.len());
    trees::<E, S>(
        simd,
        rows,
        s,
        #[inline(always)]
        |row, c, v| {
            let mut values = [Lanes::<f64>::splat(simd, 0.0); N];
            let c = c + v * <S as Lanes<f64>>::LANES;
            let mut k = 0;
            while k < N {
                let left = x[k].cols.saturating_sub(c);
                // SAFETY: the row exists; columns beyond the strip are not read.
                values[k] = unsafe { load(simd, E::FORMAT, x[k].at(row, c).cast(), left) };
                k += 1;
            }
            f(values)
        },
    );
}

/// Writes `s[c] = Σ f(x[i][c]; p[c])`, the terms rounded to `E`.
#[inline(always)]
pub(crate) fn sums_of<E: Float + Widen, S: Simd + Lanes<E>>(
    simd: S,
    x: Strip<'_, E>,
    p: &[E],
    s: &mut [f64],
    mut f: impl FnMut(<S as Lanes<E>>::V, <S as Lanes<E>>::V) -> <S as Lanes<E>>::V,
) {
    const { assert!(<S as Lanes<E>>::LANES <= MAX_LANES) };
    same_shapes([x], x.rows, s.len());
    let mut buffer = [E::ZERO; MAX_LANES];
    trees::<E, S>(
        simd,
        x.rows,
        s,
        #[inline(always)]
        |row, c, v| {
            let width = <S as Lanes<f64>>::LANES;
            // SAFETY: the row exists; the buffer holds a whole vector, as asserted above, of which
            // v is a part of `width` elements.
            unsafe {
                if v == 0 {
                    let ([x], [p]) = (load_strips(simd, [x], row, c), load_slices(simd, [p], c));
                    Lanes::<E>::store(simd, buffer.as_mut_ptr(), f(x, p));
                }
                load(simd, E::FORMAT, buffer.as_ptr().add(v * width).cast(), width)
            }
        },
    );
}

/// The most levels of the counter of blocks.
const LEVELS: usize = usize::BITS as usize - BLOCK.ilog2() as usize;
/// The most vectors of `f64` for a vector of `E`.
const PARTS: usize = 2;

/// Writes the sum of `rows` terms for each column. `term(row, c, v)` returns those of part v of the
/// vector of `E` from column c on; parts come in order.
#[inline(always)]
fn trees<E: Float + Widen, S: Simd + Lanes<E>>(
    simd: S,
    rows: usize,
    s: &mut [f64],
    mut term: impl FnMut(usize, usize, usize) -> F64<S>,
) {
    let parts = const {
        let parts = <S as Lanes<E>>::LANES / <S as Lanes<f64>>::LANES;
        assert!(0 < parts && parts <= PARTS);
        parts
    };
    let zero = Lanes::<f64>::splat(simd, 0.0);
    let mut lanes = [[zero; PARTS]; LANES];
    let mut counter = if rows > BLOCK { Some([[zero; PARTS]; LEVELS]) } else { None };
    for c in (0..s.len()).step_by(<S as Lanes<E>>::LANES) {
        let (mut blocks, mut total) = (0usize, [zero; PARTS]);
        for start in (0..rows).step_by(BLOCK) {
            let end = rows.min(start + BLOCK);
            // Lanes without a row hold 0, and adding such a lane changes nothing, so the tree over
            // the first lanes is that over all.
            let used = LANES.min((end - start).next_power_of_two());
            if used <= 4 && counter.is_none() {
                // A short column stays in registers.
                let mut few = [[zero; PARTS]; 4];
                for (row, sum) in (start..end).zip(&mut few) {
                    for v in 0..parts {
                        sum[v] = zero + term(row, c, v);
                    }
                }
                let pairs = [add::<S>(few[0], few[2], parts), add::<S>(few[1], few[3], parts)];
                total = add::<S>(pairs[0], pairs[1], parts);
                continue;
            }
            for lane in 0..used {
                let mut sum = [zero; PARTS];
                for row in (start + lane..end).step_by(LANES) {
                    for v in 0..parts {
                        sum[v] = sum[v] + term(row, c, v);
                    }
                }
                lanes[lane] = sum;
            }
            let mut half = used / 2;
            while half > 0 {
                for lane in 0..half {
                    for v in 0..parts {
                        lanes[lane][v] = lanes[lane][v] + lanes[lane + half][v];
                    }
                }
                half /= 2;
            }
            total = lanes[0];
            if let Some(counter) = &mut counter {
                // The binary counter of `Pairwise`, for a vector of columns.
                let level = blocks.trailing_ones() as usize;
                for below in 0..level {
                    total = add::<S>(counter[below], total, parts);
                }
                counter[level] = total;
                blocks += 1;
            }
        }
        if let Some(counter) = &counter {
            total = counter[blocks.trailing_zeros() as usize];
            let mut left = blocks & (blocks - 1);
            while left != 0 {
                total = add::<S>(counter[left.trailing_zeros() as usize], total, parts);
                left &= left - 1;
            }
        }
        for v in 0..parts {
            let at = c + v * <S as Lanes<f64>>::LANES;
            let s = s.get_mut(at..).unwrap_or_default();
            // SAFETY: the slice has that many elements.
            unsafe { simd.store_up_to(s.as_mut_ptr(), s.len(), total[v]) };
        }
    }
}

#[inline(always)]
fn add<S: Simd>(a: [F64<S>; PARTS], b: [F64<S>; PARTS], parts: usize) -> [F64<S>; PARTS] {
    let mut sum = a;
    for v in 0..parts {
        sum[v] = a[v] + b[v];
    }
    sum
}

/// Elements of a tile: 8 KiB of `f32`.
const TILE_LEN: usize = 2048;
/// The least and the most columns of a tile.
const MIN_COLS: usize = 32;
pub(crate) const TILE_COLS: usize = 128;

/// First column and number of columns of each tile of a matrix.
#[inline(always)]
pub(crate) fn tiles(rows: usize, cols: usize) -> impl Iterator<Item = (usize, usize)> {
    let fits = TILE_LEN / rows.max(1) / MIN_COLS * MIN_COLS;
    let width = fits.clamp(MIN_COLS, TILE_COLS);
    (0..cols).step_by(width).map(move |from| (from, width.min(cols - from)))
}

/// Writes the largest element of each column, and `Σ exp(x − largest)`.
#[inline(always)]
pub(crate) fn shifted_sums<E: Float + Widen, S: Simd + Lanes<E>>(
    simd: S,
    x: Strip<'_, E>,
    largest: &mut [E],
    sum: &mut [f64],
) where
    Exp: Map<E, 1>,
{
    maxima(simd, x, largest);
    sums_of(
        simd,
        x,
        largest,
        sum,
        #[inline(always)]
        |x, m| Exp::apply(simd, [x - m]),
    );
}

/// Replaces numbers by their natural logarithms.
#[inline(always)]
pub(crate) fn logs<S: Simd>(simd: S, x: &mut [f64]) {
    rows::change(
        simd,
        [],
        [x],
        #[inline(always)]
        |[], [x]| [<Log as Map<f64, 1>>::apply(simd, [x])],
    );
}

/// Rounds `f` of each number.
#[inline(always)]
pub(crate) fn round<E: Float>(x: &[f64], y: &mut [E], f: impl Fn(f64) -> f64) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = E::from_f64(f(x));
    }
}

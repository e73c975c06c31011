//! Indices of largest and smallest elements: of the first of equal ones, zeros being equal; of the first NaN
//! if there is one.
//!
//! ```text
//! along a slice                              side by side, for each column
//! best = x[0]                                best = row 0; index = 0
//! for each chunk of 256 elements             for each row
//!     v = the winner of the chunk                better = row beats best, or only the row is NaN
//!     any NaN: the first NaN, done               best = better ? row : best
//!     v beats best: best = v, note the chunk     index = better ? its number : index
//! the first element of the chunk that is best
//! ```
//!
//! 1. Along a slice an index is looked for once, in one chunk that the cache still holds.
//! 2. Side by side indices are numbers of the element type, so that one mask selects both; such a number
//!    is exact for a section of 2^24 rows, and sections are put together in integers.
//! 3. Winners of vectors are compared before their lanes are: most chunks have no new best.

use half::{bf16, f16};

use super::columns::{Erased, Matrix, Target};
use super::extremum::{BAND_COLS, Band, UNROLL, Wanted, in_f32, widened_bands};
use super::floats::{Accumulate, Floats};
use super::partial::{Located, Partial};
use super::prefetch_ahead;
use crate::convert::Convert;
use crate::dispatch::ElementTask;
use crate::map::{load_up_to, store_up_to};
use crate::simd::sealed::Sealed;
use crate::simd::{Float, Lanes, MAX_LANES, Mask, Vector};

/// Elements whose winner is found before it is compared with the best so far.
const CHUNK: usize = 256;

impl Wanted {
    /// Lanes of `x` that are better than those of `best`; zeros are equal.
    #[inline(always)]
    fn beats<V: Vector>(self, x: V, best: V) -> V::Mask {
        if self.largest { best.lt(x) } else { x.lt(best) }
    }
    /// The same, or either is NaN.
    #[inline(always)]
    fn beats_or_nan<V: Vector>(self, x: V, best: V) -> V::Mask {
        if self.largest { !x.le(best) } else { !best.le(x) }
    }
}

/// An extremum without magnitudes, `$largest` bound to a constant.
macro_rules! for_largest {
    ($wanted:ident, $largest:expr => $body:expr) => {
        match $largest {
            true => {
                let $wanted = Wanted { largest: true, magnitude: false };
                $body
            }
            false => {
                let $wanted = Wanted { largest: false, magnitude: false };
                $body
            }
        }
    };
}

/// The index of the extremum of a slice that is not empty.
struct FindIndex<'a, E> {
    x: &'a [E],
    largest: bool,
}

impl<E: Float> ElementTask<E> for FindIndex<'_, E> {
    type Home = Self;
    type Output = usize;
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) -> usize {
        for_largest!(wanted, self.largest => find(simd, self.x, wanted))
    }
}

#[inline(always)]
fn find<E: Float, S: Lanes<E>>(simd: S, x: &[E], wanted: Wanted) -> usize {
    const { assert!(S::LANES <= MAX_LANES) };
    let (mut best, mut found, mut at) = (x[0], 0, 0);
    while at < x.len() {
        let chunk = &x[at..(at + CHUNK).min(x.len())];
        let (winners, has_nan) = winners::<E, S>(simd, chunk, wanted);
        if has_nan {
            return at + first(simd, chunk, simd.splat(E::NAN));
        }
        if wanted.beats(winners, simd.splat(best)).any() {
            let mut lanes = [E::ZERO; MAX_LANES];
            // SAFETY: the assertion above: the array holds a whole vector.
            unsafe { simd.store(lanes.as_mut_ptr(), winners) };
            best = wanted.across(lanes, S::LANES);
            found = at;
        }
        at += CHUNK;
    }
    found + first(simd, &x[found..], simd.splat(best))
}

/// The winners of a chunk, and whether there is a NaN in it.
#[inline(always)]
fn winners<E: Float, S: Lanes<E>>(simd: S, x: &[E], wanted: Wanted) -> (S::V, bool) {
    // An element of the chunk stands in where there is none.
    let stand_in = simd.splat(x[0]);
    let (x, len) = (x.as_ptr(), x.len());
    let mut best = [stand_in; UNROLL];
    let mut nan = stand_in.is_nan();
    let mut at = 0;
    while len - at >= UNROLL * S::LANES {
        prefetch_ahead(simd, x.wrapping_add(at), UNROLL * S::LANES);
        for k in 0..UNROLL {
            // SAFETY: UNROLL whole vectors are left from `at` on.
            let v: S::V = unsafe { simd.load(x.add(at + k * S::LANES)) };
            nan = nan | v.is_nan();
            best[k] = wanted.winner(v, best[k]);
        }
        at += UNROLL * S::LANES;
    }
    while at < len {
        // SAFETY: `len - at` elements are left from `at` on.
        let v: S::V = unsafe { load_up_to(simd, x.add(at), len - at) };
        nan = nan | v.is_nan();
        best[0] = wanted.winner(v.select(simd.first(len - at), stand_in), best[0]);
        at += S::LANES;
    }
    let [a, b, c, d] = best;
    (wanted.winner(wanted.winner(a, b), wanted.winner(c, d)), nan.any())
}

/// The index of the first element that equals `wanted` or, as it does, is NaN. There is one.
#[inline(always)]
fn first<E: Float, S: Lanes<E>>(simd: S, x: &[E], wanted: S::V) -> usize {
    const { assert!(S::LANES <= MAX_LANES) };
    for at in (0..x.len()).step_by(S::LANES) {
        let left = x.len() - at;
        // SAFETY: `left` elements are left from `at` on.
        let v: S::V = unsafe { load_up_to(simd, x.as_ptr().add(at), left) };
        let here = (v.eq(wanted) | (v.is_nan() & wanted.is_nan())) & simd.first(left);
        if here.any() {
            let mut lanes = [E::ZERO; MAX_LANES];
            // SAFETY: the assertion above: the array holds a whole vector.
            unsafe {
                let marks = simd.splat(E::ONE).select(here, simd.splat(E::ZERO));
                simd.store(lanes.as_mut_ptr(), marks);
            }
            let mut l = 0;
            while l + 1 < S::LANES && lanes[l] != E::ONE {
                l += 1;
            }
            return at + l;
        }
    }
    0
}

/// Rows whose numbers are exact in every element type.
const SECTION: usize = 1 << 24;
/// Columns side by side: their winners and indices stay in the first-level cache.
const TILE: usize = 1024;
/// Rows that compete at a time.
const ROUND: usize = 8;

/// The index of the extremum of each column into `y`, which has room for a row; there are rows.
struct FindIndexColumns<'a, E> {
    x: Matrix<&'a [E]>,
    y: *mut i64,
    largest: bool,
}

impl<E: Float> ElementTask<E> for FindIndexColumns<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let FindIndexColumns { x: Matrix { x, rows, cols, stride }, y, largest } = self;
        let (mut best, mut indices) = ([E::ZERO; TILE], [E::ZERO; TILE]);
        for column in (0..cols).step_by(TILE) {
            let width = TILE.min(cols - column);
            for section in (0..rows).step_by(SECTION) {
                let end = rows.min(section + SECTION);
                let mut row = section;
                while row < end {
                    // SAFETY: the matrix was checked by `Matrix::new`; the rows lie within it.
                    let first_of_tile = unsafe { x.as_ptr().add(row * stride + column) };
                    let tile = Tile {
                        x: first_of_tile,
                        stride,
                        width,
                        best: &mut best,
                        indices: &mut indices,
                    };
                    let (number, count, fresh) = (row - section, ROUND.min(end - row), row == 0);
                    // SAFETY: as above.
                    for_largest!(wanted, largest => unsafe {
                        tile.compete(simd, number, count, fresh, wanted)
                    });
                    row += ROUND;
                }
                for c in 0..width {
                    // The index of a column whose winner this section has not changed is -1.
                    if indices[c] >= E::ZERO {
                        let index = section as i64 + indices[c].to_f64() as i64;
                        // SAFETY: `y` has room for a row.
                        unsafe { y.add(column + c).write(index) };
                    }
                    indices[c] = -E::ONE;
                }
            }
        }
    }
}

/// Rows of some columns, and their winners and indices so far.
struct Tile<'a, E> {
    x: *const E,
    stride: usize,
    width: usize,
    best: &'a mut [E; TILE],
    indices: &'a mut [E; TILE],
}

impl<E: Float> Tile<'_, E> {
    /// Lets `count` rows, the first of them number `row`, compete with the best so far or, if they are the
    /// first, among themselves.
    ///
    /// # Safety
    /// The rows are there.
    #[inline(always)]
    unsafe fn compete<S: Lanes<E>>(
        self,
        simd: S,
        row: usize,
        count: usize,
        fresh: bool,
        wanted: Wanted,
    ) {
        for c in (0..self.width).step_by(S::LANES) {
            let left = self.width - c;
            // SAFETY: the rows and the arrays have `left` more elements; those beyond are neither read nor
            // written.
            unsafe {
                let x = self.x.add(c);
                let (mut best, mut index) = match fresh {
                    true => (load_up_to(simd, x, left), simd.splat(E::ZERO)),
                    false => (
                        load_up_to(simd, self.best.as_ptr().add(c), left),
                        load_up_to(simd, self.indices.as_ptr().add(c), left),
                    ),
                };
                for k in 0..count {
                    let v: S::V = load_up_to(simd, x.add(k * self.stride), left);
                    let better = wanted.beats_or_nan(v, best) & !best.is_nan();
                    best = v.select(better, best);
                    let number = simd.splat(E::from_f64((row + k) as f64));
                    index = number.select(better, index);
                }
                store_up_to(simd, self.best.as_mut_ptr().add(c), left, best);
                store_up_to(simd, self.indices.as_mut_ptr().add(c), left, index);
            }
        }
    }
}

/// The extremum of floats that are not none, with its index.
pub(crate) fn located<const LARGEST: bool>(x: Floats<'_>) -> Located<f64, LARGEST> {
    fn of<E: Float, const LARGEST: bool>(x: &[E]) -> Located<f64, LARGEST> {
        let index = E::enter(FindIndex { x, largest: LARGEST });
        Located { value: x[index].to_f64(), index: index as i64, count: x.len() as i64 }
    }
    fn widened<H: Convert<f32>, const LARGEST: bool>(x: &[H]) -> Located<f64, LARGEST> {
        let mut found = Located::EMPTY;
        in_f32(x, |_, x| found = found.merge(of::<f32, LARGEST>(x)));
        found
    }
    match x {
        Floats::F32(x) => of(x),
        Floats::F64(x) => of(x),
        Floats::F16(x) => widened(x),
        Floats::Bf16(x) => widened(x),
    }
}

/// The indices of the extrema of columns, which have rows, into room for a row.
fn index_columns<H: Convert<f32>>(x: Matrix<&[H]>, y: *mut i64, largest: bool) {
    let mut indices = [0; BAND_COLS];
    widened_bands(x, |Band { wide, held, row, column, .. }| {
        let Matrix { x: wide, rows, cols, stride } = wide;
        let x = Matrix { x: &*wide, rows, cols, stride };
        f32::enter(FindIndexColumns { x, y: indices.as_mut_ptr(), largest });
        for (c, &index) in indices[..cols].iter().enumerate() {
            let index = index as usize;
            wide[c] = wide[index * cols + c];
            if let Some(above) = index.checked_sub(held) {
                // SAFETY: `y` has room for a row.
                unsafe { y.add(column + c).write((row + above) as i64) };
            }
        }
    });
}

/// The extrema of columns, which have rows, with their indices, or the indices alone.
pub(crate) fn located_columns<const LARGEST: bool>(
    x: Matrix<Floats<'_>>,
    y: Target<'_, i64, Located<f64, LARGEST>>,
) {
    fn of<E: Accumulate, const LARGEST: bool>(
        x: Matrix<&[E]>,
        y: Target<'_, i64, Located<f64, LARGEST>>,
        indices: fn(Matrix<&[E]>, *mut i64, bool),
    ) {
        assert!(x.rows > 0, "extrema of columns without rows");
        let y = match y.erased::<Located<f64, LARGEST>>(x.cols) {
            Erased::Results(y) => return indices(x, y.cast(), LARGEST),
            Erased::Partial(y) => y,
        };
        let mut found = [0; BAND_COLS];
        for column in (0..x.cols).step_by(BAND_COLS) {
            let cols = BAND_COLS.min(x.cols - column);
            let tile = Matrix { x: &x.x[column..], cols, ..x };
            indices(tile, found.as_mut_ptr(), LARGEST);
            for (c, &index) in found[..cols].iter().enumerate() {
                let value = tile.x[index as usize * x.stride + c].widened();
                let located = Located { value, index, count: x.rows as i64 };
                // SAFETY: `y` has room for a row.
                unsafe { y.add(column + c).write(located) };
            }
        }
    }
    let Matrix { x, rows, cols, stride } = x;
    match x {
        Floats::F32(x) => of(Matrix { x, rows, cols, stride }, y, |x, y, largest| {
            f32::enter(FindIndexColumns { x, y, largest });
        }),
        Floats::F64(x) => of(Matrix { x, rows, cols, stride }, y, |x, y, largest| {
            f64::enter(FindIndexColumns { x, y, largest });
        }),
        Floats::F16(x) => of(Matrix { x, rows, cols, stride }, y, index_columns::<f16>),
        Floats::Bf16(x) => of(Matrix { x, rows, cols, stride }, y, index_columns::<bf16>),
    }
}

//! Indices of largest and smallest elements: the first of equal ones, zeros being equal, or the
//! first NaN if there is one.
//!
//! ```text
//! along a slice                              for each column of a matrix
//! best = x[0]                                best = row 0; index = 0
//! for each chunk of 256 elements             for each row
//!     v = the winner of the chunk                better = row beats best, or only the row is NaN
//!     any NaN: the first NaN, done               best = better ? row : best
//!     v beats best: best = v, note the chunk     index = better ? its number : index
//! the first element of the chunk that is best
//! ```
//!
//! 1. Along a slice the index is searched once, in one chunk that the cache still holds.
//! 2. For columns, indices are numbers of the element type, so one mask selects both. Such a number
//!    is exact for a section of 2^24 rows; sections are combined in integers.
//! 3. The winners of a chunk are compared as vectors, and reduced to one number only if they
//!    improve on the best: most chunks do not.

use super::columns::{Erased, Matrix, Target};
use super::extremum::{Elements, UNROLL, Wanted};
use super::floats::{Accumulate, Format, for_format_in, load_as, read};
use super::partial::Located;
use super::{AHEAD, Source, prefetch};
use crate::dispatch::run;
use crate::simd::{Float, Lanes, MAX_LANES, Mask, Task, Vector};

/// Elements per chunk.
const CHUNK: usize = 256;

impl Wanted {
    /// The lanes where `x` is better than `best`; zeros are equal.
    #[inline(always)]
    fn beats<V: Vector>(self, x: V, best: V) -> V::Mask {
        if self.largest { best.lt(x) } else { x.lt(best) }
    }
    /// [`Wanted::beats`], and the lanes where either is NaN.
    #[inline(always)]
    fn beats_or_nan<V: Vector>(self, x: V, best: V) -> V::Mask {
        if self.largest { !x.le(best) } else { !best.le(x) }
    }
}

/// Evaluates an expression for an extremum without magnitudes, with `$largest` as a constant.
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

/// Finds the index of the extremum of at least one element.
struct FindIndex {
    x: Source,
    largest: bool,
}

impl<E: Float> Task<E> for FindIndex {
    type Home = (Self, E);
    type Output = usize;
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) -> usize {
        let FindIndex { x, largest } = self;
        // SAFETY: only `enter` makes this task; its caller promises the elements.
        for_format_in!(E, x.format, format => for_largest!(wanted, largest => unsafe {
            find::<E, S>(simd, Source { format, ..x }, wanted)
        }))
    }
}

/// # Safety
/// The source has an element, and the format may be loaded as `E`.
#[inline(always)]
unsafe fn find<E: Float, S: Lanes<E>>(simd: S, x: Source, wanted: Wanted) -> usize {
    const { assert!(S::LANES <= MAX_LANES) };
    // SAFETY: in all calls, ranges are below `len`, and the caller promises an element.
    unsafe {
        let mut best = E::from_f64(read(x.format, x.first[0]));
        let (mut found, mut at) = (0, 0);
        while at < x.len {
            let chunk = x.part(at, CHUNK);
            let (winners, has_nan) = winners::<E, S>(simd, chunk, wanted);
            if has_nan {
                return at + first::<E, S>(simd, chunk, simd.splat(E::NAN));
            }
            if wanted.beats(winners, simd.splat(best)).any() {
                let mut lanes = [E::ZERO; MAX_LANES];
                simd.store(lanes.as_mut_ptr(), winners);
                best = wanted.across(lanes, S::LANES);
                found = at;
            }
            at += CHUNK;
        }
        found + first::<E, S>(simd, x.part(found, CHUNK), simd.splat(best))
    }
}

impl Source {
    /// The elements from `at` on, at most `count`.
    ///
    /// # Safety
    /// There is an element at `at`.
    #[inline(always)]
    unsafe fn part(self, at: usize, count: usize) -> Self {
        // SAFETY: the caller promises the element at `at`.
        let first = unsafe { self.first[0].add(at * self.format.size()) };
        Source { first: [first; 2], format: self.format, len: count.min(self.len - at) }
    }
}

/// The winners of a chunk, and true if it has a NaN.
///
/// # Safety
/// See [`find`].
#[inline(always)]
unsafe fn winners<E: Float, S: Lanes<E>>(simd: S, x: Source, wanted: Wanted) -> (S::V, bool) {
    let Source { first: [x, _], format, len } = x;
    // An element of the chunk stands in for missing ones.
    // SAFETY: there is one.
    let stand_in = simd.splat(E::from_f64(unsafe { read(format, x) }));
    let mut best = [stand_in; UNROLL];
    let mut nan = stand_in.is_nan();
    let mut at = 0;
    while len - at >= UNROLL * S::LANES {
        let here = x.wrapping_add(at * format.size());
        prefetch(simd, here.wrapping_add(AHEAD), UNROLL * S::LANES * format.size());
        for k in 0..UNROLL {
            let here = here.wrapping_add(k * S::LANES * format.size());
            // SAFETY: UNROLL whole vectors are left from `at` on.
            let v: S::V = unsafe { load_as(simd, format, here, S::LANES) };
            nan = nan | v.is_nan();
            best[k] = wanted.winner(v, best[k]);
        }
        at += UNROLL * S::LANES;
    }
    while at < len {
        // SAFETY: `len - at` elements are left from `at` on.
        let v: S::V = unsafe { load_as(simd, format, x.add(at * format.size()), len - at) };
        nan = nan | v.is_nan();
        best[0] = wanted.winner(v.select(simd.first(len - at), stand_in), best[0]);
        at += S::LANES;
    }
    let [a, b, c, d] = best;
    (wanted.winner(wanted.winner(a, b), wanted.winner(c, d)), nan.any())
}

/// The index of the first element that equals `wanted`, or is NaN if `wanted` is. There must be
/// one.
///
/// # Safety
/// See [`find`].
#[inline(always)]
unsafe fn first<E: Float, S: Lanes<E>>(simd: S, x: Source, wanted: S::V) -> usize {
    const { assert!(S::LANES <= MAX_LANES) };
    for at in (0..x.len).step_by(S::LANES) {
        let left = x.len - at;
        let mut lanes = [E::ZERO; MAX_LANES];
        // SAFETY: `left` elements are left from `at` on; the array holds a whole vector, as
        // asserted above.
        unsafe {
            let here = x.first[0].add(at * x.format.size());
            let v: S::V = load_as(simd, x.format, here, left);
            let here = (v.eq(wanted) | (v.is_nan() & wanted.is_nan())) & simd.first(left);
            if !here.any() {
                continue;
            }
            let marks = simd.splat(E::ONE).select(here, simd.splat(E::ZERO));
            simd.store(lanes.as_mut_ptr(), marks);
        }
        return at + lanes.iter().position(|&mark| mark == E::ONE).unwrap_or(0);
    }
    0
}

/// Number of rows whose indices are exact in every element type.
const SECTION: usize = 1 << 24;
/// Columns per tile: their winners and indices stay in the L1 cache.
const TILE: usize = 1024;
/// Rows that compete at once.
const ROUND: usize = 8;

/// Writes the index of the extremum of each column into `y`, which has room for a row.
struct FindIndexColumns {
    x: Elements,
    y: *mut i64,
    largest: bool,
}

impl<E: Float> Task<E> for FindIndexColumns {
    type Home = (Self, E);
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let FindIndexColumns { x, y, largest } = self;
        let (mut best, mut indices) = ([E::ZERO; TILE], [E::ZERO; TILE]);
        for column in (0..x.cols).step_by(TILE) {
            let tile = x.columns(column, TILE.min(x.cols - column));
            for section in (0..x.rows).step_by(SECTION) {
                let end = x.rows.min(section + SECTION);
                for row in (section..end).step_by(ROUND) {
                    let rows = [row, ROUND.min(end - row), section];
                    // SAFETY: `Matrix::new` checked the matrix, and the rows are inside it.
                    for_format_in!(E, x.format, format => for_largest!(wanted, largest => unsafe {
                        let tile = Elements { format, ..tile };
                        compete(simd, tile, rows, &mut best, &mut indices, wanted)
                    }));
                }
                for c in 0..tile.cols {
                    // The index is -1 if this section has not changed the column's winner.
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

/// Compares `count` rows, from number `row` on, with the best so far, or, if they are the first,
/// with each other. Indices count from row `section`.
///
/// # Safety
/// The rows exist, and there are at most [`TILE`] columns.
#[inline(always)]
unsafe fn compete<E: Float, S: Lanes<E>>(
    simd: S,
    x: Elements,
    [row, count, section]: [usize; 3],
    best: &mut [E; TILE],
    indices: &mut [E; TILE],
    wanted: Wanted,
) {
    for c in (0..x.cols).step_by(S::LANES) {
        let left = x.cols - c;
        // SAFETY: the rows and the arrays have `left` more elements, and no more are accessed.
        unsafe {
            let (mut winner, mut index) = match row {
                0 => (x.load(simd, 0, c), simd.splat(E::ZERO)),
                _ => (
                    simd.load_up_to(best.as_ptr().add(c), left),
                    simd.load_up_to(indices.as_ptr().add(c), left),
                ),
            };
            let mut number = simd.splat(E::from_f64((row - section) as f64));
            let mut below = x.rows_from(row);
            for _ in 0..count {
                let v: S::V = below.load(simd, 0, c);
                let better = wanted.beats_or_nan(v, winner) & !winner.is_nan();
                winner = v.select(better, winner);
                index = number.select(better, index);
                number = number + simd.splat(E::ONE);
                below = below.rows_from(1);
            }
            simd.store_up_to(best.as_mut_ptr().add(c), left, winner);
            simd.store_up_to(indices.as_mut_ptr().add(c), left, index);
        }
    }
}

/// The extremum of a slice that is not empty, with its index.
#[inline]
pub(crate) fn located<E: Accumulate, const LARGEST: bool>(x: &[E]) -> Located<f64, LARGEST> {
    assert!(!x.is_empty(), "an extremum of no elements");
    // SAFETY: the slice is borrowed, and not empty.
    let index = unsafe { enter(x.as_ptr().cast(), x.len(), E::FORMAT, LARGEST) };
    Located { value: x[index].widened(), index: index as i64, count: x.len() as i64 }
}

/// Not generic, so that the kernels are compiled with this crate; takes numbers for the reason that
/// `fold_source` does.
///
/// # Safety
/// `x` is valid for reads of `len` elements of the format, at least one.
unsafe fn enter(x: *const u8, len: usize, format: Format, largest: bool) -> usize {
    match format {
        Format::F64 => {
            run::<f64, _>(FindIndex { x: Source { first: [x; 2], format, len }, largest })
        }
        _ => run::<f32, _>(FindIndex { x: Source { first: [x; 2], format, len }, largest }),
    }
}

/// [`enter`] for columns.
fn enter_columns(find: FindIndexColumns) {
    match find.x.format {
        Format::F64 => run::<f64, _>(find),
        _ => run::<f32, _>(find),
    }
}

/// The extrema of columns that have rows, with their indices, or the indices alone.
pub(crate) fn located_columns<E: Accumulate, const LARGEST: bool>(
    x: Matrix<&[E]>,
    y: Target<'_, i64, Located<f64, LARGEST>>,
) {
    let (matrix, elements) = (x, Elements::new(x));
    let y = match y.erased::<Located<f64, LARGEST>>(x.cols) {
        Erased::Results(y) => {
            return enter_columns(FindIndexColumns { x: elements, y: y.cast(), largest: LARGEST });
        }
        Erased::Partial(y) => y,
    };
    let mut found = [0; TILE];
    for first in (0..x.cols).step_by(TILE) {
        let cols = TILE.min(x.cols - first);
        let x = elements.columns(first, cols);
        enter_columns(FindIndexColumns { x, y: found.as_mut_ptr(), largest: LARGEST });
        for (c, &index) in found[..cols].iter().enumerate() {
            let value = matrix.x[index as usize * x.stride + first + c].widened();
            let located = Located { value, index, count: x.rows as i64 };
            // SAFETY: `y` has room for a row.
            unsafe { y.add(first + c).write(located) };
        }
    }
}

//! Where the largest or smallest element is: the first of equal ones, zeros being equal; the first NaN
//! if there is one.
//!
//! ```text
//! along a slice                              side by side, for each column
//! best = x[0]                                best = row 0; at = 0
//! for each chunk of 256 elements             for each row
//!     v = the winner of the chunk                better = row beats best, or only the row is NaN
//!     any NaN: the first NaN, done               best = better ? row : best
//!     v beats best: best = v, note the chunk     at = better ? its number : at
//! the first element of the chunk that is best
//! ```
//!
//! 1. Along a slice positions are looked for once, in one chunk that the cache still holds.
//! 2. Side by side they are numbers of the element type, so that one mask selects both; such a number
//!    is exact for a section of 2^24 rows, and sections are put together in integers.
//! 3. Winners of vectors are compared before their lanes are: most chunks have no new best.

use core::marker::PhantomData;

use super::ask_ahead;
use super::columns::Rows;
use super::extreme::Wanted;
use crate::dispatch::ElementTask;
use crate::map::{load_up_to, store_up_to};
use crate::simd::{Float, Lanes, Mask, Vector};

/// Elements whose winner is found before it is compared with the best so far.
const CHUNK: usize = 256;
/// Vectors in flight.
const UNROLL: usize = 4;

/// The position of the largest or smallest element of a slice that is not empty.
pub(crate) struct FindIndex<'a, E, W>(pub &'a [E], pub PhantomData<W>);

impl<E: Float, W: Wanted> ElementTask<E> for FindIndex<'_, E, W> {
    type Home = Self;
    type Output = usize;
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) -> usize {
        let x = self.0;
        let mut best = x[0];
        let mut found = 0;
        for (chunk, part) in x.chunks(CHUNK).enumerate() {
            let (winners, has_nan) = winners::<E, S, W>(simd, part);
            if has_nan {
                return chunk * CHUNK
                    + first(
                        simd,
                        part,
                        #[inline(always)]
                        |v: S::V| v.is_nan(),
                    );
            }
            if W::beats(winners, simd.splat(best)).any() {
                best = across::<E, S, W>(simd, winners);
                found = chunk;
            }
        }
        let part = &x[found * CHUNK..];
        let best = simd.splat(best);
        found * CHUNK
            + first(
                simd,
                part,
                #[inline(always)]
                |v: S::V| v.eq(best),
            )
    }
}

/// The winners of a chunk, and whether there is a NaN in it.
#[inline(always)]
fn winners<E: Float, S: Lanes<E>, W: Wanted>(simd: S, x: &[E]) -> (S::V, bool) {
    let (first, len) = (x.as_ptr(), x.len());
    // An element of the chunk stands in where there is none.
    let stand_in = simd.splat(x[0]);
    let mut best = [stand_in; UNROLL];
    let mut nan = stand_in.is_nan();
    let mut at = 0;
    while len - at >= UNROLL * S::LANES {
        ask_ahead(simd, first.wrapping_add(at), UNROLL * S::LANES);
        for (k, best) in best.iter_mut().enumerate() {
            // SAFETY: UNROLL whole vectors are left from `at` on.
            let v: S::V = unsafe { simd.load(first.add(at + k * S::LANES)) };
            nan = nan | v.is_nan();
            *best = W::winner(v, *best);
        }
        at += UNROLL * S::LANES;
    }
    while at < len {
        // SAFETY: `len - at` elements are left from `at` on.
        let v: S::V = unsafe { load_up_to(simd, first.add(at), len - at) };
        nan = nan | v.is_nan();
        best[0] = W::winner(v.select(simd.first(len - at), stand_in), best[0]);
        at += S::LANES;
    }
    let [a, b, c, d] = best;
    (W::winner(W::winner(a, b), W::winner(c, d)), nan.any())
}

/// The winner of the lanes, of which none is NaN.
#[inline(always)]
fn across<E: Float, S: Lanes<E>, W: Wanted>(simd: S, x: S::V) -> E {
    let mut lanes = [E::ZERO; 16];
    // SAFETY: no vector has more than 16 lanes.
    unsafe { simd.store(lanes.as_mut_ptr(), x) };
    let mut half = S::LANES;
    while half > 1 {
        half /= 2;
        for l in 0..half {
            lanes[l] = W::winner_of(lanes[l + half], lanes[l]);
        }
    }
    lanes[0]
}

/// The position of the first element of which `is_it` holds, as it does of one.
#[inline(always)]
fn first<E: Float, S: Lanes<E>>(simd: S, x: &[E], is_it: impl Fn(S::V) -> S::M) -> usize {
    for at in (0..x.len()).step_by(S::LANES) {
        let left = x.len() - at;
        // SAFETY: `left` elements are left from `at` on.
        let v: S::V = unsafe { load_up_to(simd, x.as_ptr().add(at), left) };
        let here = is_it(v) & simd.first(left);
        if here.any() {
            let mut lanes = [E::ZERO; 16];
            // SAFETY: no vector has more than 16 lanes.
            unsafe {
                let marks = simd.splat(E::ONE).select(here, simd.splat(E::ZERO));
                simd.store(lanes.as_mut_ptr(), marks);
            }
            return at + lanes.iter().position(|&mark| mark == E::ONE).unwrap_or(0);
        }
    }
    0
}

/// Rows whose numbers are exact in every element type.
const SECTION: usize = 1 << 24;
/// Columns side by side: their winners and positions stay in the first-level cache.
const TILE: usize = 1024;
/// Rows that compete at a time.
const ROUND: usize = 8;

/// The row of the largest or smallest of each column into `y`, which has room for a row; there are
/// rows.
pub(crate) struct FindIndexColumns<E, W> {
    pub x: Rows<E>,
    pub y: *mut i64,
    /// Which of the two.
    pub wanted: PhantomData<W>,
}

impl<E: Float, W: Wanted> ElementTask<E> for FindIndexColumns<E, W> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let Rows { first, rows, cols, stride } = self.x;
        for column in (0..cols).step_by(TILE) {
            let width = TILE.min(cols - column);
            let (mut best, mut places) = ([E::ZERO; TILE], [E::ZERO; TILE]);
            for section in (0..rows).step_by(SECTION) {
                let end = rows.min(section + SECTION);
                for band in (section..end).step_by(ROUND) {
                    let numbers = [band - section, ROUND.min(end - band)];
                    // SAFETY: the matrix was checked by `Rows::new`; the bands lie within it.
                    unsafe {
                        let x = first.add(band * stride + column);
                        let arrays = [&mut best, &mut places];
                        compete::<E, S, W>(simd, x, stride, numbers, width, arrays, band == 0);
                    }
                }
                for (c, place) in places[..width].iter_mut().enumerate() {
                    // A place that this section has not changed is -1.
                    if *place >= E::ZERO {
                        // SAFETY: `y` holds `cols` elements.
                        unsafe {
                            self.y.add(column + c).write(section as i64 + place.to_f64() as i64)
                        };
                    }
                    *place = -E::ONE;
                }
            }
        }
    }
}

/// Lets `count` rows from number `row` on compete with the best so far, or with the first of
/// themselves if there are none.
///
/// # Safety
/// `x` points to `count` rows of `width` elements.
#[inline(always)]
unsafe fn compete<E: Float, S: Lanes<E>, W: Wanted>(
    simd: S,
    x: *const E,
    stride: usize,
    [row, count]: [usize; 2],
    width: usize,
    [best, places]: [&mut [E; TILE]; 2],
    fresh: bool,
) {
    for c in (0..width).step_by(S::LANES) {
        // SAFETY: elements beyond `width` are neither read nor written, here and below.
        let first: S::V = unsafe { load_up_to(simd, x.add(c), width - c) };
        let (mut winner, mut place) = match fresh {
            true => (first, simd.splat(E::ZERO)),
            // SAFETY: as above; the arrays hold `width` elements.
            false => unsafe {
                let left = width - c;
                (
                    load_up_to(simd, best.as_ptr().add(c), left),
                    load_up_to(simd, places.as_ptr().add(c), left),
                )
            },
        };
        for k in 0..count {
            // SAFETY: as above; the row is one of the `count`.
            let v: S::V = unsafe { load_up_to(simd, x.add(k * stride + c), width - c) };
            let better = W::beats_or_nan(v, winner) & !winner.is_nan();
            winner = v.select(better, winner);
            place = simd.splat(E::from_f64((row + k) as f64)).select(better, place);
        }
        // SAFETY: as above.
        unsafe {
            store_up_to(simd, best.as_mut_ptr().add(c), width - c, winner);
            store_up_to(simd, places.as_mut_ptr().add(c), width - c, place);
        }
    }
}

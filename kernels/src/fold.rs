//! Folds whose shape depends on the length alone.
//!
//! A sum of rounded numbers depends on the order of its additions. Here the order is a tree that is
//! a function of the number of elements, whatever vectors, threads or memory layout feed it:
//!
//! ```text
//! sum(x[0..n]):
//!     for each block of 1024 elements (the last may be short):
//!         lane[0..16] = +0
//!         for each group of 16 elements (the last filled up with zeros):
//!             lane[l] += group[l]                              for l in 0..16
//!         for half in 8, 4, 2, 1:
//!             lane[l] += lane[l + half]                        for l in 0..half
//!         push lane[0] on the binary counter                   PairwiseSum
//!     fold the counter from its smallest entry up
//! ```
//!
//! 1. Sixteen lanes are two vectors of AVX-512, four of AVX2, eight of NEON: the same additions.
//! 2. Two or four chains of dependent additions leave the adders idle, so whole blocks are taken
//!    several at a time: eight vectors in flight whatever their width.
//! 3. `f32` is widened and summed in `f64`, which memory hides, and rounded once at the end.

pub(crate) mod columns;
pub(crate) mod extreme;
mod pairwise;
pub(crate) mod rows;
pub(crate) mod scan;
#[cfg(test)]
mod tests;

use crate::dispatch::{Task, run};
use crate::map::load_up_to;
use crate::simd::{Float, Lanes, Simd, Vector};
pub use pairwise::PairwiseSum;

/// Elements of a block: what a [`PairwiseSum`] takes at a time.
pub(crate) const BLOCK: usize = 1024;
/// Lanes of a block.
const LANES: usize = 16;

type F64<S> = <S as Lanes<f64>>::V;

/// Elements read as `f64` lanes, exactly.
pub(crate) trait Widen: Float {
    /// Reads a vector or, if that is less, `count` elements; other lanes are zero.
    ///
    /// # Safety
    /// `src` is valid for reads of `count` elements.
    unsafe fn widen_up_to<S: Simd>(simd: S, src: *const Self, count: usize) -> F64<S>;
    /// A vector's lanes, in as many vectors as they fill.
    fn widen<S: Simd + Lanes<Self>>(simd: S, x: <S as Lanes<Self>>::V) -> [F64<S>; 2];
}

impl Widen for f32 {
    #[inline(always)]
    unsafe fn widen_up_to<S: Simd>(simd: S, src: *const f32, count: usize) -> F64<S> {
        // SAFETY: neither branch reads more than `count` elements.
        unsafe {
            if count >= <S as Lanes<f64>>::LANES {
                simd.load_widened(src)
            } else {
                simd.load_first_widened(src, count)
            }
        }
    }
    #[inline(always)]
    fn widen<S: Simd + Lanes<f32>>(simd: S, x: <S as Lanes<f32>>::V) -> [F64<S>; 2] {
        simd.widen(x)
    }
}

impl Widen for f64 {
    #[inline(always)]
    unsafe fn widen_up_to<S: Simd>(simd: S, src: *const f64, count: usize) -> F64<S> {
        // SAFETY: as the caller promised.
        unsafe { load_up_to(simd, src, count) }
    }
    #[inline(always)]
    fn widen<S: Simd + Lanes<f64>>(_simd: S, x: F64<S>) -> [F64<S>; 2] {
        [x; 2]
    }
}

/// What a sum adds up: element i contributes a term to its lane.
trait Terms: Copy {
    /// Adds the terms of a vector of elements from `at` on or, if that is less, of `count`
    /// elements, the rest counting as zeros.
    ///
    /// # Safety
    /// `count` elements lie from `at` on.
    unsafe fn add_up_to<S: Simd>(self, simd: S, at: usize, count: usize, sum: F64<S>) -> F64<S>;
}

/// The elements themselves.
struct Elements<E>(*const E);

/// The products of two slices' elements: exact in `f64` if they are `f32`, else inside an FMA.
struct Products<E>(*const E, *const E);

impl<E> Clone for Elements<E> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<E> Copy for Elements<E> {}
impl<E> Clone for Products<E> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<E> Copy for Products<E> {}

impl<E: Widen> Terms for Elements<E> {
    #[inline(always)]
    unsafe fn add_up_to<S: Simd>(self, simd: S, at: usize, count: usize, sum: F64<S>) -> F64<S> {
        // SAFETY: the elements are there, as the caller promised.
        sum + unsafe { E::widen_up_to(simd, self.0.add(at), count) }
    }
}

impl<E: Widen> Terms for Products<E> {
    #[inline(always)]
    unsafe fn add_up_to<S: Simd>(self, simd: S, at: usize, count: usize, sum: F64<S>) -> F64<S> {
        // SAFETY: the elements are there, as the caller promised.
        let (a, b) = unsafe {
            let a = E::widen_up_to(simd, self.0.add(at), count);
            (a, E::widen_up_to(simd, self.1.add(at), count))
        };
        a.mul_add(b, sum)
    }
}

/// Pushes the blocks of `len` terms.
struct PushBlocks<'a, T> {
    terms: T,
    len: usize,
    sum: &'a mut PairwiseSum,
}

impl<T: Terms> Task for PushBlocks<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let PushBlocks { terms, len, sum } = self;
        let mut at = 0;
        // SAFETY: every block lies within `len`, and `terms` has `len` elements, see `push_sum`
        // and `push_dot`.
        unsafe {
            match LANES / <S as Lanes<f64>>::LANES {
                2 => at = whole_blocks::<S, T, 4>(simd, terms, len, sum),
                4 => at = whole_blocks::<S, T, 2>(simd, terms, len, sum),
                _ => {}
            }
            while at < len {
                let count = BLOCK.min(len - at);
                sum.push(block(simd, terms, at, count));
                at += count;
            }
        }
    }
}

/// Pushes all runs of `N` whole blocks; returns the number of elements done.
///
/// # Safety
/// `terms` has `len` elements.
#[inline(always)]
unsafe fn whole_blocks<S: Simd, T: Terms, const N: usize>(
    simd: S,
    terms: T,
    len: usize,
    sum: &mut PairwiseSum,
) -> usize {
    let width = <S as Lanes<f64>>::LANES;
    let mut at = 0;
    while len - at >= N * BLOCK {
        let mut lanes = [[Lanes::<f64>::splat(simd, 0.0); LANES]; N];
        for group in (at..at + BLOCK).step_by(LANES) {
            for (b, lanes) in lanes.iter_mut().enumerate() {
                for (v, lanes) in lanes.iter_mut().enumerate().take(LANES / width) {
                    let at = group + b * BLOCK + v * width;
                    // SAFETY: N whole blocks are left.
                    *lanes = unsafe { terms.add_up_to(simd, at, width, *lanes) };
                }
            }
        }
        for lanes in lanes {
            sum.push(across(simd, lanes));
        }
        at += N * BLOCK;
    }
    at
}

/// The sum of one block of `count` elements.
///
/// # Safety
/// `terms` has `at + count` elements.
#[inline(always)]
unsafe fn block<S: Simd, T: Terms>(simd: S, terms: T, at: usize, count: usize) -> f64 {
    let width = <S as Lanes<f64>>::LANES;
    let mut lanes = [Lanes::<f64>::splat(simd, 0.0); LANES];
    let whole = count - count % LANES;
    for group in (at..at + whole).step_by(LANES) {
        for (v, lanes) in lanes.iter_mut().enumerate().take(LANES / width) {
            // SAFETY: the group is whole.
            *lanes = unsafe { terms.add_up_to(simd, group + v * width, width, *lanes) };
        }
    }
    if whole < count {
        for (v, lanes) in lanes.iter_mut().enumerate().take(LANES / width) {
            let left = (count - whole).saturating_sub(v * width);
            let first = at + whole + (v * width).min(count - whole);
            // SAFETY: `left` elements lie from `first` on. Zeros are added as terms too: they turn
            // a lane of -0 into +0 on every instruction set alike.
            *lanes = unsafe { terms.add_up_to(simd, first, left, *lanes) };
        }
    }
    across(simd, lanes)
}

/// The tree over a block's lanes, which lie in the first vectors of the array.
#[inline(always)]
fn across<S: Simd>(simd: S, mut lanes: [F64<S>; LANES]) -> f64 {
    let width = <S as Lanes<f64>>::LANES;
    let mut vectors = LANES / width;
    while vectors > 1 {
        vectors /= 2;
        for v in 0..vectors {
            lanes[v] = lanes[v] + lanes[v + vectors];
        }
    }
    let mut out = [0.0; LANES];
    // SAFETY: no vector has more lanes than a block.
    unsafe { simd.store(out.as_mut_ptr(), lanes[0]) };
    let mut half = width;
    while half > 1 {
        half /= 2;
        for l in 0..half {
            out[l] += out[l + half];
        }
    }
    out[0]
}

/// The sum of at most one block, without a counter.
struct OneBlock<T> {
    terms: T,
    len: usize,
}

impl<T: Terms> Task for OneBlock<T> {
    type Output = f64;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        // SAFETY: `terms` has `len` elements, see `sum_block` and `dot_block`.
        unsafe { block(simd, self.terms, 0, self.len) }
    }
}

/// The sum of `len` elements, on an instruction set that was entered before.
///
/// # Safety
/// `x` is valid for reads of `len` elements.
#[inline(always)]
pub(crate) unsafe fn sum_within<E: Widen, S: Simd>(simd: S, x: *const E, len: usize) -> f64 {
    // SAFETY: as the caller promised.
    unsafe { terms_within(simd, Elements(x), len) }
}

/// The sum of `len` products, as [`sum_within`].
///
/// # Safety
/// `a` and `b` are valid for reads of `len` elements.
#[inline(always)]
pub(crate) unsafe fn dot_within<E: Widen, S: Simd>(
    simd: S,
    a: *const E,
    b: *const E,
    len: usize,
) -> f64 {
    // SAFETY: as the caller promised.
    unsafe { terms_within(simd, Products(a, b), len) }
}

#[inline(always)]
unsafe fn terms_within<S: Simd, T: Terms>(simd: S, terms: T, len: usize) -> f64 {
    if len <= BLOCK {
        // SAFETY: as the caller promised.
        return unsafe { block(simd, terms, 0, len) };
    }
    let mut sum = PairwiseSum::new();
    PushBlocks { terms, len, sum: &mut sum }.run(simd);
    sum.finish()
}

/// The sum of a slice of at most a block; +0 if it is empty.
#[inline(always)]
pub(crate) fn sum_block<E: Widen>(x: &[E]) -> f64 {
    run(OneBlock { terms: Elements(x.as_ptr()), len: x.len() })
}

/// The sum of products of two slices of at most a block. The caller has compared the lengths.
#[inline(always)]
pub(crate) fn dot_block<E: Widen>(a: &[E], b: &[E]) -> f64 {
    run(OneBlock { terms: Products(a.as_ptr(), b.as_ptr()), len: a.len().min(b.len()) })
}

/// Pushes the blocks of a slice.
#[inline(always)]
pub(crate) fn push_sum<E: Widen>(sum: &mut PairwiseSum, x: &[E]) {
    run(PushBlocks { terms: Elements(x.as_ptr()), len: x.len(), sum });
}

/// Pushes the blocks of two slices' products. The caller has compared the lengths.
#[inline(always)]
pub(crate) fn push_dot<E: Widen>(sum: &mut PairwiseSum, a: &[E], b: &[E]) {
    let len = a.len().min(b.len());
    run(PushBlocks { terms: Products(a.as_ptr(), b.as_ptr()), len, sum });
}

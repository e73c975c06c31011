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
//! 3. Narrower floats are widened and summed in `f64`, which memory hides, and rounded once at the end.
//!
//! Products, sums of squares and moments have the same tree: what an element adds to its lane
//! ([`Terms`]), and what neighbours become ([`Partial`]), are all that differs.
//!
//! | file | what |
//! |---|---|
//! | `terms.rs` | what elements add to their lanes |
//! | `partial.rs` | what blocks fold to, and results of it |
//! | `pairwise.rs` | the binary counter |
//! | `columns.rs` | the tree over the rows of a matrix |
//! | `rows.rs` | sums inside other kernels |
//! | `extreme.rs`, `find.rs` | largest and smallest elements, and where they are: no tree |

pub(crate) mod columns;
pub(crate) mod extreme;
pub(crate) mod find;
mod pairwise;
pub(crate) mod partial;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod terms;
#[cfg(test)]
mod tests;

use core::slice::from_raw_parts;

use half::{bf16, f16};

use crate::convert::{bf16_from_f32, f16_from_f32, odd_f32};
use crate::copy::LINE;
use crate::dispatch::{Task, run};
use crate::map::load_up_to;
use crate::simd::{Lanes, Simd, Token};
pub use pairwise::{Pairwise, PairwiseSum};
use partial::Partial;
use terms::{Each, Products, Sum, Term, Terms};

/// Elements of a block: what a [`PairwiseSum`] takes at a time.
pub(crate) const BLOCK: usize = 1024;
/// Lanes of a block.
const LANES: usize = 16;

type F64<S> = <S as Lanes<f64>>::V;

/// How many bytes ahead of a single run lines are asked for: farther than a core looks on its own, and
/// than the hardware goes beyond the end of a page. Folds by blocks ask as many elements ahead as they
/// take at a time.
const AHEAD: usize = 4096;

/// Asks for the lines of `count` elements from `x` on, which need not exist.
#[inline(always)]
pub(crate) fn ask_for<E, S: Token>(simd: S, x: *const E, count: usize) {
    for line in (0..count * size_of::<E>()).step_by(LINE) {
        simd.prefetch(x.cast::<u8>().wrapping_add(line));
    }
}

/// Asks for the lines [`AHEAD`] of `count` elements from `x` on.
#[inline(always)]
pub(crate) fn ask_ahead<E, S: Token>(simd: S, x: *const E, count: usize) {
    ask_for(simd, x.wrapping_byte_add(AHEAD), count);
}

/// Elements that folds read as `f64` lanes, exactly.
pub(crate) trait Widen: Copy {
    /// Reads a vector or, if that is less, `count` elements; other lanes are zero.
    ///
    /// # Safety
    /// `src` is valid for reads of `count` elements.
    unsafe fn widen_up_to<S: Simd>(simd: S, src: *const Self, count: usize) -> F64<S>;
    /// The same of one element.
    fn widened(self) -> f64;
    /// The nearest element, ties to even.
    fn rounded(x: f64) -> Self;
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
    fn widened(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn rounded(x: f64) -> f32 {
        x as f32
    }
}

impl Widen for f64 {
    #[inline(always)]
    unsafe fn widen_up_to<S: Simd>(simd: S, src: *const f64, count: usize) -> F64<S> {
        // SAFETY: as the caller promised.
        unsafe { load_up_to(simd, src, count) }
    }
    #[inline(always)]
    fn widened(self) -> f64 {
        self
    }
    #[inline(always)]
    fn rounded(x: f64) -> f64 {
        x
    }
}

macro_rules! widen_halves {
    ($($t:ident $load:ident $from_f32:ident;)*) => {$(
        impl Widen for $t {
            #[inline(always)]
            unsafe fn widen_up_to<S: Simd>(simd: S, src: *const $t, count: usize) -> F64<S> {
                if count >= <S as Lanes<f64>>::LANES {
                    // SAFETY: a whole vector may be read; the type is its bits.
                    return unsafe { Lanes::<f64>::$load(simd, src.cast()) };
                }
                let mut bits = [0; LANES];
                for (i, bits) in bits.iter_mut().enumerate().take(count) {
                    // SAFETY: `count` elements may be read.
                    *bits = unsafe { src.add(i).read() }.to_bits();
                }
                // SAFETY: no vector has more lanes than the array.
                unsafe { Lanes::<f64>::$load(simd, bits.as_ptr()) }
            }
            #[inline(always)]
            fn widened(self) -> f64 {
                self.to_f64()
            }
            #[inline(always)]
            fn rounded(x: f64) -> $t {
                $t::from_bits($from_f32(odd_f32(x)))
            }
        }
    )*};
}
widen_halves! {
    f16 load_f16 f16_from_f32;
    bf16 load_bf16 bf16_from_f32;
}

/// Pushes the blocks of the terms.
struct PushBlocks<'a, T: Terms<M>, const M: usize> {
    terms: T,
    into: &'a mut Pairwise<T::Entry>,
}

impl<T: Terms<M>, const M: usize> Task for PushBlocks<'_, T, M> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let PushBlocks { terms, into } = self;
        let (len, mut at) = (terms.len(), 0);
        // SAFETY: every block lies within `len`.
        unsafe {
            match (LANES / <S as Lanes<f64>>::LANES, M) {
                (2, 1) => at = whole_blocks::<S, T, M, 4>(simd, terms, into),
                (2, 2) | (4, 1) => at = whole_blocks::<S, T, M, 2>(simd, terms, into),
                _ => {}
            }
            while at < len {
                let count = BLOCK.min(len - at);
                into.push(block(simd, terms, at, count));
                at += count;
            }
        }
    }
}

/// Pushes all runs of `N` whole blocks; returns the number of elements done.
#[inline(always)]
fn whole_blocks<S: Simd, T: Terms<M>, const M: usize, const N: usize>(
    simd: S,
    terms: T,
    into: &mut Pairwise<T::Entry>,
) -> usize {
    let width = <S as Lanes<f64>>::LANES;
    let mut at = 0;
    while terms.len() - at >= N * BLOCK {
        let mut lanes = [[[Lanes::<f64>::splat(simd, T::Term::START); M]; LANES]; N];
        let mut shifts = [0.0; N];
        for (b, shift) in shifts.iter_mut().enumerate() {
            // SAFETY: N whole blocks are left.
            *shift = unsafe { terms.shift(at + b * BLOCK) };
        }
        for group in (at..at + BLOCK).step_by(LANES) {
            for (b, (lanes, &shift)) in lanes.iter_mut().zip(&shifts).enumerate() {
                terms.ask_for(simd, group + (b + N) * BLOCK);
                for (v, lanes) in lanes.iter_mut().enumerate().take(LANES / width) {
                    let at = group + b * BLOCK + v * width;
                    // SAFETY: N whole blocks are left.
                    *lanes = unsafe { terms.take_up_to(simd, at, width, shift, *lanes) };
                }
            }
        }
        for (lanes, shift) in lanes.into_iter().zip(shifts) {
            into.push(T::Term::entry(shift, BLOCK, across::<S, T, M>(simd, lanes)));
        }
        at += N * BLOCK;
    }
    at
}

/// The fold of one block of `count` elements.
///
/// # Safety
/// `terms` has `at + count` elements.
#[inline(always)]
unsafe fn block<S: Simd, T: Terms<M>, const M: usize>(
    simd: S,
    terms: T,
    at: usize,
    count: usize,
) -> T::Entry {
    if count == 0 {
        return T::Entry::EMPTY;
    }
    let width = <S as Lanes<f64>>::LANES;
    let mut lanes = [[Lanes::<f64>::splat(simd, T::Term::START); M]; LANES];
    // SAFETY: the block has an element.
    let shift = unsafe { terms.shift(at) };
    let whole = count - count % LANES;
    for group in (at..at + whole).step_by(LANES) {
        terms.ask_for(simd, group + BLOCK);
        for (v, lanes) in lanes.iter_mut().enumerate().take(LANES / width) {
            // SAFETY: the group is whole.
            *lanes = unsafe { terms.take_up_to(simd, group + v * width, width, shift, *lanes) };
        }
    }
    if whole < count {
        for (v, lanes) in lanes.iter_mut().enumerate().take(LANES / width) {
            let left = (count - whole).saturating_sub(v * width);
            let first = at + whole + (v * width).min(count - whole);
            // SAFETY: `left` elements lie from `first` on. Lanes without an element take the term
            // of none: it turns a lane of -0 into +0 on every instruction set alike.
            *lanes = unsafe { terms.take_up_to(simd, first, left, shift, *lanes) };
        }
    }
    T::Term::entry(shift, count, across::<S, T, M>(simd, lanes))
}

/// The tree over a block's lanes, which lie in the first vectors of the array.
#[inline(always)]
fn across<S: Simd, T: Terms<M>, const M: usize>(simd: S, lanes: [[F64<S>; M]; LANES]) -> [f64; M] {
    let mut out = [0.0; M];
    for (m, out) in out.iter_mut().enumerate() {
        let mut of_m = [Lanes::<f64>::splat(simd, T::Term::START); LANES];
        for (number, lane) in of_m.iter_mut().zip(&lanes).take(LANES / <S as Lanes<f64>>::LANES) {
            *number = lane[m];
        }
        *out = halve(simd, of_m, T::Term::join::<F64<S>>, T::Term::join::<f64>);
    }
    out
}

/// The lanes' halves joined until one is left.
#[inline(always)]
fn halve<S: Simd>(
    simd: S,
    mut lanes: [F64<S>; LANES],
    join: impl Fn(F64<S>, F64<S>) -> F64<S>,
    join_numbers: impl Fn(f64, f64) -> f64,
) -> f64 {
    let width = <S as Lanes<f64>>::LANES;
    let mut vectors = LANES / width;
    while vectors > 1 {
        vectors /= 2;
        for v in 0..vectors {
            lanes[v] = join(lanes[v], lanes[v + vectors]);
        }
    }
    let mut out = [0.0; LANES];
    // SAFETY: no vector has more lanes than a block.
    unsafe { simd.store(out.as_mut_ptr(), lanes[0]) };
    let mut half = width;
    while half > 1 {
        half /= 2;
        for l in 0..half {
            out[l] = join_numbers(out[l], out[l + half]);
        }
    }
    out[0]
}

/// The tree over the lanes of a sum.
#[inline(always)]
fn sum_across<S: Simd>(simd: S, lanes: [F64<S>; LANES]) -> f64 {
    halve(simd, lanes, Sum::join::<F64<S>>, Sum::join::<f64>)
}

/// The fold of at most one block, without a counter.
struct OneBlock<T, const M: usize> {
    terms: T,
}

impl<T: Terms<M>, const M: usize> Task for OneBlock<T, M> {
    type Home = Self;
    type Output = T::Entry;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> T::Entry {
        // SAFETY: these are all there are.
        unsafe { block(simd, self.terms, 0, self.terms.len()) }
    }
}

/// The sum of `len` elements, on an instruction set that was entered before.
///
/// # Safety
/// `x` is valid for reads of `len` elements.
#[inline(always)]
pub(crate) unsafe fn sum_within<E: Widen, S: Simd>(simd: S, x: *const E, len: usize) -> f64 {
    // SAFETY: as the caller promised.
    terms_within(simd, Each::new(unsafe { from_raw_parts(x, len) }, Sum))
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
    terms_within(simd, unsafe { Products::new(from_raw_parts(a, len), from_raw_parts(b, len)) })
}

#[inline(always)]
fn terms_within<S: Simd, T: Terms<1, Entry = f64>>(simd: S, terms: T) -> f64 {
    if terms.len() <= BLOCK {
        return OneBlock { terms }.run(simd);
    }
    let mut sum = PairwiseSum::new();
    PushBlocks { terms, into: &mut sum }.run(simd);
    sum.finish()
}

/// Pushes the blocks of the terms.
#[inline(always)]
pub(crate) fn push<T: Terms<M>, const M: usize>(terms: T, into: &mut Pairwise<T::Entry>) {
    match terms.len() {
        0 => {}
        1..=BLOCK => into.push(run(OneBlock { terms })),
        _ => run(PushBlocks { terms, into }),
    }
}

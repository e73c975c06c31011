//! Reductions whose shape depends on the length alone.
//!
//! A sum of rounded numbers depends on the order of its additions. Here the order is a tree that is
//! a function of the number of elements alone, whatever vectors, threads or memory layout feed it:
//!
//! ```text
//! sum(x[0..n]):
//!     for each block of 1024 elements (the last may be short):
//!         lane[0..16] = +0
//!         for each group of 16 elements (the last padded with zeros):
//!             lane[l] += group[l]                              for l in 0..16
//!         for half in 8, 4, 2, 1:
//!             lane[l] += lane[l + half]                        for l in 0..half
//!         push lane[0] on the binary counter                   PairwiseSum
//!     fold the counter from its smallest entry up
//! ```
//!
//! 1. Sixteen lanes are two vectors of AVX-512, four of AVX2, eight of NEON: the same additions.
//! 2. Two or four chains of dependent additions would leave the adders idle, so several whole
//!    blocks are added at once: eight vectors in flight at any vector width.
//! 3. Narrower floats are widened and summed in `f64`, at no cost where memory is the limit, and
//!    rounded once at the end.
//!
//! Products, sums of squares and moments use the same tree. They differ only in how a lane takes an
//! element ([`Term`]) and how accumulators merge ([`Partial`](partial::Partial)).
//!
//! | file | contents |
//! |---|---|
//! | `floats.rs` | elements in memory |
//! | `terms.rs` | how lanes take elements |
//! | `partial.rs` | accumulators, how they merge, results |
//! | `pairwise.rs` | the binary counter |
//! | `columns.rs` | the tree over the rows of a matrix |
//! | `rows.rs`, `strips.rs` | sums inside other kernels, of a row and of columns |
//! | `extremum.rs`, `index.rs` | largest and smallest elements and their indices: no tree |
//! | `scan.rs` | running totals |

pub(crate) mod columns;
pub(crate) mod extremum;
pub(crate) mod floats;
pub(crate) mod index;
mod pairwise;
pub(crate) mod partial;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod strips;
pub(crate) mod terms;
#[cfg(test)]
mod tests;

use core::marker::PhantomData;

use crate::copy::LINE;
use crate::dispatch::run;
use crate::simd::{Float, Lanes, Simd, Task, Token, Vector};
pub(crate) use floats::Accumulate as Widen;
use floats::{Format, for_format, load, read};
pub use pairwise::{Pairwise, PairwiseSum};
use partial::Partial;
use terms::{Products, Sums, Term, join};

/// Elements per block, the unit that a [`PairwiseSum`] takes.
pub(crate) const BLOCK: usize = 1024;
/// Lanes per block.
const LANES: usize = 16;
/// Vectors of lanes in flight: several blocks at once hide the latency of an addition.
const IN_FLIGHT: usize = 8;
/// The most blocks taken at once.
const MOST_BLOCKS: usize = 4;

type F64<S> = <S as Lanes<f64>>::V;

/// Prefetch distance in bytes for a single stream: farther than the hardware's, and across page
/// ends. Folds of several blocks at once prefetch as many elements ahead as they take.
const AHEAD: usize = 4096;

/// Prefetches `bytes` bytes from `x` on, which need not exist.
#[inline(always)]
pub(crate) fn prefetch<S: Token>(simd: S, x: *const u8, bytes: usize) {
    for at in (0..bytes).step_by(LINE) {
        simd.prefetch(x.wrapping_add(at));
    }
}

/// Prefetches `count` elements, [`AHEAD`] bytes after `x`.
#[inline(always)]
pub(crate) fn prefetch_ahead<E, S: Token>(simd: S, x: *const E, count: usize) {
    prefetch(simd, x.cast::<u8>().wrapping_add(AHEAD), count * size_of::<E>());
}

/// The elements of one slice, or of two of the same length.
#[derive(Clone, Copy)]
pub(crate) struct Source {
    first: [*const u8; 2],
    format: Format,
    len: usize,
}

impl Source {
    /// Takes a vector of elements from `at` on into the lanes, or only `count` elements if they are
    /// fewer.
    ///
    /// # Safety
    /// `count` elements exist from `at` on.
    #[inline(always)]
    unsafe fn take<S: Simd, K: Term<M>, const M: usize>(
        self,
        simd: S,
        at: usize,
        count: usize,
        shift: f64,
        lanes: [F64<S>; M],
    ) -> [F64<S>; M] {
        let (at, width) = (at * self.format.size(), <S as Lanes<f64>>::LANES);
        // SAFETY: the caller promises the elements.
        let mut x = unsafe { load(simd, self.format, self.first[0].add(at), count) };
        let none = if K::PRODUCT { 1.0 } else { shift };
        if count < width && none != 0.0 {
            // Replace missing elements by values that change nothing.
            x = x.select(Lanes::<f64>::first(simd, count), simd.splat(none));
        }
        let mut y = x;
        if K::TWO {
            // SAFETY: the caller promises the elements, in both slices.
            y = unsafe { load(simd, self.format, self.first[1].add(at), count) };
        }
        K::take(simd, [x, y], simd.splat(shift), lanes)
    }

    /// Prefetches a group of elements from `at` on, which need not exist.
    #[inline(always)]
    fn prefetch<S: Simd>(self, simd: S, at: usize, two: bool) {
        let size = self.format.size();
        prefetch(simd, self.first[0].wrapping_add(at * size), LANES * size);
        if two {
            prefetch(simd, self.first[1].wrapping_add(at * size), LANES * size);
        }
    }
}

/// Folds `n` blocks from `at` on, of `count` elements each. `count` may only be less than [`BLOCK`]
/// if `n` is 1.
///
/// # Safety
/// The source has these elements.
#[inline(always)]
unsafe fn blocks<S: Simd, K: Term<M>, const M: usize>(
    simd: S,
    x: Source,
    at: usize,
    count: usize,
    n: usize,
) -> [K::Acc; MOST_BLOCKS] {
    let (width, vectors) = (<S as Lanes<f64>>::LANES, LANES / <S as Lanes<f64>>::LANES);
    let start = starts::<S, K, M>(simd);
    let mut lanes = [[start; LANES]; MOST_BLOCKS];
    let mut shifts = [0.0; MOST_BLOCKS];
    let mut b = 0;
    while K::SHIFTED && b < n {
        // SAFETY: each block has an element.
        shifts[b] = unsafe { read(x.format, x.first[0].add((at + b * BLOCK) * x.format.size())) };
        b += 1;
    }
    let end = at + count;
    let mut group = at;
    while end - group >= LANES {
        for b in 0..n {
            x.prefetch(simd, group + (b + n) * BLOCK, K::TWO);
            for v in 0..vectors {
                let here = group + b * BLOCK + v * width;
                // SAFETY: the group is whole.
                lanes[b][v] =
                    unsafe { x.take::<S, K, M>(simd, here, width, shifts[b], lanes[b][v]) };
            }
        }
        group += LANES;
    }
    if group < end {
        for v in 0..vectors {
            let first = (group + v * width).min(end);
            // SAFETY: that many elements are left. A vector without elements is taken too: that
            // turns a lane of −0 into +0, so that the bits do not depend on the vector width.
            lanes[0][v] = unsafe {
                x.take::<S, K, M>(simd, first, (end - first).min(width), shifts[0], lanes[0][v])
            };
        }
    }
    let mut out = [K::Acc::EMPTY; MOST_BLOCKS];
    for b in 0..n {
        let mut totals = [0.0; M];
        for m in 0..M {
            let mut numbers = [start[m]; LANES];
            for v in 0..vectors {
                numbers[v] = lanes[b][v][m];
            }
            totals[m] = across(simd, numbers, K::PRODUCT && m == 0);
        }
        out[b] = K::finish(shifts[b], count, totals);
    }
    out
}

/// The numbers of a lane without elements.
#[inline(always)]
fn starts<S: Simd, K: Term<M>, const M: usize>(simd: S) -> [F64<S>; M] {
    let mut start = [simd.splat(0.0); M];
    if K::PRODUCT {
        start[0] = simd.splat(1.0);
    }
    start
}

/// Folds a block's lanes, which fill the first vectors of the array, as a tree.
#[inline(always)]
fn across<S: Simd>(simd: S, mut lanes: [F64<S>; LANES], product: bool) -> f64 {
    const { assert!(<S as Lanes<f64>>::LANES <= LANES) };
    let width = <S as Lanes<f64>>::LANES;
    let mut half = LANES / width / 2;
    while half > 0 {
        for v in 0..half {
            lanes[v] = join(lanes[v], lanes[v + half], product);
        }
        half /= 2;
    }
    let mut out = [0.0; LANES];
    // SAFETY: the array holds a whole vector, as asserted above.
    unsafe { simd.store(out.as_mut_ptr(), lanes[0]) };
    let mut half = width / 2;
    while half > 0 {
        for l in 0..half {
            out[l] = join(out[l], out[l + half], product);
        }
        half /= 2;
    }
    out[0]
}

/// Folds a source.
///
/// # Safety
/// The source's elements exist.
#[inline(always)]
unsafe fn fold<S: Simd, K: Term<M>, const M: usize>(simd: S, x: Source) -> K::Acc {
    if x.len <= BLOCK {
        // SAFETY: these are all the elements.
        return unsafe { blocks::<S, K, M>(simd, x, 0, x.len, 1) }[0];
    }
    let several = const {
        let blocks = IN_FLIGHT / (LANES / <S as Lanes<f64>>::LANES) / M;
        if blocks < MOST_BLOCKS { blocks } else { MOST_BLOCKS }
    };
    let (mut tree, mut at) = (Pairwise::new(), 0);
    while several > 1 && (x.len - at) / BLOCK >= several {
        // SAFETY: that many whole blocks are left.
        let found = unsafe { blocks::<S, K, M>(simd, x, at, BLOCK, several) };
        for b in 0..several {
            tree.push(found[b]);
        }
        at += several * BLOCK;
    }
    while at < x.len {
        let count = BLOCK.min(x.len - at);
        // SAFETY: that many elements are left.
        tree.push(unsafe { blocks::<S, K, M>(simd, x, at, count, 1) }[0]);
        at += count;
    }
    tree.finish()
}

/// A fold of a source whose elements exist.
struct FoldSource<K, const M: usize>(Source, PhantomData<K>);

impl<K: Term<M>, const M: usize> Task for FoldSource<K, M> {
    type Home = Self;
    type Output = K::Acc;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> K::Acc {
        let x = self.0;
        // SAFETY: only `fold_source` makes this task, and its caller promises the elements.
        for_format!(x.format, format => unsafe {
            fold::<S, K, M>(simd, Source { format, ..x })
        })
    }
}

/// Folds a source. It takes numbers, which are passed in registers: a struct would be read back
/// from the stack in wider pieces than it was written, which takes longer than folding a short
/// slice.
///
/// # Safety
/// `x` and `y` are valid for reads of `len` elements of the format.
#[inline(always)]
unsafe fn fold_source<K: Term<M>, const M: usize>(
    x: *const u8,
    y: *const u8,
    len: usize,
    format: Format,
) -> K::Acc {
    if len == 0 {
        return K::Acc::EMPTY;
    }
    run(FoldSource::<K, M>(Source { first: [x, y], format, len }, PhantomData))
}

/// Folds the terms of slices of one length; terms of one slice get it twice.
#[inline]
pub(crate) fn fold_slices<K: Term<M>, const M: usize, E: Widen>(x: &[E], y: &[E]) -> K::Acc {
    assert!(x.len() == y.len(), "slices of {} and {} elements", x.len(), y.len());
    // SAFETY: the slices are borrowed and have the same length.
    unsafe { K::fold(x.as_ptr().cast(), y.as_ptr().cast(), x.len(), E::FORMAT) }
}

/// The sum of `len` elements, inside an instruction set that was entered already.
///
/// # Safety
/// `x` is valid for reads of `len` elements.
#[inline(always)]
pub(crate) unsafe fn sum_within<E: Float + Widen, S: Simd>(
    simd: S,
    x: *const E,
    len: usize,
) -> f64 {
    let x = Source { first: [x.cast(); 2], format: E::FORMAT, len };
    // SAFETY: the caller promises the elements.
    unsafe { fold::<S, Sums, 1>(simd, x) }
}

/// The sum of `len` products; otherwise like [`sum_within`].
///
/// # Safety
/// `a` and `b` are valid for reads of `len` elements.
#[inline(always)]
pub(crate) unsafe fn dot_within<E: Float + Widen, S: Simd>(
    simd: S,
    a: *const E,
    b: *const E,
    len: usize,
) -> f64 {
    let x = Source { first: [a.cast(), b.cast()], format: E::FORMAT, len };
    // SAFETY: the caller promises the elements.
    unsafe { fold::<S, Products, 1>(simd, x) }
}

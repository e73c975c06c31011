//! Element-wise functions: how a kernel is run on slices, rows and blocks.
//!
//! ```text
//! Kernel::run, run_block, …      check slices against the result                     kernel.rs
//!   drive                        cut rows for alignment, prefetch, non-temporal      driver.rs
//!     run_rows                   stores; convert 16-bit floats; spread values
//!       run_row, once a level    the loop over a row                                 this file
//! ```
//!
//! The loop over a row, of W vectors in flight:
//!
//! ```text
//! for each run of W whole vectors: load them all, apply the kernel to all at once, store them
//! for the rest, a vector at a time: the same, the last vector under a mask
//! ```
//!
//! 1. The tail goes through the kernel's vector code, so an element's bits depend on nothing but
//!    its value.
//! 2. All vectors of a run are loaded before any is stored: in place is the same loop with `y == x`.
//! 3. An argument that is one value for a whole row fills a buffer as long as a run, which the loop reads
//!    again and again: a kernel is compiled for slices alone.
//! 4. A kernel with a short form for most numbers ([`Map::usual`]) goes through that; only a run with
//!    another number in it goes a vector at a time through the kernel itself.
//! 5. Vectors of a run take turns, operation by operation ([`Wide`]): long kernels gain by that.

mod block;
mod driver;
mod kernel;
mod pair;
pub(crate) mod rows;
#[cfg(test)]
mod tests;

use core::marker::PhantomData;

pub use block::{Arg, Block, BlockArg};
#[cfg(any(test, feature = "testing"))]
pub use driver::ALIGNED_FROM;
pub use driver::Stored;
pub use kernel::{Function, Kernel};
pub(crate) use kernel::{kernel, sealed};
pub(crate) use pair::{MapPair, map_pair};

use crate::simd::{Entries, Float, Isa, Lanes, MAX_LANES, Mask, Simd, Task, Vector, Wide};

/// An element-wise kernel of `N` arguments on lanes.
pub trait Map<E: Float, const N: usize> {
    /// Vectors in flight with 16 and with 32 registers: 1, 2 or 4. Four hide the latency of short
    /// kernels; long ones have enough independent work in two, or in one, and would spill with more.
    const VECTORS: [usize; 2] = [4, 4];
    /// The kernel. `#[inline(always)]` in every implementation.
    fn apply<S: Lanes<E>>(simd: S, x: [S::V; N]) -> S::V;
    /// Whether there is a short form.
    const HAS_USUAL: bool = false;
    /// The short form, and the lanes in which it gives what the kernel gives. `#[inline(always)]` too.
    #[inline(always)]
    fn usual<S: Lanes<E>>(simd: S, x: [S::V; N]) -> (S::V, S::M) {
        (Self::apply(simd, x), simd.first(S::LANES))
    }
}

/// A kernel in two forms: the short one with the lanes it holds for, and one for the others, an
/// `#[inline(always)]` closure.
#[inline(always)]
pub(crate) fn usual_or<V: Vector>((usual, holds): (V, V::Mask), other: impl FnOnce() -> V) -> V {
    if holds.all() { usual } else { usual.select(holds, other()) }
}

/// Arguments and result of a kernel, checked: `rows` rows of `len` elements.
pub(crate) struct Rows<E, const N: usize> {
    inputs: [Input<E>; N],
    y: *mut E,
    /// Elements from a row of `y` to the next.
    y_stride: usize,
    rows: usize,
    len: usize,
}

/// Rows of an argument: each is `len` elements, or one value for all of them.
#[derive(Clone, Copy)]
struct Input<E> {
    first: *const E,
    /// Elements from a row to the next.
    stride: isize,
    is_value: bool,
}

/// A row as a compiled kernel takes it. Element `i` of an argument `(from, mask)` stands at `i & mask` from
/// `from` on: the mask is 0 where a buffer as long as a run holds one value, else all ones.
pub(crate) struct Row<E, const N: usize> {
    x: [(*const E, usize); N],
    y: *mut E,
    len: usize,
}

/// A kernel compiled for one level.
///
/// # Safety
/// The level was detected. `y` is valid for writes of `len` elements, and an argument for reads of as many,
/// or of [`MAX_RUN`] where its mask is 0; an argument is `y` itself or does not overlap it.
pub(crate) type RunRow<E, const N: usize> = unsafe fn(&Row<E, N>);

/// A kernel compiled for every level, by `Isa as usize`.
pub(crate) type Levels<E, const N: usize> = [RunRow<E, N>; Isa::ALL.len()];

/// The task of running kernel `K` on a row.
#[repr(transparent)]
struct Run<'a, E, K, const N: usize>(&'a Row<E, N>, PhantomData<K>);

macro_rules! tasks {
    ($($t:ident $levels:ident)*) => {$(
        impl<K: Map<$t, N>, const N: usize> Task for Run<'_, $t, K, N> {
            type Home = K;
            type Output = ();
            #[inline(always)]
            fn run<S: Simd>(self, simd: S) {
                // SAFETY: made by who calls a `RunRow` alone, and keeps its promise.
                unsafe {
                    match const { vectors(<S as Lanes<$t>>::LANES, S::ISA, K::VECTORS) } {
                        4 => run_row::<$t, S, _, K, N>(simd, Wide(Wide(simd)), self.0),
                        2 => run_row::<$t, S, _, K, N>(simd, Wide(simd), self.0),
                        _ => run_row::<$t, S, _, K, N>(simd, simd, self.0),
                    }
                }
            }
        }

        /// The kernel's entries.
        pub(crate) const fn $levels<K: Map<$t, N>, const N: usize>() -> Levels<$t, N> {
            // SAFETY: `Run` is a transparent wrapper of the reference to a row, so that functions of
            // either are called alike.
            unsafe { core::mem::transmute(Entries::<Run<'static, $t, K, N>>::TABLE) }
        }
    )*};
}
tasks!(f32 f32_levels f64 f64_levels);

/// Vectors in flight, of those wanted with 16 and with 32 registers: scalar code leaves it to the processor.
const fn vectors(lanes: usize, isa: Isa, wanted: [usize; 2]) -> usize {
    if lanes == 1 { 1 } else { wanted[isa.has_32_registers() as usize] }
}

/// Elements of the longest run of vectors.
const MAX_RUN: usize = 4 * MAX_LANES;

/// Computes a row. Loops over arguments are `while` loops: an iterator's would be compiled anew for each kernel.
///
/// # Safety
/// As for [`RunRow`].
#[inline(always)]
unsafe fn run_row<E: Float, S: Lanes<E>, W: Lanes<E>, K: Map<E, N>, const N: usize>(
    simd: S,
    wide: W,
    row: &Row<E, N>,
) {
    const { assert!(W::LANES <= MAX_RUN && S::LANES <= W::LANES) };
    let Row { x, y, len } = *row;
    let mut i = 0;
    // Elements before this one go a vector at a time.
    let mut single = if const { W::LANES > S::LANES } { 0 } else { len };
    loop {
        while i < single {
            let count = (single - i).min(S::LANES);
            let mut v = [simd.splat(E::ZERO); N];
            let mut k = 0;
            // SAFETY: `count` elements are left of the row, and no more than a vector is read.
            unsafe {
                while k < N {
                    v[k] = simd.load_up_to(x[k].0.wrapping_add(i & x[k].1), count);
                    k += 1;
                }
                simd.store_up_to(y.wrapping_add(i), count, K::apply(simd, v));
            }
            i += count;
        }
        if i == len {
            return;
        }
        if const { W::LANES > S::LANES } {
            while len - i >= W::LANES {
                let mut v = [wide.splat(E::ZERO); N];
                let mut k = 0;
                // SAFETY: a whole run is left of the row.
                unsafe {
                    while k < N {
                        v[k] = wide.load(x[k].0.wrapping_add(i & x[k].1));
                        k += 1;
                    }
                    let result;
                    if const { K::HAS_USUAL } {
                        let holds;
                        (result, holds) = K::usual(wide, v);
                        if !holds.all() {
                            break;
                        }
                    } else {
                        result = K::apply(wide, v);
                    }
                    wide.store(y.wrapping_add(i), result);
                }
                i += W::LANES;
            }
            single = len.min(i + W::LANES);
        }
    }
}

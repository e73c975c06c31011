//! Element-wise functions: runs a kernel on slices, rows and blocks.
//!
//! ```text
//! Kernel::run, run_block, …      check slices against the result                     kernel.rs
//!   drive                        align rows, prefetch, non-temporal stores;          driver.rs
//!     run_rows                   convert 16-bit floats; spread scalars
//!       run_row, once per level  the loop over a row                                 this file
//! ```
//!
//! The loop over a row, with W vectors in flight:
//!
//! ```text
//! for each run of W whole vectors: load them all, apply the kernel to all at once, store them
//! for the rest, one vector at a time: the same, the last vector under a mask
//! ```
//!
//! 1. The tail goes through the kernel's vector code too, so an element's bits depend on its value
//!    alone.
//! 2. All vectors of a run are loaded before any is stored, so running in place is the same loop
//!    with `y == x`.
//! 3. An argument that is one value for a whole row fills a buffer as long as a run, which the loop
//!    reads again and again. Kernels are compiled for slices only.
//! 4. A kernel may have a short form for most numbers ([`Map::usual`]). A run with any other number
//!    goes through the kernel itself, one vector at a time.
//! 5. The vectors of a run are interleaved, operation by operation ([`Wide`]), which speeds up long
//!    kernels.

mod block;
mod driver;
mod kernel;
mod pair;
#[cfg(feature = "pulp")]
pub(crate) mod program;
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
    /// kernels; long kernels have enough independent work in one or two, and would spill with more.
    const VECTORS: [usize; 2] = [4, 4];
    /// Computes the function. `#[inline(always)]` in every implementation.
    fn apply<S: Lanes<E>>(simd: S, x: [S::V; N]) -> S::V;
    /// True if there is a short form.
    const HAS_USUAL: bool = false;
    /// The short form, and the mask of lanes in which it equals [`Map::apply`]. `#[inline(always)]`
    /// too.
    #[inline(always)]
    fn usual<S: Lanes<E>>(simd: S, x: [S::V; N]) -> (S::V, S::M) {
        (Self::apply(simd, x), simd.first(S::LANES))
    }
}

/// Combines a short form and the mask of lanes where it holds with `other`, an `#[inline(always)]`
/// closure that computes the other lanes.
#[inline(always)]
pub(crate) fn usual_or<V: Vector>((usual, holds): (V, V::Mask), other: impl FnOnce() -> V) -> V {
    if holds.all() { usual } else { usual.select(holds, other()) }
}

/// Checked arguments and result of a kernel: `rows` rows of `len` elements.
pub(crate) struct Rows<E, const N: usize> {
    inputs: [Input<E>; N],
    y: *mut E,
    /// Elements between the starts of rows of `y`.
    y_stride: usize,
    rows: usize,
    len: usize,
}

/// The rows of one argument: each is `len` elements, or one value for all of them.
#[derive(Clone, Copy)]
struct Input<E> {
    first: *const E,
    /// Elements between the starts of rows.
    stride: isize,
    is_value: bool,
}

/// One row for a compiled kernel. Element `i` of an argument `(from, mask)` is at
/// `from + (i & mask)`: the mask is 0 for a buffer that holds one value, else all ones.
pub(crate) struct Row<E, const N: usize> {
    x: [(*const E, usize); N],
    y: *mut E,
    len: usize,
}

/// A kernel compiled for one level.
///
/// # Safety
/// The level is available. `y` is valid for writes of `len` elements. Each argument is valid for
/// reads of `len` elements, or of [`MAX_RUN`] if its mask is 0; it is `y` itself or does not
/// overlap it.
pub(crate) type RunRow<E, const N: usize> = unsafe fn(&Row<E, N>);

/// A kernel compiled for every level, indexed by `Isa as usize`.
pub(crate) type Levels<E, const N: usize> = [RunRow<E, N>; Isa::ALL.len()];

/// The task that runs kernel `K` on a row.
#[repr(transparent)]
struct Run<'a, E, K, const N: usize>(&'a Row<E, N>, PhantomData<K>);

macro_rules! tasks {
    ($($t:ident $levels:ident)*) => {$(
        impl<K: Map<$t, N>, const N: usize> Task for Run<'_, $t, K, N> {
            type Home = K;
            type Output = ();
            #[inline(always)]
            fn run<S: Simd>(self, simd: S) {
                // SAFETY: only a caller of a `RunRow` makes this task, and it promises what
                // `run_row` needs.
                unsafe {
                    match const { vectors(<S as Lanes<$t>>::LANES, S::ISA, K::VECTORS) } {
                        4 => run_row::<$t, S, _, K, N>(simd, Wide(Wide(simd)), self.0),
                        2 => run_row::<$t, S, _, K, N>(simd, Wide(simd), self.0),
                        _ => run_row::<$t, S, _, K, N>(simd, simd, self.0),
                    }
                }
            }
        }

        /// The entries of kernel `K`.
        pub(crate) const fn $levels<K: Map<$t, N>, const N: usize>() -> Levels<$t, N> {
            // SAFETY: `Run` is a transparent wrapper of a reference to a row, so functions of
            // either have the same ABI.
            unsafe { core::mem::transmute(Entries::<Run<'static, $t, K, N>>::TABLE) }
        }
    )*};
}
tasks!(f32 f32_levels f64 f64_levels);

/// The number of vectors in flight: one in scalar code, where the processor finds the parallelism,
/// else the kernel's choice for the level's registers.
const fn vectors(lanes: usize, isa: Isa, wanted: [usize; 2]) -> usize {
    if lanes == 1 { 1 } else { wanted[isa.has_32_registers() as usize] }
}

/// Elements in the longest run of vectors.
const MAX_RUN: usize = 4 * MAX_LANES;

/// Computes a row. Loops over arguments are `while` loops, because an iterator would be compiled
/// anew for each kernel.
///
/// # Safety
/// See [`RunRow`].
#[inline(always)]
unsafe fn run_row<E: Float, S: Lanes<E>, W: Lanes<E>, K: Map<E, N>, const N: usize>(
    simd: S,
    wide: W,
    row: &Row<E, N>,
) {
    const { assert!(W::LANES <= MAX_RUN && S::LANES <= W::LANES) };
    let Row { x, y, len } = *row;
    let mut i = 0;
    // Elements before this index go through the loop of single vectors.
    let mut single = if const { W::LANES > S::LANES } { 0 } else { len };
    loop {
        while i < single {
            let count = (single - i).min(S::LANES);
            let mut v = [simd.splat(E::ZERO); N];
            let mut k = 0;
            // SAFETY: `count` elements of the row are left, and no more are read or written.
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

//! Element-wise functions: one road from a kernel in the vector vocabulary to slices, rows and blocks.
//!
//! ```text
//! Kernel::run, run_block, …      check slices against the result                     kernel.rs
//!   drive                        cut rows for alignment, prefetch, non-temporal      driver.rs
//!                                stores; convert 16-bit floats
//!     run_rows, once a level     for each row: run_row                               this file
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
//! 3. An argument that is one value for a whole row is stored to a buffer as long as a run, which the
//!    loop reads again and again: a kernel is compiled for slices alone.
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
use core::mem::MaybeUninit;

pub use block::{Arg, Block, BlockArg};
#[cfg(any(test, feature = "testing"))]
pub use driver::ALIGNED_FROM;
pub use driver::Stored;
pub use kernel::{Function, Kernel};
pub(crate) use kernel::{kernel, sealed};
pub(crate) use pair::{MapPair, map_pair};

use crate::dispatch::{Isa, Task, run};
use crate::simd::{Float, Lanes, MAX_LANES, Mask, Simd, Vector, Wide};

/// An element-wise kernel of `N` arguments on lanes.
pub trait Map<E: Float, const N: usize> {
    /// Vectors in flight with 16 and with 32 registers: 1, 2 or 4. Four hide the latency of short
    /// kernels; long ones have enough independent work in two, or in one, and would spill with more.
    const VECTORS: [usize; 2] = [4, 4];
    /// The kernel. `#[inline(always)]` in every implementation.
    fn apply<S: Lanes<E>>(simd: S, x: [S::V; N]) -> S::V;
    /// A short form, and the lanes in which it gives what the kernel gives; `None` without one.
    /// `#[inline(always)]` too.
    #[inline(always)]
    fn usual<S: Lanes<E>>(_simd: S, _x: [S::V; N]) -> Option<(S::V, S::M)> {
        None
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

/// Runs kernel `K` on the detected level.
///
/// # Safety
/// Every argument is valid for reads of its rows, `y` for writes of its own; an argument is `y` itself,
/// row by row, or does not overlap it.
pub(crate) unsafe fn compiled<E: Float, K, const N: usize>(rows: &Rows<E, N>)
where
    for<'a> RunRows<'a, E, K, N>: Task<Output = ()>,
{
    run(RunRows(rows, PhantomData::<K>));
}

/// By reference: the trampoline would copy the rows in pieces other than they were stored in, which takes
/// longer than adding 64 elements.
pub(crate) struct RunRows<'a, E, K, const N: usize>(&'a Rows<E, N>, PhantomData<K>);

macro_rules! tasks {
    ($($t:ident)*) => {$(
        impl<K: Map<$t, N>, const N: usize> Task for RunRows<'_, $t, K, N> {
            type Home = K;
            type Output = ();
            #[inline(always)]
            fn run<S: Simd>(self, simd: S) {
                // SAFETY: `compiled`, which alone makes this task, passes on its caller's promise.
                unsafe {
                    match const { vectors(<S as Lanes<$t>>::LANES, S::ISA, K::VECTORS) } {
                        4 => run_rows::<$t, S, _, K, N>(simd, Wide(Wide(simd)), self.0),
                        2 => run_rows::<$t, S, _, K, N>(simd, Wide(simd), self.0),
                        _ => run_rows::<$t, S, _, K, N>(simd, simd, self.0),
                    }
                }
            }
        }
    )*};
}
tasks!(f32 f64);

/// Vectors in flight, of those wanted with 16 and with 32 registers: scalar code leaves it to the processor.
const fn vectors(lanes: usize, isa: Isa, wanted: [usize; 2]) -> usize {
    if lanes == 1 { 1 } else { wanted[isa.has_32_registers() as usize] }
}

/// Elements of the longest run of vectors.
const MAX_RUN: usize = 4 * MAX_LANES;

/// Runs the kernel row by row. Loops over arguments are `while` loops: an iterator's would be compiled anew for
/// each kernel.
///
/// # Safety
/// As for [`compiled`].
#[inline(always)]
unsafe fn run_rows<E: Float, S: Lanes<E>, W: Lanes<E>, K: Map<E, N>, const N: usize>(
    simd: S,
    wide: W,
    rows: &Rows<E, N>,
) {
    const { assert!(W::LANES <= MAX_RUN && S::LANES <= W::LANES) };
    let mut values = [[const { MaybeUninit::<E>::uninit() }; MAX_RUN]; N];
    let mut r = 0;
    while r < rows.rows {
        // Where an argument's elements are, and a mask of positions: 0 for a value, that all are the first.
        let mut x = [(rows.inputs[0].first, usize::MAX); N];
        let mut k = 0;
        while k < N {
            let input = &rows.inputs[k];
            x[k].0 = input.first.wrapping_offset(r as isize * input.stride);
            // A function of one argument computes a single value once, see `drive`.
            if const { N > 1 } && input.is_value {
                let buffer = values[k].as_mut_ptr().cast::<E>();
                // SAFETY: the row has its value; the buffer holds a run, as the assertion above says.
                unsafe { wide.store(buffer, wide.splat(x[k].0.read())) };
                x[k] = (buffer.cast_const(), 0);
            }
            k += 1;
        }
        let y = rows.y.wrapping_add(r * rows.y_stride);
        // SAFETY: row `r` is one of `rows`; of a buffer, only its first run is read.
        unsafe { run_row::<E, S, W, K, N>(simd, wide, x, y, rows.len) };
        r += 1;
    }
}

/// Computes a row of `len` elements. Element `i` of an argument `(from, mask)` stands at `i & mask`.
///
/// # Safety
/// `y` is valid for writes of `len` elements, and an argument for reads of as many, or of `W::LANES` where
/// its mask is 0; an argument is `y` itself or does not overlap it.
#[inline(always)]
unsafe fn run_row<E: Float, S: Lanes<E>, W: Lanes<E>, K: Map<E, N>, const N: usize>(
    simd: S,
    wide: W,
    x: [(*const E, usize); N],
    y: *mut E,
    len: usize,
) {
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
                    v[k] = load_up_to(simd, x[k].0.wrapping_add(i & x[k].1), count);
                    k += 1;
                }
                store_up_to(simd, y.wrapping_add(i), count, K::apply(simd, v));
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
                    let result = match K::usual(wide, v) {
                        Some((result, holds)) if holds.all() => result,
                        Some(_) => break,
                        None => K::apply(wide, v),
                    };
                    wide.store(y.wrapping_add(i), result);
                }
                i += W::LANES;
            }
            single = len.min(i + W::LANES);
        }
    }
}

/// Loads a vector or, if that is less, `count` elements.
///
/// # Safety
/// `src` is valid for reads of `count` elements.
#[inline(always)]
pub(crate) unsafe fn load_up_to<E: Float, S: Lanes<E>>(
    simd: S,
    src: *const E,
    count: usize,
) -> S::V {
    // SAFETY: neither branch reads more than `count` elements.
    unsafe { if count >= S::LANES { simd.load(src) } else { simd.load_first(src, count) } }
}

/// Stores a vector or, if that is less, its first `count` elements.
///
/// # Safety
/// `dst` is valid for writes of `count` elements.
#[inline(always)]
pub(crate) unsafe fn store_up_to<E: Float, S: Lanes<E>>(
    simd: S,
    dst: *mut E,
    count: usize,
    v: S::V,
) {
    // SAFETY: neither branch writes more than `count` elements.
    unsafe { if count >= S::LANES { simd.store(dst, v) } else { simd.store_first(dst, count, v) } }
}

//! Element-wise loops over a row, inside a kernel that has entered its instruction set already. The
//! functions given must be `#[inline(always)]` closures.

use core::mem::MaybeUninit;

use crate::output::Output;
use crate::simd::{Float, Lanes};

/// The output as a slice of elements that need not be initialised.
#[inline(always)]
pub(crate) fn places<E, O: Output<E> + ?Sized>(y: &mut O) -> &mut [MaybeUninit<E>] {
    let (first, len) = y.as_raw();
    // SAFETY: an output is writable memory of that many elements, borrowed with `y`; kernels write
    // values alone, so what was initialised stays so.
    unsafe { core::slice::from_raw_parts_mut(first.cast(), len) }
}

/// `y[i] = f(x[0][i], x[1][i], …)`; gives back what was written.
#[inline(always)]
pub(crate) fn map<'y, E, S, const N: usize>(
    simd: S,
    x: [&[E]; N],
    y: &'y mut [MaybeUninit<E>],
    mut f: impl FnMut([S::V; N]) -> S::V,
) -> &'y mut [E]
where
    E: Float,
    S: Lanes<E>,
{
    let len = y.len();
    let x = pointers(x, len);
    let first: *mut E = y.as_mut_ptr().cast();
    let mut at = 0;
    while at < len {
        // SAFETY: `len - at` elements are left of each input, whose length was compared.
        let value = f(unsafe { load_all(simd, x, at, len - at) });
        // SAFETY: as for the loads; `y` is borrowed mutably.
        unsafe { simd.store_up_to(first.add(at), len - at, value) };
        at += S::LANES;
    }
    // SAFETY: every element has been written; the slice was borrowed for as long.
    unsafe { core::slice::from_raw_parts_mut(first, len) }
}

/// `y[k][i] = f(x[0][i], …; y[0][i], …)[k]`, in place.
#[inline(always)]
pub(crate) fn change<E, S, const N: usize, const M: usize>(
    simd: S,
    x: [&[E]; N],
    y: [&mut [E]; M],
    mut f: impl FnMut([S::V; N], [S::V; M]) -> [S::V; M],
) where
    E: Float,
    S: Lanes<E>,
{
    let len = if M > 0 { y[0].len() } else { 0 };
    let (x, y) = (pointers(x, len), pointers_mut(y, len));
    let mut at = 0;
    while at < len {
        let left = len - at;
        // SAFETY: all lengths were compared: `left` elements are left, of `y` exclusively borrowed ones.
        unsafe {
            let old = load_all(simd, readable(y), at, left);
            let new = f(load_all(simd, x, at, left), old);
            let mut k = 0;
            while k < M {
                simd.store_up_to(y[k].add(at), left, new[k]);
                k += 1;
            }
        }
        at += S::LANES;
    }
}

/// A vector of each of the elements from `at` on or, if that is less, `left` of them.
///
/// # Safety
/// So many elements lie there behind every pointer.
#[inline(always)]
unsafe fn load_all<E: Float, S: Lanes<E>, const N: usize>(
    simd: S,
    x: [*const E; N],
    at: usize,
    left: usize,
) -> [S::V; N] {
    let mut values = [simd.splat(E::ZERO); N];
    let mut k = 0;
    while k < N {
        // SAFETY: as the caller promises.
        values[k] = unsafe { simd.load_up_to(x[k].add(at), left) };
        k += 1;
    }
    values
}

/// Pointers to read by; the standard library's `map` of arrays is not always inlined.
#[inline(always)]
fn readable<E, const N: usize>(x: [*mut E; N]) -> [*const E; N] {
    let mut first = [core::ptr::null(); N];
    for k in 0..N {
        first[k] = x[k].cast_const();
    }
    first
}

/// The first elements of rows of `len`.
#[inline(always)]
pub(crate) fn pointers<E, const N: usize>(x: [&[E]; N], len: usize) -> [*const E; N] {
    let mut first = [core::ptr::null(); N];
    for k in 0..N {
        assert!(x[k].len() == len, "rows of {} and of {len} elements", x[k].len());
        first[k] = x[k].as_ptr();
    }
    first
}

/// The same of rows that are written.
#[inline(always)]
pub(crate) fn pointers_mut<E, const N: usize>(x: [&mut [E]; N], len: usize) -> [*mut E; N] {
    let mut first = [core::ptr::null_mut(); N];
    for k in 0..N {
        assert!(x[k].len() == len, "rows of {} and of {len} elements", x[k].len());
        first[k] = x[k].as_mut_ptr();
    }
    first
}

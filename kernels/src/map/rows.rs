//! Element-wise loops over a row, for kernels that have already entered their instruction set. The
//! closures passed must be `#[inline(always)]`.

use core::mem::MaybeUninit;

use crate::output::Output;
use crate::simd::{Float, Lanes};

/// The output as a slice of possibly uninitialised elements.
#[inline(always)]
pub(crate) fn places<E, O: Output<E> + ?Sized>(y: &mut O) -> &mut [MaybeUninit<E>] {
    let (first, len) = y.as_raw();
    // SAFETY: an output is writable memory of that many elements, borrowed with `y`. Kernels only
    // write initialised values, so initialised elements stay so.
    unsafe { core::slice::from_raw_parts_mut(first.cast(), len) }
}

/// Writes `y[i] = f(x[0][i], x[1][i], …)` and returns what was written.
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

/// Writes `y[k][i] = f(x[0][i], …; y[0][i], …)[k]`, in place.
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
        // SAFETY: all lengths were compared, so `left` elements are left; those of `y` are borrowed
        // exclusively.
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

/// Loads one vector per pointer, of the elements from `at` on, or only `left` elements if they are
/// fewer.
///
/// # Safety
/// The elements exist behind every pointer.
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
        // SAFETY: the caller promises the elements.
        values[k] = unsafe { simd.load_up_to(x[k].add(at), left) };
        k += 1;
    }
    values
}

/// The pointers as const; the standard library's `map` of arrays is not always inlined.
#[inline(always)]
fn readable<E, const N: usize>(x: [*mut E; N]) -> [*const E; N] {
    let mut first = [core::ptr::null(); N];
    for k in 0..N {
        first[k] = x[k].cast_const();
    }
    first
}

/// Pointers to rows, whose lengths must be `len`.
#[inline(always)]
pub(crate) fn pointers<E, const N: usize>(x: [&[E]; N], len: usize) -> [*const E; N] {
    let mut first = [core::ptr::null(); N];
    for k in 0..N {
        assert!(x[k].len() == len, "rows of {} and of {len} elements", x[k].len());
        first[k] = x[k].as_ptr();
    }
    first
}

/// [`pointers`] for rows that are written.
#[inline(always)]
pub(crate) fn pointers_mut<E, const N: usize>(x: [&mut [E]; N], len: usize) -> [*mut E; N] {
    let mut first = [core::ptr::null_mut(); N];
    for k in 0..N {
        assert!(x[k].len() == len, "rows of {} and of {len} elements", x[k].len());
        first[k] = x[k].as_mut_ptr();
    }
    first
}

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
    for x in x {
        assert!(x.len() == len, "a row has {} elements, the result {len}", x.len());
    }
    let first: *mut E = y.as_mut_ptr().cast();
    let mut at = 0;
    while at < len {
        let mut values = [simd.splat(E::ZERO); N];
        for (value, x) in values.iter_mut().zip(x) {
            // SAFETY: `len - at` elements are left of each input, whose length was compared.
            *value = unsafe { simd.load_up_to(x.as_ptr().add(at), len - at) };
        }
        let value = f(values);
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
    mut y: [&mut [E]; M],
    mut f: impl FnMut([S::V; N], [S::V; M]) -> [S::V; M],
) where
    E: Float,
    S: Lanes<E>,
{
    let len = y.first().map_or(0, |y| y.len());
    for len_here in x.iter().map(|x| x.len()).chain(y.iter().map(|y| y.len())) {
        assert!(len_here == len, "slices of {len_here} and of {len} elements");
    }
    let mut at = 0;
    while at < len {
        let left = len - at;
        let (mut values, mut old) = ([simd.splat(E::ZERO); N], [simd.splat(E::ZERO); M]);
        for (value, x) in values.iter_mut().zip(x) {
            // SAFETY: all lengths were compared: `left` elements are left.
            *value = unsafe { simd.load_up_to(x.as_ptr().add(at), left) };
        }
        for (old, y) in old.iter_mut().zip(&y) {
            // SAFETY: as above.
            *old = unsafe { simd.load_up_to(y.as_ptr().add(at), left) };
        }
        let new = f(values, old);
        for (new, y) in new.into_iter().zip(&mut y) {
            // SAFETY: as above; the slices are borrowed mutably.
            unsafe { simd.store_up_to(y.as_mut_ptr().add(at), left, new) };
        }
        at += S::LANES;
    }
}

//! The loop of one-argument kernels with two results.

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use super::kernel::lengths_differ;
use crate::dispatch::run;
use crate::simd::{Float, Lanes, Task};

/// A one-argument element-wise kernel with two results.
pub(crate) trait MapPair<E: Float> {
    /// Computes both functions. `#[inline(always)]` in every implementation.
    fn apply<S: Lanes<E>>(simd: S, x: S::V) -> [S::V; 2];
}

/// `first[i], second[i] = K(x[i])`.
#[track_caller]
pub(crate) fn map_pair<E: Float, K: MapPair<E>>(
    name: &str,
    x: &[E],
    first: &mut [MaybeUninit<E>],
    second: &mut [MaybeUninit<E>],
) {
    for len in [first.len(), second.len()] {
        if x.len() != len {
            lengths_differ(name, x.len(), len);
        }
    }
    run(RunPair::<E, K> { x, y: [first, second], kernel: PhantomData });
}

/// Slices of one length.
struct RunPair<'a, E, K> {
    x: &'a [E],
    y: [&'a mut [MaybeUninit<E>]; 2],
    kernel: PhantomData<K>,
}

impl<E: Float, K: MapPair<E>> Task<E> for RunPair<'_, E, K> {
    type Home = K;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let len = self.x.len();
        let [first, second] = self.y.map(|y| y.as_mut_ptr().cast::<E>());
        let mut i = 0;
        while i < len {
            // SAFETY: `len - i` elements are left of each slice, whose lengths `map_pair` compared.
            unsafe {
                let [a, b] = K::apply(simd, simd.load_up_to(self.x.as_ptr().add(i), len - i));
                simd.store_up_to(first.add(i), len - i, a);
                simd.store_up_to(second.add(i), len - i, b);
            }
            i += S::LANES;
        }
    }
}

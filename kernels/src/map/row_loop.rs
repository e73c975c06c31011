//! The loop of a kernel of several arguments over a row: runs of whole vectors, then the rest a vector at a time.

use super::operands::Arguments;
use super::{store, store_up_to, unroll, until_aligned};
use crate::simd::{Float, Lanes, Mask, Wide, join};

/// A kernel of `N` arguments on lanes.
pub(super) trait MapAll<E: Float, const N: usize> {
    /// Vectors in flight, with 16 and with 32 registers.
    const UNROLL: [usize; 2];
    /// Whether these take turns, operation by operation: long kernels gain by that.
    const TAKES_TURNS: bool;
    /// The kernel.
    fn apply<S: Lanes<E>>(simd: S, x: [S::V; N]) -> S::V;
    /// As [`Map1::usual`](super::Map1::usual).
    #[inline(always)]
    fn usual<S: Lanes<E>>(_simd: S, _x: [S::V; N]) -> Option<(S::V, S::M)> {
        None
    }
}

/// The loop of a kernel over a row.
///
/// # Safety
/// The arguments have `len` elements, `y` is valid for writes of as many; an argument in memory is `y`
/// itself or does not overlap it.
#[inline(always)]
pub(super) unsafe fn run_row<E: Float, S: Lanes<E>, K: MapAll<E, N>, const N: usize>(
    simd: S,
    arguments: impl Arguments<E, S, N>,
    y: *mut E,
    len: usize,
    streams: bool,
) {
    let head = until_aligned::<E, S>(y, len, streams, || arguments.lie_like(y));
    // SAFETY: as the caller promised; from `head` on `y` is aligned if it is streamed.
    let done = unsafe {
        match const { unroll::<E, S>(K::UNROLL) } {
            4 => run_whole::<E, S, K, N, 4>(simd, arguments, y, head, len, streams),
            2 => run_whole::<E, S, K, N, 2>(simd, arguments, y, head, len, streams),
            _ => head,
        }
    };
    let mut i = if head > 0 { 0 } else { done };
    while i < len {
        let (count, next) = if i < head { (head, done) } else { (len - i, i + S::LANES) };
        // SAFETY: `count` elements are left from `i` on.
        unsafe {
            let result = K::apply(simd, arguments.up_to(simd, i, count));
            store_up_to(simd, y.add(i), count, result);
        }
        i = next;
    }
}

/// Applies the kernel to all runs of `M` whole vectors from `start` on; returns where they end.
///
/// # Safety
/// As for [`run_row`]; if it is streamed, `y` is aligned to a vector at `start`.
#[inline(always)]
unsafe fn run_whole<E: Float, S: Lanes<E>, K: MapAll<E, N>, const N: usize, const M: usize>(
    simd: S,
    arguments: impl Arguments<E, S, N>,
    y: *mut E,
    start: usize,
    len: usize,
    streams: bool,
) -> usize {
    let mut i = start;
    while len - i >= M * S::LANES {
        let mut v = [[simd.splat(E::ZERO); N]; M];
        for (k, v) in v.iter_mut().enumerate() {
            // SAFETY: the run's M vectors end within `len`.
            *v = unsafe { arguments.vectors(simd, i + k * S::LANES) };
        }
        if !(K::TAKES_TURNS && in_turn::<E, S, K, N, M>(simd, &mut v)) {
            for v in &mut v {
                v[0] = K::apply(simd, *v);
            }
        }
        for (k, v) in v.iter().enumerate() {
            // SAFETY: as for the loads; whole vectors after an aligned one are aligned.
            unsafe { store(simd, y.add(i + k * S::LANES), v[0], streams) };
        }
        i += M * S::LANES;
    }
    i
}

/// Puts the kernel's results in the place of the first arguments, vectors taking turns operation by operation; false,
/// and nothing done, where that would need the long form.
#[inline(always)]
fn in_turn<E: Float, S: Lanes<E>, K: MapAll<E, N>, const N: usize, const M: usize>(
    simd: S,
    v: &mut [[S::V; N]; M],
) -> bool {
    match M {
        2 => {
            let Some(results) = at_once::<E, _, K, N>(Wide(simd), join(v[0], v[1])) else {
                return false;
            };
            [v[0][0], v[1][0]] = results.halves();
        }
        4 => {
            let x = join(join(v[0], v[1]), join(v[2], v[3]));
            let Some(results) = at_once::<E, _, K, N>(Wide(Wide(simd)), x) else {
                return false;
            };
            let [low, high] = results.halves();
            [v[0][0], v[1][0]] = low.halves();
            [v[2][0], v[3][0]] = high.halves();
        }
        _ => return false,
    }
    true
}

/// What the kernel gives without a long form.
#[inline(always)]
fn at_once<E: Float, S: Lanes<E>, K: MapAll<E, N>, const N: usize>(
    simd: S,
    x: [S::V; N],
) -> Option<S::V> {
    match K::usual(simd, x) {
        Some((results, holds)) if holds.all() => Some(results),
        Some(_) => None,
        None => Some(K::apply(simd, x)),
    }
}

//! Folds of a row inside a kernel that has entered its instruction set already: sums of terms that
//! are computed on the way, added on the tree of [the parent module](super). The functions given
//! must be `#[inline(always)]` closures.

use core::mem::MaybeUninit;

use super::{BLOCK, F64, LANES, PairwiseSum, Widen, ask_ahead, ask_for, sum_across};
use crate::map::{Map, load_up_to, store_up_to};
use crate::math::{Exp, Sub};
use crate::simd::{Float, Lanes, Simd, Vector, Wide};
use crate::{Block, BlockArg, Function, Stored};

/// Sums, one for each of the terms that `f` makes of the inputs' elements (widened exactly). `totals`
/// are arrays that `f` may change at the same places.
///
/// # Panics
/// If the lengths differ.
#[inline(always)]
pub(crate) fn sums<E, S, const N: usize, const A: usize, const M: usize>(
    simd: S,
    x: [&[E]; N],
    mut totals: [&mut [f64]; A],
    mut f: impl FnMut([F64<S>; N], &mut [F64<S>; A]) -> [F64<S>; M],
) -> [f64; M]
where
    E: Float + Widen,
    S: Simd,
{
    let len = x.first().map_or(0, |x| x.len());
    for len_here in x.iter().map(|x| x.len()).chain(totals.iter().map(|t| t.len())) {
        assert!(len_here == len, "rows of {len_here} and of {len} elements");
    }
    let x = x.map(<[E]>::as_ptr);
    let mut first = [core::ptr::null_mut(); A];
    for (first, totals) in first.iter_mut().zip(&mut totals) {
        *first = totals.as_mut_ptr();
    }
    // SAFETY (all calls): the lengths were compared and the arrays are borrowed here: `len` elements
    // lie behind every pointer.
    if len <= BLOCK {
        // SAFETY: as above.
        return unsafe { block_sums(simd, x, first, [0, len], &mut f) };
    }
    let mut sums = [const { PairwiseSum::new() }; M];
    for at in (0..len).step_by(BLOCK) {
        // SAFETY: as above.
        let block = unsafe { block_sums(simd, x, first, [at, BLOCK.min(len - at)], &mut f) };
        for (sum, block) in sums.iter_mut().zip(block) {
            sum.push(block);
        }
    }
    let mut out = [0.0; M];
    for (out, sum) in out.iter_mut().zip(&sums) {
        *out = sum.finish();
    }
    out
}

/// The sums of one block of `count` elements from `at` on.
///
/// # Safety
/// `at + count` elements lie behind every pointer, and may be written behind those of `totals`.
#[inline(always)]
unsafe fn block_sums<E, S, const N: usize, const A: usize, const M: usize>(
    simd: S,
    x: [*const E; N],
    totals: [*mut f64; A],
    [at, count]: [usize; 2],
    f: &mut impl FnMut([F64<S>; N], &mut [F64<S>; A]) -> [F64<S>; M],
) -> [f64; M]
where
    E: Float + Widen,
    S: Simd,
{
    let width = <S as Lanes<f64>>::LANES;
    let zero = Lanes::<f64>::splat(simd, 0.0);
    let mut lanes = [[zero; LANES]; M];
    let whole = count - count % LANES;
    for group in (at..at + whole).step_by(LANES) {
        for v in 0..LANES / width {
            let here = group + v * width;
            let (mut values, mut old) = ([zero; N], [zero; A]);
            // SAFETY: the group is whole.
            unsafe {
                for (value, x) in values.iter_mut().zip(x) {
                    *value = E::widen_up_to(simd, x.add(here), width);
                }
                for (old, totals) in old.iter_mut().zip(totals) {
                    *old = simd.load(totals.add(here));
                }
                let terms = f(values, &mut old);
                for (old, totals) in old.into_iter().zip(totals) {
                    simd.store(totals.add(here), old);
                }
                for (lanes, term) in lanes.iter_mut().zip(terms) {
                    lanes[v] = lanes[v] + term;
                }
            }
        }
    }
    if whole < count {
        for v in 0..LANES / width {
            let left = (count - whole).saturating_sub(v * width);
            let here = at + whole + (v * width).min(count - whole);
            let (mut values, mut old) = ([zero; N], [zero; A]);
            // SAFETY: `left` elements lie from `here` on. Lanes beyond them add +0, on every
            // instruction set alike.
            unsafe {
                for (value, x) in values.iter_mut().zip(x) {
                    *value = E::widen_up_to(simd, x.add(here), left);
                }
                for (old, totals) in old.iter_mut().zip(totals) {
                    *old = load_up_to(simd, totals.add(here), left);
                }
                let terms = f(values, &mut old);
                for (old, totals) in old.into_iter().zip(totals) {
                    store_up_to(simd, totals.add(here), left, old);
                }
                for (lanes, term) in lanes.iter_mut().zip(terms) {
                    let term = term.select(Lanes::<f64>::first(simd, left), zero);
                    lanes[v] = lanes[v] + term;
                }
            }
        }
    }
    let mut out = [0.0; M];
    for (out, lanes) in out.iter_mut().zip(lanes) {
        *out = sum_across(simd, lanes);
    }
    out
}

/// `y[i] = exp(x[i] − shift)` and the sum of what was written, which comes back with it. Meanwhile the
/// elements that lie `ahead` of these are asked for.
#[inline(always)]
pub(crate) fn exps<'y, E, S>(
    simd: S,
    x: &[E],
    shift: E,
    y: &'y mut [MaybeUninit<E>],
    ahead: usize,
) -> (&'y mut [E], f64)
where
    E: Float + Widen,
    S: Simd + Lanes<E>,
    Exp: Map<E, 1>,
{
    assert!(x.len() == y.len(), "a row has {} elements, the result {}", x.len(), y.len());
    let (first, len) = (y.as_mut_ptr().cast::<E>(), y.len());
    // SAFETY: both slices have `len` elements.
    let sum = unsafe {
        sum_of_exps::<E, S, true>(
            simd,
            [x.as_ptr(), x.as_ptr().wrapping_add(ahead)],
            shift,
            first,
            len,
        )
    };
    // SAFETY: every element has been written; the slice was borrowed for as long.
    (unsafe { core::slice::from_raw_parts_mut(first, len) }, sum)
}

/// `y = exp(x − shift)`, row by row; `y` is the rows without gaps.
#[track_caller]
pub(crate) fn exps_of_rows<'y, E: Stored>(
    x: BlockArg<'_, E>,
    shape: Block,
    shift: &[E],
    y: &'y mut [MaybeUninit<E>],
) -> &'y mut [E] {
    assert!(shape.stride == shape.cols && shape.rows * shape.cols == y.len());
    let shift = BlockArg { data: shift, start: 0, stride: 0, is_value: false };
    Sub::KERNEL.run_block([x, shift], shape, y);
    let (first, len) = (y.as_mut_ptr().cast::<E>(), y.len());
    // SAFETY: rows without gaps were written, which are all of the slice; it was borrowed for as long.
    let y = unsafe { core::slice::from_raw_parts_mut(first, len) };
    Exp::KERNEL.run_in_place([None], y);
    y
}

/// The sum of `exp(x[i] − shift)`, each rounded to `E`; `ahead` as for [`exps`].
#[inline(always)]
pub(crate) fn exps_sum<E, S>(simd: S, x: &[E], shift: E, ahead: usize) -> f64
where
    E: Float + Widen,
    S: Simd + Lanes<E>,
    Exp: Map<E, 1>,
{
    let nowhere = core::ptr::null_mut();
    // SAFETY: the slice has `len` elements; nothing is stored.
    unsafe {
        sum_of_exps::<E, S, false>(
            simd,
            [x.as_ptr(), x.as_ptr().wrapping_add(ahead)],
            shift,
            nowhere,
            x.len(),
        )
    }
}

/// # Safety
/// `x` has `len` elements; with `STORE`, `y` has room for as many. `next` may be any address.
#[inline(always)]
unsafe fn sum_of_exps<E, S, const STORE: bool>(
    simd: S,
    [x, next]: [*const E; 2],
    shift: E,
    y: *mut E,
    len: usize,
) -> f64
where
    E: Float + Widen,
    S: Simd + Lanes<E>,
    Exp: Map<E, 1>,
{
    if len <= BLOCK {
        // SAFETY: as the caller promised.
        return unsafe { block_of_exps::<E, S, STORE>(simd, [x, next], shift, y, len) };
    }
    let mut sum = PairwiseSum::new();
    for at in (0..len).step_by(BLOCK) {
        // SAFETY: the block lies within `len`.
        sum.push(unsafe {
            let y = if STORE { y.add(at) } else { y };
            block_of_exps::<E, S, STORE>(
                simd,
                [x.add(at), next.wrapping_add(at)],
                shift,
                y,
                BLOCK.min(len - at),
            )
        });
    }
    sum.finish()
}

/// Elements whose exponentials are computed together.
const TOGETHER: usize = 2 * LANES;

/// # Safety
/// As for [`sum_of_exps`], with `count` for `len`.
#[inline(always)]
unsafe fn block_of_exps<E, S, const STORE: bool>(
    simd: S,
    [x, next]: [*const E; 2],
    shift: E,
    y: *mut E,
    count: usize,
) -> f64
where
    E: Float + Widen,
    S: Simd + Lanes<E>,
    Exp: Map<E, 1>,
{
    let step = <S as Lanes<E>>::LANES;
    let mut lanes = [Lanes::<f64>::splat(simd, 0.0); LANES];
    let mut buffer = [E::ZERO; TOGETHER];
    let mut at = 0;
    while count - at >= TOGETHER {
        ask_for(simd, next.wrapping_add(at), TOGETHER);
        // SAFETY: so many elements are left from `at` on; the buffer has room for as many.
        unsafe {
            let (x, y) = (x.add(at), if STORE { y.add(at) } else { buffer.as_mut_ptr() });
            match const { TOGETHER / <S as Lanes<E>>::LANES } {
                2 => exps_together(Wide(simd), x, shift, y),
                4 | 8 | 16 => exps_together(Wide(Wide(simd)), x, shift, y),
                _ => exps_together(simd, x, shift, y),
            }
            for group in (0..TOGETHER).step_by(LANES) {
                add_group(simd, &mut lanes, y.add(group));
            }
        }
        at += TOGETHER;
    }
    let rest = count - at;
    for v in (0..rest).step_by(step) {
        // SAFETY: `rest − v` elements are left from there on; the buffer holds whole vectors.
        unsafe {
            let e = Lanes::<E>::splat(simd, shift);
            let e = Exp::apply(simd, [load_up_to(simd, x.add(at + v), rest - v) - e]);
            if STORE {
                store_up_to(simd, y.add(at + v), rest - v, e);
            }
            // Lanes beyond the end add +0, on every instruction set alike.
            let zero = Lanes::<E>::splat(simd, E::ZERO);
            let e = e.select(Lanes::<E>::first(simd, rest - v), zero);
            Lanes::<E>::store(simd, buffer.as_mut_ptr().add(v), e);
        }
    }
    if rest > 0 {
        buffer[rest.next_multiple_of(step)..].fill(E::ZERO);
    }
    for group in (0..rest).step_by(LANES) {
        // SAFETY: the buffer holds two groups.
        unsafe { add_group(simd, &mut lanes, buffer.as_ptr().add(group)) };
    }
    sum_across(simd, lanes)
}

/// `exp(x[i] − shift)` of [`TOGETHER`] elements.
///
/// # Safety
/// So many lie from `x` on, and may be written from `y` on.
#[inline(always)]
unsafe fn exps_together<E: Float, S: Lanes<E>>(simd: S, x: *const E, shift: E, y: *mut E)
where
    Exp: Map<E, 1>,
{
    let shift = simd.splat(shift);
    for v in (0..TOGETHER).step_by(S::LANES) {
        // SAFETY: as the caller promised; vectors divide the number.
        unsafe { simd.store(y.add(v), Exp::apply(simd, [simd.load(x.add(v)) - shift])) };
    }
}

/// Adds a group of elements to the lanes of a block.
///
/// # Safety
/// `x` is valid for reads of [`LANES`] elements.
#[inline(always)]
unsafe fn add_group<E: Float + Widen, S: Simd>(simd: S, lanes: &mut [F64<S>; LANES], x: *const E) {
    let width = <S as Lanes<f64>>::LANES;
    for (v, lane) in lanes.iter_mut().enumerate().take(LANES / width) {
        // SAFETY: as the caller promised.
        *lane = *lane + unsafe { E::widen_up_to(simd, x.add(v * width), width) };
    }
}

/// Vectors in flight of [`max_number`].
const UNROLL: usize = 4;

/// The largest element that is a number, with either sign if it is zero; −∞ if there is none.
#[inline(always)]
pub(crate) fn max_number<E: Float, S: Lanes<E>>(simd: S, x: &[E]) -> E {
    let lowest = simd.splat(-E::INFINITY);
    let (first, len) = (x.as_ptr(), x.len());
    let mut best = [lowest; UNROLL];
    let mut at = 0;
    while len - at >= UNROLL * S::LANES {
        ask_ahead(simd, first.wrapping_add(at), UNROLL * S::LANES);
        for (k, best) in best.iter_mut().enumerate() {
            // SAFETY: UNROLL whole vectors are left from `at` on.
            *best = unsafe { simd.load(first.add(at + k * S::LANES)) }.max_or_other(*best);
        }
        at += UNROLL * S::LANES;
    }
    while at < len {
        // SAFETY: `len - at` elements are left from `at` on.
        let v = unsafe { load_up_to(simd, first.add(at), len - at) };
        best[0] = v.select(simd.first(len - at), lowest).max_or_other(best[0]);
        at += S::LANES;
    }
    max_lane(simd, best)
}

/// The largest of the lanes, none of which is NaN.
#[inline(always)]
pub(crate) fn max_lane<E: Float, S: Lanes<E>>(simd: S, [a, b, c, d]: [S::V; 4]) -> E {
    let best = a.max_or_other(b).max_or_other(c.max_or_other(d));
    let mut lanes = [-E::INFINITY; LANES];
    // SAFETY: no vector has more lanes than the array.
    unsafe { simd.store(lanes.as_mut_ptr(), best) };
    let mut half = S::LANES;
    while half > 1 {
        half /= 2;
        for l in 0..half {
            lanes[l] = if lanes[l + half] > lanes[l] { lanes[l + half] } else { lanes[l] };
        }
    }
    lanes[0]
}

/// A one-argument kernel at one number.
#[inline(always)]
pub(crate) fn at_number<E: Float, S: Lanes<E>>(simd: S, x: E, f: impl FnOnce(S::V) -> S::V) -> E {
    let mut lanes = [x; LANES];
    // SAFETY: no vector has more lanes than the array.
    unsafe { simd.store(lanes.as_mut_ptr(), f(simd.splat(x))) };
    lanes[0]
}

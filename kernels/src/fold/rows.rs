//! Reductions of a row inside a kernel that has already entered its instruction set: sums of terms
//! that are computed on the fly, added in the tree of [the parent module](super). The functions
//! passed must be `#[inline(always)]` closures.

use core::hint::black_box;
use core::mem::MaybeUninit;
use core::sync::atomic::{Ordering, compiler_fence};

use super::extremum::Wanted;
use super::floats::load;
use super::{BLOCK, F64, LANES, PairwiseSum, Widen, across, prefetch, prefetch_ahead};
use crate::map::Map;
use crate::map::rows::{pointers, pointers_mut};
use crate::math::Exp;
use crate::simd::{Float, Lanes, MAX_LANES, Simd, Task, Vector, Wide};

/// The sums of the terms that `f` computes from the inputs' elements (widened exactly). `f` may
/// change the elements of `totals` at the same indices.
///
/// # Panics
/// If the lengths differ.
#[inline(always)]
pub(crate) fn sums<E, S, const N: usize, const A: usize, const M: usize>(
    simd: S,
    x: [&[E]; N],
    totals: [&mut [f64]; A],
    mut f: impl FnMut([F64<S>; N], &mut [F64<S>; A]) -> [F64<S>; M],
) -> [f64; M]
where
    E: Float + Widen,
    S: Simd,
{
    let len = x[0].len();
    let (x, totals) = (pointers(x, len), pointers_mut(totals, len));
    let mut trees = [const { PairwiseSum::new() }; M];
    let mut at = 0;
    loop {
        let end = len.min(at + BLOCK);
        let mut lanes = [[Lanes::<f64>::splat(simd, 0.0); LANES]; M];
        while end - at >= LANES {
            for v in 0..LANES / <S as Lanes<f64>>::LANES {
                let width = <S as Lanes<f64>>::LANES;
                // SAFETY: the lengths were compared and the arrays are borrowed, so every pointer
                // has `len` elements, of which a whole group is left.
                unsafe {
                    let terms = Operands { x, totals, here: at + v * width, left: width };
                    terms.add(simd, &mut f, v, &mut lanes);
                }
            }
            at += LANES;
        }
        if at < end {
            for v in 0..LANES / <S as Lanes<f64>>::LANES {
                let here = end.min(at + v * <S as Lanes<f64>>::LANES);
                // SAFETY: every pointer has `len` elements, of which `end - here` are left.
                unsafe {
                    let terms = Operands { x, totals, here, left: end - here };
                    terms.add(simd, &mut f, v, &mut lanes);
                }
            }
            at = end;
        }
        let sums = across_all(simd, lanes);
        if len <= BLOCK {
            return sums;
        }
        push_all(&mut trees, sums);
        if at == len {
            return finish_all(&trees);
        }
    }
}

/// The sums across a block's lanes.
#[inline(always)]
fn across_all<S: Simd, const M: usize>(simd: S, lanes: [[F64<S>; LANES]; M]) -> [f64; M] {
    let mut sums = [0.0; M];
    for m in 0..M {
        sums[m] = across(simd, lanes[m], false);
    }
    sums
}

#[inline(always)]
fn push_all<const M: usize>(trees: &mut [PairwiseSum; M], sums: [f64; M]) {
    for m in 0..M {
        trees[m].push(sums[m]);
    }
}

#[inline(always)]
fn finish_all<const M: usize>(trees: &[PairwiseSum; M]) -> [f64; M] {
    let mut sums = [0.0; M];
    for m in 0..M {
        sums[m] = trees[m].finish();
    }
    sums
}

/// A vector of every operand's elements from `here` on, or only `left` elements if they are fewer.
#[derive(Clone, Copy)]
struct Operands<E, const N: usize, const A: usize> {
    x: [*const E; N],
    totals: [*mut f64; A],
    here: usize,
    left: usize,
}

impl<E: Float + Widen, const N: usize, const A: usize> Operands<E, N, A> {
    /// Adds the terms that `f` computes from the elements to the lanes of vector `v`.
    ///
    /// # Safety
    /// Every pointer has `left` elements from `here` on; those of `totals` may be written.
    #[inline(always)]
    unsafe fn add<S: Simd, const M: usize>(
        self,
        simd: S,
        f: &mut impl FnMut([F64<S>; N], &mut [F64<S>; A]) -> [F64<S>; M],
        v: usize,
        lanes: &mut [[F64<S>; LANES]; M],
    ) {
        // SAFETY: the caller promises the elements.
        unsafe {
            let mut old = self.load_totals(simd);
            let terms = f(self.load(simd), &mut old);
            self.store_totals(simd, old);
            add_lanes(simd, terms, self.left, v, lanes);
        }
    }

    /// # Safety
    /// See [`Operands::add`].
    #[inline(always)]
    unsafe fn load<S: Simd>(self, simd: S) -> [F64<S>; N] {
        let mut values = [Lanes::<f64>::splat(simd, 0.0); N];
        for i in 0..N {
            // SAFETY: the caller promises the elements.
            values[i] =
                unsafe { load(simd, E::FORMAT, self.x[i].add(self.here).cast(), self.left) };
        }
        values
    }

    /// # Safety
    /// See [`Operands::add`].
    #[inline(always)]
    unsafe fn load_totals<S: Simd>(self, simd: S) -> [F64<S>; A] {
        let mut values = [Lanes::<f64>::splat(simd, 0.0); A];
        for i in 0..A {
            // SAFETY: the caller promises the elements.
            values[i] = unsafe { simd.load_up_to(self.totals[i].add(self.here), self.left) };
        }
        values
    }

    /// # Safety
    /// See [`Operands::add`].
    #[inline(always)]
    unsafe fn store_totals<S: Simd>(self, simd: S, values: [F64<S>; A]) {
        for i in 0..A {
            // SAFETY: the caller promises the elements.
            unsafe { simd.store_up_to(self.totals[i].add(self.here), self.left, values[i]) };
        }
    }
}

/// Adds terms of `left` elements, or of a whole vector, to the lanes of vector `v`.
#[inline(always)]
fn add_lanes<S: Simd, const M: usize>(
    simd: S,
    terms: [F64<S>; M],
    left: usize,
    v: usize,
    lanes: &mut [[F64<S>; LANES]; M],
) {
    for m in 0..M {
        let mut term = terms[m];
        if left < <S as Lanes<f64>>::LANES {
            // Lanes beyond the elements add +0, on every instruction set.
            term = term.select(Lanes::<f64>::first(simd, left), simd.splat(0.0));
        }
        lanes[m][v] = lanes[m][v] + term;
    }
}

/// Writes `y[i] = exp(x[i] − shift)`; returns what was written and its sum. Prefetches the elements
/// that are `ahead` elements further on.
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
    let next = x.as_ptr().wrapping_add(ahead);
    // SAFETY: both slices have `len` elements.
    let sum = unsafe { sum_of_exps(simd, [x.as_ptr(), next], shift, Some(first), len) };
    // SAFETY: every element has been written; the slice was borrowed for as long.
    (unsafe { core::slice::from_raw_parts_mut(first, len) }, sum)
}

/// The sum of `exp(x[i] − shift)`, each rounded to `E`; for `ahead` see [`exps`].
#[inline(always)]
pub(crate) fn exps_sum<E, S>(simd: S, x: &[E], shift: E, ahead: usize) -> f64
where
    E: Float + Widen,
    S: Simd + Lanes<E>,
    Exp: Map<E, 1>,
{
    let next = x.as_ptr().wrapping_add(ahead);
    // SAFETY: the slice has `len` elements; nothing is stored.
    unsafe { sum_of_exps(simd, [x.as_ptr(), next], shift, None, x.len()) }
}

/// # Safety
/// `x` has `len` elements; `y`, if given, has room for as many. `next` may be any address.
#[inline(always)]
unsafe fn sum_of_exps<E, S>(
    simd: S,
    [x, next]: [*const E; 2],
    shift: E,
    y: Option<*mut E>,
    len: usize,
) -> f64
where
    E: Float + Widen,
    S: Simd + Lanes<E>,
    Exp: Map<E, 1>,
{
    let block = |at: usize| BlockOfExps {
        x: x.wrapping_add(at),
        next: next.wrapping_add(at),
        shift,
        y: y.map(|y| y.wrapping_add(at)),
        count: BLOCK.min(len - at),
    };
    if len < TOGETHER {
        // SAFETY: the caller promises the elements.
        return unsafe { block(0).rest(simd, 0, [simd.splat(0.0); LANES]) };
    }
    if len <= BLOCK {
        return E::call(simd, block(0));
    }
    let mut sum = PairwiseSum::new();
    for at in (0..len).step_by(BLOCK) {
        sum.push(E::call(simd, block(at)));
    }
    sum.finish()
}

/// Elements whose exponentials are computed at once.
const TOGETHER: usize = 2 * LANES;

/// Computes `exp(x − shift)` of at most a block, into `y` if given, and their sum. A separate
/// function, shared by all row kernels.
///
/// Only [`sum_of_exps`] makes it; its caller's promises hold, with `count` for `len`.
struct BlockOfExps<E> {
    x: *const E,
    next: *const E,
    shift: E,
    y: Option<*mut E>,
    count: usize,
}

impl<E: Float + Widen> Task<E> for BlockOfExps<E>
where
    Exp: Map<E, 1>,
{
    type Home = Self;
    type Output = f64;
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) -> f64 {
        let BlockOfExps { x, next, shift, y, count } = self;
        let mut lanes = [Lanes::<f64>::splat(simd, 0.0); LANES];
        let mut buffer = black_box([E::ZERO; TOGETHER]);
        let mut at = 0;
        while count - at >= TOGETHER {
            prefetch(simd, next.wrapping_add(at).cast(), TOGETHER * size_of::<E>());
            // SAFETY: that many elements are left from `at` on; the buffer has room for as many.
            unsafe {
                let x = x.add(at);
                let y = if let Some(y) = y { y.add(at) } else { buffer.as_mut_ptr() };
                match const { TOGETHER / <S as Lanes<E>>::LANES } {
                    2 => exps_together(Wide(simd), x, shift, y),
                    4 | 8 | 16 => exps_together(Wide(Wide(simd)), x, shift, y),
                    _ => exps_together(simd, x, shift, y),
                }
                // Without it the compiler may take the elements out of the vectors just stored, one by one.
                compiler_fence(Ordering::SeqCst);
                for group in (0..TOGETHER).step_by(LANES) {
                    add_group(simd, &mut lanes, y.add(group));
                }
            }
            at += TOGETHER;
        }
        // SAFETY: fewer than [`TOGETHER`] elements are left; `sum_of_exps` promises the rest.
        unsafe { self.rest(simd, at, lanes) }
    }
}

impl<E: Float + Widen> BlockOfExps<E>
where
    Exp: Map<E, 1>,
{
    /// Computes the last elements, fewer than [`TOGETHER`], from `at` on; returns the sum of all.
    ///
    /// # Safety
    /// See [`BlockOfExps`].
    #[inline(always)]
    unsafe fn rest<S: Simd + Lanes<E>>(
        &self,
        simd: S,
        at: usize,
        mut lanes: [F64<S>; LANES],
    ) -> f64 {
        let step = <S as Lanes<E>>::LANES;
        let rest = self.count - at;
        let mut buffer = [E::ZERO; TOGETHER];
        for v in (0..rest).step_by(step) {
            // SAFETY: `rest − v` elements are left; the buffer holds whole vectors.
            unsafe {
                let shift = Lanes::<E>::splat(simd, self.shift);
                let x = simd.load_up_to(self.x.add(at + v), rest - v);
                let e = Exp::apply(simd, [x - shift]);
                if let Some(y) = self.y {
                    simd.store_up_to(y.add(at + v), rest - v, e);
                }
                // Lanes beyond the end add +0, on every instruction set.
                let zero = Lanes::<E>::splat(simd, E::ZERO);
                let e = e.select(Lanes::<E>::first(simd, rest - v), zero);
                Lanes::<E>::store(simd, buffer.as_mut_ptr().add(v), e);
            }
        }
        for group in (0..rest).step_by(LANES) {
            // SAFETY: the buffer holds two groups.
            unsafe { add_group(simd, &mut lanes, buffer.as_ptr().add(group)) };
        }
        across(simd, lanes, false)
    }
}

/// Computes `exp(x[i] − shift)` of [`TOGETHER`] elements.
///
/// # Safety
/// `x` is valid for reads and `y` for writes of that many elements.
#[inline(always)]
unsafe fn exps_together<E: Float, S: Lanes<E>>(simd: S, x: *const E, shift: E, y: *mut E)
where
    Exp: Map<E, 1>,
{
    let shift = simd.splat(shift);
    for v in (0..TOGETHER).step_by(S::LANES) {
        // SAFETY: the caller promises the elements, a multiple of a vector.
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
    for v in 0..LANES / width {
        // SAFETY: the caller promises [`LANES`] elements.
        let x = unsafe { load(simd, E::FORMAT, x.add(v * width).cast(), width) };
        lanes[v] = lanes[v] + x;
    }
}

/// Vectors in flight in [`max_number`].
const UNROLL: usize = 4;

/// The largest element, ignoring NaN and the sign of zero; −∞ if there is none.
#[inline(always)]
pub(crate) fn max_number<E: Float, S: Lanes<E>>(simd: S, x: &[E]) -> E {
    let lowest = simd.splat(-E::INFINITY);
    let (first, len) = (x.as_ptr(), x.len());
    let mut best = [lowest; UNROLL];
    let mut at = 0;
    while len - at >= UNROLL * S::LANES {
        prefetch_ahead(simd, first.wrapping_add(at), UNROLL * S::LANES);
        for k in 0..UNROLL {
            // SAFETY: UNROLL whole vectors are left from `at` on.
            best[k] = unsafe { simd.load(first.add(at + k * S::LANES)) }.max_or_other(best[k]);
        }
        at += UNROLL * S::LANES;
    }
    while at < len {
        // SAFETY: `len - at` elements are left from `at` on.
        let v = unsafe { simd.load_up_to(first.add(at), len - at) };
        best[0] = v.select(simd.first(len - at), lowest).max_or_other(best[0]);
        at += S::LANES;
    }
    max_lane(simd, best)
}

/// The largest lane; none is NaN.
#[inline(always)]
pub(crate) fn max_lane<E: Float, S: Lanes<E>>(simd: S, [a, b, c, d]: [S::V; 4]) -> E {
    const { assert!(S::LANES <= MAX_LANES) };
    let best = a.max_or_other(b).max_or_other(c.max_or_other(d));
    let mut lanes = [-E::INFINITY; MAX_LANES];
    // SAFETY: the array holds a whole vector, as asserted above.
    unsafe { simd.store(lanes.as_mut_ptr(), best) };
    Wanted { largest: true, magnitude: false }.across(lanes, S::LANES)
}

/// Applies a one-argument kernel to one number.
#[inline(always)]
pub(crate) fn at_number<E: Float, S: Lanes<E>>(simd: S, x: E, f: impl FnOnce(S::V) -> S::V) -> E {
    const { assert!(S::LANES <= MAX_LANES) };
    let mut lanes = [x; MAX_LANES];
    // SAFETY: the array holds a whole vector, as asserted above.
    unsafe { simd.store(lanes.as_mut_ptr(), f(simd.splat(x))) };
    lanes[0]
}

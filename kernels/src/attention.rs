//! What attention does to a block of rows of scores: softmax, and its derivative, in place.
//!
//! ```text
//! weights        m = max(scale x)    p = e^(scale x − m)            inverse = 1 / Σ p
//! derivative                         p = e^(scale x − m) inverse    d = grad_scale · p (d − mean)
//! ```
//!
//! 1. A row sees its first columns alone; the others become zeros, so that products may run over the
//!    whole block.
//! 2. Weights are left as they are and the caller divides the result, which has fewer columns.
//! 3. A row that sees nothing, or −∞ alone, has weights of zero and −∞ as its largest score.
//! 4. The largest score and the sum stay two numbers: m + ln Σ p, rounded, would cost each weight as many
//!    places as the scores are large. The largest is rounded, and what it is subtracted from is not: beyond about 1e9
//!    (`f64`: 1e18) half a place of a score may make a row infinite or NaN.
//! 5. Sums are those of [`PairwiseSum`](crate::PairwiseSum). One call a block: rows are short.

use crate::dispatch::run;
use crate::fold::rows::max_lane;
use crate::fold::{Widen, dot_within, sum_within};
use crate::map::Map;
use crate::math::Exp;
use crate::simd::{Float, Lanes, Mask, Simd, Task, Vector};

/// Vectors in flight.
const UNROLL: usize = 4;

/// A block of rows of scores.
#[derive(Clone, Copy, Debug)]
pub struct ScoreBlock<E> {
    /// Rows of the block.
    pub rows: usize,
    /// Columns of the block.
    pub columns: usize,
    /// Elements from the start of a row to the next; at least `columns`.
    pub stride: usize,
    /// Row i sees the first `seen + i` columns; `None`: all.
    pub seen: Option<isize>,
    /// Factor of the scores.
    pub scale: E,
}

impl<E> ScoreBlock<E> {
    #[inline(always)]
    fn seen(&self, row: usize) -> usize {
        match self.seen {
            None => self.columns,
            Some(seen) => {
                self.columns.min(usize::try_from(seen.saturating_add(row as isize)).unwrap_or(0))
            }
        }
    }

    #[track_caller]
    fn check<const N: usize>(&self, name: &str, block: usize, of_rows: [usize; N]) {
        let reach = self.rows.saturating_sub(1).checked_mul(self.stride);
        let len = reach.and_then(|reach| reach.checked_add(self.columns));
        let fits = self.rows == 0 || len.is_some_and(|len| len <= block);
        let Self { rows, columns, stride, .. } = self;
        assert!(
            fits && (*rows < 2 || columns <= stride) && of_rows == [*rows; N],
            "{name}: {rows} rows of {columns} in steps of {stride} need more than {block} elements, \
             or {of_rows:?} rows"
        );
    }
}

/// Element types that attention is computed in: `f32` and `f64`. Sealed.
pub trait Attend: Float {
    #[doc(hidden)]
    #[track_caller]
    fn weights(scores: &mut [Self], block: ScoreBlock<Self>, of_rows: [&mut [Self]; 2]);
    #[doc(hidden)]
    #[track_caller]
    fn weights_grad(
        rows: [&mut [Self]; 2],
        block: ScoreBlock<Self>,
        of_rows: [&[Self]; 3],
        grad_scale: Self,
    );
    #[doc(hidden)]
    #[track_caller]
    fn dots(columns: usize, a: (&[Self], usize), b: (&[Self], usize), y: &mut [Self]);
}

macro_rules! impl_attend {
    ($($t:ident)*) => {$(
        impl Attend for $t {
            #[track_caller]
            fn weights(scores: &mut [$t], block: ScoreBlock<$t>, of_rows: [&mut [$t]; 2]) {
                let [largest, inverse] = of_rows;
                block.check("attention_weights", scores.len(), [largest.len(), inverse.len()]);
                run(Weights { scores, block, largest, inverse });
            }
            #[track_caller]
            fn weights_grad(
                rows: [&mut [$t]; 2],
                block: ScoreBlock<$t>,
                of_rows: [&[$t]; 3],
                grad_scale: $t,
            ) {
                let ([scores, grad], [largest, inverse, mean]) = (rows, of_rows);
                let lens = [largest.len(), inverse.len(), mean.len()];
                let name = "attention_weights_grad";
                block.check(name, scores.len().min(grad.len()), lens);
                run(WeightsGrad { scores, grad, block, largest, inverse, mean, grad_scale });
            }
            #[track_caller]
            fn dots(columns: usize, a: (&[$t], usize), b: (&[$t], usize), y: &mut [$t]) {
                check_rows(y.len(), columns, a);
                check_rows(y.len(), columns, b);
                run(Dots { columns, a, b, y });
            }
        }
        impl Task for Weights<'_, $t> {
            type Home = Self;
            type Output = ();
            #[inline(always)]
            fn run<S: Simd>(self, simd: S) {
                self.on::<S>(simd);
            }
        }
        impl Task for WeightsGrad<'_, $t> {
            type Home = Self;
            type Output = ();
            #[inline(always)]
            fn run<S: Simd>(self, simd: S) {
                self.on::<S>(simd);
            }
        }
        impl Task for Dots<'_, $t> {
            type Home = Self;
            type Output = ();
            #[inline(always)]
            fn run<S: Simd>(self, simd: S) {
                self.on::<S>(simd);
            }
        }
    )*};
}
impl_attend!(f32 f64);

/// Panics unless the slice has so many rows, its own stride apart.
#[track_caller]
fn check_rows<E>(rows: usize, columns: usize, (x, stride): (&[E], usize)) {
    let reach = rows.saturating_sub(1).checked_mul(stride);
    let len = reach.and_then(|reach| reach.checked_add(columns));
    assert!(
        rows == 0 || len.is_some_and(|len| len <= x.len()),
        "row_dots: {rows} rows of {columns} in steps of {stride} exceed {} elements",
        x.len()
    );
}

struct Weights<'a, E> {
    scores: &'a mut [E],
    block: ScoreBlock<E>,
    largest: &'a mut [E],
    inverse: &'a mut [E],
}

struct WeightsGrad<'a, E> {
    scores: &'a mut [E],
    grad: &'a mut [E],
    block: ScoreBlock<E>,
    largest: &'a [E],
    inverse: &'a [E],
    mean: &'a [E],
    grad_scale: E,
}

struct Dots<'a, E> {
    columns: usize,
    a: (&'a [E], usize),
    b: (&'a [E], usize),
    y: &'a mut [E],
}

impl<E: Float + Widen> Weights<'_, E> {
    #[inline(always)]
    fn on<S: Simd + Lanes<E>>(self, simd: S)
    where
        Exp: Map<E, 1>,
    {
        let Weights { scores, block, largest: maxima, inverse } = self;
        let scale = Lanes::<E>::splat(simd, block.scale);
        for i in 0..block.rows {
            let seen = block.seen(i);
            let row = scores[i * block.stride..][..block.columns].as_mut_ptr();
            // SAFETY: the row has `columns` elements by the slicing, and `seen <= columns`.
            unsafe {
                let largest = largest(simd, row, seen, scale);
                let mut sum = E::ONE;
                if largest == -E::INFINITY {
                    core::slice::from_raw_parts_mut(row, seen).fill(E::ZERO);
                } else {
                    let minus = Lanes::<E>::splat(simd, -largest);
                    exponentials(simd, row, seen, scale, minus);
                    sum = E::from_f64(sum_within(simd, row, seen));
                }
                let rest = row.add(seen);
                core::slice::from_raw_parts_mut(rest, block.columns - seen).fill(E::ZERO);
                (maxima[i], inverse[i]) = (largest, sum);
            }
        }
        let one = Lanes::<E>::splat(simd, E::ONE);
        let mut i = 0;
        while i < block.rows {
            let count = block.rows - i;
            let inverse = inverse[i..].as_mut_ptr();
            // SAFETY: `count` of the `rows` elements begin at i.
            unsafe {
                let sum = Lanes::<E>::load_up_to(simd, inverse, count);
                Lanes::<E>::store_up_to(simd, inverse, count, one / sum);
            }
            i += <S as Lanes<E>>::LANES;
        }
    }
}

impl<E: Float + Widen> WeightsGrad<'_, E> {
    #[inline(always)]
    fn on<S: Simd + Lanes<E>>(self, simd: S)
    where
        Exp: Map<E, 1>,
    {
        let WeightsGrad { scores, grad, block, largest, inverse, mean, grad_scale } = self;
        let scale = Lanes::<E>::splat(simd, block.scale);
        let grad_scale = Lanes::<E>::splat(simd, grad_scale);
        for i in 0..block.rows {
            let blind = largest[i] == -E::INFINITY;
            let seen = if blind { 0 } else { block.seen(i) };
            let scores = &mut scores[i * block.stride..][..block.columns];
            let grad = &mut grad[i * block.stride..][..block.columns];
            let [minus, inverse, mean] =
                Lanes::<E>::splat_all(simd, [-largest[i], inverse[i], mean[i]]);
            let (x, d) = (scores.as_mut_ptr(), grad.as_mut_ptr());
            let mut j = 0;
            while j < seen {
                let count = seen - j;
                // SAFETY: both rows have `columns >= seen` elements by the slicing.
                unsafe {
                    let score = Lanes::<E>::load_up_to(simd, x.add(j), count);
                    let slope = Lanes::<E>::load_up_to(simd, d.add(j), count);
                    let p = Exp::apply(simd, [score.mul_add(scale, minus)]) * inverse;
                    Lanes::<E>::store_up_to(simd, x.add(j), count, p);
                    Lanes::<E>::store_up_to(simd, d.add(j), count, p * (slope - mean) * grad_scale);
                }
                j += <S as Lanes<E>>::LANES;
            }
            scores[seen..].fill(E::ZERO);
            grad[seen..].fill(E::ZERO);
        }
    }
}

impl<E: Float + Widen> Dots<'_, E> {
    #[inline(always)]
    fn on<S: Simd>(self, simd: S) {
        let Dots { columns, a, b, y } = self;
        for (i, y) in y.iter_mut().enumerate() {
            let (a, b) = (&a.0[i * a.1..][..columns], &b.0[i * b.1..][..columns]);
            // SAFETY: both slices have `columns` elements.
            *y = E::from_f64(unsafe { dot_within(simd, a.as_ptr(), b.as_ptr(), columns) });
        }
    }
}

/// The largest of `scale x`: NaN if there is one, −∞ of nothing.
///
/// # Safety
/// `x` is valid for reads of `len` elements.
#[inline(always)]
unsafe fn largest<E: Float, S: Lanes<E>>(simd: S, x: *const E, len: usize, scale: S::V) -> E {
    let lowest = simd.splat(-E::INFINITY);
    let mut best = [lowest; UNROLL];
    let mut nan = simd.first(0);
    let mut j = 0;
    while len - j >= UNROLL * S::LANES {
        for (v, best) in best.iter_mut().enumerate() {
            // SAFETY: UNROLL whole vectors are left.
            let x = unsafe { simd.load(x.add(j + v * S::LANES)) } * scale;
            nan = nan | x.is_nan();
            *best = x.max_or_other(*best);
        }
        j += UNROLL * S::LANES;
    }
    while j < len {
        let count = len - j;
        // SAFETY: `count` elements are left.
        let x = unsafe { simd.load_up_to(x.add(j), count) } * scale;
        let x = if count < S::LANES { x.select(simd.first(count), lowest) } else { x };
        nan = nan | x.is_nan();
        best[0] = x.max_or_other(best[0]);
        j += S::LANES;
    }
    if nan.any() {
        return E::NAN;
    }
    max_lane(simd, best)
}

/// `x[i] = e^(scale x[i] + shift)`.
///
/// # Safety
/// `x` is valid for reads and writes of `len` elements.
#[inline(always)]
unsafe fn exponentials<E: Float, S: Lanes<E>>(
    simd: S,
    x: *mut E,
    len: usize,
    scale: S::V,
    shift: S::V,
) where
    Exp: Map<E, 1>,
{
    let mut j = 0;
    while len - j >= UNROLL * S::LANES {
        let mut v = [shift; UNROLL];
        for (k, v) in v.iter_mut().enumerate() {
            // SAFETY: UNROLL whole vectors are left.
            *v = unsafe { simd.load(x.add(j + k * S::LANES)) }.mul_add(scale, shift);
        }
        for v in &mut v {
            *v = Exp::apply(simd, [*v]);
        }
        for (k, v) in v.iter().enumerate() {
            // SAFETY: as for the loads.
            unsafe { simd.store(x.add(j + k * S::LANES), *v) };
        }
        j += UNROLL * S::LANES;
    }
    while j < len {
        // SAFETY: `len - j` elements are left.
        unsafe {
            let v = simd.load_up_to(x.add(j), len - j).mul_add(scale, shift);
            simd.store_up_to(x.add(j), len - j, Exp::apply(simd, [v]));
        }
        j += S::LANES;
    }
}

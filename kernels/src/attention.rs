//! Softmax of a block of attention scores and its derivative, in place, and dot products of rows.
//!
//! ```text
//! weights        m = max(scale x)    p = e^(scale x − m)            inverse = 1 / Σ p
//! derivative                         p = e^(scale x − m) inverse    d = grad_scale · p (d − mean)
//! ```
//!
//! 1. Only the first columns of a row are visible. The masked ones become zeros, so that the matrix
//!    products that follow may run over the whole block.
//! 2. The weights are left unnormalised. The caller multiplies the output by `inverse` instead: the
//!    output has fewer columns.
//! 3. A row without a visible score above −∞ gets weights of zero, and −∞ as its largest score.
//! 4. m and `inverse` are saved as two numbers. Rounding m + ln Σ p to one number would cost every
//!    weight more digits the larger the scores are. m is rounded, but `scale x` in `scale x − m` is
//!    not (a fused multiply-add): for scores beyond about 1e9 (`f64`: 1e18), this rounding error
//!    alone can overflow the exponential and make a row infinite or NaN.
//! 5. Sums are added like those of [`PairwiseSum`](crate::PairwiseSum).
//! 6. Rows are short, so one call processes a whole block of them.

use crate::fold::rows::max_lane;
use crate::fold::{Widen, dot_within, sum_within};
use crate::map::Map;
use crate::math::Exp;
use crate::simd::{Float, Lanes, Mask, Simd, Task, Vector};

/// Vectors in flight: hides the latency of an instruction.
const UNROLL: usize = 4;

/// Shape of a block of attention scores, the mask of its columns and the factor of the scores.
#[derive(Clone, Copy, Debug)]
pub struct ScoreBlock<E> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Elements from the start of one row to the start of the next; at least `columns`.
    pub stride: usize,
    /// The first `seen + i` columns of row i are visible, the others masked; `None`: all are
    /// visible.
    pub seen: Option<isize>,
    /// The factor by which scores are multiplied.
    pub scale: E,
}

impl<E> ScoreBlock<E> {
    /// Returns the number of visible columns of a row.
    #[inline(always)]
    fn visible(&self, row: usize) -> usize {
        match self.seen {
            None => self.columns,
            Some(seen) => {
                self.columns.min(usize::try_from(seen.saturating_add(row as isize)).unwrap_or(0))
            }
        }
    }

    /// Panics if the block exceeds `len` elements, if its rows overlap, or if one of `per_row`, the
    /// lengths of the slices with one element per row, is not the number of rows.
    #[track_caller]
    pub(crate) fn check<const N: usize>(&self, name: &str, len: usize, per_row: [usize; N]) {
        let &Self { rows, columns, stride, .. } = self;
        assert!(
            rows_fit(rows, columns, stride, len),
            "{name}: {rows} rows of {columns} with stride {stride} exceed {len} elements"
        );
        assert!(
            rows < 2 || columns <= stride,
            "{name}: {rows} rows of {columns} with stride {stride} overlap"
        );
        assert!(
            per_row == [rows; N],
            "{name}: expected {rows} elements per row statistic, got {per_row:?}"
        );
    }
}

/// True if `rows` rows of `columns` elements, whose starts are `stride` elements apart, end within
/// `len` elements.
fn rows_fit(rows: usize, columns: usize, stride: usize, len: usize) -> bool {
    let last = rows.saturating_sub(1).checked_mul(stride);
    let end = last.and_then(|last| last.checked_add(columns));
    rows == 0 || end.is_some_and(|end| end <= len)
}

/// Panics if the rows of an argument of [`row_dots`](crate::row_dots), a slice and its stride,
/// exceed the slice.
#[track_caller]
pub(crate) fn check_rows<E>(rows: usize, columns: usize, (x, stride): (&[E], usize)) {
    let len = x.len();
    assert!(
        rows_fit(rows, columns, stride, len),
        "row_dots: {rows} rows of {columns} with stride {stride} exceed {len} elements"
    );
}

/// The task of [`attention_weights`](crate::attention_weights).
pub(crate) struct Weights<'a, E> {
    pub scores: &'a mut [E],
    pub block: ScoreBlock<E>,
    pub largest: &'a mut [E],
    pub inverse: &'a mut [E],
}

/// The task of [`attention_weights_grad`](crate::attention_weights_grad).
pub(crate) struct WeightsGrad<'a, E> {
    pub scores: &'a mut [E],
    pub grad: &'a mut [E],
    pub block: ScoreBlock<E>,
    pub largest: &'a [E],
    pub inverse: &'a [E],
    pub mean: &'a [E],
    pub grad_scale: E,
}

/// The task of [`row_dots`](crate::row_dots).
pub(crate) struct Dots<'a, E> {
    pub columns: usize,
    pub a: (&'a [E], usize),
    pub b: (&'a [E], usize),
    pub y: &'a mut [E],
}

impl<E: Float + Widen> Task<E> for Weights<'_, E>
where
    Exp: Map<E, 1>,
{
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let Weights { scores, block, largest: maxima, inverse } = self;
        let scale = Lanes::<E>::splat(simd, block.scale);
        for i in 0..block.rows {
            let visible = block.visible(i);
            let row = scores[i * block.stride..][..block.columns].as_mut_ptr();
            // SAFETY: the row was sliced to `columns` elements, and `visible <= columns`.
            unsafe {
                let largest = largest(simd, row, visible, scale);
                let mut sum = E::ONE;
                if largest == -E::INFINITY {
                    core::slice::from_raw_parts_mut(row, visible).fill(E::ZERO);
                } else {
                    let minus_largest = Lanes::<E>::splat(simd, -largest);
                    exponentials(simd, row, visible, scale, minus_largest);
                    sum = E::from_f64(sum_within(simd, row, visible));
                }
                let masked = row.add(visible);
                core::slice::from_raw_parts_mut(masked, block.columns - visible).fill(E::ZERO);
                (maxima[i], inverse[i]) = (largest, sum);
            }
        }
        let one = Lanes::<E>::splat(simd, E::ONE);
        let mut i = 0;
        while i < block.rows {
            let count = block.rows - i;
            let inverse = inverse[i..].as_mut_ptr();
            // SAFETY: `count` of the `rows` elements are left from i on.
            unsafe {
                let sum = Lanes::<E>::load_up_to(simd, inverse, count);
                Lanes::<E>::store_up_to(simd, inverse, count, one / sum);
            }
            i += <S as Lanes<E>>::LANES;
        }
    }
}

impl<E: Float + Widen> Task<E> for WeightsGrad<'_, E>
where
    Exp: Map<E, 1>,
{
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let WeightsGrad { scores, grad, block, largest, inverse, mean, grad_scale } = self;
        let scale = Lanes::<E>::splat(simd, block.scale);
        let grad_scale = Lanes::<E>::splat(simd, grad_scale);
        for i in 0..block.rows {
            let visible = if largest[i] == -E::INFINITY { 0 } else { block.visible(i) };
            let scores = &mut scores[i * block.stride..][..block.columns];
            let grad = &mut grad[i * block.stride..][..block.columns];
            let [minus_largest, inverse, mean] =
                Lanes::<E>::splat_all(simd, [-largest[i], inverse[i], mean[i]]);
            let (x, d) = (scores.as_mut_ptr(), grad.as_mut_ptr());
            let mut j = 0;
            while j < visible {
                let count = visible - j;
                // SAFETY: both rows were sliced to `columns` elements, and `visible <= columns`.
                unsafe {
                    let score = Lanes::<E>::load_up_to(simd, x.add(j), count);
                    let upstream = Lanes::<E>::load_up_to(simd, d.add(j), count);
                    let p = Exp::apply(simd, [score.mul_add(scale, minus_largest)]) * inverse;
                    Lanes::<E>::store_up_to(simd, x.add(j), count, p);
                    Lanes::<E>::store_up_to(
                        simd,
                        d.add(j),
                        count,
                        p * (upstream - mean) * grad_scale,
                    );
                }
                j += <S as Lanes<E>>::LANES;
            }
            scores[visible..].fill(E::ZERO);
            grad[visible..].fill(E::ZERO);
        }
    }
}

impl<E: Float + Widen> Task<E> for Dots<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Dots { columns, a, b, y } = self;
        for (i, y) in y.iter_mut().enumerate() {
            let (a, b) = (&a.0[i * a.1..][..columns], &b.0[i * b.1..][..columns]);
            // SAFETY: both slices have `columns` elements.
            *y = E::from_f64(unsafe { dot_within(simd, a.as_ptr(), b.as_ptr(), columns) });
        }
    }
}

/// Returns the largest `scale · x[i]`: NaN if any is NaN, −∞ if there are none.
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

/// Replaces `x[i]` by `e^(scale · x[i] + shift)`.
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

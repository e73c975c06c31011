//! Layer norm of rows, and the gradients of x, weight and bias.
//!
//! ```text
//! μ = Σ x / n       σ² = Σ (x − μ)² / n       r = 1 / √(σ² + ε)       x̂ = (x − μ) r
//! y = x̂ w + b
//! h = g w           dx = r (h − mean h − x̂ mean(h x̂))         dw = Σ_rows g x̂       db = Σ_rows g
//! ```
//!
//! 1. Statistics are summed in `f64`, the variance from the differences x − μ. μ is subtracted as
//!    the sum of two numbers of type `E`, so that a row whose mean is far from 0 keeps its digits.
//! 2. The backward pass computes μ again, because the saved mean is rounded to `E`. One pass then
//!    widens g and x and computes four sums: two along the row, and two over the rows, which are
//!    accumulated in the caller's `f64` buffers row by row.

use core::mem::MaybeUninit;

use crate::fold::Widen;
use crate::fold::rows::sums;
use crate::map::rows::map;
use crate::simd::{Float, Lanes, Simd, Task, Vector};

/// Arguments of [`layer_norm_rows`](crate::layer_norm_rows).
#[derive(Clone, Copy, Debug)]
pub struct LayerNormRows<'a, E> {
    /// The input, `[r, n]`, row-major.
    pub x: &'a [E],
    /// The weight w, `[n]`; ones if absent.
    pub weight: Option<&'a [E]>,
    /// The bias b, `[n]`; zeros if absent.
    pub bias: Option<&'a [E]>,
    /// ε, added to the variance.
    pub eps: f64,
}

/// Arguments of [`layer_norm_grad_rows`](crate::layer_norm_grad_rows).
#[derive(Clone, Copy, Debug)]
pub struct LayerNormGradRows<'a, E> {
    /// The upstream gradient, that of y, `[r, n]`, row-major.
    pub g: &'a [E],
    /// The input, `[r, n]`, row-major.
    pub x: &'a [E],
    /// The weight w, `[n]`; ones if absent.
    pub weight: Option<&'a [E]>,
    /// `1/√(σ² + ε)` of each row, `[r]`.
    pub reciprocal_deviation: &'a [E],
}

/// Returns the mean of a row.
#[inline(always)]
fn row_mean<E: Float + Widen, S: Simd + Lanes<E>>(simd: S, x: &[E]) -> f64 {
    let [sum] = sums(
        simd,
        [x],
        [],
        #[inline(always)]
        |[x], []| [x],
    );
    sum / x.len() as f64
}

/// Splits a number into the sum of two numbers of type `E`. If `x` is infinite, the second is NaN,
/// and so is the whole row.
#[inline(always)]
fn split<E: Float>(x: f64) -> [E; 2] {
    let high = E::from_f64(x);
    [high, E::from_f64(x - high.to_f64())]
}

/// The task of [`layer_norm_rows`](crate::layer_norm_rows).
pub(crate) struct LayerNormTask<'a, E> {
    pub rows: LayerNormRows<'a, E>,
    pub cols: usize,
    pub y: &'a mut [MaybeUninit<E>],
    pub mean: &'a mut [MaybeUninit<E>],
    pub deviation: &'a mut [MaybeUninit<E>],
}

impl<E: Float + Widen> Task<E> for LayerNormTask<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let LayerNormTask { rows, cols, y, mean, deviation } = self;
        let count = cols as f64;
        for (i, (mean, deviation)) in mean.iter_mut().zip(deviation).enumerate() {
            let x = &rows.x[i * cols..][..cols];
            let mu = row_mean(simd, x);
            let centre = Lanes::<f64>::splat(simd, mu);
            let [squares] = sums(
                simd,
                [x],
                [],
                #[inline(always)]
                |[x], []| {
                    let d = x - centre;
                    [d * d]
                },
            );
            let [high, low] = split::<E>(mu);
            let r = E::from_f64(1.0 / (squares / count + rows.eps).sqrt());
            mean.write(high);
            deviation.write(r);
            let [high, low, r] = Lanes::<E>::splat_all(simd, [high, low, r]);
            let y = &mut y[i * cols..][..cols];
            match (rows.weight, rows.bias) {
                (Some(w), Some(b)) => map(
                    simd,
                    [x, w, b],
                    y,
                    #[inline(always)]
                    |[x, w, b]| (((x - high) - low) * r).mul_add(w, b),
                ),
                (Some(w), None) => map(
                    simd,
                    [x, w],
                    y,
                    #[inline(always)]
                    |[x, w]| ((x - high) - low) * r * w,
                ),
                (None, Some(b)) => map(
                    simd,
                    [x, b],
                    y,
                    #[inline(always)]
                    |[x, b]| ((x - high) - low).mul_add(r, b),
                ),
                (None, None) => map(
                    simd,
                    [x],
                    y,
                    #[inline(always)]
                    |[x]| ((x - high) - low) * r,
                ),
            };
        }
    }
}

/// The task of [`layer_norm_grad_rows`](crate::layer_norm_grad_rows).
pub(crate) struct LayerNormGradTask<'a, E> {
    pub rows: LayerNormGradRows<'a, E>,
    pub cols: usize,
    pub dx: &'a mut [MaybeUninit<E>],
    pub dweight: &'a mut [f64],
    pub dbias: &'a mut [f64],
}

impl<E: Float + Widen> Task<E> for LayerNormGradTask<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let LayerNormGradTask { rows, cols, dx, dweight, dbias } = self;
        for (i, &r) in rows.reciprocal_deviation.iter().enumerate() {
            let (g, x) = (&rows.g[i * cols..][..cols], &rows.x[i * cols..][..cols]);
            let dx = &mut dx[i * cols..][..cols];
            let mu = row_mean(simd, x);
            let [centre, wide_r] = Lanes::<f64>::splat_all(simd, [mu, r.to_f64()]);
            let totals = [&mut *dweight, &mut *dbias];
            let [h, hx] = match rows.weight {
                Some(w) => sums(
                    simd,
                    [g, x, w],
                    totals,
                    #[inline(always)]
                    |[g, x, w], [dw, db]| {
                        let normalized = (x - centre) * wide_r;
                        *dw = g.mul_add(normalized, *dw);
                        *db = *db + g;
                        let h = g * w;
                        [h, h * normalized]
                    },
                ),
                None => sums(
                    simd,
                    [g, x],
                    totals,
                    #[inline(always)]
                    |[g, x], [dw, db]| {
                        let normalized = (x - centre) * wide_r;
                        let product = g * normalized;
                        *dw = *dw + product;
                        *db = *db + g;
                        [g, product]
                    },
                ),
            };
            let mean = |sum: f64| E::from_f64(sum / cols as f64);
            let [a, b] = Lanes::<E>::splat_all(simd, [mean(h), mean(hx)]);
            let [high, low] = split::<E>(mu);
            let [high, low, r] = Lanes::<E>::splat_all(simd, [high, low, r]);
            match rows.weight {
                Some(w) => map(
                    simd,
                    [g, x, w],
                    dx,
                    #[inline(always)]
                    |[g, x, w]| (((x - high) - low) * r).neg_mul_add(b, g * w - a) * r,
                ),
                None => map(
                    simd,
                    [g, x],
                    dx,
                    #[inline(always)]
                    |[g, x]| (((x - high) - low) * r).neg_mul_add(b, g - a) * r,
                ),
            };
        }
    }
}

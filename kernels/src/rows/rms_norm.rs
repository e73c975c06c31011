//! RMS norm of rows, and the gradients of x and weight.
//!
//! ```text
//! r = 1 / √(Σ x² / n + ε)        x̂ = x r        y = x̂ w
//! h = g w                        dx = r (h − x̂ mean(h x̂))        dw = Σ_rows g x̂
//! ```
//!
//! Squares are summed in `f64`, in which the square of an `f32` is exact. One pass of the backward
//! function widens g and x and computes two sums: one along the row, and one over the rows, which is
//! accumulated in the caller's `f64` buffer row by row.

use core::mem::MaybeUninit;

use crate::fold::Widen;
use crate::fold::rows::sums;
use crate::map::rows::map;
use crate::simd::{Float, Lanes, Simd, Task, Vector};

/// Arguments of [`rms_norm_rows`](crate::rms_norm_rows).
#[derive(Clone, Copy, Debug)]
pub struct RmsNormRows<'a, E> {
    /// The input, `[r, n]`, row-major.
    pub x: &'a [E],
    /// The weight w, `[n]`; ones if absent.
    pub weight: Option<&'a [E]>,
    /// ε, added to the mean square.
    pub eps: f64,
}

/// Arguments of [`rms_norm_grad_rows`](crate::rms_norm_grad_rows).
#[derive(Clone, Copy, Debug)]
pub struct RmsNormGradRows<'a, E> {
    /// The upstream gradient, that of y, `[r, n]`, row-major.
    pub g: &'a [E],
    /// The input, `[r, n]`, row-major.
    pub x: &'a [E],
    /// The weight w, `[n]`; ones if absent.
    pub weight: Option<&'a [E]>,
    /// `1/√(mean x² + ε)` of each row, `[r]`.
    pub reciprocal_rms: &'a [E],
}

/// The task of [`rms_norm_rows`](crate::rms_norm_rows).
pub(crate) struct RmsNormTask<'a, E> {
    pub rows: RmsNormRows<'a, E>,
    pub cols: usize,
    pub y: &'a mut [MaybeUninit<E>],
    pub reciprocal: &'a mut [MaybeUninit<E>],
}

impl<E: Float + Widen> Task<E> for RmsNormTask<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let RmsNormTask { rows, cols, y, reciprocal } = self;
        let zero = Lanes::<f64>::splat(simd, 0.0);
        for (i, reciprocal) in reciprocal.iter_mut().enumerate() {
            let x = &rows.x[i * cols..][..cols];
            let [squares] = sums(
                simd,
                [x],
                [],
                #[inline(always)]
                |[x], []| [x.mul_add(x, zero)],
            );
            let r = E::from_f64(1.0 / (squares / cols as f64 + rows.eps).sqrt());
            reciprocal.write(r);
            let r = Lanes::<E>::splat(simd, r);
            let y = &mut y[i * cols..][..cols];
            match rows.weight {
                Some(w) => map(
                    simd,
                    [x, w],
                    y,
                    #[inline(always)]
                    |[x, w]| x * r * w,
                ),
                None => map(
                    simd,
                    [x],
                    y,
                    #[inline(always)]
                    |[x]| x * r,
                ),
            };
        }
    }
}

/// The task of [`rms_norm_grad_rows`](crate::rms_norm_grad_rows).
pub(crate) struct RmsNormGradTask<'a, E> {
    pub rows: RmsNormGradRows<'a, E>,
    pub cols: usize,
    pub dx: &'a mut [MaybeUninit<E>],
    pub dweight: &'a mut [f64],
}

impl<E: Float + Widen> Task<E> for RmsNormGradTask<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let RmsNormGradTask { rows, cols, dx, dweight } = self;
        for (i, &r) in rows.reciprocal_rms.iter().enumerate() {
            let (g, x) = (&rows.g[i * cols..][..cols], &rows.x[i * cols..][..cols]);
            let dx = &mut dx[i * cols..][..cols];
            let wide_r = Lanes::<f64>::splat(simd, r.to_f64());
            let totals = [&mut *dweight];
            let [row_sum] = match rows.weight {
                Some(w) => sums(
                    simd,
                    [g, x, w],
                    totals,
                    #[inline(always)]
                    |[g, x, w], [dw]| {
                        let product = g * (x * wide_r);
                        *dw = *dw + product;
                        [product * w]
                    },
                ),
                None => sums(
                    simd,
                    [g, x],
                    totals,
                    #[inline(always)]
                    |[g, x], [dw]| {
                        let product = g * (x * wide_r);
                        *dw = *dw + product;
                        [product]
                    },
                ),
            };
            let mean = Lanes::<E>::splat(simd, E::from_f64(row_sum / cols as f64));
            let r = Lanes::<E>::splat(simd, r);
            match rows.weight {
                Some(w) => map(
                    simd,
                    [g, x, w],
                    dx,
                    #[inline(always)]
                    |[g, x, w]| (x * r).neg_mul_add(mean, g * w) * r,
                ),
                None => map(
                    simd,
                    [g, x],
                    dx,
                    #[inline(always)]
                    |[g, x]| (x * r).neg_mul_add(mean, g) * r,
                ),
            };
        }
    }
}

//! Rms norm of rows and its two gradients.
//!
//! ```text
//! r = 1 / √(Σ x² / n + ε)        x̂ = x r        y = x̂ w
//! h = g w                        dx = r (h − x̂ mean(h x̂))        dw = Σ_rows g x̂
//! ```
//!
//! The squares are summed in `f64`, where those of `f32` are exact. The backward pass widens g and x
//! once for all that is summed: along the row, and across the rows into sums that the caller keeps.

use core::mem::MaybeUninit;

use crate::fold::Widen;
use crate::fold::rows::sums;
use crate::map::rows::map;
use crate::simd::{Float, FoldTask, Lanes, Simd, Vector};

/// Rows to divide by their root mean square.
#[derive(Clone, Copy, Debug)]
pub struct RmsNormRows<'a, E> {
    /// `[r, n]`, row-major.
    pub x: &'a [E],
    /// `[n]`; ones if absent.
    pub weight: Option<&'a [E]>,
    /// ε, added to the mean of the squares.
    pub eps: f64,
}

/// What the gradients of [`rms_norm_rows`](crate::rms_norm_rows) are made of.
#[derive(Clone, Copy, Debug)]
pub struct RmsNormGradRows<'a, E> {
    /// Gradient of y, `[r, n]`.
    pub g: &'a [E],
    /// The rows, `[r, n]`.
    pub x: &'a [E],
    /// `[n]`; ones if absent.
    pub weight: Option<&'a [E]>,
    /// `1/√(mean x² + ε)`, `[r]`.
    pub reciprocal_rms: &'a [E],
}

pub(crate) struct RmsNormTask<'a, E> {
    pub rows: RmsNormRows<'a, E>,
    pub cols: usize,
    pub y: &'a mut [MaybeUninit<E>],
    pub reciprocal: &'a mut [MaybeUninit<E>],
}

impl<E: Float + Widen> FoldTask<E> for RmsNormTask<'_, E> {
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

pub(crate) struct RmsNormGradTask<'a, E> {
    pub rows: RmsNormGradRows<'a, E>,
    pub cols: usize,
    pub dx: &'a mut [MaybeUninit<E>],
    pub dweight: &'a mut [f64],
}

impl<E: Float + Widen> FoldTask<E> for RmsNormGradTask<'_, E> {
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
            let [along] = match rows.weight {
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
            let along = Lanes::<E>::splat(simd, E::from_f64(along / cols as f64));
            let r = Lanes::<E>::splat(simd, r);
            match rows.weight {
                Some(w) => map(
                    simd,
                    [g, x, w],
                    dx,
                    #[inline(always)]
                    |[g, x, w]| (x * r).neg_mul_add(along, g * w) * r,
                ),
                None => map(
                    simd,
                    [g, x],
                    dx,
                    #[inline(always)]
                    |[g, x]| (x * r).neg_mul_add(along, g) * r,
                ),
            };
        }
    }
}

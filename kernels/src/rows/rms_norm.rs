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

use super::{Kernel, RowKernel, Rows, columns, same_len};
use crate::fold::Widen;
use crate::fold::rows::sums;
use crate::map::rows::{map, places};
use crate::output::Output;
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

/// What the gradients of [`rms_norm_rows`] are made of.
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

/// Writes the rows over their root mean square, `[r, n]`, and each row's `1/√(mean x² + ε)`, `[r]`.
///
/// The statistic is rounded once from `f64`; an element has two more roundings, one without a weight.
/// A NaN makes its row NaN, an infinity makes itself NaN and the others 0. Squares of `f64` overflow
/// beyond 1e154, which makes a row of zeros, and below 1e-154 lose digits and at last vanish. Where
/// `1/√(mean x² + ε)` is beyond the largest number, as of `f32` near 1e-40 with ε = 0, elements are
/// infinite, or NaN if they are 0.
///
/// ```
/// use swath_kernels::{RmsNormRows, rms_norm_rows};
/// let (mut y, mut r) = ([0.0f32; 4], [0.0f32; 1]);
/// let rows = RmsNormRows { x: &[2.0, -2.0, 4.0, 0.0], weight: None, eps: 10.0 };
/// rms_norm_rows(rows, &mut y, &mut r);
/// assert_eq!((y, r), ([0.5, -0.5, 1.0, 0.0], [0.25]));
/// ```
///
/// # Panics
/// If the lengths are not those of `r` rows.
#[track_caller]
pub fn rms_norm_rows<E: Rows>(
    rows: RmsNormRows<'_, E>,
    y: &mut (impl Output<E> + ?Sized),
    reciprocal_rms: &mut (impl Output<E> + ?Sized),
) {
    let name = "rms_norm";
    let (y, reciprocal) = (places(y), places(reciprocal_rms));
    let cols = columns(name, rows.x.len(), reciprocal.len());
    same_len(name, y.len(), rows.x.len());
    // Without rows there is nothing that says how long they are.
    if let Some(weight) = rows.weight.filter(|_| !reciprocal.is_empty()) {
        same_len(name, weight.len(), cols);
    }
    E::run(RowKernel(Kernel::RmsNorm(RmsNormTask { rows, cols, y, reciprocal })));
}

/// Writes the gradient of x, `[r, n]`, and adds that of the weight, `[n]`, to `dweight`, row after
/// row.
///
/// # Panics
/// If the lengths are not those of `r` rows.
#[track_caller]
pub fn rms_norm_grad_rows<E: Rows>(
    rows: RmsNormGradRows<'_, E>,
    dx: &mut (impl Output<E> + ?Sized),
    dweight: &mut [f64],
) {
    let name = "rms_norm_grad";
    let dx = places(dx);
    let cols = columns(name, rows.x.len(), rows.reciprocal_rms.len());
    for len in [rows.g.len(), dx.len()] {
        same_len(name, len, rows.x.len());
    }
    let parameters = rows.weight.map(<[E]>::len).into_iter().chain([dweight.len()]);
    for len in parameters.filter(|_| !rows.reciprocal_rms.is_empty()) {
        same_len(name, len, cols);
    }
    E::run(RowKernel(Kernel::RmsNormGrad(RmsNormGradTask { rows, cols, dx, dweight })));
}

pub(crate) struct RmsNormTask<'a, E> {
    rows: RmsNormRows<'a, E>,
    cols: usize,
    y: &'a mut [MaybeUninit<E>],
    reciprocal: &'a mut [MaybeUninit<E>],
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
    rows: RmsNormGradRows<'a, E>,
    cols: usize,
    dx: &'a mut [MaybeUninit<E>],
    dweight: &'a mut [f64],
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

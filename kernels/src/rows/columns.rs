//! Softmax, log-softmax and their gradients along the columns of a matrix: the steps of
//! `softmax.rs` with vectors across columns, and the same bits for the same elements.
//!
//! ```text
//! for each tile of columns, which stays in the L1 cache if columns are short:
//!     maxima;  exponentials and their sums;  results
//! ```

use crate::fold::Widen;
use crate::fold::strips::{
    Strip, StripMut, TILE_COLS, change, logs, map, maxima, round, shifted_sums, sums, tiles,
};
use crate::map::Map;
use crate::math::Exp;
use crate::simd::{Float, Lanes, Simd, Task, Vector};

/// The task of [`softmax_columns`](crate::softmax_columns), and with `log` of
/// [`log_softmax_columns`](crate::log_softmax_columns).
pub(crate) struct SoftmaxColumns<'a, E> {
    pub x: Strip<'a, E>,
    pub y: StripMut<'a, E>,
    pub log: bool,
}

impl<E: Float + Widen> Task<E> for SoftmaxColumns<'_, E>
where
    Exp: Map<E, 1>,
{
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let SoftmaxColumns { x, mut y, log } = self;
        let [height, cols] = y.shape();
        let (mut largest, mut factors) = ([E::ZERO; TILE_COLS], [E::ZERO; TILE_COLS]);
        let mut totals = [0.0; TILE_COLS];
        for (from, cols) in tiles(height, cols) {
            let (x, mut y) = (x.columns(from, cols), y.columns(from, cols));
            let (largest, factors) = (&mut largest[..cols], &mut factors[..cols]);
            let totals = &mut totals[..cols];
            if log {
                shifted_sums(simd, x, largest, totals);
                logs(simd, totals);
                round(totals, factors, |x| x);
                map(
                    simd,
                    [x],
                    [largest, factors],
                    &mut y,
                    #[inline(always)]
                    |[x], [m, log]| (x - m) - log,
                );
                continue;
            }
            maxima(simd, x, largest);
            map(
                simd,
                [x],
                [largest],
                &mut y,
                #[inline(always)]
                |[x], [m]| Exp::apply(simd, [x - m]),
            );
            sums(
                simd,
                [y.read()],
                totals,
                #[inline(always)]
                |[e]| e,
            );
            round(totals, factors, |x| 1.0 / x);
            change(
                simd,
                [factors],
                &mut y,
                #[inline(always)]
                |[e], [factor]| e * factor,
            );
        }
    }
}

/// The task of [`softmax_grad_columns`](crate::softmax_grad_columns), and with `log` of
/// [`log_softmax_grad_columns`](crate::log_softmax_grad_columns).
pub(crate) struct SoftmaxGradColumns<'a, E> {
    pub g: Strip<'a, E>,
    pub y: Strip<'a, E>,
    pub dx: StripMut<'a, E>,
    pub log: bool,
}

impl<E: Float + Widen> Task<E> for SoftmaxGradColumns<'_, E>
where
    Exp: Map<E, 1>,
{
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let SoftmaxGradColumns { g, y, mut dx, log } = self;
        let [height, cols] = dx.shape();
        let (mut totals, mut rounded) = ([0.0; TILE_COLS], [E::ZERO; TILE_COLS]);
        for (from, cols) in tiles(height, cols) {
            let (g, y) = (g.columns(from, cols), y.columns(from, cols));
            let mut dx = dx.columns(from, cols);
            let (totals, rounded) = (&mut totals[..cols], &mut rounded[..cols]);
            if log {
                sums(
                    simd,
                    [g],
                    totals,
                    #[inline(always)]
                    |[g]| g,
                );
                round(totals, rounded, |x| x);
                map(
                    simd,
                    [g, y],
                    [rounded],
                    &mut dx,
                    #[inline(always)]
                    |[g, y], [sum]| Exp::apply(simd, [y]).neg_mul_add(sum, g),
                );
                continue;
            }
            let zero = Lanes::<f64>::splat(simd, 0.0);
            sums(
                simd,
                [g, y],
                totals,
                #[inline(always)]
                |[g, y]| g.mul_add(y, zero),
            );
            round(totals, rounded, |x| x);
            map(
                simd,
                [g, y],
                [rounded],
                &mut dx,
                #[inline(always)]
                |[g, y], [sum]| y * (g - sum),
            );
        }
    }
}

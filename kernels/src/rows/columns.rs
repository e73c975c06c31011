//! Softmax, log-softmax, logsumexp and their gradients along the columns of a matrix: the steps of
//! `softmax.rs` with vectors across columns, and the same bits for the same elements.
//!
//! ```text
//! for each tile of columns, which stays in the L1 cache if columns are short:
//!     maxima;  exponentials and their sums;  results
//! ```

use core::mem::MaybeUninit;

use crate::fold::Widen;
use crate::fold::strips::{Strip, StripMut, change, map, maxima, sums, sums_of};
use crate::map::Map;
use crate::map::rows;
use crate::math::{Exp, Log};
use crate::simd::{Float, FoldTask, Lanes, Simd, Vector};

/// Elements of a tile: 8 KiB of `f32`.
const TILE_LEN: usize = 2048;
/// The least and the most columns of a tile.
const MIN_COLS: usize = 32;
pub(super) const TILE_COLS: usize = 128;

/// First column and number of columns of each tile of a matrix.
#[inline(always)]
pub(super) fn tiles(rows: usize, cols: usize) -> impl Iterator<Item = (usize, usize)> {
    let fits = TILE_LEN / rows.max(1) / MIN_COLS * MIN_COLS;
    let width = fits.clamp(MIN_COLS, TILE_COLS);
    (0..cols).step_by(width).map(move |from| (from, width.min(cols - from)))
}

/// Writes the largest element of each column, and `Σ exp(x − largest)`.
#[inline(always)]
pub(super) fn shifted_sums<E: Float + Widen, S: Simd + Lanes<E>>(
    simd: S,
    x: Strip<'_, E>,
    largest: &mut [E],
    sum: &mut [f64],
) where
    Exp: Map<E, 1>,
{
    maxima(simd, x, largest);
    sums_of(
        simd,
        x,
        largest,
        sum,
        #[inline(always)]
        |x, m| Exp::apply(simd, [x - m]),
    );
}

/// Replaces numbers by their natural logarithms.
#[inline(always)]
pub(super) fn logs<S: Simd>(simd: S, x: &mut [f64]) {
    rows::change(
        simd,
        [],
        [x],
        #[inline(always)]
        |[], [x]| [<Log as Map<f64, 1>>::apply(simd, [x])],
    );
}

/// Rounds `f` of each number.
#[inline(always)]
pub(super) fn round<E: Float>(x: &[f64], y: &mut [E], f: impl Fn(f64) -> f64) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = E::from_f64(f(x));
    }
}

/// The task of [`softmax_columns`](crate::softmax_columns), and with `log` of
/// [`log_softmax_columns`](crate::log_softmax_columns).
pub(crate) struct SoftmaxColumns<'a, E> {
    pub x: Strip<'a, E>,
    pub y: StripMut<'a, E>,
    pub log: bool,
}

impl<E: Float + Widen> FoldTask<E> for SoftmaxColumns<'_, E>
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

impl<E: Float + Widen> FoldTask<E> for SoftmaxGradColumns<'_, E>
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

/// The task of [`logsumexp_columns`](crate::logsumexp_columns): `y` has an element per column.
pub(crate) struct LogSumExpColumns<'a, E> {
    pub x: Strip<'a, E>,
    pub rows: usize,
    pub y: &'a mut [MaybeUninit<E>],
}

impl<E: Float + Widen> FoldTask<E> for LogSumExpColumns<'_, E>
where
    Exp: Map<E, 1>,
{
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let LogSumExpColumns { x, rows, y } = self;
        let (mut largest, mut totals) = ([E::ZERO; TILE_COLS], [0.0; TILE_COLS]);
        for (from, cols) in tiles(rows, y.len()) {
            let x = x.columns(from, cols);
            let (largest, totals) = (&mut largest[..cols], &mut totals[..cols]);
            shifted_sums(simd, x, largest, totals);
            logs(simd, totals);
            let y = &mut y[from..from + cols];
            let mut is_infinite = false;
            for ((y, &m), &log) in y.iter_mut().zip(&*largest).zip(&*totals) {
                y.write(E::from_f64(m.to_f64() + log));
                is_infinite |= m.to_f64().is_infinite();
            }
            if !is_infinite {
                continue;
            }
            for (c, y) in
                y.iter_mut().enumerate().filter(|(c, _)| largest[*c].to_f64().is_infinite())
            {
                let has_nan = (0..rows).any(|row| x.get(row, c).to_f64().is_nan());
                y.write(if has_nan { E::NAN } else { largest[c] });
            }
        }
    }
}

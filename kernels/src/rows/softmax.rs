//! Softmax, log-softmax and their gradients.
//!
//! ```text
//! m = max x           e_i = exp(x_i − m)      s = Σ e_i          L = ln s
//! softmax:            y_i = e_i · (1/s)       dx_i = y_i (g_i − Σ g y)
//! log-softmax:        y_i = (x_i − m) − L     dx_i = g_i − exp(y_i) Σ g
//! ```
//!
//! 1. The largest term of s is 1, so nothing overflows and 1/s is at most 1.
//! 2. The maximum ignores NaN. A NaN element still makes its own e_i NaN, hence s, hence the whole
//!    row. An element of +∞ and a row whose elements are all −∞ do the same through ∞ − ∞.

use core::mem::MaybeUninit;

use crate::fold::Widen;
use crate::fold::rows::{at_number, exps, exps_sum, max_number, sums};
use crate::map::Map;
use crate::map::rows::{change, map};
use crate::math::{Exp, Log};
use crate::simd::{Float, Lanes, Simd, Task, Vector};

/// The task of [`softmax_rows`](crate::softmax_rows), and with `log` of
/// [`log_softmax_rows`](crate::log_softmax_rows).
pub(crate) struct SoftmaxTask<'a, E> {
    pub x: &'a [E],
    pub y: &'a mut [MaybeUninit<E>],
    pub cols: usize,
    pub log: bool,
}

impl<E: Float + Widen> Task<E> for SoftmaxTask<'_, E>
where
    Exp: Map<E, 1>,
{
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let SoftmaxTask { x, y, cols, log: logarithm } = self;
        let len = (GROUP_LEN / cols).clamp(1, GROUP_ROWS) * cols;
        for (x, y) in x.chunks(len).zip(y.chunks_mut(len)) {
            match logarithm {
                true => log_softmax_group(simd, x, y, cols),
                false => softmax_group(simd, x, y, cols),
            }
        }
    }
}

/// Rows per group. A group goes through each step together, so that the reductions across lanes,
/// which have a long latency, overlap for several rows.
const GROUP_ROWS: usize = 8;
/// The most elements per group of several rows, so that its input and output stay in the L1 cache.
/// A longer row is a group of its own.
const GROUP_LEN: usize = 2048;

#[inline(always)]
fn softmax_group<E: Float + Widen, S: Simd + Lanes<E>>(
    simd: S,
    x: &[E],
    y: &mut [MaybeUninit<E>],
    cols: usize,
) where
    Exp: Map<E, 1>,
{
    let largest = row_maxima(simd, x, cols);
    let mut exponentials: [&mut [E]; GROUP_ROWS] = Default::default();
    let mut row_sums = [1.0; GROUP_ROWS];
    let results = exponentials.iter_mut().zip(&mut row_sums).zip(largest);
    for ((x, y), ((e, sum), m)) in x.chunks_exact(cols).zip(y.chunks_exact_mut(cols)).zip(results) {
        (*e, *sum) = exps(simd, x, m, y, GROUP_LEN);
    }
    for (e, sum) in exponentials.into_iter().zip(row_sums) {
        let factor = Lanes::<E>::splat(simd, E::from_f64(1.0 / sum));
        change(
            simd,
            [],
            [e],
            #[inline(always)]
            |[], [e]| [e * factor],
        );
    }
}

#[inline(always)]
fn log_softmax_group<E: Float + Widen, S: Simd + Lanes<E>>(
    simd: S,
    x: &[E],
    y: &mut [MaybeUninit<E>],
    cols: usize,
) where
    Exp: Map<E, 1>,
{
    let largest = row_maxima(simd, x, cols);
    let mut logs = [1.0; GROUP_ROWS];
    for ((x, m), sum) in x.chunks_exact(cols).zip(largest).zip(&mut logs) {
        *sum = exps_sum(simd, x, m, GROUP_LEN);
    }
    change(
        simd,
        [],
        [&mut logs[..]],
        #[inline(always)]
        |[], [sum]| [<Log as Map<f64, 1>>::apply(simd, [sum])],
    );
    let rows = x.chunks_exact(cols).zip(y.chunks_exact_mut(cols)).zip(largest.iter().zip(logs));
    for ((x, y), (&m, log)) in rows {
        let [m, log] = Lanes::<E>::splat_all(simd, [m, E::from_f64(log)]);
        map(
            simd,
            [x],
            y,
            #[inline(always)]
            |[x]| (x - m) - log,
        );
    }
}

/// Returns the maximum of each row, of at most [`GROUP_ROWS`] rows.
#[inline(always)]
fn row_maxima<E: Float + Widen, S: Simd + Lanes<E>>(
    simd: S,
    x: &[E],
    cols: usize,
) -> [E; GROUP_ROWS] {
    let mut largest = [E::ZERO; GROUP_ROWS];
    for (x, largest) in x.chunks_exact(cols).zip(&mut largest) {
        *largest = max_number(simd, x);
    }
    largest
}

/// Returns m, the maximum of the row, and `Σ exp(x − m)`.
#[inline(always)]
pub(super) fn shifted_sum<E: Float + Widen, S: Simd + Lanes<E>>(simd: S, x: &[E]) -> (E, f64)
where
    Exp: Map<E, 1>,
{
    let largest = max_number(simd, x);
    (largest, exps_sum(simd, x, largest, x.len().min(GROUP_LEN)))
}

/// The natural logarithm of one number, computed by the kernel [`Log`].
#[inline(always)]
pub(super) fn log<S: Simd>(simd: S, x: f64) -> f64 {
    at_number(
        simd,
        x,
        #[inline(always)]
        |x| <Log as Map<f64, 1>>::apply(simd, [x]),
    )
}

/// The task of [`softmax_grad_rows`](crate::softmax_grad_rows), and with `log` of
/// [`log_softmax_grad_rows`](crate::log_softmax_grad_rows).
pub(crate) struct SoftmaxGradTask<'a, E> {
    pub g: &'a [E],
    pub y: &'a [E],
    pub dx: &'a mut [MaybeUninit<E>],
    pub cols: usize,
    pub log: bool,
}

impl<E: Float + Widen> Task<E> for SoftmaxGradTask<'_, E>
where
    Exp: Map<E, 1>,
{
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let SoftmaxGradTask { g, y, dx, cols, log } = self;
        let rows = g.chunks_exact(cols).zip(y.chunks_exact(cols)).zip(dx.chunks_exact_mut(cols));
        for ((g, y), dx) in rows {
            if log {
                let [sum] = sums(
                    simd,
                    [g],
                    [],
                    #[inline(always)]
                    |[g], []| [g],
                );
                let sum = Lanes::<E>::splat(simd, E::from_f64(sum));
                map(
                    simd,
                    [g, y],
                    dx,
                    #[inline(always)]
                    |[g, y]| Exp::apply(simd, [y]).neg_mul_add(sum, g),
                );
            } else {
                let zero = Lanes::<f64>::splat(simd, 0.0);
                let [sum] = sums(
                    simd,
                    [g, y],
                    [],
                    #[inline(always)]
                    |[g, y], []| [g.mul_add(y, zero)],
                );
                let sum = Lanes::<E>::splat(simd, E::from_f64(sum));
                map(
                    simd,
                    [g, y],
                    dx,
                    #[inline(always)]
                    |[g, y]| y * (g - sum),
                );
            }
        }
    }
}

//! Cross-entropy of rows of logits and class indices, and its gradient.
//!
//! ```text
//! m = max x     rest = Σ exp(x − m) − 1     s = 1 + rest
//! loss = (m − x[t]) + ln s + ε (x[t] − mean x)
//! dx_i = g (exp(x_i − m) / s − ε/n)
//! dx_t = g ((expm1(x_t − m) − rest) / s + ε − ε/n)     if ε < 1/2
//!        g (exp(x_t − m) / s − (1 − ε + ε/n))           otherwise
//! ```
//!
//! 1. m and `rest` are saved as two numbers. Rounding m + ln s to one number would cost every
//!    probability more digits the larger the logits are, and a loss near 0 all of its digits. The
//!    terms of the loss are added in `f64`.
//! 2. If ε is small, training drives the target's probability p towards 1. The first formula for
//!    dx_t computes p − 1 without cancellation: both terms of its numerator are at most 0. If ε is
//!    near 1, training drives p towards 0, and the second formula is accurate.

use core::mem::MaybeUninit;

use super::softmax::{log, shifted_sum};
use crate::fold::Widen;
use crate::fold::rows::{at_number, sums};
use crate::map::Map;
use crate::map::rows::map;
use crate::math::{Exp, Expm1};
use crate::simd::{Float, Lanes, Simd, Task, Vector};

/// Arguments of [`cross_entropy_rows`](crate::cross_entropy_rows): logits, targets and options.
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropyRows<'a, E> {
    /// Logits, `[r, n]`, row-major.
    pub logits: &'a [E],
    /// Class index of each row, `[r]`: in `0..n`, or `ignore_index`.
    pub targets: &'a [i64],
    /// Target of the rows to ignore: their loss and their gradient are 0.
    pub ignore_index: Option<i64>,
    /// ε: the target has probability `1 - ε + ε/n`, every other class `ε/n`.
    pub label_smoothing: f64,
}

impl<E: Float> CrossEntropyRows<'_, E> {
    #[inline(always)]
    fn ignores(&self, target: i64) -> bool {
        self.ignore_index == Some(target)
    }

    #[inline(always)]
    fn row(&self, i: usize, cols: usize) -> &[E] {
        &self.logits[i * cols..][..cols]
    }
}

/// The task of [`cross_entropy_rows`](crate::cross_entropy_rows).
pub(crate) struct CrossEntropyTask<'a, E> {
    pub rows: CrossEntropyRows<'a, E>,
    pub cols: usize,
    pub losses: &'a mut [MaybeUninit<E>],
    pub largest: &'a mut [MaybeUninit<E>],
    pub rest: &'a mut [MaybeUninit<E>],
}

impl<E: Float + Widen> Task<E> for CrossEntropyTask<'_, E>
where
    Exp: Map<E, 1>,
{
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let CrossEntropyTask { rows, cols, losses, largest: maxima, rest } = self;
        let results = losses.iter_mut().zip(maxima).zip(rest);
        for (i, (&target, ((loss, maximum), rest))) in rows.targets.iter().zip(results).enumerate()
        {
            let x = rows.row(i, cols);
            let (largest, sum) = shifted_sum(simd, x);
            maximum.write(largest);
            rest.write(E::from_f64(sum - 1.0));
            let log = log(simd, sum);
            if rows.ignores(target) {
                loss.write(E::ZERO);
                continue;
            }
            let at_target = x[target as usize].to_f64();
            let mut value = (largest.to_f64() - at_target) + log;
            // If the target's logit is −∞, the loss is ∞ already; the mean may be −∞ too, and
            // −∞ − (−∞) would be NaN.
            if rows.label_smoothing != 0.0 && at_target != f64::NEG_INFINITY {
                let [sum] = sums(
                    simd,
                    [x],
                    [],
                    #[inline(always)]
                    |[x], []| [x],
                );
                value += rows.label_smoothing * (at_target - sum / cols as f64);
            }
            loss.write(E::from_f64(value));
        }
    }
}

/// The task of [`cross_entropy_grad_rows`](crate::cross_entropy_grad_rows).
pub(crate) struct CrossEntropyGradTask<'a, E> {
    pub rows: CrossEntropyRows<'a, E>,
    pub cols: usize,
    pub g: &'a [E],
    pub largest: &'a [E],
    pub rest: &'a [E],
    pub dx: &'a mut [MaybeUninit<E>],
}

impl<E: Float + Widen> Task<E> for CrossEntropyGradTask<'_, E>
where
    Exp: Map<E, 1>,
    Expm1: Map<E, 1>,
{
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let CrossEntropyGradTask { rows, cols, g, largest, rest, dx } = self;
        let smoothing = rows.label_smoothing;
        let uniform = smoothing / cols as f64;
        let target_near_one = smoothing < 0.5;
        let target_term = if target_near_one { smoothing } else { smoothing - 1.0 } - uniform;
        let (minus_uniform, target_term) = (E::from_f64(-uniform), E::from_f64(target_term));
        let saved = rows.targets.iter().zip(g).zip(largest.iter().zip(rest));
        let each = saved.zip(dx.chunks_exact_mut(cols.max(1)));
        for (i, (((&target, &g), (&largest, &rest)), dx)) in each.enumerate() {
            if rows.ignores(target) {
                dx.fill(MaybeUninit::new(E::ZERO));
                continue;
            }
            let x = rows.row(i, cols);
            let inverse = E::from_f64(1.0 / (1.0 + rest.to_f64()));
            let [max, inverse, g, minus_uniform] =
                Lanes::<E>::splat_all(simd, [largest, inverse, g, minus_uniform]);
            let dx = map(
                simd,
                [x],
                dx,
                #[inline(always)]
                |[x]| Exp::apply(simd, [x - max]).mul_add(inverse, minus_uniform) * g,
            );
            let target = target as usize;
            let [rest, target_term] = Lanes::<E>::splat_all(simd, [rest, target_term]);
            dx[target] = at_number(
                simd,
                x[target],
                #[inline(always)]
                |x| {
                    let e = match target_near_one {
                        true => Expm1::apply(simd, [x - max]) - rest,
                        false => Exp::apply(simd, [x - max]),
                    };
                    e.mul_add(inverse, target_term) * g
                },
            );
        }
    }
}

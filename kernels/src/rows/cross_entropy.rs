//! Cross-entropy of rows of logits and class numbers.
//!
//! ```text
//! m = max x     rest = Σ exp(x − m) − 1     s = 1 + rest
//! loss = (m − x[t]) + ln s + ε (x[t] − mean x)
//! dx_i = g (exp(x_i − m) / s − ε/n)
//! dx_t = g ((expm1(x_t − m) − rest) / s + ε − ε/n)     ε < 1/2
//!        g (exp(x_t − m) / s − (1 − ε + ε/n))           else
//! ```
//!
//! 1. m and rest stay two numbers: m + ln s, rounded, would cost each probability as many places as the
//!    logits are large, and the loss all of them where it is near 0. It is summed in `f64`.
//! 2. The target's p − 1 keeps its places where p is near 1, which is wanted where ε is small: both terms of the
//!    numerator are at most 0. Where ε is near 1, p is wanted to be small.

use core::mem::MaybeUninit;

use super::softmax::{log, shifted_sum};
use crate::fold::Widen;
use crate::fold::rows::{at_number, sums};
use crate::map::Map;
use crate::map::rows::map;
use crate::math::{Exp, Expm1};
use crate::simd::{Float, FoldTask, Lanes, Simd, Vector};

/// Logits `[r, n]`, row-major, with a class number each row, and how they are compared.
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropyRows<'a, E> {
    /// `[r, n]`.
    pub logits: &'a [E],
    /// `[r]`: in `0..n`, or `ignore_index`.
    pub targets: &'a [i64],
    /// Rows with this target have loss 0 and gradient 0.
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

pub(crate) struct CrossEntropyTask<'a, E> {
    pub rows: CrossEntropyRows<'a, E>,
    pub cols: usize,
    pub losses: &'a mut [MaybeUninit<E>],
    pub largest: &'a mut [MaybeUninit<E>],
    pub rest: &'a mut [MaybeUninit<E>],
}

impl<E: Float + Widen> FoldTask<E> for CrossEntropyTask<'_, E>
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
            // Of a target of -∞ the loss is ∞ already, and so may be the mean.
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

pub(crate) struct CrossEntropyGradTask<'a, E> {
    pub rows: CrossEntropyRows<'a, E>,
    pub cols: usize,
    pub g: &'a [E],
    pub largest: &'a [E],
    pub rest: &'a [E],
    pub dx: &'a mut [MaybeUninit<E>],
}

impl<E: Float + Widen> FoldTask<E> for CrossEntropyGradTask<'_, E>
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
        let spread = smoothing / cols as f64;
        let is_near_one = smoothing < 0.5;
        let of_target = if is_near_one { smoothing } else { smoothing - 1.0 } - spread;
        let (minus_spread, of_target) = (E::from_f64(-spread), E::from_f64(of_target));
        let saved = rows.targets.iter().zip(g).zip(largest.iter().zip(rest));
        let each = saved.zip(dx.chunks_exact_mut(cols.max(1)));
        for (i, (((&target, &g), (&largest, &rest)), dx)) in each.enumerate() {
            if rows.ignores(target) {
                dx.fill(MaybeUninit::new(E::ZERO));
                continue;
            }
            let x = rows.row(i, cols);
            let inverse = E::from_f64(1.0 / (1.0 + rest.to_f64()));
            let [max, inverse, g, minus_spread] =
                Lanes::<E>::splat_all(simd, [largest, inverse, g, minus_spread]);
            let dx = map(
                simd,
                [x],
                dx,
                #[inline(always)]
                |[x]| Exp::apply(simd, [x - max]).mul_add(inverse, minus_spread) * g,
            );
            let target = target as usize;
            let [rest, of_target] = Lanes::<E>::splat_all(simd, [rest, of_target]);
            dx[target] = at_number(
                simd,
                x[target],
                #[inline(always)]
                |x| {
                    let e = match is_near_one {
                        true => Expm1::apply(simd, [x - max]) - rest,
                        false => Exp::apply(simd, [x - max]),
                    };
                    e.mul_add(inverse, of_target) * g
                },
            );
        }
    }
}

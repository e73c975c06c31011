//! Cross-entropy of rows of logits and class numbers.
//!
//! ```text
//! m = max x     s = Σ exp(x − m)     lse = m + ln s
//! loss = (m − x[t]) + ln s + ε (x[t] − mean x)
//! dx_i = g (exp(x_i − lse) − (1 − ε) [i = t] − ε/n)
//! ```
//!
//! 1. The loss is summed in `f64` from m − x\[t\] and ln s, which keep their places where the loss is
//!    near 0: lse itself, rounded, would not.

use core::mem::MaybeUninit;

use super::softmax::{log, shifted_sum};
use super::{Kernel, RowKernel, Rows, columns, same_len};
use crate::dispatch::FoldTask;
use crate::fold::Widen;
use crate::fold::rows::{at_number, sums};
use crate::map::Map1;
use crate::map::rows::{map, places};
use crate::math::Exp;
use crate::output::Output;
use crate::simd::{Float, Lanes, Simd};

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
    /// The number of classes.
    #[track_caller]
    fn check(&self, name: &str) -> usize {
        let cols = columns(name, self.logits.len(), self.targets.len());
        for &target in self.targets.iter().filter(|&&target| !self.ignores(target)) {
            let is_class = usize::try_from(target).is_ok_and(|target| target < cols);
            assert!(is_class, "{name}: target {target} of {cols} classes");
        }
        cols
    }

    #[inline(always)]
    fn ignores(&self, target: i64) -> bool {
        self.ignore_index == Some(target)
    }

    #[inline(always)]
    fn row(&self, i: usize, cols: usize) -> &[E] {
        &self.logits[i * cols..][..cols]
    }
}

/// Writes each row's loss, in nats, and `ln Σ e^x`, both `[r]`.
///
/// The loss is rounded once from `f64`: the error is half a place of it and the rounding of x − max
/// to `E` in each exponential. NaN, +∞ in a row, or −∞ alone, give NaN.
///
/// ```
/// use swath_kernels::{CrossEntropyRows, cross_entropy_rows};
/// let logits = [0.0f32, 0.0, 0.0, 100.0];
/// let (mut losses, mut lse) = ([0.0f32; 2], [0.0f32; 2]);
/// let rows = CrossEntropyRows {
///     logits: &logits,
///     targets: &[0, 1],
///     ignore_index: None,
///     label_smoothing: 0.0,
/// };
/// cross_entropy_rows(rows, &mut losses, &mut lse);
/// assert_eq!((losses[0], lse[1]), (std::f32::consts::LN_2, 100.0));
/// ```
///
/// # Panics
/// If the lengths are not those of `r` rows or a target is no class.
#[track_caller]
pub fn cross_entropy_rows<E: Rows>(
    rows: CrossEntropyRows<'_, E>,
    losses: &mut (impl Output<E> + ?Sized),
    log_sum_exp: &mut (impl Output<E> + ?Sized),
) {
    let name = "cross_entropy";
    let cols = rows.check(name);
    let (losses, lse) = (places(losses), places(log_sum_exp));
    same_len(name, losses.len(), rows.targets.len());
    same_len(name, lse.len(), rows.targets.len());
    E::run(RowKernel(Kernel::CrossEntropy(CrossEntropyTask { rows, cols, losses, lse })));
}

/// Writes the gradient of the logits from that of the losses, `g` `[r]`, and `ln Σ e^x` `[r]`.
///
/// # Panics
/// If the lengths are not those of `r` rows or a target is no class.
#[track_caller]
pub fn cross_entropy_grad_rows<E: Rows>(
    rows: CrossEntropyRows<'_, E>,
    g: &[E],
    log_sum_exp: &[E],
    dx: &mut (impl Output<E> + ?Sized),
) {
    let name = "cross_entropy_grad";
    let cols = rows.check(name);
    same_len(name, g.len(), rows.targets.len());
    same_len(name, log_sum_exp.len(), rows.targets.len());
    let dx = places(dx);
    same_len(name, dx.len(), rows.logits.len());
    let task = CrossEntropyGradTask { rows, cols, g, lse: log_sum_exp, dx };
    E::run(RowKernel(Kernel::CrossEntropyGrad(task)));
}

pub(crate) struct CrossEntropyTask<'a, E> {
    rows: CrossEntropyRows<'a, E>,
    cols: usize,
    losses: &'a mut [MaybeUninit<E>],
    lse: &'a mut [MaybeUninit<E>],
}

impl<E: Float + Widen> FoldTask<E> for CrossEntropyTask<'_, E>
where
    Exp: Map1<E>,
{
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let CrossEntropyTask { rows, cols, losses, lse } = self;
        let results = losses.iter_mut().zip(lse);
        for (i, (&target, (loss, lse))) in rows.targets.iter().zip(results).enumerate() {
            let x = rows.row(i, cols);
            let (largest, sum) = shifted_sum(simd, x);
            let log = log(simd, sum);
            lse.write(E::from_f64(largest.to_f64() + log));
            if rows.ignores(target) {
                loss.write(E::ZERO);
                continue;
            }
            let at_target = x[target as usize].to_f64();
            let mut value = (largest.to_f64() - at_target) + log;
            if rows.label_smoothing != 0.0 {
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
    rows: CrossEntropyRows<'a, E>,
    cols: usize,
    g: &'a [E],
    lse: &'a [E],
    dx: &'a mut [MaybeUninit<E>],
}

impl<E: Float + Widen> FoldTask<E> for CrossEntropyGradTask<'_, E>
where
    Exp: Map1<E>,
{
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let CrossEntropyGradTask { rows, cols, g, lse, dx } = self;
        let smoothing = rows.label_smoothing;
        let spread = smoothing / cols as f64;
        let (on, off) = (E::from_f64(1.0 - smoothing + spread), E::from_f64(spread));
        let each = rows.targets.iter().zip(g).zip(lse).zip(dx.chunks_exact_mut(cols.max(1)));
        for (i, (((&target, &g), &lse), dx)) in each.enumerate() {
            if rows.ignores(target) {
                dx.fill(MaybeUninit::new(E::ZERO));
                continue;
            }
            let x = rows.row(i, cols);
            let [lse_lanes, g_lanes, off] = Lanes::<E>::splat_all(simd, [lse, g, off]);
            let dx = map(
                simd,
                [x],
                dx,
                #[inline(always)]
                |[x]| (Exp::apply(simd, x - lse_lanes) - off) * g_lanes,
            );
            // The target's own: 1 − p is formed once, from the exact difference.
            let target = target as usize;
            let value = at_number(
                simd,
                x[target],
                #[inline(always)]
                |x| (Exp::apply(simd, x - lse_lanes) - Lanes::<E>::splat(simd, on)) * g_lanes,
            );
            dx[target] = value;
        }
    }
}

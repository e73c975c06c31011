//! Optimizer steps: one pass over a parameter, its gradient and its state.
//!
//! The formulas and the order of their operations are those of PyTorch. Constants are computed in
//! `f64` and rounded once.

use crate::map::rows::change;
use crate::simd::{Float, Lanes, Task, Vector};

/// Options of one step of [`sgd`](crate::sgd).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    /// Learning rate.
    pub rate: f64,
    /// Decay of the momentum buffer; unused without one.
    pub momentum: f64,
    /// The gradient is multiplied by `1 - dampening` before it is added to the momentum buffer.
    pub dampening: f64,
    /// Weight decay: this multiple of the parameter is added to the gradient.
    pub weight_decay: f64,
    /// True for Nesterov momentum.
    pub nesterov: bool,
    /// True for the first step: the momentum buffer is set to the gradient and not read.
    pub first: bool,
}

/// Options of one step of [`adam`](crate::adam).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Learning rate.
    pub rate: f64,
    /// β₁ and β₂, the decay rates of the running means of g and g².
    pub betas: [f64; 2],
    /// ε, added to the denominator.
    pub eps: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// True if weight decay shrinks the parameter directly (AdamW); false if it is added to the
    /// gradient.
    pub decoupled: bool,
    /// The number of this step, counted from 1.
    pub step: u64,
}

/// The task of [`sgd`](crate::sgd).
pub(crate) struct SgdStep<'a, E> {
    pub step: Sgd,
    pub p: &'a mut [E],
    pub g: &'a [E],
    pub b: Option<&'a mut [E]>,
}

impl<E: Float> Task<E> for SgdStep<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let SgdStep { step, p, g, b } = self;
        let lanes = |x: f64| simd.splat(E::from_f64(x));
        let (rate, decay) = (lanes(step.rate), lanes(step.weight_decay));
        let (momentum, gradient_factor) = (lanes(step.momentum), lanes(1.0 - step.dampening));
        let decays = step.weight_decay != 0.0;
        match b {
            None => change(
                simd,
                [g],
                [p],
                #[inline(always)]
                |[g], [p]| {
                    let g = if decays { p.mul_add(decay, g) } else { g };
                    [g.neg_mul_add(rate, p)]
                },
            ),
            Some(b) => change(
                simd,
                [g],
                [p, b],
                #[inline(always)]
                |[g], [p, b]| {
                    let g = if decays { p.mul_add(decay, g) } else { g };
                    let b = if step.first { g } else { b.mul_add(momentum, g * gradient_factor) };
                    let g = if step.nesterov { b.mul_add(momentum, g) } else { b };
                    [g.neg_mul_add(rate, p), b]
                },
            ),
        }
    }
}

/// The task of [`adam`](crate::adam).
pub(crate) struct AdamStep<'a, E> {
    pub step: Adam,
    pub p: &'a mut [E],
    pub g: &'a [E],
    pub m: &'a mut [E],
    pub v: &'a mut [E],
}

impl<E: Float> Task<E> for AdamStep<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let AdamStep { step, p, g, m, v } = self;
        let [beta1, beta2] = step.betas;
        let lanes = |x: f64| simd.splat(E::from_f64(x));
        let (one_minus_beta1, one_minus_beta2) = (lanes(1.0 - beta1), lanes(1.0 - beta2));
        let rate = lanes(step.rate / (1.0 - power(beta1, step.step)));
        let root_factor = lanes(1.0 / (1.0 - power(beta2, step.step)).sqrt());
        let (beta2, eps) = (lanes(beta2), lanes(step.eps));
        let decays = step.weight_decay != 0.0;
        let decay = lanes(if step.decoupled {
            1.0 - step.rate * step.weight_decay
        } else {
            step.weight_decay
        });
        change(
            simd,
            [g],
            [p, m, v],
            #[inline(always)]
            |[g], [p, m, v]| {
                let (p, g) = match (decays, step.decoupled) {
                    (false, _) => (p, g),
                    (true, true) => (p * decay, g),
                    (true, false) => (p, p.mul_add(decay, g)),
                };
                let m = (g - m).mul_add(one_minus_beta1, m);
                let v = v.mul_add(beta2, g * g * one_minus_beta2);
                let denominator = v.sqrt().mul_add(root_factor, eps);
                [(m / denominator).neg_mul_add(rate, p), m, v]
            },
        );
    }
}

/// Returns `x` to the power `n`, by repeated squaring. Only multiplications are used, so the bits are
/// the same on every machine; `powi` does not promise that.
///
/// ```
/// assert_eq!(swath_kernels::power(0.5, 10), 2f64.powi(-10));
/// ```
pub fn power(x: f64, n: u64) -> f64 {
    let (mut result, mut square, mut n) = (1.0, x, n);
    while n > 0 {
        if n & 1 == 1 {
            result *= square;
        }
        square *= square;
        n >>= 1;
    }
    result
}

//! Steps of optimizers: one pass over a parameter, its gradient and its state.
//!
//! The formulas, and their order, are PyTorch's; constants are computed in `f64` and rounded once.

use crate::map::rows::change;
use crate::simd::{ElementTask, Float, Lanes, Vector};

/// Constants of a step of [`sgd`](crate::sgd).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    /// Learning rate.
    pub rate: f64,
    /// Decay of the running sum of gradients; used where there is one.
    pub momentum: f64,
    /// What a new gradient loses before it is added to the sum.
    pub dampening: f64,
    /// Pull towards 0, added to the gradient.
    pub weight_decay: f64,
    /// Looks one step of the momentum ahead.
    pub nesterov: bool,
    /// True for the first step: the sum is set to the gradient, and not read.
    pub first: bool,
}

/// Constants of a step of [`adam`](crate::adam).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Learning rate.
    pub rate: f64,
    /// β₁ and β₂.
    pub betas: [f64; 2],
    /// ε.
    pub eps: f64,
    /// Pull towards 0.
    pub weight_decay: f64,
    /// The pull is on the parameter itself (AdamW), not added to the gradient.
    pub decoupled: bool,
    /// The number of this step, from 1.
    pub step: u64,
}

pub(crate) struct SgdStep<'a, E> {
    pub step: Sgd,
    pub p: &'a mut [E],
    pub g: &'a [E],
    pub b: Option<&'a mut [E]>,
}

impl<E: Float> ElementTask<E> for SgdStep<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let SgdStep { step, p, g, b } = self;
        let lanes = |x: f64| simd.splat(E::from_f64(x));
        let (rate, decay) = (lanes(step.rate), lanes(step.weight_decay));
        let (momentum, share) = (lanes(step.momentum), lanes(1.0 - step.dampening));
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
                    let b = if step.first { g } else { b.mul_add(momentum, g * share) };
                    let g = if step.nesterov { b.mul_add(momentum, g) } else { b };
                    [g.neg_mul_add(rate, p), b]
                },
            ),
        }
    }
}

pub(crate) struct AdamStep<'a, E> {
    pub step: Adam,
    pub p: &'a mut [E],
    pub g: &'a [E],
    pub m: &'a mut [E],
    pub v: &'a mut [E],
}

impl<E: Float> ElementTask<E> for AdamStep<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let AdamStep { step, p, g, m, v } = self;
        let [beta1, beta2] = step.betas;
        let lanes = |x: f64| simd.splat(E::from_f64(x));
        let (one_less_1, one_less_2) = (lanes(1.0 - beta1), lanes(1.0 - beta2));
        let rate = lanes(step.rate / (1.0 - power(beta1, step.step)));
        let root = lanes(1.0 / (1.0 - power(beta2, step.step)).sqrt());
        let (beta2, eps) = (lanes(beta2), lanes(step.eps));
        let decays = step.weight_decay != 0.0;
        let pull = lanes(if step.decoupled {
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
                    (true, true) => (p * pull, g),
                    (true, false) => (p, p.mul_add(pull, g)),
                };
                let m = (g - m).mul_add(one_less_1, m);
                let v = v.mul_add(beta2, g * g * one_less_2);
                let denominator = v.sqrt().mul_add(root, eps);
                [(m / denominator).neg_mul_add(rate, p), m, v]
            },
        );
    }
}

/// `x` to the power `n` by repeated squaring.
pub(crate) fn power(x: f64, n: u64) -> f64 {
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

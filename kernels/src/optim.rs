//! Steps of optimizers: one pass over a parameter, its gradient and its state.
//!
//! The formulas, and their order, are PyTorch's; constants are computed in `f64` and rounded once.

use crate::map::rows::change;
use crate::rows::{Kernel, RowKernel, Rows};
use crate::simd::{ElementTask, Float, Lanes, Vector};

/// Constants of a step of [`sgd`].
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

/// Constants of a step of [`adam`].
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

/// A step of stochastic gradient descent: changes the parameter `p` by its gradient `g`, and the
/// running sum `b` where there is momentum.
///
/// `g += weight_decay p`; `b = momentum b + (1 - dampening) g`; then `g = b`, or `g += momentum b`
/// with Nesterov; `p -= rate g`.
///
/// ```
/// use swath_kernels::{Sgd, sgd};
/// let step = Sgd {
///     rate: 0.5,
///     momentum: 0.0,
///     dampening: 0.0,
///     weight_decay: 0.0,
///     nesterov: false,
///     first: true,
/// };
/// let mut p = [1.0f32, 2.0];
/// sgd(step, &mut p, &[1.0, -1.0], None);
/// assert_eq!(p, [0.5, 2.5]);
/// ```
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub fn sgd<E: Rows>(step: Sgd, p: &mut [E], g: &[E], b: Option<&mut [E]>) {
    check("sgd", p.len(), [g.len(), b.as_ref().map_or(p.len(), |b| b.len())]);
    E::run(RowKernel(Kernel::Sgd(SgdStep { step, p, g, b })));
}

/// A step of Adam or AdamW: changes the parameter `p` by its gradient `g` through the running means
/// `m` of g and `v` of g².
///
/// `m += (1 - β₁)(g - m)`; `v = β₂ v + (1 - β₂) g²`;
/// `p -= rate / (1 - β₁ᵗ) · m / (√v / √(1 - β₂ᵗ) + ε)`.
///
/// # Panics
/// If the lengths differ or the step's number is 0.
#[track_caller]
pub fn adam<E: Rows>(step: Adam, p: &mut [E], g: &[E], m: &mut [E], v: &mut [E]) {
    check("adam", p.len(), [g.len(), m.len()]);
    check("adam", p.len(), [v.len()]);
    assert!(step.step >= 1, "adam: step 0, but the first is 1");
    E::run(RowKernel(Kernel::Adam(AdamStep { step, p, g, m, v })));
}

#[track_caller]
fn check<const N: usize>(name: &str, len: usize, others: [usize; N]) {
    for other in others {
        assert!(other == len, "{name}: slices of {other} and of {len} elements");
    }
}

pub(crate) struct SgdStep<'a, E> {
    step: Sgd,
    p: &'a mut [E],
    g: &'a [E],
    b: Option<&'a mut [E]>,
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
    step: Adam,
    p: &'a mut [E],
    g: &'a [E],
    m: &'a mut [E],
    v: &'a mut [E],
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

/// `x` to the power `n` by repeated squaring: multiplications alone, where `powi` may differ between
/// machines.
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

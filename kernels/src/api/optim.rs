//! Optimizer steps, which update a parameter and its state in place.

use super::call::{Call, Rows, Work};
use crate::optim::{Adam, AdamStep, Sgd, SgdStep};

pub use crate::optim::power;

/// A step of stochastic gradient descent: updates the parameter `p` by its gradient `g`, and the
/// momentum buffer `b` if there is one.
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
    E::run(Call(Work::Sgd(SgdStep { step, p, g, b })));
}

/// A step of Adam or AdamW: updates the parameter `p` by its gradient `g`, with the running means
/// `m` of g and `v` of g².
///
/// `m += (1 - β₁)(g - m)`; `v = β₂ v + (1 - β₂) g²`;
/// `p -= rate / (1 - β₁ᵗ) · m / (√v / √(1 - β₂ᵗ) + ε)`.
///
/// # Panics
/// If the lengths differ or `step.step` is 0.
#[track_caller]
pub fn adam<E: Rows>(step: Adam, p: &mut [E], g: &[E], m: &mut [E], v: &mut [E]) {
    check("adam", p.len(), [g.len(), m.len(), v.len()]);
    assert!(step.step >= 1, "adam: step 0, but the first is 1");
    E::run(Call(Work::Adam(AdamStep { step, p, g, m, v })));
}

/// Panics unless all lengths are `len`.
#[track_caller]
fn check<const N: usize>(name: &str, len: usize, others: [usize; N]) {
    for other in others {
        assert!(other == len, "{name}: expected {len} elements, got {other}");
    }
}

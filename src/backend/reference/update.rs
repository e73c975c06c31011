//! Definitions of the optimizers' steps: one element at a time, in `f64`, each result rounded once.

use super::{ReferenceTensor, build, check_same};
use crate::backend::{TensorData, check_step};
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::ops::UpdateOp;

pub(super) fn update(
    op: &UpdateOp,
    parameter: &mut ReferenceTensor,
    gradient: &ReferenceTensor,
    state: &mut [ReferenceTensor],
) -> Result<()> {
    let name = op.name();
    check_step(op)?;
    if state.len() != op.states() {
        let reason = format!("{} state tensors, not {}", state.len(), op.states());
        return Err(Error::InvalidArgument { op: name, reason });
    }
    check_same(name, parameter, gradient)?;
    state.iter().try_for_each(|state| check_same(name, parameter, state))?;
    let changed: Vec<[f64; 3]> = (0..parameter.values.len())
        .map(|i| {
            let old = |x: &ReferenceTensor| x.values[i].to_f64();
            let states = [0, 1].map(|k| state.get(k).map_or(0.0, old));
            element(op, old(parameter), old(gradient), states)
        })
        .collect();
    for (k, tensor) in [&mut *parameter].into_iter().chain(state).enumerate() {
        let mut values = changed.iter();
        *tensor = build(name, *tensor.shape(), tensor.dtype, |_| {
            Ok(Scalar::Float(values.next().map_or(f64::NAN, |values| values[k])))
        })?;
    }
    Ok(())
}

/// The new parameter and states.
fn element(op: &UpdateOp, p: f64, g: f64, [first_state, second_state]: [f64; 2]) -> [f64; 3] {
    match *op {
        UpdateOp::Sgd { rate, momentum, dampening, weight_decay, nesterov, first } => {
            let g = if weight_decay == 0.0 { g } else { g + weight_decay * p };
            if momentum == 0.0 {
                return [p - rate * g, 0.0, 0.0];
            }
            let b = if first { g } else { momentum * first_state + (1.0 - dampening) * g };
            let direction = if nesterov { g + momentum * b } else { b };
            [p - rate * direction, b, 0.0]
        }
        UpdateOp::Adam { rate, betas: [beta1, beta2], eps, weight_decay, decoupled, step } => {
            let (p, g) = match decoupled {
                _ if weight_decay == 0.0 => (p, g),
                true => (p * (1.0 - rate * weight_decay), g),
                false => (p, g + weight_decay * p),
            };
            let m = beta1 * first_state + (1.0 - beta1) * g;
            let v = beta2 * second_state + (1.0 - beta2) * g * g;
            let [m_hat, v_hat] =
                [(m, beta1), (v, beta2)].map(|(x, beta)| x / (1.0 - beta.powf(step as f64)));
            [p - rate * m_hat / (v_hat.sqrt() + eps), m, v]
        }
    }
}

//! Steps of optimizers: `ai.onnx.preview.training`.

use swath::{Backend, Tensor};

use super::Rows;
use crate::error::{Error, Result};
use crate::row::Default::{Float, Required};
use crate::row::{Call, Results, Row, all, row};

/// Updates parameters one by one. The inputs are the learning rate, the number of updates before, the parameters, their
/// gradients, and as many lists of states as there are left. `step` gets those of one parameter, with the gradient of
/// the penalty added to its own, and returns the new parameter and states.
fn update<B: Backend>(
    call: &Call<'_, B>,
    states: usize,
    step: impl Fn(f64, f64, &Tensor<B>, Tensor<B>, &[&Tensor<B>]) -> Result<Vec<Tensor<B>>>,
) -> Results<B> {
    let missing =
        || Error::operator("expected a learning rate, a number of updates, and lists of tensors");
    let (rate, updates) =
        (call.number_of(0)?.ok_or_else(missing)?, call.number_of(1)?.ok_or_else(missing)?);
    let tensors = (2..call.inputs.len()).map(|at| call.tensor(at)).collect::<Result<Vec<_>>>()?;
    let count = tensors.len() / (states + 2);
    let penalty = call.float("norm_coefficient")?;
    let mut results: Vec<Vec<Tensor<B>>> = vec![Vec::new(); states + 1];
    for i in 0..count {
        let own: Vec<&Tensor<B>> = tensors.iter().skip(i).step_by(count).copied().collect();
        let gradient = own[0].mul(penalty)?.add(own[1])?;
        let new = step(rate, updates, own[0], gradient, &own[2..])?;
        results.iter_mut().zip(new).for_each(|(list, new)| list.push(new));
    }
    all(results.into_iter().flatten())
}

fn adagrad<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (decay, eps) = (call.float("decay_factor")?, call.float("epsilon")?);
    update(call, 1, |rate, updates, x, g, states| {
        let squares = g.mul_add(&g, states[0])?;
        let step = g.mul(rate / (1.0 + updates * decay))?.div(squares.sqrt()?.add_scalar(eps)?)?;
        Ok(vec![x.sub(step)?, squares])
    })
}

fn adam<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (alpha, beta, eps) = (call.float("alpha")?, call.float("beta")?, call.float("epsilon")?);
    let shrinkage = call.float("norm_coefficient_post")?;
    update(call, 2, |rate, updates, x, g, states| {
        let mean = states[0].mul(alpha)?.add(g.mul(1.0 - alpha)?)?;
        let square = states[1].mul(beta)?.add(g.square()?.mul(1.0 - beta)?)?;
        let rate = match updates > 0.0 {
            true => rate * (1.0 - beta.powf(updates)).sqrt() / (1.0 - alpha.powf(updates)),
            false => rate,
        };
        let x = x.sub(mean.div(square.sqrt()?.add_scalar(eps)?)?.mul(rate)?)?;
        Ok(vec![x.mul(1.0 - shrinkage)?, mean, square])
    })
}

fn momentum<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (alpha, beta) = (call.float("alpha")?, call.float("beta")?);
    let is_nesterov = match call.text("mode")? {
        "nesterov" => true,
        "standard" => false,
        other => {
            return Err(Error::operator(format!(
                "mode must be standard or nesterov, but is {other:?}"
            )));
        }
    };
    update(call, 1, |rate, updates, x, g, states| {
        let velocity =
            states[0].mul(alpha)?.add(g.mul(if updates > 0.0 { beta } else { 1.0 })?)?;
        let step = if is_nesterov { g.add(velocity.mul(alpha)?)? } else { velocity.clone() };
        Ok(vec![x.sub(step.mul(rate)?)?, velocity])
    })
}

impl<B: Backend> Rows<B> {
    pub const TRAINING: &'static [Row<B>] = &[
        row(
            "ai.onnx.preview.training.Adagrad",
            1,
            &[
                ("decay_factor", Float(0.0)),
                ("epsilon", Float(1e-6)),
                ("norm_coefficient", Float(0.0)),
            ],
            adagrad,
        ),
        row(
            "ai.onnx.preview.training.Adam",
            1,
            &[
                ("alpha", Float(0.9)),
                ("beta", Float(0.999)),
                ("epsilon", Float(1e-6)),
                ("norm_coefficient", Float(0.0)),
                ("norm_coefficient_post", Float(0.0)),
            ],
            adam,
        ),
        row(
            "ai.onnx.preview.training.Momentum",
            1,
            &[
                ("alpha", Required),
                ("beta", Required),
                ("mode", Required),
                ("norm_coefficient", Required),
            ],
            momentum,
        ),
    ];
}

//! Nodes that [`prepare`](crate::prepare) makes of several.

use swath::nn::Activation;
use swath::{Attention, Backend, Tensor};

use super::Rows;
use crate::error::{Error, Result};
use crate::row::Default::{Absent, Required};
use crate::row::{Call, Row, one, row};

/// The function that is applied in the same pass, if there is one.
pub fn activation<B: Backend>(call: &Call<'_, B>) -> Result<Option<Activation>> {
    let Some(name) = call.find_text("activation")? else { return Ok(None) };
    Ok(Some(match name {
        "relu" => Activation::Relu,
        "sigmoid" => Activation::Sigmoid,
        "tanh" => Activation::Tanh,
        "gelu" => Activation::Gelu,
        "gelu_tanh" => Activation::GeluTanh,
        "silu" => Activation::Silu,
        "hardswish" => Activation::Hardswish,
        "mish" => Activation::Mish,
        _ => return Err(Error::operator(format!("activation {name:?} is not known"))),
    }))
}

/// Whether operands have the shapes that attention in one pass takes: where they broadcast otherwise, it is spelled out.
fn fits<B: Backend>(q: &Tensor<B>, k: &Tensor<B>, v: &Tensor<B>, mask: Option<&Tensor<B>>) -> bool {
    let (&[b, h, t, _], &[bk, hk, s, _], &[bv, hv, sv, _]) = (q.dims(), k.dims(), v.dims()) else {
        return false;
    };
    let is_narrow = |mask: &Tensor<B>| {
        let scores = [b, h, t, s];
        mask.rank() <= 4
            && mask
                .dims()
                .iter()
                .rev()
                .zip(scores.iter().rev())
                .all(|(&own, &all)| own == all || own == 1)
    };
    [b, h] == [bk, hk] && [b, h, s] == [bv, hv, sv] && mask.is_none_or(is_narrow)
}

fn spelled_out<B: Backend>(
    q: &Tensor<B>,
    k: &Tensor<B>,
    v: &Tensor<B>,
    options: Attention<'_, B>,
) -> swath::Result<Tensor<B>> {
    let mut scores = q.matmul(&k.t()?)?.mul(options.scale.unwrap_or(1.0))?;
    if let Some(mask) = options.mask {
        scores = scores.add(mask)?;
    }
    scores.softmax(-1)?.matmul(v)
}

impl<B: Backend> Rows<B> {
    pub const PREPARED: &'static [Row<B>] = &[
        row("swath.Linear", 1, &[("activation", Absent)], |c| {
            let (x, weight, bias) = (c.tensor(0)?, c.tensor(1)?, c.find(2));
            one(match activation(c)? {
                Some(activation) => x.linear_activation(weight, bias, activation),
                None => x.linear(weight, bias),
            })
        }),
        row("swath.Silu", 1, &[], |c| one(c.tensor(0)?.silu())),
        row("swath.Attention", 1, &[("scale", Required)], |c| {
            let (q, k, v) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?);
            let options = Attention {
                mask: c.find(3),
                scale: Some(c.float("scale")?),
                ..Attention::default()
            };
            match fits(q, k, v, c.find(3)) {
                true => one(q.scaled_dot_product_attention(k, v, options)),
                false => one(spelled_out(q, k, v, options)),
            }
        }),
    ];
}

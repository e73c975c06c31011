//! Normalization of channels, rows and vectors, and softmax.

use swath::{Backend, Tensor};

use super::Rows;
use super::elementwise::wide;
use crate::error::{Error, Result};
use crate::row::Default::{self, Absent, Float, Int, Required};
use crate::row::{Call, Results, Row, all, axis, one, row};
use crate::weights;

/// The attributes of normalizations of rows.
const LAYER: &[(&str, Default)] =
    &[("axis", Int(-1)), ("epsilon", Float(1e-5)), ("stash_type", Int(1))];

/// Those of ONNX Runtime's normalizations of a sum.
const SKIP_LAYER: &[(&str, Default)] =
    &[("axis", Int(-1)), ("epsilon", Float(1e-12)), ("stash_type", Int(1))];

/// Converts 16-bit floats to `F32`, so that several operations in a row round once.
pub fn widened<B: Backend>(x: &Tensor<B>) -> swath::Result<Tensor<B>> {
    x.to_dtype(wide(x.dtype()))
}

fn batch_normalization<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, eps) = (call.tensor(0)?, call.float("epsilon")?);
    let is_training =
        if call.version() >= 14 { call.flag("training_mode")? } else { call.outputs() > 1 };
    // A vector is one channel. Without `spatial`, which is in version 7, every pixel of a channel is one.
    let channels = match x.rank() {
        0 | 1 => x.reshape((x.numel(), 1))?,
        _ if !call.flag("spatial")? => x.flatten(1, -1)?,
        _ => x.clone(),
    };
    let parameter = |at: usize| -> Result<Tensor<B>> {
        let parameter = call.tensor(at)?;
        Ok(parameter.reshape(parameter.numel())?.to_dtype(wide(x.dtype()))?)
    };
    let [weight, bias, mean, variance] =
        [parameter(1)?, parameter(2)?, parameter(3)?, parameter(4)?];
    let (weight, bias) = (Some(&weight), Some(&bias));
    if !is_training {
        return one(channels.batch_norm(&mean, &variance, weight, bias, eps)?.reshape(x.shape()));
    }
    let (y, own_mean, own_variance) = channels.batch_norm_training(weight, bias, eps)?;
    let momentum = call.float("momentum")?;
    let running = |at: usize, old: Tensor<B>, own: &Tensor<B>| -> Result<Tensor<B>> {
        let input = call.tensor(at)?;
        let mixed = old.mul(momentum)?.add(own.mul(1.0 - momentum)?)?;
        Ok(mixed.to_dtype(input.dtype())?.reshape(input.shape())?)
    };
    let (mean, variance) = (running(3, mean, &own_mean)?, running(4, variance, &own_variance)?);
    all([y.reshape(x.shape())?, mean, variance, own_mean, own_variance])
}

/// Normalizes the elements from an axis on together, with or without subtracting their mean first: the result, the mean
/// if it is subtracted, and the reciprocal of the deviation.
fn rows<B: Backend>(
    call: &Call<'_, B>,
    x: &Tensor<B>,
    weight: &Tensor<B>,
    bias: Option<&Tensor<B>>,
    is_centered: bool,
) -> Result<Vec<Tensor<B>>> {
    let (axis, eps) = (call.axis("axis", x.rank())?, call.float("epsilon")?);
    let norm =
        |x: &Tensor<B>, weight: Option<&Tensor<B>>, bias: Option<&Tensor<B>>| match is_centered {
            true => x.layer_norm(weight, bias, eps),
            false => x.rms_norm(weight, eps),
        };
    let rows = x.flatten(axis, -1)?;
    let fits = |parameter: &Tensor<B>| {
        parameter.dims() == &x.dims()[axis..] && parameter.dtype() == x.dtype()
    };
    let y = if fits(weight) && bias.is_none_or(fits) {
        let bias = bias.map(|bias| bias.flatten(0, -1)).transpose()?;
        norm(&rows, Some(&weight.flatten(0, -1)?), bias.as_ref())?.reshape(x.shape())?
    } else {
        let plain = norm(&widened(&rows)?, None, None)?.reshape(x.shape())?;
        let scaled = plain.mul(weight.to_dtype(plain.dtype())?)?;
        let y =
            bias.map_or(Ok(scaled.clone()), |bias| scaled.add(bias.to_dtype(plain.dtype())?))?;
        y.to_dtype(weight.dtype())?
    };
    if !call.node.outputs.iter().skip(1).take(2).any(Option::is_some) {
        return Ok(vec![y]);
    }
    let dtype = weights::dtype(call.int("stash_type")?).filter(|dtype| dtype.is_float());
    let dtype = dtype.ok_or_else(|| Error::operator("stash_type must be a type of floats"))?;
    let shape: Vec<usize> =
        (0..x.rank()).map(|at| if at < axis { x.dims()[at] } else { 1 }).collect();
    let statistic = |x: Tensor<B>| x.reshape(&shape[..])?.to_dtype(dtype);
    let rows = widened(&rows)?;
    let inverse = |variance: Tensor<B>| statistic(variance.add_scalar(eps)?.rsqrt()?);
    Ok(match is_centered {
        true => vec![
            y,
            statistic(rows.mean_axis(-1, true)?)?,
            inverse(rows.variance_axis(-1, true, 0)?)?,
        ],
        false => vec![y, inverse(rows.square()?.mean_axis(-1, true)?)?],
    })
}

fn layer_normalization<B: Backend>(call: &Call<'_, B>, is_centered: bool) -> Results<B> {
    all(rows(call, call.tensor(0)?, call.tensor(1)?, call.find(2), is_centered)?)
}

/// Normalizes the sum of two tensors and a bias; the sum is the last output.
fn skip_layer_normalization<B: Backend>(call: &Call<'_, B>, is_centered: bool) -> Results<B> {
    let mut sum = call.tensor(0)?.add(call.tensor(1)?)?;
    if let Some(bias) = call.find(if is_centered { 4 } else { 3 }) {
        sum = sum.add(bias)?;
    }
    let shift = if is_centered { call.find(3) } else { None };
    let mut results = rows(call, &sum, call.tensor(2)?, shift, is_centered)?;
    while results.len() < 3 {
        // Something in place of a mean or a deviation that nothing uses.
        results.insert(1, results[0].clone());
    }
    results.push(sum);
    all(results)
}

fn group_normalization<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, groups) = (call.tensor(0)?, call.int("num_groups")?);
    let groups =
        usize::try_from(groups).map_err(|_| Error::operator("num_groups must be positive"))?;
    let channels =
        *x.dims().get(1).ok_or_else(|| Error::operator("the input must have channels"))?;
    let parameter = |at: usize| -> Result<Tensor<B>> {
        let parameter = call.tensor(at)?;
        // Before version 21, there is one number for each group.
        Ok(match call.version() {
            21.. => parameter.clone(),
            _ => {
                let each = channels.checked_div(groups).unwrap_or(0);
                parameter.reshape((groups, 1))?.broadcast_to((groups, each))?.flatten(0, 1)?
            }
        })
    };
    one(x.group_norm(groups, Some(&parameter(1)?), Some(&parameter(2)?), call.float("epsilon")?))
}

fn lp_normalization<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, p) = (call.tensor(0)?, call.int("p")?);
    if !matches!(p, 1 | 2) {
        return Err(Error::operator(format!("p must be 1 or 2, but is {p}")));
    }
    let wide = widened(x)?;
    let norm = wide.norm_axis(p as f64, call.axis("axis", x.rank())?, true)?;
    one(wide.div(norm.masked_fill(&norm.eq(0.0)?, 1.0)?)?.to_dtype(x.dtype()))
}

fn mean_variance_normalization<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let axes: Vec<isize> =
        call.find_ints("axes")?.unwrap_or(&[0, 2, 3]).iter().map(|&axis| axis as isize).collect();
    let wide = widened(x)?;
    let deviation = wide.std_axis(&axes[..], true, 0)?.add_scalar(1e-9)?;
    one(wide.sub(wide.mean_axis(&axes[..], true)?)?.div(deviation)?.to_dtype(x.dtype()))
}

fn lrn<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, size) = (call.tensor(0)?, call.int("size")?);
    let size = usize::try_from(size)
        .map_err(|_| Error::operator(format!("size must be positive, but is {size}")))?;
    let (alpha, beta, bias) = (call.float("alpha")?, call.float("beta")?, call.float("bias")?);
    // Of an even number of channels, more are after the own one; swath's are before it.
    match size % 2 {
        0 => one(x.flip(1)?.local_response_norm(size, alpha, beta, bias)?.flip(1)),
        _ => one(x.local_response_norm(size, alpha, beta, bias)),
    }
}

/// A function along an axis; before version 13, along that and all axes behind it together.
fn along<B: Backend>(
    call: &Call<'_, B>,
    f: fn(&Tensor<B>, usize) -> swath::Result<Tensor<B>>,
) -> Results<B> {
    let x = call.tensor(0)?;
    let is_flat = call.version() < 13;
    let axis = axis(call.find_int("axis")?.unwrap_or(if is_flat { 1 } else { -1 }), x.rank())?;
    match is_flat && x.numel() > 0 {
        true => one(f(&x.flatten(axis, -1)?, axis)?.reshape(x.shape())),
        false => one(f(x, axis)),
    }
}

fn hardmax<B: Backend>(x: &Tensor<B>, axis: usize) -> swath::Result<Tensor<B>> {
    match x.numel() {
        0 => Ok(x.clone()),
        _ => x.argmax(axis, false)?.one_hot_as(x.dims()[axis], axis, x.dtype()),
    }
}

impl<B: Backend> Rows<B> {
    pub const NORMALIZE: &'static [Row<B>] = &[
        row(
            "BatchNormalization",
            7,
            &[
                ("epsilon", Float(1e-5)),
                ("momentum", Float(0.9)),
                ("training_mode", Int(0)),
                ("spatial", Int(1)),
            ],
            batch_normalization,
        ),
        row("InstanceNormalization", 6, &[("epsilon", Float(1e-5))], |c| {
            one(c.tensor(0)?.instance_norm(
                Some(c.tensor(1)?),
                Some(c.tensor(2)?),
                c.float("epsilon")?,
            ))
        }),
        row("LayerNormalization", 17, LAYER, |c| layer_normalization(c, true)),
        row("RMSNormalization", 23, LAYER, |c| layer_normalization(c, false)),
        row("SimplifiedLayerNormalization", 1, LAYER, |c| layer_normalization(c, false)),
        row("com.microsoft.SimplifiedLayerNormalization", 1, LAYER, |c| {
            layer_normalization(c, false)
        }),
        row("com.microsoft.SkipLayerNormalization", 1, SKIP_LAYER, |c| {
            skip_layer_normalization(c, true)
        }),
        row("com.microsoft.SkipSimplifiedLayerNormalization", 1, SKIP_LAYER, |c| {
            skip_layer_normalization(c, false)
        }),
        row(
            "GroupNormalization",
            18,
            &[("num_groups", Required), ("epsilon", Float(1e-5)), ("stash_type", Int(1))],
            group_normalization,
        ),
        row("LpNormalization", 1, &[("axis", Int(-1)), ("p", Int(2))], lp_normalization),
        row("MeanVarianceNormalization", 9, &[("axes", Absent)], mean_variance_normalization),
        row(
            "LRN",
            1,
            &[
                ("size", Required),
                ("alpha", Float(1e-4)),
                ("beta", Float(0.75)),
                ("bias", Float(1.0)),
            ],
            lrn,
        ),
        row("Softmax", 1, &[("axis", Absent)], |c| along(c, |x, axis| x.softmax(axis))),
        row("LogSoftmax", 1, &[("axis", Absent)], |c| along(c, |x, axis| x.log_softmax(axis))),
        row("Hardmax", 1, &[("axis", Absent)], |c| along(c, hardmax)),
    ];
}

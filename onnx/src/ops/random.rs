//! Random tensors.

use swath::{Backend, DType, Rng, Shape, Tensor};

use super::cast::dtype;
use super::{Rows, elementwise::wide};
use crate::error::{Error, Result};
use crate::row::Default::{self, Absent, Float, Int, Required};
use crate::row::{Call, Results, Row, extents, one, row};

/// The seed and stream of a node's random numbers. Without a seed every node has a stream of its own, and every run another
/// seed.
pub(super) fn seed<B: Backend>(call: &Call<'_, B>, given: Option<u64>) -> (u64, u64) {
    let output = call.node.outputs.iter().flatten().next();
    given.map_or((call.number, output.map_or(0, |&id| id as u64)), |seed| (seed, 0))
}

/// The source of a node's random numbers.
fn rng<B: Backend>(call: &Call<'_, B>) -> Result<Rng> {
    let given = call.find_float("seed")?.map(f64::to_bits);
    let (seed, stream) = seed(call, given);
    Ok(Rng::seed(seed).stream(stream))
}

/// The shape and dtype of the attributes.
fn described<B: Backend>(call: &Call<'_, B>) -> Result<(Shape, DType)> {
    let shape = Shape::new(extents(call.find_ints("shape")?.unwrap_or_default())?);
    shape.validate("random tensor")?;
    Ok((shape, dtype(call, "dtype")?))
}

/// The shape of the input, and the dtype of the attribute or else of the input.
fn like<B: Backend>(call: &Call<'_, B>) -> Result<(Shape, DType)> {
    let x = call.tensor(0)?;
    let dtype = call.find_int("dtype")?.map_or_else(|| Ok(x.dtype()), |_| dtype(call, "dtype"))?;
    Ok((*x.shape(), dtype))
}

/// Normally distributed numbers.
fn normal<B: Backend>(call: &Call<'_, B>, (shape, dtype): (Shape, DType)) -> Results<B> {
    let mut rng = rng(call)?;
    let drawn = match dtype {
        DType::F64 => Tensor::from_vec(rng.normal_vec::<f64>(shape.numel())?, shape)?,
        _ if dtype.is_float() => Tensor::randn(shape, &mut rng)?,
        _ => {
            return Err(Error::operator(format!(
                "normally distributed numbers are floats, not {dtype}"
            )));
        }
    };
    one(drawn.affine(call.float("scale")?, call.float("mean")?)?.to_dtype(dtype))
}

/// Numbers that are equally distributed over a range.
fn uniform<B: Backend>(call: &Call<'_, B>, (shape, dtype): (Shape, DType)) -> Results<B> {
    let range = call.float("low")?..call.float("high")?;
    one(Tensor::zeros((), dtype)?.broadcast_to(shape)?.rand_like(range, &mut rng(call)?))
}

/// 1 with the probabilities in the input, else 0.
fn bernoulli<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let p = call.tensor(0)?;
    let p = p.to_dtype(wide(p.dtype()))?;
    one(p.rand_like(0.0..1.0, &mut rng(call)?)?.lt(&p)?.to_dtype(like(call)?.1))
}

/// Indices of classes, from logarithms of their weights.
fn multinomial<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let count = extents(&[call.int("sample_size")?])?[0];
    let weights = x.to_dtype(DType::F64)?.softmax(-1)?;
    one(weights.multinomial(count, &mut rng(call)?)?.to_dtype(dtype(call, "dtype")?))
}

const SEED: (&str, Default) = ("seed", Absent);
const SHAPE: (&str, Default) = ("shape", Required);
const FLOAT: (&str, Default) = ("dtype", Int(1));
const SAME: (&str, Default) = ("dtype", Absent);
const MEAN: (&str, Default) = ("mean", Float(0.0));
const SCALE: (&str, Default) = ("scale", Float(1.0));
const LOW: (&str, Default) = ("low", Float(0.0));
const HIGH: (&str, Default) = ("high", Float(1.0));

impl<B: Backend> Rows<B> {
    pub const RANDOM: &'static [Row<B>] = &[
        row("RandomNormal", 1, &[SEED, SHAPE, FLOAT, MEAN, SCALE], |c| normal(c, described(c)?)),
        row("RandomNormalLike", 1, &[SEED, SAME, MEAN, SCALE], |c| normal(c, like(c)?)),
        row("RandomUniform", 1, &[SEED, SHAPE, FLOAT, LOW, HIGH], |c| uniform(c, described(c)?)),
        row("RandomUniformLike", 1, &[SEED, SAME, LOW, HIGH], |c| uniform(c, like(c)?)),
        row("Bernoulli", 15, &[SEED, SAME], bernoulli),
        row("Multinomial", 7, &[SEED, ("dtype", Int(6)), ("sample_size", Int(1))], multinomial),
    ];
}

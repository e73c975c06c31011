//! Rotary embeddings of positions.

use swath::{Backend, DType, Tensor};

use super::Rows;
use super::attention::{join_heads, split_heads};
use super::normalize::widened;
use crate::error::{Error, Result};
use crate::row::Default::{Absent, Float, Int};
use crate::row::{Call, Results, Row, one, row};

/// Rotates pairs of elements by angles whose cosines and sines are `[b, t, pairs]`; the elements of x, `[b, heads, t, d]`
/// or `[b, t, heads · d]`, behind these pairs stay.
fn rotate<B: Backend>(
    x: &Tensor<B>,
    heads: Option<i64>,
    [cosine, sine]: [Tensor<B>; 2],
    is_interleaved: bool,
) -> Result<Tensor<B>> {
    let pairs = *cosine.dims().last().unwrap_or(&0);
    let split = widened(&split_heads(x, heads)?)?;
    let [cosine, sine] = [widened(&cosine)?.unsqueeze(1)?, widened(&sine)?.unsqueeze(1)?];
    let width = split.dims()[3];
    if pairs.saturating_mul(2) > width {
        return Err(Error::operator(format!(
            "{pairs} pairs do not fit into heads of {width} elements"
        )));
    }
    let rotated = split.narrow(3, 0, 2 * pairs)?;
    let (shape, axis) = if is_interleaved { ([pairs, 2], 4) } else { ([2, pairs], 3) };
    let shape: Vec<usize> = split.dims()[..3].iter().copied().chain(shape).collect();
    let rotated = rotated.reshape(shape)?;
    let (a, b) =
        (rotated.narrow(axis, 0, 1)?.squeeze(axis)?, rotated.narrow(axis, 1, 1)?.squeeze(axis)?);
    let real = a.mul(&cosine)?.sub(b.mul(&sine)?)?;
    let imaginary = a.mul(&sine)?.add(b.mul(&cosine)?)?;
    let mut y = Tensor::stack(&[real, imaginary], axis)?.flatten(3, 4)?;
    if 2 * pairs < width {
        y = Tensor::cat(&[y, split.narrow(3, 2 * pairs, width - 2 * pairs)?], 3)?;
    }
    let y = y.to_dtype(x.dtype())?;
    if x.rank() == 3 { join_heads(&y) } else { Ok(y) }
}

fn rotary_embedding<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let dim = call.int("rotary_embedding_dim")?;
    let angles = |at: usize| -> Result<Tensor<B>> {
        let cache = call.tensor(at)?;
        let angles =
            call.find(3).map_or(Ok(cache.clone()), |positions| cache.embedding(positions))?;
        match angles.dims() {
            [_, _, pairs] if dim == 0 || dim == 2 * *pairs as i64 => Ok(angles),
            _ => Err(Error::operator(format!(
                "cosines and sines {} do not fit {dim} elements",
                angles.shape()
            ))),
        }
    };
    let angles = [angles(1)?, angles(2)?];
    one(rotate(call.tensor(0)?, call.find_int("num_heads")?, angles, call.flag("interleaved")?))
}

/// ONNX Runtime's operator: positions may be that of the first step alone, and heads are as wide as the angles need
/// unless it says how many there are.
fn rotary_embedding_of_runtime<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (x, mut positions) = (call.tensor(0)?, call.tensor(1)?.to_dtype(DType::I64)?);
    let steps = match *x.dims() {
        [_, _, steps, _] | [_, steps, _] => steps,
        _ => return Err(Error::operator(format!("expected 3 or 4 axes, got {}", x.shape()))),
    };
    if positions.numel() == 1 {
        let index = Tensor::arange_as(0.0, steps as f64, 1.0, DType::I64)?;
        positions = positions.reshape((1, 1))?.add(index)?;
    }
    let cosine = call.tensor(2)?.embedding(&positions)?;
    let (width, pairs) = (x.dims()[x.rank() - 1], *cosine.dims().last().unwrap_or(&0));
    let heads = match call.int("num_heads")? {
        0 => (width / pairs.saturating_mul(2).max(1)) as i64,
        heads => heads,
    };
    let angles = [cosine, call.tensor(3)?.embedding(&positions)?];
    let y = rotate(x, Some(heads), angles, call.flag("interleaved")?)?;
    one(if call.float("scale")? == 1.0 { Ok(y) } else { y.mul(call.float("scale")?) })
}

impl<B: Backend> Rows<B> {
    pub const ROTARY: &'static [Row<B>] = &[
        row(
            "RotaryEmbedding",
            23,
            &[("interleaved", Int(0)), ("num_heads", Absent), ("rotary_embedding_dim", Int(0))],
            rotary_embedding,
        ),
        row(
            "com.microsoft.RotaryEmbedding",
            1,
            &[
                ("interleaved", Int(0)),
                ("is_packed_batching", Int(0)),
                ("num_heads", Int(0)),
                ("rotary_embedding_dim", Int(0)),
                ("scale", Float(1.0)),
            ],
            rotary_embedding_of_runtime,
        ),
    ];
}

//! Pads.

use swath::{Backend, DType, PadMode, Tensor, is_grad_enabled};

use super::Rows;
use crate::error::{Error, Result};
use crate::row::Default::{Absent, Float, Text};
use crate::row::{Call, Results, Row, axis, one, row};

fn pad<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let list = call.ints_in("pads", 1)?.ok_or_else(|| Error::operator("the pads are missing"))?;
    let axes = match call.ints_of(3)? {
        Some(axes) => axes.iter().map(|&at| axis(at, x.rank())).collect::<Result<Vec<_>>>()?,
        None => (0..x.rank()).collect(),
    };
    if list.len() != 2 * axes.len() {
        return Err(Error::operator(format!(
            "expected {} pads, got {}",
            2 * axes.len(),
            list.len()
        )));
    }
    let mut pads = vec![(0, 0); x.rank()];
    for (i, &axis) in axes.iter().enumerate() {
        pads[axis] = (list[i] as isize, list[axes.len() + i] as isize);
    }
    match (call.text("mode")?, call.find(2)) {
        ("constant", None) => one(x.pad(&pads, PadMode::Constant(call.float("value")?))),
        ("constant", Some(value)) => one(pad_with(x, &pads, value)),
        ("reflect", _) => one(pad_repeating(x, &pads, PadMode::Reflect)),
        ("edge", _) => one(pad_repeating(x, &pads, PadMode::Replicate)),
        ("wrap", _) => one(pad_repeating(x, &pads, PadMode::Circular)),
        (mode, _) => Err(Error::operator(format!(
            "mode must be constant, reflect, edge or wrap, not {mode:?}"
        ))),
    }
}

/// Pads with the one element of a tensor. swath's `pad` takes an `f64`, which has no gradient and is not every integer.
fn pad_with<B: Backend>(
    x: &Tensor<B>,
    pads: &[(isize, isize)],
    value: &Tensor<B>,
) -> Result<Tensor<B>> {
    let value = value.reshape(())?;
    if value.dtype() != x.dtype() {
        return Err(Error::operator(format!(
            "the value must be {}, not {}",
            x.dtype(),
            value.dtype()
        )));
    }
    if !(value.is_tracked() && is_grad_enabled()) {
        let number = value.to_dtype(DType::F64)?.item::<f64>()?;
        if x.dtype().is_float() || number.abs() < 2f64.powi(53) {
            return Ok(x.pad(pads, PadMode::Constant(number))?);
        }
    }
    let is_own = Tensor::full(x.shape(), true)?.pad(pads, PadMode::Constant(0.0))?;
    Ok(Tensor::where_cond(&is_own, &x.pad(pads, PadMode::Constant(0.0))?, &value)?)
}

/// Pads with elements of the tensor, of which there may be fewer than are added: then they are repeated again.
fn pad_repeating<B: Backend>(
    x: &Tensor<B>,
    pads: &[(isize, isize)],
    mode: PadMode,
) -> Result<Tensor<B>> {
    let removed: Vec<_> =
        pads.iter().map(|&(before, after)| (before.min(0), after.min(0))).collect();
    let mut x = x.pad(&removed, PadMode::Constant(0.0))?;
    let added: Vec<_> = pads.iter().map(|&(before, after)| (before.max(0), after.max(0))).collect();
    let fits = |(&(before, after), &extent): (&(isize, isize), &usize)| {
        let most = before.max(after).unsigned_abs();
        most < extent || most == 0 || mode == PadMode::Replicate && extent > 0
    };
    if added.iter().zip(x.dims()).all(fits) {
        return Ok(x.pad(&added, mode)?);
    }
    for (axis, &(before, after)) in added.iter().enumerate().filter(|(_, added)| **added != (0, 0))
    {
        let extent = x.dims()[axis];
        if extent == 0 {
            return Err(Error::operator(format!("axis {axis} has no element to pad with")));
        }
        let places =
            Tensor::arange_as(-(before as f64), extent as f64 + after as f64, 1.0, DType::I64)?;
        let last = extent as i64 - 1;
        let places = match mode {
            PadMode::Reflect => {
                let period = (2 * last).max(1);
                let place = places.remainder(period)?;
                place.minimum(&place.neg()?.add_scalar(period)?)?
            }
            _ => places.remainder(extent as i64)?,
        };
        x = x.index_select(axis, &places)?;
    }
    Ok(x)
}

impl<B: Backend> Rows<B> {
    pub const PAD: &'static [Row<B>] = &[row(
        "Pad",
        2,
        &[("mode", Text("constant")), ("pads", Absent), ("value", Float(0.0))],
        pad,
    )];
}

//! Integers that stand for floats: `(integer - zero point) · scale`.

use swath::{Backend, DType, Tensor};

use super::Rows;
use super::pool::{CEIL, KERNEL, average};
use super::windows::sliding;
use crate::error::{Error, Result};
use crate::row::Default::{Float, Int, Required};
use crate::row::{Call, Results, Row, all, axis, ints, one, row};
use crate::weights;

/// A tensor of one element as a scalar, which broadcasts to any shape; others unchanged.
pub fn number<B: Backend>(x: &Tensor<B>) -> Result<Tensor<B>> {
    Ok(if x.numel() == 1 { x.reshape(())? } else { x.clone() })
}

/// An operand of a product of 8-bit integers: the numbers less their zero points, as `F32`.
pub struct Exact<B: Backend> {
    pub values: Tensor<B>,
    /// No number has a larger magnitude.
    most: usize,
}

impl<B: Backend> Exact<B> {
    pub fn new(x: &Tensor<B>, zero: Option<&Tensor<B>>) -> Result<Self> {
        let [least, most] = match x.dtype() {
            DType::U8 => [0, 255],
            DType::I8 => [-128, 127],
            other => return Err(Error::operator(format!("8-bit integers expected, not {other}"))),
        };
        let zeros = zero.map(ints).transpose()?.unwrap_or_default();
        let (low, high) =
            (zeros.iter().min().map_or(0, |&low| low), zeros.iter().max().map_or(0, |&high| high));
        let mut values = x.to_dtype(DType::F32)?;
        if let Some(zero) = zero.filter(|_| (low, high) != (0, 0)) {
            values = values.sub(&number(zero)?.to_dtype(DType::F32)?)?;
        }
        Ok(Exact { values, most: (most - low).max(high - least).unsigned_abs() as usize })
    }
}

/// Sums of products of integers, as `I32`, which wrap: those of `part(operands, start, count)` for all parts of `each`
/// summands of `terms` products.
///
/// The products are those of floats. A part is so small that no sum in it exceeds 2^24: every integer up to there is an
/// `F32`, so that all sums are exact, in whatever order. Matrices of 256 × 1024 and 1024 × 1024 take 2.8 ms in two parts
/// on two cores, against 2.3 for the product of floats alone, 4.9 in `F64` and 18 in `I64`.
pub fn exact_sum<B: Backend>(
    [a, b]: [Exact<B>; 2],
    [each, terms]: [usize; 2],
    part: impl Fn([&Tensor<B>; 2], usize, usize) -> Result<Tensor<B>>,
) -> Result<Tensor<B>> {
    let largest = a.most.saturating_mul(b.most).saturating_mul(terms).max(1);
    let (size, dtype) = match (1 << 24) / largest {
        0 => (each, DType::F64),
        most => (each.div_ceil(each.div_ceil(most).max(1)), DType::F32),
    };
    let (a, b) = (a.values.to_dtype(dtype)?, b.values.to_dtype(dtype)?);
    if each <= size {
        return Ok(part([&a, &b], 0, each)?.to_dtype(DType::I32)?);
    }
    let mut sum = part([&a, &b], 0, size)?.to_dtype(DType::I64)?;
    for start in (size..each).step_by(size) {
        sum = sum.add(&part([&a, &b], start, size.min(each - start))?.to_dtype(DType::I64)?)?;
    }
    Ok(sum.to_dtype(DType::I32)?)
}

/// The scale of sums of products, in units of that of the result.
pub fn scales<B: Backend>(a: &Tensor<B>, b: &Tensor<B>, y: &Tensor<B>) -> Result<Tensor<B>> {
    let [a, b, y] = [a, b, y].map(|x| number(x)?.to_dtype(DType::F32).map_err(Error::from));
    Ok(a?.mul(&b?)?.div(&y?)?)
}

/// Numbers in units of the scale, rounded to even and moved by the zero point, which decides the dtype if given.
pub fn requantized<B: Backend>(
    x: &Tensor<B>,
    zero: Option<&Tensor<B>>,
    dtype: DType,
) -> Result<Tensor<B>> {
    // The conversion to integers saturates.
    Ok(moved(x, zero)?.to_dtype(zero.map_or(dtype, Tensor::dtype))?)
}

/// Numbers rounded to even and moved by the zero point.
fn moved<B: Backend>(x: &Tensor<B>, zero: Option<&Tensor<B>>) -> Result<Tensor<B>> {
    let rounded = x.round()?;
    let wide = if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let rounded = rounded.to_dtype(wide)?;
    match zero {
        Some(zero) => Ok(rounded.add(&number(zero)?.to_dtype(wide)?)?),
        None => Ok(rounded),
    }
}

/// Scales or zero points beside the elements of x: one for all, one for each index of the axis, or one for each block.
fn beside<B: Backend>(call: &Call<'_, B>, each: &Tensor<B>, x: &Tensor<B>) -> Result<Tensor<B>> {
    if each.numel() == 1 {
        return number(each);
    }
    let (axis, block) = (axis(call.int("axis")?, x.rank())?, call.int("block_size")?);
    let extent = x.dims()[axis];
    let wrong = || {
        let reason = format!(
            "{} scales or zero points do not fit {} along axis {axis}",
            each.shape(),
            x.shape()
        );
        Err(Error::operator(format!("{reason} in blocks of {block}")))
    };
    if block == 0 {
        let mut shape = vec![1; x.rank()];
        shape[axis] = extent;
        return if each.dims() == [extent] { Ok(each.reshape(shape)?) } else { wrong() };
    }
    let mut blocks = x.dims().to_vec();
    match usize::try_from(block) {
        Ok(block) => blocks[axis] = extent.div_ceil(block),
        Err(_) => return wrong(),
    }
    if each.dims() != blocks {
        return wrong();
    }
    // One block may be larger than the axis.
    let repeated = each.repeat_interleave(block.min(extent as i64), axis)?;
    Ok(repeated.narrow(axis, 0, extent)?)
}

/// The dtype of a type of integers, and its range if the dtype holds more.
fn integers(code: i64) -> Result<(DType, Option<[f64; 2]>)> {
    let range = match code {
        21 => Some([0.0, 15.0]),
        22 => Some([-8.0, 7.0]),
        25 => Some([0.0, 3.0]),
        26 => Some([-2.0, 1.0]),
        _ => None,
    };
    let dtype = weights::dtype(code).filter(|dtype| !dtype.is_float() && *dtype != DType::Bool);
    let unsupported = || {
        Error::operator(format!("results of type {} are not supported", weights::type_name(code)))
    };
    Ok((dtype.ok_or_else(unsupported)?, range))
}

fn quantize<B: Backend>(call: &Call<'_, B>) -> Result<Tensor<B>> {
    let x = call.tensor(0)?;
    let scale = beside(call, call.tensor(1)?, x)?;
    let zero = call.find(2).map(|zero| beside(call, zero, x)).transpose()?;
    let wide = match call.int("precision")? {
        0 => Some(scale.dtype()),
        code => weights::dtype(code),
    };
    let wide = wide.filter(|dtype| dtype.is_float()).unwrap_or(DType::F64);
    let (dtype, range) = match (call.int("output_dtype")?, &zero) {
        (0, Some(zero)) => (zero.dtype(), None),
        (0, None) => (DType::U8, None),
        (code, _) => integers(code)?,
    };
    let y = moved(&x.to_dtype(wide)?.div(&scale.to_dtype(wide)?)?, zero.as_ref())?;
    let y = match range {
        Some([low, high]) => y.clamp(low, high)?,
        None => y,
    };
    Ok(y.to_dtype(dtype)?)
}

fn dequantize<B: Backend>(call: &Call<'_, B>) -> Result<Tensor<B>> {
    let x = call.tensor(0)?;
    let scale = beside(call, call.tensor(1)?, x)?;
    let zero = call.find(2).map(|zero| beside(call, zero, x)).transpose()?;
    let dtype = match call.int("output_dtype")? {
        0 => Some(scale.dtype()),
        code => weights::dtype(code).filter(|dtype| dtype.is_float()),
    };
    let dtype =
        dtype.ok_or_else(|| Error::operator("\"output_dtype\" must be a type of floats"))?;
    floats(x, &scale, zero.as_ref(), dtype)
}

/// The floats that integers stand for.
fn floats<B: Backend>(
    x: &Tensor<B>,
    scale: &Tensor<B>,
    zero: Option<&Tensor<B>>,
    dtype: DType,
) -> Result<Tensor<B>> {
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let mut y = x.to_dtype(wide)?;
    if let Some(zero) = zero {
        y = y.sub(&zero.to_dtype(wide)?)?;
    }
    Ok(y.mul(&scale.to_dtype(wide)?)?.to_dtype(dtype)?)
}

fn dynamic_quantize<B: Backend>(x: &Tensor<B>) -> Results<B> {
    let (low, high) =
        (x.min_with_initial(0.0, None, false)?, x.max_with_initial(0.0, None, false)?);
    let range = high.sub(&low)?;
    // The scale of zeros is 1.
    let scale = range.div(255.0)?.masked_fill(&range.eq(0.0)?, 1.0)?;
    let zero = low.neg()?.div(&scale)?.round()?.to_dtype(DType::U8)?;
    let y = requantized(&x.div(&scale)?, Some(&zero), DType::U8)?;
    all([y, scale, zero])
}

/// The floats that an input stands for, whose scale and zero point are the next two inputs.
fn floats_of<B: Backend>(call: &Call<'_, B>, at: usize) -> Result<Tensor<B>> {
    let zero = call.find(at + 2).map(number).transpose()?;
    floats(call.tensor(at)?, &number(call.tensor(at + 1)?)?, zero.as_ref(), DType::F32)
}

/// The integers that stand for floats, by the scale and the zero point of two inputs.
fn integers_of<B: Backend>(
    call: &Call<'_, B>,
    y: &Tensor<B>,
    [scale, zero]: [usize; 2],
    dtype: DType,
) -> Results<B> {
    let y = y.div(&number(call.tensor(scale)?)?.to_dtype(DType::F32)?)?;
    one(requantized(&y, call.find(zero), dtype))
}

/// A function of the floats that inputs stand for, of which there are `operands`.
fn quantized<B: Backend>(
    call: &Call<'_, B>,
    operands: usize,
    f: impl Fn(&[Tensor<B>]) -> Result<Tensor<B>>,
) -> Results<B> {
    let inputs = (0..operands).map(|i| floats_of(call, 3 * i)).collect::<Result<Vec<_>>>()?;
    let at = 3 * operands;
    integers_of(call, &f(&inputs)?, [at, at + 1], call.tensor(0)?.dtype())
}

/// A function of images whose channels are the axis after the first, or, as an attribute says, the last one.
fn of_images<B: Backend>(
    call: &Call<'_, B>,
    x: &Tensor<B>,
    f: impl Fn(&Tensor<B>) -> Result<Tensor<B>>,
) -> Result<Tensor<B>> {
    match call.flag("channels_last")? {
        true => Ok(f(&x.movedim(-1, 1)?)?.movedim(1, -1)?),
        false => f(x),
    }
}

fn qlinear_concat<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let starts = (2..call.inputs.len()).step_by(3);
    let inputs = starts.map(|at| floats_of(call, at)).collect::<Result<Vec<_>>>()?;
    let rank = inputs.first().map_or(0, Tensor::rank);
    let joined = Tensor::cat(&inputs, call.axis("axis", rank)?)?;
    integers_of(call, &joined, [0, 1], call.tensor(2)?.dtype())
}

impl<B: Backend> Rows<B> {
    pub const QUANTIZE: &'static [Row<B>] = &[
        row("QuantizeLinear", 10, QUANTIZE, |c| one(quantize(c))),
        row("DequantizeLinear", 10, DEQUANTIZE, |c| one(dequantize(c))),
        row("DynamicQuantizeLinear", 11, &[], |c| dynamic_quantize(c.tensor(0)?)),
        row("com.microsoft.QuantizeLinear", 1, QUANTIZE, |c| one(quantize(c))),
        row("com.microsoft.DequantizeLinear", 1, DEQUANTIZE, |c| one(dequantize(c))),
        row("com.microsoft.QLinearAdd", 1, &[], |c| quantized(c, 2, |x| Ok(x[0].add(&x[1])?))),
        row("com.microsoft.QLinearMul", 1, &[], |c| quantized(c, 2, |x| Ok(x[0].mul(&x[1])?))),
        row("com.microsoft.QLinearSigmoid", 1, &[], |c| quantized(c, 1, |x| Ok(x[0].sigmoid()?))),
        row("com.microsoft.QLinearLeakyRelu", 1, &[("alpha", Float(0.01))], |c| {
            let slope = c.float("alpha")?;
            quantized(c, 1, |x| Ok(x[0].leaky_relu(slope)?))
        }),
        row("com.microsoft.QLinearConcat", 1, &[("axis", Required)], qlinear_concat),
        row("com.microsoft.QLinearGlobalAveragePool", 1, &[("channels_last", Int(0))], |c| {
            quantized(c, 1, |x| {
                of_images(c, &x[0], |x| Ok(x.mean(Some(&(2..x.rank()).collect::<Vec<_>>()), true)?))
            })
        }),
        row(
            "com.microsoft.QLinearAveragePool",
            1,
            sliding!(KERNEL, CEIL, ("channels_last", Int(0)), ("count_include_pad", Int(0))),
            |c| quantized(c, 1, |x| of_images(c, &x[0], |x| average(c, x))),
        ),
    ];
}

const QUANTIZE: &[(&str, crate::row::Default)] = &[
    ("axis", Int(1)),
    ("block_size", Int(0)),
    ("output_dtype", Int(0)),
    ("precision", Int(0)),
    ("saturate", Int(1)),
];

const DEQUANTIZE: &[(&str, crate::row::Default)] =
    &[("axis", Int(1)), ("block_size", Int(0)), ("output_dtype", Int(0))];

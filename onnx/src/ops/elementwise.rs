//! Functions of each element.

use swath::ops::{BinaryOp, DropoutMask, UnaryOp};
use swath::{Backend, DType, Tensor, broadcast_shape, is_grad_enabled};

use super::{Rows, random};
use crate::error::{Error, Result};
use crate::row::Default::{Absent, Float, Int, Text};
use crate::row::{Call, Results, Row, all, ints, one, row};

/// A function of one tensor.
fn unary<B: Backend>(call: &Call<'_, B>, op: UnaryOp) -> Results<B> {
    one(call.tensor(0)?.unary(op))
}

/// A function of two tensors, whose shapes broadcast.
fn binary<B: Backend>(call: &Call<'_, B>, op: BinaryOp) -> Results<B> {
    one(call.tensor(0)?.binary(op, call.tensor(1)?))
}

/// A function of two tensors, applied to any number of them.
fn fold<B: Backend>(call: &Call<'_, B>, op: BinaryOp) -> Results<B> {
    let all = call.tensors()?;
    let Some((&first, rest)) = all.split_first() else {
        return Err(Error::operator("expected at least one input"));
    };
    one(rest.iter().try_fold(first.clone(), |result, &x| result.binary(op, x)))
}

/// The dtype in which several operations on a dtype are computed, to be rounded once: `F32` for 16-bit floats.
pub(super) fn wide(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        _ => dtype,
    }
}

/// Computes the first input's function in at least `F32` and rounds once.
fn widened<B: Backend>(
    call: &Call<'_, B>,
    f: impl FnOnce(&Tensor<B>) -> swath::Result<Tensor<B>>,
) -> Results<B> {
    let x = call.tensor(0)?;
    one(f(&x.to_dtype(wide(x.dtype()))?)?.to_dtype(x.dtype()))
}

/// The mean of tensors, whose shapes broadcast.
fn mean<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let all = call.tensors()?;
    widened(call, |first| {
        let sum = all[1..]
            .iter()
            .try_fold(first.clone(), |sum, x| sum.add(x.to_dtype(first.dtype())?))?;
        sum.div(all.len())
    })
}

/// The remainder of floored division, with the sign of the divisor.
fn floored_remainder<B: Backend>(a: &Tensor<B>, b: &Tensor<B>) -> swath::Result<Tensor<B>> {
    let remainder = a.remainder(b)?;
    match a.dtype().is_float() {
        // A zero of swath has the sign of the dividend.
        true => remainder.copysign(b),
        false => Ok(remainder),
    }
}

/// The number in a tensor, unless it has several or a gradient: operations have faster forms for numbers.
fn known<B: Backend>(x: &Tensor<B>) -> Result<Option<f64>> {
    match x.numel() == 1 && !(x.is_tracked() && is_grad_enabled()) {
        true => Ok(Some(x.to_dtype(DType::F64)?.reshape(())?.item::<f64>()?)),
        false => Ok(None),
    }
}

/// A power, which has the dtype of the base.
fn power<B: Backend>(base: &Tensor<B>, exponent: &Tensor<B>) -> Result<Tensor<B>> {
    let (dtype, other) = (base.dtype(), exponent.dtype());
    if !dtype.is_float() && !other.is_float() {
        let shape = broadcast_shape(base.shape(), exponent.shape())?;
        let (bases, exponents) =
            (ints(&base.broadcast_to(shape)?)?, ints(&exponent.broadcast_to(shape)?)?);
        let powers: Vec<i64> =
            bases.into_iter().zip(exponents).map(|(a, b)| integer_power(a, b)).collect();
        return Ok(Tensor::from_vec(powers, shape)?.to_dtype(dtype)?);
    }
    if dtype.is_float()
        && exponent.rank() <= base.rank()
        && let Some(number) = known(exponent)?
        && (other == dtype || known(&exponent.to_dtype(dtype)?)? == Some(number))
    {
        return Ok(base.powf(number)?);
    }
    let needs_f64 = |dtype: DType| dtype == DType::F64 || !dtype.is_float() && dtype.size() >= 4;
    let wide = match dtype == other {
        true => dtype,
        false if needs_f64(dtype) || needs_f64(other) => DType::F64,
        false => DType::F32,
    };
    Ok(base.to_dtype(wide)?.pow(&exponent.to_dtype(wide)?)?.to_dtype(dtype)?)
}

/// A power modulo 2^64, truncated if the exponent is negative; 0 for a base of 0 then.
fn integer_power(mut base: i64, exponent: i64) -> i64 {
    if exponent < 0 && base.unsigned_abs() != 1 {
        return 0;
    }
    let (mut power, mut left) = (1i64, exponent.unsigned_abs());
    while left > 0 {
        if left % 2 == 1 {
            power = power.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        left /= 2;
    }
    power
}

/// `x` where it is not negative, else `slope · x`; the slope broadcasts to `x`.
fn prelu<B: Backend>(x: &Tensor<B>, slope: &Tensor<B>) -> swath::Result<Tensor<B>> {
    let slope = slope.broadcast_to(*x.shape())?;
    match x.dtype().is_float() {
        true => x.leaky_relu(&slope),
        false => x.lt(0)?.select(&x.mul(&slope)?, x),
    }
}

/// `x`, or `alpha · (e^(x/alpha) - 1)` where it is negative.
fn celu<B: Backend>(x: &Tensor<B>, alpha: f64) -> swath::Result<Tensor<B>> {
    // Without the positive numbers, whose exponentials may be infinite.
    let negative = x.masked_fill(&x.gt(0.0)?, 0.0)?;
    x.relu()?.add(negative.div(alpha)?.expm1()?.mul(alpha)?)
}

/// `min(max(alpha · x + beta, 0), 1)`.
fn hard_sigmoid<B: Backend>(x: &Tensor<B>, alpha: f64, beta: f64) -> swath::Result<Tensor<B>> {
    // The one of PyTorch has a kernel; in `F64` the attribute's rounding can be seen.
    match (alpha, beta) == (f64::from(1.0f32 / 6.0), 0.5) && x.dtype() != DType::F64 {
        true => x.hardsigmoid(),
        false => x.hardsigmoid_with(alpha, beta),
    }
}

/// `x · sigmoid(alpha · x)`.
fn swish<B: Backend>(x: &Tensor<B>, alpha: f64) -> swath::Result<Tensor<B>> {
    match alpha == 1.0 {
        true => x.silu(),
        false => x.mul(x.mul(alpha)?.sigmoid()?),
    }
}

/// `x + bias` below `-lambd`, `x - bias` above `lambd`, else 0.
fn shrink<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let (bias, lambd, x) = (call.float("bias")?, call.float("lambd")?, call.tensor(0)?);
    let dtype = if x.dtype().is_float() { wide(x.dtype()) } else { DType::F64 };
    let wide = x.to_dtype(dtype)?;
    let (below, above) = (wide.lt(-lambd)?, wide.gt(lambd)?);
    // Without a bias integers need not pass through floats.
    let (raised, lowered) = match bias == 0.0 {
        true => (x.clone(), x.clone()),
        false => (wide.add(bias)?.to_dtype(x.dtype())?, wide.sub(bias)?.to_dtype(x.dtype())?),
    };
    let zero = Tensor::zeros((), x.dtype())?;
    one(below.select(&raised, &above.select(&lowered, &zero)?))
}

/// `min(max(x, low), high)`; a bound that is NaN is none.
fn clipped<B: Backend>(x: &Tensor<B>, low: f64, high: f64) -> swath::Result<Tensor<B>> {
    match (low, high) {
        (0.0, 6.0) => x.relu6(),
        _ if low.is_nan() && high.is_nan() => Ok(x.clone()),
        _ if low > high => x.clamp(high, high),
        _ => x.clamp(low, high),
    }
}

/// `min(max(x, low), high)`, with bounds as attributes or, since version 11, as inputs that may be left out.
fn clip<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    if call.version() < 11 {
        return one(clipped(x, call.float("min")?, call.float("max")?));
    }
    let bound = |at| call.find(at).map(|bound| bound.reshape(())).transpose();
    let (low, high) = (bound(1)?, bound(2)?);
    let number = |bound: &Option<Tensor<B>>| bound.as_ref().map_or(Ok(Some(f64::NAN)), known);
    if x.dtype().is_float()
        && let (Some(low), Some(high)) = (number(&low)?, number(&high)?)
    {
        return one(clipped(x, low, high));
    }
    let raised = low.map_or_else(|| Ok(x.clone()), |low| x.clamp_min(&low))?;
    one(high.map_or_else(|| Ok(raised.clone()), |high| raised.clamp_max(&high)))
}

/// True at infinities of the signs that count.
fn is_infinite<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    one(match (call.flag("detect_negative")?, call.flag("detect_positive")?) {
        (true, true) => x.isinf(),
        (true, false) => x.eq(f64::NEG_INFINITY),
        (false, true) => x.eq(f64::INFINITY),
        (false, false) => Tensor::zeros(*x.shape(), DType::Bool),
    })
}

/// The input, with some elements zeroed in training, and the mask of those that stay.
fn dropout<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?;
    let is_training = call.number_of(2)?.is_some_and(|flag| flag != 0.0);
    let p = if is_training { call.number_of(1)?.unwrap_or(0.5) } else { 0.0 };
    let (seed, stream) = random::seed(call, call.find_int("seed")?.map(i64::cast_unsigned));
    let mask = DropoutMask { p, seed, stream };
    let dropped = |x: &Tensor<B>| if p == 0.0 { Ok(x.clone()) } else { x.dropout(mask) };
    let y = dropped(x)?;
    if call.outputs() < 2 {
        return all([y]);
    }
    // The mask had the input's dtype before.
    let dtype = if call.version() < 10 { x.dtype() } else { DType::Bool };
    let kept = dropped(&x.ones_like()?)?.ne(0.0)?.to_dtype(dtype)?;
    all([y, kept])
}

impl<B: Backend> Rows<B> {
    pub const ELEMENTWISE: &'static [Row<B>] = &[
        row("Identity", 1, &[], |c| match c.inputs.first() {
            Some(Some(value)) => Ok(vec![value.clone()]),
            _ => Err(Error::operator("the input is missing")),
        }),
        row("Where", 9, &[], |c| one(Tensor::where_cond(c.tensor(0)?, c.tensor(1)?, c.tensor(2)?))),
        row("Dropout", 7, &[("ratio", Float(0.5)), ("seed", Absent)], dropout),
        // Arithmetic.
        row("Add", 7, &[], |c| binary(c, BinaryOp::Add)),
        row("Sub", 7, &[], |c| binary(c, BinaryOp::Sub)),
        row("Mul", 7, &[], |c| binary(c, BinaryOp::Mul)),
        row("Div", 7, &[], |c| binary(c, BinaryOp::Div)),
        row("Mod", 10, &[("fmod", Int(0))], |c| match c.flag("fmod")? {
            true => binary(c, BinaryOp::Rem),
            false => one(floored_remainder(c.tensor(0)?, c.tensor(1)?)),
        }),
        row("Pow", 7, &[], |c| one(power(c.tensor(0)?, c.tensor(1)?))),
        row("Max", 6, &[], |c| fold(c, BinaryOp::Maximum)),
        row("Min", 6, &[], |c| fold(c, BinaryOp::Minimum)),
        row("Sum", 6, &[], |c| fold(c, BinaryOp::Add)),
        row("Mean", 6, &[], mean),
        row("Abs", 6, &[], |c| unary(c, UnaryOp::Abs)),
        row("Neg", 6, &[], |c| unary(c, UnaryOp::Neg)),
        row("Sign", 9, &[], |c| unary(c, UnaryOp::Sign)),
        row("Ceil", 6, &[], |c| unary(c, UnaryOp::Ceil)),
        row("Floor", 6, &[], |c| unary(c, UnaryOp::Floor)),
        row("Round", 11, &[], |c| unary(c, UnaryOp::Round)),
        row("Sqrt", 6, &[], |c| unary(c, UnaryOp::Sqrt)),
        row("Reciprocal", 6, &[], |c| unary(c, UnaryOp::Recip)),
        row("Clip", 6, &[("min", Float(f32::MIN)), ("max", Float(f32::MAX))], clip),
        row("IsNaN", 9, &[], |c| one(c.tensor(0)?.isnan())),
        row("IsInf", 10, &[("detect_negative", Int(1)), ("detect_positive", Int(1))], is_infinite),
        // Exponentials, trigonometry.
        row("Exp", 6, &[], |c| unary(c, UnaryOp::Exp)),
        row("Log", 6, &[], |c| unary(c, UnaryOp::Log)),
        row("Erf", 9, &[], |c| unary(c, UnaryOp::Erf)),
        row("Sin", 7, &[], |c| unary(c, UnaryOp::Sin)),
        row("Cos", 7, &[], |c| unary(c, UnaryOp::Cos)),
        row("Tan", 7, &[], |c| unary(c, UnaryOp::Tan)),
        row("Asin", 7, &[], |c| unary(c, UnaryOp::Asin)),
        row("Acos", 7, &[], |c| unary(c, UnaryOp::Acos)),
        row("Atan", 7, &[], |c| unary(c, UnaryOp::Atan)),
        row("Sinh", 9, &[], |c| unary(c, UnaryOp::Sinh)),
        row("Cosh", 9, &[], |c| unary(c, UnaryOp::Cosh)),
        row("Tanh", 6, &[], |c| unary(c, UnaryOp::Tanh)),
        row("Asinh", 9, &[], |c| unary(c, UnaryOp::Asinh)),
        row("Acosh", 9, &[], |c| unary(c, UnaryOp::Acosh)),
        row("Atanh", 9, &[], |c| unary(c, UnaryOp::Atanh)),
        // Activations.
        row("Relu", 6, &[], |c| unary(c, UnaryOp::Relu)),
        row("LeakyRelu", 6, &[("alpha", Float(0.01))], |c| {
            one(c.tensor(0)?.leaky_relu(c.float("alpha")?))
        }),
        row("PRelu", 7, &[], |c| one(prelu(c.tensor(0)?, c.tensor(1)?))),
        row("Elu", 6, &[("alpha", Float(1.0))], |c| one(c.tensor(0)?.elu(c.float("alpha")?))),
        row("Celu", 12, &[("alpha", Float(1.0))], |c| {
            let alpha = c.float("alpha")?;
            widened(c, |x| celu(x, alpha))
        }),
        row("Selu", 6, &[("alpha", Float(1.673_263_2)), ("gamma", Float(1.050_701))], |c| {
            let (alpha, gamma) = (c.float("alpha")?, c.float("gamma")?);
            widened(c, |x| x.elu(alpha)?.mul(gamma))
        }),
        row("ThresholdedRelu", 10, &[("alpha", Float(1.0))], |c| {
            let x = c.tensor(0)?;
            one(x.gt(c.float("alpha")?)?.select(x, &Tensor::zeros((), x.dtype())?))
        }),
        row("Sigmoid", 6, &[], |c| unary(c, UnaryOp::Sigmoid)),
        row("HardSigmoid", 6, &[("alpha", Float(0.2)), ("beta", Float(0.5))], |c| {
            one(hard_sigmoid(c.tensor(0)?, c.float("alpha")?, c.float("beta")?))
        }),
        row("HardSwish", 14, &[], |c| unary(c, UnaryOp::Hardswish)),
        row("Mish", 18, &[], |c| unary(c, UnaryOp::Mish)),
        row("Gelu", 20, &[("approximate", Text("none"))], |c| match c.text("approximate")? {
            "none" => unary(c, UnaryOp::Gelu),
            "tanh" => unary(c, UnaryOp::GeluTanh),
            other => Err(Error::operator(format!(
                "approximate must be \"none\" or \"tanh\", got {other:?}"
            ))),
        }),
        row("Softplus", 1, &[], |c| unary(c, UnaryOp::Softplus)),
        row("Softsign", 1, &[], |c| widened(c, |x| x.div(x.abs()?.add(1.0)?))),
        row("Shrink", 9, &[("bias", Float(0.0)), ("lambd", Float(0.5))], shrink),
        row("Swish", 24, &[("alpha", Float(1.0))], |c| {
            let alpha = c.float("alpha")?;
            widened(c, |x| swish(x, alpha))
        }),
        row("SwiGLU", 28, &[("alpha", Float(1.0))], |c| {
            let (alpha, a, b) = (c.float("alpha")?, c.tensor(0)?, c.tensor(1)?);
            if a.shape() != b.shape() {
                return Err(Error::operator("the gate and the value must have the same shape"));
            }
            widened(c, |x| swish(x, alpha)?.mul(b.to_dtype(x.dtype())?))
        }),
    ];
}

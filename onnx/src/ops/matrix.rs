//! Products of matrices, and determinants.

use swath::ops::Activation;
use swath::{Backend, DType, Tensor};

use super::Rows;
use super::quantize::{Exact, exact_sum, number, requantized, scales};
use crate::error::{Error, Result};
use crate::row::Default::{Absent, Float, Int, Required, Text};
use crate::row::{Call, Row, one, row};

/// A product of matrices. swath adds up integers as `I64`; the conversion back wraps, as ONNX's sums do.
fn product<B: Backend>(a: &Tensor<B>, b: &Tensor<B>) -> Result<Tensor<B>> {
    Ok(a.matmul(b)?.to_dtype(a.dtype())?)
}

/// Matrices, or their transposes.
fn oriented<B: Backend>(x: &Tensor<B>, transposed: bool) -> Result<Tensor<B>> {
    Ok(if transposed { x.t()? } else { x.clone() })
}

/// `factor · x`, of integers too.
fn scaled<B: Backend>(x: Tensor<B>, factor: f64) -> Result<Tensor<B>> {
    Ok(match x.dtype().is_float() {
        _ if factor == 1.0 => x,
        true => x.mul(factor)?,
        false if factor.fract() == 0.0 => x.mul(factor as i64)?,
        false => x.to_dtype(DType::F64)?.mul(factor)?.to_dtype(x.dtype())?,
    })
}

/// `y(function)` for the function of this name, whose parameters are given, or this function of `y(None)`.
pub fn activated<B: Backend>(
    name: &str,
    parameters: &[f32],
    y: impl Fn(Option<Activation>) -> Result<Tensor<B>>,
) -> Result<Tensor<B>> {
    let parameter = |at: usize, or: f64| parameters.get(at).map_or(or, |&given| f64::from(given));
    y(Some(match name {
        "" => return y(None),
        "Relu" => Activation::Relu,
        "Sigmoid" => Activation::Sigmoid,
        "Tanh" => Activation::Tanh,
        "Softplus" => Activation::Softplus,
        "Gelu" => Activation::Gelu,
        "LeakyRelu" => Activation::LeakyRelu(parameter(0, 0.01)),
        "Elu" => Activation::Elu(parameter(0, 1.0)),
        "HardSigmoid" => {
            return Ok(y(None)?.hardsigmoid_with(parameter(0, 0.2), parameter(1, 0.5))?);
        }
        "Clip" => {
            return Ok(
                y(None)?.clamp(parameter(0, f64::NEG_INFINITY), parameter(1, f64::INFINITY))?
            );
        }
        other => return Err(Error::operator(format!("\"activation\" is {other:?}"))),
    }))
}

/// `alpha · A·B + beta · C`, and a function of it.
fn gemm<B: Backend>(call: &Call<'_, B>, function: Option<Activation>) -> Result<Tensor<B>> {
    let a = oriented(call.tensor(0)?, call.flag("transA")?)?;
    // The rows of weights of `linear` are outputs.
    let b = oriented(call.tensor(1)?, !call.flag("transB")?)?;
    let (&[m, _], &[n, _]) = (a.dims(), b.dims()) else {
        return Err(Error::operator(format!(
            "matrices expected, not {} and {}",
            a.shape(),
            b.shape()
        )));
    };
    let (c, alpha, beta) = (call.find(2), call.float("alpha")?, call.float("beta")?);
    let is_bias = |c: &Tensor<B>| c.numel() == n && c.dims().last() == Some(&n) && beta == 1.0;
    if alpha == 1.0 && a.dtype().is_float() && c.is_none_or(is_bias) {
        let bias = c.map(|c| c.reshape(n)).transpose()?;
        return Ok(match function {
            Some(function) => a.linear_activation(&b, bias.as_ref(), function)?,
            None => a.linear(&b, bias.as_ref())?,
        });
    }
    // 16-bit floats are rounded once.
    let dtype = a.dtype();
    let wide = if dtype.is_float() && dtype.size() == 2 { DType::F32 } else { dtype };
    let mut y = scaled(a.to_dtype(wide)?.matmul(&b.to_dtype(wide)?.t()?)?, alpha)?;
    if let Some(c) = c {
        y = y.add(&scaled(c.to_dtype(y.dtype())?, beta)?.broadcast_to((m, n))?)?;
    }
    if let Some(function) = function {
        y = y.activation(function)?;
    }
    Ok(y.to_dtype(dtype)?)
}

fn fused_gemm<B: Backend>(call: &Call<'_, B>) -> Result<Tensor<B>> {
    let mut parameters = Vec::new();
    for name in ["activation_alpha", "activation_beta"] {
        parameters.extend(call.find_float(name)?.map(|parameter| parameter as f32));
    }
    activated(call.text("activation")?, &parameters, |function| gemm(call, function))
}

fn fused_matmul<B: Backend>(call: &Call<'_, B>) -> Result<Tensor<B>> {
    let operand = |at: usize, transposed: &str, batch: &str| {
        let x = call.tensor(at)?;
        match x.rank() {
            0 | 1 => Ok(x.clone()),
            // The first axis becomes the rows, those between it and the last the batch.
            rank if call.flag(batch)? => {
                oriented(&x.movedim(0, rank as isize - 2)?, call.flag(transposed)?)
            }
            _ => oriented(x, call.flag(transposed)?),
        }
    };
    let (a, b) = (operand(0, "transA", "transBatchA")?, operand(1, "transB", "transBatchB")?);
    scaled(product(&a, &b)?, call.float("alpha")?)
}

/// Zero points or scales of rows, which are one number or a vector, or have the axes of the matrices.
fn of_rows<B: Backend>(each: &Tensor<B>) -> Result<Tensor<B>> {
    Ok(if each.rank() == 1 && each.numel() > 1 { each.unsqueeze(1)? } else { number(each)? })
}

/// The exact product of matrices of 8-bit integers less their zero points, as `I32`.
fn exact_product<B: Backend>(
    [a, b]: [&Tensor<B>; 2],
    a_zero: Option<&Tensor<B>>,
    b_zero: Option<&Tensor<B>>,
) -> Result<Tensor<B>> {
    let a = Exact::new(a, a_zero.map(of_rows).transpose()?.as_ref())?;
    let b = Exact::new(b, b_zero)?;
    let (left, right) = (&a.values, &b.values);
    let axis = right.rank().saturating_sub(2);
    let shapes =
        || Error::operator(format!("matrices {} and {} do not fit", left.shape(), right.shape()));
    let inner = left
        .dims()
        .last()
        .copied()
        .filter(|&k| right.dims().get(axis) == Some(&k))
        .ok_or_else(shapes)?;
    exact_sum([a, b], [inner, 1], |[a, b], start, count| {
        Ok(a.narrow(-1, start, count)?.matmul(&b.narrow(axis, start, count)?)?)
    })
}

fn qlinear_matmul<B: Backend>(call: &Call<'_, B>) -> Result<Tensor<B>> {
    let a = call.tensor(0)?;
    let sums = exact_product([a, call.tensor(3)?], call.find(2), call.find(5))?;
    let scale = scales(&of_rows(call.tensor(1)?)?, call.tensor(4)?, call.tensor(6)?)?;
    requantized(&sums.to_dtype(DType::F32)?.mul(&scale)?, call.find(7), a.dtype())
}

/// `alpha · A·B + C` of integers, where C has the scale of the products.
fn qgemm<B: Backend>(call: &Call<'_, B>) -> Result<Tensor<B>> {
    let a = oriented(call.tensor(0)?, call.flag("transA")?)?;
    let b = oriented(call.tensor(3)?, call.flag("transB")?)?;
    let mut sums = exact_product([&a, &b], call.find(2), call.find(5))?;
    if let Some(c) = call.find(6) {
        sums = sums.add(&c.broadcast_to(sums.shape())?)?;
    }
    let one = Tensor::ones((), DType::F32)?;
    let scale = scales(&of_rows(call.tensor(1)?)?, call.tensor(4)?, call.find(7).unwrap_or(&one))?;
    let y = sums.to_dtype(DType::F32)?.mul(&scaled(scale, call.float("alpha")?)?)?;
    if call.find(7).is_none() { Ok(y) } else { requantized(&y, call.find(8), a.dtype()) }
}

/// The determinants of matrices `[…, m, m]`, by elimination with the largest pivot of each column.
fn det<B: Backend>(x: &Tensor<B>) -> Result<Tensor<B>> {
    let (batch, m) = match x.dims() {
        [batch @ .., m, n] if m == n => (batch.to_vec(), *m),
        _ => return Err(Error::operator(format!("square matrices expected, not {}", x.shape()))),
    };
    let wide = if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let count: usize = batch.iter().product();
    let mut rest = x.to_dtype(wide)?.reshape([count, m, m])?;
    let mut product = Tensor::ones(count, wide)?;
    for m in (1..=m).rev().filter(|_| count > 0) {
        let first = rest.narrow(1, 0, 1)?;
        let at = rest.narrow(2, 0, 1)?.detach().abs()?.argmax(1, true)?;
        let pivots = rest.gather(1, &at.broadcast_to([count, 1, m])?)?;
        let pivot = pivots.narrow(2, 0, 1)?;
        let sign = Tensor::where_cond(
            &at.eq(0)?,
            &Tensor::full_as((), 1.0, wide)?,
            &Tensor::full_as((), -1.0, wide)?,
        )?;
        product = product.mul(&pivot.mul(&sign)?.reshape(count)?)?;
        // The row of the pivot gets the first, which is the only one that is left out.
        let rows = Tensor::arange_as(0.0, m as f64, 1.0, DType::I64)?.reshape([1, m, 1])?;
        let others = Tensor::where_cond(&rows.eq(&at)?, &first, &rest)?.narrow(1, 1, m - 1)?;
        // Where the pivot is 0, so is the determinant, whatever the others become.
        let divisor = pivot.masked_fill(&pivot.eq(0.0)?, 1.0)?;
        let factors = others.narrow(2, 0, 1)?.div(&divisor)?;
        let eliminated = factors.mul(&pivots)?;
        rest = others.sub(&eliminated)?.narrow(2, 1, m - 1)?;
    }
    Ok(product.reshape(batch)?.to_dtype(x.dtype())?)
}

impl<B: Backend> Rows<B> {
    pub const MATRIX: &'static [Row<B>] = &[
        row("MatMul", 1, &[], |c| one(product(c.tensor(0)?, c.tensor(1)?))),
        row(
            "Gemm",
            7,
            &[("alpha", Float(1.0)), ("beta", Float(1.0)), ("transA", Int(0)), ("transB", Int(0))],
            |c| one(gemm(c, None)),
        ),
        row("Einsum", 12, &[("equation", Required)], |c| {
            one(Tensor::einsum(c.text("equation")?, &c.tensors()?)?.to_dtype(c.tensor(0)?.dtype()))
        }),
        row("MatMulInteger", 10, &[], |c| {
            one(exact_product([c.tensor(0)?, c.tensor(1)?], c.find(2), c.find(3)))
        }),
        row("QLinearMatMul", 10, &[], |c| one(qlinear_matmul(c))),
        row("Det", 11, &[], |c| one(det(c.tensor(0)?))),
        row(
            "com.microsoft.QGemm",
            1,
            &[("alpha", Float(1.0)), ("transA", Int(0)), ("transB", Int(0))],
            |c| one(qgemm(c)),
        ),
        row(
            "com.microsoft.FusedGemm",
            1,
            &[
                ("activation", Text("")),
                ("activation_alpha", Absent),
                ("activation_beta", Absent),
                ("activation_gamma", Absent),
                ("alpha", Float(1.0)),
                ("beta", Float(1.0)),
                ("transA", Int(0)),
                ("transB", Int(0)),
            ],
            |c| one(fused_gemm(c)),
        ),
        row(
            "com.microsoft.FusedMatMul",
            1,
            &[
                ("alpha", Float(1.0)),
                ("transA", Int(0)),
                ("transB", Int(0)),
                ("transBatchA", Int(0)),
                ("transBatchB", Int(0)),
            ],
            |c| one(fused_matmul(c)),
        ),
    ];
}

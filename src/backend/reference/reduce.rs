//! Definitions of reductions, each a function of all elements of one result in row-major order.

use super::{ReferenceTensor, build, exact, ravel, unravel};
use crate::backend::{TensorData, reduced_dtype};
use crate::dtype::{Element, Scalar};
use crate::error::{Error, Result};
use crate::ops::{BinaryOp, ReduceOp};

pub(super) fn reduce(op: ReduceOp, x: &ReferenceTensor, axes: &[usize]) -> Result<ReferenceTensor> {
    let (name, dtype, shape) = (op.name(), x.0.dtype, *x.shape());
    let out_dtype = reduced_dtype(op, dtype, shape)?;
    axes.iter().try_for_each(|&axis| shape.check_axis(name, axis))?;
    let out_shape = shape.reduced(axes, true);
    let mut groups = vec![Vec::new(); out_shape.numel()];
    for position in 0..shape.numel() {
        let mut index = unravel(position, &shape);
        axes.iter().for_each(|&axis| index[axis] = 0);
        groups[ravel(&index, &out_shape)].push(x.0.values[position]);
    }
    build(name, out_shape, out_dtype, |index| {
        let elements = &groups[ravel(index, &out_shape)];
        if op.needs_elements() && elements.is_empty() {
            return Err(Error::EmptyReduction { op: name, shape });
        }
        Ok(match op {
            ReduceOp::Any => boolean(elements.iter().any(|&x| bool::from_scalar(x))),
            ReduceOp::All => boolean(elements.iter().all(|&x| bool::from_scalar(x))),
            _ if dtype.is_float() => reduce_floats(op, elements),
            _ => reduce_integers(op, elements),
        })
    })
}

fn boolean(x: bool) -> Scalar {
    Scalar::Int(i64::from(x))
}

fn reduce_integers(op: ReduceOp, elements: &[Scalar]) -> Scalar {
    let values: Vec<i128> = elements.iter().map(|x| x.to_i128()).collect();
    Scalar::from_i128(match op {
        ReduceOp::Sum => values.iter().fold(0, |sum, &x| i128::wrapping_add(sum, x)),
        ReduceOp::Prod => values.iter().fold(1, |product, &x| i128::wrapping_mul(product, x)),
        ReduceOp::Max => values.iter().copied().max().unwrap_or(i64::MIN.into()),
        ReduceOp::Min => values.iter().copied().min().unwrap_or(i64::MAX.into()),
        ReduceOp::ArgMax => first_best(&values, |x, best| x > best).into(),
        ReduceOp::ArgMin => first_best(&values, |x, best| x < best).into(),
        // All others are defined for floats only.
        _ => 0,
    })
}

/// Index of the first element that no other beats.
fn first_best<T: Copy>(values: &[T], beats: impl Fn(T, T) -> bool) -> i64 {
    let mut best = 0;
    for i in 1..values.len() {
        if beats(values[i], values[best]) {
            best = i;
        }
    }
    best as i64
}

fn reduce_floats(op: ReduceOp, elements: &[Scalar]) -> Scalar {
    let values: Vec<f64> = elements.iter().map(|x| x.to_f64()).collect();
    let all = || values.iter().copied();
    // A NaN beats all other values.
    let argmax_index = |better: fn(f64, f64) -> bool| {
        let beats = |x: f64, best: f64| !best.is_nan() && (x.is_nan() || better(x, best));
        Scalar::Int(first_best(&values, beats))
    };
    let extremum = |op: BinaryOp| all().reduce(op.reference()).unwrap_or(f64::NAN);
    Scalar::Float(match op {
        ReduceOp::Sum => exact::sum(all()),
        ReduceOp::Prod => product(&values),
        ReduceOp::Mean => exact::sum(all()) / values.len() as f64,
        ReduceOp::Variance { ddof } => variance(&values, ddof),
        ReduceOp::Std { ddof } => variance(&values, ddof).sqrt(),
        ReduceOp::Norm { p } => norm(&values, p),
        ReduceOp::LogSumExp => log_sum_exp(&values),
        ReduceOp::Max => extremum(BinaryOp::Maximum),
        ReduceOp::Min => extremum(BinaryOp::Minimum),
        ReduceOp::ArgMax => return argmax_index(|x, best| x > best),
        ReduceOp::ArgMin => return argmax_index(|x, best| x < best),
        // `Any` and `All` are handled for every dtype.
        _ => f64::NAN,
    })
}

/// The product of magnitudes near 1, times the power of two that they leave.
fn product(values: &[f64]) -> f64 {
    let step = 2f64.powi(256);
    let mut exponent = 0;
    let mut near_one = |mut x: f64| {
        while x.is_finite() && x.abs() > step {
            (x, exponent) = (x / step, exponent + 1);
        }
        while x != 0.0 && x.abs() < 1.0 / step {
            (x, exponent) = (x * step, exponent - 1);
        }
        x
    };
    let mut product = 1.0;
    for &x in values {
        let x = near_one(x);
        product = near_one(product * x);
    }
    match exponent {
        0.. => (0..exponent).fold(product, |x, _| x * step),
        _ => (exponent..0).fold(product, |x, _| x / step),
    }
}

/// Variance in two passes; the sum of the distances from the mean corrects the rounding of the mean.
fn variance(values: &[f64], ddof: usize) -> f64 {
    let count = values.len() as f64;
    let mean = exact::sum(values.iter().copied()) / count;
    let distances = || values.iter().map(|x| x - mean);
    let correction = exact::sum(distances());
    let squares = exact::sum(distances().map(|d| d * d)) - correction * correction / count;
    squares.max(if squares.is_nan() { f64::NAN } else { 0.0 }) / (count - ddof as f64).max(0.0)
}

/// p-norm. The magnitudes are divided by the largest, or for negative p the smallest, so that their powers
/// neither overflow nor underflow to 0.
fn norm(values: &[f64], p: f64) -> f64 {
    let magnitudes = || values.iter().map(|x| x.abs());
    if p == 0.0 {
        return values.iter().filter(|&&x| x != 0.0).count() as f64;
    }
    let largest = magnitudes().fold(0.0, BinaryOp::Maximum.reference());
    let smallest = magnitudes().fold(f64::INFINITY, BinaryOp::Minimum.reference());
    let scale = if p > 0.0 { largest } else { smallest };
    if p.is_infinite() || scale == 0.0 || !scale.is_finite() {
        return scale;
    }
    if p == 1.0 {
        return exact::sum(magnitudes());
    }
    scale * exact::sum(magnitudes().map(|x| (x / scale).powf(p))).powf(1.0 / p)
}

fn log_sum_exp(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, BinaryOp::Maximum.reference());
    if !largest.is_finite() {
        return largest;
    }
    largest + exact::sum(values.iter().map(|x| (x - largest).exp())).ln()
}

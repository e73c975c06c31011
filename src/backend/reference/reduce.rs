//! Definitions of reductions: all elements of one result, in row-major order, to one.

use super::{ReferenceTensor, build, check_axis, exact, ravel, unravel};
use crate::backend::{TensorData, reduced_dtype};
use crate::dtype::{Element, Scalar};
use crate::error::{Error, Result};
use crate::ops::{BinaryOp, ReduceOp};
use crate::shape::Shape;

pub(super) fn reduce(op: ReduceOp, x: &ReferenceTensor, axes: &[usize]) -> Result<ReferenceTensor> {
    let (name, dtype, shape) = (op.name(), x.dtype, *x.shape());
    let out_dtype = reduced_dtype(op, dtype, shape)?;
    axes.iter().try_for_each(|&axis| check_axis(name, &shape, axis))?;
    let out_shape: Shape =
        (0..shape.ndim()).map(|i| if axes.contains(&i) { 1 } else { shape.dim(i) }).collect();
    let mut groups = vec![Vec::new(); out_shape.numel()];
    for position in 0..shape.numel() {
        let mut index = unravel(position, &shape);
        axes.iter().for_each(|&axis| index[axis] = 0);
        groups[ravel(&index, &out_shape)].push(x.values[position]);
    }
    build(name, out_shape, out_dtype, |index| {
        let elements = &groups[ravel(index, &out_shape)];
        if op.needs_elements() && elements.is_empty() {
            return Err(Error::EmptyReduction { op: name, shape });
        }
        Ok(match op {
            ReduceOp::Any => truth(elements.iter().any(|&x| bool::from_scalar(x))),
            ReduceOp::All => truth(elements.iter().all(|&x| bool::from_scalar(x))),
            _ if dtype.is_float() => of_floats(op, elements),
            _ => of_integers(op, elements),
        })
    })
}

fn truth(x: bool) -> Scalar {
    Scalar::Int(i64::from(x))
}

fn of_integers(op: ReduceOp, elements: &[Scalar]) -> Scalar {
    let values: Vec<i64> = elements.iter().map(|x| x.to_i64()).collect();
    Scalar::Int(match op {
        ReduceOp::Sum => values.iter().fold(0, |sum, &x| i64::wrapping_add(sum, x)),
        ReduceOp::Prod => values.iter().fold(1, |product, &x| i64::wrapping_mul(product, x)),
        ReduceOp::Max => values.iter().copied().fold(i64::MIN, i64::max),
        ReduceOp::Min => values.iter().copied().fold(i64::MAX, i64::min),
        ReduceOp::ArgMax => first(&values, |x, best| x > best),
        ReduceOp::ArgMin => first(&values, |x, best| x < best),
        // All others need floats.
        _ => 0,
    })
}

/// The position of the first element that no other beats.
fn first<T: Copy>(values: &[T], beats: impl Fn(T, T) -> bool) -> i64 {
    let mut best = 0;
    for i in 1..values.len() {
        if beats(values[i], values[best]) {
            best = i;
        }
    }
    best as i64
}

fn of_floats(op: ReduceOp, elements: &[Scalar]) -> Scalar {
    let values: Vec<f64> = elements.iter().map(|x| x.to_f64()).collect();
    let all = || values.iter().copied();
    // A NaN beats whatever is none.
    let place = |better: fn(f64, f64) -> bool| {
        let beats = |x: f64, best: f64| !best.is_nan() && (x.is_nan() || better(x, best));
        Scalar::Int(first(&values, beats))
    };
    let extreme = |op: BinaryOp| all().reduce(op.reference()).unwrap_or(f64::NAN);
    Scalar::Float(match op {
        ReduceOp::Sum => exact::sum(all()),
        ReduceOp::Prod => all().product::<f64>(),
        ReduceOp::Mean => exact::sum(all()) / values.len() as f64,
        ReduceOp::Variance { ddof } => variance(&values, ddof),
        ReduceOp::Std { ddof } => variance(&values, ddof).sqrt(),
        ReduceOp::Norm { p } => norm(&values, p),
        ReduceOp::LogSumExp => log_sum_exp(&values),
        ReduceOp::Max => extreme(BinaryOp::Maximum),
        ReduceOp::Min => extreme(BinaryOp::Minimum),
        ReduceOp::ArgMax => return place(|x, best| x > best),
        ReduceOp::ArgMin => return place(|x, best| x < best),
        // Any and all are not of floats alone.
        _ => f64::NAN,
    })
}

/// Two passes: the mean, then the distances from it and, for what rounding left of it, their sum.
fn variance(values: &[f64], ddof: usize) -> f64 {
    let count = values.len() as f64;
    let mean = exact::sum(values.iter().copied()) / count;
    let distances = || values.iter().map(|x| x - mean);
    let left = exact::sum(distances());
    let squares = exact::sum(distances().map(|d| d * d)) - left * left / count;
    squares.max(if squares.is_nan() { f64::NAN } else { 0.0 }) / (count - ddof as f64).max(0.0)
}

/// The magnitudes over the one that decides, so that powers neither overflow nor vanish.
fn norm(values: &[f64], p: f64) -> f64 {
    let sizes = || values.iter().map(|x| x.abs());
    if p == 0.0 {
        return values.iter().filter(|&&x| x != 0.0).count() as f64;
    }
    let largest = sizes().fold(0.0, BinaryOp::Maximum.reference());
    let smallest = sizes().fold(f64::INFINITY, BinaryOp::Minimum.reference());
    let scale = if p > 0.0 { largest } else { smallest };
    if p.is_infinite() || scale == 0.0 || !scale.is_finite() {
        return scale;
    }
    if p == 1.0 {
        return exact::sum(sizes());
    }
    scale * exact::sum(sizes().map(|x| (x / scale).powf(p))).powf(1.0 / p)
}

fn log_sum_exp(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, BinaryOp::Maximum.reference());
    if !largest.is_finite() {
        return largest;
    }
    largest + exact::sum(values.iter().map(|x| (x - largest).exp())).ln()
}

//! Every derivative against central differences in f64, first and second order, with broadcast, expanded,
//! permuted, reversed and strided inputs; in narrower types against f64.

mod arithmetic;
pub mod cases;
pub mod check;
pub mod composed;
mod images;
mod linear;
mod movement;
mod numbers;
mod order;
pub mod registry;
mod sets;
mod spectra;
mod vision;

use cases::{T, suite, uniform};
use check::check;
use composed::COMPOSED;
use registry::{Kind, recorded_ops};
use swath::prelude::*;

fn check_all(kinds: &[Kind]) {
    for op in recorded_ops().iter().filter(|op| kinds.contains(&op.kind)) {
        check(op.name)
            .unwrap_or_else(|failed| panic!("{}: {}: {}", op.name, failed.case, failed.error));
    }
}

#[test]
fn every_unary_row() {
    check_all(&[Kind::Unary]);
}

#[test]
fn every_binary_row() {
    check_all(&[Kind::Binary]);
}

#[test]
fn every_ternary_row() {
    check_all(&[Kind::Ternary]);
}

#[test]
fn every_op_with_parameters() {
    check_all(&[Kind::Reduction, Kind::Parametric]);
}

#[test]
fn every_fused_op() {
    check_all(&[Kind::Fused]);
}

#[test]
fn every_composed_op() {
    for op in COMPOSED {
        check(op.name)
            .unwrap_or_else(|failed| panic!("{}: {}: {}", op.name, failed.case, failed.error));
    }
}

/// Gradients and second-order gradients in f32, f16 and bf16 match those in f64 at the same point, up to the
/// precision of the type.
#[test]
fn narrower_types_have_the_gradients_of_f64() {
    let tolerances = [(DType::F32, 2e-5), (DType::F16, 2e-2), (DType::BF16, 0.15)];
    let recorded = recorded_ops();
    let names = recorded.iter().map(|op| op.name).chain(COMPOSED.iter().map(|op| op.name));
    for name in names.filter(|&name| name != "to_dtype") {
        for (dtype, tolerance) in tolerances {
            let cases = suite(name);
            // The first and the last case of the list: contiguous, and in another layout.
            for case in [&cases[0], &cases[cases.len() - 2]] {
                let round = |x: &T| x.to_dtype(dtype).unwrap();
                let points: Vec<T> = case.inputs.iter().map(round).collect();
                let wide: Vec<T> = points.iter().map(|x| x.to_dtype(DType::F64).unwrap()).collect();
                let (found, expected) = (both_orders(case, &points), both_orders(case, &wide));
                for (found, expected) in found.iter().zip(&expected) {
                    assert_eq!(found.len(), expected.len());
                    let scale = expected.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
                    for (found, expected) in found.iter().zip(expected) {
                        let allowed = tolerance * scale;
                        let at = format!("{}, {dtype}: {found} and {expected}", case.name);
                        assert!((found - expected).abs() <= allowed, "{at}");
                    }
                }
            }
        }
    }
}

/// Gradients of `Σ w f(x)` by all inputs, with fixed weights w, and gradients of the sum of their squares.
fn both_orders(case: &cases::Case, points: &[T]) -> Vec<Vec<f64>> {
    let leaves: Vec<T> = points.iter().map(T::requires_grad).collect();
    let y = (case.f)(&leaves).unwrap();
    let weights = T::linspace(0.5, 1.5, y.numel()).unwrap().reshape(*y.shape()).unwrap();
    let y = y.mul(weights.to_dtype(y.dtype()).unwrap()).unwrap().sum(None, false).unwrap();
    let xs: Vec<&T> = leaves.iter().collect();
    let first = grad(&y, &xs, true).unwrap();
    let total = first.iter().map(|g| g.square().unwrap().sum(None, false).unwrap());
    let total = total.reduce(|a, b| a.add(&b).unwrap()).unwrap();
    let second = match total.is_tracked() {
        true => total.backward().unwrap(),
        false => Gradients::new(),
    };
    let wide = |g: &T| g.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
    let second = xs.iter().filter_map(|x| second.get(x).map(wide));
    first.iter().map(wide).chain(second).collect()
}

#[test]
fn scalars_on_either_side() {
    let x = uniform((2, 3), (0.5, 3.0), 40);
    let f = |xs: &[T]| {
        let x = &xs[0];
        Ok((2.0 - x) / 3.0 + 1.5 / x * (x - 0.5) - (-x) + x.affine(2.0, 1.0)?)
    };
    check_gradients(f, &[&x], GradCheck { order: 2, ..GradCheck::default() }).unwrap();
}

/// A boolean times a float, masks of any dtype, and a graph that passes through a wider type.
#[test]
fn mixed_dtypes_where_they_are_allowed() {
    let order = GradCheck { order: 2, ..GradCheck::default() };
    let x = uniform((2, 3), (-2.0, 2.0), 41);
    let mask = tensor![bool; [true], [false]];
    check_gradients(|xs: &[T]| xs[0].square()?.mul(&mask), &[&x], order).unwrap();
    check_gradients(|xs: &[T]| mask.mul(&xs[0].square()?), &[&x], order).unwrap();
    for dtype in [DType::U8, DType::I64, DType::F32] {
        let mask = mask.to_dtype(dtype).unwrap();
        let f = |xs: &[T]| T::where_cond(&mask, &xs[0].square()?, &xs[0].sin()?);
        check_gradients(f, &[&x], order).unwrap();
    }
    // A gradient is converted to the dtype of its input, which makes second-order differences too inexact.
    let narrow = x.to_dtype(DType::F32).unwrap();
    let f = |xs: &[T]| xs[0].to_dtype(DType::F64)?.mul(&xs[1])?.square();
    check_gradients(f, &[&narrow, &x], GradCheck::default()).unwrap();
}

/// A fused op may have two rules for one gradient: the check of order 2 compares both with the differences.
#[test]
fn a_wrong_recorded_gradient_is_reported() {
    use crate::mutation::mutants::{Mutant, Mutation, with_mutant};
    let x = uniform(4, (0.5, 2.0), 61);
    let (mutation, misreading) = (Mutation::Sign, None);
    let mutant = Mutant { op: "exp", input: 0, mutation, misreading, recorded_only: true };
    let check = |order| {
        let options = GradCheck { order, ..GradCheck::default() };
        with_mutant(&mutant, || check_gradients(|xs: &[T]| xs[0].exp(), &[&x], options))
    };
    check(1).unwrap();
    let error = check(2).unwrap_err().to_string();
    assert!(error.contains("recorded gradient"), "{error}");
}

#[test]
fn a_wrong_derivative_is_reported() {
    let x = uniform(4, (0.5, 2.0), 60);
    // detach() hides one factor of the product from the derivative.
    let halved = |xs: &[T]| xs[0].mul(xs[0].detach());
    let error = check_gradients(halved, &[&x], GradCheck::default()).unwrap_err();
    assert!(matches!(error, Error::GradientCheck { .. }), "{error}");
}

#[test]
fn ties_and_kinks_have_the_documented_gradients() {
    let at = |f: fn(&T) -> Result<T>, values: &[f32]| {
        let x = T::from_slice(values, values.len()).unwrap().requires_grad();
        let grads = f(&x).unwrap().sum(None, false).unwrap().backward().unwrap();
        grads.wrt(&x).unwrap().to_vec::<f32>().unwrap()
    };
    assert_eq!(at(|x| x.abs(), &[-2.0, 0.0, 3.0]), [-1.0, 0.0, 1.0]);
    assert_eq!(at(|x| x.relu(), &[-2.0, 0.0, 3.0]), [0.0, 0.0, 1.0]);
    assert_eq!(at(|x| x.powf(2.0), &[-3.0, 0.0, 3.0]), [-6.0, 0.0, 6.0]);
    assert_eq!(at(|x| x.powf(0.0), &[-3.0, 0.0, 3.0]), [0.0; 3]);
    assert_eq!(at(|b| T::zeros(3, DType::F32)?.pow(b), &[0.0, 0.5, 2.0]), [0.0; 3]);
    assert_eq!(at(|b| T::full(3, -2.5f32)?.rem(b), &[2.0, 1.0, 0.75]), [1.0, 2.0, 3.0]);
    assert_eq!(at(|x| x.sign(), &[-2.0, 0.0, 3.0]), [0.0, 0.0, 0.0]);
    assert_eq!(at(|x| x.max(None, false), &[3.0, 1.0, 3.0]), [0.5, 0.0, 0.5]);
    assert_eq!(at(|x| x.min(None, false), &[1.0, 1.0, 3.0]), [0.5, 0.5, 0.0]);
    assert_eq!(at(|x| x.maximum(2.0), &[1.0, 2.0, 3.0]), [0.0, 0.5, 1.0]);
    assert_eq!(at(|x| x.minimum(2.0), &[1.0, 2.0, 3.0]), [1.0, 0.5, 0.0]);
    assert_eq!(at(|x| tensor![2.0].maximum(x), &[1.0, 2.0, 3.0]), [0.0, 0.5, 1.0]);
    assert_eq!(at(|x| tensor![2.0].minimum(x), &[1.0, 2.0, 3.0]), [1.0, 0.5, 0.0]);
    for f in [|x: &T| x.floor(), |x: &T| x.ceil(), |x: &T| x.round(), |x: &T| x.trunc()] {
        assert_eq!(at(f, &[-1.5, 0.0, 2.5]), [0.0, 0.0, 0.0]);
    }
    assert_eq!(at(|x| x.relu6(), &[-1.0, 0.0, 5.0, 6.0, 7.0]), [0.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(at(|x| x.hardswish(), &[-4.0, -3.0, -1.5, 3.0, 4.0]), [0.0, 0.0, 0.0, 1.0, 1.0]);
    assert_eq!(at(|x| x.hardsigmoid()?.mul(6.0), &[-3.0, 0.0, 3.0]), [0.0, 1.0, 0.0]);
    assert_eq!(at(|x| x.leaky_relu(0.25), &[-1.0, 0.0, 2.0]), [0.25, 0.25, 1.0]);
    assert_eq!(at(|x| x.elu(0.25), &[0.0, 2.0, -f32::INFINITY]), [0.25, 1.0, 0.0]);
    let selu = [1.758_099_3, 1.050_701, 0.0];
    assert_eq!(at(|x| x.selu(), &[0.0, 2.0, -f32::INFINITY]), selu);
    assert_eq!(at(|x| x.clamp(-1.0, 1.0), &[-2.0, -1.0, 0.5, 1.0, 3.0]), [0.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(at(|x| x.masked_fill(&x.gt(0.0)?, 5.0), &[-2.0, 1.0]), [1.0, 0.0]);
    // An infinite gradient reaches only the input that the value came from.
    assert_eq!(at(|x| x.maximum(0.0)?.sqrt(), &[-1.0, 4.0]), [0.0, 0.25]);
    assert_eq!(at(|x| x.add(1.0)?.max(None, false)?.sqrt(), &[-1.0, -2.0]), [f32::INFINITY, 0.0]);
    // -1e30 / x², although x² overflows f32.
    let slope = at(|x| x.recip()?.mul(1e30), &[1e25])[0];
    assert!((slope / -1e-20 - 1.0).abs() < 1e-6, "{slope:e}");
}

#[test]
fn conversions_return_the_gradient_in_the_dtype_of_the_input() {
    let x = tensor![f64; 0.5, 2.0].requires_grad();
    let y = x.to_dtype(DType::F32).unwrap().mul_scalar(3.0).unwrap();
    let grads = y.sum(None, false).unwrap().backward().unwrap();
    let gradient = grads.wrt(&x).unwrap();
    assert_eq!(gradient.to_vec::<f64>().unwrap(), [3.0, 3.0]);
}

#[test]
fn many_ties_in_16_bits_share_the_gradient() {
    let count = 70_000;
    let x = T::ones(count, DType::F16).unwrap().requires_grad();
    for y in [x.max(None, false).unwrap(), x.mean(None, false).unwrap()] {
        let grads = y.backward().unwrap();
        let g = grads.wrt(&x).unwrap().to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap();
        assert!((g[0] * count as f32 - 1.0).abs() < 0.01 && g[0] == g[count - 1], "{}", g[0]);
    }
}

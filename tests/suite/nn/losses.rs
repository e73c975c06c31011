//! Losses: derivatives by both arguments, extreme values, errors.

use super::{T, randn};
use swath::nn::loss;
use swath::prelude::*;

const SECOND_ORDER: GradCheck =
    GradCheck { order: 2, eps: None, rtol: None, atol: None, directions: 4, seed: 1 };

type Loss = fn(&T, &T) -> Result<T>;

fn wide(shape: impl Into<Shape>, seed: u64) -> T {
    randn(shape, seed).to_dtype(DType::F64).unwrap()
}

#[test]
fn gradients_of_both_arguments() {
    let (x, y) = (wide((3, 4), 1), wide((3, 4), 2));
    let (p, log_p) = (y.softmax(1).unwrap(), x.log_softmax(1).unwrap());
    let pairs: [(&str, Loss, &T, &T); 5] = [
        ("mse", loss::mse, &x, &y),
        ("mae", loss::mae, &x, &y),
        ("huber", |a, b| loss::huber(a, b, 0.7), &x, &y),
        ("bce", loss::binary_cross_entropy_with_logits, &x, &p),
        ("kl_div", loss::kl_div, &log_p, &p),
    ];
    for (name, f, x, y) in pairs {
        check_gradients(|xs: &[T]| f(&xs[0], &xs[1]), &[x, y], SECOND_ORDER)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let classes = tensor![i64; 0, 3, 1];
    for f in [loss::nll, loss::cross_entropy] {
        check_gradients(|xs: &[T]| f(&xs[0], &classes), &[&x], SECOND_ORDER).unwrap();
    }
}

/// The loss has a derivative at 0, where |x| has none.
#[test]
fn binary_cross_entropy_at_zero() {
    let f = |xs: &[T]| loss::binary_cross_entropy_with_logits(&xs[0], &tensor![f64; 0.0, 1.0, 0.5]);
    check_gradients(f, &[&tensor![f64; 0.0, 0.0, 0.0]], SECOND_ORDER).unwrap();
}

/// The loss of a logit of ±x with the right target is log(1 + e^-x), nearly e^-x for large x.
#[test]
fn binary_cross_entropy_keeps_small_losses() -> Result<()> {
    let each =
        |x: &T, t: &T| loss::binary_cross_entropy_with_logits_with(x, t, loss::Reduction::None);
    for x in [5.0f32, 12.0, 20.0, 60.0, 200.0] {
        let logits = T::from_vec(vec![x, -x, x, -x], 4)?.requires_grad();
        let losses = each(&logits, &tensor![1.0, 0.0, 0.0, 1.0])?;
        let small = (-f64::from(x)).exp().ln_1p();
        let expected = [small, small, f64::from(x) + small, f64::from(x) + small];
        for (y, expected) in losses.to_vec::<f32>()?.into_iter().zip(expected) {
            let error = (f64::from(y) - expected).abs();
            assert!(error <= 3e-7 * expected + 1e-44, "{x}: {y} instead of {expected}");
        }
        let grads = losses.sum(None, false)?.backward()?;
        let grads = grads.wrt(&logits)?.to_vec::<f32>()?;
        let tail = 1.0 / (1.0 + f64::from(x).exp());
        for (g, expected) in grads.into_iter().zip([-tail, tail, 1.0 - tail, tail - 1.0]) {
            assert!((f64::from(g) - expected).abs() <= 3e-7 * expected.abs() + 1e-44, "{x}: {g}");
        }
    }
    Ok(())
}

#[test]
fn kl_div_with_a_probability_of_zero_is_zero_and_has_finite_gradients() -> Result<()> {
    let input = tensor![[-0.5, -2.0]].requires_grad();
    let target = tensor![[1.0, 0.0]].requires_grad();
    let value = loss::kl_div_with(&input, &target, loss::Reduction::Sum)?;
    assert_eq!(value.item::<f32>()?, 0.5);
    let grads = value.backward()?;
    for x in [&input, &target] {
        assert!(grads.wrt(x)?.to_vec::<f32>()?.iter().all(|g| g.is_finite()));
    }
    Ok(())
}

#[test]
fn arguments_that_do_not_fit_are_errors() {
    let (x, y) = (randn((3, 1), 1), randn(3, 2));
    for f in [loss::mse, loss::mae, loss::kl_div, loss::binary_cross_entropy_with_logits] {
        assert!(matches!(f(&x, &y), Err(Error::ShapeMismatch { .. })));
        assert!(matches!(f(&x, &wide((3, 1), 1)), Err(Error::DTypeMismatch { .. })));
        let integers = tensor![i64; 1, 2];
        assert!(matches!(f(&integers, &integers), Err(Error::UnsupportedDType { .. })));
    }
    for delta in [0.0, -1.0, f64::NAN] {
        assert!(matches!(loss::huber(&y, &y, delta), Err(Error::InvalidArgument { .. })));
    }
    let classes = tensor![i64; 0, 1, 0];
    assert!(matches!(loss::nll(&x, &classes), Err(Error::IndexOutOfRange { .. })));
    assert!(matches!(loss::nll(&y, &classes), Err(Error::ShapeMismatch { .. })));
    let none = T::zeros((classes.numel(), 0), DType::F32).unwrap();
    assert!(matches!(loss::nll(&none, &classes), Err(Error::IndexOutOfRange { op: "nll", .. })));
    let labels = loss::nll(&x, &y).unwrap_err().to_string();
    assert!(labels.contains("labels are integers, got f32 of shape [3]"), "{labels}");
}

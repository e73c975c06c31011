//! Ops with a gradient that the caller defines.

use std::sync::{Arc, OnceLock};

use swath::prelude::*;

type T = Tensor<CpuBackend>;
type Data = <CpuBackend as Backend>::Tensor;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Backward is made of tensor operations.
    Recorded,
    /// Backward detaches its gradient, and the op declares it first-order only.
    FirstOrderOnly,
    /// Backward detaches its gradient without declaring it.
    Undeclared,
    /// Backward returns two gradients for one input.
    TooMany,
    /// Backward returns a gradient of another shape.
    OtherShape,
    /// Backward returns no gradient.
    Missing,
}

/// x³.
#[derive(Clone)]
struct Cube(Kind);

impl CustomOp<CpuBackend> for Cube {
    fn name(&self) -> &'static str {
        "cube"
    }

    fn forward(&self, xs: &[&Data]) -> Result<Data> {
        let x = T::from_data(xs[0].clone());
        Ok(x.square()?.mul(&x)?.data().clone())
    }

    fn backward(&self, xs: &[&T], _: &T, g: &T) -> Result<Vec<Option<T>>> {
        let gradient = xs[0].square()?.mul(3.0)?.mul(g)?;
        Ok(match self.0 {
            Kind::Recorded => vec![Some(gradient)],
            Kind::FirstOrderOnly | Kind::Undeclared => vec![Some(gradient.detach())],
            Kind::TooMany => vec![Some(gradient.clone()), Some(gradient)],
            Kind::OtherShape => vec![Some(gradient.narrow(0, 0, 2)?)],
            Kind::Missing => vec![None],
        })
    }

    fn first_order_only(&self) -> bool {
        self.0 == Kind::FirstOrderOnly
    }
}

fn point() -> T {
    tensor![f64; 0.5, -1.5, 2.0].requires_grad()
}

#[test]
fn a_recorded_backward_has_derivatives_of_both_orders() -> Result<()> {
    let both = GradCheck { order: 2, ..GradCheck::default() };
    let op = Cube(Kind::Recorded);
    check_gradients(|xs: &[T]| T::apply(&op, &[&xs[0]]), &[&point()], both)?;
    let shared: Arc<dyn CustomOp<CpuBackend>> = Arc::new(op);
    check_gradients(|xs: &[T]| T::apply(&shared, &[&xs[0]])?.square(), &[&point()], both)
}

#[test]
fn a_gradient_that_cannot_be_differentiated_again_is_an_error() -> Result<()> {
    for kind in [Kind::FirstOrderOnly, Kind::Undeclared] {
        let op = Cube(kind);
        let loss = |x: &T| T::apply(&op, &[x])?.square()?.sum(None, false);
        check_gradients(|xs: &[T]| loss(&xs[0]), &[&point()], GradCheck::default())?;
        let x = point();
        let slope = grad(&loss(&x)?, &[&x], true)?.remove(0);
        let error = slope.sum(None, false)?.backward().unwrap_err().to_string();
        assert!(error.contains("`cube` is not made of recorded tensor operations"), "{error}");
    }
    Ok(())
}

#[test]
fn wrong_gradients_are_errors_that_name_the_op() -> Result<()> {
    let cases = [
        (Kind::TooMany, "cube: expected 1 gradients, one per input, got 2"),
        (
            Kind::OtherShape,
            "cube: gradient of input 0: expected f64 of shape [3], got f64 of shape [2]",
        ),
        (Kind::Missing, "cube: no gradient"),
    ];
    for (kind, expected) in cases {
        let y = T::apply(&Cube(kind), &[&point()])?;
        let error = y.sum(None, false)?.backward().unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    Ok(())
}

/// The identity, whose gradient is multiplied by the value of the input in forward.
#[derive(Clone, Default)]
struct Saving(OnceLock<f64>);

impl CustomOp<CpuBackend> for Saving {
    fn name(&self) -> &'static str {
        "saving"
    }

    fn forward(&self, xs: &[&Data]) -> Result<Data> {
        let value = T::from_data(xs[0].clone()).item::<f64>()?;
        self.0.set(value).expect("each application has a separate clone");
        Ok(xs[0].clone())
    }

    fn backward(&self, _: &[&T], _: &T, g: &T) -> Result<Vec<Option<T>>> {
        Ok(vec![Some(g.mul(*self.0.get().expect("the clone that ran forward"))?)])
    }
}

#[test]
fn each_application_saves_separate_values() -> Result<()> {
    let op = Saving::default();
    let [a, b] = [3.0, 5.0].map(|x| tensor![f64; x].requires_grad());
    let y = T::apply(&op, &[&a])?.add(T::apply(&op, &[&b])?)?;
    let grads = y.sum(None, false)?.backward()?;
    assert_eq!(grads.wrt(&a)?.item::<f64>()?, 3.0);
    assert_eq!(grads.wrt(&b)?.item::<f64>()?, 5.0);
    Ok(())
}

#[test]
fn untracked_inputs_and_no_grad_record_nothing() -> Result<()> {
    let op = Cube(Kind::Recorded);
    assert!(!T::apply(&op, &[&point().detach()])?.is_tracked());
    assert!(!no_grad(|| T::apply(&op, &[&point()]))?.is_tracked());
    Ok(())
}

//! Which gradients a step accepts for a parameter.

use super::T;
use super::steps::{grads_of, model, values};
use swath::nn::{Sequential, Shared};
use swath::optim::{Optimizer, PerParameter, Sgd, SgdOptions, Step, Update};
use swath::prelude::*;

/// Gradients by a clone that is kept over steps belong to its old values and are not accepted for the
/// parameter.
#[test]
fn gradients_of_a_stale_clone_are_refused() -> Result<()> {
    let options = SgdOptions { learning_rate: 0.1, ..Default::default() };
    let mut sgd = Sgd::new(options)?;
    let mut model = vec![tensor![1.0].requires_grad()];
    let clone = model[0].clone();
    let gradient = |w: &T| w.square()?.sum(None, false)?.backward();
    sgd.step(&mut model, &gradient(&clone)?)?;
    assert_eq!(values(&model[0]), [0.8]);
    let error = sgd.step(&mut model, &gradient(&clone)?).unwrap_err();
    assert!(matches!(error, Error::NoGradient { op: "sgd", .. }), "{error}");
    assert_eq!(values(&model[0]), [0.8]);
    // Without the clone the step updates in place and the parameter stays the same leaf, so old gradients
    // fit.
    drop(clone);
    let mut expected = 0.8f32;
    for _ in 0..3 {
        let grads = gradient(&model[0])?;
        sgd.step(&mut model, &grads)?;
        expected *= 0.8;
        assert!((values(&model[0])[0] - expected).abs() < 1e-6);
        assert!(grads.get(&model[0]).is_some());
    }
    Ok(())
}

/// A step would deadlock with the read guard.
#[test]
fn a_step_of_a_shared_part_that_this_thread_reads_is_an_error() -> Result<()> {
    let part = Shared::new(model());
    let mut models = Sequential::new().push(part.clone());
    let grads = grads_of(&models);
    let mut sgd = Sgd::new(SgdOptions::default())?;
    let guard = part.read();
    let before = values(&guard.weight);
    let error = sgd.step(&mut models, &grads).unwrap_err().to_string();
    assert!(error.contains("`0`") && error.contains("Shared::read"), "{error}");
    assert_eq!(values(&guard.weight), before);
    // Two read guards at once are allowed, and a step after both are dropped.
    let again = part.read();
    drop((guard, again));
    sgd.step(&mut models, &grads)?;
    assert_ne!(values(&part.read().weight), before);
    Ok(())
}

/// An update that counts its steps, optionally with a result of one element for all.
struct Probe {
    learning_rate: f64,
    of_one_element: bool,
}

impl<B: Backend> Update<B> for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn learning_rate(&mut self) -> &mut f64 {
        &mut self.learning_rate
    }

    fn update(
        &self,
        parameter: &Tensor<B>,
        _gradient: &Tensor<B>,
        _state: &mut [Tensor<B>],
        step: &Step<'_>,
    ) -> Result<Tensor<B>> {
        let new = parameter.zeros_like()?.add_scalar(step.number as f64 * self.learning_rate)?;
        if self.of_one_element { new.sum(None, false) } else { Ok(new) }
    }
}

#[test]
fn an_update_without_state_gets_step_numbers() -> Result<()> {
    let mut optimizer = PerParameter::new(Probe { learning_rate: 0.5, of_one_element: false })?;
    let mut model = vec![tensor![7.0, 7.0].requires_grad()];
    for step in 1..=3 {
        let grads = model[0].sum(None, false)?.backward()?;
        optimizer.step(&mut model, &grads)?;
        assert_eq!(values(&model[0]), [0.5 * step as f32; 2]);
    }
    let mut resumed = PerParameter::new(Probe { learning_rate: 9.0, of_one_element: false })?;
    resumed.load_state(optimizer.state()?)?;
    let grads = model[0].sum(None, false)?.backward()?;
    resumed.step(&mut model, &grads)?;
    assert_eq!(values(&model[0]), [2.0; 2]);
    Ok(())
}

#[test]
fn an_update_of_another_shape_is_an_error_and_changes_nothing() -> Result<()> {
    let mut optimizer = PerParameter::new(Probe { learning_rate: 0.5, of_one_element: true })?;
    let mut model = vec![tensor![7.0, 7.0].requires_grad()];
    let grads = model[0].sum(None, false)?.backward()?;
    let error = optimizer.step(&mut model, &grads).unwrap_err();
    assert!(matches!(error, Error::ShapeMismatch { op: "probe", .. }), "{error}");
    assert_eq!(values(&model[0]), [7.0; 2]);
    Ok(())
}

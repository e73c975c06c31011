//! Which gradients are a parameter's own after a step.

use super::T;
use super::steps::{grads_of, model, values};
use swath::nn::{Sequential, Shared};
use swath::optim::{Optimizer, Sgd, SgdOptions};
use swath::prelude::*;

/// A clone that is kept over steps has the gradients of its own values: they are not taken for those of
/// the parameter.
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
    // Without the clone the parameter stays the leaf that it is: gradients of before are its own.
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

/// It would wait for itself.
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
    // Reading it twice, and stepping once both guards are gone, is fine.
    let again = part.read();
    drop((guard, again));
    sgd.step(&mut models, &grads)?;
    assert_ne!(values(&part.read().weight), before);
    Ok(())
}

//! Which gradients a step accepts for a parameter.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::T;
use super::steps::{grads_of, model, values};
use swath::nn::{self, Module, Sequential, Shared};
use swath::optim::{Optimizer, PerParameter, Sgd, SgdOptions, Step, Update, clip_grad_norm};
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
/// A `Shared` part at two places holds one handle of each parameter.
#[test]
fn handles_outside_a_shared_part_are_other_leaves() -> Result<()> {
    for handles in 0..4 {
        let part = Shared::new(vec![tensor![1.0].requires_grad(), tensor![10.0].requires_grad()]);
        let mut model = vec![part.clone(), part.clone()];
        let outside: Vec<T> = (0..handles).map(|_| part.read()[0].clone()).collect();
        let mut sgd = Sgd::new(SgdOptions { learning_rate: 0.1, ..Default::default() })?;
        let grads_of = |w: &T, v: &T| w.square()?.add(&v.square()?)?.sum(None, false)?.backward();
        let mut step = |grads: &Gradients<CpuBackend>| sgd.step(&mut model, grads);
        let part_values = || part.read().iter().map(|x| values(x)[0]).collect::<Vec<_>>();

        let [first, second] = [0, 1].map(|i| part.read()[i].detach());
        let before = grads_of(&part.read()[0], &part.read()[1])?;
        step(&before)?;
        assert_eq!(part_values(), [0.8, 8.0], "{handles} handles");
        assert_eq!([values(&first)[0], values(&second)[0]], [1.0, 10.0]);
        for old in &outside {
            assert_eq!(values(old), [1.0]);
            let stale = grads_of(old, &part.read()[1])?;
            let error = step(&stale).unwrap_err();
            assert!(matches!(error, Error::NoGradient { op: "sgd", .. }), "{error}");
            assert_eq!(part_values(), [0.8, 8.0]);
        }
        // Without handles outside, the leaves stay what they are.
        assert_eq!(before.get(&part.read()[0]).is_some(), handles == 0);
        assert!(before.get(&part.read()[1]).is_some());
        let fresh = grads_of(&part.read()[0], &part.read()[1])?;
        step(&fresh)?;
        assert_eq!(part_values(), [0.64, 6.4]);
    }
    Ok(())
}

#[test]
fn a_step_of_a_shared_part_that_this_thread_reads_is_an_error() -> Result<()> {
    let part = Shared::new(model());
    let mut models = Sequential::new().push(part.clone());
    let grads = grads_of(&models);
    let mut sgd = Sgd::new(SgdOptions::default())?;
    let guard = part.read();
    let before = values(&guard.weight);
    let error = sgd.step(&mut models, &grads).unwrap_err().to_string();
    assert!(error.starts_with("sgd: `0` has a guard on this thread"), "{error}");
    assert_eq!(values(&guard.weight), before);
    // Two read guards at once are allowed, and a step after both are dropped.
    let again = part.read();
    drop((guard, again));
    sgd.step(&mut models, &grads)?;
    assert_ne!(values(&part.read().weight), before);
    Ok(())
}

/// Otherwise each of these would wait for its own thread.
#[test]
fn a_shared_part_that_this_thread_writes_is_an_error_or_a_panic() -> Result<()> {
    let part = Shared::new(model());
    let mut models = Sequential::new().push(part.clone()).push(part.clone());
    let x = T::zeros((1, 3), DType::F32)?;
    let mut grads = grads_of(&*part.read());
    let guard = part.write();
    let forward = models.forward(&x).map(drop);
    let clip = clip_grad_norm(&models, &mut grads, 1.0).map(drop);
    let step = Sgd::new(SgdOptions::default())?.step(&mut models, &grads);
    for (result, op) in [(forward, "in `0`: Shared::read"), (clip, "clip_grad_norm"), (step, "sgd")]
    {
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with(op) && error.contains("has a guard on this thread"), "{error}");
    }
    let panics: [&dyn Fn(); 3] =
        [&|| drop(part.read()), &|| drop(part.write()), &|| drop(nn::summary(&models))];
    for (i, f) in panics.into_iter().enumerate() {
        let panic = catch_unwind(AssertUnwindSafe(f)).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.contains("has a guard on this thread"), "{i}: {text}");
    }
    drop(guard);
    assert!(clip_grad_norm(&models, &mut grads, 1.0).is_ok());
    part.read().forward(&x).map(drop)
}

/// An update that counts its steps, with a result of one element for the parameter at one path.
struct Probe {
    learning_rate: f64,
    of_one_element: &'static str,
}

impl<B: Backend> Update<B> for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn is_elementwise(&self) -> bool {
        true
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
        if step.path == self.of_one_element { new.sum(None, false) } else { Ok(new) }
    }
}

#[test]
fn an_update_without_state_gets_step_numbers() -> Result<()> {
    let mut optimizer = PerParameter::new(Probe { learning_rate: 0.5, of_one_element: "" })?;
    let mut model = vec![tensor![7.0, 7.0].requires_grad()];
    for step in 1..=3 {
        let grads = model[0].sum(None, false)?.backward()?;
        optimizer.step(&mut model, &grads)?;
        assert_eq!(values(&model[0]), [0.5 * step as f32; 2]);
    }
    let mut resumed = PerParameter::new(Probe { learning_rate: 9.0, of_one_element: "" })?;
    resumed.load_state(optimizer.state()?)?;
    let grads = model[0].sum(None, false)?.backward()?;
    resumed.step(&mut model, &grads)?;
    assert_eq!(values(&model[0]), [2.0; 2]);
    Ok(())
}

/// The parameters before it have taken the step, and tied ones stay tied.
#[test]
fn an_update_of_another_shape_is_an_error_and_ends_the_step() -> Result<()> {
    for (of_one_element, tied_after, steps) in [("0", 7.0, 0), ("1", 0.5, 1)] {
        let mut optimizer = PerParameter::new(Probe { learning_rate: 0.5, of_one_element })?;
        let leaf = |x: f32| tensor![x, x].requires_grad();
        let tied = leaf(7.0);
        let mut model = vec![tied.clone(), leaf(8.0), tied, leaf(9.0)];
        let mut loss = model[0].sum(None, false)?;
        for parameter in &model[1..] {
            loss = loss.add(&parameter.sum(None, false)?)?;
        }
        let error = optimizer.step(&mut model, &loss.backward()?).unwrap_err();
        assert!(matches!(error, Error::ShapeMismatch { op: "probe", .. }), "{error}");
        let after: Vec<f32> = model.iter().map(|x| values(x)[0]).collect();
        assert_eq!(after, [tied_after, 8.0, tied_after, 9.0]);
        assert_eq!(nn::summary(&model).parameters(), 6);
        let state = optimizer.state()?;
        let count = state.iter().find(|(name, _)| name == "0.step").unwrap().1.item::<i64>()?;
        assert_eq!(count, steps);
    }
    Ok(())
}

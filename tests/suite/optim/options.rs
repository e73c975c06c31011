//! Options out of range: of a new optimizer, and the learning rate of one that has begun.

use super::T;
use super::steps::{grads_of, model, optimizers, values};
use swath::optim::{
    AdagradOptions, AdamOptions, AdamWOptions, LionOptions, PerParameter, RmsPropOptions,
    SgdOptions, Update,
};
use swath::prelude::*;

fn assert_refused(options: impl Update<CpuBackend>, named: &str) {
    let op = options.name();
    match PerParameter::new(options).err() {
        Some(Error::InvalidArgument { op: of, reason }) => {
            assert!(of == op && reason.contains(named), "{of}: {reason}");
        }
        other => panic!("{op} with a wrong {named}: {other:?}"),
    }
}

/// Refuses values that no option may have, and 1 for an option that must be below 1.
macro_rules! refused {
    ($($Options:ident { $($option:ident $([$i:literal])? $(below $one:literal)?),* })*) => {$($(
        for wrong in [f64::NAN, f64::INFINITY, -0.1, $($one)?] {
            let mut options = $Options::default();
            options.$option $([$i])? = wrong;
            assert_refused(options, concat!(stringify!($option) $(, "[", $i, "]")?));
        }
    )*)*};
}

#[test]
fn wrong_options_are_refused() {
    refused! {
        SgdOptions { learning_rate, momentum, dampening, weight_decay }
        AdamOptions { learning_rate, betas[0] below 1.0, betas[1] below 1.0, eps, weight_decay }
        AdamWOptions { learning_rate, betas[0] below 1.0, betas[1] below 1.0, eps, weight_decay }
        RmsPropOptions { learning_rate, alpha below 1.0, eps, momentum, weight_decay }
        AdagradOptions { learning_rate, rate_decay, initial_accumulator, eps, weight_decay }
        LionOptions { learning_rate, betas[0] below 1.0, betas[1] below 1.0, weight_decay }
    }
    let nesterov = SgdOptions { nesterov: true, ..Default::default() };
    assert_refused(nesterov, "nesterov");
    assert_refused(SgdOptions { momentum: 0.9, dampening: 0.1, ..nesterov }, "nesterov");
}

#[test]
fn a_wrong_learning_rate_is_refused_by_steps_and_states() -> Result<()> {
    for (name, mut optimizer) in optimizers() {
        let mut model = model();
        let grads = grads_of(&model);
        let (before, rate) = (values(&model.weight), optimizer.learning_rate());
        for wrong in [f64::NAN, -1.0, f64::INFINITY] {
            let state = vec![("learning_rate".to_owned(), T::full((), wrong)?)];
            let of_state = optimizer.load_state(state).unwrap_err();
            assert_eq!(optimizer.learning_rate(), rate);
            optimizer.set_learning_rate(wrong);
            let of_step = optimizer.step(&mut model, &grads).unwrap_err();
            for error in [of_state, of_step] {
                let reason = error.to_string();
                let is_named = reason.contains("learning_rate must be finite");
                assert!(
                    matches!(error, Error::InvalidArgument { .. }) && is_named,
                    "{name}: {reason}"
                );
            }
            assert_eq!((values(&model.weight), optimizer.state()?.len()), (before.clone(), 1));
            optimizer.set_learning_rate(rate);
        }
        optimizer.step(&mut model, &grads)?;
        assert_ne!(values(&model.weight), before, "{name}");
    }
    Ok(())
}

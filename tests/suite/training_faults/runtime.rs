//! Invalid settings, copies of shared storage, and what an error says of memory that there is not.

use super::{T, text};
use crate::support::{alone, alone_with};
use swath::optim::{AdamW, AdamWOptions};
use swath::prelude::*;
use swath::runtime;

/// Checks the description of a process whose variable has this value.
fn described(name: &str, variable: &str) {
    alone_with(&format!("training_faults::runtime::{name}"), &[(variable, "nonsense")], || {
        let info = runtime::info();
        let error = info.error.clone().expect("the setting is invalid").to_string();
        assert!(error.contains(variable) && error.contains("nonsense"), "{error}");
        assert_eq!(runtime::check().unwrap_err().to_string(), error);
        assert!(info.to_string().starts_with(&format!("error    {error}\n")), "{info}");
        assert!(swath::blas::info().warning.is_some());
        assert!(matches!(T::zeros(1, DType::F32), Err(Error::Runtime(_))));
    });
}

#[test]
fn an_invalid_number_of_threads_is_described() {
    described("an_invalid_number_of_threads_is_described", "SWATH_THREADS");
}

#[test]
fn an_invalid_instruction_set_is_described() {
    described("an_invalid_instruction_set_is_described", "SWATH_ISA");
}

#[test]
fn an_invalid_time_to_spin_is_described() {
    described("an_invalid_time_to_spin_is_described", "SWATH_SPIN_US");
}

#[test]
fn an_invalid_size_of_the_pool_is_described() {
    described("an_invalid_size_of_the_pool_is_described", "SWATH_POOL_BYTES");
}

#[test]
fn copies_of_shared_storage_are_counted() {
    alone("training_faults::runtime::copies_of_shared_storage_are_counted", || count().unwrap());
}

fn count() -> Result<()> {
    assert!(runtime::info().error.is_none());
    let counted = |f: &mut dyn FnMut() -> Result<()>| -> Result<u64> {
        let before = runtime::info().copies;
        f()?;
        Ok(runtime::info().copies - before)
    };
    let mut x = T::zeros((4, 4), DType::F32)?;
    assert_eq!(counted(&mut || x.add_assign(1.0))?, 0);
    assert_eq!(counted(&mut || x.set_slice(s![0], &tensor![1.0, 2.0, 3.0, 4.0]))?, 0);
    let view = x.narrow(0, 1, 2)?;
    assert_eq!(counted(&mut || x.add_assign(1.0))?, 1);
    // The copy is its own.
    assert_eq!(counted(&mut || x.add_assign(1.0))?, 0);
    assert_eq!(view.to_vec::<f32>()?, [1.0; 8]);
    let clone = x.clone();
    assert_eq!(counted(&mut || x.set_slice(s![1], &tensor![1.0, 2.0, 3.0, 4.0]))?, 1);
    assert_eq!(clone.to_vec::<f32>()?[4..8], [3.0; 4]);

    let mut w = T::ones(3, DType::F32)?.requires_grad();
    let mut optimizer: AdamW = AdamW::new(AdamWOptions::default())?;
    let mut step = |w: &mut T, keep: bool| {
        let grads = w.square()?.sum(None, false)?.backward()?;
        let _kept = keep.then(|| w.clone());
        counted(&mut || optimizer.step(w, &grads))
    };
    assert_eq!([step(&mut w, false)?, step(&mut w, true)?, step(&mut w, false)?], [0, 1, 0]);
    assert!(runtime::info().to_string().contains("3 copies of shared storage"));
    Ok(())
}

#[test]
fn memory_that_cannot_be_allocated_names_the_shape() {
    let (rows, rng) = (1usize << 28, &mut Rng::seed(1));
    let at_once = T::zeros((rows, rows), DType::F32);
    let drawn = T::randn((rows, rows), rng);
    let layer = swath::nn::Linear::<CpuBackend>::new(rows, rows, rng).map(drop);
    for error in [text(at_once), text(drawn), text(layer)] {
        let expected =
            "cannot allocate 288230376151711744 bytes for a tensor of shape [268435456, 268435456]";
        assert!(error.contains(expected), "{error}");
    }
}

//! Models and complete training states: values, leaves, random numbers, all or nothing.

use std::fs;
use std::sync::Arc;

use swath::io::safetensors::{Metadata, TrainingState, load, load_module, save, save_module};
use swath::nn::{self, Linear, Module, TransformerBlock, TransformerBlockOptions, Visit};
use swath::optim::{AdamW, AdamWOptions, Optimizer};
use swath::prelude::*;

use super::T;
use crate::support::files::Scratch;

fn block(seed: u64) -> TransformerBlock {
    let options = TransformerBlockOptions { causal: true, dropout: 0.2, ..Default::default() };
    TransformerBlock::with_options(8, 2, options, &mut Rng::seed(seed)).unwrap()
}

fn optimizer() -> AdamW {
    AdamW::new(AdamWOptions { learning_rate: 0.01, ..Default::default() }).unwrap()
}

fn step(model: &mut TransformerBlock, optimizer: &mut AdamW, rng: &mut Rng) -> f32 {
    let x = T::randn((2, 5, 8), rng).unwrap();
    let loss = model.forward(&x).unwrap().square().unwrap().mean(None, false).unwrap();
    optimizer.step(model, &loss.backward().unwrap()).unwrap();
    loss.item().unwrap()
}

fn state(model: &TransformerBlock, optimizer: &AdamW, rng: &Rng, step: u64) -> TrainingState {
    TrainingState::new()
        .with_model(model)
        .with_optimizer(optimizer)
        .unwrap()
        .with_rng("batches", rng)
        .unwrap()
        .with_counter("step", step)
        .unwrap()
        .with_tensor("losses", tensor![1.0, 2.0])
        .with_text("data", "of the text")
}

#[test]
fn training_resumed_from_a_file_continues_bit_for_bit() {
    let folder = Scratch::new("tensors-state");
    let path = folder.0.join("state");
    let (mut model, mut adam, mut rng) = (block(1), optimizer(), Rng::seed(9).stream(3));
    for _ in 0..3 {
        step(&mut model, &mut adam, &mut rng);
    }
    rng.next_u32();
    state(&model, &adam, &rng, u64::MAX).save(&path).unwrap();
    let expected: Vec<f32> = (0..3).map(|_| step(&mut model, &mut adam, &mut rng)).collect();

    let (mut model, mut adam) = (block(2), optimizer());
    let mut state = TrainingState::load(&path).unwrap();
    state.restore(&mut model, &mut adam).unwrap();
    let mut rng = state.rng("batches").unwrap();
    assert_eq!(state.counter("step").unwrap(), u64::MAX);
    assert_eq!(state.tensor("losses").unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(state.text("data"), Some("of the text"));
    let losses: Vec<f32> = (0..3).map(|_| step(&mut model, &mut adam, &mut rng)).collect();
    assert_eq!(losses, expected);
}

/// Names and values of all tensors of a model and an optimizer.
fn everything(model: &dyn Visit<CpuBackend>, adam: &AdamW) -> Vec<(String, Vec<f64>)> {
    let mut all = Vec::new();
    let mut add = |name: &str, x: &T| {
        let values = x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        all.push((name.to_owned(), values));
    };
    nn::for_each_tensor(model, |name, x, _| add(name, &x.detach()));
    adam.state().unwrap().iter().for_each(|(name, x)| add(name, x));
    all
}

#[test]
fn a_state_that_does_not_fit_changes_neither_model_nor_optimizer() {
    let folder = Scratch::new("tensors-misfit-state");
    let path = folder.0.join("state");
    let (mut model, mut adam, mut rng) = (block(1), optimizer(), Rng::seed(9));
    step(&mut model, &mut adam, &mut rng);
    state(&model, &adam, &rng, 1).save(&path).unwrap();
    let good = load::<CpuBackend>(&path).unwrap();
    type Change = fn(&str, T) -> Option<T>;
    let changes: [(&str, Change, &str); 5] = [
        ("model.linear1.bias", |_, _| None, "the file has not"),
        ("model.linear1.bias", |_, x| x.unsqueeze(0).ok(), "shape"),
        ("optimizer.learning_rate", |_, _| None, "learning_rate"),
        ("optimizer.linear1.bias.exp_avg", |_, _| None, "linear1.bias.exp_avg"),
        ("optimizer.linear1.bias.exp_avg", |_, x| x.to_dtype(DType::I64).ok(), "exp_avg"),
    ];
    for (name, change, part) in changes {
        let changed = good.iter().filter_map(|(known, x)| {
            let x = if known == name { change(known, x.clone())? } else { x.clone() };
            Some((known.clone(), x))
        });
        save(&path, changed, &Metadata::new()).unwrap();
        let (mut model, mut adam, mut rng) = (block(5), optimizer(), Rng::seed(5));
        step(&mut model, &mut adam, &mut rng);
        let before = everything(&model, &adam);
        let mut state = TrainingState::load(&path).unwrap();
        let error = state.restore(&mut model, &mut adam).expect_err(name).to_string();
        assert!(error.contains(part) && error.contains("misfit-state"), "{name}: {error}");
        assert_eq!(everything(&model, &adam), before, "{name}");
    }
}

#[test]
fn a_missing_entry_of_a_state_is_an_error_that_names_it() {
    let empty: TrainingState = TrainingState::new().with_tensor("x", tensor![1.0]);
    let messages = [
        empty.rng("batches").unwrap_err().to_string(),
        empty.counter("step").unwrap_err().to_string(),
        empty.tensor("y").unwrap_err().to_string(),
    ];
    for (message, name) in messages.iter().zip(["rng.batches", "counter.step", "extra.y"]) {
        assert!(message.contains(name), "{message}");
    }
    assert_eq!(empty.text("z"), None);
}

#[test]
fn loading_keeps_the_leaves_of_parameters() {
    let folder = Scratch::new("tensors-leaves");
    let path = folder.0.join("model");
    let mut model: Linear = Linear::new(3, 2, &mut Rng::seed(1)).unwrap();
    save_module(&path, &Linear::<CpuBackend>::new(3, 2, &mut Rng::seed(2)).unwrap()).unwrap();
    let leaf = model.weight.clone();
    let loss = model.forward(&tensor![[1.0, 2.0, 3.0]]).unwrap().sum(None, false).unwrap();
    load_module(&path, &mut model).unwrap();
    assert!(model.weight.is_tracked());
    // A gradient of a graph recorded before loading is found by the parameter; the old handle keeps the old
    // value.
    let grads = loss.backward().unwrap();
    assert_eq!(
        grads.wrt(&model.weight).unwrap().to_vec::<f32>().unwrap(),
        [1., 2., 3., 1., 2., 3.]
    );
    assert_ne!(leaf.to_vec::<f32>().unwrap(), model.weight.to_vec::<f32>().unwrap());
}

struct Tied {
    first: T,
    second: T,
}
swath::module!(Tied: CpuBackend { first, second });

fn tied(value: f32) -> Tied {
    let first = T::full(2, value).unwrap().requires_grad();
    Tied { second: first.clone(), first }
}

#[test]
fn tied_parameters_stay_tied() {
    let folder = Scratch::new("tensors-tied");
    let path = folder.0.join("model");
    save_module(&path, &tied(1.0)).unwrap();
    let mut model = tied(2.0);
    load_module(&path, &mut model).unwrap();
    assert_eq!(model.second.to_vec::<f32>().unwrap(), [1.0, 1.0]);
    let loss = model.first.mul(&model.second).unwrap().sum(None, false).unwrap();
    assert_eq!(
        loss.backward().unwrap().wrt(&model.first).unwrap().to_vec::<f32>().unwrap(),
        [2.0; 2]
    );

    save(&path, [("first", tensor![1.0, 1.0]), ("second", tensor![1.0, 3.0])], &Metadata::new())
        .unwrap();
    let mut model = tied(2.0);
    let error = load_module(&path, &mut model).unwrap_err().to_string();
    assert!(error.contains("`second`") && error.contains("`first`"), "{error}");
    assert_eq!(model.first.to_vec::<f32>().unwrap(), [2.0, 2.0]);
}

struct Shared {
    own: T,
    part: Arc<Linear>,
}
swath::module!(Shared: CpuBackend { own, part });

#[test]
fn a_part_with_other_owners_is_an_error_and_nothing_is_loaded() {
    let folder = Scratch::new("tensors-shared");
    let path = folder.0.join("model");
    let part = Arc::new(Linear::new(1, 1, &mut Rng::seed(1)).unwrap());
    let mut model = Shared { own: tensor![1.0].requires_grad(), part: Arc::clone(&part) };
    save_module(&path, &model).unwrap();
    model.own = tensor![5.0].requires_grad();
    let error = load_module(&path, &mut model).unwrap_err().to_string();
    assert!(error.contains("part"), "{error}");
    assert_eq!(model.own.item::<f32>().unwrap(), 5.0);
    drop(part);
    load_module(&path, &mut model).unwrap();
    assert_eq!(model.own.item::<f32>().unwrap(), 1.0);
}

#[test]
fn saving_through_a_symlink_replaces_its_target() {
    let folder = Scratch::new("tensors-links");
    let (real, link) = (folder.0.join("real"), folder.0.join("link"));
    save(&real, [("x", tensor![1.0])], &Metadata::new()).unwrap();
    if std::process::Command::new("ln").arg("-s").arg(&real).arg(&link).status().is_err() {
        return eprintln!("SKIPPED: a_link_stays_a_link: no ln");
    }
    save(&link, [("x", tensor![2.0])], &Metadata::new()).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(load::<CpuBackend>(&real).unwrap()["x"].item::<f32>().unwrap(), 2.0);
}

/// The state of an optimizer must fit the model's parameters in shape, dtype and path, and be complete.
#[test]
fn the_state_of_another_model_is_refused_by_name_and_changes_nothing() {
    use swath::io::safetensors::TrainingState;
    use swath::optim::{AdamW, AdamWOptions, Optimizer};

    let scratch = crate::support::files::Scratch::new("other-optimizer");
    let trained = |outputs: usize| {
        let mut model: nn::Linear = nn::Linear::new(3, outputs, &mut Rng::seed(1)).unwrap();
        let mut optimizer: AdamW = AdamW::new(AdamWOptions::default()).unwrap();
        let x = tensor![[1.0, 2.0, 3.0]];
        let loss = model.forward(&x).unwrap().square().unwrap().sum(None, false).unwrap();
        optimizer.step(&mut model, &loss.backward().unwrap()).unwrap();
        (model, optimizer)
    };
    let (mut model, mut optimizer) = trained(2);
    let (_, other) = trained(4);
    let path = scratch.0.join("state.safetensors");
    TrainingState::new().with_model(&model).with_optimizer(&other).unwrap().save(&path).unwrap();
    let before = model.weight.to_vec::<f32>().unwrap();
    let steps = optimizer.state().unwrap().len();
    let error =
        TrainingState::load(&path).unwrap().restore(&mut model, &mut optimizer).unwrap_err();
    let named = matches!(&error, Error::File { tensor: Some(name), .. }
        if name.starts_with("optimizer.bias") || name.starts_with("optimizer.weight"));
    assert!(named, "{error}");
    assert_eq!(model.weight.to_vec::<f32>().unwrap(), before);
    assert_eq!(optimizer.state().unwrap().len(), steps);
}

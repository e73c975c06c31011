//! Optimizer steps on a model: in place, once per parameter, all or nothing.

use std::sync::Arc;

use super::{T, randn};
use swath::nn::{self, Dropout, Embedding, Linear, Module, Sequential, Shared, loss};
use swath::optim::{
    self, Adagrad, AdagradOptions, Adam, AdamOptions, AdamW, AdamWOptions, Lion, LionOptions,
    Optimizer, RmsProp, RmsPropOptions, Sgd, SgdOptions, clip_grad_norm,
};
use swath::prelude::*;

fn rng() -> Rng {
    Rng::seed(3)
}

pub(super) fn optimizers() -> Vec<(&'static str, Box<dyn Optimizer<CpuBackend>>)> {
    let momentum = SgdOptions { learning_rate: 0.1, momentum: 0.9, ..Default::default() };
    vec![
        ("sgd", Box::new(Sgd::new(SgdOptions { momentum: 0.0, ..momentum }).unwrap())),
        ("momentum", Box::new(Sgd::new(momentum).unwrap())),
        ("adam", Box::new(Adam::new(AdamOptions::default()).unwrap())),
        ("adamw", Box::new(AdamW::new(AdamWOptions::default()).unwrap())),
        ("rms_prop", Box::new(RmsProp::new(RmsPropOptions::default()).unwrap())),
        ("adagrad", Box::new(Adagrad::new(AdagradOptions::default()).unwrap())),
        ("lion", Box::new(Lion::new(LionOptions::default()).unwrap())),
    ]
}

/// Optimizers for which the CPU backend has a kernel.
const IN_PLACE: [&str; 4] = ["sgd", "momentum", "adam", "adamw"];

pub(super) fn model() -> Linear {
    Linear::new(3, 2, &mut rng()).unwrap()
}

pub(super) fn grads_of(model: &(impl Module<CpuBackend> + ?Sized)) -> Gradients<CpuBackend> {
    let y = model.forward(&randn((4, 3), 1)).unwrap();
    y.square().unwrap().sum(None, false).unwrap().backward().unwrap()
}

fn address(x: &T) -> *const f32 {
    x.data().as_slice::<f32>().unwrap().as_ptr()
}

pub(super) fn values(x: &T) -> Vec<f32> {
    x.to_vec().unwrap()
}

#[test]
fn a_step_updates_unshared_values_in_place() {
    for (name, mut optimizer) in optimizers() {
        let mut model = model();
        let (original, before) = (address(&model.weight), values(&model.weight));
        for _ in 0..3 {
            let grads = grads_of(&model);
            optimizer.step(&mut model, &grads).unwrap();
            if IN_PLACE.contains(&name) {
                assert_eq!(address(&model.weight), original, "{name}");
            }
        }
        assert_ne!(values(&model.weight), before, "{name}");
        assert!(model.weight.is_tracked());
    }
}

/// A handle from before the step keeps its values, and a graph recorded before it gives the gradients at
/// those values.
#[test]
fn a_shared_parameter_is_copied_and_old_graphs_stay_correct() {
    for (name, mut optimizer) in optimizers() {
        let mut model = model();
        let handle = model.weight.clone();
        let before = values(&handle);
        let x = randn((4, 3), 2).requires_grad();
        let old = model.forward(&x).unwrap().sum(None, false).unwrap();
        let grads = grads_of(&model);
        optimizer.step(&mut model, &grads).unwrap();
        assert_eq!(values(&handle), before, "{name}");
        assert_ne!(values(&model.weight), before, "{name}");

        let grads = old.backward().unwrap();
        let expected =
            handle.detach().sum(Some(&[0]), false).unwrap().broadcast_to((4, 3)).unwrap();
        let difference = grads.wrt(&x).unwrap().sub(&expected).unwrap().abs().unwrap();
        assert!(difference.max(None, false).unwrap().item::<f32>().unwrap() < 1e-6, "{name}");
        // The handle is the old leaf; the model's parameter is a new one.
        assert!(grads.get(&handle).is_some() && grads.get(&model.weight).is_none());
        let error = optimizer.step(&mut model, &grads).unwrap_err().to_string();
        assert!(
            error.contains("`weight`") && error.contains("kept over a step"),
            "{name}: {error}"
        );
    }
}

#[test]
fn parameters_and_gradients_of_any_layout_are_stepped() -> Result<()> {
    let (weight, gradient) = (randn((3, 4), 5), randn((3, 4), 6));
    let odd = |x: &T| x.t()?.contiguous()?.t();
    for ((name, mut a), (_, mut b)) in optimizers().into_iter().zip(optimizers()) {
        let mut plain = weight.detach().requires_grad();
        let mut strided = odd(&weight)?.requires_grad();
        for _ in 0..3 {
            let mut grads = Gradients::new();
            grads.accumulate(&plain, gradient.clone())?;
            grads.accumulate(&strided, odd(&gradient)?)?;
            a.step(&mut plain, &grads)?;
            b.step(&mut strided, &grads)?;
        }
        assert_eq!(values(&plain), values(&strided), "{name}");
    }
    Ok(())
}

struct Tied<B: Backend> {
    table: Embedding<B>,
    head: Linear<B>,
}
swath::module!(Tied<B> { table, head });

/// A table that is also the weight of the output layer takes one step by the sum of both gradients, like the
/// same model written with one parameter.
#[test]
fn a_tied_parameter_takes_one_step_and_stays_one() -> Result<()> {
    let indices = tensor![i64; 1, 4, 1];
    for ((name, mut a), (_, mut b)) in optimizers().into_iter().zip(optimizers()) {
        let table = Embedding::new(5, 3, &mut rng())?;
        let mut head = Linear::new(3, 5, &mut rng())?;
        head.weight = table.weight.clone();
        let mut written = vec![table.weight.detach().requires_grad()];
        written.push(head.bias.as_ref().unwrap().detach().requires_grad());
        let mut tied = Tied { table, head };
        for step in 0..4 {
            let y = tied.head.forward(&tied.table.forward(&indices)?)?;
            let grads = y.square()?.sum(None, false)?.backward()?;
            a.step(&mut tied, &grads)?;

            let y = written[0].index_select(0, &indices)?.linear(&written[0], Some(&written[1]))?;
            let grads = y.square()?.sum(None, false)?.backward()?;
            b.step(&mut written, &grads)?;

            assert_eq!(values(&tied.table.weight), values(&written[0]), "{name}, step {step}");
            assert_eq!(values(&tied.head.weight), values(&written[0]), "{name}, step {step}");
        }
        assert_eq!(nn::summary(&tied).parameters(), 20);
        assert_eq!(address(&tied.table.weight), address(&tied.head.weight));
    }
    Ok(())
}

/// Compares with a model that uses one layer twice.
#[test]
fn a_shared_part_takes_one_step() -> Result<()> {
    for ((name, mut a), (_, mut b)) in optimizers().into_iter().zip(optimizers()) {
        let layer = || Linear::new(3, 3, &mut rng());
        let shared = Shared::new(layer()?);
        let mut sequence = Sequential::new().push(shared.clone()).push(shared.clone());
        let mut single = layer()?;
        let x = randn((4, 3), 1);
        for step in 0..3 {
            let grads = sequence.forward(&x)?.square()?.sum(None, false)?.backward()?;
            a.step(&mut sequence, &grads)?;
            let y = single.forward(&single.forward(&x)?)?;
            let grads = y.square()?.sum(None, false)?.backward()?;
            b.step(&mut single, &grads)?;
            assert_eq!(values(&shared.read().weight), values(&single.weight), "{name}, {step}");
        }
    }
    Ok(())
}

#[test]
fn a_missing_gradient_is_named_and_nothing_changes() {
    for (name, mut optimizer) in optimizers() {
        let mut pair = vec![model(), model()];
        let grads = grads_of(&pair[0]);
        let before = values(&pair[0].weight);
        let error = optimizer.step(&mut pair, &grads).unwrap_err();
        assert!(matches!(error, Error::NoGradient { .. }), "{error}");
        assert!(error.to_string().contains("`1.weight`"), "{name}: {error}");
        assert_eq!(values(&pair[0].weight), before);
        assert_eq!(optimizer.state().unwrap().len(), 1);
    }
}

#[test]
fn parameters_that_cannot_be_updated_are_named_and_nothing_changes() -> Result<()> {
    for (name, mut optimizer) in optimizers() {
        let shared = Arc::new(model());
        let mut parts = vec![Arc::new(model()), Arc::clone(&shared)];
        let y = parts[0].forward(&randn((4, 3), 1))?.add(&shared.forward(&randn((4, 3), 2))?)?;
        let grads = y.sum(None, false)?.backward()?;
        let before = values(&parts[0].weight);
        let error = optimizer.step(&mut parts, &grads).unwrap_err().to_string();
        assert!(error.contains("`1` is held by more than one Arc"), "{name}: {error}");
        assert_eq!(values(&parts[0].weight), before);
        drop(shared);
        optimizer.step(&mut parts, &grads)?;
        assert_ne!(values(&parts[0].weight), before);

        let mut computed = vec![randn(3, 1).requires_grad().mul_scalar(2.0)?];
        computed[0].retain_grad();
        let grads = computed[0].sum(None, false)?.backward()?;
        let error = optimizer.step(&mut computed, &grads).unwrap_err().to_string();
        assert!(error.contains("`0` is the result of an operation"), "{name}: {error}");
    }
    Ok(())
}

#[test]
fn a_parameter_that_changed_its_shape_is_named() -> Result<()> {
    let mut optimizer = AdamW::new(AdamWOptions::default())?;
    let mut model = vec![randn((2, 2), 1).requires_grad()];
    let step = |model: &mut Vec<T>, optimizer: &mut AdamW| {
        let grads = model[0].sum(None, false)?.backward()?;
        optimizer.step(model, &grads)
    };
    step(&mut model, &mut optimizer)?;
    model[0] = randn((2, 3), 1).requires_grad();
    let error = step(&mut model, &mut optimizer).unwrap_err().to_string();
    assert!(error.contains("`0` is f32 of shape [2, 3], but its exp_avg is f32"), "{error}");
    Ok(())
}

#[test]
fn buffers_and_frozen_weights_stay_as_they_are() -> Result<()> {
    let dropout = Dropout::new(0.5, &mut rng())?;
    let mut frozen = model();
    frozen.bias = None;
    nn::freeze(&mut frozen, |path, _| path == "weight")?;
    let before = values(&frozen.weight);
    let mut model =
        Sequential::new().push(frozen).push(dropout).push(Linear::new(2, 1, &mut rng())?);
    let grads = model.forward(&randn((4, 3), 1))?.sum(None, false)?.backward()?;
    AdamW::new(AdamWOptions::default())?.step(&mut model, &grads)?;
    let mut seen = Vec::new();
    nn::for_each_tensor(&model, |path, tensor, _| seen.push((path.to_owned(), tensor.clone())));
    assert_eq!(seen[0].0, "0.weight");
    assert_eq!(values(&seen[0].1), before);
    assert_eq!((seen[2].0.as_str(), seen[2].1.item::<i64>()?), ("1.step", 1));
    Ok(())
}

/// The step of a parameter that is added later is counted separately.
#[test]
fn a_parameter_added_later_starts_at_step_one() -> Result<()> {
    for ((_, mut both), (_, mut alone)) in optimizers().into_iter().zip(optimizers()) {
        let gradient = randn(3, 9);
        let mut first = vec![randn(3, 1).requires_grad()];
        let mut grads = Gradients::new();
        grads.accumulate(&first[0], gradient.clone())?;
        both.step(&mut first, &grads)?;
        first.push(randn(3, 2).requires_grad());
        grads.accumulate(&first[1], gradient.clone())?;
        both.step(&mut first, &grads)?;

        let mut single = vec![randn(3, 2).requires_grad()];
        let mut grads = Gradients::new();
        grads.accumulate(&single[0], gradient)?;
        alone.step(&mut single, &grads)?;
        assert_eq!(values(&first[1]), values(&single[0]));
    }
    Ok(())
}

#[test]
fn restored_state_continues_bit_for_bit_and_is_not_changed_by_later_steps() -> Result<()> {
    for ((name, mut a), (_, mut b)) in optimizers().into_iter().zip(optimizers()) {
        let mut one = model();
        let run = |model: &mut Linear, optimizer: &mut dyn Optimizer<CpuBackend>| {
            let grads = grads_of(model);
            optimizer.step(model, &grads)
        };
        for _ in 0..3 {
            run(&mut one, a.as_mut())?;
        }
        a.set_learning_rate(0.0123);
        let state = a.state()?;
        let copy: Vec<Vec<f64>> = state
            .iter()
            .map(|(_, x)| x.to_dtype(DType::F64)?.to_vec::<f64>())
            .collect::<Result<_>>()?;
        let mut two = model();
        two.weight = one.weight.detach().contiguous()?.requires_grad();
        two.bias = Some(one.bias.as_ref().unwrap().detach().requires_grad());
        b.load_state(state.clone())?;
        assert_eq!(b.learning_rate(), 0.0123, "{name}");
        for _ in 0..3 {
            run(&mut one, a.as_mut())?;
            run(&mut two, b.as_mut())?;
        }
        assert_eq!(values(&one.weight), values(&two.weight), "{name}");
        for ((path, x), before) in state.iter().zip(copy) {
            assert_eq!(x.to_dtype(DType::F64)?.to_vec::<f64>()?, before, "{name} {path}");
        }
    }
    Ok(())
}

#[test]
fn state_names_match_pytorchs_and_wrong_states_are_refused() -> Result<()> {
    let mut optimizer = AdamW::new(AdamWOptions::default())?;
    let mut model = model();
    let grads = grads_of(&model);
    optimizer.step(&mut model, &grads)?;
    let state = optimizer.state()?;
    let names: Vec<&str> = state.iter().map(|(name, _)| name.as_str()).collect();
    let weight = ["weight.step", "weight.exp_avg", "weight.exp_avg_sq"];
    let bias = ["bias.step", "bias.exp_avg", "bias.exp_avg_sq"];
    assert_eq!(names, [&["learning_rate"][..], &bias, &weight].concat());

    let without = |name: &str| state.iter().filter(|(n, _)| n != name).cloned().collect::<Vec<_>>();
    let with = |name: &str, x: T| [without(name), vec![(name.to_owned(), x)]].concat();
    let number = |x: i64| T::full((), x);
    let wrong = [
        (without("learning_rate"), "`learning_rate` is missing"),
        (without("weight.step"), "`weight.step` is missing"),
        (without("bias.exp_avg_sq"), "`bias.exp_avg_sq` is missing"),
        (with("weight.momentum_buffer", randn((2, 3), 1)), "entry `weight.momentum_buffer`"),
        (with("rate", number(1)?), "unknown entry `rate`"),
        (with("weight.step", number(-1)?), "`weight.step` must be at least 0, got -1"),
        (with("weight.step", randn((), 1)), "`weight.step`: expected one i64, got f32"),
        (with("weight.exp_avg", number(1)?), "`weight.exp_avg`: expected floats, got i64"),
        (with("weight.exp_avg", randn(4, 1)), "one shape and dtype for `weight`"),
        (with("learning_rate", randn(2, 1)), "`learning_rate`: expected one f64, got f32"),
    ];
    for (state, message) in wrong {
        let error = optimizer.load_state(state).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert_eq!(optimizer.state()?.len(), 7);
    }
    let mut plain = Sgd::<CpuBackend>::new(SgdOptions::default())?;
    assert!(plain.load_state(state).is_err());
    Ok(())
}

#[test]
fn clipping_counts_tied_parameters_once_and_leaves_other_gradients() -> Result<()> {
    let leaf = T::full(2, 1f32)?.requires_grad();
    let other = T::full(2, 1f32)?.requires_grad();
    let model = vec![leaf.clone(), leaf.clone(), T::full(1, 1f32)?.requires_grad()];
    let mut grads = Gradients::new();
    grads.accumulate(&leaf, tensor![3.0, 4.0])?;
    grads.accumulate(&other, tensor![100.0, 0.0])?;
    let held = grads.wrt(&leaf)?.clone();
    assert_eq!(clip_grad_norm(&model, &mut grads, 0.5)?, 5.0);
    let clipped = values(grads.wrt(&leaf)?);
    assert!((clipped[0] - 0.3).abs() < 1e-6 && (clipped[1] - 0.4).abs() < 1e-6, "{clipped:?}");
    assert_eq!(values(grads.wrt(&other)?), [100.0, 0.0]);
    assert_eq!(values(&held), [3.0, 4.0]);
    assert!((clip_grad_norm(&model, &mut grads, 0.5)? - 0.5).abs() < 1e-6);

    let mut grads = Gradients::new();
    grads.accumulate(&leaf, tensor![3e30, 4e30])?;
    let norm = clip_grad_norm(&model, &mut grads, 1.0)?;
    assert!((norm / 5e30 - 1.0).abs() < 1e-7, "{norm}");
    let mut grads = Gradients::new();
    grads.accumulate(&leaf, T::from_vec(vec![f32::INFINITY, 1.0], 2)?)?;
    assert_eq!(clip_grad_norm(&model, &mut grads, 1.0)?, f64::INFINITY);
    assert_eq!(values(grads.wrt(&leaf)?), [f32::INFINITY, 1.0]);
    Ok(())
}

/// The factor would round to 0 in f16.
#[test]
fn gradients_of_16_bits_are_scaled_in_f32() -> Result<()> {
    let leaf = T::zeros(1, DType::F16)?.requires_grad();
    let mut grads = Gradients::new();
    grads.accumulate(&leaf, tensor![6e4].to_dtype(DType::F16)?)?;
    clip_grad_norm(&leaf, &mut grads, 1e-3)?;
    let gradient = grads.wrt(&leaf)?;
    let clipped = gradient.to_dtype(DType::F32)?.item::<f32>()?;
    assert!(gradient.dtype() == DType::F16 && (clipped - 1e-3).abs() < 1e-6, "{clipped}");
    Ok(())
}

/// Gradients of two halves of a batch, merged and halved, equal those of the batch.
#[test]
fn merged_gradients_are_those_of_the_whole_batch() -> Result<()> {
    let model = model();
    let (x, y) = (randn((8, 3), 1), randn((8, 2), 2));
    let part = |from: usize, count: usize| {
        let (x, y) = (x.narrow(0, from, count)?, y.narrow(0, from, count)?);
        loss::mse(&model.forward(&x)?, &y)?.backward()
    };
    let whole = part(0, 8)?;
    let mut merged = Gradients::new();
    merged.merge(part(0, 4)?)?;
    let kept = merged.wrt(&model.weight)?.clone();
    let before = values(&kept);
    merged.merge(part(4, 4)?)?;
    merged.scale(0.5)?;
    for parameter in [&model.weight, model.bias.as_ref().unwrap()] {
        let (a, b) = (values(merged.wrt(parameter)?), values(whole.wrt(parameter)?));
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-6), "{a:?} {b:?}");
    }
    assert_eq!(values(&kept), before);
    Ok(())
}

/// Scaling a recorded gradient is recorded.
#[test]
fn scaled_gradients_can_be_differentiated() -> Result<()> {
    let x = tensor![f64; 1.0, 2.0].requires_grad();
    let y = x.square()?.mul(&x)?.sum(None, false)?;
    let options = Backward { create_graph: true, ..Default::default() };
    let mut grads = y.backward_opts(options)?;
    grads.scale(0.5)?;
    let second = grads.wrt(&x)?.sum(None, false)?.backward()?;
    assert_eq!(second.wrt(&x)?.to_vec::<f64>()?, [3.0, 6.0]);
    Ok(())
}

/// The step of a 16-bit parameter is that of f32, rounded.
#[test]
fn parameters_of_16_bits_are_stepped() -> Result<()> {
    for dtype in [DType::F16, DType::BF16] {
        for (name, mut optimizer) in optimizers() {
            let (start, gradient) = (randn(40, 1).to_dtype(dtype)?, randn(40, 2).to_dtype(dtype)?);
            let mut pair = vec![start.requires_grad(), start.to_dtype(DType::F32)?.requires_grad()];
            let mut grads = Gradients::new();
            grads.accumulate(&pair[0], gradient.clone())?;
            grads.accumulate(&pair[1], gradient.to_dtype(DType::F32)?)?;
            optimizer.set_learning_rate(0.25);
            optimizer.step(&mut pair, &grads)?;
            let (narrow, wide) = (&pair[0], &pair[1]);
            assert_eq!(narrow.dtype(), dtype);
            let ulp = if dtype == DType::F16 { 2f32.powi(-10) } else { 2f32.powi(-7) };
            for (a, b) in values(&narrow.to_dtype(DType::F32)?).into_iter().zip(values(wide)) {
                assert!((a - b).abs() <= ulp * b.abs().max(0.25), "{name} {dtype}: {a} {b}");
            }
        }
    }
    Ok(())
}

#[test]
fn weight_decay_follows_the_choice() -> Result<()> {
    let options = AdamWOptions {
        learning_rate: 0.1,
        weight_decay: 0.5,
        decays: |path, _| path == "weight",
        ..Default::default()
    };
    let mut model = model();
    model.bias = Some(T::full(2, 4f32)?.requires_grad());
    let before = values(&model.weight);
    let mut grads = Gradients::new();
    grads.accumulate(&model.weight, T::zeros((2, 3), DType::F32)?)?;
    grads.accumulate(model.bias.as_ref().unwrap(), T::zeros(2, DType::F32)?)?;
    AdamW::new(options)?.step(&mut model, &grads)?;
    assert_eq!(values(model.bias.as_ref().unwrap()), [4.0, 4.0]);
    for (a, b) in values(&model.weight).iter().zip(before) {
        assert!((a - 0.95 * b).abs() < 1e-7);
    }
    assert!(optim::matrices("x", &Shape::new([2, 2])) && !optim::matrices("x", &Shape::new([2])));
    Ok(())
}

//! Parameters that are frozen on purpose, and those that a layer expects to be tracked.

use super::{T, randn, text};
use crate::distributed::on_ranks;
use crate::support::files::Scratch;
use swath::distributed::{DataParallel, ShardedOptimizer, World};
use swath::io::safetensors::{self, TrainingState};
use swath::nn::{self, Embedding, Kind, Linear, Module, Sequential, Shared, Tracking, loss};
use swath::optim::{AdamW, AdamWOptions, ClipOptions, Sgd, SgdOptions, clip_grad_norm_with};
use swath::prelude::*;
use swath::{AnyBackend, Device};

fn model(seed: u64) -> Sequential {
    let mut rng = Rng::seed(seed);
    Sequential::new()
        .push(Linear::new(3, 4, &mut rng).unwrap())
        .push(nn::Activation::Tanh)
        .push(Linear::new(4, 2, &mut rng).unwrap())
}

/// The values of all tensors, by path.
fn values(model: &dyn nn::Visit<CpuBackend>) -> Vec<(String, Vec<f64>)> {
    let mut found = Vec::new();
    nn::for_each_tensor(model, |path, x, _| {
        found.push((path.to_owned(), x.to_dtype(DType::F64).unwrap().to_vec().unwrap()));
    });
    found
}

fn frozen(model: &dyn nn::Visit<CpuBackend>) -> Vec<String> {
    let mut found = Vec::new();
    nn::for_each_tensor(model, |path, x, kind| {
        assert_eq!((kind, x.is_tracked()), (Kind::Parameter, !x.is_frozen()), "{path}");
        found.extend(x.is_frozen().then(|| path.to_owned()));
    });
    found
}

fn step(model: &mut Sequential, optimizer: &mut dyn Optimizer<CpuBackend>) -> Result<usize> {
    let y = model.forward(&randn((5, 3), 9))?;
    let mut grads = loss::mse(&y, &randn((5, 2), 10))?.backward()?;
    let strict = ClipOptions { max_norm: 0.1, error_if_nonfinite: true };
    clip_grad_norm_with(model, &mut grads, strict)?;
    optimizer.step(model, &grads)?;
    Ok(grads.len())
}

/// The trained parameters take the steps that they take where the frozen layer is a function of constants.
#[test]
fn a_frozen_layer_is_a_constant() -> Result<()> {
    let mut whole = model(1);
    assert_eq!(nn::freeze(&mut whole, |path, _| path.starts_with("0."))?, 2);
    assert_eq!(frozen(&whole), ["0.weight", "0.bias"]);
    let start = values(&whole);
    let (mut head, mut rng) = (None, Rng::seed(1));
    for sizes in [(3, 4), (4, 2)] {
        head = Some(Linear::new(sizes.0, sizes.1, &mut rng)?);
    }
    let mut head: Linear = head.expect("made above");
    let constant = |name: &str| &start.iter().find(|(path, _)| path == name).unwrap().1;
    let weight = T::from_slice(constant("0.weight"), (4, 3))?.to_dtype(DType::F32)?;
    let bias = T::from_slice(constant("0.bias"), 4)?.to_dtype(DType::F32)?;
    let features = randn((5, 3), 9).linear(&weight, Some(&bias))?.tanh()?;
    let options = AdamWOptions { learning_rate: 0.05, ..Default::default() };
    let (mut of_whole, mut of_head) = (AdamW::new(options)?, AdamW::new(options)?);
    for _ in 0..5 {
        assert_eq!(step(&mut whole, &mut of_whole)?, 2);
        let mut grads = loss::mse(&head.forward(&features)?, &randn((5, 2), 10))?.backward()?;
        clip_grad_norm_with(
            &head,
            &mut grads,
            ClipOptions { max_norm: 0.1, ..Default::default() },
        )?;
        of_head.step(&mut head, &grads)?;
    }
    let after = values(&whole);
    assert_eq!(after[..2], start[..2]);
    assert_ne!(after[2..], start[2..]);
    let of_head: Vec<_> = values(&head).into_iter().map(|(_, x)| x).collect();
    assert_eq!(after[2..].iter().map(|(_, x)| x.clone()).collect::<Vec<_>>(), of_head);
    Ok(())
}

#[test]
fn an_unfrozen_parameter_goes_on_with_its_state() -> Result<()> {
    let options = SgdOptions { learning_rate: 0.1, momentum: 0.9, ..Default::default() };
    let (mut model, mut optimizer) = (model(1), Sgd::new(options)?);
    step(&mut model, &mut optimizer)?;
    nn::freeze(&mut model, |_, shape| shape.ndim() == 1)?;
    let before = optimizer.state()?;
    let start = values(&model);
    assert_eq!(step(&mut model, &mut optimizer)?, 2);
    assert_eq!(nn::unfreeze(&mut model, |path, _| path == "2.bias")?, 1);
    assert_eq!(frozen(&model), ["0.bias"]);
    let after = optimizer.state()?;
    assert_eq!(before.len(), after.len());
    for ((name, old), (_, new)) in before.iter().zip(&after) {
        let is_frozen = name.contains("bias");
        let [old, new] = [old, new].map(|x| format!("{x:e}"));
        assert!(name == "learning_rate" || (old == new) == is_frozen, "{name}");
    }
    assert_eq!(step(&mut model, &mut optimizer)?, 3);
    let end = values(&model);
    let changed: Vec<_> = start.iter().zip(&end).filter(|(a, b)| a != b).collect();
    assert_eq!(changed.len(), 3);
    // Twice the same is no change.
    assert_eq!(nn::unfreeze(&mut model, |path, _| path == "2.bias")?, 1);
    assert_eq!(step(&mut model, &mut optimizer)?, 3);
    assert_eq!(nn::freeze(&mut model, |_, _| false)?, 0);
    Ok(())
}

#[test]
fn the_mark_survives_what_moves_a_tensor() -> Result<()> {
    let name = T::var("scale", randn(3, 1).data().clone());
    let mut x = name.clone();
    nn::freeze(&mut x, |path, shape| path.is_empty() && shape.dims() == [3])?;
    assert!(name.is_tracked());
    assert_eq!((x.is_frozen(), x.is_tracked(), x.name()), (true, false, Some("scale")));
    assert!(x.clone().is_frozen() && !x.detach().is_frozen() && !x.exp()?.is_frozen());
    let there: Tensor<ReferenceBackend> = x.to_backend()?;
    let back: T = there.to_backend()?;
    assert!(there.is_frozen() && back.is_frozen());
    let any: Tensor<AnyBackend> = x.to_backend()?;
    assert!(any.to_device(Device::Reference)?.is_frozen());
    nn::to_dtype(&mut x, DType::F64)?;
    assert_eq!((x.is_frozen(), x.dtype(), x.name()), (true, DType::F64, Some("scale")));
    // Nothing is recorded for it, and its gradient is an error.
    assert!(!x.exp()?.is_tracked());
    let grads = name.square()?.sum(None, false)?.backward()?;
    assert!(grads.get(&x).is_none());
    let reason = "the parameter of shape [3] is frozen; call nn::unfreeze before using it";
    assert_eq!(text(grads.wrt(&x)), format!("gradients: no gradient: {reason}"));
    let again = x.requires_grad();
    assert!(again.is_tracked() && !again.is_frozen());
    assert_eq!(again.name(), Some("scale"));
    nn::unfreeze(&mut x, |_, _| true)?;
    assert!(x.is_tracked());
    Ok(())
}

#[test]
fn files_and_states_keep_the_mark() -> Result<()> {
    let folder = Scratch::new("frozen");
    let (mut saved, mut loaded) = (model(1), model(2));
    let mut optimizer: AdamW = AdamW::new(AdamWOptions::default())?;
    step(&mut saved, &mut optimizer)?;
    nn::freeze(&mut saved, |path, _| path == "0.weight")?;
    step(&mut saved, &mut optimizer)?;
    safetensors::save_module(folder.file(), &saved)?;
    safetensors::load_module(folder.file(), &mut loaded)?;
    assert_eq!((frozen(&loaded).len(), values(&loaded)), (0, values(&saved)));
    nn::freeze(&mut loaded, |path, _| path.ends_with("weight"))?;
    safetensors::load_module(folder.file(), &mut loaded)?;
    assert_eq!(frozen(&loaded), ["0.weight", "2.weight"]);

    // The state has entries of a parameter that was frozen later, and none of one that was frozen from the start.
    let state = || TrainingState::new().with_model(&saved).with_optimizer(&optimizer);
    let mut other: AdamW = AdamW::new(AdamWOptions::default())?;
    state()?.restore(&mut loaded, &mut other)?;
    assert_eq!(frozen(&loaded), ["0.weight", "2.weight"]);
    step(&mut loaded, &mut other)?;
    let mut from_start = model(3);
    nn::freeze(&mut from_start, |path, _| path == "2.bias")?;
    let mut optimizer: AdamW = AdamW::new(AdamWOptions::default())?;
    step(&mut from_start, &mut optimizer)?;
    let state = TrainingState::new().with_model(&from_start).with_optimizer(&optimizer)?;
    state.clone().restore(&mut from_start, &mut optimizer)?;
    step(&mut from_start, &mut optimizer)?;
    let error = text(state.clone().restore(&mut model(4), &mut optimizer));
    assert!(error.contains("optimizer.2.bias") && error.contains("is missing"), "{error}");
    Ok(())
}

#[test]
fn a_checkpointed_function_of_a_frozen_parameter_is_run_again() -> Result<()> {
    let [mut w, x] = [1, 2].map(|seed| randn((3, 3), seed).requires_grad());
    nn::freeze(&mut w, |_, _| true)?;
    let plain = x.matmul(&w)?.sin()?.sum(None, false)?.backward()?;
    let kept = w.clone();
    let y = checkpoint_with(&[&x], move |xs| xs[0].matmul(&kept)?.sin())?;
    let again = y.sum(None, false)?.backward()?;
    assert_eq!(again.wrt(&x)?.to_vec::<f32>()?, plain.wrt(&x)?.to_vec::<f32>()?);
    assert_eq!(again.len(), 1);
    Ok(())
}

#[test]
fn ranks_exchange_frozen_parameters_too() {
    let train = |world: World| -> Result<_> {
        let mut model = model(world.rank() as u64);
        nn::freeze(&mut model, |path, _| path.starts_with("0."))?;
        let first = values(&model);
        let mut parallel = DataParallel::new(&world, &mut model, 3)?;
        parallel.check_model(&model)?;
        let options = AdamWOptions { learning_rate: 0.1, ..Default::default() };
        let mut optimizer = ShardedOptimizer::new(&world, options)?;
        let batch = (randn((6, 3), 5), randn((6, 2), 6));
        for _ in 0..2 {
            let mean = parallel.mean_gradients(&mut model, &batch, |model, micro| {
                loss::mse(&model.forward(&micro.data.0)?, &micro.data.1)
            })?;
            assert_eq!(mean.gradients.len(), 2);
            optimizer.step(&mut model, &mean.gradients)?;
        }
        assert_eq!(frozen(&model), ["0.weight", "0.bias"]);
        Ok((first, values(&model)))
    };
    let alone = train(World::local(1).unwrap().remove(0)).unwrap();
    for (first, last) in on_ranks(3, train).into_iter().map(Result::unwrap) {
        assert_eq!(last, alone.1);
        assert_eq!(last[..2], alone.0[..2]);
        assert_eq!(first.len(), last.len());
    }
}

#[test]
fn tied_parameters_are_frozen_together_and_stay_tied() -> Result<()> {
    struct Tied {
        table: Embedding,
        head: Linear,
        shared: Vec<Shared<Linear>>,
    }
    swath::module!(Tied: CpuBackend { table, head, shared });
    let rng = &mut Rng::seed(1);
    let table = Embedding::new(5, 4, rng)?;
    let head = Linear { weight: table.weight.clone(), bias: None };
    let shared = Shared::new(Linear::new(4, 4, rng)?);
    let mut model = Tied { table, head, shared: vec![shared.clone(), shared] };
    for path in ["table.weight", "head.weight"] {
        assert_eq!(nn::freeze(&mut model, |found, _| found == path)?, 1);
        assert!(model.table.weight.is_frozen() && model.head.weight.is_frozen());
        let before: Vec<_> = safetensors::module_tensors(&model);
        safetensors::restore_module(&mut model, before.into_iter().collect())?;
        assert_eq!(nn::summary(&model).parameters(), 20 + 20);
        assert_eq!(nn::summary(&model).frozen(), 20);
        nn::to_dtype(&mut model, DType::F64)?;
        nn::to_dtype(&mut model, DType::F32)?;
        assert_eq!(nn::summary(&model).frozen(), 20);
        assert_eq!(nn::unfreeze(&mut model, |found, _| found == "head.weight")?, 1);
        let y = model.table.weight.mul(&model.head.weight)?.sum(None, false)?;
        assert_eq!(y.backward()?.len(), 1);
    }
    assert_eq!(nn::freeze(&mut model, |path, _| path.starts_with("shared.1"))?, 2);
    assert_eq!(frozen(&model).len(), 4);
    assert_eq!(nn::unfreeze(&mut model, |path, _| path.starts_with("shared.0"))?, 2);
    assert_eq!(frozen(&model).len(), 0);
    let mut wrong = vec![model.head.weight.clone(), model.head.weight.exp()?];
    let error = text(nn::freeze(&mut wrong, |_, _| true));
    assert_eq!(error, "nn::freeze: `1` is the result of an operation, not a leaf");
    assert!(wrong[0].is_tracked());
    Ok(())
}

/// What changes a tensor in place, to `[10, 20]`.
const CHANGES: [fn(&mut T) -> Result<()>; 3] = [
    |x| x.mul_assign(10.0),
    |x| x.set_slice(s![..], &tensor![10.0, 20.0]),
    |x| x.as_slice_mut::<f32>().map(|values| values.copy_from_slice(&[10.0, 20.0])),
];

#[test]
fn a_frozen_parameter_that_is_changed_in_place_is_no_longer_tied() -> Result<()> {
    let folder = Scratch::new("untied");
    for change in CHANGES {
        let mut first = T::var("w", tensor![1.0, 2.0].data().clone());
        nn::freeze(&mut first, |_, _| true)?;
        let mut second = first.clone();
        // In memory of its own, which `as_slice_mut` asks for.
        let values = [(String::new(), tensor![1.0, 2.0])];
        safetensors::restore_module(&mut second, values.into_iter().collect())?;
        change(&mut second)?;
        assert_eq!((second.is_frozen(), second.name()), (true, Some("w")));
        let expected = [("0".to_owned(), vec![1.0, 2.0]), ("1".to_owned(), vec![10.0, 20.0])];

        let mut model = vec![first, second];
        assert_eq!(nn::summary(&model).frozen(), 4);
        safetensors::save_module(folder.file(), &model)?;
        safetensors::load_module(folder.file(), &mut model)?;
        assert_eq!(values_and_marks(&model), (expected.to_vec(), 2));
        nn::to_dtype(&mut model, DType::F64)?;
        assert_eq!(values_and_marks(&model), (expected.to_vec(), 2));
        assert_eq!(nn::unfreeze(&mut model, |path, _| path == "1")?, 1);
        assert_eq!(values_and_marks(&model), (expected.to_vec(), 1));
    }
    // A product with another dtype, and a change that is refused.
    let mut first = tensor![1.0, 2.0].requires_grad();
    nn::freeze(&mut first, |_, _| true)?;
    let mut second = first.clone();
    second.mul_assign(&tensor![1.0, 0.0].gt(0.5)?)?;
    assert!(second.is_frozen());
    let mut tied = vec![first.clone(), first];
    assert!(tied[1].mul_assign(randn(3, 1)).is_err() && tied[1].as_slice_mut::<f32>().is_err());
    assert!(tied[1].set_slice(s![..], randn(3, 1)).is_err());
    assert_eq!(nn::unfreeze(&mut tied, |_, _| true)?, 1);
    Ok(())
}

fn values_and_marks(model: &dyn nn::Visit<CpuBackend>) -> (Vec<(String, Vec<f64>)>, usize) {
    (values(model), frozen(model).len())
}

#[test]
fn a_shared_parameter_that_is_not_tracked_counts_once() -> Result<()> {
    let shared = Shared::new(Linear::new(3, 2, &mut Rng::seed(1))?);
    shared.write().weight = randn((2, 3), 5);
    let mut model = vec![shared.clone(), shared.clone()];
    assert_eq!(nn::freeze(&mut model, |path, _| path.ends_with("weight"))?, 1);
    assert!(shared.read().weight.is_frozen());
    shared.write().weight = randn((2, 3), 5);
    assert_eq!(nn::unfreeze(&mut model, |path, _| path == "1.weight")?, 1);
    assert!(shared.read().weight.is_tracked());
    Ok(())
}

/// A layer of which one field is declared, and one is not.
struct Scale<B: Backend> {
    factors: Vec<Option<Tensor<B>>>,
    table: Tensor<B>,
    constant: Tensor<B>,
    calls: nn::Buffer<B>,
}
swath::module!(Scale<B> { factors: parameter, table: parameter, constant, calls: counter });

fn scale() -> Scale<CpuBackend> {
    Scale {
        factors: vec![None, Some(randn(2, 1).requires_grad()), Some(randn(2, 2))],
        table: tensor![i64; 1, 2],
        constant: randn(2, 3),
        calls: nn::Buffer::new(tensor![i64; 0]),
    }
}

#[test]
fn a_parameter_that_is_not_tracked_is_an_error_of_the_step() -> Result<()> {
    let expected = |path: &str, shape: &str| {
        format!(
            "adamw: the parameter `{path}` of shape {shape} is not tracked; call requires_grad(), or nn::freeze if it \
             is not to be trained"
        )
    };
    let options = AdamWOptions::default();
    let mut model = scale();
    let x = model.factors[1].clone().unwrap();
    let grads = x.square()?.sum(None, false)?.backward()?;
    let before = values(&model);
    let error = text(AdamW::new(options)?.step(&mut model, &grads));
    assert_eq!(error, expected("factors.2", "[2]"));
    assert_eq!(values(&model), before);
    // Frozen, it is left as it is; what is not declared is a buffer.
    assert_eq!(nn::freeze(&mut model, |path, _| path == "factors.2" || path == "constant")?, 1);
    AdamW::new(options)?.step(&mut model, &grads)?;
    let after = values(&model);
    assert_ne!(after[0], before[0]);
    assert_eq!(after[1..], before[1..]);
    nn::unfreeze(&mut model, |path, _| path == "factors.2")?;
    assert!(model.factors[2].as_ref().unwrap().is_tracked());

    let mut layer: Linear = Linear::new(3, 2, &mut Rng::seed(1))?;
    layer.weight = randn((2, 3), 5);
    let grads = layer.forward(&randn((4, 3), 6))?.sum(None, false)?.backward()?;
    let mut nested = vec![layer];
    let error = text(AdamW::new(options)?.step(&mut nested, &grads));
    assert_eq!(error, expected("0.weight", "[2, 3]"));
    // unfreeze tracks it.
    assert_eq!(nn::unfreeze(&mut nested, |_, shape| shape.ndim() == 2)?, 1);
    assert!(nested[0].weight.is_tracked());
    Ok(())
}

#[test]
fn a_parameter_that_is_not_tracked_on_one_rank_is_an_error_on_all() {
    let found = on_ranks(3, |world| {
        let mut model: Linear = Linear::new(3, 2, &mut Rng::seed(1))?;
        let grads = model.forward(&randn((4, 3), 6))?.sum(None, false)?.backward()?;
        if world.rank() == 1 {
            model.weight = model.weight.detach();
        }
        ShardedOptimizer::new(&world, AdamWOptions::default())?.step(&mut model, &grads)
    });
    assert!(
        text(found[1].clone()).contains("`weight` of shape [2, 3] is not tracked"),
        "{found:?}"
    );
    for other in [&found[0], &found[2]] {
        assert!(matches!(other, Err(Error::Mismatch { rank: 1, .. })), "{found:?}");
    }
}

/// A field of counters and parameters.
struct Counted {
    layers: Vec<T>,
}
swath::module!(Counted: CpuBackend { layers: counter });

#[test]
fn parameters_in_a_field_of_counters_remain_parameters() -> Result<()> {
    let mut model =
        Counted { layers: vec![randn(2, 1).requires_grad(), randn(2, 2), tensor![i64; 0]] };
    let mut kinds = Vec::new();
    nn::for_each_tensor(&model, |_, _, kind| kinds.push(kind));
    assert_eq!(kinds, [Kind::Parameter, Kind::Buffer, Kind::Buffer]);
    assert_eq!(nn::freeze(&mut model, |_, _| true)?, 1);
    let mut counters = Vec::new();
    nn::for_each_counter(&model, |path| counters.push(path.to_owned()));
    assert_eq!(counters, ["layers.1", "layers.2"]);
    Ok(())
}

#[test]
fn the_summary_marks_what_is_not_trained() -> Result<()> {
    let mut model = scale();
    let kinds: Vec<_> =
        nn::summary(&model).rows.into_iter().map(|row| (row.kind, row.tracking)).collect();
    let (parameter, buffer) = (Kind::Parameter, Kind::Buffer);
    assert_eq!(
        kinds,
        [
            (parameter, Tracking::Tracked),
            (parameter, Tracking::Untracked),
            (buffer, Tracking::Untracked),
            (buffer, Tracking::Untracked),
            (buffer, Tracking::Untracked),
        ]
    );
    nn::freeze(&mut model, |path, _| path == "factors.1")?;
    assert_eq!(
        nn::summary(&model).to_string(),
        "\
path        shape  dtype  parameters  bytes
factors.1   [2]    f32             2      8  frozen
factors.2   [2]    f32             2      8  not tracked
table       [2]    i64        buffer     16
constant    [2]    f32        buffer      8
calls       [1]    i64        buffer      8
parameters                         4     16
buffers                            5     32
"
    );
    Ok(())
}

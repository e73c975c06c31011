//! Checkpointed functions: their gradients are those of plain runs bit for bit, to second order too; what
//! they call, keep, refuse and leave behind.

mod composed;
mod refused;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use swath::nn::{self, Module, TransformerBlock, TransformerBlockOptions};
use swath::prelude::*;
use swath::{is_recomputing, replayed};

use crate::gradcheck::cases::suite;
use crate::gradcheck::registry::recorded_ops;

type T = Tensor<CpuBackend>;

fn bits(x: &T) -> Vec<u64> {
    let wide = x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
    wide.iter().map(|x| x.to_bits()).collect()
}

fn total(x: &T) -> T {
    x.sum(None, false).unwrap()
}

fn leaf(values: &[f32]) -> T {
    T::from_slice(values, values.len()).unwrap().requires_grad()
}

/// Bits of the gradients of `Σ w y` by `xs`, and of the sum of their squares by `xs` again.
fn both_orders(y: &T, xs: &[&T]) -> Vec<Option<Vec<u64>>> {
    let weights = T::linspace(0.5, 1.5, y.numel()).unwrap().reshape(*y.shape()).unwrap();
    let loss = total(&y.mul(weights.to_dtype(y.dtype()).unwrap()).unwrap());
    let with = |create_graph| Backward { create_graph, retain_graph: true, ..Backward::default() };
    // A pass without create_graph takes other kernels.
    let plain = loss.backward_opts(with(false)).unwrap();
    let first = loss.backward_opts(with(true)).unwrap();
    let squares = xs.iter().filter_map(|x| Some(total(&first.get(x)?.square().unwrap())));
    let sum = squares.reduce(|a, b| a.add(b.to_dtype(a.dtype()).unwrap()).unwrap());
    let second = match sum.filter(T::is_tracked) {
        Some(sum) => sum.backward().unwrap(),
        None => Gradients::new(),
    };
    let of = |grads: &Gradients<CpuBackend>, x: &T| grads.get(x).map(bits);
    let all = [&plain, &first, &second];
    all.into_iter().flat_map(|grads| xs.iter().map(|x| of(grads, x))).collect()
}

#[test]
fn every_op_has_the_gradients_of_a_plain_run() {
    for op in recorded_ops() {
        for case in suite(op.name) {
            let leaves: Vec<T> = case.inputs.iter().map(T::requires_grad).collect();
            let xs: Vec<&T> = leaves.iter().collect();
            let plain = (case.f)(&leaves).unwrap();
            let weights = T::linspace(0.5, 1.5, plain.numel()).unwrap();
            let weights = weights.reshape(*plain.shape()).unwrap();
            let weights = weights.to_dtype(plain.dtype()).unwrap();
            let expected = plain.backward_with(&weights).unwrap();
            let expected_both = both_orders(&(case.f)(&leaves).unwrap(), &xs);
            let f = Arc::new(case.f);
            let checkpointed = || {
                let f = f.clone();
                checkpoint_with(&xs, move |xs: &[T]| f(xs)).unwrap()
            };
            let y = checkpointed();
            assert_eq!(bits(&y), bits(&plain), "{}", case.name);
            let grads = y.backward_with(&weights).unwrap();
            for x in &xs {
                assert_eq!(grads.get(x).map(bits), expected.get(x).map(bits), "{}", case.name);
            }
            assert_eq!(both_orders(&checkpointed(), &xs), expected_both, "{}", case.name);
        }
    }
}

fn block(dtype: DType, seed: u64) -> TransformerBlock {
    let options =
        TransformerBlockOptions { causal: true, dropout: 0.2, dtype, ..Default::default() };
    TransformerBlock::with_options(16, 4, options, &mut Rng::seed(seed)).unwrap()
}

fn parameters(model: &impl nn::Visit<CpuBackend>) -> Vec<T> {
    let mut found = Vec::new();
    nn::for_each_tensor(model, |_, tensor, kind| {
        if kind == nn::Kind::Parameter {
            found.push(tensor.clone());
        }
    });
    found
}

/// All buffers: seeds and steps of the dropouts.
fn buffers(model: &impl nn::Visit<CpuBackend>) -> Vec<u64> {
    let mut found = Vec::new();
    nn::for_each_tensor(model, |_, tensor, kind| {
        if kind == nn::Kind::Buffer {
            found.extend(bits(tensor));
        }
    });
    found
}

#[test]
fn a_transformer_block_with_dropout_is_that_of_a_plain_run() {
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        let x = T::randn((2, 6, 16), &mut Rng::seed(3)).unwrap().to_dtype(dtype).unwrap();
        let x = x.requires_grad();
        let plain = block(dtype, 1);
        let held = Arc::new(block(dtype, 1));
        let checkpointed = |x: &T| {
            let block = held.clone();
            checkpoint_with(&[x], move |xs: &[T]| block.forward(&xs[0])).unwrap()
        };
        // The second round finds the dropouts a step further.
        for _ in 0..2 {
            let (expected, found) = (plain.forward(&x).unwrap(), checkpointed(&x));
            assert_eq!(bits(&found), bits(&expected));
            let (expected, found) =
                (total(&expected).backward().unwrap(), total(&found).backward().unwrap());
            assert_eq!(bits(found.wrt(&x).unwrap()), bits(expected.wrt(&x).unwrap()));
            let pairs = parameters(&plain).into_iter().zip(parameters(&*held));
            for (a, b) in pairs {
                assert_eq!(bits(found.wrt(&b).unwrap()), bits(expected.wrt(&a).unwrap()));
            }
            assert_eq!(buffers(&plain), buffers(&*held));
        }
        let all = |x: &T, block: &TransformerBlock| -> Vec<T> {
            [vec![x.clone()], parameters(block)].concat()
        };
        let (a, b) = (all(&x, &plain), all(&x, &held));
        let expected = both_orders(&plain.forward(&x).unwrap(), &a.iter().collect::<Vec<_>>());
        let found = both_orders(&checkpointed(&x), &b.iter().collect::<Vec<_>>());
        assert_eq!(found, expected);
    }
}

/// One layer at two places, inside and outside, and its weight in the loss as well.
#[test]
fn a_parameter_used_everywhere_adds_up_in_the_plain_order() {
    let x = T::randn((3, 16), &mut Rng::seed(5)).unwrap().requires_grad();
    let layer = Arc::new(nn::Linear::new(16, 16, &mut Rng::seed(6)).unwrap());
    let segment = |x: &T| {
        let y = layer.forward(x)?.gelu()?.add(x)?;
        layer.forward(&y)?.mul(x)
    };
    let loss = |middle: &dyn Fn(&T) -> T| {
        let before = layer.forward(&x).unwrap();
        let after = layer.forward(&middle(&before)).unwrap();
        total(&after.add(&before).unwrap().add(layer.weight.sum(None, false).unwrap()).unwrap())
    };
    let expected = loss(&|x| segment(x).unwrap()).backward().unwrap();
    let checkpointed = |x: &T| {
        let layer = layer.clone();
        let f = move |xs: &[T]| {
            let y = layer.forward(&xs[0])?.gelu()?.add(&xs[0])?;
            layer.forward(&y)?.mul(&xs[0])
        };
        checkpoint_with(&[x], f).unwrap()
    };
    let found = loss(&checkpointed).backward().unwrap();
    let bias = layer.bias.as_ref().unwrap();
    for tensor in [&x, &layer.weight, bias] {
        assert_eq!(bits(found.wrt(tensor).unwrap()), bits(expected.wrt(tensor).unwrap()));
    }
}

/// A function that counts its runs.
fn counted<Y>(
    calls: &Arc<AtomicUsize>,
    f: impl Fn(&[T]) -> Result<Y> + Send + Sync + 'static,
) -> impl Fn(&[T]) -> Result<Y> + Send + Sync + 'static {
    let calls = calls.clone();
    move |xs| {
        calls.fetch_add(1, Relaxed);
        f(xs)
    }
}

#[test]
fn nested_functions_run_once_a_level() {
    let x = leaf(&[0.3, -0.7, 1.1]);
    let inner = |x: &T| x.sin()?.mul(x);
    let outer = |x: &T| inner(&inner(&x.exp()?)?)?.mul(x);
    let expected = both_orders(&outer(&x).unwrap(), &[&x]);
    let [inner_calls, outer_calls] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let checkpointed = || {
        let inner_calls = inner_calls.clone();
        let f = counted(&outer_calls, move |xs: &[T]| {
            let inner =
                |x: &T| checkpoint_with(&[x], counted(&inner_calls, |xs| xs[0].sin()?.mul(&xs[0])));
            inner(&inner(&xs[0].exp()?)?)?.mul(&xs[0])
        });
        checkpoint_with(&[&x], f).unwrap()
    };
    assert_eq!(both_orders(&checkpointed(), &[&x]), expected);
    inner_calls.store(0, Relaxed);
    outer_calls.store(0, Relaxed);
    total(&checkpointed()).backward().unwrap();
    // Inner functions run in both runs of the outer one, and once more for themselves.
    assert_eq!((outer_calls.load(Relaxed), inner_calls.load(Relaxed)), (2, 6));
}

#[test]
fn several_outputs_share_one_replay() {
    let x = leaf(&[0.5, -1.5, 2.0]);
    let w = leaf(&[1.0, 2.0, -1.0]);
    let f = |x: &T, w: &T| -> Result<(T, Vec<T>)> {
        let middle = x.mul(w)?.tanh()?;
        Ok((middle.exp()?, vec![middle.mul(x)?, middle.clone(), x.clone(), middle]))
    };
    type Loss = fn(&T, &[T]) -> Result<T>;
    let losses: [(Loss, usize); 5] = [
        (|a, b| a.mul(&b[0])?.add(&b[1])?.add(&b[3])?.mul(&b[2]), 1),
        (|a, _| a.square(), 1),
        (|_, b| b[0].square(), 1),
        (|_, b| b[1].mul(&b[3]), 1),
        (|_, b| b[2].exp(), 0),
    ];
    for (i, (loss, replays)) in losses.into_iter().enumerate() {
        let (a, b) = f(&x, &w).unwrap();
        let expected = total(&loss(&a, &b).unwrap()).backward().unwrap();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = counted(&calls, move |xs: &[T]| f(&xs[0], &xs[1]));
        let (a, b) = checkpoint_with(&[&x, &w], counted).unwrap();
        let found = total(&loss(&a, &b).unwrap()).backward().unwrap();
        for x in [&x, &w] {
            assert_eq!(found.get(x).map(bits), expected.get(x).map(bits), "loss {i}");
        }
        assert_eq!(calls.load(Relaxed), 1 + replays, "loss {i}");
    }
    // One pass releases all outputs that it visits, and what the function holds.
    let held = Arc::new(());
    let keep = held.clone();
    let pair = move |xs: &[T]| {
        let _ = &keep;
        Ok((xs[0].exp()?, xs[0].sin()?))
    };
    let (a, b) = checkpoint_with(&[&x], pair).unwrap();
    assert_eq!(Arc::strong_count(&held), 2);
    total(&a.mul(&b).unwrap()).backward().unwrap();
    assert_eq!(Arc::strong_count(&held), 1);
    for output in [a, b] {
        assert!(matches!(total(&output).backward(), Err(Error::GraphReleased { .. })));
    }
    // Arrays, and outputs that are not tracked.
    let [mask, y] = checkpoint_with(&[&x], |xs: &[T]| Ok([xs[0].gt(0.0)?, xs[0].exp()?])).unwrap();
    assert!(!mask.is_tracked());
    assert_eq!(bits(total(&y).backward().unwrap().wrt(&x).unwrap()), bits(&y));
}

#[test]
fn tuples_of_two_to_four_are_outputs() -> Result<()> {
    let x = leaf(&[1.0, 2.0]);
    let (a, (b, c, d), e, f) = checkpoint_with(&[&x], |xs: &[T]| {
        let y = |k: f64| xs[0].mul(k);
        Ok((y(1.0)?, (y(10.0)?, y(100.0)?, y(1e3)?), [y(1e4)?], vec![y(1e5)?]))
    })?;
    let outputs = [&a, &b, &c, &d, &e[0], &f[0]];
    let sum = outputs.into_iter().try_fold(x.clone(), |sum, y| sum.add(y))?;
    assert_eq!(total(&sum).backward()?.wrt(&x)?.to_vec::<f32>()?, [111_112.0; 2]);
    Ok(())
}

#[test]
fn captured_tensors_have_their_gradients() {
    let (x, w) = (leaf(&[1.0, 2.0]), leaf(&[0.5, -0.5]));
    let middle = w.exp().unwrap();
    let expected = total(&x.mul(&middle).unwrap().add(&w).unwrap()).backward().unwrap();
    let (x1, w1, middle) = (x.clone(), w.clone(), w.exp().unwrap());
    // None of them is declared.
    let y = checkpoint(move || x1.mul(&middle)?.add(&w1), &[]).unwrap();
    let found = total(&y).backward().unwrap();
    for x in [&x, &w] {
        assert_eq!(bits(found.wrt(x).unwrap()), bits(expected.wrt(x).unwrap()));
    }
    // By one of them only.
    let (x1, middle) = (x.clone(), w.exp().unwrap());
    let y = checkpoint(move || x1.mul(&middle)?.sum(None, false), &[&x]).unwrap();
    let by_w = grad(&y, &[&w], false).unwrap().remove(0);
    assert_eq!(bits(&by_w), bits(&x.mul(w.exp().unwrap()).unwrap()));
}

#[test]
fn options_of_a_pass_hold_for_what_it_replays() {
    let x = leaf(&[0.5, 1.5]);
    let calls = Arc::new(AtomicUsize::new(0));
    let f = |x: &T| x.square()?.mul(x);
    let y = checkpoint_with(&[&x], counted(&calls, move |xs| f(&xs[0]))).unwrap();
    y.retain_grad();
    let loss = total(&y.square().unwrap());
    let plain = f(&x).unwrap();
    plain.retain_grad();
    let expected = total(&plain.square().unwrap()).backward().unwrap();
    let retain = Backward { retain_graph: true, ..Backward::default() };
    for round in 1..=3 {
        let grads = loss.backward_opts(retain).unwrap();
        assert_eq!(bits(grads.wrt(&x).unwrap()), bits(expected.wrt(&x).unwrap()));
        assert_eq!(bits(grads.wrt(&y).unwrap()), bits(expected.wrt(&plain).unwrap()));
        assert_eq!(calls.load(Relaxed), 1 + round);
    }
    assert_eq!(bits(&grad(&loss, &[&y], true).unwrap()[0]), bits(expected.wrt(&plain).unwrap()));
    loss.backward().unwrap();
    assert!(matches!(loss.backward(), Err(Error::GraphReleased { .. })));
    assert!(matches!(total(&y).backward(), Err(Error::GraphReleased { .. })));
}

#[test]
fn masks_and_modes_are_those_of_the_first_run() {
    let x = T::ones(1000, DType::F32).unwrap().requires_grad();
    let mut dropout = Arc::new(nn::Dropout::new(0.5, &mut Rng::seed(1)).unwrap());
    for training in [true, false] {
        Module::<CpuBackend>::set_training(&mut dropout, training);
        let layer = dropout.clone();
        let y = checkpoint_with(&[&x], move |xs: &[T]| layer.forward(&layer.forward(&xs[0])?));
        let y = y.unwrap();
        // Another call, and another mode, before the replay.
        dropout.forward(&x).unwrap();
        Module::<CpuBackend>::set_training(&mut dropout, !training);
        let before = buffers(&*dropout);
        assert_eq!(bits(total(&y).backward().unwrap().wrt(&x).unwrap()), bits(&y));
        assert_eq!(buffers(&*dropout), before);
    }
    // Values of a generator.
    let rng = std::sync::Mutex::new(Rng::seed(4));
    let y = checkpoint_with(&[&x], move |xs: &[T]| {
        let seed = replayed(|| rng.lock().unwrap().next_u64());
        xs[0].mul(T::randn(1000, &mut Rng::seed(seed))?)
    });
    let y = y.unwrap();
    assert_eq!(bits(total(&y).backward().unwrap().wrt(&x).unwrap()), bits(&y));
}

#[test]
fn layers_run_in_segments() {
    let x = T::randn((4, 8), &mut Rng::seed(7)).unwrap().requires_grad();
    let make = || {
        let rng = &mut Rng::seed(8);
        let mut layers: Vec<Arc<dyn Module<CpuBackend>>> = Vec::new();
        for _ in 0..3 {
            layers.push(Arc::new(nn::Linear::new(8, 8, rng).unwrap()));
            layers.push(Arc::new(nn::Activation::Gelu));
            layers.push(Arc::new(nn::Dropout::new(0.3, rng).unwrap()));
        }
        layers
    };
    let plain_layers = make();
    let weights = |layers: &[Arc<dyn Module<CpuBackend>>]| -> Vec<T> {
        layers.iter().flat_map(parameters).chain([x.clone()]).collect()
    };
    let plain = plain_layers.iter().try_fold(x.clone(), |x, layer| layer.forward(&x)).unwrap();
    let expected = total(&plain).backward().unwrap();
    for segments in [1, 2, 4, 9, 100] {
        let layers = make();
        let y = checkpoint_sequential(&x, &layers, segments).unwrap();
        assert_eq!(bits(&y), bits(&plain));
        let found = total(&y).backward().unwrap();
        assert_eq!(found.len(), expected.len());
        for (a, b) in weights(&plain_layers).iter().zip(&weights(&layers)) {
            assert_eq!(bits(found.wrt(b).unwrap()), bits(expected.wrt(a).unwrap()));
        }
    }
    let functions: [fn(&T) -> Result<T>; 2] = [|x| x.exp(), |x| x.sin()];
    let y = checkpoint_sequential(&x, &functions, 2).unwrap();
    let expected = total(&x.exp().unwrap().sin().unwrap()).backward().unwrap();
    assert_eq!(
        bits(total(&y).backward().unwrap().wrt(&x).unwrap()),
        bits(expected.wrt(&x).unwrap())
    );
    type Function = Arc<dyn Fn(&T) -> Result<T> + Send + Sync>;
    let weight = leaf(&[2.0]);
    let held = weight.clone();
    let functions: Vec<Function> = vec![Arc::new(move |x| x.mul(&held)), Arc::new(|x| x.tanh())];
    let y = checkpoint_sequential(&x, &functions, 1).unwrap();
    assert_eq!(total(&y).backward().unwrap().len(), 2);
    let none: [fn(&T) -> Result<T>; 0] = [];
    assert_eq!(bits(&checkpoint_sequential(&x, &none, 3).unwrap()), bits(&x));
}

#[test]
fn runs_know_which_they_are() {
    let x = leaf(&[1.0]);
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = seen.clone();
    let y = checkpoint_with(&[&x], move |xs: &[T]| {
        let modes = || (is_checkpointing(), is_recomputing());
        log.lock().unwrap().extend([modes(), no_grad(modes)]);
        xs[0].exp()
    });
    y.unwrap().backward().unwrap();
    let expected = [(true, false), (true, false), (false, true), (false, true)];
    assert_eq!(*seen.lock().unwrap(), expected);
    // Where nothing is recorded, nothing is replayed.
    let y = no_grad(|| {
        checkpoint_with(&[&x], |xs: &[T]| {
            assert!(!is_checkpointing() && !is_recomputing());
            xs[0].exp()
        })
    });
    assert!(!y.unwrap().is_tracked());
    let constant = checkpoint_with(&[&x.detach()], |xs: &[T]| xs[0].exp()).unwrap();
    assert!(!constant.is_tracked());
}

/// Running statistics move once a step, and the mode is that of the first run.
#[test]
fn batch_norm_counts_a_batch_once() {
    let x = T::randn((4, 3, 2, 2), &mut Rng::seed(3)).unwrap().requires_grad();
    let plain = nn::BatchNorm2d::<CpuBackend>::new(3).unwrap();
    let mut held = Arc::new(nn::BatchNorm2d::<CpuBackend>::new(3).unwrap());
    let square = |y: T| total(&y.square().unwrap().mul(&x).unwrap()).backward().unwrap();
    for _ in 0..2 {
        let expected = square(plain.forward(&x).unwrap());
        let layer = held.clone();
        let y = checkpoint_with(&[&x], move |xs: &[T]| layer.forward(&xs[0])).unwrap();
        Module::<CpuBackend>::set_training(&mut held, false);
        let found = square(y);
        Module::<CpuBackend>::set_training(&mut held, true);
        assert_eq!(bits(found.wrt(&x).unwrap()), bits(expected.wrt(&x).unwrap()));
        assert_eq!(buffers(&*held), buffers(&plain));
    }
}

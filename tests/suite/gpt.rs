//! The transformer of the example `train_gpt`: its gradient against finite differences, and its training
//! against PyTorch's.

use std::collections::BTreeMap;
use std::path::Path;

use swath::io::safetensors::{load, restore_module};
use swath::nn::{self, Module};
use swath::optim::{self, AdamW, AdamWOptions, Optimizer, clip_grad_norm};
use swath::prelude::*;

use crate::support::gpt::{Gpt, Sizes};

type T = Tensor<CpuBackend>;

const SIZES: Sizes =
    Sizes { vocabulary: 7, width: 8, layers: 2, heads: 2, context: 5, dropout: 0.0 };

/// Makes a model of these parameters.
fn gpt_of(parameters: &[T]) -> Result<Gpt> {
    let mut model: Gpt = Gpt::new(SIZES, &mut Rng::seed(0))?;
    let mut parameters = parameters.iter();
    nn::for_each_tensor_mut(&mut model, |_, tensor, kind| {
        if kind == nn::Kind::Parameter {
            *tensor = parameters.next().expect("as many as the model has").clone();
        }
        Ok(())
    })?;
    Ok(model)
}

#[test]
fn the_gradient_of_every_parameter_agrees_with_finite_differences() {
    let mut rng = Rng::seed(5);
    let model: Gpt = Gpt::new(SIZES, &mut rng).unwrap();
    let mut parameters = Vec::new();
    nn::for_each_tensor(&model, |_, tensor, kind| {
        if kind == nn::Kind::Parameter {
            // Noise, because the parameters of an untrained model are small.
            let noise = rng.normal_vec::<f64>(tensor.numel()).unwrap();
            let noise = T::from_vec(noise, *tensor.shape()).unwrap().mul_scalar(0.3).unwrap();
            let wide = tensor.detach().to_dtype(DType::F64).unwrap();
            parameters.push(wide.add(&noise).unwrap());
        }
    });
    assert_eq!(parameters.len(), 2 + 2 * 12 + 3);
    let token = |i: i64| (3 * i + i / 4) % 7;
    let ids = T::from_vec((0..10).map(token).collect::<Vec<i64>>(), (2, 5)).unwrap();
    let targets = T::from_vec((1..11).map(token).collect::<Vec<i64>>(), (2, 5)).unwrap();
    let loss = |parameters: &[T]| gpt_of(parameters)?.loss(&ids, &targets);
    let inputs: Vec<&T> = parameters.iter().collect();
    let options = GradCheck { directions: 4, ..GradCheck::default() };
    check_gradients(loss, &inputs, options).unwrap();
}

/// Mean of the targets' negative log-probabilities, computed from the logits one by one.
#[test]
fn the_loss_is_the_mean_cross_entropy_of_the_next_characters() {
    let model: Gpt = Gpt::new(SIZES, &mut Rng::seed(6)).unwrap();
    let ids = tensor![i64; [1, 2, 3, 4, 5], [6, 0, 6, 0, 6]];
    let targets = tensor![i64; [2, 3, 4, 5, 6], [0, 6, 0, 6, 0]];
    let loss = model.loss(&ids, &targets).unwrap().item::<f32>().unwrap();
    let logits = model.forward(&ids).unwrap().to_vec::<f32>().unwrap();
    let targets = targets.to_vec::<i64>().unwrap();
    let costs = logits.chunks(7).zip(&targets).map(|(row, &target)| {
        let total: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
        total.ln() - f64::from(row[target as usize])
    });
    let expected = costs.sum::<f64>() / 10.0;
    assert!((f64::from(loss) - expected).abs() < 1e-6, "{loss} {expected}");
}

#[test]
fn logits_of_a_position_do_not_depend_on_later_positions() {
    let model: Gpt = Gpt::new(SIZES, &mut Rng::seed(7)).unwrap();
    let logits = |ids: &T| model.forward(ids).unwrap().to_vec::<f32>().unwrap();
    let a = logits(&tensor![i64; [1, 2, 3, 4, 5]]);
    let b = logits(&tensor![i64; [1, 2, 3, 0, 0]]);
    assert_eq!(a[..3 * 7], b[..3 * 7]);
    assert_ne!(a[3 * 7..], b[3 * 7..]);
    // The logits of a prefix are the same.
    assert_eq!(logits(&tensor![i64; [1, 2, 3]]), a[..3 * 7]);
}

/// `tests/vectors/make_gpt.py` writes the weights, the batches and PyTorch's losses.
fn check_first_losses<B: Backend>() -> Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/gpt.safetensors");
    let mut tensors = load::<B>(file)?;
    let losses = tensors.remove("losses").unwrap().to_vec::<f64>()?;
    let batches = tensors.remove("batches").unwrap();
    let sizes = Sizes { vocabulary: 13, width: 16, layers: 2, heads: 2, context: 8, dropout: 0.0 };
    let mut model = Gpt::<B>::new(sizes, &mut Rng::seed(8))?;
    let mut weights: BTreeMap<String, Tensor<B>> = tensors
        .into_iter()
        .map(|(name, x)| {
            (name.strip_prefix("weights.").expect("only weights are left").to_owned(), x)
        })
        .collect();
    // The file has no counters of dropout, which PyTorch lacks.
    nn::for_each_tensor(&model, |path, tensor, kind| {
        if kind == nn::Kind::Buffer {
            weights.insert(path.to_owned(), tensor.clone());
        }
    });
    restore_module(&mut model, weights)?;
    let options = AdamWOptions {
        learning_rate: 1e-2,
        betas: [0.9, 0.95],
        weight_decay: 0.1,
        decays: optim::matrices,
        ..AdamWOptions::default()
    };
    let mut optimizer = AdamW::new(options)?;
    for (step, expected) in losses.iter().enumerate() {
        let batch = batches.slice(s![step])?;
        let (ids, targets) = (batch.slice(s![.., ..8])?, batch.slice(s![.., 1..])?);
        let loss = model.loss(&ids, &targets)?;
        let value = f64::from(loss.item::<f32>()?);
        let error = (value / expected - 1.0).abs();
        assert!(error < 1e-4, "step {step}: {value}, PyTorch {expected}, relative error {error:e}");
        let mut gradients = loss.backward()?;
        clip_grad_norm(&model, &mut gradients, 1.0)?;
        optimizer.step(&mut model, &gradients)?;
    }
    assert!(losses[19] < 0.5 * losses[0], "the losses do not fall, so the comparison is vacuous");
    Ok(())
}

#[test]
fn the_first_20_losses_match_pytorch() {
    check_first_losses::<CpuBackend>().unwrap();
}

/// The reference backend has only the required methods of a backend; everything else is composed of them.
#[test]
fn a_backend_without_kernels_trains_to_the_same_losses() {
    check_first_losses::<ReferenceBackend>().unwrap();
}

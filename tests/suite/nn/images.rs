//! Layers of images: a network of PyTorch's, loaded from a file and trained, initial values, running
//! statistics, names.

use swath::PoolOptions;
use swath::io::safetensors::{load_module, save_module};
use swath::nn::{
    self, Activation, AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveMaxPool1d, AdaptiveMaxPool2d,
    AvgPool1d, AvgPool2d, BatchNorm1d, BatchNorm2d, BatchNormOptions, Conv1d, Conv2d,
    ConvLayerOptions, ConvTranspose1d, ConvTranspose2d, Flatten, GroupNorm, GroupNormOptions, Kind,
    Linear, MaxPool1d, MaxPool2d, Sequential,
};
use swath::optim::{Optimizer, Sgd, SgdOptions};
use swath::prelude::*;

use super::{T, parameters, paths, randn};
use crate::images::vectors;
use crate::support::files::Scratch;

fn rng() -> Rng {
    Rng::seed(7)
}

/// The model of tests/vectors/make_images.py.
fn cnn() -> Result<Sequential> {
    let mut rng = rng();
    let first = ConvOptions { padding: Padding::Zeros([1, 1]), ..Default::default() };
    let second = ConvOptions { stride: [2, 2], groups: 2, ..first };
    let up = ConvTransposeOptions { stride: [2, 2], ..Default::default() };
    let options = ConvLayerOptions { conv: first, ..Default::default() };
    let halving = ConvLayerOptions { conv: second, bias: false, ..Default::default() };
    let doubling = ConvLayerOptions { conv: up, ..Default::default() };
    let overlapping = PoolOptions { stride: Some([1, 1]), ..PoolOptions::new([2, 2]) };
    let quick = BatchNormOptions { eps: 1e-3, momentum: 0.3, ..Default::default() };
    Ok(Sequential::new()
        .push(Conv2d::with_options(2, 4, [3, 3], options, &mut rng)?)
        .push(BatchNorm2d::new(4)?)
        .push(Activation::Relu)
        .push(MaxPool2d(PoolOptions::new([2, 2])))
        .push(Conv2d::with_options(4, 6, [3, 3], halving, &mut rng)?)
        .push(GroupNorm::new(3, 6)?)
        .push(Activation::Relu)
        .push(ConvTranspose2d::with_options(6, 3, [2, 2], doubling, &mut rng)?)
        .push(AvgPool2d(overlapping))
        .push(AdaptiveAvgPool2d([2, 2]))
        .push(Flatten)
        .push(Linear::new(12, 5, &mut rng)?)
        .push(BatchNorm1d::with_options(5, quick)?)
        .push(Activation::Tanh)
        .push(Linear::new(5, 3, &mut rng)?))
}

fn close(what: &str, x: &T, expected: &T, tolerance: f64) {
    assert_eq!(x.shape(), expected.shape(), "{what}");
    let wide = |x: &T| x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
    for (i, (x, y)) in wide(x).iter().zip(wide(expected)).enumerate() {
        let allowed = tolerance * y.abs().max(1.0);
        assert!((x - y).abs() <= allowed, "{what}, element {i}: {x} instead of {y}");
    }
}

/// The file has PyTorch's names of parameters and buffers. Losses, gradients, running statistics and the output
/// in evaluation, after three steps.
#[test]
fn a_network_of_pytorch_is_loaded_and_trained() -> Result<()> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/cnn.safetensors");
    let vectors = vectors();
    for (dtype, tolerance) in [(DType::F64, 1e-11), (DType::F32, 2e-5)] {
        let mut model = cnn()?;
        load_module(file, &mut model)?;
        nn::to_dtype(&mut model, dtype)?;
        let mut sgd = Sgd::new(SgdOptions { learning_rate: 0.05, ..Default::default() })?;
        let mut losses = Vec::new();
        let mut grads = Gradients::new();
        let mut leaves = Vec::new();
        for step in 0..3 {
            let x = vectors.input(&format!("cnn/x{step}"), dtype);
            let classes = vectors.get(&format!("cnn/classes{step}"));
            let loss = model.forward(&x)?.cross_entropy(classes, CrossEntropy::default())?;
            losses.push(loss.to_dtype(DType::F64)?.item::<f64>()?);
            (grads, leaves) = (loss.backward()?, parameters(&model));
            sgd.step(&mut model, &grads)?;
        }
        let losses = T::from_vec(losses, 3)?;
        close("losses", &losses, vectors.get("cnn/losses"), tolerance);
        for (path, leaf) in &leaves {
            let expected = vectors.get(&format!("cnn/grad/{path}"));
            close(&format!("{dtype}, {path}"), grads.wrt(leaf)?, expected, tolerance);
        }
        nn::for_each_tensor(&model, |path, x, kind| {
            if kind == Kind::Buffer {
                let expected = vectors.get(&format!("cnn/buffer/{path}"));
                close(&format!("{dtype}, {path}"), x, expected, tolerance);
            }
        });
        model.set_training(false);
        let x = vectors.input("cnn/x2", dtype);
        close("evaluation", &model.forward(&x)?, vectors.get("cnn/y"), tolerance);
        // Nothing was taken into the statistics.
        assert_eq!(model.forward(&x)?.to_dtype(DType::F64)?.dims(), [4, 3]);
    }
    Ok(())
}

#[test]
fn running_statistics_come_back_from_a_file() -> Result<()> {
    let folder = Scratch::new("batch-norm-statistics");
    let path = folder.0.join("model.safetensors");
    let model = cnn()?;
    for seed in 0..4 {
        model.forward(&randn((3, 2, 6, 6), seed))?;
    }
    save_module(&path, &model)?;
    let mut other = cnn()?;
    load_module(&path, &mut other)?;
    let mut buffers = Vec::new();
    nn::for_each_tensor(&model, |path, x, kind| {
        if kind == Kind::Buffer {
            buffers
                .push((path.to_owned(), x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()));
        }
    });
    nn::for_each_tensor(&other, |path, x, kind| {
        if kind == Kind::Buffer {
            let x = x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
            assert_eq!((path.to_owned(), x), buffers.remove(0));
        }
    });
    assert!(buffers.is_empty());
    Ok(())
}

/// In evaluation, and without gradients in training, layers neither change nor track their buffers.
#[test]
fn batch_norm_changes_its_buffers_in_training_alone() -> Result<()> {
    let mut norm =
        BatchNorm1d::with_options(2, BatchNormOptions { affine: false, ..Default::default() })?;
    assert_eq!(paths(&norm), ["running_mean", "running_var", "num_batches_tracked"]);
    let x = tensor![[1.0, 2.0], [3.0, 6.0]].requires_grad();
    assert!(norm.is_training() && norm.forward(&x)?.is_tracked());
    let buffers = |norm: &BatchNorm1d| {
        [&norm.running_mean, &norm.running_var].map(|buffer| buffer.get().to_vec::<f32>().unwrap())
    };
    // 0.1 of the mean, and 0.9 and 0.1 of the unbiased variance.
    let after = buffers(&norm);
    let expected = [0.2, 0.4, 0.9 + 0.2, 0.9 + 0.8];
    assert!(after.concat().iter().zip(expected).all(|(a, b): (&f32, f32)| (a - b).abs() < 1e-6));
    assert!(!norm.running_mean.get().is_tracked());
    Module::<CpuBackend>::set_training(&mut norm, false);
    let y = norm.forward(&x)?;
    assert_eq!((buffers(&norm), norm.num_batches_tracked.get().item::<i64>()?), (after, 1));
    assert!((y.to_vec::<f32>()?[0] - 0.8 / 1.10001f32.sqrt()).abs() < 1e-6);

    let error = |y: Result<T>| y.unwrap_err().to_string();
    Module::<CpuBackend>::set_training(&mut norm, true);
    let one = T::zeros((1, 2), DType::F32)?;
    assert!(error(norm.forward(&one)).contains("[1, 2]: training needs more than one value"));
    assert!(error(norm.forward(&T::zeros((1, 2, 3, 4), DType::F32)?)).contains("expected 2 or 3"));
    let norm = BatchNorm2d::new(2)?;
    assert!(error(norm.forward(&one)).contains("expected 4 axes"));
    Ok(())
}

/// Uniform in `±bound`, up to nearly the bound.
fn assert_uniform(x: &T, bound: f64) {
    let largest = x.abs().unwrap().max(None, false).unwrap().item::<f32>().unwrap();
    assert!(
        f64::from(largest) <= bound && f64::from(largest) > 0.95 * bound,
        "{largest} of {bound}"
    );
}

#[test]
fn convolutions_begin_as_pytorchs() -> Result<()> {
    let mut rng = rng();
    let grouped = ConvOptions { groups: 4, ..Default::default() };
    let options = ConvLayerOptions { conv: grouped, ..Default::default() };
    let conv: Conv2d = Conv2d::with_options(16, 64, [3, 3], options, &mut rng)?;
    assert_eq!((conv.weight.dims(), parameters(&conv).len()), (&[64, 4, 3, 3][..], 2));
    assert_uniform(&conv.weight, 1.0 / 6.0);
    assert_uniform(conv.bias.as_ref().unwrap(), 1.0 / 6.0);
    let conv: Conv1d = Conv1d::new(5, 40, [5], &mut rng)?;
    assert_eq!(conv.weight.dims(), [40, 5, 5]);
    assert_uniform(&conv.weight, 0.2);
    // The fan-in of a transposed convolution is counted along its second axis, the outputs.
    let options = ConvLayerOptions {
        conv: ConvTransposeOptions { groups: 2, ..Default::default() },
        dtype: DType::F32,
        bias: true,
    };
    let conv: ConvTranspose2d = ConvTranspose2d::with_options(10, 50, [2, 2], options, &mut rng)?;
    assert_eq!(
        (conv.weight.dims(), conv.bias.as_ref().unwrap().dims()),
        (&[10, 25, 2, 2][..], &[50][..])
    );
    assert_uniform(&conv.weight, 0.1);
    assert_uniform(conv.bias.as_ref().unwrap(), 0.1);
    let conv: ConvTranspose1d = ConvTranspose1d::new(10, 25, [4], &mut rng)?;
    assert_eq!(conv.weight.dims(), [10, 25, 4]);
    let wrong =
        ConvLayerOptions { conv: ConvOptions { groups: 3, ..grouped }, ..Default::default() };
    let error = Conv2d::<CpuBackend>::with_options(16, 63, [1, 1], wrong, &mut rng).unwrap_err();
    assert!(error.to_string().contains("3 groups do not divide 63 and 16 channels"), "{error}");
    let norm: BatchNorm2d = BatchNorm2d::new(3)?;
    assert_eq!(
        paths(&norm),
        ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    );
    let plain = GroupNormOptions { affine: false, ..Default::default() };
    assert!(parameters(&GroupNorm::<CpuBackend>::with_options(2, 4, plain)?).is_empty());
    Ok(())
}

/// Layers are the methods of their names.
#[test]
fn layers_are_the_methods_of_their_names() -> Result<()> {
    let (line, image) = (randn((2, 3, 8), 1), randn((2, 3, 8, 6), 2));
    let (one, two) = (PoolOptions::new([3]), PoolOptions::new([3, 2]));
    let same = |x: Result<T>, y: Result<T>| {
        assert_eq!(x.unwrap().to_vec::<f32>().unwrap(), y.unwrap().to_vec::<f32>().unwrap());
    };
    same(MaxPool1d(one).forward(&line), line.max_pool1d(one));
    same(AvgPool1d(one).forward(&line), line.avg_pool1d(one));
    same(MaxPool2d(two).forward(&image), image.max_pool2d(two));
    same(AvgPool2d(two).forward(&image), image.avg_pool2d(two));
    same(AdaptiveAvgPool1d(3).forward(&line), line.adaptive_avg_pool1d(3));
    same(AdaptiveAvgPool2d([3, 5]).forward(&image), image.adaptive_avg_pool2d([3, 5]));
    same(AdaptiveMaxPool1d(3).forward(&line), line.adaptive_max_pool1d(3));
    same(AdaptiveMaxPool2d([3, 5]).forward(&image), image.adaptive_max_pool2d([3, 5]));
    same(Flatten.forward(&image), image.flatten(1, -1));
    let conv = Conv1d::new(3, 4, [3], &mut rng())?;
    same(conv.forward(&line), line.conv1d(&conv.weight, conv.bias.as_ref(), conv.options));
    same(conv.forward_then(&line, Activation::Gelu), conv.forward(&line)?.gelu());
    let conv = ConvTranspose1d::new(3, 4, [3], &mut rng())?;
    same(
        conv.forward(&line),
        line.conv_transpose1d(&conv.weight, conv.bias.as_ref(), conv.options),
    );
    Ok(())
}

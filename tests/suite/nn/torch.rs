//! Layers and losses against PyTorch, values and gradients.

use super::T;
use crate::support::vectors::Vectors;
use swath::nn::{
    self, Activation, Kind, LayerNorm, Linear, Module, MultiHeadAttention, TransformerBlock,
    TransformerBlockOptions, loss,
};
use swath::prelude::*;

const DTYPES: [DType; 2] = [DType::F32, DType::F64];

fn vectors() -> Vectors {
    Vectors::read(include_str!("../../vectors/nn.txt"))
}

/// The model with the parameters of case `name`, in the dtype.
fn load<M: nn::Visit<CpuBackend>>(mut model: M, vectors: &Vectors, name: &str, dtype: DType) -> M {
    nn::for_each_tensor_mut(&mut model, |path, tensor, kind| {
        if kind == Kind::Parameter {
            let value = vectors.input(&format!("{name}.{path}"), dtype);
            assert_eq!(value.shape(), tensor.shape(), "{path}");
            *tensor = value.requires_grad();
        }
        Ok(())
    })
    .unwrap();
    model
}

/// Checks the output and all gradients of a model.
fn check<M: nn::Visit<CpuBackend>>(
    name: &str,
    ulps: f64,
    build: impl Fn() -> Result<M>,
    inputs: &[&str],
    forward: impl Fn(&M, &[T]) -> Result<T>,
) {
    let vectors = vectors();
    for dtype in DTYPES {
        let model = load(build().unwrap(), &vectors, name, dtype);
        let input = |key: &&str| vectors.input(&format!("{name}.{key}"), dtype).requires_grad();
        let xs: Vec<T> = inputs.iter().map(input).collect();
        let y = forward(&model, &xs).unwrap();
        vectors.assert(&format!("{name}.y"), &y, ulps);
        let upstream = T::arange_as(0., y.numel() as f64, 1., dtype).unwrap();
        let upstream = upstream.affine(1.0 / 16.0, -1.0).unwrap().reshape(*y.shape()).unwrap();
        let grads = y.backward_with(&upstream).unwrap();
        for (key, x) in inputs.iter().zip(&xs) {
            vectors.assert(&format!("{name}.{key}.grad"), grads.wrt(x).unwrap(), ulps);
        }
        nn::for_each_tensor(&model, |path, tensor, kind| {
            if kind == Kind::Parameter {
                let gradient = grads.wrt(tensor).unwrap();
                vectors.assert(&format!("{name}.{path}.grad"), gradient, ulps);
            }
        });
    }
}

fn rng() -> Rng {
    Rng::seed(0)
}

#[test]
fn linear_and_layer_norm() {
    check("linear", 8.0, || Linear::new(6, 5, &mut rng()), &["x"], |m, xs| m.forward(&xs[0]));
    check("layer_norm", 8.0, || LayerNorm::new(6), &["x"], |m, xs| m.forward(&xs[0]));
}

#[test]
fn multi_head_attention() -> Result<()> {
    let build = || MultiHeadAttention::new(6, 2, &mut rng());
    check("mha", 32.0, build, &["x"], |m, xs| m.forward(&xs[0]));
    let causal = || {
        let mut layer = build()?;
        layer.causal = true;
        Ok(layer)
    };
    check("mha_causal", 32.0, causal, &["x"], |m, xs| m.forward(&xs[0]));
    // PyTorch's masks are true at hidden positions.
    let hidden = [(1, 0), (3, 2), (0, 3)];
    let visible = |i: usize| !hidden.contains(&(i / 4, i % 4));
    let mask = T::from_vec((0..16).map(visible).collect(), (4, 4))?;
    check("mha_masked", 32.0, build, &["x"], |m, xs| m.forward_masked(&xs[0], Some(&mask)));
    check("mha_cross", 32.0, build, &["x", "memory"], |m, xs| {
        m.forward_cross(&xs[0], &xs[1], None)
    });
    Ok(())
}

#[test]
fn transformer_block() {
    let build = || {
        let options = TransformerBlockOptions {
            hidden: Some(10),
            activation: Activation::GeluTanh,
            causal: true,
            ..Default::default()
        };
        TransformerBlock::with_options(6, 2, options, &mut rng())
    };
    check("block", 32.0, build, &["x"], |m, xs| m.forward(&xs[0]));
}

type Loss<'a> = &'a dyn Fn(&T, loss::Reduction) -> Result<T>;

#[test]
fn losses() {
    let vectors = vectors();
    for dtype in DTYPES {
        let [y, p, hard] =
            ["y", "p", "hard"].map(|key| vectors.input(&format!("loss.{key}"), dtype));
        let classes = vectors.get("loss.classes");
        let smooth =
            CrossEntropy { ignore_index: Some(1), label_smoothing: 0.2, ..Default::default() };
        let cases: [(&str, &str, f64, Loss<'_>); 8] = [
            ("mse", "x", 4.0, &|x, r| loss::mse_with(x, &y, r)),
            ("mae", "x", 4.0, &|x, r| loss::mae_with(x, &y, r)),
            ("huber", "x", 4.0, &|x, r| loss::huber_with(x, &y, 1.5, r)),
            ("cross_entropy", "x", 16.0, &|x, reduction| {
                x.cross_entropy(classes, CrossEntropy { reduction, ..Default::default() })
            }),
            ("cross_entropy_smooth", "x", 16.0, &|x, reduction| {
                x.cross_entropy(classes, CrossEntropy { reduction, ..smooth })
            }),
            ("nll", "log_p", 4.0, &|x, r| loss::nll_with(x, classes, r)),
            // PyTorch's f32 loss drops terms that are small compared with the logits.
            ("bce", "logits", 32.0, &|x, r| {
                loss::binary_cross_entropy_with_logits_with(x, &hard, r)
            }),
            ("kl_div", "log_p", 8.0, &|x, r| loss::kl_div_with(x, &p, r)),
        ];
        for (name, input, ulps, f) in cases {
            let reductions = [
                ("none", loss::Reduction::None),
                ("mean", loss::Reduction::Mean),
                ("sum", loss::Reduction::Sum),
            ];
            for (label, reduction) in reductions {
                let x = vectors.input(&format!("loss.{input}"), dtype).requires_grad();
                let value = f(&x, reduction).unwrap();
                vectors.assert(&format!("loss.{name}.{label}"), &value, ulps);
                if reduction != loss::Reduction::None {
                    let grads = value.backward().unwrap();
                    let gradient = grads.wrt(&x).unwrap();
                    vectors.assert(&format!("loss.{name}.{label}.grad"), gradient, ulps);
                }
            }
        }
    }
}

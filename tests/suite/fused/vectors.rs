//! PyTorch's results, written by `tests/vectors/make_fused.py`.

use std::collections::HashMap;

use swath::ops::UpdateOp;
use swath::prelude::*;
use swath::{CrossEntropy, Reduction};

type T = Tensor<CpuBackend>;

fn vectors() -> HashMap<&'static str, T> {
    let lines = include_str!("../../vectors/fused.txt").lines();
    let parsed = lines.map(|line| {
        let [name, extents, values] = line.splitn(3, ": ").collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let extents = extents.split_whitespace().map(|x| x.parse().unwrap());
        let shape = Shape::new(extents.collect::<Vec<usize>>());
        let values: Vec<f64> = values.split(' ').map(|x| x.parse().unwrap()).collect();
        (name, T::from_vec(values, shape).unwrap())
    });
    parsed.collect()
}

fn wide(x: &T) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

fn assert_close(what: &str, got: &T, want: &T, tolerance: f64) {
    assert_eq!(got.shape(), want.shape(), "{what}");
    for (got, want) in wide(got).iter().zip(wide(want)) {
        let bound = tolerance * want.abs().max(1.0);
        assert!((got - want).abs() <= bound, "{what}: {got:e}, not {want:e}");
    }
}

const DTYPES: [(DType, f64); 2] = [(DType::F64, 2e-14), (DType::F32, 5e-6)];

#[test]
fn pytorch_cross_entropy_and_its_gradient() {
    let vectors = vectors();
    let plain = CrossEntropy::default();
    let cases = [
        ("mean", plain),
        ("sum", CrossEntropy { reduction: Reduction::Sum, ..plain }),
        ("none", CrossEntropy { reduction: Reduction::None, ..plain }),
        ("ignore", CrossEntropy { ignore_index: Some(-100), ..plain }),
        ("smooth", CrossEntropy { label_smoothing: 0.2, ..plain }),
        (
            "smooth and ignore",
            CrossEntropy { label_smoothing: 0.1, ignore_index: Some(3), ..plain },
        ),
    ];
    for (case, options) in cases {
        for (dtype, tolerance) in DTYPES {
            let get =
                |name: &str| vectors[format!("{case}/{name}").as_str()].to_dtype(dtype).unwrap();
            let targets = get("targets").to_dtype(DType::I64).unwrap();
            let x = get("x").requires_grad();
            let y = x.cross_entropy(&targets, options).unwrap();
            let grads = y.backward_with(&get("g")).unwrap();
            assert_close(&format!("{case} {dtype} y"), &y, &get("y"), tolerance);
            assert_close(
                &format!("{case} {dtype} dx"),
                grads.wrt(&x).unwrap(),
                &get("dx"),
                tolerance,
            );
        }
    }
}

#[test]
fn pytorch_layer_norm_and_its_gradients() {
    let vectors = vectors();
    let cases = [("weight and bias", 1e-5), ("weight", 1e-3), ("bias", 1e-5), ("neither", 0.1)];
    for (case, eps) in cases {
        for (dtype, tolerance) in DTYPES {
            let try_get = |name: &str| {
                vectors.get(format!("{case}/{name}").as_str()).map(|x| x.to_dtype(dtype).unwrap())
            };
            let get = |name: &str| try_get(name).unwrap();
            let x = get("x").requires_grad();
            let [w, b] = ["w", "b"].map(|name| try_get(name).map(|x| x.requires_grad()));
            assert_eq!(
                (w.is_some(), b.is_some()),
                (case.starts_with("weight"), case.ends_with("bias"))
            );
            let y = x.layer_norm(w.as_ref(), b.as_ref(), eps).unwrap();
            let grads = y.backward_with(&get("g")).unwrap();
            assert_close(&format!("{case} {dtype} y"), &y, &get("y"), tolerance);
            for (name, input) in [("dx", Some(&x)), ("dw", w.as_ref()), ("db", b.as_ref())] {
                let Some(input) = input else { continue };
                let what = format!("{case} {dtype} {name}");
                assert_close(&what, grads.wrt(input).unwrap(), &get(name), tolerance);
            }
        }
    }
}

fn sgd(
    rate: f64,
    [momentum, dampening, weight_decay]: [f64; 3],
    nesterov: bool,
) -> impl Fn(u64) -> UpdateOp {
    move |step| UpdateOp::Sgd {
        rate,
        momentum,
        dampening,
        weight_decay,
        nesterov,
        first: step == 1,
    }
}

fn adam(betas: [f64; 2], eps: f64, weight_decay: f64, decoupled: bool) -> impl Fn(u64) -> UpdateOp {
    move |step| UpdateOp::Adam { rate: 0.05, betas, eps, weight_decay, decoupled, step }
}

#[test]
fn pytorch_optimizer_steps() {
    let vectors = vectors();
    type Step = Box<dyn Fn(u64) -> UpdateOp>;
    let cases: [(&str, Step); 7] = [
        ("sgd", Box::new(sgd(0.1, [0.0; 3], false))),
        ("sgd decay", Box::new(sgd(0.1, [0.0, 0.0, 0.3], false))),
        ("momentum", Box::new(sgd(0.1, [0.9, 0.25, 0.1], false))),
        ("nesterov", Box::new(sgd(0.05, [0.8, 0.0, 0.0], true))),
        ("adam", Box::new(adam([0.8, 0.95], 1e-6, 0.0, false))),
        ("adam decay", Box::new(adam([0.9, 0.999], 1e-8, 0.2, false))),
        ("adamw", Box::new(adam([0.9, 0.99], 1e-8, 0.2, true))),
    ];
    for (case, op) in cases {
        for (dtype, tolerance) in DTYPES {
            let get =
                |name: String| vectors[format!("{case}/{name}").as_str()].to_dtype(dtype).unwrap();
            let mut p = get("p0".into()).data().clone();
            let zeros = T::zeros(7, dtype).unwrap();
            let mut state: Vec<_> =
                (0..op(1).states()).map(|_| zeros.contiguous().unwrap().data().clone()).collect();
            for step in 1..=3 {
                let gradient = get(format!("g{step}"));
                CpuBackend::update(&op(step), &mut p, gradient.data(), &mut state).unwrap();
                let what = format!("{case} {dtype} step {step}");
                let got = T::from_data(p.clone());
                assert_close(&what, &got, &get(format!("p{step}")), tolerance);
                for (k, state) in state.iter().enumerate() {
                    let got = T::from_data(state.clone());
                    assert_close(&what, &got, &get(format!("s{k}_{step}")), tolerance);
                }
            }
        }
    }
}

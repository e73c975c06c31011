//! Optimizers and clipping against PyTorch, over twelve steps of three parameters.

use super::T;
use crate::support::vectors::Vectors;
use swath::optim::{
    self, AdagradOptions, AdamOptions, AdamWOptions, LionOptions, Optimizer, PerParameter,
    RmsPropOptions, SgdOptions, Update, clip_grad_norm,
};
use swath::prelude::*;

const STEPS: usize = 12;

struct Body<B: Backend> {
    weight: Tensor<B>,
    bias: Tensor<B>,
}
swath::module!(Body<B> { weight, bias });

struct Head<B: Backend> {
    weight: Tensor<B>,
}
swath::module!(Head<B> { weight });

struct Model<B: Backend> {
    body: Body<B>,
    head: Vec<Head<B>>,
}
swath::module!(Model<B> { body, head });

fn vectors() -> Vectors {
    Vectors::read(include_str!("../../vectors/optim.txt"))
}

impl<B: Backend> Model<B> {
    fn start(vectors: &Vectors, dtype: DType) -> Self {
        let leaf = |path: &str| {
            let start = vectors.input(&format!("start.{path}"), dtype);
            start.to_backend().unwrap().requires_grad()
        };
        let body = Body { weight: leaf("body.weight"), bias: leaf("body.bias") };
        Model { body, head: vec![Head { weight: leaf("head.0.weight") }] }
    }

    fn parameters(&self) -> [(&'static str, &Tensor<B>); 3] {
        [
            ("body.weight", &self.body.weight),
            ("body.bias", &self.body.bias),
            ("head.0.weight", &self.head[0].weight),
        ]
    }

    fn grads(&self, vectors: &Vectors, step: usize, dtype: DType) -> Gradients<B> {
        let mut grads = Gradients::new();
        for (path, parameter) in self.parameters() {
            let gradient = vectors.input(&format!("grad.{step}.{path}"), dtype);
            grads.accumulate(parameter, gradient.to_backend().unwrap()).unwrap();
        }
        grads
    }
}

/// Compares the updates by kernels, and by the formula in tensor operations.
fn check<U: Update<CpuBackend> + Update<ReferenceBackend> + Copy>(name: &str, update: U) {
    check_on::<CpuBackend>(name, update);
    check_on::<ReferenceBackend>(name, update);
}

/// Compares all steps of `update`, also with the state saved halfway and loaded into a new
/// optimizer.
fn check_on<B: Backend>(name: &str, update: impl Update<B> + Copy) {
    let vectors = vectors();
    for (dtype, resumed) in [(DType::F32, false), (DType::F64, false), (DType::F64, true)] {
        let mut model = Model::start(&vectors, dtype);
        let mut optimizer = PerParameter::new(update).unwrap();
        for step in 0..STEPS {
            if resumed && step == STEPS / 2 {
                let state = optimizer.state().unwrap();
                optimizer = PerParameter::new(update).unwrap();
                optimizer.load_state(state).unwrap();
            }
            if name == "adamw_rates" {
                optimizer.set_learning_rate(0.05 * (step + 1) as f64 / STEPS as f64);
            }
            let grads = model.grads(&vectors, step, dtype);
            optimizer.step(&mut model, &grads).unwrap();
            if [0, 1, 5, STEPS - 1].contains(&step) {
                for (path, parameter) in model.parameters() {
                    let parameter = parameter.detach().to_backend().unwrap();
                    vectors.assert(&format!("{name}.{step}.{path}"), &parameter, 8.0);
                }
            }
        }
    }
}

fn sgd(name: &str, options: SgdOptions) {
    check(name, SgdOptions { learning_rate: 0.1, ..options });
}

#[test]
fn sgd_matches_pytorch() {
    let none = SgdOptions::default();
    sgd("sgd", none);
    sgd("sgd_decay", SgdOptions { weight_decay: 0.3, ..none });
    sgd("sgd_momentum", SgdOptions { momentum: 0.9, ..none });
    let dampened = SgdOptions { momentum: 0.8, dampening: 0.4, weight_decay: 0.1, ..none };
    sgd("sgd_dampening", dampened);
    let nesterov = SgdOptions { momentum: 0.9, nesterov: true, weight_decay: 0.1, ..none };
    sgd("sgd_nesterov", nesterov);
}

#[test]
fn adam_matches_pytorch() {
    check("adam", AdamOptions { learning_rate: 0.05, ..Default::default() });
    let options = AdamOptions {
        learning_rate: 0.05,
        betas: [0.8, 0.95],
        eps: 1e-3,
        weight_decay: 0.2,
        ..Default::default()
    };
    check("adam_decay", options);
}

#[test]
fn adamw_matches_pytorch() {
    check("adamw", AdamWOptions::default());
    let options = AdamWOptions {
        learning_rate: 0.05,
        betas: [0.9, 0.95],
        weight_decay: 0.3,
        ..Default::default()
    };
    check("adamw_decay", options);
    check("adamw_groups", AdamWOptions { decays: optim::matrices, ..options });
    let options = AdamWOptions { weight_decay: 0.1, ..Default::default() };
    check("adamw_rates", options);
}

#[test]
fn rms_prop_matches_pytorch() {
    let none = RmsPropOptions::default();
    check("rms_prop", none);
    let momentum = RmsPropOptions {
        learning_rate: 0.02,
        alpha: 0.9,
        eps: 1e-3,
        momentum: 0.8,
        weight_decay: 0.1,
        ..none
    };
    check("rms_prop_momentum", momentum);
    let centered = RmsPropOptions { learning_rate: 0.02, alpha: 0.95, centered: true, ..none };
    check("rms_prop_centered", centered);
    let all = RmsPropOptions {
        learning_rate: 0.02,
        momentum: 0.5,
        centered: true,
        weight_decay: 0.2,
        ..none
    };
    check("rms_prop_all", all);
}

#[test]
fn adagrad_matches_pytorch() {
    check("adagrad", AdagradOptions::default());
    let all = AdagradOptions {
        learning_rate: 0.1,
        rate_decay: 0.05,
        initial_accumulator: 0.3,
        eps: 1e-4,
        weight_decay: 0.1,
        ..Default::default()
    };
    check("adagrad_all", all);
}

/// Compares with the algorithm of the paper, implemented in PyTorch.
#[test]
fn lion_matches_its_paper() {
    check("lion", LionOptions { learning_rate: 0.01, ..Default::default() });
    let options = LionOptions {
        learning_rate: 0.02,
        betas: [0.8, 0.95],
        weight_decay: 0.3,
        ..Default::default()
    };
    check("lion_decay", options);
}

#[test]
fn clipping_matches_pytorch() {
    check_clipping_on::<CpuBackend>();
    check_clipping_on::<ReferenceBackend>();
}

fn check_clipping_on<B: Backend>() {
    let vectors = vectors();
    for dtype in [DType::F32, DType::F64] {
        for (label, bound) in [("cut", 0.5), ("kept", 100.0)] {
            let model = Model::<B>::start(&vectors, dtype);
            let mut grads = model.grads(&vectors, 3, dtype);
            let norm = clip_grad_norm(&model, &mut grads, bound).unwrap();
            let norm = T::full((), norm).unwrap().to_dtype(dtype).unwrap();
            vectors.assert(&format!("clip.{label}.norm"), &norm, 4.0);
            for (path, parameter) in model.parameters() {
                let gradient = grads.wrt(parameter).unwrap().to_backend().unwrap();
                vectors.assert(&format!("clip.{label}.{path}"), &gradient, 4.0);
            }
        }
    }
}

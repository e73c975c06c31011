//! Optimizers and clipping against PyTorch, over twelve steps of three parameters.

use super::T;
use crate::support::vectors::Vectors;
use swath::optim::{
    self, Adagrad, AdagradOptions, Adam, AdamOptions, AdamW, AdamWOptions, Lion, LionOptions,
    Optimizer, RmsProp, RmsPropOptions, Sgd, SgdOptions, clip_grad_norm,
};
use swath::prelude::*;

const STEPS: usize = 12;

struct Body {
    weight: T,
    bias: T,
}
swath::module!(Body: CpuBackend { weight, bias });

struct Head {
    weight: T,
}
swath::module!(Head: CpuBackend { weight });

struct Model {
    body: Body,
    head: Vec<Head>,
}
swath::module!(Model: CpuBackend { body, head });

fn vectors() -> Vectors {
    Vectors::read(include_str!("../../vectors/optim.txt"))
}

impl Model {
    fn start(vectors: &Vectors, dtype: DType) -> Self {
        let leaf = |path: &str| vectors.input(&format!("start.{path}"), dtype).requires_grad();
        let body = Body { weight: leaf("body.weight"), bias: leaf("body.bias") };
        Model { body, head: vec![Head { weight: leaf("head.0.weight") }] }
    }

    fn parameters(&self) -> [(&'static str, &T); 3] {
        [
            ("body.weight", &self.body.weight),
            ("body.bias", &self.body.bias),
            ("head.0.weight", &self.head[0].weight),
        ]
    }

    fn grads(&self, vectors: &Vectors, step: usize, dtype: DType) -> Gradients<CpuBackend> {
        let mut grads = Gradients::new();
        for (path, parameter) in self.parameters() {
            let gradient = vectors.input(&format!("grad.{step}.{path}"), dtype);
            grads.accumulate(parameter, gradient).unwrap();
        }
        grads
    }
}

/// Checks the optimizer that `make` returns over all steps; halfway its state is saved and loaded into a new
/// one.
fn check<O: Optimizer<CpuBackend>>(name: &str, make: impl Fn() -> Result<O>) {
    let vectors = vectors();
    for (dtype, resumed) in [(DType::F32, false), (DType::F64, false), (DType::F64, true)] {
        let mut model = Model::start(&vectors, dtype);
        let mut optimizer = make().unwrap();
        for step in 0..STEPS {
            if resumed && step == STEPS / 2 {
                let state = optimizer.state().unwrap();
                optimizer = make().unwrap();
                optimizer.load_state(state).unwrap();
            }
            if name == "adamw_rates" {
                optimizer.set_learning_rate(0.05 * (step + 1) as f64 / STEPS as f64);
            }
            let grads = model.grads(&vectors, step, dtype);
            optimizer.step(&mut model, &grads).unwrap();
            if [0, 1, 5, STEPS - 1].contains(&step) {
                for (path, parameter) in model.parameters() {
                    vectors.assert(&format!("{name}.{step}.{path}"), parameter, 8.0);
                }
            }
        }
    }
}

fn sgd(name: &str, options: SgdOptions) {
    check(name, || Sgd::new(SgdOptions { learning_rate: 0.1, ..options }));
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
    check("adam", || Adam::new(AdamOptions { learning_rate: 0.05, ..Default::default() }));
    let options = AdamOptions {
        learning_rate: 0.05,
        betas: [0.8, 0.95],
        eps: 1e-3,
        weight_decay: 0.2,
        ..Default::default()
    };
    check("adam_decay", || Adam::new(options));
}

#[test]
fn adamw_matches_pytorch() {
    check("adamw", || AdamW::new(AdamWOptions::default()));
    let options = AdamWOptions {
        learning_rate: 0.05,
        betas: [0.9, 0.95],
        weight_decay: 0.3,
        ..Default::default()
    };
    check("adamw_decay", || AdamW::new(options));
    check("adamw_groups", || AdamW::new(AdamWOptions { decays: optim::matrices, ..options }));
    let options = AdamWOptions { weight_decay: 0.1, ..Default::default() };
    check("adamw_rates", || AdamW::new(options));
}

#[test]
fn rms_prop_matches_pytorch() {
    let none = RmsPropOptions::default();
    check("rms_prop", || RmsProp::new(none));
    let momentum = RmsPropOptions {
        learning_rate: 0.02,
        alpha: 0.9,
        eps: 1e-3,
        momentum: 0.8,
        weight_decay: 0.1,
        ..none
    };
    check("rms_prop_momentum", || RmsProp::new(momentum));
    let centered = RmsPropOptions { learning_rate: 0.02, alpha: 0.95, centered: true, ..none };
    check("rms_prop_centered", || RmsProp::new(centered));
    let all = RmsPropOptions {
        learning_rate: 0.02,
        momentum: 0.5,
        centered: true,
        weight_decay: 0.2,
        ..none
    };
    check("rms_prop_all", || RmsProp::new(all));
}

#[test]
fn adagrad_matches_pytorch() {
    check("adagrad", || Adagrad::new(AdagradOptions::default()));
    let all = AdagradOptions {
        learning_rate: 0.1,
        rate_decay: 0.05,
        initial_accumulator: 0.3,
        eps: 1e-4,
        weight_decay: 0.1,
        ..Default::default()
    };
    check("adagrad_all", || Adagrad::new(all));
}

/// Compares with the algorithm of the paper, implemented in PyTorch.
#[test]
fn lion_matches_its_paper() {
    check("lion", || Lion::new(LionOptions { learning_rate: 0.01, ..Default::default() }));
    let options = LionOptions {
        learning_rate: 0.02,
        betas: [0.8, 0.95],
        weight_decay: 0.3,
        ..Default::default()
    };
    check("lion_decay", || Lion::new(options));
}

#[test]
fn clipping_matches_pytorch() {
    let vectors = vectors();
    for dtype in [DType::F32, DType::F64] {
        for (label, bound) in [("cut", 0.5), ("kept", 100.0)] {
            let model = Model::start(&vectors, dtype);
            let mut grads = model.grads(&vectors, 3, dtype);
            let norm = clip_grad_norm(&model, &mut grads, bound).unwrap();
            let norm = T::full((), norm).unwrap().to_dtype(dtype).unwrap();
            vectors.assert(&format!("clip.{label}.norm"), &norm, 4.0);
            for (path, parameter) in model.parameters() {
                let gradient = grads.wrt(parameter).unwrap();
                vectors.assert(&format!("clip.{label}.{path}"), gradient, 4.0);
            }
        }
    }
}

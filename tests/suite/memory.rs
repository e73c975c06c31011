//! A training step allocates nothing after the third, and a long run needs no more memory than a short one.
//! Allocations are counted for the whole process, so the test runs in its own.

use swath::optim::{AdamW, AdamWOptions, Optimizer, clip_grad_norm};
use swath::prelude::*;

use crate::support::gpt::{Gpt, Sizes};
use crate::support::{alone, counting};

type T = Tensor<CpuBackend>;

struct Run {
    model: Gpt,
    optimizer: AdamW<CpuBackend>,
    ids: T,
    targets: T,
    rng: Rng,
}

impl Run {
    fn new(sizes: Sizes, batch: usize) -> Self {
        let mut rng = Rng::seed(1);
        let tokens = || T::zeros((batch, sizes.context), DType::I64).unwrap();
        Run {
            model: Gpt::new(sizes, &mut rng).unwrap(),
            optimizer: AdamW::new(AdamWOptions::default()).unwrap(),
            ids: tokens(),
            targets: tokens(),
            rng,
        }
    }

    fn step(&mut self) -> f32 {
        let vocabulary = self.model.tokens.weight.dims()[0] as u64;
        for tensor in [&mut self.ids, &mut self.targets] {
            let ids = tensor.as_slice_mut::<i64>().unwrap();
            ids.iter_mut().for_each(|id| *id = self.rng.below(vocabulary) as i64);
        }
        let loss = self.model.loss(&self.ids, &self.targets).unwrap();
        let value = loss.item::<f32>().unwrap();
        let mut gradients = loss.backward().unwrap();
        clip_grad_norm(&self.model, &mut gradients, 1.0).unwrap();
        self.optimizer.step(&mut self.model, &gradients).unwrap();
        value
    }
}

/// Resident memory of this process, if the system reports it.
fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

#[test]
fn training_allocates_nothing_after_the_first_steps() {
    alone("memory::training_allocates_nothing_after_the_first_steps", || {
        for threads in [1, 3] {
            swath::runtime::set_threads(threads).unwrap();
            steps_after_the_third_allocate_nothing(0.0);
            steps_after_the_third_allocate_nothing(0.1);
            reductions_of_columns_allocate_nothing().unwrap();
        }
        resident_memory_does_not_grow();
    });
}

fn steps_after_the_third_allocate_nothing(dropout: f64) {
    let sizes = Sizes { vocabulary: 50, width: 64, layers: 2, heads: 4, context: 64, dropout };
    let mut run = Run::new(sizes, 8);
    for step in 1..=12 {
        let before = counting::calls();
        run.step();
        let allocations = counting::calls() - before;
        assert!(
            step <= 3 || allocations == 0,
            "dropout {dropout}, step {step}: {allocations} allocations"
        );
    }
}

/// Reductions of so many rows that threads split them.
fn reductions_of_columns_allocate_nothing() -> Result<()> {
    let mut rng = Rng::seed(2);
    let x = T::randn((4096, 512), &mut rng)?;
    let (ids, half) = (x.to_dtype(DType::I64)?, x.to_dtype(DType::BF16)?);
    let weight = T::randn((16, 512), &mut rng)?.requires_grad();
    let bias = T::zeros(16, DType::F32)?.requires_grad();
    type Step<'a> = (&'a str, &'a dyn Fn() -> Result<()>);
    let steps: [Step; 7] = [
        ("sum", &|| x.sum_axis(0, false).map(drop)),
        ("variance", &|| x.variance(Some(&[0]), false, 1).map(drop)),
        ("max", &|| half.max(Some(&[0]), false).map(drop)),
        ("argmax", &|| x.argmax(0, false).map(drop)),
        ("sum of integers", &|| ids.sum_axis(0, false).map(drop)),
        ("any", &|| ids.any(Some(&[0]), false).map(drop)),
        ("bias", &|| x.linear(&weight, Some(&bias))?.sum(None, false)?.backward().map(drop)),
    ];
    for (name, step) in steps {
        for round in 1..=12 {
            let before = counting::calls();
            step()?;
            let allocations = counting::calls() - before;
            assert!(
                round <= 3 || allocations == 0,
                "{name}, round {round}: {allocations} allocations"
            );
        }
    }
    Ok(())
}

fn resident_memory_does_not_grow() {
    let sizes = Sizes { vocabulary: 11, width: 8, layers: 1, heads: 2, context: 8, dropout: 0.0 };
    let mut run = Run::new(sizes, 2);
    let mut after_100 = None;
    for step in 1..=10_000 {
        assert!(run.step().is_finite());
        if step == 100 {
            after_100 = resident_bytes();
        }
    }
    let (Some(before), Some(after)) = (after_100, resident_bytes()) else { return };
    let change = after.abs_diff(before) as f64 / before as f64;
    assert!(change < 0.02, "{before} bytes after 100 steps, {after} after 10,000");
}

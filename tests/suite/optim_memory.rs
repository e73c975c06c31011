//! A training step after the third allocates nothing: a transformer block with every kind of layer, clipping,
//! AdamW, a schedule. The test runs in its own process because it counts the allocations of all threads.

use swath::nn::{
    Embedding, Func, LayerNorm, Linear, Module, Sequential, Shared, TransformerBlock,
    TransformerBlockOptions, loss,
};
use swath::optim::{
    self, AdamW, AdamWOptions, CosineSchedule, Optimizer, Schedule, Sgd, SgdOptions,
    WarmupSchedule, clip_grad_norm,
};
use swath::prelude::*;

use crate::support::{alone, counting};

type T = Tensor<CpuBackend>;

#[test]
fn steps_after_the_third_allocate_nothing() {
    alone("optim_memory::steps_after_the_third_allocate_nothing", || {
        count_allocations().unwrap();
    });
}

fn count_allocations() -> Result<()> {
    let mut rng = Rng::seed(1);
    let (vocabulary, width) = (20, 16);
    let options = TransformerBlockOptions { causal: true, dropout: 0.1, ..Default::default() };
    let table = Embedding::new(vocabulary, width, &mut rng)?;
    let mut head = Linear::new(width, vocabulary, &mut rng)?;
    head.weight = table.weight.clone();
    let block = Shared::new(TransformerBlock::with_options(width, 4, options, &mut rng)?);
    let mut model: Sequential = Sequential::new()
        .push(table)
        .push(block.clone())
        .push(block)
        .push(LayerNorm::new(width)?)
        .push(head)
        .push(Func::new(|x: &T| x.reshape((4 * 8, 20))));
    let schedule =
        WarmupSchedule { warmup: 5, then: CosineSchedule { peak: 1e-3, floor: 1e-4, steps: 50 } };
    let adamw = AdamWOptions { decays: optim::matrices, ..Default::default() };
    let momentum = SgdOptions { momentum: 0.9, nesterov: true, ..Default::default() };
    let optimizers: [Box<dyn Optimizer<CpuBackend>>; 2] =
        [Box::new(AdamW::new(adamw)?), Box::new(Sgd::new(momentum)?)];
    let draw = |rng: &mut Rng| (0..4 * 8).map(|_| rng.below(20) as i64).collect::<Vec<_>>();
    let x = T::from_vec(draw(&mut rng), (4, 8))?;
    let y = T::from_vec(draw(&mut rng), 4 * 8)?;
    for mut optimizer in optimizers {
        for step in 0..12 {
            let before = counting::calls();
            optimizer.set_learning_rate(schedule.rate(step));
            let loss = loss::cross_entropy(&model.forward(&x)?, &y)?;
            let mut grads = loss.backward()?;
            clip_grad_norm(&model, &mut grads, 1.0)?;
            optimizer.step(&mut model, &grads)?;
            drop((loss, grads));
            let allocations = counting::calls() - before;
            assert!(step != 0 || allocations > 0, "allocations are not counted");
            assert!(step < 3 || allocations == 0, "step {step}: {allocations} allocations");
        }
    }
    Ok(())
}

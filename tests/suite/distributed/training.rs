//! Gradients, buffers and metrics do not depend on the number of ranks.

use super::{T, on_ranks};
use swath::distributed::{DataParallel, Outcome, World};
use swath::nn::{self, BatchNorm1d, Dropout, Linear, Module, loss};
use swath::optim::{AdamW, AdamWOptions, clip_grad_norm};
use swath::prelude::*;

/// A model with everything that could differ: tied parameters, one that is not used, a frozen one, 16-bit and 64-bit
/// ones, running statistics, dropout.
struct Net {
    first: Linear,
    norm: BatchNorm1d,
    dropout: Dropout,
    tied: Tensor<CpuBackend>,
    again: Tensor<CpuBackend>,
    half: Tensor<CpuBackend>,
    double: Tensor<CpuBackend>,
    unused: Tensor<CpuBackend>,
    frozen: Tensor<CpuBackend>,
}
swath::module!(Net: CpuBackend { first, norm, dropout, tied, again, half, double, unused, frozen });

impl Net {
    fn new(seed: u64) -> Result<Net> {
        let mut rng = Rng::seed(seed);
        let tied = T::randn((6, 6), &mut rng)?.requires_grad();
        Ok(Net {
            first: Linear::new(4, 6, &mut rng)?,
            norm: BatchNorm1d::new(6)?,
            dropout: Dropout::new(0.3, &mut rng)?,
            again: tied.clone(),
            tied,
            half: T::randn(6, &mut rng)?.to_dtype(DType::BF16)?.requires_grad(),
            double: T::randn((6, 1), &mut rng)?.to_dtype(DType::F64)?.requires_grad(),
            unused: T::ones(2, DType::F32)?.requires_grad(),
            frozen: T::full(6, 0.1 + seed as f32)?,
        })
    }

    fn loss(&self, x: &T, y: &T) -> Result<T> {
        let h = self.norm.forward(&self.first.forward(x)?)?.matmul(&self.tied)?.tanh()?;
        let h = self.dropout.forward(&h)?.matmul(&self.again)?;
        let h = h.add(&self.half.to_dtype(DType::F32)?)?.mul(&self.frozen)?;
        loss::mse(&h.to_dtype(DType::F64)?.matmul(&self.double)?, &y.to_dtype(DType::F64)?)
    }
}

/// The bits of everything that a run leaves.
type Bits = Vec<u64>;

fn bits(x: &T) -> Result<Bits> {
    Ok(x.to_dtype(DType::F64)?.to_vec::<f64>()?.into_iter().map(f64::to_bits).collect())
}

fn train(world: &World, micro_batches: usize, rows: usize) -> Result<Bits> {
    // The seeds differ: rank 0's parameters count.
    let mut net = Net::new(world.rank() as u64)?;
    let mut optimizer = AdamW::new(AdamWOptions { learning_rate: 0.02, ..Default::default() })?;
    let mut parallel = DataParallel::new(world, &mut net, micro_batches)?;
    let mut rng = Rng::seed(77);
    let mut found = Vec::new();
    for _ in 0..4 {
        let x = T::randn((rows, 4), &mut rng)?;
        let y = x.sum(Some(&[1]), true)?;
        let mut mean = parallel.mean_gradients(&mut net, &(x, y), |net, micro| {
            let (x, y) = &micro.data;
            let noise = T::randn(x.dims(), &mut micro.rng(5))?.mul(0.01)?;
            let loss = net.loss(&x.add(&noise)?, y)?;
            Ok(Outcome { loss, metrics: vec![f64::from(x.max(None, false)?.item::<f32>()?)] })
        })?;
        found.extend([mean.loss.to_bits(), mean.metrics[0].to_bits()]);
        clip_grad_norm(&net, &mut mean.gradients, 0.5)?;
        optimizer.step(&mut net, &mean.gradients)?;
    }
    assert_eq!(bits(&net.tied)?, bits(&net.again)?);
    nn::for_each_tensor(&net, |_, x, _| found.extend(bits(x).unwrap()));
    Ok(found)
}

#[test]
fn any_number_of_ranks_has_the_same_bits() {
    for (micro_batches, rows) in [(8, 32), (8, 27), (5, 15), (3, 10)] {
        let alone = on_ranks(1, |world| train(&world, micro_batches, rows).unwrap()).remove(0);
        for size in (2..=micro_batches).filter(|size| ![6, 7].contains(size)) {
            for found in on_ranks(size, |world| train(&world, micro_batches, rows).unwrap()) {
                assert_eq!(
                    found, alone,
                    "{micro_batches} micro-batches of {rows} rows, {size} ranks"
                );
            }
        }
    }
}

fn linear_loss(model: &Linear, (x, y): &(T, T)) -> Result<T> {
    loss::mse(&model.forward(x)?, y)
}

fn data(rows: usize) -> Result<(T, T)> {
    let mut rng = Rng::seed(3);
    Ok((T::randn((rows, 5), &mut rng)?, T::randn((rows, 2), &mut rng)?))
}

#[test]
fn one_micro_batch_is_the_plain_backward_pass() -> Result<()> {
    let world = World::local(1)?.remove(0);
    let mut model: Linear = Linear::new(5, 2, &mut Rng::seed(1))?;
    let mut parallel = DataParallel::new(&world, &mut model, 1)?;
    let batch = data(9)?;
    let mean = parallel
        .mean_gradients(&mut model, &batch, |model, micro| linear_loss(model, &micro.data))?;
    let loss = linear_loss(&model, &batch)?;
    let plain = loss.backward()?;
    assert_eq!(mean.loss, f64::from(loss.item::<f32>()?));
    let weight = |grads: &Gradients<CpuBackend>| grads.wrt(&model.weight)?.to_vec::<f32>();
    assert_eq!(weight(&mean.gradients)?, weight(&plain)?);
    Ok(())
}

/// The mean over micro-batches of different sizes is that of the rows.
#[test]
fn the_mean_is_that_of_all_rows() -> Result<()> {
    for (rows, micro_batches) in [(12, 4), (13, 4), (7, 7), (11, 3)] {
        let batch = data(rows)?;
        for result in on_ranks(2, |world| -> Result<()> {
            let mut model: Linear = Linear::new(5, 2, &mut Rng::seed(1))?;
            let mut parallel = DataParallel::new(&world, &mut model, micro_batches)?;
            let mean = parallel.mean_gradients(&mut model, &batch, |model, micro| {
                assert_eq!(micro.data.0.dims(), [micro.rows.len(), 5]);
                linear_loss(model, &micro.data)
            })?;
            let loss = linear_loss(&model, &batch)?;
            let plain = loss.backward()?;
            assert!((mean.loss - f64::from(loss.item::<f32>()?)).abs() < 1e-6);
            let (a, b) = (mean.gradients.wrt(&model.weight)?, plain.wrt(&model.weight)?);
            assert!(a.allclose(b, 1e-5, 1e-6)?, "{a} {b}");
            Ok(())
        }) {
            result?;
        }
    }
    Ok(())
}

#[test]
fn evaluations_have_the_same_bits_and_may_have_less_than_a_rank_each() {
    let evaluate = |world: World, count: usize| -> Result<[f64; 2]> {
        let mut model: Linear = Linear::new(2, 2, &mut Rng::seed(1))?;
        let parallel = DataParallel::new(&world, &mut model, 8)?;
        parallel.mean_of(count, |i| {
            assert!(!swath::is_grad_enabled());
            Ok([1.0 / (i as f64 + 3.0), i as f64])
        })
    };
    for count in [1, 2, 5, 100] {
        let alone = on_ranks(1, |world| evaluate(world, count).unwrap())[0];
        assert_eq!(alone[1], (count - 1) as f64 / 2.0);
        for size in [2, 3, 8] {
            for found in on_ranks(size, |world| evaluate(world, count).unwrap()) {
                assert_eq!(found, alone, "{count} on {size}");
            }
        }
    }
}

/// A training step of a batch of indices, as with a sampler: each rank reads its own items.
#[test]
fn a_rank_reads_its_own_rows() {
    for (rank, read) in on_ranks(4, |world| {
        let mut model: Linear = Linear::new(1, 1, &mut Rng::seed(1)).unwrap();
        let mut parallel = DataParallel::new(&world, &mut model, 4).unwrap();
        let mut read = Vec::new();
        let batch: Vec<usize> = (100..108).collect();
        let step = parallel.mean_gradients(&mut model, &batch, |model, micro| {
            read.extend(micro.data.clone());
            let x: Vec<f32> = micro.data.iter().map(|&i| i as f32).collect();
            model.forward(&T::from_vec(x, (2, 1))?)?.mean(None, false)
        });
        step.unwrap();
        (world.rank(), read)
    }) {
        assert_eq!(read, [100 + 2 * rank, 101 + 2 * rank]);
    }
}

/// A step that fails in one micro-batch leaves dropout's counters and running statistics as they were, on any number
/// of ranks.
#[test]
fn a_failed_step_leaves_the_same_buffers() {
    let train = |world: World| -> Result<Bits> {
        let mut net = Net::new(world.rank() as u64)?;
        let mut parallel = DataParallel::new(&world, &mut net, 4)?;
        let mut found = Vec::new();
        for step in 0..3 {
            let x = T::randn((16, 4), &mut Rng::seed(step))?;
            let y = x.sum(Some(&[1]), true)?;
            let mean = parallel.mean_gradients(&mut net, &(x, y), |net, micro| {
                let loss = net.loss(&micro.data.0, &micro.data.1)?;
                // The last micro-batch of the second step has a loss with an axis.
                if step == 1 && micro.index == 3 {
                    loss.unsqueeze(0)?.repeat([2])
                } else {
                    Ok(loss)
                }
            });
            assert_eq!(mean.is_ok(), step != 1);
            found.extend(mean.map(|mean| mean.loss.to_bits()));
        }
        nn::for_each_tensor(&net, |_, x, _| found.extend(bits(x).unwrap()));
        Ok(found)
    };
    let alone = on_ranks(1, |world| train(world).unwrap()).remove(0);
    for size in [2, 4] {
        assert!(on_ranks(size, |world| train(world).unwrap()).iter().all(|x| *x == alone));
    }
}

/// Each micro-batch of each step has zeros of its own; the first has those of a program without micro-batches.
#[test]
fn dropout_draws_by_micro_batch() -> Result<()> {
    struct Weighted {
        w: T,
        dropout: Dropout,
    }
    swath::module!(Weighted: CpuBackend { w, dropout });
    let ones = T::ones(64, DType::F32)?;
    let new = || -> Result<Weighted> {
        Ok(Weighted { w: ones.requires_grad(), dropout: Dropout::new(0.5, &mut Rng::seed(9))? })
    };
    let (mut model, plain) = (new()?, new()?);
    let mut parallel = DataParallel::new(&World::local(1)?.remove(0), &mut model, 3)?;
    let mut masks: Vec<Vec<f32>> = Vec::new();
    for _ in 0..2 {
        let first = masks.len();
        parallel.mean_gradients(&mut model, &(0..3), |model, _| {
            let kept = model.dropout.forward(&model.w)?;
            masks.push(kept.to_vec()?);
            kept.mean(None, false)
        })?;
        assert_eq!(masks[first], plain.dropout.forward(&ones)?.to_vec::<f32>()?);
    }
    for (i, mask) in masks.iter().enumerate() {
        assert!(!masks[..i].contains(mask), "mask {i} was drawn before");
    }
    Ok(())
}

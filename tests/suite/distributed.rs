//! Ranks that are threads: what they do together, and what happens if one does something else.

mod faults;
mod sharded;
mod training;

use std::thread;

use swath::distributed::{DistributedSampler, World};
use swath::prelude::*;

type T = Tensor<CpuBackend>;

/// Runs `f` on every rank of a world; returns the results by rank.
pub(crate) fn on_ranks<R: Send>(size: usize, f: impl Fn(World) -> R + Sync) -> Vec<R> {
    let f = &f;
    thread::scope(|scope| {
        let ranks = World::local(size).unwrap().into_iter();
        let threads: Vec<_> = ranks.map(|world| scope.spawn(move || f(world))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn every_rank_gets_the_tensors_of_rank_0_or_of_all() {
    for size in [1, 2, 3, 5, 8] {
        let found = on_ranks(size, |world| {
            let rank = world.rank();
            world.barrier()?;
            let x = T::full((2, 3), rank as f64 + 0.5)?.t()?;
            let sent = world.broadcast(&x)?;
            assert_eq!(sent.dims(), [3, 2]);
            assert_eq!(sent.to_vec::<f64>()?, [0.5; 6]);
            let all = world.all_gather(&T::full((), rank as i64)?)?;
            let all: Vec<i64> = all.iter().map(T::item::<i64>).collect::<Result<_>>()?;
            let at_root = world.gather(&T::from_slice(&[rank % 2 == 0], 1)?)?;
            assert_eq!(at_root.is_some(), world.is_root());
            for (rank, x) in at_root.into_iter().flatten().enumerate() {
                assert_eq!(x.to_vec::<bool>()?, [rank % 2 == 0]);
            }
            world.barrier()?;
            Ok::<_, Error>(all)
        });
        for all in found {
            assert_eq!(all.unwrap(), (0..size as i64).collect::<Vec<_>>());
        }
    }
}

#[test]
fn every_dtype_is_carried_as_it_is() {
    for dtype in DType::ALL {
        let found = on_ranks(3, |world| {
            let x = T::arange(0.0, 5.0, 1.0)?.mul(world.rank() as f64)?.to_dtype(dtype)?;
            world.all_gather(&x)?[2].to_dtype(DType::F64)?.to_vec::<f64>()
        });
        let expected = T::arange(0.0, 5.0, 1.0).unwrap().mul(2.0).unwrap().to_dtype(dtype).unwrap();
        let expected = expected.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        assert!(found.iter().all(|found| found.as_ref() == Ok(&expected)), "{dtype}: {found:?}");
    }
}

#[test]
fn sums_are_those_of_all_ranks() {
    for size in [1, 2, 3, 5] {
        for dtype in [DType::F16, DType::F32, DType::F64] {
            for found in on_ranks(size, |world| {
                let x =
                    T::arange(0.0, 7.0, 1.0)?.add((world.rank() + 1) as f64)?.to_dtype(dtype)?;
                let sum = world.sum(&x.reshape((7, 1))?)?;
                assert_eq!((sum.dims(), sum.dtype()), (&[7, 1][..], dtype));
                sum.to_dtype(DType::F64)?.to_vec::<f64>()
            }) {
                let ranks = size as f64;
                let sum = |i: usize| ranks * i as f64 + ranks * (ranks + 1.0) / 2.0;
                assert_eq!(found.unwrap(), (0..7).map(sum).collect::<Vec<_>>());
            }
        }
    }
    let world = World::local(1).unwrap().remove(0);
    assert!(matches!(world.sum(&tensor![i64; 1]), Err(Error::UnsupportedDType { .. })));
}

#[test]
fn tensors_without_elements_are_carried() {
    for found in on_ranks(3, |world| world.all_gather(&T::zeros((0, 2), DType::F32)?)) {
        assert!(found.unwrap().iter().all(|x| x.dims() == [0, 2]));
    }
}

#[test]
fn a_world_says_what_it_is() {
    let world = World::local(2).unwrap().pop().unwrap();
    assert_eq!(world.to_string(), "rank 1 of 2, threads of this process");
}

#[test]
fn samplers_have_every_item_once_in_every_epoch() -> Result<()> {
    let sampler = DistributedSampler::new(23, 5)?.shuffled(7);
    assert_eq!(sampler.len(), 5);
    for epoch in 0..3 {
        let mut all: Vec<usize> = sampler.batches(epoch)?.flatten().collect();
        assert_ne!(all, (0..23).collect::<Vec<_>>());
        let shards = on_ranks(4, |world| sampler.shard(&world, epoch).unwrap());
        assert_eq!(shards.concat(), all);
        all.sort_unstable();
        assert_eq!(all, (0..23).collect::<Vec<_>>());
    }
    let batches: Vec<_> = DistributedSampler::new(7, 3)?.without_rest().batches(0)?.collect();
    assert_eq!(batches, [[0, 1, 2], [3, 4, 5]]);
    assert!(DistributedSampler::new(2, 3)?.without_rest().is_empty());
    assert!(DistributedSampler::new(2, 0).is_err());
    Ok(())
}

//! What goes wrong is an error on every rank, which names the rank, and nothing hangs.

use std::time::Duration;

use super::{T, on_ranks};
use swath::distributed::{DataParallel, Transport, World};
use swath::nn::{self, Linear, Module};
use swath::prelude::*;

fn model(outputs: usize) -> Linear {
    Linear::new(3, outputs, &mut Rng::seed(1)).unwrap()
}

fn step(parallel: &mut DataParallel, model: &mut Linear) -> Result<f64> {
    let x = T::ones((8, 3), DType::F32)?;
    let mean = parallel
        .mean_gradients(model, &x, |model, micro| model.forward(&micro.data)?.mean(None, false))?;
    Ok(mean.loss)
}

/// Every rank has this error.
#[track_caller]
fn expect<R: std::fmt::Debug>(found: &[Result<R>], text: &str) {
    for result in found {
        match result {
            Err(error) => assert_eq!(error.to_string(), text),
            Ok(value) => panic!("no error but {value:?}"),
        }
    }
}

#[test]
fn other_shapes_of_parameters() {
    let found = on_ranks(3, |world| {
        DataParallel::new(&world, &mut model(2 + world.rank() / 2), 4).map(drop)
    });
    expect(
        &found,
        "rank 2: it differs from rank 0 in the names, shapes, dtypes or number of the tensors, in broadcast",
    );
}

/// The tensors that are exchanged have the same order, those that are trained are others.
#[test]
fn other_frozen_parameters() {
    let found = on_ranks(3, |world| {
        let mut model = model(2);
        nn::freeze(&mut model, |path, _| path == "bias" && world.rank() == 2)?;
        DataParallel::new(&world, &mut model, 4).map(drop)
    });
    expect(
        &found,
        "rank 2: it differs from rank 0 in the names, shapes, dtypes or number of the tensors, in broadcast",
    );
}

#[test]
fn other_numbers_of_micro_batches() {
    let found =
        on_ranks(3, |world| DataParallel::new(&world, &mut model(2), 4 + world.rank()).map(drop));
    expect(
        &found,
        "rank 1: it differs from rank 0 in the number of micro-batches: 5 there, 4 on rank 0",
    );
}

#[test]
fn another_step() {
    let found = on_ranks(2, |world| {
        let mut model = model(2);
        let mut parallel = DataParallel::new(&world, &mut model, 4)?;
        if world.rank() == 1 {
            parallel.set_steps(7);
        }
        step(&mut parallel, &mut model)
    });
    expect(
        &found,
        "rank 1: it differs from rank 0 in the number of steps done: 7 there, 0 on rank 0",
    );
}

#[test]
fn another_value_or_operation() {
    let found = on_ranks(3, |world| world.agree(world.rank() as u64 / 2));
    expect(&found, "rank 2: it differs from rank 0 in the options or values, in agree");
    let found = on_ranks(2, |world| match world.rank() {
        0 => world.barrier(),
        _ => world.agree(1),
    });
    expect(&found, "rank 1: it differs from rank 0: agree there, barrier here");
}

#[test]
fn ranks_go_on_after_a_difference() {
    for result in on_ranks(3, |world| {
        assert!(world.agree(world.rank() as u64).is_err());
        world.barrier()
    }) {
        result.unwrap();
    }
}

#[test]
fn a_rank_that_takes_a_step_less() {
    for early in [0, 1] {
        let found = on_ranks(3, |world| {
            let mut model = model(2);
            let mut parallel = DataParallel::new(&world, &mut model, 4)?;
            let steps = if world.rank() == early { 2 } else { 3 };
            (0..steps).try_for_each(|_| step(&mut parallel, &mut model).map(drop))
        });
        for (rank, result) in found.iter().enumerate() {
            match rank == early {
                true => assert_eq!(*result, Ok(())),
                false => expect(
                    std::slice::from_ref(result),
                    &format!("rank {early}: it left before mean_gradients"),
                ),
            }
        }
    }
}

#[test]
fn a_part_that_fails() {
    for failing in [0, 2] {
        let found = on_ranks(3, |world| {
            let mut model = model(2);
            let mut parallel = DataParallel::new(&world, &mut model, 4)?;
            let x = T::ones((8, 3), DType::F32)?;
            let result = parallel.mean_gradients(&mut model, &x, |model, micro| {
                match world.rank() == failing {
                    true => model.forward(&T::ones((2, 4), DType::F32)?)?.mean(None, false),
                    false => model.forward(&micro.data)?.mean(None, false),
                }
            });
            assert_eq!(step(&mut parallel, &mut model)?, step(&mut parallel, &mut model)?);
            result.map(|mean| mean.loss)
        });
        for (rank, result) in found.iter().enumerate() {
            match rank == failing {
                true => assert!(matches!(result, Err(Error::ShapeMismatch { .. })), "{result:?}"),
                false => expect(
                    std::slice::from_ref(result),
                    &format!(
                        "rank {failing}: its part of mean_gradients failed; see the error of that rank"
                    ),
                ),
            }
        }
    }
}

#[test]
fn a_rank_that_panics() {
    let found = std::thread::scope(|scope| {
        let spawn = |world: World| {
            scope.spawn(move || {
                assert!(world.rank() != 1, "on purpose");
                world.barrier()
            })
        };
        let ranks: Vec<_> = World::local(3).unwrap().into_iter().map(spawn).collect();
        ranks.into_iter().map(|rank| rank.join()).collect::<Vec<_>>()
    });
    assert!(found[1].is_err());
    for result in [&found[0], &found[2]] {
        let error = result.as_ref().unwrap().clone().unwrap_err();
        assert_eq!(error.to_string(), "rank 1: it left before barrier");
    }
}

/// A rank that does nothing for longer than the deadline: all others name it, and the world stays unusable.
#[test]
fn a_rank_that_hangs() {
    for hanging in [0, 2] {
        let found = on_ranks(3, |world| {
            let world = world.with_deadline(Duration::from_millis(100));
            if world.rank() == hanging {
                std::thread::sleep(Duration::from_millis(2500));
                return None;
            }
            let result = world.barrier();
            assert_eq!(world.barrier(), result);
            Some(result)
        });
        for result in found.into_iter().flatten() {
            let Err(Error::Stalled { waiting_for, what, .. }) = result else {
                panic!("{result:?}")
            };
            assert_eq!((waiting_for, what), (hanging, "barrier"));
        }
    }
}

#[test]
fn too_many_ranks_and_too_few_rows() {
    let found = on_ranks(5, |world| DataParallel::new(&world, &mut model(2), 4).map(drop));
    assert!(
        found.iter().all(|x| *x == Err(Error::TooManyRanks { ranks: 5, micro_batches: 4 })),
        "{found:?}"
    );
    let found = on_ranks(2, |world| {
        let mut model = model(2);
        let mut parallel = DataParallel::new(&world, &mut model, 9)?;
        step(&mut parallel, &mut model)
    });
    assert!(matches!(&found[0], Err(Error::InvalidArgument { op: "mean_gradients", .. })));
    assert!(World::local(0).is_err());
    for result in on_ranks(2, |world| {
        let parallel = DataParallel::new(&world, &mut model(2), 2)?;
        parallel.mean_of::<1>(0, |_| Ok([0.0]))
    }) {
        assert!(matches!(result, Err(Error::InvalidArgument { op: "mean_of", .. })));
    }
}

#[test]
fn a_buffer_that_changes_in_a_later_micro_batch_only() {
    struct Odd {
        w: T,
        count: swath::nn::Buffer,
    }
    swath::module!(Odd: CpuBackend { w, count });
    let mut model = Odd {
        w: T::ones((), DType::F32).unwrap().requires_grad(),
        count: swath::nn::Buffer::new(T::zeros((), DType::F32).unwrap()),
    };
    let world = World::local(1).unwrap().remove(0);
    let mut parallel = DataParallel::new(&world, &mut model, 2).unwrap();
    let error = parallel.mean_gradients(&mut model, &(0..2), |model, micro| {
        if micro.index == 1 {
            model.count.set(T::ones((), DType::F32)?);
        }
        model.w.square()
    });
    let text = error.unwrap_err().to_string();
    assert!(text.contains("`count` changed in some micro-batches only"), "{text}");
    assert_eq!(model.count.get().item::<f32>(), Ok(0.0), "it is put back");
}

#[test]
fn other_values_of_parameters() {
    let found = on_ranks(2, |world| {
        let mut model = model(2);
        let parallel = DataParallel::new(&world, &mut model, 2)?;
        parallel.check_model(&model)?;
        if world.rank() == 1 {
            model.weight = model.weight.detach().neg()?.requires_grad();
        }
        parallel.check_model(&model)
    });
    expect(&found, "rank 1: it differs from rank 0 in the options or values, in agree");
}

/// A transport whose messages never arrive.
struct Silent;

impl Transport for Silent {
    fn rank(&self) -> usize {
        1
    }
    fn size(&self) -> usize {
        3
    }
    fn name(&self) -> String {
        "silence".to_owned()
    }
    fn send(&mut self, _: usize, _: <CpuBackend as Backend>::Tensor) -> Result<()> {
        Ok(())
    }
    fn receive(&mut self, _: usize, _: DType, _: usize) -> Result<()> {
        Ok(())
    }
    fn test(&mut self) -> Result<bool> {
        Ok(false)
    }
    fn take(&mut self) -> Vec<<CpuBackend as Backend>::Tensor> {
        Vec::new()
    }
    fn waiting_for(&self) -> Option<usize> {
        Some(0)
    }
    fn finish(&mut self) -> Result<()> {
        panic!("a world that has failed does not end in good order")
    }
    fn abort(&mut self) {}
}

#[test]
fn a_transport_of_ones_own_that_is_silent() {
    let world = World::over(Silent).with_deadline(Duration::from_millis(10));
    let error = world.barrier().unwrap_err();
    assert!(matches!(error, Error::Stalled { waiting_for: 0, what: "barrier", .. }), "{error}");
}

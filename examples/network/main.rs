//! Measures the cost of training on several ranks: the agreement before a step, the sum of gradients, and the overhead
//! on one rank. `examples/scaling` takes these figures.
//!
//! ```text
//! cargo build --release --features mpi --example network
//! mpirun -n 2 target/release/examples/network --mpi          processes
//! target/release/examples/network --local 2                  threads of one process
//! target/release/examples/network                            one rank: the overhead of a step
//! ```

use std::process::ExitCode;
use std::time::Instant;

use lexopt::prelude::*;
use swath::cpu::prelude::*;
use swath::distributed::{DataParallel, World};
use swath::nn::{Activation, Linear, Sequential, loss};
use swath::optim::{AdamW, AdamWOptions};

/// Error of a run.
type Failure = Box<dyn std::error::Error>;

const HELP: &str = "\
Measures the cost of training on several ranks.

usage: network [--mpi | --local N] [--bytes N]

  --mpi        the ranks are the processes that mpirun started (needs the feature mpi)
  --local N    the ranks are N threads
  --bytes N    bytes to sum (default 10000000)";

/// Repetitions of a sum; the median is reported.
const SUMS: usize = 21;
/// Repetitions of an agreement; the fastest and the median are reported.
const AGREEMENTS: usize = 2000;
/// Pairs of steps, with and without [`DataParallel`].
const STEPS: usize = 60;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("network: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let (mut mpi, mut local, mut bytes) = (false, 1usize, 10_000_000usize);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("mpi") => mpi = true,
            Long("local") => local = parser.value()?.parse()?,
            Long("bytes") => bytes = parser.value()?.parse()?,
            Long("help") | Short('h') => {
                println!("{HELP}");
                return Ok(());
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if mpi {
        #[cfg(feature = "mpi")]
        return Ok(measure(&World::mpi()?, bytes)?);
        #[cfg(not(feature = "mpi"))]
        return Err("--mpi: this program was built without it; build with --features mpi".into());
    }
    let ranks = World::local(local)?;
    std::thread::scope(|scope| {
        let spawn = |world: World| scope.spawn(move || measure(&world, bytes));
        let threads: Vec<_> = ranks.into_iter().map(spawn).collect();
        let mut results = threads.into_iter().map(|thread| thread.join());
        results.try_for_each(|result| result.map_err(|_| "a rank panicked")?.map_err(Failure::from))
    })
}

fn measure(world: &World, bytes: usize) -> Result<()> {
    if world.is_root() {
        println!("{world}");
    }
    if world.size() == 1 {
        return overhead(world);
    }
    let seconds = |f: &dyn Fn() -> Result<()>| {
        let start = Instant::now();
        f()?;
        Ok::<_, Error>(start.elapsed().as_secs_f64())
    };
    let mut agreements =
        (0..AGREEMENTS).map(|_| seconds(&|| world.barrier())).collect::<Result<Vec<f64>>>()?;
    let x = Tensor::rand(bytes / 4, 0.0..1.0, &mut Rng::seed(world.rank() as u64))?;
    world.sum(&x)?;
    let mut sums = (0..SUMS)
        .map(|_| {
            world.barrier()?;
            seconds(&|| world.sum(&x).map(drop))
        })
        .collect::<Result<Vec<f64>>>()?;
    agreements.sort_by(f64::total_cmp);
    sums.sort_by(f64::total_cmp);
    if world.is_root() {
        let least = 1e6 * agreements[0];
        let usual = 1e6 * agreements[AGREEMENTS / 2];
        println!("agreement   {least:.1} µs fastest, {usual:.1} µs median");
        println!("sum         {:.2} ms for {bytes} bytes, median of {SUMS}", 1e3 * sums[SUMS / 2]);
    }
    Ok(())
}

/// Times steps of a small network on one rank, alternately with and without [`DataParallel`].
fn overhead(world: &World) -> Result<()> {
    let mut rng = Rng::seed(1);
    let mut new = || -> Result<Sequential> {
        Ok(Sequential::new()
            .push(Linear::new(256, 512, &mut rng)?)
            .push(Activation::Gelu)
            .push(Linear::new(512, 512, &mut rng)?)
            .push(Activation::Gelu)
            .push(Linear::new(512, 10, &mut rng)?))
    };
    let (mut plain, mut shared) = (new()?, new()?);
    let options = AdamWOptions::default();
    let (mut optimizer, mut of_shared) = (AdamW::new(options)?, AdamW::new(options)?);
    let mut parallel = DataParallel::new(world, &mut shared, 1)?;
    let x = Tensor::randn((512, 256), &mut Rng::seed(2))?;
    let y = Tensor::randn((512, 10), &mut Rng::seed(3))?;
    let batch = (x.clone(), y.clone());
    let mut ratios = Vec::new();
    for _ in 0..STEPS {
        let start = Instant::now();
        let grads = loss::mse(&plain.forward(&x)?, &y)?.backward()?;
        optimizer.step(&mut plain, &grads)?;
        drop(grads);
        let alone = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let mean = parallel.mean_gradients(&mut shared, &batch, |model, micro| {
            loss::mse(&model.forward(&micro.data.0)?, &micro.data.1)
        })?;
        of_shared.step(&mut shared, &mean.gradients)?;
        drop(mean);
        ratios.push((start.elapsed().as_secs_f64() / alone, alone));
    }
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, alone) = ratios[STEPS / 2];
    println!("with DataParallel, a step of {:.2} ms takes {ratio:.4} times as long", 1e3 * alone);
    Ok(())
}

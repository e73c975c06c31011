//! Ranks that are processes of an MPI job: what they do together, and every fault provoked.
//!
//! `cargo test --features mpi --test mpi` starts this program again under `mpirun` (or the command in `SWATH_MPIRUN`,
//! without `-n`), once for each case. Without MPI or a launcher the cases are skipped, by name.

use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use swath::distributed::{DataParallel, World};
use swath::nn::{Linear, Module};
use swath::prelude::*;

type T = Tensor<CpuBackend>;

/// The case that a rank runs.
const CASE: &str = "SWATH_MPI_CASE";
const DEFAULT_LAUNCHER: &str = "mpirun --allow-run-as-root --oversubscribe --bind-to none";

/// A case: the number of ranks, what a rank does, and what the launcher and the ranks must have said.
struct Case {
    name: &'static str,
    ranks: usize,
    /// What each rank does.
    rank: fn(World) -> Result<()>,
    succeeds: bool,
    /// Texts in the output, and how often at least.
    texts: &'static [(&'static str, usize)],
}

const CASES: &[Case] = &[
    Case { name: "messages", ranks: 4, rank: messages, succeeds: true, texts: &[("done", 4)] },
    Case { name: "alone", ranks: 1, rank: messages, succeeds: true, texts: &[("done", 1)] },
    Case {
        name: "other_micro_batches",
        ranks: 3,
        rank: other_micro_batches,
        succeeds: false,
        texts: &[("rank 2: it differs from rank 0 in the number of micro-batches: 5 there, 4", 3)],
    },
    Case {
        name: "a_step_less",
        ranks: 3,
        rank: a_step_less,
        succeeds: false,
        texts: &[("rank 1: it left before mean_gradients", 2)],
    },
    Case {
        name: "hanging",
        ranks: 3,
        rank: hanging,
        succeeds: false,
        // Rank 0 tells the others; the launcher may end them before they print.
        texts: &[("barrier: rank 2 did not answer for 1 s", 1)],
    },
    Case {
        name: "panicking_thread",
        ranks: 2,
        rank: panicking_thread,
        succeeds: false,
        texts: &[("rank 1 panicked; the job ends", 1)],
    },
    Case { name: "killed", ranks: 3, rank: killed, succeeds: false, texts: &[("by itself", 1)] },
    Case {
        name: "too_many_ranks",
        ranks: 4,
        rank: too_many_ranks,
        succeeds: false,
        texts: &[("4 ranks for 3 micro-batches", 1)],
    },
];

fn messages(world: World) -> Result<()> {
    for dtype in DType::ALL {
        let x = T::arange(0.0, 9.0, 1.0)?.add(world.rank() as f64)?.to_dtype(dtype)?;
        let all = world.all_gather(&x.reshape((3, 3))?)?;
        for (rank, found) in all.iter().enumerate() {
            let expected = T::arange(0.0, 9.0, 1.0)?.add(rank as f64)?.to_dtype(dtype)?;
            assert!(found.reshape(9)?.eq(&expected)?.all(None, false)?.item::<bool>()?, "{dtype}");
        }
    }
    let large = T::full(3_000_001, world.rank() as f32 + 1.0)?;
    let ranks = world.size() as f32;
    let sum = world.sum(&large)?;
    assert_eq!(sum.min(None, false)?.item::<f32>()?, ranks * (ranks + 1.0) / 2.0);
    assert_eq!(sum.max(None, false)?.item::<f32>()?, ranks * (ranks + 1.0) / 2.0);
    assert_eq!(world.broadcast(&large)?.max(None, false)?.item::<f32>()?, 1.0);
    assert_eq!(world.gather(&T::zeros((0, 2), DType::F32)?)?.is_some(), world.is_root());
    world.barrier()?;
    assert!(World::mpi().is_err(), "MPI was started before");
    println!("done");
    Ok(())
}

fn step(parallel: &mut DataParallel, model: &mut Linear) -> Result<f64> {
    let x = T::ones((8, 3), DType::F32)?;
    let mean = parallel
        .mean_gradients(model, &x, |model, micro| model.forward(&micro.data)?.mean(None, false))?;
    Ok(mean.loss)
}

fn model() -> Result<Linear> {
    Linear::new(3, 2, &mut Rng::seed(1))
}

fn other_micro_batches(world: World) -> Result<()> {
    let result = DataParallel::new(&world, &mut model()?, 4 + world.rank() / 2).map(drop);
    // Each prints its error before one of them leaves, and the launcher ends the others.
    println!("{}", result.as_ref().unwrap_err());
    world.barrier()?;
    result
}

fn a_step_less(world: World) -> Result<()> {
    let mut model = model()?;
    let mut parallel = DataParallel::new(&world, &mut model, 4)?;
    let steps = if world.rank() == 1 { 2 } else { 3 };
    let result = (0..steps).try_for_each(|_| step(&mut parallel, &mut model).map(drop));
    if let Err(error) = &result {
        println!("{error}");
        std::thread::sleep(Duration::from_millis(500));
    }
    result
}

fn hanging(world: World) -> Result<()> {
    let world = world.with_deadline(Duration::from_secs(1));
    if world.rank() == 2 {
        std::thread::sleep(Duration::from_secs(100));
    }
    world.barrier()
}

fn panicking_thread(world: World) -> Result<()> {
    if world.rank() == 1 {
        let thread = std::thread::spawn(|| panic!("on purpose"));
        let _ = thread.join();
    }
    // Without the hook the panic would go unnoticed, and the job last beyond LIMIT.
    std::thread::sleep(Duration::from_secs(100));
    world.barrier()
}

fn killed(world: World) -> Result<()> {
    let mut model = model()?;
    let mut parallel = DataParallel::new(&world, &mut model, 4)?;
    loop {
        if world.rank() == 1 {
            println!("rank 1 ends by itself");
            let id = std::process::id().to_string();
            let _ = Command::new("kill").args(["-9", &id]).status();
        }
        step(&mut parallel, &mut model)?;
    }
}

fn too_many_ranks(world: World) -> Result<()> {
    DataParallel::new(&world, &mut model()?, 3).map(drop)
}

/// A case that has not ended by then hangs: the ranks of some sleep for longer.
const LIMIT: Duration = Duration::from_secs(60);

fn launch(ranks: usize, case: &str, launcher: &str) -> std::io::Result<Output> {
    let mut words = launcher.split_whitespace();
    let mut job = Command::new(words.next().unwrap_or_default())
        .args(words)
        .args(["-n", &ranks.to_string()])
        .arg(std::env::current_exe()?)
        .env(CASE, case)
        .env("SWATH_THREADS", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // What a case prints fits in a pipe.
    let start = Instant::now();
    while job.try_wait()?.is_none() {
        if start.elapsed() > LIMIT {
            job.kill()?;
            return Err(std::io::Error::other("the job did not end"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    job.wait_with_output()
}

/// The error of a program that another library's launcher started.
fn wrong_launcher() -> Result<(), String> {
    let output = Command::new(std::env::current_exe().map_err(|e| e.to_string())?)
        .env(CASE, "messages")
        .env("OMPI_COMM_WORLD_SIZE", "2")
        .env("PMI_SIZE", "2")
        .env_remove("PMI_FD")
        .output()
        .map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    match text.contains("the launcher started 2 processes, but MPI says 1") {
        true => Ok(()),
        false => Err(text),
    }
}

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(CASE) {
        let case = CASES.iter().find(|case| case.name == name).expect("a known case");
        return match World::mpi().and_then(case.rank) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let launcher = std::env::var("SWATH_MPIRUN").unwrap_or(DEFAULT_LAUNCHER.to_owned());
    let program = launcher.split_whitespace().next().unwrap_or_default().to_owned();
    if Command::new(&program).arg("--version").output().is_err() {
        println!("skipped: no {program} was found");
        return ExitCode::SUCCESS;
    }
    let (mut passed, mut failed) = (0, 0);
    let mut report = |name: &str, start: Instant, result: std::result::Result<(), String>| {
        let seconds = start.elapsed().as_secs_f64();
        match &result {
            Ok(()) => println!("test {name} ... ok, {seconds:.1} s"),
            Err(text) => println!("test {name} ... FAILED, {seconds:.1} s\n{text}"),
        }
        *if result.is_ok() { &mut passed } else { &mut failed } += 1;
    };
    for case in CASES {
        let start = Instant::now();
        let result = launch(case.ranks, case.name, &launcher).map_err(|e| e.to_string()).and_then(
            |output| {
                let text = [output.stdout, output.stderr].concat();
                let text = String::from_utf8_lossy(&text).into_owned();
                let found = |(part, times): &(&str, usize)| text.matches(part).count() >= *times;
                match output.status.success() == case.succeeds && case.texts.iter().all(found) {
                    true => Ok(()),
                    false => Err(format!("{}\n{text}", output.status)),
                }
            },
        );
        report(case.name, start, result);
    }
    let start = Instant::now();
    report("wrong_launcher", start, wrong_launcher());
    println!("\ntest result: {passed} passed; {failed} failed");
    ExitCode::from(u8::from(failed > 0))
}

//! Parallel regions from any caller: several callers at once, a user's rayon pool, a number of threads that
//! changes meanwhile, more threads than cores. Each case must end, with the same bits.
//!
//! The tests are a separate program because the number of threads is global.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use swath::prelude::*;
use swath::runtime::{info, set_threads};
use swath::testing::shared_regions;

type T = Tensor<CpuBackend>;

const THREADS: [usize; 6] = [1, 2, 3, 5, 7, 13];

/// Runs a case on a new thread, with no other case at the same time; fails if it takes over a minute.
fn case(f: impl FnOnce() + Send + 'static) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (done, ended) = channel();
    let thread = std::thread::spawn(move || {
        f();
        done.send(()).ok();
    });
    match ended.recv_timeout(Duration::from_secs(60)) {
        Err(RecvTimeoutError::Timeout) => panic!("deadlock: the case has not ended after a minute"),
        _ => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
}

/// Large enough for every region to be split, even if all other threads sleep and in a user's pool.
struct Operands {
    square: T,
    /// Its product with its transpose is square too.
    narrow: T,
    long_rows: T,
}

static OPERANDS: LazyLock<[Operands; 2]> = LazyLock::new(|| {
    let of = |seed| -> Result<Operands> {
        let mut rng = Rng::seed(seed);
        Ok(Operands {
            square: T::randn((1100, 1100), &mut rng)?,
            narrow: T::randn((600, 64), &mut rng)?,
            long_rows: T::randn((2, 600_000), &mut rng)?.to_dtype(DType::F64)?,
        })
    };
    [0, 1].map(|seed| of(seed).unwrap())
});

/// Runs regions of every kind and returns the bits of their results. Calls `after` with the name of each
/// completed operation and the least number of regions that three or more threads must split.
fn bits_after(seed: usize, after: &mut dyn FnMut(&str, usize)) -> Vec<u64> {
    let mut run = || -> Result<Vec<T>> {
        let Operands { square, narrow, long_rows } = &OPERANDS[seed];
        let mut done = |name, regions, result: Result<T>| {
            after(name, regions);
            result
        };
        let exp = done("exp", 1, square.exp())?;
        let sum = done("transposed add", 1, exp.add(square.t()?))?;
        // A library splits products by its own rules.
        let embedded = usize::from(info().blas.provider == "embedded");
        let product = done("product", embedded, narrow.matmul(&narrow.t()?))?;
        let powers = done("softmax", 1, product.softmax(-1))?;
        Ok(vec![
            done("sums of columns", 1, sum.sum_axis(0, false))?,
            done("sums of rows", 1, sum.sum_axis(1, false))?,
            done("running sums", 1, powers.cumsum(0))?,
            // Two rows, each of which is split.
            done("sums of long rows", 2, long_rows.sum_axis(1, false))?,
            done("logsumexp of long rows", 4, long_rows.logsumexp_axis(1, false))?,
        ])
    };
    let wide = |x: &T| x.to_dtype(DType::F64)?.to_vec::<f64>();
    run().unwrap().iter().flat_map(|x| wide(x).unwrap()).map(f64::to_bits).collect()
}

fn bits(seed: usize) -> Vec<u64> {
    bits_after(seed, &mut |_, _| ())
}

fn expected() -> Vec<Vec<u64>> {
    set_threads(1).unwrap();
    (0..2).map(bits).collect()
}

/// Guards the other cases: they test nothing if regions run on one thread.
#[test]
fn every_region_is_split() {
    fn check(threads: usize) {
        assert_eq!(info().threads, threads);
        let mut before = shared_regions();
        bits_after(0, &mut |name, least| {
            let shared = shared_regions() - before;
            // Two threads take a row each.
            let least = least.min(threads - 1);
            assert!(
                shared >= least,
                "{name}: {shared} of {least} regions split on {threads} threads"
            );
            assert!(shared == 0 || threads > 1, "{name}: split on one thread");
            before = shared_regions();
        });
    }
    case(|| {
        for threads in THREADS {
            set_threads(threads).unwrap();
            check(threads);
        }
        for workers in [3, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build().unwrap();
            pool.install(|| check(workers));
        }
    });
}

#[test]
fn concurrent_callers_get_the_same_bits_for_any_number_of_threads() {
    case(|| {
        let expected = expected();
        for threads in THREADS {
            set_threads(threads).unwrap();
            std::thread::scope(|scope| {
                for caller in 0..3 {
                    let expected = &expected;
                    scope.spawn(move || {
                        for i in caller..caller + 2 {
                            assert!(bits(i % 2) == expected[i % 2], "{threads} threads");
                        }
                    });
                }
            });
        }
    });
}

#[test]
fn changing_the_number_of_threads_during_regions_keeps_the_bits() {
    case(|| {
        let expected = expected();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0.. {
                    if over.load(Ordering::SeqCst) {
                        break;
                    }
                    set_threads(THREADS[i % THREADS.len()]).unwrap();
                    std::thread::sleep(Duration::from_micros(300));
                }
            });
            let callers: Vec<_> = (0..3)
                .map(|caller| {
                    let expected = &expected;
                    scope
                        .spawn(move || (caller..caller + 6).all(|i| bits(i % 2) == expected[i % 2]))
                })
                .collect();
            let same = callers.into_iter().all(|caller| caller.join().unwrap());
            over.store(true, Ordering::SeqCst);
            assert!(same);
        });
    });
}

#[test]
fn callers_inside_and_outside_a_users_pool_get_the_same_bits() {
    case(|| {
        let expected = expected();
        for (threads, workers) in [(2, 1), (3, 2), (2, 5), (13, 3)] {
            set_threads(threads).unwrap();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for i in 0..4 {
                        assert!(bits(i % 2) == expected[i % 2]);
                    }
                });
                // Regions in nested jobs.
                pool.scope(|jobs| {
                    for _ in 0..2 {
                        jobs.spawn(|_| {
                            let (a, b) = rayon::join(|| bits(0), || bits(1));
                            assert!(a == expected[0] && b == expected[1]);
                        });
                    }
                });
            });
        }
    });
}

/// Runs `f(i)` for `i` in `0..jobs` in a user's pool.
fn in_a_pool(jobs: usize, f: impl Fn(usize) + Sync) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    pool.scope(|scope| {
        for i in 0..jobs {
            let f = &f;
            scope.spawn(move |_| f(i));
        }
    });
}

/// A thread that waits for its region runs another job, which needs the same thread-local memory: the one for
/// packing the right side of a batch of products.
#[test]
fn nested_jobs_share_the_packing_memory_of_a_thread() {
    case(|| {
        let batch = T::randn([64, 32, 128], &mut Rng::seed(1)).unwrap();
        let a = batch.permute(&[1, 0, 2]).unwrap();
        let b = T::randn([1, 128, 128], &mut Rng::seed(2)).unwrap().expand([32, 128, 128]).unwrap();
        let product = || a.matmul(&b).unwrap().to_vec::<f32>().unwrap();
        let expected = product();
        in_a_pool(200, |_| assert_eq!(product(), expected));
    });
}

/// A thread that waits inside `no_grad` runs another job, which must be recorded all the same.
#[test]
fn jobs_run_while_waiting_are_recorded() {
    case(|| {
        let x = T::randn(2_000_000, &mut Rng::seed(3)).unwrap();
        let lost = AtomicUsize::new(0);
        in_a_pool(300, |i| match i % 3 {
            0 => no_grad(|| {
                for _ in 0..3 {
                    x.exp().unwrap();
                }
            }),
            1 => {
                let is_tracked = x.requires_grad().exp().unwrap().is_tracked();
                lost.fetch_add(usize::from(!is_tracked), Ordering::Relaxed);
            }
            _ => {
                let w = x.requires_grad();
                let sum = w.exp().unwrap().sum(None, false).unwrap();
                let gradient = sum.backward().and_then(|grads| grads.wrt(&w).cloned());
                lost.fetch_add(usize::from(gradient.is_err()), Ordering::Relaxed);
            }
        });
        assert_eq!(lost.into_inner(), 0, "recordings lost");
    });
}

/// A user's jobs make progress while swath has more threads than the machine has cores.
#[test]
fn a_users_jobs_are_not_starved() {
    case(|| {
        set_threads(13).unwrap();
        let (over, done) = (AtomicBool::new(false), AtomicUsize::new(0));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(Ordering::SeqCst) {
                        bits(1);
                    }
                });
            }
            let start = Instant::now();
            while done.load(Ordering::SeqCst) < 200 && start.elapsed() < Duration::from_secs(50) {
                pool.scope(|jobs| {
                    for _ in 0..10 {
                        jobs.spawn(|_| {
                            done.fetch_add(1, Ordering::SeqCst);
                        });
                    }
                });
            }
            over.store(true, Ordering::SeqCst);
        });
        assert!(done.into_inner() >= 200);
    });
}

/// With more threads than cores, waiting threads must not slow down working ones: the time stays near that of
/// one thread. The bound is wide and for the fastest of several runs, because other processes run too.
#[test]
fn more_threads_than_cores_take_less_than_twice_the_time() {
    case(|| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let time = |threads| {
            set_threads(threads).unwrap();
            bits(0);
            let start = Instant::now();
            for _ in 0..2 {
                bits(0);
            }
            start.elapsed()
        };
        let ratios: Vec<f64> = (0..4)
            .map(|_| {
                let one = time(1);
                time(4 * cores).as_secs_f64() / one.as_secs_f64()
            })
            .collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        println!("{} threads over one: {ratios:.2?}", 4 * cores);
        assert!(least < 2.0, "{} threads take {least:.1} times as long as one", 4 * cores);
    });
}

/// Without spinning, helper threads are woken for every region.
#[test]
fn helpers_that_do_not_spin_give_the_same_bits() {
    const NAME: &str = "helpers_that_do_not_spin_give_the_same_bits";
    if std::env::var_os("SWATH_SPIN_US").is_some_and(|us| us == "0") {
        let expected = expected();
        for threads in THREADS {
            set_threads(threads).unwrap();
            assert!((0..2).map(bits).eq(expected.iter().cloned()), "{threads} threads");
        }
        return;
    }
    case(|| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.env("SWATH_SPIN_US", "0").args(["--exact", NAME]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    });
}

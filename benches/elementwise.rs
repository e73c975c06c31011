//! Element-wise functions of `f32` slices: time an element, GB/s of the bytes that the function must
//! touch, and the share of the bandwidth that a copy (one input) or a triad (two inputs) of the same
//! size reaches beside it, with ordinary or with non-temporal stores, whichever is faster. Arrays of the
//! largest size come from memory, not from a cache. Then some of them through `Tensor`: what a call takes
//! beyond the slice's on one thread, and how much faster two threads are than that.
//!
//! `cargo bench --bench elementwise -- [--worst] [WORD…]`: arguments are normally distributed with
//! standard deviation 2, or with `--worst` subnormal and huge ones too.
//!
//! The last column is the time an element would take if the FMA peak measured beside it were
//! 247 GFLOP/s: it compares functions that compute across machines and clocks.

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod support;

use std::hint::black_box;
use support::{Bench, Kernel, REFERENCE_PEAK, Work, values};
use swath::prelude::*;
use swath_kernels as kernels;
use swath_kernels::{Arg, Function, math::Pow, peak};

/// Elements: a call's overhead; L1; L2; memory.
const SIZES: [usize; 4] = [64, 4096, 262_144, 4 << 20];

/// Through tensors: those, and where work begins to be shared by threads.
const TENSOR_SIZES: [usize; 8] = [64, 4096, 50_000, 65_536, 100_000, 131_072, 262_144, 4 << 20];

/// Arrays of the largest size that a case goes over in turn, so that all come from memory; the limit
/// goes over one that is so many times as long.
const IN_TURN: usize = 4;

/// How many arrays of so many elements a case goes over.
fn arrays(size: usize) -> usize {
    if size == SIZES[SIZES.len() - 1] { IN_TURN } else { 1 }
}

/// A function and where its arguments come from. Functions of one argument leave the second alone.
type Case = (&'static str, Arguments, fn(&[f32], &[f32], &mut [f32]));

#[derive(Clone, Copy, PartialEq)]
enum Arguments {
    /// One, from everywhere.
    Any,
    /// One, positive.
    Positive,
    /// Two.
    Pair,
    /// Two, the first positive.
    PositivePair,
}
use Arguments::{Any, Pair, Positive, PositivePair};

const CASES: [Case; 20] = [
    ("neg", Any, |x, _, y| kernels::neg(x, y)),
    ("relu", Any, |x, _, y| kernels::relu(x, y)),
    ("add", Pair, |a, b, y| kernels::add(a, b, y)),
    ("mul", Pair, |a, b, y| kernels::mul(a, b, y)),
    ("div", Pair, |a, b, y| kernels::div(a, b, y)),
    ("sqrt", Positive, |x, _, y| kernels::sqrt(x, y)),
    ("recip", Any, |x, _, y| kernels::recip(x, y)),
    ("exp", Any, |x, _, y| kernels::exp(x, y)),
    ("log", Positive, |x, _, y| kernels::log(x, y)),
    ("tanh", Any, |x, _, y| kernels::tanh(x, y)),
    ("sigmoid", Any, |x, _, y| kernels::sigmoid(x, y)),
    ("silu", Any, |x, _, y| kernels::silu(x, y)),
    ("gelu_tanh", Any, |x, _, y| kernels::gelu_tanh(x, y)),
    ("gelu", Any, |x, _, y| kernels::gelu(x, y)),
    ("erf", Any, |x, _, y| kernels::erf(x, y)),
    ("sin", Any, |x, _, y| kernels::sin(x, y)),
    ("cos", Any, |x, _, y| kernels::cos(x, y)),
    ("pow", PositivePair, |a, b, y| kernels::pow(a, b, y)),
    ("pow_scalar", Positive, |a, _, y| Pow::KERNEL.run([Arg::Slice(a), Arg::Scalar(1.7)], y)),
    ("silu_grad", Pair, |g, x, y| kernels::silu_grad(g, x, y)),
];

/// A function of slices and of tensors.
type TensorCase = (&'static str, fn(&[f32], &mut [f32]), fn(&T) -> Result<T>);
type T = Tensor<CpuBackend>;

const TENSOR_CASES: [TensorCase; 13] = [
    ("neg", |x, y| kernels::neg(x, y), T::neg),
    ("relu", |x, y| kernels::relu(x, y), T::relu),
    ("sqrt", |x, y| kernels::sqrt(x, y), T::sqrt),
    ("exp", |x, y| kernels::exp(x, y), T::exp),
    ("log", |x, y| kernels::log(x, y), T::log),
    ("tanh", |x, y| kernels::tanh(x, y), T::tanh),
    ("sigmoid", |x, y| kernels::sigmoid(x, y), T::sigmoid),
    ("silu", |x, y| kernels::silu(x, y), T::silu),
    ("gelu_tanh", |x, y| kernels::gelu_tanh(x, y), T::gelu_tanh),
    ("gelu", |x, y| kernels::gelu(x, y), T::gelu),
    ("erf", |x, y| kernels::erf(x, y), T::erf),
    ("sin", |x, y| kernels::sin(x, y), T::sin),
    ("cos", |x, y| kernels::cos(x, y), T::cos),
];

fn main() -> Result<()> {
    let bench = Bench::from_args("element-wise");
    let worst = std::env::args().any(|argument| argument == "--worst");
    println!("arguments: {}", if worst { "subnormal and huge" } else { "N(0, 2²)" });
    println!(
        "{:20} {:>10} {:>8} {:>13} {:>9} {:>15}",
        "", "ns/element", "GB/s", "of bandwidth", "bandwidth", "ns at 247 peak"
    );
    let draw = if worst { worst_value } else { normal_value };
    for size in SIZES {
        for (name, arguments, function) in CASES {
            let mut uniform = uniform();
            let mut sets: Vec<_> = (0..arrays(size))
                .map(|_| {
                    let (mut a, mut b) = (values(size), values(size));
                    for x in a.iter_mut() {
                        let drawn = draw(&mut uniform);
                        let positive = matches!(arguments, Positive | PositivePair);
                        *x = if positive { drawn.abs() } else { drawn };
                    }
                    b.iter_mut().for_each(|x| *x = draw(&mut uniform));
                    (a, b, values(size))
                })
                .collect();
            let mut turn = (0..sets.len()).cycle();
            let streams: usize = match arguments {
                Pair | PositivePair => 3,
                Any | Positive => 2,
            };
            let call = Work::new(4 * streams * size, || {
                let (a, b, y) = &mut sets[turn.next().unwrap_or(0)];
                function(black_box(a), black_box(b), y);
            });
            report(&bench, name, size, call, streams);
        }
    }
    tensors(&bench, draw)
}

/// Some functions of the arguments' magnitudes through `Tensor`, on one thread and on two, beside the
/// slices' on one and a copy of as many bytes on as many threads.
fn tensors(bench: &Bench, draw: fn(&mut dyn FnMut() -> f64) -> f32) -> Result<()> {
    println!(
        "\n{:24} {:>12} {:>14} {:>16} {:>13}",
        "", "ns a call", "beyond slice's", "slice's over it", "of bandwidth"
    );
    for threads in [1, 2] {
        swath::runtime::set_threads(threads)?;
        for size in TENSOR_SIZES {
            for (name, of_slice, of_tensor) in TENSOR_CASES {
                let mut uniform = uniform();
                let mut sets = Vec::new();
                for _ in 0..arrays(size) {
                    let mut x = values(size);
                    x.iter_mut().for_each(|x| *x = draw(&mut uniform).abs());
                    sets.push((T::from_slice(&x, size)?, x));
                }
                let (mut turn, mut turn_of_slices) =
                    ((0..sets.len()).cycle(), (0..sets.len()).cycle());
                let mut y: Vec<_> = sets.iter().map(|_| values(size)).collect();
                let call = Work::new(8 * size, || {
                    let (tensor, _) = &sets[turn.next().unwrap_or(0)];
                    _ = black_box(of_tensor(black_box(tensor)).expect("a shape that fits"));
                });
                let slice = Work::new(8 * size, || {
                    let i = turn_of_slices.next().unwrap_or(0);
                    of_slice(black_box(&sets[i].1), &mut y[i]);
                });
                let [plain, streaming] = limits(threads, size, 2);
                let name = format!("tensor {name} {size} T{threads}");
                if let Some(measured) = bench.measure(&name, call, &mut [slice, plain, streaming]) {
                    let nanoseconds = measured.seconds * 1e9;
                    let ratio = measured.yardsticks[0].1;
                    let share = measured.yardsticks[1].1.min(measured.yardsticks[2].1);
                    let beyond = nanoseconds * (1.0 - ratio);
                    println!(
                        "{name:24} {nanoseconds:12.0} {beyond:14.0} {ratio:16.2} {share:13.2}"
                    );
                }
            }
        }
    }
    Ok(())
}

/// Uniform in (0, 1), by Knuth's linear congruences.
fn uniform() -> impl FnMut() -> f64 {
    let mut state = 1u64;
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }
}

/// Normally distributed with standard deviation 2, by Box and Muller.
fn normal_value(uniform: &mut dyn FnMut() -> f64) -> f32 {
    let radius = (-2.0 * uniform().ln()).sqrt();
    (2.0 * radius * (std::f64::consts::TAU * uniform()).cos()) as f32
}

/// A subnormal number, a huge one, an ordinary one or one whose exponential is subnormal.
fn worst_value(uniform: &mut dyn FnMut() -> f64) -> f32 {
    let x = match (4.0 * uniform()) as u32 {
        0 => uniform() * f64::from(f32::MIN_POSITIVE),
        1 => 2f64.powf(20.0 + 107.0 * uniform()),
        2 => 87.0 + 17.0 * uniform(),
        _ => 4.0 * uniform(),
    };
    if uniform() < 0.5 { -x as f32 } else { x as f32 }
}

/// A copy (two arrays) or a triad (three) of so many elements, or of the larger array that stands for
/// several, by ordinary and by non-temporal stores.
fn limits(threads: usize, size: usize, streams: usize) -> [Work<'static>; 2] {
    let kernels: [Kernel; 2] = match streams {
        2 => [|x, _, y| peak::copy(x, y), |x, _, y| peak::copy_streaming(x, y)],
        _ => [peak::triad, peak::triad_streaming],
    };
    let size = size * arrays(size);
    kernels.map(|kernel| Work::on_threads(threads, size, 4 * streams * size, kernel))
}

fn report(bench: &Bench, name: &str, size: usize, call: Work, streams: usize) {
    let name = format!("{name} {size}");
    let [plain, streaming] = limits(1, size, streams);
    if let Some(measured) = bench.measure(&name, call, &mut [plain, streaming, Work::fma_f32()]) {
        let nanoseconds = measured.seconds * 1e9 / size as f64;
        let [plain, streaming] = [measured.yardsticks[0], measured.yardsticks[1]];
        let (bandwidth, share) = if plain.1 < streaming.1 { plain } else { streaming };
        let peak = measured.yardsticks[2].0 / 1e9;
        println!(
            "{name:20} {nanoseconds:10.3} {:8.1} {share:13.3} {:9.1} {:15.3}",
            measured.rate / 1e9,
            bandwidth / 1e9,
            nanoseconds * peak / REFERENCE_PEAK,
        );
    }
}

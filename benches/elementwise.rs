//! Element-wise functions of `f32`: of slices, of slices with arguments for which kernels are slowest, and
//! through `Tensor`. Their limit is a copy (one input) or a triad (two inputs) of as many elements.

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod support;

use std::hint::black_box;

use support::values::{Values, values};
use support::{Group, Limit, Suite};
use swath::prelude::*;
use swath_kernels as kernels;
use swath_kernels::{Arg, Function, math::Pow};

type T = Tensor<CpuBackend>;

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

/// A function of tensors.
type TensorCase = (&'static str, fn(&T) -> Result<T>);

const TENSOR_CASES: [TensorCase; 13] = [
    ("neg", T::neg),
    ("relu", T::relu),
    ("sqrt", T::sqrt),
    ("exp", T::exp),
    ("log", T::log),
    ("tanh", T::tanh),
    ("sigmoid", T::sigmoid),
    ("silu", T::silu),
    ("gelu_tanh", T::gelu_tanh),
    ("gelu", T::gelu),
    ("erf", T::erf),
    ("sin", T::sin),
    ("cos", T::cos),
];

fn main() -> Result<()> {
    let mut suite = Suite::from_args();
    slices(suite.group("elementwise"), &SIZES, normal_value);
    slices(suite.group("elementwise_worst"), &[4096], worst_value);
    for threads in [1, 2] {
        tensors(suite.group_on(threads, "elementwise_tensor")?, threads);
    }
    suite.finish();
    Ok(())
}

/// An argument, from uniform numbers in (0, 1).
type Draw = fn(&mut dyn FnMut() -> f64) -> f32;

fn slices(mut group: Group, sizes: &[usize], draw: Draw) {
    for &size in sizes {
        for (name, arguments, function) in CASES {
            let length = size * arrays(size);
            let limit = match arguments {
                Pair | PositivePair => Limit::triad(1, size),
                Any | Positive => Limit::copy(1, size),
            };
            group.case(&format!("{name}/{size}"), limit.at_the_speed_of(length), || {
                let mut uniform = uniform();
                let positive = matches!(arguments, Positive | PositivePair);
                let a = drawn(size, positive, draw, &mut uniform);
                let b = drawn(size, false, draw, &mut uniform);
                let y: Vec<_> = a.iter().map(|_| values(size)).collect();
                let mut sets: Vec<_> = a.into_iter().zip(b).zip(y).collect();
                let mut turn = (0..sets.len()).cycle();
                move || {
                    let ((a, b), y) = &mut sets[turn.next().unwrap_or(0)];
                    function(black_box(a), black_box(b), y);
                }
            });
        }
    }
}

/// Of the arguments' magnitudes.
fn tensors(mut group: Group, threads: usize) {
    for size in TENSOR_SIZES {
        for (name, function) in TENSOR_CASES {
            let limit = Limit::copy(threads, size).at_the_speed_of(size * arrays(size));
            group.case(&format!("{name}/{size}"), limit, || {
                let x = drawn(size, true, normal_value, &mut uniform());
                let tensor =
                    |x: &Values| T::from_slice(x, size).expect("as many elements as given");
                let sets: Vec<T> = x.iter().map(tensor).collect();
                let mut turn = (0..sets.len()).cycle();
                move || {
                    let x = &sets[turn.next().unwrap_or(0)];
                    function(black_box(x)).expect("defined for f32")
                }
            });
        }
    }
}

/// Arguments, or their magnitudes, in as many arrays as a case of that size goes over.
fn drawn(size: usize, positive: bool, draw: Draw, uniform: &mut dyn FnMut() -> f64) -> Vec<Values> {
    let mut argument = || {
        let x = draw(uniform);
        if positive { x.abs() } else { x }
    };
    let arguments: Vec<f32> = (0..size).map(|_| argument()).collect();
    let array = |_| {
        let mut x = values(size);
        x.copy_from_slice(&arguments);
        x
    };
    (0..arrays(size)).map(array).collect()
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

//! Element-wise functions of `f32`: on slices, on slices of the arguments for which kernels are slowest, and
//! on tensors. The limit is a copy (one input) or a triad (two inputs) of as many elements.

#[allow(dead_code, reason = "each benchmark uses only a part of the module")]
mod support;

use std::hint::black_box;

use support::values::{Values, values};
use support::{Group, Limit, Suite};
use swath::prelude::*;
use swath_kernels as kernels;
use swath_kernels::{Arg, Function, math::Pow};

type T = Tensor<CpuBackend>;

/// Elements of a slice: overhead of a call, L1, L2, memory.
const SIZES: [usize; 4] = [64, 4096, 262_144, 4 << 20];

/// Elements of a tensor: those of [`SIZES`], and sizes near which work begins to be split over threads.
const TENSOR_SIZES: [usize; 8] = [64, 4096, 50_000, 65_536, 100_000, 131_072, 262_144, 4 << 20];

/// Arrays of the largest size that a case uses in turn, so that each comes from memory. The limit is
/// measured on one array as long as all of them.
const LARGE_ARRAYS: usize = 4;

/// Returns the number of arrays of `size` elements that a case uses in turn.
fn arrays(size: usize) -> usize {
    if size == SIZES[SIZES.len() - 1] { LARGE_ARRAYS } else { 1 }
}

/// Name, kind of arguments, and a function. Functions of one argument ignore the second.
type Case = (&'static str, Arguments, fn(&[f32], &[f32], &mut [f32]));

/// Number and sign of a function's arguments.
#[derive(Clone, Copy, PartialEq)]
enum Arguments {
    /// One argument of either sign.
    Any,
    /// One positive argument.
    Positive,
    /// Two arguments of either sign.
    Pair,
    /// Two arguments, the first positive.
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

/// Name of a function of one tensor, and the function.
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

/// Draws an argument, given a source of uniform numbers in (0, 1).
type Draw = fn(&mut dyn FnMut() -> f64) -> f32;

/// Times the functions on slices.
fn slices(mut group: Group, sizes: &[usize], draw: Draw) {
    for &size in sizes {
        for (name, arguments, function) in CASES {
            let length = size * arrays(size);
            let limit = match arguments {
                Pair | PositivePair => Limit::triad(1, size),
                Any | Positive => Limit::copy(1, size),
            };
            group.case(&format!("{name}/{size}"), limit.measured_on(length), || {
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

/// Times the functions on tensors of positive arguments.
fn tensors(mut group: Group, threads: usize) {
    for size in TENSOR_SIZES {
        for (name, function) in TENSOR_CASES {
            let limit = Limit::copy(threads, size).measured_on(size * arrays(size));
            group.case(&format!("{name}/{size}"), limit, || {
                let x = drawn(size, true, normal_value, &mut uniform());
                let tensor = |x: &Values| {
                    T::from_slice(x, size).expect("the shape has as many elements as the slice")
                };
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

/// Draws `size` arguments, or their magnitudes, and copies them into each array of the case.
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

/// Returns a generator of uniform numbers in (0, 1): Knuth's linear congruential generator.
fn uniform() -> impl FnMut() -> f64 {
    let mut state = 1u64;
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }
}

/// Draws from the normal distribution with standard deviation 2, by the Box–Muller transform.
fn normal_value(uniform: &mut dyn FnMut() -> f64) -> f32 {
    let radius = (-2.0 * uniform().ln()).sqrt();
    (2.0 * radius * (std::f64::consts::TAU * uniform()).cos()) as f32
}

/// Draws a subnormal number, a huge one, one whose exponential is subnormal, or an ordinary one.
fn worst_value(uniform: &mut dyn FnMut() -> f64) -> f32 {
    let x = match (4.0 * uniform()) as u32 {
        0 => uniform() * f64::from(f32::MIN_POSITIVE),
        1 => 2f64.powf(20.0 + 107.0 * uniform()),
        2 => 87.0 + 17.0 * uniform(),
        _ => 4.0 * uniform(),
    };
    if uniform() < 0.5 { -x as f32 } else { x as f32 }
}

//! Element-wise functions of `f32` beside those of other crates.
//!
//! Each crate is called in its best form: into a buffer that is there, if it has functions of slices.

mod slices;
mod tensors;

use crate::peer::{Peer, rivals};
use crate::race::ratios;
use slices::{EXPONENT, Function, Slices};
use swath_kernels::math::Pow;
use swath_kernels::{Arg, Function as _};

/// Elements: a call's overhead; L1; L2; memory.
const SIZES: [usize; 4] = [64, 4096, 262_144, 4 << 20];
/// Elements that errors are looked for on.
const SAMPLE: usize = 1 << 20;

#[derive(Clone, Copy)]
enum Arguments {
    /// One, from everywhere.
    Any,
    /// One, positive.
    Positive,
    /// Two.
    Pair,
    /// A positive one and one from everywhere.
    PositivePair,
}
use Arguments::{Any, Pair, Positive, PositivePair};

/// A function, the arguments that it is tried on, and its exact value.
struct Case {
    name: &'static str,
    arguments: Arguments,
    swath: Function,
    exact: fn(f64, f64) -> f64,
}

const fn row(
    name: &'static str,
    arguments: Arguments,
    swath: Function,
    exact: fn(f64, f64) -> f64,
) -> Case {
    Case { name, arguments, swath, exact }
}

#[rustfmt::skip]
const CASES: [Case; 17] = [
    row("neg", Any, |x, _, y| swath_kernels::neg(x, y), |x, _| -x),
    row("relu", Any, |x, _, y| swath_kernels::relu(x, y), |x, _| x.max(0.0)),
    row("sqrt", Positive, |x, _, y| swath_kernels::sqrt(x, y), |x, _| x.sqrt()),
    row("exp", Any, |x, _, y| swath_kernels::exp(x, y), |x, _| core_math::exp(x)),
    row("log", Positive, |x, _, y| swath_kernels::log(x, y), |x, _| core_math::log(x)),
    row("tanh", Any, |x, _, y| swath_kernels::tanh(x, y), |x, _| core_math::tanh(x)),
    row("sigmoid", Any, |x, _, y| swath_kernels::sigmoid(x, y), |x, _| sigmoid(x)),
    row("silu", Any, |x, _, y| swath_kernels::silu(x, y), |x, _| x * sigmoid(x)),
    row("gelu_tanh", Any, |x, _, y| swath_kernels::gelu_tanh(x, y), |x, _| x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))),
    row("gelu", Any, |x, _, y| swath_kernels::gelu(x, y), |x, _| 0.5 * x * core_math::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)),
    row("erf", Any, |x, _, y| swath_kernels::erf(x, y), |x, _| core_math::erf(x)),
    row("sin", Any, |x, _, y| swath_kernels::sin(x, y), |x, _| core_math::sin(x)),
    row("cos", Any, |x, _, y| swath_kernels::cos(x, y), |x, _| core_math::cos(x)),
    row("add", Pair, |a, b, y| swath_kernels::add(a, b, y), |a, b| a + b),
    row("mul", Pair, |a, b, y| swath_kernels::mul(a, b, y), |a, b| a * b),
    row("pow", PositivePair, |a, b, y| swath_kernels::pow(a, b, y), core_math::pow),
    row("pow_scalar", Positive, |a, _, y| Pow::KERNEL.run([Arg::Slice(a), Arg::Scalar(EXPONENT)], y), |a, _| core_math::pow(a, EXPONENT.into())),
];

/// All crates that have the function, swath first.
fn peers(case: &Case, a: &[f32], b: &[f32]) -> Vec<(&'static str, Box<dyn Peer>)> {
    let slices = |function: Function| Box::new(Slices::new(function, a, b)) as Box<dyn Peer>;
    let all = [
        ("swath", Some(slices(case.swath))),
        ("ndarray", slices::ndarray(case.name).map(slices)),
        ("rten", slices::rten(case.name).map(slices)),
        ("candle", tensors::candle(case.name, a, b)),
        ("burn", tensors::burn(case.name, a, b)),
    ];
    all.into_iter().filter_map(|(name, peer)| Some((name, peer?))).collect()
}

/// Times the wanted cases, or prints their errors.
pub fn functions(wanted: &dyn Fn(&str) -> bool, once: bool, worst: bool, errors: bool) {
    let draw = |case: &Case, count| {
        let mut a = if worst { worst_values(count) } else { normal_values(count, 1) };
        if matches!(case.arguments, Positive | PositivePair) {
            a.iter_mut().for_each(|x| *x = x.abs().max(f32::from_bits(1)));
        }
        (a, normal_values(count, 2))
    };
    println!("{:20} {:>12}   {}", "", "swath", if errors { "ULP" } else { "time over theirs" });
    for size in if errors { &[SAMPLE][..] } else { &SIZES } {
        for case in CASES.iter().filter(|case| wanted(&format!("{} {size}", case.name))) {
            let (a, b) = draw(case, *size);
            let mut peers = peers(case, &a, &b);
            if errors {
                print!("{:20}", case.name);
                for (name, peer) in &mut peers {
                    print!(" {name} {:.4}", largest_error(case, &a, &b, &peer.results()));
                }
                println!();
                continue;
            }
            let (own, ratios) = ratios(rivals(peers), once);
            let others = &ratios[1..];
            let best = others.iter().min_by(|a, b| a.1.total_cmp(&b.1)).expect("a peer");
            let label = format!("{} {size}", case.name);
            print!(
                "{label:20} {:9.3} ns   {:.2} of the best:",
                own * 1e9 / *size as f64,
                1.0 / best.1
            );
            for (name, ratio) in others {
                print!(" {name} {:.2}", 1.0 / ratio);
            }
            println!();
        }
    }
}

/// The largest distance from the exact value, in units of f32's spacing there; infinite where one
/// is a number and the other is not.
fn largest_error(case: &Case, a: &[f32], b: &[f32], results: &[f32]) -> f64 {
    let error = |((&a, &b), &y): ((&f32, &f32), &f32)| {
        let exact = (case.exact)(a.into(), b.into());
        if (exact as f32).is_finite() != y.is_finite() {
            return f64::INFINITY;
        }
        if !y.is_finite() {
            return 0.0;
        }
        let exponent = ((exact.abs().to_bits() >> 52) as i32 - 1023).max(-126);
        (f64::from(y) - exact).abs() / 2f64.powi(exponent - 23)
    };
    a.iter().zip(b).zip(results).map(error).fold(0.0, f64::max)
}

fn sigmoid(x: f64) -> f64 {
    let e = core_math::exp(-x.abs());
    if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

/// Uniform in (0, 1), by Knuth's linear congruences.
fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }
}

/// Normally distributed with standard deviation 2, by Box and Muller.
fn normal_values(count: usize, seed: u64) -> Vec<f32> {
    let mut uniform = uniform(seed);
    let mut normal = || {
        let radius = (-2.0 * uniform().ln()).sqrt();
        (2.0 * radius * (std::f64::consts::TAU * uniform()).cos()) as f32
    };
    (0..count).map(|_| normal()).collect()
}

/// Subnormal and huge numbers, ordinary ones and those whose exponential is subnormal, of both signs.
fn worst_values(count: usize) -> Vec<f32> {
    let mut uniform = uniform(3);
    let mut value = |i: usize| {
        let x = match i % 4 {
            0 => uniform() * f64::from(f32::MIN_POSITIVE),
            1 => 2f64.powf(20.0 + 107.0 * uniform()),
            2 => 87.0 + 17.0 * uniform(),
            _ => 4.0 * uniform(),
        };
        if uniform() < 0.5 { -x as f32 } else { x as f32 }
    };
    (0..count).map(&mut value).collect()
}

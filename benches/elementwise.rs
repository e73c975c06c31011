//! Element-wise functions of `f32` slices: time an element, GB/s of the bytes that the function must
//! touch, and the share of the bandwidth that a copy (one input) or a triad (two inputs) of the same
//! size reaches beside it.
//!
//! The last column is the time an element would take if the FMA peak measured beside it were
//! 247 GFLOP/s: it compares functions that compute across machines and clocks.

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod support;

use std::hint::black_box;
use support::{Bench, REFERENCE_PEAK, Work, values};
use swath_kernels as kernels;

/// Elements: a call's overhead; L1; L2; memory.
const SIZES: [usize; 4] = [64, 4096, 262_144, 4 << 20];

type Unary = fn(&[f32], &mut [f32]);
type Binary = fn(&[f32], &[f32], &mut [f32]);

const UNARY: [(&str, Unary); 12] = [
    ("neg", |x, y| kernels::neg(x, y)),
    ("relu", |x, y| kernels::relu(x, y)),
    ("sqrt", |x, y| kernels::sqrt(x, y)),
    ("recip", |x, y| kernels::recip(x, y)),
    ("exp", |x, y| kernels::exp(x, y)),
    ("log", |x, y| kernels::log(x, y)),
    ("tanh", |x, y| kernels::tanh(x, y)),
    ("sigmoid", |x, y| kernels::sigmoid(x, y)),
    ("silu", |x, y| kernels::silu(x, y)),
    ("gelu_tanh", |x, y| kernels::gelu_tanh(x, y)),
    ("sin", |x, y| kernels::sin(x, y)),
    ("cos", |x, y| kernels::cos(x, y)),
];

const BINARY: [(&str, Binary); 3] = [
    ("add", |a, b, y| kernels::add(a, b, y)),
    ("mul", |a, b, y| kernels::mul(a, b, y)),
    ("div", |a, b, y| kernels::div(a, b, y)),
];

fn main() {
    let bench = Bench::from_args("element-wise");
    println!(
        "{:20} {:>10} {:>8} {:>13} {:>9} {:>15}",
        "", "ns/element", "GB/s", "of bandwidth", "bandwidth", "ns at 247 peak"
    );
    for size in SIZES {
        for (name, function) in BINARY {
            let (a, b, mut y) = (values(size), values(size), values(size));
            let call = Work::new(12 * size, || function(black_box(&a), black_box(&b), &mut y));
            report(&bench, name, size, call, Work::triad(size));
        }
        for (name, function) in UNARY {
            // Positive, so that sqrt and log compute what they are for.
            let (mut x, mut y) = (values(size), values(size));
            if ["sqrt", "log"].contains(&name) {
                x.iter_mut().for_each(|x| *x += 4.5);
            }
            let call = Work::new(8 * size, || function(black_box(&x), &mut y));
            report(&bench, name, size, call, Work::copy(size));
        }
    }
}

fn report(bench: &Bench, name: &str, size: usize, call: Work, bandwidth: Work) {
    let name = format!("{name} {size}");
    if let Some(measured) = bench.measure(&name, call, &mut [bandwidth, Work::fma_f32()]) {
        let nanoseconds = measured.seconds * 1e9 / size as f64;
        let (bandwidth, share) = measured.yardsticks[0];
        let peak = measured.yardsticks[1].0 / 1e9;
        println!(
            "{name:20} {nanoseconds:10.3} {:8.1} {share:13.3} {:9.1} {:15.3}",
            measured.rate / 1e9,
            bandwidth / 1e9,
            nanoseconds * peak / REFERENCE_PEAK,
        );
    }
}

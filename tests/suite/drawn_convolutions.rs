//! Convolutions and poolings of drawn shapes, options, dtypes and layouts, in poisoned memory: values and gradients are
//! those of the definition, written as plain loops over the taps of every window.
//!
//! `SWATH_DRAWS=400000` draws so many convolutions, `SWATH_DRAWS=20000..60000` those of these seeds. A case that fails
//! is printed with its seed.

mod convolution;
mod pooling;

use std::fmt::Debug;
use std::ops::Range;

use swath::prelude::*;

use crate::support::is_full;

type T = Tensor<CpuBackend>;

/// Bounds of the relative error of a result that is rounded once, of means in `f32` or `f64` before that.
const DTYPES: [(DType, f64); 4] =
    [(DType::F32, 1e-6), (DType::F64, 1e-14), (DType::F16, 1e-3), (DType::BF16, 8e-3)];

/// Draws the properties of a case.
struct Draw(Rng);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0.below(n as u64) as usize
    }

    fn choose<V: Copy>(&mut self, values: &[V]) -> V {
        values[self.below(values.len())]
    }

    fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A value for each of the last `axes` of three axes, `missing` for the others.
    fn each(&mut self, axes: usize, missing: usize, values: &[usize]) -> [usize; 3] {
        std::array::from_fn(|axis| if axis + axes < 3 { missing } else { self.choose(values) })
    }

    /// Small integers: their sums of products are exact in every type of computation, and equal ones are frequent.
    fn integers(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.below(7) as f64 - 3.0).collect()
    }

    /// The values in one of several layouts, tracked.
    fn tensor(&mut self, values: &[f64], dims: &[usize], dtype: DType) -> T {
        let shape: Shape = dims.iter().copied().collect();
        let x = T::from_vec(values.to_vec(), shape).unwrap().to_dtype(dtype).unwrap();
        let x = match self.below(6) {
            // Channels last.
            0 => x.movedim(1, -1).unwrap().contiguous().unwrap().movedim(-1, 1).unwrap(),
            // A part of a larger tensor.
            1 => {
                let axis = self.below(dims.len());
                T::cat(&[&x, &x], axis).unwrap().narrow(axis, dims[axis], dims[axis]).unwrap()
            }
            2 => {
                let axis = self.below(dims.len()) as isize;
                x.flip([axis]).unwrap().contiguous().unwrap().flip([axis]).unwrap()
            }
            _ => x,
        };
        x.requires_grad()
    }
}

/// The last `N` of three values.
fn last<const N: usize>(values: [usize; 3]) -> [usize; N] {
    std::array::from_fn(|i| values[3 - N + i])
}

/// All indices below these extents, in row-major order.
fn indices([a, b, c]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..a).flat_map(move |i| (0..b).flat_map(move |j| (0..c).map(move |k| [i, j, k])))
}

/// Number of an index in row-major order.
fn flat(at: [usize; 3], dims: [usize; 3]) -> usize {
    (at[0] * dims[1] + at[1]) * dims[2] + at[2]
}

fn numbers(x: &T) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

/// Values rounded to a dtype.
fn rounded(values: &[f64], dtype: DType) -> Vec<f64> {
    numbers(&T::from_vec(values.to_vec(), values.len()).unwrap().to_dtype(dtype).unwrap())
}

/// Compares results with expected ones, which small integers give exactly if the tolerance is 0.
#[track_caller]
fn compare(case: &impl Debug, what: &str, got: &T, expected: &[f64], tolerance: f64) {
    let got = numbers(got);
    assert_eq!(got.len(), expected.len(), "{what} of {case:?}");
    let near = |(x, y): (&f64, &f64)| (x - y).abs() <= tolerance * y.abs().max(1.0);
    let wrong = |pair| !near(pair);
    if let Some(i) = got.iter().zip(expected).position(wrong) {
        panic!("{what} of {case:?}: element {i} is {}, expected {}", got[i], expected[i]);
    }
}

/// Seeds of the drawn cases: a number or a range in `SWATH_DRAWS`, or else `usual`.
fn seeds(usual: u64) -> Range<u64> {
    let Ok(text) = std::env::var("SWATH_DRAWS") else { return 0..usual };
    let (from, to) = text.split_once("..").unwrap_or(("0", &text));
    let number = |text: &str| text.parse().expect("SWATH_DRAWS is a number or a range of seeds");
    number(from)..number(to)
}

#[test]
fn drawn_convolutions_and_their_gradients_match_the_definition() {
    let seeds = seeds(if is_full() { 400_000 } else { 20_000 });
    let (count, mut refused) = (seeds.end - seeds.start, 0);
    for seed in seeds {
        refused += u64::from(!convolution::check(seed));
    }
    println!("{count} drawn convolutions, {refused} of them refused");
    assert!(refused * 3 < count, "most draws are to be computed");
}

#[test]
fn drawn_poolings_and_their_gradients_match_the_definition() {
    let seeds = 0..if is_full() { 80_000 } else { 4_000 };
    let (count, mut refused) = (seeds.end, 0);
    for seed in seeds {
        refused += u64::from(!pooling::check(seed));
    }
    println!("{count} drawn poolings, {refused} of them refused");
    assert!(refused * 3 < count, "most draws are to be computed");
}

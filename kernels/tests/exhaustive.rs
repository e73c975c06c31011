//! Every f32, or every `SWATH_STRIDE`-th, and millions of f64: `cargo test --release --test
//! exhaustive -- --ignored --nocapture exp`. Prints the largest error and where it occurs.

mod reference;

use swath_kernels::Unary;
use swath_kernels::math::{self, ULP_BOUNDS};
use swath_kernels::testing::*;

fn sweep<F: Unary<f32>>(wide: fn(f64) -> f64) {
    let stride: usize = std::env::var("SWATH_STRIDE").map_or(1, |s| s.parse().expect("a number"));
    let bound = ULP_BOUNDS.iter().find(|row| row.name == F::NAME).expect("a row").f32;
    let (mut worst, mut worst_x) = (0.0, 0.0);
    let (mut worst_sub, mut worst_sub_x) = (0.0, 0.0);
    let mut farthest = 0;
    let mut x = vec![0f32; 4096];
    let mut y = vec![0f32; 4096];
    let mut inputs = (0..1u64 << 32).step_by(stride).map(|bits| f32::from_bits(bits as u32));
    loop {
        let mut len = 0;
        for (slot, input) in x.iter_mut().zip(inputs.by_ref()) {
            *slot = input;
            len += 1;
        }
        if len == 0 {
            break;
        }
        F::run(&x[..len], &mut y[..len]);
        for (&x, &y) in x[..len].iter().zip(&y[..len]) {
            let exact = wide(f64::from(x));
            let rounded = exact as f32;
            assert!(
                same_class_f32(y, rounded),
                "{}({x:e} = {:#x}) = {y:e}, not {rounded:e}",
                F::NAME,
                x.to_bits()
            );
            if y.is_finite() {
                let error = reference::error_in_ulp(y, exact);
                let (worst, worst_x) = if exact.abs() < f64::from(f32::MIN_POSITIVE) {
                    (&mut worst_sub, &mut worst_sub_x)
                } else {
                    (&mut worst, &mut worst_x)
                };
                if error > *worst {
                    (*worst, *worst_x) = (error, x);
                }
                farthest = farthest.max(ulp_distance_f32(y, rounded));
            }
        }
    }
    println!(
        "{:10} {worst:.4} ULP at {worst_x:e} ({:#010x}); subnormal results {worst_sub:.4} at \
         {worst_sub_x:e} ({:#010x}); {farthest} floats; every {stride}th of 2^32 inputs, {}",
        F::NAME,
        worst_x.to_bits(),
        worst_sub_x.to_bits(),
        swath_kernels::isa(),
    );
    assert!(farthest <= bound);
}

/// Compares f64 results with correctly rounded ones: `SWATH_COUNT` bit patterns and as many numbers
/// from each interval.
fn spread<F: Unary<f64>>(reference: fn(f64) -> f64, intervals: &[(f64, f64)]) {
    let count: u32 = std::env::var("SWATH_COUNT").map_or(1 << 24, |s| s.parse().expect("a number"));
    let bound = ULP_BOUNDS.iter().find(|row| row.name == F::NAME).expect("a row").f64.into();
    let inside = intervals.iter().flat_map(|&(a, b)| interval_sample_f64(a, b, count));
    let mut inputs = even_sample_f64(u64::from(count)).chain(inside).peekable();
    let (mut total, mut differ, mut farthest, mut farthest_x) = (0u64, 0u64, 0, 0.0);
    while inputs.peek().is_some() {
        let x: Vec<f64> = inputs.by_ref().take(4096).collect();
        let mut y = vec![0f64; x.len()];
        F::run(&x, &mut y[..]);
        for (&x, &y) in x.iter().zip(&y) {
            let expected = reference(x);
            assert!(same_class_f64(y, expected), "{}({x:e}) = {y:e}, not {expected:e}", F::NAME);
            let distance = ulp_distance_f64(y, expected);
            differ += u64::from(distance > 0);
            if distance > farthest {
                (farthest, farthest_x) = (distance, x);
            }
        }
        total += x.len() as u64;
    }
    let share = 100.0 * differ as f64 / total as f64;
    let (name, isa) = (F::NAME, swath_kernels::isa());
    println!(
        "{name:10} {farthest} floats at {farthest_x:e}; {share:.2} % of {total} differ, {isa}"
    );
    assert!(farthest <= bound);
}

macro_rules! sweeps {
    ($($name:ident $kernel:ident $wide:expr, $f64:expr, $intervals:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            #[ignore = "minutes in release"]
            fn every_f32() {
                sweep::<math::$kernel>($wide);
            }

            #[test]
            #[ignore = "minutes in release"]
            fn spread_f64() {
                spread::<math::$kernel>($f64, &$intervals);
            }
        }
    )*};
}

sweeps! {
    sqrt Sqrt f64::sqrt, f64::sqrt, [];
    recip Recip f64::recip, f64::recip, [];
    exp Exp core_math::exp, core_math::exp, [(-746.0, 710.0), (-1.0, 1.0)];
    log Log core_math::log, core_math::log, [(0.5, 2.0), (0.99, 1.01), (0.0, 1e-307)];
    tanh Tanh core_math::tanh, core_math::tanh, [(-20.0, 20.0), (-1.0, 1.0), (-0.1, 0.1)];
    sigmoid Sigmoid reference::sigmoid_wide, reference::sigmoid, [(-746.0, 40.0), (-4.0, 4.0)];
    silu Silu reference::silu_wide, reference::silu, [(-755.0, 40.0), (-4.0, 4.0)];
    gelu_tanh GeluTanh reference::gelu_tanh_wide, reference::gelu_tanh, [(-22.0, 10.0), (-2.0, 2.0)];
    gelu Gelu reference::gelu_wide, reference::gelu, [(-39.5, 10.0), (-2.0, 2.0)];
    sin Sin core_math::sin, core_math::sin, [(-4.0, 4.0), (-1e5, 1e5), (-2e9, 2e9)];
    cos Cos core_math::cos, core_math::cos, [(-4.0, 4.0), (-1e5, 1e5), (-2e9, 2e9)];
}

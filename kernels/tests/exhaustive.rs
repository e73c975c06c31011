//! Every f32, or every `SWATH_STRIDE`-th: `cargo test --release --test exhaustive -- --ignored
//! --nocapture exp`. Prints the largest distance from the exact value and where it occurs.

mod reference;

use swath_kernels::Unary;
use swath_kernels::math::{self, ULP_BOUNDS};
use swath_kernels::testing::{same_class_f32, ulp_distance_f32};

/// Half a unit in the last place is correct rounding; the unit at `exact`, in f32's spacing.
fn error_in_ulp(y: f32, exact: f64) -> f64 {
    let exponent = (exact.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    let unit = 2f64.powi(exponent.max(-126) - 23);
    (f64::from(y) - exact).abs() / unit
}

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
                let error = error_in_ulp(y, exact);
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

macro_rules! sweeps {
    ($($name:ident $kernel:ident $wide:expr;)*) => {$(
        #[test]
        #[ignore = "minutes in release"]
        fn $name() {
            sweep::<math::$kernel>($wide);
        }
    )*};
}

sweeps! {
    sqrt Sqrt f64::sqrt;
    recip Recip |x| 1.0 / x;
    exp Exp core_math::exp;
    log Log core_math::log;
    tanh Tanh core_math::tanh;
    sigmoid Sigmoid reference::sigmoid_wide;
    silu Silu reference::silu_wide;
    gelu_tanh GeluTanh reference::gelu_tanh_wide;
    sin Sin core_math::sin;
    cos Cos core_math::cos;
}

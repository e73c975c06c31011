//! Every element-wise function as data; tests of accuracy, bits and bounds run over them.
//!
//! A row names a function, its kernel, its references and the intervals from which `f64` arguments
//! are drawn; a file holds the rows of a family. `every_function_has_a_row_and_a_bound` of
//! `accuracy.rs` fails for functions without a row.

pub mod activation;
pub mod arithmetic;
mod binary;
pub mod exponential;
mod gradient;
pub mod rounding;
pub mod special;
pub mod trigonometric;

use std::path::{Path, PathBuf};

use swath_kernels::{Float, Kernel, Stored};

/// A function of one argument.
pub struct Function1 {
    pub name: &'static str,
    pub kernel: &'static Kernel<1>,
    /// The correctly rounded result.
    pub rounded: fn(f32) -> f32,
    /// The result for an `f32` argument, with an error far below an ULP of `f32`.
    pub wide: fn(f64) -> f64,
    /// The result, correctly rounded except for a share far below the kernels'.
    pub reference: fn(f64) -> f64,
    /// Intervals from which `f64` arguments are drawn, besides all bit patterns.
    pub intervals: &'static [(f64, f64)],
}

/// A function of two arguments.
pub struct Function2 {
    pub name: &'static str,
    pub kernel: &'static Kernel<2>,
    /// The correctly rounded result.
    pub rounded: fn(f32, f32) -> f32,
    /// The result for `f32` arguments, with an error far below an ULP of `f32`.
    pub wide: fn(f64, f64) -> f64,
    /// The result, correctly rounded except for a share far below the kernels'.
    pub reference: fn(f64, f64) -> f64,
    /// Rectangles from which pairs are drawn, besides all bit patterns.
    pub intervals: &'static [[(f64, f64); 2]],
    /// Pairs whose results are hard to round.
    pub hard: &'static [(f64, f64)],
}

/// The derivative of a function, as a kernel of the upstream gradient and the input or output.
pub struct Gradient {
    pub name: &'static str,
    pub kernel: &'static Kernel<2>,
}

/// Every function of one argument.
pub fn of_one_argument() -> impl Iterator<Item = &'static Function1> {
    let families = [
        arithmetic::ROWS,
        exponential::ROWS,
        trigonometric::ROWS,
        special::ROWS,
        rounding::ROWS,
        activation::ROWS,
    ];
    families.into_iter().flatten()
}

/// Every function of two arguments, except derivatives.
pub fn of_two_arguments() -> impl Iterator<Item = &'static Function2> {
    binary::ROWS.iter()
}

/// Every derivative.
pub fn of_gradients() -> impl Iterator<Item = &'static Gradient> {
    gradient::ROWS.iter()
}

/// `ROWS` of [`Function1`]: name, kernel, `rounded`, `wide`, `reference`, `intervals`.
macro_rules! functions1 {
    ($($name:ident $Kernel:ident $rounded:expr, $wide:expr, $reference:expr, $intervals:expr;)*) => {
        pub const ROWS: &[$crate::functions::Function1] = &[$($crate::functions::Function1 {
            name: stringify!($name),
            kernel: <swath_kernels::math::$Kernel as swath_kernels::Function<1>>::KERNEL,
            rounded: $rounded,
            wide: $wide,
            reference: $reference,
            intervals: &$intervals,
        }),*];
    };
}
use functions1;

/// The element types of tests.
pub trait Real: Float + Stored + std::fmt::LowerExp {
    /// The number of floats between both; the largest number if the classes differ.
    fn distance(a: Self, b: Self) -> u64;
    /// The bits, with a single NaN for all NaNs.
    fn canonical(self) -> u64;
    /// Zeros, ones, subnormal, smallest, largest and infinite values, NaN; bit patterns of all exponents.
    fn inputs(count: u32) -> Vec<Self>;
}

macro_rules! real {
    ($t:ident $distance:ident $same_class:ident $special:ident $even:ident) => {
        impl Real for $t {
            fn distance(a: $t, b: $t) -> u64 {
                use swath_kernels::testing::{$distance, $same_class};
                if $same_class(a, b) { u64::from($distance(a, b)) } else { u64::MAX }
            }
            fn canonical(self) -> u64 {
                if self.is_nan() { u64::MAX } else { u64::from(self.to_bits()) }
            }
            fn inputs(count: u32) -> Vec<$t> {
                use swath_kernels::testing::{$even, $special};
                $special().into_iter().chain($even(count.into())).collect()
            }
        }
    };
}
real!(f32 ulp_distance_f32 same_class_f32 special_values_f32 even_sample_f32);
real!(f64 ulp_distance_f64 same_class_f64 special_values_f64 even_sample_f64);

/// Number of f32 pairs in every test run; measurements include them, so that the page covers them.
pub const PAIRS: u32 = 1 << 22;

/// Pairs for a function of two arguments: all pairs of special values, the hard ones, and `count` pairs each
/// of bit patterns of all exponents, of neighbours, and of every rectangle, of which every `step`-th is used.
pub fn pairs<E: Real>(function: &Function2, count: u32, step: usize) -> Vec<(E, E)> {
    let special = E::inputs(0);
    let mut pairs: Vec<(E, E)> =
        special.iter().flat_map(|&a| special.iter().map(move |&b| (a, b))).collect();
    pairs.extend(function.hard.iter().map(|&(a, b)| (E::from_f64(a), E::from_f64(b))));
    let sample = E::inputs(count);
    // Neighbours in the sample differ in the exponent; the following pairs do not.
    pairs.extend(sample.windows(2).step_by(step).map(|w| (w[0], w[1])));
    pairs.extend(sample.iter().step_by(step).map(|&x| (x, x + x * E::from_f64(1e-3))));
    for &[(a_low, a_high), (b_low, b_high)] in function.intervals {
        use swath_kernels::testing::interval_sample_f64;
        let a = interval_sample_f64(a_low, a_high, count);
        // Drawn in another order than the first argument: by steps of the square root of two.
        let b = (1..=u64::from(count)).map(|i| {
            let unit = (i.wrapping_mul(0x6a09_e667_f3bc_c908) >> 11) as f64 / (1u64 << 53) as f64;
            b_low + (b_high - b_low) * unit
        });
        pairs.extend(a.zip(b).step_by(step).map(|(a, b)| (E::from_f64(a), E::from_f64(b))));
    }
    pairs
}

/// False for functions that `SWATH_FUNCTION` (names separated by commas) excludes.
pub fn wanted(name: &str) -> bool {
    std::env::var("SWATH_FUNCTION").map_or(true, |names| names.split(',').any(|n| n == name))
}

/// The path of a file in the crate's folder.
pub fn beside_manifest(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// True if the environment requests that the files that tests compare with are rewritten.
pub fn blessing() -> bool {
    std::env::var_os("SWATH_BLESS").is_some()
}

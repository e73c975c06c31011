//! Every function of the table against an independent reference, on every instruction set.

mod reference;

use std::fmt::LowerExp;
use swath_kernels::math::{self, ULP_BOUNDS, UlpBound};
use swath_kernels::testing::*;
use swath_kernels::{Arg, Binary, Float, Isa, Unary};

/// What a test needs to know of an element type.
trait Real: Float + LowerExp {
    fn distance(a: Self, b: Self) -> u64;
    fn bound(row: &UlpBound) -> u64;
    /// Bits, with one NaN for all.
    fn canonical(self) -> u64;
}

impl Real for f32 {
    fn distance(a: f32, b: f32) -> u64 {
        if same_class_f32(a, b) { u64::from(ulp_distance_f32(a, b)) } else { u64::MAX }
    }
    fn bound(row: &UlpBound) -> u64 {
        u64::from(row.f32)
    }
    fn canonical(self) -> u64 {
        if self.is_nan() { u64::MAX } else { u64::from(self.to_bits()) }
    }
}

impl Real for f64 {
    fn distance(a: f64, b: f64) -> u64 {
        if same_class_f64(a, b) { ulp_distance_f64(a, b) } else { u64::MAX }
    }
    fn bound(row: &UlpBound) -> u64 {
        row.f64.into()
    }
    fn canonical(self) -> u64 {
        if self.is_nan() { u64::MAX } else { self.to_bits() }
    }
}

/// Runs `f` on every instruction set and returns its results, after checking that they have the
/// same bits on all.
fn on_every_isa<E: Real>(name: &str, f: impl Fn() -> Vec<E>) -> Vec<E> {
    let mut first: Option<(Isa, Vec<E>)> = None;
    for isa in Isa::ALL.into_iter().rev() {
        let Some(results) = with_isa(isa, &f) else {
            static SKIPPED: std::sync::Once = std::sync::Once::new();
            SKIPPED.call_once(|| println!("{isa} skipped, this machine lacks it"));
            continue;
        };
        if let Some((other, expected)) = &first {
            for (i, (y, expected)) in results.iter().zip(expected).enumerate() {
                let same = y.canonical() == expected.canonical();
                assert!(same, "{name}, element {i}: {y:e} on {isa}, {expected:e} on {other}");
            }
        } else {
            first = Some((isa, results));
        }
    }
    first.expect("every machine has the scalar level").1
}

fn row(name: &str) -> &'static UlpBound {
    ULP_BOUNDS.iter().find(|row| row.name == name).expect("every function has a row")
}

/// Compares a function with its reference on `inputs`, a chunk at a time.
fn check_unary<E: Real, F: Unary<E>>(inputs: impl Iterator<Item = E>, reference: impl Fn(E) -> E) {
    let bound = E::bound(row(F::NAME));
    let mut inputs = inputs.peekable();
    let (mut count, mut worst) = (0, (0, E::ZERO));
    while inputs.peek().is_some() {
        let x: Vec<E> = inputs.by_ref().take(1 << 16).collect();
        let results = on_every_isa(F::NAME, || {
            let mut y = vec![E::ZERO; x.len()];
            F::run(&x, &mut y[..]);
            y
        });
        for (&x, &y) in x.iter().zip(&results) {
            let expected = reference(x);
            let distance = E::distance(y, expected);
            if distance > worst.0 {
                worst = (distance, x);
            }
            assert!(
                distance <= bound,
                "{}({x:e}) = {y:e}, not {expected:e}: {distance} floats apart",
                F::NAME
            );
        }
        count += x.len();
    }
    println!("{}: {} floats at {:e}, of {count} inputs", F::NAME, worst.0, worst.1);
}

fn check_binary<E: Real, F: Binary<E>>(pairs: &[(E, E)], reference: impl Fn(E, E) -> E) {
    let (a, b): (Vec<E>, Vec<E>) = pairs.iter().copied().unzip();
    let results = on_every_isa(F::NAME, || {
        let mut y = vec![E::ZERO; a.len()];
        F::run(Arg::Slice(&a), Arg::Slice(&b), &mut y[..]);
        y
    });
    for (&(a, b), y) in pairs.iter().zip(results) {
        let expected = reference(a, b);
        let distance = E::distance(y, expected);
        let bound = E::bound(row(F::NAME));
        assert!(distance <= bound, "{}({a:e}, {b:e}) = {y:e}, not {expected:e}", F::NAME);
    }
}

const F32_SAMPLE: u32 = 1 << 22;
const F64_SAMPLE: u32 = 1 << 17;

/// A sample's size: a 64th of it with `SWATH_QUICK`, for emulators.
fn sample(count: u32) -> u32 {
    if std::env::var_os("SWATH_QUICK").is_some() { count >> 6 } else { count }
}

/// One test a function: its kernel, its f32 and f64 reference, and the intervals where its f64
/// values are neither trivial nor out of range.
macro_rules! unary {
    ($($name:ident $Kernel:ident $f32:expr, $f64:expr, $intervals:expr;)*) => {$(
        #[test]
        fn $name() {
            let inputs = special_values_f32().into_iter().chain(even_sample_f32(sample(F32_SAMPLE)));
            check_unary::<f32, math::$Kernel>(inputs, $f32);
            let intervals: &[(f64, f64)] = &$intervals;
            let inside = intervals.iter().flat_map(|&(a, b)| interval_sample_f64(a, b, sample(F64_SAMPLE)));
            let everywhere = even_sample_f64(u64::from(sample(F64_SAMPLE)));
            let inputs = special_values_f64().into_iter().chain(everywhere).chain(inside);
            check_unary::<f64, math::$Kernel>(inputs, $f64);
        }
    )*

    #[test]
    fn every_function_is_tested() {
        let tested = [$(stringify!($name),)* "add", "sub", "mul", "div", "maximum", "minimum"];
        let untested = ULP_BOUNDS.iter().filter(|row| !tested.contains(&row.name));
        assert_eq!(untested.count(), 0);
    }
    };
}

fn narrow(wide: fn(f64) -> f64) -> impl Fn(f32) -> f32 {
    move |x| wide(f64::from(x)) as f32
}

unary! {
    neg Neg |x| f32::from_bits(x.to_bits() ^ 1 << 31), |x| f64::from_bits(x.to_bits() ^ 1 << 63), [];
    abs Abs f32::abs, f64::abs, [];
    sign Sign narrow(reference::sign), reference::sign, [];
    square Square |x| (f64::from(x) * f64::from(x)) as f32, |x| x.powi(2), [];
    sqrt Sqrt narrow(f64::sqrt), f64::sqrt, [];
    recip Recip narrow(f64::recip), f64::recip, [];
    relu Relu |x| if x < 0.0 { 0.0 } else { x }, |x| if x < 0.0 { 0.0 } else { x }, [];
    exp Exp core_math::expf, core_math::exp, [(-746.0, 710.0), (-1.0, 1.0)];
    log Log core_math::logf, core_math::log, [(0.5, 2.0), (0.99, 1.01), (0.0, 1e-307)];
    tanh Tanh core_math::tanhf, core_math::tanh, [(-20.0, 20.0), (-1.0, 1.0), (-0.1, 0.1)];
    sigmoid Sigmoid narrow(reference::sigmoid_wide), reference::sigmoid,
        [(-746.0, 40.0), (-4.0, 4.0)];
    silu Silu narrow(reference::silu_wide), reference::silu, [(-755.0, 40.0), (-4.0, 4.0)];
    gelu_tanh GeluTanh narrow(reference::gelu_tanh_wide), reference::gelu_tanh,
        [(-22.0, 10.0), (-2.0, 2.0)];
    gelu Gelu narrow(reference::gelu_wide), reference::gelu, [(-39.5, 10.0), (-2.0, 2.0)];
    sin Sin core_math::sinf, core_math::sin, [(-4.0, 4.0), (-1e5, 1e5), (-2e9, 2e9)];
    cos Cos core_math::cosf, core_math::cos, [(-4.0, 4.0), (-1e5, 1e5), (-2e9, 2e9)];
}

/// Pairs of all special values, and of bit patterns from all exponents.
fn pairs<E: Real>(special: Vec<E>, sample: impl Iterator<Item = E>) -> Vec<(E, E)> {
    let mut pairs: Vec<(E, E)> =
        special.iter().flat_map(|&a| special.iter().map(move |&b| (a, b))).collect();
    let sample: Vec<E> = sample.collect();
    // Neighbours in the first half differ in the exponent, those in the second often not.
    pairs.extend(sample.windows(2).map(|w| (w[0], w[1])));
    pairs.extend(sample.windows(2).map(|w| (w[0], w[0] + w[0] * E::from_f64(1e-3))));
    pairs
}

macro_rules! binary {
    ($($name:ident $Kernel:ident $f32:expr, $f64:expr;)*) => {$(
        #[test]
        fn $name() {
            let inputs = pairs(special_values_f32(), even_sample_f32(sample(1 << 17)));
            check_binary::<f32, math::$Kernel>(&inputs, $f32);
            let inputs = pairs(special_values_f64(), even_sample_f64(u64::from(sample(1 << 17))));
            check_binary::<f64, math::$Kernel>(&inputs, $f64);
        }
    )*};
}

/// A reference in f64 for f32: with 53 bits the second rounding changes none of these operations.
fn narrow2(wide: fn(f64, f64) -> f64) -> impl Fn(f32, f32) -> f32 {
    move |a, b| wide(f64::from(a), f64::from(b)) as f32
}

binary! {
    add Add narrow2(|a, b| a + b), |a, b| b + a;
    sub Sub narrow2(|a, b| a - b), |a, b| a + -b;
    mul Mul narrow2(|a, b| a * b), |a, b| b * a;
    div Div narrow2(|a, b| a / b), |a, b| -(-a / b);
    maximum Maximum narrow2(reference::maximum), reference::maximum;
    minimum Minimum narrow2(reference::minimum), reference::minimum;
}

/// The maxima over all f32 that the contracts state, for normal and for subnormal results. A wrong
/// coefficient shows here long before results are a whole float off.
macro_rules! maxima {
    ($($name:ident $Kernel:ident $wide:expr, $normal:literal, $subnormal:literal;)*) => {
        mod maxima {
            use super::*;
            $(
                #[test]
                fn $name() {
                    let x: Vec<f32> = even_sample_f32((1 << 20) - 3).collect();
                    let mut y = vec![0f32; x.len()];
                    math::$Kernel::run(&x, &mut y[..]);
                    for (&x, y) in x.iter().zip(y).filter(|(_, y)| y.is_finite()) {
                        let wide: fn(f64) -> f64 = $wide;
                        let exact = wide(f64::from(x));
                        let tiny = exact.abs() < f64::from(f32::MIN_POSITIVE);
                        let error = reference::error_in_ulp(y, exact);
                        let name = stringify!($name);
                        assert!(error < if tiny { $subnormal } else { $normal }, "{name}({x:e}) {error}");
                    }
                }
            )*
        }
    };
}

maxima! {
    exp Exp core_math::exp, 0.57, 0.78;
    log Log core_math::log, 0.70, 0.51;
    tanh Tanh core_math::tanh, 0.73, 0.51;
    sigmoid Sigmoid reference::sigmoid_wide, 0.54, 0.78;
    silu Silu reference::silu_wide, 0.54, 0.78;
    gelu_tanh GeluTanh reference::gelu_tanh_wide, 0.54, 0.78;
    gelu Gelu reference::gelu_wide, 0.74, 0.78;
    sin Sin core_math::sin, 0.79, 0.51;
    cos Cos core_math::cos, 0.79, 0.51;
}

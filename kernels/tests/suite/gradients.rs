//! The derivative kernels against slopes computed in twice the precision by other formulas.

use crate::reference;
use swath_kernels::testing::{even_sample_f32, even_sample_f64, interval_sample_f64, sample};
use swath_kernels::{Arg, Function, Kernel, math};

/// Allowed distance from `g · slope`: in ULP of the result, or, where the slope is small because two terms
/// cancel, in ULP of `g`.
struct Tolerance {
    ulp: f64,
    of_upstream: f64,
}

const fn tolerance(ulp: f64, of_upstream: f64) -> Tolerance {
    Tolerance { ulp, of_upstream }
}

/// Mantissas of all lengths, both signs and four binades; every fourth a power of two.
fn upstream(i: usize) -> f64 {
    let bits = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mantissa = if i.is_multiple_of(4) { 0 } else { bits >> 12 };
    f64::from_bits(0x3ff << 52 | mantissa) * [1.0, -2.0, 0.25, -1.0, 0.5][i % 5]
}

/// Checks `kernel(g, saved) = g · slope(saved)`.
macro_rules! check {
    ($t:ident, $Kernel:ident, $slope:expr, $saved:expr, $tolerance:expr) => {{
        let saved: Vec<$t> = $saved.collect();
        let g: Vec<$t> = (0..saved.len()).map(|i| upstream(i) as $t).collect();
        let mut results = vec![0.0; g.len()];
        math::$Kernel::KERNEL.run([Arg::Slice(&g), Arg::Slice(&saved)], &mut results);
        // The reference rounds an f64 slope once, and its product with g once.
        let of_reference = if $t::MANTISSA_DIGITS == 53 { 1.5 } else { 0.0 };
        for ((&g, &x), y) in g.iter().zip(&saved).zip(results) {
            let slope: fn(f64) -> f64 = $slope;
            let slope = slope(f64::from(x));
            let exact = f64::from(g) * slope;
            let Tolerance { ulp, of_upstream } = $tolerance;
            let unit = spacing(exact, $t::MIN_POSITIVE.into(), $t::EPSILON.into());
            let allowed = unit * (ulp + of_reference);
            let allowed = allowed.max(of_upstream * f64::from($t::EPSILON * g.abs()));
            // A subnormal slope is rounded to a multiple of the smallest number before its product.
            let units = f64::from($t::from_bits(1)) * (1.0 + f64::from(g.abs()));
            let is_subnormal = slope.abs().min(exact.abs()) < f64::from($t::MIN_POSITIVE);
            let allowed = if is_subnormal { allowed + units } else { allowed };
            let error = (f64::from(y) - exact).abs();
            let name = stringify!($Kernel);
            assert!(error <= allowed, "{name}({g:e}, {x:e}) = {y:e}, not {exact:e}");
            assert!(
                y == 0.0 || exact == 0.0 || (y < 0.0) == (exact < 0.0),
                "{name}({g:e}, {x:e}) = {y:e}, not {exact:e}: the sign"
            );
        }
    }};
}

/// The spacing of floats at `x`, for a type with this smallest normal number and this spacing at 1.
fn spacing(x: f64, least_normal: f64, at_one: f64) -> f64 {
    let power = f64::from_bits(x.to_bits() & 0x7ff << 52);
    power.max(least_normal) * at_one
}

fn points_f32(low: f32, high: f32) -> impl Iterator<Item = f32> {
    let inside =
        interval_sample_f64(f64::from(low), f64::from(high), sample(1 << 16)).map(|x| x as f32);
    inside.chain(even_sample_f32(sample(1 << 12)).filter(move |x| (low..=high).contains(x)))
}

fn points_f64(low: f64, high: f64) -> impl Iterator<Item = f64> {
    let inside = interval_sample_f64(low, high, sample(1 << 16));
    inside.chain(
        even_sample_f64(u64::from(sample(1 << 12))).filter(move |x| (low..=high).contains(x)),
    )
}

#[test]
fn tanh_slope_from_output() {
    let allowed = || tolerance(1.5, 0.0);
    check!(f32, TanhGrad, reference::tanh_slope, points_f32(-1.0, 1.0), allowed());
    check!(f64, TanhGrad, reference::tanh_slope, points_f64(-1.0, 1.0), allowed());
}

#[test]
fn sigmoid_slope_from_output() {
    let allowed = || tolerance(2.0, 0.0);
    check!(f32, SigmoidGrad, reference::sigmoid_slope, points_f32(0.0, 1.0), allowed());
    check!(f64, SigmoidGrad, reference::sigmoid_slope, points_f64(0.0, 1.0), allowed());
}

#[test]
fn relu_slope_is_a_step_that_excludes_zero() {
    let step = |x: f64| if x > 0.0 { 1.0 } else { 0.0 };
    check!(f32, ReluGrad, step, points_f32(-2.0, 2.0), tolerance(0.0, 0.0));
    check!(f64, ReluGrad, step, points_f64(-2.0, 2.0), tolerance(0.0, 0.0));
    let mut y = [1.0f32; 4];
    let x = [0.0, -0.0, f32::NAN, f32::INFINITY];
    math::ReluGrad::KERNEL.run([Arg::Scalar(5.0), Arg::Slice(&x)], &mut y);
    assert_eq!([y[0], y[1], y[3]], [0.0, 0.0, 5.0]);
    assert!(y[2].is_nan());
}

/// As in PyTorch: zero at both ends of the sloped part, except that the slope of hardswish is 1 at 3 and
/// above.
#[test]
fn piecewise_slopes_and_their_ends() {
    let relu6 = |x: f64| if 0.0 < x && x < 6.0 { 1.0 } else { 0.0 };
    check!(f32, Relu6Grad, relu6, points_f32(-2.0, 8.0), tolerance(0.0, 0.0));
    check!(f64, Relu6Grad, relu6, points_f64(-2.0, 8.0), tolerance(0.0, 0.0));
    let hardsigmoid = |x: f64| if -3.0 < x && x < 3.0 { 1.0 / 6.0 } else { 0.0 };
    check!(f32, HardsigmoidGrad, hardsigmoid, points_f32(-4.0, 4.0), tolerance(0.5, 0.0));
    check!(f64, HardsigmoidGrad, hardsigmoid, points_f64(-4.0, 4.0), tolerance(0.5, 0.0));
    let hardswish = |x: f64| match x {
        x if x <= -3.0 => 0.0,
        x if x < 3.0 => (x + 1.5) / 3.0,
        _ => 1.0,
    };
    check!(f32, HardswishGrad, hardswish, points_f32(-4.0, 4.0), tolerance(2.0, 0.0));
    check!(f64, HardswishGrad, hardswish, points_f64(-4.0, 4.0), tolerance(2.0, 0.0));

    let at = |kernel: &Kernel<2>, x: &[f32]| {
        let mut y = vec![7.0; x.len()];
        kernel.run([Arg::Scalar(6.0), Arg::Slice(x)], &mut y);
        y
    };
    let infinity = f32::INFINITY;
    let x = [-0.0, 0.0, 1e-45, 6.0, infinity, -infinity, f32::NAN];
    let y = at(math::Relu6Grad::KERNEL, &x);
    assert!(y[..6] == [0.0, 0.0, 6.0, 0.0, 0.0, 0.0] && y[6].is_nan());
    let x = [-3.0, -2.9, 2.9, 3.0, infinity, -infinity, f32::NAN];
    let y = at(math::HardsigmoidGrad::KERNEL, &x);
    assert!(y[..6] == [0.0, 1.0, 1.0, 0.0, 0.0, 0.0] && y[6].is_nan());
    let y = at(math::HardswishGrad::KERNEL, &x);
    assert_eq!([y[0], y[3], y[4], y[5]], [0.0, 6.0, 6.0, 0.0]);
    assert!(y[1] < -2.5 && y[2] > 8.0 && y[6].is_nan());
}

#[test]
fn silu_slope_from_input() {
    let allowed = || tolerance(6.0, 3.0);
    check!(f32, SiluGrad, reference::silu_slope, points_f32(-2.0, 60.0), allowed());
    check!(f64, SiluGrad, reference::silu_slope, points_f64(-2.0, 500.0), allowed());
    let tail = || tolerance(7.0, 0.0);
    check!(
        f32,
        SiluGrad,
        reference::silu_slope,
        points_f32(-106.0, -2.0).filter(|&x| x < -2.0),
        tail()
    );
    check!(
        f64,
        SiluGrad,
        reference::silu_slope,
        points_f64(-750.0, -2.0).filter(|&x| x < -2.0),
        tail()
    );
}

#[test]
fn gelu_tanh_slope_from_input() {
    let allowed = || tolerance(8.0, 3.0);
    check!(f32, GeluTanhGrad, reference::gelu_tanh_slope, points_f32(-5.0, 10.0), allowed());
    check!(f64, GeluTanhGrad, reference::gelu_tanh_slope, points_f64(-5.0, 20.0), allowed());
    // The rounding error of v, multiplied by the slope of the exponential.
    let f32_tail = |low, high, allowed: fn() -> Tolerance| {
        let points = points_f32(low, high).filter(|&x| x < -2.0);
        check!(f32, GeluTanhGrad, reference::gelu_tanh_slope, points, allowed());
    };
    f32_tail(-9.5, -2.0, || tolerance(200.0, 0.0));
    f32_tail(-10.23, -9.5, || tolerance(350.0, 0.0));
    // Subnormal results: 2^-141 and 2^-1063 of g.
    f32_tail(-11.0, -10.23, || tolerance(0.5, 2f64.powi(23 - 141)));
    let f64_tail = |low, high, allowed: fn() -> Tolerance| {
        let points = points_f64(low, high).filter(|&x| x < -2.0);
        check!(f64, GeluTanhGrad, reference::gelu_tanh_slope, points, allowed());
    };
    f64_tail(-20.0, -2.0, || tolerance(1300.0, 0.0));
    f64_tail(-21.22, -20.0, || tolerance(2400.0, 0.0));
    f64_tail(-22.0, -21.22, || tolerance(0.5, 2f64.powi(52 - 1063)));
}

#[test]
fn gelu_slope_of_the_erf_form_from_input() {
    let allowed = || tolerance(6.0, 3.0);
    check!(f32, GeluGrad, reference::gelu_slope, points_f32(-5.0, 10.0), allowed());
    check!(f64, GeluGrad, reference::gelu_slope, points_f64(-5.0, 20.0), allowed());
    let f32_tail = points_f32(-15.0, -2.0).filter(|&x| x < -2.0);
    check!(f32, GeluGrad, reference::gelu_slope, f32_tail, tolerance(6.0, 0.0));
    let f64_tail = points_f64(-40.0, -2.0).filter(|&x| x < -2.0);
    check!(f64, GeluGrad, reference::gelu_slope, f64_tail, tolerance(6.0, 0.0));
}

#[test]
fn erf_slope_from_input() {
    let allowed = || tolerance(2.5, 0.0);
    check!(f32, ErfGrad, reference::erf_slope, points_f32(-11.0, 11.0), allowed());
    check!(f64, ErfGrad, reference::erf_slope, points_f64(-28.0, 28.0), allowed());
}

#[test]
fn softplus_and_log_sigmoid_slopes_from_input() {
    let allowed = || tolerance(2.0, 0.0);
    check!(f32, SoftplusGrad, reference::sigmoid, points_f32(-106.0, 106.0), allowed());
    check!(f64, SoftplusGrad, reference::sigmoid, points_f64(-750.0, 750.0), allowed());
    let mirrored = |x: f64| reference::sigmoid(-x);
    check!(f32, LogSigmoidGrad, mirrored, points_f32(-106.0, 106.0), allowed());
    check!(f64, LogSigmoidGrad, mirrored, points_f64(-750.0, 750.0), allowed());
}

#[test]
fn mish_slope_from_input() {
    let allowed = || tolerance(6.0, 3.0);
    check!(f32, MishGrad, reference::mish_slope, points_f32(-2.0, 60.0), allowed());
    check!(f64, MishGrad, reference::mish_slope, points_f64(-2.0, 500.0), allowed());
    let tail = || tolerance(12.0, 0.0);
    let f32_tail = points_f32(-106.0, -2.0).filter(|&x| x < -2.0);
    check!(f32, MishGrad, reference::mish_slope, f32_tail, tail());
    let f64_tail = points_f64(-750.0, -2.0).filter(|&x| x < -2.0);
    check!(f64, MishGrad, reference::mish_slope, f64_tail, tail());
}

#[test]
fn selu_slope_from_input() {
    let allowed = || tolerance(2.5, 0.0);
    check!(f32, SeluGrad, reference::selu_slope, points_f32(-106.0, 106.0), allowed());
    check!(f64, SeluGrad, reference::selu_slope, points_f64(-750.0, 750.0), allowed());
    // A slope below 1 must not be applied to an intermediate product that overflows.
    let mut y = [0f32; 2];
    math::SeluGrad::KERNEL.run([Arg::Scalar(f32::MAX), Arg::Slice(&[-1.0, -4.0])], &mut y);
    assert!(y[0] < f32::MAX && y[1] < y[0], "{y:?}");
}

#[test]
fn limits_are_finite_and_nan_propagates() {
    fn limits<F: Function<2>>(at_minus_infinity: f64, at_infinity: f64) {
        let x = [f32::NEG_INFINITY, f32::INFINITY, f32::NAN];
        let mut y = [0f32; 3];
        F::KERNEL.run([Arg::Scalar(1.0), Arg::Slice(&x)], &mut y);
        assert_eq!([y[0], y[1]], [at_minus_infinity as f32, at_infinity as f32]);
        assert!(y[2].is_nan());
        let x = x.map(f64::from);
        let mut y = [0f64; 3];
        F::KERNEL.run([Arg::Scalar(1.0), Arg::Slice(&x)], &mut y);
        assert_eq!([y[0], y[1]], [at_minus_infinity, at_infinity]);
        assert!(y[2].is_nan());
    }
    limits::<math::ErfGrad>(0.0, 0.0);
    limits::<math::SiluGrad>(0.0, 1.0);
    limits::<math::GeluTanhGrad>(0.0, 1.0);
    limits::<math::GeluGrad>(0.0, 1.0);
    limits::<math::SoftplusGrad>(0.0, 1.0);
    limits::<math::LogSigmoidGrad>(1.0, 0.0);
    limits::<math::MishGrad>(0.0, 1.0);
    limits::<math::SeluGrad>(0.0, 1.0507009873554805);
}

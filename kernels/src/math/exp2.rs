//! Powers of two and of ten, by the method of `exp.rs` in units of the base.
//!
//! ```text
//! n = round(8 x log2 b),  n = 8 k + j           b = 2 or 10
//! d = x − n log_b(2) / 8 + log_b(2^(j/8) / t)
//! b^x = 2^k (t + t p)                           p = b^d − 1 = d P(d)
//! ```
//!
//! 1. *For b = 2, d has no error before the table's*: x is rounded to eighths by adding a number
//!    whose ULP is an eighth, and the difference is exact.
//! 2. *Integer powers are exact where they can be.* For base two, because d = 0 and t = 1; for base
//!    ten, because the error before the last rounding is below 0.1 ULP.

use super::exp::{ExpConstants, scale_sum, scaled_table};
use super::horner;
use crate::map::Map;
use crate::simd::{IntVector, Lanes, Mask, Vector};

/// `2^x`.
///
/// * Domain: all numbers; exact where x is an integer. Subnormal results are rounded once.
/// * −∞ gives +0, +∞ gives +∞, ±0 gives 1, NaN gives NaN.
/// * Largest error: 0.584 ULP, 0.541 where the result is subnormal (f32, all inputs); f64 within 1
///   float.
/// * Coefficients: `tools/coefficients.py exp`; the relative error of p is 2^-27.2 (f32), 2^-54.7.
pub struct Exp2;

/// `10^x`.
///
/// * Domain: all numbers; exact where the result is. Subnormal results are rounded once.
/// * −∞ gives +0, +∞ gives +∞, ±0 gives 1, NaN gives NaN.
/// * Largest error: 0.606 ULP, 0.541 where the result is subnormal (f32, all inputs); f64 within 1
///   float.
/// * Coefficients: `tools/coefficients.py exp`; the relative error of p is 2^-26.0 (f32), 2^-53.2.
pub struct Exp10;

/// Constants of a base, from `tools/coefficients.py exp`.
trait Base<E: ExpConstants> {
    /// Adding it to a number rounds that to n, which is left in the low bits.
    const SHIFTER: E;
    /// Bits of `SHIFTER`, shifted right by 3.
    const SHIFTER_EIGHTH: E::Int;
    /// P(d) = (b^d − 1) / d, lowest power first.
    const POLY: &'static [E];
    /// Below the first the result rounds to +0, above the second to +∞.
    const RANGE: [E; 2];
    /// While |x| is at most this, the result and its table entry are normal.
    const ORDINARY: E;
    /// `[SHIFTER + n, d]`.
    fn reduce<S: Lanes<E>>(simd: S, x: S::V) -> [S::V; 2];
}

macro_rules! base_two {
    ($t:ident, $shifter:literal, $log:expr) => {
        const SHIFTER: $t = $shifter;
        const SHIFTER_EIGHTH: <$t as crate::Float>::Int =
            (<Self as Base<$t>>::SHIFTER.to_bits() >> 3) as _;
        #[inline(always)]
        fn reduce<S: Lanes<$t>>(simd: S, x: S::V) -> [S::V; 2] {
            const LOG: [$t; 8] = $log;
            let shifter = simd.splat($shifter);
            let shifted = x + shifter;
            [shifted, (x - (shifted - shifter)) + S::V::lookup8(&LOG, shifted.to_bits(), x)]
        }
    };
}

macro_rules! base_ten {
    ($t:ident, $inverse:literal, $step:expr, $log:expr) => {
        const SHIFTER: $t = <$t as ExpConstants>::SHIFTER;
        const SHIFTER_EIGHTH: <$t as crate::Float>::Int = <$t as ExpConstants>::SHIFTER_EIGHTH;
        #[inline(always)]
        fn reduce<S: Lanes<$t>>(simd: S, x: S::V) -> [S::V; 2] {
            const LOG: [$t; 8] = $log;
            let [step, step_low] = simd.splat_all($step);
            let shifter = simd.splat(<Self as Base<$t>>::SHIFTER);
            let shifted = x.mul_add(simd.splat($inverse), shifter);
            let n = shifted - shifter;
            let low = n.neg_mul_add(step_low, S::V::lookup8(&LOG, shifted.to_bits(), x));
            [shifted, n.neg_mul_add(step, x) + low]
        }
    };
}

impl Base<f32> for Exp2 {
    const POLY: &'static [f32] = &[std::f32::consts::LN_2, 0.2402265, 0.05550781, 0.009618587];
    const RANGE: [f32; 2] = [-152.0, 129.0];
    const ORDINARY: f32 = 126.0;
    base_two!(
        f32,
        1_572_864.0,
        [
            0.0,
            -1.7301026e-8,
            4.6071282e-8,
            -4.471016e-8,
            2.4690674e-8,
            7.550105e-9,
            -2.1235902e-8,
            -8.84121e-9,
        ]
    );
}

impl Base<f64> for Exp2 {
    const POLY: &'static [f64] = &[
        std::f64::consts::LN_2,
        0.24022650695910072,
        0.05550410866487012,
        0.009618129107614032,
        0.0013333557886707624,
        0.00015403531016525593,
        1.5257037719305462e-5,
        1.3207611168467423e-6,
    ];
    const RANGE: [f64; 2] = [-1077.0, 1025.0];
    const ORDINARY: f64 = 1022.0;
    base_two!(
        f64,
        844_424_930_131_968.0,
        [
            0.0,
            -4.030762245465049e-17,
            4.830810003324493e-17,
            2.823727173974899e-17,
            -9.861987250874697e-17,
            7.436847846534485e-17,
            7.033369914725411e-17,
            2.5826072121629267e-17,
        ]
    );
}

impl Base<f32> for Exp10 {
    const POLY: &'static [f32] = &[std::f32::consts::LN_10, 2.650949, 2.0347178, 1.1715019];
    const RANGE: [f32; 2] = [-46.0, 39.0];
    const ORDINARY: f32 = 37.875;
    base_ten!(
        f32,
        26.575424,
        [0.03762875, -1.7901236e-9],
        [
            0.0,
            -5.2081277e-9,
            1.38688385e-8,
            -1.34591e-8,
            7.4326336e-9,
            2.2728082e-9,
            -6.3926433e-9,
            -2.6614695e-9,
        ]
    );
}

impl Base<f64> for Exp10 {
    const POLY: &'static [f64] = &[
        std::f64::consts::LN_10,
        2.650949055239199,
        2.034678592288622,
        1.1712551489087386,
        0.5393829560930035,
        0.20699586562195552,
        0.06804831826619206,
        0.01957351477577783,
    ];
    const RANGE: [f64; 2] = [-325.0, 309.0];
    const ORDINARY: f64 = 307.625;
    base_ten!(
        f64,
        26.575424759098897,
        [0.03762874945799765, -3.504660159731463e-19],
        [
            0.0,
            -1.2133803412748828e-17,
            1.454218714354289e-17,
            8.500265789379299e-18,
            -2.968753979369048e-17,
            2.2387142749959636e-17,
            2.1172553149329663e-17,
            7.774422378791725e-18,
        ]
    );
}

#[inline(always)]
fn power<E: ExpConstants, S: Lanes<E>, B: Base<E>>(simd: S, x: S::V) -> S::V {
    let [shifted, d] = B::reduce(simd, x);
    let t = scaled_table::<E, S>(shifted.to_bits(), x);
    let y = (d * horner(simd, d, B::POLY)).mul_add(t, t);
    let ordinary = x.abs().le(simd.splat(B::ORDINARY));
    if ordinary.all() { y } else { y.select(ordinary, everywhere::<E, S, B>(simd, x)) }
}

/// `b^x` for every x, on the slow path.
#[inline(always)]
fn everywhere<E: ExpConstants, S: Lanes<E>, B: Base<E>>(simd: S, x: S::V) -> S::V {
    let [low, high] = simd.splat_all(B::RANGE);
    let [shifted, d] = B::reduce(simd, high.min_or_other(low.max_or_other(x)));
    let bits = shifted.to_bits();
    let k = bits.shr::<3>() - simd.splat_int(B::SHIFTER_EIGHTH);
    let t = S::V::lookup8(&E::TABLE, bits, x);
    scale_sum(simd, t, t * (d * horner(simd, d, B::POLY)), k)
}

impl<E: ExpConstants> Map<E, 1> for Exp2
where
    Exp2: Base<E>,
{
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        power::<E, S, Exp2>(simd, x)
    }
}

impl<E: ExpConstants> Map<E, 1> for Exp10
where
    Exp10: Base<E>,
{
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        power::<E, S, Exp10>(simd, x)
    }
}

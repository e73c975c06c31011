//! The error function and its complement.
//!
//! ```text
//! a = |x|
//! f32: erf a = T + d (c1 + d (c2 + … c6))        the 29 intervals and the method of tanh.rs
//! f64: i = round(SCALE a),  d = a − CENTRE[i]                         16 intervals
//!      erf a = a + a P_i(d)                  i small: P = erf(a)/a − 1, below 0.16
//!            = VALUE[i] + d P_i(d)           elsewhere
//!
//! erfc a = e^(−a²) R(a)             R(a) = e^(a²) erfc a, between 1 and 0.02
//! R(a)   = RATIO[j] + d S_j(d)      16 intervals, widths rising with a
//! erfc(−a) = 2 − erfc a
//! ```
//!
//! 1. *One rounding decides.* erf ends in one fused multiply-add whose product is at most a third
//!    of the sum, so that all earlier errors together move the result by a fraction of an ULP;
//!    subnormal results are rounded once.
//! 2. *f32 shares the method of tanh*: one table row per lane. In the first interval the base is a
//!    itself, and the coefficients are those of erf(a)/a − 1, which is 0.13 at most.
//! 3. *f64 looks coefficients up* by the index that rounding to an integer leaves in the low bits
//!    of a sum. Centres are chosen near i / SCALE such that erf there is a float to within 1/100 of
//!    its ULP.
//! 4. *erfc compensates every rounding that would cost an ULP*: a² has its error, e^(−a²) and R are
//!    sums of two floats, and so is their product. The power of two comes last: subnormal results
//!    keep their accuracy.

mod intervals;
mod rows;
mod tables;

use super::copy_sign;
use super::exp::{ExpConstants, Parts, exp_parts};
use super::tanh::odd_by_rows;
use crate::map::Map;
use crate::simd::{Lanes, Vector};

/// The error function, `2/√π ∫₀ˣ e^(−t²) dt`.
///
/// * Domain: all numbers; subnormal results are computed, not flushed.
/// * ±0 gives ±0, ±∞ gives ±1, NaN gives NaN.
/// * Largest error: 0.625 ULP, 0.508 where the result is subnormal (f32, all inputs); f64 within 1
///   float.
/// * Coefficients: `tools/coefficients.py erf`; their error relative to the result: 2^-28.3 (f32),
///   2^-56.1 (f64).
pub struct Erf;

/// The complementary error function, `1 − erf x`, without its cancellation.
///
/// * Domain: all numbers; subnormal results are computed, not flushed.
/// * −∞ gives 2, +∞ gives +0, NaN gives NaN.
/// * Largest error: 0.657 ULP, 0.770 where the result is subnormal (f32, all inputs); f64 within 1
///   float.
/// * Coefficients: `tools/coefficients.py erfc`; their error relative to R: 2^-29.6 (f32), 2^-57.3
///   (f64).
pub struct Erfc;

/// The gradient of [`Erf`] from upstream gradient and input, `g 2/√π e^(−x²)`; that of [`Erfc`] is
/// its negative.
///
/// Within 2.5 ULP if e^(−x²) is normal. ±∞ gives zero for finite g; NaN in either gives NaN.
pub struct ErfGrad;

/// Constants of the gradient.
trait Bell: ExpConstants {
    /// Beyond it, e^(−a²) rounds to zero.
    const BELL_LIMIT: Self;
    /// 2 / √π.
    const DENSITY: Self;
}

/// Constants of erfc, from `tools/coefficients.py erfc`. Tables are rotated to begin with the fifth
/// interval, because the first one's exponent and two mantissa bits give the index 12.
trait ErfcTables: ExpConstants {
    /// Beyond it, erfc rounds to zero.
    const LIMIT: Self;
    /// 1 / stretch.
    const STRETCH: Self;
    /// Middle of each interval.
    const CENTRE: [Self; 16];
    /// R there, high and low part.
    const RATIO: [[Self; 16]; 2];
    /// S, lowest power first.
    const SLOPE: &'static [[Self; 16]];
    /// The last two exponent bits and the first two mantissa bits of `b`.
    fn interval<S: Lanes<Self>>(b: S::V) -> S::I;
}

/// The polynomial of interval `index` at `d`.
#[inline(always)]
fn polynomial<V: Vector>(table: &'static [[V::Elem; 16]], index: V::Int, d: V) -> V {
    let mut i = table.len() - 1;
    let mut sum = V::lookup16(&table[i], index, d);
    while i > 0 {
        i -= 1;
        sum = sum.mul_add(d, V::lookup16(&table[i], index, d));
    }
    sum
}

/// `e^(−a²) = 2^k (high + low)`.
#[inline(always)]
fn bell<E: ExpConstants, S: Lanes<E>>(simd: S, a: S::V) -> (S::I, [S::V; 2]) {
    let square = a * a;
    let square_low = a.mul_add(a, -square);
    let parts = exp_parts(simd, -square, Some(-square_low));
    let [p, p_low] = parts.expm1();
    let Parts { k, t, .. } = parts;
    let high = t.mul_add(p, t);
    (k, [high, t.mul_add(p_low, t.mul_add(p, t - high))])
}

impl Map<f32, 1> for Erf {
    const VECTORS: [usize; 2] = [4, 2];

    #[inline(always)]
    fn apply<S: Lanes<f32>>(simd: S, [x]: [S::V; 1]) -> S::V {
        odd_by_rows(simd, x, &rows::ROWS, rows::SATURATED)
    }
}

impl Map<f64, 1> for Erf {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<f64>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let a = simd.splat(intervals::LIMIT).min_or_other(x.abs());
        let shifted = a.mul_add(simd.splat(intervals::SCALE), simd.splat(f64::SHIFTER));
        let index = shifted.to_bits();
        let d = a - S::V::lookup16(&intervals::CENTRE, index, a);
        let slope = polynomial(intervals::SLOPE, index, d);
        let near_zero = shifted.lt(simd.splat(intervals::OWN_VALUE));
        let factor = a.select(near_zero, d);
        let value = a.select(near_zero, S::V::lookup16(&intervals::VALUE, index, a));
        copy_sign(simd, factor.mul_add(slope, value), x)
    }
}

impl<E: ErfcTables> Map<E, 1> for Erfc {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let a = simd.splat(E::LIMIT).min_or_other(x.abs());
        let (k, [e, e_low]) = bell(simd, a);

        let index = E::interval::<S>(a.mul_add(simd.splat(E::STRETCH), simd.splat(E::ONE)));
        let d = a - S::V::lookup16(&E::CENTRE, index, a);
        let slope = polynomial(E::SLOPE, index, d);
        let top = S::V::lookup16(&E::RATIO[0], index, a);
        let top_low = S::V::lookup16(&E::RATIO[1], index, a);
        let r = d.mul_add(slope, top);
        let r_low = d.mul_add(slope, top - r) + top_low;

        let high = e * r;
        let low = e.mul_add(r, -high) + e.mul_add(r_low, e_low * r);
        let right = (high + low).scale_by_power_of_two(k);
        let (high, low) = (high.scale_by_power_of_two(k), low.scale_by_power_of_two(k));
        let two = simd.splat(E::ONE) + simd.splat(E::ONE);
        let rest = two - high;
        let left = rest + (((two - rest) - high) - low);
        left.select(x.lt(simd.splat(E::ZERO)), right)
    }
}

impl<E: Bell> Map<E, 2> for ErfGrad {
    const VECTORS: [usize; 2] = [2, 4];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [g, x]: [S::V; 2]) -> S::V {
        let a = simd.splat(E::BELL_LIMIT).min_or_other(x.abs());
        let (k, [e, e_low]) = bell(simd, a);
        let density = simd.splat(E::DENSITY);
        let slope = e.mul_add(density, e_low * density);
        g * slope.scale_by_power_of_two(k)
    }
}

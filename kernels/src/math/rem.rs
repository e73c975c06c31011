//! The exact remainder of a division, and the quotient rounded down.
//!
//! ```text
//! while |a| / |b| is large in any lane:    there, a ← a mod 2^j b   (2^j b some 2^20 below a)
//! n = round(a / b)
//! r = a − n b                              exact: a fused multiply-add whose result is a float
//! if r < 0: r + b                          likewise
//! ```
//!
//! 1. *n may be off by one*, hence r is in −0.75 b … 0.75 b. The ULP of r is at least that of b or
//!    of a, whichever is smaller, so r is a float, and so is r + b.
//! 2. A remainder by 2^j b does not change the remainder by b. Each takes 19 bits (f64: 48) off the
//!    quotient; operands of similar size need none.

use super::copy_sign;
use crate::map::Map;
use crate::simd::{Float, IntVector, Lanes, Mask, Vector};

/// The remainder of `a / b` truncated towards zero, as Rust's `%` and C's `fmod`: exact, with the
/// sign of `a` and a magnitude below that of `b`.
///
/// * `a` infinite, `b` zero or NaN in either gives NaN; `b` infinite gives `a`; ±0 gives ±0.
pub struct Rem;

trait RemConstants: Float {
    const MIN_NORMAL: Self;
    /// 2^24 or 2^54: makes subnormal numbers normal.
    const RESCALE: Self;
    /// Quotients from here on are reduced first.
    const LARGE: Self;
    /// The distance in exponents between the dividend and the scaled divisor.
    const GAP: Self::Int;
    fn exponent<S: Lanes<Self>>(x: S::V) -> S::I;
}

impl RemConstants for f32 {
    const MIN_NORMAL: f32 = f32::MIN_POSITIVE;
    const RESCALE: f32 = 16_777_216.0;
    const LARGE: f32 = 4_194_304.0;
    const GAP: i32 = 20;
    #[inline(always)]
    fn exponent<S: Lanes<f32>>(x: S::V) -> S::I {
        x.to_bits().shr::<23>()
    }
}

impl RemConstants for f64 {
    const MIN_NORMAL: f64 = f64::MIN_POSITIVE;
    const RESCALE: f64 = 18_014_398_509_481_984.0;
    const LARGE: f64 = 2_251_799_813_685_248.0;
    const GAP: i64 = 49;
    #[inline(always)]
    fn exponent<S: Lanes<f64>>(x: S::V) -> S::I {
        x.to_bits().shr::<52>()
    }
}

/// The remainder of `a / b` rounded down, as Python's `%`: [`Rem`], and `b` added, with one rounding, where that
/// is not zero and its sign is not that of `b`.
///
/// * `b` infinite gives `a` where the signs agree or `a` is zero, else `b`. The rest as for [`Rem`]: zeros have
///   the sign of `a`.
pub struct Remainder;

/// The quotient `a / b` rounded down, as Python's `//`: computed from the exact remainder, so that it is
/// the integer below the exact quotient, not below the rounded one.
///
/// * `(a − r) / b` for the remainder r with the sign of `b`: exact if the quotient is below 2^22 (f64:
///   2^51).
/// * Largest error: 2.000 ULP (f32, 2^30 pairs); f64 within 2 floats.
/// * Zero has the sign of `a / b`. A `b` of zero gives `a / b`; `a` infinite or NaN in either gives NaN;
///   `b` infinite gives 0, or −1 where the signs differ and `a` is not zero.
pub struct FloorDivide;

/// The remainder for `a ≥ 0` and `b > 0` with a quotient below `LARGE`.
#[inline(always)]
fn small<E: Float, S: Lanes<E>>(simd: S, a: S::V, b: S::V, quotient: S::V) -> S::V {
    let rest = quotient.round_ties_even().neg_mul_add(b, a);
    (rest + b).select(rest.lt(simd.splat(E::ZERO)), rest)
}

impl<E: RemConstants> Map<E, 2> for Rem {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [a, b]: [S::V; 2]) -> S::V {
        let (zero, infinity) = (simd.splat(E::ZERO), simd.splat(E::INFINITY));
        let divisor = b.abs();
        let defined = a.abs().lt(infinity) & zero.lt(divisor);
        let unchanged = divisor.eq(infinity);
        let mut rest = a.abs().select(defined & divisor.lt(infinity), zero);
        let divisor = divisor.select(defined, simd.splat(E::ONE));

        let mut quotient = rest / divisor;
        let mut large = simd.splat(E::LARGE).le(quotient);
        while large.any() {
            let subnormal = divisor.lt(simd.splat(E::MIN_NORMAL));
            let normal = (divisor * simd.splat(E::RESCALE)).select(subnormal, divisor);
            let shift = E::exponent::<S>(rest) - E::exponent::<S>(normal) - simd.splat_int(E::GAP);
            let scaled = normal.scale_by_power_of_two(shift);
            rest = small(simd, rest, scaled, rest / scaled).select(large, rest);
            quotient = rest / divisor;
            large = simd.splat(E::LARGE).le(quotient);
        }
        let rest = copy_sign(simd, small(simd, rest, divisor, quotient), a);
        let rest = a.select(unchanged, rest);
        rest.select(defined, simd.splat(E::NAN))
    }
}

/// True where a remainder is not zero and has not the sign of the divisor.
#[inline(always)]
fn is_apart<E: Float, S: Lanes<E>>(simd: S, rest: S::V, b: S::V) -> S::M {
    let zero = simd.splat(E::ZERO);
    (rest.lt(zero) & zero.lt(b)) | (zero.lt(rest) & b.lt(zero))
}

impl<E: RemConstants> Map<E, 2> for Remainder {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [a, b]: [S::V; 2]) -> S::V {
        let rest = Rem::apply(simd, [a, b]);
        (rest + b).select(is_apart(simd, rest, b), rest)
    }
}

impl<E: RemConstants> Map<E, 2> for FloorDivide {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [a, b]: [S::V; 2]) -> S::V {
        let (zero, quotient) = (simd.splat(E::ZERO), a / b);
        let rest = Rem::apply(simd, [a, b]);
        let truncated = ((a - rest) / b).round_ties_even();
        let above = is_apart(simd, rest, b);
        let whole = (truncated - simd.splat(E::ONE)).select(above, truncated);
        let whole = copy_sign(simd, whole, quotient).select(whole.eq(zero), whole);
        quotient.select(b.eq(zero), whole)
    }
}

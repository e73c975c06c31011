//! Sine and cosine of any argument.
//!
//! ```text
//! n = round(x 2/π);   x = n π/2 + high + low,   |high| <= 0.79
//! sine:   high + (high³ S(high²) + low (1 − high²/2))
//! cosine: 1 − high²/2 + (high⁴ C(high²) − high low + rounding error of 1 − high²/2)
//! sin x = sine, cosine, −sine, −cosine for n mod 4 = 0, 1, 2, 3;   cos x: one quadrant further
//! ```
//!
//! 1. *The reduction subtracts π/2 in three parts*, P1, P2, P3. x − n P1 is exact by one fused
//!    multiply-add (a multiple of P1's ULP, below 1); n P2 is kept with its error; n P3 joins the
//!    low part. Near a multiple of π/2 all of x − n P1 may cancel against n P2: the difference is
//!    still exact, because x − n P1 is a multiple of n P2's ULP.
//! 2. *Small arguments* (|x| <= 199: n of 7 bits) save the error of n P2: there P2 is so short that
//!    n P2 is a float. If the difference does not round, it is high, and low begins with n P3; if
//!    it does, x − n P1 is at least twice n P2, so that its difference from high is exact.
//! 3. *Large arguments* (1e5 for f32, 1e9 for f64: where n times the error of 2/π would leave the
//!    polynomials' interval) go lane by lane through `huge`, behind one branch: x = m 2^e times 2/π
//!    in integers. Bits of 2/π that yield multiples of 4 are skipped; the next 192 leave at least
//!    137 correct fractional bits, of which the f64 nearest to a multiple of π/2 costs 62.
//! 4. Both polynomials are evaluated for all lanes and one is chosen: lanes differ in n.

use super::horner;
use crate::map::Map;
use crate::simd::{Float, IntVector, Lanes, Mask, Vector};

/// `sin x`, x in radians.
///
/// * Domain: all finite numbers, reduced exactly.
/// * ±0 gives ±0, subnormal numbers give themselves; ±∞ and NaN give NaN.
/// * Largest error: 0.786 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: `tools/coefficients.py trig`; on \[0, 0.7915\] S minimises the error relative to
///   its argument, 2^-32.5 (f32), 2^-63.2 (f64), C the absolute error, 2^-33.1, 2^-64.0.
pub struct Sin;

/// `cos x`, x in radians.
///
/// * Domain: all finite numbers, reduced exactly.
/// * ±0 gives 1; ±∞ and NaN give NaN.
/// * Largest error: 0.787 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: those of [`Sin`].
pub struct Cos;

/// Constants of the reduction and the polynomials, from `tools/coefficients.py trig`.
pub(super) trait TrigConstants: Float {
    const FRAC_2_PI: Self;
    /// Adding it to a number rounds that to an integer.
    const SHIFTER: Self;
    /// π/2 in three parts.
    const FRAC_PI_2: [Self; 3];
    /// The same with a short second part, for arguments up to `NEAR`.
    const NEAR_PI_2: [Self; 3];
    const NEAR: Self;
    /// S(z) = (sin √z / √z − 1) / z, lowest power first.
    const SINE: &'static [Self];
    /// C(z) = (cos √z − 1 + z/2) / z², lowest power first.
    const COSINE: &'static [Self];
    /// Arguments above it are reduced by `huge`.
    const LIMIT: Self;
    /// 0.5.
    const HALF: Self;
    /// 1, the bit of odd quadrants.
    const ONE_INT: Self::Int;
    /// The second bit of an integer, moved to the sign bit.
    fn second_bit<I: IntVector>(n: I) -> I;
    /// `[n mod 4, high, low]` of an argument above `LIMIT`; NaN for infinities.
    fn huge(x: Self) -> [Self; 3];
}

impl TrigConstants for f32 {
    const FRAC_2_PI: f32 = std::f32::consts::FRAC_2_PI;
    const SHIFTER: f32 = 12_582_912.0;
    const FRAC_PI_2: [f32; 3] = [std::f32::consts::FRAC_PI_2, -4.371139e-8, -1.7151245e-15];
    const NEAR_PI_2: [f32; 3] = [std::f32::consts::FRAC_PI_2, -4.3712134e-8, 7.443548e-13];
    const NEAR: f32 = 199.0;
    const SINE: &'static [f32] = &[-0.16666667, 0.008333379, -0.00019853006, 2.8313157e-6];
    const COSINE: &'static [f32] = &[0.041666646, -0.0013887301, 2.4430665e-5];
    const LIMIT: f32 = 1e5;
    const HALF: f32 = 0.5;
    const ONE_INT: i32 = 1;
    #[inline(always)]
    fn second_bit<I: IntVector>(n: I) -> I {
        n.shl::<30>()
    }
    fn huge(x: f32) -> [f32; 3] {
        let [n, high, low] = reduce_huge(f64::from(x));
        let nearest = high as f32;
        [n as f32, nearest, (high - f64::from(nearest) + low) as f32]
    }
}

impl TrigConstants for f64 {
    const FRAC_2_PI: f64 = std::f64::consts::FRAC_2_PI;
    const SHIFTER: f64 = 6_755_399_441_055_744.0;
    const FRAC_PI_2: [f64; 3] =
        [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33];
    const NEAR_PI_2: [f64; 3] =
        [std::f64::consts::FRAC_PI_2, 6.123233995736757e-17, 8.4784276603689e-32];
    const NEAR: f64 = 199.0;
    const SINE: &'static [f64] = &[
        -0.16666666666666666,
        0.008333333333333042,
        -0.0001984126984096335,
        2.7557319075091714e-6,
        -2.505207140175972e-8,
        1.6054397545261257e-10,
        -7.394953709629519e-13,
    ];
    const COSINE: &'static [f64] = &[
        0.041666666666666595,
        -0.0013888888888873225,
        2.480158728886376e-5,
        -2.755731416021498e-7,
        2.0875695608524106e-9,
        -1.1358145756615336e-11,
    ];
    const LIMIT: f64 = 1e9;
    const HALF: f64 = 0.5;
    const ONE_INT: i64 = 1;
    #[inline(always)]
    fn second_bit<I: IntVector>(n: I) -> I {
        n.shl::<62>()
    }
    fn huge(x: f64) -> [f64; 3] {
        reduce_huge(x)
    }
}

/// The fractional bits of 2/π, from `tools/coefficients.py trig`.
const TWO_OVER_PI: [u64; 20] = [
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
];

/// 64 bits of 2/π from the given fractional bit on; zeros before the first.
fn bits_of_two_over_pi(start: i32) -> u64 {
    let word = |i: i32| usize::try_from(i).map_or(0, |i| TWO_OVER_PI[i]);
    let (first, offset) = (start.div_euclid(64), start.rem_euclid(64));
    let both = u128::from(word(first)) << 64 | u128::from(word(first + 1));
    (both >> (64 - offset)) as u64
}

/// `x = n π/2 + high + low` with `[n mod 4, high, low]`; NaN for infinities and NaN.
///
/// Payne and Hanek's method. With x = m 2^e, the 192 bits W of 2/π whose first has weight 2^(1−e)
/// give m W as x 2/π modulo 4 in units of 2^-190.
fn reduce_huge(x: f64) -> [f64; 3] {
    if !x.is_finite() {
        return [0.0, f64::NAN, f64::NAN];
    }
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i32 - 1075;
    let m = u128::from(x.to_bits() & ((1 << 52) - 1) | 1 << 52);
    let word = |i: i32| u128::from(bits_of_two_over_pi(exponent - 2 + 64 * i));

    let last = m * word(2);
    let middle = m * word(1) + (last >> 64);
    let first = m * word(0) + (middle >> 64);
    let mut units = [first as u64, middle as u64, last as u64];
    let mut quadrant = units[0] >> 62;
    units = shift_left(units, 2);

    let above_half = units[0] >> 63 == 1;
    if above_half {
        quadrant += 1;
        units = negate(units);
    }
    let zeros = units[0].leading_zeros().min(63);
    units = shift_left(units, zeros);
    // The first 53 bits, then the next 64: the former convert exactly, the latter with harmless
    // rounding.
    let low_bits = units[0] << 53 | units[1] >> 11;
    let unit = f64::from_bits(u64::from(1023 - 53 - zeros) << 52);
    let high = (units[0] >> 11) as f64 * unit;
    let low = low_bits as f64 * unit * (1.0 / 18_446_744_073_709_551_616.0);

    let [p1, p2, _] = f64::FRAC_PI_2;
    let product = high * p1;
    let rest = high.mul_add(p1, -product) + (high * p2 + low * p1);
    let sum = product + rest;
    let sum_error = (product - sum) + rest;
    let negative = x.is_sign_negative();
    let quadrant = if negative { quadrant.wrapping_neg() } else { quadrant } & 3;
    let sign = if above_half == negative { 1.0 } else { -1.0 };
    [quadrant as f64, sign * sum, sign * sum_error]
}

/// `units << by`, first word highest; `by` in 0..64.
fn shift_left([a, b, c]: [u64; 3], by: u32) -> [u64; 3] {
    let pair =
        |high: u64, low: u64| ((u128::from(high) << 64 | u128::from(low)) << by >> 64) as u64;
    [pair(a, b), pair(b, c), c << by]
}

/// The two's complement negation.
fn negate([a, b, c]: [u64; 3]) -> [u64; 3] {
    let (c, carry) = (!c).overflowing_add(1);
    let (b, carry) = (!b).overflowing_add(u64::from(carry));
    [(!a).wrapping_add(u64::from(carry)), b, c]
}

/// `x = n π/2 + high + low`.
pub(super) struct Reduced<V: Vector> {
    /// An integer whose last two bits are those of n.
    pub quadrant: V::Int,
    pub high: V,
    pub low: V,
}

/// The reduction of any argument; a zero may lose its sign.
#[inline(always)]
pub(super) fn reduce<E: TrigConstants, S: Lanes<E>>(simd: S, x: S::V) -> Reduced<S::V> {
    let [p1, p2, p3] = simd.splat_all(E::FRAC_PI_2);
    let shifter = simd.splat(E::SHIFTER);
    let mut shifted = x.mul_add(simd.splat(E::FRAC_2_PI), shifter);
    let n = shifted - shifter;
    let rest = n.neg_mul_add(p1, x);
    let product = n * p2;
    let product_low = n.mul_add(p3, n.mul_add(p2, -product));
    let mut high = rest - product;
    let mut low = ((rest - high) - product) - product_low;
    let rare = simd.splat(E::LIMIT).lt(x.abs());
    if rare.any() {
        let [n, rare_high, rare_low] = simd.map_lanes(rare, x, E::huge);
        shifted = (n + shifter).select(rare, shifted);
        high = rare_high.select(rare, high);
        low = rare_low.select(rare, low);
    }
    Reduced { quadrant: shifted.to_bits(), high, low }
}

/// Sine and cosine of `high + low`, at most an eighth of the circle.
#[inline(always)]
fn octant<E: TrigConstants, S: Lanes<E>>(simd: S, high: S::V, low: S::V) -> [S::V; 2] {
    let (one, half) = (simd.splat(E::ONE), simd.splat(E::HALF));
    let square = high * high;
    let near = square.neg_mul_add(half, one);
    let cubic = (high * square).mul_add(horner(simd, square, E::SINE), low * near);
    let near_error = square.neg_mul_add(half, one - near);
    let quartic = (square * square).mul_add(horner(simd, square, E::COSINE), near_error);
    [high + cubic, near + high.neg_mul_add(low, quartic)]
}

/// The reduction of an argument of size up to `NEAR`.
#[inline(always)]
fn reduce_near<E: TrigConstants, S: Lanes<E>>(simd: S, x: S::V) -> Reduced<S::V> {
    let [p1, p2, p3] = simd.splat_all(E::NEAR_PI_2);
    let shifter = simd.splat(E::SHIFTER);
    let shifted = x.mul_add(simd.splat(E::FRAC_2_PI), shifter);
    let n = shifted - shifter;
    let rest = n.neg_mul_add(p1, x);
    let high = n.neg_mul_add(p2, rest);
    let low = n.neg_mul_add(p3, n.neg_mul_add(p2, rest - high));
    Reduced { quadrant: shifted.to_bits(), high, low }
}

/// Sine and cosine of x from the reduction of |x|.
#[inline(always)]
fn turn<E: TrigConstants, S: Lanes<E>>(
    simd: S,
    Reduced { quadrant, high, low }: Reduced<S::V>,
    x: S::V,
) -> [S::V; 2] {
    let one = simd.splat_int(E::ONE_INT);
    let sign = simd.splat(-E::ZERO).to_bits();
    let [sine, cosine] = octant(simd, high, low);
    let odd = (quadrant & one).eq(one);
    let turned = (E::second_bit(quadrant) ^ x.to_bits()) & sign;
    let ahead = E::second_bit(quadrant + one) & sign;
    [
        S::V::from_bits(cosine.select(odd, sine).to_bits() ^ turned),
        S::V::from_bits(sine.select(odd, cosine).to_bits() ^ ahead),
    ]
}

/// Sine and cosine of arguments of magnitude up to `NEAR`, and the mask of those lanes.
#[inline(always)]
fn near_waves<E: TrigConstants, S: Lanes<E>>(simd: S, x: S::V) -> ([S::V; 2], S::M) {
    let a = x.abs();
    (turn(simd, reduce_near(simd, a), x), a.le(simd.splat(E::NEAR)))
}

/// Sine and cosine.
#[inline(always)]
pub(super) fn waves<E: TrigConstants, S: Lanes<E>>(simd: S, x: S::V) -> [S::V; 2] {
    let ([sine, cosine], near) = near_waves(simd, x);
    if near.all() {
        return [sine, cosine];
    }
    let [far_sine, far_cosine] = turn(simd, reduce(simd, x.abs()), x);
    [sine.select(near, far_sine), cosine.select(near, far_cosine)]
}

macro_rules! waves {
    ($($Kernel:ident $which:literal)*) => {$(
        impl<E: TrigConstants> Map<E, 1> for $Kernel {
            const HAS_USUAL: bool = true;
            const VECTORS: [usize; 2] = [2, 4];

            #[inline(always)]
            fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
                waves(simd, x)[$which]
            }

            #[inline(always)]
            fn usual<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> (S::V, S::M) {
                let (waves, near) = near_waves(simd, x);
                (waves[$which], near)
            }
        }
    )*};
}
waves!(Sin 0 Cos 1);

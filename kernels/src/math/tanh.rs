//! The hyperbolic tangent: by tables for `f32`, from the exponential for `f64`.
//!
//! ```text
//! f32: the exponent of |x| and its first two mantissa bits choose one of 30 intervals
//!      tanh |x| = T + d (c1 + d (c2 + … c6))          d = |x| − centre, T = tanh centre
//!
//! f64: e^(2|x|) = b (1 + p)          b = 2^k 2^(j/8), p = e^r − 1: the parts of exp.rs
//!      tanh |x| = (e^(2|x|) − 1) / (e^(2|x|) + 1)
//!               = (b − 1 + b p) / (b + 1 + b p)
//! ```
//!
//! Tables:
//!
//! 1. *A lane's eight numbers are one row*, which `lookup_rows` fetches at once.
//! 2. *The error is that of one addition.* An interval is a quarter of an octave, so |d| is at most
//!    an eighth of x, and an ULP of the bracket is an eighth of an ULP of the result. Subtracting
//!    the centre is exact: both are within a factor of two.
//! 3. *Centres are chosen so that two numbers need no low parts*: near the middle of each interval
//!    is a float at which both tanh and its derivative are almost floats (Gal's accurate tables).
//! 4. *The first interval reaches down to zero* and is relative: its centre and T are 0, and x
//!    itself takes the role of T, as the larger of T and d. Elsewhere d is below T.
//!
//! The exponential:
//!
//! 1. *One formula for all x.* Where 2|x| < ln 2 / 16, b = 1 and the numerator is p alone: nothing
//!    cancels, and the relative accuracy holds down to subnormal numbers.
//! 2. *Numerator and denominator are sums of two floats*: b ± 1 with its rounding error (b >= 1, so
//!    subtracting in that order is exact), plus b p with the error of that addition. p itself is a
//!    sum of two floats, since near zero its rounding would add half an ULP to the result's.
//! 3. *One division*: q = high / high by a reciprocal, then q + (numerator − q · denominator) ·
//!    reciprocal, whose bracket is exact up to its own tiny ULP.
//!
//! Beyond the clamp the result rounds to 1. The sign bit of x is restored at the end.

use super::exp::exp_parts;
use super::{copy_sign, divide};
use crate::map::Map;
use crate::simd::{Float, IntVector, Lanes, Rows, Vector};

/// `tanh x`.
///
/// * Domain: all numbers.
/// * ±0 gives ±0, ±∞ gives ±1, NaN gives NaN; subnormal numbers give themselves.
/// * Largest error: 0.568 ULP (f32, all inputs); f64 within 1 float.
/// * Coefficients: `tools/coefficients.py tanh` (f32), relative error 2^-28.1; those of `exp.rs` (f64).
pub struct Tanh;

/// The gradient of [`Tanh`] from its output: `g (1 − y²)`.
///
/// * 1 − y² is rounded once and the product once: within 1.5 ULP if `g (1 − y²)` is normal.
/// * y = ±1 gives a zero with the sign of g, or NaN if g is infinite; NaN in either gives NaN.
pub struct TanhGrad;

/// From here on tanh rounds to 1.
const SATURATED_F32: f32 = 9.0625;
const SATURATED_F64: f64 = 19.5;

/// A number of the first interval.
const FIRST_INTERVAL: f32 = 0.055;

/// An interval's centre, its tanh and the coefficients c1 … c6, from `tools/coefficients.py tanh`.
#[rustfmt::skip]
static ROWS: Rows<f32> = Rows::new([
        [2.2033925, 0.9759052, 0.04760908, -0.046461917,
         0.029473482, -0.013277185, 0.004166282, -0.00066087104],
        [2.7995925, 0.99262553, 0.014694548, -0.014586186,
         0.009579998, -0.0046476345, 0.0017604744, -0.0005098228],
        [3.252245, 0.99701107, 0.0059689353, -0.0059510954,
         0.00394353, -0.0019481146, 0.0007663553, -0.00024255893],
        [3.716165, 0.9988171, 0.0023644282, -0.0023616315,
         0.0015706004, -0.00078159233, 0.00031304735, -0.00010215698],
        [4.5836, 0.9997912, 0.00041754654, -0.00041746924,
         0.00027786216, -0.00013880566, 5.8229656e-5, -1.9302479e-5],
        [5.569175, 0.9999709, 5.817329e-5, -5.8172827e-5,
         3.873702e-5, -1.9364712e-5, 8.119023e-6, -2.7006238e-6],
        [6.577145, 0.9999961, 7.748589e-6, -7.748746e-6,
         5.159771e-6, -2.5795762e-6, 1.0833135e-6, -3.6057017e-7],
        [7.421885, 0.9999993, 1.4305145e-6, -1.4305887e-6,
         9.525772e-7, -4.7599573e-7, 2.000422e-7, -6.699803e-8],
        [8.6375, 0.99999994, 1.2578329e-7, -1.9049233e-7,
         8.371204e-8, 2.765686e-7, 1.7771058e-8, -4.5362628e-7],
        [0.0, 0.0, 0.0, 0.0,
         0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0,
         0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, -7.27354e-63,
         -0.33333308, -1.45922e-59, 0.13306978, 4.13679e-57],
        [0.07125203, 0.0711317, 0.9949403, -0.07077095,
         -0.32659122, 0.025070818, -0.0722177, 160.91422],
        [0.086810626, 0.08659321, 0.9925016, -0.08594319,
         -0.32341793, 0.037633847, 0.373223, 145.08018],
        [0.10221883, 0.10186429, 0.98962367, -0.10080817,
         -0.3196077, 0.09007864, 0.13984114, -190.53221],
        [0.11584758, 0.1153321, 0.9866985, -0.11379844,
         -0.31580618, 0.08441696, 0.38508737, -67.62511],
        [0.138955, 0.13806751, 0.98093736, -0.13543554,
         -0.3082805, 0.08738, 0.113958545, 0.6021253],
        [0.1699589, 0.16834112, 0.97166127, -0.1635702,
         -0.2963588, 0.10214157, 0.11984142, 4.1868486],
        [0.20228171, 0.19956715, 0.96017295, -0.19161883,
         -0.28181913, 0.118956454, 0.097449064, 2.4111676],
        [0.23526765, 0.2310209, 0.94662935, -0.21869099,
         -0.26502746, 0.13288161, 0.09561684, 2.5330427],
        [0.28195655, 0.27471495, 0.9245317, -0.25398275,
         -0.23840499, 0.15031356, 0.059173666, -0.16393207],
        [0.3386825, 0.32630068, 0.89352787, -0.29155874,
         -0.20270583, 0.16331188, 0.033614192, -0.06318208],
        [0.40850094, 0.3871991, 0.85007685, -0.32914883,
         -0.1559135, 0.16978857, 0.005505313, 0.08516986],
        [0.47098687, 0.43899634, 0.8072822, -0.35439384,
         -0.1135169, 0.16778587, -0.01762543, 0.03562463],
        [0.5624419, 0.50978696, 0.74011725, -0.37730217,
         -0.054362267, 0.15350387, -0.04349885, -0.040804375],
        [0.68288, 0.5933885, 0.6478901, -0.38445055,
         0.01216468, 0.120941065, -0.061205808, -0.013484295],
        [0.8202975, 0.67523175, 0.5440621, -0.36736807,
         0.066703916, 0.07744953, -0.06224511, 0.0040195943],
        [0.9403525, 0.73538417, 0.45921013, -0.3376959,
         0.095266454, 0.042524748, -0.05283311, 0.01502397],
        [1.1350137, 0.8127282, 0.33947283, -0.27589914,
         0.11107392, 0.0016932181, -0.030935422, 0.018337896],
        [1.386105, 0.882311, 0.22152732, -0.19545598,
         0.09861136, -0.021854114, -0.008796609, 0.010630492],
        [1.6132562, 0.9236398, 0.14688957, -0.13567303,
         0.07635037, -0.02529775, 0.0010943565, 0.004433378],
        [1.8736037, 0.9539197, 0.09003719, -0.08588826,
         0.051918242, -0.020895248, 0.0046001943, 0.0006193696],
]);

impl Map<f32, 1> for Tanh {
    const VECTORS: [usize; 2] = [4, 2];

    #[inline(always)]
    fn apply<S: Lanes<f32>>(simd: S, [x]: [S::V; 1]) -> S::V {
        odd_by_rows(simd, x, &ROWS, SATURATED_F32)
    }
}

/// An odd function that is 1 from `saturated` on, from rows of a centre, the function's value there
/// and six coefficients; the first interval's coefficients are those of `f(x)/x − 1`.
#[inline(always)]
pub(super) fn odd_by_rows<S: Lanes<f32>>(
    simd: S,
    x: S::V,
    rows: &'static Rows<f32>,
    saturated: f32,
) -> S::V {
    let magnitude = simd.splat(saturated).min_or_other(x.abs());
    let interval = magnitude.max_or_other(simd.splat(FIRST_INTERVAL)).to_bits().shr::<21>();
    let [centre, top, c1, c2, c3, c4, c5, c6] = simd.lookup_rows(rows, interval);
    let d = magnitude - centre;
    let slope = c6.mul_add(d, c5).mul_add(d, c4).mul_add(d, c3).mul_add(d, c2).mul_add(d, c1);
    copy_sign(simd, slope.mul_add(d, top.max_or_other(d)), x)
}

impl Map<f64, 1> for Tanh {
    const VECTORS: [usize; 2] = [2, 2];

    #[inline(always)]
    fn apply<S: Lanes<f64>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let one = simd.splat(1.0);
        let magnitude = simd.splat(SATURATED_F64).min_or_other(x.abs());
        let parts = exp_parts(simd, magnitude + magnitude, None);
        let [p, p_low] = parts.expm1();
        let b = parts.t.scale_by_power_of_two(parts.k);
        let above = b + one;
        let below = b - one;
        let above_error = (b - above) + one;
        let below_error = (b - below) - one;
        let high = b.mul_add(p, below);
        let low = b.mul_add(p_low, b.mul_add(p, below - high) + below_error);
        let under_high = b.mul_add(p, above);
        let under_low = b.mul_add(p_low, b.mul_add(p, above - under_high) + above_error);
        copy_sign(simd, divide(simd, [high, low], [under_high, under_low]), x)
    }
}

impl<E: Float> Map<E, 2> for TanhGrad {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [g, y]: [S::V; 2]) -> S::V {
        g * y.neg_mul_add(y, simd.splat(E::ONE))
    }
}

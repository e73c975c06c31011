//! The Gaussian error linear unit, `x Φ(x)` with the normal distribution function Φ, from Φ's tail.
//!
//! ```text
//! a = |x|,  Q(a) = 1 − Φ(a) = e^(−a²/2) R(a)            R(a) = e^(a²/2) erfc(a/√2) / 2
//! x < 0:   gelu(x) = x Q(a)                             x >= 0:   gelu(x) = x (1 − Q(a))
//! gelu′(x) = Q − a φ = e^(−a²/2) (R(a) − a/√(2π))   or   1 − that
//!
//! interval: exponent and first mantissa bit of 1 + a/stretch, 8 of them, widths rising with a
//! R(a) = RATIO + d S(d),  d = a − CENTRE                both of the interval
//! ```
//!
//! 1. *R changes slowly*, from 1/2 to 0.027 (f64: 0.01), while Q falls to the smallest numbers.
//!    There is one polynomial S per interval, with coefficients in tables that `lookup8` reads: no
//!    division.
//! 2. *Every rounding that would cost an ULP is compensated*: a² has its error (half an ULP of a²/2
//!    = 100 would be 64 ULP of the result; f64: 700 and 512), R is a sum of two floats, and so is
//!    its product with e^(−a²/2). d S(d) is at most 0.43 of R, so its own rounding costs less than
//!    half an ULP.
//! 3. *One rounding decides*: x (high + low) is one fused multiply-add onto x low. 1 − Q(a) is at
//!    least a half: no cancellation.
//! 4. *The power of two comes last* where the result may be subnormal, behind one branch.

use super::copy_sign;
use super::exp::{ExpConstants, exp_parts, scaled_parts};
use crate::map::{Map, usual_or};
use crate::simd::{IntVector, Lanes, Vector};

/// `x/2 (1 + erf(x/√2))`.
///
/// * Domain: all numbers; subnormal results are computed, not flushed.
/// * ±0 gives ±0, +∞ gives +∞, −∞ gives −0 (the limit), NaN gives NaN.
/// * Largest error: 0.927 ULP, 0.788 where the result is subnormal (f32, all inputs); f64 within 1
///   float.
/// * Coefficients: `tools/coefficients.py tail`; their error relative to R: 2^-27.9 (f32), 2^-57.7
///   (f64).
pub struct Gelu;

/// The gradient of [`Gelu`] from its input: `g (Φ(x) + x φ(x))`, φ the normal density.
///
/// * The factor of g has a zero near x = −0.752; around it the error is absolute, 3 ULP of 1. In
///   the tail it is within 6 ULP.
/// * −∞ gives a factor of −0, +∞ of 1; NaN in either gives NaN.
pub struct GeluGrad;

/// Constants from `tools/coefficients.py tail`. Tables are rotated to begin with the third
/// interval, because the exponent and mantissa bits of the first one give the index 6.
trait TailConstants: ExpConstants {
    /// Beyond it, Q(a) and a φ(a) round to zero.
    const TAIL_MAX: Self;
    /// Up to it, a Q(a) is normal, and the part of its low part that underflows is far below its
    /// ULP.
    const TAIL_USUAL: Self;
    /// 1 / stretch.
    const STRETCH: Self;
    /// 1 / √(2π).
    const DENSITY: Self;
    /// 1 / 2.
    const HALF: Self;
    /// Middle of each interval; exact.
    const CENTRE: [Self; 8];
    /// R there, high and low part.
    const RATIO: [[Self; 8]; 2];
    /// S, lowest power first.
    const SLOPE: &'static [[Self; 8]];
    /// The last two exponent bits and the first mantissa bit of `b`.
    fn interval<S: Lanes<Self>>(b: S::V) -> S::I;
}

impl TailConstants for f32 {
    const TAIL_MAX: f32 = 14.75;
    const TAIL_USUAL: f32 = 12.0;
    const STRETCH: f32 = 1.0;
    const DENSITY: f32 = 0.3989423;
    const HALF: f32 = 0.5;
    const CENTRE: [f32; 8] = [1.5, 2.5, 4.0, 6.0, 9.0, 13.0, 0.25, 0.75];
    #[rustfmt::skip]
    const RATIO: [[f32; 8]; 2] = [
        [
            0.20578067, 0.14133133, 0.09441064, 0.06477931,
            0.04379879, 0.030509414, 0.4140321, 0.30023247,
        ],
        [
            -3.0694116e-9, 1.4388257e-9, -1.6795603e-9, 2.9059135e-9,
            -5.111141e-10, 3.4394623e-10, 1.3165709e-9, -7.695602e-9,
        ],
    ];
    const SLOPE: &'static [[f32; 8]] = &[
        [
            -0.09027128,
            -0.045613952,
            -0.021299714,
            -0.010266394,
            -0.00475318,
            -0.002319892,
            -0.29543427,
            -0.17376794,
        ],
        [
            0.035186876,
            0.013648226,
            0.0046058907,
            0.0015904738,
            0.0005100819,
            0.00017540948,
            0.17008679,
            0.08495326,
        ],
        [
            -0.012497035,
            -0.0038311314,
            -0.000958735,
            -0.00024118501,
            -5.415002e-5,
            -1.3189618e-5,
            -0.08430307,
            -0.036683798,
        ],
        [
            0.004110309,
            0.0010175974,
            0.00019275371,
            3.5842626e-5,
            5.6880062e-6,
            9.86368e-7,
            0.037251092,
            0.014359309,
        ],
        [
            -0.0012656007,
            -0.00025737053,
            -3.747286e-5,
            -5.2219057e-6,
            -5.895047e-7,
            -7.330453e-8,
            -0.015028183,
            -0.005197342,
        ],
        [
            0.00036863575,
            6.2352905e-5,
            7.0939764e-6,
            7.478595e-7,
            6.073101e-8,
            5.423604e-9,
            0.0056273327,
            0.0017642507,
        ],
        [
            -0.00010576274,
            -1.4871378e-5,
            -1.3993938e-6,
            -1.09985415e-7,
            -6.814635e-9,
            -4.1989515e-10,
            -0.0017108927,
            -0.0004372248,
        ],
        [
            2.7239088e-5,
            3.2829464e-6,
            2.4689592e-7,
            1.5085913e-8,
            6.824641e-10,
            3.0767493e-11,
            0.00028094358,
            1.25966235e-5,
        ],
    ];
    #[inline(always)]
    fn interval<S: Lanes<f32>>(b: S::V) -> S::I {
        b.to_bits().shr::<22>()
    }
}

impl TailConstants for f64 {
    const TAIL_MAX: f64 = 39.0;
    const TAIL_USUAL: f64 = 36.0;
    const STRETCH: f64 = 0.38095238095238093;
    const DENSITY: f64 = 0.3989422804014327;
    const HALF: f64 = 0.5;
    const CENTRE: [f64; 8] = [3.9375, 6.5625, 10.5, 15.75, 23.625, 34.125, 0.65625, 1.96875];
    const RATIO: [[f64; 8]; 2] = [
        [
            0.095760102299862,
            0.05946809373598751,
            0.037658858718938086,
            0.025228769247803796,
            0.016856352088975114,
            0.01168060298975904,
            0.3173012405846659,
            0.17008359211434196,
        ],
        [
            -3.253032275749597e-18,
            1.8542745410739335e-18,
            3.4435475611807653e-19,
            -1.7273604030818436e-18,
            -8.408526814886673e-20,
            3.652974546352226e-19,
            1.3869579971695887e-17,
            -8.243473937640266e-18,
        ],
    ];
    const SLOPE: &'static [[f64; 8]] = &[
        [
            -0.021886877595726086,
            -0.008682915259014653,
            -0.0035242638525827714,
            -0.0015891647485229115,
            -0.0007109622993956229,
            -0.0003417033759054135,
            -0.19071334126774567,
            -0.06409020842632196,
        ],
        [
            0.00479026088334527,
            0.0012432311743519238,
            0.000327044133409497,
            9.971222928396995e-5,
            2.9933882876762342e-5,
            9.987643493401938e-6,
            0.09607280518885392,
            0.02195299713751029,
        ],
        [
            -0.0010084084558511937,
            -0.00017473689244338784,
            -3.010015059434252e-5,
            -6.2323791001278145e-6,
            -1.2581054773706181e-6,
            -2.9168056435747375e-7,
            -0.04255518762085313,
            -0.0069567484372831815,
        ],
        [
            0.00020491314710769748,
            2.4130079423056274e-5,
            2.7481380422065127e-6,
            3.880646142372545e-7,
            5.278524346950382e-8,
            8.51105867594548e-9,
            0.01703649082816726,
            0.002064224662902587,
        ],
        [
            -4.031258782470543e-5,
            -3.2766492458956542e-6,
            -2.489402302573014e-7,
            -2.407228517886717e-8,
            -2.2108200808714922e-9,
            -2.4813740816156454e-10,
            -0.0062749981029845,
            -0.0005785612264304796,
        ],
        [
            7.697055425490738e-6,
            4.378447911048859e-7,
            2.2377604117651685e-8,
            1.4876871138336308e-9,
            9.243651020950718e-11,
            7.228270362921939e-12,
            0.002153087220514203,
            0.00015419704138720048,
        ],
        [
            -1.4293474325325365e-6,
            -5.7613257810936466e-8,
            -1.9964838336949075e-9,
            -9.160187609396453e-11,
            -3.8582181221260674e-12,
            -2.1038314745032396e-13,
            -0.0006945763733166738,
            -3.9283685988042524e-5,
        ],
        [
            2.586249852565398e-7,
            7.469723438041776e-9,
            1.7681545254317252e-10,
            5.619694381086145e-12,
            1.6076329651650285e-13,
            6.118188204012836e-15,
            0.00021215893442961617,
            9.60716066051502e-6,
        ],
        [
            -4.5667971901853075e-8,
            -9.547996629987973e-10,
            -1.5546859323968848e-11,
            -3.4352125256704855e-13,
            -6.68725623209445e-15,
            -1.7777495392882175e-16,
            -6.170523207510466e-5,
            -2.2632869027197643e-6,
        ],
        [
            7.880742778461537e-9,
            1.2038492363833748e-10,
            1.3573588404868057e-12,
            2.0923923292087237e-14,
            2.776980936487436e-16,
            5.1612579477505584e-18,
            1.7166487761807125e-5,
            5.151308908665763e-7,
        ],
        [
            -1.3306539035998135e-9,
            -1.4979486317358702e-11,
            -1.1768386617200768e-13,
            -1.269910275565662e-15,
            -1.1511960030722946e-17,
            -1.4972928755176285e-19,
            -4.585419291509499e-6,
            -1.1355942539139344e-7,
        ],
        [
            2.200961702903117e-10,
            1.840291635165793e-12,
            1.0134805155148549e-14,
            7.680329148559687e-17,
            4.764524360860695e-19,
            4.339999150663222e-21,
            1.1797741783078368e-6,
            2.429894407122355e-8,
        ],
        [
            -3.5723256893640135e-11,
            -2.232535085375224e-13,
            -8.682054672486362e-16,
            -4.639774708216351e-18,
            -1.9711034073890886e-20,
            -1.2533820240486487e-22,
            -2.932042273099805e-7,
            -5.049040220615363e-9,
        ],
        [
            5.684022295918324e-12,
            2.673946130607044e-14,
            7.375620714094235e-17,
            2.793855350678575e-19,
            8.128462620623714e-22,
            3.619148500199972e-24,
            7.053144464232637e-8,
            1.0205503335571266e-9,
        ],
        [
            -8.739928855713642e-13,
            -3.180386478091127e-15,
            -6.064276707256598e-18,
            -1.5824085636214356e-20,
            -3.2640788590965305e-23,
            -1.114594257043897e-25,
            -1.6387060677499325e-8,
            -2.1045488016559174e-10,
        ],
        [
            1.3495927821745642e-13,
            3.8152005280716954e-16,
            5.111694320535653e-19,
            8.906436517895761e-22,
            1.3463875985923368e-24,
            3.3725916480647074e-27,
            3.7219898878441457e-9,
            4.4181808866489165e-11,
        ],
        [
            -2.4677393431370787e-14,
            -4.481241618417608e-17,
            -5.456759667521695e-20,
            -8.976339357845828e-23,
            -7.046814166563151e-26,
            -4.18621591638883e-29,
            -9.051132172412587e-10,
            -3.559637528134857e-12,
        ],
        [
            3.585966597572621e-15,
            4.0105545731288226e-18,
            4.4462277230861e-21,
            7.054843175216037e-24,
            2.8517545242014484e-27,
            -5.169573955839455e-32,
            1.9189963012480264e-10,
            -1.2428331588406193e-12,
        ],
    ];
    #[inline(always)]
    fn interval<S: Lanes<f64>>(b: S::V) -> S::I {
        b.to_bits().shr::<51>()
    }
}

/// R(a) as a sum of two floats, high part first.
#[inline(always)]
fn ratio<E: TailConstants, S: Lanes<E>>(simd: S, a: S::V) -> [S::V; 2] {
    let index = E::interval::<S>(a.mul_add(simd.splat(E::STRETCH), simd.splat(E::ONE)));
    let d = a - S::V::lookup8(&E::CENTRE, index, a);
    let square = d * d;
    let mut i = E::SLOPE.len() - 2;
    let mut sum = S::V::lookup8(&E::SLOPE[i], index, a);
    let mut next = S::V::lookup8(&E::SLOPE[i + 1], index, a);
    while i > 0 {
        i -= 1;
        (sum, next) = (next.mul_add(square, S::V::lookup8(&E::SLOPE[i], index, a)), sum);
    }
    let slope = next.mul_add(d, sum);
    let top = S::V::lookup8(&E::RATIO[0], index, a);
    let top_low = S::V::lookup8(&E::RATIO[1], index, a);
    let ratio = d.mul_add(slope, top);
    [ratio, d.mul_add(slope, top - ratio) + top_low]
}

/// `−a²/2` as a sum of two floats, high part first.
#[inline(always)]
fn exponent<E: TailConstants, S: Lanes<E>>(simd: S, a: S::V) -> [S::V; 2] {
    let half = simd.splat(-E::HALF);
    let square = a * a;
    [square * half, a.mul_add(a, -square) * half]
}

/// `t (1 + p) R(a)` as a sum of two floats, high part first.
#[inline(always)]
fn scaled_ratio<E: TailConstants, S: Lanes<E>>(simd: S, t: S::V, p: S::V, a: S::V) -> [S::V; 2] {
    let [ratio, ratio_low] = ratio(simd, a);
    let high = t * ratio;
    [high, high.mul_add(p, t.mul_add(ratio_low, t.mul_add(ratio, -high)))]
}

/// `|x|`, at most `TAIL_MAX`; keeps NaN.
#[inline(always)]
fn magnitude<E: TailConstants, S: Lanes<E>>(simd: S, x: S::V) -> S::V {
    simd.splat(E::TAIL_MAX).min_or_other(x.abs())
}

/// gelu where Q is normal, and the mask of those lanes.
#[inline(always)]
fn usual<E: TailConstants, S: Lanes<E>>(simd: S, x: S::V) -> (S::V, S::M) {
    let one = simd.splat(E::ONE);
    let a = x.abs();
    let [square, square_low] = exponent(simd, a);
    let mut parts = scaled_parts(simd, square);
    parts.low = parts.low + square_low;
    let (t, p) = parts.factors(simd);
    let [high, low] = scaled_ratio(simd, t, p, a);
    let rest = one - high;
    let rest_low = ((one - rest) - high) - low;
    let negative = x.lt(simd.splat(E::ZERO));
    let (high, low) = (high.select(negative, rest), low.select(negative, rest_low));
    (copy_sign(simd, x.mul_add(high, x * low), x), a.le(simd.splat(E::TAIL_USUAL)))
}

/// gelu for the other lanes.
#[inline(always)]
fn unusual<E: TailConstants, S: Lanes<E>>(simd: S, x: S::V) -> S::V {
    let a = magnitude(simd, x);
    let [square, square_low] = exponent(simd, a);
    let parts = exp_parts(simd, square, Some(square_low));
    let [high, low] = scaled_ratio(simd, parts.t, parts.r + parts.s, a);
    let below = -a.mul_add(high, a * low).scale_by_power_of_two(parts.k);
    x.select(simd.splat(E::ZERO).lt(x), below)
}

impl<E: TailConstants> Map<E, 1> for Gelu {
    const HAS_USUAL: bool = true;
    const VECTORS: [usize; 2] = [2, 4];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        usual_or(
            usual(simd, x),
            #[inline(always)]
            || unusual(simd, x),
        )
    }

    #[inline(always)]
    fn usual<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> (S::V, S::M) {
        usual(simd, x)
    }
}

impl<E: TailConstants> Map<E, 2> for GeluGrad {
    const VECTORS: [usize; 2] = [2, 4];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [g, x]: [S::V; 2]) -> S::V {
        let a = magnitude(simd, x);
        let [square, square_low] = exponent(simd, a);
        let parts = exp_parts(simd, square, Some(square_low));
        let e = (parts.r + parts.s).mul_add(parts.t, parts.t);
        let [ratio, ratio_low] = ratio(simd, a);
        let slope = a.neg_mul_add(simd.splat(E::DENSITY), ratio) + ratio_low;
        let below = (e * slope).scale_by_power_of_two(parts.k);
        let above = simd.splat(E::ONE) - below;
        g * below.select(x.lt(simd.splat(E::ZERO)), above)
    }
}

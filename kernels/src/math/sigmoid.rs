//! The logistic function, and silu, its product with x.
//!
//! ```text
//! n = round(−8 v / ln 2)              n = 8 k + j, 0 <= j < 8
//! r = −8 v / ln 2 − n                 |r| <= 1/2
//! e^−v = b (1 + p)                    b = 2^k 2^(j/8) e^−s, p = e^(r ln 2 / 8 + s) − 1
//! σ(v) = 1 / (1 + b + b p)            silu(x) = x / (1 + b + b p)
//! ```
//!
//! 1. *One formula for both signs*: where v < 0, the denominator is large and the quotient small.
//!    Nothing cancels.
//! 2. *b needs no low part.* The shift s is chosen such that all eight 2^(j/8) e^−s are almost
//!    floats; the polynomial takes it back.
//! 3. *b is the table's entry with n added to its exponent*, one integer addition: the lowest bits
//!    of n, j, would reach the mantissa and are subtracted from the entries beforehand.
//! 4. *The denominator is a sum of two floats.* 1 + b is added exactly, the larger first; b p, at
//!    most 0.05 b, joins the error of that sum. The quotient, from a reciprocal, is corrected by
//!    its residual, which includes the low part.
//! 5. *The tail has its own branch*, where 1 + e^−v nears the largest number or σ is subnormal:
//!    there 1 is negligible beside e^−v, which is scaled by its power of two last, so that
//!    subnormal results keep their accuracy.
//! 6. `gate` also serves gelu, whose rate depends on x and is a sum of two floats.

use super::exp::{ExpConstants, Parts, exp_parts};
use super::horner_by_parity;
use crate::map::{Map, usual_or};
use crate::simd::{Float, IntVector, Lanes, Mask, Vector};

/// `σ(x) = 1 / (1 + e^−x)`.
///
/// * Domain: all numbers; subnormal results are computed, not flushed.
/// * −∞ gives +0, +∞ gives 1, ±0 gives 1/2, NaN gives NaN.
/// * Largest error: 0.742 ULP, 0.841 where the result is subnormal (f32, all inputs); f64 within 1
///   float.
/// * Coefficients: `tools/coefficients.py gate`; the error of p relative to e^−v is 2^-31.3 (f32),
///   2^-64.9 (f64), that of the table 2^-26.5 and 2^-54.8.
pub struct Sigmoid;

/// `x σ(x)`.
///
/// * Domain: all numbers; subnormal results are computed, not flushed.
/// * ±0 gives ±0, +∞ gives +∞, −∞ gives −0 (the limit), NaN gives NaN.
/// * Largest error: 0.761 ULP, 0.850 where the result is subnormal (f32, all inputs); f64 within 1
///   float.
/// * Coefficients: those of [`Sigmoid`].
pub struct Silu;

/// The gradient of [`Sigmoid`] from its output: `g y (1 − y)`.
///
/// * Three roundings: within 2 ULP if `g y (1 − y)` is normal.
/// * y = 0 or 1 gives a zero, or NaN if g is infinite; NaN in either gives NaN.
pub struct SigmoidGrad;

/// The gradient of [`Silu`] from its input: `g σ(x) (1 + x (1 − σ(x)))`.
///
/// * The factor of g has a zero near x = −1.278; around it the error is absolute, 3 ULP of 1. Below
///   −2 it stays within 7 ULP, tails included.
/// * −∞ gives a factor of −0, +∞ of 1; NaN in either gives NaN.
pub struct SiluGrad;

/// Constants of the decaying exponential, from `tools/coefficients.py gate`.
pub(super) trait GateConstants: ExpConstants {
    /// −8 / ln 2, high and low part.
    const RATE: [Self; 2];
    /// 2^(j/8) e^−s with j eighths of an exponent step subtracted: adding n eighths gives 2^(n/8)
    /// e^−s.
    const MOVED: [Self; 8];
    /// e^(r ln 2 / 8 + s) − 1, lowest power first.
    const DECAY: &'static [Self];
    /// Below it x e^x rounds to zero.
    const GATE_LOWEST: Self;
}

impl GateConstants for f32 {
    const RATE: [f32; 2] = [-11.54156, -1.5407704e-7];
    const MOVED: [f32; 8] = [
        0.99812984, 0.98173416, 0.96849155, 0.95970714, 0.9557844, 0.95716333, 0.9643238, 0.9777891,
    ];
    const DECAY: &'static [f32] =
        &[0.0018736531, 0.08680574, 0.0037605714, 0.00010861218, 2.3539972e-6];
    const GATE_LOWEST: f32 = -110.0;
}

impl GateConstants for f64 {
    const RATE: [f64; 2] = [-11.541560327111707, -1.6284218992744826e-16];
    const MOVED: [f64; 8] = [
        0.999976120285125,
        0.9827408458257663,
        0.9695893585379437,
        0.9609042932461029,
        0.9570898956782266,
        0.9585869989265764,
        0.9658763348870788,
        0.9794821454095802,
    ];
    const DECAY: &'static [f64] = &[
        2.3880285129469628e-5,
        0.08664546663903172,
        0.0037536288068216023,
        0.00010840905101322053,
        2.3482321267871343e-6,
        4.0691761819348884e-8,
        5.876120114526475e-10,
        7.27377235620014e-12,
        7.897410360692495e-14,
    ];
    const GATE_LOWEST: f64 = -760.0;
}

/// `e^−v = 2^(n/8) e^−s (1 + p)` for `v = x · rate / RATE`.
pub(super) struct Decay<V: Vector> {
    /// n in the lowest bits, left there by `SHIFTER`.
    n: V::Int,
    /// 2^(j/8) e^−s less j eighths of an exponent step.
    moved: V::Int,
    p: V,
}

/// The decay of `v`; `v` and `rate` are sums of two floats, high part first.
#[inline(always)]
pub(super) fn decay<E: GateConstants, S: Lanes<E>>(
    simd: S,
    x: S::V,
    [rate, rate_low]: [S::V; 2],
) -> Decay<S::V> {
    let shifter = simd.splat(E::SHIFTER);
    let shifted = x.mul_add(rate, shifter);
    let r = x.mul_add(rate_low, x.mul_add(rate, shifter - shifted));
    let n = shifted.to_bits();
    let moved = S::V::lookup8(&E::MOVED, n, x).to_bits();
    Decay { n, moved, p: horner_by_parity(simd, r, r * r, E::DECAY) }
}

impl<V: Vector> Decay<V> {
    /// `factor σ(v)` where e^−v is normal. A zero keeps its sign.
    #[inline(always)]
    pub fn gate<E: GateConstants, S: Lanes<E, V = V, I = V::Int, M = V::Mask>>(
        self,
        simd: S,
        factor: V,
    ) -> V {
        let one = simd.splat(E::ONE);
        let b = V::from_bits(self.moved + E::eighths(self.n));
        let (large, small) = (one.max_or_other(b), one.min_or_other(b));
        let sum = large + small;
        let rest = b.mul_add(self.p, small - (sum - large));
        divide_by_sum(simd, factor, sum, rest)
    }

    /// `factor σ(v)` for a negative v beyond that: 1 is negligible beside e^−v, whose power of two
    /// may be out of range.
    #[inline(always)]
    pub fn tail<E: GateConstants, S: Lanes<E, V = V, I = V::Int, M = V::Mask>>(
        self,
        simd: S,
        factor: V,
    ) -> V {
        let k = self.n.shr::<3>() - simd.splat_int(E::SHIFTER_EIGHTH);
        let octaves = self.n.shr::<3>().shl::<3>();
        let t = V::from_bits(self.moved + E::eighths(self.n - octaves));
        let zero = simd.splat(E::ZERO).to_bits();
        divide_by_sum(simd, factor, t, t * self.p).scale_by_power_of_two(zero - k)
    }
}

/// `x / (sum + rest)`; `rest` far below `sum`, `x` finite. A zero keeps its sign.
#[inline(always)]
fn divide_by_sum<E: Float, S: Lanes<E>>(simd: S, x: S::V, sum: S::V, rest: S::V) -> S::V {
    let under = sum + rest;
    let under_low = rest - (under - sum);
    let reciprocal = simd.splat(E::ONE) / under;
    let quotient = x * reciprocal;
    let excess = quotient.mul_add(under_low, quotient.mul_add(under, -x));
    excess.neg_mul_add(reciprocal, quotient)
}

/// `x` clamped to `low..=high`; keeps NaN.
#[inline(always)]
pub(super) fn clamp<E: Float, S: Lanes<E>>(simd: S, x: S::V, low: E, high: E) -> S::V {
    simd.splat(high).min_or_other(simd.splat(low).max_or_other(x))
}

/// `(σ(v), 1 − σ(v))`, both accurate where small.
#[inline(always)]
pub(super) fn gate_and_rest<E: ExpConstants, S: Lanes<E>>(simd: S, v: S::V) -> (S::V, S::V) {
    let one = simd.splat(E::ONE);
    let Parts { k, t, r, s } = exp_parts(simd, -v.abs(), None);
    let e = (r + s).mul_add(t, t).scale_by_power_of_two(k);
    let large = one / (one + e);
    let small = e * large;
    let negative = v.lt(simd.splat(E::ZERO));
    (small.select(negative, large), large.select(negative, small))
}

/// `factor σ(x)` where e^−x is normal, and the mask of those lanes.
#[inline(always)]
fn usual<E: GateConstants, S: Lanes<E>>(simd: S, factor: S::V, x: S::V) -> (S::V, S::M) {
    let y = decay(simd, x, simd.splat_all(E::RATE)).gate(simd, factor);
    (y, x.abs().le(simd.splat(E::EXP_ORDINARY)))
}

/// `factor σ(x)` for the other lanes; `factor` must be finite where x is negative.
#[inline(always)]
fn unusual<E: GateConstants, S: Lanes<E>>(simd: S, factor: S::V, x: S::V) -> S::V {
    let tail = decay(simd, x, simd.splat_all(E::RATE)).tail(simd, factor);
    factor.select(simd.splat(E::ZERO).lt(x), tail)
}

impl<E: GateConstants> Map<E, 1> for Sigmoid {
    const HAS_USUAL: bool = true;
    const VECTORS: [usize; 2] = [4, 4];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        let one = simd.splat(E::ONE);
        usual_or(
            usual(simd, one, x),
            #[inline(always)]
            || unusual(simd, one, simd.splat(E::GATE_LOWEST).max_or_other(x)),
        )
    }

    #[inline(always)]
    fn usual<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> (S::V, S::M) {
        usual(simd, simd.splat(E::ONE), x)
    }
}

impl<E: GateConstants> Map<E, 1> for Silu {
    const HAS_USUAL: bool = true;
    const VECTORS: [usize; 2] = [4, 4];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> S::V {
        usual_or(
            usual(simd, x, x),
            #[inline(always)]
            || {
                let x = simd.splat(E::GATE_LOWEST).max_or_other(x);
                unusual(simd, x, x)
            },
        )
    }

    #[inline(always)]
    fn usual<S: Lanes<E>>(simd: S, [x]: [S::V; 1]) -> (S::V, S::M) {
        usual(simd, x, x)
    }
}

impl<E: ExpConstants> Map<E, 2> for SigmoidGrad {
    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [g, y]: [S::V; 2]) -> S::V {
        g * (y * (simd.splat(E::ONE) - y))
    }
}

impl<E: GateConstants> Map<E, 2> for SiluGrad {
    const VECTORS: [usize; 2] = [2, 4];

    #[inline(always)]
    fn apply<S: Lanes<E>>(simd: S, [g, x]: [S::V; 2]) -> S::V {
        let x = clamp(simd, x, E::GATE_LOWEST, -E::GATE_LOWEST);
        let (gate, rest) = gate_and_rest(simd, x);
        g * tail_slope_or(simd, x, gate * x.mul_add(rest, simd.splat(E::ONE)))
    }
}

/// `(1 + x) e^x` below −60, where the derivatives of silu and mish equal it in either type, and
/// `slope` elsewhere. Scaling by the power of two comes last, because a subnormal e^x has few bits
/// left.
#[inline(always)]
pub(super) fn tail_slope_or<E: GateConstants, S: Lanes<E>>(simd: S, x: S::V, slope: S::V) -> S::V {
    let ordinary = simd.splat(E::from_f64(-60.0)).le(x);
    if ordinary.all() {
        return slope;
    }
    let Parts { k, t, r, s } = exp_parts(simd, x, None);
    let tail = (simd.splat(E::ONE) + x) * (r + s).mul_add(t, t);
    slope.select(ordinary | x.is_nan(), tail.scale_by_power_of_two(k))
}

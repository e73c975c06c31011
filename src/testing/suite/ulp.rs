//! Distance between two floats of a dtype in units in the last place, and the dtypes' limits.

use half::{bf16, f16};
use swath::DType;

/// Number of representable values of the dtype from `a` to `b`, counted on ordered integers; +0 and −0 are
/// the same point. `None` if exactly one is NaN or exactly one is infinite, or if both are infinite with
/// opposite signs: no bound in ULP covers that.
pub fn ulp_distance(dtype: DType, a: f64, b: f64) -> Option<u64> {
    if a.is_nan() || b.is_nan() {
        return (a.is_nan() && b.is_nan()).then_some(0);
    }
    if a.is_infinite() || b.is_infinite() {
        return (a == b).then_some(0);
    }
    Some(ordered(dtype, a).abs_diff(ordered(dtype, b)))
}

/// An integer that grows by one from each value of the dtype to the next; `x` must be such a value.
fn ordered(dtype: DType, x: f64) -> i64 {
    let magnitude = match dtype {
        DType::F16 => i64::from(f16::from_f64(x.abs()).to_bits()),
        DType::BF16 => i64::from(bf16::from_f64(x.abs()).to_bits()),
        DType::F32 => i64::from((x.abs() as f32).to_bits()),
        _ => x.abs().to_bits() as i64,
    };
    if x.is_sign_negative() { -magnitude } else { magnitude }
}

/// The value `steps` representable values after `x`.
pub fn moved(dtype: DType, x: f64, steps: i64) -> f64 {
    let target = ordered(dtype, x) + steps;
    let bits = target.unsigned_abs();
    let magnitude = match dtype {
        DType::F16 => f16::from_bits(bits as u16).to_f64(),
        DType::BF16 => bf16::from_bits(bits as u16).to_f64(),
        DType::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    };
    if target < 0 { -magnitude } else { magnitude }
}

/// Half the distance from 1 to the next value: the largest relative error of rounding.
pub fn unit_roundoff(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-11),
        DType::BF16 => 2f64.powi(-8),
        DType::F32 => 2f64.powi(-24),
        _ => 2f64.powi(-53),
    }
}

/// Smallest subnormal, smallest normal and largest value.
pub fn limits(dtype: DType) -> [f64; 3] {
    match dtype {
        DType::F16 => [2f64.powi(-24), 2f64.powi(-14), 65504.0],
        DType::BF16 => [2f64.powi(-133), 2f64.powi(-126), bf16::MAX.to_f64()],
        DType::F32 => [2f64.powi(-149), f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)],
        _ => [f64::from_bits(1), f64::MIN_POSITIVE, f64::MAX],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

    #[test]
    fn distance_counts_representable_values() {
        for (dtype, max_exponent) in FLOATS.into_iter().zip([15.0, 127.0, 127.0, 1023.0f64]) {
            let [tiny, normal, max] = limits(dtype);
            let step = 2.0 * unit_roundoff(dtype);
            let top_step = step * max_exponent.exp2();
            let rows = [
                (1.0, 1.0 + step, 1),
                (1.0, 1.0 - step, 2),
                (1.0, 1.0 + 5.0 * step, 5),
                (0.0, -0.0, 0),
                (0.0, tiny, 1),
                (-tiny, tiny, 2),
                (normal, normal - tiny, 1),
                (max, max - top_step, 1),
            ];
            for (a, b, distance) in rows {
                assert_eq!(ulp_distance(dtype, a, b), Some(distance), "{dtype} {a:e} {b:e}");
                assert_eq!(ulp_distance(dtype, b, a), Some(distance), "{dtype} {b:e} {a:e}");
            }
            for (a, b) in
                [(f64::NAN, 0.0), (f64::INFINITY, max), (f64::INFINITY, f64::NEG_INFINITY)]
            {
                assert_eq!(ulp_distance(dtype, a, b), None, "{dtype} {a:e} {b:e}");
            }
            assert_eq!(ulp_distance(dtype, f64::NAN, f64::NAN), Some(0));
            assert_eq!(ulp_distance(dtype, f64::INFINITY, f64::INFINITY), Some(0));
        }
    }

    #[test]
    fn a_nonzero_value_is_far_from_an_expected_zero() {
        assert_eq!(ulp_distance(DType::F32, 0.0, 1000.0).map(|d| d > 1 << 30), Some(true));
    }

    #[test]
    fn moving_and_measuring_are_inverse() {
        for dtype in FLOATS {
            for start in [1.0, -1.0, 0.0, limits(dtype)[1]] {
                for steps in [-3i64, -1, 0, 1, 2, 17] {
                    let distance = ulp_distance(dtype, start, moved(dtype, start, steps));
                    assert_eq!(distance, Some(steps.unsigned_abs()), "{dtype} {start:e} {steps}");
                }
            }
        }
    }
}

//! Tools for accuracy tests: a distance between floats that cannot be fooled, and inputs that reach
//! every exponent.

pub use crate::map::ALIGNED_FROM;

/// The number of floats between two `f32`; `u32::MAX` between NaN and a number, 0 between NaNs.
///
/// Counted on the line of all floats from −∞ to +∞, where −0 and +0 are one point;
/// [`same_class_f32`] compares the signs of zeros.
///
/// ```
/// use swath_kernels::testing::ulp_distance_f32;
///
/// assert_eq!(ulp_distance_f32(1.0, 1.0 + f32::EPSILON), 1);
/// assert_eq!(ulp_distance_f32(-0.0, 0.0), 0);
/// assert!(ulp_distance_f32(0.0, 1000.0) > 1_000_000_000);
/// ```
pub fn ulp_distance_f32(a: f32, b: f32) -> u32 {
    if a.is_nan() || b.is_nan() {
        return if a.is_nan() && b.is_nan() { 0 } else { u32::MAX };
    }
    let position = |x: f32| {
        let magnitude = (x.to_bits() & 0x7fff_ffff) as i32;
        if x.is_sign_negative() { -magnitude } else { magnitude }
    };
    position(a).abs_diff(position(b))
}

/// [`ulp_distance_f32`] for `f64`.
pub fn ulp_distance_f64(a: f64, b: f64) -> u64 {
    if a.is_nan() || b.is_nan() {
        return if a.is_nan() && b.is_nan() { 0 } else { u64::MAX };
    }
    let position = |x: f64| {
        let magnitude = (x.to_bits() & (u64::MAX >> 1)) as i64;
        if x.is_sign_negative() { -magnitude } else { magnitude }
    };
    position(a).abs_diff(position(b))
}

/// True if both are NaN, or if both have the same sign (zeros too) and both are infinite or finite.
pub fn same_class_f32(a: f32, b: f32) -> bool {
    same_class_f64(f64::from(a), f64::from(b))
}

/// [`same_class_f32`] for `f64`.
pub fn same_class_f64(a: f64, b: f64) -> bool {
    if a.is_nan() || b.is_nan() {
        return a.is_nan() && b.is_nan();
    }
    a.is_sign_negative() == b.is_sign_negative() && a.is_infinite() == b.is_infinite()
}

/// How many cases the tests run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// `SWATH_QUICK=1`: as few as an emulator runs in minutes.
    Quick,
    /// Neither is set: a sample that reaches every code path.
    Sampled,
    /// `SWATH_FULL=1`: every combination.
    Full,
}

/// Returns the effort that the environment asks for; `SWATH_QUICK` wins over `SWATH_FULL`.
pub fn effort() -> Effort {
    let is_set = |name| std::env::var_os(name).is_some();
    match (is_set("SWATH_QUICK"), is_set("SWATH_FULL")) {
        (true, _) => Effort::Quick,
        (false, true) => Effort::Full,
        (false, false) => Effort::Sampled,
    }
}

/// True if `SWATH_QUICK` asks for fewer cases, as on emulators.
pub fn is_quick() -> bool {
    effort() == Effort::Quick
}

/// True if `SWATH_FULL` asks for every case.
pub fn is_full() -> bool {
    effort() == Effort::Full
}

/// The size of a sample: `count` with [`Effort::Full`], a quarter of it by default, a 64th with
/// [`Effort::Quick`].
pub fn sample(count: u32) -> u32 {
    match effort() {
        Effort::Full => count,
        Effort::Sampled => count >> 2,
        Effort::Quick => count >> 6,
    }
}

/// True for one case in `every`, and for all cases with [`Effort::Full`].
///
/// A test over combinations passes the sum of the positions in its lists as `case`, each position
/// times a number without a common factor with `every`. Every value of every list is then met,
/// beside others each time.
pub fn is_sampled(case: usize, every: usize) -> bool {
    case.is_multiple_of(every) || is_full()
}

/// The instruction sets on which a product's test runs a case: all vector levels, and the portable
/// level if [`is_sampled`] (its fused multiply-add in software takes a hundred times as long).
pub fn levels_for(case: usize, every: usize) -> Vec<crate::Isa> {
    let portable = is_sampled(case, every);
    levels().into_iter().filter(|isa| portable || *isa != crate::Isa::Scalar).collect()
}

/// `all`, or `few` under Miri, which is a thousand times slower. `few` must still reach every
/// branch, loop and remainder, and both sides of every threshold.
///
/// ```
/// use swath_kernels::testing::unless_miri;
///
/// for len in 0..unless_miri(130, 9) {
///     assert_eq!(swath_kernels::sum(&vec![1.0f32; len]), len as f32);
/// }
/// ```
pub const fn unless_miri<T: Copy>(all: T, few: T) -> T {
    if cfg!(miri) { few } else { all }
}

/// `count` bit patterns of `f32`, evenly spread over all 2^32: every sign and exponent, NaNs
/// included.
///
/// The stride is odd, so that the low mantissa bits vary too.
pub fn even_sample_f32(count: u32) -> impl Iterator<Item = f32> {
    let stride = ((1u64 << 32) / u64::from(count.max(1))) as u32 | 1;
    (0..count).map(move |i| f32::from_bits(i.wrapping_mul(stride)))
}

/// `count` bit patterns of `f64`, spread over all 2^64 in the order of a golden-ratio sequence.
pub fn even_sample_f64(count: u64) -> impl Iterator<Item = f64> {
    (0..count).map(|i| f64::from_bits(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// `count` values spread evenly over `low..high`, with varied low bits.
pub fn interval_sample_f64(low: f64, high: f64, count: u32) -> impl Iterator<Item = f64> {
    let golden = 0x9e37_79b9_7f4a_7c15u64;
    (0..u64::from(count)).map(move |i| {
        let unit = (i.wrapping_mul(golden) >> 11) as f64 / (1u64 << 53) as f64;
        low + (high - low) * unit
    })
}

/// Zeros, ones, subnormal, smallest, largest and infinite values of both signs, and NaN.
pub fn special_values_f32() -> Vec<f32> {
    let min = f32::MIN_POSITIVE;
    let values = [0.0, f32::from_bits(1), min - f32::from_bits(1), min, 0.5, 1.0, 2.0, 1e5];
    let values = values.into_iter().chain([f32::MAX, f32::INFINITY]);
    values.flat_map(|x| [x, -x]).chain([f32::NAN]).collect()
}

/// [`special_values_f32`] for `f64`.
pub fn special_values_f64() -> Vec<f64> {
    let min = f64::MIN_POSITIVE;
    let values = [0.0, f64::from_bits(1), min - f64::from_bits(1), min, 0.5, 1.0, 2.0, 1e9];
    let values = values.into_iter().chain([f64::MAX, f64::INFINITY]);
    values.flat_map(|x| [x, -x]).chain([f64::NAN]).collect()
}

pub use crate::dispatch::{levels, with_isa};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_floats_across_zero_and_binades() {
        let tiny = f32::from_bits(1);
        assert_eq!(ulp_distance_f32(tiny, -tiny), 2);
        assert_eq!(ulp_distance_f32(0.0, tiny), 1);
        assert_eq!(ulp_distance_f32(2.0, 2.0f32.next_down()), 1);
        assert_eq!(ulp_distance_f32(f32::MAX, f32::INFINITY), 1);
        assert_eq!(ulp_distance_f64(1.0, 1.0f64.next_up().next_up()), 2);
        assert_eq!(ulp_distance_f64(-0.0, 0.0), 0);
    }

    #[test]
    fn distance_handles_zero_nan_and_opposite_infinities() {
        assert_eq!(ulp_distance_f32(0.0, 1000.0), 1000f32.to_bits());
        assert_eq!(ulp_distance_f64(0.0, 1000.0), 1000f64.to_bits());
        assert_eq!(ulp_distance_f32(f32::NAN, 1.0), u32::MAX);
        assert_eq!(ulp_distance_f32(-f32::NAN, f32::NAN), 0);
        assert_eq!(ulp_distance_f64(1.0, f64::NAN), u64::MAX);
        let ends = ulp_distance_f32(f32::NEG_INFINITY, f32::INFINITY);
        assert_eq!(ends, 2 * f32::INFINITY.to_bits());
    }

    #[test]
    fn classes_tell_signs_of_zero_and_infinities_apart() {
        assert!(!same_class_f32(0.0, -0.0) && !same_class_f32(f32::MAX, f32::INFINITY));
        assert!(same_class_f64(f64::NAN, -f64::NAN) && !same_class_f64(f64::NAN, 0.0));
    }

    #[test]
    fn samples_reach_every_sign_and_exponent() {
        let mut seen = [false; 512];
        let mut low_bits = 0;
        // The fewest that reach every exponent.
        for x in even_sample_f32(unless_miri(1 << 16, 1 << 9)) {
            seen[(x.to_bits() >> 23) as usize] = true;
            low_bits |= 1 << (x.to_bits() & 15);
        }
        assert!(seen.iter().all(|&s| s));
        assert_eq!(low_bits, 0xffff);
        let mut seen = vec![false; 4096];
        even_sample_f64(unless_miri(1 << 16, 1 << 13))
            .for_each(|x| seen[(x.to_bits() >> 52) as usize] = true);
        assert!(seen.iter().all(|&s| s));
    }
}

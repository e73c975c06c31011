//! Numbers of given distributions, computed from words.
//!
//! Normal numbers are the inverse of the cumulative distribution function at one uniform number:
//! Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics
//! 37 (1988), routine PPND16, relative error about 1e-16. Three rational functions: of q² within
//! 0.425 of the median, and of √(−log p) in the tails. The coefficients are those of the paper, lowest
//! power first.
//!
//! ```text
//! for each chunk of numbers:        loops over arrays, which the compiler vectorises
//!     p of each word; the middle's rational function, for all
//!     gather the p in the tails     15 of 100; N is at most 64 or a multiple of it
//!     logarithms and the tails' rational function, for these
//! ```

#![allow(clippy::excessive_precision, reason = "coefficients as published")]

use crate::map::{Arg, Function as _};
use crate::math::Log;
use crate::simd::{Float, Simd, Task};

type Rational = ([f64; 8], [f64; 8]);

const MIDDLE: Rational = (
    [
        3.387_132_872_796_366_608,
        133.141_667_891_784_377_45,
        1_971.590_950_306_551_442_7,
        13_731.693_765_509_461_125,
        45_921.953_931_549_871_457,
        67_265.770_927_008_700_853,
        33_430.575_583_588_128_105,
        2_509.080_928_730_122_672_7,
    ],
    [
        1.0,
        42.313_330_701_600_911_252,
        687.187_007_492_057_908_3,
        5_394.196_021_424_751_107_7,
        21_213.794_301_586_595_867,
        39_307.895_800_092_710_61,
        28_729.085_735_721_942_674,
        5_226.495_278_852_854_561,
    ],
);

/// For √(−log p) up to 5.
const TAIL: Rational = (
    [
        1.423_437_110_749_683_577_34,
        4.630_337_846_156_545_295_9,
        5.769_497_221_460_691_405_5,
        3.647_848_324_763_204_605_04,
        1.270_458_252_452_368_382_58,
        0.241_780_725_177_450_611_77,
        2.272_384_498_926_918_458_33e-2,
        7.745_450_142_783_414_076_4e-4,
    ],
    [
        1.0,
        2.053_191_626_637_758_821_87,
        1.676_384_830_183_803_849_4,
        0.689_767_334_985_100_004_55,
        0.148_103_976_427_480_074_59,
        1.519_866_656_361_645_719_66e-2,
        5.475_938_084_995_344_946e-4,
        1.050_750_071_644_416_843_24e-9,
    ],
);

/// For √(−log p) above 5.
const FAR_TAIL: Rational = (
    [
        6.657_904_643_501_103_777_2,
        5.463_784_911_164_114_369_9,
        1.784_826_539_917_291_335_8,
        0.296_560_571_828_504_891_23,
        2.653_218_952_657_612_309_3e-2,
        1.242_660_947_388_078_438_6e-3,
        2.711_555_568_743_487_578_15e-5,
        2.010_334_399_292_288_132_65e-7,
    ],
    [
        1.0,
        0.599_832_206_555_887_937_69,
        0.136_929_880_922_735_805_31,
        1.487_536_129_085_061_485_25e-2,
        7.868_691_311_456_132_591e-4,
        1.846_318_317_510_054_681_8e-5,
        1.421_511_758_316_445_888_7e-7,
        2.044_263_103_389_939_785_64e-15,
    ],
);

/// The quotient of two polynomials, by Horner's rule.
#[inline(always)]
fn quotient((numerator, denominator): &Rational, x: f64) -> f64 {
    let [mut above, mut below] = [0.0, 0.0];
    for i in (0..8).rev() {
        above = above * x + numerator[i];
        below = below * x + denominator[i];
    }
    above / below
}

/// Element types of random numbers: `f32`, made of one word, and `f64`, of two. Sealed.
pub trait Drawn: Float {
    /// Words per number.
    const WORDS: usize;
    /// Returns a multiple of 2⁻²⁴ or 2⁻⁵³ in `[0, 1)`.
    #[doc(hidden)]
    fn unit_of(words: &[u32]) -> f64;
    /// Returns the tail probability beyond a point of a symmetric distribution, in (0, ½], and the
    /// point's sign in the highest bit. Two numbers because `1 - p` would be inaccurate for the upper
    /// tail.
    #[doc(hidden)]
    fn tail_of(words: &[u32]) -> (f64, u64);
    #[doc(hidden)]
    fn uniform_of(words: &[u32], range: Uniform<Self>, out: &mut [Self]);
    #[doc(hidden)]
    fn normal_of(words: &[u32], out: &mut [Self]);
}

macro_rules! drawn {
    ($($t:ident of $n:literal: $Word:ident, $Magnitude:ident, $word:expr;)*) => {$(
        impl Drawn for $t {
            const WORDS: usize = $n;
            #[inline(always)]
            fn unit_of(words: &[u32]) -> f64 {
                const DIGITS: u32 = $t::MANTISSA_DIGITS;
                let word: $Word = $word(words);
                (word >> ($Word::BITS - DIGITS)) as $Magnitude as f64 / (1u64 << DIGITS) as f64
            }
            #[inline(always)]
            fn tail_of(words: &[u32]) -> (f64, u64) {
                let word: $Word = $word(words);
                let magnitude = (word & ($Word::MAX >> 1)) as $Magnitude as f64;
                let sign = u64::from(word) << (64 - $Word::BITS) & (1 << 63);
                ((magnitude + 0.5) / (1u128 << $Word::BITS) as f64, sign)
            }
            fn uniform_of(words: &[u32], range: Uniform<Self>, out: &mut [Self]) {
                crate::dispatch::run(UniformTask { words, range, out });
            }
            fn normal_of(words: &[u32], out: &mut [Self]) {
                crate::dispatch::run(NormalTask { words, out });
            }
        }
    )*};
}
// Magnitudes have no sign bit, and convert as signed integers, for which there are instructions.
drawn! {
    f32 of 1: u32, i32, |words: &[u32]| words[0];
    f64 of 2: u64, i64, |words: &[u32]| u64::from(words[0]) | u64::from(words[1]) << 32;
}

/// A range of [`draw_uniform`](crate::draw_uniform).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uniform<E> {
    /// The lower bound.
    pub from: f64,
    /// Half the distance to the upper bound, which does not overflow.
    pub half_width: f64,
    /// The largest number below the upper bound, for those that are rounded to it.
    pub largest: E,
}

/// The task of [`draw_uniform`](crate::draw_uniform).
struct UniformTask<'a, E> {
    words: &'a [u32],
    range: Uniform<E>,
    out: &'a mut [E],
}

impl<E: Drawn> Task for UniformTask<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let Uniform { from, half_width, largest } = self.range;
        for (y, words) in self.out.iter_mut().zip(self.words.chunks_exact(E::WORDS)) {
            let part = half_width * E::unit_of(words);
            let value = E::from_f64(part + from + part);
            *y = if value > largest { largest } else { value };
        }
    }
}

/// The task of [`draw_normal`](crate::draw_normal).
struct NormalTask<'a, E> {
    words: &'a [u32],
    out: &'a mut [E],
}

/// Numbers whose tails are gathered together.
const CHUNK: usize = 256;

/// Distance of p from ½ up to which the middle's function holds, and √(−log p) up to which [`TAIL`] does.
const MIDDLE_REACH: f64 = 0.425;
const TAIL_REACH: f64 = 5.0;

impl<E: Drawn> Task for NormalTask<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let chunks = self.words.chunks(CHUNK * E::WORDS).zip(self.out.chunks_mut(CHUNK));
        for (words, out) in chunks {
            match out.len() {
                1 => normal_chunk::<E, 1>(words, out),
                _ => normal_chunk::<E, CHUNK>(words, out),
            }
        }
    }
}

/// Makes at most `N` numbers.
#[inline(always)]
fn normal_chunk<E: Drawn, const N: usize>(words: &[u32], out: &mut [E]) {
    let mut p = [0.5; N];
    for (p, words) in p.iter_mut().zip(words.chunks_exact(E::WORDS)) {
        (*p, _) = E::tail_of(words);
    }
    let y = points(&mut p);
    for ((out, y), words) in out.iter_mut().zip(&y).zip(words.chunks_exact(E::WORDS)) {
        let (_, sign) = E::tail_of(words);
        *out = E::from_f64(f64::from_bits(y.to_bits() ^ sign));
    }
}

/// Returns the points with tail probabilities `p`, and overwrites these.
#[inline(always)]
fn points<const N: usize>(p: &mut [f64; N]) -> [f64; N] {
    let mut y = [0.0; N];
    for i in 0..N {
        let q = 0.5 - p[i];
        y[i] = q * quotient(&MIDDLE, 0.180625 - q * q);
    }
    // Moves the probabilities of points in the tails to the front, and notes the points.
    let (mut at, mut count) = ([0u8; N], 0);
    for first in (0..N).step_by(64) {
        let mut tails = 0u64;
        for j in 0..N.min(64) {
            tails |= u64::from(0.5 - p[first + j] > MIDDLE_REACH) << j;
        }
        while tails != 0 {
            let i = first + tails.trailing_zeros() as usize;
            p[count] = p[i];
            at[count] = i as u8;
            count += 1;
            tails &= tails - 1;
        }
    }
    let (p, at) = (&mut p[..count], &at[..count]);
    let mut r = [0.0f64; N];
    let r = &mut r[..count];
    Log::KERNEL.run([Arg::Slice(p)], r);
    let mut has_far = false;
    for (p, r) in p.iter_mut().zip(&mut *r) {
        *r = (-*r).sqrt();
        *p = quotient(&TAIL, *r - 1.6);
        has_far |= *r > TAIL_REACH;
    }
    at.iter().zip(p).for_each(|(&i, p)| y[usize::from(i)] = *p);
    if has_far {
        for (&i, r) in at.iter().zip(r).filter(|(_, r)| **r > TAIL_REACH) {
            y[usize::from(i)] = quotient(&FAR_TAIL, *r - TAIL_REACH);
        }
    }
    y
}

#[cfg(test)]
mod tests {
    use super::points;

    #[test]
    fn points_match_tabulated_quantiles() {
        // Point and probability beyond it, from tables of 20 digits.
        let rows = [
            (0.674_489_750_196_081_7, 0.25),
            (1.959_963_984_540_054, 0.025),
            (3.090_232_306_167_813_5, 0.001),
            (6.361_340_902_404_056, 1e-10),
            (9.262_340_089_798_408, 1e-20),
        ];
        let got = points(&mut rows.map(|(_, p)| p));
        for ((point, p), got) in rows.into_iter().zip(got) {
            assert!((got - point).abs() < 4e-15 * point, "{p}: {got} {point}");
        }
    }
}

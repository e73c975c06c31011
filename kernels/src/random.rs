//! Words of Philox4x32-10, a counter-based generator (Salmon, Moraes, Dror, Shaw, SC '11), numbers made
//! of words, and dropout, which generates them on the fly.
//!
//! ```text
//! word(seed, stream, i) = lane i mod 4 of philox4x32_10(key: seed, counter: (i / 4, stream))
//! ```
//!
//! 1. Every word is computed independently of those before it, so splitting the work does not
//!    change it.
//! 2. [`GROUP`] counters go through the rounds together, as arrays that the compiler vectorises for
//!    the instruction set that was entered. Integer operations are exact, so the words are the same
//!    on each.
//! 3. A word is the lower half of a 64-bit lane, whose upper half is arbitrary: the instruction that
//!    multiplies reads lower halves alone.

mod draw;

use core::mem::MaybeUninit;

use crate::simd::{Float, Lanes, Simd, Task};
pub use draw::{Drawn, Uniform};

const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// Counters processed together.
const GROUP: usize = 16;
/// Words per group.
const WORDS: usize = 4 * GROUP;

/// A stream of words.
#[derive(Clone, Copy)]
pub(crate) struct Words {
    pub seed: u64,
    pub stream: u64,
}

impl Words {
    /// Returns the words of counters `number..number + GROUP`.
    #[inline(always)]
    fn group(self, number: u64) -> [u32; WORDS] {
        const LOW: u64 = u32::MAX as u64;
        let halves = |x: u64| [x as u32, (x >> 32) as u32];
        let (stream, mut key) = (halves(self.stream), halves(self.seed));
        let (mut a, mut b) = ([0; GROUP], [0; GROUP]);
        let (mut c, mut d) = ([u64::from(stream[0]); GROUP], [u64::from(stream[1]); GROUP]);
        for i in 0..GROUP {
            a[i] = number.wrapping_add(i as u64);
            b[i] = a[i] >> 32;
        }
        for _ in 0..10 {
            for i in 0..GROUP {
                let left = u64::from(MULTIPLIERS[0]) * (a[i] & LOW);
                let right = u64::from(MULTIPLIERS[1]) * (c[i] & LOW);
                a[i] = right >> 32 ^ b[i] ^ u64::from(key[0]);
                c[i] = left >> 32 ^ d[i] ^ u64::from(key[1]);
                b[i] = right;
                d[i] = left;
            }
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        let mut words = [0; WORDS];
        for i in 0..GROUP {
            words[4 * i] = a[i] as u32;
            words[4 * i + 1] = b[i] as u32;
            words[4 * i + 2] = c[i] as u32;
            words[4 * i + 3] = d[i] as u32;
        }
        words
    }
}

/// The task of [`philox_words`](crate::philox_words): writes the words from number `first` on.
pub(crate) struct Fill<'a> {
    pub words: Words,
    pub first: u64,
    pub out: &'a mut [u32],
}

impl Task for Fill<'_> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let Fill { words, first, mut out } = self;
        let (mut number, mut skip) = (first / 4, (first % 4) as usize);
        while !out.is_empty() {
            let group = words.group(number);
            let count = (WORDS - skip).min(out.len());
            let (here, rest) = out.split_at_mut(count);
            here.copy_from_slice(&group[skip..skip + count]);
            (out, skip) = (rest, 0);
            number = number.wrapping_add(GROUP as u64);
        }
    }
}

/// Dropout's parameters: [`dropout`](crate::dropout) zeroes element i if word `first + i` is below
/// `p · 2³²`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// Probability of a zero, in `[0, 1)`.
    pub p: f64,
    /// Seed of the generator.
    pub seed: u64,
    /// Stream of the generator.
    pub stream: u64,
    /// The number of the first element's word; for [`dropout`](crate::dropout) a multiple of 4.
    pub first: u64,
}

impl Dropout {
    /// The smallest word that keeps an element, and the factor of those kept.
    #[inline(always)]
    fn threshold<E: Float>(&self) -> (u32, E) {
        // An integer is below p · 2³² exactly if it is below its ceiling. If the ceiling is 2³²,
        // every element is zeroed.
        let threshold = (self.p * (1u64 << 32) as f64).ceil() as u64;
        let scale = E::from_f64(1.0 / (1.0 - self.p));
        let kept = if threshold > u64::from(u32::MAX) { E::ZERO } else { scale };
        (threshold.min(u64::from(u32::MAX)) as u32, kept)
    }
}

/// The task of [`dropout`](crate::dropout).
pub(crate) struct DropoutTask<'a, E> {
    pub mask: Dropout,
    pub x: &'a [E],
    pub y: &'a mut [MaybeUninit<E>],
}

impl<E: Float> Task<E> for DropoutTask<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, _simd: S) {
        let DropoutTask { mask, x, y } = self;
        let words = Words { seed: mask.seed, stream: mask.stream };
        let (threshold, kept) = mask.threshold::<E>();
        let mut number = mask.first / 4;
        for (x, y) in x.chunks(WORDS).zip(y.chunks_mut(WORDS)) {
            let group = words.group(number);
            for ((y, &x), &word) in y.iter_mut().zip(x).zip(&group) {
                y.write(x * if word >= threshold { kept } else { E::ZERO });
            }
            number = number.wrapping_add(GROUP as u64);
        }
    }
}

/// The task of [`dropout_factors`](crate::dropout_factors).
pub(crate) struct DropoutFactors<'a, E> {
    pub mask: Dropout,
    pub y: &'a mut [MaybeUninit<E>],
}

impl<E: Float> Task<E> for DropoutFactors<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, _simd: S) {
        let DropoutFactors { mask, mut y } = self;
        let words = Words { seed: mask.seed, stream: mask.stream };
        let (threshold, kept) = mask.threshold::<E>();
        let (mut number, mut skip) = (mask.first / 4, (mask.first % 4) as usize);
        while !y.is_empty() {
            let group = words.group(number);
            let count = (WORDS - skip).min(y.len());
            let (here, rest) = y.split_at_mut(count);
            for (y, &word) in here.iter_mut().zip(&group[skip..]) {
                y.write(if word >= threshold { kept } else { E::ZERO });
            }
            (y, skip) = (rest, 0);
            number = number.wrapping_add(GROUP as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Words;

    /// Salmon et al., Random123, `tests/kat_vectors`: counter, key and words of `philox4x32 10`.
    #[test]
    fn words_match_the_published_vectors() {
        for (number, stream, seed, words) in [
            (0, 0, 0, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            (u64::MAX, u64::MAX, u64::MAX, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                0x85a3_08d3_243f_6a88,
                0x0370_7344_1319_8a2e,
                0x299f_31d0_a409_3822,
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ] {
            let group = Words { seed, stream }.group(number);
            assert_eq!(group[..4], words);
            // The same words, computed as those of the last counter of a group.
            let last = Words { seed, stream }.group(number.wrapping_sub(15));
            assert_eq!(last[60..], words);
        }
    }
}

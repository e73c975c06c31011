//! Keys: unsigned integers that sort like the elements.
//!
//! ```text
//! unsigned   x                     descending: all bits of the key inverted
//! signed     x with the sign bit inverted
//! float      positive: the bits with the sign bit set; negative: all bits inverted; −0 as +0
//!            NaN: the largest key, in either direction
//! ```
//!
//! A rank is cheaper to compute and compare than a key, but does not distinguish NaN from the last elements.

use bytemuck::Pod;
use half::{bf16, f16};

/// An element type that can be sorted by keys.
pub(super) trait Keyed: Pod + PartialOrd + Send + Sync {
    /// `u32`, or `u64` for 64-bit elements.
    type Key: Copy + Default + PartialOrd + Send + Sync;
    /// A key with the index of its element.
    type Pair: Pair<Key = Self::Key>;
    /// A number that is cheap to compare. NaN is unordered or the lowest.
    type Rank: Pod + PartialOrd + Send + Sync;

    /// The largest key.
    const LAST: Self::Key;
    /// The lowest rank.
    const LOWEST: Self::Rank;

    /// Returns the key, with the bits in `flip` inverted unless the element is NaN.
    fn key(self, flip: Self::Key) -> Self::Key;

    /// Returns the rank: larger for elements that come first, equal for equal elements.
    fn rank(self, descending: bool) -> Self::Rank;

    /// The `flip` of [`key`](Self::key) for a direction.
    #[inline]
    fn flip(descending: bool) -> Self::Key {
        if descending { Self::LAST } else { Self::Key::default() }
    }
}

/// A key in the high bits, the index of its element in the low bits. Pairs are distinct, and equal keys sort by index.
pub(super) trait Pair: Pod + Ord + Send + Sync {
    type Key;

    /// Number of bytes of a key.
    const DIGITS: usize;

    fn new(key: Self::Key, index: usize) -> Self;
    fn index(self) -> usize;

    /// Returns byte `i` of the key, from the lowest.
    fn digit(self, i: usize) -> usize;
}

macro_rules! pairs {
    ($($Pair:ident: $Key:ident;)*) => {$(
        impl Pair for $Pair {
            type Key = $Key;

            const DIGITS: usize = size_of::<$Key>();

            #[inline]
            fn new(key: $Key, index: usize) -> Self {
                $Pair::from(key) << $Key::BITS | index as $Pair
            }

            #[inline]
            fn index(self) -> usize {
                self as $Key as usize
            }

            #[inline]
            fn digit(self, i: usize) -> usize {
                (self >> ($Key::BITS as usize + 8 * i)) as u8 as usize
            }
        }
    )*};
}
pairs! {
    u64: u32;
    u128: u64;
}

macro_rules! integers {
    ($($t:ident, $Key:ident, $Pair:ident, $last:expr, $lowest:expr;)*) => {$(
        impl Keyed for $t {
            type Key = $Key;
            type Pair = $Pair;
            type Rank = $t;

            const LAST: $Key = $last;
            const LOWEST: $t = $t::MIN;

            #[inline(always)]
            fn rank(self, descending: bool) -> $t {
                if descending { self } else { !self }
            }

            #[inline]
            fn key(self, flip: $Key) -> $Key {
                (self as $Key).wrapping_sub($lowest as $Key) ^ flip
            }
        }
    )*};
}
integers! {
    u8, u32, u64, 0xFF, 0;
    u32, u32, u64, u32::MAX, 0;
    i32, u32, u64, u32::MAX, i32::MIN;
    i64, u64, u128, u64::MAX, i64::MIN;
}

macro_rules! floats {
    ($($t:ident, $Bits:ident, $Key:ident, $Pair:ident, $Rank:ident, $lowest:expr, $rank:expr;)*) => {$(
        impl Keyed for $t {
            type Key = $Key;
            type Pair = $Pair;
            type Rank = $Rank;

            const LAST: $Key = $Bits::MAX as $Key;
            const LOWEST: $Rank = $lowest;

            #[inline(always)]
            fn rank(self, descending: bool) -> $Rank {
                $rank(self, descending)
            }

            #[inline]
            fn key(self, flip: $Key) -> $Key {
                const SIGN: $Bits = 1 << ($Bits::BITS - 1);
                const INFINITY: $Bits = $t::INFINITY.to_bits();
                let bits = self.to_bits();
                let magnitude = bits & !SIGN;
                let ordered = if bits == magnitude { bits | SIGN } else { !bits };
                let ordered = if magnitude == 0 { SIGN } else { ordered };
                if magnitude > INFINITY { Self::LAST } else { $Key::from(ordered) ^ flip }
            }
        }
    )*};
}
floats! {
    f16, u16, u32, u64, i16, i16::MIN, |x: f16, down| rank16(x.to_bits(), f16::INFINITY.to_bits(), down);
    bf16, u16, u32, u64, i16, i16::MIN, |x: bf16, down| rank16(x.to_bits(), bf16::INFINITY.to_bits(), down);
    f32, u32, u32, u64, f32, f32::NEG_INFINITY, |x: f32, down| if down { x } else { -x };
    f64, u64, u64, u128, f64, f64::NEG_INFINITY, |x: f64, down| if down { x } else { -x };
}

/// Rank of a 16-bit float, as an integer, because processors do not compare 16-bit floats.
#[inline(always)]
fn rank16(bits: u16, infinity: u16, descending: bool) -> i16 {
    let magnitude = (bits & 0x7FFF) as i16;
    let ordered = if bits == magnitude as u16 { magnitude } else { -magnitude };
    let ordered = if descending { ordered } else { -ordered };
    if magnitude as u16 > infinity { i16::MIN } else { ordered }
}

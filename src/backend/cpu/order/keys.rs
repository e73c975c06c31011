//! Keys: unsigned integers in the order of the elements.
//!
//! ```text
//! unsigned   x                     descending: every bit of the key inverted
//! signed     x with the sign bit inverted
//! float      positive: the bits with the sign bit set; negative: all bits inverted; −0 as +0
//!            NaN: the largest key, in either direction
//! ```

use bytemuck::Pod;
use half::{bf16, f16};

/// A stored type of elements.
pub(super) trait Keyed: Pod + PartialOrd + Send + Sync {
    /// `u32`, or `u64` for 64-bit elements.
    type Key: Copy + Ord + Send + Sync;
    /// A key, and the index of its element.
    type Pair: Pair<Key = Self::Key>;

    /// The largest key.
    const LAST: Self::Key;
    /// True if comparisons of elements, which are false for NaN, take less time than those of keys.
    const COMPARES: bool;

    /// The key; the bits of `flip` are inverted except for NaN.
    fn key(self, flip: Self::Key) -> Self::Key;

    /// `flip` of a direction.
    fn flip(descending: bool) -> Self::Key;
}

/// A key above the index of its element: pairs are distinct, and equal keys are in the order of the elements.
pub(super) trait Pair: Pod + Ord + Send + Sync {
    type Key;

    /// Bytes of a key.
    const DIGITS: usize;

    fn new(key: Self::Key, index: usize) -> Self;
    fn key(self) -> Self::Key;
    fn index(self) -> usize;

    /// Byte `i` of the key, from the lowest.
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
            fn key(self) -> $Key {
                (self >> $Key::BITS) as $Key
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

            const LAST: $Key = $last;
            const COMPARES: bool = true;

            #[inline]
            fn key(self, flip: $Key) -> $Key {
                (self as $Key).wrapping_sub($lowest as $Key) ^ flip
            }

            #[inline]
            fn flip(descending: bool) -> $Key {
                if descending { Self::LAST } else { 0 }
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
    ($($t:ident, $Bits:ident, $Key:ident, $Pair:ident, $compares:expr;)*) => {$(
        impl Keyed for $t {
            type Key = $Key;
            type Pair = $Pair;

            const LAST: $Key = $Bits::MAX as $Key;
            const COMPARES: bool = $compares;

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

            #[inline]
            fn flip(descending: bool) -> $Key {
                if descending { Self::LAST } else { 0 }
            }
        }
    )*};
}
floats! {
    f16, u16, u32, u64, false;
    bf16, u16, u32, u64, false;
    f32, u32, u32, u64, true;
    f64, u64, u64, u128, true;
}

/// True if an element of `block` is before `limit`, which is not NaN.
pub(super) fn any_before<T: Keyed>(block: &[T], limit: T, descending: bool) -> bool {
    // Counting, unlike leaving early, is vectorized.
    fn any<T: Copy>(block: &[T], test: impl Fn(T) -> bool) -> bool {
        block.iter().map(|&x| u32::from(test(x))).sum::<u32>() > 0
    }
    let flip = T::flip(descending);
    match (T::COMPARES, descending) {
        (true, true) => any(block, |x| x > limit),
        (true, false) => any(block, |x| x < limit),
        (false, _) => {
            let limit = limit.key(flip);
            any(block, |x| x.key(flip) < limit)
        }
    }
}

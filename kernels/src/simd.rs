//! The vector vocabulary that kernels are written in, and its four implementations.
//!
//! A kernel is a function generic over an ISA *token* `S: Lanes<E>`. A token can only be made by
//! detection (see [`crate::dispatch`]), and vectors only by a token, so code that holds a vector
//! may use the instructions behind it: the operators on vectors need no proof of their own.
//!
//! Every operation here is exactly specified (IEEE 754 with round-to-nearest-even, or wrapping
//! integer arithmetic), so that a kernel returns the same bits on every instruction set.
//! Approximate instructions (`rcp`, `rsqrt`) are left out on purpose.
//!
//! The set is the smallest that the kernels need; it grows only with a caller. `wide.rs` joins two
//! vectors into one, so that a loop can run a kernel on several at once.

use core::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

#[macro_use]
#[allow(unused_macros, reason = "some architectures have no vectors of their own")]
mod macros;

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;

mod enter;
mod fma;
pub(crate) mod half;
mod isa;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
pub(crate) mod scalar;
pub(crate) mod sealed;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod to_int;
mod wide;

pub(crate) use enter::Entries;
#[cfg(any(test, feature = "testing"))]
pub(crate) use enter::entered;
pub use enter::{IntoPulp, Task};
pub use isa::Isa;
pub use table::Rows;
pub(crate) use wide::Wide;

/// An element type with vector lanes: `f32` or `f64`. Sealed.
pub trait Float:
    Copy
    + PartialOrd
    + Send
    + Sync
    + 'static
    + core::fmt::Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + sealed::Sealed
{
    /// Positive zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// A quiet NaN.
    const NAN: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// The signed integer of the same width, which holds the bits.
    type Int: Copy + Send + Sync + 'static + core::fmt::Debug + From<i32> + Into<i64>;
    /// Returns the nearest value of this type (ties to even).
    fn from_f64(x: f64) -> Self;
    /// Returns the same value, exactly.
    fn to_f64(self) -> f64;
    /// Returns `self * a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
}

macro_rules! impl_float {
    ($t:ident, $int:ident) => {
        impl Float for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NAN: Self = $t::NAN;
            const INFINITY: Self = $t::INFINITY;
            type Int = $int;
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                $t::mul_add(self, a, b)
            }
        }
    };
}
impl_float!(f32, i32);
impl_float!(f64, i64);

/// A mask with one boolean per lane.
pub trait Mask: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {
    /// True if any lane is true.
    fn any(self) -> bool;
    /// True if every lane is true.
    fn all(self) -> bool;
}

/// Signed integer lanes, as wide as the float lanes they belong to. Arithmetic wraps.
pub trait IntVector:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
{
    /// The mask type, shared with the float lanes.
    type Mask: Mask;
    /// Shifts the lanes left by a constant.
    fn shl<const N: i32>(self) -> Self;
    /// Shifts the lanes right by a constant, filling with zeros.
    fn shr<const N: i32>(self) -> Self;
    /// True where the lanes are equal.
    fn eq(self, other: Self) -> Self::Mask;
    /// True where `self > other`, signed.
    fn gt(self, other: Self) -> Self::Mask;
    /// Selects, lane by lane, `self` where `mask` is true, else `other`.
    fn select(self, mask: Self::Mask, other: Self) -> Self;
}

/// Float lanes.
/// Comparisons are ordered and quiet: false if either lane is NaN.
pub trait Vector:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// The lane type.
    type Elem: Float;
    /// One boolean per lane.
    type Mask: Mask;
    /// The lanes' bits as signed integers.
    type Int: IntVector<Mask = Self::Mask>;

    /// Returns `self * a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Returns `b - self * a`, rounded once.
    fn neg_mul_add(self, a: Self, b: Self) -> Self;
    /// Returns the square root, correctly rounded.
    fn sqrt(self) -> Self;
    /// Clears the sign bit.
    fn abs(self) -> Self;
    /// Rounds to the nearest integer, ties to even; keeps the sign of zero.
    fn round_ties_even(self) -> Self;
    /// Returns the minimum as x86 defines it: `self` where `self < other`, else `other`, which
    /// includes NaN in either and two zeros.
    fn min_or_other(self, other: Self) -> Self;
    /// Returns the maximum as x86 defines it: `self` where `self > other`, else `other`, which
    /// includes NaN in either and two zeros.
    fn max_or_other(self, other: Self) -> Self;
    /// True where the lanes are equal.
    fn eq(self, other: Self) -> Self::Mask;
    /// True where `self < other`.
    fn lt(self, other: Self) -> Self::Mask;
    /// True where `self <= other`.
    fn le(self, other: Self) -> Self::Mask;
    /// True where the lane is NaN.
    fn is_nan(self) -> Self::Mask;
    /// Selects, lane by lane, `self` where `mask` is true, else `other`.
    fn select(self, mask: Self::Mask, other: Self) -> Self;
    /// Returns the bits.
    fn to_bits(self) -> Self::Int;
    /// Returns the floats with these bits.
    fn from_bits(bits: Self::Int) -> Self;
    /// Returns `self * 2^k`, rounded once, subnormal results included; overflow gives infinity.
    ///
    /// `k` is in `2 * (1 - BIAS)..=2 * BIAS` (`BIAS` = 127 or 1023), the sums of two exponents of
    /// normal numbers; for any other `k` the lane is unspecified.
    fn scale_by_power_of_two(self, k: Self::Int) -> Self;
    /// Looks up `table[index & 7]`, lane by lane.
    fn lookup8(table: &[Self::Elem; 8], index: Self::Int, like: Self) -> Self;
    /// Looks up `table[index & 15]`, lane by lane.
    fn lookup16(table: &[Self::Elem; 16], index: Self::Int, like: Self) -> Self;
    /// Looks up `table[index & 31]`, lane by lane.
    fn lookup32(table: &[Self::Elem; 32], index: Self::Int, like: Self) -> Self;
    /// Interleaves the lanes of `self` and `other` and returns the low and the high half:
    /// `([a0 b0 a1 b1 …], […])`.
    fn interleave(self, other: Self) -> (Self, Self);
    /// Returns lanes 0, 2, 4, … of `self` and then of `other`; `lanes` is their number.
    ///
    /// Interleaving rotates the bits of an element's number to the left, here to the right by one.
    #[inline(always)]
    fn even_lanes(self, other: Self, lanes: usize) -> Self {
        let (mut low, mut high) = (self, other);
        for _ in 0..lanes.trailing_zeros() {
            (low, high) = low.interleave(high);
        }
        low
    }
    /// Transposes as many rows as there are lanes: lane j of row i becomes lane i of row j.
    ///
    /// Each round is a perfect shuffle of all elements: it moves one bit of an element's lane
    /// number into its row number, and one back; after log2(lanes) rounds the two have swapped.
    #[inline(always)]
    fn transpose<const N: usize>(mut rows: [Self; N]) -> [Self; N] {
        for _ in 0..N.trailing_zeros() {
            let from = rows;
            for i in 0..N / 2 {
                (rows[2 * i], rows[2 * i + 1]) = from[i].interleave(from[i + N / 2]);
            }
        }
        rows
    }
}

/// An ISA token's vectors of `E`, made from scalars and memory.
pub trait Lanes<E: Float>: Token {
    /// The vector type.
    type V: Vector<Elem = E, Mask = Self::M, Int = Self::I>;
    /// The integer lanes of `V`.
    type I: IntVector<Mask = Self::M>;
    /// The mask of `V`.
    type M: Mask;
    /// Lanes in a vector: a power of two, at most 16 per register.
    const LANES: usize;

    /// Returns a vector whose lanes are all `x`.
    fn splat(self, x: E) -> Self::V;
    /// Returns one vector per number. The standard library's `map` of arrays is not always inlined,
    /// and would then be compiled without the instruction set.
    #[inline(always)]
    fn splat_all<const N: usize>(self, numbers: [E; N]) -> [Self::V; N] {
        let mut vectors = [self.splat(E::ZERO); N];
        for i in 0..N {
            vectors[i] = self.splat(numbers[i]);
        }
        vectors
    }
    /// Returns integer lanes that are all `x`.
    fn splat_int(self, x: E::Int) -> Self::I;
    /// Returns the mask that is true in the first `count` lanes.
    fn first(self, count: usize) -> Self::M;
    /// Reads `LANES` elements.
    ///
    /// # Safety
    /// `src` is valid for reads of `LANES` elements (any alignment of `E`).
    unsafe fn load(self, src: *const E) -> Self::V;
    /// Reads `count < LANES` elements; the other lanes are zero and their memory is not touched.
    ///
    /// # Safety
    /// `src` is valid for reads of `count` elements.
    #[inline(always)]
    unsafe fn load_first(self, src: *const E, count: usize) -> Self::V {
        // SAFETY: the mask selects at most the `count` elements that the caller promised.
        unsafe { self.load_where(src, self.first(count)) }
    }
    /// Reads the bits of `LANES` IEEE binary16 numbers and converts them, exactly.
    ///
    /// # Safety
    /// `src` is valid for reads of `LANES` numbers.
    unsafe fn load_f16(self, src: *const u16) -> Self::V;
    /// Reads the bits of `LANES` bfloat16 numbers, the upper halves of `f32`s, and converts them, exactly.
    ///
    /// # Safety
    /// `src` is valid for reads of `LANES` numbers.
    unsafe fn load_bf16(self, src: *const u16) -> Self::V;
    /// Writes `LANES` elements.
    ///
    /// # Safety
    /// `dst` is valid for writes of `LANES` elements.
    unsafe fn store(self, dst: *mut E, x: Self::V);
    /// Writes `LANES` elements by a non-temporal store if the instruction set has one. Other
    /// threads may see them only after [`Token::fence`].
    ///
    /// # Safety
    /// `dst` is valid for writes of `LANES` elements and aligned to the size of a register.
    unsafe fn store_streaming(self, dst: *mut E, x: Self::V);
    /// Writes the first `count < LANES` lanes; other memory is not touched.
    ///
    /// # Safety
    /// `dst` is valid for writes of `count` elements.
    #[inline(always)]
    unsafe fn store_first(self, dst: *mut E, count: usize, x: Self::V) {
        // SAFETY: the mask selects at most the `count` elements that the caller promised.
        unsafe { self.store_where(dst, self.first(count), x) }
    }
    /// Reads the lanes where `mask` is true; the other lanes are zero and their memory is not touched.
    ///
    /// # Safety
    /// `src.wrapping_add(i)` is valid for reads of an element wherever lane i of `mask` is true.
    unsafe fn load_where(self, src: *const E, mask: Self::M) -> Self::V;
    /// Writes the lanes where `mask` is true; other memory is not touched.
    ///
    /// # Safety
    /// `dst.wrapping_add(i)` is valid for writes of an element wherever lane i of `mask` is true.
    unsafe fn store_where(self, dst: *mut E, mask: Self::M, x: Self::V);
    /// Reads a vector, or only `count` elements if they are fewer; the other lanes are zero.
    ///
    /// # Safety
    /// `src` is valid for reads of the smaller of `count` and `LANES` elements.
    #[inline(always)]
    unsafe fn load_up_to(self, src: *const E, count: usize) -> Self::V {
        // SAFETY: neither branch reads more than `count` elements or more than a vector.
        unsafe { if count >= Self::LANES { self.load(src) } else { self.load_first(src, count) } }
    }
    /// Writes a vector, or only its first `count` lanes if they are fewer.
    ///
    /// # Safety
    /// `dst` is valid for writes of the smaller of `count` and `LANES` elements.
    #[inline(always)]
    unsafe fn store_up_to(self, dst: *mut E, count: usize, x: Self::V) {
        // SAFETY: neither branch writes more than `count` elements or more than a vector.
        unsafe {
            if count >= Self::LANES {
                self.store(dst, x);
            } else {
                self.store_first(dst, count, x);
            }
        }
    }
    /// Looks up row `table[index & 31]` of each lane; returns the eight columns.
    #[inline(always)]
    fn lookup_rows(self, table: &'static Rows<E>, index: Self::I) -> [Self::V; 8] {
        const { assert!(Self::LANES <= MAX_LANES) };
        let mut lanes = [E::ZERO; MAX_LANES];
        // SAFETY: the assertion above: the array holds a whole vector.
        unsafe { self.store(lanes.as_mut_ptr(), Self::V::from_bits(index)) };
        let rows: [_; MAX_LANES] = core::array::from_fn(|i| table.row(lanes[i].low_bits()));
        core::array::from_fn(|column| {
            let lanes: [E; MAX_LANES] = core::array::from_fn(|i| rows[i][column]);
            // SAFETY: the assertion above: the array holds a whole vector.
            unsafe { self.load(lanes.as_ptr()) }
        })
    }
    /// Applies `f` to the lanes of `x` where `mask` is true; the other results are zero. Meant for
    /// rare lanes: it goes through memory, lane by lane.
    #[inline(always)]
    fn map_lanes<const N: usize>(
        self,
        mask: Self::M,
        x: Self::V,
        f: fn(E) -> [E; N],
    ) -> [Self::V; N] {
        const { assert!(Self::LANES <= MAX_LANES) };
        let mut wanted = [E::ZERO; MAX_LANES];
        let mut lanes = [E::ZERO; MAX_LANES];
        // SAFETY: the assertion above: both arrays hold a whole vector.
        unsafe {
            self.store(wanted.as_mut_ptr(), self.splat(E::ONE).select(mask, self.splat(E::ZERO)));
            self.store(lanes.as_mut_ptr(), x);
        }
        let results = map_wanted(&wanted, &lanes, f);
        // SAFETY: the assertion above: every array holds a whole vector.
        results.map(|lanes| unsafe { self.load(lanes.as_ptr()) })
    }
}

/// The largest number of lanes in a register.
pub(crate) const MAX_LANES: usize = 16;

/// The lane loop of [`Lanes::map_lanes`], kept out of the kernels' loops.
#[cold]
#[inline(never)]
fn map_wanted<E: Float, const N: usize>(
    wanted: &[E; MAX_LANES],
    lanes: &[E; MAX_LANES],
    f: fn(E) -> [E; N],
) -> [[E; MAX_LANES]; N] {
    let mut results = [[E::ZERO; MAX_LANES]; N];
    for (i, (wanted, x)) in wanted.iter().zip(lanes).enumerate() {
        if *wanted > E::ZERO {
            for (result, y) in results.iter_mut().zip(f(*x)) {
                result[i] = y;
            }
        }
    }
    results
}

/// An ISA token: a value that proves the instruction set was detected.
pub trait Token: Copy + Send + Sync + 'static {
    /// The instruction set.
    const ISA: Isa;
    /// Runs `task` with this level's features as a function of its own (except on the scalar level,
    /// which has none to enable): a hot loop's registers are then allocated apart from its caller's.
    fn call<T: Task>(self, task: T) -> T::Output;
    /// Orders this thread's non-temporal stores before its later stores.
    #[inline(always)]
    fn fence(self) {}
    /// Prefetches the cache line of an address, which need not be valid.
    #[inline(always)]
    fn prefetch(self, _address: *const u8) {}
    /// Prefetches a cache line into the L2 cache, which can have many more lines in flight.
    #[inline(always)]
    fn prefetch_l2(self, _address: *const u8) {}
}

/// Prefetches the cache line of an address, which need not be valid, on architectures where every
/// level has the instruction.
#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is a part of x86-64, and a prefetch reads nothing.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The number of 16-bit floats in a block that is converted at once.
pub(crate) const HALVES: usize = 16;

/// A token with lanes for every element type, and the conversions between them.
pub trait Simd: IntoPulp + Lanes<f32> + Lanes<f64> {
    /// Reads `<Self as Lanes<f64>>::LANES` elements and converts them to `f64`, exactly.
    ///
    /// # Safety
    /// `src` is valid for reads of `<Self as Lanes<f64>>::LANES` elements.
    unsafe fn load_widened(self, src: *const f32) -> <Self as Lanes<f64>>::V;
    /// Reads `count` elements, fewer than [`Simd::load_widened`], and converts them to `f64`; the
    /// other lanes are zero.
    ///
    /// # Safety
    /// `src` is valid for reads of `count` elements.
    unsafe fn load_first_widened(self, src: *const f32, count: usize) -> <Self as Lanes<f64>>::V;
    /// Rounds the lanes to `f32` and writes them.
    ///
    /// # Safety
    /// `dst` is valid for writes of `<Self as Lanes<f64>>::LANES` elements.
    unsafe fn store_narrowed(self, dst: *mut f32, x: <Self as Lanes<f64>>::V);
    /// Rounds the lanes to IEEE binary16, ties to even, and writes the bits.
    ///
    /// # Safety
    /// `dst` is valid for writes of `<Self as Lanes<f32>>::LANES` numbers.
    unsafe fn store_f16(self, dst: *mut u16, x: <Self as Lanes<f32>>::V);
    /// Converts IEEE binary16 numbers, given as bits. `x` and `y` must have the same number of
    /// blocks.
    #[inline(always)]
    fn widen_f16(self, x: &[[u16; HALVES]], y: &mut [[f32; HALVES]]) {
        const { assert!(HALVES.is_multiple_of(<Self as Lanes<f32>>::LANES)) };
        for (x, y) in x.iter().zip(y) {
            for i in (0..HALVES).step_by(<Self as Lanes<f32>>::LANES) {
                // SAFETY: the assertion above: both blocks hold a whole vector from `i` on.
                unsafe {
                    let numbers = Lanes::<f32>::load_f16(self, x.as_ptr().add(i));
                    self.store(y.as_mut_ptr().add(i), numbers);
                }
            }
        }
    }
    /// Rounds to IEEE binary16, ties to even, and writes the bits. `x` and `y` must have the same
    /// number of blocks.
    #[inline(always)]
    fn narrow_f16(self, x: &[[f32; HALVES]], y: &mut [[u16; HALVES]]) {
        const { assert!(HALVES.is_multiple_of(<Self as Lanes<f32>>::LANES)) };
        for (x, y) in x.iter().zip(y) {
            for i in (0..HALVES).step_by(<Self as Lanes<f32>>::LANES) {
                // SAFETY: the assertion above: both blocks hold a whole vector from `i` on.
                unsafe { self.store_f16(y.as_mut_ptr().add(i), self.load(x.as_ptr().add(i))) };
            }
        }
    }
}

//! The vector vocabulary that kernels are written in, and its four implementations.
//!
//! A kernel is a function generic over an ISA *token* `S: Lanes<E>`. The token can only be made by
//! detection (see [`crate::dispatch`]), vectors can only be made by a token, so code that holds a
//! vector may use the instructions behind it: the operators on vectors need no proof of their own.
//!
//! Every operation here is exactly specified (IEEE 754 with round-to-nearest-even, or integer
//! arithmetic that wraps), so that a kernel returns the same bits on every instruction set.
//! Approximate instructions (`rcp`, `rsqrt`) have no name here on purpose.
//!
//! The set is the smallest that the kernels need; it grows only with a caller. `wide.rs` makes two
//! vectors one, so that a loop can have a kernel at work on several.

use core::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

/// Declares vector types: opaque, so that only this module's tokens can make one.
macro_rules! vectors {
    ($($(#[$doc:meta])* $v:ident($raw:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $v($raw);
    )*};
}

/// Methods whose bodies are intrinsics; `unsafe:` in front makes them `unsafe fn`s over memory.
macro_rules! intrinsics {
    (unsafe: $(
        fn $name:ident($self:ident $(, $arg:ident: $t:ty)*) -> $output:ty $body:block
    )*) => {$(
        #[inline(always)]
        unsafe fn $name($self $(, $arg: $t)*) -> $output {
            // SAFETY: a token is made by detection alone, so the CPU has these instructions; the
            // memory is valid for what they touch, as the caller promised.
            unsafe { $body }
        }
    )*};
    ($(
        fn $name:ident $(<const $n:ident: i32>)?($($self:ident $(: $self_t:ty)?),*)
            -> $output:ty $body:block
    )*) => {$(
        #[inline(always)]
        #[allow(unused_unsafe, reason = "AArch64 targets have NEON without asking")]
        fn $name $(<const $n: i32>)?($($self $(: $self_t)?),*) -> $output {
            // SAFETY: vectors are made by tokens alone, and a token by detection alone, so the CPU
            // has these instructions; those that read memory read a whole array.
            unsafe { $body }
        }
    )*};
}

/// `impl Operator for Vector` by one intrinsic a row.
macro_rules! operators {
    ($($v:ident: $($operator:ident $name:ident $intrinsic:path),*;)*) => {$($(
        impl $operator for $v {
            type Output = Self;
            intrinsics! {
                fn $name(self, other: Self) -> Self { Self($intrinsic(self.0, other.0)) }
            }
        }
    )*)*};
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod cut;
mod fma;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
pub(crate) mod scalar;
pub(crate) mod sealed;
mod table;
#[cfg(test)]
mod tests;
mod wide;

use crate::convert::{f16_from_f32, f32_from_f16};
use crate::dispatch::{Isa, Task};
use crate::gemm::Factor;
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
    + Factor<Sum = Self>
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
    type Int: Copy + Send + Sync + 'static + core::fmt::Debug;
    /// Nearest value of this type (ties to even).
    fn from_f64(x: f64) -> Self;
    /// The same value, exactly.
    fn to_f64(self) -> f64;
    /// `self * a + b` rounded once.
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

/// A mask with one truth value a lane.
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
    /// Lane `<<` constant.
    fn shl<const N: i32>(self) -> Self;
    /// Lane `>>` constant, filling with zeros.
    fn shr<const N: i32>(self) -> Self;
    /// Lanes equal.
    fn eq(self, other: Self) -> Self::Mask;
    /// Lane `self > other`, signed.
    fn gt(self, other: Self) -> Self::Mask;
    /// `mask ? self : other`, lane by lane.
    fn select(self, mask: Self::Mask, other: Self) -> Self;
}

/// Float lanes.
///
/// Comparisons are ordered and quiet: false when a lane is NaN.
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
    /// One truth value a lane.
    type Mask: Mask;
    /// The lanes' bits as signed integers.
    type Int: IntVector<Mask = Self::Mask>;

    /// `self * a + b`, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// `b - self * a`, rounded once.
    fn neg_mul_add(self, a: Self, b: Self) -> Self;
    /// Correctly rounded square root.
    fn sqrt(self) -> Self;
    /// Clears the sign bit.
    fn abs(self) -> Self;
    /// Nearest integer, ties to even; keeps the sign of zero.
    fn round_ties_even(self) -> Self;
    /// x86 `min`: `self < other ? self : other`, hence `other` if either is NaN or both are zero.
    fn min_or_other(self, other: Self) -> Self;
    /// x86 `max`: `self > other ? self : other`, hence `other` if either is NaN or both are zero.
    fn max_or_other(self, other: Self) -> Self;
    /// Lanes equal.
    fn eq(self, other: Self) -> Self::Mask;
    /// Lane `self < other`.
    fn lt(self, other: Self) -> Self::Mask;
    /// Lane `self <= other`.
    fn le(self, other: Self) -> Self::Mask;
    /// Lane is NaN.
    fn is_nan(self) -> Self::Mask;
    /// `mask ? self : other`, lane by lane.
    fn select(self, mask: Self::Mask, other: Self) -> Self;
    /// The bits.
    fn to_bits(self) -> Self::Int;
    /// The float whose bits these are.
    fn from_bits(bits: Self::Int) -> Self;
    /// `self * 2^k` rounded once, subnormal results included; overflow gives infinity.
    ///
    /// `k` is in `2 * (1 - BIAS)..=2 * BIAS` (`BIAS` = 127 or 1023), the sums of two exponents of
    /// normal numbers; elsewhere the lane is unspecified.
    fn scale_by_power_of_two(self, k: Self::Int) -> Self;
    /// `table[index & 7]`, lane by lane.
    fn lookup8(table: &[Self::Elem; 8], index: Self::Int, like: Self) -> Self;
    /// `table[index & 15]`, lane by lane.
    fn lookup16(table: &[Self::Elem; 16], index: Self::Int, like: Self) -> Self;
    /// `table[index & 31]`, lane by lane.
    fn lookup32(table: &[Self::Elem; 32], index: Self::Int, like: Self) -> Self;
    /// Splits the lanes of `self` and `other` taken alternately into low and high half:
    /// `([a0 b0 a1 b1 …], […])`.
    fn interleave(self, other: Self) -> (Self, Self);
    /// Lane j of row i becomes lane i of row j; as many rows as there are lanes.
    ///
    /// Each round is a perfect shuffle of all elements: it moves one bit of an element's lane number
    /// into its row number, and one back; after log2(lanes) rounds they have changed places.
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

/// What a token can make: vectors of `E` from scalars and memory.
pub trait Lanes<E: Float>: Token {
    /// The vector type.
    type V: Vector<Elem = E, Mask = Self::M, Int = Self::I>;
    /// The integer lanes of `V`.
    type I: IntVector<Mask = Self::M>;
    /// The mask of `V`.
    type M: Mask;
    /// Lanes in a vector; a power of two, at most 16 of one register.
    const LANES: usize;

    /// All lanes `x`.
    fn splat(self, x: E) -> Self::V;
    /// A vector for each number. The standard library's `map` of arrays is not always inlined, and
    /// what it calls then is compiled for no instruction set.
    #[inline(always)]
    fn splat_all<const N: usize>(self, numbers: [E; N]) -> [Self::V; N] {
        let mut vectors = [self.splat(E::ZERO); N];
        for i in 0..N {
            vectors[i] = self.splat(numbers[i]);
        }
        vectors
    }
    /// All integer lanes `x`.
    fn splat_int(self, x: E::Int) -> Self::I;
    /// Lane i is true where `i < count`.
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
    unsafe fn load_first(self, src: *const E, count: usize) -> Self::V;
    /// Reads `LANES` IEEE binary16 numbers, which are given as their bits, exactly.
    ///
    /// # Safety
    /// `src` is valid for reads of `LANES` numbers.
    unsafe fn load_f16(self, src: *const u16) -> Self::V;
    /// As [`Lanes::load_f16`], of numbers that are the upper halves of `f32`.
    ///
    /// # Safety
    /// `src` is valid for reads of `LANES` numbers.
    unsafe fn load_bf16(self, src: *const u16) -> Self::V;
    /// Writes `LANES` elements.
    ///
    /// # Safety
    /// `dst` is valid for writes of `LANES` elements.
    unsafe fn store(self, dst: *mut E, x: Self::V);
    /// Writes `LANES` elements past the caches where the instruction set can. Other threads may see
    /// them only after [`Token::fence`].
    ///
    /// # Safety
    /// `dst` is valid for writes of `LANES` elements and aligned to the size of a register.
    unsafe fn store_streaming(self, dst: *mut E, x: Self::V);
    /// Writes the first `count < LANES` lanes; other memory is not touched.
    ///
    /// # Safety
    /// `dst` is valid for writes of `count` elements.
    unsafe fn store_first(self, dst: *mut E, count: usize, x: Self::V);
    /// Reads the lanes where `mask` is true; the others are zero and their memory is not touched.
    ///
    /// # Safety
    /// `src` is valid for reads of the elements whose lanes are true.
    #[inline(always)]
    unsafe fn load_where(self, src: *const E, mask: Self::M) -> Self::V {
        const { assert!(Self::LANES <= MAX_LANES) };
        if mask.all() {
            // SAFETY: all lanes are true: the caller's promise is a whole vector.
            return unsafe { self.load(src) };
        }
        let mut lanes = truths(self, mask);
        for (i, lane) in lanes.iter_mut().enumerate() {
            if *lane != E::ZERO {
                // SAFETY: lane i is true.
                *lane = unsafe { src.wrapping_add(i).read() };
            }
        }
        // SAFETY: the assertion above: the array holds a whole vector.
        unsafe { self.load(lanes.as_ptr()) }
    }
    /// Writes the lanes where `mask` is true; other memory is not touched.
    ///
    /// # Safety
    /// `dst` is valid for writes of the elements whose lanes are true.
    #[inline(always)]
    unsafe fn store_where(self, dst: *mut E, mask: Self::M, x: Self::V) {
        const { assert!(Self::LANES <= MAX_LANES) };
        if mask.all() {
            // SAFETY: all lanes are true: the caller's promise is a whole vector.
            return unsafe { self.store(dst, x) };
        }
        let mut lanes = [E::ZERO; MAX_LANES];
        // SAFETY: the assertion above: the array holds a whole vector.
        unsafe { self.store(lanes.as_mut_ptr(), x) };
        for (i, (lane, truth)) in lanes.into_iter().zip(truths(self, mask)).enumerate() {
            if truth != E::ZERO {
                // SAFETY: lane i is true.
                unsafe { dst.wrapping_add(i).write(lane) };
            }
        }
    }
    /// The eight columns of `table[index & 31]`, lane by lane.
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
    /// `f` of each lane of `x` where `mask`, zeros elsewhere. Lane by lane in memory: for rare lanes.
    #[inline(always)]
    fn map_lanes<const N: usize>(
        self,
        mask: Self::M,
        x: Self::V,
        f: fn(E) -> [E; N],
    ) -> [Self::V; N] {
        const { assert!(Self::LANES <= MAX_LANES) };
        let mut lanes = [E::ZERO; MAX_LANES];
        // SAFETY: the assertion above: the array holds a whole vector.
        unsafe { self.store(lanes.as_mut_ptr(), x) };
        let results = map_wanted(&truths(self, mask), &lanes, f);
        // SAFETY: the assertion above: every array holds a whole vector.
        results.map(|lanes| unsafe { self.load(lanes.as_ptr()) })
    }
}

/// The most lanes that any register has.
pub(crate) const MAX_LANES: usize = 16;

/// One where a lane of `mask` is true, zero elsewhere.
#[inline(always)]
fn truths<E: Float, S: Lanes<E>>(simd: S, mask: S::M) -> [E; MAX_LANES] {
    const { assert!(S::LANES <= MAX_LANES) };
    let mut truths = [E::ZERO; MAX_LANES];
    let lanes = simd.splat(E::ONE).select(mask, simd.splat(E::ZERO));
    // SAFETY: the assertion above: the array holds a whole vector.
    unsafe { simd.store(truths.as_mut_ptr(), lanes) };
    truths
}

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
    /// Which instruction set.
    const ISA: Isa;
    /// Runs `task` with this level's features as a function of its own (except on the scalar level,
    /// which has none to enable): a hot loop's registers are then allocated apart from its caller's.
    fn call<T: Task>(self, task: T) -> T::Output;
    /// Makes this thread's streaming stores visible before its later ones.
    #[inline(always)]
    fn fence(self) {}
    /// Asks for the cache line of an address, which need not be valid.
    #[inline(always)]
    fn prefetch(self, _address: *const u8) {}
    /// As [`prefetch`](Token::prefetch), into the second-level cache: many more lines can be on their way.
    #[inline(always)]
    fn prefetch_l2(self, _address: *const u8) {}
}

/// 16-bit floats in a block that is converted at once.
pub(crate) const HALVES: usize = 16;

/// A token with lanes for every element type, and the conversions between them.
pub trait Simd: Lanes<f32> + Lanes<f64> {
    /// Widens `<Self as Lanes<f64>>::LANES` elements read from `src` exactly.
    ///
    /// # Safety
    /// `src` is valid for reads of `<Self as Lanes<f64>>::LANES` elements.
    unsafe fn load_widened(self, src: *const f32) -> <Self as Lanes<f64>>::V;
    /// As [`Simd::load_widened`] for `count` less than that many elements; other lanes are zero.
    ///
    /// # Safety
    /// `src` is valid for reads of `count` elements.
    unsafe fn load_first_widened(self, src: *const f32, count: usize) -> <Self as Lanes<f64>>::V;
    /// Rounds the lanes to `f32` and writes them.
    ///
    /// # Safety
    /// `dst` is valid for writes of `<Self as Lanes<f64>>::LANES` elements.
    unsafe fn store_narrowed(self, dst: *mut f32, x: <Self as Lanes<f64>>::V);
    /// The values of IEEE binary16 numbers, which are given as their bits; as many blocks of each.
    #[inline(always)]
    fn widen_f16(self, x: &[[u16; HALVES]], y: &mut [[f32; HALVES]]) {
        let (x, y) = (x.as_flattened(), y.as_flattened_mut());
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = f32_from_f16(x));
    }
    /// The bits of the nearest IEEE binary16 numbers, ties to even; as many blocks of each.
    #[inline(always)]
    fn narrow_f16(self, x: &[[f32; HALVES]], y: &mut [[u16; HALVES]]) {
        let (x, y) = (x.as_flattened(), y.as_flattened_mut());
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = f16_from_f32(x));
    }
}

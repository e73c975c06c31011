//! One lane per vector: the portable level, and the plainest statement of each operation's meaning.
//!
//! `mul_add` is our own exact function (`fma.rs`): the same bits as the instruction, whatever the
//! machine and its C library provide.

use super::fma::{fma_f32, fma_f64};
use super::half::{f16_from_f32, f32_from_bf16, f32_from_f16};
use super::{IntVector, Lanes, Mask, Simd, Token, Vector};
use super::{Isa, Task};
use core::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

/// The token of the portable level, which every machine has.
#[derive(Clone, Copy, Debug)]
pub struct Scalar;

impl Token for Scalar {
    const ISA: Isa = Isa::Scalar;

    #[inline(always)]
    fn call<T: Task>(self, task: T) -> T::Output {
        task.run(self)
    }
}

/// One boolean.
#[derive(Clone, Copy)]
pub struct Bool(bool);

impl Mask for Bool {
    #[inline(always)]
    fn any(self) -> bool {
        self.0
    }
    #[inline(always)]
    fn all(self) -> bool {
        self.0
    }
}

impl BitAnd for Bool {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        Bool(self.0 & other.0)
    }
}

impl BitOr for Bool {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        Bool(self.0 | other.0)
    }
}

impl Not for Bool {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Bool(!self.0)
    }
}

/// Implements binary operators:
/// `impl Operator for $v { fn name(self, other) -> $v { $v(expression) } }`.
macro_rules! scalar_operators {
    ($v:ident: $($operator:ident $name:ident |$a:ident, $b:ident| $result:expr;)*) => {$(
        impl $operator for $v {
            type Output = Self;
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                let ($a, $b) = (self.0, other.0);
                $v($result)
            }
        }
    )*};
}

macro_rules! lanes {
    ($v:ident, $i:ident, $float:ident, $int:ident, $uint:ident, $mantissa:literal, $bias:literal, $fma:path) => {
        /// One float.
        #[derive(Clone, Copy)]
        pub struct $v($float);

        /// One integer as wide as the float.
        #[derive(Clone, Copy)]
        pub struct $i($int);

        scalar_operators! { $v:
            Add add |a, b| a + b;
            Sub sub |a, b| a - b;
            Mul mul |a, b| a * b;
            Div div |a, b| a / b;
        }

        scalar_operators! { $i:
            Add add |a, b| a.wrapping_add(b);
            Sub sub |a, b| a.wrapping_sub(b);
            BitAnd bitand |a, b| a & b;
            BitOr bitor |a, b| a | b;
            BitXor bitxor |a, b| a ^ b;
        }

        impl Neg for $v {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                $v(-self.0)
            }
        }

        impl IntVector for $i {
            type Mask = Bool;
            #[inline(always)]
            fn shl<const N: i32>(self) -> Self {
                $i(self.0 << N)
            }
            #[inline(always)]
            fn shr<const N: i32>(self) -> Self {
                $i((self.0 as $uint >> N) as $int)
            }
            #[inline(always)]
            fn eq(self, other: Self) -> Bool {
                Bool(self.0 == other.0)
            }
            #[inline(always)]
            fn gt(self, other: Self) -> Bool {
                Bool(self.0 > other.0)
            }
            #[inline(always)]
            fn select(self, mask: Bool, other: Self) -> Self {
                if mask.0 { self } else { other }
            }
        }

        impl Vector for $v {
            type Elem = $float;
            type Mask = Bool;
            type Int = $i;
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                $v($fma(self.0, a.0, b.0))
            }
            #[inline(always)]
            fn neg_mul_add(self, a: Self, b: Self) -> Self {
                $v($fma(-self.0, a.0, b.0))
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $v(self.0.sqrt())
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $v(self.0.abs())
            }
            #[inline(always)]
            fn round_ties_even(self) -> Self {
                $v(self.0.round_ties_even())
            }
            #[inline(always)]
            fn min_or_other(self, other: Self) -> Self {
                if self.0 < other.0 { self } else { other }
            }
            #[inline(always)]
            fn max_or_other(self, other: Self) -> Self {
                if self.0 > other.0 { self } else { other }
            }
            #[inline(always)]
            fn eq(self, other: Self) -> Bool {
                Bool(self.0 == other.0)
            }
            #[inline(always)]
            fn lt(self, other: Self) -> Bool {
                Bool(self.0 < other.0)
            }
            #[inline(always)]
            fn le(self, other: Self) -> Bool {
                Bool(self.0 <= other.0)
            }
            #[inline(always)]
            fn is_nan(self) -> Bool {
                Bool(self.0.is_nan())
            }
            #[inline(always)]
            fn select(self, mask: Bool, other: Self) -> Self {
                if mask.0 { self } else { other }
            }
            #[inline(always)]
            fn to_bits(self) -> $i {
                $i(self.0.to_bits() as $int)
            }
            #[inline(always)]
            fn from_bits(bits: $i) -> Self {
                $v($float::from_bits(bits.0 as $uint))
            }
            #[inline(always)]
            fn scale_by_power_of_two(self, k: $i) -> Self {
                // Multiply last by the factor that may round: if the first product falls below the
                // normal numbers, the last factor is 2^(1 - BIAS) and the result zero either way.
                let last = k.0.clamp(1 - $bias, $bias);
                let first = k.0.wrapping_sub(last);
                let power =
                    |k: $int| $float::from_bits((k.wrapping_add($bias) << $mantissa) as $uint);
                $v(self.0 * power(first) * power(last))
            }
            #[inline(always)]
            fn lookup8(table: &[$float; 8], index: $i, _like: Self) -> Self {
                $v(table[(index.0 & 7) as usize])
            }
            #[inline(always)]
            fn lookup16(table: &[$float; 16], index: $i, _like: Self) -> Self {
                $v(table[(index.0 & 15) as usize])
            }
            #[inline(always)]
            fn lookup32(table: &[$float; 32], index: $i, _like: Self) -> Self {
                $v(table[(index.0 & 31) as usize])
            }
            #[inline(always)]
            fn interleave(self, other: Self) -> (Self, Self) {
                (self, other)
            }
        }

        impl Lanes<$float> for Scalar {
            type V = $v;
            type I = $i;
            type M = Bool;
            const LANES: usize = 1;
            #[inline(always)]
            fn splat(self, x: $float) -> $v {
                $v(x)
            }
            #[inline(always)]
            fn splat_int(self, x: $int) -> $i {
                $i(x)
            }
            #[inline(always)]
            fn first(self, count: usize) -> Bool {
                Bool(count > 0)
            }
            #[inline(always)]
            unsafe fn load(self, src: *const $float) -> $v {
                // SAFETY: valid for one read, as the caller promised.
                $v(unsafe { src.read() })
            }
            #[inline(always)]
            unsafe fn load_first(self, _src: *const $float, _count: usize) -> $v {
                $v(0.0)
            }
            #[inline(always)]
            unsafe fn load_f16(self, src: *const u16) -> $v {
                // SAFETY: valid for one read, as the caller promised.
                $v(f32_from_f16(unsafe { src.read() }).into())
            }
            #[inline(always)]
            unsafe fn load_bf16(self, src: *const u16) -> $v {
                // SAFETY: valid for one read, as the caller promised.
                $v(f32_from_bf16(unsafe { src.read() }).into())
            }
            #[inline(always)]
            unsafe fn store(self, dst: *mut $float, x: $v) {
                // SAFETY: valid for one write, as the caller promised.
                unsafe { dst.write(x.0) }
            }
            #[inline(always)]
            unsafe fn store_streaming(self, dst: *mut $float, x: $v) {
                // SAFETY: valid for one write, as the caller promised.
                unsafe { dst.write(x.0) }
            }
            #[inline(always)]
            unsafe fn store_first(self, _dst: *mut $float, _count: usize, _x: $v) {}
            #[inline(always)]
            unsafe fn load_where(self, src: *const $float, mask: Bool) -> $v {
                // SAFETY: valid for one read where the mask is true, as the caller promised.
                $v(if mask.0 { unsafe { src.read() } } else { 0.0 })
            }
            #[inline(always)]
            unsafe fn store_where(self, dst: *mut $float, mask: Bool, x: $v) {
                if mask.0 {
                    // SAFETY: valid for one write where the mask is true, as the caller promised.
                    unsafe { dst.write(x.0) }
                }
            }
        }
    };
}

lanes!(F32x1, I32x1, f32, i32, u32, 23, 127, fma_f32);
lanes!(F64x1, I64x1, f64, i64, u64, 52, 1023, fma_f64);

impl Simd for Scalar {
    #[inline(always)]
    unsafe fn load_widened(self, src: *const f32) -> F64x1 {
        // SAFETY: valid for one read, as the caller promised.
        F64x1(f64::from(unsafe { src.read() }))
    }
    #[inline(always)]
    unsafe fn load_first_widened(self, _src: *const f32, _count: usize) -> F64x1 {
        F64x1(0.0)
    }
    #[inline(always)]
    unsafe fn store_narrowed(self, dst: *mut f32, x: F64x1) {
        // SAFETY: valid for one write, as the caller promised.
        unsafe { dst.write(x.0 as f32) };
    }
    #[inline(always)]
    unsafe fn store_f16(self, dst: *mut u16, x: F32x1) {
        // SAFETY: valid for one write, as the caller promised.
        unsafe { dst.write(f16_from_f32(x.0)) };
    }
}

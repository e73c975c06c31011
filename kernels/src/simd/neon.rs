//! AArch64 Advanced SIMD: 4 `f32` or 2 `f64` lanes; a mask is a vector whose lanes are all ones or
//! all zeros. There are no masked loads: tails go through a small array.

use core::arch::aarch64::*;
use core::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

use super::enter::{Neon, enter_neon};
use super::{IntVector, Lanes, Mask, Rows, Simd, Token, Vector};
use super::{Isa, Task};

/// Copies elements that may be unaligned.
///
/// # Safety
/// They are valid for reads and writes, and do not overlap.
#[inline(always)]
unsafe fn copy_lanes<E>(src: *const E, dst: *mut E, count: usize) {
    // SAFETY: the caller promises valid, disjoint memory; bytes are always aligned.
    unsafe { core::ptr::copy_nonoverlapping(src.cast::<u8>(), dst.cast(), count * size_of::<E>()) }
}

impl Token for Neon {
    const ISA: Isa = Isa::Neon;

    #[inline(always)]
    fn call<T: Task>(self, task: T) -> T::Output {
        // SAFETY: this token was made by detection, which covers every feature of the trampoline.
        unsafe { enter_neon(self, task) }
    }
}

/// Intrinsics of 32-bit lanes under the names that `lanes!` gives them.
mod x32 {
    pub(super) use core::arch::aarch64::{
        vabsq_f32 as abs, vaddq_f32 as add, vaddq_s32 as add_int, vandq_s32 as and_int,
        vandq_u32 as and_mask, vbslq_f32 as choose, vbslq_s32 as choose_int, vceqq_f32 as equal,
        vceqq_s32 as equal_int, vcgtq_f32 as greater, vcgtq_s32 as greater_int,
        vcleq_f32 as less_equal, vcltq_f32 as less, vcltq_u32 as less_mask, vdivq_f32 as div,
        vdupq_n_f32 as splat, vdupq_n_s32 as splat_int, vdupq_n_u32 as splat_mask,
        veorq_s32 as xor_int, veorq_u32 as xor_mask, vfmaq_f32 as add_product,
        vfmsq_f32 as sub_product, vld1q_f32 as load, vld1q_u32 as load_mask, vmulq_f32 as mul,
        vnegq_f32 as neg, vorrq_s32 as or_int, vorrq_u32 as or_mask,
        vreinterpretq_f32_s32 as from_bits, vreinterpretq_s32_f32 as to_bits,
        vreinterpretq_s32_u32 as signed, vreinterpretq_u32_s32 as unsigned, vrndnq_f32 as round,
        vshlq_n_s32 as shift_left, vshrq_n_u32 as shift_right, vsqrtq_f32 as sqrt,
        vst1q_f32 as store, vst1q_u32 as store_mask, vsubq_f32 as sub, vsubq_s32 as sub_int,
        vzip1q_f32 as zip_low, vzip2q_f32 as zip_high,
    };
}

/// Intrinsics of 64-bit lanes under the names that `lanes!` gives them.
mod x64 {
    pub(super) use core::arch::aarch64::{
        vabsq_f64 as abs, vaddq_f64 as add, vaddq_s64 as add_int, vandq_s64 as and_int,
        vandq_u64 as and_mask, vbslq_f64 as choose, vbslq_s64 as choose_int, vceqq_f64 as equal,
        vceqq_s64 as equal_int, vcgtq_f64 as greater, vcgtq_s64 as greater_int,
        vcleq_f64 as less_equal, vcltq_f64 as less, vcltq_u64 as less_mask, vdivq_f64 as div,
        vdupq_n_f64 as splat, vdupq_n_s64 as splat_int, vdupq_n_u64 as splat_mask,
        veorq_s64 as xor_int, veorq_u64 as xor_mask, vfmaq_f64 as add_product,
        vfmsq_f64 as sub_product, vld1q_f64 as load, vld1q_u64 as load_mask, vmulq_f64 as mul,
        vnegq_f64 as neg, vorrq_s64 as or_int, vorrq_u64 as or_mask,
        vreinterpretq_f64_s64 as from_bits, vreinterpretq_s64_f64 as to_bits,
        vreinterpretq_s64_u64 as signed, vreinterpretq_u64_s64 as unsigned, vrndnq_f64 as round,
        vshlq_n_s64 as shift_left, vshrq_n_u64 as shift_right, vsqrtq_f64 as sqrt,
        vst1q_f64 as store, vst1q_u64 as store_mask, vsubq_f64 as sub, vsubq_s64 as sub_int,
        vzip1q_f64 as zip_low, vzip2q_f64 as zip_high,
    };
}

/// Returns the mask, hiding its origin from the compiler. The compiler would turn `a > c` and
/// `b > c` into one comparison of the larger of both, which here is NaN if one is a signalling NaN:
/// an argument would change its neighbour's result.
#[inline(always)]
fn hidden(mut mask: uint32x4_t) -> uint32x4_t {
    // SAFETY: the assembly is a comment without instructions.
    unsafe {
        core::arch::asm!("// {:v}", inout(vreg) mask, options(pure, nomem, nostack, preserves_flags));
    }
    mask
}

/// Implements the vectors of one element type by the intrinsics of module `$x`. The blocks hold the
/// methods of [`Vector`] and [`Lanes`] that differ between the element types.
macro_rules! lanes {
    (
        $x:ident: $float:ident in $v:ident($raw:ty), $int:ident in $i:ident($int_raw:ty),
        $uint:ident in masks $m:ident($mask_raw:ty), lanes $($lane:literal)*, mantissa $mantissa:literal,
        bias $bias:literal, clamped |$k:ident| $clamped:expr, words |$mask:ident| $words:expr;
        Vector { $($vector_methods:tt)* }
        Lanes { $($lanes_methods:tt)* }
    ) => {
        vectors! {
            /// Floats.
            $v($raw);
            /// Integers as wide as the floats.
            $i($int_raw);
            /// Booleans as wide as the floats.
            $m($mask_raw);
        }

        operators! {
            $v: Add add $x::add, Sub sub $x::sub, Mul mul $x::mul, Div div $x::div;
            $i: Add add $x::add_int, Sub sub $x::sub_int, BitAnd bitand $x::and_int,
                BitOr bitor $x::or_int, BitXor bitxor $x::xor_int;
            $m: BitAnd bitand $x::and_mask, BitOr bitor $x::or_mask;
        }

        prefix_operators! {
            $v: Neg neg |x| $x::neg(x);
            $m: Not not |x| $x::xor_mask(x, $x::splat_mask($uint::MAX));
        }

        impl Mask for $m {
            intrinsics! {
                fn any(self) -> bool {
                    let $mask = self.0;
                    vmaxvq_u32(hidden($words)) != 0
                }
                fn all(self) -> bool {
                    let $mask = self.0;
                    vminvq_u32(hidden($words)) != 0
                }
            }
        }

        impl IntVector for $i {
            type Mask = $m;
            intrinsics! {
                fn shl<const N: i32>(self) -> Self { Self($x::shift_left::<N>(self.0)) }
                fn shr<const N: i32>(self) -> Self {
                    Self($x::signed($x::shift_right::<N>($x::unsigned(self.0))))
                }
                fn eq(self, other: Self) -> $m { $m($x::equal_int(self.0, other.0)) }
                fn gt(self, other: Self) -> $m { $m($x::greater_int(self.0, other.0)) }
                fn select(self, mask: $m, other: Self) -> Self {
                    Self($x::choose_int(mask.0, self.0, other.0))
                }
            }
        }

        impl Vector for $v {
            type Elem = $float;
            type Mask = $m;
            type Int = $i;
            intrinsics! {
                fn mul_add(self, a: Self, b: Self) -> Self { Self($x::add_product(b.0, self.0, a.0)) }
                fn neg_mul_add(self, a: Self, b: Self) -> Self {
                    Self($x::sub_product(b.0, self.0, a.0))
                }
                fn sqrt(self) -> Self { Self($x::sqrt(self.0)) }
                fn abs(self) -> Self { Self($x::abs(self.0)) }
                fn round_ties_even(self) -> Self { Self($x::round(self.0)) }
                // The instructions `fmin` and `fmax` treat NaN and zeros differently.
                fn min_or_other(self, other: Self) -> Self {
                    Self($x::choose($x::less(self.0, other.0), self.0, other.0))
                }
                fn max_or_other(self, other: Self) -> Self {
                    Self($x::choose($x::greater(self.0, other.0), self.0, other.0))
                }
                fn eq(self, other: Self) -> $m { $m($x::equal(self.0, other.0)) }
                fn lt(self, other: Self) -> $m { $m($x::less(self.0, other.0)) }
                fn le(self, other: Self) -> $m { $m($x::less_equal(self.0, other.0)) }
                fn is_nan(self) -> $m { !$m($x::equal(self.0, self.0)) }
                fn select(self, mask: $m, other: Self) -> Self {
                    Self($x::choose(mask.0, self.0, other.0))
                }
                fn to_bits(self) -> $i { $i($x::to_bits(self.0)) }
                fn from_bits(bits: $i) -> Self { Self($x::from_bits(bits.0)) }
                fn scale_by_power_of_two(self, k: $i) -> Self {
                    // Like the scalar level, multiply last by the factor that may round.
                    let $k = k.0;
                    let last = $clamped;
                    let one = $x::splat_int($bias << $mantissa);
                    let power =
                        |k| $x::from_bits($x::add_int($x::shift_left::<$mantissa>(k), one));
                    Self($x::mul($x::mul(self.0, power($x::sub_int(k.0, last))), power(last)))
                }
                fn interleave(self, other: Self) -> (Self, Self) {
                    (Self($x::zip_low(self.0, other.0)), Self($x::zip_high(self.0, other.0)))
                }
                $($vector_methods)*
            }
        }

        impl Lanes<$float> for Neon {
            type V = $v;
            type I = $i;
            type M = $m;
            const LANES: usize = [$($lane),*].len();
            intrinsics! {
                fn splat(self, x: $float) -> $v { $v($x::splat(x)) }
                fn splat_int(self, x: $int) -> $i { $i($x::splat_int(x)) }
                fn first(self, count: usize) -> $m {
                    let lane = $x::load_mask([$($lane),*].as_ptr());
                    let count = count.min(<Self as Lanes<$float>>::LANES) as $uint;
                    $m($x::less_mask(lane, $x::splat_mask(count)))
                }
            }
            intrinsics! { unsafe:
                fn load(self, src: *const $float) -> $v { $v($x::load(src)) }
                fn load_first(self, src: *const $float, count: usize) -> $v {
                    let mut lanes = [0.0; <Self as Lanes<$float>>::LANES];
                    copy_lanes(src, lanes.as_mut_ptr(), count.min(lanes.len()));
                    $v($x::load(lanes.as_ptr()))
                }
                fn load_where(self, src: *const $float, mask: $m) -> $v {
                    if mask.all() {
                        return Lanes::<$float>::load(self, src);
                    }
                    let mut lanes = [0.0; <Self as Lanes<$float>>::LANES];
                    let mut wanted = [0; <Self as Lanes<$float>>::LANES];
                    $x::store_mask(wanted.as_mut_ptr(), mask.0);
                    for i in 0..lanes.len() {
                        if wanted[i] != 0 {
                            lanes[i] = src.wrapping_add(i).read_unaligned();
                        }
                    }
                    $v($x::load(lanes.as_ptr()))
                }
                fn store(self, dst: *mut $float, x: $v) -> () { $x::store(dst, x.0) }
                fn store_streaming(self, dst: *mut $float, x: $v) -> () { $x::store(dst, x.0) }
                fn store_first(self, dst: *mut $float, count: usize, x: $v) -> () {
                    let mut lanes = [0.0; <Self as Lanes<$float>>::LANES];
                    $x::store(lanes.as_mut_ptr(), x.0);
                    copy_lanes(lanes.as_ptr(), dst, count.min(lanes.len()));
                }
                fn store_where(self, dst: *mut $float, mask: $m, x: $v) -> () {
                    if mask.all() {
                        return Lanes::<$float>::store(self, dst, x);
                    }
                    let mut lanes = [0.0; <Self as Lanes<$float>>::LANES];
                    let mut wanted = [0; <Self as Lanes<$float>>::LANES];
                    $x::store(lanes.as_mut_ptr(), x.0);
                    $x::store_mask(wanted.as_mut_ptr(), mask.0);
                    for i in 0..lanes.len() {
                        if wanted[i] != 0 {
                            dst.wrapping_add(i).write_unaligned(lanes[i]);
                        }
                    }
                }
            }
            $($lanes_methods)*
        }
    };
}

lanes! {
    x32: f32 in F32x4(float32x4_t), i32 in I32x4(int32x4_t),
    u32 in masks M32x4(uint32x4_t), lanes 0 1 2 3, mantissa 23,
    bias 127, clamped |k| vminq_s32(vmaxq_s32(k, vdupq_n_s32(-126)), vdupq_n_s32(127)), words |mask| mask;
    Vector {
        fn lookup8(table: &[f32; 8], index: I32x4, _like: Self) -> Self {
            let table = uint8x16x2_t(
                vreinterpretq_u8_f32(vld1q_f32(table.as_ptr())),
                vreinterpretq_u8_f32(vld1q_f32(table[4..].as_ptr())),
            );
            Self(vreinterpretq_f32_u8(vqtbl2q_u8(table, bytes_of_entries(index, 7))))
        }
        fn lookup16(table: &[f32; 16], index: I32x4, _like: Self) -> Self {
            let bytes = bytes_of_entries(index, 15);
            Self(vreinterpretq_f32_u8(vqtbl4q_u8(sixty_four_bytes(*table), bytes)))
        }
        fn lookup32(table: &[f32; 32], index: I32x4, _like: Self) -> Self {
            // A byte index beyond the first half gives 0 in the first lookup, and the second half's
            // byte in the second; an index before the second half wraps around, and the first
            // half's byte is kept.
            let bytes = bytes_of_entries(index, 31);
            let half = |i: usize| sixty_four_bytes(core::array::from_fn(|j| table[i + j]));
            let in_low = vqtbl4q_u8(half(0), bytes);
            let bytes = vsubq_u8(bytes, vdupq_n_u8(64));
            Self(vreinterpretq_f32_u8(vqtbx4q_u8(in_low, half(16), bytes)))
        }
    }
    Lanes {
        intrinsics! {
            fn lookup_rows(self, table: &'static Rows<f32>, index: I32x4) -> [F32x4; 8] {
                // Each lane loads its row; the four rows are transposed half by half.
                let rows = [
                    table.row(vgetq_lane_s32::<0>(index.0) as usize),
                    table.row(vgetq_lane_s32::<1>(index.0) as usize),
                    table.row(vgetq_lane_s32::<2>(index.0) as usize),
                    table.row(vgetq_lane_s32::<3>(index.0) as usize),
                ];
                let half = |first: usize| {
                    let [a, b, c, d] = rows.map(|row| vld1q_f32(row[first..first + 4].as_ptr()));
                    let (ab, cd) = (vtrnq_f32(a, b), vtrnq_f32(c, d));
                    let join = |low, high| F32x4(vcombine_f32(low, high));
                    [
                        join(vget_low_f32(ab.0), vget_low_f32(cd.0)),
                        join(vget_low_f32(ab.1), vget_low_f32(cd.1)),
                        join(vget_high_f32(ab.0), vget_high_f32(cd.0)),
                        join(vget_high_f32(ab.1), vget_high_f32(cd.1)),
                    ]
                };
                let ([a, b, c, d], [e, f, g, h]) = (half(0), half(4));
                [a, b, c, d, e, f, g, h]
            }
        }
        intrinsics! { unsafe:
            fn load_f16(self, src: *const u16) -> F32x4 { F32x4(widen_f16(vld1_u16(src))) }
            fn load_bf16(self, src: *const u16) -> F32x4 {
                F32x4(vreinterpretq_f32_u32(vshll_n_u16::<16>(vld1_u16(src))))
            }
        }
    }
}

lanes! {
    x64: f64 in F64x2(float64x2_t), i64 in I64x2(int64x2_t),
    u64 in masks M64x2(uint64x2_t), lanes 0 1, mantissa 52,
    bias 1023, clamped |k| {
        // k fits 32 bits, so the high half of its lane is 0 or -1, and clamping both halves as
        // 32-bit lanes clamps the lane.
        let last = vmaxq_s32(vreinterpretq_s32_s64(k), vdupq_n_s32(-1022));
        vreinterpretq_s64_s32(vminq_s32(last, vdupq_n_s32(1023)))
    }, words |mask| vreinterpretq_u32_u64(mask);
    Vector {
        fn lookup8(table: &[f64; 8], index: I64x2, _like: Self) -> Self {
            lookup_each(table, index)
        }
        fn lookup16(table: &[f64; 16], index: I64x2, _like: Self) -> Self {
            lookup_each(table, index)
        }
        fn lookup32(table: &[f64; 32], index: I64x2, _like: Self) -> Self {
            lookup_each(table, index)
        }
    }
    Lanes {
        intrinsics! { unsafe:
            fn load_f16(self, src: *const u16) -> F64x2 {
                let bits = vcreate_u16(u64::from(src.cast::<u32>().read_unaligned()));
                F64x2(vcvt_f64_f32(vget_low_f32(widen_f16(bits))))
            }
            fn load_bf16(self, src: *const u16) -> F64x2 {
                let bits = vcreate_u16(u64::from(src.cast::<u32>().read_unaligned()));
                let wide = vreinterpretq_f32_u32(vshll_n_u16::<16>(bits));
                F64x2(vcvt_f64_f32(vget_low_f32(wide)))
            }
        }
    }
}

intrinsics! {
    // Byte indices of the table entries: lane i reads bytes 4 i, 4 i + 1, 4 i + 2, 4 i + 3.
    fn bytes_of_entries(index: I32x4, last: u32) -> uint8x16_t {
        let index = vandq_u32(vreinterpretq_u32_s32(index.0), vdupq_n_u32(last));
        let bytes = vmlaq_u32(vdupq_n_u32(0x0302_0100), index, vdupq_n_u32(0x0404_0404));
        vreinterpretq_u8_u32(bytes)
    }
    fn sixty_four_bytes(table: [f32; 16]) -> uint8x16x4_t {
        let quarter = |i: usize| vreinterpretq_u8_f32(vld1q_f32(table[4 * i..].as_ptr()));
        uint8x16x4_t(quarter(0), quarter(1), quarter(2), quarter(3))
    }
    fn lookup_each<const N: usize>(table: &[f64; N], index: I64x2) -> F64x2 {
        let entry = |i: i64| table[i as usize & (N - 1)];
        let low = vdupq_n_f64(entry(vgetq_lane_s64::<0>(index.0)));
        F64x2(vsetq_lane_f64::<1>(entry(vgetq_lane_s64::<1>(index.0)), low))
    }
}

/// Converts four IEEE binary16 numbers; the standard library's intrinsic is not stable.
///
/// # Safety
/// The CPU has NEON.
#[inline(always)]
unsafe fn widen_f16(bits: uint16x4_t) -> float32x4_t {
    let wide: float32x4_t;
    // SAFETY: the caller promises NEON; the instruction changes nothing but `wide`.
    unsafe {
        core::arch::asm!("fcvtl {wide:v}.4s, {bits:v}.4h", wide = lateout(vreg) wide,
            bits = in(vreg) bits, options(pure, nomem, nostack, preserves_flags));
    }
    wide
}

impl Simd for Neon {
    intrinsics! { unsafe:
        fn load_widened(self, src: *const f32) -> F64x2 {
            F64x2(vcvt_f64_f32(vld1_f32(src)))
        }
        fn load_first_widened(self, src: *const f32, count: usize) -> F64x2 {
            let mut lanes = [0.0; 2];
            copy_lanes(src, lanes.as_mut_ptr(), count.min(2));
            F64x2(vcvt_f64_f32(vld1_f32(lanes.as_ptr())))
        }
        fn store_narrowed(self, dst: *mut f32, x: F64x2) -> () {
            vst1_f32(dst, vcvt_f32_f64(x.0))
        }
        fn store_f16(self, dst: *mut u16, x: F32x4) -> () {
            let bits: uint16x4_t;
            core::arch::asm!("fcvtn {bits:v}.4h, {wide:v}.4s", bits = lateout(vreg) bits,
                wide = in(vreg) x.0, options(pure, nomem, nostack, preserves_flags));
            vst1_u16(dst, bits);
        }
    }
}

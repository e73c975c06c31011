//! AArch64 Advanced SIMD: 4 `f32` or 2 `f64` lanes; a mask is a vector whose lanes are all ones or
//! all zeros. There are no masked loads: tails go through a small array.

use core::arch::aarch64::*;
use core::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

use pulp::aarch64::Neon;

use super::{IntVector, Lanes, Mask, Rows, Simd, Token, Vector};
use crate::dispatch::{Isa, Task, enter_neon};

/// Copies elements that need not be aligned.
///
/// # Safety
/// They may be read and written, and don't overlap.
#[inline(always)]
unsafe fn copy_lanes<E>(src: *const E, dst: *mut E, count: usize) {
    // SAFETY: as the caller promised; bytes are always aligned.
    unsafe { core::ptr::copy_nonoverlapping(src.cast::<u8>(), dst.cast(), count * size_of::<E>()) }
}

impl Token for Neon {
    const ISA: Isa = Isa::Neon;

    #[inline(always)]
    fn call<T: Task>(self, task: T) -> T::Output {
        // SAFETY: this token was made by detection, it covers every feature of the trampoline.
        unsafe { enter_neon(self, task) }
    }
}

vectors! {
    /// Four floats.
    F32x4(float32x4_t);
    /// Four integers.
    I32x4(int32x4_t);
    /// Four truth values.
    M32x4(uint32x4_t);
    /// Two floats.
    F64x2(float64x2_t);
    /// Two integers.
    I64x2(int64x2_t);
    /// Two truth values.
    M64x2(uint64x2_t);
}

operators! {
    F32x4: Add add vaddq_f32, Sub sub vsubq_f32, Mul mul vmulq_f32, Div div vdivq_f32;
    F64x2: Add add vaddq_f64, Sub sub vsubq_f64, Mul mul vmulq_f64, Div div vdivq_f64;
    I32x4: Add add vaddq_s32, Sub sub vsubq_s32, BitAnd bitand vandq_s32, BitOr bitor vorrq_s32,
        BitXor bitxor veorq_s32;
    I64x2: Add add vaddq_s64, Sub sub vsubq_s64, BitAnd bitand vandq_s64, BitOr bitor vorrq_s64,
        BitXor bitxor veorq_s64;
    M32x4: BitAnd bitand vandq_u32, BitOr bitor vorrq_u32;
    M64x2: BitAnd bitand vandq_u64, BitOr bitor vorrq_u64;
}

impl Not for M32x4 {
    type Output = Self;
    intrinsics! {
        fn not(self) -> Self { Self(vmvnq_u32(self.0)) }
    }
}

impl Not for M64x2 {
    type Output = Self;
    intrinsics! {
        fn not(self) -> Self { Self(veorq_u64(self.0, vdupq_n_u64(u64::MAX))) }
    }
}

/// The mask, of which the compiler does not know how it came about. It would make `a > c` and `b > c` one
/// comparison of the larger of both, which here is NaN where one is a signalling NaN: an argument would change
/// what its neighbour gives.
#[inline(always)]
fn hidden(mut mask: uint32x4_t) -> uint32x4_t {
    // SAFETY: a comment, no instruction.
    unsafe {
        core::arch::asm!("// {:v}", inout(vreg) mask, options(pure, nomem, nostack, preserves_flags));
    }
    mask
}

impl Mask for M32x4 {
    intrinsics! {
        fn any(self) -> bool { vmaxvq_u32(hidden(self.0)) != 0 }
        fn all(self) -> bool { vminvq_u32(hidden(self.0)) != 0 }
    }
}

impl Mask for M64x2 {
    intrinsics! {
        fn any(self) -> bool { vmaxvq_u32(hidden(vreinterpretq_u32_u64(self.0))) != 0 }
        fn all(self) -> bool { vminvq_u32(hidden(vreinterpretq_u32_u64(self.0))) != 0 }
    }
}

impl Neg for F32x4 {
    type Output = Self;
    intrinsics! {
        fn neg(self) -> Self { Self(vnegq_f32(self.0)) }
    }
}

impl IntVector for I32x4 {
    type Mask = M32x4;
    intrinsics! {
        fn shl<const N: i32>(self) -> Self { Self(vshlq_n_s32::<N>(self.0)) }
        fn shr<const N: i32>(self) -> Self {
            Self(vreinterpretq_s32_u32(vshrq_n_u32::<N>(vreinterpretq_u32_s32(self.0))))
        }
        fn eq(self, other: Self) -> M32x4 { M32x4(vceqq_s32(self.0, other.0)) }
        fn gt(self, other: Self) -> M32x4 { M32x4(vcgtq_s32(self.0, other.0)) }
        fn select(self, mask: M32x4, other: Self) -> Self {
            Self(vbslq_s32(mask.0, self.0, other.0))
        }
    }
}

intrinsics! {
    // A table as bytes: lane i asks for bytes 4 i, 4 i + 1, 4 i + 2, 4 i + 3.
    fn bytes_of_entries(index: I32x4, last: u32) -> uint8x16_t {
        let index = vandq_u32(vreinterpretq_u32_s32(index.0), vdupq_n_u32(last));
        let bytes = vmlaq_u32(vdupq_n_u32(0x0302_0100), index, vdupq_n_u32(0x0404_0404));
        vreinterpretq_u8_u32(bytes)
    }
    fn sixty_four_bytes(table: [f32; 16]) -> uint8x16x4_t {
        let quarter = |i: usize| vreinterpretq_u8_f32(vld1q_f32(table[4 * i..].as_ptr()));
        uint8x16x4_t(quarter(0), quarter(1), quarter(2), quarter(3))
    }
}

impl Vector for F32x4 {
    type Elem = f32;
    type Mask = M32x4;
    type Int = I32x4;
    intrinsics! {
        fn mul_add(self, a: Self, b: Self) -> Self { Self(vfmaq_f32(b.0, self.0, a.0)) }
        fn neg_mul_add(self, a: Self, b: Self) -> Self { Self(vfmsq_f32(b.0, self.0, a.0)) }
        fn sqrt(self) -> Self { Self(vsqrtq_f32(self.0)) }
        fn abs(self) -> Self { Self(vabsq_f32(self.0)) }
        fn round_ties_even(self) -> Self { Self(vrndnq_f32(self.0)) }
        // The instructions `fmin` and `fmax` treat NaN and zeros otherwise.
        fn min_or_other(self, other: Self) -> Self {
            Self(vbslq_f32(vcltq_f32(self.0, other.0), self.0, other.0))
        }
        fn max_or_other(self, other: Self) -> Self {
            Self(vbslq_f32(vcgtq_f32(self.0, other.0), self.0, other.0))
        }
        fn eq(self, other: Self) -> M32x4 { M32x4(vceqq_f32(self.0, other.0)) }
        fn lt(self, other: Self) -> M32x4 { M32x4(vcltq_f32(self.0, other.0)) }
        fn le(self, other: Self) -> M32x4 { M32x4(vcleq_f32(self.0, other.0)) }
        fn is_nan(self) -> M32x4 { !M32x4(vceqq_f32(self.0, self.0)) }
        fn select(self, mask: M32x4, other: Self) -> Self {
            Self(vbslq_f32(mask.0, self.0, other.0))
        }
        fn to_bits(self) -> I32x4 { I32x4(vreinterpretq_s32_f32(self.0)) }
        fn from_bits(bits: I32x4) -> Self { Self(vreinterpretq_f32_s32(bits.0)) }
        fn scale_by_power_of_two(self, k: I32x4) -> Self {
            // As in the scalar level: the factor that may round comes last.
            let last = vminq_s32(vmaxq_s32(k.0, vdupq_n_s32(-126)), vdupq_n_s32(127));
            let one = vdupq_n_s32(127 << 23);
            let power = |k| vreinterpretq_f32_s32(vaddq_s32(vshlq_n_s32::<23>(k), one));
            Self(vmulq_f32(vmulq_f32(self.0, power(vsubq_s32(k.0, last))), power(last)))
        }
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
            // A byte number past the first half gives 0 there, and the second half's byte below;
            // one before the second half wraps past its end, where the first half's byte is kept.
            let bytes = bytes_of_entries(index, 31);
            let half = |i: usize| sixty_four_bytes(core::array::from_fn(|j| table[i + j]));
            let in_low = vqtbl4q_u8(half(0), bytes);
            let bytes = vsubq_u8(bytes, vdupq_n_u8(64));
            Self(vreinterpretq_f32_u8(vqtbx4q_u8(in_low, half(16), bytes)))
        }
        fn interleave(self, other: Self) -> (Self, Self) {
            (Self(vzip1q_f32(self.0, other.0)), Self(vzip2q_f32(self.0, other.0)))
        }
    }
}

impl Lanes<f32> for Neon {
    type V = F32x4;
    type I = I32x4;
    type M = M32x4;
    const LANES: usize = 4;
    intrinsics! {
        fn splat(self, x: f32) -> F32x4 { F32x4(vdupq_n_f32(x)) }
        fn splat_int(self, x: i32) -> I32x4 { I32x4(vdupq_n_s32(x)) }
        fn lookup_rows(self, table: &'static Rows<f32>, index: I32x4) -> [F32x4; 8] {
            // A lane loads its row; the four rows are transposed half by half.
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
        fn first(self, count: usize) -> M32x4 {
            let lane = vld1q_u32([0, 1, 2, 3].as_ptr());
            M32x4(vcltq_u32(lane, vdupq_n_u32(count.min(4) as u32)))
        }
    }
    intrinsics! { unsafe:
        fn load(self, src: *const f32) -> F32x4 { F32x4(vld1q_f32(src)) }
        fn load_first(self, src: *const f32, count: usize) -> F32x4 {
            let mut lanes = [0.0; 4];
            copy_lanes(src, lanes.as_mut_ptr(), count.min(4));
            F32x4(vld1q_f32(lanes.as_ptr()))
        }
        fn load_f16(self, src: *const u16) -> F32x4 { F32x4(widen_f16(vld1_u16(src))) }
        fn load_bf16(self, src: *const u16) -> F32x4 {
            F32x4(vreinterpretq_f32_u32(vshll_n_u16::<16>(vld1_u16(src))))
        }
        fn store(self, dst: *mut f32, x: F32x4) -> () { vst1q_f32(dst, x.0) }
        fn store_streaming(self, dst: *mut f32, x: F32x4) -> () { vst1q_f32(dst, x.0) }
        fn store_first(self, dst: *mut f32, count: usize, x: F32x4) -> () {
            let mut lanes = [0.0; 4];
            vst1q_f32(lanes.as_mut_ptr(), x.0);
            copy_lanes(lanes.as_ptr(), dst, count.min(4));
        }
        fn load_where(self, src: *const f32, mask: M32x4) -> F32x4 {
            if mask.all() {
                return Lanes::<f32>::load(self, src);
            }
            let (mut wanted, mut lanes) = ([0; 4], [0.0; 4]);
            vst1q_u32(wanted.as_mut_ptr(), mask.0);
            for i in 0..4 {
                if wanted[i] != 0 {
                    lanes[i] = src.wrapping_add(i).read_unaligned();
                }
            }
            F32x4(vld1q_f32(lanes.as_ptr()))
        }
        fn store_where(self, dst: *mut f32, mask: M32x4, x: F32x4) -> () {
            if mask.all() {
                return Lanes::<f32>::store(self, dst, x);
            }
            let (mut wanted, mut lanes) = ([0; 4], [0.0; 4]);
            vst1q_u32(wanted.as_mut_ptr(), mask.0);
            vst1q_f32(lanes.as_mut_ptr(), x.0);
            for i in 0..4 {
                if wanted[i] != 0 {
                    dst.wrapping_add(i).write_unaligned(lanes[i]);
                }
            }
        }
    }
}

impl Neg for F64x2 {
    type Output = Self;
    intrinsics! {
        fn neg(self) -> Self { Self(vnegq_f64(self.0)) }
    }
}

impl IntVector for I64x2 {
    type Mask = M64x2;
    intrinsics! {
        fn shl<const N: i32>(self) -> Self { Self(vshlq_n_s64::<N>(self.0)) }
        fn shr<const N: i32>(self) -> Self {
            Self(vreinterpretq_s64_u64(vshrq_n_u64::<N>(vreinterpretq_u64_s64(self.0))))
        }
        fn eq(self, other: Self) -> M64x2 { M64x2(vceqq_s64(self.0, other.0)) }
        fn gt(self, other: Self) -> M64x2 { M64x2(vcgtq_s64(self.0, other.0)) }
        fn select(self, mask: M64x2, other: Self) -> Self {
            Self(vbslq_s64(mask.0, self.0, other.0))
        }
    }
}

impl Vector for F64x2 {
    type Elem = f64;
    type Mask = M64x2;
    type Int = I64x2;
    intrinsics! {
        fn mul_add(self, a: Self, b: Self) -> Self { Self(vfmaq_f64(b.0, self.0, a.0)) }
        fn neg_mul_add(self, a: Self, b: Self) -> Self { Self(vfmsq_f64(b.0, self.0, a.0)) }
        fn sqrt(self) -> Self { Self(vsqrtq_f64(self.0)) }
        fn abs(self) -> Self { Self(vabsq_f64(self.0)) }
        fn round_ties_even(self) -> Self { Self(vrndnq_f64(self.0)) }
        // The instructions `fmin` and `fmax` treat NaN and zeros otherwise.
        fn min_or_other(self, other: Self) -> Self {
            Self(vbslq_f64(vcltq_f64(self.0, other.0), self.0, other.0))
        }
        fn max_or_other(self, other: Self) -> Self {
            Self(vbslq_f64(vcgtq_f64(self.0, other.0), self.0, other.0))
        }
        fn eq(self, other: Self) -> M64x2 { M64x2(vceqq_f64(self.0, other.0)) }
        fn lt(self, other: Self) -> M64x2 { M64x2(vcltq_f64(self.0, other.0)) }
        fn le(self, other: Self) -> M64x2 { M64x2(vcleq_f64(self.0, other.0)) }
        fn is_nan(self) -> M64x2 { !M64x2(vceqq_f64(self.0, self.0)) }
        fn select(self, mask: M64x2, other: Self) -> Self {
            Self(vbslq_f64(mask.0, self.0, other.0))
        }
        fn to_bits(self) -> I64x2 { I64x2(vreinterpretq_s64_f64(self.0)) }
        fn from_bits(bits: I64x2) -> Self { Self(vreinterpretq_f64_s64(bits.0)) }
        fn scale_by_power_of_two(self, k: I64x2) -> Self {
            // As in the scalar level: the factor that may round comes last.
            // k fits 32 bits, so the high half of its lane is 0 or -1 and clamping both halves
            // as 32-bit lanes clamps the lane.
            let last = vmaxq_s32(vreinterpretq_s32_s64(k.0), vdupq_n_s32(-1022));
            let last = vreinterpretq_s64_s32(vminq_s32(last, vdupq_n_s32(1023)));
            let one = vdupq_n_s64(1023 << 52);
            let power = |k| vreinterpretq_f64_s64(vaddq_s64(vshlq_n_s64::<52>(k), one));
            Self(vmulq_f64(vmulq_f64(self.0, power(vsubq_s64(k.0, last))), power(last)))
        }
        fn lookup8(table: &[f64; 8], index: I64x2, _like: Self) -> Self {
            let entry = |i: i64| table[(i & 7) as usize];
            let low = vdupq_n_f64(entry(vgetq_lane_s64::<0>(index.0)));
            Self(vsetq_lane_f64::<1>(entry(vgetq_lane_s64::<1>(index.0)), low))
        }
        fn lookup16(table: &[f64; 16], index: I64x2, _like: Self) -> Self {
            let entry = |i: i64| table[(i & 15) as usize];
            let low = vdupq_n_f64(entry(vgetq_lane_s64::<0>(index.0)));
            Self(vsetq_lane_f64::<1>(entry(vgetq_lane_s64::<1>(index.0)), low))
        }
        fn lookup32(table: &[f64; 32], index: I64x2, _like: Self) -> Self {
            let entry = |i: i64| table[(i & 31) as usize];
            let low = vdupq_n_f64(entry(vgetq_lane_s64::<0>(index.0)));
            Self(vsetq_lane_f64::<1>(entry(vgetq_lane_s64::<1>(index.0)), low))
        }
        fn interleave(self, other: Self) -> (Self, Self) {
            (Self(vzip1q_f64(self.0, other.0)), Self(vzip2q_f64(self.0, other.0)))
        }
    }
}

impl Lanes<f64> for Neon {
    type V = F64x2;
    type I = I64x2;
    type M = M64x2;
    const LANES: usize = 2;
    intrinsics! {
        fn splat(self, x: f64) -> F64x2 { F64x2(vdupq_n_f64(x)) }
        fn splat_int(self, x: i64) -> I64x2 { I64x2(vdupq_n_s64(x)) }
        fn first(self, count: usize) -> M64x2 {
            let lane = vld1q_u64([0, 1].as_ptr());
            M64x2(vcltq_u64(lane, vdupq_n_u64(count.min(2) as u64)))
        }
    }
    intrinsics! { unsafe:
        fn load(self, src: *const f64) -> F64x2 { F64x2(vld1q_f64(src)) }
        fn load_first(self, src: *const f64, count: usize) -> F64x2 {
            let mut lanes = [0.0; 2];
            copy_lanes(src, lanes.as_mut_ptr(), count.min(2));
            F64x2(vld1q_f64(lanes.as_ptr()))
        }
        fn load_f16(self, src: *const u16) -> F64x2 {
            let bits = vcreate_u16(u64::from(src.cast::<u32>().read_unaligned()));
            F64x2(vcvt_f64_f32(vget_low_f32(widen_f16(bits))))
        }
        fn load_bf16(self, src: *const u16) -> F64x2 {
            let bits = vcreate_u16(u64::from(src.cast::<u32>().read_unaligned()));
            let wide = vreinterpretq_f32_u32(vshll_n_u16::<16>(bits));
            F64x2(vcvt_f64_f32(vget_low_f32(wide)))
        }
        fn store(self, dst: *mut f64, x: F64x2) -> () { vst1q_f64(dst, x.0) }
        fn store_streaming(self, dst: *mut f64, x: F64x2) -> () { vst1q_f64(dst, x.0) }
        fn store_first(self, dst: *mut f64, count: usize, x: F64x2) -> () {
            let mut lanes = [0.0; 2];
            vst1q_f64(lanes.as_mut_ptr(), x.0);
            copy_lanes(lanes.as_ptr(), dst, count.min(2));
        }
        fn load_where(self, src: *const f64, mask: M64x2) -> F64x2 {
            if mask.all() {
                return Lanes::<f64>::load(self, src);
            }
            let (mut wanted, mut lanes) = ([0; 2], [0.0; 2]);
            vst1q_u64(wanted.as_mut_ptr(), mask.0);
            for i in 0..2 {
                if wanted[i] != 0 {
                    lanes[i] = src.wrapping_add(i).read_unaligned();
                }
            }
            F64x2(vld1q_f64(lanes.as_ptr()))
        }
        fn store_where(self, dst: *mut f64, mask: M64x2, x: F64x2) -> () {
            if mask.all() {
                return Lanes::<f64>::store(self, dst, x);
            }
            let (mut wanted, mut lanes) = ([0; 2], [0.0; 2]);
            vst1q_u64(wanted.as_mut_ptr(), mask.0);
            vst1q_f64(lanes.as_mut_ptr(), x.0);
            for i in 0..2 {
                if wanted[i] != 0 {
                    dst.wrapping_add(i).write_unaligned(lanes[i]);
                }
            }
        }
    }
}

/// The values of four IEEE binary16 numbers: the standard library's intrinsic is not stable.
///
/// # Safety
/// The CPU has NEON.
#[inline(always)]
unsafe fn widen_f16(bits: uint16x4_t) -> float32x4_t {
    let wide: float32x4_t;
    // SAFETY: an instruction of NEON that changes nothing but `wide`.
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

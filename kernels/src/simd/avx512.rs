//! AVX-512 (F, BW, CD, DQ, VL): 16 `f32` or 8 `f64` lanes; a mask is one bit a lane.

use core::arch::x86_64::*;
use core::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

use pulp::x86::V4;

use super::{HALVES, IntVector, Lanes, Mask, Rows, Simd, Token, Vector};
use crate::dispatch::{Isa, Task, enter_avx512};

impl Token for V4 {
    const ISA: Isa = Isa::Avx512;

    #[inline(always)]
    fn call<T: Task>(self, task: T) -> T::Output {
        // SAFETY: this token was made by detection, it covers every feature of the trampoline.
        unsafe { enter_avx512(self, task) }
    }

    intrinsics! {
        fn fence(self) -> () { _mm_sfence() }
        fn prefetch(self, address: *const u8) -> () { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
        fn prefetch_l2(self, address: *const u8) -> () { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
    }
}

vectors! {
    /// Sixteen floats.
    F32x16(__m512);
    /// Sixteen integers.
    I32x16(__m512i);
    /// Sixteen truth values.
    M16(__mmask16);
    /// Eight floats.
    F64x8(__m512d);
    /// Eight integers.
    I64x8(__m512i);
    /// Eight truth values.
    M8(__mmask8);
}

operators! {
    F32x16: Add add _mm512_add_ps, Sub sub _mm512_sub_ps, Mul mul _mm512_mul_ps, Div div _mm512_div_ps;
    F64x8: Add add _mm512_add_pd, Sub sub _mm512_sub_pd, Mul mul _mm512_mul_pd, Div div _mm512_div_pd;
    I32x16: Add add _mm512_add_epi32, Sub sub _mm512_sub_epi32, BitAnd bitand _mm512_and_si512,
        BitOr bitor _mm512_or_si512, BitXor bitxor _mm512_xor_si512;
    I64x8: Add add _mm512_add_epi64, Sub sub _mm512_sub_epi64, BitAnd bitand _mm512_and_si512,
        BitOr bitor _mm512_or_si512, BitXor bitxor _mm512_xor_si512;
    M16: BitAnd bitand BitAnd::bitand, BitOr bitor BitOr::bitor;
    M8: BitAnd bitand BitAnd::bitand, BitOr bitor BitOr::bitor;
}

impl Neg for F32x16 {
    type Output = Self;
    intrinsics! {
        fn neg(self) -> Self { Self(_mm512_xor_ps(self.0, _mm512_set1_ps(-0.0))) }
    }
}

impl Neg for F64x8 {
    type Output = Self;
    intrinsics! {
        fn neg(self) -> Self { Self(_mm512_xor_pd(self.0, _mm512_set1_pd(-0.0))) }
    }
}

macro_rules! bit_masks {
    ($($m:ident)*) => {$(
        impl Not for $m {
            type Output = Self;
            #[inline(always)]
            fn not(self) -> Self {
                Self(!self.0)
            }
        }

        impl Mask for $m {
            #[inline(always)]
            fn any(self) -> bool {
                self.0 != 0
            }
            #[inline(always)]
            fn all(self) -> bool {
                !self.0 == 0
            }
        }
    )*};
}
bit_masks!(M16 M8);

// The shifts take their count in a register and become immediate shifts once inlined: the
// immediate forms want an unsigned constant, which cannot be computed from `N`.
impl IntVector for I32x16 {
    type Mask = M16;
    intrinsics! {
        fn shl<const N: i32>(self) -> Self {
            Self(_mm512_sllv_epi32(self.0, _mm512_set1_epi32(N)))
        }
        fn shr<const N: i32>(self) -> Self {
            Self(_mm512_srlv_epi32(self.0, _mm512_set1_epi32(N)))
        }
        fn eq(self, other: Self) -> M16 { M16(_mm512_cmpeq_epi32_mask(self.0, other.0)) }
        fn gt(self, other: Self) -> M16 { M16(_mm512_cmpgt_epi32_mask(self.0, other.0)) }
        fn select(self, mask: M16, other: Self) -> Self {
            Self(_mm512_mask_blend_epi32(mask.0, other.0, self.0))
        }
    }
}

impl IntVector for I64x8 {
    type Mask = M8;
    intrinsics! {
        fn shl<const N: i32>(self) -> Self {
            Self(_mm512_sllv_epi64(self.0, _mm512_set1_epi64(N as i64)))
        }
        fn shr<const N: i32>(self) -> Self {
            Self(_mm512_srlv_epi64(self.0, _mm512_set1_epi64(N as i64)))
        }
        fn eq(self, other: Self) -> M8 { M8(_mm512_cmpeq_epi64_mask(self.0, other.0)) }
        fn gt(self, other: Self) -> M8 { M8(_mm512_cmpgt_epi64_mask(self.0, other.0)) }
        fn select(self, mask: M8, other: Self) -> Self {
            Self(_mm512_mask_blend_epi64(mask.0, other.0, self.0))
        }
    }
}

const ROUND: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

impl Vector for F32x16 {
    type Elem = f32;
    type Mask = M16;
    type Int = I32x16;
    intrinsics! {
        fn mul_add(self, a: Self, b: Self) -> Self { Self(_mm512_fmadd_ps(self.0, a.0, b.0)) }
        fn neg_mul_add(self, a: Self, b: Self) -> Self { Self(_mm512_fnmadd_ps(self.0, a.0, b.0)) }
        fn sqrt(self) -> Self { Self(_mm512_sqrt_ps(self.0)) }
        fn abs(self) -> Self { Self(_mm512_abs_ps(self.0)) }
        fn round_ties_even(self) -> Self { Self(_mm512_roundscale_ps::<ROUND>(self.0)) }
        fn min_or_other(self, other: Self) -> Self { Self(_mm512_min_ps(self.0, other.0)) }
        fn max_or_other(self, other: Self) -> Self { Self(_mm512_max_ps(self.0, other.0)) }
        fn eq(self, other: Self) -> M16 { M16(_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(self.0, other.0)) }
        fn lt(self, other: Self) -> M16 { M16(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, other.0)) }
        fn le(self, other: Self) -> M16 { M16(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(self.0, other.0)) }
        fn is_nan(self) -> M16 { M16(_mm512_cmp_ps_mask::<_CMP_UNORD_Q>(self.0, self.0)) }
        fn select(self, mask: M16, other: Self) -> Self {
            Self(_mm512_mask_blend_ps(mask.0, other.0, self.0))
        }
        fn to_bits(self) -> I32x16 { I32x16(_mm512_castps_si512(self.0)) }
        fn from_bits(bits: I32x16) -> Self { Self(_mm512_castsi512_ps(bits.0)) }
        fn scale_by_power_of_two(self, k: I32x16) -> Self {
            Self(_mm512_scalef_ps(self.0, _mm512_cvtepi32_ps(k.0)))
        }
        fn lookup8(table: &[f32; 8], index: I32x16, _like: Self) -> Self {
            // The permutation reads four bits of the index: the table twice makes the fourth free.
            let table = _mm512_broadcast_f32x8(_mm256_loadu_ps(table.as_ptr()));
            Self(_mm512_permutexvar_ps(index.0, table))
        }
        fn lookup16(table: &[f32; 16], index: I32x16, _like: Self) -> Self {
            Self(_mm512_permutexvar_ps(index.0, _mm512_loadu_ps(table.as_ptr())))
        }
        fn lookup32(table: &[f32; 32], index: I32x16, _like: Self) -> Self {
            let low = _mm512_loadu_ps(table.as_ptr());
            Self(_mm512_permutex2var_ps(low, index.0, _mm512_loadu_ps(table[16..].as_ptr())))
        }
        fn interleave(self, other: Self) -> (Self, Self) {
            let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
            (
                Self(_mm512_permutex2var_ps(self.0, low, other.0)),
                Self(_mm512_permutex2var_ps(self.0, high, other.0)),
            )
        }
    }
    #[inline(always)]
    fn transpose<const N: usize>(rows: [Self; N]) -> [Self; N] {
        // Within quarters of the register, 4 rows by 4 columns of them; then quarters change places.
        // Shuffles that stay in a quarter are faster than those of the general way.
        let mut quads = rows;
        for i in 0..4 {
            let [a, b, c, d] =
                [rows[4 * i].0, rows[4 * i + 1].0, rows[4 * i + 2].0, rows[4 * i + 3].0];
            // SAFETY: as in `intrinsics`.
            let columns = unsafe {
                let low = [_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d)];
                let high = [_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d)];
                [
                    _mm512_shuffle_ps::<0b01_00_01_00>(low[0], low[1]),
                    _mm512_shuffle_ps::<0b11_10_11_10>(low[0], low[1]),
                    _mm512_shuffle_ps::<0b01_00_01_00>(high[0], high[1]),
                    _mm512_shuffle_ps::<0b11_10_11_10>(high[0], high[1]),
                ]
            };
            for (j, column) in columns.into_iter().enumerate() {
                quads[4 * i + j] = Self(column);
            }
        }
        let mut out = quads;
        for j in 0..4 {
            let [a, b, c, d] = [quads[j].0, quads[4 + j].0, quads[8 + j].0, quads[12 + j].0];
            // SAFETY: as in `intrinsics`.
            let columns = unsafe {
                let (ab, cd) =
                    (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0x88>(c, d));
                let even =
                    [_mm512_shuffle_f32x4::<0x88>(ab, cd), _mm512_shuffle_f32x4::<0xdd>(ab, cd)];
                let (ab, cd) =
                    (_mm512_shuffle_f32x4::<0xdd>(a, b), _mm512_shuffle_f32x4::<0xdd>(c, d));
                let odd =
                    [_mm512_shuffle_f32x4::<0x88>(ab, cd), _mm512_shuffle_f32x4::<0xdd>(ab, cd)];
                [even[0], odd[0], even[1], odd[1]]
            };
            for (quarter, column) in columns.into_iter().enumerate() {
                out[4 * quarter + j] = Self(column);
            }
        }
        out
    }
}

impl Vector for F64x8 {
    type Elem = f64;
    type Mask = M8;
    type Int = I64x8;
    intrinsics! {
        fn mul_add(self, a: Self, b: Self) -> Self { Self(_mm512_fmadd_pd(self.0, a.0, b.0)) }
        fn neg_mul_add(self, a: Self, b: Self) -> Self { Self(_mm512_fnmadd_pd(self.0, a.0, b.0)) }
        fn sqrt(self) -> Self { Self(_mm512_sqrt_pd(self.0)) }
        fn abs(self) -> Self { Self(_mm512_abs_pd(self.0)) }
        fn round_ties_even(self) -> Self { Self(_mm512_roundscale_pd::<ROUND>(self.0)) }
        fn min_or_other(self, other: Self) -> Self { Self(_mm512_min_pd(self.0, other.0)) }
        fn max_or_other(self, other: Self) -> Self { Self(_mm512_max_pd(self.0, other.0)) }
        fn eq(self, other: Self) -> M8 { M8(_mm512_cmp_pd_mask::<_CMP_EQ_OQ>(self.0, other.0)) }
        fn lt(self, other: Self) -> M8 { M8(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(self.0, other.0)) }
        fn le(self, other: Self) -> M8 { M8(_mm512_cmp_pd_mask::<_CMP_LE_OQ>(self.0, other.0)) }
        fn is_nan(self) -> M8 { M8(_mm512_cmp_pd_mask::<_CMP_UNORD_Q>(self.0, self.0)) }
        fn select(self, mask: M8, other: Self) -> Self {
            Self(_mm512_mask_blend_pd(mask.0, other.0, self.0))
        }
        fn to_bits(self) -> I64x8 { I64x8(_mm512_castpd_si512(self.0)) }
        fn from_bits(bits: I64x8) -> Self { Self(_mm512_castsi512_pd(bits.0)) }
        fn scale_by_power_of_two(self, k: I64x8) -> Self {
            Self(_mm512_scalef_pd(self.0, _mm512_cvtepi64_pd(k.0)))
        }
        fn lookup8(table: &[f64; 8], index: I64x8, _like: Self) -> Self {
            Self(_mm512_permutexvar_pd(index.0, _mm512_loadu_pd(table.as_ptr())))
        }
        fn lookup16(table: &[f64; 16], index: I64x8, _like: Self) -> Self {
            let low = _mm512_loadu_pd(table.as_ptr());
            Self(_mm512_permutex2var_pd(low, index.0, _mm512_loadu_pd(table[8..].as_ptr())))
        }
        fn lookup32(table: &[f64; 32], index: I64x8, _like: Self) -> Self {
            // Each half takes four bits of the index; bit 4, moved to the sign, picks the half.
            let quarter = |i: usize| _mm512_loadu_pd(table[8 * i..].as_ptr());
            let low = _mm512_permutex2var_pd(quarter(0), index.0, quarter(1));
            let high = _mm512_permutex2var_pd(quarter(2), index.0, quarter(3));
            let is_high = _mm512_movepi64_mask(_mm512_slli_epi64::<59>(index.0));
            Self(_mm512_mask_blend_pd(is_high, low, high))
        }
        fn interleave(self, other: Self) -> (Self, Self) {
            let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
            let high = _mm512_add_epi64(low, _mm512_set1_epi64(4));
            (
                Self(_mm512_permutex2var_pd(self.0, low, other.0)),
                Self(_mm512_permutex2var_pd(self.0, high, other.0)),
            )
        }
    }
    #[inline(always)]
    fn transpose<const N: usize>(rows: [Self; N]) -> [Self; N] {
        // Pairs within quarters of the register; then quarters change places.
        let mut pairs = rows;
        for i in 0..4 {
            let (a, b) = (rows[2 * i].0, rows[2 * i + 1].0);
            // SAFETY: as in `intrinsics`.
            unsafe {
                pairs[2 * i] = Self(_mm512_unpacklo_pd(a, b));
                pairs[2 * i + 1] = Self(_mm512_unpackhi_pd(a, b));
            }
        }
        let mut out = pairs;
        for j in 0..2 {
            let [a, b, c, d] = [pairs[j].0, pairs[2 + j].0, pairs[4 + j].0, pairs[6 + j].0];
            // SAFETY: as in `intrinsics`.
            let columns = unsafe {
                let (ab, cd) =
                    (_mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0x88>(c, d));
                let even =
                    [_mm512_shuffle_f64x2::<0x88>(ab, cd), _mm512_shuffle_f64x2::<0xdd>(ab, cd)];
                let (ab, cd) =
                    (_mm512_shuffle_f64x2::<0xdd>(a, b), _mm512_shuffle_f64x2::<0xdd>(c, d));
                let odd =
                    [_mm512_shuffle_f64x2::<0x88>(ab, cd), _mm512_shuffle_f64x2::<0xdd>(ab, cd)];
                [even[0], odd[0], even[1], odd[1]]
            };
            for (quarter, column) in columns.into_iter().enumerate() {
                out[2 * quarter + j] = Self(column);
            }
        }
        out
    }
}

impl Lanes<f32> for V4 {
    type V = F32x16;
    type I = I32x16;
    type M = M16;
    const LANES: usize = 16;
    intrinsics! {
        fn splat(self, x: f32) -> F32x16 { F32x16(_mm512_set1_ps(x)) }
        fn splat_int(self, x: i32) -> I32x16 { I32x16(_mm512_set1_epi32(x)) }
        fn lookup_rows(self, table: &'static Rows<f32>, index: I32x16) -> [F32x16; 8] {
            let mut found = [F32x16(_mm512_setzero_ps()); 8];
            for (found, column) in found.iter_mut().zip(&table.columns) {
                let low = _mm512_loadu_ps(column.as_ptr());
                let high = _mm512_loadu_ps(column[16..].as_ptr());
                *found = F32x16(_mm512_permutex2var_ps(low, index.0, high));
            }
            found
        }
        fn first(self, count: usize) -> M16 { M16(((1u32 << count.min(16)) - 1) as __mmask16) }
    }
    intrinsics! { unsafe:
        fn load(self, src: *const f32) -> F32x16 { F32x16(_mm512_loadu_ps(src)) }
        fn load_first(self, src: *const f32, count: usize) -> F32x16 {
            F32x16(_mm512_maskz_loadu_ps(Lanes::<f32>::first(self, count).0, src))
        }
        fn load_f16(self, src: *const u16) -> F32x16 {
            F32x16(_mm512_cvtph_ps(_mm256_loadu_si256(src.cast())))
        }
        fn load_bf16(self, src: *const u16) -> F32x16 {
            let bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(src.cast()));
            F32x16(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(bits)))
        }
        fn store(self, dst: *mut f32, x: F32x16) -> () { _mm512_storeu_ps(dst, x.0) }
        fn store_streaming(self, dst: *mut f32, x: F32x16) -> () { _mm512_stream_ps(dst, x.0) }
        fn store_first(self, dst: *mut f32, count: usize, x: F32x16) -> () {
            _mm512_mask_storeu_ps(dst, Lanes::<f32>::first(self, count).0, x.0)
        }
        fn load_where(self, src: *const f32, mask: M16) -> F32x16 {
            F32x16(_mm512_maskz_loadu_ps(mask.0, src))
        }
        fn store_where(self, dst: *mut f32, mask: M16, x: F32x16) -> () {
            _mm512_mask_storeu_ps(dst, mask.0, x.0)
        }
    }
}

impl Lanes<f64> for V4 {
    type V = F64x8;
    type I = I64x8;
    type M = M8;
    const LANES: usize = 8;
    intrinsics! {
        fn splat(self, x: f64) -> F64x8 { F64x8(_mm512_set1_pd(x)) }
        fn splat_int(self, x: i64) -> I64x8 { I64x8(_mm512_set1_epi64(x)) }
        fn first(self, count: usize) -> M8 { M8(((1u32 << count.min(8)) - 1) as __mmask8) }
    }
    intrinsics! { unsafe:
        fn load(self, src: *const f64) -> F64x8 { F64x8(_mm512_loadu_pd(src)) }
        fn load_first(self, src: *const f64, count: usize) -> F64x8 {
            F64x8(_mm512_maskz_loadu_pd(Lanes::<f64>::first(self, count).0, src))
        }
        fn load_f16(self, src: *const u16) -> F64x8 {
            F64x8(_mm512_cvtps_pd(_mm512_castps512_ps256(_mm512_cvtph_ps(_mm256_castsi128_si256(
                _mm_loadu_si128(src.cast()),
            )))))
        }
        fn load_bf16(self, src: *const u16) -> F64x8 {
            let bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(src.cast()));
            F64x8(_mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits))))
        }
        fn store(self, dst: *mut f64, x: F64x8) -> () { _mm512_storeu_pd(dst, x.0) }
        fn store_streaming(self, dst: *mut f64, x: F64x8) -> () { _mm512_stream_pd(dst, x.0) }
        fn store_first(self, dst: *mut f64, count: usize, x: F64x8) -> () {
            _mm512_mask_storeu_pd(dst, Lanes::<f64>::first(self, count).0, x.0)
        }
        fn load_where(self, src: *const f64, mask: M8) -> F64x8 {
            F64x8(_mm512_maskz_loadu_pd(mask.0, src))
        }
        fn store_where(self, dst: *mut f64, mask: M8, x: F64x8) -> () {
            _mm512_mask_storeu_pd(dst, mask.0, x.0)
        }
    }
}

impl Simd for V4 {
    intrinsics! {
        fn widen_f16(self, x: &[[u16; HALVES]], y: &mut [[f32; HALVES]]) -> () {
            for (x, y) in x.iter().zip(y) {
                let bits = _mm256_loadu_si256(x.as_ptr().cast());
                _mm512_storeu_ps(y.as_mut_ptr(), _mm512_cvtph_ps(bits));
            }
        }
        fn narrow_f16(self, x: &[[f32; HALVES]], y: &mut [[u16; HALVES]]) -> () {
            for (x, y) in x.iter().zip(y) {
                let bits = _mm512_cvtps_ph::<ROUND>(_mm512_loadu_ps(x.as_ptr()));
                _mm256_storeu_si256(y.as_mut_ptr().cast(), bits);
            }
        }
    }
    intrinsics! { unsafe:
        fn load_widened(self, src: *const f32) -> F64x8 {
            F64x8(_mm512_cvtps_pd(_mm256_loadu_ps(src)))
        }
        fn load_first_widened(self, src: *const f32, count: usize) -> F64x8 {
            let mask = Lanes::<f64>::first(self, count).0;
            F64x8(_mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, src)))
        }
        fn store_narrowed(self, dst: *mut f32, x: F64x8) -> () {
            _mm256_storeu_ps(dst, _mm512_cvtpd_ps(x.0))
        }
    }
}

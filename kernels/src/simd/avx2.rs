//! AVX2, FMA and F16C: 8 `f32` or 4 `f64` lanes; a mask is a vector whose lanes are all ones or all zeros.

use core::arch::x86_64::*;
use core::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

use pulp::x86::V3;

use super::{HALVES, IntVector, Lanes, Mask, Rows, Simd, Token, Vector};
use crate::dispatch::{Isa, Task, enter_avx2};

/// Proves AVX2, FMA and F16C.
#[derive(Clone, Copy)]
pub struct Avx2(#[allow(dead_code, reason = "it is a proof")] V3);

impl Avx2 {
    /// The token, if the machine has what it stands for.
    pub fn try_new() -> Option<Self> {
        V3::try_new().filter(|_| std::arch::is_x86_feature_detected!("f16c")).map(Avx2)
    }

    /// The token.
    ///
    /// # Safety
    /// The machine has AVX2, FMA and F16C.
    pub unsafe fn new_unchecked() -> Self {
        // SAFETY: as the caller promises.
        Avx2(unsafe { V3::new_unchecked() })
    }
}

impl Token for Avx2 {
    const ISA: Isa = Isa::Avx2;

    #[inline(always)]
    fn call<T: Task>(self, task: T) -> T::Output {
        // SAFETY: this token was made by detection, it covers every feature of the trampoline.
        unsafe { enter_avx2(self, task) }
    }

    intrinsics! {
        fn fence(self) -> () { _mm_sfence() }
        fn prefetch(self, address: *const u8) -> () { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
        fn prefetch_l2(self, address: *const u8) -> () { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
    }
}

vectors! {
    /// Eight floats.
    F32x8(__m256);
    /// Eight integers.
    I32x8(__m256i);
    /// Eight truth values.
    M32x8(__m256i);
    /// Four floats.
    F64x4(__m256d);
    /// Four integers.
    I64x4(__m256i);
    /// Four truth values.
    M64x4(__m256i);
}

operators! {
    F32x8: Add add _mm256_add_ps, Sub sub _mm256_sub_ps, Mul mul _mm256_mul_ps, Div div _mm256_div_ps;
    F64x4: Add add _mm256_add_pd, Sub sub _mm256_sub_pd, Mul mul _mm256_mul_pd, Div div _mm256_div_pd;
    I32x8: Add add _mm256_add_epi32, Sub sub _mm256_sub_epi32, BitAnd bitand _mm256_and_si256,
        BitOr bitor _mm256_or_si256, BitXor bitxor _mm256_xor_si256;
    I64x4: Add add _mm256_add_epi64, Sub sub _mm256_sub_epi64, BitAnd bitand _mm256_and_si256,
        BitOr bitor _mm256_or_si256, BitXor bitxor _mm256_xor_si256;
    M32x8: BitAnd bitand _mm256_and_si256, BitOr bitor _mm256_or_si256;
    M64x4: BitAnd bitand _mm256_and_si256, BitOr bitor _mm256_or_si256;
}

impl Neg for F32x8 {
    type Output = Self;
    intrinsics! {
        fn neg(self) -> Self { Self(_mm256_xor_ps(self.0, _mm256_set1_ps(-0.0))) }
    }
}

impl Neg for F64x4 {
    type Output = Self;
    intrinsics! {
        fn neg(self) -> Self { Self(_mm256_xor_pd(self.0, _mm256_set1_pd(-0.0))) }
    }
}

impl Not for M32x8 {
    type Output = Self;
    intrinsics! {
        fn not(self) -> Self { Self(_mm256_xor_si256(self.0, _mm256_set1_epi8(-1))) }
    }
}

impl Not for M64x4 {
    type Output = Self;
    intrinsics! {
        fn not(self) -> Self { Self(_mm256_xor_si256(self.0, _mm256_set1_epi8(-1))) }
    }
}

impl Mask for M32x8 {
    intrinsics! {
        fn any(self) -> bool { _mm256_movemask_ps(_mm256_castsi256_ps(self.0)) != 0 }
        fn all(self) -> bool { _mm256_movemask_ps(_mm256_castsi256_ps(self.0)) == 0xff }
    }
}

impl Mask for M64x4 {
    intrinsics! {
        fn any(self) -> bool { _mm256_movemask_pd(_mm256_castsi256_pd(self.0)) != 0 }
        fn all(self) -> bool { _mm256_movemask_pd(_mm256_castsi256_pd(self.0)) == 0xf }
    }
}

impl IntVector for I32x8 {
    type Mask = M32x8;
    intrinsics! {
        fn shl<const N: i32>(self) -> Self { Self(_mm256_slli_epi32::<N>(self.0)) }
        fn shr<const N: i32>(self) -> Self { Self(_mm256_srli_epi32::<N>(self.0)) }
        fn eq(self, other: Self) -> M32x8 { M32x8(_mm256_cmpeq_epi32(self.0, other.0)) }
        fn gt(self, other: Self) -> M32x8 { M32x8(_mm256_cmpgt_epi32(self.0, other.0)) }
        fn select(self, mask: M32x8, other: Self) -> Self {
            Self(_mm256_blendv_epi8(other.0, self.0, mask.0))
        }
    }
}

impl IntVector for I64x4 {
    type Mask = M64x4;
    intrinsics! {
        fn shl<const N: i32>(self) -> Self { Self(_mm256_slli_epi64::<N>(self.0)) }
        fn shr<const N: i32>(self) -> Self { Self(_mm256_srli_epi64::<N>(self.0)) }
        fn eq(self, other: Self) -> M64x4 { M64x4(_mm256_cmpeq_epi64(self.0, other.0)) }
        fn gt(self, other: Self) -> M64x4 { M64x4(_mm256_cmpgt_epi64(self.0, other.0)) }
        fn select(self, mask: M64x4, other: Self) -> Self {
            Self(_mm256_blendv_epi8(other.0, self.0, mask.0))
        }
    }
}

impl Vector for F32x8 {
    type Elem = f32;
    type Mask = M32x8;
    type Int = I32x8;
    intrinsics! {
        fn mul_add(self, a: Self, b: Self) -> Self { Self(_mm256_fmadd_ps(self.0, a.0, b.0)) }
        fn neg_mul_add(self, a: Self, b: Self) -> Self { Self(_mm256_fnmadd_ps(self.0, a.0, b.0)) }
        fn sqrt(self) -> Self { Self(_mm256_sqrt_ps(self.0)) }
        fn abs(self) -> Self { Self(_mm256_andnot_ps(_mm256_set1_ps(-0.0), self.0)) }
        fn round_ties_even(self) -> Self { Self(_mm256_round_ps::<ROUND>(self.0)) }
        fn min_or_other(self, other: Self) -> Self { Self(_mm256_min_ps(self.0, other.0)) }
        fn max_or_other(self, other: Self) -> Self { Self(_mm256_max_ps(self.0, other.0)) }
        fn eq(self, other: Self) -> M32x8 {
            M32x8(_mm256_castps_si256(_mm256_cmp_ps::<_CMP_EQ_OQ>(self.0, other.0)))
        }
        fn lt(self, other: Self) -> M32x8 {
            M32x8(_mm256_castps_si256(_mm256_cmp_ps::<_CMP_LT_OQ>(self.0, other.0)))
        }
        fn le(self, other: Self) -> M32x8 {
            M32x8(_mm256_castps_si256(_mm256_cmp_ps::<_CMP_LE_OQ>(self.0, other.0)))
        }
        fn is_nan(self) -> M32x8 {
            M32x8(_mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(self.0, self.0)))
        }
        fn select(self, mask: M32x8, other: Self) -> Self {
            Self(_mm256_blendv_ps(other.0, self.0, _mm256_castsi256_ps(mask.0)))
        }
        fn to_bits(self) -> I32x8 { I32x8(_mm256_castps_si256(self.0)) }
        fn from_bits(bits: I32x8) -> Self { Self(_mm256_castsi256_ps(bits.0)) }
        fn scale_by_power_of_two(self, k: I32x8) -> Self {
            // As in the scalar level: the factor that may round comes last.
            let last = _mm256_max_epi32(k.0, _mm256_set1_epi32(-126));
            let last = _mm256_min_epi32(last, _mm256_set1_epi32(127));
            let one = _mm256_set1_epi32(127 << 23);
            let first = _mm256_slli_epi32::<23>(_mm256_sub_epi32(k.0, last));
            let first = _mm256_castsi256_ps(_mm256_add_epi32(first, one));
            let last = _mm256_add_epi32(_mm256_slli_epi32::<23>(last), one);
            Self(_mm256_mul_ps(_mm256_mul_ps(self.0, first), _mm256_castsi256_ps(last)))
        }
        fn lookup8(table: &[f32; 8], index: I32x8, _like: Self) -> Self {
            Self(_mm256_permutevar8x32_ps(_mm256_loadu_ps(table.as_ptr()), index.0))
        }
        fn lookup16(table: &[f32; 16], index: I32x8, _like: Self) -> Self {
            // Each half takes three bits of the index; bit 3, moved to the sign, picks the half.
            let half = |i: usize| {
                _mm256_permutevar8x32_ps(_mm256_loadu_ps(table[8 * i..].as_ptr()), index.0)
            };
            let is_high = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(index.0));
            Self(_mm256_blendv_ps(half(0), half(1), is_high))
        }
        fn lookup32(table: &[f32; 32], index: I32x8, _like: Self) -> Self {
            let quarter = |i: usize| {
                _mm256_permutevar8x32_ps(_mm256_loadu_ps(table[8 * i..].as_ptr()), index.0)
            };
            let is_odd = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(index.0));
            let is_high = _mm256_castsi256_ps(_mm256_slli_epi32::<27>(index.0));
            let low = _mm256_blendv_ps(quarter(0), quarter(1), is_odd);
            let high = _mm256_blendv_ps(quarter(2), quarter(3), is_odd);
            Self(_mm256_blendv_ps(low, high, is_high))
        }
        fn interleave(self, other: Self) -> (Self, Self) {
            // Within halves: a0 b0 a1 b1 | a4 b4 a5 b5 and a2 b2 a3 b3 | a6 b6 a7 b7.
            let low = _mm256_unpacklo_ps(self.0, other.0);
            let high = _mm256_unpackhi_ps(self.0, other.0);
            (
                Self(_mm256_permute2f128_ps::<0x20>(low, high)),
                Self(_mm256_permute2f128_ps::<0x31>(low, high)),
            )
        }
    }
    #[inline(always)]
    fn transpose<const N: usize>(rows: [Self; N]) -> [Self; N] {
        // Halves apart: pairs of rows, then of pairs; the halves meet last. Half the shuffles of the
        // general way.
        //   a0 b0 a1 b1 | a4 b4 a5 b5     a0 b0 c0 d0 | a4 b4 c4 d4     a0 b0 … h0, a4 b4 … h4
        let mut out = rows;
        for half in 0..2 {
            let (a, b) = (rows[4 * half].0, rows[4 * half + 1].0);
            let (c, d) = (rows[4 * half + 2].0, rows[4 * half + 3].0);
            // SAFETY: as in `intrinsics`.
            let quads = unsafe {
                let (ab_low, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                let (cd_low, cd_high) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
                [
                    _mm256_shuffle_ps::<0b01_00_01_00>(ab_low, cd_low),
                    _mm256_shuffle_ps::<0b11_10_11_10>(ab_low, cd_low),
                    _mm256_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high),
                    _mm256_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high),
                ]
            };
            for i in 0..4 {
                out[4 * half + i] = Self(quads[i]);
            }
        }
        for i in 0..4 {
            let (low, high) = (out[i].0, out[4 + i].0);
            // SAFETY: as in `intrinsics`.
            unsafe {
                out[i] = Self(_mm256_permute2f128_ps::<0x20>(low, high));
                out[4 + i] = Self(_mm256_permute2f128_ps::<0x31>(low, high));
            }
        }
        out
    }
}

const ROUND: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

impl Vector for F64x4 {
    type Elem = f64;
    type Mask = M64x4;
    type Int = I64x4;
    intrinsics! {
        fn mul_add(self, a: Self, b: Self) -> Self { Self(_mm256_fmadd_pd(self.0, a.0, b.0)) }
        fn neg_mul_add(self, a: Self, b: Self) -> Self { Self(_mm256_fnmadd_pd(self.0, a.0, b.0)) }
        fn sqrt(self) -> Self { Self(_mm256_sqrt_pd(self.0)) }
        fn abs(self) -> Self { Self(_mm256_andnot_pd(_mm256_set1_pd(-0.0), self.0)) }
        fn round_ties_even(self) -> Self { Self(_mm256_round_pd::<ROUND>(self.0)) }
        fn min_or_other(self, other: Self) -> Self { Self(_mm256_min_pd(self.0, other.0)) }
        fn max_or_other(self, other: Self) -> Self { Self(_mm256_max_pd(self.0, other.0)) }
        fn eq(self, other: Self) -> M64x4 {
            M64x4(_mm256_castpd_si256(_mm256_cmp_pd::<_CMP_EQ_OQ>(self.0, other.0)))
        }
        fn lt(self, other: Self) -> M64x4 {
            M64x4(_mm256_castpd_si256(_mm256_cmp_pd::<_CMP_LT_OQ>(self.0, other.0)))
        }
        fn le(self, other: Self) -> M64x4 {
            M64x4(_mm256_castpd_si256(_mm256_cmp_pd::<_CMP_LE_OQ>(self.0, other.0)))
        }
        fn is_nan(self) -> M64x4 {
            M64x4(_mm256_castpd_si256(_mm256_cmp_pd::<_CMP_UNORD_Q>(self.0, self.0)))
        }
        fn select(self, mask: M64x4, other: Self) -> Self {
            Self(_mm256_blendv_pd(other.0, self.0, _mm256_castsi256_pd(mask.0)))
        }
        fn to_bits(self) -> I64x4 { I64x4(_mm256_castpd_si256(self.0)) }
        fn from_bits(bits: I64x4) -> Self { Self(_mm256_castsi256_pd(bits.0)) }
        fn scale_by_power_of_two(self, k: I64x4) -> Self {
            // k fits 32 bits, so the high half of its lane is 0 or -1 and clamping both halves
            // as 32-bit lanes clamps the lane.
            let last = _mm256_max_epi32(k.0, _mm256_set1_epi32(-1022));
            let last = _mm256_min_epi32(last, _mm256_set1_epi32(1023));
            let one = _mm256_set1_epi64x(1023 << 52);
            let first = _mm256_slli_epi64::<52>(_mm256_sub_epi64(k.0, last));
            let first = _mm256_castsi256_pd(_mm256_add_epi64(first, one));
            let last = _mm256_add_epi64(_mm256_slli_epi64::<52>(last), one);
            Self(_mm256_mul_pd(_mm256_mul_pd(self.0, first), _mm256_castsi256_pd(last)))
        }
        fn lookup8(table: &[f64; 8], index: I64x4, _like: Self) -> Self {
            // Each half of the table is permuted as pairs of 32 bits; bit 2 picks the half.
            let pair = _mm256_shuffle_epi32::<0b10_10_00_00>(_mm256_slli_epi64::<1>(index.0));
            let pair = _mm256_add_epi32(pair, _mm256_set1_epi64x(1 << 32));
            let low = _mm256_castpd_ps(_mm256_loadu_pd(table.as_ptr()));
            let high = _mm256_castpd_ps(_mm256_loadu_pd(table[4..].as_ptr()));
            let low = _mm256_castps_pd(_mm256_permutevar8x32_ps(low, pair));
            let high = _mm256_castps_pd(_mm256_permutevar8x32_ps(high, pair));
            let is_high = _mm256_castsi256_pd(_mm256_slli_epi64::<61>(index.0));
            Self(_mm256_blendv_pd(low, high, is_high))
        }
        fn lookup16(table: &[f64; 16], index: I64x4, _like: Self) -> Self {
            // Four elements read one by one take less than four permutations and three blends.
            let entry = |i: i64| table[(i & 15) as usize];
            let [i, j] = [_mm256_castsi256_si128(index.0), _mm256_extracti128_si256::<1>(index.0)];
            let pair = |i: __m128i| {
                _mm_set_pd(entry(_mm_extract_epi64::<1>(i)), entry(_mm_cvtsi128_si64(i)))
            };
            Self(_mm256_set_m128d(pair(j), pair(i)))
        }
        fn lookup32(table: &[f64; 32], index: I64x4, _like: Self) -> Self {
            let entry = |i: i64| table[(i & 31) as usize];
            let [i, j] = [_mm256_castsi256_si128(index.0), _mm256_extracti128_si256::<1>(index.0)];
            let pair = |i: __m128i| {
                _mm_set_pd(entry(_mm_extract_epi64::<1>(i)), entry(_mm_cvtsi128_si64(i)))
            };
            Self(_mm256_set_m128d(pair(j), pair(i)))
        }
        fn interleave(self, other: Self) -> (Self, Self) {
            let low = _mm256_unpacklo_pd(self.0, other.0);
            let high = _mm256_unpackhi_pd(self.0, other.0);
            (
                Self(_mm256_permute2f128_pd::<0x20>(low, high)),
                Self(_mm256_permute2f128_pd::<0x31>(low, high)),
            )
        }
    }
    #[inline(always)]
    fn transpose<const N: usize>(rows: [Self; N]) -> [Self; N] {
        let mut out = rows;
        for i in 0..2 {
            // a0 b0 | a2 b2 and a1 b1 | a3 b3, c0 d0 | c2 d2 and c1 d1 | c3 d3.
            let (a, b, c, d) = (rows[0].0, rows[1].0, rows[2].0, rows[3].0);
            // SAFETY: as in `intrinsics`.
            unsafe {
                let (ab, cd) = match i {
                    0 => (_mm256_unpacklo_pd(a, b), _mm256_unpacklo_pd(c, d)),
                    _ => (_mm256_unpackhi_pd(a, b), _mm256_unpackhi_pd(c, d)),
                };
                out[i] = Self(_mm256_permute2f128_pd::<0x20>(ab, cd));
                out[2 + i] = Self(_mm256_permute2f128_pd::<0x31>(ab, cd));
            }
        }
        out
    }
}

impl Lanes<f32> for Avx2 {
    type V = F32x8;
    type I = I32x8;
    type M = M32x8;
    const LANES: usize = 8;
    intrinsics! {
        fn splat(self, x: f32) -> F32x8 { F32x8(_mm256_set1_ps(x)) }
        fn splat_int(self, x: i32) -> I32x8 { I32x8(_mm256_set1_epi32(x)) }
        fn lookup_rows(self, table: &'static Rows<f32>, index: I32x8) -> [F32x8; 8] {
            // Lanes i and i + 4 load half a row each into the halves of one register; four such
            // registers are transposed within halves.
            // Rows start at multiples of 32 bytes below 32 * 32.
            let offsets = _mm256_slli_epi32::<5>(_mm256_and_si256(index.0, _mm256_set1_epi32(31)));
            let pairs = [
                _mm256_extract_epi64::<0>(offsets),
                _mm256_extract_epi64::<1>(offsets),
                _mm256_extract_epi64::<2>(offsets),
                _mm256_extract_epi64::<3>(offsets),
            ];
            let rows: [*const f32; 8] = core::array::from_fn(|lane| {
                let offset = (pairs[lane / 2] >> (lane % 2 * 32)) as u32;
                table.rows.as_ptr().byte_add(offset as usize).cast()
            });
            let ([a, b, c, d], [e, f, g, h]) = (half_rows(&rows, 0), half_rows(&rows, 4));
            [a, b, c, d, e, f, g, h]
        }
        fn first(self, count: usize) -> M32x8 {
            let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            M32x8(_mm256_cmpgt_epi32(_mm256_set1_epi32(count.min(8) as i32), lane))
        }
    }
    intrinsics! { unsafe:
        fn load(self, src: *const f32) -> F32x8 { F32x8(_mm256_loadu_ps(src)) }
        fn load_first(self, src: *const f32, count: usize) -> F32x8 {
            F32x8(_mm256_maskload_ps(src, Lanes::<f32>::first(self, count).0))
        }
        fn load_f16(self, src: *const u16) -> F32x8 {
            F32x8(_mm256_cvtph_ps(_mm_loadu_si128(src.cast())))
        }
        fn load_bf16(self, src: *const u16) -> F32x8 {
            let bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(src.cast()));
            F32x8(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits)))
        }
        fn store(self, dst: *mut f32, x: F32x8) -> () { _mm256_storeu_ps(dst, x.0) }
        fn store_streaming(self, dst: *mut f32, x: F32x8) -> () { _mm256_stream_ps(dst, x.0) }
        fn store_first(self, dst: *mut f32, count: usize, x: F32x8) -> () {
            _mm256_maskstore_ps(dst, Lanes::<f32>::first(self, count).0, x.0)
        }
        fn load_where(self, src: *const f32, mask: M32x8) -> F32x8 {
            F32x8(_mm256_maskload_ps(src, mask.0))
        }
        fn store_where(self, dst: *mut f32, mask: M32x8, x: F32x8) -> () {
            _mm256_maskstore_ps(dst, mask.0, x.0)
        }
    }
}

impl Lanes<f64> for Avx2 {
    type V = F64x4;
    type I = I64x4;
    type M = M64x4;
    const LANES: usize = 4;
    intrinsics! {
        fn splat(self, x: f64) -> F64x4 { F64x4(_mm256_set1_pd(x)) }
        fn splat_int(self, x: i64) -> I64x4 { I64x4(_mm256_set1_epi64x(x)) }
        fn first(self, count: usize) -> M64x4 {
            let lane = _mm256_setr_epi64x(0, 1, 2, 3);
            M64x4(_mm256_cmpgt_epi64(_mm256_set1_epi64x(count.min(4) as i64), lane))
        }
    }
    intrinsics! { unsafe:
        fn load(self, src: *const f64) -> F64x4 { F64x4(_mm256_loadu_pd(src)) }
        fn load_first(self, src: *const f64, count: usize) -> F64x4 {
            F64x4(_mm256_maskload_pd(src, Lanes::<f64>::first(self, count).0))
        }
        fn load_f16(self, src: *const u16) -> F64x4 {
            F64x4(_mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64(src.cast()))))
        }
        fn load_bf16(self, src: *const u16) -> F64x4 {
            let bits = _mm_slli_epi32::<16>(_mm_cvtepu16_epi32(_mm_loadl_epi64(src.cast())));
            F64x4(_mm256_cvtps_pd(_mm_castsi128_ps(bits)))
        }
        fn store(self, dst: *mut f64, x: F64x4) -> () { _mm256_storeu_pd(dst, x.0) }
        fn store_streaming(self, dst: *mut f64, x: F64x4) -> () { _mm256_stream_pd(dst, x.0) }
        fn store_first(self, dst: *mut f64, count: usize, x: F64x4) -> () {
            _mm256_maskstore_pd(dst, Lanes::<f64>::first(self, count).0, x.0)
        }
        fn load_where(self, src: *const f64, mask: M64x4) -> F64x4 {
            F64x4(_mm256_maskload_pd(src, mask.0))
        }
        fn store_where(self, dst: *mut f64, mask: M64x4, x: F64x4) -> () {
            _mm256_maskstore_pd(dst, mask.0, x.0)
        }
    }
}

/// Four columns from `first` on of eight rows, as [`Lanes::lookup_rows`] has them. A function, not a
/// closure: it must be inlined, or each instruction would be a call.
///
/// # Safety
/// The CPU has AVX; every row holds eight numbers; `first` is 0 or 4.
#[inline(always)]
unsafe fn half_rows(rows: &[*const f32; 8], first: usize) -> [F32x8; 4] {
    // SAFETY: as the caller promised.
    unsafe {
        let [a, b, c, d] = [
            pair_of_halves(rows[0].add(first), rows[4].add(first)),
            pair_of_halves(rows[1].add(first), rows[5].add(first)),
            pair_of_halves(rows[2].add(first), rows[6].add(first)),
            pair_of_halves(rows[3].add(first), rows[7].add(first)),
        ];
        let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
        let (ef, gh) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
        [
            F32x8(_mm256_shuffle_ps::<0b01_00_01_00>(ab, cd)),
            F32x8(_mm256_shuffle_ps::<0b11_10_11_10>(ab, cd)),
            F32x8(_mm256_shuffle_ps::<0b01_00_01_00>(ef, gh)),
            F32x8(_mm256_shuffle_ps::<0b11_10_11_10>(ef, gh)),
        ]
    }
}

/// # Safety
/// The CPU has AVX; both are valid for reads of four numbers.
#[inline(always)]
unsafe fn pair_of_halves(low: *const f32, high: *const f32) -> __m256 {
    // SAFETY: as the caller promised.
    unsafe {
        _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high))
    }
}

impl Simd for Avx2 {
    intrinsics! {
        fn widen_f16(self, x: &[[u16; HALVES]], y: &mut [[f32; HALVES]]) -> () {
            let (x, y) = (x.as_flattened().as_chunks::<8>(), y.as_flattened_mut().as_chunks_mut::<8>());
            for (x, y) in x.0.iter().zip(y.0) {
                let bits = _mm_loadu_si128(x.as_ptr().cast());
                _mm256_storeu_ps(y.as_mut_ptr(), _mm256_cvtph_ps(bits));
            }
        }
        fn narrow_f16(self, x: &[[f32; HALVES]], y: &mut [[u16; HALVES]]) -> () {
            let (x, y) = (x.as_flattened().as_chunks::<8>(), y.as_flattened_mut().as_chunks_mut::<8>());
            for (x, y) in x.0.iter().zip(y.0) {
                let bits = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(x.as_ptr()));
                _mm_storeu_si128(y.as_mut_ptr().cast(), bits);
            }
        }
    }
    intrinsics! { unsafe:
        fn load_widened(self, src: *const f32) -> F64x4 {
            F64x4(_mm256_cvtps_pd(_mm_loadu_ps(src)))
        }
        fn load_first_widened(self, src: *const f32, count: usize) -> F64x4 {
            let lane = _mm_setr_epi32(0, 1, 2, 3);
            let mask = _mm_cmpgt_epi32(_mm_set1_epi32(count.min(4) as i32), lane);
            F64x4(_mm256_cvtps_pd(_mm_maskload_ps(src, mask)))
        }
        fn store_narrowed(self, dst: *mut f32, x: F64x4) -> () {
            _mm_storeu_ps(dst, _mm256_cvtpd_ps(x.0))
        }
    }
}

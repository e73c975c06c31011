//! AVX-512 (F, BW, CD, DQ, VL): 16 `f32` or 8 `f64` lanes; a mask is one bit per lane.

use core::arch::x86_64::*;
use core::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

use super::enter::{Avx512, enter_avx512};
use super::{IntVector, Lanes, Mask, Rows, Simd, Token, Vector};
use super::{Isa, Task};

impl Token for Avx512 {
    const ISA: Isa = Isa::Avx512;

    #[inline(always)]
    fn call<T: Task>(self, task: T) -> T::Output {
        // SAFETY: this token was made by detection, which covers every feature of the trampoline.
        unsafe { enter_avx512(self, task) }
    }

    intrinsics! {
        fn fence(self) -> () { _mm_sfence() }
        fn prefetch(self, address: *const u8) -> () { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
        fn prefetch_l2(self, address: *const u8) -> () { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
    }
}

/// Intrinsics of 32-bit lanes under the names that `lanes!` gives them.
mod ps {
    pub(super) use core::arch::x86_64::{
        _mm512_abs_ps as abs, _mm512_add_epi32 as add_int, _mm512_add_ps as add,
        _mm512_castps_si512 as to_bits, _mm512_castsi512_ps as from_bits,
        _mm512_cmp_ps_mask as compare, _mm512_cmpeq_epi32_mask as equal_int,
        _mm512_cmpgt_epi32_mask as greater_int, _mm512_cvtepi32_ps as from_int,
        _mm512_div_ps as div, _mm512_fmadd_ps as mul_add, _mm512_fnmadd_ps as neg_mul_add,
        _mm512_loadu_ps as load, _mm512_mask_blend_epi32 as blend_int,
        _mm512_mask_blend_ps as blend, _mm512_mask_storeu_ps as mask_store,
        _mm512_maskz_loadu_ps as mask_load, _mm512_max_ps as max, _mm512_min_ps as min,
        _mm512_mul_ps as mul, _mm512_permutex2var_ps as permute_pair,
        _mm512_roundscale_ps as round, _mm512_scalef_ps as scale, _mm512_set1_epi32 as splat_int,
        _mm512_set1_ps as splat, _mm512_setr_epi32 as integers,
        _mm512_shuffle_f32x4 as shuffle_quarters, _mm512_sllv_epi32 as shift_left,
        _mm512_sqrt_ps as sqrt, _mm512_srlv_epi32 as shift_right, _mm512_storeu_ps as store,
        _mm512_stream_ps as stream, _mm512_sub_epi32 as sub_int, _mm512_sub_ps as sub,
        _mm512_xor_ps as xor,
    };
}

/// Intrinsics of 64-bit lanes under the names that `lanes!` gives them.
mod pd {
    pub(super) use core::arch::x86_64::{
        _mm512_abs_pd as abs, _mm512_add_epi64 as add_int, _mm512_add_pd as add,
        _mm512_castpd_si512 as to_bits, _mm512_castsi512_pd as from_bits,
        _mm512_cmp_pd_mask as compare, _mm512_cmpeq_epi64_mask as equal_int,
        _mm512_cmpgt_epi64_mask as greater_int, _mm512_cvtepi64_pd as from_int,
        _mm512_div_pd as div, _mm512_fmadd_pd as mul_add, _mm512_fnmadd_pd as neg_mul_add,
        _mm512_loadu_pd as load, _mm512_mask_blend_epi64 as blend_int,
        _mm512_mask_blend_pd as blend, _mm512_mask_storeu_pd as mask_store,
        _mm512_maskz_loadu_pd as mask_load, _mm512_max_pd as max, _mm512_min_pd as min,
        _mm512_mul_pd as mul, _mm512_permutex2var_pd as permute_pair,
        _mm512_roundscale_pd as round, _mm512_scalef_pd as scale, _mm512_set1_epi64 as splat_int,
        _mm512_set1_pd as splat, _mm512_setr_epi64 as integers,
        _mm512_shuffle_f64x2 as shuffle_quarters, _mm512_sllv_epi64 as shift_left,
        _mm512_sqrt_pd as sqrt, _mm512_srlv_epi64 as shift_right, _mm512_storeu_pd as store,
        _mm512_stream_pd as stream, _mm512_sub_epi64 as sub_int, _mm512_sub_pd as sub,
        _mm512_xor_pd as xor,
    };
}

const ROUND: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

/// Implements the vectors of one element type by the intrinsics of module `$x`. The blocks hold the
/// methods of [`Vector`] and [`Lanes`] that differ between the element types.
macro_rules! lanes {
    (
        $x:ident: $float:ident in $v:ident($raw:ty), $int:ident in $i:ident, masks $m:ident($bits:ident),
        lanes $lanes:literal, interleaved $($lane:literal)*, even $($even:literal)*;
        Vector { $($vector_methods:tt)* }
        Lanes { $($lanes_methods:tt)* }
    ) => {
        vectors! {
            /// Floats.
            $v($raw);
            /// Integers as wide as the floats.
            $i(__m512i);
            /// One bit per float.
            $m($bits);
        }

        operators! {
            $v: Add add $x::add, Sub sub $x::sub, Mul mul $x::mul, Div div $x::div;
            $i: Add add $x::add_int, Sub sub $x::sub_int, BitAnd bitand _mm512_and_si512,
                BitOr bitor _mm512_or_si512, BitXor bitxor _mm512_xor_si512;
            $m: BitAnd bitand BitAnd::bitand, BitOr bitor BitOr::bitor;
        }

        prefix_operators! {
            $v: Neg neg |x| $x::xor(x, $x::splat(-0.0));
            $m: Not not |x| !x;
        }

        impl Mask for $m {
            intrinsics! {
                fn any(self) -> bool { self.0 != 0 }
                fn all(self) -> bool { !self.0 == 0 }
            }
        }

        impl IntVector for $i {
            type Mask = $m;
            intrinsics! {
                // The shifts take their count in a register and become immediate shifts once
                // inlined: the immediate forms want an unsigned constant, which cannot be computed
                // from `N`.
                fn shl<const N: i32>(self) -> Self {
                    Self($x::shift_left(self.0, $x::splat_int(N as $int)))
                }
                fn shr<const N: i32>(self) -> Self {
                    Self($x::shift_right(self.0, $x::splat_int(N as $int)))
                }
                fn eq(self, other: Self) -> $m { $m($x::equal_int(self.0, other.0)) }
                fn gt(self, other: Self) -> $m { $m($x::greater_int(self.0, other.0)) }
                fn select(self, mask: $m, other: Self) -> Self {
                    Self($x::blend_int(mask.0, other.0, self.0))
                }
            }
        }

        impl Vector for $v {
            type Elem = $float;
            type Mask = $m;
            type Int = $i;
            intrinsics! {
                fn mul_add(self, a: Self, b: Self) -> Self { Self($x::mul_add(self.0, a.0, b.0)) }
                fn neg_mul_add(self, a: Self, b: Self) -> Self {
                    Self($x::neg_mul_add(self.0, a.0, b.0))
                }
                fn sqrt(self) -> Self { Self($x::sqrt(self.0)) }
                fn abs(self) -> Self { Self($x::abs(self.0)) }
                fn round_ties_even(self) -> Self { Self($x::round::<ROUND>(self.0)) }
                fn min_or_other(self, other: Self) -> Self { Self($x::min(self.0, other.0)) }
                fn max_or_other(self, other: Self) -> Self { Self($x::max(self.0, other.0)) }
                fn eq(self, other: Self) -> $m { $m($x::compare::<_CMP_EQ_OQ>(self.0, other.0)) }
                fn lt(self, other: Self) -> $m { $m($x::compare::<_CMP_LT_OQ>(self.0, other.0)) }
                fn le(self, other: Self) -> $m { $m($x::compare::<_CMP_LE_OQ>(self.0, other.0)) }
                fn is_nan(self) -> $m { $m($x::compare::<_CMP_UNORD_Q>(self.0, self.0)) }
                fn select(self, mask: $m, other: Self) -> Self {
                    Self($x::blend(mask.0, other.0, self.0))
                }
                fn to_bits(self) -> $i { $i($x::to_bits(self.0)) }
                fn from_bits(bits: $i) -> Self { Self($x::from_bits(bits.0)) }
                fn scale_by_power_of_two(self, k: $i) -> Self {
                    Self($x::scale(self.0, $x::from_int(k.0)))
                }
                fn interleave(self, other: Self) -> (Self, Self) {
                    let low = $x::integers($($lane),*);
                    let high = $x::add_int(low, $x::splat_int($lanes / 2));
                    (
                        Self($x::permute_pair(self.0, low, other.0)),
                        Self($x::permute_pair(self.0, high, other.0)),
                    )
                }
                fn even_lanes(self, other: Self, _lanes: usize) -> Self {
                    Self($x::permute_pair(self.0, $x::integers($($even),*), other.0))
                }
                fn transpose<const N: usize>(rows: [Self; N]) -> [Self; N] {
                    // Transpose within 128-bit quarters, then exchange the quarters. Shuffles
                    // within a quarter are faster than those of the default.
                    let (rows, step) = (Self::transpose_quarters(rows), N / 4);
                    let mut out = rows;
                    for i in 0..step {
                        let (a, b) = (rows[i].0, rows[step + i].0);
                        let (c, d) = (rows[2 * step + i].0, rows[3 * step + i].0);
                        let ab = $x::shuffle_quarters::<0x88>(a, b);
                        let cd = $x::shuffle_quarters::<0x88>(c, d);
                        out[i] = Self($x::shuffle_quarters::<0x88>(ab, cd));
                        out[2 * step + i] = Self($x::shuffle_quarters::<0xdd>(ab, cd));
                        let ab = $x::shuffle_quarters::<0xdd>(a, b);
                        let cd = $x::shuffle_quarters::<0xdd>(c, d);
                        out[step + i] = Self($x::shuffle_quarters::<0x88>(ab, cd));
                        out[3 * step + i] = Self($x::shuffle_quarters::<0xdd>(ab, cd));
                    }
                    out
                }
                $($vector_methods)*
            }
        }

        impl Lanes<$float> for Avx512 {
            type V = $v;
            type I = $i;
            type M = $m;
            const LANES: usize = $lanes;
            intrinsics! {
                fn splat(self, x: $float) -> $v { $v($x::splat(x)) }
                fn splat_int(self, x: $int) -> $i { $i($x::splat_int(x)) }
                fn first(self, count: usize) -> $m {
                    $m(((1u32 << count.min($lanes)) - 1) as $bits)
                }
            }
            intrinsics! { unsafe:
                fn load(self, src: *const $float) -> $v { $v($x::load(src)) }
                fn load_where(self, src: *const $float, mask: $m) -> $v {
                    $v($x::mask_load(mask.0, src))
                }
                fn store(self, dst: *mut $float, x: $v) -> () { $x::store(dst, x.0) }
                fn store_streaming(self, dst: *mut $float, x: $v) -> () { $x::stream(dst, x.0) }
                fn store_where(self, dst: *mut $float, mask: $m, x: $v) -> () {
                    $x::mask_store(dst, mask.0, x.0)
                }
            }
            $($lanes_methods)*
        }
    };
}

lanes! {
    ps: f32 in F32x16(__m512), i32 in I32x16, masks M16(__mmask16),
    lanes 16, interleaved 0 16 1 17 2 18 3 19 4 20 5 21 6 22 7 23, even 0 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30;
    Vector {
        fn lookup8(table: &[f32; 8], index: I32x16, _like: Self) -> Self {
            // The permutation reads four index bits, so the table is loaded twice to ignore the
            // fourth.
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
    }
    Lanes {
        #[inline(always)]
        fn lookup_rows(self, table: &'static Rows<f32>, index: I32x16) -> [F32x16; 8] {
            let mut found = [Lanes::<f32>::splat(self, 0.0); 8];
            for (found, column) in found.iter_mut().zip(&table.columns) {
                *found = F32x16::lookup32(column, index, *found);
            }
            found
        }
        intrinsics! { unsafe:
            fn load_f16(self, src: *const u16) -> F32x16 {
                F32x16(_mm512_cvtph_ps(_mm256_loadu_si256(src.cast())))
            }
            fn load_bf16(self, src: *const u16) -> F32x16 {
                let bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256(src.cast()));
                F32x16(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(bits)))
            }
        }
    }
}

lanes! {
    pd: f64 in F64x8(__m512d), i64 in I64x8, masks M8(__mmask8),
    lanes 8, interleaved 0 8 1 9 2 10 3 11, even 0 2 4 6 8 10 12 14;
    Vector {
        fn lookup8(table: &[f64; 8], index: I64x8, _like: Self) -> Self {
            Self(_mm512_permutexvar_pd(index.0, _mm512_loadu_pd(table.as_ptr())))
        }
        fn lookup16(table: &[f64; 16], index: I64x8, _like: Self) -> Self {
            let low = _mm512_loadu_pd(table.as_ptr());
            Self(_mm512_permutex2var_pd(low, index.0, _mm512_loadu_pd(table[8..].as_ptr())))
        }
        fn lookup32(table: &[f64; 32], index: I64x8, like: Self) -> Self {
            // Each half of the table takes four index bits; bit 4, shifted to the sign, picks the
            // half.
            let (parts, _) = table.as_chunks();
            let is_high = _mm512_movepi64_mask(_mm512_slli_epi64::<59>(index.0));
            let [low, high] =
                [Self::lookup16(&parts[0], index, like), Self::lookup16(&parts[1], index, like)];
            Self(_mm512_mask_blend_pd(is_high, low.0, high.0))
        }
    }
    Lanes {
        intrinsics! { unsafe:
            fn load_f16(self, src: *const u16) -> F64x8 {
                let bits = _mm256_castsi128_si256(_mm_loadu_si128(src.cast()));
                F64x8(_mm512_cvtps_pd(_mm512_castps512_ps256(_mm512_cvtph_ps(bits))))
            }
            fn load_bf16(self, src: *const u16) -> F64x8 {
                let bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(src.cast()));
                F64x8(_mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits))))
            }
        }
    }
}

impl F32x16 {
    intrinsics! {
        fn transpose_quarters<const N: usize>(rows: [Self; N]) -> [Self; N] {
            let mut out = rows;
            for quad in 0..N / 4 {
                let i = 4 * quad;
                let [a, b, c, d] = [rows[i].0, rows[i + 1].0, rows[i + 2].0, rows[i + 3].0];
                let (ab_low, cd_low) = (_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d));
                let (ab_high, cd_high) = (_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d));
                out[i] = Self(_mm512_shuffle_ps::<0b01_00_01_00>(ab_low, cd_low));
                out[i + 1] = Self(_mm512_shuffle_ps::<0b11_10_11_10>(ab_low, cd_low));
                out[i + 2] = Self(_mm512_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high));
                out[i + 3] = Self(_mm512_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high));
            }
            out
        }
    }
}

impl F64x8 {
    intrinsics! {
        fn transpose_quarters<const N: usize>(rows: [Self; N]) -> [Self; N] {
            let mut out = rows;
            for pair in 0..N / 2 {
                let i = 2 * pair;
                let (a, b) = (rows[i].0, rows[i + 1].0);
                out[i] = Self(_mm512_unpacklo_pd(a, b));
                out[i + 1] = Self(_mm512_unpackhi_pd(a, b));
            }
            out
        }
    }
}

impl Simd for Avx512 {
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
        fn store_f16(self, dst: *mut u16, x: F32x16) -> () {
            _mm256_storeu_si256(dst.cast(), _mm512_cvtps_ph::<ROUND>(x.0))
        }
    }
}

//! AVX2, FMA and F16C: 8 `f32` or 4 `f64` lanes; a mask is a vector whose lanes are all ones or all zeros.

use core::arch::x86_64::*;
use core::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

use super::enter::{Avx2, enter_avx2};
use super::{IntVector, Lanes, Mask, Rows, Simd, Token, Vector};
use super::{Isa, Task};

impl Token for Avx2 {
    const ISA: Isa = Isa::Avx2;

    #[inline(always)]
    fn call<T: Task>(self, task: T) -> T::Output {
        // SAFETY: this token was made by detection, which covers every feature of the trampoline.
        unsafe { enter_avx2(self, task) }
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
        _mm256_add_epi32 as add_int, _mm256_add_ps as add, _mm256_andnot_ps as and_not,
        _mm256_blendv_ps as blend, _mm256_castps_si256 as to_bits,
        _mm256_castsi256_ps as from_bits, _mm256_cmp_ps as compare,
        _mm256_cmpeq_epi32 as equal_int, _mm256_cmpgt_epi32 as greater_int, _mm256_div_ps as div,
        _mm256_fmadd_ps as mul_add, _mm256_fnmadd_ps as neg_mul_add, _mm256_loadu_ps as load,
        _mm256_maskload_ps as mask_load, _mm256_maskstore_ps as mask_store, _mm256_max_ps as max,
        _mm256_min_ps as min, _mm256_movemask_ps as sign_bits, _mm256_mul_ps as mul,
        _mm256_permute2f128_ps as choose_halves, _mm256_round_ps as round,
        _mm256_set1_epi32 as splat_int, _mm256_set1_ps as splat, _mm256_setr_epi32 as integers,
        _mm256_slli_epi32 as shift_left, _mm256_sqrt_ps as sqrt, _mm256_srli_epi32 as shift_right,
        _mm256_storeu_ps as store, _mm256_stream_ps as stream, _mm256_sub_epi32 as sub_int,
        _mm256_sub_ps as sub, _mm256_unpackhi_ps as unpack_high, _mm256_unpacklo_ps as unpack_low,
        _mm256_xor_ps as xor,
    };
}

/// Intrinsics of 64-bit lanes under the names that `lanes!` gives them.
mod pd {
    pub(super) use core::arch::x86_64::{
        _mm256_add_epi64 as add_int, _mm256_add_pd as add, _mm256_andnot_pd as and_not,
        _mm256_blendv_pd as blend, _mm256_castpd_si256 as to_bits,
        _mm256_castsi256_pd as from_bits, _mm256_cmp_pd as compare,
        _mm256_cmpeq_epi64 as equal_int, _mm256_cmpgt_epi64 as greater_int, _mm256_div_pd as div,
        _mm256_fmadd_pd as mul_add, _mm256_fnmadd_pd as neg_mul_add, _mm256_loadu_pd as load,
        _mm256_maskload_pd as mask_load, _mm256_maskstore_pd as mask_store, _mm256_max_pd as max,
        _mm256_min_pd as min, _mm256_movemask_pd as sign_bits, _mm256_mul_pd as mul,
        _mm256_permute2f128_pd as choose_halves, _mm256_round_pd as round,
        _mm256_set1_epi64x as splat_int, _mm256_set1_pd as splat, _mm256_setr_epi64x as integers,
        _mm256_slli_epi64 as shift_left, _mm256_sqrt_pd as sqrt, _mm256_srli_epi64 as shift_right,
        _mm256_storeu_pd as store, _mm256_stream_pd as stream, _mm256_sub_epi64 as sub_int,
        _mm256_sub_pd as sub, _mm256_unpackhi_pd as unpack_high, _mm256_unpacklo_pd as unpack_low,
        _mm256_xor_pd as xor,
    };
}

const ROUND: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

/// Implements the vectors of one element type by the intrinsics of module `$x`. The blocks hold the
/// methods of [`Vector`] and [`Lanes`] that differ between the element types.
macro_rules! lanes {
    (
        $x:ident: $float:ident in $v:ident($raw:ty), $int:ident in $i:ident, masks $m:ident,
        lanes $($lane:literal)*, mantissa $mantissa:literal, bias $bias:literal;
        Vector { $($vector_methods:tt)* }
        Lanes { $($lanes_methods:tt)* }
    ) => {
        vectors! {
            /// Floats.
            $v($raw);
            /// Integers as wide as the floats.
            $i(__m256i);
            /// Booleans as wide as the floats.
            $m(__m256i);
        }

        operators! {
            $v: Add add $x::add, Sub sub $x::sub, Mul mul $x::mul, Div div $x::div;
            $i: Add add $x::add_int, Sub sub $x::sub_int, BitAnd bitand _mm256_and_si256,
                BitOr bitor _mm256_or_si256, BitXor bitxor _mm256_xor_si256;
            $m: BitAnd bitand _mm256_and_si256, BitOr bitor _mm256_or_si256;
        }

        prefix_operators! {
            $v: Neg neg |x| $x::xor(x, $x::splat(-0.0));
            $m: Not not |x| _mm256_xor_si256(x, _mm256_set1_epi8(-1));
        }

        impl Mask for $m {
            intrinsics! {
                fn any(self) -> bool { $x::sign_bits($x::from_bits(self.0)) != 0 }
                fn all(self) -> bool {
                    $x::sign_bits($x::from_bits(self.0)) == (1 << <Avx2 as Lanes<$float>>::LANES) - 1
                }
            }
        }

        impl IntVector for $i {
            type Mask = $m;
            intrinsics! {
                fn shl<const N: i32>(self) -> Self { Self($x::shift_left::<N>(self.0)) }
                fn shr<const N: i32>(self) -> Self { Self($x::shift_right::<N>(self.0)) }
                fn eq(self, other: Self) -> $m { $m($x::equal_int(self.0, other.0)) }
                fn gt(self, other: Self) -> $m { $m($x::greater_int(self.0, other.0)) }
                fn select(self, mask: $m, other: Self) -> Self {
                    Self(_mm256_blendv_epi8(other.0, self.0, mask.0))
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
                fn abs(self) -> Self { Self($x::and_not($x::splat(-0.0), self.0)) }
                fn round_ties_even(self) -> Self { Self($x::round::<ROUND>(self.0)) }
                fn min_or_other(self, other: Self) -> Self { Self($x::min(self.0, other.0)) }
                fn max_or_other(self, other: Self) -> Self { Self($x::max(self.0, other.0)) }
                fn eq(self, other: Self) -> $m {
                    $m($x::to_bits($x::compare::<_CMP_EQ_OQ>(self.0, other.0)))
                }
                fn lt(self, other: Self) -> $m {
                    $m($x::to_bits($x::compare::<_CMP_LT_OQ>(self.0, other.0)))
                }
                fn le(self, other: Self) -> $m {
                    $m($x::to_bits($x::compare::<_CMP_LE_OQ>(self.0, other.0)))
                }
                fn is_nan(self) -> $m {
                    $m($x::to_bits($x::compare::<_CMP_UNORD_Q>(self.0, self.0)))
                }
                fn select(self, mask: $m, other: Self) -> Self {
                    Self($x::blend(other.0, self.0, $x::from_bits(mask.0)))
                }
                fn to_bits(self) -> $i { $i($x::to_bits(self.0)) }
                fn from_bits(bits: $i) -> Self { Self($x::from_bits(bits.0)) }
                fn scale_by_power_of_two(self, k: $i) -> Self {
                    // Like the scalar level, multiply last by the factor that may round. k fits 32
                    // bits, so the high half of a 64-bit lane is 0 or -1, and clamping halves
                    // clamps the lane.
                    let last = _mm256_max_epi32(k.0, _mm256_set1_epi32(1 - $bias));
                    let last = _mm256_min_epi32(last, _mm256_set1_epi32($bias));
                    let one = $x::splat_int($bias << $mantissa);
                    let first = $x::shift_left::<$mantissa>($x::sub_int(k.0, last));
                    let first = $x::from_bits($x::add_int(first, one));
                    let last = $x::add_int($x::shift_left::<$mantissa>(last), one);
                    Self($x::mul($x::mul(self.0, first), $x::from_bits(last)))
                }
                fn interleave(self, other: Self) -> (Self, Self) {
                    // Within halves, of f32: a0 b0 a1 b1 | a4 b4 a5 b5 and a2 b2 a3 b3 | a6 b6 a7 b7.
                    let low = $x::unpack_low(self.0, other.0);
                    let high = $x::unpack_high(self.0, other.0);
                    (
                        Self($x::choose_halves::<0x20>(low, high)),
                        Self($x::choose_halves::<0x31>(low, high)),
                    )
                }
                $($vector_methods)*
            }
        }

        impl Lanes<$float> for Avx2 {
            type V = $v;
            type I = $i;
            type M = $m;
            const LANES: usize = [$($lane),*].len();
            intrinsics! {
                fn splat(self, x: $float) -> $v { $v($x::splat(x)) }
                fn splat_int(self, x: $int) -> $i { $i($x::splat_int(x)) }
                fn first(self, count: usize) -> $m {
                    let count = count.min(<Self as Lanes<$float>>::LANES) as $int;
                    $m($x::greater_int($x::splat_int(count), $x::integers($($lane),*)))
                }
            }
            intrinsics! { unsafe:
                fn load(self, src: *const $float) -> $v { $v($x::load(src)) }
                fn load_where(self, src: *const $float, mask: $m) -> $v {
                    $v($x::mask_load(src, mask.0))
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
    ps: f32 in F32x8(__m256), i32 in I32x8, masks M32x8,
    lanes 0 1 2 3 4 5 6 7, mantissa 23, bias 127;
    Vector {
        fn lookup8(table: &[f32; 8], index: I32x8, _like: Self) -> Self {
            Self(_mm256_permutevar8x32_ps(_mm256_loadu_ps(table.as_ptr()), index.0))
        }
        fn lookup16(table: &[f32; 16], index: I32x8, like: Self) -> Self {
            // Each half of the table takes three index bits; bit 3, shifted to the sign, picks the
            // half.
            let (parts, _) = table.as_chunks();
            let is_high = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(index.0));
            let [low, high] =
                [Self::lookup8(&parts[0], index, like), Self::lookup8(&parts[1], index, like)];
            Self(_mm256_blendv_ps(low.0, high.0, is_high))
        }
        fn lookup32(table: &[f32; 32], index: I32x8, like: Self) -> Self {
            // Likewise, with four index bits per half.
            let (parts, _) = table.as_chunks();
            let is_high = _mm256_castsi256_ps(_mm256_slli_epi32::<27>(index.0));
            let [low, high] =
                [Self::lookup16(&parts[0], index, like), Self::lookup16(&parts[1], index, like)];
            Self(_mm256_blendv_ps(low.0, high.0, is_high))
        }
        fn transpose<const N: usize>(rows: [Self; N]) -> [Self; N] {
            // Half the shuffles of the default: transpose within 128-bit halves, then exchange the
            // halves.
            let mut out = rows;
            for i in [0, 4] {
                [out[i], out[i + 1], out[i + 2], out[i + 3]] =
                    transpose_halves([rows[i], rows[i + 1], rows[i + 2], rows[i + 3]]);
            }
            for i in 0..4 {
                let (low, high) = (out[i].0, out[4 + i].0);
                out[i] = Self(_mm256_permute2f128_ps::<0x20>(low, high));
                out[4 + i] = Self(_mm256_permute2f128_ps::<0x31>(low, high));
            }
            out
        }
    }
    Lanes {
        intrinsics! {
            fn lookup_rows(self, table: &'static Rows<f32>, index: I32x8) -> [F32x8; 8] {
                // Rows start at multiples of 32 bytes below 32 * 32.
                let offsets = _mm256_and_si256(index.0, _mm256_set1_epi32(31));
                let offsets = _mm256_slli_epi32::<5>(offsets);
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
        }
        intrinsics! { unsafe:
            fn load_f16(self, src: *const u16) -> F32x8 {
                F32x8(_mm256_cvtph_ps(_mm_loadu_si128(src.cast())))
            }
            fn load_bf16(self, src: *const u16) -> F32x8 {
                let bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(src.cast()));
                F32x8(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits)))
            }
        }
    }
}

lanes! {
    pd: f64 in F64x4(__m256d), i64 in I64x4, masks M64x4,
    lanes 0 1 2 3, mantissa 52, bias 1023;
    Vector {
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
            lookup_each(table, index)
        }
        fn lookup32(table: &[f64; 32], index: I64x4, _like: Self) -> Self {
            lookup_each(table, index)
        }
        fn transpose<const N: usize>(rows: [Self; N]) -> [Self; N] {
            // a0 b0 | a2 b2 and a1 b1 | a3 b3, c0 d0 | c2 d2 and c1 d1 | c3 d3.
            let (a, b, c, d) = (rows[0].0, rows[1].0, rows[2].0, rows[3].0);
            let even = (_mm256_unpacklo_pd(a, b), _mm256_unpacklo_pd(c, d));
            let odd = (_mm256_unpackhi_pd(a, b), _mm256_unpackhi_pd(c, d));
            let mut out = rows;
            for (i, (ab, cd)) in [(0, even), (1, odd)] {
                out[i] = Self(_mm256_permute2f128_pd::<0x20>(ab, cd));
                out[2 + i] = Self(_mm256_permute2f128_pd::<0x31>(ab, cd));
            }
            out
        }
    }
    Lanes {
        intrinsics! { unsafe:
            fn load_f16(self, src: *const u16) -> F64x4 {
                F64x4(_mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64(src.cast()))))
            }
            fn load_bf16(self, src: *const u16) -> F64x4 {
                let bits = _mm_slli_epi32::<16>(_mm_cvtepu16_epi32(_mm_loadl_epi64(src.cast())));
                F64x4(_mm256_cvtps_pd(_mm_castsi128_ps(bits)))
            }
        }
    }
}

intrinsics! {
    // Transposes the low halves of four rows, and the high halves:
    // a0 b0 a1 b1 | a4 b4 a5 b5, then a0 b0 c0 d0 | a4 b4 c4 d4.
    fn transpose_halves(rows: [F32x8; 4]) -> [F32x8; 4] {
        let [F32x8(a), F32x8(b), F32x8(c), F32x8(d)] = rows;
        let (ab_low, cd_low) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
        let (ab_high, cd_high) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
        [
            F32x8(_mm256_shuffle_ps::<0b01_00_01_00>(ab_low, cd_low)),
            F32x8(_mm256_shuffle_ps::<0b11_10_11_10>(ab_low, cd_low)),
            F32x8(_mm256_shuffle_ps::<0b01_00_01_00>(ab_high, cd_high)),
            F32x8(_mm256_shuffle_ps::<0b11_10_11_10>(ab_high, cd_high)),
        ]
    }

    // Four scalar reads cost less than four permutations and three blends.
    fn lookup_each<const N: usize>(table: &[f64; N], index: I64x4) -> F64x4 {
        let entry = |i: i64| table[i as usize & (N - 1)];
        let [i, j] = [_mm256_castsi256_si128(index.0), _mm256_extracti128_si256::<1>(index.0)];
        let pair =
            |i: __m128i| _mm_set_pd(entry(_mm_extract_epi64::<1>(i)), entry(_mm_cvtsi128_si64(i)));
        F64x4(_mm256_set_m128d(pair(j), pair(i)))
    }
}

/// Returns columns `first..first + 4` of eight rows, for [`Lanes::lookup_rows`]: lanes i and i + 4
/// each load half a row into one half of a register; four such registers are transposed within
/// halves. A function instead of a closure: it must be inlined, or each instruction would be a
/// call.
///
/// # Safety
/// The CPU has AVX; every row holds eight numbers; `first` is 0 or 4.
#[inline(always)]
unsafe fn half_rows(rows: &[*const f32; 8], first: usize) -> [F32x8; 4] {
    // SAFETY: the caller promises AVX and rows of eight numbers, of which four are read.
    unsafe {
        transpose_halves([
            pair_of_halves(rows[0].add(first), rows[4].add(first)),
            pair_of_halves(rows[1].add(first), rows[5].add(first)),
            pair_of_halves(rows[2].add(first), rows[6].add(first)),
            pair_of_halves(rows[3].add(first), rows[7].add(first)),
        ])
    }
}

/// Loads the two halves of a register from two addresses.
///
/// # Safety
/// The CPU has AVX; both are valid for reads of four numbers.
#[inline(always)]
unsafe fn pair_of_halves(low: *const f32, high: *const f32) -> F32x8 {
    // SAFETY: the caller promises AVX and four readable numbers at each address.
    unsafe {
        let low = _mm256_castps128_ps256(_mm_loadu_ps(low));
        F32x8(_mm256_insertf128_ps::<1>(low, _mm_loadu_ps(high)))
    }
}

impl Simd for Avx2 {
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
        fn store_f16(self, dst: *mut u16, x: F32x8) -> () {
            _mm_storeu_si128(dst.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x.0))
        }
    }
}

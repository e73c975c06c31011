//! Conversions between element types, as Rust's `as` does them.
//!
//! ```text
//! float to integer      truncates; out of range saturates, NaN gives 0
//! integer to integer    wraps
//! anything to a float   the nearest value, ties to even; overflow gives an infinity
//! ```
//!
//! Pairs of machine types are plain loops that the compiler vectorises for the instruction set that
//! the dispatcher enters; floats become integers by `simd/to_int.rs`. 16-bit floats go through
//! `f32`, sixteen at a time:
//!
//! 1. *From 16 bits* is exact: by instructions where the machine has them (AVX-512, F16C, NEON),
//!    else by the integer operations of `simd/half.rs`.
//! 2. *From f32 to 16 bits* rounds once, ties to even, by the same means.
//! 3. *From wider types to 16 bits* through `f32` (and `i64` through `f64`) would round twice.
//!    Rounding *to odd* first (if inexact, to the neighbour whose last bit is 1) makes the second
//!    rounding correct (Boldo and Melquiond, 2008).
//!
//! `i8`, `i16` and `u16` are converted from and to other integers through `i32`, as are floats from them. A `u64` has
//! the bits of an `i64`, except where it becomes a float or comes from one.

use bytemuck::{cast_slice, cast_slice_mut};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use crate::dispatch::run;
use crate::simd::Task;
pub(crate) use crate::simd::half::{bf16_from_f32, f16_from_f32, f32_from_bf16, f32_from_f16};
use crate::simd::to_int::ToInt;
use crate::simd::{HALVES, Simd};

/// Elements that go through `f32` at once: they stay in the L1 cache.
const CHUNK: usize = 512;

/// A pair of element types with a conversion: all pairs of `f16`, `bf16`, `f32`, `f64` and the integers of 8 to 64
/// bits. Sealed.
pub trait Convert<To>: Copy + sealed::Sealed {
    #[doc(hidden)]
    fn convert(x: &[Self], y: &mut [To]);
}

/// Element types that can be tested for being nonzero. Sealed.
pub trait Truth: Copy + sealed::Sealed {
    #[doc(hidden)]
    fn truth(x: &[Self], y: &mut [u8]);
    #[doc(hidden)]
    fn words(x: &[Self]) -> Words<'_>;
}

/// Elements as words of their size, with a mask: an element is 0 if none of the mask's bits is set.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Words<'a> {
    U8(&'a [u8]),
    U16(&'a [u16], u16),
    U32(&'a [u32], u32),
    U64(&'a [u64], u64),
}

mod sealed {
    pub trait Sealed {}
}

/// `y[i] = x[i] as B`; panics if the lengths differ.
#[track_caller]
pub(crate) fn convert<A: Convert<B>, B>(x: &[A], y: &mut [B]) {
    check("convert", x.len(), y.len());
    A::convert(x, y);
}

/// `y[i]` is 0 if `x[i]` is ±0, else 1; NaN gives 1.
///
/// ```
/// let mut y = [9u8; 4];
/// swath_kernels::nonzero(&[0.0f32, -0.0, 0.5, f32::NAN], &mut y);
/// assert_eq!(y, [0, 0, 1, 1]);
/// ```
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub fn nonzero<T: Truth>(x: &[T], y: &mut [u8]) {
    check("nonzero", x.len(), y.len());
    T::truth(x, y);
}

#[track_caller]
fn check(name: &str, input: usize, output: usize) {
    assert!(input == output, "{name}: the input has {input} elements, the output {output}");
}

/// A loop over a slice, as a task.
struct Each<'a, A, B, F>(&'a [A], &'a mut [B], F);

impl<A: Copy, B, F: Fn(A) -> B> Task for Each<'_, A, B, F> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let Each(x, y, f) = self;
        let (x, y) = (&x[..y.len()], y);
        for i in 0..x.len() {
            y[i] = f(x[i]);
        }
    }
}

/// A conversion of whole blocks of [`HALVES`] elements; the rest is padded to one block.
struct Blocks<'a, A, B, F>(&'a [A], &'a mut [B], F);

trait BlockFn<A, B> {
    fn blocks<S: Simd>(simd: S, x: &[[A; HALVES]], y: &mut [[B; HALVES]]);
}

impl<A: Copy + Default, B: Copy + Default, F: BlockFn<A, B>> Task for Blocks<'_, A, B, F> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Blocks(x, y, _) = self;
        let (x, x_rest) = x.as_chunks::<HALVES>();
        let (y, y_rest) = y.as_chunks_mut::<HALVES>();
        F::blocks(simd, x, y);
        if !x_rest.is_empty() {
            let (mut x, mut y) = ([[A::default(); HALVES]], [[B::default(); HALVES]]);
            x[0][..x_rest.len()].copy_from_slice(x_rest);
            F::blocks(simd, &x, &mut y);
            y_rest.copy_from_slice(&y[0][..x_rest.len()]);
        }
    }
}

struct WidenF16;
impl BlockFn<u16, f32> for WidenF16 {
    #[inline(always)]
    fn blocks<S: Simd>(simd: S, x: &[[u16; HALVES]], y: &mut [[f32; HALVES]]) {
        simd.widen_f16(x, y);
    }
}

struct NarrowF16;
impl BlockFn<f32, u16> for NarrowF16 {
    #[inline(always)]
    fn blocks<S: Simd>(simd: S, x: &[[f32; HALVES]], y: &mut [[u16; HALVES]]) {
        simd.narrow_f16(x, y);
    }
}

/// `x` rounded to odd.
#[inline(always)]
pub(crate) fn odd_f32(x: f64) -> f32 {
    let nearest = x as f32;
    let back = f64::from(nearest);
    let bits = nearest.to_bits();
    let odd = (bits - u32::from(back.abs() > x.abs())) | 1;
    let exact = back == x || x.is_nan();
    f32::from_bits(if exact { bits } else { odd })
}

/// `x` rounded to odd: numbers of more than 53 bits lose the lowest 11, which set the last bit if
/// any was set.
#[inline(always)]
fn odd_f64(x: i64) -> f64 {
    let kept = (x >> 11 | i64::from(x & 0x7ff != 0)) as f64 * 2048.0;
    let is_exact = x.unsigned_abs() <= 1 << 53;
    if is_exact { x as f64 } else { kept }
}

/// `x` rounded to odd, like [`odd_f64`].
#[inline(always)]
fn odd_u64(x: u64) -> f64 {
    let half = odd_f64((x >> 1 | x & 1).cast_signed()) * 2.0;
    if x >> 63 == 0 { odd_f64(x.cast_signed()) } else { half }
}

/// Calls `f` on chunks of `x` in `f32` and the index at which each begins.
fn in_f32<A: Convert<f32>>(x: &[A], mut f: impl FnMut(usize, &[f32])) {
    let mut wide = [0f32; CHUNK];
    for (i, x) in x.chunks(CHUNK).enumerate() {
        let wide = &mut wide[..x.len()];
        A::convert(x, wide);
        f(i * CHUNK, wide);
    }
}

impl Convert<f32> for f16 {
    fn convert(x: &[f16], y: &mut [f32]) {
        run(Blocks(x.reinterpret_cast(), y, WidenF16));
    }
}

impl Convert<f16> for f32 {
    fn convert(x: &[f32], y: &mut [f16]) {
        run(Blocks(x, y.reinterpret_cast_mut(), NarrowF16));
    }
}

impl Convert<f32> for bf16 {
    fn convert(x: &[bf16], y: &mut [f32]) {
        run(Each(x.reinterpret_cast(), y, f32_from_bf16));
    }
}

impl Convert<bf16> for f32 {
    fn convert(x: &[f32], y: &mut [bf16]) {
        run(Each(x, y.reinterpret_cast_mut(), bf16_from_f32));
    }
}

/// Conversions between machine types.
macro_rules! plain {
    ($($from:ident $word:ident$(($mask:expr))?, $($way:ident $to:ident)*;)*) => {$(
        impl sealed::Sealed for $from {}
        impl Truth for $from {
            fn words(x: &[$from]) -> Words<'_> {
                Words::$word(bytemuck::cast_slice(x) $(, $mask)?)
            }
            fn truth(x: &[$from], y: &mut [u8]) {
                run(Each(x, y, |x| u8::from(x != 0 as $from)));
            }
        }
        $(plain!(@$way $from $to);)*
    )*};
    (@as $from:ident $to:ident) => {
        impl Convert<$to> for $from {
            fn convert(x: &[$from], y: &mut [$to]) {
                run(Each(x, y, |x| x as $to));
            }
        }
    };
    (@to_int $from:ident $to:ident) => {
        impl Convert<$to> for $from {
            fn convert(x: &[$from], y: &mut [$to]) {
                run(Each(x, y, <$from as ToInt<$to>>::to_int));
            }
        }
    };
}
plain! {
    f32 U32(u32::MAX >> 1), as f32 as f64 to_int i64 to_int i32 to_int u32 to_int u8
        to_int i8 to_int i16 to_int u16 to_int u64;
    f64 U64(u64::MAX >> 1), as f32 as f64 to_int i64 to_int i32 to_int u32 to_int u8
        to_int i8 to_int i16 to_int u16 to_int u64;
    i64 U64(u64::MAX), as f32 as f64 as i64 as i32 as u32 as u8;
    i32 U32(u32::MAX), as f32 as f64 as i64 as i32 as u32 as u8 as u16;
    u32 U32(u32::MAX), as f32 as f64 as i64 as i32 as u32 as u8;
    u8 U8, as f32 as f64 as i64 as i32 as u32 as u8;
    i8 U8, as i32;
    i16 U16(u16::MAX), as i32;
    u16 U16(u16::MAX), as i32;
    u64 U64(u64::MAX), as f32 as f64;
}

/// Conversions of integers that have the bits of another type.
macro_rules! same_bits {
    ($($from:ident as $like:ident: $($to:ident as $same:ident)*;)*) => {$($(
        impl Convert<$to> for $from {
            fn convert(x: &[$from], y: &mut [$to]) {
                <$like as Convert<$same>>::convert(cast_slice(x), cast_slice_mut(y));
            }
        }
    )*)*};
}
same_bits! {
    i32 as i32: i8 as u8 i16 as u16 u64 as i64;
    u32 as i32: i8 as u8 i16 as u16 u16 as u16;
    u32 as u32: u64 as i64;
    i64 as i64: i8 as u8 i16 as u16 u64 as i64;
    u64 as i64: i8 as u8 i16 as u16 u16 as u16 u64 as i64 i64 as i64 i32 as i32 u32 as i32 u8 as u8;
    u8 as u8: i8 as u8 i16 as u16 u64 as i64;
    i8 as u8: i8 as u8 u8 as u8;
    i8 as i8: i16 as u16 u32 as i32 u64 as i64;
    i16 as i16: i8 as u8 i16 as u16 u32 as i32 u64 as i64;
    u16 as i16: i8 as u8 u8 as u8 i16 as u16 u16 as u16;
    u16 as u16: u32 as i32 u64 as i64;
}

/// Conversions through a type that holds every value, or the bits that are kept.
macro_rules! through {
    ($($from:ident by $wide:ident: $($to:ident)*;)*) => {$($(
        impl Convert<$to> for $from {
            fn convert(x: &[$from], y: &mut [$to]) {
                let mut wide = [0 as $wide; CHUNK];
                for (x, y) in x.chunks(CHUNK).zip(y.chunks_mut(CHUNK)) {
                    let wide = &mut wide[..x.len()];
                    $from::convert(x, wide);
                    $wide::convert(wide, y);
                }
            }
        }
    )*)*};
}
through! {
    i8 by i32: f32 f64 f16 bf16 i64 u16;
    i16 by i32: f32 f64 f16 bf16 i64 u8 u16;
    u16 by i32: f32 f64 f16 bf16 i64;
    i64 by i32: u16;
    u8 by i32: u16;
    i32 by f64: f16 bf16;
    u32 by f64: f16 bf16;
    u8 by f32: f16 bf16;
}

/// Conversions of 16-bit floats, except those with `f32`.
macro_rules! halves {
    ($($half:ident: $($other:ident)*;)*) => {$(
        impl sealed::Sealed for $half {}
        impl Truth for $half {
            fn words(x: &[$half]) -> Words<'_> {
                Words::U16(x.reinterpret_cast(), 0x7fff)
            }
            fn truth(x: &[$half], y: &mut [u8]) {
                run(Each(x.reinterpret_cast(), y, |x: u16| u8::from(x << 1 != 0)));
            }
        }
        impl Convert<$half> for $half {
            fn convert(x: &[$half], y: &mut [$half]) {
                y.copy_from_slice(x);
            }
        }
        $(
            impl Convert<$other> for $half {
                fn convert(x: &[$half], y: &mut [$other]) {
                    in_f32(x, |first, wide| f32::convert(wide, &mut y[first..][..wide.len()]));
                }
            }
        )*
        impl Convert<$half> for f64 {
            fn convert(x: &[f64], y: &mut [$half]) {
                let mut wide = [0f32; CHUNK];
                for (x, y) in x.chunks(CHUNK).zip(y.chunks_mut(CHUNK)) {
                    let wide = &mut wide[..x.len()];
                    run(Each(x, wide, odd_f32));
                    f32::convert(wide, y);
                }
            }
        }
        halves!(@odd $half i64 odd_f64, u64 odd_u64);
    )*};
    (@odd $half:ident $($from:ident $odd:ident),*) => {$(
        impl Convert<$half> for $from {
            fn convert(x: &[$from], y: &mut [$half]) {
                let mut wide = [0f64; CHUNK];
                for (x, y) in x.chunks(CHUNK).zip(y.chunks_mut(CHUNK)) {
                    let wide = &mut wide[..x.len()];
                    run(Each(x, wide, $odd));
                    f64::convert(wide, y);
                }
            }
        }
    )*};
}
halves! {
    f16: bf16 f64 i64 i32 u32 u8 i8 i16 u16 u64;
    bf16: f16 f64 i64 i32 u32 u8 i8 i16 u16 u64;
}

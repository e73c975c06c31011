//! Floats of four formats in memory, read as `f64` lanes. Kernels are compiled once for all
//! formats: [`for_format`] makes the format a constant outside of the loops.

use half::{bf16, f16};

use super::{F64, LANES};
use crate::convert::{bf16_from_f32, f16_from_f32, odd_f32};
use crate::simd::{Float, Lanes, Simd};

/// Formats of floats in memory.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    F16,
    Bf16,
    F32,
    F64,
}

impl Format {
    /// Bytes of an element.
    #[inline(always)]
    pub(crate) const fn size(self) -> usize {
        match self {
            Format::F16 | Format::Bf16 => 2,
            Format::F32 => 4,
            Format::F64 => 8,
        }
    }
}

/// Evaluates an expression with a format bound to a constant.
macro_rules! for_format {
    (@arm $name:ident $format:ident $body:expr) => {{
        let $name = $crate::fold::floats::Format::$format;
        $body
    }};
    ($format:expr, $name:ident => $body:expr) => {
        match $format {
            $crate::fold::floats::Format::F16 => $crate::fold::floats::for_format!(@arm $name F16 $body),
            $crate::fold::floats::Format::Bf16 => $crate::fold::floats::for_format!(@arm $name Bf16 $body),
            $crate::fold::floats::Format::F32 => $crate::fold::floats::for_format!(@arm $name F32 $body),
            $crate::fold::floats::Format::F64 => $crate::fold::floats::for_format!(@arm $name F64 $body),
        }
    };
}
/// [`for_format`] for formats that are compared in lanes of `$element`: 16-bit floats in `f32`.
macro_rules! for_format_in {
    ($element:ty, $format:expr, $name:ident => $body:expr) => {
        match $format {
            _ if const { size_of::<$element>() == 8 } => $crate::fold::floats::for_format!(@arm $name F64 $body),
            $crate::fold::floats::Format::F16 => $crate::fold::floats::for_format!(@arm $name F16 $body),
            $crate::fold::floats::Format::Bf16 => $crate::fold::floats::for_format!(@arm $name Bf16 $body),
            _ => $crate::fold::floats::for_format!(@arm $name F32 $body),
        }
    };
}
pub(crate) use {for_format, for_format_in};

/// Element types whose sums and products are accumulated in `f64` and rounded once: `f32`, `f64`,
/// `f16` and `bf16`. Sealed.
pub trait Accumulate: Copy + Send + Sync + sealed::Sealed {
    #[doc(hidden)]
    const FORMAT: Format;
    #[doc(hidden)]
    fn widened(self) -> f64;
    /// The nearest element, ties to even.
    #[doc(hidden)]
    fn rounded(x: f64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! accumulate {
    ($($t:ident $format:ident |$x:ident| $widened:expr, $rounded:expr;)*) => {$(
        impl sealed::Sealed for $t {}
        impl Accumulate for $t {
            const FORMAT: Format = Format::$format;
            #[inline(always)]
            fn widened(self) -> f64 {
                let $x = self;
                $widened
            }
            #[inline(always)]
            fn rounded($x: f64) -> $t {
                $rounded
            }
        }
    )*};
}
accumulate! {
    f16 F16 |x| x.to_f64(), f16::from_bits(f16_from_f32(odd_f32(x)));
    bf16 Bf16 |x| x.to_f64(), bf16::from_bits(bf16_from_f32(odd_f32(x)));
    f32 F32 |x| f64::from(x), x as f32;
    f64 F64 |x| x, x;
}

/// Reads the bits of `count` 16-bit floats; the others are zero.
///
/// # Safety
/// `src` is valid for reads of `count` numbers, at most [`LANES`].
#[inline(always)]
unsafe fn first_bits(src: *const u8, count: usize) -> [u16; LANES] {
    let mut bits = [0; LANES];
    for i in 0..count {
        // SAFETY: the caller promises `count` numbers.
        bits[i] = unsafe { src.cast::<u16>().add(i).read() };
    }
    bits
}

/// Reads a vector, or only `count` elements if they are fewer, exactly; the other lanes are zero.
///
/// # Safety
/// `src` is valid for reads of `count` elements of the format. The format is not wider than `E`,
/// and not `F32` if `E` is `f64`.
#[inline(always)]
pub(super) unsafe fn load_as<E: Float, S: Lanes<E>>(
    simd: S,
    format: Format,
    src: *const u8,
    count: usize,
) -> S::V {
    const { assert!(S::LANES <= LANES) };
    // SAFETY: no branch reads more than `count` elements of `src`; the array holds a whole vector,
    // as asserted above.
    unsafe {
        match format {
            Format::F32 | Format::F64 => simd.load_up_to(src.cast::<E>(), count),
            Format::F16 if count >= S::LANES => simd.load_f16(src.cast()),
            Format::Bf16 if count >= S::LANES => simd.load_bf16(src.cast()),
            Format::F16 => simd.load_f16(first_bits(src, count).as_ptr()),
            Format::Bf16 => simd.load_bf16(first_bits(src, count).as_ptr()),
        }
    }
}

/// [`load_as`] with `f64` lanes, for any format.
///
/// # Safety
/// `src` is valid for reads of `count` elements of the format.
#[inline(always)]
pub(crate) unsafe fn load<S: Simd>(
    simd: S,
    format: Format,
    src: *const u8,
    count: usize,
) -> F64<S> {
    // SAFETY: the caller promises `count` elements, and no branch reads more.
    unsafe {
        match format {
            Format::F32 if count >= <S as Lanes<f64>>::LANES => simd.load_widened(src.cast()),
            Format::F32 => simd.load_first_widened(src.cast(), count),
            _ => load_as::<f64, S>(simd, format, src, count),
        }
    }
}

/// Reads one element.
///
/// # Safety
/// `src` is valid for a read of an element of the format.
#[inline(always)]
pub(super) unsafe fn read(format: Format, src: *const u8) -> f64 {
    // SAFETY: the caller promises the element; any bits are a float.
    unsafe {
        match format {
            Format::F16 => src.cast::<f16>().read_unaligned().widened(),
            Format::Bf16 => src.cast::<bf16>().read_unaligned().widened(),
            Format::F32 => src.cast::<f32>().read_unaligned().widened(),
            Format::F64 => src.cast::<f64>().read_unaligned(),
        }
    }
}

/// Rounds a number and writes it as element `i`.
///
/// # Safety
/// `dst` is valid for writes of that element of the format.
#[inline(always)]
pub(super) unsafe fn write(format: Format, dst: *mut u8, i: usize, x: f64) {
    // SAFETY: the caller promises that the element may be written.
    unsafe {
        match format {
            Format::F16 => dst.cast::<f16>().add(i).write_unaligned(f16::rounded(x)),
            Format::Bf16 => dst.cast::<bf16>().add(i).write_unaligned(bf16::rounded(x)),
            Format::F32 => dst.cast::<f32>().add(i).write_unaligned(x as f32),
            Format::F64 => dst.cast::<f64>().add(i).write_unaligned(x),
        }
    }
}

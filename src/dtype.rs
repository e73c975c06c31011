//! [`DType`], the element types; [`Element`], the Rust types behind them; [`HostData`], values of
//! any of them outside a backend.

use std::fmt;

use half::{bf16, f16};

/// Type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// IEEE binary16.
    F16,
    /// bfloat16: the upper half of an `f32`.
    BF16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// Signed 64-bit integer: indices and counts.
    I64,
    /// Signed 32-bit integer: storage and conversion only.
    I32,
    /// Unsigned 32-bit integer: storage and conversion only.
    U32,
    /// Unsigned byte.
    U8,
    /// Truth value, stored as one byte.
    Bool,
}

impl DType {
    /// Every type.
    pub const ALL: [DType; 9] = [
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::I64,
        DType::I32,
        DType::U32,
        DType::U8,
        DType::Bool,
    ];

    /// Bytes an element takes.
    pub const fn size(self) -> usize {
        match self {
            DType::U8 | DType::Bool => 1,
            DType::F16 | DType::BF16 => 2,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F64 | DType::I64 => 8,
        }
    }

    /// True for the four floating-point types.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// `F32` in place of a type of 16 bits, for what those do not hold: counts, exponents, totals.
    pub(crate) const fn at_least_f32(self) -> DType {
        match self {
            DType::F16 | DType::BF16 => DType::F32,
            dtype => dtype,
        }
    }

    /// True for the types that arithmetic is defined on: all but `I32` and `U32`, which are there
    /// to be stored and converted.
    pub const fn has_arithmetic(self) -> bool {
        !matches!(self, DType::I32 | DType::U32)
    }

    /// Least and largest value of an integer type or `Bool`; of a float type, what `i64` holds.
    pub(crate) const fn integer_range(self) -> (i64, i64) {
        match self {
            DType::U8 => (0, u8::MAX as i64),
            DType::Bool => (0, 1),
            DType::I32 => (i32::MIN as i64, i32::MAX as i64),
            DType::U32 => (0, u32::MAX as i64),
            _ => (i64::MIN, i64::MAX),
        }
    }

    /// The type of a sum or product: integers and truth values accumulate in `I64`.
    pub const fn accumulated(self) -> DType {
        if self.is_float() { self } else { DType::I64 }
    }

    /// The name used in messages and files: `f32`, `bool`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::I64 => "i64",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::U8 => "u8",
            DType::Bool => "bool",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A number that takes the type of the tensor it meets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A floating-point value.
    Float(f64),
    /// An integer or truth value.
    Int(i64),
}

impl Scalar {
    /// As `f64`: integers beyond 2^53 are rounded to nearest.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Float(x) => x,
            Scalar::Int(x) => x as f64,
        }
    }

    /// As `i64`: fractions are cut off, values out of range saturate, NaN is 0 (Rust's `as`).
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Float(x) => x as i64,
            Scalar::Int(x) => x,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Float(x) => write!(f, "{x}"),
            Scalar::Int(x) => write!(f, "{x}"),
        }
    }
}

impl From<f64> for Scalar {
    fn from(x: f64) -> Self {
        Scalar::Float(x)
    }
}

impl From<f32> for Scalar {
    fn from(x: f32) -> Self {
        Scalar::Float(f64::from(x))
    }
}

impl From<i64> for Scalar {
    fn from(x: i64) -> Self {
        Scalar::Int(x)
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that tensors can hold. Sealed.
///
/// Conversions follow Rust's `as`: float to integer cuts the fraction off and saturates, NaN
/// becomes 0, integers wrap into narrower integers; `bool` is true where the value is not zero.
pub trait Element:
    Copy
    + Send
    + Sync
    + PartialEq
    + PartialOrd
    + fmt::Debug
    + fmt::Display
    + Default
    + sealed::Sealed
    + 'static
{
    /// The type's tag.
    const DTYPE: DType;
    /// How backends store it: itself, or a byte for `bool`.
    type Stored: bytemuck::Pod + PartialOrd + Send + Sync;
    /// Stored form.
    fn to_stored(self) -> Self::Stored;
    /// Value of the stored form.
    fn from_stored(stored: Self::Stored) -> Self;
    /// Nearest value of this type.
    fn from_f64(x: f64) -> Self;
    /// This value as `f64`; exact but for integers beyond 2^53.
    fn to_f64(self) -> f64;
    /// From an integer.
    fn from_i64(x: i64) -> Self;
    /// To an integer.
    fn to_i64(self) -> i64;
    /// From a scalar, by the conversion its kind asks for.
    fn from_scalar(x: Scalar) -> Self {
        match x {
            Scalar::Float(x) => Self::from_f64(x),
            Scalar::Int(x) => Self::from_i64(x),
        }
    }
    /// To a scalar of the kind that holds it exactly.
    fn to_scalar(self) -> Scalar {
        if Self::DTYPE.is_float() {
            Scalar::Float(self.to_f64())
        } else {
            Scalar::Int(self.to_i64())
        }
    }
    /// Wraps values for the way into a backend.
    fn into_host(values: Vec<Self>) -> HostData;
    /// The values, if they are of this type.
    fn from_host(data: HostData) -> Option<Vec<Self>>;
    /// A look at the values, if they are of this type.
    fn host_slice(data: &HostData) -> Option<&[Self]>;
}

/// Values of any element type in row-major order, outside every backend.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "one variant an element type")]
pub enum HostData {
    F16(Vec<f16>),
    BF16(Vec<bf16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
    I32(Vec<i32>),
    U32(Vec<u32>),
    U8(Vec<u8>),
    Bool(Vec<bool>),
}

/// Runs an expression with the type alias `$t` bound to the Rust type of a [`DType`].
///
/// `for_dtype!(dtype, T => expression)` for every type; `for_dtype!(dtype, float T => a, else b)`
/// with one arm for the four float types and one for the rest.
macro_rules! for_dtype {
    (@arm $t:ident $rust:ty, $body:expr) => {{
        type $t = $rust;
        $body
    }};
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            $crate::DType::F16 => $crate::dtype::for_dtype!(@arm $t half::f16, $body),
            $crate::DType::BF16 => $crate::dtype::for_dtype!(@arm $t half::bf16, $body),
            $crate::DType::F32 => $crate::dtype::for_dtype!(@arm $t f32, $body),
            $crate::DType::F64 => $crate::dtype::for_dtype!(@arm $t f64, $body),
            $crate::DType::I64 => $crate::dtype::for_dtype!(@arm $t i64, $body),
            $crate::DType::I32 => $crate::dtype::for_dtype!(@arm $t i32, $body),
            $crate::DType::U32 => $crate::dtype::for_dtype!(@arm $t u32, $body),
            $crate::DType::U8 => $crate::dtype::for_dtype!(@arm $t u8, $body),
            $crate::DType::Bool => $crate::dtype::for_dtype!(@arm $t bool, $body),
        }
    };
}
pub(crate) use for_dtype;

impl HostData {
    /// Type of the values.
    pub fn dtype(&self) -> DType {
        match self {
            HostData::F16(_) => DType::F16,
            HostData::BF16(_) => DType::BF16,
            HostData::F32(_) => DType::F32,
            HostData::F64(_) => DType::F64,
            HostData::I64(_) => DType::I64,
            HostData::I32(_) => DType::I32,
            HostData::U32(_) => DType::U32,
            HostData::U8(_) => DType::U8,
            HostData::Bool(_) => DType::Bool,
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        for_dtype!(self.dtype(), T => T::host_slice(self).map_or(0, <[T]>::len))
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Value at position `i`, if there is one.
    pub fn get(&self, i: usize) -> Option<Scalar> {
        for_dtype!(self.dtype(), T => T::host_slice(self)?.get(i).map(|x| x.to_scalar()))
    }
}

macro_rules! elements {
    ($($t:ty, $variant:ident, $stored:ty,
       $to_stored:expr, $from_stored:expr, $from_f64:expr, $to_f64:expr, $from_i64:expr, $to_i64:expr;)*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$variant;
            type Stored = $stored;
            #[inline]
            fn to_stored(self) -> $stored {
                ($to_stored)(self)
            }
            #[inline]
            fn from_stored(stored: $stored) -> Self {
                ($from_stored)(stored)
            }
            #[inline]
            fn from_f64(x: f64) -> Self {
                ($from_f64)(x)
            }
            #[inline]
            fn to_f64(self) -> f64 {
                ($to_f64)(self)
            }
            #[inline]
            fn from_i64(x: i64) -> Self {
                ($from_i64)(x)
            }
            #[inline]
            fn to_i64(self) -> i64 {
                ($to_i64)(self)
            }
            fn into_host(values: Vec<Self>) -> HostData {
                HostData::$variant(values)
            }
            fn from_host(data: HostData) -> Option<Vec<Self>> {
                match data {
                    HostData::$variant(values) => Some(values),
                    _ => None,
                }
            }
            fn host_slice(data: &HostData) -> Option<&[Self]> {
                match data {
                    HostData::$variant(values) => Some(values),
                    _ => None,
                }
            }
        }
    )*};
}

elements! {
    f16, F16, f16, |x| x, |x| x, |x| f16::from_f32(f32_rounded_to_odd(x)), f16::to_f64,
        |x| <f16 as Element>::from_f64(f64_rounded_to_odd(x)), |x: f16| x.to_f64() as i64;
    bf16, BF16, bf16, |x| x, |x| x, |x| bf16::from_f32(f32_rounded_to_odd(x)), bf16::to_f64,
        |x| <bf16 as Element>::from_f64(f64_rounded_to_odd(x)), |x: bf16| x.to_f64() as i64;
    f32, F32, f32, |x| x, |x| x, |x| x as f32, f64::from, |x| x as f32, |x: f32| x as i64;
    f64, F64, f64, |x| x, |x| x, |x| x, |x| x, |x| x as f64, |x: f64| x as i64;
    i64, I64, i64, |x| x, |x| x, |x| x as i64, |x: i64| x as f64, |x| x, |x| x;
    i32, I32, i32, |x| x, |x| x, |x| x as i32, f64::from, |x| x as i32, i64::from;
    u32, U32, u32, |x| x, |x| x, |x| x as u32, f64::from, |x| x as u32, i64::from;
    u8, U8, u8, |x| x, |x| x, |x| x as u8, f64::from, |x| x as u8, i64::from;
    bool, Bool, u8, u8::from, |x| x != 0, |x| x != 0.0, |x: bool| f64::from(u8::from(x)), |x| x != 0, i64::from;
}

/// `x` rounded to odd: where it is not an `f32`, the neighbour whose last bit is 1. A 16-bit type
/// has few enough bits that rounding the result to nearest equals rounding `x` itself once, which
/// plain conversion through `f32` does not.
fn f32_rounded_to_odd(x: f64) -> f32 {
    let nearest = x as f32;
    let back = f64::from(nearest);
    if back == x || x.is_nan() {
        return nearest;
    }
    let bits = nearest.to_bits();
    let toward_zero = if back.abs() > x.abs() { bits - 1 } else { bits };
    f32::from_bits(toward_zero | 1)
}

/// As [`f32_rounded_to_odd`].
fn f64_rounded_to_odd(x: i64) -> f64 {
    let magnitude = x.unsigned_abs();
    let excess = (64 - magnitude.leading_zeros()).saturating_sub(53);
    let kept = magnitude >> excess << excess;
    let odd = if kept == magnitude { kept } else { kept | (1 << excess) };
    if x < 0 { -(odd as f64) } else { odd as f64 }
}

/// Elements of `dtype` between their little-endian form and that of this machine, either way.
pub(crate) fn swap_little_endian(dtype: DType, bytes: &mut [u8]) {
    let little = u16::from_ne_bytes([1, 0]) == 1;
    if !little {
        bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
}

/// Bytes of truth values are 0 or 1.
pub(crate) fn check_truth_values(
    op: &'static str,
    dtype: DType,
    bytes: &[u8],
) -> crate::Result<()> {
    match bytes.iter().find(|&&byte| dtype == DType::Bool && byte > 1) {
        Some(byte) => {
            let reason = format!("the byte {byte} is no truth value");
            Err(crate::Error::InvalidArgument { op, reason })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_follow_rusts_as() {
        assert_eq!(u8::from_f64(-1.0), 0);
        assert_eq!(u8::from_f64(300.0), 255);
        assert_eq!(i64::from_f64(f64::NAN), 0);
        assert_eq!(u8::from_i64(257), 1);
        assert!(bool::from_f64(f64::NAN));
        assert!(!bool::from_f64(-0.0));
        assert_eq!(f16::from_f64(1e9), f16::INFINITY);
    }

    #[test]
    fn conversions_to_16_bits_round_once() {
        // 2^62 + 2^54 is a tie between two bf16 values; one more decides it upwards.
        let tie = (1i64 << 62) + (1 << 54);
        let bf16_of = |x: i64| <bf16 as Element>::from_i64(x).to_f64();
        assert_eq!(bf16_of(tie), (1i64 << 62) as f64);
        assert_eq!(bf16_of(tie + 1), ((1i64 << 62) + (1 << 55)) as f64);
        assert_eq!(bf16_of(i64::MIN), -(2f64.powi(63)));
        // 1 + 2^-11 is a tie between two f16 values; 2^-40 more decides it, but not in f32.
        let f16_of = |x: f64| <f16 as Element>::from_f64(x).to_f64();
        assert_eq!(f16_of(1.0 + 2f64.powi(-11)), 1.0);
        assert_eq!(f16_of(1.0 + 2f64.powi(-11) + 2f64.powi(-40)), 1.0 + 2f64.powi(-10));
        assert_eq!(f16_of(-(1.0 + 2f64.powi(-11) + 2f64.powi(-40))), -1.0 - 2f64.powi(-10));
        assert_eq!(f16_of(65519.999), 65504.0);
        assert_eq!(f16_of(65520.0), f64::INFINITY);
        assert_eq!(f16_of(2f64.powi(-25)), 0.0);
        assert_eq!(f16_of(2f64.powi(-25) + 2f64.powi(-60)), 2f64.powi(-24));
    }

    #[test]
    fn host_data_round_trips_every_type() {
        for dtype in DType::ALL {
            for_dtype!(dtype, T => {
                let data = T::into_host(vec![T::from_i64(1), T::from_i64(0)]);
                assert_eq!(data.dtype(), dtype);
                assert_eq!(data.len(), 2);
                assert_eq!(std::mem::size_of::<<T as Element>::Stored>(), dtype.size());
                assert_eq!(T::from_host(data).unwrap()[0].to_f64(), 1.0);
            });
        }
    }
}

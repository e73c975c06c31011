//! [`DType`], the element types; [`Element`], the corresponding Rust types; [`HostData`], values of any
//! of them outside a backend.

mod scalar;

use std::fmt;

use half::{bf16, f16};

pub use scalar::Scalar;

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
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned byte.
    U8,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 64-bit integer.
    U64,
    /// Boolean, stored as one byte.
    Bool,
}

impl DType {
    /// All element types.
    pub const ALL: [DType; 13] = [
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::I64,
        DType::I32,
        DType::U32,
        DType::U8,
        DType::I8,
        DType::I16,
        DType::U16,
        DType::U64,
        DType::Bool,
    ];

    /// Size of an element in bytes.
    pub const fn size(self) -> usize {
        match self {
            DType::U8 | DType::I8 | DType::Bool => 1,
            DType::F16 | DType::BF16 | DType::I16 | DType::U16 => 2,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F64 | DType::I64 | DType::U64 => 8,
        }
    }

    /// True for the four floating-point types.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// `F32` for 16-bit floats, whose range or precision is too small for counts, exponents and totals;
    /// other types unchanged.
    pub(crate) const fn at_least_f32(self) -> DType {
        match self {
            DType::F16 | DType::BF16 => DType::F32,
            dtype => dtype,
        }
    }

    /// True for types with arithmetic: all but `Bool`, whose elements count as 0 and 1 in sums and products.
    pub const fn has_arithmetic(self) -> bool {
        !matches!(self, DType::Bool)
    }

    /// Smallest and largest value of an integer type or `Bool`; those of `i64` for a float type.
    pub(crate) const fn integer_range(self) -> (i128, i128) {
        match self {
            DType::Bool => (0, 1),
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => (0, (1 << (8 * self.size())) - 1),
            DType::I8 | DType::I16 | DType::I32 => {
                let end = 1 << (8 * self.size() - 1);
                (-end, end - 1)
            }
            _ => (i64::MIN as i128, i64::MAX as i128),
        }
    }

    /// Largest finite value of a float type; that of `f64` for the others.
    pub(crate) fn largest(self) -> f64 {
        match self {
            DType::F16 => f16::MAX.to_f64(),
            DType::BF16 => bf16::MAX.to_f64(),
            DType::F32 => f64::from(f32::MAX),
            _ => f64::MAX,
        }
    }

    /// Type of a sum or product: integers and booleans accumulate in `I64`, `U64` too, modulo 2^64.
    pub const fn accumulated(self) -> DType {
        if self.is_float() { self } else { DType::I64 }
    }

    /// Name used in messages and files: `f32`, `bool`.
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
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::U16 => "u16",
            DType::U64 => "u64",
            DType::Bool => "bool",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that tensors can hold. Sealed.
///
/// Conversions follow Rust's `as`: float to integer truncates and saturates, NaN becomes 0, and integers
/// wrap into narrower integers. A `bool` is true if the value is not zero.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type of tensors",
    label = "not an element type",
    note = "the element types are `f16`, `bf16`, `f32`, `f64`, `bool` and the integers of 8 to 64 bits"
)]
pub trait Element:
    Copy
    + Send
    + Sync
    + PartialEq
    + PartialOrd
    + fmt::Debug
    + fmt::Display
    + Default
    + bytemuck::NoUninit
    + sealed::Sealed
    + 'static
{
    /// The type's [`DType`].
    const DTYPE: DType;
    /// Type in which backends store the element: itself, or `u8` for `bool`.
    type Stored: bytemuck::Pod + PartialOrd + Send + Sync;
    /// Converts to the stored form.
    fn to_stored(self) -> Self::Stored;
    /// Converts from the stored form.
    fn from_stored(stored: Self::Stored) -> Self;
    /// Converts from `f64`; rounds to nearest for float types.
    fn from_f64(x: f64) -> Self;
    /// Converts to `f64`; exact except for integers beyond 2^53.
    fn to_f64(self) -> f64;
    /// Converts from `i64`.
    fn from_i64(x: i64) -> Self;
    /// Converts to `i64`; a `u64` wraps.
    fn to_i64(self) -> i64;
    /// Converts from a scalar of any kind.
    fn from_scalar(x: Scalar) -> Self {
        match x {
            Scalar::Float(x) => Self::from_f64(x),
            Scalar::Int(x) => Self::from_i64(x),
            Scalar::Large(x) if Self::DTYPE == DType::F64 => Self::from_f64(x as f64),
            Scalar::Large(x) if Self::DTYPE.is_float() => Self::from_f64(u64_rounded_to_odd(x)),
            Scalar::Large(x) => Self::from_i64(x.cast_signed()),
        }
    }
    /// Converts to the kind of scalar that represents the value exactly.
    fn to_scalar(self) -> Scalar {
        if Self::DTYPE.is_float() {
            Scalar::Float(self.to_f64())
        } else if Self::DTYPE == DType::U64 {
            self.to_i64().cast_unsigned().into()
        } else {
            Scalar::Int(self.to_i64())
        }
    }
    /// Wraps values for transfer to a backend.
    fn into_host(values: Vec<Self>) -> HostData;
    /// Unwraps the values if they have this type.
    fn from_host(data: HostData) -> Option<Vec<Self>>;
    /// Borrows the values if they have this type.
    fn host_slice(data: &HostData) -> Option<&[Self]>;
}

/// Values of any element type in row-major order, outside every backend.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "one variant per element type")]
pub enum HostData {
    F16(Vec<f16>),
    BF16(Vec<bf16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
    I32(Vec<i32>),
    U32(Vec<u32>),
    U8(Vec<u8>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    U16(Vec<u16>),
    U64(Vec<u64>),
    Bool(Vec<bool>),
}

/// Evaluates an expression with the type alias `$t` bound to the Rust type of a [`DType`]:
/// `for_dtype!(dtype, T => expression)`. With `, _ => other`, that is evaluated for the integers without kernels,
/// which are computed as others: `I8`, `I16`, `U16` and `U64`.
macro_rules! for_dtype {
    (@arm $t:ident $rust:ty, $body:expr) => {{
        type $t = $rust;
        $body
    }};
    (@match $dtype:expr, $t:ident => $body:expr, $($rest:tt)+) => {
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
            $($rest)+
        }
    };
    ($dtype:expr, $t:ident => $body:expr, _ => $other:expr) => {
        $crate::dtype::for_dtype!(@match $dtype, $t => $body, _ => $other)
    };
    ($dtype:expr, $t:ident => $body:expr) => {
        $crate::dtype::for_dtype!(@match $dtype, $t => $body,
            $crate::DType::I8 => $crate::dtype::for_dtype!(@arm $t i8, $body),
            $crate::DType::I16 => $crate::dtype::for_dtype!(@arm $t i16, $body),
            $crate::DType::U16 => $crate::dtype::for_dtype!(@arm $t u16, $body),
            $crate::DType::U64 => $crate::dtype::for_dtype!(@arm $t u64, $body),
        )
    };
}
pub(crate) use for_dtype;

impl HostData {
    /// Element type of the values.
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
            HostData::I8(_) => DType::I8,
            HostData::I16(_) => DType::I16,
            HostData::U16(_) => DType::U16,
            HostData::U64(_) => DType::U64,
            HostData::Bool(_) => DType::Bool,
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        for_dtype!(self.dtype(), T => T::host_slice(self).map_or(0, <[T]>::len))
    }

    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values as bytes, each in the machine's order.
    pub fn as_bytes(&self) -> &[u8] {
        use bytemuck::cast_slice;
        match self {
            HostData::F16(x) => cast_slice(x),
            HostData::BF16(x) => cast_slice(x),
            HostData::F32(x) => cast_slice(x),
            HostData::F64(x) => cast_slice(x),
            HostData::I64(x) => cast_slice(x),
            HostData::I32(x) => cast_slice(x),
            HostData::U32(x) => cast_slice(x),
            HostData::U8(x) => x,
            HostData::I8(x) => cast_slice(x),
            HostData::I16(x) => cast_slice(x),
            HostData::U16(x) => cast_slice(x),
            HostData::U64(x) => cast_slice(x),
            HostData::Bool(x) => cast_slice(x),
        }
    }

    /// Value at position `i`; `None` if out of range.
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
    i8, I8, i8, |x| x, |x| x, |x| x as i8, f64::from, |x| x as i8, i64::from;
    i16, I16, i16, |x| x, |x| x, |x| x as i16, f64::from, |x| x as i16, i64::from;
    u16, U16, u16, |x| x, |x| x, |x| x as u16, f64::from, |x| x as u16, i64::from;
    u64, U64, u64, |x| x, |x| x, |x| x as u64, |x: u64| x as f64, i64::cast_unsigned, u64::cast_signed;
    bool, Bool, u8, u8::from, |x| x != 0, |x| x != 0.0, |x: bool| f64::from(u8::from(x)), |x| x != 0, i64::from;
}

/// Rounds `x` to odd: if `x` is not representable in `f32`, returns the neighbour whose last bit is 1.
/// Rounding that to a 16-bit float equals rounding `x` once, which rounding to nearest twice does not.
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

/// Rounds `x` to odd, like [`f32_rounded_to_odd`].
fn f64_rounded_to_odd(x: i64) -> f64 {
    let odd = u64_rounded_to_odd(x.unsigned_abs());
    if x < 0 { -odd } else { odd }
}

fn u64_rounded_to_odd(x: u64) -> f64 {
    let excess = (64 - x.leading_zeros()).saturating_sub(53);
    let kept = x >> excess << excess;
    (if kept == x { kept } else { kept | (1 << excess) }) as f64
}

/// True if the machine stores the low byte of a number first.
pub(crate) const IS_LITTLE_ENDIAN: bool = u16::from_ne_bytes([1, 0]) == 1;

/// Converts elements between little-endian and native byte order, in either direction.
pub(crate) fn swap_little_endian(dtype: DType, bytes: &mut [u8]) {
    if !IS_LITTLE_ENDIAN {
        bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
}

/// Checks that the bytes of booleans are 0 or 1.
pub(crate) fn check_bools(op: &'static str, dtype: DType, bytes: &[u8]) -> crate::Result<()> {
    match bytes.iter().find(|&&byte| dtype == DType::Bool && byte > 1) {
        Some(byte) => {
            let reason = format!("invalid bool byte {byte}: expected 0 or 1");
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
}

//! [`Scalar`]: a number of any dtype.

use std::fmt;

use super::{DType, Element, for_dtype};

/// A number that is converted to the type of the tensor it is combined with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A floating-point value.
    Float(f64),
    /// An integer or boolean.
    Int(i64),
    /// An integer above `i64::MAX`, the largest `Int`.
    Large(u64),
}

impl Scalar {
    /// Converts to `f64`. Integers beyond 2^53 are rounded to nearest.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Float(x) => x,
            Scalar::Int(x) => x as f64,
            Scalar::Large(x) => x as f64,
        }
    }

    /// Converts to `i64` like Rust's `as`: integers wrap; of floats, fractions are truncated, numbers out of range
    /// saturate, and NaN gives 0.
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Float(x) => x as i64,
            Scalar::Int(x) => x,
            Scalar::Large(x) => x.cast_signed(),
        }
    }

    /// Converts to `i128`, which is exact for integers.
    pub(crate) fn to_i128(self) -> i128 {
        match self {
            Scalar::Large(x) => x.into(),
            x => x.to_i64().into(),
        }
    }

    /// The integer, modulo 2^64 if it is of neither `i64` nor `u64`.
    pub(crate) fn from_i128(x: i128) -> Scalar {
        u64::try_from(x).map_or(Scalar::Int(x as i64), Scalar::from)
    }

    /// The nearest value of a dtype; integers wrap.
    pub(crate) fn rounded(self, dtype: DType) -> Scalar {
        for_dtype!(dtype, T => T::from_scalar(self).to_scalar())
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Float(x) => write!(f, "{x}"),
            Scalar::Int(x) => write!(f, "{x}"),
            Scalar::Large(x) => write!(f, "{x}"),
        }
    }
}

macro_rules! scalars {
    ($($Variant:ident $wide:ident: $($t:ty)*;)*) => {$($(
        impl From<$t> for Scalar {
            fn from(x: $t) -> Self {
                Scalar::$Variant($wide::from(x))
            }
        }
    )*)*};
}
scalars! {
    Float f64: f64 f32 half::f16 half::bf16;
    Int i64: i64 i32 i16 i8 u32 u16 u8;
}

macro_rules! wide_scalars {
    ($($t:ty)*) => {$(
        impl From<$t> for Scalar {
            fn from(x: $t) -> Self {
                i64::try_from(x).map_or(Scalar::Large(x as u64), Scalar::Int)
            }
        }
    )*};
}
wide_scalars! { isize u64 usize }

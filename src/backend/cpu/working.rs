//! Float types and the types that kernels compute in: `f32` and `f64` in place, 16-bit floats widened to `f32`
//! and rounded once.

use bytemuck::Pod;
use half::{bf16, f16};
use swath_kernels::{self as kernels, Angle, MatMut, Rows, Scan, Stored};

use crate::dtype::Element;
use crate::runtime::workspace::Packed;

/// A type that kernels compute in: `f32` or `f64`.
pub(super) trait Wide:
    Rows + Scan<Total = f64, Out = Self> + Angle + Stored + Packed + Element<Stored = Self> + Pod
{
}

impl Wide for f32 {}
impl Wide for f64 {}

/// A float type of tensors.
pub(super) trait Working: Element<Stored = Self> + Pod {
    /// Type of computations and statistics.
    type Wide: Wide;

    /// True if `Wide` is another type. Otherwise every `scratch` below may be empty.
    const CONVERTS: bool;

    /// Returns `x` for a kernel to read: itself, or widened into the first elements of `scratch`.
    fn widened<'a>(x: &'a [Self], scratch: &'a mut [Self::Wide]) -> &'a [Self::Wide];

    /// Returns the memory for a kernel to write: `y` itself, or the first elements of `scratch`, from which
    /// [`Working::round`] then rounds `y`.
    fn place<'a>(y: &'a mut [Self], scratch: &'a mut [Self::Wide]) -> &'a mut [Self::Wide];

    /// Returns the matrix for a kernel to write, unless the types differ.
    fn matrix(y: MatMut<'_, Self>) -> Option<MatMut<'_, Self::Wide>>;

    /// Rounds the first elements of `scratch` to `y`; does nothing if the types are equal.
    fn round(scratch: &[Self::Wide], y: &mut [Self]);
}

macro_rules! same {
    ($($t:ty)*) => {$(
        impl Working for $t {
            type Wide = $t;
            const CONVERTS: bool = false;

            fn widened<'a>(x: &'a [$t], _: &'a mut [$t]) -> &'a [$t] {
                x
            }

            fn place<'a>(y: &'a mut [$t], _: &'a mut [$t]) -> &'a mut [$t] {
                y
            }

            fn matrix(y: MatMut<'_, $t>) -> Option<MatMut<'_, $t>> {
                Some(y)
            }

            fn round(_: &[$t], _: &mut [$t]) {}
        }
    )*};
}
same!(f32 f64);

macro_rules! half {
    ($($t:ty)*) => {$(
        impl Working for $t {
            type Wide = f32;
            const CONVERTS: bool = true;

            fn widened<'a>(x: &'a [$t], scratch: &'a mut [f32]) -> &'a [f32] {
                let scratch = &mut scratch[..x.len()];
                kernels::convert(x, scratch);
                scratch
            }

            fn place<'a>(y: &'a mut [$t], scratch: &'a mut [f32]) -> &'a mut [f32] {
                &mut scratch[..y.len()]
            }

            fn matrix(_: MatMut<'_, $t>) -> Option<MatMut<'_, f32>> {
                None
            }

            fn round(scratch: &[f32], y: &mut [$t]) {
                kernels::convert(&scratch[..y.len()], y);
            }
        }
    )*};
}
half!(f16 bf16);

/// Evaluates an expression with `$t` bound to the float type of a dtype; other dtypes are an error.
macro_rules! for_float {
    ($op:expr, $x:expr, $t:ident => $body:expr) => {{
        let (dtype, shape) = ($x.dtype(), *$x.shape());
        match dtype {
            crate::dtype::DType::F32 => crate::dtype::for_dtype!(@arm $t f32, $body),
            crate::dtype::DType::F64 => crate::dtype::for_dtype!(@arm $t f64, $body),
            crate::dtype::DType::F16 => crate::dtype::for_dtype!(@arm $t half::f16, $body),
            crate::dtype::DType::BF16 => crate::dtype::for_dtype!(@arm $t half::bf16, $body),
            _ => Err(crate::error::Error::UnsupportedDType { op: $op, dtype, shape }),
        }
    }};
}
pub(super) use for_float;

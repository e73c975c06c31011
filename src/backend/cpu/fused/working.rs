//! Rows as the kernels take them: `f32` and `f64` where they lie, 16-bit floats converted to `f32`, a
//! few rows at a time, and rounded once.

use std::ops::Range;

use bytemuck::Pod;
use half::{bf16, f16};
use swath_kernels::{Angle, Rows, Stored};

use super::super::cast::Half;
use super::super::elementwise::CHUNK;
use super::super::memory::Buffer;
use crate::dtype::Element;

/// Elements of a converted group of rows: a few arrays of them stay in the second-level cache.
const GROUP_LEN: usize = 8192;

/// A type that kernels compute in: `f32` or `f64`.
pub(in super::super) trait Wide:
    Rows + Angle + Stored + Element<Stored = Self> + Pod
{
}

impl Wide for f32 {}
impl Wide for f64 {}

/// A float type and the one that its rows are computed in.
pub(in super::super) trait Working: Element<Stored = Self> + Pod {
    /// The type of the computation, and of statistics.
    type Wide: Wide;

    /// True if they differ.
    const CONVERTS: bool;

    /// The values as the kernels take them; `scratch` has as many elements if the types differ.
    fn read<'a>(x: &'a [Self], scratch: &'a mut [Self::Wide]) -> &'a [Self::Wide];

    /// `f` writes the values, which are then rounded into `y`; `scratch` as for `read`.
    fn write(y: &mut [Self], scratch: &mut [Self::Wide], f: impl FnOnce(&mut [Self::Wide]));

    /// `f` changes the values of slices by those of `x`, all of one length; it may be called on
    /// pieces.
    fn change<const N: usize>(
        y: [&mut [Self]; N],
        x: &[Self],
        f: &impl Fn([&mut [Self::Wide]; N], &[Self::Wide]),
    );
}

macro_rules! same {
    ($($t:ty)*) => {$(
        impl Working for $t {
            type Wide = $t;
            const CONVERTS: bool = false;

            fn read<'a>(x: &'a [$t], _scratch: &'a mut [$t]) -> &'a [$t] {
                x
            }

            fn write(y: &mut [$t], _scratch: &mut [$t], f: impl FnOnce(&mut [$t])) {
                f(y);
            }

            fn change<const N: usize>(
                y: [&mut [$t]; N],
                x: &[$t],
                f: &impl Fn([&mut [$t]; N], &[$t]),
            ) {
                f(y, x);
            }
        }
    )*};
}
same!(f32 f64);

macro_rules! half {
    ($($t:ty)*) => {$(
        impl Working for $t {
            type Wide = f32;
            const CONVERTS: bool = true;

            fn read<'a>(x: &'a [$t], scratch: &'a mut [f32]) -> &'a [f32] {
                let scratch = &mut scratch[..x.len()];
                <$t>::widen(x, scratch);
                scratch
            }

            fn write(y: &mut [$t], scratch: &mut [f32], f: impl FnOnce(&mut [f32])) {
                let scratch = &mut scratch[..y.len()];
                f(scratch);
                <$t>::narrow(scratch, y);
            }

            fn change<const N: usize>(
                mut y: [&mut [$t]; N],
                x: &[$t],
                f: &impl Fn([&mut [f32]; N], &[f32]),
            ) {
                let (mut wide, mut x_wide) = ([[0f32; CHUNK]; N], [0f32; CHUNK]);
                for (i, x) in x.chunks(CHUNK).enumerate() {
                    let span = i * CHUNK..i * CHUNK + x.len();
                    for (y, wide) in y.iter().zip(&mut wide) {
                        <$t>::widen(&y[span.clone()], &mut wide[..x.len()]);
                    }
                    f(wide.each_mut().map(|wide| &mut wide[..x.len()]), Self::read(x, &mut x_wide));
                    for (y, wide) in y.iter_mut().zip(&wide) {
                        <$t>::narrow(&wide[..x.len()], &mut y[span.clone()]);
                    }
                }
            }
        }
    )*};
}
half!(f16 bf16);

/// Runs an expression with `$t` bound to the float type of a dtype; other dtypes are an error.
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
pub(in super::super) use for_float;

/// Calls `f` with groups of `0..rows` and `K` scratch arrays that hold a group's `cols` columns each:
/// with all rows and empty arrays where nothing is converted.
pub(in super::super) fn for_each_group<T: Working, const K: usize>(
    rows: usize,
    cols: usize,
    mut f: impl FnMut(Range<usize>, [&mut [T::Wide]; K]),
) {
    if !T::CONVERTS {
        return f(0..rows, std::array::from_fn(|_| Default::default()));
    }
    let group = (GROUP_LEN / cols.max(1)).clamp(1, rows.max(1));
    let len = group * cols;
    let mut buffer = Buffer::scratch(K * len * size_of::<T::Wide>());
    for first in (0..rows).step_by(group) {
        let mut arrays = buffer.as_slice_mut::<T::Wide>().chunks_exact_mut(len.max(1));
        let arrays = std::array::from_fn(|_| arrays.next().unwrap_or_default());
        f(first..(first + group).min(rows), arrays);
    }
}

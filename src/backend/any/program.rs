//! Element-wise operations that a program defines on the CPU's vectors.

use swath_kernels::SimdOp;

use super::{AnyBackend, AnyTensor};
#[cfg(all(feature = "metal", target_vendor = "apple"))]
use crate::MetalBackend;
#[cfg(feature = "wgpu")]
use crate::WgpuBackend;
use crate::backend::cpu::{self, CpuTensor};
use crate::backend::{Arg, Backend};
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::{CpuBackend, ReferenceBackend};

/// A backend that accepts a [`SimdOp`]. [`CpuBackend`] computes it, and [`AnyBackend`] does for tensors on the CPU;
/// other backends return [`Error::Unsupported`], the trait's default.
pub trait SimdBackend: Backend {
    /// Applies an operation to operands of one shape and dtype, numbers among them, of which one at
    /// least is a tensor. The result is computed in the memory of an operand that is owned,
    /// contiguous and not shared. At most three operands.
    ///
    /// ```
    /// use swath::{Arg, SimdBackend, SimdOp, prelude::*, pulp::Simd};
    ///
    /// /// |a - b|.
    /// struct Distance;
    ///
    /// impl SimdOp<2> for Distance {
    ///     const NAME: &'static str = "distance";
    ///
    ///     #[inline(always)]
    ///     fn f32s<S: Simd>(&self, simd: S, [a, b]: [S::f32s; 2]) -> S::f32s {
    ///         simd.abs_f32s(simd.sub_f32s(a, b))
    ///     }
    ///
    ///     #[inline(always)]
    ///     fn f64s<S: Simd>(&self, simd: S, [a, b]: [S::f64s; 2]) -> S::f64s {
    ///         simd.abs_f64s(simd.sub_f64s(a, b))
    ///     }
    /// }
    ///
    /// let x = CpuBackend::from_vec(vec![1.0, 2.0, 5.0], 3)?;
    /// let y = CpuBackend::simd_op(&Distance, [Arg::Owned(x), Arg::Scalar(3.0.into())])?;
    /// assert_eq!(y.as_slice::<f32>()?, [2.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`]; [`Error::UnsupportedDType`] unless the dtype is `F32` or `F64`;
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::InvalidArgument`] without a
    /// tensor.
    fn simd_op<O: SimdOp<N>, const N: usize>(
        _op: &O,
        _x: [Arg<'_, Self::Tensor>; N],
    ) -> Result<Self::Tensor> {
        Err(Error::Unsupported { op: O::NAME, backend: Self::NAME })
    }
}

impl SimdBackend for CpuBackend {
    fn simd_op<O: SimdOp<N>, const N: usize>(
        op: &O,
        x: [Arg<'_, CpuTensor>; N],
    ) -> Result<CpuTensor> {
        cpu::simd_op(op, x)
    }
}

impl SimdBackend for AnyBackend {
    fn simd_op<O: SimdOp<N>, const N: usize>(
        op: &O,
        x: [Arg<'_, AnyTensor>; N],
    ) -> Result<AnyTensor> {
        let mut elsewhere = None;
        let mut note = |x: &AnyTensor| {
            elsewhere = Some(x.device());
            Arg::Scalar(Scalar::Int(0))
        };
        let x = x.map(|x| match x {
            Arg::Ref(AnyTensor::Cpu(x)) => Arg::Ref(x),
            Arg::Owned(AnyTensor::Cpu(x)) => Arg::Owned(x),
            Arg::Scalar(x) => Arg::Scalar(x),
            Arg::Ref(x) => note(x),
            Arg::Owned(x) => note(&x),
        });
        match elsewhere {
            Some(device) => Err(Error::Unsupported { op: O::NAME, backend: device.name() }),
            None => cpu::simd_op(op, x).map(AnyTensor::Cpu),
        }
    }
}

impl SimdBackend for ReferenceBackend {}

#[cfg(feature = "wgpu")]
impl SimdBackend for WgpuBackend {}

#[cfg(all(feature = "metal", target_vendor = "apple"))]
impl SimdBackend for MetalBackend {}

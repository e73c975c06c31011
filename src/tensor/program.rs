//! Element-wise operations that a program defines on the CPU's vectors.

use swath_kernels::SimdOp;

use crate::SimdBackend;
use crate::autodiff::is_grad_enabled;
use crate::backend::Arg;
use crate::error::{Error, Result};
use crate::shape::{Shape, broadcast_shape_for};

use super::base::Tensor;
use super::operators::{Input, Operand};

/// # Kernels of one's own
///
/// Element-wise operations that a program defines on the CPU's vectors: see
/// [`SimdOp`](crate::SimdOp), which also says what keeps an element's bits the same at every
/// position and on every instruction set. Operands have any layout; threads share the work. An
/// operation has no gradient, so a tracked operand is an error: put the operation into the `forward`
/// of a [`CustomOp`](crate::CustomOp), which has one.
impl<B: SimdBackend> Tensor<B> {
    /// Applies an operation to every element.
    ///
    /// ```
    /// use swath::{SimdOp, prelude::*, pulp::Simd};
    ///
    /// /// a x, where a is a field of the operation.
    /// struct Scale(f32);
    ///
    /// impl SimdOp<1> for Scale {
    ///     const NAME: &'static str = "scale";
    ///     const IS_CHEAP: bool = true;
    ///
    ///     #[inline(always)]
    ///     fn f32s<S: Simd>(&self, simd: S, [x]: [S::f32s; 1]) -> S::f32s {
    ///         simd.mul_f32s(x, simd.splat_f32s(self.0))
    ///     }
    ///
    ///     #[inline(always)]
    ///     fn f64s<S: Simd>(&self, simd: S, [x]: [S::f64s; 1]) -> S::f64s {
    ///         simd.mul_f64s(x, simd.splat_f64s(self.0.into()))
    ///     }
    /// }
    ///
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// assert_eq!(x.t()?.map_with(&Scale(0.5))?.to_vec::<f32>()?, [0.5, 1.5, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoGradient`] if the tensor is tracked and gradients are recorded;
    /// [`Error::UnsupportedDType`] unless the dtype is `F32` or `F64`; [`Error::Unsupported`] if the
    /// tensor is not in the CPU's memory.
    pub fn map_with(&self, op: impl SimdOp<1>) -> Result<Tensor<B>> {
        apply(&op, [Input::Ref(self)])
    }

    /// Applies an operation to every element, like [`map_with`](Tensor::map_with), in the tensor's
    /// memory if nothing else shares it.
    ///
    /// ```
    /// use swath::{SimdOp, prelude::*, pulp::Simd};
    ///
    /// struct Twice;
    ///
    /// impl SimdOp<1> for Twice {
    ///     const NAME: &'static str = "twice";
    ///
    ///     #[inline(always)]
    ///     fn f32s<S: Simd>(&self, simd: S, [x]: [S::f32s; 1]) -> S::f32s {
    ///         simd.add_f32s(x, x)
    ///     }
    ///
    ///     #[inline(always)]
    ///     fn f64s<S: Simd>(&self, simd: S, [x]: [S::f64s; 1]) -> S::f64s {
    ///         simd.add_f64s(x, x)
    ///     }
    /// }
    ///
    /// assert_eq!(tensor![1.0, -2.0].into_map_with(&Twice)?.to_vec::<f32>()?, [2.0, -4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`map_with`](Tensor::map_with).
    pub fn into_map_with(self, op: impl SimdOp<1>) -> Result<Tensor<B>> {
        apply(&op, [Input::Owned(self)])
    }

    /// Applies an operation to pairs of elements. Shapes broadcast; a tensor that is passed by value
    /// gives its memory to the result if it can.
    ///
    /// ```
    /// use swath::{SimdOp, prelude::*, pulp::Simd};
    ///
    /// /// a - b where that is positive, else 0.
    /// struct Excess;
    ///
    /// impl SimdOp<2> for Excess {
    ///     const NAME: &'static str = "excess";
    ///
    ///     #[inline(always)]
    ///     fn f32s<S: Simd>(&self, simd: S, [a, b]: [S::f32s; 2]) -> S::f32s {
    ///         let zero = simd.splat_f32s(0.0);
    ///         simd.select_f32s(simd.greater_than_f32s(a, b), simd.sub_f32s(a, b), zero)
    ///     }
    ///
    ///     #[inline(always)]
    ///     fn f64s<S: Simd>(&self, simd: S, [a, b]: [S::f64s; 2]) -> S::f64s {
    ///         let zero = simd.splat_f64s(0.0);
    ///         simd.select_f64s(simd.greater_than_f64s(a, b), simd.sub_f64s(a, b), zero)
    ///     }
    /// }
    ///
    /// let x = tensor![[1.0], [4.0]];
    /// let y = x.zip_with(&tensor![1.0, 2.0, 3.0], &Excess)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0, 0.0, 3.0, 2.0, 1.0]);
    /// assert_eq!(x.zip_with(3.0, &Excess)?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`map_with`](Tensor::map_with); [`Error::ShapeMismatch`] if the shapes do not
    /// broadcast; [`Error::DTypeMismatch`].
    pub fn zip_with(&self, rhs: impl Operand<B>, op: impl SimdOp<2>) -> Result<Tensor<B>> {
        rhs.with(|rhs| apply(&op, [Input::Ref(self), rhs]))
    }
}

/// Checks the operands, broadcasts them and applies the operation.
fn apply<B: SimdBackend, O: SimdOp<N>, const N: usize>(
    op: &O,
    x: [Input<'_, B>; N],
) -> Result<Tensor<B>> {
    let mut shape = Shape::scalar();
    for tensor in x.iter().filter_map(Input::tensor) {
        if tensor.is_tracked() && is_grad_enabled() {
            let reason = format!(
                "the operand of shape {} is tracked, and a kernel has no gradient: apply it in a CustomOp, \
                 or detach",
                tensor.shape()
            );
            return Err(Error::NoGradient { op: O::NAME, reason });
        }
        shape = broadcast_shape_for(O::NAME, &shape, tensor.shape())?;
    }
    let mut failure = None;
    let x = x.map(|x| {
        x.broadcast(&shape).unwrap_or_else(|error| {
            failure = Some(error);
            Arg::Scalar(0.0.into())
        })
    });
    match failure {
        Some(error) => Err(error),
        None => B::simd_op(op, x).map(Tensor::from_data),
    }
}

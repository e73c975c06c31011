//! The operators `+= -= *= /=`, and the methods that return the error instead.

use std::ops::{AddAssign, DivAssign, MulAssign, SubAssign};

use crate::autodiff::is_grad_enabled;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::ops::BinaryOp;
use crate::shape::broadcast_shape_for;

use super::base::Tensor;
use super::elementwise::{check_binary, check_operands};
use super::operators::{Input, Operand};

macro_rules! assignments {
    ($($(#[$doc:meta])* $Trait:ident $method:ident $Variant:ident;)*) => {
        /// # Arithmetic in place
        ///
        /// The storage is overwritten if no other tensor shares it, such as a clone, a view, or the
        /// operand of a recorded operation; else the values are copied to new storage, which
        /// [`runtime::info`](crate::runtime::info) counts. The operand broadcasts to this tensor's
        /// shape. Changes in place are not recorded, so a tracked tensor or operand is an error. A frozen
        /// parameter is then no longer tied to its clones.
        impl<B: Backend> Tensor<B> {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// [`Error::InvalidArgument`] if this tensor or the operand is tracked; [`Error::ShapeMismatch`] if the
                /// operand does not broadcast to its shape; those of the operation. The tensor is then unchanged.
                pub fn $method(&mut self, rhs: impl Operand<B>) -> Result<()> {
                    let result = rhs.with(|rhs| B::engine_assign(BinaryOp::$Variant, self, rhs));
                    result.map_err(|error| error.named(stringify!($method)))
                }
            )*
        }

        $(
            impl<B: Backend, R: Operand<B>> $Trait<R> for Tensor<B> {
                #[track_caller]
                fn $method(&mut self, rhs: R) {
                    if let Err(error) = Tensor::$method(self, rhs) {
                        panic!("{error}");
                    }
                }
            }
        )*
    };
}
assignments! {
    /// `self += rhs`.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let mut total = Tensor::zeros((2, 2), DType::F32)?;
    /// total.add_assign(&tensor![1.0, 2.0])?;
    /// total += 0.5;
    /// assert_eq!(total.to_vec::<f32>()?, [1.5, 2.5, 1.5, 2.5]);
    /// # Ok::<(), Error>(())
    /// ```
    AddAssign add_assign Add;
    /// `self -= rhs`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let mut x = tensor![3.0, 4.0];
    /// x.sub_assign(1.0)?;
    /// assert_eq!(x.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    SubAssign sub_assign Sub;
    /// `self *= rhs`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let mut x = tensor![3.0, 4.0];
    /// x.mul_assign(&tensor![2.0, 0.5])?;
    /// assert_eq!(x.to_vec::<f32>()?, [6.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    MulAssign mul_assign Mul;
    /// `self /= rhs`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let mut x = tensor![3.0, 4.0];
    /// x.div_assign(2.0)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.5, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    DivAssign div_assign Div;
}

impl<B: Backend> Tensor<B> {
    pub(crate) fn assign_body(op: BinaryOp, x: &mut Tensor<B>, rhs: Input<'_, B>) -> Result<()> {
        let (name, shape) = (op.name(), *x.shape());
        if x.is_tracked() || (rhs.is_tracked() && is_grad_enabled()) {
            let whose = if x.is_tracked() { "tensor" } else { "operand" };
            let reason = format!(
                "the {whose} is tracked, and a change in place of shape {shape} is not recorded; \
                 use {name} for a new tensor, or detach"
            );
            return Err(Error::InvalidArgument { op: name, reason });
        }
        if let Some(other) = rhs.tensor() {
            if broadcast_shape_for(name, &shape, other.shape())? != shape {
                return Err(Error::ShapeMismatch { op: name, lhs: shape, rhs: *other.shape() });
            }
            // A product with `Bool`, whose dtype is that of the other factor.
            if other.dtype() != x.dtype() {
                let y = Tensor::binary_body(op, Input::Ref(x), rhs)?;
                y.check_dtype(name, x.dtype())?;
                *x = y.marked_like(x);
                return Ok(());
            }
        }
        check_operands(name, &Input::Ref(x), &rhs, |dtype, shape| check_binary(op, dtype, shape))?;
        B::binary_assign(op, x.data_mut(), rhs.broadcast(&shape)?)?;
        x.renew_leaf();
        Ok(())
    }
}

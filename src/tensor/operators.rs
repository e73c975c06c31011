//! `+ - * /` and unary `-`: one generic impl per operator over [`Operand`].
//!
//! Two concrete impls for scalars would make `(&x + 1.0).exp()` ambiguous: the compiler could not
//! choose the literal's type before the method call. Operators panic with the error's text; the
//! methods of the same names return it.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::backend::{Arg, Backend};
use crate::dtype::Scalar;
use crate::error::Result;
use crate::ops::{BinaryOp, UnaryOp};
use crate::shape::Shape;

use super::Tensor;

/// What can stand beside a tensor in an element-wise operation: `Tensor`, `&Tensor`, `f64`, `f32`.
/// Sealed. A number takes the tensor's dtype.
pub trait Operand<B: Backend>: sealed::Sealed<B> {}

mod sealed {
    use super::*;

    pub trait Sealed<B: Backend> {
        fn with<R>(self, f: impl FnOnce(Input<'_, B>) -> R) -> R;
    }

    impl<B: Backend> Sealed<B> for Tensor<B> {
        fn with<R>(self, f: impl FnOnce(Input<'_, B>) -> R) -> R {
            f(Input::Owned(self))
        }
    }

    impl<B: Backend> Sealed<B> for &Tensor<B> {
        fn with<R>(self, f: impl FnOnce(Input<'_, B>) -> R) -> R {
            f(Input::Ref(self))
        }
    }

    impl<B: Backend> Sealed<B> for f64 {
        fn with<R>(self, f: impl FnOnce(Input<'_, B>) -> R) -> R {
            f(Input::Scalar(self.into()))
        }
    }

    impl<B: Backend> Sealed<B> for f32 {
        fn with<R>(self, f: impl FnOnce(Input<'_, B>) -> R) -> R {
            f(Input::Scalar(self.into()))
        }
    }
}

impl<B: Backend> Operand<B> for Tensor<B> {}
impl<B: Backend> Operand<B> for &Tensor<B> {}
impl<B: Backend> Operand<B> for f64 {}
impl<B: Backend> Operand<B> for f32 {}

/// An operand by kind.
pub enum Input<'a, B: Backend> {
    /// A tensor that others may still read.
    Ref(&'a Tensor<B>),
    /// A tensor whose storage the result may take.
    Owned(Tensor<B>),
    /// A number, taken as the dtype of the tensor beside it.
    Scalar(Scalar),
}

impl<'a, B: Backend> Input<'a, B> {
    pub(super) fn tensor(&self) -> Option<&Tensor<B>> {
        match self {
            Input::Ref(tensor) => Some(tensor),
            Input::Owned(tensor) => Some(tensor),
            Input::Scalar(_) => None,
        }
    }

    /// For the backend; what is owned is given away.
    pub(super) fn into_arg(self) -> Arg<'a, B::Tensor> {
        match self {
            Input::Ref(tensor) => Arg::Ref(tensor.data()),
            Input::Owned(tensor) => Arg::Owned(tensor.into_data()),
            Input::Scalar(value) => Arg::Scalar(value),
        }
    }

    /// As [`into_arg`](Input::into_arg), a tensor broadcast to `shape`.
    pub(super) fn broadcast(self, shape: &Shape) -> Result<Arg<'a, B::Tensor>> {
        match self.tensor() {
            Some(tensor) if tensor.shape() != shape => {
                let layout = tensor.layout().broadcast_to("broadcast_to", shape)?;
                Ok(Arg::Owned(B::view(tensor.data(), layout)?))
            }
            _ => Ok(self.into_arg()),
        }
    }

    /// For the backend, keeping what is owned.
    pub(super) fn as_arg(&self) -> Arg<'_, B::Tensor> {
        match self {
            Input::Ref(tensor) => Arg::Ref(tensor.data()),
            Input::Owned(tensor) => Arg::Ref(tensor.data()),
            Input::Scalar(value) => Arg::Scalar(*value),
        }
    }

    pub(super) fn is_tracked(&self) -> bool {
        self.tensor().is_some_and(Tensor::is_tracked)
    }
}

#[track_caller]
fn or_panic<B: Backend>(result: Result<Tensor<B>>) -> Tensor<B> {
    match result {
        Ok(tensor) => tensor,
        Err(error) => panic!("{error}"),
    }
}

macro_rules! operators {
    ($($Trait:ident $method:ident $Variant:ident;)*) => {$(
        impl<B: Backend, R: Operand<B>> $Trait<R> for Tensor<B> {
            type Output = Tensor<B>;
            #[track_caller]
            fn $method(self, rhs: R) -> Tensor<B> {
                or_panic(rhs.with(|rhs| B::engine_binary(BinaryOp::$Variant, Input::Owned(self), rhs)))
            }
        }

        impl<B: Backend, R: Operand<B>> $Trait<R> for &Tensor<B> {
            type Output = Tensor<B>;
            #[track_caller]
            fn $method(self, rhs: R) -> Tensor<B> {
                or_panic(rhs.with(|rhs| B::engine_binary(BinaryOp::$Variant, Input::Ref(self), rhs)))
            }
        }

        impl<B: Backend> $Trait<Tensor<B>> for f64 {
            type Output = Tensor<B>;
            #[track_caller]
            fn $method(self, rhs: Tensor<B>) -> Tensor<B> {
                let lhs = Input::Scalar(self.into());
                or_panic(B::engine_binary(BinaryOp::$Variant, lhs, Input::Owned(rhs)))
            }
        }

        impl<B: Backend> $Trait<&Tensor<B>> for f64 {
            type Output = Tensor<B>;
            #[track_caller]
            fn $method(self, rhs: &Tensor<B>) -> Tensor<B> {
                let lhs = Input::Scalar(self.into());
                or_panic(B::engine_binary(BinaryOp::$Variant, lhs, Input::Ref(rhs)))
            }
        }
    )*};
}

operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
}

impl<B: Backend> Neg for Tensor<B> {
    type Output = Tensor<B>;
    #[track_caller]
    fn neg(self) -> Tensor<B> {
        or_panic(B::engine_unary(UnaryOp::Neg, Input::Owned(self)))
    }
}

impl<B: Backend> Neg for &Tensor<B> {
    type Output = Tensor<B>;
    #[track_caller]
    fn neg(self) -> Tensor<B> {
        or_panic(B::engine_unary(UnaryOp::Neg, Input::Ref(self)))
    }
}

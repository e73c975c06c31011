//! The operators `+ - * /` and unary `-`, one generic impl each over [`Operand`].
//!
//! With two concrete impls for scalars `(&x + 1.0).exp()` would be ambiguous: the compiler could
//! not infer the literal's type before the method call. On the left, where an impl must name its type (coherence forbids
//! `impl Mul<&Tensor> for L`), there is therefore one type for float literals and one for integer literals: `f64` and
//! `i64`. An impl for `f32` too would make `(1.0 - &x).exp()` ambiguous.
//! Operators panic with the error's text; the methods of the same names return the error.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::autodiff::anomaly;
use crate::autodiff::graph::GraphNode;
use crate::autodiff::rules::Saved;
use crate::backend::{Arg, Backend};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops::{BinaryOp, UnaryOp};
use crate::runtime::shared::Shared;
use crate::shape::Shape;

use super::base::Tensor;
use super::elementwise::check_scalar;

/// An operand of an element-wise operation beside a tensor: `Tensor`, `&Tensor` or a number, of any of Rust's integer and
/// float types up to 64 bits, `f16` or `bf16`. A scalar takes the dtype of the tensor, in which it must be representable if that is an
/// integer type: see [`add_scalar`](Tensor::add_scalar). Sealed.
///
/// On the left of an operator a number is an `f64` or an `i64`: instead of `2.0f32 * &x`, which does not compile, write
/// `2.0 * &x` or `&x * 2.0f32`. With more types there, the compiler could not infer that of a literal in
/// `(2.0 * &x).exp()`.
///
/// ```
/// use swath::prelude::*;
/// let a = tensor![i64; 1, 2, 3];
/// assert_eq!((&a * 2 + 1).to_vec::<i64>()?, [3, 5, 7]);
/// assert_eq!((1 - &a).to_vec::<i64>()?, [0, -1, -2]);
/// assert_eq!((1.0 - tensor![0.5, 2.0]).to_vec::<f32>()?, [0.5, -1.0]);
/// assert_eq!(a.ge(2)?.to_vec::<bool>()?, [false, true, true]);
/// assert_eq!(a.mul(a.numel())?.to_vec::<i64>()?, [3, 6, 9]);
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operand of a tensor's arithmetic",
    label = "expected a tensor or a number",
    note = "operands are `Tensor`, `&Tensor` and numbers; the tensors of an operation have one backend: convert with `to_backend`",
    note = "a `Result<Tensor>` needs a `?` first"
)]
pub trait Operand<B: Backend>: sealed::Sealed<B> {}

mod sealed {
    use super::*;

    pub trait Sealed<B: Backend> {
        fn with<R>(self, f: impl FnOnce(Input<'_, B>) -> R) -> R;
    }

    macro_rules! sealed {
        ($($Type:ty, $value:ident => $input:expr;)*) => {$(
            impl<B: Backend> Sealed<B> for $Type {
                fn with<R>(self, f: impl FnOnce(Input<'_, B>) -> R) -> R {
                    let $value = self;
                    f($input)
                }
            }

            impl<B: Backend> Operand<B> for $Type {}
        )*};
    }
    sealed! {
        Tensor<B>, x => Input::Owned(x);
        &Tensor<B>, x => Input::Ref(x);
    }
    macro_rules! numbers {
        ($($Type:ty)*) => { sealed! { $($Type, x => Input::Scalar(x.into());)* } };
    }
    numbers! { f64 f32 half::f16 half::bf16 i64 i32 i16 i8 isize u64 u32 u16 u8 usize }
}

/// An operand of an element-wise operation.
pub enum Input<'a, B: Backend> {
    /// A borrowed tensor.
    Ref(&'a Tensor<B>),
    /// An owned tensor, whose storage the result may reuse.
    Owned(Tensor<B>),
    /// A scalar, converted to the dtype of the tensor beside it.
    Scalar(Scalar),
}

impl<'a, B: Backend> Input<'a, B> {
    /// The operand as a tensor; a scalar as one of the dtype of `beside`, which must represent it.
    pub(super) fn into_tensor(self, op: &'static str, beside: &Tensor<B>) -> Result<Tensor<B>> {
        match self {
            Input::Ref(tensor) => Ok(tensor.clone()),
            Input::Owned(tensor) => Ok(tensor),
            Input::Scalar(value) => {
                let dtype = beside.dtype();
                check_scalar(op, value, dtype, beside.shape())?;
                beside.number(value, dtype)
            }
        }
    }

    pub(super) fn tensor(&self) -> Option<&Tensor<B>> {
        match self {
            Input::Ref(tensor) => Some(tensor),
            Input::Owned(tensor) => Some(tensor),
            Input::Scalar(_) => None,
        }
    }

    /// The argument for the backend; an owned tensor is passed on as owned.
    pub(super) fn into_arg(self) -> Arg<'a, B::Tensor> {
        match self {
            Input::Ref(tensor) => Arg::Ref(tensor.data()),
            Input::Owned(tensor) => Arg::Owned(tensor.into_data()),
            Input::Scalar(value) => Arg::Scalar(value),
        }
    }

    /// Like [`into_arg`](Input::into_arg), with a tensor broadcast to `shape`.
    pub(super) fn broadcast(self, shape: &Shape) -> Result<Arg<'a, B::Tensor>> {
        match self.tensor() {
            Some(tensor) if tensor.shape() != shape => {
                let layout = tensor.layout().broadcast_to("broadcast_to", shape)?;
                Ok(Arg::Owned(B::view(tensor.data(), layout)?))
            }
            _ => Ok(self.into_arg()),
        }
    }

    /// The argument for the backend, by reference.
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

    /// True if no element is NaN or infinite.
    pub(super) fn is_finite(&self) -> bool {
        match self {
            Input::Scalar(value) => value.to_f64().is_finite(),
            _ => self.tensor().is_none_or(anomaly::is_finite),
        }
    }

    pub(super) fn node(&self) -> Option<Shared<GraphNode<B>>> {
        self.tensor()?.node().cloned()
    }

    /// The operand as derivative rules save it; a scalar is of `dtype`.
    pub(super) fn saved(&self, dtype: DType) -> Saved<B> {
        match self {
            Input::Ref(tensor) => Saved::Tensor((*tensor).clone()),
            Input::Owned(tensor) => Saved::Tensor(tensor.clone()),
            Input::Scalar(value) => Saved::Scalar(*value, dtype),
        }
    }
}

#[track_caller]
pub(super) fn or_panic<B: Backend>(result: Result<Tensor<B>>) -> Tensor<B> {
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

        operators!(@left f64 $Trait $method $Variant);
        operators!(@left i64 $Trait $method $Variant);
    )*};
    (@left $Scalar:ident $Trait:ident $method:ident $Variant:ident) => {
        operators!(@left $Scalar $Trait $method $Variant, Tensor<B>, Owned);
        operators!(@left $Scalar $Trait $method $Variant, &Tensor<B>, Ref);
    };
    (@left $Scalar:ident $Trait:ident $method:ident $Variant:ident, $Rhs:ty, $Input:ident) => {
        impl<B: Backend> $Trait<$Rhs> for $Scalar {
            type Output = Tensor<B>;
            #[track_caller]
            fn $method(self, rhs: $Rhs) -> Tensor<B> {
                let lhs = Input::Scalar(self.into());
                or_panic(B::engine_binary(BinaryOp::$Variant, lhs, Input::$Input(rhs)))
            }
        }
    };
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

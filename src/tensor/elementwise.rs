//! Element-wise methods: the rows of the op table, scalars, comparisons, selection, conversion.

use crate::autodiff::graph::{record, record_nodes, should_record};
use crate::autodiff::is_grad_enabled;
use crate::autodiff::ops::select::where_rule;
use crate::autodiff::ops::view::identity_rule;
use crate::autodiff::rules::{binary_keeps, binary_rule, unary_rule};
use crate::backend::{
    Backend, TensorData, broadcast, broadcast_pair, check_arithmetic, unify_bool,
};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::{BinaryOp, CompareOp, UnaryOp, binary_ops, unary_ops};
use crate::shape::{Shape, broadcast_shape_for};

use super::Tensor;
use super::operators::{Input, Operand};
use super::ternary::broadcast_shapes_for;

macro_rules! unary_methods {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        $($rest:tt)*
    })*) => {
        /// # Functions of one tensor
        ///
        /// Element-wise functions of one tensor. The result has the tensor's shape and dtype.
        /// Integers give [`Error::UnsupportedDType`] where a function is defined for floats only.
        impl<B: Backend> Tensor<B> {
            $(
                $(#[$doc])*
                #[doc = concat!("\n```\nuse swath::prelude::*;\nlet x = tensor![0.25, 0.5];\nlet y = x.",
                    stringify!($method), "()?;\nassert_eq!(y.dims(), [2]);\n# Ok::<(), Error>(())\n```")]
                pub fn $method(&self) -> Result<Tensor<B>> {
                    self.unary(UnaryOp::$Variant)
                }
            )*
        }
    };
}
unary_ops!(unary_methods);

macro_rules! binary_methods {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        $($rest:tt)*
    })*) => {
        /// # Functions of two tensors
        ///
        /// Element-wise functions of two tensors, or of a tensor and a scalar. Shapes broadcast.
        /// The dtypes must be equal, else [`Error::DTypeMismatch`].
        impl<B: Backend> Tensor<B> {
            $(
                $(#[$doc])*
                #[doc = concat!("\n```\nuse swath::prelude::*;\nlet a = tensor![3.0, 4.0];\nlet y = a.",
                    stringify!($method), "(&tensor![[0.5], [2.0]])?;\nassert_eq!(y.dims(), [2, 2]);\n\
                    assert_eq!(a.", stringify!($method), "(2.0)?.dims(), [2]);\n# Ok::<(), Error>(())\n```")]
                pub fn $method(&self, rhs: impl Operand<B>) -> Result<Tensor<B>> {
                    self.binary(BinaryOp::$Variant, rhs)
                }
            )*
        }
    };
}
binary_ops!(binary_methods);

macro_rules! compare_methods {
    ($($(#[$doc:meta])* $method:ident $Variant:ident;)*) => {
        /// # Comparisons
        ///
        /// Element-wise comparisons. Shapes broadcast; the dtypes must be equal. The result is
        /// `Bool` and has no gradient. Comparisons with NaN are false, except `ne`.
        impl<B: Backend> Tensor<B> {
            $(
                $(#[$doc])*
                #[doc = concat!("\n```\nuse swath::prelude::*;\nlet x = tensor![1.0, 2.0, 3.0];\n\
                    let mask = x.", stringify!($method), "(2.0)?;\n\
                    assert_eq!(mask.to_vec::<bool>()?, [1.0, 2.0, 3.0].map(|x: f32| x.",
                    stringify!($method), "(&2.0)));\n# Ok::<(), Error>(())\n```")]
                pub fn $method(&self, rhs: impl Operand<B>) -> Result<Tensor<B>> {
                    self.compare(CompareOp::$Variant, rhs)
                }
            )*
        }
    };
}
compare_methods! {
    /// `self == rhs`, element by element.
    eq Eq;
    /// `self != rhs`, element by element.
    ne Ne;
    /// `self < rhs`, element by element.
    lt Lt;
    /// `self <= rhs`, element by element.
    le Le;
    /// `self > rhs`, element by element.
    gt Gt;
    /// `self >= rhs`, element by element.
    ge Ge;
}

/// Fails for booleans, and for integers unless the op is defined `on_integers`.
fn check_op(op: &'static str, on_integers: bool, dtype: DType, shape: &Shape) -> Result<()> {
    check_arithmetic(op, dtype, shape)?;
    if !dtype.is_float() && !on_integers {
        return Err(Error::UnsupportedDType { op, dtype, shape: *shape });
    }
    Ok(())
}

pub(super) fn check_binary(op: BinaryOp, dtype: DType, shape: &Shape) -> Result<()> {
    check_op(op.name(), op.reference_integer().is_some(), dtype, shape)
}

/// Fails unless `value` is representable in `dtype`, the dtype of a tensor of this shape. Floats
/// represent every scalar, after rounding.
pub(super) fn check_scalar(
    op: &'static str,
    value: Scalar,
    dtype: DType,
    shape: &Shape,
) -> Result<()> {
    if dtype.is_float() {
        return Ok(());
    }
    let (low, high) = dtype.integer_range();
    let fits = match value {
        // 2^63 is an `f64` and i64::MAX is not: the upper bound is exclusive.
        Scalar::Float(x) => x.fract() == 0.0 && x >= low as f64 && x < high as f64 + 1.0,
        _ => (low..=high).contains(&value.to_i128()),
    };
    if !fits {
        let reason =
            format!("scalar {value} is not representable in {dtype}, the dtype of shape {shape}");
        return Err(Error::InvalidArgument { op, reason });
    }
    Ok(())
}

/// # Scalars, selection, conversion
impl<B: Backend> Tensor<B> {
    /// Applies an op chosen at run time: `x.unary(UnaryOp::Exp)` is `x.exp()`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// use swath::ops::UnaryOp;
    /// assert_eq!(tensor![4.0].unary(UnaryOp::Sqrt)?.item::<f32>()?, 2.0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn unary(&self, op: UnaryOp) -> Result<Tensor<B>> {
        B::engine_unary(op, Input::Ref(self))
    }

    /// Applies an op chosen at run time: `a.binary(BinaryOp::Add, &b)` is `a.add(&b)`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// use swath::ops::BinaryOp;
    /// assert_eq!(tensor![4.0].binary(BinaryOp::Sub, 1.0)?.item::<f32>()?, 3.0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn binary(&self, op: BinaryOp, rhs: impl Operand<B>) -> Result<Tensor<B>> {
        rhs.with(|rhs| B::engine_binary(op, Input::Ref(self), rhs))
    }

    pub(crate) fn unary_body(op: UnaryOp, x: Input<'_, B>) -> Result<Tensor<B>> {
        let Some(tensor) = x.tensor() else {
            let reason = "expected a tensor, got a scalar".to_owned();
            return Err(Error::InvalidArgument { op: op.name(), reason });
        };
        let on_integers = op.reference_integer().is_some();
        check_op(op.name(), on_integers, tensor.dtype(), tensor.shape())?;
        if should_record(tensor.dtype(), &[tensor]) {
            let y = B::unary(op, tensor.data())?;
            return Ok(record(op.name(), y, &[tensor], |y| unary_rule(op, tensor, y)));
        }
        Ok(Tensor::from_data(B::unary(op, x.into_arg())?))
    }

    pub(crate) fn binary_body(op: BinaryOp, a: Input<'_, B>, b: Input<'_, B>) -> Result<Tensor<B>> {
        if is_grad_enabled() && (a.is_tracked() || b.is_tracked()) {
            return Tensor::binary_recorded(op, a, b);
        }
        let name = op.name();
        if let (Some(x), Some(y)) = (a.tensor(), b.tensor())
            && x.dtype() != y.dtype()
        {
            return Ok(Tensor::from_data(Tensor::binary_tensors(op, x, y)?.0));
        }
        check_operands(name, &a, &b, |dtype, shape| check_binary(op, dtype, shape))?;
        let shape = match (a.tensor(), b.tensor()) {
            (Some(x), Some(y)) if x.shape() != y.shape() => {
                Some(broadcast_shape_for(name, x.shape(), y.shape())?)
            }
            _ => None,
        };
        let (a, b) = match &shape {
            Some(shape) => (a.broadcast(shape)?, b.broadcast(shape)?),
            None => (a.into_arg(), b.into_arg()),
        };
        Ok(Tensor::from_data(B::binary(op, a, b)?))
    }

    fn binary_recorded(op: BinaryOp, a: Input<'_, B>, b: Input<'_, B>) -> Result<Tensor<B>> {
        let name = op.name();
        let (a_tracked, b_tracked) = (a.is_tracked(), b.is_tracked());
        let (keep_a, keep_b, keep_y) = binary_keeps(op, a_tracked, b_tracked);
        let (y, dtype) = match (a.tensor(), b.tensor()) {
            (Some(x), Some(y)) => Tensor::binary_tensors(op, x, y)?,
            _ => {
                let check = |dtype, shape: &Shape| check_binary(op, dtype, shape);
                let dtype = check_operands(name, &a, &b, check)?;
                (B::binary(op, a.as_arg(), b.as_arg())?, dtype)
            }
        };
        let saved_a = keep_a.then(|| a.saved(dtype));
        let saved_b = keep_b.then(|| b.saved(dtype));
        let inputs = smallvec::smallvec![a.node(), b.node()];
        let are_finite = || a.is_finite() && b.is_finite();
        Ok(record_nodes(name, y, inputs, &are_finite, |y| {
            binary_rule(op, saved_a, saved_b, keep_y.then(|| y.clone()))
        }))
    }

    /// The op on two tensors, broadcast to one shape and, for products with `Bool`, cast to one dtype,
    /// which is the second result.
    fn binary_tensors(op: BinaryOp, a: &Tensor<B>, b: &Tensor<B>) -> Result<(B::Tensor, DType)> {
        let (a, b) = broadcast_pair::<B>(op.name(), a.data(), b.data())?;
        let (a, b) = unify_bool::<B>(op, a, b)?;
        check_binary(op, a.dtype(), a.shape())?;
        Ok((B::binary(op, &a, &b)?, a.dtype()))
    }

    /// Applies a comparison chosen at run time: `a.compare(CompareOp::Lt, &b)` is `a.lt(&b)`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// use swath::ops::CompareOp;
    /// assert!(tensor![4.0].compare(CompareOp::Gt, 1.0)?.item::<bool>()?);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn compare(&self, op: CompareOp, rhs: impl Operand<B>) -> Result<Tensor<B>> {
        rhs.with(|rhs| B::engine_compare(op, self, rhs))
    }

    pub(crate) fn compare_body(
        op: CompareOp,
        x: &Tensor<B>,
        rhs: Input<'_, B>,
    ) -> Result<Tensor<B>> {
        let name = op.name();
        let lhs = Input::Ref(x);
        if let Some(other) = rhs.tensor() {
            let (a, b) = broadcast_pair::<B>(name, x.data(), other.data())?;
            x.check_dtype(name, other.dtype())?;
            return Ok(Tensor::from_data(B::compare(op, &a, &b)?));
        }
        check_operands(name, &lhs, &rhs, |_, _| Ok(()))?;
        Ok(Tensor::from_data(B::compare(op, lhs.as_arg(), rhs.as_arg())?))
    }

    /// `self + value`, element by element.
    ///
    /// A scalar takes the dtype of the tensor, here and wherever one is an operand. Integers are exact,
    /// beyond 2^53 too. On a tensor of integers a scalar must be an integer that the dtype represents:
    /// 0.5, and 300 on `U8`, are errors rather than rounded or wrapped.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![i64; 1, 2];
    /// assert_eq!(x.add_scalar(1i64 << 60)?.to_vec::<i64>()?, [(1 << 60) + 1, (1 << 60) + 2]);
    /// assert!(x.add_scalar(0.5).is_err());
    /// assert!(x.to_dtype(DType::U8)?.add_scalar(300).is_err());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the elements are integers and `value` is not representable in
    /// their dtype.
    pub fn add_scalar(&self, value: impl Into<Scalar>) -> Result<Tensor<B>> {
        B::engine_binary(BinaryOp::Add, Input::Ref(self), Input::Scalar(value.into()))
            .map_err(|e| e.named("add_scalar"))
    }

    /// `self · value`, element by element; the scalar as in [`add_scalar`](Tensor::add_scalar).
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![1.0, 2.0].mul_scalar(0.5)?.to_vec::<f32>()?, [0.5, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn mul_scalar(&self, value: impl Into<Scalar>) -> Result<Tensor<B>> {
        B::engine_binary(BinaryOp::Mul, Input::Ref(self), Input::Scalar(value.into()))
            .map_err(|e| e.named("mul_scalar"))
    }

    /// `self^p`, element by element: [`pow`](Tensor::pow) with a scalar exponent. On the CPU, -2, -1, 1 to 4 and ±½ are
    /// products and roots, here and in `pow`, with the same bound.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 4.0, 9.0];
    /// assert_eq!(x.powf(1.5)?.to_vec::<f32>()?, [1.0, 8.0, 27.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn powf(&self, p: f64) -> Result<Tensor<B>> {
        B::engine_binary(BinaryOp::Pow, Input::Ref(self), Input::Scalar(p.into()))
            .map_err(|e| e.named("powf"))
    }

    /// `self · mul + add`, element by element; each of the two operations rounds.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![1.0, 2.0].affine(2.0, 1.0)?.to_vec::<f32>()?, [3.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn affine(&self, mul: f64, add: f64) -> Result<Tensor<B>> {
        let product = self.mul_scalar(mul).map_err(|e| e.named("affine"))?;
        B::engine_binary(BinaryOp::Add, Input::Owned(product), Input::Scalar(add.into()))
            .map_err(|e| e.named("affine"))
    }

    /// `a` where `mask` is not zero, else `b`, element by element. The three shapes broadcast. `a`
    /// and `b` have the same dtype, `mask` any.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![-1.0, 2.0, -3.0];
    /// let y = Tensor::where_cond(&x.gt(0.0)?, &x, &tensor![0.0])?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 2.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn where_cond(mask: &Tensor<B>, a: &Tensor<B>, b: &Tensor<B>) -> Result<Tensor<B>> {
        B::engine_where(mask, a, b)
    }

    pub(crate) fn where_body(mask: &Tensor<B>, a: &Tensor<B>, b: &Tensor<B>) -> Result<Tensor<B>> {
        let op = "where_cond";
        a.check_dtype(op, b.dtype())?;
        let shape = broadcast_shapes_for(op, &[mask.shape(), a.shape(), b.shape()])?;
        let view = |x: &Tensor<B>| broadcast::<B>(op, x.data(), &shape);
        let mask_view = view(mask)?;
        let y = B::where_cond(&mask_view, &view(a)?, &view(b)?)?;
        Ok(record(op, y, &[a, b], |_| where_rule(Tensor::from_data(mask_view))))
    }

    /// Selects by this tensor as the mask: `a` where it is not zero, else `b`. See
    /// [`where_cond`](Tensor::where_cond).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![-1.0, 2.0];
    /// let magnitude = x.gt(0.0)?.select(&x, &x.neg()?)?;
    /// assert_eq!(magnitude.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn select(&self, a: &Tensor<B>, b: &Tensor<B>) -> Result<Tensor<B>> {
        Tensor::where_cond(self, a, b).map_err(|e| e.named("select"))
    }

    /// Converts the elements to `dtype`, as Rust's `as` does: floats to integers truncate and
    /// saturate, and NaN becomes 0; `Bool` is true where the value is not zero. Returns the tensor
    /// itself if it has the dtype already.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![1.9, -1.9].to_dtype(DType::I64)?.to_vec::<i64>()?, [1, -1]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor<B>> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        B::engine_cast(self, dtype)
    }

    pub(crate) fn cast_body(x: &Tensor<B>, dtype: DType) -> Result<Tensor<B>> {
        let y = B::cast(x.data(), dtype)?;
        Ok(record("to_dtype", y, &[x], |_| identity_rule()))
    }

    /// Converts 16-bit floats to `F32`, for sums, squares and quotients that may leave their range.
    pub(crate) fn widened(&self) -> Result<Tensor<B>> {
        self.to_dtype(self.dtype().at_least_f32())
    }

    /// The gradient of a selection: this tensor where `chosen`, half of it where `tied`, else 0.
    /// Selected rather than multiplied, so that an infinite gradient does not make NaN elsewhere.
    pub(crate) fn chosen(&self, chosen: &Tensor<B>, tied: &Tensor<B>) -> Result<Tensor<B>> {
        let zero = Tensor::zeros(Shape::scalar(), self.dtype())?;
        let halves = Tensor::where_cond(tied, &self.mul_scalar(0.5)?, &zero)?;
        Tensor::where_cond(chosen, self, &halves)
    }

    /// This tensor with 1 where `other` is 0 and this is not positive: an operand of `xlogy`, for gradients
    /// that are finite there.
    pub(crate) fn one_beside_zeros(&self, other: &Tensor<B>) -> Result<Tensor<B>> {
        let (x, other) = (self.detach(), other.detach());
        self.masked_fill(&other.eq(0.0)?.logical_and(&x.le(0.0)?)?, 1.0)
    }

    /// `1 − x²` as `(1 − x) (1 + x)`, which is accurate near ±1 too.
    pub(crate) fn one_less_square(&self) -> Result<Tensor<B>> {
        self.affine(-1.0, 1.0)?.mul(self.add_scalar(1.0)?)
    }

    /// `x / h`, where h is the length of `(x, b)`, with `s h` and `s`: s is ½ where h overflows, else
    /// 1. 16-bit floats are widened first: their length does not overflow.
    pub(crate) fn cosine(&self, b: &Tensor<B>) -> Result<[Tensor<B>; 3]> {
        let (a, b) = (self.widened()?, b.widened()?);
        let h = a.detach().hypot(b.detach())?;
        let scale = h.ones_like()?.masked_fill(&h.isinf()?, 0.5)?;
        let a = a.mul(&scale)?;
        let h = a.hypot(b.mul(&scale)?)?;
        Ok([a.div(&h)?, h, scale])
    }

    /// Returns this tensor: the gradient of an identity.
    pub(crate) fn same(&self) -> Result<Tensor<B>> {
        Ok(self.clone())
    }
}

/// Checks two operands, at least one of them a tensor, and returns their dtype.
pub(super) fn check_operands<B: Backend>(
    op: &'static str,
    a: &Input<'_, B>,
    b: &Input<'_, B>,
    check_dtype: impl Fn(DType, &Shape) -> Result<()>,
) -> Result<DType> {
    let Some(tensor) = a.tensor().or(b.tensor()) else {
        let reason = "expected a tensor, got two scalars".to_owned();
        return Err(Error::InvalidArgument { op, reason });
    };
    let dtype = tensor.dtype();
    check_dtype(dtype, tensor.shape())?;
    for input in [a, b] {
        if let Input::Scalar(value) = input {
            check_scalar(op, *value, dtype, tensor.shape())?;
        }
    }
    Ok(dtype)
}

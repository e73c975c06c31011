//! Element-wise methods: the rows of the op table, scalars, comparisons, selection, conversion.

use crate::autodiff::graph::{record, record_nodes, should_record};
use crate::autodiff::is_grad_enabled;
use crate::autodiff::ops::select::where_rule;
use crate::autodiff::ops::view::identity_rule;
use crate::autodiff::rules::{Saved, binary_keeps, binary_rule, unary_rule};
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
        /// Element-wise functions of one tensor. The result has its shape and dtype; float
        /// functions of integers are [`Error::UnsupportedDType`].
        impl<B: Backend> Tensor<B> {
            $(
                $(#[$doc])*
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
        /// Element-wise functions of two tensors, or of a tensor and a number. Shapes broadcast;
        /// dtypes are the same, else [`Error::DTypeMismatch`].
        impl<B: Backend> Tensor<B> {
            $(
                $(#[$doc])*
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
        /// Comparisons, element by element. Shapes broadcast, dtypes are the same; the result is
        /// `Bool` and has no gradient. Comparisons with NaN are false, but `ne` is true.
        impl<B: Backend> Tensor<B> {
            $(
                $(#[$doc])*
                pub fn $method(&self, rhs: impl Operand<B>) -> Result<Tensor<B>> {
                    self.compare(CompareOp::$Variant, rhs)
                }
            )*
        }
    };
}
compare_methods! {
    /// Equal.
    eq Eq;
    /// Not equal.
    ne Ne;
    /// Less than.
    lt Lt;
    /// Less than or equal.
    le Le;
    /// Greater than.
    gt Gt;
    /// Greater than or equal.
    ge Ge;
}

/// Truth values have no arithmetic, integers only where the op's row defines it.
fn check_op(op: &'static str, on_integers: bool, dtype: DType, shape: &Shape) -> Result<()> {
    check_arithmetic(op, dtype, shape)?;
    if !dtype.is_float() && !on_integers {
        return Err(Error::UnsupportedDType { op, dtype, shape: *shape });
    }
    Ok(())
}

fn check_unary(op: UnaryOp, dtype: DType, shape: &Shape) -> Result<()> {
    check_op(op.name(), op.reference_integer().is_some(), dtype, shape)
}

fn check_binary(op: BinaryOp, dtype: DType, shape: &Shape) -> Result<()> {
    check_op(op.name(), op.reference_integer().is_some(), dtype, shape)
}

/// A number that meets an integer tensor, of this shape, must be that integer.
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
        // 2^63 is a float, i64::MAX is not: the upper bound is exclusive.
        Scalar::Float(x) => x.fract() == 0.0 && x >= low as f64 && x < high as f64 + 1.0,
        Scalar::Int(x) => (low..=high).contains(&x),
    };
    if !fits {
        let reason = format!("the number {value} is no value of a tensor {shape} of {dtype}");
        return Err(Error::InvalidArgument { op, reason });
    }
    Ok(())
}

impl<B: Backend> Tensor<B> {
    /// The unary op as a value: `x.unary(UnaryOp::Exp)` is `x.exp()`.
    pub fn unary(&self, op: UnaryOp) -> Result<Tensor<B>> {
        B::engine_unary(op, Input::Ref(self))
    }

    /// The binary op as a value: `a.binary(BinaryOp::Add, &b)` is `a.add(&b)`.
    pub fn binary(&self, op: BinaryOp, rhs: impl Operand<B>) -> Result<Tensor<B>> {
        rhs.with(|rhs| B::engine_binary(op, Input::Ref(self), rhs))
    }

    pub(crate) fn unary_body(op: UnaryOp, x: Input<'_, B>) -> Result<Tensor<B>> {
        let Some(tensor) = x.tensor() else {
            let reason = "the operand is a number".to_owned();
            return Err(Error::InvalidArgument { op: op.name(), reason });
        };
        check_unary(op, tensor.dtype(), tensor.shape())?;
        if should_record(tensor.dtype(), &[tensor]) {
            let y = B::unary(op, tensor.data())?;
            return Ok(record(op.name(), y, &[tensor], |y| unary_rule(op, tensor, y)));
        }
        Ok(Tensor::from_data(B::unary(op, x.into_arg())?))
    }

    pub(crate) fn binary_body(op: BinaryOp, a: Input<'_, B>, b: Input<'_, B>) -> Result<Tensor<B>> {
        let recorded = is_grad_enabled() && (a.is_tracked() || b.is_tracked());
        if recorded {
            return Tensor::binary_recorded(op, a, b);
        }
        let name = op.name();
        if let (Some(x), Some(y)) = (a.tensor(), b.tensor())
            && x.dtype() != y.dtype()
        {
            let (x, y) = broadcast_pair::<B>(name, x.data(), y.data())?;
            let (x, y) = unify_bool::<B>(op, x, y)?;
            check_binary(op, x.dtype(), x.shape())?;
            return Ok(Tensor::from_data(B::binary(op, &x, &y)?));
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
        let (y, saved_a, saved_b) = match (a.tensor(), b.tensor()) {
            (Some(x), Some(y)) => {
                let (x_data, y_data) = broadcast_pair::<B>(name, x.data(), y.data())?;
                let (x_data, y_data) = unify_bool::<B>(op, x_data, y_data)?;
                check_binary(op, x_data.dtype(), x_data.shape())?;
                let saved = |keep: bool, t: &Tensor<B>| keep.then(|| Saved::Tensor(t.clone()));
                (B::binary(op, &x_data, &y_data)?, saved(keep_a, x), saved(keep_b, y))
            }
            _ => {
                let dtype =
                    check_operands(name, &a, &b, |dtype, shape| check_binary(op, dtype, shape))?;
                let saved = |keep: bool, input: &Input<'_, B>| {
                    keep.then(|| match input {
                        Input::Ref(tensor) => Saved::Tensor((*tensor).clone()),
                        Input::Owned(tensor) => Saved::Tensor(tensor.clone()),
                        Input::Scalar(value) => Saved::Scalar(*value, dtype),
                    })
                };
                (B::binary(op, a.as_arg(), b.as_arg())?, saved(keep_a, &a), saved(keep_b, &b))
            }
        };
        let node = |input: &Input<'_, B>| input.tensor().and_then(|t| t.node().cloned());
        let inputs = smallvec::smallvec![node(&a), node(&b)];
        Ok(record_nodes(name, y, inputs, |y| {
            binary_rule(op, saved_a, saved_b, keep_y.then(|| y.clone()))
        }))
    }

    /// The comparison as a value: `a.compare(CompareOp::Lt, &b)` is `a.lt(&b)`.
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
            if a.dtype() != b.dtype() {
                return Err(Error::DTypeMismatch {
                    op: name,
                    lhs: a.dtype(),
                    rhs: b.dtype(),
                    shape: *x.shape(),
                });
            }
            check_operands(name, &lhs, &lhs, |dtype, shape| check_comparable(name, dtype, shape))?;
            return Ok(Tensor::from_data(B::compare(op, &a, &b)?));
        }
        check_operands(name, &lhs, &rhs, |dtype, shape| check_comparable(name, dtype, shape))?;
        Ok(Tensor::from_data(B::compare(op, lhs.as_arg(), rhs.as_arg())?))
    }

    /// `self + value`.
    pub fn add_scalar(&self, value: impl Into<Scalar>) -> Result<Tensor<B>> {
        B::engine_binary(BinaryOp::Add, Input::Ref(self), Input::Scalar(value.into()))
            .map_err(|e| e.named("add_scalar"))
    }

    /// `self · value`.
    pub fn mul_scalar(&self, value: impl Into<Scalar>) -> Result<Tensor<B>> {
        B::engine_binary(BinaryOp::Mul, Input::Ref(self), Input::Scalar(value.into()))
            .map_err(|e| e.named("mul_scalar"))
    }

    /// `self` to a power that is a number: [`pow`](Tensor::pow) with one exponent.
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

    /// `self · mul + add`; each of the two operations rounds.
    pub fn affine(&self, mul: f64, add: f64) -> Result<Tensor<B>> {
        let product = self.mul_scalar(mul).map_err(|e| e.named("affine"))?;
        B::engine_binary(BinaryOp::Add, Input::Owned(product), Input::Scalar(add.into()))
            .map_err(|e| e.named("affine"))
    }

    /// `a` where `mask` is not zero, else `b`. All three broadcast; `a` and `b` have one dtype,
    /// `mask` any.
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
        if a.dtype() != b.dtype() {
            return Err(Error::DTypeMismatch {
                op,
                lhs: a.dtype(),
                rhs: b.dtype(),
                shape: *a.shape(),
            });
        }
        let shape = broadcast_shapes_for(op, &[mask.shape(), a.shape(), b.shape()])?;
        let view = |x: &Tensor<B>| broadcast::<B>(op, x.data(), &shape);
        let mask_view = view(mask)?;
        let y = B::where_cond(&mask_view, &view(a)?, &view(b)?)?;
        Ok(record(op, y, &[a, b], |_| where_rule(Tensor::from_data(mask_view))))
    }

    /// As a mask: `a` where this tensor is not zero, else `b`. See
    /// [`where_cond`](Tensor::where_cond).
    pub fn select(&self, a: &Tensor<B>, b: &Tensor<B>) -> Result<Tensor<B>> {
        Tensor::where_cond(self, a, b).map_err(|e| e.named("select"))
    }

    /// Converted to another dtype as Rust's `as` does: floats to integers cut the fraction off and
    /// saturate, NaN becomes 0; `Bool` is true where the value is not zero. Returns itself if it
    /// has the dtype.
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

    /// In `F32` if this is of 16 bits, which do not hold sums, squares and their quotients.
    pub(crate) fn widened(&self) -> Result<Tensor<B>> {
        self.to_dtype(self.dtype().at_least_f32())
    }

    /// This gradient where `chosen`, half of it where `tied`, else 0: selected, not multiplied, so
    /// that an infinite gradient stays out of the places that are not chosen.
    pub(crate) fn chosen(&self, chosen: &Tensor<B>, tied: &Tensor<B>) -> Result<Tensor<B>> {
        let zero = Tensor::zeros(Shape::scalar(), self.dtype())?;
        let halves = Tensor::where_cond(tied, &self.mul_scalar(0.5)?, &zero)?;
        Tensor::where_cond(chosen, self, &halves)
    }

    /// `1 − x²` as `(1 − x) (1 + x)`, accurate beside ±1 too.
    pub(crate) fn one_less_square(&self) -> Result<Tensor<B>> {
        self.affine(-1.0, 1.0)?.mul(self.add_scalar(1.0)?)
    }

    /// This tensor itself: the derivative of an identity.
    pub(crate) fn same(&self) -> Result<Tensor<B>> {
        Ok(self.clone())
    }
}

fn check_comparable(op: &'static str, dtype: DType, shape: &Shape) -> Result<()> {
    match dtype {
        DType::I32 | DType::U32 => Err(Error::UnsupportedDType { op, dtype, shape: *shape }),
        _ => Ok(()),
    }
}

/// The dtype of two operands of one shape, of which one may be a number.
fn check_operands<B: Backend>(
    op: &'static str,
    a: &Input<'_, B>,
    b: &Input<'_, B>,
    check_dtype: impl Fn(DType, &Shape) -> Result<()>,
) -> Result<DType> {
    let Some(tensor) = a.tensor().or(b.tensor()) else {
        let reason = "both operands are numbers".to_owned();
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

//! Element-wise methods of three operands.

use smallvec::SmallVec;

use std::cmp::Ordering;

use crate::autodiff::graph::record_nodes;
use crate::autodiff::is_grad_enabled;
use crate::autodiff::rules::ternary::{keeps, ternary_rule};
use crate::backend::{Arg, Backend};
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::ops::{BinaryOp, TernaryOp, ternary_ops};
use crate::runtime::recording::{DETECTING, has};
use crate::shape::{Shape, broadcast_shape_for};

use super::base::Tensor;
use super::operators::{Input, Operand};

macro_rules! ternary_methods {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        $($rest:tt)*
    })*) => {
        /// # Functions of three tensors
        ///
        /// Element-wise functions of three operands: `a` is this tensor, `b` and `c` are tensors or
        /// scalars. Shapes broadcast. The dtypes must be the same float type, else
        /// [`Error::DTypeMismatch`] or [`Error::UnsupportedDType`].
        ///
        /// ```
        /// use swath::prelude::*;
        /// let x = tensor![-2.0, 0.5, 2.0];
        /// assert_eq!(x.clamp(-1.0, 1.0)?.to_vec::<f32>()?, [-1.0, 0.5, 1.0]);
        /// assert_eq!(x.lerp(tensor![0.0], 0.5)?.to_vec::<f32>()?, [-1.0, 0.25, 1.0]);
        /// assert_eq!(x.mul_add(&x, 1.0)?.to_vec::<f32>()?, [5.0, 1.25, 5.0]);
        /// # Ok::<(), Error>(())
        /// ```
        ///
        /// Scalar bounds of [`clamp`](Tensor::clamp) must be in order, else
        /// [`Error::InvalidArgument`]; where the lower bound of two tensors is the larger one, the
        /// result is the upper bound. Integers can be clamped, too.
        impl<B: Backend> Tensor<B> {
            $(
                $(#[$doc])*
                #[doc = concat!("\n```\nuse swath::prelude::*;\nlet a = tensor![0.25, 4.0];\nlet y = a.",
                    stringify!($method), "(&tensor![0.5, 2.0], 3.0)?;\nassert_eq!(y.dims(), [2]);\n\
                    # Ok::<(), Error>(())\n```")]
                pub fn $method(&self, b: impl Operand<B>, c: impl Operand<B>) -> Result<Tensor<B>> {
                    self.ternary(TernaryOp::$Variant, b, c)
                }
            )*
        }
    };
}
ternary_ops!(ternary_methods);

/// # Functions of three tensors, chosen at run time
impl<B: Backend> Tensor<B> {
    /// Applies an op chosen at run time: `a.ternary(TernaryOp::MulAdd, &b, &c)` is
    /// `a.mul_add(&b, &c)`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// use swath::ops::TernaryOp;
    /// assert_eq!(tensor![2.0].ternary(TernaryOp::MulAdd, 3.0, 1.0)?.item::<f32>()?, 7.0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn ternary(
        &self,
        op: TernaryOp,
        b: impl Operand<B>,
        c: impl Operand<B>,
    ) -> Result<Tensor<B>> {
        b.with(|b| c.with(|c| B::engine_ternary(op, self, b, c)))
    }

    /// This tensor with `low` where an element is less: [`clamp`](Tensor::clamp) without an upper bound,
    /// with its derivative.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![-2.0, 0.5].clamp_min(0.0)?.to_vec::<f32>()?, [0.0, 0.5]);
    /// assert_eq!(tensor![i64; -2, 5].clamp_max(3)?.to_vec::<i64>()?, [-2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for booleans;
    /// [`Error::InvalidArgument`] for a scalar that an integer dtype does not represent.
    pub fn clamp_min(&self, low: impl Operand<B>) -> Result<Tensor<B>> {
        let clamped = low.with(|low| match self.dtype().is_float() {
            true => B::engine_ternary(TernaryOp::Clamp, self, low, Input::Scalar(NO_BOUND)),
            false => B::engine_binary(BinaryOp::Maximum, Input::Ref(self), low),
        });
        clamped.map_err(|e| e.named("clamp_min"))
    }

    /// This tensor with `high` where an element is greater: [`clamp`](Tensor::clamp) without a lower bound,
    /// with its derivative. See [`clamp_min`](Tensor::clamp_min).
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![-1.0, 2.0].clamp_max(0.5)?.to_vec::<f32>()?, [-1.0, 0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`clamp_min`](Tensor::clamp_min).
    pub fn clamp_max(&self, high: impl Operand<B>) -> Result<Tensor<B>> {
        let clamped = high.with(|high| match self.dtype().is_float() {
            true => B::engine_ternary(TernaryOp::Clamp, self, Input::Scalar(NO_BOUND), high),
            false => B::engine_binary(BinaryOp::Minimum, Input::Ref(self), high),
        });
        clamped.map_err(|e| e.named("clamp_max"))
    }

    pub(crate) fn ternary_body(
        op: TernaryOp,
        x: &Tensor<B>,
        b: Input<'_, B>,
        c: Input<'_, B>,
    ) -> Result<Tensor<B>> {
        let name = op.name();
        if let (TernaryOp::Clamp, Input::Scalar(low), Input::Scalar(high)) = (op, &b, &c) {
            check_bounds(*low, *high, x.shape())?;
        }
        if op == TernaryOp::Clamp && !x.dtype().is_float() {
            return B::engine_binary(BinaryOp::Maximum, Input::Ref(x), b)
                .and_then(|low| B::engine_binary(BinaryOp::Minimum, Input::Owned(low), c))
                .map_err(|e| e.named(name));
        }
        let dtype = x.dtype();
        let tensors = [&b, &c].map(|input| input.tensor());
        tensors.iter().flatten().try_for_each(|other| x.check_dtype(name, other.dtype()))?;
        let shape = match tensors.map(|tensor| tensor.map(Tensor::shape)) {
            [Some(b), Some(c)] => broadcast_shapes_for(name, &[x.shape(), b, c])?,
            [Some(other), None] | [None, Some(other)] => {
                broadcast_shape_for(name, x.shape(), other)?
            }
            [None, None] => *x.shape(),
        };
        x.check_float(name)?;
        let inputs = [Input::Ref(x), b, c];
        let tracked = inputs.each_ref().map(|input| input.is_tracked());
        if !is_grad_enabled() || tracked == [false; 3] {
            let [a, b, c] = broadcast(inputs, &shape)?;
            return Ok(Tensor::from_data(B::ternary(op, a, b, c)?));
        }
        let [keep_a, keep_b, keep_c, keep_y] = keeps(op, tracked);
        let nodes: SmallVec<_> = inputs.iter().map(Input::node).collect();
        let [a, b, c] = &inputs;
        let saved = [(a, keep_a), (b, keep_b), (c, keep_c)]
            .map(|(input, keep)| keep.then(|| input.saved(dtype)));
        // Found out now, while the operands are there, and only where an anomaly is to be detected.
        let are_finite = !has(DETECTING) || inputs.iter().all(Input::is_finite);
        // Saved operands share their storage, so the op below does not overwrite it.
        let [a, b, c] = broadcast(inputs, &shape)?;
        let y = B::ternary(op, a, b, c)?;
        Ok(record_nodes(name, y, nodes, &|| are_finite, |y| {
            ternary_rule(op, saved, keep_y.then(|| y.clone()))
        }))
    }
}

fn broadcast<'a, B: Backend>(
    [a, b, c]: [Input<'a, B>; 3],
    shape: &Shape,
) -> Result<[Arg<'a, B::Tensor>; 3]> {
    Ok([a.broadcast(shape)?, b.broadcast(shape)?, c.broadcast(shape)?])
}

/// A bound that [`Tensor::clamp`] ignores.
const NO_BOUND: Scalar = Scalar::Float(f64::NAN);

fn check_bounds(low: Scalar, high: Scalar, shape: &Shape) -> Result<()> {
    let ordered = match (low, high) {
        // A bound that is NaN is none.
        (Scalar::Float(_), _) | (_, Scalar::Float(_)) => {
            low.to_f64().partial_cmp(&high.to_f64()).is_none_or(Ordering::is_le)
        }
        _ => low.to_i128() <= high.to_i128(),
    };
    if !ordered {
        let reason = format!("bounds must be in order, got {low} and {high} for shape {shape}");
        return Err(Error::InvalidArgument { op: "clamp", reason });
    }
    Ok(())
}

/// The common shape that all of `shapes` broadcast to. The error names the first two operands that
/// do not fit each other, rather than an intermediate shape.
pub(super) fn broadcast_shapes_for(op: &'static str, shapes: &[&Shape]) -> Result<Shape> {
    let mut all = Shape::scalar();
    for (i, b) in shapes.iter().enumerate() {
        all = broadcast_shape_for(op, &all, b).map_err(|error| {
            let pair = shapes[..i].iter().find_map(|a| broadcast_shape_for(op, a, b).err());
            pair.unwrap_or(error)
        })?;
    }
    Ok(all)
}

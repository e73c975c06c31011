//! `scaled_dot_product_attention`.

use crate::autodiff::graph::record;
use crate::autodiff::ops::fused::attention::attention_rule;
use crate::backend::{Backend, check_mask};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{AttentionParameters, DropoutMask, FusedOp};
use crate::shape::{Shape, broadcast_shape_for};

use super::{check_float, check_same_dtype, exactly};
use crate::tensor::Tensor;

/// Options of [`Tensor::scaled_dot_product_attention`].
#[derive(Clone, Copy, Debug)]
pub struct Attention<'a, B: Backend> {
    /// Broadcasts to `[…, t, s]`. `Bool`: true where a query may look at a key. Float: added to the
    /// scaled scores; it has no gradient.
    pub mask: Option<&'a Tensor<B>>,
    /// Query i looks at keys `0..=i + (s - t)` alone: for s = t, not into the future.
    pub causal: bool,
    /// Factor of the scores; `1/√d` unless given.
    pub scale: Option<f64>,
    /// Dropout of the weights.
    pub dropout: Option<DropoutMask>,
}

impl<B: Backend> Default for Attention<'_, B> {
    fn default() -> Self {
        Attention { mask: None, causal: false, scale: None, dropout: None }
    }
}

impl<B: Backend> Tensor<B> {
    /// `softmax(scale · q·kᵀ + mask) · v` with queries `self` `[…, t, d]`, keys `[…, s, d]` and values
    /// `[…, s, e]`; leading axes are equal. The result is `[…, t, e]`.
    ///
    /// The scores of all heads are never held at once, neither here nor for the backward pass. A
    /// query that may look at nothing gets zeros. Without a mask a query whose scores are beyond about 1e9
    /// (`f64`: 1e18) may get NaN or infinities, since the largest one is rounded before it is subtracted. For
    /// the backward pass 16-bit floats keep the result in `f32`. What all keys have in common cancels in
    /// the gradient of queries, and what all values have, without dropout, in those of queries and keys: up to
    /// rounding.
    ///
    /// ```
    /// use swath::prelude::*;
    /// type T = Tensor<CpuBackend>;
    /// let mut rng = Rng::seed(1);
    /// let (q, k, v) = (T::randn((2, 5, 4), &mut rng)?, T::randn((2, 5, 4), &mut rng)?, T::randn((2, 5, 4), &mut rng)?);
    /// let y = q.scaled_dot_product_attention(&k, &v, Attention { causal: true, ..Default::default() })?;
    /// // The first position sees itself alone.
    /// assert_eq!(y.slice(s![0, 0])?.to_vec::<f32>()?, v.slice(s![0, 0])?.to_vec::<f32>()?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for integers;
    /// [`Error::InvalidArgument`] for a tracked mask or a probability outside `[0, 1)`.
    pub fn scaled_dot_product_attention(
        &self,
        keys: &Tensor<B>,
        values: &Tensor<B>,
        options: Attention<'_, B>,
    ) -> Result<Self> {
        let op = "scaled_dot_product_attention";
        check_float(op, self)?;
        check_same_dtype(op, self, keys)?;
        check_same_dtype(op, self, values)?;
        let rank = self.rank();
        let mismatch =
            |rhs: &Tensor<B>| Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *rhs.shape() };
        if rank < 2 || keys.rank() != rank || keys.dims()[rank - 1] != self.dims()[rank - 1] {
            return Err(mismatch(keys));
        }
        let lead = rank - 2;
        if keys.dims()[..lead] != self.dims()[..lead] {
            return Err(mismatch(keys));
        }
        if values.rank() != rank || values.dims()[..rank - 1] != keys.dims()[..rank - 1] {
            return Err(Error::ShapeMismatch { op, lhs: *keys.shape(), rhs: *values.shape() });
        }
        if let Some(dropout) = &options.dropout {
            check_mask(op, dropout)?;
        }
        let scores: Shape =
            self.dims()[..=lead].iter().copied().chain([keys.dims()[lead]]).collect();
        let mask = options.mask.map(|mask| expanded_mask(op, mask, &scores, self.dtype()));
        let depth = self.dims()[rank - 1].max(1) as f64;
        let parameters = AttentionParameters {
            scale: options.scale.unwrap_or(1.0 / depth.sqrt()),
            causal: options.causal,
            dropout: options.dropout,
        };
        let mask = mask.transpose()?;
        let mask_data = mask.as_ref().map(|mask| mask.data());
        let operands = [Some(self.data()), Some(keys.data()), Some(values.data()), mask_data];
        let results = B::fused(&FusedOp::Attention(parameters), &operands)?;
        let [y, largest, inverse, unrounded] = exactly(op, results)?;
        let inputs = [self, keys, values];
        Ok(record(op, y, &inputs, |_| {
            attention_rule(inputs, mask.as_ref(), [largest, inverse, unrounded], parameters)
        }))
    }

    /// `mask` has the shape of the scores; it is `Bool` or of this tensor's dtype.
    pub(crate) fn attention_definition(
        &self,
        keys: &Tensor<B>,
        values: &Tensor<B>,
        mask: Option<&Tensor<B>>,
        parameters: &AttentionParameters,
    ) -> Result<Self> {
        let rank = self.rank();
        let (t, s) = (self.dims()[rank - 2], keys.dims()[rank - 2]);
        let (queries, keys, values) = (self.widened()?, keys.widened()?, values.widened()?);
        let wide = queries.dtype();
        let lowest = Tensor::full(Shape::scalar(), f32::NEG_INFINITY)?.to_dtype(wide)?;
        let mut scores = queries.matmul(&keys.t()?)?.mul_scalar(parameters.scale)?;
        if let Some(mask) = mask {
            scores = match mask.dtype() {
                DType::Bool => Tensor::where_cond(mask, &scores, &lowest)?,
                _ => scores.add(&mask.widened()?)?,
            };
        }
        if parameters.causal {
            let row = Tensor::arange_as(0., t as f64, 1., DType::I64)?.reshape((t, 1))?;
            let column = Tensor::arange_as(0., s as f64, 1., DType::I64)?;
            let last = row.add_scalar(s as i64 - t as i64)?;
            scores = Tensor::where_cond(&column.le(&last)?, &scores, &lowest)?;
        }
        if s == 0 {
            return scores.matmul(&values)?.to_dtype(self.dtype());
        }
        // A row without anything to look at has weights of zero, and no gradient.
        let blind = scores.detach().max(Some(&[rank - 1]), true)?.eq(&lowest)?;
        let zero = Tensor::zeros(Shape::scalar(), wide)?;
        let weights = Tensor::where_cond(&blind, &zero, &scores)?.softmax_definition(rank - 1)?;
        let mut weights = Tensor::where_cond(&blind, &zero, &weights)?;
        if let Some(dropout) = parameters.dropout {
            weights = weights.dropout_definition(dropout)?;
        }
        weights.matmul(&values)?.to_dtype(self.dtype())
    }
}

/// The mask as a view of the scores' shape.
fn expanded_mask<B: Backend>(
    op: &'static str,
    mask: &Tensor<B>,
    scores: &Shape,
    dtype: DType,
) -> Result<Tensor<B>> {
    if mask.is_tracked() {
        let reason = format!("the mask of shape {} is tracked: detach it", mask.shape());
        return Err(Error::InvalidArgument { op, reason });
    }
    if mask.dtype() != DType::Bool && mask.dtype() != dtype {
        let (lhs, rhs, shape) = (dtype, mask.dtype(), *mask.shape());
        return Err(Error::DTypeMismatch { op, lhs, rhs, shape });
    }
    if broadcast_shape_for(op, mask.shape(), scores)? != *scores {
        return Err(Error::ShapeMismatch { op, lhs: *mask.shape(), rhs: *scores });
    }
    mask.broadcast_to(*scores)
}

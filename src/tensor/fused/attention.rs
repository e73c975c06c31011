//! `scaled_dot_product_attention`.

use crate::autodiff::graph::{SharedRule, Upstream, record, rule};
use crate::backend::{Backend, check_mask};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{AttentionParameters, DropoutMask, FusedOp};
use crate::shape::{Shape, broadcast_shape_for};

use super::{check_float, check_same_dtype, composite_gradients, gradient_kernel, kernel};
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
        B::engine_attention(self, keys, values, options)
    }

    pub(crate) fn attention_body(
        x: &Tensor<B>,
        keys: &Tensor<B>,
        values: &Tensor<B>,
        options: Attention<'_, B>,
    ) -> Result<Self> {
        let op = "scaled_dot_product_attention";
        check_float(op, x)?;
        check_same_dtype(op, x, keys)?;
        check_same_dtype(op, x, values)?;
        let rank = x.rank();
        let mismatch =
            |rhs: &Tensor<B>| Error::ShapeMismatch { op, lhs: *x.shape(), rhs: *rhs.shape() };
        if rank < 2 || keys.rank() != rank || keys.dims()[rank - 1] != x.dims()[rank - 1] {
            return Err(mismatch(keys));
        }
        let lead = rank - 2;
        if keys.dims()[..lead] != x.dims()[..lead] {
            return Err(mismatch(keys));
        }
        if values.rank() != rank || values.dims()[..rank - 1] != keys.dims()[..rank - 1] {
            return Err(Error::ShapeMismatch { op, lhs: *keys.shape(), rhs: *values.shape() });
        }
        if let Some(dropout) = &options.dropout {
            check_mask(op, dropout)?;
        }
        let scores: Shape = x.dims()[..=lead].iter().copied().chain([keys.dims()[lead]]).collect();
        let mask = options.mask.map(|mask| expanded_mask(op, mask, &scores, x.dtype()));
        let depth = x.dims()[rank - 1].max(1) as f64;
        let parameters = AttentionParameters {
            scale: options.scale.unwrap_or(1.0 / depth.sqrt()),
            causal: options.causal,
            dropout: options.dropout,
        };
        let mask = mask.transpose()?;
        let fused = FusedOp::Attention {
            q: x.data(),
            k: keys.data(),
            v: values.data(),
            mask: mask.as_ref().map(Tensor::data),
            parameters,
        };
        let Some([y, largest, inverse, unrounded]) = kernel::<B, 4>(&fused)? else {
            return x.attention_composite(keys, values, mask.as_ref(), &parameters);
        };
        let inputs = [x, keys, values];
        Ok(record(op, y, &inputs, |_| {
            attention_rule(inputs, mask, [largest, inverse, unrounded], parameters)
        }))
    }

    /// Defines [`Tensor::scaled_dot_product_attention`]. `mask` has the shape of the scores; it is `Bool`
    /// or of this tensor's dtype.
    fn attention_composite(
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
        let weights =
            Tensor::where_cond(&blind, &zero, &scores)?.softmax_composite(rank - 1, false)?;
        let mut weights = Tensor::where_cond(&blind, &zero, &weights)?;
        if let Some(dropout) = parameters.dropout {
            weights = weights.dropout_composite(dropout)?;
        }
        weights.matmul(&values)?.to_dtype(self.dtype())
    }
}

/// Gradients of queries, keys and values. The kernel computes the weights anew from each row's largest
/// score and `1/Σ e^(score - largest)`; `unrounded` is the result in the statistics' dtype.
fn attention_rule<B: Backend>(
    [q, k, v]: [&Tensor<B>; 3],
    mask: Option<Tensor<B>>,
    [largest, inverse, unrounded]: [B::Tensor; 3],
    parameters: AttentionParameters,
) -> SharedRule<B> {
    let (q, k, v) = (q.clone(), k.clone(), v.clone());
    rule(move |upstream: &Upstream<'_, B>, wanted| {
        let fused = FusedOp::AttentionGrad {
            g: upstream.g.data(),
            q: q.data(),
            k: k.data(),
            v: v.data(),
            mask: mask.as_ref().map(Tensor::data),
            largest: &largest,
            inverse: &inverse,
            y: &unrounded,
            parameters,
        };
        match gradient_kernel::<B, 3>(upstream, &fused)? {
            Some(gradients) => {
                let each = gradients.into_iter().zip(wanted);
                Ok(each.map(|(gradient, &wanted)| wanted.then_some(gradient)).collect())
            }
            None => composite_gradients(upstream, &[Some(&q), Some(&k), Some(&v)], || {
                q.attention_composite(&k, &v, mask.as_ref(), &parameters)
            }),
        }
    })
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

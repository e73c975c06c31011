//! `scaled_dot_product_attention`.

use crate::autodiff::graph::{SharedRule, Upstream, bytes_of, record, rule_keeping};
use crate::autodiff::is_grad_enabled;
use crate::backend::{Backend, check_mask};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{AttentionParameters, DropoutMask, FusedOp};
use crate::shape::{Shape, broadcast_shape_for};

use super::{gradients, kernel};
use crate::tensor::base::Tensor;

/// Options of [`Tensor::scaled_dot_product_attention`].
#[derive(Clone, Copy, Debug)]
pub struct Attention<'a, B: Backend> {
    /// Mask that broadcasts to `[…, t, s]`. A `Bool` mask is true where a query may attend to a
    /// key. A float mask, or bias, is added to the scaled scores. If it is tracked, it has a gradient, for
    /// which the scores of all heads are in memory at once.
    pub mask: Option<&'a Tensor<B>>,
    /// If true, query i attends to keys `0..=i + (s - t)` only: for s = t, to no later position.
    pub causal: bool,
    /// Factor of the scores; `1/√d` if `None`.
    pub scale: Option<f64>,
    /// Dropout of the attention weights.
    pub dropout: Option<DropoutMask>,
}

impl<B: Backend> Default for Attention<'_, B> {
    fn default() -> Self {
        Attention { mask: None, causal: false, scale: None, dropout: None }
    }
}

/// # Attention
impl<B: Backend> Tensor<B> {
    /// `softmax(scale · q·kᵀ + mask) · v` with queries `self` `[…, t, d]`, keys `[…, s, d]` and
    /// values `[…, s, e]`. Leading axes must be equal. The result is `[…, t, e]`.
    ///
    /// Queries may be grouped: with h heads of queries `[…, h, t, d]`, keys and values may have fewer heads,
    /// a divisor of h, each of which serves consecutive heads of queries (Ainslie et al., 2023). They are not
    /// repeated in memory.
    ///
    /// Without a tracked mask the scores of all heads are never held at once, neither here nor in the
    /// backward pass. A
    /// query that may attend to no key gets zeros. Without a mask, a query with scores beyond about
    /// 1e9 (`f64`: 1e18) may get NaN or infinities, since the largest score is rounded before it is
    /// subtracted. For the backward pass of 16-bit floats the result is kept in `f32`.
    ///
    /// A value whose key is masked has the weight 0 and is multiplied by it all the same, since to
    /// look for NaN would take a pass over the values: where a value is NaN or infinite, the results
    /// of all queries are NaN. A key may be NaN where a `Bool` mask hides it.
    ///
    /// Up to rounding, a vector that is added to all keys does not change the gradient of the
    /// queries, and a vector that is added to all values does not change those of queries and keys
    /// (without dropout).
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
    /// [`Error::InvalidArgument`] for a dropout probability outside `[0, 1)`; [`Error::TooManyAxes`] for
    /// grouped queries of eight axes.
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
        x.check_float(op)?;
        x.check_dtype(op, keys.dtype())?;
        x.check_dtype(op, values.dtype())?;
        if let Some(groups) = groups(x, keys) {
            return x.grouped_attention(keys, values, options, groups);
        }
        let rank = x.rank();
        let lead = rank.saturating_sub(2);
        let fits = rank >= 2
            && keys.rank() == rank
            && keys.dims()[rank - 1] == x.dims()[rank - 1]
            && keys.dims()[..lead] == x.dims()[..lead];
        if !fits {
            return Err(Error::ShapeMismatch { op, lhs: *x.shape(), rhs: *keys.shape() });
        }
        if values.rank() != rank || values.dims()[..rank - 1] != keys.dims()[..rank - 1] {
            return Err(Error::ShapeMismatch { op, lhs: *keys.shape(), rhs: *values.shape() });
        }
        if let Some(dropout) = &options.dropout {
            check_mask(op, dropout)?;
        }
        let scores: Shape = x.dims()[..=lead].iter().copied().chain([keys.dims()[lead]]).collect();
        let mask = options.mask.map(|mask| expanded_mask(op, mask, &scores, x.dtype()));
        let mask = mask.transpose()?;
        let depth = x.dims()[rank - 1].max(1) as f64;
        let parameters = AttentionParameters {
            scale: options.scale.unwrap_or(1.0 / depth.sqrt()),
            causal: options.causal,
            dropout: options.dropout,
        };
        if is_grad_enabled() && mask.as_ref().is_some_and(Tensor::is_tracked) {
            let y = x.attention_composite(keys, values, mask.as_ref(), &parameters);
            return y.map_err(|e| e.named(op));
        }
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

    /// Attention of queries `[…, h, t, d]` in `groups` of consecutive heads: as `[…, h / groups, groups, t, d]`,
    /// with keys and values repeated along the new axis by a stride of 0.
    fn grouped_attention(
        &self,
        keys: &Tensor<B>,
        values: &Tensor<B>,
        options: Attention<'_, B>,
        groups: usize,
    ) -> Result<Self> {
        let op = "scaled_dot_product_attention";
        let head = self.rank() - 3;
        let split = |x: &Tensor<B>| {
            let dims = x.dims().iter().enumerate();
            let split = dims.flat_map(|(axis, &dim)| match axis == head {
                true => [Some(dim / groups), Some(groups)],
                false => [Some(dim), None],
            });
            x.reshape(split.flatten().collect::<Shape>())
        };
        let repeated = |x: &Tensor<B>| {
            let x = x.unsqueeze(-3)?;
            let axis = x.rank() - 3;
            x.broadcast_to(x.shape().with_axis(axis, Some(groups)))
        };
        if values.rank() != self.rank() || values.dims()[..=head] != keys.dims()[..=head] {
            return Err(Error::ShapeMismatch { op, lhs: *keys.shape(), rhs: *values.shape() });
        }
        let scores: Shape =
            self.dims()[..head + 2].iter().copied().chain([keys.dims()[head + 1]]).collect();
        let mask = options.mask.map(|mask| split(&expanded_mask(op, mask, &scores, self.dtype())?));
        let mask = mask.transpose()?;
        let steps = || {
            let options = Attention { mask: mask.as_ref(), ..options };
            let (keys, values) = (repeated(keys)?, repeated(values)?);
            let y = split(self)?.scaled_dot_product_attention(&keys, &values, options)?;
            y.flatten(head, head + 1)
        };
        steps().map_err(|e| e.named(op))
    }

    /// Defines [`Tensor::scaled_dot_product_attention`]. `mask` has the shape of the scores and is
    /// `Bool` or of this tensor's dtype.
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
        // The weights of a query without keys are zeros and have no gradient.
        let is_masked = scores.detach().max(Some(&[rank - 1]), true)?.eq(&lowest)?;
        let zero = Tensor::zeros(Shape::scalar(), wide)?;
        let weights =
            Tensor::where_cond(&is_masked, &zero, &scores)?.softmax_composite(rank - 1, false)?;
        let mut weights = Tensor::where_cond(&is_masked, &zero, &weights)?;
        if let Some(dropout) = parameters.dropout {
            weights = weights.dropout_composite(dropout)?;
        }
        weights.matmul(&values)?.to_dtype(self.dtype())
    }
}

/// Gradients of queries, keys and values. The kernel recomputes the weights from the maximum score
/// of each row and `1/Σ e^(score - maximum)`. `unrounded` is the result in the dtype of the
/// statistics.
fn attention_rule<B: Backend>(
    [q, k, v]: [&Tensor<B>; 3],
    mask: Option<Tensor<B>>,
    [largest, inverse, unrounded]: [B::Tensor; 3],
    parameters: AttentionParameters,
) -> SharedRule<B> {
    let (q, k, v) = (q.clone(), k.clone(), v.clone());
    let operands = [q.data(), k.data(), v.data(), &largest, &inverse, &unrounded].map(Some);
    let bytes = bytes_of(operands.into_iter().chain([mask.as_ref().map(Tensor::data)]));
    rule_keeping(bytes, move |upstream: &Upstream<'_, B>, wanted| {
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
        let inputs = [Some(&q), Some(&k), Some(&v)];
        let mut gradients = gradients(upstream, &fused, inputs, || {
            q.attention_composite(&k, &v, mask.as_ref(), &parameters)
        })?;
        // Frees the gradients that are not wanted.
        gradients
            .iter_mut()
            .zip(wanted)
            .filter(|(_, wanted)| !**wanted)
            .for_each(|(g, _)| *g = None);
        Ok(gradients)
    })
}

/// Heads of queries for each head of keys, if there are more of them and the other leading axes are equal.
fn groups<B: Backend>(queries: &Tensor<B>, keys: &Tensor<B>) -> Option<usize> {
    let head = queries.rank().checked_sub(3)?;
    let (q, k) = (queries.dims(), keys.dims());
    if keys.rank() != queries.rank() || q[..head] != k[..head] || q[head + 2] != k[head + 2] {
        return None;
    }
    let is_grouped = k[head] > 0 && q[head] > k[head] && q[head].is_multiple_of(k[head]);
    is_grouped.then(|| q[head] / k[head])
}

/// Checks the mask and broadcasts it to the shape of the scores.
fn expanded_mask<B: Backend>(
    op: &'static str,
    mask: &Tensor<B>,
    scores: &Shape,
    dtype: DType,
) -> Result<Tensor<B>> {
    if mask.dtype() != DType::Bool && mask.dtype() != dtype {
        let (lhs, rhs, shape) = (dtype, mask.dtype(), *mask.shape());
        return Err(Error::DTypeMismatch { op, lhs, rhs, shape });
    }
    if broadcast_shape_for(op, mask.shape(), scores)? != *scores {
        return Err(Error::ShapeMismatch { op, lhs: *mask.shape(), rhs: *scores });
    }
    mask.broadcast_to(*scores)
}

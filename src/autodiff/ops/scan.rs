//! Derivatives of cumulative sums and products.

use smallvec::smallvec;

use crate::autodiff::graph::{SharedRule, Upstream, bytes_of, rule_keeping};
use crate::backend::Backend;
use crate::error::Result;
use crate::tensor::Tensor;

use super::linear;

/// Rule of `cumsum(axis)`: each element is a term of every later sum.
pub(crate) fn cumsum_rule<B: Backend>(axis: usize) -> SharedRule<B> {
    linear(move |g: &Tensor<B>| g.flip(axis)?.cumsum(axis)?.flip(axis))
}

/// Rule of `cumprod(axis)` of `x`, without a division, so that zeros need no special case:
///
/// ```text
/// dx[i] = (x[0] · … · x[i-1]) s[i]        s[i] = g[i] + x[i+1] s[i+1]
/// ```
///
/// The recurrence is solved in `f64`.
pub(crate) fn cumprod_rule<B: Backend>(x: &Tensor<B>, axis: usize) -> SharedRule<B> {
    let x = x.clone();
    rule_keeping(bytes_of([Some(x.data())]), move |upstream: &Upstream<'_, B>, _| {
        let (n, dtype, g) = (x.dims()[axis], x.dtype(), upstream.g);
        if n == 0 {
            return Ok(smallvec![Some(g.clone())]);
        }
        let wide = B::wide(Some(x.data()));
        let (x, g) = (x.to_dtype(wide)?, g.to_dtype(wide)?);
        let b = recurrence(x.narrow(axis, 1, n - 1)?, g, axis)?;
        let one = Tensor::ones(x.shape().with_axis(axis, Some(1)), wide)?;
        let before = x.cumprod(axis)?.narrow(axis, 0, n - 1)?;
        let gradient = Tensor::cat(&[&one, &before], axis)?.mul(&b)?.to_dtype(dtype)?;
        Ok(smallvec![Some(gradient)])
    })
}

/// Solves `s[i] = b[i] + a[i] s[i + 1]` along an axis, where `a` has no element for the last i, by doubling: after the
/// step of length d, `s[i] = b[i] + a[i] s[i + d]`; within d of the end, `s[i] = b[i]`, and `a` has no element i.
pub(crate) fn recurrence<B: Backend>(
    mut a: Tensor<B>,
    mut b: Tensor<B>,
    axis: usize,
) -> Result<Tensor<B>> {
    let (n, mut step) = (b.dims()[axis], 1);
    while step < n {
        let paired = n - step;
        let ahead = a.mul(&b.narrow(axis, step, paired)?)?;
        let head = b.narrow(axis, 0, paired)?.add(&ahead)?;
        b = Tensor::cat(&[&head, &b.narrow(axis, paired, step)?], axis)?;
        let left = paired.saturating_sub(step);
        a = a.narrow(axis, 0, left)?.mul(&a.narrow(axis, step.min(paired), left)?)?;
        step *= 2;
    }
    Ok(b)
}

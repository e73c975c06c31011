//! Derivatives of functions that are composed of rows of the op table.

use std::f64::consts::LN_2;

use smallvec::smallvec;

use crate::autodiff::graph::{SharedRule, Upstream, bytes_of, rule_keeping};
use crate::backend::Backend;
use crate::error::Result;
use crate::tensor::Tensor;

/// Rule of `logaddexp(a, b)`: `g σ(a - b)` and `g σ(b - a)`, which are NaN for equal infinities; of `logaddexp2`, if
/// `binary`, with `(a - b) ln 2`.
pub(crate) fn logaddexp_rule<B: Backend>(
    a: &Tensor<B>,
    b: &Tensor<B>,
    binary: bool,
) -> SharedRule<B> {
    let (a, b) = (a.clone(), b.clone());
    let bytes = bytes_of([Some(a.data()), Some(b.data())]);
    rule_keeping(bytes, move |upstream: &Upstream<'_, B>, wanted| {
        let g = upstream.g;
        let (x, y) = (a.widened()?, b.widened()?);
        let mut difference = x.sub(&y)?;
        if binary {
            difference = difference.mul(LN_2)?;
        }
        let share = |difference: Tensor<B>| -> Result<Tensor<B>> {
            g.widened()?.mul(difference.sigmoid()?)?.to_dtype(g.dtype())
        };
        let of_a = wanted[0].then(|| share(difference.clone())).transpose()?;
        let of_b = wanted[1].then(|| share(difference.neg()?)).transpose()?;
        Ok(smallvec![of_a, of_b])
    })
}

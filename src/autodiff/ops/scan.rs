//! Derivatives of running sums and products.

use crate::autodiff::graph::SharedRule;
use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::Tensor;

use super::one_input;

/// `cumsum(axis)`: an element is part of every total from its own on.
pub(crate) fn cumsum_rule<B: Backend>(axis: usize) -> SharedRule<B> {
    one_input(move |g: &Tensor<B>| g.flip(axis)?.cumsum(axis)?.flip(axis))
}

/// `cumprod(axis)` of `x`, without a division, so that zeros are like other numbers:
///
/// ```text
/// dx[i] = (x[0] · … · x[i-1]) s[i]        s[i] = g[i] + x[i+1] s[i+1]
/// ```
///
/// The recurrence is solved by doubling: after the step of length d, `s[i] = b[i] + a[i] s[i + d]`.
pub(crate) fn cumprod_rule<B: Backend>(x: &Tensor<B>, axis: usize) -> SharedRule<B> {
    let x = x.clone();
    one_input(move |g: &Tensor<B>| {
        let (n, dtype) = (x.dims()[axis], x.dtype());
        if n == 0 {
            return Ok(g.clone());
        }
        let wide = if dtype.size() < 4 { DType::F32 } else { dtype };
        let (x, g) = (x.to_dtype(wide)?, g.to_dtype(wide)?);
        let (mut a, mut b) = (ahead(&x, axis, 1)?, g);
        let mut step = 1;
        while step < n {
            b = b.add(&a.mul(&ahead(&b, axis, step)?)?)?;
            a = a.mul(&ahead(&a, axis, step)?)?;
            step *= 2;
        }
        let one = filled(&x, x.shape().with_axis(axis, Some(1)), 1.0)?;
        let before = x.cumprod(axis)?.narrow(axis, 0, n - 1)?;
        Tensor::cat(&[&one, &before], axis)?.mul(&b)?.to_dtype(dtype)
    })
}

/// Element `i + step` in place of element i of an axis, 0 beyond the end; `step` is at most the extent.
fn ahead<B: Backend>(x: &Tensor<B>, axis: usize, step: usize) -> Result<Tensor<B>> {
    let kept = x.narrow(axis, step, x.dims()[axis] - step)?;
    let zeros = filled(x, x.shape().with_axis(axis, Some(step)), 0.0)?;
    Tensor::cat(&[&kept, &zeros], axis)
}

fn filled<B: Backend>(like: &Tensor<B>, shape: Shape, value: f64) -> Result<Tensor<B>> {
    Ok(Tensor::from_data(B::full(shape, Scalar::Float(value), like.dtype())?))
}

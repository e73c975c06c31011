//! Derivative of the matrix product.

use smallvec::smallvec;

use crate::autodiff::graph::{InputGradients, Rule, SharedRule, Upstream, shared_rule};
use crate::backend::Backend;
use crate::error::Result;
use crate::tensor::Tensor;

struct MatmulRule<B: Backend> {
    a: Option<Tensor<B>>,
    b: Option<Tensor<B>>,
    /// One right side for a whole batch of left sides.
    b_is_shared: bool,
}

/// `C = A·B`: `dA = G·Bᵀ`, `dB = Aᵀ·G`; each factor is kept only if the other one is tracked.
/// Broadcast leading axes are summed by the engine; for a single B of a whole batch the batch is
/// folded into the rows, one product for all.
pub(crate) fn matmul_rule<B: Backend>(a: &Tensor<B>, b: &Tensor<B>) -> SharedRule<B> {
    shared_rule(MatmulRule {
        a: b.is_tracked().then(|| a.clone()),
        b: a.is_tracked().then(|| b.clone()),
        b_is_shared: b.rank() == 2 && a.rank() > 2,
    })
}

impl<B: Backend> Rule<B> for MatmulRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, wanted: &[bool]) -> Result<InputGradients<B>> {
        let g = upstream.g;
        let (a, b) = (self.a.as_ref(), self.b.as_ref());
        let da = b.filter(|_| wanted[0]).map(|b| g.matmul(&b.t()?)).transpose()?;
        let fold = |x: &Tensor<B>| match self.b_is_shared {
            true => x.flatten(0, -2),
            false => Ok(x.clone()),
        };
        let db = a.filter(|_| wanted[1]).map(|a| fold(a)?.t()?.matmul(&fold(g)?)).transpose()?;
        Ok(smallvec![da, db])
    }
}

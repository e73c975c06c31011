//! Derivative of the matrix product.

use smallvec::smallvec;

use crate::autodiff::graph::{
    InputGradients, Rule, SharedRule, Upstream, bytes_of_kept, shared_rule,
};
use crate::backend::Backend;
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor::einsum::contract::{Factor, contract};
use crate::tensor::einsum::equation::{Label, Labels};

struct MatmulRule<B: Backend> {
    a: Option<Tensor<B>>,
    b: Option<Tensor<B>>,
    factors: [FactorShape; 2],
}

/// Rank of a factor, and the axes along which it is broadcast.
#[derive(Clone, Copy)]
struct FactorShape {
    rank: u8,
    /// Bit i is set if the factor is broadcast along axis i of the product.
    repeated: u32,
}

impl FactorShape {
    fn new(shape: &Shape, batch: &Shape) -> Self {
        let lead = batch.ndim() + 2 - shape.ndim();
        let is_repeated =
            |i: usize| batch.dim(i) != 1 && (i < lead || shape.dim(i - lead) != batch.dim(i));
        let bits = (0..batch.ndim()).filter(|&i| is_repeated(i)).map(|i| 1 << i);
        FactorShape { rank: shape.ndim() as u8, repeated: bits.sum() }
    }

    fn is_repeated(self, axis: Label) -> bool {
        self.repeated >> axis & 1 == 1
    }
}

/// Labels of rows, columns and the inner axis. The label of a leading axis is its number.
const M: Label = 8;
const N: Label = 9;
const K: Label = 10;

/// Rule of `C = A·B`: `dA = G·Bᵀ` and `dB = Aᵀ·G`. Each factor is saved only if the other one is
/// tracked.
///
/// The gradient of a broadcast factor also sums over the axes along which it is broadcast. For a
/// single B the batch is merged into the rows of A and G; for a single A the columns of B and G are
/// first laid out side by side, by a copy of each.
pub(crate) fn matmul_rule<B: Backend>(
    a: &Tensor<B>,
    b: &Tensor<B>,
    batch: &Shape,
) -> SharedRule<B> {
    shared_rule(MatmulRule {
        a: b.is_tracked().then(|| a.clone()),
        b: a.is_tracked().then(|| b.clone()),
        factors: [FactorShape::new(a.shape(), batch), FactorShape::new(b.shape(), batch)],
    })
}

impl<B: Backend> Rule<B> for MatmulRule<B> {
    fn backward(&self, upstream: &Upstream<'_, B>, wanted: &[bool]) -> Result<InputGradients<B>> {
        let g = upstream.g;
        let da = self.b.as_ref().filter(|_| wanted[0]).map(|b| match self.factors[0].repeated {
            0 => upstream.product(0, g, &b.t()?),
            _ => self.summed(0, g, b),
        });
        let db = self.a.as_ref().filter(|_| wanted[1]).map(|a| match self.factors[1].repeated {
            0 => upstream.product(1, &a.t()?, g),
            _ => self.summed(1, a, g),
        });
        let fit = |gradient: Result<Tensor<B>>, factor: FactorShape| {
            let gradient = gradient?;
            match gradient.rank().checked_sub(usize::from(factor.rank)) {
                // Leading axes of extent 1 that the factor lacks.
                Some(surplus @ 1..) => gradient.reshape(&gradient.dims()[surplus..]),
                _ => Ok(gradient),
            }
        };
        let da = da.map(|gradient| fit(gradient, self.factors[0])).transpose()?;
        let db = db.map(|gradient| fit(gradient, self.factors[1])).transpose()?;
        Ok(smallvec![da, db])
    }

    fn saved_bytes(&self) -> usize {
        bytes_of_kept([&self.a, &self.b])
    }
}

impl<B: Backend> MatmulRule<B> {
    /// Gradient of a broadcast factor: of A (`of` = 0) from G and B, of B from A and G.
    fn summed(&self, of: usize, left: &Tensor<B>, right: &Tensor<B>) -> Result<Tensor<B>> {
        let (g, [left_matrix, right_matrix, matrix]) = match of {
            0 => (left, [[M, N], [K, N], [M, K]]),
            _ => (right, [[M, K], [M, N], [K, N]]),
        };
        let rank = g.rank();
        let labels = |factor_rank: usize, matrix: [Label; 2]| -> Labels {
            let lead = (rank - factor_rank..rank - 2).map(|axis| axis as Label);
            lead.chain(matrix).collect()
        };
        let sequence = labels(left.rank(), left_matrix);
        let a = Factor::new(left, &sequence)?;
        let b = Factor::new(right, &labels(right.rank(), right_matrix))?;
        let factor = self.factors[of];
        let all = labels(usize::from(factor.rank), matrix);
        let extent = |&label: &Label| match factor.is_repeated(label) {
            true => 1,
            false => a.extent_with(&b, label),
        };
        let shape: Shape = all.iter().map(extent).collect();
        let order: Labels = all.iter().copied().filter(|label| extent(label) != 1).collect();
        let kept = all.iter().copied().filter(|&label| !factor.is_repeated(label)).collect();
        contract(&a, &b, kept, Some(&order), &sequence)?.into_tensor(&order, shape)
    }
}

//! Derivative of the matrix product.

use super::bilinear;
use crate::autodiff::graph::SharedRule;
use crate::backend::Backend;
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor::einsum::contract::{Factor, contract};
use crate::tensor::einsum::equation::{Label, Labels};

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

/// Rule of `C = A·B`: `dA = G·Bᵀ` and `dB = Aᵀ·G`.
///
/// The gradient of a broadcast factor also sums over the axes along which it is broadcast. For a
/// single B the batch is merged into the rows of A and G; for a single A the columns of B and G are
/// first laid out side by side, by a copy of each.
pub(crate) fn matmul_rule<B: Backend>(
    a: &Tensor<B>,
    b: &Tensor<B>,
    batch: &Shape,
) -> SharedRule<B> {
    let factors = [a, b].map(|factor| FactorShape::new(factor.shape(), batch));
    bilinear([a, b], move |upstream, i, other| {
        let (g, factor) = (upstream.g, factors[i]);
        let gradient = match (i, factor.repeated) {
            (0, 0) => upstream.product(0, g, &other.t()?),
            (0, _) => factor.summed(0, g, other),
            (_, 0) => upstream.product(1, &other.t()?, g),
            _ => factor.summed(1, other, g),
        }?;
        match gradient.rank().checked_sub(usize::from(factor.rank)) {
            // Leading axes of extent 1 that the factor lacks.
            Some(surplus @ 1..) => gradient.reshape(&gradient.dims()[surplus..]),
            _ => Ok(gradient),
        }
    })
}

impl FactorShape {
    /// Gradient of a broadcast factor: of A (`of` = 0) from G and B, of B from A and G.
    fn summed<B: Backend>(
        self,
        of: usize,
        left: &Tensor<B>,
        right: &Tensor<B>,
    ) -> Result<Tensor<B>> {
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
        let all = labels(usize::from(self.rank), matrix);
        let extent = |&label: &Label| match self.is_repeated(label) {
            true => 1,
            false => a.extent_with(&b, label),
        };
        let shape: Shape = all.iter().map(extent).collect();
        let order: Labels = all.iter().copied().filter(|label| extent(label) != 1).collect();
        let kept = all.iter().copied().filter(|&label| !self.is_repeated(label)).collect();
        contract(&a, &b, kept, Some(&order), &sequence)?.into_tensor(&order, shape)
    }
}

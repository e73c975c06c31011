//! Products of `I64` for backends without a kernel of them.

use super::{Arg, Backend, TensorData};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops::{BinaryOp, ReduceOp};
use crate::shape::Shape;

/// Products of matrices of `I64`, by element-wise products of parts of them and sums.
pub(super) fn integer_matmul<B: Backend>(a: &B::Tensor, b: &B::Tensor) -> Result<B::Tensor> {
    /// Products in memory at a time.
    const PIECE: usize = 1 << 22;
    let (op, lhs) = ("matmul", *a.shape());
    let (dims, rank) = (lhs.dims(), lhs.ndim());
    let batch: usize = dims[..rank - 2].iter().product();
    let [m, k, n] = [dims[rank - 2], dims[rank - 1], b.shape().dim(rank - 1)];
    let (a, b) = (B::reshape(a, [batch, m, k, 1])?, B::reshape(b, [batch, 1, k, n])?);
    let out = a.shape().with_axis(2, Some(1)).with_axis(3, Some(n));
    let mut sum = B::full(out, Scalar::Int(0), DType::I64)?;
    let step = (PIECE / out.numel().max(1)).max(1);
    for start in (0..k).step_by(step) {
        let part =
            |x: &B::Tensor| B::view(x, x.layout().narrow(op, 2, start, step.min(k - start))?);
        let products = B::mul(&part(&a)?, &part(&b)?)?;
        let products = B::reduce(ReduceOp::Sum, &products, &[2])?;
        sum = B::binary(BinaryOp::Add, Arg::Owned(sum), Arg::Owned(products))?;
    }
    let shape: Shape = dims[..rank - 1].iter().copied().chain([n]).collect();
    B::reshape(&sum, shape)
}

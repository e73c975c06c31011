//! Matrix products.

use crate::autodiff::graph::record;
use crate::autodiff::ops::matmul::matmul_rule;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::shape::{Shape, broadcast_shape_for};

use super::Tensor;

impl<B: Backend> Tensor<B> {
    /// Matrix product `[…, m, k] × […, k, n] → […, m, n]`; leading axes broadcast. A vector `[k]` on
    /// the left is a row, on the right a column, and its axis goes away.
    ///
    /// Transposed, sliced and broadcast operands are read where they are.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let a = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// assert_eq!(a.matmul(&a.t()?)?.to_vec::<f32>()?, [5.0, 11.0, 11.0, 25.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the inner extents differ or an operand is a scalar;
    /// [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for integers.
    pub fn matmul(&self, rhs: &Tensor<B>) -> Result<Tensor<B>> {
        let op = "matmul";
        let mismatch = || Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *rhs.shape() };
        // Inner steps know other shapes than those that were given.
        let rename = |error| match error {
            Error::ShapeMismatch { .. } => mismatch(),
            error => error,
        };
        if self.dtype() != rhs.dtype() {
            return Err(Error::DTypeMismatch {
                op,
                lhs: self.dtype(),
                rhs: rhs.dtype(),
                shape: *self.shape(),
            });
        }
        if !self.dtype().is_float() {
            return Err(Error::UnsupportedDType { op, dtype: self.dtype(), shape: *self.shape() });
        }
        match (self.rank(), rhs.rank()) {
            (0, _) | (_, 0) => return Err(mismatch()),
            (1, 1) => {
                return self.unsqueeze(0)?.matmul(&rhs.unsqueeze(1)?).map_err(rename)?.reshape(());
            }
            (1, _) => return self.unsqueeze(0)?.matmul(rhs).map_err(rename)?.squeeze(-2),
            (_, 1) => return self.matmul(&rhs.unsqueeze(1)?).map_err(rename)?.squeeze(-1),
            _ => {}
        }
        let (a_batch, [m, k]) = split(self.shape());
        let (b_batch, [inner, n]) = split(rhs.shape());
        if k != inner {
            return Err(mismatch());
        }
        let batch = broadcast_shape_for(op, &a_batch, &b_batch).map_err(rename)?;
        shape_of(&batch, m, n).validate(op)?;
        let operand = |x: &Tensor<B>, rows, cols| -> Result<B::Tensor> {
            let shape = shape_of(&batch, rows, cols);
            if x.shape() == &shape {
                return Ok(x.data().clone());
            }
            let layout: Layout = x.layout().broadcast_to(op, &shape)?;
            B::view(x.data(), layout)
        };
        let data = B::matmul(&operand(self, m, k)?, &operand(rhs, k, n)?)?;
        Ok(record(op, data, &[self, rhs], |_| matmul_rule(self, rhs)))
    }
}

/// Leading axes, and the last two.
fn split(shape: &Shape) -> (Shape, [usize; 2]) {
    let dims = shape.dims();
    let (batch, matrix) = dims.split_at(dims.len() - 2);
    (batch.into(), [matrix[0], matrix[1]])
}

fn shape_of(batch: &Shape, rows: usize, cols: usize) -> Shape {
    batch.dims().iter().copied().chain([rows, cols]).collect()
}

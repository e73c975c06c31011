//! Diagonals, triangles and blocks of matrices; all tuples of the elements of vectors.

use std::borrow::Borrow;

use crate::autodiff::ops::view::on_diagonal;
use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::{Axis, Shape};

use super::base::Tensor;
use super::index::borrowed;
use super::pad::PadMode;

/// # Diagonals, blocks, tuples
///
/// # Errors
/// [`Error::InvalidShape`] for a number of axes that does not fit; [`Error::AxisOutOfRange`]; [`Error::RepeatedAxis`];
/// [`Error::InvalidArgument`] for an empty list; [`Error::DTypeMismatch`]; [`Error::TooManyAxes`], [`Error::Overflow`] or
/// [`Error::OutOfMemory`] for results that are too large.
impl<B: Backend> Tensor<B> {
    /// Makes of the last axis `[…, n]` a diagonal of matrices, 0 elsewhere, whose axes in the result are `first` and
    /// `second`: element i is at `[i, i + offset]`. A negative offset is below the main diagonal.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0], [2.0]].diag_embed(1, -2, -1)?;
    /// assert_eq!(x.dims(), [2, 2, 2]);
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn diag_embed(
        &self,
        offset: isize,
        first: impl Into<Axis>,
        second: impl Into<Axis>,
    ) -> Result<Self> {
        let (op, rank) = ("diag_embed", self.rank() + 1);
        let Some((&n, outer)) = self.dims().split_last() else {
            let reason = "expected at least one axis";
            return Err(Error::InvalidShape { op, shape: *self.shape(), reason });
        };
        let first = first.into().resolve_in(op, self.shape(), rank)?;
        let second = second.into().resolve_in(op, self.shape(), rank)?;
        if first == second {
            return Err(Error::RepeatedAxis { op, axis: first, shape: *self.shape() });
        }
        let with_extent = |extent| {
            let mut outer = outer.iter().copied();
            let axes = (0..rank).map(|axis| match axis == first || axis == second {
                true => extent,
                false => outer.next().unwrap_or(1),
            });
            axes.collect::<Shape>()
        };
        with_extent(n.saturating_add(offset.unsigned_abs())).validate(op)?;
        let mut pads = vec![(0, 0); rank];
        let (up, down) = (offset.max(0), (-offset).max(0));
        (pads[first], pads[second]) = ((down, up), (up, down));
        let embedded = on_diagonal(self, with_extent(n), [first, second])
            .and_then(|square| square.pad(&pads, PadMode::Constant(0.0)));
        embedded.map_err(|error| error.named(op))
    }

    /// Joins matrices along a diagonal, 0 elsewhere. A vector is a row, a scalar a matrix of one element.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = Tensor::block_diag(&[&tensor![[1.0], [2.0]], &tensor![3.0, 4.0]])?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn block_diag<T: Borrow<Tensor<B>>>(blocks: &[T]) -> Result<Self> {
        let op = "block_diag";
        let matrices = borrowed(blocks).into_iter().map(|x| match x.rank() {
            0 | 1 => x.reshape((1, x.numel())),
            2 => Ok(x.clone()),
            _ => {
                let reason = "expected at most two axes";
                Err(Error::InvalidShape { op, shape: *x.shape(), reason })
            }
        });
        let matrices = matrices.collect::<Result<Vec<_>>>()?;
        let total = matrices.iter().fold(0usize, |sum, x| sum.saturating_add(x.dims()[1]));
        Shape::from(total).validate(op)?;
        let mut before = 0;
        let rows = matrices.iter().map(|x| {
            let pads = (before as isize, (total - before - x.dims()[1]) as isize);
            before += x.dims()[1];
            x.pad(&[(0, 0), pads], PadMode::Constant(0.0))
        });
        let rows = rows.collect::<Result<Vec<_>>>();
        rows.and_then(|rows| Tensor::cat(&rows, 0)).map_err(|error| error.named(op))
    }

    /// All tuples of one element of each vector, as the rows of a matrix, the last element changing fastest. One vector
    /// is returned as it is.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = Tensor::cartesian_prod(&[&tensor![1.0, 2.0], &tensor![3.0, 4.0]])?;
    /// assert_eq!((x.dims(), x.to_vec::<f32>()?), (&[4, 2][..], vec![1., 3., 1., 4., 2., 3., 2., 4.]));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn cartesian_prod<T: Borrow<Tensor<B>>>(vectors: &[T]) -> Result<Self> {
        let tuples = || {
            let grid = Tensor::meshgrid(vectors)?;
            let columns = grid.iter().map(|x| x.reshape(-1)).collect::<Result<Vec<_>>>()?;
            match &columns[..] {
                [vector] => Ok(vector.clone()),
                columns => Tensor::stack(columns, 1),
            }
        };
        tuples().map_err(|error: Error| error.named("cartesian_prod"))
    }

    /// Indices of the elements of a matrix that [`tril`](Tensor::tril) keeps, in row-major order: rows and columns, as
    /// `[2, count]`, `I64`.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// assert_eq!(Tensor::tril_indices(2, 3, 0)?.to_vec::<i64>()?, [0, 1, 1, 0, 0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn tril_indices(rows: usize, columns: usize, k: isize) -> Result<Self> {
        let kept = Tensor::ones((rows, columns), DType::Bool).and_then(|all| all.tril(k));
        kept.and_then(|kept| kept.nonzero()?.t()).map_err(|error| error.named("tril_indices"))
    }

    /// Indices of the elements of a matrix that [`triu`](Tensor::triu) keeps; see [`tril_indices`](Tensor::tril_indices).
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// assert_eq!(Tensor::triu_indices(2, 3, 1)?.to_vec::<i64>()?, [0, 0, 1, 1, 2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn triu_indices(rows: usize, columns: usize, k: isize) -> Result<Self> {
        let kept = Tensor::ones((rows, columns), DType::Bool).and_then(|all| all.triu(k));
        kept.and_then(|kept| kept.nonzero()?.t()).map_err(|error| error.named("triu_indices"))
    }
}

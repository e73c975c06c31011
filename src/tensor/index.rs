//! Indexing by tensors, and joining.

use smallvec::SmallVec;

use crate::autodiff::graph::record;
use crate::autodiff::ops::index::{cat_rule, gather_rule, scatter_add_rule};
use crate::backend::{Backend, check_arithmetic};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::{Axis, Shape};

use super::Tensor;

/// Indices are `I64` tensors; an index outside its axis is [`Error::IndexOutOfRange`].
impl<B: Backend> Tensor<B> {
    /// `out[i, j, …] = self[i, index[i, j, …], …]` for axis 1, likewise for others. `index` has this
    /// tensor's rank and, along every other axis, at most its extent. The gradient is added up by
    /// [`scatter_add`](Tensor::scatter_add).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// let picked = x.gather(1, &tensor![i64; [1], [0]])?;
    /// assert_eq!(picked.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn gather(&self, axis: impl Into<Axis>, index: &Tensor<B>) -> Result<Self> {
        B::engine_gather(self, axis.into(), index)
    }

    pub(crate) fn gather_body(x: &Tensor<B>, axis: Axis, index: &Tensor<B>) -> Result<Self> {
        let op = "gather";
        let axis = axis.resolve(op, x.shape())?;
        check_index(op, x.shape(), axis, index)?;
        let data = B::gather(x.data(), axis, index.data())?;
        Ok(record(op, data, &[x], |_| gather_rule(*x.shape(), axis, index.clone())))
    }

    /// A copy with `out[i, index[i, j, …], …] += source[i, j, …]` for axis 1, likewise for others:
    /// the adjoint of [`gather`](Tensor::gather). Elements are added in row-major order of
    /// `source`, whose shape is the index's, each sum rounded to the dtype; sums of 16-bit floats
    /// are taken in `f32` and rounded once. Integers wrap.
    pub fn scatter_add(
        &self,
        axis: impl Into<Axis>,
        index: &Tensor<B>,
        source: &Tensor<B>,
    ) -> Result<Self> {
        B::engine_scatter_add(self, axis.into(), index, source)
    }

    pub(crate) fn scatter_add_body(
        x: &Tensor<B>,
        axis: Axis,
        index: &Tensor<B>,
        source: &Tensor<B>,
    ) -> Result<Self> {
        let op = "scatter_add";
        let axis = axis.resolve(op, x.shape())?;
        check_index(op, x.shape(), axis, index)?;
        if index.shape() != source.shape() {
            return Err(Error::ShapeMismatch { op, lhs: *index.shape(), rhs: *source.shape() });
        }
        if x.dtype() != source.dtype() {
            return Err(Error::DTypeMismatch {
                op,
                lhs: x.dtype(),
                rhs: source.dtype(),
                shape: *x.shape(),
            });
        }
        check_arithmetic(op, x.dtype(), x.shape())?;
        let data = B::scatter_add(x.data(), axis, index.data(), source.data())?;
        Ok(record(op, data, &[x, source], |_| scatter_add_rule(axis, index.clone())))
    }

    /// The parts of `axis` that the one-dimensional `index` names, in its order. The gradient is added
    /// up by [`index_add`](Tensor::index_add).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let table = tensor![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
    /// let rows = table.index_select(0, &tensor![i64; 2, 0])?;
    /// assert_eq!(rows.to_vec::<f32>()?, [5.0, 6.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn index_select(&self, axis: impl Into<Axis>, index: &Tensor<B>) -> Result<Self> {
        B::engine_index_select(self, axis.into(), index)
    }

    pub(crate) fn index_select_body(x: &Tensor<B>, axis: Axis, index: &Tensor<B>) -> Result<Self> {
        let op = "index_select";
        let axis = axis.resolve(op, x.shape())?;
        let index = spread_index(op, x.shape(), axis, index)?;
        let data = B::gather(x.data(), axis, index.data()).map_err(|e| e.named(op))?;
        Ok(record(op, data, &[x], |_| gather_rule(*x.shape(), axis, index)))
    }

    /// The rows of this table `[v, c]` that `ids` (`I64`, any shape `[…]`) name: `[…, c]`. The
    /// gradient adds up the rows in the order of the ids, as [`index_add`](Tensor::index_add) does.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let table = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// let rows = table.embedding(&tensor![i64; [1, 0], [1, 1]])?;
    /// assert_eq!(rows.dims(), [2, 2, 2]);
    /// assert_eq!(rows.slice(s![0])?.to_vec::<f32>()?, [3.0, 4.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] if the table has not two axes; [`Error::DTypeMismatch`] if the ids are
    /// not `I64`; [`Error::IndexOutOfRange`] for an id outside `0..v`.
    pub fn embedding(&self, ids: &Tensor<B>) -> Result<Self> {
        let op = "embedding";
        let &[_, width] = self.dims() else {
            let reason = "the table has two axes";
            return Err(Error::InvalidShape { op, shape: *self.shape(), reason });
        };
        if ids.dtype() != DType::I64 {
            let (lhs, rhs, shape) = (ids.dtype(), DType::I64, *ids.shape());
            return Err(Error::DTypeMismatch { op, lhs, rhs, shape });
        }
        let shape: Shape = ids.dims().iter().copied().chain([width]).collect();
        shape.validate(op)?;
        let flat = ids.detach().reshape(ids.numel())?;
        let rows = self.index_select(0, &flat).map_err(|error| error.named(op))?;
        rows.reshape(shape)
    }

    /// A copy with the parts of `source` added to the parts of `axis` that the one-dimensional
    /// `index` names: the adjoint of [`index_select`](Tensor::index_select). Parts are added in the
    /// order of the index, each sum rounded to the dtype; sums of 16-bit floats are taken in `f32` and
    /// rounded once. Integers wrap.
    pub fn index_add(
        &self,
        axis: impl Into<Axis>,
        index: &Tensor<B>,
        source: &Tensor<B>,
    ) -> Result<Self> {
        B::engine_index_add(self, axis.into(), index, source)
    }

    pub(crate) fn index_add_body(
        x: &Tensor<B>,
        axis: Axis,
        index: &Tensor<B>,
        source: &Tensor<B>,
    ) -> Result<Self> {
        let op = "index_add";
        let axis = axis.resolve(op, x.shape())?;
        let spread = spread_index(op, x.shape(), axis, index)?;
        if source.shape() != spread.shape() {
            let rhs = *source.shape();
            let fits_self = source.rank() == x.rank()
                && rhs.with_axis(axis, None) == x.shape().with_axis(axis, None);
            let lhs = if fits_self { *index.shape() } else { *x.shape() };
            return Err(Error::ShapeMismatch { op, lhs, rhs });
        }
        x.scatter_add(axis, &spread, source).map_err(|e| e.named(op))
    }

    /// The tensors one after the other along an axis. Other extents and dtypes are equal.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] without a tensor; [`Error::ShapeMismatch`];
    /// [`Error::DTypeMismatch`].
    pub fn cat(tensors: &[&Tensor<B>], axis: impl Into<Axis>) -> Result<Self> {
        B::engine_cat(tensors, axis.into())
    }

    pub(crate) fn cat_body(tensors: &[&Tensor<B>], axis: Axis) -> Result<Self> {
        let op = "cat";
        let Some(first) = tensors.first() else {
            return Err(Error::InvalidArgument { op, reason: "no tensors to join".to_owned() });
        };
        let axis = axis.resolve(op, first.shape())?;
        let data: SmallVec<[&B::Tensor; 4]> = tensors.iter().map(|tensor| tensor.data()).collect();
        let data = B::cat(&data, axis)?;
        Ok(record(op, data, tensors, |_| {
            cat_rule(axis, tensors.iter().map(|tensor| tensor.dims()[axis]).collect())
        }))
    }
}

fn check_index<B: Backend>(
    op: &'static str,
    shape: &Shape,
    axis: usize,
    index: &Tensor<B>,
) -> Result<()> {
    if index.dtype() != DType::I64 {
        return Err(Error::DTypeMismatch {
            op,
            lhs: index.dtype(),
            rhs: DType::I64,
            shape: *index.shape(),
        });
    }
    let fits = index.rank() == shape.ndim()
        && (0..shape.ndim()).all(|i| i == axis || index.dims()[i] <= shape.dims()[i]);
    if !fits {
        return Err(Error::ShapeMismatch { op, lhs: *shape, rhs: *index.shape() });
    }
    Ok(())
}

/// A one-dimensional index repeated, by strides of 0, along the other axes of `shape`. Where one of them
/// is empty no element is left for a backend to check, and it is checked here.
fn spread_index<B: Backend>(
    op: &'static str,
    shape: &Shape,
    axis: usize,
    index: &Tensor<B>,
) -> Result<Tensor<B>> {
    if index.dtype() != DType::I64 {
        return Err(Error::DTypeMismatch {
            op,
            lhs: index.dtype(),
            rhs: DType::I64,
            shape: *index.shape(),
        });
    }
    if index.rank() != 1 {
        let reason = "the index has one axis";
        return Err(Error::InvalidShape { op, shape: *index.shape(), reason });
    }
    let len = index.numel();
    if shape.with_axis(axis, None).numel() == 0 {
        let extent = shape.dim(axis) as i64;
        if let Some(index) = index.to_vec::<i64>()?.into_iter().find(|i| !(0..extent).contains(i)) {
            return Err(Error::IndexOutOfRange { op, index, axis, shape: *shape });
        }
    }
    let column: Shape = (0..shape.ndim()).map(|i| if i == axis { len } else { 1 }).collect();
    index.detach().reshape(column)?.broadcast_to(shape.with_axis(axis, Some(len)))
}

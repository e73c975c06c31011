//! Indexing by tensors, and concatenation.

use std::borrow::Borrow;

use smallvec::SmallVec;

use crate::autodiff::graph::record;
use crate::autodiff::ops::index::{cat_rule, gather_rule, scatter_add_rule};
use crate::backend::{Backend, check_arithmetic, check_indices};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::{Axis, Shape};

use super::base::Tensor;

/// # Indexing and concatenation
///
/// Indexing by tensors of integers (`I64`; others are converted). An index of an element along an axis counts from the
/// front or, if negative, from the end, here and wherever one is an argument: of [`scatter`](Tensor::scatter),
/// [`index`](Tensor::index), [`narrow`](Tensor::narrow), [`slice`](Tensor::slice). Ids and classes, of
/// [`embedding`](Tensor::embedding), [`one_hot`](Tensor::one_hot), [`bincount`](Tensor::bincount) and losses, count from 0. An index outside its axis gives [`Error::IndexOutOfRange`], one of another dtype
/// [`Error::DTypeMismatch`].
impl<B: Backend> Tensor<B> {
    /// Picks elements along an axis: `out[i, j, …] = self[i, index[i, j, …], …]` for axis 1, and
    /// likewise for others. `index` has this tensor's rank and, along every other axis, at most its
    /// extent. The gradient is accumulated by [`scatter_add`](Tensor::scatter_add).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// let picked = x.gather(1, &tensor![i64; [-1], [0]])?;
    /// assert_eq!(picked.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn gather(&self, axis: impl Into<Axis>, index: &Tensor<B>) -> Result<Self> {
        B::engine_gather(self, axis.into(), index)
    }

    pub(crate) fn gather_body(x: &Tensor<B>, axis: Axis, index: &Tensor<B>) -> Result<Self> {
        let op = "gather";
        let axis = axis.resolve(op, x.shape())?;
        let index = index.as_index(op)?;
        check_indices(op, x.data(), axis, index.data())?;
        x.gathered(op, axis, index.counted_from_front(x.dims()[axis])?)
    }

    /// [`gather`](Tensor::gather) by an index that has been checked but for its values, which count from the front.
    pub(crate) fn gathered(&self, op: &'static str, axis: usize, index: Tensor<B>) -> Result<Self> {
        let data = B::gather(self.data(), axis, index.data()).map_err(|e| e.named(op))?;
        Ok(record(op, data, &[self], |_| gather_rule(*self.shape(), axis, index)))
    }

    /// Returns a copy with `out[i, index[i, j, …], …] += source[i, j, …]` for axis 1, and likewise
    /// for others: the adjoint of [`gather`](Tensor::gather). `index` and `source` have the same
    /// shape. Elements are added in row-major order of `source`, each sum rounded to the dtype;
    /// sums of 16-bit floats are accumulated in `f32` and rounded once. Integers wrap.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let counts = tensor![0.0, 0.0].scatter_add(0, &tensor![i64; 1, 1], &tensor![1.0, 2.0])?;
    /// assert_eq!(counts.to_vec::<f32>()?, [0.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
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
        let (axis, index) = x.check_targets(op, axis, index, source)?;
        check_arithmetic(op, x.dtype(), x.shape())?;
        x.scatter_added(axis, index, source)
    }

    /// [`scatter_add`](Tensor::scatter_add) of operands that have been checked but for the values of the index, which
    /// count from the front.
    pub(crate) fn scatter_added(
        &self,
        axis: usize,
        index: Tensor<B>,
        source: &Tensor<B>,
    ) -> Result<Self> {
        let data = B::scatter_add(self.data(), axis, index.data(), source.data())?;
        Ok(record("scatter_add", data, &[self, source], |_| scatter_add_rule(axis, index)))
    }

    /// Picks slices along an axis, in the order of the one-dimensional `index`. The gradient is
    /// accumulated by [`index_add`](Tensor::index_add).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let table = tensor![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
    /// let rows = table.index_select(0, &tensor![i64; 2, 0])?;
    /// assert_eq!(rows.to_vec::<f32>()?, [5.0, 6.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn index_select(&self, axis: impl Into<Axis>, index: &Tensor<B>) -> Result<Self> {
        B::engine_index_select(self, "index_select", axis.into(), index)
    }

    /// Picks slices for `index_select`, or for `embedding`, whose ids are not negative.
    pub(crate) fn index_select_body(
        x: &Tensor<B>,
        op: &'static str,
        axis: Axis,
        index: &Tensor<B>,
    ) -> Result<Self> {
        let axis = axis.resolve(op, x.shape())?;
        let mut index = index.as_index(op)?;
        if op != "embedding" {
            index = index.counted_from_front(x.dims()[axis])?;
        }
        x.gathered(op, axis, expand_index(op, x.shape(), axis, &index)?)
    }

    /// Looks up rows of this table `[v, c]` by `ids` (integers of any shape `[…]`); the result is
    /// `[…, c]`. The gradient of a row is accumulated in the order of the ids, as in
    /// [`index_add`](Tensor::index_add).
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
    /// [`Error::InvalidShape`] if the table does not have two axes; [`Error::DTypeMismatch`] if the
    /// ids are not integers; [`Error::IndexOutOfRange`] for an id outside `0..v`.
    pub fn embedding(&self, ids: &Tensor<B>) -> Result<Self> {
        let op = "embedding";
        let &[_, width] = self.dims() else {
            let reason = "expected a table with two axes";
            return Err(Error::InvalidShape { op, shape: *self.shape(), reason });
        };
        let ids = ids.as_index(op)?;
        let shape: Shape = ids.dims().iter().copied().chain([width]).collect();
        shape.validate(op)?;
        let flat = ids.reshape(ids.numel())?;
        B::engine_index_select(self, op, 0.into(), &flat)?.reshape(shape)
    }

    /// [`embedding`](Tensor::embedding) in which one row, counted from the end if negative, gets no gradient: that of ids
    /// which only fill up sequences.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let table = tensor![[1.0], [2.0]].requires_grad();
    /// let rows = table.embedding_with_padding(&tensor![i64; 1, 0, 0], 0)?;
    /// assert_eq!(rows.to_vec::<f32>()?, [2.0, 1.0, 1.0]);
    /// assert_eq!(rows.sum_all()?.backward()?.wrt(&table)?.to_vec::<f32>()?, [0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`embedding`](Tensor::embedding); [`Error::IndexOutOfRange`] for a padding row that is not in the table.
    pub fn embedding_with_padding(&self, ids: &Tensor<B>, padding: i64) -> Result<Self> {
        let op = "embedding_with_padding";
        let rows = self.embedding(ids).map_err(|error| error.named(op))?;
        let extent = self.dims()[0] as i64;
        if !(-extent..extent).contains(&padding) {
            return Err(Error::IndexOutOfRange {
                op,
                index: padding,
                axis: 0,
                shape: *self.shape(),
            });
        }
        let is_padding = ids.as_index(op)?.eq(padding.rem_euclid(extent))?.unsqueeze(-1)?;
        Tensor::where_cond(&is_padding, &rows.detach(), &rows)
    }

    /// Makes of each element i of these integers `[…]` a row of `classes` elements, as `[…, classes]`, `I64`: 1 at index
    /// i, else 0.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let rows = tensor![i64; 2, 0].one_hot(3)?;
    /// assert_eq!((rows.dims(), rows.to_vec::<i64>()?), (&[2, 3][..], vec![0, 0, 1, 1, 0, 0]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DTypeMismatch`] if the elements are not integers; [`Error::IndexOutOfRange`] for one outside
    /// `0..classes`; [`Error::TooManyAxes`].
    pub fn one_hot(&self, classes: usize) -> Result<Self> {
        self.one_hot_as(classes, -1, DType::I64).map_err(|error| error.named("one_hot"))
    }

    /// Like [`one_hot`](Tensor::one_hot), with the given dtype and the classes on this axis of the result.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let columns = tensor![i64; 2, 0].one_hot_as(3, 0, DType::F32)?;
    /// assert_eq!((columns.dims(), columns.to_vec::<f32>()?), (&[3, 2][..], vec![0., 1., 0., 0., 1., 0.]));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn one_hot_as(&self, classes: usize, axis: impl Into<Axis>, dtype: DType) -> Result<Self> {
        let op = "one_hot_as";
        let axis = axis.into().resolve_in(op, self.shape(), self.rank() + 1)?;
        let hot = || -> Result<Self> {
            let index = self.as_index(op)?.unsqueeze(axis)?;
            let ones = Tensor::<B>::ones((), dtype)?.broadcast_to(index.shape())?;
            let zeros = Tensor::<B>::zeros(index.shape().with_axis(axis, Some(classes)), dtype)?;
            // Not a tensor's `scatter`, which takes negative indices.
            let (index, ones) = (index.data(), ones.data());
            Ok(Tensor::from_data(B::scatter(zeros.data(), axis, index, ones)?))
        };
        hot().map_err(|error| error.named(op))
    }

    /// Returns a copy with the slices of `source` added to the slices along `axis` that the
    /// one-dimensional `index` names: the adjoint of [`index_select`](Tensor::index_select). Slices
    /// are added in the order of the index, each sum rounded to the dtype; sums of 16-bit floats
    /// are accumulated in `f32` and rounded once. Integers wrap.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// let y = x.index_add(0, &tensor![i64; 1], &tensor![[10.0, 20.0]])?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0, 13.0, 24.0]);
    /// # Ok::<(), Error>(())
    /// ```
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
        let (axis, expanded) = x.slice_targets(op, axis, index, source)?;
        x.scatter_add(axis, &expanded, source).map_err(|e| e.named(op))
    }

    /// Concatenates tensors along an axis. Their other extents and dtypes must be equal. The list holds tensors or
    /// references to them.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (x, y) = (tensor![[1.0], [2.0]], tensor![[3.0], [4.0]]);
    /// let z = Tensor::cat(&[&x, &y], 1)?;
    /// assert_eq!(z.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// assert_eq!(Tensor::cat(&z.split(1, 1)?, 0)?.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an empty list; [`Error::ExtentMismatch`], or
    /// [`Error::ShapeMismatch`] for different numbers of axes; [`Error::DTypeMismatch`].
    pub fn cat<T: Borrow<Tensor<B>>>(tensors: &[T], axis: impl Into<Axis>) -> Result<Self> {
        B::engine_cat(&borrowed(tensors), axis.into())
    }

    pub(crate) fn cat_body(tensors: &[&Tensor<B>], axis: Axis) -> Result<Self> {
        let op = "cat";
        let Some(first) = tensors.first() else {
            return Err(Error::InvalidArgument {
                op,
                reason: "expected at least one tensor".to_owned(),
            });
        };
        let axis = axis.resolve(op, first.shape())?;
        let data: SmallVec<[&B::Tensor; 4]> = tensors.iter().map(|tensor| tensor.data()).collect();
        let data = B::cat(&data, axis)?;
        Ok(record(op, data, tensors, |_| {
            cat_rule(axis, tensors.iter().map(|tensor| tensor.dims()[axis]).collect())
        }))
    }
}

impl<B: Backend> Tensor<B> {
    /// Checks an operation that writes the elements of `source` to the positions that an index names: index and source
    /// must have one shape, the source this tensor's dtype. Returns the axis, and the index as `I64`.
    pub(super) fn check_targets(
        &self,
        op: &'static str,
        axis: Axis,
        index: &Tensor<B>,
        source: &Tensor<B>,
    ) -> Result<(usize, Tensor<B>)> {
        let axis = axis.resolve(op, self.shape())?;
        let index = index.as_index(op)?;
        check_indices(op, self.data(), axis, index.data())?;
        if index.shape() != source.shape() {
            return Err(Error::ShapeMismatch { op, lhs: *index.shape(), rhs: *source.shape() });
        }
        self.check_dtype(op, source.dtype())?;
        Ok((axis, index.counted_from_front(self.dims()[axis])?))
    }

    /// Checks an operation that adds the slices of `source` to those that a one-dimensional index names. Returns the axis,
    /// and the index of the elements of `source`.
    pub(super) fn slice_targets(
        &self,
        op: &'static str,
        axis: Axis,
        index: &Tensor<B>,
        source: &Tensor<B>,
    ) -> Result<(usize, Tensor<B>)> {
        let axis = axis.resolve(op, self.shape())?;
        let front = index.as_index(op)?.counted_from_front(self.dims()[axis])?;
        let expanded = expand_index(op, self.shape(), axis, &front)?;
        if source.shape() != expanded.shape() {
            let rhs = *source.shape();
            let fits_self = source.rank() == self.rank()
                && rhs.with_axis(axis, None) == self.shape().with_axis(axis, None);
            let lhs = if fits_self { *index.shape() } else { *self.shape() };
            return Err(Error::ShapeMismatch { op, lhs, rhs });
        }
        Ok((axis, expanded))
    }

    /// This index of an axis of so many elements, `I64`, with negative numbers counted from the end. Numbers that are out
    /// of range stay as they are.
    pub(super) fn counted_from_front(&self, extent: usize) -> Result<Tensor<B>> {
        let once = self.without_repeats()?.contiguous()?;
        if let Some(bytes) = B::host_bytes(once.data()) {
            let (numbers, _) = bytes.as_chunks();
            if numbers.iter().fold(0, |all, &number| all | i64::from_le_bytes(number)) >= 0 {
                return Ok(self.clone());
            }
        }
        let extent = extent as i64;
        let from_end = || {
            let is_negative = once.lt(0)?.logical_and(&once.ge(-extent)?)?;
            Tensor::where_cond(&is_negative, &once.add_scalar(extent)?, &once)
        };
        match from_end() {
            // A device without 64-bit integers.
            Err(Error::Unsupported { .. }) => Ok(self.clone()),
            index => index?.broadcast_to(self.shape()),
        }
    }

    /// The elements that differ in memory: an extent of 1 along every axis on which they repeat.
    pub(super) fn without_repeats(&self) -> Result<Tensor<B>> {
        let repeated = (0..self.rank()).filter(|&axis| self.layout().strides()[axis] == 0);
        let mut repeated = repeated.filter(|&axis| self.dims()[axis] > 1);
        repeated.try_fold(self.clone(), |x, axis| x.narrow(axis, 0, 1))
    }

    /// This tensor of integers as indices: converted to `I64`, without a copy if that is its dtype, and
    /// untracked.
    ///
    /// # Errors
    /// [`Error::DTypeMismatch`] for floats and booleans.
    pub(crate) fn as_index(&self, op: &'static str) -> Result<Tensor<B>> {
        match self.dtype() {
            DType::I64 => Ok(self.detach()),
            // Above `i64::MAX`, where no extent is.
            DType::U64 => self.clamp_max(i64::MAX)?.detach().to_dtype(DType::I64),
            dtype if dtype.has_arithmetic() && !dtype.is_float() => {
                Ok(Tensor::from_data(B::cast(self.data(), DType::I64)?))
            }
            lhs => Err(Error::DTypeMismatch { op, lhs, rhs: DType::I64, shape: *self.shape() }),
        }
    }
}

/// References to the tensors of a list.
pub(super) fn borrowed<B: Backend, T: Borrow<Tensor<B>>>(list: &[T]) -> SmallVec<[&Tensor<B>; 8]> {
    list.iter().map(Borrow::borrow).collect()
}

/// A one-dimensional index as an index of [`Tensor::gather`]: repeated, by strides of 0, along the
/// other axes of `shape`. Backends check indices as they read elements; if there are none because
/// another axis is empty, the index is checked here.
pub(super) fn expand_index<B: Backend>(
    op: &'static str,
    shape: &Shape,
    axis: usize,
    index: &Tensor<B>,
) -> Result<Tensor<B>> {
    let index = index.as_index(op)?;
    if index.rank() != 1 {
        let reason = "expected an index with one axis";
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
    index.reshape(column)?.broadcast_to(shape.with_axis(axis, Some(len)))
}

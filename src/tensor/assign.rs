//! Elements that are replaced, and elements that masks and several indices select.

use crate::autodiff::graph::record;
use crate::autodiff::ops::index::{scatter_rule, slice_assign_rule};
use crate::backend::{Backend, TensorData};
use crate::dtype::DType;
use crate::error::{Error, Result, reserved};
use crate::layout::SliceItem;
use crate::shape::{Axis, AxisSet, Shape, broadcast_shape_for};

use super::base::Tensor;
use super::index::expand_index;
use super::operators::{Input, Operand};

/// Replacing elements gives a new tensor; gradients reach both operands.
impl<B: Backend> Tensor<B> {
    /// Returns a copy with `out[i, index[i, j, …], …] = source[i, j, …]` for axis 1, and likewise for others. `index` and
    /// `source` have the same shape, as in [`scatter_add`](Tensor::scatter_add). Of several elements with one target,
    /// the last in row-major order of `source` remains, and it alone has a gradient.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = Tensor::<CpuBackend>::zeros(3, DType::F32)?;
    /// let y = x.scatter(0, &tensor![i64; 2, 0, 2], &tensor![1.0, 2.0, 3.0])?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 0.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::AxisOutOfRange`]; [`Error::IndexOutOfRange`] for an
    /// index outside the axis.
    pub fn scatter(
        &self,
        axis: impl Into<Axis>,
        index: &Tensor<B>,
        source: &Tensor<B>,
    ) -> Result<Self> {
        B::engine_scatter(self, axis.into(), index, source)
    }

    pub(crate) fn scatter_body(
        x: &Tensor<B>,
        axis: Axis,
        index: &Tensor<B>,
        source: &Tensor<B>,
    ) -> Result<Self> {
        let op = "scatter";
        let (axis, index) = x.check_targets(op, axis, index, source)?;
        let data = B::scatter(x.data(), axis, index.data(), source.data())?;
        Ok(record(op, data, &[x, source], |_| scatter_rule(axis, index)))
    }

    /// Returns a copy in which `source`, a tensor that is broadcast or a number, replaces the slice that `items`, written
    /// with [`s!`](crate::s), select.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = Tensor::<CpuBackend>::zeros((2, 3), DType::F32)?;
    /// let y = x.slice_assign(s![.., 1..], &tensor![1.0, 2.0])?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
    /// assert_eq!(y.slice_assign(s![1], 7)?.to_vec::<f32>()?, [0.0, 1.0, 2.0, 7.0, 7.0, 7.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if `source` does not broadcast to the slice; [`Error::DTypeMismatch`];
    /// [`Error::IndexOutOfRange`] for an index outside its axis; [`Error::InvalidArgument`] for a number that an integer
    /// dtype does not represent.
    pub fn slice_assign(
        &self,
        items: impl AsRef<[SliceItem]>,
        source: impl Operand<B>,
    ) -> Result<Self> {
        source.with(|source| B::engine_slice_assign(self, items.as_ref(), source))
    }

    pub(crate) fn slice_assign_body(
        x: &Tensor<B>,
        items: &[SliceItem],
        source: Input<'_, B>,
    ) -> Result<Self> {
        let op = "slice_assign";
        let source = &source.into_tensor(op, x)?;
        let mut data = x.data().clone();
        Tensor::assign(op, &mut data, items, source)?;
        Ok(record(op, data, &[x, source], |_| slice_assign_rule(items.to_vec())))
    }

    /// Replaces a slice of this tensor as [`slice_assign`](Tensor::slice_assign) does: in place if nothing else shares
    /// the storage, such as a clone or a view; else in a copy, which
    /// [`runtime::info`](crate::runtime::info) counts. For what grows or changes from step to step,
    /// such as a cache of keys and values.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let mut x = Tensor::<CpuBackend>::zeros((2, 3), DType::F32)?;
    /// x.set_slice(s![1], &tensor![1.0, 2.0, 3.0])?;
    /// x.set_slice(s![.., -1], 9)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.0, 9.0, 1.0, 2.0, 9.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`slice_assign`](Tensor::slice_assign); [`Error::InvalidArgument`] if this tensor or `source` is tracked,
    /// because a change in place has no gradient.
    pub fn set_slice(
        &mut self,
        items: impl AsRef<[SliceItem]>,
        source: impl Operand<B>,
    ) -> Result<()> {
        let op = "set_slice";
        let source = &source.with(|source| source.into_tensor(op, self))?;
        if self.is_tracked() || source.is_tracked() {
            let reason = format!(
                "the tensor of shape {} or the source of shape {} is tracked; use slice_assign",
                self.shape(),
                source.shape()
            );
            return Err(Error::InvalidArgument { op, reason });
        }
        Tensor::assign(op, self.data_mut(), items.as_ref(), source)?;
        self.renew_leaf();
        Ok(())
    }

    fn assign(
        op: &'static str,
        x: &mut B::Tensor,
        items: &[SliceItem],
        source: &Tensor<B>,
    ) -> Result<()> {
        let target = x.layout().slice(op, items)?;
        if x.dtype() != source.dtype() {
            let (lhs, rhs, shape) = (x.dtype(), source.dtype(), *x.shape());
            return Err(Error::DTypeMismatch { op, lhs, rhs, shape });
        }
        let source = source
            .layout()
            .broadcast_to(op, target.shape())
            .and_then(|layout| B::view(source.data(), layout))?;
        B::slice_assign(x, items, &source).map_err(|error| error.named(op))
    }

    /// Picks elements by indices of several axes: NumPy's advanced indexing. The index tensors are broadcast together, to
    /// a shape s, and element i of the result is the one at `indices[0][i]`, `indices[1][i]`, …. `None`, and an axis
    /// without an entry, takes an axis whole. A mask, a `Bool` tensor, stands for the indices of its true elements, of
    /// as many axes as it has. The axes of s replace the indexed ones, or come first if those are not adjacent.
    /// Negative indices count from the end. The gradient is accumulated by [`index_add`](Tensor::index_add).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
    /// let picked = x.index(&[Some(&tensor![i64; 0, -1]), Some(&tensor![i64; 1, 0])])?;
    /// assert_eq!(picked.to_vec::<f32>()?, [2.0, 5.0]);
    /// let rows = x.index(&[Some(&tensor![i64; [2, 0]])])?;
    /// assert_eq!(rows.dims(), [1, 2, 2]);
    /// let last = x.index(&[Some(&tensor![bool; true, false, true]), Some(&tensor![i64; -1])])?;
    /// assert_eq!(last.to_vec::<f32>()?, [2.0, 6.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`] for more entries than axes; [`Error::ShapeMismatch`] if the index tensors do not
    /// broadcast together, or a mask has other extents than its axes; [`Error::DTypeMismatch`] if one is not of integers;
    /// [`Error::IndexOutOfRange`].
    pub fn index(&self, indices: &[Option<&Tensor<B>>]) -> Result<Self> {
        B::engine_index(self, indices)
    }

    pub(crate) fn index_body(x: &Tensor<B>, indices: &[Option<&Tensor<B>>]) -> Result<Self> {
        let op = "index";
        let Some(selection) = Selection::new(op, x, indices)? else { return Ok(x.clone()) };
        let picked = || {
            let x = x.permute(&selection.order)?.reshape(selection.merged)?;
            x.index_select(1, &selection.index)?.reshape(selection.result)
        };
        picked().map_err(|error| error.named(op))
    }

    /// Returns a copy in which `source`, broadcast, replaces the elements that [`index`](Tensor::index) picks. Of several
    /// elements with one target, the last in row-major order of the selection remains, and it alone has a gradient.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = Tensor::<CpuBackend>::zeros((2, 3), DType::F32)?;
    /// let y = x.index_put(&[None, Some(&tensor![i64; 0, -1])], &tensor![1.0, 2.0])?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0, 2.0, 1.0, 0.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`index`](Tensor::index); [`Error::ShapeMismatch`] if `source` does not broadcast to the selection;
    /// [`Error::DTypeMismatch`].
    pub fn index_put(&self, indices: &[Option<&Tensor<B>>], source: &Tensor<B>) -> Result<Self> {
        B::engine_index_put(self, indices, source)
    }

    pub(crate) fn index_put_body(
        x: &Tensor<B>,
        indices: &[Option<&Tensor<B>>],
        source: &Tensor<B>,
    ) -> Result<Self> {
        let op = "index_put";
        x.check_dtype(op, source.dtype())?;
        let Some(selection) = Selection::new(op, x, indices)? else {
            return x.slice_assign([], source).map_err(|error| error.named(op));
        };
        let Selection { order, merged, index, result } = selection;
        let put = || {
            let source = source.broadcast_to(result)?;
            let x = x.permute(&order)?;
            let index = expand_index(op, &merged, 1, &index)?;
            let source = source.reshape(*index.shape())?;
            let y = x.reshape(merged)?.scatter(1, &index, &source)?.reshape(*x.shape())?;
            let mut inverse = order.clone();
            for (to, &from) in order.iter().enumerate() {
                inverse[from] = to;
            }
            y.permute(&inverse)
        };
        put().map_err(|error| error.named(op))
    }

    /// Picks the elements where `mask` is not zero, in row-major order, as a vector. Shapes broadcast. The gradient is
    /// that of [`index_select`](Tensor::index_select).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, -2.0], [3.0, -4.0]];
    /// assert_eq!(x.masked_select(&x.gt(0.0)?)?.to_vec::<f32>()?, [1.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`].
    pub fn masked_select(&self, mask: &Tensor<B>) -> Result<Self> {
        B::engine_masked_select(self, mask)
    }

    pub(crate) fn masked_select_body(x: &Tensor<B>, mask: &Tensor<B>) -> Result<Self> {
        let op = "masked_select";
        x.check_beside(op, mask)?;
        let shape = broadcast_shape_for(op, x.shape(), mask.shape())?;
        let select = || {
            let index = mask.detach().broadcast_to(shape)?.true_positions(op)?;
            let count = index.len();
            let x = x.broadcast_to(shape)?.reshape(shape.numel())?;
            x.index_select(0, &Tensor::from_vec(index, count)?)
        };
        select().map_err(|error| error.named(op))
    }

    /// Returns a copy in which the elements where `mask`, broadcast, is not zero are replaced by the first elements of
    /// `source`, both in row-major order.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (x, mask) = (tensor![1.0, 2.0, 3.0], tensor![bool; true, false, true]);
    /// assert_eq!(x.masked_scatter(&mask, &tensor![7.0, 8.0, 9.0])?.to_vec::<f32>()?, [7.0, 2.0, 8.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if `mask` does not broadcast to this tensor's shape; [`Error::DTypeMismatch`];
    /// [`Error::InvalidArgument`] if `source` has too few elements.
    pub fn masked_scatter(&self, mask: &Tensor<B>, source: &Tensor<B>) -> Result<Self> {
        let op = "masked_scatter";
        [mask, source].iter().try_for_each(|other| self.check_beside(op, other))?;
        let scatter = || {
            let index = mask.detach().broadcast_to(self.shape())?.true_positions(op)?;
            let (count, given) = (index.len(), source.numel());
            if count > given {
                let reason = format!("expected a source of {count} elements, got {given}");
                return Err(Error::InvalidArgument { op, reason });
            }
            let source = source.reshape(given)?.narrow(0, 0, count)?;
            let flat = self.reshape(self.numel())?;
            flat.scatter(0, &Tensor::from_vec(index, count)?, &source)?.reshape(self.shape())
        };
        scatter().map_err(|error| error.named(op))
    }

    /// Indices of the elements that are not zero, in row-major order, as `[n, rank]`, `I64`. NaN is not zero.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let positions = tensor![[0.0, 5.0], [6.0, 0.0]].nonzero()?;
    /// assert_eq!((positions.dims(), positions.to_vec::<i64>()?), (&[2, 2][..], vec![0, 1, 1, 0]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the backend, such as [`Error::OutOfMemory`].
    pub fn nonzero(&self) -> Result<Self> {
        B::engine_nonzero(self)
    }

    pub(crate) fn nonzero_body(x: &Tensor<B>) -> Result<Self> {
        let positions = x.true_positions("nonzero")?;
        let (rank, shape) = (x.rank(), Shape::new([positions.len(), x.rank()]));
        if rank == 1 {
            return Tensor::from_vec(positions, shape);
        }
        let mut indices = reserved("nonzero", shape.numel())?;
        indices.resize(shape.numel(), 0);
        let Some((&len, outer)) = x.dims().split_last() else {
            return Tensor::from_vec(indices, shape);
        };
        // Positions of the current row, and its index.
        let (mut row, mut at) = (0..0, vec![0; rank]);
        for (index, position) in indices.chunks_exact_mut(rank).zip(positions) {
            if position >= row.end {
                let mut rest = position / len as i64;
                row = rest * len as i64..(rest + 1) * len as i64;
                for (at, &dim) in at.iter_mut().zip(outer).rev() {
                    (*at, rest) = (rest % dim as i64, rest / dim as i64);
                }
            }
            at[rank - 1] = position - row.start;
            index.copy_from_slice(&at);
        }
        Tensor::from_vec(indices, shape)
    }

    /// Positions in row-major order of the elements that are not zero.
    pub(super) fn true_positions(&self, op: &'static str) -> Result<Vec<i64>> {
        let flags = B::cast(self.data(), DType::Bool).map_err(|error| error.named(op))?;
        let flags = Tensor::<B>::from_data(flags).to_vec::<bool>()?;
        let flags: &[u8] = bytemuck::cast_slice(&flags);
        let count = flags.iter().map(|&flag| usize::from(flag)).sum();
        // One more, which the positions behind the last one overwrite: a branch per element would be unpredictable.
        let mut positions = reserved(op, count + 1)?;
        positions.resize(count + 1, 0);
        let mut found = 0;
        for (start, flags) in (0..).step_by(LOOKED_AT).zip(flags.chunks(LOOKED_AT)) {
            if flags == &[0; LOOKED_AT][..flags.len()] {
                continue;
            }
            for (position, &flag) in (start..).zip(flags) {
                positions[found] = position;
                found += usize::from(flag);
            }
        }
        positions.truncate(count);
        Ok(positions)
    }
}

/// Flags that are skipped together if none is set: the bytes of one word.
const LOOKED_AT: usize = 8;

/// Elements that index tensors of several axes select, as slices along one axis.
struct Selection<B: Backend> {
    /// Permutation that makes the indexed axes adjacent: they stay in their order, or become the first.
    order: AxisSet,
    /// Shape of the permuted tensor with the indexed axes merged: `[above, indexed, below]`.
    merged: Shape,
    /// Positions along the merged axis, `[n]`.
    index: Tensor<B>,
    /// Shape of the selection.
    result: Shape,
}

/// The axes that tensors index, with their indices: for a mask, which covers as many axes as it has, those of its true
/// elements.
fn with_places_of_masks<B: Backend>(
    op: &'static str,
    x: &Tensor<B>,
    indices: &[Option<&Tensor<B>>],
) -> Result<Vec<(usize, Tensor<B>)>> {
    let (mut axis, mut given) = (0, Vec::new());
    for index in indices {
        index.map_or(Ok(()), |index| x.check_beside(op, index))?;
        let Some(index) = index.filter(|index| index.dtype() == DType::Bool) else {
            given.extend(index.map(|index| (axis, index.clone())));
            axis += 1;
            continue;
        };
        if index.rank() == 0
            || !x.dims().get(axis..).is_some_and(|dims| dims.starts_with(index.dims()))
        {
            return Err(Error::ShapeMismatch { op, lhs: *x.shape(), rhs: *index.shape() });
        }
        let places = index.detach().nonzero().map_err(|error| error.named(op))?;
        for own in 0..index.rank() {
            given.push((axis + own, places.narrow(1, own, 1)?.squeeze(1)?));
        }
        axis += index.rank();
    }
    match axis > x.rank() {
        true => Err(Error::AxisOutOfRange { op, axis: axis as isize - 1, shape: *x.shape() }),
        false => Ok(given),
    }
}

impl<B: Backend> Selection<B> {
    /// `None` if no axis is indexed.
    fn new(
        op: &'static str,
        x: &Tensor<B>,
        indices: &[Option<&Tensor<B>>],
    ) -> Result<Option<Self>> {
        let shape = x.shape();
        let given = with_places_of_masks(op, x, indices)?;
        let Some(&(first, ref index)) = given.first() else { return Ok(None) };
        let common = given.iter().try_fold(*index.shape(), |common, (_, index)| {
            broadcast_shape_for(op, &common, index.shape())
        })?;
        let mut places: Option<Tensor<B>> = None;
        for &(axis, ref index) in &given {
            let extent = shape.dim(axis) as i64;
            let mut index = index.as_index(op)?;
            if common.numel() > 0 {
                let once = index.without_repeats()?;
                let least = once.min(None, false)?.item::<i64>()?;
                if least < -extent || once.max(None, false)?.item::<i64>()? >= extent {
                    let is_outside = |at: &i64| !(-extent..extent).contains(at);
                    let index = once.to_vec()?.into_iter().find(is_outside).unwrap_or(least);
                    return Err(Error::IndexOutOfRange { op, index, axis, shape: *shape });
                }
                if least < 0 {
                    index = index.counted_from_front(shape.dim(axis))?;
                }
            }
            places = Some(match places {
                Some(places) => places.mul(extent)?.add(&index)?,
                None => index,
            });
        }
        let Some(places) = places else { return Ok(None) };
        let is_indexed = |axis: &usize| given.iter().any(|(indexed, _)| indexed == axis);
        let (count, last) = (given.len(), given.last().map_or(first, |&(axis, _)| axis));
        let above = if last - first + 1 == count { first } else { 0 };
        let mut order: AxisSet = (0..shape.ndim()).filter(|axis| !is_indexed(axis)).collect();
        for (i, &(axis, _)) in given.iter().enumerate() {
            order.insert(above + i, axis);
        }
        let dims: AxisSet = order.iter().map(|&axis| shape.dim(axis)).collect();
        let (before, after) = (&dims[..above], &dims[above + count..]);
        let merged: [usize; 3] =
            [before, &dims[above..above + count], after].map(|dims| dims.iter().product());
        let result = [before, common.dims(), after].concat().into();
        let index = places.broadcast_to(common)?.reshape(common.numel())?;
        Ok(Some(Selection { order, merged: merged.into(), index, result }))
    }
}

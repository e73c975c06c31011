//! Views, and reshaping.

use crate::autodiff::graph::record;
use crate::autodiff::ops::view::{
    diagonal_rule, identity_rule, permute_rule, reshape_rule, step_rule, sum_to_rule, unfold_rule,
};
use crate::backend::{Backend, reduce_axes, sum_to_axes, transposed};
use crate::error::{Error, Result};
use crate::layout::{Layout, SliceItem};
use crate::ops::ReduceOp;
use crate::shape::{Axes, Axis, AxisSet, NewShape, Position, Shape};

use super::base::Tensor;

/// # Views and shapes
///
/// Views share the storage of this tensor. Only [`reshape`](Tensor::reshape),
/// [`flatten`](Tensor::flatten) and [`contiguous`](Tensor::contiguous) may copy.
impl<B: Backend> Tensor<B> {
    /// Returns the elements, in row-major order, under another shape with as many elements: a view
    /// if the layout allows it, else a copy. One extent may be −1, which is inferred.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = Tensor::<CpuBackend>::arange(0., 6., 1.)?;
    /// assert_eq!(x.reshape((2, 3))?.dims(), [2, 3]);
    /// assert_eq!(x.reshape((-1, 2))?.dims(), [3, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the numbers of elements differ; those of [`NewShape::resolve`].
    pub fn reshape(&self, shape: impl Into<NewShape>) -> Result<Self> {
        B::engine_reshape(self, shape.into())
    }

    pub(crate) fn reshape_body(x: &Tensor<B>, shape: NewShape) -> Result<Self> {
        let shape = shape.resolve("reshape", x.shape())?;
        let data = match x.layout().reshape("reshape", &shape)? {
            Some(layout) => B::view(x.data(), layout)?,
            None => B::view(&B::contiguous(x.data())?, Layout::contiguous(shape))?,
        };
        Ok(record("reshape", data, &[x], |_| reshape_rule(*x.shape())))
    }

    /// Merges the axes `first..=last` into one.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[[1.0], [2.0]], [[3.0], [4.0]]];
    /// assert_eq!(x.flatten(0, 1)?.dims(), [4, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn flatten(&self, first: impl Into<Axis>, last: impl Into<Axis>) -> Result<Self> {
        let op = "flatten";
        let first = first.into().resolve(op, self.shape())?;
        let last = last.into().resolve(op, self.shape())?;
        if first > last {
            let reason = format!("first axis must not be after last, got {first} and {last}");
            return Err(Error::InvalidArgument { op, reason });
        }
        let dims = self.dims();
        let merged = dims[first..=last].iter().product();
        let dims =
            dims[..first].iter().copied().chain([merged]).chain(dims[last + 1..].iter().copied());
        self.reshape(dims.collect::<Shape>())
    }

    /// Reorders the axes as [`permute`](Tensor::permute) does; `None` swaps the last two.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]];
    /// assert_eq!(x.transpose(None)?.dims(), [1, 3, 2]);
    /// assert_eq!(x.transpose(Some(&[1, 2, 0]))?.dims(), [2, 3, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn transpose(&self, axes: Option<&[usize]>) -> Result<Self> {
        if let Some(axes) = axes {
            return B::engine_permute(self, "transpose", axes);
        }
        transposed("transpose", self.layout(), None)?;
        let mut axes: AxisSet = (0..self.rank()).collect();
        axes.swap(self.rank() - 2, self.rank() - 1);
        B::engine_permute(self, "transpose", &axes)
    }

    /// Swaps the last two axes: the transpose of a matrix.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![[1.0, 2.0], [3.0, 4.0]].t()?.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn t(&self) -> Result<Self> {
        self.transpose(None).map_err(|e| e.named("t"))
    }

    /// Reorders the axes: axis i of the result is axis `axes[i]` of this tensor.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]];
    /// assert_eq!(x.permute(&[2, 0, 1])?.dims(), [3, 1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        B::engine_permute(self, "permute", axes)
    }

    pub(crate) fn permute_body(x: &Tensor<B>, op: &'static str, axes: &[usize]) -> Result<Self> {
        let data = B::view(x.data(), x.layout().permute(op, axes)?)?;
        Ok(record(op, data, &[x], |_| permute_rule(axes.into())))
    }

    /// Swaps two axes.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]];
    /// assert_eq!(x.swap_axes(0, -1)?.dims(), [3, 2, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn swap_axes(&self, a: impl Into<Axis>, b: impl Into<Axis>) -> Result<Self> {
        let op = "swap_axes";
        let a = a.into().resolve(op, self.shape())?;
        let b = b.into().resolve(op, self.shape())?;
        let mut axes: AxisSet = (0..self.rank()).collect();
        axes.swap(a, b);
        self.permute(&axes)
    }

    /// Takes the elements `start..start + len` along an axis. A negative start counts from the end.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 2.0, 3.0];
    /// assert_eq!(x.narrow(0, 1, 2)?.to_vec::<f32>()?, [2.0, 3.0]);
    /// assert_eq!(x.narrow(0, -2, 1)?.to_vec::<f32>()?, [2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`] if the range reaches beyond the axis.
    pub fn narrow(
        &self,
        axis: impl Into<Axis>,
        start: impl Into<Position>,
        len: usize,
    ) -> Result<Self> {
        B::engine_narrow(self, axis.into(), start.into(), len)
    }

    pub(crate) fn narrow_body(
        x: &Tensor<B>,
        axis: Axis,
        start: Position,
        len: usize,
    ) -> Result<Self> {
        let axis = axis.resolve("narrow", x.shape())?;
        let start = start.resolve("narrow", axis, x.shape())?;
        x.layout().narrow("narrow", axis, start, len)?;
        x.stepped("narrow", axis, start, len, 1)
    }

    /// Takes `len` elements along an axis, from `start` in steps of `step`. The range has been
    /// checked.
    fn stepped(
        &self,
        op: &'static str,
        axis: usize,
        start: usize,
        len: usize,
        step: isize,
    ) -> Result<Self> {
        let dim = self.dims()[axis];
        if (start, len, step) == (0, dim, 1) {
            return Ok(self.clone());
        }
        let data = B::view(self.data(), self.layout().stepped(axis, start, len, step))?;
        Ok(record(op, data, &[self], |_| step_rule(axis, dim, start, step)))
    }

    /// Slices the tensor as NumPy's basic indexing does: one index or range per axis, written with
    /// [`s!`](crate::s).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = Tensor::<CpuBackend>::arange(0., 24., 1.)?.reshape((2, 3, 4))?;
    /// assert_eq!(x.slice(s![1, 1.., ..;2])?.to_vec::<f32>()?, [16.0, 18.0, 20.0, 22.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`] for an index outside its axis; ranges are clipped to the axis.
    pub fn slice(&self, items: impl AsRef<[SliceItem]>) -> Result<Self> {
        B::engine_slice(self, items.as_ref())
    }

    pub(crate) fn slice_body(x: &Tensor<B>, items: &[SliceItem]) -> Result<Self> {
        let op = "slice";
        let whole = x.layout().slice(op, items)?;
        if !x.is_tracked() {
            return Ok(Tensor::from_data(B::view(x.data(), whole)?));
        }
        let mut out = x.clone();
        for (axis, item) in items.iter().enumerate() {
            let (start, len, step) = item.resolve(op, axis, x.shape())?;
            out = out.stepped(op, axis, start, len, step)?;
        }
        for (axis, item) in items.iter().enumerate().rev() {
            if matches!(item, SliceItem::Index(_)) {
                out = out.squeeze(axis)?;
            }
        }
        Ok(out)
    }

    /// Reverses the elements along one or several axes.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// assert_eq!(x.flip(-1)?.to_vec::<f32>()?, [2.0, 1.0, 4.0, 3.0]);
    /// assert_eq!(x.flip([0, 1])?.to_vec::<f32>()?, [4.0, 3.0, 2.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`]; [`Error::RepeatedAxis`].
    pub fn flip(&self, axes: impl Into<Axes>) -> Result<Self> {
        B::engine_flip(self, axes.into())
    }

    pub(crate) fn flip_body(x: &Tensor<B>, axes: Axes) -> Result<Self> {
        let op = "flip";
        let axes = axes.resolve(op, x.shape())?;
        axes.into_iter().try_fold(x.clone(), |x, axis| match x.dims()[axis] {
            0 | 1 => Ok(x),
            dim => x.stepped(op, axis, dim - 1, dim, -1),
        })
    }

    /// Takes the diagonal of two axes, whose indices are equal, as a last axis in place of the two.
    /// It is as long as the shorter of them.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    /// assert_eq!(x.diagonal(0, 1)?.to_vec::<f32>()?, [1.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`]; [`Error::RepeatedAxis`] if the two axes are the same.
    pub fn diagonal(&self, first: impl Into<Axis>, second: impl Into<Axis>) -> Result<Self> {
        B::engine_diagonal(self, [first.into(), second.into()])
    }

    pub(crate) fn diagonal_body(x: &Tensor<B>, [first, second]: [Axis; 2]) -> Result<Self> {
        let op = "diagonal";
        let first = first.resolve(op, x.shape())?;
        let second = second.resolve(op, x.shape())?;
        let data = B::view(x.data(), x.layout().diagonal(op, first, second)?)?;
        Ok(record(op, data, &[x], |_| diagonal_rule(*x.shape(), [first, second])))
    }

    /// Takes windows of `size` elements along `axis`, one every `step` elements, as a new last axis. They may
    /// overlap. The axis is left with one index for each window: `(extent - size) / step + 1`, rounded down.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 2.0, 3.0, 4.0, 5.0];
    /// let windows = x.unfold(0, 3, 2)?;
    /// assert_eq!(windows.dims(), [2, 3]);
    /// assert_eq!(windows.to_vec::<f32>()?, [1.0, 2.0, 3.0, 3.0, 4.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`]; [`Error::InvalidArgument`] if the axis has fewer than `size` elements or `step`
    /// is 0; [`Error::TooManyAxes`].
    pub fn unfold(&self, axis: impl Into<Axis>, size: usize, step: usize) -> Result<Self> {
        B::engine_unfold(self, axis.into(), size, step)
    }

    pub(crate) fn unfold_body(x: &Tensor<B>, axis: Axis, size: usize, step: usize) -> Result<Self> {
        let op = "unfold";
        let axis = axis.resolve(op, x.shape())?;
        let data = B::view(x.data(), x.layout().unfold(op, axis, size, step)?)?;
        Ok(record(op, data, &[x], |_| unfold_rule(*x.shape(), axis, step)))
    }

    /// Inserts one or several axes of extent 1, at these places in the result; −1 appends one.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![1.0, 2.0].unsqueeze(-1)?.dims(), [2, 1]);
    /// assert_eq!(tensor![1.0, 2.0].unsqueeze((0, -1))?.dims(), [1, 2, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`]; [`Error::RepeatedAxis`]; [`Error::TooManyAxes`].
    pub fn unsqueeze(&self, axes: impl Into<Axes>) -> Result<Self> {
        B::engine_unsqueeze(self, axes.into())
    }

    pub(crate) fn unsqueeze_body(x: &Tensor<B>, axes: Axes) -> Result<Self> {
        let op = "unsqueeze";
        let mut axes = match axes.count() {
            0 => return Ok(x.clone()),
            count => axes.resolve_in(op, x.shape(), x.rank() + count)?,
        };
        axes.sort_unstable();
        let mut axes = axes.into_iter();
        let layout = axes.try_fold(*x.layout(), |layout, axis| layout.unsqueeze(op, axis))?;
        let data = B::view(x.data(), layout)?;
        Ok(record(op, data, &[x], |_| reshape_rule(*x.shape())))
    }

    /// Removes one or several axes, whose extents must be 1.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![[1.0, 2.0]].squeeze(0)?.dims(), [2]);
    /// assert_eq!(tensor![[[1.0], [2.0]]].squeeze([0, -1])?.dims(), [2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] if an extent is not 1; [`Error::AxisOutOfRange`]; [`Error::RepeatedAxis`].
    pub fn squeeze(&self, axes: impl Into<Axes>) -> Result<Self> {
        B::engine_squeeze(self, axes.into())
    }

    pub(crate) fn squeeze_body(x: &Tensor<B>, axes: Axes) -> Result<Self> {
        let op = "squeeze";
        let mut axes = axes.resolve(op, x.shape())?;
        axes.iter().try_for_each(|&axis| x.layout().squeeze(op, axis).map(drop))?;
        axes.sort_unstable();
        let axes = axes.into_iter().rev();
        let layout = axes.fold(*x.layout(), |layout, axis| layout.without_axis(axis));
        let data = B::view(x.data(), layout)?;
        Ok(record(op, data, &[x], |_| reshape_rule(*x.shape())))
    }

    /// Broadcasts to `shape`: repeats axes of extent 1 and adds axes in front, without copying.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![[1.0], [2.0]].broadcast_to((2, 2))?.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if an axis with an extent other than 1 would have to change.
    pub fn broadcast_to(&self, shape: impl Into<Shape>) -> Result<Self> {
        B::engine_expand(self, "broadcast_to", shape.into())
    }

    /// Broadcasts to `shape`: [`broadcast_to`](Tensor::broadcast_to) under PyTorch's name.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![1.0, 2.0].expand((2, 2))?.to_vec::<f32>()?, [1.0, 2.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn expand(&self, shape: impl Into<Shape>) -> Result<Self> {
        B::engine_expand(self, "expand", shape.into())
    }

    pub(crate) fn expand_body(x: &Tensor<B>, op: &'static str, shape: Shape) -> Result<Self> {
        let data = B::view(x.data(), x.layout().broadcast_to(op, &shape)?)?;
        Ok(record(op, data, &[x], |_| identity_rule()))
    }

    /// Sums over the axes that broadcasting from `shape` to this tensor's shape repeats: the
    /// adjoint of [`broadcast_to`](Tensor::broadcast_to).
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![[1.0, 2.0], [3.0, 4.0]].sum_to(2)?.to_vec::<f32>()?, [4.0, 6.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if `shape` does not broadcast to this tensor's shape.
    pub fn sum_to(&self, shape: impl Into<Shape>) -> Result<Self> {
        B::engine_sum_to(self, shape.into())
    }

    pub(crate) fn sum_to_body(x: &Tensor<B>, shape: Shape) -> Result<Self> {
        let op = "sum_to";
        let axes = sum_to_axes(op, x.shape(), &shape)?;
        if shape == *x.shape() && x.dtype().is_float() {
            return Ok(x.clone());
        }
        let summed = reduce_axes::<B>(B::reducer(ReduceOp::Sum), x.data(), Some(&axes), true);
        let data = B::reshape(&summed.map_err(|e| e.named(op))?.0, shape)?;
        Ok(record(op, data, &[x], |_| sum_to_rule(*x.shape())))
    }

    /// Returns a contiguous tensor with the same elements; copies only if this one is not
    /// contiguous.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]].t()?;
    /// assert_eq!(x.contiguous()?.layout().strides(), [2, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn contiguous(&self) -> Result<Self> {
        B::engine_contiguous(self)
    }

    pub(crate) fn contiguous_body(x: &Tensor<B>) -> Result<Self> {
        if x.layout().is_contiguous() {
            return Ok(x.clone());
        }
        let data = B::contiguous(x.data())?;
        Ok(record("contiguous", data, &[x], |_| identity_rule()))
    }
}

//! Operations that join, split and repeat tensors, and move their elements.

use std::borrow::Borrow;

use smallvec::SmallVec;

use crate::autodiff::graph::record;
use crate::autodiff::ops::view::roll_rule;
use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, reserved};
use crate::layout::AxisPart;
use crate::shape::{Axes, Axis, AxisSet, Shape};

use super::base::Tensor;
use super::index::borrowed;

/// Extents of the parts of [`Tensor::split`]: `2`, `[1, 3]`, a vector or a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SplitSizes {
    /// The extent of every part; the last may be smaller.
    Every(usize),
    /// The extent of each part. Their sum is the extent of the axis.
    Each(Vec<usize>),
}

impl From<usize> for SplitSizes {
    fn from(size: usize) -> Self {
        SplitSizes::Every(size)
    }
}

macro_rules! split_sizes_from {
    ($([$($generics:tt)*] $t:ty;)*) => {$(
        impl<$($generics)*> From<$t> for SplitSizes {
            fn from(sizes: $t) -> Self {
                SplitSizes::Each(sizes.to_vec())
            }
        }
    )*};
}
split_sizes_from! { [] &[usize]; [] Vec<usize>; [const N: usize] [usize; N]; [const N: usize] &[usize; N]; }

/// Distances of [`Tensor::roll`]: `1`, `-2`, `[1, -2]`, or a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shifts(SmallVec<[i64; 4]>);

macro_rules! shifts_from {
    ($($t:ty)*) => {$(
        impl From<$t> for Shifts {
            fn from(shift: $t) -> Self {
                Shifts::from([shift])
            }
        }

        impl From<&[$t]> for Shifts {
            fn from(shifts: &[$t]) -> Self {
                Shifts(shifts.iter().map(|&shift| shift as i64).collect())
            }
        }

        impl<const N: usize> From<[$t; N]> for Shifts {
            fn from(shifts: [$t; N]) -> Self {
                Shifts::from(shifts.as_slice())
            }
        }
    )*};
}
shifts_from!(i32 i64 isize);

/// Parts of a tensor are views of it.
impl<B: Backend> Tensor<B> {
    /// Joins tensors of one shape along a new axis before `axis`; −1 appends it.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (a, b) = (tensor![1.0, 2.0], tensor![3.0, 4.0]);
    /// let rows = Tensor::stack(&[&a, &b], 0)?; // or a slice of tensors
    /// assert_eq!((rows.dims(), rows.to_vec::<f32>()?), (&[2, 2][..], vec![1.0, 2.0, 3.0, 4.0]));
    /// assert_eq!(Tensor::stack(&[&a, &b], -1)?.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an empty list; [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`];
    /// [`Error::AxisOutOfRange`]; [`Error::TooManyAxes`].
    pub fn stack<T: Borrow<Tensor<B>>>(tensors: &[T], axis: impl Into<Axis>) -> Result<Self> {
        B::engine_stack(&borrowed(tensors), axis.into())
    }

    pub(crate) fn stack_body(tensors: &[&Tensor<B>], axis: Axis) -> Result<Self> {
        let op = "stack";
        let Some(first) = tensors.first() else {
            let reason = "expected at least one tensor".to_owned();
            return Err(Error::InvalidArgument { op, reason });
        };
        let axis = axis.resolve_in(op, first.shape(), first.rank() + 1)?;
        let parts = tensors.iter().map(|x| {
            first.check_like(op, x)?;
            x.unsqueeze(axis)
        });
        let joined = || Tensor::cat(&parts.collect::<Result<SmallVec<[Self; 4]>>>()?, axis);
        joined().map_err(|error| error.named(op))
    }

    /// Splits an axis into parts of the given extent (the last may be smaller), or of the extents in a list. An empty
    /// axis gives one empty part. The backward pass joins the gradients of all parts in one pass.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = Tensor::<CpuBackend>::arange(0., 5., 1.)?;
    /// let parts = x.split(2, 0)?;
    /// assert_eq!(parts[1].to_vec::<f32>()?, [2.0, 3.0]);
    /// assert_eq!(parts[2].to_vec::<f32>()?, [4.0]);
    /// assert_eq!(x.split([1, 4], 0)?[1].to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`]; [`Error::InvalidArgument`] for parts of extent 0, or if the extents in a list do not
    /// add up to the extent of the axis; [`Error::OutOfMemory`] for too many parts.
    pub fn split(&self, sizes: impl Into<SplitSizes>, axis: impl Into<Axis>) -> Result<Vec<Self>> {
        B::engine_split(self, sizes.into(), axis.into())
    }

    pub(crate) fn split_body(x: &Tensor<B>, sizes: SplitSizes, axis: Axis) -> Result<Vec<Self>> {
        let op = "split";
        let axis = axis.resolve(op, x.shape())?;
        let (dim, shape) = (x.dims()[axis], x.shape());
        match sizes {
            SplitSizes::Every(0) if dim > 0 => {
                let reason = format!("parts of axis {axis} of shape {shape} have 0 elements");
                Err(Error::InvalidArgument { op, reason })
            }
            SplitSizes::Every(size) => {
                let size = size.max(1);
                x.cut(axis, dim.div_ceil(size).max(1), |i| size.min(dim - i * size))
            }
            SplitSizes::Each(sizes) => {
                let total = sizes.iter().fold(0usize, |sum, &size| sum.saturating_add(size));
                if total != dim {
                    let reason =
                        format!("parts of axis {axis} of shape {shape} have {total} elements");
                    return Err(Error::InvalidArgument { op, reason });
                }
                x.cut(axis, sizes.len(), |i| sizes[i])
            }
        }
    }

    /// Splits an axis into `count` parts; part i has `size(i)` elements.
    fn cut(&self, axis: usize, count: usize, size: impl Fn(usize) -> usize) -> Result<Vec<Self>> {
        let mut parts = reserved("split", count)?;
        let mut start = 0;
        for len in (0..count).map(size) {
            parts.push(self.narrow(axis, start, len)?);
            start += len;
        }
        Ok(parts)
    }

    /// Splits an axis into at most `count` parts of equal extent; the last may be smaller. There are fewer parts if the
    /// rounded-up extent covers the axis earlier. PyTorch's `chunk`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let parts = Tensor::<CpuBackend>::arange(0., 7., 1.)?.chunk(3, 0)?;
    /// assert_eq!(parts.iter().map(Tensor::numel).collect::<Vec<_>>(), [3, 3, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`]; [`Error::InvalidArgument`] for 0 parts.
    pub fn chunk(&self, count: usize, axis: impl Into<Axis>) -> Result<Vec<Self>> {
        let op = "chunk";
        let axis = axis.into().resolve(op, self.shape())?;
        if count == 0 {
            let reason = format!("0 parts for axis {axis} of shape {}", self.shape());
            return Err(Error::InvalidArgument { op, reason });
        }
        self.split(self.dims()[axis].div_ceil(count), axis).map_err(|error| error.named(op))
    }

    /// Splits an axis into its indices and removes the axis.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let columns = tensor![[1.0, 2.0], [3.0, 4.0]].unbind(1)?;
    /// assert_eq!(columns[1].to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`].
    pub fn unbind(&self, axis: impl Into<Axis>) -> Result<Vec<Self>> {
        let axis = axis.into().resolve("unbind", self.shape())?;
        if self.dims()[axis] == 0 {
            return Ok(Vec::new());
        }
        let parts = self.split(1, axis).map_err(|error| error.named("unbind"))?;
        parts.iter().map(|part| part.squeeze(axis)).collect()
    }

    /// Repeats the tensor `counts[i]` times along axis i: PyTorch's `repeat`. If there are more counts than axes, axes
    /// are added in front. The result is a view if only axes of extent 1 are repeated, otherwise a copy.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 2.0].repeat((2, 2))?;
    /// assert_eq!(x.dims(), [2, 4]);
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for fewer counts than axes; [`Error::Overflow`] if the result is too large;
    /// [`Error::TooManyAxes`].
    pub fn repeat(&self, counts: impl Into<Shape>) -> Result<Self> {
        B::engine_repeat(self, "repeat", counts.into())
    }

    /// Repeats the tensor like [`repeat`](Tensor::repeat), with counts for the last axes only: NumPy's `tile`. The
    /// other axes are not repeated.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]].tile(2)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Overflow`] if the result is too large; [`Error::TooManyAxes`].
    pub fn tile(&self, counts: impl Into<Shape>) -> Result<Self> {
        let counts: Shape = counts.into();
        counts.validate("tile")?;
        let ones = (counts.ndim()..self.rank()).map(|_| 1);
        let counts = ones.chain(counts.dims().iter().copied()).collect();
        B::engine_repeat(self, "tile", counts)
    }

    /// Inserts an axis of extent 1 before each repeated axis and broadcasts it to the count. Other axes are merged. To
    /// repeat b of `[a, b, c]` n times, it broadcasts `[a, 1, b c]` to `[a, n, b c]`, then reshapes to `[a, n b, c]`.
    pub(crate) fn repeat_body(x: &Tensor<B>, op: &'static str, counts: Shape) -> Result<Self> {
        /// Axes repeated at once. With the merged axes between them, at most `MAX_RANK` axes result.
        const AT_ONCE: usize = 3;
        counts.validate(op)?;
        let Some(lead) = counts.ndim().checked_sub(x.rank()) else {
            let (counts, shape) = (counts.ndim(), x.shape());
            let reason = format!("expected a count for each axis of shape {shape}, got {counts}");
            return Err(Error::InvalidArgument { op, reason });
        };
        let mut dims: Shape =
            std::iter::repeat_n(1, lead).chain(x.dims().iter().copied()).collect();
        let mut y = x.reshape(dims)?;
        let repeated = (0..dims.ndim()).filter(|&axis| counts.dim(axis) != 1);
        for axes in repeated.collect::<AxisSet>().chunks(AT_ONCE) {
            let (mut from, mut to) = (AxisSet::new(), AxisSet::new());
            for axis in 0..dims.ndim() {
                let (dim, count) = (dims.dim(axis), counts.dim(axis));
                if axes.contains(&axis) {
                    from.push(1);
                    to.push(count);
                    dims.dims_mut()[axis] = dim.saturating_mul(count);
                } else if let (Some(last), Some(same)) = (from.last_mut(), to.last_mut())
                    && last == same
                {
                    (*last, *same) = (*last * dim, *last * dim);
                    continue;
                }
                from.push(dim);
                to.push(dim);
            }
            dims.validate(op)?;
            let (from, to) = (Shape::new(from), Shape::new(to));
            y = y.reshape(from)?.broadcast_to(to)?.reshape(dims)?;
        }
        Ok(y)
    }

    /// Shifts the elements along one or several axes. Elements shifted beyond the end reappear at the start: NumPy's
    /// `roll`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    /// assert_eq!(x.roll(1, 1)?.to_vec::<f32>()?, [3.0, 1.0, 2.0, 6.0, 4.0, 5.0]);
    /// assert_eq!(x.roll([1, -1], [0, 1])?.to_vec::<f32>()?, [5.0, 6.0, 4.0, 2.0, 3.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless there are as many shifts as axes; [`Error::AxisOutOfRange`];
    /// [`Error::RepeatedAxis`].
    pub fn roll(&self, shifts: impl Into<Shifts>, axes: impl Into<Axes>) -> Result<Self> {
        B::engine_roll(self, shifts.into(), axes.into())
    }

    pub(crate) fn roll_body(x: &Tensor<B>, Shifts(shifts): Shifts, axes: Axes) -> Result<Self> {
        let op = "roll";
        let axes = axes.resolve(op, x.shape())?;
        if shifts.len() != axes.len() {
            let reason = format!("expected {} shifts, got {}", axes.len(), shifts.len());
            return Err(Error::InvalidArgument { op, reason });
        }
        let shift = |(axis, shift): (usize, i64)| {
            let dim = x.dims()[axis] as i64;
            (axis, shift.rem_euclid(dim.max(1)) as usize)
        };
        x.rolled(axes.into_iter().zip(shifts).map(shift).collect())
    }

    /// Rolls by pairs of an axis and a shift. Each shift is less than the extent of its axis.
    pub(crate) fn rolled(&self, moves: SmallVec<[(usize, usize); 4]>) -> Result<Self> {
        let mut axes = vec![Vec::new(); self.rank()];
        for &(axis, shift) in moves.iter().filter(|(_, shift)| *shift > 0) {
            let rest = self.dims()[axis] - shift;
            let part = |start, len| AxisPart::From { start, len, step: 1 };
            axes[axis] = vec![part(rest, shift), part(0, rest)];
        }
        if axes.iter().all(Vec::is_empty) {
            return Ok(self.clone());
        }
        let (op, zero) = ("roll", Scalar::Int(0));
        let data = B::assemble(self.data(), &axes, zero).map_err(|error| error.named(op))?;
        Ok(record(op, data, &[self], |_| roll_rule(*self.shape(), moves)))
    }

    /// Moves axes to the positions `to`. The other axes keep their order: NumPy's `moveaxis`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = Tensor::<CpuBackend>::zeros((2, 3, 4), DType::F32)?;
    /// assert_eq!(x.movedim(0, -1)?.dims(), [3, 4, 2]);
    /// assert_eq!(x.movedim([2, 1], [0, 1])?.dims(), [4, 3, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless there are as many positions as axes; [`Error::AxisOutOfRange`];
    /// [`Error::RepeatedAxis`].
    pub fn movedim(&self, axes: impl Into<Axes>, to: impl Into<Axes>) -> Result<Self> {
        let op = "movedim";
        let axes = axes.into().resolve(op, self.shape())?;
        let to = to.into().resolve(op, self.shape())?;
        if axes.len() != to.len() {
            let reason = format!("expected {} positions, got {}", axes.len(), to.len());
            return Err(Error::InvalidArgument { op, reason });
        }
        let mut others = (0..self.rank()).filter(|axis| !axes.contains(axis));
        let order = (0..self.rank()).map(|axis| match to.iter().position(|&to| to == axis) {
            Some(i) => axes[i],
            None => others.next().unwrap_or(axis),
        });
        self.permute(&order.collect::<AxisSet>())
    }

    /// Sets the elements above diagonal `k` of each matrix `[…, r, c]` to 0. Diagonal 0 is the main diagonal, 1 the one
    /// above it, −1 the one below it.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = Tensor::<CpuBackend>::ones((2, 3), DType::F32)?;
    /// assert_eq!(x.tril(0)?.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
    /// assert_eq!(x.triu(1)?.to_vec::<f32>()?, [0.0, 1.0, 1.0, 0.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] for fewer than two axes.
    pub fn tril(&self, k: isize) -> Result<Self> {
        B::engine_triangle(self, "tril", k)
    }

    /// Sets the elements below diagonal `k` of each matrix `[…, r, c]` to 0; see [`tril`](Tensor::tril).
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![[1.0, 2.0], [3.0, 4.0]].triu(0)?.to_vec::<f32>()?, [1.0, 2.0, 0.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] for fewer than two axes.
    pub fn triu(&self, k: isize) -> Result<Self> {
        B::engine_triangle(self, "triu", k)
    }

    pub(crate) fn triangle_body(x: &Tensor<B>, op: &'static str, k: isize) -> Result<Self> {
        let &[.., rows, cols] = x.dims() else {
            let reason = "expected at least two axes";
            return Err(Error::InvalidShape { op, shape: *x.shape(), reason });
        };
        let k = k.clamp(-(rows as isize), cols as isize) as i64;
        let numbers = |shape: Shape, first: i64| {
            Tensor::<B>::from_scalars(op, shape, DType::I64, |i| Scalar::Int(first + i as i64))
        };
        // The column of the diagonal in each row, and the index of each column.
        let (diagonal, columns) = (numbers([rows, 1].into(), k)?, numbers(cols.into(), 0)?);
        let kept = if op == "tril" { columns.le(&diagonal) } else { columns.ge(&diagonal) };
        let zero = Tensor::zeros((), x.dtype())?;
        Tensor::where_cond(&kept?, x, &zero).map_err(|error| error.named(op))
    }

    /// For a vector `[n]`, returns a matrix with the vector as diagonal `k` and 0 elsewhere. For matrices `[…, r, c]`,
    /// returns diagonal `k` of each, as a view `[…, n]`. [`tril`](Tensor::tril) defines `k`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 2.0].diag(1)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0]);
    /// assert_eq!(x.diag(1)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] for a scalar; [`Error::Overflow`] if the matrix is too large.
    pub fn diag(&self, k: isize) -> Result<Self> {
        B::engine_diag(self, k)
    }

    pub(crate) fn diag_body(x: &Tensor<B>, k: isize) -> Result<Self> {
        let (op, away) = ("diag", k.unsigned_abs());
        match *x.dims() {
            [] => {
                let reason = "expected at least one axis";
                Err(Error::InvalidShape { op, shape: *x.shape(), reason })
            }
            [_] => x.diag_embed(k, 0, 1).map_err(|error| error.named(op)),
            [.., rows, cols] => {
                let axis = x.rank() - if k > 0 { 1 } else { 2 };
                let dim = if k > 0 { cols } else { rows };
                let start = away.min(dim);
                x.narrow(axis, start, dim - start)?.diagonal(-2, -1)
            }
        }
    }

    /// Returns the coordinates of a grid: result i repeats vector i along axis i, and has an axis for each vector.
    /// The results are views. NumPy's `meshgrid` with `indexing="ij"`; for `"xy"` see [`meshgrid_xy`](Tensor::meshgrid_xy).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let grid = Tensor::meshgrid(&[&tensor![1.0, 2.0], &tensor![3.0, 4.0, 5.0]])?;
    /// assert_eq!(grid[0].to_vec::<f32>()?, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    /// assert_eq!(grid[1].to_vec::<f32>()?, [3.0, 4.0, 5.0, 3.0, 4.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidShape`] for an operand with more than one axis; [`Error::TooManyAxes`]; [`Error::Overflow`].
    pub fn meshgrid<T: Borrow<Tensor<B>>>(vectors: &[T]) -> Result<Vec<Self>> {
        let op = "meshgrid";
        let vectors = borrowed(vectors);
        let grid: Shape = vectors.iter().map(|x| x.numel()).collect();
        grid.validate(op)?;
        let along = vectors.iter().enumerate().map(|(axis, x)| {
            vectors[0].check_beside(op, x)?;
            if x.rank() > 1 {
                let reason = "expected vectors";
                return Err(Error::InvalidShape { op, shape: *x.shape(), reason });
            }
            let dims = (0..vectors.len()).map(|i| if i == axis { x.numel() } else { 1 });
            x.reshape(dims.collect::<Shape>())?.broadcast_to(grid)
        });
        along.collect()
    }

    /// Like [`meshgrid`](Tensor::meshgrid), with the first vector along axis 1 and the second along axis 0: NumPy's
    /// `meshgrid` with `indexing="xy"`, its default.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let grid = Tensor::meshgrid_xy(&[&tensor![1.0, 2.0], &tensor![3.0, 4.0, 5.0]])?;
    /// assert_eq!(grid[0].to_vec::<f32>()?, [1.0, 2.0, 1.0, 2.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`meshgrid`](Tensor::meshgrid).
    pub fn meshgrid_xy<T: Borrow<Tensor<B>>>(vectors: &[T]) -> Result<Vec<Self>> {
        let grid = Tensor::meshgrid(vectors).map_err(|error| error.named("meshgrid_xy"))?;
        let swapped =
            grid.iter().map(|x| if grid.len() < 2 { Ok(x.clone()) } else { x.swap_axes(0, 1) });
        swapped.collect()
    }
}

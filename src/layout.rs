//! [`Layout`]: where the elements of a tensor are in its storage. Views are new layouts of the same
//! storage; every function here is pure.

mod nest;
mod slice;

pub use nest::{LoopNest, merge_axes, merge_some_axes, position_of};
pub use slice::{AxisPart, SliceItem};

use crate::error::{Error, Result};
use crate::shape::{AxisSet, MAX_RANK, Shape, Strides};

/// Shape, strides and position of the first element. Element `[i, j]` is stored at position
/// `offset + i * strides[0] + j * strides[1]`, counted in elements.
///
/// Strides may be 0 (broadcasting) and negative (flipping).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    shape: Shape,
    strides: Strides,
    offset: usize,
}

impl Layout {
    /// Layout of a scalar that is the first element of its storage.
    pub(crate) const SCALAR: Layout =
        Layout { shape: Shape::scalar(), strides: Strides::scalar(), offset: 0 };

    /// Row-major layout from the first element of the storage.
    pub fn contiguous(shape: Shape) -> Self {
        Layout { shape, strides: shape.contiguous_strides(), offset: 0 }
    }

    /// Sets the layout to [`contiguous`](Layout::contiguous) in place, without copying a whole `Layout`.
    pub(crate) fn set_contiguous(&mut self, shape: &Shape) {
        self.shape = *shape;
        self.strides.set_contiguous(shape);
        self.offset = 0;
    }

    /// Layout from its parts; `None` if the ranks differ or a position does not fit in `isize`.
    pub fn new(shape: Shape, strides: Strides, offset: usize) -> Option<Self> {
        if strides.as_slice().len() != shape.ndim() {
            return None;
        }
        let layout = Layout { shape, strides, offset };
        layout.checked_extent()?;
        Some(layout)
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The extents of the axes.
    pub fn dims(&self) -> &[usize] {
        self.shape.dims()
    }

    /// The strides, in elements.
    pub fn strides(&self) -> &[isize] {
        self.strides.as_slice()
    }

    /// Position of the first element in the storage.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.shape.numel()
    }

    /// Lowest and highest position of an element; `None` if there are no elements.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if a position does not fit in `isize`.
    pub fn extent(&self, op: &'static str) -> Result<Option<(usize, usize)>> {
        self.checked_extent().ok_or_else(|| {
            let Layout { shape, strides, offset } = self;
            let reason =
                format!("positions of {shape} with strides {strides:?} from {offset} overflow");
            Error::InvalidArgument { op, reason }
        })
    }

    /// Checks that the elements can be counted, and that all of them are among the first `len` of the storage.
    ///
    /// # Errors
    /// [`Error::TooManyAxes`], [`Error::Overflow`], [`Error::InvalidArgument`].
    pub fn check(&self, op: &'static str, len: usize) -> Result<()> {
        self.shape.validate(op)?;
        match self.extent(op)? {
            Some((_, last)) if last >= len => {
                let reason = format!("a layout of shape {} exceeds {len} elements", self.shape);
                Err(Error::InvalidArgument { op, reason })
            }
            _ => Ok(()),
        }
    }

    /// [`extent`](Layout::extent), or `None` if a position overflows.
    fn checked_extent(&self) -> Option<Option<(usize, usize)>> {
        if self.dims().contains(&0) {
            return Some(None);
        }
        let (mut low, mut high) = (self.offset, self.offset);
        for (&dim, &stride) in self.dims().iter().zip(self.strides()) {
            let reach = (dim - 1).checked_mul(stride.unsigned_abs())?;
            if stride < 0 {
                low = low.checked_sub(reach)?;
            } else {
                high = high.checked_add(reach)?;
            }
        }
        isize::try_from(high).ok()?;
        Some(Some((low, high)))
    }

    /// True if the elements are stored in row-major order without gaps, at any offset.
    pub fn is_contiguous(&self) -> bool {
        if self.dims().contains(&0) {
            return true;
        }
        let mut step = 1;
        for (&dim, &stride) in self.dims().iter().zip(self.strides()).rev() {
            if dim != 1 {
                if stride != step {
                    return false;
                }
                step = step.wrapping_mul(dim as isize);
            }
        }
        true
    }

    /// True if an axis of more than one index has stride 0, so that indices share an element.
    pub fn is_broadcast(&self) -> bool {
        self.dims().iter().zip(self.strides()).any(|(&dim, &stride)| dim > 1 && stride == 0)
    }

    /// Position of the element with this index in the storage.
    pub fn position(&self, index: &[usize]) -> usize {
        let steps = index.iter().zip(self.strides());
        let shift: isize = steps.map(|(&i, &stride)| i as isize * stride).sum();
        self.offset.wrapping_add_signed(shift)
    }

    /// Position in the storage of element `i` in row-major order.
    pub(crate) fn position_of(&self, i: usize) -> usize {
        position_of(self.dims(), self.strides(), i, self.offset)
    }

    /// Positions of all elements in row-major order.
    pub fn positions(&self) -> impl Iterator<Item = usize> + use<> {
        let layout = *self;
        let mut index = [0usize; MAX_RANK];
        let mut position = layout.offset;
        (0..layout.numel()).map(move |_| {
            let current = position;
            for axis in (0..layout.dims().len()).rev() {
                let stride = layout.strides()[axis];
                index[axis] += 1;
                position = position.wrapping_add_signed(stride);
                if index[axis] < layout.dims()[axis] {
                    break;
                }
                let back = stride.wrapping_mul(index[axis] as isize);
                position = position.wrapping_add_signed(back.wrapping_neg());
                index[axis] = 0;
            }
            current
        })
    }

    /// Reorders the axes: axis `i` of the result is axis `axes[i]` of this layout.
    pub fn permute(&self, op: &'static str, axes: &[usize]) -> Result<Layout> {
        if axes.len() != self.shape.ndim() {
            let (shape, count) = (self.shape, self.shape.ndim());
            let reason =
                format!("expected the {count} axes of {shape} in some order, got {axes:?}");
            return Err(Error::InvalidArgument { op, reason });
        }
        self.shape.resolve_axes(op, Some(axes))?;
        let shape = axes.iter().map(|&axis| self.dims()[axis]).collect();
        let strides = axes.iter().map(|&axis| self.strides()[axis]).collect();
        Ok(Layout { shape, strides, offset: self.offset })
    }

    /// Selects elements `start..start + len` along an axis.
    pub fn narrow(
        &self,
        op: &'static str,
        axis: usize,
        start: usize,
        len: usize,
    ) -> Result<Layout> {
        self.shape.check_axis(op, axis)?;
        let dim = self.shape.dim(axis);
        match start.checked_add(len) {
            Some(end) if end <= dim => Ok(self.stepped(axis, start, len, 1)),
            end => {
                let index = i64::try_from(end.unwrap_or(usize::MAX)).unwrap_or(i64::MAX);
                Err(Error::IndexOutOfRange { op, index, axis, shape: self.shape })
            }
        }
    }

    /// Selects `len` elements from `start` in steps of `step`, a range that the caller has checked.
    pub(crate) fn stepped(&self, axis: usize, start: usize, len: usize, step: isize) -> Layout {
        let mut out = *self;
        out.shape.dims_mut()[axis] = len;
        if out.shape.numel() > 0 {
            let shift = self.strides()[axis] * start as isize;
            out.offset = self.offset.wrapping_add_signed(shift);
        }
        out.strides.as_mut_slice()[axis] = self.strides()[axis].wrapping_mul(step);
        out
    }

    /// Reverses the order of the elements along an axis.
    ///
    /// # Panics
    /// If the shape does not have the axis.
    pub fn flip(&self, axis: usize) -> Layout {
        match self.shape.dim(axis) {
            0 => *self,
            dim => self.stepped(axis, dim - 1, dim, -1),
        }
    }

    /// Diagonal of two axes, which are replaced by one last axis.
    pub fn diagonal(&self, op: &'static str, first: usize, second: usize) -> Result<Layout> {
        self.shape.check_axis(op, first)?;
        self.shape.check_axis(op, second)?;
        if first == second {
            return Err(Error::RepeatedAxis { op, axis: first, shape: self.shape });
        }
        let others = || (0..self.shape.ndim()).filter(|&axis| axis != first && axis != second);
        let len = self.dims()[first].min(self.dims()[second]);
        // The sum can wrap only if the diagonal has at most one element: the step is then never taken.
        let step = self.strides()[first].wrapping_add(self.strides()[second]);
        let shape = others().map(|axis| self.dims()[axis]).chain([len]).collect();
        let strides = others().map(|axis| self.strides()[axis]).chain([step]).collect();
        Ok(Layout { shape, strides, offset: self.offset })
    }

    /// Windows of `size` elements of an axis, one every `step` elements, as a new last axis. The axis is left
    /// with one index for each window. Windows may overlap.
    pub(crate) fn unfold(
        &self,
        op: &'static str,
        axis: usize,
        size: usize,
        step: usize,
    ) -> Result<Layout> {
        let rest = self.shape.dim(axis).checked_sub(size).filter(|_| step > 0);
        let rest = rest.ok_or_else(|| {
            let shape = self.shape;
            let reason = format!(
                "windows of {size} elements, one every {step}, do not fit axis {axis} of shape {shape}"
            );
            Error::InvalidArgument { op, reason }
        })?;
        let mut shape = self.shape.insert(op, self.shape.ndim(), size)?;
        shape.dims_mut()[axis] = rest / step + 1;
        shape.validate(op)?;
        let stride = self.strides()[axis];
        let mut strides: Strides = self.strides().iter().copied().chain([stride]).collect();
        // The product can wrap only if there is one window, so that the stride is not used.
        strides.as_mut_slice()[axis] = stride.wrapping_mul(step as isize);
        Ok(Layout { shape, strides, offset: self.offset })
    }

    /// Inserts an axis of extent 1 before `axis`.
    pub fn unsqueeze(&self, op: &'static str, axis: usize) -> Result<Layout> {
        if axis != self.shape.ndim() {
            self.shape.check_axis(op, axis)?;
        }
        let shape = self.shape.insert(op, axis, 1)?;
        let (before, after) = self.strides().split_at(axis);
        let strides = before.iter().copied().chain([0]).chain(after.iter().copied()).collect();
        Ok(Layout { shape, strides, offset: self.offset })
    }

    /// Removes an axis of extent 1.
    pub fn squeeze(&self, op: &'static str, axis: usize) -> Result<Layout> {
        self.shape.check_axis(op, axis)?;
        if self.shape.dim(axis) != 1 {
            let reason = "only an axis of extent 1 can be squeezed";
            return Err(Error::InvalidShape { op, shape: self.shape, reason });
        }
        Ok(self.without_axis(axis))
    }

    /// Selects the first element along `axis` and removes the axis.
    pub(crate) fn without_axis(&self, axis: usize) -> Layout {
        let kept = self.strides().iter().enumerate().filter(|&(i, _)| i != axis);
        let strides = kept.map(|(_, &stride)| stride).collect();
        Layout { shape: self.shape.with_axis(axis, None), strides, offset: self.offset }
    }

    /// Repeats axes of extent 1, and adds leading axes, by strides of 0.
    pub fn broadcast_to(&self, op: &'static str, shape: &Shape) -> Result<Layout> {
        if self.shape == *shape {
            return Ok(*self);
        }
        shape.validate(op)?;
        let mismatch = Error::ShapeMismatch { op, lhs: self.shape, rhs: *shape };
        let Some(lead) = shape.ndim().checked_sub(self.shape.ndim()) else { return Err(mismatch) };
        let mut strides = Strides::zeros(shape.ndim());
        for axis in 0..self.shape.ndim() {
            let (dim, wanted) = (self.dims()[axis], shape.dims()[lead + axis]);
            if dim == wanted {
                strides.as_mut_slice()[lead + axis] = self.strides()[axis];
            } else if dim != 1 {
                return Err(mismatch);
            }
        }
        Ok(Layout { shape: *shape, strides, offset: self.offset })
    }

    /// Layout of another shape with the same elements in the same row-major order; `None` if the elements
    /// would have to be copied.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the numbers of elements differ.
    pub fn reshape(&self, op: &'static str, shape: &Shape) -> Result<Option<Layout>> {
        shape.validate(op)?;
        if shape.numel() != self.numel() {
            return Err(Error::ShapeMismatch { op, lhs: self.shape, rhs: *shape });
        }
        if shape.numel() == 0 || self.is_contiguous() {
            let strides = shape.contiguous_strides();
            return Ok(Some(Layout { shape: *shape, strides, offset: self.offset }));
        }
        // Split each group of mergeable old axes into new axes with the same number of elements.
        let runs = merge_axes(&[self]);
        let (run_dims, run_strides) = (runs.dims(), runs.strides(0));
        let mut strides = Strides::zeros(shape.ndim());
        let mut axis = shape.ndim();
        for (&run, &run_stride) in run_dims.iter().zip(run_strides).rev() {
            let (mut filled, mut step) = (1usize, run_stride);
            while axis > 0 && filled < run {
                axis -= 1;
                let dim = shape.dims()[axis];
                strides.as_mut_slice()[axis] = step;
                filled *= dim;
                step = step.wrapping_mul(dim as isize);
            }
            if filled != run {
                return Ok(None);
            }
        }
        Ok(Some(Layout { shape: *shape, strides, offset: self.offset }))
    }

    /// Selects an index or range along each axis, in order. Axes without an item are kept whole.
    pub fn slice(&self, op: &'static str, items: &[SliceItem]) -> Result<Layout> {
        if items.len() > self.shape.ndim() {
            let axis = items.len() as isize - 1;
            return Err(Error::AxisOutOfRange { op, axis, shape: self.shape });
        }
        let mut out = *self;
        let mut dropped = AxisSet::new();
        for (axis, item) in items.iter().enumerate() {
            let (start, len, step) = item.resolve(op, axis, &self.shape)?;
            out = out.stepped(axis, start, len, step);
            if matches!(item, SliceItem::Index(_)) {
                dropped.push(axis);
            }
        }
        for &axis in dropped.iter().rev() {
            out = out.without_axis(axis);
        }
        Ok(out)
    }
}

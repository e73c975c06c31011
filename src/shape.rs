//! [`Shape`], [`Strides`], [`Axis`] and broadcasting: small, pure, at most [`MAX_RANK`] axes.

/// Conversions of tuples whose items convert to `$Item`, for a type that converts from arrays of it.
macro_rules! from_tuples {
    ($Target:ident of $Item:ident) => {
        from_tuples! { $Target $Item:
            (A a) (A a, B b) (A a, B b, C c) (A a, B b, C c, D d) (A a, B b, C c, D d, E e)
            (A a, B b, C c, D d, E e, F f) (A a, B b, C c, D d, E e, F f, G g)
            (A a, B b, C c, D d, E e, F f, G g, H h)
        }
    };
    ($Target:ident $Item:ident: $(($($T:ident $item:ident),+))*) => {$(
        impl<$($T: Into<$Item>),+> From<($($T,)+)> for $Target {
            fn from(($($item,)+): ($($T,)+)) -> Self {
                let items: [$Item; _] = [$($item.into()),+];
                $Target::from(items)
            }
        }
    )*};
}

mod axes;
mod new_shape;
mod strides;

use std::fmt;

pub use axes::{Axes, Axis, Position};
pub use new_shape::{Extent, NewShape};
pub use strides::Strides;

use crate::error::{Error, Result};

/// Maximum number of axes of a shape.
pub const MAX_RANK: usize = 8;

/// Extents of a tensor's axes, outermost first; no axes is a scalar.
///
/// Converts from `3`, `[2, 3]`, `(2, 3)`, `vec![2, 3]`, `&[usize]` and `()`.
///
/// ```
/// use swath::Shape;
/// let shape = Shape::new(vec![2, 3]);
/// assert_eq!(shape, Shape::from((2, 3)));
/// assert_eq!(shape.numel(), 6);
/// assert_eq!(shape.contiguous_strides().as_slice(), &[3, 1]);
/// assert_eq!(shape.to_string(), "[2, 3]");
/// ```
///
/// A shape of more than [`MAX_RANK`] axes can be constructed, but every operation that receives one
/// returns [`Error::TooManyAxes`].
#[derive(Clone, Copy)]
pub struct Shape {
    dims: [usize; MAX_RANK],
    /// Number of axes. If it exceeds `MAX_RANK`, the shape is invalid and `dims` holds the first extents.
    rank: usize,
}

impl Shape {
    /// The shape with these extents.
    pub fn new(dims: impl AsRef<[usize]>) -> Self {
        Shape::from_slice(dims.as_ref())
    }

    /// The shape of a scalar: no axes, one element.
    pub const fn scalar() -> Self {
        Shape { dims: [0; MAX_RANK], rank: 0 }
    }

    fn from_slice(slice: &[usize]) -> Self {
        let mut shape = Shape { dims: [0; MAX_RANK], rank: slice.len() };
        for (dim, &value) in shape.dims.iter_mut().zip(slice) {
            *dim = value;
        }
        shape
    }

    /// Checks the number of axes and that the elements can be counted and addressed.
    ///
    /// # Errors
    /// [`Error::TooManyAxes`]; [`Error::Overflow`] if the product of the extents (zeros aside)
    /// exceeds `isize::MAX / 8`.
    pub fn validate(&self, op: &'static str) -> Result<()> {
        self.checked_numel(op).map(drop)
    }

    /// Number of elements, after the checks of [`validate`](Shape::validate).
    pub(crate) fn checked_numel(&self, op: &'static str) -> Result<usize> {
        if self.rank > MAX_RANK {
            return Err(Error::TooManyAxes { op, rank: self.rank });
        }
        let (mut product, mut empty) = (1usize, false);
        for &dim in self.dims() {
            empty |= dim == 0;
            product = match product.checked_mul(dim.max(1)) {
                Some(product) if product <= isize::MAX as usize / 8 => product,
                _ => return Err(Error::Overflow { op, shape: *self }),
            };
        }
        Ok(if empty { 0 } else { product })
    }

    /// The extents.
    pub fn dims(&self) -> &[usize] {
        &self.dims[..self.ndim()]
    }

    pub(crate) fn dims_mut(&mut self) -> &mut [usize] {
        let rank = self.ndim();
        &mut self.dims[..rank]
    }

    /// Number of axes.
    pub fn ndim(&self) -> usize {
        self.rank.min(MAX_RANK)
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.ndim()
    }

    /// Number of elements: the product of the extents, `usize::MAX` if that overflows.
    pub fn numel(&self) -> usize {
        self.dims().iter().fold(1, |product: usize, &dim| product.saturating_mul(dim))
    }

    /// Extent of an axis; axes that the shape lacks have extent 1, as in broadcasting.
    pub fn dim(&self, axis: usize) -> usize {
        self.dims().get(axis).copied().unwrap_or(1)
    }

    /// Strides of the shape in row-major order.
    pub fn contiguous_strides(&self) -> Strides {
        let mut strides = Strides::scalar();
        strides.set_contiguous(self);
        strides
    }

    /// The shape with the extent of `axis` replaced by `dim`, or without the axis if `dim` is `None`.
    pub(crate) fn with_axis(&self, axis: usize, dim: Option<usize>) -> Shape {
        let mut out = *self;
        match dim {
            Some(dim) => out.dims[axis] = dim,
            None => {
                out.dims.copy_within(axis + 1.., axis);
                out.rank -= 1;
            }
        }
        out
    }

    /// The shape with an axis of extent `dim` inserted before `axis`.
    pub(crate) fn insert(&self, op: &'static str, axis: usize, dim: usize) -> Result<Shape> {
        if self.rank >= MAX_RANK {
            return Err(Error::TooManyAxes { op, rank: self.rank + 1 });
        }
        let mut out = *self;
        out.dims.copy_within(axis..MAX_RANK - 1, axis + 1);
        out.dims[axis] = dim;
        out.rank += 1;
        Ok(out)
    }

    /// Shape of a reduction over `axes`, which become extents of 1 or, without `keepdims`, are removed.
    pub(crate) fn reduced(&self, axes: &[usize], keepdims: bool) -> Shape {
        let kept = self.dims().iter().enumerate().filter_map(|(axis, &dim)| {
            match (axes.contains(&axis), keepdims) {
                (false, _) => Some(dim),
                (true, true) => Some(1),
                (true, false) => None,
            }
        });
        kept.collect()
    }

    /// Checks that the shape has an axis.
    pub(crate) fn check_axis(&self, op: &'static str, axis: usize) -> Result<()> {
        if axis < self.ndim() {
            return Ok(());
        }
        let axis = isize::try_from(axis).unwrap_or(isize::MAX);
        Err(Error::AxisOutOfRange { op, axis, shape: *self })
    }

    /// Axes of a reduction: all for `None`, otherwise the given ones, checked and sorted.
    pub(crate) fn resolve_axes(&self, op: &'static str, axes: Option<&[usize]>) -> Result<AxisSet> {
        let Some(axes) = axes else { return Ok((0..self.ndim()).collect()) };
        let mut set = AxisSet::new();
        for &axis in axes {
            self.check_axis(op, axis)?;
            if set.contains(&axis) {
                return Err(Error::RepeatedAxis { op, axis, shape: *self });
            }
            set.push(axis);
        }
        set.sort_unstable();
        Ok(set)
    }
}

/// Axis numbers, stored inline.
pub(crate) type AxisSet = smallvec::SmallVec<[usize; MAX_RANK]>;

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(iter: I) -> Self {
        let mut shape = Shape::scalar();
        for dim in iter {
            if shape.rank < MAX_RANK {
                shape.dims[shape.rank] = dim;
            }
            shape.rank += 1;
        }
        shape
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank && self.dims() == other.dims()
    }
}

impl Eq for Shape {}

impl std::hash::Hash for Shape {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.dims().hash(state);
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.dims()).finish()
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq<[usize]> for Shape {
    fn eq(&self, other: &[usize]) -> bool {
        self.rank <= MAX_RANK && self.dims() == other
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Shape {
    fn eq(&self, other: &[usize; N]) -> bool {
        self == other.as_slice()
    }
}

impl From<()> for Shape {
    fn from((): ()) -> Self {
        Shape::scalar()
    }
}

impl From<usize> for Shape {
    fn from(dim: usize) -> Self {
        Shape::from_slice(&[dim])
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Self {
        *shape
    }
}

macro_rules! shape_from {
    ($([$($generics:tt)*] $t:ty;)*) => {$(
        impl<$($generics)*> From<$t> for Shape {
            fn from(dims: $t) -> Self {
                Shape::new(dims)
            }
        }
    )*};
}
shape_from! {
    [] &[usize]; [] Vec<usize>; [] &Vec<usize>; [const N: usize] [usize; N]; [const N: usize] &[usize; N];
}

macro_rules! shape_from_tuples {
    ($(($($name:ident),+);)*) => {$(
        impl From<($(shape_from_tuples!(@usize $name),)+)> for Shape {
            #[allow(non_snake_case, reason = "tuple fields named by position")]
            fn from(($($name,)+): ($(shape_from_tuples!(@usize $name),)+)) -> Self {
                Shape::from_slice(&[$($name),+])
            }
        }
    )*};
    (@usize $name:ident) => { usize };
}
shape_from_tuples! {
    (A); (A, B); (A, B, C); (A, B, C, D); (A, B, C, D, E); (A, B, C, D, E, F);
    (A, B, C, D, E, F, G); (A, B, C, D, E, F, G, H);
}

/// Shape that two operands broadcast to. Axes are matched from the end; the two extents must be equal
/// unless one of them is 1, and missing axes count as 1.
///
/// ```
/// use swath::{Shape, broadcast_shape};
/// let out = broadcast_shape(&Shape::new([4, 1, 3]), &Shape::new([2, 1]))?;
/// assert_eq!(out, [4, 2, 3]);
/// # Ok::<(), swath::Error>(())
/// ```
///
/// # Errors
/// [`Error::ShapeMismatch`]; [`Error::Overflow`] if the result cannot be addressed.
pub fn broadcast_shape(a: &Shape, b: &Shape) -> Result<Shape> {
    broadcast_shape_for("broadcast", a, b)
}

pub(crate) fn broadcast_shape_for(op: &'static str, a: &Shape, b: &Shape) -> Result<Shape> {
    a.validate(op)?;
    b.validate(op)?;
    if a == b {
        return Ok(*a);
    }
    let (mut out, short) = if a.ndim() >= b.ndim() { (*a, b) } else { (*b, a) };
    let lead = out.ndim() - short.ndim();
    for (dim, &other) in out.dims_mut()[lead..].iter_mut().zip(short.dims()) {
        *dim = match (*dim, other) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => return Err(Error::ShapeMismatch { op, lhs: *a, rhs: *b }),
        };
    }
    out.validate(op)?;
    Ok(out)
}

/// Index of the element that an operand of shape `shape` contributes to `index` of a broadcast result.
///
/// ```
/// use swath::{Shape, broadcast_index};
/// assert_eq!(broadcast_index(&[3, 1, 2], &Shape::new([1, 4])), [0, 2]);
/// ```
pub fn broadcast_index(index: &[usize], shape: &Shape) -> Vec<usize> {
    let lead = index.len().saturating_sub(shape.ndim());
    let pairs = index[lead..].iter().zip(shape.dims());
    pairs.map(|(&i, &dim)| if dim == 1 { 0 } else { i }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_give_the_same_shape() {
        let dims = vec![2usize, 3];
        let shapes: [Shape; 6] = [
            Shape::new(vec![2, 3]),
            [2, 3].into(),
            (2, 3).into(),
            dims.clone().into(),
            dims.as_slice().into(),
            (&dims).into(),
        ];
        assert!(shapes.iter().all(|shape| *shape == [2, 3]));
        assert_eq!(Shape::from(()).numel(), 1);
        assert_eq!(Shape::from(3), [3]);
    }
}

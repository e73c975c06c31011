//! [`Axis`] and [`Axes`]: arguments that name axes.

use std::ops::RangeFull;

use smallvec::SmallVec;

use super::{AxisSet, MAX_RANK, Shape};
use crate::error::{Error, Result};

/// One axis, counted from the front (0, 1, …) or from the end (−1, −2, …).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis(isize);

impl Axis {
    /// The axis counted from the front.
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`] if `shape` does not have it.
    pub fn resolve(self, op: &'static str, shape: &Shape) -> Result<usize> {
        self.resolve_in(op, shape, shape.ndim())
    }

    /// Like [`Axis::resolve`], with `count` axes to choose from.
    pub(crate) fn resolve_in(self, op: &'static str, shape: &Shape, count: usize) -> Result<usize> {
        let from_front = if self.0 < 0 { self.0 + count as isize } else { self.0 };
        match usize::try_from(from_front) {
            Ok(axis) if axis < count => Ok(axis),
            _ => Err(Error::AxisOutOfRange { op, axis: self.0, shape: *shape }),
        }
    }
}

/// One axis or several: `0`, `-1`, `(0, -1)`, `[0, -1]`, `vec![0, 1]`, a slice of axes; all of them: `..`, or `None` of an
/// `Option` of a slice.
///
/// ```
/// use swath::{Axes, Shape};
/// let shape = Shape::new([2, 3, 4]);
/// assert_eq!(Axes::from((-1, 0)).resolve("sum", &shape)?.as_slice(), [2, 0]);
/// assert_eq!(Axes::from(..).resolve("sum", &shape)?.as_slice(), [0, 1, 2]);
/// # Ok::<(), swath::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Axes(Option<SmallVec<[Axis; MAX_RANK]>>);

impl Axes {
    /// The axes counted from the front, in the order given.
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`] if `shape` does not have an axis; [`Error::RepeatedAxis`] for one that is named
    /// twice.
    pub fn resolve(&self, op: &'static str, shape: &Shape) -> Result<AxisSet> {
        self.resolve_in(op, shape, shape.ndim())
    }

    /// The number of axes named.
    pub(crate) fn count(&self) -> usize {
        self.0.as_ref().map_or(0, SmallVec::len)
    }

    /// Like [`Axes::resolve`], with `count` axes to choose from.
    pub(crate) fn resolve_in(
        &self,
        op: &'static str,
        shape: &Shape,
        count: usize,
    ) -> Result<AxisSet> {
        let Some(named) = &self.0 else { return Ok((0..count).collect()) };
        let mut axes = AxisSet::new();
        for axis in named {
            let axis = axis.resolve_in(op, shape, count)?;
            if axes.contains(&axis) {
                return Err(Error::RepeatedAxis { op, axis, shape: *shape });
            }
            axes.push(axis);
        }
        Ok(axes)
    }
}

impl<A: Into<Axis>, const N: usize> From<[A; N]> for Axes {
    fn from(axes: [A; N]) -> Self {
        Axes(Some(axes.into_iter().map(Into::into).collect()))
    }
}

impl From<RangeFull> for Axes {
    fn from(_: RangeFull) -> Self {
        Axes(None)
    }
}

impl<A: Into<Axis> + Copy> From<Option<&[A]>> for Axes {
    fn from(axes: Option<&[A]>) -> Self {
        axes.map_or(Axes(None), Axes::from)
    }
}

impl<A: Into<Axis> + Copy> From<&[A]> for Axes {
    fn from(axes: &[A]) -> Self {
        Axes(Some(axes.iter().map(|&axis| axis.into()).collect()))
    }
}

impl<A: Into<Axis> + Copy, const N: usize> From<&[A; N]> for Axes {
    fn from(axes: &[A; N]) -> Self {
        Axes::from(axes.as_slice())
    }
}

impl<A: Into<Axis>> From<Vec<A>> for Axes {
    fn from(axes: Vec<A>) -> Self {
        Axes(Some(axes.into_iter().map(Into::into).collect()))
    }
}

impl From<Axis> for Axes {
    fn from(axis: Axis) -> Self {
        Axes::from([axis])
    }
}

/// Index of an element of an axis, counted from the front or, if negative, from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position(isize);

impl Position {
    /// The index counted from the front.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`] if it is before the first element.
    pub(crate) fn resolve(self, op: &'static str, axis: usize, shape: &Shape) -> Result<usize> {
        let from_front = if self.0 < 0 { self.0 + shape.dim(axis) as isize } else { self.0 };
        let index = self.0 as i64;
        usize::try_from(from_front).map_err(|_| Error::IndexOutOfRange {
            op,
            index,
            axis,
            shape: *shape,
        })
    }
}

from_tuples!(Axes of Axis);

macro_rules! axis_from {
    ($($t:ty)*) => {$(
        impl From<$t> for Axis {
            fn from(axis: $t) -> Self {
                Axis(isize::try_from(axis).unwrap_or(isize::MAX))
            }
        }

        impl From<$t> for Position {
            fn from(index: $t) -> Self {
                Position(isize::try_from(index).unwrap_or(isize::MAX))
            }
        }

        impl From<$t> for Axes {
            fn from(axis: $t) -> Self {
                Axes::from([axis])
            }
        }
    )*};
}
axis_from!(usize i32 i64 isize);

//! [`NewShape`]: the argument of `reshape`, in which one extent may be −1.

use std::fmt;

use super::{MAX_RANK, Shape};
use crate::error::{Error, Result};

/// The extents that [`Tensor::reshape`](crate::Tensor::reshape) gives a tensor. One may be −1: it is
/// inferred from the number of elements.
///
/// Converts from everything that [`Shape`] converts from, and from signed integers in tuples, arrays, vectors
/// and slices. Tuples may mix types: `(n, -1)` with `n: usize`.
///
/// ```
/// use swath::prelude::*;
/// let x = tensor![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// assert_eq!(x.reshape((-1, 2))?.dims(), [3, 2]);
/// assert_eq!(x.reshape([2, 1, -1])?.dims(), [2, 1, 3]);
/// let error = x.reshape((4, -1)).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "reshape: 6 elements of [6] are not divisible by 4, the product of the other extents of [4, -1]",
/// );
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NewShape {
    /// The magnitudes of the extents.
    shape: Shape,
    /// Bit i is set if extent i is negative.
    negative: u8,
}

impl NewShape {
    /// The shape for the elements of `from`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a second −1, for other negative extents, and if the number of elements is
    /// not divisible by the product of the other extents, or that product is 0; [`Error::TooManyAxes`];
    /// [`Error::Overflow`].
    pub fn resolve(&self, op: &'static str, from: &Shape) -> Result<Shape> {
        if self.negative == 0 {
            return Ok(self.shape);
        }
        // The magnitude of the -1 is 1: the product is that of the other extents.
        let others = self.shape.checked_numel(op)?;
        let axis = self.negative.trailing_zeros() as usize;
        let elements = from.numel();
        let reason = if !self.negative.is_power_of_two() {
            format!("at most one extent may be -1, got {self:?} for {from}")
        } else if self.shape.dim(axis) != 1 {
            format!(
                "extents must not be negative, except -1 for one to infer, got {self:?} for {from}"
            )
        } else if others == 0 {
            format!(
                "any number could stand for the -1 of {self:?}, whose other extents have product 0"
            )
        } else if !elements.is_multiple_of(others) {
            format!(
                "{elements} elements of {from} are not divisible by {others}, the product of the \
                 other extents of {self:?}"
            )
        } else {
            return Ok(self.shape.with_axis(axis, Some(elements / others)));
        };
        Err(Error::InvalidArgument { op, reason })
    }
}

impl fmt::Debug for NewShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extents = self.shape.dims().iter().enumerate();
        let signed = extents.map(|(axis, &size)| match self.negative >> axis & 1 {
            0 => size as i128,
            _ => -(size as i128),
        });
        f.debug_list().entries(signed).finish()
    }
}

/// One extent of a [`NewShape`]: a number of elements, or −1.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    size: usize,
    negative: bool,
}

impl FromIterator<Extent> for NewShape {
    fn from_iter<I: IntoIterator<Item = Extent>>(extents: I) -> Self {
        let mut negative = 0;
        let sizes = extents.into_iter().enumerate().map(|(axis, extent)| {
            if axis < MAX_RANK {
                negative |= u8::from(extent.negative) << axis;
            }
            extent.size
        });
        NewShape { shape: sizes.collect(), negative }
    }
}

impl From<Shape> for NewShape {
    fn from(shape: Shape) -> Self {
        NewShape { shape, negative: 0 }
    }
}

impl From<&Shape> for NewShape {
    fn from(shape: &Shape) -> Self {
        NewShape::from(*shape)
    }
}

impl From<()> for NewShape {
    fn from((): ()) -> Self {
        NewShape::from(Shape::scalar())
    }
}

macro_rules! extent_from {
    ($($t:ty)*) => {$(
        impl From<$t> for Extent {
            fn from(extent: $t) -> Self {
                let wide = extent as i128;
                let size = usize::try_from(wide.unsigned_abs()).unwrap_or(usize::MAX);
                Extent { size, negative: wide < 0 }
            }
        }

        impl From<$t> for NewShape {
            fn from(extent: $t) -> Self {
                NewShape::from([extent])
            }
        }
    )*};
}
extent_from!(usize i32 i64 isize);

macro_rules! new_shape_from {
    ($([$($generics:tt)*] $t:ty;)*) => {$(
        impl<E: Into<Extent> + Copy, $($generics)*> From<$t> for NewShape {
            fn from(extents: $t) -> Self {
                extents.iter().map(|&extent| extent.into()).collect()
            }
        }
    )*};
}
new_shape_from! {
    [] &[E]; [] Vec<E>; [] &Vec<E>; [const N: usize] [E; N]; [const N: usize] &[E; N];
}

from_tuples!(NewShape of Extent);

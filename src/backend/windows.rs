//! Windows that slide over images, and shapes of images.

use swath_kernels::{Geometry, Sliding};

use crate::error::{Error, Result};
use crate::shape::Shape;

/// Windows that slide over images.
///
/// # Errors
/// [`Error::InvalidArgument`] if a step is 0 or a position may overflow.
pub(crate) fn geometry(op: &'static str, axes: [Sliding; 3]) -> Result<Geometry> {
    Geometry::new(axes).map_err(|error| Error::InvalidArgument { op, reason: error.to_string() })
}

/// Shape `[n, channels, …]` of images with as many axes as `like`.
pub(crate) fn images_like(like: &Shape, n: usize, channels: usize, extents: [usize; 3]) -> Shape {
    [n, channels].iter().chain(&extents[5 - like.ndim()..]).copied().collect()
}

/// The greatest common divisor of a stride and a dilation, or of numbers of pixels and windows.
pub(crate) fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

//! Shapes of images and of the columns that their windows form.

use crate::error::{Error, Result};
use crate::ops::Window;
use crate::shape::Shape;

/// Shape `[n, c · kh · kw, oh · ow]` of the columns of images `[n, c, h, w]`.
pub(crate) fn columns_shape(op: &'static str, images: &Shape, window: &Window) -> Result<Shape> {
    let &[count, channels, height, width] = images.dims() else {
        let reason = "expected images with the axes [n, c, h, w]";
        return Err(Error::InvalidShape { op, shape: *images, reason });
    };
    let none = || {
        let reason = format!("{window:?} has no place in images of shape {images}, or too many");
        Error::InvalidArgument { op, reason }
    };
    let [down, across] = window.output([height, width]).ok_or_else(none)?;
    let rows = window.numel().and_then(|window| window.checked_mul(channels)).ok_or_else(none)?;
    let shape = Shape::new([count, rows, down.checked_mul(across).ok_or_else(none)?]);
    shape.validate(op)?;
    Ok(shape)
}

/// Shape `[n, c, h, w]` of the images of columns `[n, c · kh · kw, oh · ow]`.
pub(crate) fn images_shape(
    op: &'static str,
    columns: &Shape,
    [height, width]: [usize; 2],
    window: &Window,
) -> Result<Shape> {
    let &[count, rows, _] = columns.dims() else {
        let reason = "expected columns with the axes [n, c · kh · kw, oh · ow]";
        return Err(Error::InvalidShape { op, shape: *columns, reason });
    };
    let uneven = || {
        let reason = format!("columns of shape {columns} are not of whole channels of {window:?}");
        Error::InvalidArgument { op, reason }
    };
    let numel = window.numel().filter(|&n| n > 0 && rows % n == 0).ok_or_else(uneven)?;
    let images = Shape::new([count, rows / numel, height, width]);
    images.validate(op)?;
    let wanted = columns_shape(op, &images, window)?;
    match wanted == *columns {
        true => Ok(images),
        false => Err(Error::ShapeMismatch { op, lhs: *columns, rhs: wanted }),
    }
}

/// Extents of images `[n, c, …]` along depth, height and width; 1 for axes that they lack.
pub(crate) fn image_extents(images: &Shape) -> [usize; 3] {
    let own = &images.dims()[2..];
    let mut extents = [1; 3];
    extents[3 - own.len()..].copy_from_slice(own);
    extents
}

/// Shape `[n, channels, …]` of images with as many axes as `like`.
pub(crate) fn images_like(like: &Shape, n: usize, channels: usize, extents: [usize; 3]) -> Shape {
    [n, channels].iter().chain(&extents[5 - like.ndim()..]).copied().collect()
}

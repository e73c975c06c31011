//! `im2col` and `col2im`, by the place in the image that each element of the columns comes from.

use smallvec::smallvec;

use super::super::{ReferenceTensor, build, exact, unravel};
use super::{check_float, operand};
use crate::backend::windows::{columns_shape, images_shape};
use crate::backend::{Results, TensorData};
use crate::dtype::Scalar;
use crate::error::Result;
use crate::ops::Window;
use crate::shape::Shape;

/// The index in the images of an index of their columns; `None` outside.
fn source(index: &[usize], images: &Shape, window: &Window) -> Option<[usize; 4]> {
    let [kernel_rows, kernel_cols] = window.kernel;
    let across = window.output([images.dim(2), images.dim(3)])?[1];
    let (image, row, place) = (index[0], index[1], index[2]);
    let channel = row / (kernel_rows * kernel_cols);
    let tap = [row / kernel_cols % kernel_rows, row % kernel_cols];
    let output = [place / across, place % across];
    let along = |axis: usize| {
        let padded = output[axis] * window.stride[axis] + tap[axis] * window.dilation[axis];
        padded.checked_sub(window.padding[axis]).filter(|&i| i < images.dim(2 + axis))
    };
    Some([image, channel, along(0)?, along(1)?])
}

pub(super) fn im2col(
    operands: &[Option<&ReferenceTensor>],
    window: &Window,
) -> Result<Results<ReferenceTensor>> {
    let op = "im2col";
    let x = operand(op, operands, 0)?;
    let images = x.shape();
    let y = build(op, columns_shape(op, images, window)?, x.dtype, |index| {
        Ok(source(index, images, window).map_or(Scalar::Int(0), |from| x.at(&from)))
    })?;
    Ok(smallvec![y])
}

/// Each element one exact sum.
pub(super) fn col2im(
    operands: &[Option<&ReferenceTensor>],
    image: [usize; 2],
    window: &Window,
) -> Result<Results<ReferenceTensor>> {
    let op = "col2im";
    let x = operand(op, operands, 0)?;
    check_float(op, x)?;
    let images = images_shape(op, x.shape(), image, window)?;
    let sources: Vec<_> = (0..x.numel())
        .map(|position| source(&unravel(position, x.shape()), &images, window))
        .collect();
    let y = build(op, images, x.dtype, |index| {
        let terms = sources.iter().zip(x.values.iter());
        let terms = terms.filter(|(from, _)| from.is_some_and(|from| from == *index));
        Ok(Scalar::Float(exact::sum(terms.map(|(_, term)| term.to_f64()))))
    })?;
    Ok(smallvec![y])
}

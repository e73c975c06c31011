//! im2col and col2im. The unit of work is a channel of an image.

use smallvec::smallvec;
use swath_kernels::{self as kernels, Im2col};

use super::super::copy::for_size;
use super::super::rows::compute;
use super::super::working::{Working, for_float};
use super::super::{CpuTensor, Output, Results, copy};
use crate::backend::TensorData;
use crate::backend::windows::{columns_shape, images_shape};
use crate::error::Result;
use crate::ops::Window;
use crate::runtime::parallel::{Band, Cost, for_each_band};
use crate::shape::Shape;

/// Picoseconds of adding one byte of the columns.
const COST_PER_BYTE: usize = 100;

/// Arguments of the kernels for `count` channels of images of this shape.
fn channels(count: usize, images: &Shape, window: &Window) -> Im2col {
    let &Window { kernel, stride, padding, dilation } = window;
    let (height, width) = (images.dim(2), images.dim(3));
    Im2col { images: 1, channels: count, height, width, kernel, stride, padding, dilation }
}

/// Number of channels of all images, elements of one, and elements of its columns.
fn sizes(images: &Shape, columns: &Shape) -> [usize; 3] {
    let planes = images.dim(0) * images.dim(1);
    let matrix = columns.numel().checked_div(planes).unwrap_or(0);
    [planes, images.dim(2) * images.dim(3), matrix]
}

pub(super) fn im2col(x: &CpuTensor, window: &Window) -> Result<Results<CpuTensor>> {
    let (op, images) = ("im2col", x.shape());
    let shape = columns_shape(op, images, window)?;
    let mut out = Output::new(op, &shape, x.dtype())?;
    let [planes, plane, matrix] = sizes(images, &shape);
    let x = copy::contiguous(op, x)?;
    for_size!(x.dtype().size(), T => {
        let x = x.run::<T>();
        let cost = copy::cost::<T>().times(matrix);
        let bands = Band::new(out.elements::<T>(), matrix);
        for_each_band(planes, cost, bands, |range, columns| {
            let x = &x[range.start * plane..range.end * plane];
            kernels::im2col(x, columns, channels(range.len(), images, window));
        });
    });
    Ok(smallvec![out.finish()])
}

pub(super) fn col2im(
    x: &CpuTensor,
    image: [usize; 2],
    window: &Window,
) -> Result<Results<CpuTensor>> {
    let op = "col2im";
    let images = images_shape(op, x.shape(), image, window)?;
    let [planes, plane, matrix] = sizes(&images, x.shape());
    for_float!(op, x, T => {
        let cost = Cost(COST_PER_BYTE * size_of::<<T as Working>::Wide>()).times(matrix);
        let (work, outputs) = ((planes, cost), [(&images, plane)]);
        compute::<T, _, _, _>(op, work, [(x, matrix)], outputs, [], |range, [x], [y], []| {
            kernels::col2im(x, y, channels(range.len(), &images, window));
        })
    })
}

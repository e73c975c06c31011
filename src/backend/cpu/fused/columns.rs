//! Windows of images as columns, and columns added up to images: a channel of an image is the unit of
//! work.

use smallvec::smallvec;
use swath_kernels::{self as kernels, Im2col};

use super::super::copy::for_size;
use super::super::memory::Buffer;
use super::super::parallel::{Band, Cost, for_each_band};
use super::super::{CpuTensor, Output, Results, copy};
use super::operand;
use super::working::{Working, for_float};
use crate::backend::TensorData;
use crate::backend::windows::{columns_shape, images_shape};
use crate::error::Result;
use crate::ops::Window;
use crate::shape::Shape;

/// Of adding a byte of the columns.
const COST_PER_BYTE: usize = 100;

/// So many channels of images of this shape.
fn channels(channels: usize, images: &Shape, window: &Window) -> Im2col {
    let &Window { kernel, stride, padding, dilation } = window;
    let (height, width) = (images.dim(2), images.dim(3));
    Im2col { images: 1, channels, height, width, kernel, stride, padding, dilation }
}

/// Channels of all images, elements of one, and of its columns.
fn sizes(images: &Shape, columns: &Shape) -> [usize; 3] {
    let planes = images.dim(0) * images.dim(1);
    let matrix = columns.numel().checked_div(planes).unwrap_or(0);
    [planes, images.dim(2) * images.dim(3), matrix]
}

pub(super) fn im2col(
    operands: &[Option<&CpuTensor>],
    window: &Window,
) -> Result<Results<CpuTensor>> {
    let op = "im2col";
    let x = operand(op, operands, 0)?;
    let images = *x.shape();
    let shape = columns_shape(op, &images, window)?;
    let mut out = Output::new(op, &shape, x.dtype())?;
    let x = copy::contiguous(op, x)?;
    let [planes, plane, matrix] = sizes(&images, &shape);
    for_size!(x.dtype(), T => {
        let x = x.run::<T>();
        let cost = copy::cost::<T>().times(matrix);
        let bands = Band::new(out.elements::<T>(), matrix);
        for_each_band(planes, cost, bands, |range, columns| {
            let x = &x[range.start * plane..range.end * plane];
            kernels::im2col(x, columns, channels(range.len(), &images, window));
        });
    });
    Ok(smallvec![out.finish()])
}

pub(super) fn col2im(
    operands: &[Option<&CpuTensor>],
    image: [usize; 2],
    window: &Window,
) -> Result<Results<CpuTensor>> {
    let x = operand("col2im", operands, 0)?;
    for_float!("col2im", x, T => added_up::<T>(x, image, window))
}

fn added_up<T: Working>(
    x: &CpuTensor,
    image: [usize; 2],
    window: &Window,
) -> Result<Results<CpuTensor>> {
    let op = "col2im";
    let images = images_shape(op, x.shape(), image, window)?;
    let mut out = Output::new(op, &images, x.dtype())?;
    if images.numel() == 0 {
        return Ok(smallvec![out.finish()]);
    }
    let [planes, plane, matrix] = sizes(&images, x.shape());
    let x = copy::contiguous(op, x)?;
    let x = x.run::<T>();
    let cost = Cost(COST_PER_BYTE * size_of::<T::Wide>()).times(matrix);
    for_each_band(planes, cost, Band::new(out.elements::<T>(), plane), |range, out| {
        let x = &x[range.start * matrix..range.end * matrix];
        // Of what is converted, one channel at a time.
        let (group, len) = if T::CONVERTS { (1, matrix + plane) } else { (range.len(), 0) };
        let mut scratch = Buffer::scratch(len * size_of::<T::Wide>());
        let scratch = scratch.as_slice_mut::<T::Wide>();
        let (x_wide, out_wide) = scratch.split_at_mut(if T::CONVERTS { matrix } else { 0 });
        for (x, out) in x.chunks(group * matrix).zip(out.chunks_mut(group * plane)) {
            let shape = channels(group, &images, window);
            let x = T::read(x, x_wide);
            T::write(out, out_wide, |out| kernels::col2im(x, out, shape));
        }
    });
    Ok(smallvec![out.finish()])
}

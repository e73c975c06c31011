//! Pooling. The unit of work is a channel of an image.

use smallvec::smallvec;
use swath_kernels::{self as kernels, Geometry};

use super::super::rows::{compute, in_groups};
use super::super::working::{Working, for_float};
use super::super::{CpuTensor, Output, Results, copy};
use crate::backend::TensorData;
use crate::backend::windows::{image_extents, images_like};
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::Pooling;
use crate::runtime::parallel::{Band, Cost, for_each_band};
use crate::shape::Shape;

/// Cost of a place of a window in picoseconds.
const COST: usize = 300;

/// Returns the geometry of a channel, and the number of channels of all images.
fn channels(x: &CpuTensor, image: [usize; 3], pooling: &Pooling) -> (Geometry, usize) {
    let &Pooling { kernel, stride, dilation, padding, windows, .. } = pooling;
    let padding = padding.map(|before| before as isize);
    let geometry = Geometry { image, kernel, stride, dilation, padding, output: windows };
    (geometry, x.shape().dim(0) * x.shape().dim(1))
}

/// Shape of `x` with other extents of its images.
fn with_image(x: &CpuTensor, image: [usize; 3]) -> Shape {
    images_like(x.shape(), x.shape().dim(0), x.shape().dim(1), image)
}

fn cost<T: Working>(geometry: &Geometry) -> Cost {
    let windows: usize = geometry.output.iter().product();
    Cost(COST * size_of::<T::Wide>() / 4).times(windows * geometry.kernel.iter().product::<usize>())
}

pub(super) fn max(
    op: &'static str,
    x: &CpuTensor,
    pooling: &Pooling,
) -> Result<Results<CpuTensor>> {
    let (geometry, channels) = channels(x, image_extents(x.shape()), pooling);
    let shape = with_image(x, geometry.output);
    let (pixels, windows): (usize, usize) =
        (geometry.image.iter().product(), geometry.output.iter().product());
    let mut y = Output::new(op, &shape, x.dtype())?;
    let mut positions = Output::new(op, &shape, DType::I64)?;
    let x = copy::contiguous(op, x)?;
    for_float!(op, x, T => {
        let bands = (Band::new(y.elements::<T>(), windows), Band::new(positions.elements::<i64>(), windows));
        let data = x.run::<T>();
        for_each_band(channels, cost::<T>(&geometry), bands, |range, (y, positions)| {
            let first = range.start;
            in_groups(range, [(data, pixels)], [(y, windows)], |group, [x], [y]| {
                let here = (group.start - first) * windows..(group.end - first) * windows;
                kernels::max_pool(x, geometry, y, &mut positions[here]);
            });
        });
        Ok(())
    })?;
    Ok(smallvec![y.finish(), positions.finish()])
}

pub(super) fn mean(
    op: &'static str,
    x: &CpuTensor,
    pooling: &Pooling,
) -> Result<Results<CpuTensor>> {
    let (geometry, channels) = channels(x, image_extents(x.shape()), pooling);
    let shape = with_image(x, geometry.output);
    let (pixels, windows): (usize, usize) =
        (geometry.image.iter().product(), geometry.output.iter().product());
    let counts = pooling.count_include_pad;
    for_float!(op, x, T => {
        let (work, outputs) = ((channels, cost::<T>(&geometry)), [(&shape, windows)]);
        compute::<T, _, _, _>(op, work, [(x, pixels)], outputs, [], |_, [x], [y], []| {
            kernels::avg_pool(x, geometry, counts, y);
        })
    })
}

pub(super) fn mean_grad(
    op: &'static str,
    g: &CpuTensor,
    image: [usize; 3],
    pooling: &Pooling,
) -> Result<Results<CpuTensor>> {
    let (geometry, channels) = channels(g, image, pooling);
    let shape = with_image(g, image);
    let (pixels, windows): (usize, usize) =
        (image.iter().product(), geometry.output.iter().product());
    let counts = pooling.count_include_pad;
    for_float!(op, g, T => {
        let (work, outputs) = ((channels, cost::<T>(&geometry)), [(&shape, pixels)]);
        compute::<T, _, _, _>(op, work, [(g, windows)], outputs, [], |_, [g], [y], []| {
            kernels::avg_pool_grad(g, geometry, counts, y);
        })
    })
}

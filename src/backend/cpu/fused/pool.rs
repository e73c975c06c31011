//! Pooling. The unit of work is a channel of an image.

use smallvec::smallvec;
use swath_kernels::{self as kernels, Geometry};

use super::super::rows::{compute, in_groups};
use super::super::tensor::{CpuTensor, Output};
use super::super::working::{Working, for_float};
use super::super::{CpuBackend, copy};
use crate::backend::windows::images_like;
use crate::backend::{Backend as _, Results, TensorData};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::runtime::parallel::{Band, Cost, for_each_band};
use crate::shape::Shape;

/// Cost of a tap of a window in picoseconds.
const COST: usize = 100;

/// A pooling of all channels of images.
#[derive(Clone, Copy)]
struct Work {
    geometry: Geometry,
    /// Number of channels of all images.
    channels: usize,
    /// Number of pixels and of windows of a channel.
    pixels: usize,
    windows: usize,
}

impl Work {
    /// The work on images with the channels of `x`.
    fn new(x: &CpuTensor, geometry: Geometry) -> Self {
        let channels = x.shape().dim(0) * x.shape().dim(1);
        let [pixels, windows] = [geometry.image(), geometry.windows()].map(|e| e.iter().product());
        Work { geometry, channels, pixels, windows }
    }

    /// Cost of a channel.
    fn cost<T: Working>(&self) -> Cost {
        let terms = self.windows.saturating_mul(self.geometry.taps());
        Cost(COST * size_of::<T::Wide>() / 4).times(terms)
    }
}

/// Shape of `x` with other extents of its images.
fn with_image(x: &CpuTensor, image: [usize; 3]) -> Shape {
    images_like(x.shape(), x.shape().dim(0), x.shape().dim(1), image)
}

pub(super) fn max(
    op: &'static str,
    x: &CpuTensor,
    geometry: Geometry,
    with_positions: bool,
) -> Result<Results<CpuTensor>> {
    let work = Work::new(x, geometry);
    let Work { channels, pixels, windows, .. } = work;
    let shape = with_image(x, geometry.windows());
    if i32::try_from(pixels).is_err() {
        return Err(Error::Unsupported { op, backend: CpuBackend::NAME });
    }
    if !with_positions {
        return for_float!(op, x, T => {
            let (outputs, work) = ([(&shape, windows)], (channels, work.cost::<T>()));
            compute::<T, _, _, _>(op, work, [(x, pixels)], outputs, [], |_, [x], [y], []| {
                kernels::max_pool(x, geometry, y, &mut []);
            })
        });
    }
    let mut y = Output::new(op, &shape, x.dtype())?;
    let mut positions = Output::new(op, &shape, DType::I64)?;
    let x = copy::contiguous(op, x)?;
    for_float!(op, x, T => {
        let bands = (Band::new(y.elements::<T>(), windows), Band::new(positions.elements::<i64>(), windows));
        let data = x.run::<T>();
        for_each_band(channels, work.cost::<T>(), bands, |range, (y, positions)| {
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
    geometry: Geometry,
    counts: bool,
) -> Result<Results<CpuTensor>> {
    let work = Work::new(x, geometry);
    let Work { channels, pixels, windows, .. } = work;
    let shape = with_image(x, geometry.windows());
    for_float!(op, x, T => {
        let outputs = [(&shape, windows)];
        compute::<T, _, _, _>(op, (channels, work.cost::<T>()), [(x, pixels)], outputs, [], |_, [x], [y], []| {
            kernels::avg_pool(x, geometry, counts, y);
        })
    })
}

pub(super) fn mean_grad(
    op: &'static str,
    g: &CpuTensor,
    geometry: Geometry,
    counts: bool,
) -> Result<Results<CpuTensor>> {
    let work = Work::new(g, geometry);
    let Work { channels, pixels, windows, .. } = work;
    let shape = with_image(g, geometry.image());
    for_float!(op, g, T => {
        let outputs = [(&shape, pixels)];
        compute::<T, _, _, _>(op, (channels, work.cost::<T>()), [(g, windows)], outputs, [], |_, [g], [y], []| {
            kernels::avg_pool_grad(g, geometry, counts, y);
        })
    })
}

//! Convolutions of images and signals that read their windows in place, in padded copies of the images
//! (`kernels::Indirect`).
//!
//! ```text
//! for a band of rows of windows: copy the pixels they see, with the padding, for each channel and each phase of the
//! stride; the window of a row's next pixel is then one element further at every place
//! y[o, pixels of the band] = weight[o, places] · copy[offset of the place + pixel]
//! ```
//!
//! A pixel is copied once, where packing copies it for every place. In return each row of windows has some columns
//! between its last window and the next row's first, whose results are dropped.

use std::marker::PhantomData;
use std::ops::Range;

use smallvec::SmallVec;
use swath_kernels::{self as kernels, Float as _, Geometry, Indirect, MatMut, MatRef};

use super::super::super::matmul::{Factor, refused};
use super::{Images, Job, Phase, RESULT, copy_pixels};
use crate::error::Result;
use crate::runtime::memory::Buffer;
use crate::runtime::workspace::Packed as _;

/// Maximum number of bytes of a band's copy, a part of L2.
const BAND_BYTES: usize = 512 << 10;

/// Time to pack a vector of windows, in rows of a product: the more rows, the less it matters.
const PACKING: usize = 12;

/// An axis of windows in a copy that has a line for every phase of the stride.
struct Axis {
    /// For each place of a window, the index of its phase and its offset in lines of that phase.
    places: SmallVec<[(usize, usize); 8]>,
    /// Pixel of the first window in each phase that a place is in.
    starts: SmallVec<[isize; 4]>,
    /// The largest offset.
    reach: usize,
}

impl Axis {
    fn new(axis: usize, geometry: &Geometry) -> Self {
        let (stride, dilation) = (geometry.stride[axis], geometry.dilation[axis]);
        let (mut phases, mut places) = (SmallVec::<[usize; 4]>::new(), SmallVec::new());
        for place in 0..geometry.kernel[axis] {
            let (phase, offset) = (place * dilation % stride, place * dilation / stride);
            let index = phases.iter().position(|&other| other == phase).unwrap_or_else(|| {
                phases.push(phase);
                phases.len() - 1
            });
            places.push((index, offset));
        }
        let starts = phases.iter().map(|&phase| phase as isize - geometry.padding[axis]);
        let reach = places.iter().map(|&(_, offset)| offset).max().unwrap_or(0);
        Axis { starts: starts.collect(), reach, places }
    }
}

/// Pixels between the first windows of adjacent rows in the copy of a band.
fn pitch(geometry: &Geometry) -> usize {
    let reach = (geometry.kernel[2].max(1) - 1) * geometry.dilation[2] / geometry.stride[2];
    geometry.output[2] + reach
}

/// True if reading in place is worth the columns that are dropped, for products of `rows` rows.
pub(super) fn pays(geometry: &Geometry, rows: usize) -> bool {
    let Geometry { image, kernel, output, .. } = *geometry;
    let is_flat = image[0] == 1 && kernel[0] == 1 && output[0] == 1 && geometry.padding[0] == 0;
    let (used, all) = (output[2] * (rows + PACKING), pitch(geometry) * rows);
    is_flat && kernel[1] * kernel[2] > 1 && all <= used
}

/// Copies of bands of rows of windows.
pub(super) struct Bands<'a> {
    geometry: &'a Geometry,
    down: Axis,
    across: Axis,
    /// Pixels between the first windows of adjacent rows.
    pub pitch: usize,
    /// Rows of windows of a band.
    pub rows: usize,
}

impl<'a> Bands<'a> {
    /// Bands of about the same height of at most `most` rows, whose copies of some channels have a limited size.
    pub fn new(geometry: &'a Geometry, channels: usize, most: usize, element: usize) -> Self {
        let [down, across] = [Axis::new(1, geometry), Axis::new(2, geometry)];
        let pitch = pitch(geometry);
        let height = geometry.output[1].max(1);
        let lines = channels * down.starts.len() * across.starts.len();
        let limit = BAND_BYTES / element / (lines * pitch).max(1);
        let most = limit.saturating_sub(down.reach).min(most).clamp(1, height);
        let rows = height.div_ceil(height.div_ceil(most));
        Bands { geometry, down, across, pitch, rows }
    }

    /// Elements of the copy of one channel in one phase.
    fn plane(&self) -> usize {
        (self.rows + self.down.reach) * self.pitch
    }

    /// Elements of a copy.
    pub fn copy_len(&self, channels: usize) -> usize {
        channels * self.down.starts.len() * self.across.starts.len() * self.plane()
    }

    /// Columns of a band of this height, from its first window to its last.
    pub fn columns(&self, height: usize) -> usize {
        (height.max(1) - 1) * self.pitch + self.geometry.output[2]
    }

    /// Offsets in a copy of the pixels that the first window of the band sees: for each channel those of all places.
    pub fn offsets(&self, channels: usize) -> Vec<usize> {
        let Bands { down, across, pitch, .. } = self;
        let places = down.places.len() * across.places.len();
        let mut offsets = Vec::with_capacity(channels * places);
        for channel in 0..channels {
            for &(y, below) in &down.places {
                for &(x, right) in &across.places {
                    let line = (channel * down.starts.len() + y) * across.starts.len() + x;
                    offsets.push(line * self.plane() + below * pitch + right);
                }
            }
        }
        offsets
    }

    /// Copies the pixels that `height` rows of windows see, from row `top` on: a plane for each channel and phase.
    pub fn copy<T: Factor>(
        &self,
        x: &Images<'_, T>,
        (image, channels): (usize, Range<usize>),
        (top, height): (usize, usize),
        copy: &mut [T::Sum],
    ) {
        let &Bands { geometry, ref down, ref across, pitch, .. } = self;
        let &Images { data, offset, strides, .. } = x;
        let [_, image_height, image_width] = geometry.image;
        let [_, stride_y, stride_x] = geometry.stride.map(|stride| stride as isize);
        // The columns of each phase that lie in the image, and the pixel of the first.
        let inside = across.starts.iter().map(|&start| {
            let reach = |x: isize| ((x + stride_x - 1).max(0) / stride_x) as usize;
            let first = reach(-start).min(pitch);
            let end = reach(image_width as isize - start).clamp(first, pitch);
            (first..end, start + first as isize * stride_x)
        });
        let inside: SmallVec<[_; 4]> = inside.collect();
        let mut planes = copy.chunks_exact_mut(self.plane());
        for channel in channels {
            let corner =
                offset as isize + image as isize * strides[0] + channel as isize * strides[1];
            for &start in &down.starts {
                for (columns, pixel) in &inside {
                    let Some(plane) = planes.next() else { return };
                    let lines = plane.chunks_exact_mut(pitch).take(height + down.reach);
                    for (line, row) in lines.zip(top..) {
                        let y = start + row as isize * stride_y;
                        if columns.is_empty() || !(0..image_height as isize).contains(&y) {
                            line.fill(T::Sum::ZERO);
                            continue;
                        }
                        line[..columns.start].fill(T::Sum::ZERO);
                        line[columns.end..].fill(T::Sum::ZERO);
                        let line = &mut line[columns.clone()];
                        let from = (corner + y * strides[3] + pixel * strides[4]) as usize;
                        let step = stride_x * strides[4];
                        copy_pixels(data, from, step, line);
                    }
                }
            }
        }
    }
}

/// The bands of a convolution, and memory for one: the copy, the products, and their rounded results.
pub(super) struct Scratch<'a, T: Factor> {
    bands: Bands<'a>,
    offsets: Vec<usize>,
    copy: Buffer,
    sums: Buffer,
    rounded: Buffer,
    element: PhantomData<T>,
}

impl<'a, T: Factor> Scratch<'a, T> {
    /// Memory for products of windows of `seen` channels with at most `most` filters.
    pub fn new(geometry: &'a Geometry, seen: usize, most: usize) -> Self {
        let height = RESULT / (most * pitch(geometry)).max(1);
        let bands = Bands::new(geometry, seen, height, size_of::<T::Sum>());
        let columns = bands.columns(bands.rows);
        Scratch {
            offsets: bands.offsets(seen),
            copy: Buffer::scratch(bands.copy_len(seen) * size_of::<T::Sum>()),
            sums: Buffer::scratch(most * columns * size_of::<T::Sum>()),
            rounded: Buffer::scratch(columns * size_of::<T>()),
            bands,
            element: PhantomData,
        }
    }
}

impl<T: Factor> Job<'_, T> {
    /// Computes channels `own` of a range of images, and writes them to channels `rows` of the `channels` channels of
    /// `out`.
    #[allow(clippy::too_many_arguments, reason = "those of `columns`, and the memory")]
    pub(super) fn direct(
        &self,
        (images, seen): (Range<usize>, Range<usize>),
        weight: MatRef<'_, T>,
        own: Range<usize>,
        phase: &Phase<'_, T>,
        (rows, channels): (Range<usize>, usize),
        scratch: &mut Scratch<'_, T>,
        out: &mut [T],
    ) -> Result<()> {
        let [_, height, width] = phase.geometry.output;
        let Scratch { bands, offsets, copy, sums, rounded, .. } = scratch;
        let pitch = bands.pitch;
        let copy = &mut copy.as_slice_mut::<T::Sum>()[..bands.copy_len(seen.len())];
        let pixels: usize = self.image.iter().product();
        for image in images.clone() {
            for top in (0..height).step_by(bands.rows) {
                let band = bands.rows.min(height - top);
                bands.copy(&self.x, (image, seen.clone()), (top, band), copy);
                let columns = bands.columns(band);
                let b = Indirect::new(copy, offsets, columns).map_err(refused(self.op))?;
                let z = &mut sums.as_slice_mut::<T::Sum>()[..own.len() * columns];
                let c =
                    MatMut::row_major(&mut *z, [own.len(), columns]).map_err(refused(self.op))?;
                T::Sum::workspace()
                    .with_borrow_mut(|workspace| {
                        kernels::gemm_indirect(weight, &b, T::Sum::ZERO, c, workspace)
                    })
                    .map_err(refused(self.op))?;
                let rounded = &mut rounded.as_slice_mut::<T>()[..columns];
                for (i, z) in z.chunks_exact_mut(columns).enumerate() {
                    let x = self.finish(own.start + i, z, rounded);
                    let channel = (image - images.start) * channels + rows.start + i;
                    let y = &mut out[channel * pixels..][..pixels];
                    for (row, x) in x.chunks(pitch).enumerate() {
                        phase.grid.write(self.image, [0, top + row, 0], &x[..width], y);
                    }
                }
            }
        }
        Ok(())
    }
}

//! Convolutions of images and signals that read their windows in place, in padded copies of the images
//! (`kernels::Indirect`).
//!
//! ```text
//! for a band of rows of windows, or of columns of long rows: copy the pixels they see, with the padding, for each
//! channel and each phase of the stride; the window of a row's next pixel is then one element further at every place
//! y[o, pixels of the band] = weight[o, places] · copy[offset of the place + pixel]
//! ```
//!
//! A pixel is copied once, where packing copies it for every place. In return each row of windows has some columns
//! between its last window and the next row's first, whose results are dropped.

use std::marker::PhantomData;
use std::ops::Range;

use smallvec::{SmallVec, smallvec};
use swath_kernels::{Float as _, Geometry, Indirect, MatMut, Sliding};

use super::super::super::matmul::{Factor, refused};
use super::{Images, Job, Products, RESULT, Rows, copy_pixels, rounded_to};
use crate::error::Result;
use crate::runtime::memory::Buffer;

/// Maximum number of bytes of a band's copy, a part of L2.
const BAND_BYTES: usize = 512 << 10;

/// Time to pack a vector of windows, in rows of a product, if neighbouring windows see adjacent pixels and if not; and
/// the extra time of a product that reads in place. Measured on Zen 5 for 7 to 56 pixels a side and 16 to 512 filters:
/// by these the faster path is taken, or one that takes at most 1.04 of its time.
const PACKING: [f64; 2] = [14.0, 70.0];
const IN_PLACE: f64 = 1.0 / 16.0;

/// Minimum number of columns of a band: with fewer, a product's vectors are mostly empty.
const MIN_COLUMNS: usize = 16;

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
        let &Sliding { stride, dilation, kernel, padding: [before, _], .. } = geometry.axis(axis);
        let (mut phases, mut places) = (SmallVec::<[usize; 4]>::new(), SmallVec::new());
        for place in 0..kernel {
            let (phase, offset) = (place * dilation % stride, place * dilation / stride);
            let index = phases.iter().position(|&other| other == phase).unwrap_or_else(|| {
                phases.push(phase);
                phases.len() - 1
            });
            places.push((index, offset));
        }
        let starts = phases.iter().map(|&phase| phase as isize - before);
        let reach = places.iter().map(|&(_, offset)| offset).max().unwrap_or(0);
        Axis { starts: starts.collect(), reach, places }
    }
}

/// The indices below `count` of pixels that are a stride apart, from `first` on, and inside the image.
fn pixels_inside(first: isize, stride: usize, count: usize, image: usize) -> Range<usize> {
    let (windows, padding) = (count, [-first, 0]);
    Sliding { image, stride, windows, padding, ..Sliding::default() }.windows_at(0)
}

/// Copies of bands of windows: of some rows, and of a range of columns if whole rows are too long.
pub(super) struct Bands<'a> {
    geometry: &'a Geometry,
    down: Axis,
    across: Axis,
    /// Pixels between the first windows of adjacent rows.
    pub pitch: usize,
    /// Rows and columns of windows of a band.
    pub shape: [usize; 2],
    /// Elements of the copy of one channel in one phase.
    plane: usize,
}

impl<'a> Bands<'a> {
    /// The bands of the least work whose copies and products with this number of filters stay in the cache. `None` if
    /// the windows are not those of flat images, or packing them is less work.
    pub fn new(
        geometry: &'a Geometry,
        channels: usize,
        filters: usize,
        element: usize,
    ) -> Option<Self> {
        let width = geometry.windows()[2];
        let limits = (channels, RESULT / filters.max(1), element);
        let widest = Bands::widest(geometry, limits)?;
        let pieces = std::iter::successors(Some(width.div_ceil(widest.shape[1])), |n| Some(2 * n));
        let narrower = pieces.skip(1).map(|pieces| width.div_ceil(pieces));
        let narrower = narrower.take_while(|&columns| columns >= 2 * MIN_COLUMNS).take(3);
        let narrower = narrower.map(|columns| Bands::of_columns(geometry, columns, limits));
        let all = std::iter::once(widest).chain(narrower);
        let best = all.min_by(|a, b| a.work(filters).total_cmp(&b.work(filters)));
        best.filter(|bands| bands.work(filters) <= filters as f64 + bands.packing())
    }

    /// The widest bands within limits: a number of channels whose copies fit the cache, of columns of a product, and the
    /// bytes of an element. `None` if the windows are not those of flat images, or do not fit.
    pub fn widest(
        geometry: &'a Geometry,
        (channels, most, element): (usize, usize, usize),
    ) -> Option<Self> {
        let ([_, kernel @ ..], output) = (geometry.kernel(), geometry.windows());
        let is_flat = *geometry.axis(0) == Sliding::default();
        if !is_flat || kernel[0] * kernel[1] < 2 {
            return None;
        }
        let width = output[2];
        let line = Bands::of_columns(geometry, 1, (channels, most, element));
        let longest = line.limit(channels, element) / (1 + line.down.reach);
        let longest = longest.saturating_sub(line.across.reach).min(most).min(width);
        if longest < MIN_COLUMNS.min(width) || width == 0 {
            return None;
        }
        let columns = width.div_ceil(width.div_ceil(longest));
        Some(Bands::of_columns(geometry, columns, (channels, most, element)))
    }

    /// Bands of this width and of about the same height, within the limits of `widest`.
    fn of_columns(
        geometry: &'a Geometry,
        columns: usize,
        (channels, most, element): (usize, usize, usize),
    ) -> Self {
        let [down, across] = [Axis::new(1, geometry), Axis::new(2, geometry)];
        let pitch = columns + across.reach;
        let mut bands = Bands { geometry, down, across, pitch, shape: [1, columns], plane: 0 };
        let rows = (bands.limit(channels, element) / pitch).saturating_sub(bands.down.reach);
        let height = geometry.windows()[1].max(1);
        let rows = rows.min((most.saturating_add(bands.across.reach)) / pitch).clamp(1, height);
        bands.shape[0] = height.div_ceil(height.div_ceil(rows));
        bands.plane = (bands.shape[0] + bands.down.reach) * pitch;
        bands
    }

    /// Number of phases.
    fn phases(&self) -> usize {
        self.down.starts.len() * self.across.starts.len()
    }

    /// Maximum number of elements of the copy of one channel in one phase.
    fn limit(&self, channels: usize, element: usize) -> usize {
        BAND_BYTES / element / (channels * self.phases()).max(1)
    }

    /// Time to pack a window.
    fn packing(&self) -> f64 {
        PACKING[usize::from(self.geometry.axis(2).stride > 1)]
    }

    /// Time per window: of a product with its columns and of the copy, whose elements take as long as packed ones.
    fn work(&self, filters: usize) -> f64 {
        let places = self.down.places.len() * self.across.places.len();
        let product = (filters * self.columns(self.shape)) as f64 * (1.0 + IN_PLACE);
        let copied = (self.phases() * self.plane) as f64 / places as f64;
        (product + self.packing() * copied) / self.shape.iter().product::<usize>() as f64
    }

    /// Elements of a copy.
    pub fn copy_len(&self, channels: usize) -> usize {
        channels * self.phases() * self.plane
    }

    /// Columns of a band of this shape, from its first window to its last.
    pub fn columns(&self, [height, width]: [usize; 2]) -> usize {
        (height.max(1) - 1) * self.pitch + width
    }

    /// Cuts rows and columns of windows into bands: the first window and the shape of each.
    pub fn cut(
        &self,
        [rows, columns]: [Range<usize>; 2],
    ) -> impl Iterator<Item = ([usize; 2], [usize; 2])> {
        let [height, width] = self.shape;
        rows.clone().step_by(height).flat_map(move |top| {
            columns.clone().step_by(width).map({
                let (bottom, right) = (rows.end, columns.end);
                move |left| ([top, left], [height.min(bottom - top), width.min(right - left)])
            })
        })
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
                    offsets.push(line * self.plane + below * pitch + right);
                }
            }
        }
        offsets
    }

    /// Copies the pixels that a band of this shape sees, from its first window on: a plane for each channel and phase.
    pub fn copy<T: Factor>(
        &self,
        x: &Images<'_, T>,
        (image, channels): (usize, Range<usize>),
        [top, left]: [usize; 2],
        [height, width]: [usize; 2],
        copy: &mut [T::Sum],
    ) {
        let &Bands { geometry, ref down, ref across, pitch, .. } = self;
        let &Images { data, offset, strides, .. } = x;
        let [_, image_height, image_width] = geometry.image();
        let [_, stride_y, stride_x] = geometry.stride();
        // The columns of each phase that lie in the image, and the pixel of the first.
        let seen = width + across.reach;
        let inside = across.starts.iter().map(|&start| {
            let start = start + (left * stride_x) as isize;
            let columns = pixels_inside(start, stride_x, seen, image_width);
            let pixel = start + (columns.start * stride_x) as isize;
            (columns, pixel)
        });
        let inside: SmallVec<[_; 4]> = inside.collect();
        let mut planes = copy.chunks_exact_mut(self.plane);
        for channel in channels {
            let corner =
                offset as isize + image as isize * strides[0] + channel as isize * strides[1];
            for &start in &down.starts {
                for (columns, pixel) in &inside {
                    let Some(plane) = planes.next() else { return };
                    let first = start + (top * stride_y) as isize;
                    let count = height + down.reach;
                    let rows = pixels_inside(first, stride_y, count, image_height);
                    let lines = plane.chunks_exact_mut(pitch).take(count);
                    for (row, line) in lines.enumerate() {
                        if columns.is_empty() || !rows.contains(&row) {
                            line.fill(T::Sum::ZERO);
                            continue;
                        }
                        let y = first + (row * stride_y) as isize;
                        line[..columns.start].fill(T::Sum::ZERO);
                        line[columns.end..].fill(T::Sum::ZERO);
                        let line = &mut line[columns.clone()];
                        let from = (corner + y * strides[3] + pixel * strides[4]) as usize;
                        let step = stride_x as isize * strides[4];
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
    /// Memory for products of windows of `seen` channels with at most `most` filters; `None` if packing them is less
    /// work.
    pub fn new(geometry: &'a Geometry, seen: usize, most: usize) -> Option<Self> {
        let bands = Bands::new(geometry, seen, most, size_of::<T::Sum>())?;
        let columns = bands.columns(bands.shape);
        Some(Scratch {
            offsets: bands.offsets(seen),
            copy: Buffer::scratch(bands.copy_len(seen) * size_of::<T::Sum>()),
            sums: Buffer::scratch(most * columns * size_of::<T::Sum>()),
            rounded: Buffer::scratch(columns * size_of::<T>()),
            bands,
            element: PhantomData,
        })
    }
}

/// Cuts a range of windows, numbered row by row, into rectangles: rows and columns of each.
fn rectangles(windows: &Range<usize>, width: usize) -> SmallVec<[[Range<usize>; 2]; 3]> {
    let [first, last] = [windows.start / width, windows.end / width];
    let [left, right] = [windows.start % width, windows.end % width];
    if first == last {
        return smallvec![[first..first + 1, left..right]];
    }
    let whole = first + usize::from(left > 0);
    let all = [
        [first..whole, left..width],
        [whole..last, 0..width],
        [last..last + usize::from(right > 0), 0..right],
    ];
    all.into_iter().filter(|[rows, _]| !rows.is_empty()).collect()
}

impl<T: Factor> Job<'_, T> {
    /// Computes products with windows in padded copies.
    pub(super) fn direct(
        &self,
        products: &Products<'_, T>,
        scratch: &mut Scratch<'_, T>,
        out: &mut Rows<'_, T>,
    ) -> Result<()> {
        let &Products { part, phase, .. } = products;
        let Scratch { bands, offsets, copy, sums, rounded, .. } = scratch;
        let copy = &mut copy.as_slice_mut::<T::Sum>()[..bands.copy_len(products.seen.len())];
        for image in part.images.clone() {
            let rectangles = rectangles(&products.windows, phase.geometry.windows()[2]);
            for (corner, shape) in rectangles.into_iter().flat_map(|all| bands.cut(all)) {
                bands.copy(&self.x, (image, products.seen.clone()), corner, shape, copy);
                let count = bands.columns(shape);
                let b = Indirect::new(copy, offsets, count).map_err(refused(self.op))?;
                let z = &mut sums.as_slice_mut::<T::Sum>()[..products.own.len() * count];
                let c = MatMut::row_major(&mut *z, [products.own.len(), count]);
                let c = c.map_err(refused(self.op))?;
                self.multiply(products, &b, c)?;
                let rounded = &mut rounded.as_slice_mut::<T>()[..count];
                for (channel, z) in products.own.clone().zip(z.chunks_exact(count)) {
                    if !self.writes(channel) {
                        continue;
                    }
                    let x = rounded_to(z, rounded);
                    let y = out.row(part.row(image, channel));
                    for (row, x) in x.chunks(bands.pitch).enumerate() {
                        let at = phase.grid.pixel(self.image, [0, corner[0] + row, corner[1]]);
                        let y = &mut y[at - part.pixels.start..];
                        phase.grid.write(&x[..shape[1]], y, self.written);
                    }
                }
            }
        }
        Ok(())
    }
}

//! Convolutions as products with windows of the images: packed from them (`kernels::Windows`), or read in place in
//! padded copies of the images where that is less work (`direct`).
//!
//! ```text
//! conv              y[o, windows] = weight[o, places] · windows(x)
//! conv_transpose    for each phase of the stride: the pixels of x at a distance of the stride from one another
//!                   see the same places of the windows, so they are a convolution of g with the filters there
//! weight_grad       dw[places, o] = windows(x) · gᵀ, over pieces of all windows, the same for any threads;
//!                   for filters of one channel, inner products in the padded copies
//! ```
//!
//! 1. Threads share images. Where images are few, they share the windows of each, or, if windows are few too or groups
//!    many, the channels of the results. A thread computes some columns at a time, which stay in its cache, adds the bias, applies
//!    the function, rounds and puts them into place.
//! 2. Small images go into one product, up to [`COLUMNS`] windows.

mod direct;
mod grid;
mod transpose;
mod weight;

use std::ops::Range;

use smallvec::{SmallVec, smallvec};
use swath_kernels::{
    self as kernels, Bias, Epilogue, Gemm, Geometry, MatMut, MatRef, Right, Windows,
};

use super::super::matmul::{Factor, Outcome, refused};
use super::super::table::unary_kernel;
use super::super::tensor::{CpuTensor, Output};
use super::super::working::for_float;
use super::super::written::Written;
use super::super::{cast, copy};
use crate::backend::windows::images_like;
use crate::backend::{Results, TensorData};
use crate::dtype::Element;
use crate::error::Result;
use crate::ops::UnaryOp;
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{
    self, Band, ColumnBand, Columns, Cost, PARTS_PER_THREAD, for_each_band,
};
use crate::runtime::workspace::Packed as _;
use grid::Grid;
pub(super) use transpose::transpose;
pub(super) use weight::weight_grad;

/// Maximum number of columns of a product: its packed B, [`kernels::gemm::KC`] rows, takes 1 MiB of L2.
const COLUMNS: usize = 1024;

/// Maximum number of elements of a product's result, which stays in L2 until it is rounded.
const RESULT: usize = 1 << 16;

/// Maximum number of filters of a product, so that a result has at least 64 columns.
const FILTERS: usize = RESULT / 64;

/// Minimum number of windows of a part if threads share the windows of an image: the columns of a tile of a product.
const SHARED_WINDOWS: usize = 64;

/// Cost of a fused multiply-add of `f32` in picoseconds.
const COST: usize = 16;

/// Strided images `[n, c, d, h, w]`; axes that images lack have an extent of 1.
#[derive(Clone, Copy)]
struct Images<'a, T> {
    data: &'a [T],
    offset: usize,
    extents: [usize; 5],
    strides: [isize; 5],
}

impl<'a, T: bytemuck::Pod> Images<'a, T> {
    fn new(x: &'a CpuTensor) -> Self {
        let (dims, steps) = (x.layout().dims(), x.layout().strides());
        let (mut extents, mut strides) = ([1; 5], [0; 5]);
        for axis in 0..dims.len() {
            let at = if axis < 2 { axis } else { axis + 5 - dims.len() };
            (extents[at], strides[at]) = (dims[axis], steps[axis]);
        }
        Images { data: x.elements(), offset: x.layout().offset(), extents, strides }
    }

    fn image(&self) -> [usize; 3] {
        [self.extents[2], self.extents[3], self.extents[4]]
    }

    /// Copies the pixels of a row from the one at `[image, channel, depth, height, width]` on.
    fn row(&self, at: [usize; 5], row: &mut [T::Sum])
    where
        T: Factor,
    {
        let steps = at.iter().zip(self.strides).map(|(&i, step)| i as isize * step);
        let first = self.offset.wrapping_add_signed(steps.sum());
        copy_pixels(self.data, first, self.strides[4], row);
    }

    /// Returns the windows of a range of images and a range of channels.
    fn windows(
        &self,
        op: &'static str,
        images: Range<usize>,
        channels: Range<usize>,
        geometry: Geometry,
    ) -> Result<Windows<'a, T>> {
        let counts = [images.len(), channels.len()];
        let is_empty = counts.contains(&0) || self.image().contains(&0);
        let start =
            images.start as isize * self.strides[0] + channels.start as isize * self.strides[1];
        let offset = if is_empty { 0 } else { self.offset.wrapping_add_signed(start) };
        Windows::new(self.data, offset, counts, self.strides, geometry).map_err(refused(op))
    }
}

/// A convolution whose results are the pixels of a grid of the output images.
struct Phase<'a, T> {
    grid: Grid,
    geometry: Geometry,
    /// Filters, `[groups, channels of the result in a group, places]`.
    weight: &'a [T],
}

/// A part of the results: of a range of images, of channels, and of the pixels of each.
struct Part {
    images: Range<usize>,
    channels: Range<usize>,
    pixels: Range<usize>,
}

impl Part {
    /// Index of the row of an image and a channel.
    fn row(&self, image: usize, channel: usize) -> usize {
        (image - self.images.start) * self.channels.len() + channel - self.channels.start
    }
}

/// Memory of a part: a row of pixels for each image and channel.
enum Rows<'a, T> {
    /// Rows of this length, one after the other.
    Whole(&'a mut [T], usize),
    Columns(Columns<'a, T>),
}

impl<T> Rows<'_, T> {
    fn row(&mut self, i: usize) -> &mut [T] {
        match self {
            Rows::Whole(out, len) => &mut out[i * *len..][..*len],
            Rows::Columns(columns) => columns.row(i),
        }
    }
}

/// Products of some filters with windows of a part.
struct Products<'a, T> {
    part: &'a Part,
    phase: &'a Phase<'a, T>,
    /// Channels of the images.
    seen: Range<usize>,
    /// Channels of the results, and their filters.
    own: Range<usize>,
    weight: MatRef<'a, T>,
    /// Windows of each image.
    windows: Range<usize>,
}

/// Convolutions of the same images, whose grids make up the output images.
struct Job<'a, T: Factor> {
    op: &'static str,
    x: Images<'a, T>,
    groups: usize,
    /// Channels of the result in a group.
    channels: usize,
    phases: &'a [Phase<'a, T>],
    /// One value per channel of the result.
    bias: Option<&'a [T::Sum]>,
    function: Option<kernels::InPlace<'a, T::Sum>>,
    /// Extents of the result's images.
    image: [usize; 3],
    /// For each channel of the result, whether it is written; all are if there is none. Other pixels keep their values.
    only: Option<&'a [bool]>,
    written: &'a Written,
}

impl<T: Factor> Job<'_, T> {
    /// Computes the result `[n, channels, …]`.
    fn run(&self, out: &mut [T]) -> Result<()> {
        let (images, channels) = (self.x.extents[0], self.groups * self.channels);
        let pixels: usize = self.image.iter().product();
        if out.is_empty() {
            return Ok(());
        }
        let work = |phase: &Phase<'_, T>| {
            let places = self.x.extents[1] / self.groups * phase.geometry.taps();
            places.max(1) * phase.grid.numel()
        };
        let cost = Cost(COST * size_of::<T::Sum>() / 4).times(self.phases.iter().map(work).sum());
        let outcome = Outcome::new();
        let threads = parallel::threads();
        if images >= threads {
            // Small images share a product, as long as every thread gets one.
            let unit = (COLUMNS / pixels.max(1)).clamp(1, images.div_ceil(threads));
            let each = unit * channels * pixels;
            let cost = cost.times(unit * channels);
            for_each_band(images.div_ceil(unit), cost, Band::new(out, each), |units, out| {
                let images = units.start * unit..(units.end * unit).min(images);
                let part = Part { images, channels: 0..channels, pixels: 0..pixels };
                outcome.record(units.start, self.part(&part, Rows::Whole(out, pixels)));
            });
        } else if images * self.groups < threads
            && let Some(unit) = self.shared_pixels(threads)
        {
            let units = pixels.div_ceil(unit);
            let cost = Cost(cost.times(images * channels).0 / units);
            for_each_band(units, cost, ColumnBand::new(out, pixels, unit), |units, columns| {
                let pixels = units.start * unit..(units.end * unit).min(pixels);
                let part = Part { images: 0..images, channels: 0..channels, pixels };
                outcome.record(units.start, self.part(&part, Rows::Columns(columns)));
            });
        } else {
            for_each_band(images * channels, cost, Band::new(out, pixels), |units, out| {
                let (mut at, mut out) = (units.start, out);
                while at < units.end {
                    let (image, channel) = (at / channels, at % channels);
                    let count = (channels - channel).min(units.end - at);
                    let (here, rest) = out.split_at_mut(count * pixels);
                    let (images, channels) = (image..image + 1, channel..channel + count);
                    let part = Part { images, channels, pixels: 0..pixels };
                    outcome.record(at, self.part(&part, Rows::Whole(here, pixels)));
                    (at, out) = (at + count, rest);
                }
            });
        }
        outcome.or(())
    }

    /// Number of pixels of a part if threads share the windows of images, whole lines if there are enough; `None` if
    /// every thread would get few windows.
    fn shared_pixels(&self, threads: usize) -> Option<usize> {
        let [depth, height, width] = self.image;
        let lines = depth * height;
        let most = lines * width / self.phases.len().max(1) / SHARED_WINDOWS;
        let parts = most.min(threads * PARTS_PER_THREAD) / threads * threads;
        match parts {
            0 => None,
            _ if lines >= parts => Some(lines.div_ceil(parts) * width),
            _ => Some((lines * width).div_ceil(parts)),
        }
    }

    /// Computes a part.
    fn part(&self, part: &Part, mut out: Rows<'_, T>) -> Result<()> {
        let Part { channels, pixels, .. } = part;
        // The pixels of each phase that are in this part.
        let ranges = self.phases.iter().map(|phase| {
            [pixels.start, pixels.end].map(|pixel| phase.grid.before(self.image, pixel))
        });
        let ranges: SmallVec<[[usize; 2]; 8]> = ranges.collect();
        let covered: usize = ranges.iter().map(|[first, end]| end - first).sum();
        if covered < pixels.len() && self.only.is_none() {
            for row in 0..part.images.len() * channels.len() {
                out.row(row).fill(T::from_scalar(0.0.into()));
                self.written.add(pixels.len() - covered);
            }
        }
        let sources = self.x.extents[1] / self.groups;
        for (phase, [first, end]) in self.phases.iter().zip(ranges) {
            if first == end {
                continue;
            }
            let places = sources * phase.geometry.taps();
            let most = self.channels.min(channels.len()).min(FILTERS);
            let mut scratch = direct::Scratch::new(&phase.geometry, sources, most);
            for group in channels.start / self.channels..channels.end.div_ceil(self.channels) {
                let of_group = group * self.channels..(group + 1) * self.channels;
                let (start, last) =
                    (of_group.start.max(channels.start), of_group.end.min(channels.end));
                for start in (start..last).step_by(FILTERS) {
                    let own = start..last.min(start + FILTERS);
                    let weight = &phase.weight[own.start * places..own.end * places];
                    let weight = MatRef::row_major(weight, [own.len(), places]);
                    let weight = weight.map_err(refused(self.op))?;
                    let seen = group * sources..(group + 1) * sources;
                    let windows = first..end;
                    let products = Products { part, phase, seen, own, weight, windows };
                    match &mut scratch {
                        Some(scratch) => self.direct(&products, scratch, &mut out)?,
                        None => self.packed(&products, &mut out)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Computes products with packed windows.
    fn packed(&self, products: &Products<'_, T>, out: &mut Rows<'_, T>) -> Result<()> {
        let Products { part, own, .. } = products;
        let Phase { grid, geometry, .. } = products.phase;
        let seen = products.seen.clone();
        let windows = self.x.windows(self.op, part.images.clone(), seen, *geometry)?;
        let most = (RESULT / own.len().max(1)).min(COLUMNS) / 64 * 64;
        let pixels: usize = self.image.iter().product();
        // Windows of different images share a product.
        let each = grid.numel();
        let ranges: SmallVec<[Range<usize>; 4]> = match products.windows.len() == each {
            true => smallvec![0..part.images.len() * each],
            false => (0..part.images.len())
                .map(|i| i * each + products.windows.start..i * each + products.windows.end)
                .collect(),
        };
        let widest = most.min(ranges.iter().map(Range::len).max().unwrap_or(0));
        let mut scratch = Buffer::scratch(own.len() * widest * size_of::<T::Sum>());
        let mut rounded = Buffer::scratch(widest * size_of::<T>());
        let firsts = ranges.iter().flat_map(|range| {
            range.clone().step_by(most).map(|first| (first, most.min(range.end - first)))
        });
        for (first, width) in firsts {
            let (image, at) = (first / pixels.max(1), first % pixels.max(1));
            if let Rows::Whole(out, _) = out
                && T::IS_SUM
                && self.only.is_none()
                && grid.is_dense(self.image)
                && at + width <= pixels
            {
                // The product is written to its place in the result.
                let row = part.row(part.images.start + image, own.start);
                let y = &mut bytemuck::cast_slice_mut::<T, T::Sum>(out)[row * pixels..]
                    [..own.len() * pixels];
                let strides = [pixels as isize, 1];
                let c = MatMut::new(&mut *y, at, [own.len(), width], strides);
                let c = c.map_err(refused(self.op))?;
                self.multiply(products, &windows.columns(first, width), c)?;
                self.written.add(own.len() * width);
                continue;
            }
            let z = &mut scratch.as_slice_mut::<T::Sum>()[..own.len() * width];
            let c = MatMut::row_major(&mut *z, [own.len(), width]).map_err(refused(self.op))?;
            self.multiply(products, &windows.columns(first, width), c)?;
            for (channel, z) in own.clone().zip(z.chunks_exact(width)) {
                if !self.writes(channel) {
                    continue;
                }
                let rounded = &mut rounded.as_slice_mut::<T>()[..width];
                let x = rounded_to(z, rounded);
                grid.each_run(self.image, first, width, |image, at, run| {
                    let y = out.row(part.row(part.images.start + image, channel));
                    let at = grid.pixel(self.image, at) - part.pixels.start;
                    grid.write(&x[run], &mut y[at..], self.written);
                });
            }
        }
        Ok(())
    }

    /// True if the results of a channel are written.
    fn writes(&self, channel: usize) -> bool {
        self.only.is_none_or(|only| only[channel])
    }

    /// Multiplies the filters by windows, adds the bias and applies the function.
    fn multiply<'b>(
        &'b self,
        products: &'b Products<'_, T>,
        windows: impl Into<Right<'b, T>>,
        c: MatMut<'_, T::Sum>,
    ) -> Result<()> {
        let bias = self.bias.map(|bias| Bias::PerRow(&bias[products.own.clone()]));
        let epilogue = Epilogue { bias, function: self.function, sums: None };
        let product = Gemm { epilogue, ..Gemm::new(products.weight, windows) };
        T::Sum::with_workspace(|workspace| kernels::gemm(product, c, workspace))
            .map_err(refused(self.op))?;
        Ok(())
    }
}

/// Copies and widens pixels at a distance of `step` in `data`, which has all of them.
fn copy_pixels<T: Factor>(data: &[T], first: usize, step: isize, row: &mut [T::Sum]) {
    if step == 1 {
        kernels::convert(&data[first..][..row.len()], row);
    } else if T::IS_SUM {
        kernels::copy_strided(bytemuck::cast_slice(data), first, step, row);
    } else {
        for (x, pixel) in row.iter_mut().enumerate() {
            *pixel = data[first.wrapping_add_signed(x as isize * step)].widened();
        }
    }
}

/// Returns sums as results, rounded into `y` if the types differ.
fn rounded_to<'a, T: Factor>(z: &'a [T::Sum], y: &'a mut [T]) -> &'a [T] {
    if T::IS_SUM {
        return bytemuck::cast_slice(z);
    }
    round(z, y);
    y
}

/// Rounds sums to results.
fn round<T: Factor>(z: &[T::Sum], y: &mut [T]) {
    match T::ROUND {
        Some(round) => round(z, y),
        None => y.copy_from_slice(bytemuck::cast_slice(z)),
    }
}

pub(super) fn forward(
    op: &'static str,
    x: &CpuTensor,
    weight: &CpuTensor,
    (bias, function): (Option<&CpuTensor>, Option<UnaryOp>),
    (geometry, groups): (Geometry, usize),
) -> Result<Results<CpuTensor>> {
    for_float!(op, x, T => {
        let (images, filters) = (Images::<T>::new(x), Images::<T>::new(weight));
        let (n, outputs, windows) = (images.extents[0], filters.extents[0], geometry.windows());
        let shape = images_like(x.shape(), n, outputs, windows);
        let mut out = Output::new(op, &shape, x.dtype())?;
        let weight = copy::contiguous(op, weight)?;
        let bias = bias.map(|bias| copy::contiguous(op, &cast::cast(bias, <T as kernels::Factor>::Sum::DTYPE)?));
        let bias = bias.transpose()?;
        let function = function.map(unary_kernel);
        let function = function.map(|f| move |z: &mut [<T as kernels::Factor>::Sum]| f.run_in_place([None], z));
        let grid = Grid::new([0; 3], [1; 3], windows);
        let (y, written) = out.parts::<T>(op);
        let job = Job {
            op,
            x: images,
            groups,
            channels: outputs / groups,
            phases: &[Phase { grid, geometry, weight: weight.run::<T>() }],
            bias: bias.as_ref().map(|bias| bias.run()),
            function: function.as_ref().map(|f| f as _),
            image: windows,
            only: None,
            written,
        };
        job.run(y)?;
        Ok(smallvec![out.finish()])
    })
}

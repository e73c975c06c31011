//! Convolutions as products with windows that are packed from the images (`kernels::Windows`).
//!
//! ```text
//! conv              y[o, windows] = weight[o, places] · windows(x)
//! conv_transpose    for each phase of the stride: the pixels of x at a distance of the stride from one another
//!                   see the same places of the windows, so they are a convolution of g with the filters there
//! weight_grad       dw[places, o] = windows(x) · gᵀ, over pieces of all windows, the same for any threads
//! ```
//!
//! 1. Threads share images, or the channels of the results where images are few. A thread computes some columns
//!    at a time, which stay in its cache, adds the bias, applies the function, rounds and puts them into place.
//! 2. Small images go into one product, up to [`COLUMNS`] windows.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};
use swath_kernels::{self as kernels, Float as _, Geometry, MatMut, MatRef, Windows};

use super::super::matmul::{Factor, refused};
use super::super::table::unary_kernel;
use super::super::{CpuTensor, Output, Results, cast, copy};
use crate::backend::TensorData;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::ops::{Activation, Convolution};
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{self, Band, Cost, for_each_band};
use crate::runtime::workspace::Packed as _;
use crate::shape::Shape;

/// Columns of a product: its B and its result stay in the second-level cache.
const COLUMNS: usize = 1024;

/// Elements of a product's result, at most; one of many rows has fewer columns.
const RESULT: usize = 1 << 16;

/// Picoseconds of a multiplication and an addition.
const COST: usize = 16;

/// Runs `$body` with the element type of `$x` as `T`.
macro_rules! for_factor {
    ($op:expr, $x:expr, $T:ident => $body:expr) => {
        match $x.dtype() {
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            DType::F16 => {
                type $T = half::f16;
                $body
            }
            DType::BF16 => {
                type $T = half::bf16;
                $body
            }
            dtype => Err(Error::UnsupportedDType { op: $op, dtype, shape: *$x.shape() }),
        }
    };
}

/// Images `[n, c, d, h, w]` where they lie; images of fewer axes have extents of 1.
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

    /// The windows of some images and some channels.
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

/// Every `step`-th pixel of images from `start` on, `count` along each axis.
#[derive(Clone, Copy)]
struct Grid {
    start: [usize; 3],
    step: [usize; 3],
    count: [usize; 3],
}

/// A convolution whose results are the pixels of a grid.
struct Phase<'a, T> {
    grid: Grid,
    geometry: Geometry,
    /// Filters, `[groups, channels of the result in a group, places]`.
    weight: &'a [T],
}

/// Convolutions of the same images that make up a result.
struct Job<'a, T: Factor> {
    op: &'static str,
    x: Images<'a, T>,
    groups: usize,
    /// Channels of the result in a group.
    channels: usize,
    phases: SmallVec<[Phase<'a, T>; 1]>,
    /// One a channel.
    bias: Option<&'a [T::Sum]>,
    activation: Option<Activation>,
    /// Extents of the result's images.
    image: [usize; 3],
}

impl<T: Factor> Job<'_, T> {
    /// Writes the result, `[n, channels, …]`.
    fn run(&self, out: &mut [T]) -> Result<()> {
        let (images, channels) = (self.x.extents[0], self.groups * self.channels);
        let pixels: usize = self.image.iter().product();
        if out.is_empty() {
            return Ok(());
        }
        let work = |phase: &Phase<'_, T>| {
            let places =
                self.x.extents[1] / self.groups * phase.geometry.kernel.iter().product::<usize>();
            places.max(1) * phase.grid.count.iter().product::<usize>()
        };
        let cost = Cost(COST * size_of::<T::Sum>() / 4).times(self.phases.iter().map(work).sum());
        let outcome = std::sync::Mutex::new(Ok(()));
        let note = |result: Result<()>| {
            if result.is_err() {
                *outcome.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = result;
            }
        };
        let threads = parallel::threads();
        if images >= threads {
            // Several small images at once, but work for every thread.
            let unit = (COLUMNS / pixels.max(1)).clamp(1, images.div_ceil(threads));
            let each = unit * channels * pixels;
            let cost = cost.times(unit * channels);
            for_each_band(images.div_ceil(unit), cost, Band::new(out, each), |units, out| {
                let range = units.start * unit..(units.end * unit).min(images);
                note(self.part(range, 0..channels, out));
            });
        } else {
            for_each_band(images * channels, cost, Band::new(out, pixels), |units, out| {
                let (mut at, mut out) = (units.start, out);
                while at < units.end {
                    let (image, channel) = (at / channels, at % channels);
                    let count = (channels - channel).min(units.end - at);
                    let (here, rest) = out.split_at_mut(count * pixels);
                    note(self.part(image..image + 1, channel..channel + count, here));
                    (at, out) = (at + count, rest);
                }
            });
        }
        outcome.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Writes some channels of some images, `out`.
    fn part(&self, images: Range<usize>, channels: Range<usize>, out: &mut [T]) -> Result<()> {
        let pixels: usize = self.image.iter().product();
        let covered: usize =
            self.phases.iter().map(|phase| phase.grid.count.iter().product::<usize>()).sum();
        if covered < pixels {
            out.fill(T::from_scalar(0.0.into()));
        }
        let sources = self.x.extents[1] / self.groups;
        for phase in &self.phases {
            let places = sources * phase.geometry.kernel.iter().product::<usize>();
            for group in channels.start / self.channels..channels.end.div_ceil(self.channels) {
                let first = group * self.channels;
                let own = first.max(channels.start)..(first + self.channels).min(channels.end);
                let seen = group * sources..(group + 1) * sources;
                let windows = self.x.windows(self.op, images.clone(), seen, phase.geometry)?;
                let weight = &phase.weight[own.start * places..own.end * places];
                let weight =
                    MatRef::row_major(weight, [own.len(), places]).map_err(refused(self.op))?;
                let rows = own.start - channels.start..own.end - channels.start;
                self.columns(&windows, weight, own, phase.grid, (rows, channels.len()), out)?;
            }
        }
        Ok(())
    }

    /// Writes the product of filters and windows to channels `rows.0` of `rows.1` of each image.
    fn columns(
        &self,
        windows: &Windows<'_, T>,
        weight: MatRef<'_, T>,
        own: Range<usize>,
        grid: Grid,
        (rows, channels): (Range<usize>, usize),
        out: &mut [T],
    ) -> Result<()> {
        let [_, count] = windows.shape();
        let most = (RESULT / own.len().max(1)).clamp(64, COLUMNS) / 64 * 64;
        let pixels: usize = self.image.iter().product();
        let mut scratch = Buffer::scratch(own.len() * most.min(count) * size_of::<T::Sum>());
        for first in (0..count).step_by(most) {
            let width = most.min(count - first);
            let z = &mut scratch.as_slice_mut::<T::Sum>()[..own.len() * width];
            let c = MatMut::row_major(&mut *z, [own.len(), width]).map_err(refused(self.op))?;
            let part = windows.columns(first, width);
            T::Sum::workspace()
                .with_borrow_mut(|workspace| {
                    kernels::gemm_windows(weight, &part, T::Sum::ZERO, c, workspace)
                })
                .map_err(refused(self.op))?;
            for (i, z) in z.chunks_exact_mut(width).enumerate() {
                if let Some(bias) = self.bias {
                    let bias = bias[own.start + i];
                    z.iter_mut().for_each(|z| *z = *z + bias);
                }
                if let Some(activation) = self.activation {
                    unary_kernel(activation.op()).run_in_place([None], z);
                }
                let channel = rows.start + i;
                grid.each_run(first, width, |image, at, run| {
                    let row = &mut out[(image * channels + channel) * pixels..][..pixels];
                    let start = grid.position(self.image, at);
                    let step = grid.step[2];
                    let z = &z[run.clone()];
                    match step {
                        1 => T::put(z, &mut row[start..start + z.len()]),
                        _ => row[start..]
                            .iter_mut()
                            .step_by(step)
                            .zip(z)
                            .for_each(|(y, &z)| *y = T::rounded(z)),
                    }
                });
            }
        }
        Ok(())
    }
}

impl Grid {
    /// `f(image, first pixel of the grid, its columns)` for each run of columns `first..first + width` within a
    /// row of the grid; the grid's pixels of all images are numbered one after the other.
    fn each_run(
        &self,
        first: usize,
        width: usize,
        mut f: impl FnMut(usize, [usize; 3], Range<usize>),
    ) {
        let [depth, height, across] = self.count;
        let is_dense = self.step == [1; 3] && self.start == [0; 3];
        let mut at = 0;
        while at < width {
            let column = first + at;
            let (line, x) = (column / across, column % across);
            let (plane, y) = (line / height, line % height);
            let (image, z) = (plane / depth, plane % depth);
            // All that is left of the image lies in one run, or of the row.
            let left = match is_dense {
                true => (depth * height * across) - column % (depth * height * across),
                false => across - x,
            };
            let len = left.min(width - at);
            f(image, [z, y, x], at..at + len);
            at += len;
        }
    }

    /// The place of a pixel of the grid in an image of these extents.
    fn position(&self, image: [usize; 3], at: [usize; 3]) -> usize {
        let [z, y, x]: [usize; 3] = std::array::from_fn(|i| self.start[i] + at[i] * self.step[i]);
        (z * image[1] + y) * image[2] + x
    }
}

/// What rounds sums.
trait Put: Factor {
    fn rounded(z: Self::Sum) -> Self;
    fn put(z: &[Self::Sum], y: &mut [Self]);
}

impl<T: Factor> Put for T {
    fn rounded(z: T::Sum) -> T {
        let mut y = [T::from_scalar(0.0.into())];
        T::put(&[z], &mut y);
        y[0]
    }

    fn put(z: &[T::Sum], y: &mut [T]) {
        match T::ROUND {
            Some(round) => round(z, y),
            None => y.copy_from_slice(bytemuck::cast_slice(z)),
        }
    }
}

/// `[n, channels]` and as many extents as `like` has after two.
fn shape_of(n: usize, channels: usize, extents: [usize; 3], like: &CpuTensor) -> Shape {
    let axes = like.shape().ndim() - 2;
    [n, channels].iter().chain(&extents[3 - axes..]).copied().collect()
}

fn geometry(
    image: [usize; 3],
    kernel: [usize; 3],
    output: [usize; 3],
    c: &Convolution,
) -> Geometry {
    let padding = c.padding.map(|[before, _]| before as isize);
    Geometry { image, kernel, stride: c.stride, dilation: c.dilation, padding, output }
}

pub(super) fn forward(
    op: &'static str,
    x: &CpuTensor,
    weight: &CpuTensor,
    (bias, activation): (Option<&CpuTensor>, Option<Activation>),
    convolution: &Convolution,
) -> Result<Results<CpuTensor>> {
    for_factor!(op, x, T => {
        let (images, filters) = (Images::<T>::new(x), Images::<T>::new(weight));
        let (n, outputs, kernel) = (images.extents[0], filters.extents[0], filters.image());
        let windows = convolution.output(images.image(), kernel).ok_or_else(|| invalid(op, x))?;
        let shape = shape_of(n, outputs, windows, x);
        let mut out = Output::new(op, &shape, x.dtype())?;
        let weight = copy::contiguous(op, weight)?;
        let bias = bias.map(|bias| copy::contiguous(op, &cast::cast(bias, <T as kernels::Factor>::Sum::DTYPE)?));
        let bias = bias.transpose()?;
        let grid = Grid { start: [0; 3], step: [1; 3], count: windows };
        let geometry = geometry(images.image(), kernel, windows, convolution);
        let job = Job {
            op,
            x: images,
            groups: convolution.groups,
            channels: outputs / convolution.groups,
            phases: smallvec![Phase { grid, geometry, weight: weight.run::<T>() }],
            bias: bias.as_ref().map(|bias| bias.run()),
            activation,
            image: windows,
        };
        job.run(out.elements::<T>())?;
        Ok(smallvec![out.finish()])
    })
}

fn invalid(op: &'static str, x: &CpuTensor) -> Error {
    Error::InvalidArgument { op, reason: format!("no window fits images of shape {}", x.shape()) }
}

/// Along one axis, the pixels of x at a distance of the stride from one another, from `start` on, which see the
/// places `first, first + step, …` of windows.
#[derive(Clone, Copy)]
struct Line {
    start: usize,
    count: usize,
    first: usize,
    step: usize,
    places: usize,
    /// The window that the last of these places of the first pixel lies in, and the distance of those of
    /// neighbouring places.
    window: isize,
    apart: usize,
}

/// The phases of an axis. Pixel i is at place k of window o if `o · stride + k · dilation = i + padding`.
fn lines(axis: usize, extent: usize, kernel: usize, c: &Convolution) -> Vec<Line> {
    let (stride, dilation, padding) = (c.stride[axis], c.dilation[axis], c.padding[axis][0]);
    let divisor = (1..=stride.min(dilation)).rev().find(|d| stride % d == 0 && dilation % d == 0);
    let step = stride / divisor.unwrap_or(1);
    let phases = (0..stride.min(extent)).filter_map(|start| {
        let from = |k: usize| (start + padding) as isize - (k * dilation) as isize;
        let first = (0..kernel.min(step)).find(|&k| from(k).rem_euclid(stride as isize) == 0)?;
        let places = (kernel - first).div_ceil(step);
        let apart = step * dilation / stride;
        let window = from(first) / stride as isize - ((places - 1) * apart) as isize;
        Some(Line {
            start,
            count: (extent - start).div_ceil(stride),
            first,
            step,
            places,
            window,
            apart,
        })
    });
    phases.collect()
}

pub(super) fn transpose(
    op: &'static str,
    g: &CpuTensor,
    weight: &CpuTensor,
    image: [usize; 3],
    convolution: &Convolution,
) -> Result<Results<CpuTensor>> {
    for_factor!(op, g, T => {
        let (images, filters) = (Images::<T>::new(g), Images::<T>::new(weight));
        let [n, outputs, ..] = images.extents;
        let (each, kernel, groups) = (filters.extents[1], filters.image(), convolution.groups);
        let shape = shape_of(n, each * groups, image, g);
        let mut out = Output::new(op, &shape, g.dtype())?;
        let weight = copy::contiguous(op, weight)?;
        let weight = weight.run::<T>();
        let axes: [Vec<Line>; 3] = std::array::from_fn(|axis| lines(axis, image[axis], kernel[axis], convolution));
        let mut parts: Vec<([Line; 3], Vec<T>)> = Vec::new();
        for &z in &axes[0] {
            for &y in &axes[1] {
                for &x in &axes[2] {
                    let lines = [z, y, x];
                    parts.push((lines, phase_weight(weight, [outputs, each], kernel, groups, lines)));
                }
            }
        }
        let phases = parts.iter().map(|(lines, weight)| Phase {
            grid: Grid {
                start: lines.map(|line| line.start),
                step: convolution.stride,
                count: lines.map(|line| line.count),
            },
            geometry: Geometry {
                image: images.image(),
                kernel: lines.map(|line| line.places),
                stride: [1; 3],
                dilation: lines.map(|line| line.apart.max(1)),
                padding: lines.map(|line| -line.window),
                output: lines.map(|line| line.count),
            },
            weight: &weight[..],
        });
        let phases = phases.collect();
        let job = Job { op, x: images, groups, channels: each, phases, bias: None, activation: None, image };
        job.run(out.elements::<T>())?;
        Ok(smallvec![out.finish()])
    })
}

/// Of filters `[o, c, kernel]` of `groups` groups of outputs the places of a phase, the last ones first, with
/// outputs and channels exchanged: `[groups, c, o / groups, places]`.
fn phase_weight<T: Copy>(
    weight: &[T],
    [outputs, channels]: [usize; 2],
    kernel: [usize; 3],
    groups: usize,
    lines: [Line; 3],
) -> Vec<T> {
    let places: usize = kernel.iter().product();
    let place = |line: &Line, j: usize| line.first + (line.places - 1 - j) * line.step;
    let mut all = Vec::with_capacity(
        outputs * channels * lines.iter().map(|line| line.places).product::<usize>(),
    );
    for group in 0..groups {
        for channel in 0..channels {
            for output in group * (outputs / groups)..(group + 1) * (outputs / groups) {
                let filter = &weight[(output * channels + channel) * places..][..places];
                for z in 0..lines[0].places {
                    for y in 0..lines[1].places {
                        for x in 0..lines[2].places {
                            let at =
                                [place(&lines[0], z), place(&lines[1], y), place(&lines[2], x)];
                            all.push(filter[(at[0] * kernel[1] + at[1]) * kernel[2] + at[2]]);
                        }
                    }
                }
            }
        }
    }
    all
}

/// Windows whose products are added up before those of others, at least.
const PIECE: usize = 1 << 14;

/// Elements of the sums of all pieces, at most, if pieces are larger for it.
const SUMS: usize = 1 << 20;

pub(super) fn weight_grad(
    op: &'static str,
    x: &CpuTensor,
    g: &CpuTensor,
    kernel: [usize; 3],
    convolution: &Convolution,
) -> Result<Results<CpuTensor>> {
    for_factor!(op, x, T => {
        type Sum = <T as kernels::Factor>::Sum;
        let (images, gradient) = (Images::<T>::new(x), Images::<T>::new(g));
        let (groups, outputs) = (convolution.groups, gradient.extents[1]);
        let (sources, own) = (images.extents[1] / groups, outputs / groups);
        let places: usize = kernel.iter().product();
        let rows = sources * places;
        let shape = shape_of(outputs, sources, kernel, x);
        let n = images.extents[0];
        let count = n * gradient.image().iter().product::<usize>();
        let mut out = Output::new(op, &shape, x.dtype())?;
        if shape.numel() == 0 {
            return Ok(smallvec![out.finish()]);
        }
        // The pieces depend on shapes alone: they say in which order products are added.
        let whole = (groups * rows * own).max(1);
        let pieces = (count / PIECE).clamp(1, (SUMS / whole).max(1));
        let piece = count.div_ceil(pieces).max(1);
        let mut sums = vec![Sum::ZERO; pieces * whole];
        let geometry = geometry(images.image(), kernel, gradient.image(), convolution);
        let pixel = Geometry {
            image: gradient.image(),
            kernel: [1; 3],
            stride: [1; 3],
            dilation: [1; 3],
            padding: [0; 3],
            output: gradient.image(),
        };
        let outcome = std::sync::Mutex::new(Ok(()));
        let cost = Cost(COST * size_of::<Sum>() / 4).times(piece.max(1) * own);
        let units = pieces * groups * rows;
        for_each_band(units, cost, Band::new(&mut sums, own), |range, mut out| {
            let mut at = range.start;
            while at < range.end {
                let (matrix, row) = (at / rows, at % rows);
                let (i, group) = (matrix / groups, matrix % groups);
                let height = (rows - row).min(range.end - at);
                let (here, rest) = std::mem::take(&mut out).split_at_mut(height * own);
                let first = (i * piece).min(count);
                let width = piece.min(count - first);
                let mut product = || -> Result<()> {
                    let seen = group * sources..(group + 1) * sources;
                    let a = images.windows(op, 0..n, seen, geometry)?.columns(first, width);
                    let b = gradient.windows(op, 0..n, group * own..(group + 1) * own, pixel)?;
                    let b = b.columns(first, width);
                    let c = MatMut::row_major(here, [height, own]).map_err(refused(op))?;
                    let a = a.rows(row, height);
                    Sum::workspace()
                        .with_borrow_mut(|workspace| {
                            kernels::gemm_windows_transposed(&a, &b, Sum::ZERO, c, workspace)
                        })
                        .map_err(refused(op))
                };
                if let Err(error) = product() {
                    *outcome.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Err(error);
                }
                (at, out) = (at + height, rest);
            }
        });
        outcome.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?;
        let (total, others) = sums.split_at_mut(whole);
        for other in others.chunks_exact(whole) {
            total.iter_mut().zip(other).for_each(|(sum, &x)| *sum += x);
        }
        let y = out.elements::<T>();
        let mut line = vec![Sum::ZERO; rows];
        for (output, y) in y.chunks_exact_mut(rows.max(1)).enumerate() {
            let (group, column) = (output / own, output % own);
            let matrix = &total[group * rows * own..][..rows * own];
            line.iter_mut().zip(matrix.chunks_exact(own)).for_each(|(z, row)| *z = row[column]);
            <T as Put>::put(&line, y);
        }
        Ok(smallvec![out.finish()])
    })
}

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

mod transpose;
mod weight;

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
pub(super) use transpose::transpose;
pub(super) use weight::weight_grad;

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
use for_factor;

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

//! The transposed convolution, phase by phase.
//!
//! A phase pads g with zeros. Filters that are infinite or NaN would make NaN of these zeros, so channels with such
//! filters are computed again by convolutions without padding: of the pixels that see the same places of windows inside g.

use smallvec::smallvec;
use swath_kernels::{Float as _, Geometry, Permute};

use super::super::super::matmul::Factor;
use super::super::super::working::for_float;
use super::super::super::{CpuTensor, Output, Results, Written, copy};
use super::{Grid, Images, Job, Phase};
use crate::backend::TensorData;
use crate::backend::windows::images_like;
use crate::error::Result;
use crate::ops::Convolution;

/// A phase of one axis: every `stride`-th pixel from `start` on. All of them are at the same places of windows.
#[derive(Clone, Copy)]
struct Line {
    start: usize,
    /// Number of pixels.
    count: usize,
    /// The first of these places, the distance between them, and their number.
    first: usize,
    step: usize,
    places: usize,
    /// The window whose last of these places is the first pixel.
    window: isize,
    /// Distance between the windows of neighbouring places.
    apart: usize,
}

impl Line {
    /// Cuts the pixels into lines of those that see the same places of `extent` windows.
    fn inside(&self, extent: usize, stride: usize) -> Vec<Line> {
        let places = |pixel: usize| {
            // Window of place i is `first + i · apart`.
            let first = self.window + pixel as isize;
            let reach = |x: isize| (x.max(0) as usize).div_ceil(self.apart).min(self.places);
            let start = reach(-first);
            start..reach(extent as isize - first).max(start)
        };
        let mut lines = Vec::new();
        let mut pixel = 0;
        while pixel < self.count {
            let seen = places(pixel);
            let alike = (pixel..self.count).take_while(|&other| places(other) == seen).count();
            lines.push(Line {
                start: self.start + pixel * stride,
                count: alike,
                first: self.first + (self.places - seen.end) * self.step,
                step: self.step,
                places: seen.len(),
                window: self.window + (pixel + seen.start * self.apart) as isize,
                apart: self.apart,
            });
            pixel += alike;
        }
        lines
    }
}

/// Returns the phases of an axis that are at any place of a window. Pixel i is at place k of window o if
/// `o · stride + k · dilation = i + padding`.
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

pub(in super::super) fn transpose(
    op: &'static str,
    g: &CpuTensor,
    weight: &CpuTensor,
    image: [usize; 3],
    convolution: &Convolution,
) -> Result<Results<CpuTensor>> {
    for_float!(op, g, T => {
        let (images, filters) = (Images::<T>::new(g), Images::<T>::new(weight));
        let [n, outputs, ..] = images.extents;
        let (each, kernel, groups) = (filters.extents[1], filters.image(), convolution.groups);
        let shape = images_like(g.shape(), n, each * groups, image);
        let mut out = Output::new(op, &shape, g.dtype())?;
        let weight = copy::contiguous(op, weight)?;
        let weight = weight.run::<T>();
        let shape = [outputs, each];
        let mut parts: Vec<([Line; 3], Vec<T>)> = Vec::new();
        for lines in products(std::array::from_fn(|axis| lines(axis, image[axis], kernel[axis], convolution))) {
            parts.push((lines, phase_weight(weight, shape, kernel, groups, lines)));
        }
        let phases: Vec<_> = parts.iter().map(|(lines, weight)| phase(*lines, weight, images.image(), convolution)).collect();
        let (y, written) = out.parts::<T>(op);
        let job = Job {
            op,
            x: images,
            groups,
            channels: each,
            phases: &phases,
            bias: None,
            function: None,
            image,
            only: None,
            written,
        };
        job.run(y)?;
        // The smaller one tells: zeros times infinity are NaN.
        if are_finite(if y.len() < weight.len() { y } else { weight }) {
            return Ok(smallvec![out.finish()]);
        }
        for (whole, weight_of_all) in &parts {
            let places: usize = whole.iter().map(|line| line.places).product();
            let filters = weight_of_all.chunks_exact((outputs / groups * places).max(1));
            let only: Vec<bool> = filters.map(|filter| !are_finite(filter)).collect();
            let inside: [Vec<Line>; 3] =
                std::array::from_fn(|axis| whole[axis].inside(images.image()[axis], convolution.stride[axis]));
            let is_padded = (0..3).any(|axis| inside[axis].iter().any(|line| line.places < whole[axis].places));
            if !is_padded || !only.contains(&true) {
                continue;
            }
            for lines in products(inside) {
                let weight = phase_weight(weight, shape, kernel, groups, lines);
                let phases = [phase(lines, &weight, images.image(), convolution)];
                let written = &Written::default();
                Job { phases: &phases, only: Some(&only), written, ..job }.run(y)?;
            }
        }
        Ok(smallvec![out.finish()])
    })
}

/// All combinations of a line of each axis.
fn products(axes: [Vec<Line>; 3]) -> impl Iterator<Item = [Line; 3]> {
    let [deep, down, across] = axes;
    deep.into_iter().flat_map(move |z| {
        let across = across.clone();
        let planes = down.clone().into_iter();
        planes.flat_map(move |y| across.clone().into_iter().map(move |x| [z, y, x]))
    })
}

fn phase<'a, T>(
    lines: [Line; 3],
    weight: &'a [T],
    image: [usize; 3],
    convolution: &Convolution,
) -> Phase<'a, T> {
    Phase {
        grid: Grid::new(
            lines.map(|line| line.start),
            convolution.stride,
            lines.map(|line| line.count),
        ),
        geometry: Geometry {
            image,
            kernel: lines.map(|line| line.places),
            stride: [1; 3],
            dilation: lines.map(|line| line.apart),
            padding: lines.map(|line| -line.window),
            output: lines.map(|line| line.count),
        },
        weight,
    }
}

/// True if no value is infinite or NaN.
fn are_finite<T: Factor>(x: &[T]) -> bool {
    let is_finite = |x: &T| x.widened() - x.widened() == T::Sum::ZERO;
    x.chunks(1024).all(|x| x.iter().fold(true, |all, x| all & is_finite(x)))
}

/// Filters of a phase, `[groups, c, o / groups, places]`, from filters `[o, c, kernel]`: outputs and channels are
/// exchanged, and the places of the phase are in reverse order.
fn phase_weight<T: Factor>(
    weight: &[T],
    [outputs, channels]: [usize; 2],
    kernel: [usize; 3],
    groups: usize,
    lines: [Line; 3],
) -> Vec<T> {
    let places: usize = kernel.iter().product();
    let each = outputs / groups;
    let dims = [groups, channels, each, lines[0].places, lines[1].places, lines[2].places];
    let filter = channels * places;
    let steps = [each * filter, places, filter].map(|step| step as isize);
    let down = [kernel[1] * kernel[2], kernel[2], 1];
    let back: [isize; 3] = std::array::from_fn(|i| -((lines[i].step * down[i]) as isize));
    let last = (0..3).map(|i| (lines[i].first + (lines[i].places - 1) * lines[i].step) * down[i]);
    let strides = [steps[0], steps[1], steps[2], back[0], back[1], back[2]];
    let mut all = vec![T::from_scalar(0.0.into()); dims.iter().product()];
    if !all.is_empty() {
        let shape = Permute { dims: &dims, strides: &strides, offset: last.sum() };
        copy::permute(weight, shape, &mut all);
    }
    all
}

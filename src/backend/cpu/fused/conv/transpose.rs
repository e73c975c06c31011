//! The transposed convolution, phase by phase.

use smallvec::smallvec;
use swath_kernels::{Geometry, Permute};

use super::super::super::matmul::Factor;
use super::super::super::working::for_float;
use super::super::super::{CpuTensor, Output, Results, copy};
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
                dilation: lines.map(|line| line.apart),
                padding: lines.map(|line| -line.window),
                output: lines.map(|line| line.count),
            },
            weight: &weight[..],
        });
        let phases: Vec<_> = phases.collect();
        let job = Job { op, x: images, groups, channels: each, phases: &phases, bias: None, activation: None, image };
        job.run(out.elements::<T>())?;
        Ok(smallvec![out.finish()])
    })
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

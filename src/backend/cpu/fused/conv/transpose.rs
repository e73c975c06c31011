//! The transposed convolution, phase by phase.
//!
//! A phase pads g with zeros. Filters that are infinite or NaN would make NaN of these zeros, so channels with such
//! filters are computed again by convolutions without padding: of the pixels that see g at the same taps.

use smallvec::smallvec;
use swath_kernels::{Float as _, Geometry, Permute, Sliding};

use super::super::super::copy;
use super::super::super::matmul::Factor;
use super::super::super::tensor::{CpuTensor, Output};
use super::super::super::working::for_float;
use super::super::super::written::Written;
use super::{Grid, Images, Job, Phase};
use crate::backend::windows::{self, greatest_common_divisor, images_like};
use crate::backend::{Results, TensorData};
use crate::error::Result;

/// A phase of one axis: every `stride`-th pixel from `start` on. All of them are at the same taps of windows, so they are
/// a convolution of g, in which each pixel is a window.
#[derive(Clone, Copy)]
struct Line {
    start: usize,
    /// The first of the taps, and the distance between them.
    first: usize,
    step: usize,
    sliding: Sliding,
}

impl Line {
    /// Cuts the pixels into lines of those that see g at the same taps.
    fn inside(&self, stride: usize) -> Vec<Line> {
        let (all, mut lines, mut pixel) = (self.sliding, Vec::new(), 0);
        while pixel < all.windows {
            let seen = all.taps_of(pixel);
            let alike = (pixel..all.windows).take_while(|&other| all.taps_of(other) == seen);
            let sliding = Sliding {
                kernel: seen.len(),
                padding: [-all.pixel(pixel, seen.start), 0],
                windows: alike.count(),
                ..all
            };
            lines.push(Line {
                start: self.start + pixel * stride,
                first: self.first + (all.kernel - seen.end) * self.step,
                step: self.step,
                sliding,
            });
            pixel += sliding.windows;
        }
        lines
    }
}

/// Returns the phases of an axis that are at any tap of a window. Pixel i is at tap k of window o if
/// `o · stride + k · dilation = i + padding`.
fn lines(axis: &Sliding) -> Vec<Line> {
    let &Sliding { image: extent, kernel, stride, dilation, padding, windows } = axis;
    let divisor = greatest_common_divisor(stride, dilation);
    let (step, apart) = (stride / divisor, dilation / divisor);
    let phases = (0..stride.min(extent)).filter_map(|start| {
        // A geometry's positions do not overflow.
        let from = |k: usize| start as isize + padding[0] - (k * dilation) as isize;
        let first = (0..kernel.min(step)).find(|&k| from(k).rem_euclid(stride as isize) == 0)?;
        let taps = (kernel - first).div_ceil(step);
        // Taps are reversed: the last one sees the first pixel of g.
        let before = ((taps - 1) * apart) as isize - from(first) / stride as isize;
        let sliding = Sliding {
            image: windows,
            kernel: taps,
            stride: 1,
            dilation: apart,
            padding: [before, 0],
            windows: (extent - start).div_ceil(stride),
        };
        Some(Line { start, first, step, sliding })
    });
    phases.collect()
}

pub(in super::super) fn transpose(
    op: &'static str,
    g: &CpuTensor,
    weight: &CpuTensor,
    (geometry, groups): (Geometry, usize),
) -> Result<Results<CpuTensor>> {
    for_float!(op, g, T => {
        let (images, filters) = (Images::<T>::new(g), Images::<T>::new(weight));
        let [n, outputs, ..] = images.extents;
        let (each, kernel, image) = (filters.extents[1], geometry.kernel(), geometry.image());
        let shape = images_like(g.shape(), n, each * groups, image);
        let mut out = Output::new(op, &shape, g.dtype())?;
        let weight = copy::contiguous(op, weight)?;
        let weight = weight.run::<T>();
        let shape = [outputs, each];
        let mut parts: Vec<([Line; 3], Vec<T>)> = Vec::new();
        for lines in products(std::array::from_fn(|axis| lines(geometry.axis(axis)))) {
            parts.push((lines, phase_weight(weight, shape, kernel, groups, lines)));
        }
        let phases = parts.iter().map(|(lines, weight)| phase(op, *lines, weight, geometry.stride()));
        let phases: Vec<_> = phases.collect::<Result<_>>()?;
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
            let places: usize = whole.iter().map(|line| line.sliding.kernel).product();
            let filters = weight_of_all.chunks_exact((outputs / groups * places).max(1));
            let only: Vec<bool> = filters.map(|filter| !are_finite(filter)).collect();
            let inside: [Vec<Line>; 3] =
                std::array::from_fn(|axis| whole[axis].inside(geometry.axis(axis).stride));
            let taps = |line: &Line| line.sliding.kernel;
            let is_padded = (0..3).any(|axis| inside[axis].iter().any(|line| taps(line) < taps(&whole[axis])));
            if !is_padded || !only.contains(&true) {
                continue;
            }
            for lines in products(inside) {
                let weight = phase_weight(weight, shape, kernel, groups, lines);
                let phases = [phase(op, lines, &weight, geometry.stride())?];
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
    op: &'static str,
    lines: [Line; 3],
    weight: &'a [T],
    stride: [usize; 3],
) -> Result<Phase<'a, T>> {
    let geometry = windows::geometry(op, lines.map(|line| line.sliding))?;
    let grid = Grid::new(lines.map(|line| line.start), stride, geometry.windows());
    Ok(Phase { grid, geometry, weight })
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
    let taps = lines.map(|line| line.sliding.kernel);
    let dims = [groups, channels, each, taps[0], taps[1], taps[2]];
    let filter = channels * places;
    let steps = [each * filter, places, filter].map(|step| step as isize);
    let down = [kernel[1] * kernel[2], kernel[2], 1];
    let back: [isize; 3] = std::array::from_fn(|i| -((lines[i].step * down[i]) as isize));
    let last = (0..3).map(|i| (lines[i].first + (taps[i] - 1) * lines[i].step) * down[i]);
    let strides = [steps[0], steps[1], steps[2], back[0], back[1], back[2]];
    let mut all = vec![T::from_scalar(0.0.into()); dims.iter().product()];
    if !all.is_empty() {
        let shape = Permute { dims: &dims, strides: &strides, offset: last.sum() };
        copy::permute(weight, shape, &mut all);
    }
    all
}

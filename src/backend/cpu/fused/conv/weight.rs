//! The gradient of a convolution by its filters: a product of windows, or for filters of one channel inner products.

use smallvec::smallvec;
use swath_kernels::{self as kernels, Float as _, Gemm, Geometry, MatMut, Permute, Right, Sliding};

use super::super::super::copy;
use super::super::super::matmul::{Factor, Outcome, refused};
use super::super::super::tensor::{CpuTensor, Output};
use super::super::super::working::for_float;
use super::direct::Bands;
use super::{COST, Images, round};
use crate::backend::windows::{self, images_like};
use crate::backend::{Results, TensorData};
use crate::error::Result;
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{Band, Cost, for_each_band};
use crate::runtime::workspace::Packed as _;

/// Minimum number of windows in a piece, whose products are summed before those of other pieces.
const PIECE: usize = 1 << 14;

/// Maximum number of elements of the sums of all pieces, unless a single piece has more.
const SUMS: usize = 1 << 20;

/// Maximum ratio of the columns of a row in a padded copy to its windows, for which inner products take less time than
/// packing.
const MAX_PITCH: usize = 13;

pub(in super::super) fn weight_grad(
    op: &'static str,
    x: &CpuTensor,
    g: &CpuTensor,
    (geometry, groups): (Geometry, usize),
) -> Result<Results<CpuTensor>> {
    for_float!(op, x, T => {
        type Sum = <T as kernels::Factor>::Sum;
        let (images, gradient) = (Images::<T>::new(x), Images::<T>::new(g));
        let (outputs, kernel) = (gradient.extents[1], geometry.kernel());
        let (sources, own) = (images.extents[1] / groups, outputs / groups);
        let places: usize = kernel.iter().product();
        let rows = sources * places;
        let shape = images_like(x.shape(), outputs, sources, kernel);
        let n = images.extents[0];
        let count = n * gradient.image().iter().product::<usize>();
        let mut out = Output::new(op, &shape, x.dtype())?;
        if shape.numel() == 0 {
            return Ok(smallvec![out.finish()]);
        }
        let bands = match (sources, own) {
            (1, 1) => Bands::widest(&geometry, (1, usize::MAX, size_of::<Sum>())),
            _ => None,
        };
        if let Some(bands) = bands.filter(|bands| bands.pitch <= MAX_PITCH * bands.shape[1]) {
            depthwise(&images, &gradient, &geometry, &bands, out.elements::<T>());
            return Ok(smallvec![out.finish()]);
        }
        // The pieces depend on shapes alone: they say in which order products are added.
        let whole = (groups * rows * own).max(1);
        let pieces = (count / PIECE).clamp(1, (SUMS / whole).max(1));
        let piece = count.div_ceil(pieces).max(1);
        // Products are written to all of it.
        let mut sums = Buffer::scratch(pieces * whole * size_of::<Sum>());
        let sums = sums.as_slice_mut::<Sum>();
        let pixel = windows::geometry(op, gradient.image().map(|extent| Sliding::new(extent, 1)))?;
        let outcome = Outcome::new();
        let cost = Cost(COST * size_of::<Sum>() / 4).times(piece.max(1) * own);
        let units = pieces * groups * rows;
        for_each_band(units, cost, Band::new(&mut *sums, own), |range, mut out| {
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
                    let product = Gemm::new(&a, Right::WindowsTransposed(&b));
                    Sum::with_workspace(|workspace| kernels::gemm(product, c, workspace))
                        .map_err(refused(op))?;
                    Ok(())
                };
                outcome.record(at, product());
                (at, out) = (at + height, rest);
            }
        });
        outcome.or(())?;
        let (total, others) = sums.split_at_mut(whole);
        for other in others.chunks_exact(whole) {
            total.iter_mut().zip(other).for_each(|(sum, &x)| *sum += x);
        }
        // Products are `[groups, rows, own]`.
        let mut transposed = Buffer::scratch(whole * size_of::<Sum>());
        let transposed = &mut transposed.as_slice_mut::<Sum>()[..whole];
        let strides = [rows * own, 1, own].map(|step| step as isize);
        copy::permute(total, Permute { dims: &[groups, own, rows], strides: &strides, offset: 0 }, transposed);
        round::<T>(transposed, out.elements::<T>());
        Ok(smallvec![out.finish()])
    })
}

/// Computes the gradient by filters of one channel each: inner products of the upstream gradient with the pixels at
/// each place, which are adjacent in a padded copy. Between the rows of windows, the gradient is 0 there. If a sum is
/// not finite, as it may be because infinite pixels were multiplied by these zeros, the channel is computed again by an
/// inner product for every row.
fn depthwise<T: Factor>(
    x: &Images<'_, T>,
    g: &Images<'_, T>,
    geometry: &Geometry,
    bands: &Bands<'_>,
    out: &mut [T],
) {
    let [_, height, width] = geometry.windows();
    let places: usize = geometry.taps();
    let cost = Cost(COST * size_of::<T::Sum>()).times(x.extents[0] * height * width * places);
    for_each_band(x.extents[1], cost, Band::new(out, places), |channels, out| {
        let (offsets, most) = (bands.offsets(1), bands.columns(bands.shape));
        let mut memory = Buffer::scratch((bands.copy_len(1) + most) * size_of::<T::Sum>());
        let (copy, slopes) = memory.as_slice_mut::<T::Sum>().split_at_mut(bands.copy_len(1));
        slopes.fill(T::Sum::ZERO);
        let mut sums = vec![T::Sum::ZERO; places];
        for (channel, out) in channels.zip(out.chunks_exact_mut(places)) {
            // Inner products of all columns of a band, or of the windows of each row.
            for by_row in [false, true] {
                sums.fill(T::Sum::ZERO);
                for image in 0..x.extents[0] {
                    for (corner, shape) in bands.cut([0..height, 0..width]) {
                        let ([top, left], [rows, across]) = (corner, shape);
                        let columns = bands.columns(shape);
                        let (len, step) =
                            if by_row { (across, bands.pitch) } else { (columns, columns) };
                        bands.copy(x, (image, channel..channel + 1), corner, shape, copy);
                        for (row, slopes) in slopes.chunks_mut(bands.pitch).take(rows).enumerate() {
                            g.row([image, channel, 0, top + row, left], &mut slopes[..across]);
                            slopes[across..].fill(T::Sum::ZERO);
                        }
                        for (sum, &offset) in sums.iter_mut().zip(&offsets) {
                            for at in (0..columns).step_by(step) {
                                let run = at..at + len.min(columns - at);
                                let pixels = &copy[offset..][run.clone()];
                                *sum = *sum + kernels::dot(pixels, &slopes[run]);
                            }
                        }
                    }
                }
                if sums.iter().all(|sum| sum.to_f64().is_finite()) {
                    break;
                }
            }
            round::<T>(&sums, out);
        }
    });
}

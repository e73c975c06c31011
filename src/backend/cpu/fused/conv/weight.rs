//! The gradient of a convolution by its filters.

use smallvec::smallvec;
use swath_kernels::{self as kernels, Float as _, Geometry, MatMut};

use super::super::super::matmul::{Outcome, refused};
use super::super::super::working::for_float;
use super::super::super::{CpuTensor, Output, Results};
use super::{COST, Images, geometry, round};
use crate::backend::TensorData;
use crate::backend::windows::images_like;
use crate::error::Result;
use crate::ops::Convolution;
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{Band, Cost, for_each_band};
use crate::runtime::workspace::Packed as _;

/// Minimum number of windows in a piece, whose products are summed before those of other pieces.
const PIECE: usize = 1 << 14;

/// Maximum number of elements of the sums of all pieces, unless a single piece has more.
const SUMS: usize = 1 << 20;

pub(in super::super) fn weight_grad(
    op: &'static str,
    x: &CpuTensor,
    g: &CpuTensor,
    kernel: [usize; 3],
    convolution: &Convolution,
) -> Result<Results<CpuTensor>> {
    for_float!(op, x, T => {
        type Sum = <T as kernels::Factor>::Sum;
        let (images, gradient) = (Images::<T>::new(x), Images::<T>::new(g));
        let (groups, outputs) = (convolution.groups, gradient.extents[1]);
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
        // The pieces depend on shapes alone: they say in which order products are added.
        let whole = (groups * rows * own).max(1);
        let pieces = (count / PIECE).clamp(1, (SUMS / whole).max(1));
        let piece = count.div_ceil(pieces).max(1);
        // Products are written to all of it.
        let mut sums = Buffer::scratch(pieces * whole * size_of::<Sum>());
        let sums = sums.as_slice_mut::<Sum>();
        let geometry = geometry(images.image(), kernel, gradient.image(), convolution);
        let pixel = Geometry {
            image: gradient.image(),
            kernel: [1; 3],
            stride: [1; 3],
            dilation: [1; 3],
            padding: [0; 3],
            output: gradient.image(),
        };
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
                    Sum::workspace()
                        .with_borrow_mut(|workspace| {
                            kernels::gemm_windows_transposed(&a, &b, Sum::ZERO, c, workspace)
                        })
                        .map_err(refused(op))
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
        let y = out.elements::<T>();
        let mut line = Buffer::scratch(rows * size_of::<Sum>());
        let line = line.as_slice_mut::<Sum>();
        for (output, y) in y.chunks_exact_mut(rows.max(1)).enumerate() {
            let (group, column) = (output / own, output % own);
            let matrix = &total[group * rows * own..][..rows * own];
            line.iter_mut().zip(matrix.chunks_exact(own)).for_each(|(z, row)| *z = row[column]);
            round::<T>(line, y);
        }
        Ok(smallvec![out.finish()])
    })
}

//! The gradient of a convolution by its filters.

use smallvec::smallvec;
use swath_kernels::{self as kernels, Float as _, Geometry, MatMut};

use super::super::super::matmul::refused;
use super::super::super::{CpuTensor, Output, Results};
use super::{COST, Images, Put, for_factor, geometry, shape_of};
use crate::backend::TensorData;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::Convolution;
use crate::runtime::parallel::{Band, Cost, for_each_band};
use crate::runtime::workspace::Packed as _;

/// Windows whose products are added up before those of others, at least.
const PIECE: usize = 1 << 14;

/// Elements of the sums of all pieces, at most, if pieces are larger for it.
const SUMS: usize = 1 << 20;

pub(in super::super) fn weight_grad(
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

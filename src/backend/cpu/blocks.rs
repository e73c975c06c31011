//! `assemble`: a tensor of parts of another one; `slice_assign`: a slice that is overwritten.
//!
//! ```text
//! assemble:
//!     the axes up to the last one that has parts are rows; its parts are runs of a row
//!     threads share the elements of the result
//!         for each row, for each run: copy or fill what belongs to this thread
//! ```

use bytemuck::Pod;
use swath_kernels::{self as kernels, Place, Plain};

use super::copy::{self, for_size};
use super::elementwise::CHUNK;
use super::walk::write_chunks;
use super::{CpuTensor, Output, cast};
use crate::backend::{TensorData, assembled_shape, assigned_layout};
use crate::dtype::Scalar;
use crate::error::Result;
use crate::layout::{AxisPart, Layout, SliceItem, merge_axes};
use crate::runtime::parallel::{self, Cost};
use crate::shape::Shape;

/// Longest run that is written without a call of a kernel.
const SHORT: usize = 8;

/// Elements of a row of the result: `len` from `start` in steps of `step`, or the fill value without a start.
struct Run {
    start: Option<usize>,
    len: usize,
    step: isize,
}

/// The rows of a result.
struct Assembly<'a, T> {
    x: &'a [T],
    fill: T,
    /// Offsets in `x` of the indices of the innermost axis of rows; `None` for an index that is filled.
    rows: Vec<Option<usize>>,
    /// Likewise for the axes above it.
    above: Vec<Vec<Option<usize>>>,
    runs: Vec<Run>,
    /// Elements of a row.
    row: usize,
}

pub(super) fn assemble(x: &CpuTensor, axes: &[Vec<AxisPart>], fill: Scalar) -> Result<CpuTensor> {
    let op = "assemble";
    let shape = assembled_shape(op, x.shape(), axes)?;
    let Some(last) = axes.iter().rposition(|parts| !parts.is_empty()) else { return Ok(x.clone()) };
    let mut out = Output::new(op, &shape, x.dtype())?;
    if out.numel() == 0 {
        return Ok(out.finish());
    }
    let x = copy::contiguous(op, x)?;
    let fill = cast::full(&Shape::scalar(), fill, x.dtype())?;
    let strides = x.shape().contiguous_strides();
    let stride = |axis: usize| strides.as_slice()[axis].unsigned_abs();
    let offsets = (0..last).map(|axis| match axes[axis].as_slice() {
        [] => (0..shape.dim(axis)).map(|i| Some(i * stride(axis))).collect(),
        parts => parts.iter().flat_map(|part| elements(part, stride(axis))).collect(),
    });
    let mut above: Vec<Vec<_>> = offsets.collect();
    let (rows, runs) = (above.pop().unwrap_or(vec![Some(0)]), runs_of(&axes[last], stride(last)));
    let row = shape.dims()[last..].iter().product();
    for_size!(x.dtype().size(), T => {
        let (x, fill) = (x.run::<T>(), fill.run::<T>()[0]);
        let assembly = Assembly { x, fill, rows, above, runs, row };
        write_chunks(out.elements::<T>(), CHUNK, copy::cost::<T>(), &|first, out| {
            assembly.write(first * CHUNK, out);
        });
    });
    Ok(out.finish())
}

/// The offsets of the elements of a part.
fn elements(part: &AxisPart, stride: usize) -> impl Iterator<Item = Option<usize>> {
    let part = *part;
    (0..part.len() as isize).map(move |i| match part {
        AxisPart::From { start, step, .. } => Some(start.wrapping_add_signed(i * step) * stride),
        AxisPart::Fill(_) => None,
    })
}

/// The runs of the parts of an axis with this stride.
fn runs_of(parts: &[AxisPart], stride: usize) -> Vec<Run> {
    let mut runs = Vec::new();
    for part in parts {
        match *part {
            AxisPart::From { start, len, step } if step == 1 || stride == 1 => {
                runs.push(Run { start: Some(start * stride), len: len * stride, step });
            }
            AxisPart::From { .. } => {
                let starts = elements(part, stride);
                runs.extend(starts.map(|start| Run { start, len: stride, step: 1 }));
            }
            AxisPart::Fill(len) => runs.push(Run { start: None, len: len * stride, step: 0 }),
        }
    }
    runs
}

impl<T: Plain> Assembly<'_, T> {
    /// Writes the elements of the result from `first` on.
    fn write(&self, first: usize, out: &mut Place<'_, T>) {
        let (row, mut skipped, mut done) = (first / self.row, first % self.row, 0);
        let (mut above, mut inner) = (row / self.rows.len(), row % self.rows.len());
        let mut base = self.offset_above(above);
        while done < out.len() {
            let offset = base.zip(self.rows[inner]).map(|(base, row)| base + row);
            // The elements of the row that are written here.
            let here = skipped..self.row.min(skipped + out.len() - done);
            let mut at = 0;
            for run in &self.runs {
                let (start, end) = (at.max(here.start), (at + run.len).min(here.end));
                if start < end {
                    let place = done + start - skipped..done + end - skipped;
                    self.copy(run, start - at, offset, &mut out.range(place));
                }
                at += run.len;
            }
            done += here.len();
            (skipped, inner) = (0, inner + 1);
            if inner == self.rows.len() {
                (above, inner) = (above + 1, 0);
                base = self.offset_above(above);
            }
        }
    }

    /// Offset in `x` of an index of the axes above the innermost axis of rows; `None` if it is filled.
    fn offset_above(&self, mut index: usize) -> Option<usize> {
        let mut offset = 0;
        for offsets in self.above.iter().rev() {
            offset += offsets[index % offsets.len()]?;
            index /= offsets.len();
        }
        Some(offset)
    }

    /// Writes the elements of a run from number `first` on.
    fn copy(&self, run: &Run, first: usize, row: Option<usize>, out: &mut Place<'_, T>) {
        let Some((row, start)) = row.zip(run.start) else {
            return match out.len() <= SHORT {
                true => out.iter_mut().for_each(|y| *y = self.fill),
                false => kernels::fill(out, self.fill),
            };
        };
        let start = (row + start).wrapping_add_signed(first as isize * run.step);
        if out.len() > SHORT {
            return kernels::copy_strided(self.x, start, run.step, out);
        }
        for (i, y) in (0..).zip(out.iter_mut()) {
            *y = self.x[start.wrapping_add_signed(i * run.step)];
        }
    }
}

/// Replaces a slice of `x`: in place if nothing else shares the memory, else in a copy.
pub(super) fn slice_assign(
    x: &mut CpuTensor,
    items: &[SliceItem],
    source: &CpuTensor,
) -> Result<()> {
    let op = "slice_assign";
    let target = assigned_layout(op, x, items, source)?;
    if source.numel() == 0 {
        return Ok(());
    }
    if !x.is_contiguous() || !x.is_unique() {
        *x = copy::copied(op, x)?.finish();
    }
    let start = x.layout().offset();
    for_size!(x.dtype().size(), T => {
        if let Some(buffer) = x.buffer_mut() {
            let y = &mut buffer.as_slice_mut::<T>()[start..];
            overwrite(source.elements::<T>(), source.layout(), &target, y);
        }
    });
    Ok(())
}

/// Copies the elements of a layout of `source` to the positions of `target`, a slice of a contiguous layout, in `y`.
fn overwrite<T: Pod + Send + Sync>(source: &[T], from: &Layout, target: &Layout, y: &mut [T]) {
    // With positive strides, each index of an axis has a range of positions of its own.
    let (mut from, mut target) = (*from, *target);
    for axis in 0..target.dims().len() {
        if target.strides()[axis] < 0 {
            (from, target) = (from.flip(axis), target.flip(axis));
        }
    }
    let nest = merge_axes(&[&target, &from]);
    let block = Block { source, dims: nest.dims(), to: nest.strides(0), from: nest.strides(1) };
    block.share(from.offset(), &mut y[target.offset()..]);
}

/// Elements to copy: extents, strides of their positions in the result (positive, descending) and in the source.
#[derive(Clone, Copy)]
struct Block<'a, T> {
    source: &'a [T],
    dims: &'a [usize],
    to: &'a [isize],
    from: &'a [isize],
}

impl<T: Pod + Send + Sync> Block<'_, T> {
    /// The block of one index of the first axis.
    fn inner(&self) -> Self {
        let (dims, to, from) = (&self.dims[1..], &self.to[1..], &self.from[1..]);
        Block { dims, to, from, ..*self }
    }

    /// Copies on all threads, which share the first axis that is long enough. `y` begins at the first element.
    fn share(&self, start: usize, y: &mut [T]) {
        let (Some(&n), Some(&from)) = (self.dims.first(), self.from.first()) else {
            return self.copy(start, y);
        };
        let (step, inner) = (self.to[0].unsigned_abs(), self.inner());
        let starts = |i: usize| start.wrapping_add_signed(i as isize * from);
        if self.dims.len() == 1 {
            if step > 1 {
                return self.copy(start, y);
            }
            let cost = copy::cost::<T>();
            return parallel::for_each_chunk_mut(&mut y[..n], CHUNK, cost, &|first, y| {
                copy::strided(self.source, starts(first * CHUNK), from, y);
            });
        }
        if n < parallel::threads() {
            return (0..n).for_each(|i| inner.share(starts(i), &mut y[i * step..]));
        }
        let len = y.len().min(n * step);
        let cost = Cost(copy::cost::<T>().0 * inner.dims.iter().product::<usize>() / step);
        parallel::for_each_chunk_mut(&mut y[..len], step, cost, &|first, y| {
            (first..).zip(y.chunks_mut(step)).for_each(|(i, y)| inner.copy(starts(i), y));
        });
    }

    fn copy(&self, start: usize, y: &mut [T]) {
        let Some(&n) = self.dims.first() else {
            y[0] = self.source[start];
            return;
        };
        let (step, from) = (self.to[0].unsigned_abs(), self.from[0]);
        let starts = |i: usize| start.wrapping_add_signed(i as isize * from);
        if self.dims.len() > 1 {
            let inner = self.inner();
            (0..n).for_each(|i| inner.copy(starts(i), &mut y[i * step..]));
        } else if step == 1 {
            copy::strided(self.source, start, from, &mut y[..n]);
        } else {
            let y = y.iter_mut().step_by(step).take(n);
            y.enumerate().for_each(|(i, y)| *y = self.source[starts(i)]);
        }
    }
}

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

use super::cast;
use super::copy::{self, for_size};
use super::elementwise::CHUNK;
use super::tensor::{CpuTensor, Output};
use super::walk::write_chunks;
use super::written::Written;
use crate::backend::{TensorData, assembled_shape, assigned_layout};
use crate::dtype::Scalar;
use crate::error::Result;
use crate::layout::{AxisPart, Layout, SliceItem, merge_axes};
use crate::runtime::parallel::{self, Cost};
use crate::shape::Shape;

/// Longest run that is written without a call of a kernel.
const SHORT: usize = 8;

/// An axis of rows of the result: its extent, its parts, and its stride in the operand.
struct RowAxis<'a> {
    dim: usize,
    parts: &'a [AxisPart],
    stride: usize,
}

impl RowAxis<'_> {
    /// Offset of an index in the operand; `None` if it is filled.
    fn offset(&self, mut index: usize) -> Option<usize> {
        for part in self.parts {
            match *part {
                part if index >= part.len() => index -= part.len(),
                AxisPart::Fill(_) => return None,
                AxisPart::From { start, step, .. } => {
                    return Some(start.wrapping_add_signed(index as isize * step) * self.stride);
                }
            }
        }
        Some(index * self.stride)
    }
}

/// Elements of a row of the result: blocks of `width` elements that are adjacent in the operand.
struct Run {
    blocks: usize,
    width: usize,
    /// Offset of the first block, and the distance between blocks; `None` for the fill value.
    source: Option<(usize, isize)>,
}

/// The runs of the parts of an axis with this stride.
fn runs(parts: &[AxisPart], stride: usize) -> Vec<Run> {
    let run = |part: &AxisPart| match *part {
        AxisPart::From { start, len, step: 1 } => {
            Run { blocks: len * stride, width: 1, source: Some((start * stride, 1)) }
        }
        AxisPart::From { start, len, step } => {
            let source = Some((start * stride, step * stride as isize));
            Run { blocks: len, width: stride, source }
        }
        AxisPart::Fill(len) => Run { blocks: len * stride, width: 1, source: None },
    };
    parts.iter().map(run).collect()
}

/// The rows of a result.
struct Assembly<'a, T> {
    x: &'a [T],
    fill: T,
    /// The innermost axis of rows, and those above it.
    inner: RowAxis<'a>,
    above: Vec<RowAxis<'a>>,
    runs: Vec<Run>,
    /// Elements of a row.
    row: usize,
    written: &'a Written,
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
    let mut above: Vec<RowAxis<'_>> = Vec::new();
    for (axis, parts) in axes[..last].iter().enumerate() {
        let mut next = RowAxis { dim: shape.dim(axis), parts, stride: stride(axis) };
        // Adjacent axes that are taken whole are merged.
        if let Some(outer) = above.pop_if(|outer| outer.parts.is_empty() && parts.is_empty()) {
            next.dim *= outer.dim;
        }
        above.push(next);
    }
    let inner = above.pop().unwrap_or(RowAxis { dim: 1, parts: &[], stride: 0 });
    let (row, runs) = (shape.dims()[last..].iter().product(), runs(&axes[last], stride(last)));
    for_size!(x.dtype().size(), T => {
        let (x, fill) = (x.run::<T>(), fill.run::<T>()[0]);
        let (y, written) = out.parts::<T>(op);
        let assembly = Assembly { x, fill, inner, above, runs, row, written };
        write_chunks(y, CHUNK, copy::cost::<T>(), &|first, out| {
            assembly.write(first * CHUNK, out);
        });
    });
    Ok(out.finish())
}

impl<T: Plain> Assembly<'_, T> {
    /// Writes the elements of the result from `first` on.
    fn write(&self, first: usize, out: &mut Place<'_, T>) {
        let (row, mut skipped, mut done) = (first / self.row, first % self.row, 0);
        let (mut above, mut inner) = (row / self.inner.dim, row % self.inner.dim);
        let mut base = self.offset_above(above);
        while done < out.len() {
            let offset = base.zip(self.inner.offset(inner)).map(|(base, row)| base + row);
            // The elements of the row that are written here.
            let here = skipped..self.row.min(skipped + out.len() - done);
            let mut at = 0;
            for run in &self.runs {
                let len = run.blocks * run.width;
                let (start, end) = (at.max(here.start), (at + len).min(here.end));
                if start < end {
                    let place = done + start - skipped..done + end - skipped;
                    self.write_run(run, start - at, offset, &mut out.range(place));
                }
                at += len;
            }
            done += here.len();
            (skipped, inner) = (0, inner + 1);
            if inner == self.inner.dim {
                (above, inner) = (above + 1, 0);
                base = self.offset_above(above);
            }
        }
    }

    /// Offset in `x` of an index of the axes above the innermost axis of rows; `None` if it is filled.
    fn offset_above(&self, mut index: usize) -> Option<usize> {
        let mut offset = 0;
        for axis in self.above.iter().rev() {
            offset += axis.offset(index % axis.dim)?;
            index /= axis.dim;
        }
        Some(offset)
    }

    /// Writes the elements of a run from number `first` on.
    fn write_run(&self, run: &Run, first: usize, row: Option<usize>, out: &mut Place<'_, T>) {
        self.written.add(out.len());
        let Some((row, (start, step))) = row.zip(run.source) else {
            return match out.len() <= SHORT {
                true => out.iter_mut().for_each(|y| *y = self.fill),
                false => kernels::fill(out, self.fill),
            };
        };
        let block = |i: usize| (row + start).wrapping_add_signed(i as isize * step);
        if run.width == 1 {
            return self.copy(block(first), step, out);
        }
        let (mut i, mut skipped, mut done) = (first / run.width, first % run.width, 0);
        while done < out.len() {
            let len = (run.width - skipped).min(out.len() - done);
            self.copy(block(i) + skipped, 1, &mut out.range(done..done + len));
            (i, skipped, done) = (i + 1, 0, done + len);
        }
    }

    /// Copies elements from `start` in steps of `step`.
    fn copy(&self, start: usize, step: isize, out: &mut Place<'_, T>) {
        if out.len() > SHORT {
            return kernels::copy_strided(self.x, start, step, out);
        }
        for (i, y) in (0..).zip(out.iter_mut()) {
            *y = self.x[start.wrapping_add_signed(i * step)];
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
    if x.must_copy() || !x.is_contiguous() {
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

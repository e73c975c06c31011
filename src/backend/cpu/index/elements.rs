//! gather, scatter_add and scatter with an individual index for every element.
//!
//! ```text
//! if there are axes below `axis`, with the extents of the index:
//!     for each index of the axes above, a matrix [extent, below]:
//!         for each strip of its columns:      threads share the strips
//!             pack the strip                  a row of the index accesses it in any order
//!             for each row of the index: access the elements of the strip
//! else: access the elements in place, along the innermost axis
//! ```
//!
//! One thread writes to each target, in row-major order of the source. Indices are checked as they are used;
//! after one that is out of range the result is invalid.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Pod;

use super::super::copy;
use super::super::tensor::CpuTensor;
use super::super::written::Written;
use crate::backend::TensorData;
use crate::error::Result;
use crate::layout::{Layout, LoopNest, merge_axes, position_of};
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{self, Band, ColumnBand, Columns, Cost, for_each_band};
use crate::shape::Shape;

/// Cost of a random access to an element.
const COST: Cost = Cost(2500);

/// Elements of a result per unit of work: a few cache lines.
const UNIT: usize = 64;

/// Size of a strip that fits in L2, and of the largest that is packed.
const STRIP_BYTES: usize = 512 << 10;
const MAX_STRIP_BYTES: usize = 16 << 20;

/// Minimum number of columns of a strip: the prefetcher does not follow shorter rows.
const MIN_COLUMNS: usize = 64;

/// Rows at multiples of this distance share few sets of L1, so that packed rows are padded by a cache line.
const CONFLICT_BYTES: usize = 1024;

const CACHE_LINE: usize = 64;

/// A strip is packed if the index has at least one row per this many rows of the strip.
const ROWS_PER_PACKED: usize = 4;

/// An index of this shape along `axis`, with its values in row-major order.
pub(super) struct Elements<'a> {
    pub axis: usize,
    pub shape: Shape,
    pub values: &'a [i64],
    /// Extent of the indexed axis.
    pub extent: usize,
    /// True once an index was out of range.
    pub outside: AtomicBool,
}

/// Partition of the columns of a matrix into strips.
#[derive(Clone, Copy)]
struct Matrix {
    below: usize,
    /// Columns of a strip.
    width: usize,
    /// Leading dimension of a packed strip.
    pitch: usize,
}

/// Function of the index of a matrix, its partition, a range of strips, and their columns of the output.
type OfStrips<'a, T> = &'a (dyn Fn(usize, Matrix, Range<usize>, Columns<'_, T>) + Sync);

impl Elements<'_> {
    /// `y[i, j, …] = x[i, index[i, j, …], …]`.
    pub fn gather<T: Pod + Send + Sync>(
        &self,
        x: &CpuTensor,
        (y, written): (&mut [T], &Written),
    ) -> Result<()> {
        if !self.packs::<T>(self.values.len(), x.numel()) || !self.has_columns(x.shape()) {
            self.gather_in_place(x.elements(), x.layout(), (y, written));
            return Ok(());
        }
        let x = copy::contiguous("gather", x)?;
        let (above, along, below) = self.extents();
        let (source, block) = (x.run::<T>(), self.extent * below);
        // Start of the matrix of `x` that belongs to matrix `i` of the index.
        let begin = |i: usize| {
            position_of(&self.shape.dims()[..self.axis], &x.strides()[..self.axis], i, 0)
        };
        self.for_each_matrix::<T>(above, along, below, y, &|i, matrix, strips, y| {
            self.gather_columns(&source[begin(i)..][..block], i, matrix, strips, (y, written));
        });
        Ok(())
    }

    /// Replaces `y[i, index[i, j, …], …]` by the result of `combine` for it and `x[i, j, …]`; `y` is contiguous and of
    /// this shape.
    pub fn combine<T: Pod + Send + Sync>(
        &self,
        x: &[T],
        shape: &Shape,
        y: &mut [T],
        combine: impl Fn(T, T) -> T + Copy + Sync,
    ) {
        let same_above = shape.dims()[..self.axis] == self.shape.dims()[..self.axis];
        let (above, along, below) = self.extents();
        if same_above && self.has_columns(shape) {
            let rows = self.extent;
            return self.for_each_matrix::<T>(above, rows, below, y, &|i, matrix, strips, y| {
                let len = along * below;
                self.combine_columns(&x[i * len..][..len], i, matrix, strips, y, combine);
            });
        }
        let layout = Layout::contiguous(*shape);
        if !same_above {
            return self.combine_in_place(x, &layout, 0..x.len(), (y, 0), combine);
        }
        let block: usize = shape.dims()[self.axis..].iter().product();
        let len = along * below;
        for_each_band(above, COST.times(len), Band::new(y, block), |range, y| {
            let first = range.start * block;
            let range = range.start * len..range.end * len;
            self.combine_in_place(x, &layout, range, (y, first), combine);
        });
    }

    /// Numbers of indices of the axes above, of the axis, and of the axes below.
    fn extents(&self) -> (usize, usize, usize) {
        let dims = self.shape.dims();
        let (above, below) = (&dims[..self.axis], &dims[self.axis + 1..]);
        (above.iter().product(), dims[self.axis], below.iter().product())
    }

    /// True if packing strips pays: the index accesses `accessed` of `total` elements or rows.
    fn packs<T>(&self, accessed: usize, total: usize) -> bool {
        let bytes = (MIN_COLUMNS * size_of::<T>()).saturating_mul(self.extent);
        accessed >= total / ROWS_PER_PACKED && bytes <= MAX_STRIP_BYTES
    }

    /// True if there are axes below the indexed one, with the same extents in a tensor of this shape.
    fn has_columns(&self, shape: &Shape) -> bool {
        let below = &self.shape.dims()[self.axis + 1..];
        shape.dims()[self.axis + 1..] == *below && below.iter().product::<usize>() > 1
    }

    /// Calls `f` for the strips of each matrix of `rows` rows of `y`. Threads share the matrices or, if there
    /// are few, the strips of each.
    fn for_each_matrix<T: Pod + Send + Sync>(
        &self,
        above: usize,
        rows: usize,
        below: usize,
        y: &mut [T],
        f: OfStrips<'_, T>,
    ) {
        let (along, block) = (self.shape.dim(self.axis), rows * below);
        let cost = COST.times(along * below);
        let few = parallel::shares_each(above, cost, below.div_ceil(MIN_COLUMNS));
        let share = if few { below.div_ceil(parallel::threads()) } else { below };
        let fits = STRIP_BYTES / size_of::<T>() / self.extent.max(1);
        let width = fits.min(share).next_multiple_of(MIN_COLUMNS).clamp(1, below);
        let conflicts = (width * size_of::<T>()).is_multiple_of(CONFLICT_BYTES);
        let pitch = width + if conflicts { CACHE_LINE / size_of::<T>() } else { 0 };
        let matrix = Matrix { below, width, pitch };
        let run_matrix = |i: usize, y: &mut [T]| {
            let (columns, strips) = (ColumnBand::new(y, below, width), below.div_ceil(width));
            for_each_band(strips, COST.times(along * width), columns, |strips, y| {
                f(i, matrix, strips, y);
            });
        };
        if few {
            return y.chunks_exact_mut(block).enumerate().for_each(|(i, y)| run_matrix(i, y));
        }
        for_each_band(above, cost, Band::new(y, block), |range, y| {
            range.zip(y.chunks_exact_mut(block)).for_each(|(i, y)| run_matrix(i, y));
        });
    }

    fn gather_columns<T: Pod>(
        &self,
        x: &[T],
        i: usize,
        matrix: Matrix,
        strips: Range<usize>,
        (mut y, written): (Columns<'_, T>, &Written),
    ) {
        let Matrix { below, pitch, .. } = matrix;
        let len = self.shape.dim(self.axis) * below;
        let values = &self.values[i * len..][..len];
        let mut scratch = strip::<T>(self.extent, pitch);
        let packed = scratch.as_slice_mut::<T>();
        for (columns, place) in columns_of(matrix, strips) {
            for (to, row) in packed.chunks_exact_mut(pitch).zip(x.chunks_exact(below)) {
                to[..columns.len()].copy_from_slice(&row[columns.clone()]);
            }
            for (row, values) in values.chunks_exact(below).enumerate() {
                let y = &mut y.row(row)[place.clone()];
                for (j, (y, &index)) in y.iter_mut().zip(&values[columns.clone()]).enumerate() {
                    let Some(at) = self.within(index) else { return };
                    *y = packed[at * pitch + j];
                }
                written.add(columns.len());
            }
        }
    }

    fn combine_columns<T: Pod>(
        &self,
        x: &[T],
        i: usize,
        matrix: Matrix,
        strips: Range<usize>,
        mut y: Columns<'_, T>,
        combine: impl Fn(T, T) -> T,
    ) {
        let Matrix { below, pitch, .. } = matrix;
        let values = &self.values[i * x.len()..][..x.len()];
        let packs = self.packs::<T>(x.len() / below, self.extent);
        let mut scratch = packs.then(|| strip::<T>(self.extent, pitch));
        for (columns, place) in columns_of(matrix, strips) {
            let rows = values.chunks_exact(below).zip(x.chunks_exact(below));
            let rows = rows.map(|(values, x)| (&values[columns.clone()], &x[columns.clone()]));
            let Some(scratch) = &mut scratch else {
                for (values, x) in rows {
                    for (j, (&index, &x)) in place.clone().zip(values.iter().zip(x)) {
                        let Some(at) = self.within(index) else { return };
                        let y = &mut y.row(at)[j];
                        *y = combine(*y, x);
                    }
                }
                continue;
            };
            let packed = scratch.as_slice_mut::<T>();
            for (row, to) in packed.chunks_exact_mut(pitch).enumerate() {
                to[..columns.len()].copy_from_slice(&y.row(row)[place.clone()]);
            }
            for (values, x) in rows {
                for (j, (&index, &x)) in values.iter().zip(x).enumerate() {
                    let Some(at) = self.within(index) else { return };
                    let y = &mut packed[at * pitch + j];
                    *y = combine(*y, x);
                }
            }
            for (row, from) in packed.chunks_exact(pitch).enumerate() {
                y.row(row)[place.clone()].copy_from_slice(&from[..columns.len()]);
            }
        }
    }

    fn gather_in_place<T: Pod + Send + Sync>(
        &self,
        x: &[T],
        layout: &Layout,
        (y, written): (&mut [T], &Written),
    ) {
        let (stride, nest) = (layout.strides()[self.axis], self.nest(layout));
        parallel::for_each_chunk_mut(y, UNIT, COST, &|first, y| {
            let first = first * UNIT;
            for (base, step, span) in rows(&nest, layout.offset(), first..first + y.len()) {
                let y = &mut y[span.start - first..span.end - first];
                if (step, stride) == (0, 1) {
                    let row = &x[base..base + self.extent];
                    for (y, &index) in y.iter_mut().zip(&self.values[span]) {
                        let Some(at) = self.within(index) else { return };
                        *y = row[at];
                    }
                } else {
                    for (j, (y, &index)) in (0..).zip(y.iter_mut().zip(&self.values[span])) {
                        let Some(at) = self.within(index) else { return };
                        *y = x[base.wrapping_add_signed(j * step + at as isize * stride)];
                    }
                }
                written.add(y.len());
            }
        });
    }

    /// Combines a range of the source with `y`, which begins at position `first` of the result.
    fn combine_in_place<T: Copy>(
        &self,
        x: &[T],
        layout: &Layout,
        range: Range<usize>,
        (y, first): (&mut [T], usize),
        combine: impl Fn(T, T) -> T,
    ) {
        let (stride, nest) = (layout.strides()[self.axis], self.nest(layout));
        for (base, step, span) in rows(&nest, 0, range) {
            let values = self.values[span.clone()].iter().zip(&x[span]);
            for (j, (&index, &x)) in (0..).zip(values) {
                let Some(at) = self.within(index) else { return };
                let y = &mut y[base.wrapping_add_signed(j * step + at as isize * stride) - first];
                *y = combine(*y, x);
            }
        }
    }

    /// Loop nest over the index in a tensor of this layout, with a stride of 0 along `axis`.
    fn nest(&self, layout: &Layout) -> LoopNest {
        let dims = self.shape.dims().iter().enumerate();
        let bases = dims.fold(*layout, |layout, (i, &dim)| {
            layout.stepped(i, 0, dim, isize::from(i != self.axis))
        });
        merge_axes(&[&bases])
    }

    /// The index, if it is within the axis; else records the failure.
    #[inline]
    fn within(&self, index: i64) -> Option<usize> {
        // A negative index becomes larger than any extent.
        let at = index as usize;
        if at >= self.extent {
            self.outside.store(true, Ordering::Relaxed);
            return None;
        }
        Some(at)
    }
}

/// Memory of a packed strip.
fn strip<T>(extent: usize, pitch: usize) -> Buffer {
    Buffer::scratch(extent * pitch * size_of::<T>())
}

/// For each strip, its columns in the matrix, and relative to the first strip.
fn columns_of(
    Matrix { below, width, .. }: Matrix,
    strips: Range<usize>,
) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let first = strips.start * width;
    strips.map(move |strip| {
        let columns = strip * width..((strip + 1) * width).min(below);
        (columns.clone(), columns.start - first..columns.end - first)
    })
}

/// Cuts a range of elements into pieces along the innermost axis: the position of the first element, the
/// stride, and the range of elements.
fn rows(
    nest: &LoopNest,
    offset: usize,
    range: Range<usize>,
) -> impl Iterator<Item = (usize, isize, Range<usize>)> {
    let (dims, strides) = (nest.dims(), nest.strides(0));
    let outer = dims.len().saturating_sub(1);
    let (len, step) = (dims.get(outer).map_or(1, |&dim| dim), strides.get(outer).map_or(0, |&s| s));
    let mut start = range.start;
    std::iter::from_fn(move || {
        if start >= range.end {
            return None;
        }
        let (row, column) = (start / len, start % len);
        let end = (start + len - column).min(range.end);
        let base = position_of(&dims[..outer], &strides[..outer], row, offset)
            .wrapping_add_signed(column as isize * step);
        let span = start..end;
        start = end;
        Some((base, step, span))
    })
}

//! Selection and addition where every element has an index of its own.
//!
//! ```text
//! axes below `axis`, index of their extents   for each index of the axes above, a matrix [extent, below]:
//!     for each strip of its columns               shared by threads
//!         pack the strip                          what a row of the index names lies anywhere in it
//!         for each row of the index               the elements that it names in the strip
//! others                                      along the last axes, where the elements lie
//! ```
//!
//! Each target is added to by one thread, in row-major order of the source. Indices are checked where
//! they are used; after one that is outside the result is worth nothing.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Pod;
use swath_kernels::Addend;

use super::super::CpuTensor;
use super::super::copy;
use crate::backend::TensorData;
use crate::error::Result;
use crate::layout::{Layout, LoopNest, merge_axes};
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{self, Band, ColumnBand, Columns, Cost, for_each_band};
use crate::shape::Shape;

/// Of an element that is read or added to anywhere.
const COST: Cost = Cost(2500);

/// Elements of a result that threads share at least: a few cache lines.
const SHARED: usize = 64;

/// A strip that stays in the second-level cache, and the largest that is packed.
const STRIP_BYTES: usize = 512 << 10;
const MOST_STRIP_BYTES: usize = 16 << 20;

/// Columns of a strip at least: fewer leave the prefetcher idle.
const LEAST_COLUMNS: usize = 64;

/// Rows that are a multiple of this apart lie in few sets of the first-level cache; packed ones are moved
/// a line apart.
const CROWDED_BYTES: usize = 1024;

const CACHE_LINE: usize = 64;

/// A strip is packed if the index has one row for so many of its own.
const ROWS_PER_PACKED: usize = 4;

/// An index of this shape along `axis`, its values in row-major order.
pub(super) struct Elements<'a> {
    pub axis: usize,
    pub shape: Shape,
    pub values: &'a [i64],
    /// Of the axis that is indexed.
    pub extent: usize,
    /// Whether an index outside the axis was met.
    pub outside: AtomicBool,
}

/// How the columns of a matrix are cut.
#[derive(Clone, Copy)]
struct Matrix {
    below: usize,
    /// Columns of a strip.
    width: usize,
    /// From a row of a packed strip to the next.
    pitch: usize,
}

/// Takes the number of a matrix, how it is cut, which strips, and their columns.
type OfStrips<'a, T> = &'a (dyn Fn(usize, Matrix, Range<usize>, Columns<'_, T>) + Sync);

impl Elements<'_> {
    /// `y[i, j, …] = x[i, index[i, j, …], …]`.
    pub fn gather<T: Pod + Send + Sync>(&self, x: &CpuTensor, y: &mut [T]) -> Result<()> {
        if !self.packs::<T>(self.values.len(), x.numel()) || !self.has_columns(x.shape()) {
            self.gather_in_place(x.elements(), x.layout(), y);
            return Ok(());
        }
        let x = copy::contiguous("gather", x)?;
        let (above, along, below) = self.extents();
        let (source, block) = (x.run::<T>(), self.extent * below);
        // Where the matrix of the tensor begins that this one of the index names.
        let begin = |i: usize| {
            let (dims, strides) = (self.shape.dims(), x.strides());
            unravelled(i, dims, self.axis)
                .map(|(axis, i)| i * strides[axis] as usize)
                .sum::<usize>()
        };
        self.for_each_matrix::<T>(above, along, below, y, &|i, matrix, strips, y| {
            self.gather_columns(&source[begin(i)..][..block], i, matrix, strips, y);
        });
        Ok(())
    }

    /// `y[i, index[i, j, …], …] += x[i, j, …]`; `y` is contiguous and of this shape.
    pub fn add<T: Pod + Addend + Send + Sync>(&self, x: &[T], shape: &Shape, y: &mut [T]) {
        let same_above = shape.dims()[..self.axis] == self.shape.dims()[..self.axis];
        let (above, along, below) = self.extents();
        if same_above && self.has_columns(shape) {
            let rows = self.extent;
            return self.for_each_matrix::<T>(above, rows, below, y, &|i, matrix, strips, y| {
                let len = along * below;
                self.add_columns(&x[i * len..][..len], i, matrix, strips, y);
            });
        }
        let layout = Layout::contiguous(*shape);
        if !same_above {
            return self.add_in_place(x, &layout, 0..x.len(), y, 0);
        }
        let block: usize = shape.dims()[self.axis..].iter().product();
        let len = along * below;
        for_each_band(above, COST.times(len), Band::new(y, block), |range, y| {
            let first = range.start * block;
            self.add_in_place(x, &layout, range.start * len..range.end * len, y, first);
        });
    }

    /// How many indices the axes above, the axis and the axes below have.
    fn extents(&self) -> (usize, usize, usize) {
        let dims = self.shape.dims();
        let (above, below) = (&dims[..self.axis], &dims[self.axis + 1..]);
        (above.iter().product(), dims[self.axis], below.iter().product())
    }

    /// Whether strips are worth packing: of so many elements or rows of a tensor the index names so many.
    fn packs<T>(&self, named: usize, of: usize) -> bool {
        let bytes = (LEAST_COLUMNS * size_of::<T>()).saturating_mul(self.extent);
        named >= of / ROWS_PER_PACKED && bytes <= MOST_STRIP_BYTES
    }

    /// Whether axes lie below the one that is indexed, of the same extents in a tensor of this shape.
    fn has_columns(&self, shape: &Shape) -> bool {
        let below = &self.shape.dims()[self.axis + 1..];
        shape.dims()[self.axis + 1..] == *below && below.iter().product::<usize>() > 1
    }

    /// `f` for every strip of each matrix of `rows` rows of `y`: threads share matrices, or the strips of
    /// one, if there are few.
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
        let few = parallel::shares_each(above, cost, below.div_ceil(LEAST_COLUMNS));
        let share = if few { below.div_ceil(parallel::threads()) } else { below };
        let fits = STRIP_BYTES / size_of::<T>() / self.extent.max(1);
        let width = fits.min(share).next_multiple_of(LEAST_COLUMNS).clamp(1, below);
        let crowded = (width * size_of::<T>()).is_multiple_of(CROWDED_BYTES);
        let pitch = width + if crowded { CACHE_LINE / size_of::<T>() } else { 0 };
        let matrix = Matrix { below, width, pitch };
        let of_matrix = |i: usize, y: &mut [T]| {
            let (columns, strips) = (ColumnBand::new(y, below, width), below.div_ceil(width));
            for_each_band(strips, COST.times(along * width), columns, |strips, y| {
                f(i, matrix, strips, y);
            });
        };
        if few {
            return y.chunks_exact_mut(block).enumerate().for_each(|(i, y)| of_matrix(i, y));
        }
        for_each_band(above, cost, Band::new(y, block), |range, y| {
            range.zip(y.chunks_exact_mut(block)).for_each(|(i, y)| of_matrix(i, y));
        });
    }

    fn gather_columns<T: Pod>(
        &self,
        x: &[T],
        i: usize,
        matrix: Matrix,
        strips: Range<usize>,
        mut y: Columns<'_, T>,
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
            }
        }
    }

    fn add_columns<T: Pod + Addend>(
        &self,
        x: &[T],
        i: usize,
        matrix: Matrix,
        strips: Range<usize>,
        mut y: Columns<'_, T>,
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
                        *y = y.plus(x);
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
                    *y = y.plus(x);
                }
            }
            for (row, from) in packed.chunks_exact(pitch).enumerate() {
                y.row(row)[place.clone()].copy_from_slice(&from[..columns.len()]);
            }
        }
    }

    fn gather_in_place<T: Pod + Send + Sync>(&self, x: &[T], layout: &Layout, y: &mut [T]) {
        let (stride, nest) = (layout.strides()[self.axis], self.nest(layout));
        parallel::for_each_chunk_mut(y, SHARED, COST, &|first, y| {
            let first = first * SHARED;
            for (base, step, span) in rows(&nest, layout.offset(), first..first + y.len()) {
                let y = &mut y[span.start - first..span.end - first];
                for (j, (y, &index)) in (0..).zip(y.iter_mut().zip(&self.values[span])) {
                    let Some(at) = self.within(index) else { return };
                    *y = x[base.wrapping_add_signed(j * step + at as isize * stride)];
                }
            }
        });
    }

    /// Adds a range of the source; `y` begins at position `first` of the result.
    fn add_in_place<T: Addend>(
        &self,
        x: &[T],
        layout: &Layout,
        range: Range<usize>,
        y: &mut [T],
        first: usize,
    ) {
        let (stride, nest) = (layout.strides()[self.axis], self.nest(layout));
        for (base, step, span) in rows(&nest, 0, range) {
            let values = self.values[span.clone()].iter().zip(&x[span]);
            for (j, (&index, &x)) in (0..).zip(values) {
                let Some(at) = self.within(index) else { return };
                let y = &mut y[base.wrapping_add_signed(j * step + at as isize * stride) - first];
                *y = y.plus(x);
            }
        }
    }

    /// The axes of the index in a tensor of this layout, the index's own step along `axis` left out.
    fn nest(&self, layout: &Layout) -> LoopNest {
        let dims = self.shape.dims().iter().enumerate();
        let bases = dims.fold(*layout, |layout, (i, &dim)| {
            layout.stepped(i, 0, dim, isize::from(i != self.axis))
        });
        merge_axes(&[&bases])
    }

    #[inline]
    fn within(&self, index: i64) -> Option<usize> {
        // A negative index is larger than any extent.
        let at = index as usize;
        if at >= self.extent {
            self.outside.store(true, Ordering::Relaxed);
            return None;
        }
        Some(at)
    }
}

fn strip<T>(extent: usize, pitch: usize) -> Buffer {
    Buffer::scratch(extent * pitch * size_of::<T>())
}

/// Of each strip its columns in the matrix, and among those of the first strip on.
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

/// The indices along the first `rank` axes of element `i` of these.
fn unravelled(mut i: usize, dims: &[usize], rank: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rank).rev().map(move |axis| {
        let along = i % dims[axis];
        i /= dims[axis];
        (axis, along)
    })
}

/// Pieces of a range of elements that lie along the innermost axis: position of the first, step from
/// one to the next, which elements.
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
        let along = unravelled(row, dims, outer);
        let base = along
            .fold(offset.wrapping_add_signed(column as isize * step), |at, (axis, i)| {
                at.wrapping_add_signed(i as isize * strides[axis])
            });
        let span = start..end;
        start = end;
        Some((base, step, span))
    })
}

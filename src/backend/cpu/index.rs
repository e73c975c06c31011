//! Selection and addition by index.
//!
//! Every sum is taken in row-major order of what is added, to what was there, and rounded after each
//! addition; sums of 16-bit floats are taken in `f32` and rounded to 16 bits once.

use std::ops::Deref;

use bytemuck::Pod;
use swath_kernels::{Arg as Run, Binary, math};

use super::cast::cast;
use super::copy::{self, for_size};
use super::memory::Buffer;
use super::parallel::{self, Band, Cost, for_each_band};
use super::{CpuTensor, Output};
use crate::backend::TensorData;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::shape::Strides;

/// A checked index: how the other axes of the tensor and the result relate.
struct Selection<'a> {
    /// The index's values along the axis, where it selects whole rows; else all, row-major.
    values: Values<'a>,
    /// Rows are blocks of `below` contiguous elements; there are `above` times as many as values.
    rows: Option<Rows>,
}

struct Rows {
    above: usize,
    below: usize,
}

/// Values where they lie, or copied to follow one another.
enum Values<'a> {
    InPlace(&'a [i64]),
    Copied(Buffer),
}

impl Deref for Values<'_> {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        match self {
            Values::InPlace(values) => values,
            Values::Copied(buffer) => buffer.as_slice(),
        }
    }
}

/// Checks rank, extents and every index.
fn select<'a>(
    op: &'static str,
    x: &CpuTensor,
    axis: usize,
    index: &'a CpuTensor,
) -> Result<Selection<'a>> {
    let (shape, wanted) = (x.shape(), index.shape());
    if index.dtype() != DType::I64 {
        return Err(Error::DTypeMismatch {
            op,
            lhs: index.dtype(),
            rhs: DType::I64,
            shape: *wanted,
        });
    }
    if axis >= shape.ndim() {
        let axis = isize::try_from(axis).unwrap_or(isize::MAX);
        return Err(Error::AxisOutOfRange { op, axis, shape: *shape });
    }
    let dims = || shape.dims().iter().zip(wanted.dims()).enumerate();
    if shape.ndim() != wanted.ndim() || dims().any(|(i, (have, want))| i != axis && want > have) {
        return Err(Error::ShapeMismatch { op, lhs: *shape, rhs: *wanted });
    }
    let repeats = dims().all(|(i, (have, want))| {
        i == axis || (have == want && (*want == 1 || index.strides()[i] == 0))
    });
    let rows = repeats.then(|| Rows {
        above: shape.dims()[..axis].iter().product(),
        below: shape.dims()[axis + 1..].iter().product(),
    });
    let storage = index.elements::<i64>();
    let copied = |len: usize, copy: &dyn Fn(&mut [i64])| {
        let mut buffer = Buffer::scratch(len * size_of::<i64>());
        copy(buffer.as_slice_mut());
        Values::Copied(buffer)
    };
    let (start, along) = (index.layout().offset(), wanted.dim(axis));
    let values = match (&rows, wanted.numel()) {
        (_, 0) => Values::InPlace(&[]),
        (Some(_), _) if index.strides()[axis] == 1 => {
            Values::InPlace(&storage[start..start + along])
        }
        (Some(_), _) => copied(along, &|values| {
            copy::strided(storage, start, index.strides()[axis], values);
        }),
        (None, numel) => copied(numel, &|values| {
            values.iter_mut().zip(index.layout().positions()).for_each(|(v, at)| *v = storage[at]);
        }),
    };
    let extent = shape.dim(axis) as i64;
    if let Some(&index) = values.iter().find(|index| !(0..extent).contains(index)) {
        return Err(Error::IndexOutOfRange { op, index, axis, shape: *shape });
    }
    Ok(Selection { values, rows })
}

/// Where each element of a shape like the index's lies in a tensor of this layout, the index's own
/// step along `axis` left out.
fn bases(layout: &Layout, axis: usize, index: &CpuTensor) -> impl Iterator<Item = usize> {
    let mut strides = Strides::new(layout.strides());
    strides.as_mut_slice()[axis] = 0;
    Layout::new(*index.shape(), strides, layout.offset())
        .map(|layout| layout.positions())
        .into_iter()
        .flatten()
}

pub(super) fn gather(x: &CpuTensor, axis: usize, index: &CpuTensor) -> Result<CpuTensor> {
    let selection = select("gather", x, axis, index)?;
    let mut out = Output::new("gather", index.shape(), x.dtype())?;
    if index.numel() == 0 {
        return Ok(out.finish());
    }
    match &selection.rows {
        Some(Rows { below, .. }) => {
            let x = copy::contiguous("gather", x)?;
            let (extent, values) = (x.shape().dim(axis), &selection.values);
            for_size!(x.dtype(), T => {
                let (source, row) = (x.run::<T>(), *below);
                parallel::for_each_chunk_mut(out.elements::<T>(), row, copy::cost::<T>(), &|first, out| {
                    let (mut above, mut along) = (first / values.len(), first % values.len());
                    for out in out.chunks_exact_mut(row) {
                        let from = above * extent + values[along] as usize;
                        match out {
                            [out] => *out = source[from],
                            out => out.copy_from_slice(&source[from * row..][..row]),
                        }
                        along += 1;
                        if along == values.len() {
                            (above, along) = (above + 1, 0);
                        }
                    }
                });
            });
        }
        None => for_size!(x.dtype(), T => {
            let (source, stride) = (x.elements::<T>(), x.strides()[axis]);
            let positions = bases(x.layout(), axis, index).zip(selection.values.iter());
            for (y, (base, &i)) in out.elements::<T>().iter_mut().zip(positions) {
                *y = source[base.wrapping_add_signed(i as isize * stride)];
            }
        }),
    }
    Ok(out.finish())
}

pub(super) fn scatter_add(
    x: &CpuTensor,
    axis: usize,
    index: &CpuTensor,
    source: &CpuTensor,
) -> Result<CpuTensor> {
    let op = "scatter_add";
    let dtype = x.dtype();
    if matches!(dtype, DType::Bool | DType::I32 | DType::U32) {
        return Err(Error::UnsupportedDType { op, dtype, shape: *x.shape() });
    }
    if dtype != source.dtype() {
        return Err(Error::DTypeMismatch {
            op,
            lhs: dtype,
            rhs: source.dtype(),
            shape: *x.shape(),
        });
    }
    if index.shape() != source.shape() {
        return Err(Error::ShapeMismatch { op, lhs: *index.shape(), rhs: *source.shape() });
    }
    if matches!(dtype, DType::F16 | DType::BF16) {
        let [x, source] = [cast(x, DType::F32)?, cast(source, DType::F32)?];
        return cast(&scatter_add(&x, axis, index, &source)?, dtype);
    }
    let selection = select(op, x, axis, index)?;
    let mut out = Output::new(op, x.shape(), dtype)?;
    for_size!(dtype, T => copy::into(x.elements::<T>(), x.layout(), out.elements::<T>()));
    if source.numel() == 0 {
        return Ok(out.finish());
    }
    let source = copy::contiguous(op, source)?;
    let layout = Layout::contiguous(*x.shape());
    let job = Scatter { selection, axis, layout, index, source: &source };
    match dtype {
        DType::F32 => job.run::<f32>(out.elements(), add_row::<f32>),
        DType::F64 => job.run::<f64>(out.elements(), add_row::<f64>),
        DType::I64 => job.run(out.elements(), add_integers::<i64>),
        DType::U8 => job.run(out.elements(), add_integers::<u8>),
        _ => return Err(Error::UnsupportedDType { op, dtype, shape: *x.shape() }),
    }
    Ok(out.finish())
}

/// Rows of so many elements are added before a kernel would have begun.
const SHORT: usize = 16;

fn add_row<T: std::ops::AddAssign + Copy>(y: &mut [T], x: &[T])
where
    math::Add: Binary<T>,
{
    match y.len() {
        0..SHORT => y.iter_mut().zip(x).for_each(|(y, x)| *y += *x),
        _ => math::Add::run_in_place_left(y, Run::Slice(x)),
    }
}

fn add_integers<T: Element>(y: &mut [T], x: &[T]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y = T::from_i64(y.to_i64().wrapping_add(x.to_i64())));
}

struct Scatter<'a> {
    selection: Selection<'a>,
    axis: usize,
    /// Of the result.
    layout: Layout,
    index: &'a CpuTensor,
    source: &'a CpuTensor,
}

/// Of adding an element of a row, and of looking at an index whose row is another part's.
const ADD_COST: usize = 120;
const LOOK_COST: usize = 500;

impl Scatter<'_> {
    /// Adds the source's rows, or single elements, in its row-major order; every addition is rounded
    /// to the dtype.
    ///
    /// Threads share the targets: each part goes through all rows and adds those that are its own, so
    /// that every element is added to in the same order. Sharing the columns instead was four times
    /// slower than one thread: pieces of rows leave the prefetcher idle.
    fn run<T: Pod + Send + Sync>(&self, out: &mut [T], add: impl Fn(&mut [T], &[T]) + Sync) {
        let source = self.source.run::<T>();
        let values = &*self.selection.values;
        match &self.selection.rows {
            &Some(Rows { above, below }) => {
                let extent = self.layout.dims()[self.axis];
                let per_target =
                    (ADD_COST * below).saturating_add(LOOK_COST) * values.len() / extent;
                let out = Band::new(out, below);
                for_each_band(above * extent, Cost(per_target), out, |range, out| {
                    for above in range.start / extent..range.end.div_ceil(extent) {
                        let rows = source[above * values.len() * below..].chunks_exact(below);
                        for (&i, row) in values.iter().zip(rows) {
                            let to = above * extent + i as usize;
                            if range.contains(&to) {
                                add(&mut out[(to - range.start) * below..][..below], row);
                            }
                        }
                    }
                });
            }
            None => {
                let stride = self.layout.strides()[self.axis];
                let positions = bases(&self.layout, self.axis, self.index);
                let positions = positions.zip(self.selection.values.iter());
                for (x, (base, &i)) in source.chunks_exact(1).zip(positions) {
                    let position = base.wrapping_add_signed(i as isize * stride);
                    add(&mut out[position..position + 1], x);
                }
            }
        }
    }
}

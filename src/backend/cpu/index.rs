//! Selection and addition by index.
//!
//! Every sum is taken in row-major order of what is added, to what was there, and rounded after each
//! addition; sums of 16-bit floats are taken in `f32` and rounded to 16 bits once.

mod elements;

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Pod;
use swath_kernels::{Addend, scatter_add_rows_from};

use super::cast::cast;
use super::copy::{self, for_size};
use super::{CpuTensor, Output};
use crate::backend::TensorData;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{self, Band, Cost, for_each_band, for_each_part_mut};
use elements::Elements;

/// An index, and how the other axes of the tensor and the result relate.
struct Selection<'a> {
    /// The index's values along the axis, where it selects whole rows, checked; else all, row-major.
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

/// Checks rank, extents and the indices of rows.
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
        (None, _) if index.is_contiguous() => Values::InPlace(index.run()),
        (None, numel) => copied(numel, &|values| copy::into(storage, index.layout(), values)),
    };
    if rows.is_some() || shape.dim(axis) == 0 {
        check(op, x, axis, &values)?;
    }
    Ok(Selection { values, rows })
}

/// The first index that is outside the axis is the error.
fn check(op: &'static str, x: &CpuTensor, axis: usize, values: &[i64]) -> Result<()> {
    let shape = *x.shape();
    let is_outside = |index: &&i64| !(0..shape.dim(axis) as i64).contains(index);
    let parts = parallel::parts(values.len(), Cost(LOOK_COST));
    let found = AtomicBool::new(false);
    parallel::for_each_index(parts, |part| {
        let [start, end] = [part, part + 1].map(|i| parallel::even_start(values.len(), parts, i));
        if values[start..end].iter().any(|index| is_outside(&index)) {
            found.store(true, Ordering::Relaxed);
        }
    });
    if !found.into_inner() {
        return Ok(());
    }
    match values.iter().find(is_outside) {
        Some(&index) => Err(Error::IndexOutOfRange { op, index, axis, shape }),
        None => Ok(()),
    }
}

pub(super) fn gather(x: &CpuTensor, axis: usize, index: &CpuTensor) -> Result<CpuTensor> {
    let op = "gather";
    let Selection { values, rows } = select(op, x, axis, index)?;
    let mut out = Output::new(op, index.shape(), x.dtype())?;
    if index.numel() == 0 {
        return Ok(out.finish());
    }
    let extent = x.shape().dim(axis);
    match rows {
        Some(Rows { below, .. }) => {
            let x = copy::contiguous(op, x)?;
            for_size!(x.dtype(), T => {
                gather_rows(x.run::<T>(), extent, below, &values, out.elements::<T>());
            });
        }
        None => {
            let outside = AtomicBool::new(false);
            let elements =
                Elements { axis, shape: *index.shape(), values: &values, extent, outside };
            for_size!(x.dtype(), T => elements.gather(x, out.elements::<T>())?);
            if elements.outside.load(Ordering::Relaxed) {
                check(op, x, axis, &values)?;
            }
        }
    }
    Ok(out.finish())
}

/// Rows of `below` elements of each block of `extent` rows.
fn gather_rows<T: Pod + Send + Sync>(
    x: &[T],
    extent: usize,
    below: usize,
    values: &[i64],
    y: &mut [T],
) {
    parallel::for_each_chunk_mut(y, below, copy::cost::<T>(), &|first, mut y| {
        let (mut above, mut along) = (first / values.len(), first % values.len());
        while !y.is_empty() {
            let count = (values.len() - along).min(y.len() / below);
            let (here, after) = y.split_at_mut(count * below);
            let (x, values) = (&x[above * extent * below..], &values[along..]);
            if below == 1 {
                let x = &x[..extent];
                here.iter_mut().zip(values).for_each(|(y, &i)| *y = x[i as usize]);
            } else {
                for (y, &i) in here.chunks_exact_mut(below).zip(values) {
                    y.copy_from_slice(&x[i as usize * below..][..below]);
                }
            }
            (y, above, along) = (after, above + 1, 0);
        }
    });
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
    let selection = select(op, x, axis, index)?;
    if matches!(dtype, DType::F16 | DType::BF16) && source.numel() > 0 {
        let source = cast(source, DType::F32)?;
        let mut sums = cast(x, DType::F32)?;
        add(x, axis, index, &source, &selection, sums.as_slice_mut::<f32>()?)?;
        return cast(&sums, dtype);
    }
    let mut out = Output::new(op, x.shape(), dtype)?;
    for_size!(dtype, T => copy::into(x.elements::<T>(), x.layout(), out.elements::<T>()));
    if source.numel() == 0 {
        return Ok(out.finish());
    }
    let source = copy::contiguous(op, source)?;
    match dtype {
        DType::F32 => add::<f32>(x, axis, index, &source, &selection, out.elements())?,
        DType::F64 => add::<f64>(x, axis, index, &source, &selection, out.elements())?,
        DType::I64 => add::<i64>(x, axis, index, &source, &selection, out.elements())?,
        _ => add::<u8>(x, axis, index, &source, &selection, out.elements())?,
    }
    Ok(out.finish())
}

/// Adds the source to `y`, which holds the elements of `x` in order.
fn add<T: Pod + Addend + Send + Sync>(
    x: &CpuTensor,
    axis: usize,
    index: &CpuTensor,
    source: &CpuTensor,
    Selection { values, rows }: &Selection<'_>,
    y: &mut [T],
) -> Result<()> {
    let (source, extent) = (source.run::<T>(), x.shape().dim(axis));
    if let Some(rows) = rows {
        add_rows(rows, extent, values, source, y);
        return Ok(());
    }
    let outside = AtomicBool::new(false);
    let elements = Elements { axis, shape: *index.shape(), values, extent, outside };
    elements.add(source, x.shape(), y);
    match elements.outside.load(Ordering::Relaxed) {
        true => check("scatter_add", x, axis, values),
        false => Ok(()),
    }
}

/// Of adding an element of a row, of an element alone, and of looking at an index.
const ADD_COST: usize = 120;
const ADD_ONE_COST: usize = 1000;
const LOOK_COST: usize = 500;

/// Rows of so many elements for each thread take some times longer to add, by all of them, than their indices to be
/// looked at, by each in every part. Of shorter rows there is one part a thread: 65,536 rows of 16 took .5 of the time
/// in two parts of what they took in eight. Indices that name few rows often are then shared less evenly.
const LONG_ROW: usize = 32;

/// Adds the source's rows in order.
///
/// Threads share the targets: each part looks at all indices and adds the rows that are its own, so that
/// every element is added to in the same order. Sharing the columns instead was four times slower than
/// one thread: pieces of rows leave the prefetcher idle. Rows of one element are shared by whole blocks,
/// if there are enough.
fn add_rows<T: Pod + Addend + Send + Sync>(
    &Rows { above, below }: &Rows,
    extent: usize,
    values: &[i64],
    source: &[T],
    y: &mut [T],
) {
    let (shape, targets, threads) = ([extent, below], above * extent, parallel::threads());
    if below == 1 && above >= threads {
        let (cost, out) = (Cost(ADD_ONE_COST).times(values.len()), Band::new(y, extent));
        return for_each_band(above, cost, out, |range, y| {
            let source = &source[range.start * values.len()..range.end * values.len()];
            scatter_add_rows_from(source, values, shape, 0, y);
        });
    }
    let per_target = (ADD_COST * below).saturating_add(LOOK_COST) * values.len() / extent;
    let parts = parallel::parts(targets, Cost(per_target));
    let parts = if below < LONG_ROW * threads { parts.min(threads) } else { parts };
    let first = |part| parallel::even_start(targets, parts, part);
    for_each_part_mut(y, parts, &|part| first(part) * below, &|part, y| {
        scatter_add_rows_from(source, values, shape, first(part), y);
    });
}

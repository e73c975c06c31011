//! gather, scatter_add and scatter.
//!
//! Addends are added to the previous value in row-major order of the source, with a rounding after each
//! addition. Sums of 16-bit floats are computed in `f32` and rounded to 16 bits once.

mod elements;

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Pod;
use swath_kernels::{Addend, scatter_add_rows};

use super::cast::{cast, is_widened};
use super::copy::{self, for_size};
use super::tensor::{CpuTensor, Output};
use super::written::Written;
use crate::backend::{TensorData, check_arithmetic, check_dtype, check_indices, check_same_shape};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::BinaryOp;
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{self, Band, Cost, for_each_band, for_each_part_mut};
use crate::shape::Shape;
use elements::Elements;

/// A checked index.
struct Selection<'a> {
    /// Values along the axis if the index selects whole rows (checked); else all values in row-major order.
    values: Values<'a>,
    /// Extents of the other axes if the index selects whole rows.
    rows: Option<Rows>,
}

/// Products of the extents of the axes above and below the indexed axis. A row is `below` elements.
struct Rows {
    above: usize,
    below: usize,
}

/// Contiguous values, in place or copied.
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

/// Checks an index and prepares its values.
fn select<'a>(
    op: &'static str,
    x: &CpuTensor,
    axis: usize,
    index: &'a CpuTensor,
) -> Result<Selection<'a>> {
    check_indices(op, x, axis, index)?;
    let (shape, wanted) = (x.shape(), index.shape());
    let repeats = |i: usize| {
        let dim = wanted.dim(i);
        i == axis || (shape.dim(i) == dim && (dim == 1 || index.strides()[i] == 0))
    };
    let rows = (0..shape.ndim()).all(repeats).then(|| Rows {
        above: shape.dims()[..axis].iter().product(),
        below: shape.dims()[axis + 1..].iter().product(),
    });
    let storage = index.elements::<i64>();
    let copied = |len: usize, copy: &dyn Fn(&mut [i64])| {
        let mut buffer = Buffer::new(op, &Shape::from(len), DType::I64)?;
        copy(buffer.as_slice_mut());
        Ok::<_, Error>(Values::Copied(buffer))
    };
    let (start, along) = (index.layout().offset(), wanted.dim(axis));
    let values = match (&rows, wanted.numel()) {
        (_, 0) => Values::InPlace(&[]),
        (Some(_), _) if index.strides()[axis] == 1 => {
            Values::InPlace(&storage[start..start + along])
        }
        (Some(_), _) => copied(along, &|values| {
            copy::strided(storage, start, index.strides()[axis], values);
        })?,
        (None, _) if index.is_contiguous() => Values::InPlace(index.run()),
        (None, numel) => copied(numel, &|values| copy::into(storage, index.layout(), values))?,
    };
    if rows.is_some() || shape.dim(axis) == 0 {
        check_range(op, x, axis, &values)?;
    }
    Ok(Selection { values, rows })
}

/// Checks that all indices are within the axis; the error names the first that is not.
fn check_range(op: &'static str, x: &CpuTensor, axis: usize, values: &[i64]) -> Result<()> {
    let shape = *x.shape();
    let last = shape.dim(axis) as i64 - 1;
    let is_outside = |index: &&i64| !(0..=last).contains(*index);
    // Negative if an index is negative or larger than the last. No early exit, so that it is vectorised.
    let signs = |values: &[i64]| values.iter().fold(0, |all, &i| all | i | last.wrapping_sub(i));
    let parts = parallel::parts(values.len(), Cost(CHECK_COST));
    let found = AtomicBool::new(false);
    parallel::for_each_index(parts, |part| {
        let [start, end] = [part, part + 1].map(|i| parallel::even_start(values.len(), parts, i));
        if signs(&values[start..end]) < 0 {
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
            for_size!(x.dtype().size(), T => {
                gather_rows(x.run::<T>(), extent, below, &values, out.parts::<T>(op));
            });
        }
        None => {
            let outside = AtomicBool::new(false);
            let elements =
                Elements { axis, shape: *index.shape(), values: &values, extent, outside };
            for_size!(x.dtype().size(), T => elements.gather(x, out.parts::<T>(op))?);
            if elements.outside.load(Ordering::Relaxed) {
                check_range(op, x, axis, &values)?;
            }
        }
    }
    Ok(out.finish())
}

/// Copies the selected rows of `below` elements from every block of `extent` rows.
fn gather_rows<T: Pod + Send + Sync>(
    x: &[T],
    extent: usize,
    below: usize,
    values: &[i64],
    (y, written): (&mut [T], &Written),
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
            written.add(count * below);
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
    check_arithmetic(op, dtype, x.shape())?;
    check_dtype(op, x, source.dtype())?;
    check_same_shape(op, index, source)?;
    let selection = select(op, x, axis, index)?;
    let wide = match dtype {
        dtype if is_widened(dtype) => DType::I64,
        dtype => dtype.at_least_f32(),
    };
    if wide != dtype && source.numel() > 0 {
        let (source, mut sums) = (cast(source, wide)?, cast(x, wide)?);
        match wide {
            DType::I64 => {
                let sums = sums.as_slice_mut::<i64>()?;
                add(x, axis, index, &source, &selection, sums)?;
            }
            _ => {
                let sums = sums.as_slice_mut::<f32>()?;
                add(x, axis, index, &source, &selection, sums)?;
            }
        }
        return cast(&sums, dtype);
    }
    let mut out = copy::copied(op, x)?;
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

/// Adds the source to `y`, a contiguous copy of `x`.
fn add<T: Pod + Addend + Send + Sync>(
    x: &CpuTensor,
    axis: usize,
    index: &CpuTensor,
    source: &CpuTensor,
    Selection { values, rows }: &Selection<'_>,
    y: &mut [T],
) -> Result<()> {
    let source = source.run::<T>();
    if let Some(rows) = rows {
        add_rows(rows, x.shape().dim(axis), values, source, y);
        return Ok(());
    }
    scatter_elements("scatter_add", x, axis, index, values, (source, y), T::plus)
}

/// Combines the elements of the source, one after the other, with those of `y`, a contiguous copy of `x`, at
/// individual indices.
fn scatter_elements<T: Pod + Send + Sync>(
    op: &'static str,
    x: &CpuTensor,
    axis: usize,
    index: &CpuTensor,
    values: &[i64],
    (source, y): (&[T], &mut [T]),
    combine: impl Fn(T, T) -> T + Copy + Sync,
) -> Result<()> {
    let (extent, outside) = (x.shape().dim(axis), AtomicBool::new(false));
    let elements = Elements { axis, shape: *index.shape(), values, extent, outside };
    elements.combine(source, x.shape(), y, combine);
    match elements.outside.load(Ordering::Relaxed) {
        true => check_range(op, x, axis, values),
        false => Ok(()),
    }
}

/// Reduces the elements of the source, one after the other, with those of `x` at the indices, by [`BinaryOp::Maximum`],
/// `Minimum` or `Mul`. 16-bit floats are computed in `f32`, integers with 64 bits.
pub(crate) fn scatter_with(
    op: &'static str,
    by: BinaryOp,
    x: &CpuTensor,
    axis: usize,
    index: &CpuTensor,
    source: &CpuTensor,
) -> Result<CpuTensor> {
    check_dtype(op, x, source.dtype())?;
    check_same_shape(op, index, source)?;
    let selection = select(op, x, axis, index)?;
    let wide = match x.dtype() {
        dtype if dtype.is_float() => dtype.at_least_f32(),
        DType::U64 => DType::U64,
        _ => DType::I64,
    };
    let source = copy::contiguous(op, &cast(source, wide)?)?;
    let mut out = copy::copied(op, &cast(x, wide)?)?;
    macro_rules! combine {
        ($T:ty, $is_nan:expr, $times:expr) => {{
            let y = out.elements::<$T>();
            let on = (x, axis, index, &selection);
            match by {
                BinaryOp::Maximum => {
                    combine(
                        op,
                        on,
                        source.run(),
                        y,
                        |a: $T, b| if b > a || $is_nan(b) { b } else { a },
                    )?;
                }
                BinaryOp::Minimum => {
                    combine(
                        op,
                        on,
                        source.run(),
                        y,
                        |a: $T, b| if b < a || $is_nan(b) { b } else { a },
                    )?;
                }
                _ => combine(op, on, source.run(), y, $times)?,
            }
        }};
    }
    match wide {
        _ if source.numel() == 0 => {}
        DType::F32 => combine!(f32, f32::is_nan, |a, b| a * b),
        DType::F64 => combine!(f64, f64::is_nan, |a, b| a * b),
        DType::U64 => combine!(u64, |_| false, u64::wrapping_mul),
        _ => combine!(i64, |_| false, i64::wrapping_mul),
    }
    cast(&out.finish(), x.dtype())
}

fn combine<T: Pod + Send + Sync>(
    op: &'static str,
    (x, axis, index, Selection { values, rows }): (&CpuTensor, usize, &CpuTensor, &Selection<'_>),
    source: &[T],
    y: &mut [T],
    combine: impl Fn(T, T) -> T + Copy + Sync,
) -> Result<()> {
    let Some(Rows { below, .. }) = *rows else {
        return scatter_elements(op, x, axis, index, values, (source, y), combine);
    };
    let extent = x.shape().dim(axis);
    for (y, source) in
        y.chunks_exact_mut(extent * below).zip(source.chunks_exact(values.len() * below))
    {
        for (&target, source) in values.iter().zip(source.chunks_exact(below)) {
            let y = &mut y[target as usize * below..][..below];
            y.iter_mut().zip(source).for_each(|(y, &new)| *y = combine(*y, new));
        }
    }
    Ok(())
}

pub(super) fn scatter(
    x: &CpuTensor,
    axis: usize,
    index: &CpuTensor,
    source: &CpuTensor,
) -> Result<CpuTensor> {
    let op = "scatter";
    check_dtype(op, x, source.dtype())?;
    check_same_shape(op, index, source)?;
    let Selection { values, rows } = select(op, x, axis, index)?;
    let mut out = copy::copied(op, x)?;
    if source.numel() == 0 {
        return Ok(out.finish());
    }
    let source = copy::contiguous(op, source)?;
    for_size!(x.dtype().size(), T => {
        let (source, y) = (source.run::<T>(), out.elements::<T>());
        match &rows {
            Some(rows) => assign_rows(rows, x.shape().dim(axis), &values, source, y),
            None => scatter_elements(op, x, axis, index, &values, (source, y), |_, new| new)?,
        }
    });
    Ok(out.finish())
}

/// Copies the rows of the source to their targets: to each the last that has it. Rows of one element are copied
/// in order, each block by one thread.
fn assign_rows<T: Pod + Send + Sync>(
    &Rows { above, below }: &Rows,
    extent: usize,
    values: &[i64],
    source: &[T],
    y: &mut [T],
) {
    if below == 1 {
        let (cost, out) = (Cost(ADD_ONE_COST).times(values.len()), Band::new(y, extent));
        return for_each_band(above, cost, out, |range, y| {
            let source = source[range.start * values.len()..].chunks_exact(values.len());
            for (y, source) in y.chunks_exact_mut(extent).zip(source) {
                values.iter().zip(source).for_each(|(&target, &x)| y[target as usize] = x);
            }
        });
    }
    let mut rows = Buffer::scratch(extent * size_of::<i64>());
    let rows = rows.as_slice_mut::<i64>();
    rows.fill(-1);
    for (row, &target) in (0..).zip(values) {
        rows[target as usize] = row;
    }
    let rows = &*rows;
    parallel::for_each_chunk_mut(y, below, copy::cost::<T>(), &|first, y| {
        for (target, y) in (first..).zip(y.chunks_exact_mut(below)) {
            if let Ok(row) = usize::try_from(rows[target % extent]) {
                let row = target / extent * values.len() + row;
                y.copy_from_slice(&source[row * below..][..below]);
            }
        }
    });
}

/// Picoseconds of adding an element of a row, of adding a single element, and of checking an index.
const ADD_COST: usize = 120;
const ADD_ONE_COST: usize = 1000;
const CHECK_COST: usize = 500;

/// Row length per thread below which there is one part per thread, because every part reads all indices:
/// 65,536 rows of 16 elements took half the time in two parts as in eight.
const LONG_ROW: usize = 32;

/// Adds the rows of the source in order.
///
/// Threads share the targets: each part reads all indices and adds the rows of its own targets, so that the
/// order of additions is fixed. Sharing the columns instead was four times slower than one thread, because
/// the prefetcher does not follow short pieces of rows. For rows of one element, threads share whole blocks
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
            scatter_add_rows(source, values, shape, 0, y);
        });
    }
    let per_target = (ADD_COST * below).saturating_add(CHECK_COST) * values.len() / extent;
    let parts = parallel::parts(targets, Cost(per_target));
    let parts = if below < LONG_ROW * threads { parts.min(threads) } else { parts };
    let first = |part| parallel::even_start(targets, parts, part);
    for_each_part_mut(y, parts, &|part| first(part) * below, &|part, y| {
        scatter_add_rows(source, values, shape, first(part), y);
    });
}

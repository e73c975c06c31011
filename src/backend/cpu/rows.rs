//! The driver of kernels that compute whole rows; a kernel only receives `f32` and `f64` slices.
//!
//! ```text
//! compute        allocates results and makes operands contiguous (`allocate`)
//! for_each_row   shares the rows among threads
//! in_groups      for 16-bit floats: widens a few rows at a time, calls the kernel, rounds the results
//! ```

use std::array::from_fn;
use std::mem::take;
use std::ops::Range;

use smallvec::SmallVec;

use super::copy;
use super::tensor::{CpuTensor, Output};
use super::working::Working;
use super::written::Written;
use crate::backend::Results;
use crate::dtype::Element;
use crate::error::Result;
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{Band, Cost, for_each_band};
use crate::shape::Shape;

/// Elements of a widened group of rows: a few arrays of this length fit in L2.
const GROUP_LEN: usize = 8192;

/// Returns the results of a row kernel, then its statistics: one value per row, in the type of the
/// computation. Arguments are as for [`for_each_row`], with tensors in place of input slices and shapes in
/// place of outputs.
pub(super) fn compute<T: Working, const I: usize, const O: usize, const S: usize>(
    op: &'static str,
    (count, cost): (usize, Cost),
    inputs: [(&CpuTensor, usize); I],
    outputs: [(&Shape, usize); O],
    statistics: [&Shape; S],
    kernel: impl Fn(Range<usize>, [&[T::Wide]; I], [&mut [T::Wide]; O], [&mut [T::Wide]; S]) + Sync,
) -> Result<Results<CpuTensor>> {
    let (widths, x_widths) = (outputs.map(|(_, cols)| cols), inputs.map(|(_, cols)| cols));
    let (inputs, outputs) = (inputs.map(|(x, _)| x), outputs.map(|(shape, _)| shape));
    allocate::<T, I, O, S>(op, inputs, outputs, statistics, |x, mut y, statistics| {
        let x = from_fn(|i| (x[i], x_widths[i]));
        let mut widths = widths.into_iter();
        let y = y.each_mut().map(|y| (take(y), widths.next().unwrap_or(0)));
        for_each_row::<T, I, O, S>(count, cost, x, y, statistics, kernel);
    })
}

/// Returns results, then statistics in the type of the computation, that `write` has written from the elements
/// of the inputs in row-major order.
pub(super) fn allocate<T: Working, const I: usize, const O: usize, const S: usize>(
    op: &'static str,
    inputs: [&CpuTensor; I],
    outputs: [&Shape; O],
    statistics: [&Shape; S],
    write: impl FnOnce([&[T]; I], [&mut [T]; O], [&mut [T::Wide]; S]),
) -> Result<Results<CpuTensor>> {
    let mut results = SmallVec::<[Output; 4]>::new();
    for shape in outputs {
        results.push(Output::new(op, shape, T::DTYPE)?);
    }
    for shape in statistics {
        results.push(Output::new(op, shape, <T::Wide as Element>::DTYPE)?);
    }
    let mut operands = SmallVec::<[CpuTensor; 4]>::new();
    for x in inputs {
        operands.push(copy::contiguous(op, x)?);
    }
    let mut results_left = results.iter_mut();
    let mut next = || results_left.next().expect("one output per result");
    let y = outputs.map(|_| next().elements());
    let statistics = statistics.map(|_| next().elements());
    write(from_fn(|i| operands[i].run()), y, statistics);
    Ok(results.into_iter().map(Output::finish).collect())
}

/// Calls `kernel(rows, inputs, outputs, statistics)` on ranges of rows that cover `0..count`, which threads
/// share. `cost` is that of a row.
///
/// Operands are slices with their number of columns; a last row may be short. The kernel receives the elements
/// of its rows, and one value per row of each statistic.
pub(super) fn for_each_row<T: Working, const I: usize, const O: usize, const S: usize>(
    count: usize,
    cost: Cost,
    inputs: [(&[T], usize); I],
    outputs: [(&mut [T], usize); O],
    statistics: [&mut [T::Wide]; S],
    kernel: impl Fn(Range<usize>, [&[T::Wide]; I], [&mut [T::Wide]; O], [&mut [T::Wide]; S]) + Sync,
) {
    let widths = outputs.each_ref().map(|&(_, cols)| cols);
    let outputs = outputs.map(|(y, cols)| Band::new(y, cols));
    let bands = (outputs, statistics.map(|values| Band::new(values, 1)));
    for_each_band(count, cost, bands, |rows, (outputs, mut statistics)| {
        let mut widths = widths.into_iter();
        let outputs = outputs.map(|y| (y, widths.next().unwrap_or(0)));
        in_groups(rows.clone(), inputs, outputs, |group, inputs, outputs| {
            let here = group.start - rows.start..group.end - rows.start;
            let statistics = statistics.each_mut().map(|values| &mut values[here.clone()]);
            kernel(group, inputs, outputs, statistics);
        });
    });
}

/// Calls `kernel(group, inputs, outputs)` on groups of rows that cover `rows`, in order; a single group if the
/// type needs no conversion. Inputs contain all rows, outputs only `rows`.
pub(super) fn in_groups<T: Working, const I: usize, const O: usize>(
    rows: Range<usize>,
    inputs: [(&[T], usize); I],
    mut outputs: [(&mut [T], usize); O],
    mut kernel: impl FnMut(Range<usize>, [&[T::Wide]; I], [&mut [T::Wide]; O]),
) {
    if !T::CONVERTS {
        let inputs = inputs.map(|(x, cols)| T::widened(&x[span(&rows, cols, x.len())], &mut []));
        return kernel(rows, inputs, outputs.map(|(y, _)| T::place(y, &mut [])));
    }
    let widths = || inputs.iter().map(|x| x.1).chain(outputs.iter().map(|y| y.1));
    let widest = widths().max().unwrap_or(0).max(1);
    let group = (GROUP_LEN / widest).clamp(1, rows.len().max(1));
    let mut scratch = Buffer::scratch(group * widths().sum::<usize>() * size_of::<T::Wide>());
    let written = Written::in_parts_of("rows");
    for first in rows.clone().step_by(group) {
        let here = first..(first + group).min(rows.end);
        let mut space = scratch.as_slice_mut::<T::Wide>();
        let mut array = |cols: usize| {
            let (array, rest) = take(&mut space).split_at_mut(group * cols);
            space = rest;
            array
        };
        let inputs =
            inputs.map(|(x, cols)| T::widened(&x[span(&here, cols, x.len())], array(cols)));
        let from_first = first - rows.start..here.end - rows.start;
        let mut outputs = outputs.each_mut().map(|(y, cols)| {
            let span = span(&from_first, *cols, y.len());
            (&mut y[span], array(*cols))
        });
        kernel(here, inputs, outputs.each_mut().map(|(y, space)| T::place(y, space)));
        for (y, space) in outputs {
            T::round(space, y);
            written.add(y.len());
        }
    }
    written.check(outputs.iter().map(|(y, _)| y.len()).sum());
}

/// Range of the elements of rows of `cols` columns; the last row may be short.
fn span(rows: &Range<usize>, cols: usize, len: usize) -> Range<usize> {
    rows.start * cols..(rows.end * cols).min(len)
}

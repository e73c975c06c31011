//! Inner products of rows, each summed in the tree of a sum. Threads share the rows, or the subtrees of one.
//!
//! Rows with a stride other than 1 are gathered block by block, several rows at a time, so that whole cache
//! lines are used.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};
use swath_kernels::PairwiseSum;

use super::super::copy;
use super::super::reduce::{Loaded, part_len};
use super::super::tensor::{CpuTensor, Output};
use super::super::working::for_float;
use crate::backend::{Results, TensorData};
use crate::error::Result;
use crate::layout::Layout;
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{self, Cost};
use crate::shape::{Shape, Strides};

const BLOCK: usize = PairwiseSum::BLOCK;

/// Picoseconds per byte of either operand.
const COST_PER_BYTE: usize = 40;

/// Picoseconds per row, whatever its length.
const COST_PER_ROW: usize = 30_000;

/// Maximum number of elements, and of rows, gathered at a time.
const BAND_ELEMENTS: usize = 16 << 10;
const MAX_BAND: usize = 64;

pub(super) fn dot(a: &CpuTensor, b: &CpuTensor) -> Result<Results<CpuTensor>> {
    let (op, last) = ("dot", a.shape().ndim().saturating_sub(1));
    let shape = a.shape().with_axis(last, None);
    for_float!(op, a, T => {
        let mut out = Output::new(op, &shape, a.dtype())?;
        if out.numel() > 0 {
            products(&Rows::<T>::new(a, last), &Rows::new(b, last), out.elements::<T>());
        }
        Ok(smallvec![out.finish()])
    })
}

/// An operand as rows along its last axis.
struct Rows<'a, T> {
    data: &'a [T],
    starts: Layout,
    len: usize,
    step: isize,
}

impl<'a, T: Loaded> Rows<'a, T> {
    fn new(x: &'a CpuTensor, last: usize) -> Self {
        let layout = x.layout();
        let (len, step) = (layout.dims()[last], layout.strides()[last]);
        let step = if len == 1 { 1 } else { step };
        Rows { data: x.elements(), starts: layout.without_axis(last), len, step }
    }

    /// Number of rows from row `i` on that are at equal distances.
    fn equidistant_rows(&self, i: usize) -> usize {
        self.starts.dims().last().map_or(1, |&dim| dim - i % dim)
    }

    /// A range of the elements of `count` equidistant rows, gathered into `space` if they are strided.
    fn band<'s>(
        &'s self,
        first: usize,
        count: usize,
        range: &Range<usize>,
        space: &'s mut [T],
    ) -> Band<'s, T> {
        let row_stride = self.starts.strides().last().copied().unwrap_or(0);
        let shift = range.start as isize * self.step;
        let start = self.starts.position_of(first).wrapping_add_signed(shift);
        let len = range.len();
        if self.step == 1 {
            return Band { data: self.data, start, row_stride, len };
        }
        let (shape, strides) = (Shape::from([count, len]), Strides::new([row_stride, self.step]));
        let layout = Layout::new(shape, strides, start).expect("a part of the operand's layout");
        let space = &mut space[..count * len];
        copy::into(self.data, &layout, space);
        Band { data: space, start: 0, row_stride: len as isize, len }
    }
}

/// Rows of contiguous elements.
struct Band<'a, T> {
    data: &'a [T],
    start: usize,
    row_stride: isize,
    len: usize,
}

impl<T> Band<'_, T> {
    fn row(&self, i: usize) -> &[T] {
        &self.data[self.start.wrapping_add_signed(i as isize * self.row_stride)..][..self.len]
    }
}

fn products<T: Loaded>(a: &Rows<'_, T>, b: &Rows<'_, T>, out: &mut [T]) {
    let len = a.len;
    if len == 0 {
        return out.fill(T::from_f64(0.0));
    }
    let cost = Cost(COST_PER_ROW.saturating_add(Cost(COST_PER_BYTE * size_of::<T>()).times(len).0));
    if parallel::shares_each(out.len(), cost, len.div_ceil(BLOCK)) {
        for (i, y) in out.iter_mut().enumerate() {
            *y = T::from_f64(shared(a, b, i).finish());
        }
        return;
    }
    parallel::for_each_chunk_mut(out, 1, cost, &|first, out| {
        if a.step != 1 || b.step != 1 {
            return in_bands(a, b, first, out);
        }
        for (i, y) in out.iter_mut().enumerate() {
            let [a, b] = [a, b].map(|rows| &rows.data[rows.starts.position_of(first + i)..][..len]);
            let mut sum = PairwiseSum::new();
            sum.push_products(a, b);
            *y = T::from_f64(sum.finish());
        }
    });
}

/// Computes the products of strided rows in bands of several rows.
fn in_bands<T: Loaded>(a: &Rows<'_, T>, b: &Rows<'_, T>, first: usize, out: &mut [T]) {
    let len = a.len;
    let block = len.clamp(1, BLOCK);
    let most = (BAND_ELEMENTS / block).clamp(1, MAX_BAND);
    let [mut a_space, mut b_space] =
        [(); 2].map(|()| Buffer::scratch(most * block * size_of::<T>()));
    let (a_space, b_space) = (a_space.as_slice_mut::<T>(), b_space.as_slice_mut::<T>());
    let mut done = 0;
    while done < out.len() {
        let row = first + done;
        let count = most.min(out.len() - done).min(a.equidistant_rows(row));
        let mut sums: SmallVec<[PairwiseSum; MAX_BAND]> =
            (0..count).map(|_| PairwiseSum::new()).collect();
        for start in (0..len).step_by(BLOCK) {
            let range = start..(start + BLOCK).min(len);
            let a = a.band(row, count, &range, a_space);
            let b = b.band(row, count, &range, b_space);
            for (i, sum) in sums.iter_mut().enumerate() {
                sum.push_products(a.row(i), b.row(i));
            }
        }
        for (y, sum) in out[done..].iter_mut().zip(&sums) {
            *y = T::from_f64(sum.finish());
        }
        done += count;
    }
}

/// Computes the product of row `i`, which threads share.
fn shared<T: Loaded>(a: &Rows<'_, T>, b: &Rows<'_, T>, i: usize) -> PairwiseSum {
    let len = a.len;
    let blocks = len.div_ceil(BLOCK);
    let parts = parallel::parts(blocks, Cost(COST_PER_BYTE * size_of::<T>()).times(BLOCK));
    let part_len = part_len(len, parts);
    let count = len.div_ceil(part_len);
    let mut sums: SmallVec<[PairwiseSum; 16]> = (0..count).map(|_| PairwiseSum::new()).collect();
    parallel::for_each_part_mut(&mut sums, count, &|part| part, &|part, sum| {
        let [a_space, b_space] = &mut [[T::zeroed(); BLOCK]; 2];
        let range = part * part_len..((part + 1) * part_len).min(len);
        let at_once = if a.step == 1 && b.step == 1 { part_len } else { BLOCK };
        for start in range.clone().step_by(at_once) {
            let part = start..(start + at_once).min(range.end);
            let (a, b) = (a.band(i, 1, &part, a_space), b.band(i, 1, &part, b_space));
            sum[0].push_products(a.row(0), b.row(0));
        }
    });
    let mut whole = PairwiseSum::new();
    for part in &sums {
        whole.append(part);
    }
    whole
}

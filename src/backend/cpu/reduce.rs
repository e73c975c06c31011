//! Reductions over any axes of any layout.
//!
//! A result is the fold of its elements in row-major order of the logical index, in the fixed tree
//! of [`PairwiseSum`](swath_kernels::PairwiseSum): its bits depend neither on the layout nor on the
//! threads. What differs is only how the elements get there:
//!
//! ```text
//! reduced elements adjacent in storage       slices, fed where they lie
//! kept elements adjacent, one reduced axis   the kernels' column folds; for folds that have none,
//!                                            tiles transposed into scratch memory
//! neither                                    runs gathered in chunks of whole blocks; if an axis
//!                                            is contiguous at all, a contiguous copy first
//! ```
//!
//! Threads share the results; a few long folds are shared by cutting at powers of two of blocks,
//! which are subtrees.

use bytemuck::Pod;
use smallvec::SmallVec;

use super::fold::{ExtremeFloat, ExtremeHalf, ExtremeInt, Fold, SumFloat, SumHalf, SumInt};
use super::memory::Buffer;
use super::parallel::{self, Cost};
use super::{CpuTensor, Output, copy};
use crate::backend::TensorData;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Layout, LoopNest, merge_axes};
use crate::ops::ReduceOp;
use crate::shape::{AxisSet, MAX_RANK, Shape};

/// Elements of a block of the tree.
const BLOCK: usize = swath_kernels::PairwiseSum::BLOCK;

/// Elements gathered before they are folded: whole blocks, several at a time.
const GATHERED: usize = 4 * BLOCK;

/// Columns of a transposed tile, of one block of rows: four lines of `f32` of each row, and 256 KiB,
/// a part of the second-level cache.
const TILE_COLS: usize = 64;

/// Of folding one byte.
const COST_PER_BYTE: usize = 40;

pub(super) fn reduce(op: ReduceOp, x: &CpuTensor, axes: &[usize]) -> Result<CpuTensor> {
    let (name, dtype) = (op.name(), x.dtype());
    if !dtype.has_arithmetic() || (op == ReduceOp::Mean && !dtype.is_float()) {
        return Err(Error::UnsupportedDType { op: name, dtype, shape: *x.shape() });
    }
    let plan = Plan::new(name, x, axes)?;
    let count = plan.count as f64;
    let largest = op == ReduceOp::Max;
    use ReduceOp::{Max, Mean, Min, Sum};
    match (op, dtype) {
        (Max | Min, _) if plan.count == 0 && plan.shape.numel() > 0 => {
            Err(Error::EmptyReduction { op: name, shape: *x.shape() })
        }
        (Sum, DType::F32) => plan.run(&SumFloat::<f32>::sum(), DType::F32),
        (Sum, DType::F64) => plan.run(&SumFloat::<f64>::sum(), DType::F64),
        (Sum, DType::F16) => plan.run(&SumHalf::<half::f16>::sum(), DType::F16),
        (Sum, DType::BF16) => plan.run(&SumHalf::<half::bf16>::sum(), DType::BF16),
        (Sum, DType::I64) => plan.run(&SumInt::<i64>::new(), DType::I64),
        (Sum, DType::U8 | DType::Bool) => plan.run(&SumInt::<u8>::new(), DType::I64),
        (Mean, DType::F32) => plan.run(&SumFloat::<f32>::mean(count), DType::F32),
        (Mean, DType::F64) => plan.run(&SumFloat::<f64>::mean(count), DType::F64),
        (Mean, DType::F16) => plan.run(&SumHalf::<half::f16>::mean(count), DType::F16),
        (Mean, DType::BF16) => plan.run(&SumHalf::<half::bf16>::mean(count), DType::BF16),
        (Max | Min, DType::F32) => plan.run(&ExtremeFloat::<f32>::new(largest), dtype),
        (Max | Min, DType::F64) => plan.run(&ExtremeFloat::<f64>::new(largest), dtype),
        (Max | Min, DType::F16) => plan.run(&ExtremeHalf::<half::f16>::new(largest), dtype),
        (Max | Min, DType::BF16) => plan.run(&ExtremeHalf::<half::bf16>::new(largest), dtype),
        (Max | Min, DType::I64) => plan.run(&ExtremeInt::<i64>::new(largest), dtype),
        (Max | Min, DType::U8 | DType::Bool) => plan.run(&ExtremeInt::<u8>::new(largest), dtype),
        _ => Err(Error::UnsupportedDType { op: name, dtype, shape: *x.shape() }),
    }
}

/// Kept and reduced axes apart, each merged.
struct Plan<'a> {
    op: &'static str,
    x: &'a CpuTensor,
    /// Of the result, reduced axes as extent 1.
    shape: Shape,
    /// Kept axes, then reduced axes, each in their order.
    permuted: Layout,
    kept: LoopNest,
    reduced: LoopNest,
    /// Number of reduced axes.
    axes: usize,
    /// Elements folded into one result.
    count: usize,
}

impl<'a> Plan<'a> {
    fn new(op: &'static str, x: &'a CpuTensor, axes: &[usize]) -> Result<Self> {
        let rank = x.shape().ndim();
        x.shape().resolve_axes(op, Some(axes))?;
        let kept_axes = (0..rank).filter(|axis| !axes.contains(axis));
        let order: AxisSet =
            kept_axes.chain((0..rank).filter(|axis| axes.contains(axis))).collect();
        let permuted = x.layout.permute(op, &order)?;
        let split = rank - axes.len();
        let (mut kept, mut reduced) = (permuted, permuted);
        for _ in split..rank {
            kept = kept.without_axis(split);
        }
        for _ in 0..split {
            reduced = reduced.without_axis(0);
        }
        Ok(Plan {
            op,
            x,
            shape: x.shape().reduced(axes, true),
            permuted,
            kept: merge_axes(&[&kept]),
            reduced: merge_axes(&[&reduced]),
            axes: axes.len(),
            count: reduced.numel(),
        })
    }

    fn run<T: Pod + Sync, F: Fold<T>>(&self, fold: &F, dtype: DType) -> Result<CpuTensor> {
        let mut out = Output::new(self.op, &self.shape, dtype)?;
        let results = out.elements::<F::Out>();
        if results.is_empty() {
            return Ok(out.finish());
        }
        let inner = |nest: &LoopNest| nest.strides(0).last().copied();
        let (kept, reduced) = (inner(&self.kept), inner(&self.reduced));
        if matches!(reduced, None | Some(1)) || self.count == 0 {
            self.fold_runs(fold, results);
        } else if kept == Some(1) && self.reduced.dims().len() == 1 && reduced >= Some(0) {
            self.fold_columns(fold, results);
        } else if self.x.strides().contains(&1) && !self.x.layout.is_broadcast() {
            let view = CpuTensor { layout: self.permuted, ..self.x.clone() };
            let copied = copy::contiguous(self.op, &view)?;
            let rank = self.permuted.dims().len();
            let axes: AxisSet = (rank - self.axes..rank).collect();
            Plan::new(self.op, &copied, &axes)?.fold_runs(fold, results);
        } else {
            self.fold_runs(fold, results);
        }
        Ok(out.finish())
    }

    /// Every result folds the runs that its elements lie in.
    fn fold_runs<T: Pod + Sync, F: Fold<T>>(&self, fold: &F, out: &mut [F::Out]) {
        let data = self.x.elements::<T>();
        let cost = Cost(COST_PER_BYTE * size_of::<T>()).times(self.count.max(1));
        if out.len() < parallel::threads() && self.is_one_run() {
            for (i, y) in out.iter_mut().enumerate() {
                let at = self.position(i);
                *y = fold_shared(fold, &data[at..at + self.count]);
            }
            return;
        }
        let short = self.is_one_run() && self.count <= BLOCK;
        parallel::for_each_chunk_mut(out, 1, cost, &|first, out| {
            let mut scratch = None;
            let mut kept = Odometer::new(&self.kept, first, self.permuted.offset());
            if short {
                for y in out {
                    *y = fold.block(&data[kept.position..kept.position + self.count]);
                    kept.step();
                }
                return;
            }
            for y in out {
                let mut state = fold.start();
                self.feed(data, kept.position, &mut scratch, |x| fold.push(&mut state, x));
                *y = fold.finish(state);
                kept.step();
            }
        });
    }

    fn is_one_run(&self) -> bool {
        self.count > 0 && self.reduced.dims().len() == 1 && self.reduced.strides(0) == [1]
    }

    /// Where the elements of result `i` begin.
    fn position(&self, i: usize) -> usize {
        Odometer::new(&self.kept, i, self.permuted.offset()).position
    }

    /// Hands on the elements from `base` on in order: all but the last call get whole blocks.
    fn feed<T: Pod>(
        &self,
        data: &[T],
        base: usize,
        scratch: &mut Option<Buffer>,
        mut push: impl FnMut(&[T]),
    ) {
        let (dims, strides) = (self.reduced.dims(), self.reduced.strides(0));
        let run = dims.last().copied().unwrap_or(1);
        let stride = strides.last().copied().unwrap_or(1);
        if self.count == 0 {
            return;
        }
        let mut outer = Odometer::outer(&self.reduced, base);
        if stride == 1 && (run == self.count || run.is_multiple_of(BLOCK)) {
            for _ in 0..self.count / run {
                push(&data[outer.position..outer.position + run]);
                outer.step();
            }
            return;
        }
        let scratch = scratch.get_or_insert_with(|| Buffer::scratch(GATHERED * size_of::<T>()));
        let scratch = scratch.as_slice_mut::<T>();
        let mut filled = 0;
        for _ in 0..self.count / run {
            let mut done = 0;
            while done < run {
                let len = (run - done).min(GATHERED - filled);
                let from = outer.position.wrapping_add_signed(done as isize * stride);
                copy::strided(data, from, stride, &mut scratch[filled..filled + len]);
                (done, filled) = (done + len, filled + len);
                if filled == GATHERED {
                    push(scratch);
                    filled = 0;
                }
            }
            outer.step();
        }
        if filled > 0 {
            push(&scratch[..filled]);
        }
    }

    /// The results of the innermost kept axis are folded side by side.
    fn fold_columns<T: Pod + Sync, F: Fold<T>>(&self, fold: &F, out: &mut [F::Out]) {
        let data = self.x.elements::<T>();
        let stride = self.reduced.strides(0)[0].unsigned_abs();
        let cols = self.kept.dims().last().copied().unwrap_or(1);
        let cost = Cost(COST_PER_BYTE * size_of::<T>()).times(self.count);
        parallel::for_each_chunk_mut(out, TILE_COLS, cost, &|first, mut out| {
            let mut at = first * TILE_COLS;
            while !out.is_empty() {
                let len = (cols - at % cols).min(out.len());
                let (y, rest) = out.split_at_mut(len);
                let begin = self.position(at);
                let end = begin + (self.count - 1) * stride + len;
                let x = &data[begin..end];
                if !fold.columns(x, self.count, stride, y) {
                    fold_tiles(fold, x, self.count, stride, y);
                }
                (out, at) = (rest, at + len);
            }
        });
    }
}

/// Folds columns by transposing tiles of whole blocks of rows.
fn fold_tiles<T: Pod, F: Fold<T>>(
    fold: &F,
    x: &[T],
    rows: usize,
    stride: usize,
    out: &mut [F::Out],
) {
    let mut scratch = Buffer::scratch(BLOCK * TILE_COLS * size_of::<T>());
    let scratch = scratch.as_slice_mut::<T>();
    for (tile, out) in out.chunks_mut(TILE_COLS).enumerate() {
        let cols = out.len();
        let mut states: [F::State; TILE_COLS] = std::array::from_fn(|_| fold.start());
        for row in (0..rows).step_by(BLOCK) {
            let count = BLOCK.min(rows - row);
            let block = &mut scratch[..cols * count];
            let corner = row * stride + tile * TILE_COLS;
            copy::transpose(x, corner, stride as isize, [cols, count], block);
            for (state, column) in states.iter_mut().zip(block.chunks_exact(count)) {
                fold.push(state, column);
            }
        }
        for (y, state) in out.iter_mut().zip(states) {
            *y = fold.finish(state);
        }
    }
}

/// Folds one slice on all threads: parts are subtrees of equally many, a power of two of, blocks.
fn fold_shared<T: Pod + Sync, F: Fold<T>>(fold: &F, x: &[T]) -> F::Out {
    let blocks = x.len().div_ceil(BLOCK);
    let parts = parallel::parts(blocks, Cost(COST_PER_BYTE * size_of::<T>()).times(BLOCK));
    let mut state = fold.start();
    if parts <= 1 {
        fold.push(&mut state, x);
        return fold.finish(state);
    }
    let part_len = blocks.div_ceil(parts).next_power_of_two() * BLOCK;
    let pieces: SmallVec<[&[T]; 16]> = x.chunks(part_len).collect();
    let mut states: SmallVec<[F::State; 16]> = pieces.iter().map(|_| fold.start()).collect();
    parallel::for_each_part_mut(&mut states, pieces.len(), &|part| part, &|part, state| {
        fold.push(&mut state[0], pieces[part])
    });
    for next in &states {
        fold.append(&mut state, next);
    }
    fold.finish(state)
}

/// Positions along a nest of loops, one after the other.
struct Odometer<'a> {
    dims: &'a [usize],
    strides: &'a [isize],
    index: [usize; MAX_RANK],
    position: usize,
}

impl<'a> Odometer<'a> {
    /// From index number `flat` on.
    fn new(nest: &'a LoopNest, mut flat: usize, offset: usize) -> Self {
        let (dims, strides) = (nest.dims(), nest.strides(0));
        let mut odometer = Odometer { dims, strides, index: [0; MAX_RANK], position: offset };
        for (axis, (&dim, &stride)) in dims.iter().zip(strides).enumerate().rev() {
            odometer.index[axis] = flat % dim;
            let shift = (flat % dim) as isize * stride;
            odometer.position = odometer.position.wrapping_add_signed(shift);
            flat /= dim;
        }
        odometer
    }

    /// Over all loops but the innermost.
    fn outer(nest: &'a LoopNest, offset: usize) -> Self {
        let outer = nest.dims().len().saturating_sub(1);
        let (dims, strides) = (&nest.dims()[..outer], &nest.strides(0)[..outer]);
        Odometer { dims, strides, index: [0; MAX_RANK], position: offset }
    }

    fn step(&mut self) {
        for axis in (0..self.dims.len()).rev() {
            let (dim, stride) = (self.dims[axis], self.strides[axis]);
            self.index[axis] += 1;
            if self.index[axis] < dim {
                self.position = self.position.wrapping_add_signed(stride);
                return;
            }
            self.index[axis] = 0;
            let back = (dim as isize - 1).wrapping_mul(stride);
            self.position = self.position.wrapping_add_signed(back.wrapping_neg());
        }
    }
}

//! Reductions over any axes of any layout.
//!
//! The elements of a result are reduced in row-major order of the logical index, in the fixed tree of
//! [`PairwiseSum`](swath_kernels::PairwiseSum), so that its bits depend neither on the layout nor on the
//! number of threads. The kernels define the reductions ([`Reduction`]); this module presents the reduced axes
//! to them as rows or columns, on one of the paths that [`Path`] names.
//!
//! Threads share the results. If there are only a few long reductions, or a narrow matrix, threads share the
//! elements of each result in parts of a power of two of blocks, which are subtrees.

mod columns;
mod composed;
mod odometer;
mod transposed;

use bytemuck::Pod;
use smallvec::SmallVec;
use swath_kernels::reduce::{
    All, Any, ArgMax, ArgMin, Max, MaxMagnitude, Mean, Min, MinMagnitude, Norm0, Norm1, Norm2,
    Prod, Reduction, Std, Sum, Variance,
};
use swath_kernels::{Accumulate, Pairwise, PairwiseSum, Partial, reduce_columns};

use super::cast::{cast, is_widened, ordered, restored, wide_integers};
use super::copy;
use super::tensor::{CpuTensor, Output};
use super::working::for_float;
use crate::backend::{TensorData, reduced_dtype};
use crate::dtype::{DType, Element, for_dtype};
use crate::error::{Error, Result};
use crate::layout::{LoopNest, merge_some_axes, position_of};
use crate::ops::ReduceOp;
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{self, Cost};
use crate::shape::{AxisSet, Shape};
use odometer::Odometer;

/// Elements of a block of the tree.
const BLOCK: usize = PairwiseSum::BLOCK;

/// Elements gathered before they are reduced: several whole blocks.
const GATHERED: usize = 4 * BLOCK;

/// Picoseconds per byte of a reduction: two threads sum 130,000 `f32` as fast as one.
const COST_PER_BYTE: usize = 24;

/// Longest contiguous run that is copied into columns. Sums of 24 elements take 0.97 of the time of calls on
/// Zen 3 and 1.1 to 1.3 on Zen 5, of 20 at most 0.85; extrema, variances and logsumexp of 24 take 0.4 to 0.8.
const MAX_SHORT: usize = 24;

/// Like [`MAX_SHORT`], for argmax and argmin: 0.64 of the time of calls at 48 (`f64` 1.0), 0.35 at 32.
const MAX_SHORT_INDICES: usize = 48;

/// Float types that reductions read without conversion.
pub(super) trait Loaded: Element<Stored = Self> + Pod + Accumulate {}
impl<T: Element<Stored = T> + Pod + Accumulate> Loaded for T {}

/// Cost of reducing an element; 16-bit floats take a little longer than `f32`.
fn cost<T>() -> Cost {
    Cost(COST_PER_BYTE * if size_of::<T>() == 2 { 5 } else { size_of::<T>() })
}

/// Length of the parts if `len` elements are cut into at most `parts` subtrees: a power of two of blocks.
pub(super) fn part_len(len: usize, parts: usize) -> usize {
    len.div_ceil(BLOCK).div_ceil(parts).next_power_of_two() * BLOCK
}

/// A reduction over axes.
type Run = fn(ReduceOp, &CpuTensor, &[usize]) -> Result<CpuTensor>;

/// Runs a reduction on elements of the types that it takes, in their stored form.
macro_rules! run {
    (floats $plan:ident $dtype:ident $reduction:expr) => {
        for_float!($plan.op, $plan.x, T => $plan.run::<T, _, _>(&$reduction, $dtype))
    };
    (numbers $plan:ident $dtype:ident $reduction:expr) => {
        match $plan.x.dtype() {
            DType::I64 => $plan.run::<i64, _, _>(&$reduction, $dtype),
            DType::U8 | DType::Bool => $plan.run::<u8, _, _>(&$reduction, $dtype),
            _ => run!(floats $plan $dtype $reduction),
        }
    };
    (stored $plan:ident $dtype:ident $reduction:expr) => {
        for_dtype!($plan.x.dtype(), T => {
            $plan.run::<<T as Element>::Stored, _, _>(&$reduction, $dtype)
        }, _ => run!(floats $plan $dtype $reduction))
    };
    (composed $plan:ident $dtype:ident $result:expr) => {
        $result($plan, $dtype).map_err(|e: Error| e.named($plan.op))
    };
}

/// Defines a function for each reduction, so that a program links those that it names.
macro_rules! reductions {
    ($($name:ident: $op:pat => $types:ident $reduction:expr;)*) => {
        $(fn $name(op: ReduceOp, x: &CpuTensor, axes: &[usize]) -> Result<CpuTensor> {
            planned(op, x, axes, $name, &|plan, dtype| match op {
                $op => run!($types plan dtype $reduction),
                _ => unreachable!("{} runs {op:?}", stringify!($name)),
            })
        })*

        /// The function that runs a reduction. Inlined, so that only its own is linked where `op` is a constant.
        #[inline(always)]
        #[allow(unused_variables, reason = "the parameters of ops are read by their functions")]
        pub(super) fn function(op: ReduceOp) -> Run {
            match op {
                $($op => $name,)*
            }
        }
    };
}

reductions! {
    sum: ReduceOp::Sum => numbers Sum;
    prod: ReduceOp::Prod => numbers Prod;
    max: ReduceOp::Max => numbers Max;
    min: ReduceOp::Min => numbers Min;
    argmax: ReduceOp::ArgMax => numbers ArgMax;
    argmin: ReduceOp::ArgMin => numbers ArgMin;
    any: ReduceOp::Any => stored Any;
    all: ReduceOp::All => stored All;
    mean: ReduceOp::Mean => floats Mean;
    variance: ReduceOp::Variance { ddof } => floats Variance { ddof };
    std: ReduceOp::Std { ddof } => floats Std { ddof };
    norm0: ReduceOp::Norm { p: 0.0 } => floats Norm0;
    norm1: ReduceOp::Norm { p: 1.0 } => floats Norm1;
    norm2: ReduceOp::Norm { p: 2.0 } => floats Norm2;
    largest_magnitude: ReduceOp::Norm { p: f64::INFINITY } => floats MaxMagnitude;
    smallest_magnitude: ReduceOp::Norm { p: f64::NEG_INFINITY } => floats MinMagnitude;
    norm: ReduceOp::Norm { p } => composed |plan, dtype| composed::norm(p, plan, dtype);
    logsumexp: ReduceOp::LogSumExp => composed composed::log_sum_exp;
}

/// Checks the reduction, separates its axes, and passes them to `run`. `whole` is the reduction itself, for
/// operands that are converted or reduced axis by axis.
fn planned(
    op: ReduceOp,
    x: &CpuTensor,
    axes: &[usize],
    whole: Run,
    run: &dyn Fn(&Plan<'_>, DType) -> Result<CpuTensor>,
) -> Result<CpuTensor> {
    let dtype = reduced_dtype(op, x.dtype(), *x.shape())?;
    let is_logical = matches!(op, ReduceOp::Any | ReduceOp::All);
    match (x.dtype(), op) {
        (DType::U64, ReduceOp::Max | ReduceOp::Min) => {
            return restored(&whole(op, &ordered(x)?, axes)?, dtype);
        }
        (DType::U64, ReduceOp::ArgMax | ReduceOp::ArgMin) => return whole(op, &ordered(x)?, axes),
        (DType::I8 | DType::I16 | DType::U16 | DType::U64, _) if is_logical => {
            return whole(op, &cast(x, DType::Bool)?, axes);
        }
        (other, _) if is_widened(other) && !is_logical => {
            return cast(&whole(op, &wide_integers(x)?, axes)?, dtype);
        }
        _ => {}
    }
    let plan = Plan::new(op.name(), x, &x.shape().resolve_axes(op.name(), Some(axes))?);
    if op.needs_elements() && plan.count == 0 && plan.shape.numel() > 0 {
        return Err(Error::EmptyReduction { op: op.name(), shape: *x.shape() });
    }
    if (is_logical || matches!(op, ReduceOp::Max | ReduceOp::Min))
        && let Some(first) = plan.nearest_of_several()
    {
        let others: AxisSet = plan.axes.iter().copied().filter(|&axis| axis != first).collect();
        return whole(op, &whole(op, x, &[first])?, &others);
    }
    run(&plan, dtype)
}

/// How the elements of each result are read.
enum Path {
    /// There are none.
    Empty,
    /// Few elements that are short runs or a stride apart: copied into columns, many results at a time.
    Short,
    /// Consecutive results reduce consecutive columns, in place.
    Columns,
    /// One contiguous run, in place.
    Run,
    /// Several runs, or elements a stride apart, gathered in chunks of whole blocks.
    Gathered,
    /// Runs of a copy with the reduced axes last.
    Adjacent,
    /// A contiguous copy, whose path is chosen anew.
    Contiguous,
}

/// A reduction with its kept and reduced axes separated, each merged.
struct Plan<'a> {
    op: &'static str,
    x: &'a CpuTensor,
    /// Shape of the result, with reduced axes as extents of 1.
    shape: Shape,
    kept: LoopNest,
    reduced: LoopNest,
    /// The reduced axes before merging.
    axes: AxisSet,
    /// Number of elements reduced to one result.
    count: usize,
    /// Longest contiguous run that is copied into columns.
    max_short: usize,
}

impl<'a> Plan<'a> {
    /// Takes axes that are sorted, distinct and those of `x`.
    fn new(op: &'static str, x: &'a CpuTensor, axes: &[usize]) -> Self {
        let merged = |is_reduced: bool| {
            let axes = (0..x.shape().ndim()).filter(|axis| axes.contains(axis) == is_reduced);
            merge_some_axes(&[x.layout()], axes)
        };
        let (kept, reduced, shape) = (merged(false), merged(true), x.shape().reduced(axes, true));
        let count = axes.iter().map(|&axis| x.shape().dim(axis)).product();
        let max_short = if op.starts_with("arg") { MAX_SHORT_INDICES } else { MAX_SHORT };
        Plan { op, x, shape, kept, reduced, axes: axes.into(), count, max_short }
    }

    fn run<T: Pod + Sync, A: Partial, Y: Pod + Send + Sync>(
        &self,
        reduction: &dyn Reduction<T, Acc = A, Out = Y>,
        dtype: DType,
    ) -> Result<CpuTensor> {
        let mut out = Output::new(self.op, &self.shape, dtype)?;
        let results = out.elements::<Y>();
        if !results.is_empty() {
            self.reduce_into(reduction, results)?;
        }
        Ok(out.finish())
    }

    fn reduce_into<T: Pod + Sync, A: Partial, Y: Pod + Send + Sync>(
        &self,
        reduction: &dyn Reduction<T, Acc = A, Out = Y>,
        results: &mut [Y],
    ) -> Result<()> {
        match self.path() {
            Path::Empty => results.fill(reduction.finish(A::EMPTY, 0)),
            Path::Short => self.each_transposed::<T, _>(cost::<T>(), results, &|x, stride, y| {
                reduce_columns(reduction, x, self.count, stride, y);
            }),
            Path::Columns => self.reduce_columns(reduction, results),
            Path::Run | Path::Gathered => self.reduce_runs(reduction, results),
            Path::Adjacent => {
                let (copied, axes) = self.adjacent()?;
                Plan::new(self.op, &copied, &axes).reduce_runs(reduction, results);
            }
            Path::Contiguous => {
                let copied = copy::contiguous(self.op, self.x)?;
                Plan::new(self.op, &copied, &self.axes).reduce_into(reduction, results)?;
            }
        }
        Ok(())
    }

    /// Chooses the path that takes the least time.
    fn path(&self) -> Path {
        if self.count == 0 {
            Path::Empty
        } else if self.is_transposed() {
            Path::Short
        } else if self.is_one_run() {
            Path::Run
        } else if self.is_columns() {
            Path::Columns
        } else if matches!(self.reduced.strides(0), [] | [.., 1])
            || self.x.layout().is_broadcast()
            || self.is_reduced_stride_smallest()
        {
            Path::Gathered
        } else if self.is_forward() {
            Path::Adjacent
        } else {
            Path::Contiguous
        }
    }

    /// The reduced axis with the smallest stride, if the elements of a result would be copied from several runs.
    /// Where the order does not matter, reducing one axis after the other takes less time.
    fn nearest_of_several(&self) -> Option<usize> {
        let stride = |&axis: &usize| self.x.layout().strides()[axis].unsigned_abs();
        let pays = self.reduced.dims().len() > 1 && self.is_transposed();
        let axes = self.axes.iter().copied().filter(|&axis| self.x.shape().dim(axis) > 1);
        axes.min_by_key(stride).filter(|_| pays)
    }

    /// True if no axis has a smaller stride than the last reduced one.
    fn is_reduced_stride_smallest(&self) -> bool {
        let last = self.reduced.strides(0).last().map_or(0, |stride| stride.unsigned_abs());
        let all = self.kept.strides(0).iter().chain(self.reduced.strides(0));
        all.min_by_key(|stride| stride.unsigned_abs()).is_none_or(|s| last <= s.unsigned_abs())
    }

    /// True if some axis is contiguous and no stride is negative.
    fn is_forward(&self) -> bool {
        // Merged axes exclude those of extent 1, whose strides are arbitrary and may survive a copy.
        let strides = || self.kept.strides(0).iter().chain(self.reduced.strides(0));
        strides().any(|&stride| stride == 1) && strides().all(|&stride| stride >= 0)
    }

    /// A copy in which the elements of each result are contiguous, and its reduced axes.
    fn adjacent(&self) -> Result<(CpuTensor, AxisSet)> {
        let rank = self.x.shape().ndim();
        let kept = (0..rank).filter(|axis| !self.axes.contains(axis));
        let reduced = (0..rank).filter(|axis| self.axes.contains(axis));
        let order: AxisSet = kept.chain(reduced).collect();
        let view = self.x.with_layout(self.x.layout().permute(self.op, &order)?);
        Ok((copy::contiguous(self.op, &view)?, (rank - self.axes.len()..rank).collect()))
    }

    /// Reduces the runs of every result.
    fn reduce_runs<T: Pod + Sync, A: Partial, Y: Pod + Send + Sync>(
        &self,
        reduction: &dyn Reduction<T, Acc = A, Out = Y>,
        out: &mut [Y],
    ) {
        let data = self.x.elements::<T>();
        let cost = cost::<T>().times(self.count);
        if self.is_one_run() && parallel::shares_each(out.len(), cost, self.count.div_ceil(BLOCK)) {
            for (i, y) in out.iter_mut().enumerate() {
                let x = &data[self.position(i)..][..self.count];
                *y = reduction.finish(shared(x, &|x| reduction.fold(x)), self.count);
            }
            return;
        }
        parallel::for_each_chunk_mut(out, 1, cost, &|first, out| {
            if self.are_adjacent_runs() {
                let start = self.position(first);
                return reduction.rows(&data[start..start + out.len() * self.count], out);
            }
            let mut scratch = None;
            let mut kept = Odometer::new(&self.kept, first, self.x.layout().offset());
            for y in out {
                let acc = match self.is_one_run() {
                    true => reduction.fold(&data[kept.position..][..self.count]),
                    false => {
                        let mut whole = Pairwise::<A>::new();
                        let take = |x: &[T]| {
                            if !(A::MAY_BE_FINAL && whole.finish().is_final()) {
                                whole.take(reduction, x);
                            }
                        };
                        self.feed(data, kept.position, &mut scratch, take);
                        whole.finish()
                    }
                };
                *y = reduction.finish(acc, self.count);
                kept.step();
            }
        });
    }

    /// True if the elements of each result are one contiguous run.
    fn is_one_run(&self) -> bool {
        self.count > 0 && self.reduced.dims().len() == 1 && self.reduced.strides(0) == [1]
    }

    /// True if the elements of each result are one run, and the runs of consecutive results are adjacent.
    fn are_adjacent_runs(&self) -> bool {
        self.is_one_run() && self.kept.strides(0) == [self.count as isize]
    }

    /// Position of the first element of result `i`.
    fn position(&self, i: usize) -> usize {
        position_of(self.kept.dims(), self.kept.strides(0), i, self.x.layout().offset())
    }

    /// Passes the elements of the result at `base` to `push`, in order; all calls but the last get whole blocks.
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
        let mut outer = Odometer::outer(&self.reduced, base);
        if stride == 1 && run.is_multiple_of(BLOCK) {
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
}

/// Reduces one slice on all threads, in parts that are subtrees.
fn shared<T: Sync, A: Partial>(x: &[T], fold: &(dyn Fn(&[T]) -> A + Sync)) -> A {
    let parts = parallel::parts(x.len().div_ceil(BLOCK), cost::<T>().times(BLOCK));
    if parts <= 1 {
        return fold(x);
    }
    let pieces: SmallVec<[&[T]; 16]> = x.chunks(part_len(x.len(), parts)).collect();
    let mut partials: SmallVec<[A; 16]> = pieces.iter().map(|_| A::EMPTY).collect();
    parallel::for_each_part_mut(&mut partials, pieces.len(), &|part| part, &|part, partial| {
        partial[0] = fold(pieces[part]);
    });
    let mut whole = Pairwise::new();
    partials.iter().for_each(|&partial| whole.push(partial));
    whole.finish()
}

//! Reductions over any axes of any layout.
//!
//! A result is the fold of its elements in row-major order of the logical index, in the fixed tree
//! of [`PairwiseSum`](swath_kernels::PairwiseSum): its bits depend neither on the layout nor on the
//! threads. What differs is only how the elements get there:
//!
//! ```text
//! reduced elements adjacent in storage       slices, fed where they lie; where they are few, turned
//!                                            into columns, many results at a time
//! kept elements adjacent, one reduced axis   the kernels' column folds; the largest and smallest of
//!                                            16-bit floats by bands of rows that are widened
//! neither                                    runs gathered in chunks of whole blocks; if an axis
//!                                            is contiguous at all, a contiguous copy first
//! ```
//!
//! Threads share the results. A few long folds, and the rows of narrow matrices, are shared by cutting
//! at powers of two of blocks, which are subtrees.

mod columns;
mod composed;
mod odometer;
mod short;

use bytemuck::Pod;
use smallvec::SmallVec;
use swath_kernels::{self as kernels, Integer, IntegerEnd, IntegerFold};
use swath_kernels::{Moments, Pairwise, PairwiseSum, Product, SquareSum};

use super::fold::{
    Extreme, ExtremeInteger, Fold, Integers, Loaded, Place, PlaceInteger, Tree, Truth, part_len,
};
use super::memory::Buffer;
use super::parallel::{self, Cost};
use super::{CpuTensor, Output, copy};
use crate::backend::{TensorData, reduced_dtype};
use crate::dtype::{DType, Element, for_dtype};
use crate::error::{Error, Result};
use crate::layout::{LoopNest, merge_some_axes};
use crate::ops::ReduceOp;
use crate::shape::{AxisSet, Shape};
use odometer::Odometer;

/// Elements of a block of the tree.
const BLOCK: usize = swath_kernels::PairwiseSum::BLOCK;

/// Elements gathered before they are folded: whole blocks, several at a time.
const GATHERED: usize = 4 * BLOCK;

/// Of folding one byte of `f32` or more: two threads sum 130,000 `f32` as fast as one.
const COST_PER_BYTE: usize = 24;

/// Of folding an element: 16-bit floats take a little longer than `f32`.
fn cost<T>() -> Cost {
    Cost(COST_PER_BYTE * if size_of::<T>() == 2 { 5 } else { size_of::<T>() })
}

pub(super) fn reduce(op: ReduceOp, x: &CpuTensor, axes: &[usize]) -> Result<CpuTensor> {
    let dtype = reduced_dtype(op, x.dtype(), *x.shape())?;
    let plan = Plan::new(op.name(), x, axes)?;
    if op.needs_elements() && plan.count == 0 && plan.shape.numel() > 0 {
        return Err(Error::EmptyReduction { op: op.name(), shape: *x.shape() });
    }
    if let ReduceOp::Any | ReduceOp::All = op {
        let all = op == ReduceOp::All;
        return for_dtype!(x.dtype(), T => plan.run(&Truth::<<T as Element>::Stored>::new(all), dtype));
    }
    let folded = match x.dtype() {
        DType::F16 => of_floats::<half::f16>(op, &plan, dtype),
        DType::BF16 => of_floats::<half::bf16>(op, &plan, dtype),
        DType::F32 => of_floats::<f32>(op, &plan, dtype),
        DType::F64 => of_floats::<f64>(op, &plan, dtype),
        DType::I64 => of_integers::<i64>(op, &plan, dtype),
        _ => of_integers::<u8>(op, &plan, dtype),
    };
    // Some are made of other operations.
    folded.map_err(|error| error.named(op.name()))
}

fn of_integers<T: Element<Stored = T> + Pod + Integer>(
    op: ReduceOp,
    plan: &Plan<'_>,
    dtype: DType,
) -> Result<CpuTensor> {
    match op {
        ReduceOp::Sum => plan.run::<T, _>(&Integers(IntegerFold::Sum), dtype),
        ReduceOp::Prod => plan.run::<T, _>(&Integers(IntegerFold::Product), dtype),
        ReduceOp::Max => plan.run::<T, _>(&ExtremeInteger(IntegerEnd::Largest), dtype),
        ReduceOp::Min => plan.run::<T, _>(&ExtremeInteger(IntegerEnd::Smallest), dtype),
        ReduceOp::ArgMax => plan.run::<T, _>(&PlaceInteger(IntegerEnd::Largest), dtype),
        ReduceOp::ArgMin => plan.run::<T, _>(&PlaceInteger(IntegerEnd::Smallest), dtype),
        _ => Err(plan.unsupported()),
    }
}

fn of_floats<T: Loaded>(op: ReduceOp, plan: &Plan<'_>, dtype: DType) -> Result<CpuTensor> {
    let count = plan.count;
    match op {
        ReduceOp::Sum => plan.run::<T, _>(
            &Tree {
                push: &|sum: &mut PairwiseSum, x| sum.push_slice(x),
                finish: &|sum| sum,
                columns: &|x, rows, stride, y| kernels::sum_columns(x, rows, stride, y),
                part: &|x, rows, stride, y| PairwiseSum::sums_of_columns(x, rows, stride, y),
            },
            dtype,
        ),
        ReduceOp::Mean => plan.run::<T, _>(
            &Tree {
                push: &|sum: &mut PairwiseSum, x| sum.push_slice(x),
                finish: &|sum| sum / count as f64,
                columns: &|x, rows, stride, y| kernels::mean_columns(x, rows, stride, y),
                part: &|x, rows, stride, y| PairwiseSum::sums_of_columns(x, rows, stride, y),
            },
            dtype,
        ),
        ReduceOp::Prod => plan.run::<T, _>(
            &Tree {
                push: &|product: &mut Pairwise<Product>, x| product.push_factors(x),
                finish: &|product| product.0,
                columns: &|x, rows, stride, y| kernels::prod_columns(x, rows, stride, y),
                part: &|x, rows, stride, y| Pairwise::products_of_columns(x, rows, stride, y),
            },
            dtype,
        ),
        ReduceOp::Variance { ddof } => plan.run::<T, _>(
            &Tree {
                push: &|moments: &mut Pairwise<Moments>, x| moments.push_elements(x),
                finish: &|moments| moments.variance(ddof),
                columns: &|x, rows, stride, y| kernels::variance_columns(x, rows, stride, ddof, y),
                part: &|x, rows, stride, y| Pairwise::moments_of_columns(x, rows, stride, y),
            },
            dtype,
        ),
        ReduceOp::Std { ddof } => plan.run::<T, _>(
            &Tree {
                push: &|moments: &mut Pairwise<Moments>, x| moments.push_elements(x),
                finish: &|moments| moments.variance(ddof).sqrt(),
                columns: &|x, rows, stride, y| kernels::std_columns(x, rows, stride, ddof, y),
                part: &|x, rows, stride, y| Pairwise::moments_of_columns(x, rows, stride, y),
            },
            dtype,
        ),
        ReduceOp::Norm { p } => norm::<T>(p, plan, dtype),
        ReduceOp::LogSumExp => composed::log_sum_exp::<T>(plan, dtype),
        ReduceOp::Max => plan.run::<T, _>(
            &Extreme {
                of: kernels::max,
                columns: &|x, rows, stride, y| kernels::max_columns(x, rows, stride, y),
                none: f64::NAN,
            },
            dtype,
        ),
        ReduceOp::Min => plan.run::<T, _>(
            &Extreme {
                of: kernels::min,
                columns: &|x, rows, stride, y| kernels::min_columns(x, rows, stride, y),
                none: f64::NAN,
            },
            dtype,
        ),
        ReduceOp::ArgMax => plan.run::<T, _>(
            &Place {
                largest: true,
                of: kernels::argmax,
                columns: &|x, rows, stride, y| kernels::argmax_columns(x, rows, stride, y),
            },
            dtype,
        ),
        ReduceOp::ArgMin => plan.run::<T, _>(
            &Place {
                largest: false,
                of: kernels::argmin,
                columns: &|x, rows, stride, y| kernels::argmin_columns(x, rows, stride, y),
            },
            dtype,
        ),
        ReduceOp::Any | ReduceOp::All => Err(plan.unsupported()),
    }
}

fn norm<T: Loaded>(p: f64, plan: &Plan<'_>, dtype: DType) -> Result<CpuTensor> {
    if p.is_nan() {
        let reason = format!("p is NaN, of a tensor {}", plan.x.shape());
        return Err(Error::InvalidArgument { op: plan.op, reason });
    }
    if p == 0.0 {
        let nonzeros = Tree {
            push: &|count: &mut PairwiseSum, x: &[T]| count.push_nonzeros(x),
            finish: &|count| count,
            columns: &|x, rows, stride, y| kernels::norm0_columns(x, rows, stride, y),
            part: &|x, rows, stride, y| PairwiseSum::nonzeros_of_columns(x, rows, stride, y),
        };
        plan.run::<T, _>(&nonzeros, dtype)
    } else if p == 1.0 {
        let magnitudes = Tree {
            push: &|sum: &mut PairwiseSum, x: &[T]| sum.push_magnitudes(x),
            finish: &|sum| sum,
            columns: &|x, rows, stride, y| kernels::norm1_columns(x, rows, stride, y),
            part: &|x, rows, stride, y| PairwiseSum::magnitudes_of_columns(x, rows, stride, y),
        };
        plan.run::<T, _>(&magnitudes, dtype)
    } else if p == 2.0 {
        let squares = Tree {
            push: &|sum: &mut Pairwise<SquareSum>, x: &[T]| sum.push_squares(x),
            finish: &SquareSum::root,
            columns: &|x, rows, stride, y| kernels::norm2_columns(x, rows, stride, y),
            part: &|x, rows, stride, y| Pairwise::squares_of_columns(x, rows, stride, y),
        };
        plan.run::<T, _>(&squares, dtype)
    } else if p == f64::INFINITY {
        let largest = Extreme {
            of: kernels::max_magnitude,
            columns: &|x, rows, stride, y| kernels::max_magnitude_columns(x, rows, stride, y),
            none: 0.0,
        };
        plan.run::<T, _>(&largest, dtype)
    } else if p == f64::NEG_INFINITY {
        let smallest = Extreme {
            of: kernels::min_magnitude,
            columns: &|x, rows, stride, y| kernels::min_magnitude_columns(x, rows, stride, y),
            none: f64::INFINITY,
        };
        plan.run::<T, _>(&smallest, dtype)
    } else {
        composed::norm(p, plan, dtype)
    }
}

/// Kept and reduced axes apart, each merged.
struct Plan<'a> {
    op: &'static str,
    x: &'a CpuTensor,
    /// Of the result, reduced axes as extent 1.
    shape: Shape,
    /// Merged.
    kept: LoopNest,
    reduced: LoopNest,
    /// Those that are reduced.
    axes: AxisSet,
    /// Elements folded into one result.
    count: usize,
}

impl<'a> Plan<'a> {
    fn new(op: &'static str, x: &'a CpuTensor, axes: &[usize]) -> Result<Self> {
        let rank = x.shape().ndim();
        x.shape().resolve_axes(op, Some(axes))?;
        let of = |is_reduced: bool| {
            let axes = (0..rank).filter(|axis| axes.contains(axis) == is_reduced);
            merge_some_axes(&[x.layout()], axes)
        };
        let (kept, reduced) = (of(false), of(true));
        let count = axes.iter().map(|&axis| x.shape().dim(axis)).product();
        Ok(Plan {
            op,
            x,
            shape: x.shape().reduced(axes, true),
            kept,
            reduced,
            axes: axes.iter().copied().collect(),
            count,
        })
    }

    fn run<T: Pod + Sync, F: Fold<T>>(&self, fold: &F, dtype: DType) -> Result<CpuTensor> {
        let mut out = Output::new(self.op, &self.shape, dtype)?;
        let results = out.elements::<F::Out>();
        if !results.is_empty() {
            self.fold_into::<T, F>(fold, results)?;
        }
        Ok(out.finish())
    }

    fn fold_into<T: Pod + Sync, F: Fold<T>>(&self, fold: &F, results: &mut [F::Out]) -> Result<()> {
        if self.is_short(F::MOST_SHORT) {
            self.each_short::<T, _>(cost::<T>(), results, &|x, stride, y| {
                fold.columns(x, self.count, stride, y);
            });
        } else if matches!(self.reduced.strides(0), [] | [.., 1]) || self.count == 0 {
            self.fold_runs(fold, results);
        } else if self.is_columns() {
            self.fold_columns(fold, results);
        } else if self.x.layout().is_broadcast() || self.reduced_are_nearest() {
            self.fold_runs(fold, results);
        } else if self.is_forward() {
            let (copied, axes) = self.adjacent()?;
            Plan::new(self.op, &copied, &axes)?.fold_runs(fold, results);
        } else {
            let copied = copy::contiguous(self.op, self.x)?;
            Plan::new(self.op, &copied, &self.axes)?.fold_into::<T, F>(fold, results)?;
        }
        Ok(())
    }

    /// Whether neighbours along no axis are nearer to each other than along the last reduced one.
    fn reduced_are_nearest(&self) -> bool {
        let last = self.reduced.strides(0).last().map_or(0, |stride| stride.unsigned_abs());
        let all = self.kept.strides(0).iter().chain(self.reduced.strides(0));
        all.min_by_key(|stride| stride.unsigned_abs()).is_none_or(|s| last <= s.unsigned_abs())
    }

    /// Whether the elements lie without gaps along some axis, and none lies before one of a lower index.
    fn is_forward(&self) -> bool {
        // Of axes of more than one element: others' strides say nothing, and a copy may keep them.
        let strides = || self.kept.strides(0).iter().chain(self.reduced.strides(0));
        strides().any(|&stride| stride == 1) && strides().all(|&stride| stride >= 0)
    }

    /// A copy in which the elements of a result are adjacent, and the axes to reduce there.
    fn adjacent(&self) -> Result<(CpuTensor, AxisSet)> {
        let rank = self.x.shape().ndim();
        let kept = (0..rank).filter(|axis| !self.axes.contains(axis));
        let reduced = (0..rank).filter(|axis| self.axes.contains(axis));
        let order: AxisSet = kept.chain(reduced).collect();
        let view = self.x.with_layout(self.x.layout().permute(self.op, &order)?);
        Ok((copy::contiguous(self.op, &view)?, (rank - self.axes.len()..rank).collect()))
    }

    /// Every result folds the runs that its elements lie in.
    fn fold_runs<T: Pod + Sync, F: Fold<T>>(&self, fold: &F, out: &mut [F::Out]) {
        let data = self.x.elements::<T>();
        let cost = cost::<T>().times(self.count.max(1));
        if self.is_one_run() && parallel::shares_each(out.len(), cost, self.count.div_ceil(BLOCK)) {
            for (i, y) in out.iter_mut().enumerate() {
                let at = self.position(i);
                *y = fold_shared(fold, &data[at..at + self.count]);
            }
            return;
        }
        parallel::for_each_chunk_mut(out, 1, cost, &|first, out| {
            let mut scratch = None;
            let mut kept = Odometer::new(&self.kept, first, self.x.layout().offset());
            if self.is_one_run() {
                for y in out {
                    let mut state = fold.start();
                    fold.push(&mut state, &data[kept.position..kept.position + self.count]);
                    *y = fold.finish(&state);
                    kept.step();
                }
                return;
            }
            for y in out {
                let mut state = fold.start();
                self.feed(data, kept.position, &mut scratch, |x| fold.push(&mut state, x));
                *y = fold.finish(&state);
                kept.step();
            }
        });
    }

    fn unsupported(&self) -> Error {
        Error::UnsupportedDType { op: self.op, dtype: self.x.dtype(), shape: *self.x.shape() }
    }

    fn is_one_run(&self) -> bool {
        self.count > 0 && self.reduced.dims().len() == 1 && self.reduced.strides(0) == [1]
    }

    /// Where the elements of result `i` begin.
    fn position(&self, i: usize) -> usize {
        Odometer::new(&self.kept, i, self.x.layout().offset()).position
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
}

/// Folds one slice on all threads, in parts that are subtrees.
fn fold_shared<T: Pod + Sync, F: Fold<T>>(fold: &F, x: &[T]) -> F::Out {
    let blocks = x.len().div_ceil(BLOCK);
    let parts = parallel::parts(blocks, cost::<T>().times(BLOCK));
    let mut state = fold.start();
    if parts <= 1 {
        fold.push(&mut state, x);
        return fold.finish(&state);
    }
    let pieces: SmallVec<[&[T]; 16]> = x.chunks(part_len(x.len(), parts)).collect();
    let mut states: SmallVec<[F::State; 16]> = pieces.iter().map(|_| fold.start()).collect();
    parallel::for_each_part_mut(&mut states, pieces.len(), &|part| part, &|part, state| {
        fold.push(&mut state[0], pieces[part])
    });
    for next in &states {
        fold.append(&mut state, next);
    }
    fold.finish(&state)
}

//! Fused ops that have kernels. Operands that are not contiguous are copied.

use smallvec::{SmallVec, smallvec};

use super::device::Fault;
use super::driver::Driver;
use super::index::fault_of;
use super::plan::conv::Kind;
use super::plan::elementwise::{Function, Operand};
use super::plan::rows::{RowWords, Rows};
use super::tensor::{Gpu, GpuTensor, contiguous, from_start, run};
use super::{attention, images};
use crate::backend::{Backend, Results, TensorData};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{BinaryOp, DropoutMask, FusedOp, ReduceOp};
use crate::shape::Shape;

/// The longest row of a kernel, because one workgroup computes a row. For longer rows, the op is composed of others.
const LONGEST_ROW: usize = 1 << 20;

/// A fused op of rows under construction.
struct Call<D: Driver> {
    op: &'static str,
    kernel: Rows,
    words: RowWords,
    operands: SmallVec<[GpuTensor<D>; 5]>,
    results: Results<GpuTensor<D>>,
    fault: Option<Fault<D>>,
}

impl<D: Driver> Call<D> {
    /// Returns the call of a kernel on these operands. An absent operand is bound to the first one, and the kernel does
    /// not read it.
    fn new(op: &'static str, kernel: Rows, operands: &[Option<&GpuTensor<D>>]) -> Result<Self> {
        let first = operands.iter().flatten().next().expect("a kernel has an operand");
        let operands = operands.iter().map(|x| from_start(op, x.unwrap_or(first)));
        let operands = operands.collect::<Result<_>>()?;
        let words = RowWords::default();
        Ok(Call { op, kernel, words, operands, results: Results::new(), fault: None })
    }

    /// Adds a result.
    fn result(mut self, shape: &Shape, dtype: DType) -> Result<Self> {
        self.results.push(GpuTensor::new(self.op, shape, dtype)?);
        Ok(self)
    }

    /// Runs the kernel on rows of the last axis of `x`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for rows longer than [`LONGEST_ROW`].
    fn run(self, x: &GpuTensor<D>) -> Result<Results<GpuTensor<D>>> {
        let n = x.shape().dims().last().copied().unwrap_or(1);
        if n > LONGEST_ROW {
            return Err(Error::Unsupported { op: self.op, backend: D::NAME });
        }
        let rows = x.shape().dims().iter().rev().skip(1).product();
        let plan = self.kernel.plan(self.op, x.shape(), [rows, n], self.words)?;
        let operands: SmallVec<[&GpuTensor<D>; 5]> = self.operands.iter().collect();
        if rows > 0 {
            let results: SmallVec<[&GpuTensor<D>; 4]> = self.results.iter().collect();
            run(self.op, plan, &operands, &results, self.fault)?;
        }
        Ok(self.results)
    }
}

pub(super) fn fused<D: Driver>(op: &FusedOp<'_, GpuTensor<D>>) -> Result<Results<GpuTensor<D>>> {
    op.check()?;
    let name = op.name();
    match *op {
        FusedOp::Softmax { x, log } => {
            let kernel = Rows::Softmax { store: x.store(name)?, log };
            Call::new(name, kernel, &[Some(x)])?.result(x.shape(), x.dtype())?.run(x)
        }
        FusedOp::SoftmaxGrad { g, y, log } => {
            let kernel = Rows::SoftmaxGrad { store: y.store(name)?, log };
            Call::new(name, kernel, &[Some(g), Some(y)])?.result(y.shape(), y.dtype())?.run(y)
        }
        FusedOp::LayerNorm { x, weight, bias, eps } => norm(name, x, [weight, bias], eps, true),
        FusedOp::RmsNorm { x, weight, eps } => norm(name, x, [weight, None], eps, false),
        FusedOp::LayerNormGrad { g, x, weight, reciprocal_deviation } => {
            norm_grad(name, [g, x, reciprocal_deviation], weight, true)
        }
        FusedOp::RmsNormGrad { g, x, weight, reciprocal_rms } => {
            norm_grad(name, [g, x, reciprocal_rms], weight, false)
        }
        FusedOp::CrossEntropy { logits, targets, ignore_index, label_smoothing }
            if has_classes(logits) =>
        {
            cross_entropy(name, [logits, targets], ignore_index, label_smoothing)
        }
        FusedOp::CrossEntropyGrad {
            g,
            logits,
            targets,
            largest,
            rest,
            ignore_index,
            label_smoothing,
        } => {
            let operands = [g, logits, largest, rest, targets];
            cross_entropy_grad(name, operands, ignore_index, label_smoothing)
        }
        FusedOp::Dot { a, b } => {
            let rows = a.shape().with_axis(a.shape().ndim() - 1, None);
            let kernel = Rows::Dot { store: a.store(name)? };
            Call::new(name, kernel, &[Some(a), Some(b)])?.result(&rows, a.dtype())?.run(a)
        }
        FusedOp::Dropout { x, mask } => dropout(name, x, mask),
        FusedOp::Attention { q, k, v, mask, ref parameters } => {
            attention::attention(name, [q, k, v], mask, parameters)
        }
        FusedOp::AttentionGrad { g, q, k, v, mask, largest, inverse, y, ref parameters } => {
            attention::attention_grad(name, [q, k, v], [g, y], [largest, inverse], mask, parameters)
        }
        FusedOp::Conv { x, weight, bias, activation, ref geometry, groups } => {
            let unsupported = || Error::Unsupported { op: name, backend: D::NAME };
            let function = activation.map(|f| f.op().ok_or_else(unsupported)).transpose()?;
            images::conv(name, Kind::Forward(function), [x, weight], bias, (geometry, groups))
        }
        FusedOp::ConvTranspose { g, weight, ref geometry, groups } => {
            images::transpose(name, [g, weight], (geometry, groups))
        }
        FusedOp::ConvWeightGrad { g, x, ref geometry, groups } => {
            images::weight_grad(name, [g, x], (geometry, groups))
        }
        FusedOp::MaxPool { x, ref geometry, with_positions } => {
            images::max_pool(name, x, geometry, with_positions)
        }
        FusedOp::AvgPool { x, ref geometry, count_include_pad } => {
            images::avg_pool(name, x, geometry, count_include_pad, false)
        }
        FusedOp::AvgPoolGrad { g, ref geometry, count_include_pad } => {
            images::avg_pool(name, g, geometry, count_include_pad, true)
        }
        _ => Err(Error::Unsupported { op: name, backend: D::NAME }),
    }
}

/// True if rows have classes. Without any, no target is valid.
fn has_classes<D: Driver>(logits: &GpuTensor<D>) -> bool {
    logits.shape().dims().last() != Some(&0)
}

fn cross_entropy<D: Driver>(
    op: &'static str,
    [logits, targets]: [&GpuTensor<D>; 2],
    ignore_index: Option<i64>,
    label_smoothing: f64,
) -> Result<Results<GpuTensor<D>>> {
    let kernel = Rows::CrossEntropy { store: logits.store(op)? };
    let mut call = Call::new(op, kernel, &[Some(logits), Some(targets)])?
        .result(targets.shape(), logits.dtype())?
        .result(targets.shape(), DType::F32)?
        .result(targets.shape(), DType::F32)?;
    call.words.epsilon = label_smoothing as f32;
    call.words.ignore(ignore_index);
    let axis = logits.shape().ndim() - 1;
    call.fault = Some(fault_of(logits.shape(), axis, &call.operands[1]));
    call.run(logits)
}

fn cross_entropy_grad<D: Driver>(
    op: &'static str,
    operands: [&GpuTensor<D>; 5],
    ignore_index: Option<i64>,
    label_smoothing: f64,
) -> Result<Results<GpuTensor<D>>> {
    let logits = operands[1];
    let kernel = Rows::CrossEntropyGrad { store: logits.store(op)? };
    let mut call =
        Call::new(op, kernel, &operands.map(Some))?.result(logits.shape(), logits.dtype())?;
    call.words.epsilon = label_smoothing as f32;
    call.words.ignore(ignore_index);
    call.run(logits)
}

fn dropout<D: Driver>(
    op: &'static str,
    x: &GpuTensor<D>,
    mask: DropoutMask,
) -> Result<Results<GpuTensor<D>>> {
    let (x, y) = (contiguous(op, x)?, GpuTensor::new(op, x.shape(), x.dtype())?);
    let function = Function::Dropout(x.store(op)?);
    let operands = [Operand::Tensor(&x.0.layout)];
    if let Some(plan) = function.plan(op, x.shape(), &operands, Some(mask))? {
        run(op, plan, &[&x], &[&y], None)?;
    }
    Ok(smallvec![y])
}

fn norm<D: Driver>(
    op: &'static str,
    x: &GpuTensor<D>,
    [weight, bias]: [Option<&GpuTensor<D>>; 2],
    eps: f64,
    is_centered: bool,
) -> Result<Results<GpuTensor<D>>> {
    let kernel = Rows::Norm { store: x.store(op)?, is_centered };
    let rows = reduced(x);
    let mut call = Call::new(op, kernel, &[Some(x), weight, bias])?;
    call.words.epsilon = eps as f32;
    call.words.has_weight = weight.is_some().into();
    call.words.has_bias = bias.is_some().into();
    let mut call = call.result(x.shape(), x.dtype())?;
    if is_centered {
        call = call.result(&rows, DType::F32)?;
    }
    call.result(&rows, DType::F32)?.run(x)
}

/// Gradients of `x`, of `weight` and, if centered, of `bias`.
fn norm_grad<D: Driver>(
    op: &'static str,
    [g, x, reciprocal]: [&GpuTensor<D>; 3],
    weight: Option<&GpuTensor<D>>,
    is_centered: bool,
) -> Result<Results<GpuTensor<D>>> {
    let kernel = Rows::NormGrad { store: x.store(op)?, is_centered };
    let mut call = Call::new(op, kernel, &[Some(g), Some(x), weight, Some(reciprocal)])?;
    call.words.has_weight = weight.is_some().into();
    let mut results = call.result(x.shape(), x.dtype())?.result(x.shape(), DType::F32)?.run(x)?;
    let z = results.pop().expect("two results");
    let (rank, x_dtype) = (x.shape().ndim(), x.dtype());
    let axes: SmallVec<[usize; 8]> = (0..rank - 1).collect();
    let own = Shape::from(x.shape().dims()[rank - 1]);
    // Sums over rows are computed in `F32` and rounded once.
    let wide = |x: &GpuTensor<D>| Gpu::<D>::cast(x, DType::F32);
    let over_rows = |x: &GpuTensor<D>| {
        let sum = Gpu::<D>::reduce(ReduceOp::Sum, x, &axes)?;
        Gpu::<D>::reshape(&Gpu::<D>::cast(&sum, x_dtype)?, own)
    };
    let wide_g = wide(g)?;
    results.push(over_rows(&Gpu::<D>::binary(BinaryOp::Mul, &wide_g, &z)?)?);
    if is_centered {
        results.push(over_rows(&wide_g)?);
    }
    Ok(results)
}

/// Shape of one statistic for each row.
fn reduced<D: Driver>(x: &GpuTensor<D>) -> Shape {
    let last = x.shape().ndim() - 1;
    x.shape().with_axis(last, Some(1))
}

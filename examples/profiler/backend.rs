//! [`Profiled`]: a backend that counts what every operation of the CPU backend reads, writes and computes.
//!
//! A backend of one's own is a type with the methods of [`Backend`]. This one forwards each of them, so a program
//! that is generic over its backend runs on it unchanged, with the same bits:
//!
//! 1. `type Tensor` is that of the CPU backend, so that nothing has to be converted. (A backend with tensors of its
//!    own that forwards to another one converts the operands of fused ops by `FusedOp::try_map`.)
//! 2. Methods with a default, `fused` among them, are forwarded too. Without that they would be composed of the
//!    required ones, which is right but slow.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use swath::backend::cpu::CpuTensor;
use swath::ops::{
    BinaryOp, CompareOp, FusedOp, NumberTest, ReduceOp, ScanOp, TernaryOp, UnaryOp, UpdateOp,
};
use swath::{Arg, Backend, CpuBackend, DType, HostData, Layout, Result, Scalar, Shape, TensorData};

/// What was counted for an operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub calls: u64,
    /// Additions, multiplications, divisions, comparisons and function values: `exp` counts as one.
    pub operations: u64,
    /// Bytes of the operands and the results, if each is read or written once.
    pub bytes: u64,
    pub time: Duration,
}

static TALLIES: Mutex<BTreeMap<&'static str, Tally>> = Mutex::new(BTreeMap::new());

/// Takes the tallies of all operations since the last call.
pub fn take() -> BTreeMap<&'static str, Tally> {
    std::mem::take(&mut TALLIES.lock().expect("no operation panics"))
}

/// The CPU backend, counted.
#[derive(Clone, Debug)]
pub struct Profiled;

/// Bytes of a tensor. Elements that a broadcast repeats, along axes of stride 0, are counted once.
fn size(x: &CpuTensor) -> u64 {
    let axes = x.shape().dims().iter().zip(x.strides());
    let distinct: usize =
        axes.map(|(&extent, &stride)| if stride == 0 { extent.min(1) } else { extent }).product();
    (distinct * x.dtype().size()) as u64
}

fn note(op: &'static str, operations: usize, bytes: u64, time: Duration) {
    let mut tallies = TALLIES.lock().expect("no operation panics");
    let tally = tallies.entry(op).or_default();
    tally.calls += 1;
    tally.operations += operations as u64;
    tally.bytes += bytes;
    tally.time += time;
}

/// Runs an operation of one result and counts it. `each` is the number of operations per element of the result.
fn counted(
    op: &'static str,
    each: usize,
    read: u64,
    run: impl FnOnce() -> Result<CpuTensor>,
) -> Result<CpuTensor> {
    let start = Instant::now();
    let result = run()?;
    note(op, each * result.numel(), read + size(&result), start.elapsed());
    Ok(result)
}

/// Bytes of the tensors among element-wise operands.
fn read<const N: usize>(operands: [&Arg<'_, CpuTensor>; N]) -> u64 {
    operands.iter().filter_map(|x| x.tensor()).map(size).sum()
}

fn last(x: &CpuTensor) -> usize {
    x.shape().dims().last().copied().unwrap_or(1)
}

/// Number of pairs of a query and a key that it attends to, over all heads.
fn visible_pairs(q: &CpuTensor, k: &CpuTensor, causal: bool) -> usize {
    let [.., t, _] = *q.shape().dims() else { return 0 };
    let [.., s, _] = *k.shape().dims() else { return 0 };
    let heads: usize = q.shape().dims()[..q.shape().ndim() - 2].iter().product();
    // Query i sees the keys 0..=i + s - t.
    let seen = |i: usize| if causal { (i + s + 1).saturating_sub(t).min(s) } else { s };
    heads * (0..t).map(seen).sum::<usize>()
}

/// Operations of a fused op with these results. Products are counted exactly, with two operations for each
/// multiplication and its addition; their biases, activations and softmax are left out, as usual.
fn operations(op: &FusedOp<'_, CpuTensor>, results: &[CpuTensor]) -> usize {
    // Of every element of a weight, the multiplications per element of its first axis, the output channels.
    let per_channel = |weight: &CpuTensor| weight.numel() / weight.shape().dim(0).max(1);
    match *op {
        FusedOp::Linear { x, weight, .. } => 2 * x.numel() * weight.shape().dim(0),
        // Scores q·kᵀ and the sums of values.
        FusedOp::Attention { q, k, v, parameters, .. } => {
            2 * visible_pairs(q, k, parameters.causal) * (last(q) + last(v))
        }
        // The scores again, the gradients of q, of k and of v, and that of the weights.
        FusedOp::AttentionGrad { q, k, v, parameters, .. } => {
            2 * visible_pairs(q, k, parameters.causal) * (3 * last(q) + 2 * last(v))
        }
        FusedOp::Conv { weight, .. } => 2 * results[0].numel() * per_channel(weight),
        FusedOp::ConvTranspose { g, weight, .. } => 2 * g.numel() * per_channel(weight),
        FusedOp::ConvWeightGrad { g, .. } => 2 * g.numel() * per_channel(&results[0]),
        FusedOp::MaxPool { ref geometry, .. } | FusedOp::AvgPool { ref geometry, .. } => {
            results[0].numel() * geometry.taps()
        }
        FusedOp::AvgPoolGrad { g, ref geometry, .. } => g.numel() * geometry.taps(),
        FusedOp::Dot { a, .. } => 2 * a.numel(),
        // Of the others, the operations per element of their largest operand.
        FusedOp::Dropout { x, .. } => x.numel(),
        FusedOp::SinCos { x } => 2 * x.numel(),
        FusedOp::BiasActivation { x, .. } => 2 * x.numel(),
        FusedOp::BiasActivationGrad { x, .. } => 3 * x.numel(),
        // Maximum, difference, exponential, sum, quotient.
        FusedOp::Softmax { x, .. } => 5 * x.numel(),
        FusedOp::SoftmaxGrad { y, .. } => 4 * y.numel(),
        FusedOp::CrossEntropy { logits, .. } => 4 * logits.numel(),
        FusedOp::CrossEntropyGrad { logits, .. } => 4 * logits.numel(),
        // Mean, difference, square, variance, quotient, weight, bias.
        FusedOp::LayerNorm { x, .. } => 7 * x.numel(),
        FusedOp::LayerNormGrad { x, .. } => 13 * x.numel(),
        FusedOp::RmsNorm { x, .. } => 4 * x.numel(),
        FusedOp::RmsNormGrad { x, .. } => 10 * x.numel(),
        // An op of a later version.
        ref other => other.operands().iter().map(|x| x.numel()).max().unwrap_or(0),
    }
}

impl Backend for Profiled {
    type Tensor = CpuTensor;

    const NAME: &'static str = "profiled";

    fn from_host(data: HostData, shape: Shape) -> Result<CpuTensor> {
        counted("from_host", 0, 0, || CpuBackend::from_host(data, shape))
    }

    fn to_host(x: &CpuTensor) -> Result<HostData> {
        let start = Instant::now();
        let data = CpuBackend::to_host(x)?;
        note("to_host", 0, 2 * size(x), start.elapsed());
        Ok(data)
    }

    fn item(x: &CpuTensor) -> Result<Scalar> {
        CpuBackend::item(x)
    }

    fn full(shape: Shape, value: Scalar, dtype: DType) -> Result<CpuTensor> {
        counted("full", 0, 0, || CpuBackend::full(shape, value, dtype))
    }

    fn cast(x: &CpuTensor, dtype: DType) -> Result<CpuTensor> {
        counted("to_dtype", 1, size(x), || CpuBackend::cast(x, dtype))
    }

    fn view(x: &CpuTensor, layout: Layout) -> Result<CpuTensor> {
        CpuBackend::view(x, layout)
    }

    fn contiguous(x: &CpuTensor) -> Result<CpuTensor> {
        match x.layout().is_contiguous() {
            true => CpuBackend::contiguous(x),
            false => counted("contiguous", 0, size(x), || CpuBackend::contiguous(x)),
        }
    }

    fn unary<'a>(op: UnaryOp, x: impl Into<Arg<'a, CpuTensor>>) -> Result<CpuTensor> {
        let x = x.into();
        counted(op.name(), 1, read([&x]), || CpuBackend::unary(op, x))
    }

    fn binary<'a>(
        op: BinaryOp,
        a: impl Into<Arg<'a, CpuTensor>>,
        b: impl Into<Arg<'a, CpuTensor>>,
    ) -> Result<CpuTensor> {
        let (a, b) = (a.into(), b.into());
        counted(op.name(), 1, read([&a, &b]), || CpuBackend::binary(op, a, b))
    }

    fn ternary<'a>(
        op: TernaryOp,
        a: impl Into<Arg<'a, CpuTensor>>,
        b: impl Into<Arg<'a, CpuTensor>>,
        c: impl Into<Arg<'a, CpuTensor>>,
    ) -> Result<CpuTensor> {
        let (a, b, c) = (a.into(), b.into(), c.into());
        counted(op.name(), 2, read([&a, &b, &c]), || CpuBackend::ternary(op, a, b, c))
    }

    fn compare<'a>(
        op: CompareOp,
        a: impl Into<Arg<'a, CpuTensor>>,
        b: impl Into<Arg<'a, CpuTensor>>,
    ) -> Result<CpuTensor> {
        let (a, b) = (a.into(), b.into());
        counted(op.name(), 1, read([&a, &b]), || CpuBackend::compare(op, a, b))
    }

    fn test(op: NumberTest, x: &CpuTensor) -> Result<CpuTensor> {
        counted(op.name(), 1, size(x), || CpuBackend::test(op, x))
    }

    fn where_cond(mask: &CpuTensor, a: &CpuTensor, b: &CpuTensor) -> Result<CpuTensor> {
        let bytes = size(mask) + size(a) + size(b);
        counted("where_cond", 0, bytes, || CpuBackend::where_cond(mask, a, b))
    }

    fn reduce(op: ReduceOp, x: &CpuTensor, axes: &[usize]) -> Result<CpuTensor> {
        let start = Instant::now();
        let result = CpuBackend::reduce(op, x, axes)?;
        let each = match op {
            // Mean, difference, square, sum.
            ReduceOp::Variance { .. } | ReduceOp::Std { .. } => 4,
            // Maximum, difference, exponential, sum.
            ReduceOp::LogSumExp => 4,
            ReduceOp::Norm { .. } => 2,
            _ => 1,
        };
        note(op.name(), each * x.numel(), size(x) + size(&result), start.elapsed());
        Ok(result)
    }

    fn scan(op: ScanOp, x: &CpuTensor, axis: usize) -> Result<CpuTensor> {
        counted(op.name(), 1, size(x), || CpuBackend::scan(op, x, axis))
    }

    fn matmul(a: &CpuTensor, b: &CpuTensor) -> Result<CpuTensor> {
        counted("matmul", 2 * last(a), size(a) + size(b), || CpuBackend::matmul(a, b))
    }

    fn matmul_add(a: &CpuTensor, b: &CpuTensor, c: CpuTensor) -> Result<CpuTensor> {
        let bytes = size(a) + size(b) + size(&c);
        counted("matmul_add", 2 * last(a) + 1, bytes, || CpuBackend::matmul_add(a, b, c))
    }

    fn gather(x: &CpuTensor, axis: usize, index: &CpuTensor) -> Result<CpuTensor> {
        // As many elements of x are read as there are indices.
        let read = size(index) + (index.numel() * x.dtype().size()) as u64;
        counted("gather", 0, read, || CpuBackend::gather(x, axis, index))
    }

    fn scatter_add(
        x: &CpuTensor,
        axis: usize,
        index: &CpuTensor,
        source: &CpuTensor,
    ) -> Result<CpuTensor> {
        let start = Instant::now();
        let result = CpuBackend::scatter_add(x, axis, index, source)?;
        let bytes = size(x) + size(index) + size(source) + size(&result);
        note("scatter_add", source.numel(), bytes, start.elapsed());
        Ok(result)
    }

    fn cat(tensors: &[&CpuTensor], axis: usize) -> Result<CpuTensor> {
        let bytes = tensors.iter().map(|x| size(x)).sum();
        counted("cat", 0, bytes, || CpuBackend::cat(tensors, axis))
    }

    fn fused(op: &FusedOp<'_, CpuTensor>) -> Result<swath::backend::Results<CpuTensor>> {
        let start = Instant::now();
        let results = CpuBackend::fused(op)?;
        let read: u64 = op.operands().iter().map(|x| size(x)).sum();
        let written: u64 = results.iter().map(size).sum();
        note(op.name(), operations(op, &results), read + written, start.elapsed());
        Ok(results)
    }

    fn update(
        op: &UpdateOp,
        parameter: &mut CpuTensor,
        gradient: &CpuTensor,
        state: &mut [CpuTensor],
    ) -> Result<()> {
        let start = Instant::now();
        CpuBackend::update(op, parameter, gradient, state)?;
        // Everything is read; the parameter and the state are written.
        let bytes = 2 * size(parameter) + size(gradient) + 2 * state.iter().map(size).sum::<u64>();
        let each = match op {
            UpdateOp::Sgd { .. } => 6,
            // Both averages, the root, the quotient, the decay and the step.
            UpdateOp::Adam { .. } => 14,
            _ => 1,
        };
        note(op.name(), each * parameter.numel(), bytes, start.elapsed());
        Ok(())
    }

    fn read(
        shape: Shape,
        dtype: DType,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<CpuTensor> {
        counted("read", 0, 0, || CpuBackend::read(shape, dtype, fill))
    }
}

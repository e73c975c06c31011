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
    /// Additions, multiplications and function values.
    pub operations: u64,
    /// Bytes of the operands and the results.
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

fn size(x: &CpuTensor) -> u64 {
    (x.numel() * x.dtype().size()) as u64
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

/// Number of multiplications and additions of a fused op.
fn operations(op: &FusedOp<'_, CpuTensor>) -> usize {
    let last = |x: &CpuTensor| x.shape().dims().last().copied().unwrap_or(1);
    match *op {
        FusedOp::Linear { x, weight, .. } => 2 * x.numel() * weight.shape().dim(0),
        FusedOp::Attention { q, k, v, .. } => {
            let keys = k.shape().dim(k.shape().ndim() - 2);
            2 * q.numel() * keys + 2 * q.numel() / last(q).max(1) * keys * last(v)
        }
        FusedOp::AttentionGrad { q, k, v, .. } => {
            let keys = k.shape().dim(k.shape().ndim() - 2);
            let rows = q.numel() / last(q).max(1);
            2 * rows * keys * (3 * last(q) + 2 * last(v))
        }
        FusedOp::Conv { x, weight, ref convolution, .. } => {
            let windows = x.numel() / x.shape().dim(1).max(1);
            let strides: usize = convolution.stride.iter().product();
            2 * windows / strides.max(1) * weight.numel()
        }
        FusedOp::ConvTranspose { g, weight, .. } => {
            2 * g.numel() / g.shape().dim(1).max(1) * weight.numel()
        }
        FusedOp::ConvWeightGrad { g, x, kernel, ref convolution } => {
            let places: usize = kernel.iter().product();
            2 * g.numel() * x.shape().dim(1) / convolution.groups.max(1) * places
        }
        FusedOp::MaxPool { x, .. } | FusedOp::AvgPool { x, .. } => x.numel(),
        FusedOp::Dot { a, .. } => 2 * a.numel(),
        // A few operations for each element of the largest operand: rows are read once or twice.
        ref op => 5 * op.operands().iter().map(|x| x.numel()).max().unwrap_or(0),
    }
}

impl Backend for Profiled {
    type Tensor = CpuTensor;

    const NAME: &'static str = "profiled";

    fn from_host(data: HostData, shape: Shape) -> Result<CpuTensor> {
        counted("from_host", 0, 0, || CpuBackend::from_host(data, shape))
    }

    fn to_host(x: &CpuTensor) -> Result<HostData> {
        CpuBackend::to_host(x)
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
        note(op.name(), x.numel(), size(x) + size(&result), start.elapsed());
        Ok(result)
    }

    fn scan(op: ScanOp, x: &CpuTensor, axis: usize) -> Result<CpuTensor> {
        counted(op.name(), 1, size(x), || CpuBackend::scan(op, x, axis))
    }

    fn matmul(a: &CpuTensor, b: &CpuTensor) -> Result<CpuTensor> {
        let depth = a.shape().dims().last().copied().unwrap_or(1);
        counted("matmul", 2 * depth, size(a) + size(b), || CpuBackend::matmul(a, b))
    }

    fn matmul_add(a: &CpuTensor, b: &CpuTensor, c: CpuTensor) -> Result<CpuTensor> {
        let depth = a.shape().dims().last().copied().unwrap_or(1);
        let bytes = size(a) + size(b) + size(&c);
        counted("matmul_add", 2 * depth + 1, bytes, || CpuBackend::matmul_add(a, b, c))
    }

    fn gather(x: &CpuTensor, axis: usize, index: &CpuTensor) -> Result<CpuTensor> {
        counted("gather", 0, size(index), || CpuBackend::gather(x, axis, index))
    }

    fn scatter_add(
        x: &CpuTensor,
        axis: usize,
        index: &CpuTensor,
        source: &CpuTensor,
    ) -> Result<CpuTensor> {
        let bytes = size(x) + size(index) + size(source);
        counted("scatter_add", 1, bytes, || CpuBackend::scatter_add(x, axis, index, source))
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
        note(op.name(), operations(op), read + written, start.elapsed());
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
        note(op.name(), 10 * parameter.numel(), bytes, start.elapsed());
        Ok(())
    }

    fn read(
        shape: Shape,
        dtype: DType,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<CpuTensor> {
        CpuBackend::read(shape, dtype, fill)
    }
}

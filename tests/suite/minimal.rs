//! A backend with only the required methods: all other methods of a [`Backend`], and every fused op, are
//! composed of them. The shared tests check the composites in every dtype within the bounds of kernels, times
//! [`Tested::SLACK`].

use crate::testing::Tested;
use swath::backend::cpu::CpuTensor;
use swath::ops::{BinaryOp, CompareOp, ReduceOp, UnaryOp};
use swath::{Arg, Backend, CpuBackend, DType, HostData, Layout, Result, Scalar, Shape};

#[derive(Clone, Debug)]
pub struct Minimal;

impl Tested for Minimal {
    const SLACK: f64 = 4.0;
}

impl Backend for Minimal {
    type Tensor = CpuTensor;

    const NAME: &'static str = "minimal";

    fn from_host(data: HostData, shape: Shape) -> Result<CpuTensor> {
        CpuBackend::from_host(data, shape)
    }

    fn to_host(x: &CpuTensor) -> Result<HostData> {
        CpuBackend::to_host(x)
    }

    fn full(shape: Shape, value: Scalar, dtype: DType) -> Result<CpuTensor> {
        CpuBackend::full(shape, value, dtype)
    }

    fn cast(x: &CpuTensor, dtype: DType) -> Result<CpuTensor> {
        CpuBackend::cast(x, dtype)
    }

    fn view(x: &CpuTensor, layout: Layout) -> Result<CpuTensor> {
        CpuBackend::view(x, layout)
    }

    fn contiguous(x: &CpuTensor) -> Result<CpuTensor> {
        CpuBackend::contiguous(x)
    }

    fn unary<'a>(op: UnaryOp, x: impl Into<Arg<'a, CpuTensor>>) -> Result<CpuTensor> {
        CpuBackend::unary(op, x)
    }

    fn binary<'a>(
        op: BinaryOp,
        a: impl Into<Arg<'a, CpuTensor>>,
        b: impl Into<Arg<'a, CpuTensor>>,
    ) -> Result<CpuTensor> {
        CpuBackend::binary(op, a, b)
    }

    fn compare<'a>(
        op: CompareOp,
        a: impl Into<Arg<'a, CpuTensor>>,
        b: impl Into<Arg<'a, CpuTensor>>,
    ) -> Result<CpuTensor> {
        CpuBackend::compare(op, a, b)
    }

    fn reduce(op: ReduceOp, x: &CpuTensor, axes: &[usize]) -> Result<CpuTensor> {
        CpuBackend::reduce(op, x, axes)
    }

    fn matmul(a: &CpuTensor, b: &CpuTensor) -> Result<CpuTensor> {
        CpuBackend::matmul(a, b)
    }

    fn gather(x: &CpuTensor, axis: usize, index: &CpuTensor) -> Result<CpuTensor> {
        CpuBackend::gather(x, axis, index)
    }

    fn scatter_add(
        x: &CpuTensor,
        axis: usize,
        index: &CpuTensor,
        source: &CpuTensor,
    ) -> Result<CpuTensor> {
        CpuBackend::scatter_add(x, axis, index, source)
    }

    fn cat(tensors: &[&CpuTensor], axis: usize) -> Result<CpuTensor> {
        CpuBackend::cat(tensors, axis)
    }
}

crate::testing::backend_suite!(Minimal);

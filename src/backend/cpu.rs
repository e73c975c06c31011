//! [`CpuBackend`]: splits layouts into contiguous runs for the kernels of `swath-kernels`, with the threads
//! and the recycled memory of `runtime`.
//!
//! | file | content |
//! |---|---|
//! | `tensor` | [`CpuTensor`]: storage and layout |
//! | `walk` | iterates over operands of any layout and a contiguous result |
//! | `elementwise`, `table`, `choose`, `cast`, `copy`, `index`, `reduce`, `scan`, `order`, `matmul` | the operations |
//! | `blocks` | tensors assembled of parts of another, and slices that are assigned |
//! | `fused` | fused ops |
//! | `fft` | Fourier transforms |
//! | `rows`, `working` | the driver of kernels of whole rows, and the types that they compute in |
//! | `update` | steps of optimizers |
//! | `blas` | calls of a system BLAS |

pub(crate) mod blas;
mod blocks;
mod cast;
mod choose;
mod copy;
mod elementwise;
#[cfg(feature = "fft")]
pub(crate) mod fft;
mod fused;
mod index;
mod matmul;
mod order;
mod parts;
mod reduce;
mod rows;
mod scan;
mod strips;
mod table;
mod tensor;
#[cfg(test)]
mod tests;
mod update;
mod walk;
mod working;
mod written;

pub(crate) use cast::{map_elements, map_f64};
pub(crate) use elementwise::integers;
#[cfg(feature = "pulp")]
pub(super) use elementwise::simd_op;
pub(crate) use index::scatter_with;
pub use tensor::CpuTensor;
use tensor::Output;

use super::{Arg, Backend, Reducer, Results, TensorData};
use crate::dtype::{DType, HostData, IS_LITTLE_ENDIAN, Scalar};
use crate::engine::names::*;
use crate::engine::{engine, engine_methods};
use crate::error::Result;
use crate::layout::{AxisPart, Layout};
use crate::ops::{
    BinaryOp, CompareOp, Extremum, FusedOp, NumberTest, OrderOp, ReduceOp, ScanOp, TernaryOp,
    UnaryOp, UpdateOp,
};
use crate::shape::Shape;

/// The CPU, with the kernels of `swath-kernels`.
#[derive(Clone, Debug)]
pub struct CpuBackend;

impl Backend for CpuBackend {
    type Tensor = CpuTensor;

    const NAME: &'static str = "cpu";

    fn from_host(data: HostData, shape: Shape) -> Result<CpuTensor> {
        cast::from_host(&data, &shape)
    }

    fn adopt_host(data: HostData, shape: Shape) -> Result<CpuTensor> {
        cast::adopt_host(data, &shape)
    }

    fn to_host(x: &CpuTensor) -> Result<HostData> {
        cast::to_host(x)
    }

    fn item(x: &CpuTensor) -> Result<Scalar> {
        cast::item(x)
    }

    fn full(shape: Shape, value: Scalar, dtype: DType) -> Result<CpuTensor> {
        cast::full(&shape, value, dtype)
    }

    fn cast(x: &CpuTensor, dtype: DType) -> Result<CpuTensor> {
        cast::cast(x, dtype)
    }

    fn view(x: &CpuTensor, layout: Layout) -> Result<CpuTensor> {
        layout.check("view", x.buffer().bytes() / x.dtype().size())?;
        Ok(x.with_layout(layout))
    }

    fn contiguous(x: &CpuTensor) -> Result<CpuTensor> {
        copy::contiguous("contiguous", x)
    }

    fn unary<'a>(op: UnaryOp, x: impl Into<Arg<'a, CpuTensor>>) -> Result<CpuTensor> {
        elementwise::unary(op, [x.into()])
    }

    fn binary<'a>(
        op: BinaryOp,
        a: impl Into<Arg<'a, CpuTensor>>,
        b: impl Into<Arg<'a, CpuTensor>>,
    ) -> Result<CpuTensor> {
        elementwise::binary(op, [a.into(), b.into()])
    }

    fn binary_assign(op: BinaryOp, x: &mut CpuTensor, b: Arg<'_, CpuTensor>) -> Result<()> {
        elementwise::assign(op, x, b)
    }

    fn ternary<'a>(
        op: TernaryOp,
        a: impl Into<Arg<'a, CpuTensor>>,
        b: impl Into<Arg<'a, CpuTensor>>,
        c: impl Into<Arg<'a, CpuTensor>>,
    ) -> Result<CpuTensor> {
        elementwise::ternary(op, [a.into(), b.into(), c.into()])
    }

    fn compare<'a>(
        op: CompareOp,
        a: impl Into<Arg<'a, CpuTensor>>,
        b: impl Into<Arg<'a, CpuTensor>>,
    ) -> Result<CpuTensor> {
        choose::compare(op, a.into(), b.into())
    }

    fn test(op: NumberTest, x: &CpuTensor) -> Result<CpuTensor> {
        choose::test(op, x)
    }

    fn where_cond(mask: &CpuTensor, a: &CpuTensor, b: &CpuTensor) -> Result<CpuTensor> {
        choose::where_cond(mask, a, b)
    }

    #[inline(always)]
    fn reduce(op: ReduceOp, x: &CpuTensor, axes: &[usize]) -> Result<CpuTensor> {
        reduce::function(op)(op, x, axes)
    }

    #[inline(always)]
    fn reducer(op: ReduceOp) -> Reducer<CpuTensor> {
        Reducer { op, run: reduce::function(op) }
    }

    fn scan(op: ScanOp, x: &CpuTensor, axis: usize) -> Result<CpuTensor> {
        scan::scan(op, x, axis)
    }

    fn arg_scan(op: Extremum, x: &CpuTensor, axis: usize) -> Result<CpuTensor> {
        order::arg_scan(op, x, axis)
    }

    fn order(op: OrderOp, x: &CpuTensor, axis: usize) -> Result<(CpuTensor, CpuTensor)> {
        order::order(op, x, axis)
    }

    fn search_sorted(sorted: &CpuTensor, values: &CpuTensor, right: bool) -> Result<CpuTensor> {
        order::search_sorted(sorted, values, right)
    }

    fn matmul(a: &CpuTensor, b: &CpuTensor) -> Result<CpuTensor> {
        matmul::matmul(a, b)
    }

    fn matmul_add(a: &CpuTensor, b: &CpuTensor, c: CpuTensor) -> Result<CpuTensor> {
        matmul::matmul_add(a, b, c)
    }

    fn gather(x: &CpuTensor, axis: usize, index: &CpuTensor) -> Result<CpuTensor> {
        index::gather(x, axis, index)
    }

    fn scatter_add(
        x: &CpuTensor,
        axis: usize,
        index: &CpuTensor,
        source: &CpuTensor,
    ) -> Result<CpuTensor> {
        index::scatter_add(x, axis, index, source)
    }

    fn scatter(
        x: &CpuTensor,
        axis: usize,
        index: &CpuTensor,
        source: &CpuTensor,
    ) -> Result<CpuTensor> {
        index::scatter(x, axis, index, source)
    }

    fn slice_assign(x: &mut CpuTensor, items: &[SliceItem], source: &CpuTensor) -> Result<()> {
        blocks::slice_assign(x, items, source)
    }

    fn assemble(x: &CpuTensor, axes: &[Vec<AxisPart>], fill: Scalar) -> Result<CpuTensor> {
        blocks::assemble(x, axes, fill)
    }

    fn cat(tensors: &[&CpuTensor], axis: usize) -> Result<CpuTensor> {
        copy::cat(tensors, axis)
    }

    #[inline(always)]
    fn fused(op: &FusedOp<'_, CpuTensor>) -> Result<Results<CpuTensor>> {
        fused::fused(op)
    }

    fn update(
        op: &UpdateOp,
        parameter: &mut CpuTensor,
        gradient: &CpuTensor,
        state: &mut [CpuTensor],
    ) -> Result<()> {
        update::update(op, parameter, gradient, state)
    }

    fn read(
        shape: Shape,
        dtype: DType,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<CpuTensor> {
        cast::read(&shape, dtype, fill)
    }

    fn host_bytes(x: &CpuTensor) -> Option<&[u8]> {
        (IS_LITTLE_ENDIAN && x.is_contiguous()).then(|| x.run_bytes())
    }

    engine!(engine_methods, Self);
}

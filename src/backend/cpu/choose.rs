//! Comparisons, number tests, and the selection between two tensors by a mask.
//!
//! Walks over operands are compiled once per element size; kernels receive the elements' types.

use bytemuck::Pod;
use swath_kernels::{self as kernels, Arg as Run, Block, BlockArg, Comparison, Place};

use super::cast::{cast, ordered, ordered_arg};
use super::copy::{self, for_size};
use super::elementwise::{CHUNK, Inputs, part};
use super::tensor::{CpuTensor, Output};
use super::walk::{Walk, write_chunks};
use crate::backend::{Arg, TensorData, check_dtype, check_same_shape, common};
use crate::dtype::{DType, Element, for_dtype};
use crate::error::Result;
use crate::ops::{CompareOp, NumberTest};
use crate::shape::Shape;

/// A kernel on rows of operands that are given as bits.
type BitsKernel<'f, Bits, const N: usize> =
    &'f (dyn Fn([BlockArg<Bits>; N], Block, &mut Place<u8>) + Sync);

pub(super) fn compare(
    op: CompareOp,
    a: Arg<'_, CpuTensor>,
    b: Arg<'_, CpuTensor>,
) -> Result<CpuTensor> {
    let (shape, dtype) = common(op.name(), &[&a, &b])?;
    let comparison = match op {
        CompareOp::Eq => Comparison::Eq,
        CompareOp::Ne => Comparison::Ne,
        CompareOp::Lt => Comparison::Lt,
        CompareOp::Le => Comparison::Le,
        CompareOp::Gt => Comparison::Gt,
        CompareOp::Ge => Comparison::Ge,
    };
    for_dtype!(dtype, T => {
        type Stored = <T as Element>::Stored;
        let inputs = Inputs::<Stored, 2>::new::<T>([&a, &b]).into_bits();
        run(op.name(), inputs, shape, &|[a, b], block, y| {
            kernels::compare_block::<Stored>(comparison, a.cast(), b.cast(), block, y);
        })
    }, _ => compare(op, ordered_arg(&a, dtype)?, ordered_arg(&b, dtype)?))
}

pub(super) fn test(op: NumberTest, tensor: &CpuTensor) -> Result<CpuTensor> {
    let test = match op {
        NumberTest::IsNan => kernels::NumberTest::IsNan,
        NumberTest::IsInf => kernels::NumberTest::IsInf,
        NumberTest::IsFinite => kernels::NumberTest::IsFinite,
    };
    let x = Arg::Ref(tensor);
    let (shape, dtype) = common(op.name(), &[&x])?;
    for_dtype!(dtype, T => {
        type Stored = <T as Element>::Stored;
        let inputs = Inputs::<Stored, 1>::new::<T>([&x]).into_bits();
        run(op.name(), inputs, shape, &|[x], block, y| {
            kernels::test_numbers_block::<Stored>(test, x.cast(), block, y);
        })
    }, _ => self::test(op, &ordered(tensor)?))
}

/// Runs a kernel whose results are booleans.
fn run<Bits: Pod + Send + Sync, const N: usize>(
    op: &'static str,
    inputs: Inputs<'_, Bits, N>,
    shape: &Shape,
    kernel: BitsKernel<'_, Bits, N>,
) -> Result<CpuTensor> {
    let mut out = Output::new(op, shape, DType::Bool)?;
    let cost = copy::cost::<Bits>();
    if let Some(runs) = inputs.runs() {
        write_chunks(out.elements::<u8>(), CHUNK, cost, &|first, y| {
            let parts = runs.map(|run| part(run, first * CHUNK, y.len()));
            kernel(parts.each_ref().map(Run::as_row), Block::row(y.len()), y);
        });
        return Ok(out.finish());
    }
    let (walk, walked) = inputs.walk(op, shape)?;
    walk.run(out.parts::<u8>(op), cost, &|fetch, y| {
        let shape = fetch.shape();
        kernel(fetch.rows(&walked), shape, y);
    });
    Ok(out.finish())
}

pub(super) fn where_cond(mask: &CpuTensor, a: &CpuTensor, b: &CpuTensor) -> Result<CpuTensor> {
    let op = "where_cond";
    check_dtype(op, a, b.dtype())?;
    check_same_shape(op, mask, a)?;
    check_same_shape(op, a, b)?;
    let mut out = Output::new(op, a.shape(), a.dtype())?;
    // The kernel only accepts masks of booleans or bytes.
    let mask = &match mask.dtype() {
        DType::Bool | DType::U8 => mask.clone(),
        _ => cast(mask, DType::Bool)?,
    };
    for_size!(a.dtype().size(), T => select_into::<T>(op, mask, a, b, &mut out));
    Ok(out.finish())
}

fn select_into<T: kernels::Select + Send + Sync>(
    op: &'static str,
    mask: &CpuTensor,
    a: &CpuTensor,
    b: &CpuTensor,
    out: &mut Output,
) {
    let cost = copy::cost::<T>();
    if mask.is_contiguous() && a.is_contiguous() && b.is_contiguous() {
        let (mask, a, b) = (mask.run::<u8>(), a.run::<T>(), b.run::<T>());
        write_chunks(out.elements::<T>(), CHUNK, cost, &|first, y| {
            let range = first * CHUNK..first * CHUNK + y.len();
            let (a, b) = (Run::Slice(&a[range.clone()]), Run::Slice(&b[range.clone()]));
            kernels::select(&mask[range], a, b, y);
        });
        return;
    }
    let walk = Walk::new(&[mask.layout(), a.layout(), b.layout()]);
    let mask = [walk.operand(0, mask.elements::<u8>())];
    let values = [walk.operand(1, a.elements::<T>()), walk.operand(2, b.elements::<T>())];
    walk.run(out.parts::<T>(op), cost, &|fetch, y| {
        let shape = fetch.shape();
        let ([mask], [a, b]) = fetch.rows_of_two_types(&mask, &values);
        kernels::select_block(mask, a, b, shape, y);
    });
}

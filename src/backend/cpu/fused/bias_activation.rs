//! Bias and activation in pieces that fit in L1. `x + bias` is not stored; the backward pass recomputes it.

use std::array::from_fn;

use smallvec::{SmallVec, smallvec};
use swath_kernels::{Arg as Run, Float};

use super::super::elementwise::CHUNK;
use super::super::matmul::ACTIVATION_COST;
use super::super::table::{binary_kernel, unary_kernel};
use super::super::tensor::{CpuTensor, Output};
use super::super::working::{Working, for_float};
use super::super::{CpuBackend, cast, copy};
use super::{columns, work};
use crate::backend::{Backend, Results, TensorData};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::ops::{BinaryOp, UnaryOp};
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::{Band, for_each_band};

/// Picoseconds per `f32`.
const BACKWARD_COST: usize = 700;

/// Gradient of the activation, and true if it is a function of the activation's output; `None` without a kernel.
fn gradient_of(activation: UnaryOp) -> Option<(BinaryOp, bool)> {
    Some(match activation {
        UnaryOp::Relu => (BinaryOp::ReluGrad, false),
        UnaryOp::Gelu => (BinaryOp::GeluGrad, false),
        UnaryOp::GeluTanh => (BinaryOp::GeluTanhGrad, false),
        UnaryOp::Silu => (BinaryOp::SiluGrad, false),
        UnaryOp::Sigmoid => (BinaryOp::SigmoidGrad, true),
        UnaryOp::Tanh => (BinaryOp::TanhGrad, true),
        UnaryOp::Relu6 => (BinaryOp::Relu6Grad, true),
        UnaryOp::Selu => (BinaryOp::SeluGrad, false),
        UnaryOp::Mish => (BinaryOp::MishGrad, false),
        UnaryOp::Softplus => (BinaryOp::SoftplusGrad, false),
        UnaryOp::LogSigmoid => (BinaryOp::LogSigmoidGrad, false),
        UnaryOp::Hardsigmoid => (BinaryOp::HardsigmoidGrad, false),
        UnaryOp::Hardswish => (BinaryOp::HardswishGrad, false),
        _ => return None,
    })
}

/// Calls `f(inputs, bias, z, y)` on pieces of rows `[…, n]`, which threads share, and returns y. `z` is
/// scratch memory of the length of a piece.
fn in_pieces<T: Working, const I: usize>(
    op: &'static str,
    each: usize,
    inputs: [&CpuTensor; I],
    bias: &CpuTensor,
    f: impl Fn([&[T::Wide]; I], &[T::Wide], &mut [T::Wide], &mut [T::Wide]) + Sync,
) -> Result<Results<CpuTensor>> {
    let cols = columns(inputs[0]);
    let bias = cast::cast(&copy::contiguous(op, bias)?, <T::Wide as Element>::DTYPE)?;
    // A block is several short rows, or one long row that is cut into several pieces.
    let len = cols * (CHUNK / cols.max(1)).max(1);
    let mut repeated = Buffer::scratch(len * size_of::<T::Wide>());
    let repeated = &mut repeated.as_slice_mut::<T::Wide>()[..len];
    repeated.chunks_exact_mut(cols.max(1)).for_each(|row| row.copy_from_slice(bias.run()));
    let repeated = &*repeated;

    let mut out = Output::new(op, inputs[0].shape(), T::DTYPE)?;
    let x: SmallVec<[CpuTensor; 2]> =
        inputs.iter().map(|x| copy::contiguous(op, x)).collect::<Result<_>>()?;
    let x: [&[T]; I] = from_fn(|i| x[i].run());
    let (count, cost) = work::<T>(inputs[0], each);
    for_each_band(count, cost, Band::new(out.elements::<T>(), cols), |rows, y| {
        let x = x.map(|x| &x[rows.start * cols..rows.end * cols]);
        let zero = <T::Wide as Float>::ZERO;
        let (mut x_wide, [mut y_wide, mut z]) = ([[zero; CHUNK]; I], [[zero; CHUNK]; 2]);
        for (block, y) in y.chunks_mut(len.max(1)).enumerate() {
            for (i, y) in y.chunks_mut(CHUNK).enumerate() {
                let (first, count) = (i * CHUNK, y.len());
                let mut spaces = x_wide.iter_mut();
                let x = x.map(|x| {
                    let space = spaces.next().map_or(&mut [][..], |space| space);
                    T::widened(&x[block * len + first..][..count], space)
                });
                let bias = &repeated[first..first + count];
                f(x, bias, &mut z[..count], T::place(y, &mut y_wide));
                T::round(&y_wide, y);
            }
        }
    });
    Ok(smallvec![out.finish()])
}

pub(super) fn forward(
    x: &CpuTensor,
    bias: &CpuTensor,
    activation: UnaryOp,
) -> Result<Results<CpuTensor>> {
    let op = "bias_activation";
    let (f, add) = (unary_kernel(activation), binary_kernel(BinaryOp::Add));
    for_float!(op, x, T => in_pieces::<T, 1>(op, ACTIVATION_COST, [x], bias, |[x], bias, _, y| {
        add.run([Run::Slice(x), Run::Slice(bias)], y);
        f.run_in_place([None], y);
    }))
}

pub(super) fn backward(
    g: &CpuTensor,
    x: &CpuTensor,
    bias: &CpuTensor,
    activation: UnaryOp,
) -> Result<Results<CpuTensor>> {
    let op = "bias_activation_grad";
    let unsupported = Error::Unsupported { op, backend: CpuBackend::NAME };
    let (slope, from_output) = gradient_of(activation).ok_or(unsupported)?;
    let f = unary_kernel(activation);
    let (slope, add) = (binary_kernel(slope), binary_kernel(BinaryOp::Add));
    for_float!(op, x, T => in_pieces::<T, 2>(op, BACKWARD_COST, [x, g], bias, |[x, g], bias, z, dx| {
        add.run([Run::Slice(x), Run::Slice(bias)], z);
        if from_output {
            f.run_in_place([None], z);
        }
        slope.run([Run::Slice(g), Run::Slice(z)], dx);
    }))
}

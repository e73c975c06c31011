//! A bias and the function after it, in pieces that stay in the first-level cache: x + bias is never
//! stored, for the backward pass it is computed again.

use smallvec::smallvec;
use swath_kernels::{Arg as Run, Float};

use super::super::elementwise::CHUNK;
use super::super::memory::Buffer;
use super::super::parallel::{Band, Cost, for_each_band};
use super::super::table::{binary_kernel, unary_kernel};
use super::super::{CpuTensor, Output, Results, cast, copy};
use super::working::{Wide, Working, for_float};
use super::{check_dtype, check_shape, columns, operand};
use crate::backend::TensorData;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::ops::{Activation, BinaryOp};

/// Of an `f32`; an `f64` takes about twice as long.
pub(in super::super) const FORWARD_COST: usize = 500;
const BACKWARD_COST: usize = 700;

/// The function's gradient, and whether that is computed from the function's output.
fn gradient_of(activation: Activation) -> (BinaryOp, bool) {
    match activation {
        Activation::Relu => (BinaryOp::ReluGrad, false),
        Activation::Gelu => (BinaryOp::GeluGrad, false),
        Activation::GeluTanh => (BinaryOp::GeluTanhGrad, false),
        Activation::Silu => (BinaryOp::SiluGrad, false),
        Activation::Sigmoid => (BinaryOp::SigmoidGrad, true),
        Activation::Tanh => (BinaryOp::TanhGrad, true),
    }
}

/// The bias as often as a piece needs: several short rows are one piece, a long row is several.
struct Bias {
    repeated: Buffer,
    cols: usize,
    len: usize,
}

impl Bias {
    fn new<T: Working>(op: &'static str, x: &CpuTensor, bias: &CpuTensor) -> Result<Self> {
        let cols = columns(op, x)?;
        check_dtype(op, bias, x.dtype())?;
        if bias.shape().dims() != [cols] {
            return Err(Error::ShapeMismatch { op, lhs: *x.shape(), rhs: *bias.shape() });
        }
        let bias = cast::cast(&copy::contiguous(op, bias)?, <T::Wide as Element>::DTYPE)?;
        let len = cols * (CHUNK / cols.max(1)).max(1);
        let mut repeated = Buffer::scratch(len * size_of::<T::Wide>());
        let rows = repeated.as_slice_mut::<T::Wide>()[..len].chunks_exact_mut(cols.max(1));
        rows.for_each(|row| row.copy_from_slice(bias.run()));
        Ok(Bias { repeated, cols, len })
    }

    /// Calls `f(start, bias)` for pieces of whole rows of `len` elements in all.
    fn for_each_piece<W: Wide>(&self, len: usize, mut f: impl FnMut(usize, &[W])) {
        let bias = &self.repeated.as_slice::<W>()[..self.len];
        for rows in (0..len).step_by(self.len.max(1)) {
            let count = self.len.min(len - rows);
            for start in (0..count).step_by(CHUNK) {
                f(rows + start, &bias[start..count.min(start + CHUNK)]);
            }
        }
    }
}

pub(super) fn forward(
    operands: &[Option<&CpuTensor>],
    activation: Activation,
) -> Result<Results<CpuTensor>> {
    let op = "bias_activation";
    let (x, bias) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    for_float!(op, x, T => rows::<T>(op, x, bias, activation))
}

fn rows<T: Working>(
    op: &'static str,
    x: &CpuTensor,
    bias: &CpuTensor,
    activation: Activation,
) -> Result<Results<CpuTensor>> {
    let bias = Bias::new::<T>(op, x, bias)?;
    let (f, add) = (unary_kernel(activation.op()), binary_kernel(BinaryOp::Add));
    let mut out = Output::new(op, x.shape(), x.dtype())?;
    let x = copy::contiguous(op, x)?;
    let (x, cols) = (x.run::<T>(), bias.cols);
    let rows = x.len().checked_div(cols).unwrap_or(0);
    let cost = Cost(FORWARD_COST).times(cols * size_of::<T::Wide>() / 4);
    for_each_band(rows, cost, Band::new(out.elements::<T>(), cols), |range, y| {
        let x = &x[range.start * cols..range.end * cols];
        let mut wide = [[<T::Wide as Float>::ZERO; CHUNK]; 2];
        let [x_wide, y_wide] = &mut wide;
        bias.for_each_piece::<T::Wide>(y.len(), |start, bias| {
            let x = T::read(&x[start..][..bias.len()], x_wide);
            T::write(&mut y[start..][..bias.len()], y_wide, |y| {
                add.run([Run::Slice(x), Run::Slice(bias)], y);
                f.run_in_place([None], y);
            });
        });
    });
    Ok(smallvec![out.finish()])
}

pub(super) fn backward(
    operands: &[Option<&CpuTensor>],
    activation: Activation,
) -> Result<Results<CpuTensor>> {
    let op = "bias_activation_grad";
    let (g, x) = (operand(op, operands, 0)?, operand(op, operands, 1)?);
    let bias = operand(op, operands, 2)?;
    check_dtype(op, g, x.dtype())?;
    check_shape(op, g, x.shape())?;
    for_float!(op, x, T => gradient::<T>(op, [g, x, bias], activation))
}

fn gradient<T: Working>(
    op: &'static str,
    [g, x, bias]: [&CpuTensor; 3],
    activation: Activation,
) -> Result<Results<CpuTensor>> {
    let bias = Bias::new::<T>(op, x, bias)?;
    let (slope, from_output) = gradient_of(activation);
    let f = unary_kernel(activation.op());
    let (slope, add) = (binary_kernel(slope), binary_kernel(BinaryOp::Add));
    let mut out = Output::new(op, x.shape(), x.dtype())?;
    let (g, x) = (copy::contiguous(op, g)?, copy::contiguous(op, x)?);
    let (g, x, cols) = (g.run::<T>(), x.run::<T>(), bias.cols);
    let rows = x.len().checked_div(cols).unwrap_or(0);
    let cost = Cost(BACKWARD_COST).times(cols * size_of::<T::Wide>() / 4);
    for_each_band(rows, cost, Band::new(out.elements::<T>(), cols), |range, dx| {
        let span = range.start * cols..range.end * cols;
        let (g, x) = (&g[span.clone()], &x[span]);
        let mut wide = [[<T::Wide as Float>::ZERO; CHUNK]; 4];
        let [g_wide, x_wide, z, dx_wide] = &mut wide;
        bias.for_each_piece::<T::Wide>(dx.len(), |start, bias| {
            let len = bias.len();
            let g = T::read(&g[start..][..len], g_wide);
            let x = T::read(&x[start..][..len], x_wide);
            let z = &mut z[..len];
            add.run([Run::Slice(x), Run::Slice(bias)], z);
            if from_output {
                f.run_in_place([None], z);
            }
            T::write(&mut dx[start..][..len], dx_wide, |dx| {
                slope.run([Run::Slice(g), Run::Slice(z)], dx);
            });
        });
    });
    Ok(smallvec![out.finish()])
}

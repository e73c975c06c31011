//! Steps of optimizers: one pass over parameter, gradient and state, in place.
//!
//! A tensor whose storage something else shares is copied first, which leaves the other as it was.
//! 16-bit floats are widened, changed and rounded a piece at a time.

use swath_kernels::{self as kernels, Adam, Sgd};

use super::elementwise::CHUNK;
use super::working::{Working, for_float};
use super::{CpuTensor, Output, copy};
use crate::backend::{TensorData, check_step};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::ops::UpdateOp;
use crate::runtime::parallel::{Band, Cost, for_each_band};

/// Of one element of one of the tensors; memory takes most of it.
const COST: usize = 250;

pub(super) fn update(
    op: &UpdateOp,
    parameter: &mut CpuTensor,
    gradient: &CpuTensor,
    state: &mut [CpuTensor],
) -> Result<()> {
    let name = op.name();
    check_step(op)?;
    if state.len() != op.states() {
        let reason = format!("{} state tensors, not {}", state.len(), op.states());
        return Err(Error::InvalidArgument { op: name, reason });
    }
    for other in state.iter().chain([gradient]) {
        if other.shape() != parameter.shape() {
            let (lhs, rhs) = (*parameter.shape(), *other.shape());
            return Err(Error::ShapeMismatch { op: name, lhs, rhs });
        }
        if other.dtype() != parameter.dtype() {
            let (lhs, rhs, shape) = (parameter.dtype(), other.dtype(), *parameter.shape());
            return Err(Error::DTypeMismatch { op: name, lhs, rhs, shape });
        }
    }
    for_float!(name, parameter, T => step::<T>(op, parameter, gradient, state))
}

fn step<T: Working>(
    op: &UpdateOp,
    parameter: &mut CpuTensor,
    gradient: &CpuTensor,
    state: &mut [CpuTensor],
) -> Result<()> {
    let name = op.name();
    let gradient = copy::contiguous(name, gradient)?;
    // All are made writable before one is written: an error changes nothing.
    make_writable(name, parameter)?;
    state.iter_mut().try_for_each(|state| make_writable(name, state))?;
    let g = gradient.run::<T>();
    let p = writable::<T>(parameter);
    match (*op, state) {
        (UpdateOp::Sgd { rate, momentum, dampening, weight_decay, nesterov, first }, state) => {
            let step = Sgd { rate, momentum, dampening, weight_decay, nesterov, first };
            match state {
                [b] => for_each_piece([p, writable(b)], g, |[p, b], g| {
                    kernels::sgd(step, p, g, Some(b));
                }),
                _ => for_each_piece([p], g, |[p], g| kernels::sgd(step, p, g, None)),
            }
        }
        (UpdateOp::Adam { rate, betas, eps, weight_decay, decoupled, step }, [m, v]) => {
            let step = Adam { rate, betas, eps, weight_decay, decoupled, step };
            for_each_piece([p, writable(m), writable(v)], g, |[p, m, v], g| {
                kernels::adam(step, p, g, m, v);
            });
        }
        (UpdateOp::Adam { .. }, _) => {
            let reason = "Adam has two state tensors".to_owned();
            return Err(Error::InvalidArgument { op: name, reason });
        }
    }
    Ok(())
}

/// Gives the tensor storage of its own, in row-major order.
fn make_writable(op: &'static str, x: &mut CpuTensor) -> Result<()> {
    if x.is_contiguous() && x.is_unique() {
        return Ok(());
    }
    let mut own = Output::new(op, x.shape(), x.dtype())?;
    copy::for_size!(x.dtype(), T => copy::into(x.elements::<T>(), x.layout(), own.elements::<T>()));
    *x = own.finish();
    debug_assert_eq!(*x.layout(), Layout::contiguous(*x.shape()));
    Ok(())
}

/// The elements of a tensor that [`make_writable`] has seen.
fn writable<T: Working>(x: &mut CpuTensor) -> &mut [T] {
    let (start, len) = (x.run_start(), x.numel());
    let buffer = x.buffer_mut().expect("make_writable left no one else");
    &mut buffer.as_slice_mut()[start..start + len]
}

/// Runs `f` on the tensors to change and the gradient, shared by threads.
fn for_each_piece<T: Working, const N: usize>(
    changed: [&mut [T]; N],
    g: &[T],
    f: impl Fn([&mut [T::Wide]; N], &[T::Wide]) + Sync,
) {
    let cost = Cost(COST * (2 * N + 1)).times(CHUNK * size_of::<T>() / 4);
    let bands = changed.map(|slice| Band::new(slice, CHUNK));
    for_each_band(g.len().div_ceil(CHUNK), cost, bands, |range, changed| {
        let first = range.start * CHUNK;
        let g = &g[first..(range.end * CHUNK).min(g.len())];
        change(changed, g, &f);
    });
}

/// Calls `f` on the tensors to change and the gradient: 16-bit floats widened, [`CHUNK`] at a time.
fn change<T: Working, const N: usize>(
    mut changed: [&mut [T]; N],
    g: &[T],
    f: &impl Fn([&mut [T::Wide]; N], &[T::Wide]),
) {
    if !T::CONVERTS {
        return f(changed.map(|x| T::place(x, &mut [])), T::widened(g, &mut []));
    }
    let zero = <T::Wide as kernels::Float>::ZERO;
    let (mut wide, mut g_wide) = ([[zero; CHUNK]; N], [zero; CHUNK]);
    for (i, g) in g.chunks(CHUNK).enumerate() {
        let span = i * CHUNK..i * CHUNK + g.len();
        for (x, wide) in changed.iter().zip(&mut wide) {
            T::widened(&x[span.clone()], wide);
        }
        f(wide.each_mut().map(|wide| &mut wide[..g.len()]), T::widened(g, &mut g_wide));
        for (x, wide) in changed.iter_mut().zip(&wide) {
            T::round(wide, &mut x[span.clone()]);
        }
    }
}

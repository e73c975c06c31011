//! Steps of optimizers: one pass over parameter, gradient and state, in place.
//!
//! A tensor whose storage is shared is copied first. 16-bit floats are widened, updated and rounded piece by
//! piece.

use swath_kernels::{self as kernels, Adam, Sgd};

use super::copy;
use super::elementwise::CHUNK;
use super::tensor::CpuTensor;
use super::working::{Working, for_float};
use crate::backend::{TensorData, check_update};
use crate::error::{Error, Result};
use crate::ops::UpdateOp;
use crate::runtime::parallel::{Band, Cost, for_each_band};

/// Picoseconds per element of each tensor; memory accesses take most of the time.
const COST: usize = 250;

pub(super) fn update(
    op: &UpdateOp,
    parameter: &mut CpuTensor,
    gradient: &CpuTensor,
    state: &mut [CpuTensor],
) -> Result<()> {
    let name = op.name();
    check_update(op, parameter, gradient, state)?;
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
    // All tensors are made writable before any is written, so that an error changes nothing.
    make_writable(name, parameter)?;
    state.iter_mut().try_for_each(|state| make_writable(name, state))?;
    let g = gradient.run::<T>();
    let p = parameter.as_slice_mut::<T>()?;
    match (*op, state) {
        (UpdateOp::Sgd { rate, momentum, dampening, weight_decay, nesterov, first }, state) => {
            let step = Sgd { rate, momentum, dampening, weight_decay, nesterov, first };
            match state {
                [b] => for_each_piece([p, b.as_slice_mut::<T>()?], g, |[p, b], g| {
                    kernels::sgd(step, p, g, Some(b));
                }),
                _ => for_each_piece([p], g, |[p], g| kernels::sgd(step, p, g, None)),
            }
        }
        (UpdateOp::Adam { rate, betas, eps, weight_decay, decoupled, step }, [m, v]) => {
            let step = Adam { rate, betas, eps, weight_decay, decoupled, step };
            let changed = [p, m.as_slice_mut::<T>()?, v.as_slice_mut::<T>()?];
            for_each_piece(changed, g, |[p, m, v], g| {
                kernels::adam(step, p, g, m, v);
            });
        }
        (UpdateOp::Adam { .. }, _) => {
            let reason = "expected 2 state tensors".to_owned();
            return Err(Error::InvalidArgument { op: name, reason });
        }
    }
    Ok(())
}

/// Copies the tensor unless it is contiguous and its storage is not shared.
fn make_writable(op: &'static str, x: &mut CpuTensor) -> Result<()> {
    if !x.must_copy() && x.is_contiguous() {
        return Ok(());
    }
    *x = copy::copied(op, x)?.finish();
    Ok(())
}

/// Calls `f` on pieces of the tensors to update and of the gradient, which threads share.
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
        update_piece(changed, g, &f);
    });
}

/// Calls `f` on the tensors to update and the gradient; 16-bit floats are widened [`CHUNK`] at a time.
fn update_piece<T: Working, const N: usize>(
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

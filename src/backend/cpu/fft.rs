//! Discrete Fourier transforms of rows, by rustfft and realfft.
//!
//! ```text
//! transform    looks up the plan of the length, or makes it; threads share the rows
//! row          is copied to where its transform may overwrite it, transformed by itself and multiplied by the factor
//! ```
//!
//! rustfft would transform several short rows at once: then the bits of a row might depend on its neighbours, and so on
//! the number of threads.

use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftNum, FftPlanner};

use super::rows::compute;
use super::tensor::CpuTensor;
use super::working::{Wide, Working};
use crate::backend::TensorData;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::runtime::memory::Buffer;
use crate::runtime::parallel::Cost;
use crate::shape::Shape;

/// Picoseconds per number of a row and doubling of its length: a quarter to half a nanosecond per `f32` of 1,024.
const COST: usize = 40;

/// Maximum number of plans that are kept for each type. A model uses two lengths or three, each in both directions.
const MAX_PLANS: usize = 16;

/// Maximum sum of their lengths, unless it is that of two plans: 32 MiB of factors in `f32`, 64 in `f64`.
const MAX_PLANNED: usize = 1 << 22;

/// A transform of rows of n points, without a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transform {
    /// n complex numbers to n: `y[k] = Σ x[j] e^(-2πi jk/n)`.
    Forward,
    /// The same with `e^(+2πi jk/n)`.
    Inverse,
    /// n real numbers to the first n/2 + 1 of [`Transform::Forward`].
    RealForward,
    /// n/2 + 1 complex numbers, which are completed to a Hermitian row, to the n real ones of [`Transform::Inverse`].
    RealInverse,
}

impl Transform {
    /// The name of the method.
    pub fn name(self) -> &'static str {
        match self {
            Transform::Forward => "fft",
            Transform::Inverse => "ifft",
            Transform::RealForward => "rfft",
            Transform::RealInverse => "irfft",
        }
    }

    /// Numbers in a row of the operand and of the result, two for a complex one.
    fn widths(self, n: usize) -> [usize; 2] {
        let half = 2 * (n / 2 + 1);
        match self {
            Transform::Forward | Transform::Inverse => [2 * n; 2],
            Transform::RealForward => [n, half],
            Transform::RealInverse => [half, n],
        }
    }
}

/// How rows of one length are transformed.
#[derive(Clone)]
enum Plan<T> {
    Complex(Arc<dyn Fft<T>>),
    RealForward(Arc<dyn RealToComplex<T>>),
    RealInverse(Arc<dyn ComplexToReal<T>>),
}

/// The plans that were used last, the latest at the end.
type Plans<T> = Mutex<Vec<((Transform, usize), Plan<T>)>>;

/// A type that is transformed in its own precision.
trait Real: Wide + Working<Wide = Self> + FftNum {
    fn plans() -> &'static Plans<Self>;
}

macro_rules! real {
    ($($t:ty)*) => {$(
        impl Real for $t {
            fn plans() -> &'static Plans<$t> {
                static PLANS: Plans<$t> = Mutex::new(Vec::new());
                &PLANS
            }
        }
    )*};
}
real!(f32 f64);

/// The plan of a transform.
fn plan<T: Real>(kind: Transform, n: usize) -> Plan<T> {
    // The list is complete between any two calls of its methods.
    let mut plans = T::plans().lock().unwrap_or_else(PoisonError::into_inner);
    let plan = match plans.iter().position(|(key, _)| *key == (kind, n)) {
        Some(i) => plans.remove(i).1,
        None => match kind {
            Transform::Forward => Plan::Complex(FftPlanner::new().plan_fft_forward(n)),
            Transform::Inverse => Plan::Complex(FftPlanner::new().plan_fft_inverse(n)),
            Transform::RealForward => Plan::RealForward(RealFftPlanner::new().plan_fft_forward(n)),
            Transform::RealInverse => Plan::RealInverse(RealFftPlanner::new().plan_fft_inverse(n)),
        },
    };
    plans.push(((kind, n), plan.clone()));
    let total = |plans: &[((_, usize), _)]| -> usize { plans.iter().map(|((_, n), _)| n).sum() };
    while plans.len() > MAX_PLANS || plans.len() > 2 && total(&plans) > MAX_PLANNED {
        plans.remove(0);
    }
    plan
}

/// Transforms the rows of n points of `x` and multiplies by `scale`. `shape` is that of the result, which `x` fits.
pub(crate) fn transform(
    kind: Transform,
    n: usize,
    scale: f64,
    x: &CpuTensor,
    shape: &Shape,
) -> Result<CpuTensor> {
    match x.dtype() {
        DType::F32 => transform_in::<f32>(kind, n, scale, x, shape),
        DType::F64 => transform_in::<f64>(kind, n, scale, x, shape),
        dtype => Err(Error::UnsupportedDType { op: kind.name(), dtype, shape: *x.shape() }),
    }
}

fn transform_in<T: Real>(
    kind: Transform,
    n: usize,
    scale: f64,
    x: &CpuTensor,
    shape: &Shape,
) -> Result<CpuTensor> {
    let [from, to] = kind.widths(n);
    let count = shape.numel() / to;
    let cost = Cost(COST).times(from.max(to)).times(n.ilog2() as usize + 1);
    let plan = (count > 0).then(|| plan::<T>(kind, n));
    let scale = (scale != 1.0).then(|| T::from_scalar(Scalar::Float(scale)));
    let mut results = compute::<T, 1, 1, 0>(
        kind.name(),
        (count, cost),
        [(x, from)],
        [(shape, to)],
        [],
        |_, [x], [y], []| {
            if let Some(plan) = &plan {
                plan.rows(x.chunks_exact(from).zip(y.chunks_exact_mut(to)), scale);
            }
        },
    )?;
    Ok(results.remove(0))
}

/// Transforms a row to another one.
type Transformer<'a, T> = dyn FnMut(&[T], &mut [T]) + 'a;

/// Temporary memory for numbers, of which the first `count` are used.
fn space<N: Pod>(count: usize) -> Buffer {
    Buffer::scratch(count * size_of::<N>())
}

impl<T: Real> Plan<T> {
    /// Transforms each row of a pair to the other.
    fn rows<'a>(&self, rows: impl Iterator<Item = (&'a [T], &'a mut [T])>, scale: Option<T>) {
        const FITS: &str = "rows have the length of the plan";
        let complex = |count| space::<Complex<T>>(count);
        let mut run: Box<Transformer<T>> = match self {
            Plan::Complex(fft) => {
                let mut scratch = complex(fft.get_inplace_scratch_len());
                Box::new(move |x, y| {
                    y.copy_from_slice(x);
                    fft.process_with_scratch(cast_slice_mut(y), scratch.as_slice_mut());
                })
            }
            Plan::RealForward(fft) => {
                let (mut row, mut scratch) =
                    (space::<T>(fft.len()), complex(fft.get_scratch_len()));
                Box::new(move |x, y| {
                    let row = row.as_slice_mut();
                    row.copy_from_slice(x);
                    fft.process_with_scratch(row, cast_slice_mut(y), scratch.as_slice_mut())
                        .expect(FITS);
                })
            }
            Plan::RealInverse(fft) => {
                let half = fft.len() / 2 + 1;
                let (mut row, mut scratch) = (complex(half), complex(fft.get_scratch_len()));
                Box::new(move |x, y| {
                    let row: &mut [Complex<T>] = row.as_slice_mut();
                    row.copy_from_slice(cast_slice(x));
                    // These have no part in the result, and realfft accepts zeros alone.
                    row[0].im = T::zero();
                    if fft.len() % 2 == 0 {
                        row[half - 1].im = T::zero();
                    }
                    fft.process_with_scratch(row, y, scratch.as_slice_mut()).expect(FITS);
                })
            }
        };
        for (x, y) in rows {
            run(x, y);
            if let Some(scale) = scale {
                y.iter_mut().for_each(|y| *y = *y * scale);
            }
        }
    }
}

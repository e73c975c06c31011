//! `ln Σ e^x`: the largest element first, then the sum of the exponentials of the distances from
//! it.

use core::mem::MaybeUninit;

use crate::copy::Plain;
use crate::dispatch::run;
use crate::fold::PairwiseSum;
use crate::fold::Widen;
use crate::fold::columns::Matrix;
use crate::fold::floats::Accumulate;
use crate::fold::rows::{at_number, exps_sum, max_number};
use crate::fold::strips::{Strip, TILE_COLS, logs, shifted_sums, tiles};
use crate::map::Map;
use crate::math::{Exp, Log};
use crate::simd::{Float, Lanes, Simd, Task};

/// Element types that can be reduced in every way: `f32` and `f64`. Sealed. To take
/// [`logsumexp`](crate::logsumexp) of `f16` or `bf16`, [`convert`](crate::convert) to `f32` first,
/// which is exact.
///
/// Its methods are not generic, so that the kernels are compiled with this crate and not again in
/// each crate that uses it.
pub trait Reduce: Float + Plain + Accumulate {
    #[doc(hidden)]
    fn push_exps(into: &mut PairwiseSum, x: &[Self], shift: Self);
    #[doc(hidden)]
    fn logsumexp(x: &[Self]) -> f64;
    #[doc(hidden)]
    fn logsumexp_columns(x: Matrix<&[Self]>, y: &mut [MaybeUninit<Self>]);
}

macro_rules! impl_reduce {
    ($($t:ident)*) => {$(
        impl Reduce for $t {
            fn push_exps(into: &mut PairwiseSum, x: &[Self], shift: Self) {
                run(PushExps { x, shift, into });
            }
            fn logsumexp(x: &[Self]) -> f64 {
                run(LogSumExp { x })
            }
            fn logsumexp_columns(x: Matrix<&[Self]>, y: &mut [MaybeUninit<Self>]) {
                run(LogSumExpColumns { x: Strip::of(x), rows: x.rows, y })
            }
        }
    )*};
}
impl_reduce!(f32 f64);

/// Pushes the sums of `e^(x − shift)`, block by block.
struct PushExps<'a, E> {
    x: &'a [E],
    shift: E,
    into: &'a mut PairwiseSum,
}

impl<E: Float + Accumulate> Task<E> for PushExps<'_, E>
where
    Exp: Map<E, 1>,
{
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        for block in self.x.chunks(PairwiseSum::BLOCK) {
            self.into.push(exps_sum(simd, block, self.shift, block.len()));
        }
    }
}

/// `m + ln Σ e^(x − m)` with m the largest element.
struct LogSumExp<'a, E> {
    x: &'a [E],
}

impl<E: Float + Accumulate> Task<E> for LogSumExp<'_, E>
where
    Exp: Map<E, 1>,
{
    type Home = Self;
    type Output = f64;
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) -> f64 {
        let largest = max_number(simd, self.x);
        if largest.to_f64().is_infinite() {
            let has_nan = self.x.iter().any(|x| x.to_f64().is_nan());
            return if has_nan { f64::NAN } else { largest.to_f64() };
        }
        let sum = exps_sum(simd, self.x, largest, self.x.len().min(PairwiseSum::BLOCK));
        let log = at_number::<f64, S>(
            simd,
            sum,
            #[inline(always)]
            |x| <Log as Map<f64, 1>>::apply(simd, [x]),
        );
        largest.to_f64() + log
    }
}

/// The task of [`logsumexp_columns`](crate::logsumexp_columns): `y` has an element per column.
struct LogSumExpColumns<'a, E> {
    x: Strip<'a, E>,
    rows: usize,
    y: &'a mut [MaybeUninit<E>],
}

impl<E: Float + Widen> Task<E> for LogSumExpColumns<'_, E>
where
    Exp: Map<E, 1>,
{
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let LogSumExpColumns { x, rows, y } = self;
        let (mut largest, mut totals) = ([E::ZERO; TILE_COLS], [0.0; TILE_COLS]);
        for (from, cols) in tiles(rows, y.len()) {
            let x = x.columns(from, cols);
            let (largest, totals) = (&mut largest[..cols], &mut totals[..cols]);
            shifted_sums(simd, x, largest, totals);
            logs(simd, totals);
            let y = &mut y[from..from + cols];
            let mut is_infinite = false;
            for ((y, &m), &log) in y.iter_mut().zip(&*largest).zip(&*totals) {
                y.write(E::from_f64(m.to_f64() + log));
                is_infinite |= m.to_f64().is_infinite();
            }
            if !is_infinite {
                continue;
            }
            for (c, y) in
                y.iter_mut().enumerate().filter(|(c, _)| largest[*c].to_f64().is_infinite())
            {
                let has_nan = (0..rows).any(|row| x.get(row, c).to_f64().is_nan());
                y.write(if has_nan { E::NAN } else { largest[c] });
            }
        }
    }
}

//! `ln Σ e^x`: the largest element first, then the sum of the exponentials of the distances from
//! it.

use core::mem::MaybeUninit;

use super::{Max, Sum, columns};
use crate::copy::Plain;
use crate::dispatch::Enter as _;
use crate::fold::PairwiseSum;
use crate::fold::columns::{Matrix, Target};
use crate::fold::floats::Accumulate;
use crate::fold::rows::{at_number, exps_of_rows, exps_sum, max_number};
use crate::map::Map;
use crate::map::rows::places;
use crate::math::functions::log;
use crate::math::{Exp, Log};
use crate::simd::{Float, FoldTask, Lanes, Simd};
use crate::{Block, BlockArg};

/// Element types that can be reduced in every way: `f32` and `f64`. Sealed. To take
/// [`logsumexp`](crate::logsumexp) of `f16` or `bf16`, [`convert`](crate::convert) to `f32` first,
/// which is exact.
///
/// Its methods are not generic, so that the kernels are compiled with this crate and not again in
/// each crate that uses it.
pub trait Reduce: Float + Plain + Accumulate {
    #[doc(hidden)]
    fn push_exps(into: &mut PairwiseSum, x: &[Self], shift: Self);
    /// Writes `y = e^(x − shift)` row by row; `y` holds the rows without gaps.
    #[doc(hidden)]
    fn shifted_exps<'y>(
        x: BlockArg<'_, Self>,
        shape: Block,
        shift: &[Self],
        y: &'y mut [MaybeUninit<Self>],
    ) -> &'y mut [Self];
    #[doc(hidden)]
    fn logsumexp(x: &[Self]) -> f64;
}

macro_rules! impl_reduce {
    ($($t:ident)*) => {$(
        impl Reduce for $t {
            fn push_exps(into: &mut PairwiseSum, x: &[Self], shift: Self) {
                $t::enter_fold(PushExps { x, shift, into });
            }
            fn shifted_exps<'y>(
                x: BlockArg<'_, Self>,
                shape: Block,
                shift: &[Self],
                y: &'y mut [MaybeUninit<Self>],
            ) -> &'y mut [Self] {
                exps_of_rows(x, shape, shift, y)
            }
            fn logsumexp(x: &[Self]) -> f64 {
                $t::enter_fold(LogSumExp { x })
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

impl<E: Float + Accumulate> FoldTask<E> for PushExps<'_, E>
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

impl<E: Float + Accumulate> FoldTask<E> for LogSumExp<'_, E>
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

/// Exponentials per tile: one block of rows × at most `POWERS_COLS` columns.
const POWERS: usize = 16 * PairwiseSum::BLOCK;
const POWERS_COLS: usize = 256;

/// Writes `ln Σ e^x` of each column.
pub(crate) fn logsumexp_of_columns<E: Reduce>(x: Matrix<&[E]>, y: &mut [MaybeUninit<E>]) {
    let Matrix { x, rows, stride: row_stride, .. } = x;
    let width = (POWERS / rows.clamp(1, PairwiseSum::BLOCK)).min(POWERS_COLS);
    let mut largest = [-E::INFINITY; POWERS_COLS];
    let mut powers = [MaybeUninit::uninit(); POWERS];
    let mut sums = [0.0; POWERS_COLS];
    let mut logs = [0.0; POWERS_COLS];
    for (tile, y) in y.chunks_mut(width).enumerate() {
        let (cols, first) = (y.len(), tile * width);
        let largest = &mut largest[..cols];
        if rows > 0 {
            columns(&Max, &x[first..], rows, row_stride, Target::Results(places(largest)));
        }
        // With more rows than a block, tiles have few columns, and each gets a tree.
        let mut trees = match rows {
            0..=PairwiseSum::BLOCK => None,
            _ => Some([const { PairwiseSum::new() }; POWERS / PairwiseSum::BLOCK]),
        };
        for row in (0..rows).step_by(PairwiseSum::BLOCK) {
            let rows = PairwiseSum::BLOCK.min(rows - row);
            let (start, stride) = (row * row_stride + first, row_stride as isize);
            let terms = BlockArg { data: x, start, stride, is_value: false };
            let shape = Block { rows, cols, stride: cols };
            let powers = E::shifted_exps(terms, shape, largest, &mut powers[..rows * cols]);
            let target = Target::Partial(places(&mut sums[..cols]));
            columns(&Sum, powers, rows, cols, target);
            if let Some(trees) = &mut trees {
                trees.iter_mut().zip(&sums[..cols]).for_each(|(tree, &sum)| tree.push(sum));
            }
        }
        if let Some(trees) = &trees {
            sums.iter_mut().zip(trees).for_each(|(sum, tree)| *sum = tree.finish());
        }
        log(&sums[..cols], &mut logs[..cols]);
        for ((y, &log), &m) in y.iter_mut().zip(&logs).zip(&*largest) {
            // NaN and ±∞ are the result themselves.
            let m = m.to_f64();
            y.write(E::from_f64(if m.is_finite() { m + log } else { m }));
        }
    }
}

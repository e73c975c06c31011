//! Reductions of slices and of matrix columns: sums, products, means, variances, norms, largest and
//! smallest elements and where they are.
//!
//! | file | what |
//! |---|---|
//! | `slices.rs` | of a slice |
//! | `columns.rs` | of each column of a matrix |
//! | `parts.rs` | of each column of a part of the rows, before rounding |
//! | `integers.rs`, `joined.rs` | of integers, slices and columns |
//! | `truth.rs` | whether any or all elements are other than 0, both |

mod columns;
mod integers;
mod joined;
mod parts;
mod slices;
#[cfg(test)]
mod tests;
mod truth;

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use half::{bf16, f16};

use crate::copy::Plain;
use crate::dispatch::{ElementTask, FoldTask, run};
use crate::fold::columns::{FindColumns, FoldColumns, Folded, Rows};
use crate::fold::extreme::{Find, Magnitude, Max, Min, Wanted};
use crate::fold::find::{FindIndex, FindIndexColumns};
use crate::fold::partial::{Moments, Product, SquareSum};
use crate::fold::rows::{at_number, exps_of_rows, exps_sum, max_number};
use crate::fold::terms::{
    Distances, Each, Factors, Magnitudes, Nonzeros, Products, ScaledSquares, Squares, Sum, Term,
};
use crate::fold::{Pairwise, PairwiseSum, Widen, push};
use crate::map::Map;
use crate::math::{Exp, Log};
use crate::simd::{Float, Lanes, Simd};
use crate::{Block, BlockArg};

pub use columns::{
    argmax_columns, argmin_columns, logsumexp_columns, max_columns, max_magnitude_columns,
    mean_columns, min_columns, min_magnitude_columns, norm0_columns, norm1_columns, norm2_columns,
    prod_columns, std_columns, sum_columns, variance_columns,
};
pub use integers::{
    Integer, IntegerEnd, IntegerFold, end_of_integer_columns, end_of_integers,
    fold_integer_columns, fold_integers, place_of_integer_columns, place_of_integers,
};
pub use slices::{
    argmax, argmin, dot, logsumexp, max, max_magnitude, mean, min, min_magnitude, norm0, norm1,
    norm2, prod, std, sum, variance,
};
pub use truth::{all, all_columns, any, any_columns};
pub(crate) use truth::{decided, decided_columns};

/// Element types whose sums and products are accumulated in `f64` and rounded once: `f32`, `f64`,
/// `f16` and `bf16`. Sealed.
///
/// Its methods are not generic, so that the kernels are compiled with this crate and not again in
/// each that uses it.
pub trait Accumulate: Copy + sealed::Sealed {
    #[doc(hidden)]
    fn blocks(x: &[Self], fold: Blocks<'_, Self>);
    #[doc(hidden)]
    fn fold_columns(fold: ColumnFold<Self>);
    #[doc(hidden)]
    fn rounded(x: f64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

/// Element types that can be reduced in every way: `f32` and `f64`. Sealed. Of `f16` and `bf16` the largest and
/// smallest elements, their places and [`logsumexp`] are had by [`convert`](crate::convert) to `f32` first, which
/// is exact and keeps their order.
///
/// Its methods are not generic, as those of [`Accumulate`].
pub trait Reduce: Float + Plain + Accumulate {
    #[doc(hidden)]
    fn push_exps(into: &mut PairwiseSum, x: &[Self], shift: Self);
    /// `y = e^(x − shift)`, row by row; `y` is the rows without gaps.
    #[doc(hidden)]
    fn shifted_exps<'y>(
        x: BlockArg<'_, Self>,
        shape: Block,
        shift: &[Self],
        y: &'y mut [MaybeUninit<Self>],
    ) -> &'y mut [Self];
    #[doc(hidden)]
    fn find(x: &[Self], end: End) -> Self;
    #[doc(hidden)]
    fn find_index(x: &[Self], largest: bool) -> usize;
    #[doc(hidden)]
    fn logsumexp(x: &[Self]) -> f64;
    #[doc(hidden)]
    fn search_columns(search: ColumnSearch<Self>);
}

/// A fold of a slice's blocks in the tree, and the counter that takes them.
#[doc(hidden)]
pub enum Blocks<'a, E> {
    Sum(&'a mut PairwiseSum),
    Magnitudes(&'a mut PairwiseSum),
    Nonzeros(&'a mut PairwiseSum),
    /// With the elements of a slice that is as long.
    Products(&'a mut PairwiseSum, &'a [E]),
    Factors(&'a mut Pairwise<Product>),
    Moments(&'a mut Pairwise<Moments>),
    Squares(&'a mut Pairwise<SquareSum>),
}

/// Which element is looked for.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum End {
    Max,
    Min,
    MaxMagnitude,
    MinMagnitude,
}

/// A checked fold over rows, and where the results go; made in this module alone.
#[doc(hidden)]
pub struct ColumnFold<E>(Rows<E>, Columns<E>);

/// What columns are folded to in the tree, and where that goes.
enum Columns<E> {
    Sum(Folded<E, f64>),
    Magnitudes(Folded<E, f64>),
    Nonzeros(Folded<E, f64>),
    Factors(Folded<E, Product>),
    Moments(Folded<E, Moments>),
    Squares(Folded<E, SquareSum>),
}

/// As [`ColumnFold`], of a search.
#[doc(hidden)]
pub struct ColumnSearch<E>(Search<E>);

/// What is looked for in the columns.
enum Search<E> {
    Element(Rows<E>, *mut E, End),
    Index(Rows<E>, *mut i64, bool),
}

macro_rules! impl_accumulate {
    ($($t:ident $squares:ident)*) => {$(
        impl sealed::Sealed for $t {}
        impl Accumulate for $t {
            fn blocks(x: &[Self], fold: Blocks<'_, Self>) {
                match fold {
                    Blocks::Sum(into) => push(Each::new(x, Sum), into),
                    Blocks::Magnitudes(into) => push(Each::new(x, Magnitudes), into),
                    Blocks::Nonzeros(into) => push(Each::new(x, Nonzeros), into),
                    Blocks::Products(into, y) => push(Products::new(x, y), into),
                    Blocks::Factors(into) => push(Each::new(x, Factors), into),
                    Blocks::Moments(into) => push(Each::new(x, Distances), into),
                    Blocks::Squares(into) => push(Each::new(x, $squares), into),
                }
            }
            fn fold_columns(ColumnFold(x, columns): ColumnFold<Self>) {
                match columns {
                    Columns::Sum(y) => fold_columns(x, Sum, y),
                    Columns::Magnitudes(y) => fold_columns(x, Magnitudes, y),
                    Columns::Nonzeros(y) => fold_columns(x, Nonzeros, y),
                    Columns::Factors(y) => fold_columns(x, Factors, y),
                    Columns::Moments(y) => fold_columns(x, Distances, y),
                    Columns::Squares(y) => fold_columns(x, $squares, y),
                }
            }
            fn rounded(x: f64) -> Self {
                <Self as Widen>::rounded(x)
            }
        }
    )*};
}
// Squares of narrower floats neither overflow nor vanish in `f64`.
impl_accumulate!(f16 Squares bf16 Squares f32 Squares f64 ScaledSquares);

macro_rules! impl_reduce {
    ($($t:ident)*) => {$(
        impl Reduce for $t {
            fn push_exps(into: &mut PairwiseSum, x: &[Self], shift: Self) {
                enter_fold(PushExps { x, shift, into });
            }
            fn shifted_exps<'y>(
                x: BlockArg<'_, Self>,
                shape: Block,
                shift: &[Self],
                y: &'y mut [MaybeUninit<Self>],
            ) -> &'y mut [Self] {
                exps_of_rows(x, shape, shift, y)
            }
            fn find(x: &[Self], end: End) -> Self {
                match end {
                    End::Max => find::<$t, Max>(x),
                    End::Min => find::<$t, Min>(x),
                    End::MaxMagnitude => find::<$t, Magnitude<Max>>(x),
                    End::MinMagnitude => find::<$t, Magnitude<Min>>(x),
                }
            }
            fn find_index(x: &[Self], largest: bool) -> usize {
                match largest {
                    true => enter(FindIndex(x, PhantomData::<Max>)),
                    false => enter(FindIndex(x, PhantomData::<Min>)),
                }
            }
            fn logsumexp(x: &[Self]) -> f64 {
                enter_fold(LogSumExp { x })
            }
            fn search_columns(search: ColumnSearch<Self>) {
                match search.0 {
                    Search::Element(x, y, end) => match end {
                        End::Max => find_columns::<$t, Max>(x, y),
                        End::Min => find_columns::<$t, Min>(x, y),
                        End::MaxMagnitude => find_columns::<$t, Magnitude<Max>>(x, y),
                        End::MinMagnitude => find_columns::<$t, Magnitude<Min>>(x, y),
                    },
                    Search::Index(x, y, true) => {
                        enter(FindIndexColumns { x, y, wanted: PhantomData::<Max> });
                    }
                    Search::Index(x, y, false) => {
                        enter(FindIndexColumns { x, y, wanted: PhantomData::<Min> });
                    }
                }
            }
        }
    )*};
}
impl_reduce!(f32 f64);

#[inline(always)]
fn enter<E: Float, T: ElementTask<E>>(task: T) -> T::Output {
    E::enter(task)
}

#[inline(always)]
fn enter_fold<E: Float, T: FoldTask<E>>(task: T) -> T::Output {
    E::enter_fold(task)
}

#[inline(always)]
fn find<E: Float, W: Wanted>(x: &[E]) -> E {
    enter(Find(x, PhantomData::<W>))
}

#[inline(always)]
fn find_columns<E: Float, W: Wanted>(x: Rows<E>, y: *mut E) {
    enter(FindColumns { x, y, wanted: PhantomData::<W> });
}

#[inline(always)]
fn fold_columns<E: Widen, K: Term<M>, const M: usize>(
    x: Rows<E>,
    _term: K,
    y: Folded<E, K::Entry>,
) {
    run(FoldColumns::<E, K, M> { x, y });
}

/// Pushes the sums of `e^(x − shift)`, block by block.
struct PushExps<'a, E> {
    x: &'a [E],
    shift: E,
    into: &'a mut PairwiseSum,
}

impl<E: Float + Widen> FoldTask<E> for PushExps<'_, E>
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

impl<E: Float + Widen> FoldTask<E> for LogSumExp<'_, E>
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

//! Reductions of slices and of matrix columns. Each reduction is a type ([`Sum`], [`Max`], …) that
//! defines how elements are accumulated, how accumulators of parts merge, and how the result is
//! computed from the last one. Two drivers run them: [`reduce`](crate::reduce()) on slices and
//! [`reduce_columns`](crate::reduce_columns) on the columns of a matrix. The functions `sum`, `max`
//! and their like at the crate's root call the first.
//!
//! ```
//! use swath_kernels::reduce::{Max, Reduction, Sum, Variance};
//! use swath_kernels::{Pairwise, partial_columns, reduce};
//!
//! assert_eq!(reduce(&Sum, &[200u8, 100]), 300);
//! assert_eq!(reduce(&Max, &[1.0f32, 3.0, 2.0]), 3.0);
//!
//! // Parts of the rows of a column may be reduced separately, for example by threads. Parts of 2^k
//! // blocks each (the last may have fewer rows) merge to the bits of the whole.
//! let x: Vec<f32> = (0..3000).map(|i| (i as f32).sqrt()).collect();
//! let (variance, mut whole) = (Variance { ddof: 1 }, Pairwise::new());
//! for part in x.chunks(2 * Pairwise::<f64>::BLOCK) {
//!     let mut y = [swath_kernels::Partial::EMPTY];
//!     partial_columns(&variance, part, part.len(), 1, &mut y);
//!     whole.push(y[0]);
//! }
//! let result: f32 = variance.finish(whole.finish(), x.len());
//! assert_eq!(result, swath_kernels::variance(&x, 1));
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `integers.rs` | integers; *any* and *all* of every type |
//! | `logsumexp.rs` | logsumexp, which needs the largest element first |
//! | `take.rs` | reductions of successive slices |

/// Implements [`Reduction`]: accumulator and result types, then how a slice is folded, how columns
/// are reduced, and how the last accumulator is finished.
macro_rules! reduction {
    ([$($generics:tt)*] $op:ty, $e:ty, $name:literal $(, $needs_rows:ident)?: $acc:ty => $out:ty,
        |$this:ident, $x:ident| $fold:expr,
        |$matrix:ident, $y:ident| $columns:expr,
        |$last:ident, $count:ident| $finish:expr $(,)?) => {
        impl<$($generics)*> Reduction<$e> for $op {
            type Acc = $acc;
            type Out = $out;
            fn name(&self) -> &'static str {
                $name
            }
            $(fn $needs_rows(&self) -> bool {
                true
            })?
            fn fold(&self, $x: &[$e]) -> $acc {
                let $this = self;
                let _ = $this;
                $fold
            }
            fn columns(&self, $matrix: Matrix<&[$e]>, $y: Target<'_, $out, $acc>) {
                let $this = self;
                let _ = $this;
                $columns
            }
            fn finish(&self, $last: $acc, $count: usize) -> $out {
                let $this = self;
                let _ = $this;
                $finish
            }
        }
    };
}

pub(crate) mod integers;
mod logsumexp;
mod take;
#[cfg(test)]
mod tests;

use crate::fold::columns::{FoldColumns, Matrix, Target};
use crate::fold::extremum::{Extrema, Wanted, extremum};
use crate::fold::floats::Format;
use crate::fold::fold_slices;
use crate::fold::index::{located, located_columns};
use crate::fold::partial::{
    Extremum, Finish, Finished, Located, Moments, Partial, Product, SquareSum,
};
use crate::fold::terms::{
    Distances, Factors, Magnitudes, Nonzeros, ScaledSquares, Squares, Sums, Term,
};

pub use crate::fold::floats::Accumulate;
pub use logsumexp::Reduce;

/// A reduction of elements `E`. Sealed.
pub trait Reduction<E>: Sync + sealed::Sealed {
    /// The accumulator of a range of elements.
    type Acc: Partial;
    /// The result.
    type Out: Copy;
    /// The name of the reduction, for errors.
    fn name(&self) -> &'static str;
    /// True if columns without rows are an error, because they have no extremum.
    #[doc(hidden)]
    fn needs_rows(&self) -> bool {
        false
    }
    /// The accumulator of a slice. [`Pairwise::push`](crate::Pairwise::push) takes that of 2^k
    /// [blocks](crate::Pairwise::BLOCK), the last of which may be short.
    fn fold(&self, x: &[E]) -> Self::Acc;
    /// Reduces each of `y.len()` contiguous rows, which must not be empty: one call through a
    /// pointer for all of them.
    #[doc(hidden)]
    fn rows(&self, x: &[E], y: &mut [Self::Out]) {
        let cols = x.len() / y.len().max(1);
        for (x, y) in x.chunks_exact(cols.max(1)).zip(y) {
            *y = self.finish(self.fold(x), cols);
        }
    }
    /// Reduces the columns of a matrix.
    #[doc(hidden)]
    fn columns(&self, x: Matrix<&[E]>, y: Target<'_, Self::Out, Self::Acc>);
    /// The result for `count` elements. Without elements, the largest or smallest float is NaN, the
    /// largest magnitude 0 and the smallest ∞, an index is 0, and the largest or smallest integer
    /// is the type's smallest or largest.
    fn finish(&self, acc: Self::Acc, count: usize) -> Self::Out;
}

mod sealed {
    pub trait Sealed {}
}

/// Reduces the columns of a matrix into results or accumulators. Panics as described at
/// [`reduce_columns`](crate::reduce_columns).
#[track_caller]
pub(crate) fn columns<E, R: Reduction<E> + ?Sized>(
    reduction: &R,
    x: &[E],
    rows: usize,
    row_stride: usize,
    y: Target<'_, R::Out, R::Acc>,
) {
    let cols = match &y {
        Target::Results(y) => y.len(),
        Target::Partial(y) => y.len(),
    };
    let name = reduction.name();
    assert!(
        rows > 0 || !reduction.needs_rows(),
        "{name}: no rows, so the columns have no elements"
    );
    let x = Matrix::new(name, x, rows, cols, row_stride);
    reduction.columns(x, y);
}

/// Declares the reductions' types; a parameter is a field.
macro_rules! types {
    ($($(#[$doc:meta])* $name:ident $(($(#[$field_doc:meta])* $field:ident))?;)*) => {$(
        types!(@one [$(#[$doc])*] $name $($(#[$field_doc])* $field)?);
        impl sealed::Sealed for $name {}
    )*};
    (@one [$($doc:tt)*] $name:ident) => {
        $($doc)*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name;
    };
    (@one [$($doc:tt)*] $name:ident $(#[$field_doc:meta])* $field:ident) => {
        $($doc)*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $(#[$field_doc])*
            pub $field: usize,
        }
    };
}
types! {
    /// The sum, see [`sum`](crate::sum); of integers, wrapping in `i64`.
    Sum;
    /// The arithmetic mean, see [`mean`](crate::mean).
    Mean;
    /// The product, see [`prod`](crate::prod); of integers, wrapping in `i64`.
    Prod;
    /// The number of elements that are not 0 (NaN counts), added like the [`sum`](crate::sum).
    Norm0;
    /// The sum of magnitudes, see [`norm1`](crate::norm1).
    Norm1;
    /// The Euclidean norm, see [`norm2`](crate::norm2).
    Norm2;
    /// The largest element, see [`max`](crate::max).
    Max;
    /// The smallest element, see [`min`](crate::min).
    Min;
    /// The largest magnitude; NaN if any is NaN.
    MaxMagnitude;
    /// The smallest magnitude; NaN if any is NaN.
    MinMagnitude;
    /// The index of the largest element, see [`argmax`](crate::argmax).
    ArgMax;
    /// The index of the smallest element, see [`argmin`](crate::argmin).
    ArgMin;
    /// 1 if any element is not 0, else 0, see [`any`](crate::any).
    Any;
    /// 1 if no element is 0, else 0, see [`all`](crate::all).
    All;
    /// The variance, see [`variance`](crate::variance).
    Variance(/// What is subtracted from the number of elements (delta degrees of freedom).
        ddof);
    /// The standard deviation, see [`std`](crate::std).
    Std(/// What is subtracted from the number of elements (delta degrees of freedom).
        ddof);
}

/// Implements reductions of floats by the tree: accumulator, finish, terms of narrow floats and of
/// `f64`.
macro_rules! folds {
    ($($op:ident $name:literal $acc:ty,
        |$this:ident, $count:ident| $finish:expr, $narrow:ident $wide:ident;)*) => {$(
        reduction! {
            [E: Accumulate] $op, E, $name: $acc => E,
            |$this, x| match E::FORMAT {
                Format::F64 => fold_slices::<$wide, _, E>(x, x),
                _ => fold_slices::<$narrow, _, E>(x, x),
            },
            |x, y| {
                let $count = x.rows;
                match E::FORMAT {
                    Format::F64 => $wide::columns(FoldColumns::new(x, $finish, y)),
                    _ => $narrow::columns(FoldColumns::new(x, $finish, y)),
                }
            },
            |acc, $count| E::rounded(acc.finished($finish)),
        }
    )*};
}
folds! {
    Sum "sum" f64, |_op, _count| Finish::Plain, Sums Sums;
    Mean "mean" f64, |_op, count| Finish::Mean(count as f64), Sums Sums;
    Prod "prod" Product, |_op, _count| Finish::Plain, Factors Factors;
    Variance "variance" Moments, |op, _count| Finish::Variance(op.ddof), Distances Distances;
    Std "std" Moments, |op, _count| Finish::Std(op.ddof), Distances Distances;
    Norm0 "norm0" f64, |_op, _count| Finish::Plain, Nonzeros Nonzeros;
    Norm1 "norm1" f64, |_op, _count| Finish::Plain, Magnitudes Magnitudes;
    // Squares of narrower floats neither overflow nor underflow in `f64`.
    Norm2 "norm2" SquareSum, |_op, _count| Finish::Plain, Squares ScaledSquares;
}

/// Implements extrema of floats: largest, magnitude, and the result without elements.
macro_rules! extrema {
    ($($op:ident $name:literal $largest:literal $magnitude:literal $none:expr;)*) => {$(
        reduction! {
            [E: Accumulate] $op, E, $name, needs_rows: Extremum<f64, $largest> => E,
            |_op, x| {
                let wanted = Wanted { largest: $largest, magnitude: $magnitude };
                if x.is_empty() { Partial::EMPTY } else { Extremum(extremum(x, wanted)) }
            },
            |x, y| Extrema::new(x, $magnitude, y).find(),
            |acc, count| E::rounded(if count == 0 { $none } else { acc.0 }),
        }
    )*};
}
extrema! {
    Max "max" true false f64::NAN;
    Min "min" false false f64::NAN;
    MaxMagnitude "max_magnitude" true true 0.0;
    MinMagnitude "min_magnitude" false true f64::INFINITY;
}

/// Implements indices of extrema of floats.
macro_rules! indices {
    ($($op:ident $name:literal $largest:literal;)*) => {$(
        reduction! {
            [E: Accumulate] $op, E, $name, needs_rows: Located<f64, $largest> => i64,
            |_op, x| if x.is_empty() { Partial::EMPTY } else { located(x) },
            |x, y| located_columns(x, y),
            |acc, _count| acc.index,
        }
    )*};
}
indices! {
    ArgMax "argmax" true;
    ArgMin "argmin" false;
}

//! Folds of the columns of a matrix whose rows are folded in parts, by different threads say.

use super::{Accumulate, ColumnFold, Columns};
use crate::fold::columns::{Folded, Rows};
use crate::fold::partial::{Moments, Product, SquareSum};
use crate::fold::{Pairwise, PairwiseSum};

impl PairwiseSum {
    /// The sums of the columns of `rows` rows that [`sum_columns`](crate::sum_columns) takes, before they
    /// are rounded.
    ///
    /// Parts of the rows that are equally many, a power of two of, [blocks](Pairwise::BLOCK), are
    /// subtrees: pushed in order as if they were blocks they give the bits of the whole. The last part
    /// may have fewer rows.
    ///
    /// ```
    /// use swath_kernels::{PairwiseSum, sum};
    ///
    /// let x: Vec<f32> = (0..3000).map(|i| (i as f32).sqrt()).collect(); // one column
    /// let mut whole = PairwiseSum::new();
    /// for part in x.chunks(2 * PairwiseSum::BLOCK) {
    ///     let mut y = [0.0];
    ///     PairwiseSum::sums_of_columns(part, part.len(), 1, &mut y);
    ///     whole.push(y[0]);
    /// }
    /// assert_eq!(whole.finish() as f32, sum(&x));
    /// ```
    ///
    /// # Panics
    /// If the last row ends beyond `x`.
    #[track_caller]
    pub fn sums_of_columns<E: Accumulate>(x: &[E], rows: usize, row_stride: usize, y: &mut [f64]) {
        let x = Rows::new("sums_of_columns", x, rows, y.len(), row_stride);
        E::fold_columns(ColumnFold(x, Columns::Sum(Folded::Partial(y.as_mut_ptr()))));
    }

    /// The sums of magnitudes, as [`PairwiseSum::sums_of_columns`].
    ///
    /// # Panics
    /// As [`PairwiseSum::sums_of_columns`].
    #[track_caller]
    pub fn magnitudes_of_columns<E: Accumulate>(
        x: &[E],
        rows: usize,
        row_stride: usize,
        y: &mut [f64],
    ) {
        let x = Rows::new("magnitudes_of_columns", x, rows, y.len(), row_stride);
        E::fold_columns(ColumnFold(x, Columns::Magnitudes(Folded::Partial(y.as_mut_ptr()))));
    }

    /// The numbers of elements that are not 0, as [`PairwiseSum::sums_of_columns`].
    ///
    /// # Panics
    /// As [`PairwiseSum::sums_of_columns`].
    #[track_caller]
    pub fn nonzeros_of_columns<E: Accumulate>(
        x: &[E],
        rows: usize,
        row_stride: usize,
        y: &mut [f64],
    ) {
        let x = Rows::new("nonzeros_of_columns", x, rows, y.len(), row_stride);
        E::fold_columns(ColumnFold(x, Columns::Nonzeros(Folded::Partial(y.as_mut_ptr()))));
    }
}

impl Pairwise<Product> {
    /// The products of columns, as [`PairwiseSum::sums_of_columns`].
    ///
    /// # Panics
    /// As [`PairwiseSum::sums_of_columns`].
    #[track_caller]
    pub fn products_of_columns<E: Accumulate>(
        x: &[E],
        rows: usize,
        row_stride: usize,
        y: &mut [Product],
    ) {
        let x = Rows::new("products_of_columns", x, rows, y.len(), row_stride);
        E::fold_columns(ColumnFold(x, Columns::Factors(Folded::Partial(y.as_mut_ptr()))));
    }
}

impl Pairwise<Moments> {
    /// The moments of columns, as [`PairwiseSum::sums_of_columns`].
    ///
    /// # Panics
    /// As [`PairwiseSum::sums_of_columns`].
    #[track_caller]
    pub fn moments_of_columns<E: Accumulate>(
        x: &[E],
        rows: usize,
        row_stride: usize,
        y: &mut [Moments],
    ) {
        let x = Rows::new("moments_of_columns", x, rows, y.len(), row_stride);
        E::fold_columns(ColumnFold(x, Columns::Moments(Folded::Partial(y.as_mut_ptr()))));
    }
}

impl Pairwise<SquareSum> {
    /// The sums of squares of columns, as [`PairwiseSum::sums_of_columns`].
    ///
    /// # Panics
    /// As [`PairwiseSum::sums_of_columns`].
    #[track_caller]
    pub fn squares_of_columns<E: Accumulate>(
        x: &[E],
        rows: usize,
        row_stride: usize,
        y: &mut [SquareSum],
    ) {
        let x = Rows::new("squares_of_columns", x, rows, y.len(), row_stride);
        E::fold_columns(ColumnFold(x, Columns::Squares(Folded::Partial(y.as_mut_ptr()))));
    }
}

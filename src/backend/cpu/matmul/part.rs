//! Products cut into parts that threads share. An element depends only on its row and its column, so the
//! bits do not depend on the cut.

use std::sync::OnceLock;

use smallvec::SmallVec;
use swath_kernels::{
    self as kernels, Epilogue, Float as _, Gemm, GemmError, GemmPath, MatMut, MatRef,
};

use super::super::Written;
use super::{Factor, Finish, Places, Rounded, parallel, refused};
use crate::error::{Error, Result};
use crate::runtime::workspace::Packed as _;

/// Units of the rows and columns of parts: whole tiles of every micro-kernel.
const ROW_UNIT: usize = 6;
const COL_UNIT: usize = 64;

/// An output of a product or of a part.
struct Out<'a, T: Factor> {
    /// The output, or the sums that are rounded.
    wide: MatMut<'a, T::Sum>,
    rounded: Option<MatMut<'a, T>>,
}

impl<'a, T: Factor> Out<'a, T> {
    /// Makes a row-major output, which is not rounded if `rounded` is empty.
    fn new(
        wide: &'a mut [T::Sum],
        rounded: &'a mut [T],
        shape: [usize; 2],
    ) -> std::result::Result<Self, GemmError> {
        let is_rounded = !rounded.is_empty();
        let rounded = is_rounded.then(|| MatMut::row_major(rounded, shape)).transpose()?;
        Ok(Out { wide: MatMut::row_major(wide, shape)?, rounded })
    }

    fn split_rows(self, at: usize) -> (Self, Self) {
        let (above, below) = self.wide.split_rows(at);
        let (rounded, rounded_below) = self.rounded.map(|rounded| rounded.split_rows(at)).unzip();
        (Out { wide: above, rounded }, Out { wide: below, rounded: rounded_below })
    }

    fn split_cols(self, at: usize) -> (Self, Self) {
        let (left, right) = self.wide.split_cols(at);
        let (rounded, rounded_right) = self.rounded.map(|rounded| rounded.split_cols(at)).unzip();
        (Out { wide: left, rounded }, Out { wide: right, rounded: rounded_right })
    }

    /// Rounds all elements if required.
    fn round(mut self) {
        if let (Some(round), Some(mut rounded)) = (T::ROUND, self.rounded) {
            if let (Some(x), Some(y)) = (self.wide.list_mut(), rounded.list_mut()) {
                return round(x, y);
            }
            let [rows, _] = rounded.shape();
            (0..rows).for_each(|i| round(self.wide.row_mut(i), rounded.row_mut(i)));
        }
    }
}

/// A part of a product.
pub(super) struct Part<'a, T: Factor> {
    a: MatRef<'a, T>,
    b: MatRef<'a, T>,
    finish: Finish<'a, T::Sum>,
    c: Out<'a, T>,
    /// The activation's input if kept.
    sums: Option<Out<'a, T>>,
    written: &'a Written,
}

/// Pieces of work that threads share.
pub(in crate::backend::cpu) type Pieces<T> = SmallVec<[T; 8]>;

impl<'a, T: Factor> Part<'a, T> {
    /// The part that is the whole product; an error if an output is too short for its shape.
    pub fn new(
        [a, b]: [MatRef<'a, T>; 2],
        finish: Finish<'a, T::Sum>,
        places: Places<'a, T::Sum>,
        rounded: Rounded<'a, T>,
        shape: [usize; 2],
    ) -> std::result::Result<Self, GemmError> {
        let Places { c, sums, written } = places;
        let keeps_sums = !sums.is_empty();
        let sums = keeps_sums.then(|| Out::new(sums, rounded.sums, shape)).transpose()?;
        Ok(Part { a, b, finish, c: Out::new(c, rounded.c, shape)?, sums, written })
    }

    /// Bisects C recursively into `parts` parts of about the same size.
    pub fn split(self, parts: usize, pieces: &mut Pieces<Self>) {
        let [m, n] = self.c.wide.shape();
        let (before, after) = (parts / 2, parts - parts / 2);
        let cut =
            |extent: usize, unit: usize| (extent * before / parts).max(1).next_multiple_of(unit);
        let (row, col) = (cut(m, ROW_UNIT), cut(n, COL_UNIT));
        // Each part of the rows packs B, and each part of the columns copies A unless its rows are contiguous
        // along k. Rounding to units may leave a part nearly empty; then the other direction is better.
        let has_columns = n >= parts * COL_UNIT;
        let by_rows = match self.a.strides()[1] {
            1 => m / 2 > n || !has_columns,
            _ => m >= n || !has_columns,
        };
        if parts > 1 && by_rows && row < m {
            let Part { a, b, finish, c, sums, written } = self;
            let (a_above, a_below) = a.split_rows(row);
            let (c_above, c_below) = c.split_rows(row);
            let (above, below) = sums.map(|sums| sums.split_rows(row)).unzip();
            Part { a: a_above, b, finish, c: c_above, sums: above, written }.split(before, pieces);
            Part { a: a_below, b, finish, c: c_below, sums: below, written }.split(after, pieces);
        } else if parts > 1 && col < n {
            let Part { a, b, finish, c, sums, written } = self;
            let (b_left, b_right) = b.split_cols(col);
            let (c_left, c_right) = c.split_cols(col);
            let (left, right) = sums.map(|sums| sums.split_cols(col)).unzip();
            let (bias_left, bias_right) = finish.bias.map(|bias| bias.split_at(col)).unzip();
            let with = |bias| Finish { bias, ..finish };
            let (finish_left, finish_right) = (with(bias_left), with(bias_right));
            Part { a, b: b_left, finish: finish_left, c: c_left, sums: left, written }
                .split(before, pieces);
            Part { a, b: b_right, finish: finish_right, c: c_right, sums: right, written }
                .split(after, pieces);
        } else {
            pieces.push(self);
        }
    }

    /// Computes the part on this thread.
    pub fn run(self) -> Result<GemmPath> {
        let Part { a, b, finish, mut c, mut sums, written } = self;
        let Finish { op, bias, function, add } = finish;
        let kept = sums.as_mut().map(|sums| sums.wide.reborrow());
        let apply = function.map(|kernel| move |z: &mut [T::Sum]| kernel.run_in_place([None], z));
        let activation =
            apply.as_ref().map(|function| kernels::Activation { function, sums: kept });
        let (one, out) = (T::Sum::ONE, c.wide.reborrow());
        let path = T::Sum::with_workspace(|workspace| match add {
            true => kernels::gemm(Gemm { a, b, alpha: one, beta: one }, out, workspace),
            false => {
                let epilogue = Epilogue { bias, activation };
                kernels::gemm_epilogue(a, b, epilogue, out, workspace)
            }
        })
        .map_err(refused(op))?;
        let [rows, cols] = c.wide.shape();
        written.add(rows * cols);
        [Some(c), sums].into_iter().flatten().for_each(Out::round);
        Ok(path)
    }
}

/// The value of the first of several pieces, or an error of any; threads record it in any order.
pub(in crate::backend::cpu) struct Outcome<R> {
    first: OnceLock<R>,
    error: OnceLock<Error>,
}

impl<R> Outcome<R> {
    pub fn new() -> Self {
        Outcome { first: OnceLock::new(), error: OnceLock::new() }
    }

    /// Records the result of piece `i`.
    pub fn record(&self, i: usize, result: Result<R>) {
        match result {
            Ok(value) if i == 0 => _ = self.first.set(value),
            Ok(_) => {}
            Err(error) => _ = self.error.set(error),
        }
    }

    /// Returns the value of the first piece, or `default` if there was none.
    pub fn or(self, default: R) -> Result<R> {
        match self.error.into_inner() {
            Some(error) => Err(error),
            None => Ok(self.first.into_inner().unwrap_or(default)),
        }
    }
}

/// Calls `f` on each piece, on all threads. Returns the value of the first piece, `default` if there is none,
/// or an error of any.
pub(in crate::backend::cpu) fn share<T: Send, R: Send + Sync>(
    pieces: impl IntoIterator<Item = T>,
    default: R,
    f: impl Fn(T) -> Result<R> + Sync,
) -> Result<R> {
    let outcome = Outcome::new();
    parallel::for_each_item(pieces, |i, piece| outcome.record(i, f(piece)));
    outcome.or(default)
}

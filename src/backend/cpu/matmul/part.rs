//! A product cut into parts that threads compute: an element depends on its row and its column alone,
//! so that no cut changes a bit.

use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;
use swath_kernels::{self as kernels, Epilogue, Float as _, Gemm, MatMut, MatRef};

use super::{Factor, Finish, Product as _, parallel, refused};
use crate::error::{Error, Result};

/// Rows, and columns, that parts of a product are multiples of: whole tiles of every micro-kernel.
const ROW_UNIT: usize = 6;
const COL_UNIT: usize = 64;

/// A part of a product.
pub(super) struct Part<'a, T: Factor> {
    pub a: MatRef<'a, T>,
    pub b: MatRef<'a, T>,
    pub finish: Finish<'a, T::Sum>,
    pub c: MatMut<'a, T::Sum>,
    pub sums: Option<MatMut<'a, T::Sum>>,
}

/// Pieces of work that a thread takes one by one.
pub(super) type Pieces<T> = SmallVec<[T; 8]>;

impl<'a, T: Factor> Part<'a, T> {
    /// Cuts C in two, again and again, into `parts` of about the same size.
    pub fn split(self, parts: usize, pieces: &mut Pieces<Self>) {
        let [m, n] = self.c.shape();
        let (before, after) = (parts / 2, parts - parts / 2);
        let cut =
            |extent: usize, unit: usize| (extent / parts * before).max(1).next_multiple_of(unit);
        let (row, col) = (cut(m, ROW_UNIT), cut(n, COL_UNIT));
        // Parts of the same columns each pack B, parts of the same rows each copy an A without runs of k.
        // Units may leave a part next to nothing: then the other way is better.
        let has_columns = n >= parts * COL_UNIT;
        let by_rows = match self.a.strides()[1] {
            1 => m / 2 > n || !has_columns,
            _ => m >= n || !has_columns,
        };
        if parts > 1 && by_rows && row < m {
            let Part { a, b, finish, c, sums } = self;
            let (a_above, a_below) = a.split_rows(row);
            let (c_above, c_below) = c.split_rows(row);
            let (above, below) = sums.map(|sums| sums.split_rows(row)).unzip();
            Part { a: a_above, b, finish, c: c_above, sums: above }.split(before, pieces);
            Part { a: a_below, b, finish, c: c_below, sums: below }.split(after, pieces);
        } else if parts > 1 && col < n {
            let Part { a, b, finish, c, sums } = self;
            let (b_left, b_right) = b.split_cols(col);
            let (c_left, c_right) = c.split_cols(col);
            let (left, right) = sums.map(|sums| sums.split_cols(col)).unzip();
            let (bias_left, bias_right) = finish.bias.map(|bias| bias.split_at(col)).unzip();
            let with = |bias| Finish { bias, ..finish };
            let (finish_left, finish_right) = (with(bias_left), with(bias_right));
            Part { a, b: b_left, finish: finish_left, c: c_left, sums: left }.split(before, pieces);
            Part { a, b: b_right, finish: finish_right, c: c_right, sums: right }
                .split(after, pieces);
        } else {
            pieces.push(self);
        }
    }

    /// Computes it on this thread.
    pub fn run(self) -> Result<()> {
        let Part { a, b, finish: Finish { op, bias, function, add }, c, sums } = self;
        let activation = function.map(|function| kernels::Activation { function, sums });
        let one = T::Sum::ONE;
        T::Sum::workspace()
            .with_borrow_mut(|workspace| match add {
                true => kernels::gemm(Gemm { a, b, alpha: one, beta: one }, c, workspace),
                false => kernels::gemm_epilogue(a, b, Epilogue { bias, activation }, c, workspace),
            })
            .map_err(refused(op))
    }
}

/// `f` of each piece, on all threads; the last error, if there is one.
pub(super) fn share<T: Send>(pieces: Pieces<T>, f: impl Fn(T) -> Result<()> + Sync) -> Result<()> {
    let slots: Pieces<_> = pieces.into_iter().map(|piece| Mutex::new(Some(piece))).collect();
    let failure: Mutex<Option<Error>> = Mutex::new(None);
    parallel::for_each_index(slots.len(), |i| {
        let piece = slots[i].lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(piece) = piece
            && let Err(error) = f(piece)
        {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

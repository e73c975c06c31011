//! A product cut into parts that threads compute: an element depends on its row and its column alone,
//! so that no cut changes a bit.

use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;
use swath_kernels::{
    self as kernels, Epilogue, Float as _, Gemm, GemmError, GemmPath, MatMut, MatRef,
};

use super::{Factor, Finish, Packed as _, Places, Rounded, parallel, refused};
use crate::error::Result;

/// Rows, and columns, that parts of a product are multiples of: whole tiles of every micro-kernel.
const ROW_UNIT: usize = 6;
const COL_UNIT: usize = 64;

/// A result of a product, or a part of it.
struct Out<'a, T: Factor> {
    /// It, or what it is rounded from.
    wide: MatMut<'a, T::Sum>,
    rounded: Option<MatMut<'a, T>>,
}

impl<'a, T: Factor> Out<'a, T> {
    /// Row-major; not rounded if `rounded` is empty.
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

    /// Rounds all elements, if they are.
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
    /// The sums, if they are kept.
    sums: Option<Out<'a, T>>,
}

/// Pieces of work that a thread takes one by one.
pub(super) type Pieces<T> = SmallVec<[T; 8]>;

impl<'a, T: Factor> Part<'a, T> {
    /// All of a product; an error if places are shorter than its shape says.
    pub fn new(
        [a, b]: [MatRef<'a, T>; 2],
        finish: Finish<'a, T::Sum>,
        places: Places<'a, T::Sum>,
        rounded: Rounded<'a, T>,
        shape: [usize; 2],
    ) -> std::result::Result<Self, GemmError> {
        let (keeps_sums, sums) = (!places.sums.is_empty(), places.sums);
        let sums = keeps_sums.then(|| Out::new(sums, rounded.sums, shape)).transpose()?;
        Ok(Part { a, b, finish, c: Out::new(places.c, rounded.c, shape)?, sums })
    }

    /// Cuts C in two, again and again, into `parts` of about the same size.
    pub fn split(self, parts: usize, pieces: &mut Pieces<Self>) {
        let [m, n] = self.c.wide.shape();
        let (before, after) = (parts / 2, parts - parts / 2);
        let cut =
            |extent: usize, unit: usize| (extent * before / parts).max(1).next_multiple_of(unit);
        let (row, col) = (cut(m, ROW_UNIT), cut(n, COL_UNIT));
        // Parts of the same columns each pack B, parts of the same rows each copy an A without runs of k, or of 16-bit floats.
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
    pub fn run(self) -> Result<GemmPath> {
        let Part { a, b, finish: Finish { op, bias, function, add }, mut c, mut sums } = self;
        let kept = sums.as_mut().map(|sums| sums.wide.reborrow());
        let apply = function.map(|kernel| move |z: &mut [T::Sum]| kernel.run_in_place([None], z));
        let activation =
            apply.as_ref().map(|function| kernels::Activation { function, sums: kept });
        let (one, out) = (T::Sum::ONE, c.wide.reborrow());
        let path = T::Sum::workspace()
            .with_borrow_mut(|workspace| match add {
                true => kernels::gemm(Gemm { a, b, alpha: one, beta: one }, out, workspace),
                false => {
                    let epilogue = Epilogue { bias, activation };
                    kernels::gemm_epilogue(a, b, epilogue, out, workspace)
                }
            })
            .map_err(refused(op))?;
        [Some(c), sums].into_iter().flatten().for_each(Out::round);
        Ok(path)
    }
}

/// What the first of several pieces tells, or why one failed; threads note it in any order.
pub(super) struct Outcome<R>(Mutex<Option<Result<R>>>);

impl<R> Outcome<R> {
    pub fn new() -> Self {
        Outcome(Mutex::new(None))
    }

    /// What became of piece `i`.
    pub fn note(&self, i: usize, news: Result<R>) {
        if i > 0 && news.is_ok() {
            return;
        }
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*noted, Some(Err(_))) {
            *noted = Some(news);
        }
    }

    /// `nothing` if there was no piece.
    pub fn or(self, nothing: R) -> Result<R> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).unwrap_or(Ok(nothing))
    }
}

/// `f` of each piece, on all threads.
pub(super) fn share<T: Send>(
    pieces: Pieces<T>,
    f: impl Fn(T) -> Result<GemmPath> + Sync,
) -> Result<GemmPath> {
    let slots: Pieces<_> = pieces.into_iter().map(|piece| Mutex::new(Some(piece))).collect();
    let outcome = Outcome::new();
    parallel::for_each_index(slots.len(), |i| {
        let piece = slots[i].lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(piece) = piece {
            outcome.note(i, f(piece));
        }
    });
    outcome.or(GemmPath::Blocked)
}

#[cfg(test)]
mod tests {
    use super::Outcome;
    use crate::error::Error;

    #[test]
    fn an_outcome_is_the_first_error_or_what_the_first_piece_tells() {
        let failed =
            |piece: i32| Error::InvalidArgument { op: "matmul", reason: piece.to_string() };
        let notes = [(0, Ok(5)), (1, Ok(6)), (2, Err(2)), (3, Err(3))];
        for order in (0..4 * 4 * 4 * 4).map(|at| [at / 64, at / 16 % 4, at / 4 % 4, at % 4]) {
            // Pieces noted so far, in any order, each once.
            for len in 0..=4 {
                let order = &order[..len];
                if (1..len).any(|i| order[..i].contains(&order[i])) {
                    continue;
                }
                let outcome = Outcome::new();
                for &at in order {
                    let (piece, news) = notes[at];
                    outcome.note(piece, news.map_err(failed));
                }
                let first_error = order.iter().find_map(|&at| notes[at].1.err());
                let expected = match first_error {
                    Some(piece) => Err(failed(piece)),
                    None => Ok(if order.contains(&0) { 5 } else { 7 }),
                };
                assert_eq!(format!("{:?}", outcome.or(7)), format!("{expected:?}"), "{order:?}");
            }
        }
    }
}

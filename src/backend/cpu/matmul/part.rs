//! Products cut into parts that threads share. An element depends only on its row and its column, so the
//! bits do not depend on the cut.

use std::sync::OnceLock;

use smallvec::SmallVec;
use swath_kernels::{
    self as kernels, Epilogue, Float as _, Gemm, GemmError, GemmPath, MatMut, MatRef, Right,
};

use super::super::written::Written;
use super::{Factor, parallel, refused};
use crate::error::{Error, Result};
use crate::runtime::workspace::Packed as _;

/// Units of the rows and columns of parts: whole tiles of every micro-kernel.
const ROW_UNIT: usize = 6;
const COL_UNIT: usize = 64;

/// Common to all parts of a product, and to all products of a batch.
pub(in crate::backend::cpu) struct Task<'a, E> {
    /// Name of the operation for errors.
    pub op: &'static str,
    /// True if products are added to the content of the outputs.
    pub add: bool,
    /// The epilogue of each product, without the memory of its sums.
    pub epilogue: Epilogue<'a, E>,
    /// Counts the elements of the results.
    pub written: &'a Written,
}

/// A product `[m, k] × [k, n]` and its outputs, or a part of one.
pub(in crate::backend::cpu) struct Part<'a, T: Factor> {
    pub task: &'a Task<'a, T::Sum>,
    pub a: MatRef<'a, T>,
    pub b: MatRef<'a, T>,
    pub c: MatMut<'a, T::Sum>,
    pub epilogue: Epilogue<'a, T::Sum>,
    /// Get `c` and the epilogue's sums as 16-bit floats.
    pub rounded: [Option<MatMut<'a, T>>; 2],
}

/// Pieces of work that threads share.
pub(in crate::backend::cpu) type Pieces<T> = SmallVec<[T; 8]>;

impl<'a, T: Factor> Part<'a, T> {
    /// The part that is the whole product, with row-major outputs; `sums` is empty if they are not kept. Inlined, and
    /// passed on by reference, because moving a part takes longer than the smallest products.
    #[inline(always)]
    pub fn new(
        task: &'a Task<'a, T::Sum>,
        [a, b]: [MatRef<'a, T>; 2],
        c: &'a mut [T::Sum],
        sums: &'a mut [T::Sum],
    ) -> std::result::Result<Self, GemmError> {
        let shape = [a.shape()[0], b.shape()[1]];
        let (c, sums) = (MatMut::row_major(c, shape)?, output(sums, shape)?);
        let epilogue = Epilogue { sums, ..task.epilogue };
        Ok(Part { task, a, b, c, epilogue, rounded: [None, None] })
    }

    /// The same part for a shorter time.
    pub fn reborrow(&mut self) -> Part<'_, T> {
        let rounded = self.rounded.each_mut().map(|matrix| matrix.as_mut().map(MatMut::reborrow));
        let (c, epilogue) = (self.c.reborrow(), self.epilogue.reborrow());
        Part { task: self.task, a: self.a, b: self.b, c, epilogue, rounded }
    }

    /// Extents m, k, n.
    pub fn shape(&self) -> [usize; 3] {
        let [m, n] = self.c.shape();
        [m, self.a.shape()[1], n]
    }

    pub fn split_rows(self, at: usize) -> (Self, Self) {
        let (a, a_below) = self.a.split_rows(at);
        let (c, c_below) = self.c.split_rows(at);
        let (epilogue, epilogue_below) = self.epilogue.split_rows(at);
        let [(y, y_below), (z, z_below)] =
            self.rounded.map(|matrix| matrix.map(|matrix| matrix.split_rows(at)).unzip());
        let below = Part {
            a: a_below,
            c: c_below,
            epilogue: epilogue_below,
            rounded: [y_below, z_below],
            ..self
        };
        (Part { a, c, epilogue, rounded: [y, z], ..below }, below)
    }

    pub fn split_cols(self, at: usize) -> (Self, Self) {
        let (b, b_right) = self.b.split_cols(at);
        let (c, c_right) = self.c.split_cols(at);
        let (epilogue, epilogue_right) = self.epilogue.split_cols(at);
        let [(y, y_right), (z, z_right)] =
            self.rounded.map(|matrix| matrix.map(|matrix| matrix.split_cols(at)).unzip());
        let right = Part {
            b: b_right,
            c: c_right,
            epilogue: epilogue_right,
            rounded: [y_right, z_right],
            ..self
        };
        (Part { b, c, epilogue, rounded: [y, z], ..right }, right)
    }

    /// Bisects C recursively into `parts` parts of about the same size.
    pub fn split(self, parts: usize, pieces: &mut Pieces<Self>) {
        let [m, _, n] = self.shape();
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
        let (first, rest) = if parts > 1 && by_rows && row < m {
            self.split_rows(row)
        } else if parts > 1 && col < n {
            self.split_cols(col)
        } else {
            return pieces.push(self);
        };
        first.split(before, pieces);
        rest.split(after, pieces);
    }

    /// Computes the part on this thread.
    pub fn run(&mut self) -> Result<GemmPath> {
        let b = self.b;
        self.run_by(b)
    }

    /// Computes the part on this thread, with its B in any form.
    pub fn run_by<'b>(&mut self, b: impl Into<Right<'b, T>>) -> Result<GemmPath>
    where
        'a: 'b,
    {
        let beta = if self.task.add { T::Sum::ONE } else { T::Sum::ZERO };
        let epilogue = self.epilogue.reborrow();
        let product = Gemm { beta, epilogue, ..Gemm::new(self.a, b) };
        let c = self.c.reborrow();
        let path = T::Sum::with_workspace(|workspace| kernels::gemm(product, c, workspace))
            .map_err(refused(self.task.op))?;
        self.complete();
        Ok(path)
    }

    /// Applies the epilogue to sums in C, on this thread.
    pub fn finish(&mut self) -> Result<()> {
        self.epilogue.apply(self.c.reborrow()).map_err(refused(self.task.op))?;
        self.complete();
        Ok(())
    }

    /// Counts the elements and rounds them if required.
    fn complete(&mut self) {
        let [m, _, n] = self.shape();
        self.task.written.add(m * n);
        let Some(round) = T::ROUND else { return };
        let outputs = [Some(&mut self.c), self.epilogue.sums.as_mut()];
        for (wide, rounded) in outputs.into_iter().zip(&mut self.rounded) {
            let (Some(wide), Some(rounded)) = (wide, rounded) else { continue };
            if let (Some(x), Some(y)) = (wide.list_mut(), rounded.list_mut()) {
                round(x, y);
                continue;
            }
            (0..m).for_each(|i| round(wide.row_mut(i), rounded.row_mut(i)));
        }
    }
}

/// A row-major output; none if it is empty.
pub(super) fn output<E>(
    elements: &mut [E],
    shape: [usize; 2],
) -> std::result::Result<Option<MatMut<'_, E>>, GemmError> {
    let exists = !elements.is_empty();
    exists.then(|| MatMut::row_major(elements, shape)).transpose()
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

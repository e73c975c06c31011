//! Cuts the outputs of a call into parts of batches and heads, which threads share. Of a kernel along columns,
//! a batch is a matrix and a head some of its columns.

use std::array::from_fn;

use smallvec::SmallVec;
use swath_kernels::MatMut;

use crate::runtime::parallel;

/// Output of heads `[rows, columns]`: the matrix `[batches · rows, heads · columns]`, whose last head may have
/// fewer columns.
pub(super) struct Heads<'a, E> {
    pub matrix: MatMut<'a, E>,
    pub rows: usize,
    pub columns: usize,
}

/// Outputs that can be cut by batches or by heads.
pub(super) trait Split: Sized {
    /// Splits into batches `..at` and the others.
    fn batches(self, at: usize) -> (Self, Self);
    /// Splits into heads `..at` of every batch and the others.
    fn heads(self, at: usize) -> (Self, Self);
}

impl<E> Split for Heads<'_, E> {
    fn batches(self, at: usize) -> (Self, Self) {
        let Heads { matrix, rows, columns } = self;
        let (above, below) = matrix.split_rows(at * rows);
        (Heads { matrix: above, rows, columns }, Heads { matrix: below, rows, columns })
    }

    fn heads(self, at: usize) -> (Self, Self) {
        let Heads { matrix, rows, columns } = self;
        let at = matrix.shape()[1].min(at * columns);
        let (left, right) = matrix.split_cols(at);
        (Heads { matrix: left, rows, columns }, Heads { matrix: right, rows, columns })
    }
}

impl<A: Split, B: Split> Split for (A, B) {
    fn batches(self, at: usize) -> (Self, Self) {
        let ((a, a_rest), (b, b_rest)) = (self.0.batches(at), self.1.batches(at));
        ((a, b), (a_rest, b_rest))
    }

    fn heads(self, at: usize) -> (Self, Self) {
        let ((a, a_rest), (b, b_rest)) = (self.0.heads(at), self.1.heads(at));
        ((a, b), (a_rest, b_rest))
    }
}

impl<A: Split, const N: usize> Split for [A; N] {
    fn batches(self, at: usize) -> (Self, Self) {
        unzip(self.map(|x| x.batches(at)))
    }

    fn heads(self, at: usize) -> (Self, Self) {
        unzip(self.map(|x| x.heads(at)))
    }
}

fn unzip<A, const N: usize>(pairs: [(A, A); N]) -> ([A; N], [A; N]) {
    let mut second = [const { None }; N];
    let mut pairs = pairs.into_iter().zip(&mut second);
    let first = from_fn(|_| {
        let ((first, rest), second) = pairs.next().expect("N pairs");
        *second = Some(rest);
        first
    });
    (first, second.map(|x| x.expect("N pairs")))
}

/// Outputs of some batches and heads, computed by one thread.
pub(super) struct Part<T> {
    /// First batch and first head.
    pub first: [usize; 2],
    /// Number of batches, and of heads per batch.
    pub count: [usize; 2],
    pub results: T,
}

impl<T: Split> Part<T> {
    /// Calls `f(index of the head, its outputs)` for every head.
    pub fn each<E>(
        self,
        heads: usize,
        mut f: impl FnMut(usize, T) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = self.results;
        for batch in self.first[0]..self.first[0] + self.count[0] {
            let (mut row, after) = rest.batches(1);
            rest = after;
            for head in self.first[1]..self.first[1] + self.count[1] {
                let (results, after) = row.heads(1);
                row = after;
                f(batch * heads + head, results)?;
            }
        }
        Ok(())
    }
}

/// Cuts outputs into about `parts` parts: of whole batches or, if those are few, of heads of one batch.
pub(super) fn cut<T: Split>(
    results: T,
    [batches, heads]: [usize; 2],
    parts: usize,
) -> SmallVec<[Part<T>; 16]> {
    let by_batch = batches.min(parts).max(1);
    let by_head = if by_batch < parts { parts.div_ceil(by_batch).min(heads).max(1) } else { 1 };
    let mut rest = results;
    let mut all = SmallVec::new();
    for i in 0..by_batch {
        let first = parallel::even_start(batches, by_batch, i);
        let batches = parallel::even_start(batches, by_batch, i + 1) - first;
        let (mut row, after) = rest.batches(batches);
        rest = after;
        for j in 0..by_head {
            let first_head = parallel::even_start(heads, by_head, j);
            let heads = parallel::even_start(heads, by_head, j + 1) - first_head;
            let (results, after) = row.heads(heads);
            row = after;
            all.push(Part { first: [first, first_head], count: [batches, heads], results });
        }
    }
    all
}

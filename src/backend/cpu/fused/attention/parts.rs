//! Threads share the heads of a call: its results are cut into parts of heads.

use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;
use swath_kernels::{GemmError, MatMut};

use super::super::super::matmul::refused;
use super::Extents;
use crate::error::Result;
use crate::runtime::parallel;

/// A result of heads `[rows, columns]`: the matrix `[batches · rows, heads · columns]`.
pub(super) struct Heads<'a, E> {
    pub matrix: MatMut<'a, E>,
    pub rows: usize,
    pub columns: usize,
}

/// Results that can be cut by batches or by heads.
pub(super) trait Split: Sized {
    /// Batches `..at`, and the others.
    fn batches(self, at: usize) -> (Self, Self);
    /// Heads `..at` of every batch, and the others.
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
        let (left, right) = matrix.split_cols(at * columns);
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

/// The results of some batches and heads, for one thread.
pub(super) struct Part<T> {
    /// First batch and first head.
    pub first: [usize; 2],
    /// Number of batches and of heads in each.
    pub count: [usize; 2],
    pub results: T,
}

impl<T: Split> Part<T> {
    /// `f(number of the head, its results)` for every head.
    pub fn each<E>(
        self,
        heads: usize,
        mut f: impl FnMut(usize, T) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
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

/// Parts, each taken by the thread that computes it.
pub(super) type Parts<T> = SmallVec<[Mutex<Option<Part<T>>>; 16]>;

/// About `parts` parts of whole batches or, if those are few, of heads of one batch.
pub(super) fn cut<T: Split>(results: T, shape: &Extents, parts: usize) -> Parts<T> {
    let Extents { batches, heads, .. } = *shape;
    let by_batch = batches.min(parts).max(1);
    let by_head = if by_batch < parts { parts.div_ceil(by_batch).min(heads).max(1) } else { 1 };
    let mut rest = results;
    let mut all = Parts::new();
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
            let part = Part { first: [first, first_head], count: [batches, heads], results };
            all.push(Mutex::new(Some(part)));
        }
    }
    all
}

/// `f` on each of the things, on any thread; the first error that is found.
pub(super) fn run<T: Send>(
    op: &'static str,
    things: &[Mutex<Option<T>>],
    f: impl Fn(T) -> std::result::Result<(), GemmError> + Sync,
) -> Result<()> {
    let failure = Mutex::new(None);
    parallel::for_each_index(things.len(), |i| {
        let thing = things[i].lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thing) = thing
            && let Err(error) = f(thing)
        {
            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(refused(op)(error)),
        None => Ok(()),
    }
}

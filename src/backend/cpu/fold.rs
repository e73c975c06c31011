//! What a reduction folds with: sums and extremes of each element type.

use std::marker::PhantomData;

use bytemuck::Pod;
use swath_kernels::{self as kernels, PairwiseSum};

use super::cast::Half;
use crate::dtype::Element;

/// A fold of elements `T`.
pub(super) trait Fold<T>: Sync {
    /// What it results in.
    type Out: Pod + Send + Sync;
    /// A fold in progress.
    type State: Send;
    /// A fold of nothing.
    fn start(&self) -> Self::State;
    /// Takes elements; in all but the last call a whole number of blocks.
    fn push(&self, state: &mut Self::State, x: &[T]);
    /// Takes the fold of the elements that follow, where they are a subtree.
    fn append(&self, state: &mut Self::State, next: &Self::State);
    /// The result.
    fn finish(&self, state: Self::State) -> Self::Out;
    /// The fold of these elements, at most one block, by themselves.
    fn block(&self, x: &[T]) -> Self::Out {
        let mut state = self.start();
        self.push(&mut state, x);
        self.finish(state)
    }
    /// Folds each column of a matrix of `rows` > 0 rows at once; false if there is no such kernel.
    fn columns(&self, _x: &[T], _rows: usize, _stride: usize, _y: &mut [Self::Out]) -> bool {
        false
    }
}

/// Sum in `f64`, divided by the count for a mean, and rounded once.
pub(super) struct SumFloat<E> {
    count: Option<f64>,
    element: PhantomData<fn(E)>,
}

impl<E> SumFloat<E> {
    pub fn sum() -> Self {
        SumFloat { count: None, element: PhantomData }
    }

    pub fn mean(count: f64) -> Self {
        SumFloat { count: Some(count), element: PhantomData }
    }
}

impl<E: Element<Stored = E> + Pod + kernels::Reduce> Fold<E> for SumFloat<E> {
    type Out = E;
    type State = PairwiseSum;

    fn start(&self) -> PairwiseSum {
        PairwiseSum::new()
    }

    fn push(&self, state: &mut PairwiseSum, x: &[E]) {
        state.push_slice(x);
    }

    fn block(&self, x: &[E]) -> E {
        <E as Element>::from_f64(kernels::Reduce::sum(x) / self.count.unwrap_or(1.0))
    }

    fn append(&self, state: &mut PairwiseSum, next: &PairwiseSum) {
        state.append(next);
    }

    fn finish(&self, state: PairwiseSum) -> E {
        <E as Element>::from_f64(state.finish() / self.count.unwrap_or(1.0))
    }

    fn columns(&self, x: &[E], rows: usize, stride: usize, y: &mut [E]) -> bool {
        match self.count {
            None => kernels::sum_columns(x, rows, stride, y),
            Some(count) if count == rows as f64 => kernels::mean_columns(x, rows, stride, y),
            // The rows are a part of what is averaged: rounding here would be once too often.
            Some(_) => return false,
        }
        true
    }
}

const BLOCK: usize = PairwiseSum::BLOCK;

/// As [`SumFloat`], of elements widened block by block.
pub(super) struct SumHalf<H> {
    count: Option<f64>,
    element: PhantomData<fn(H)>,
}

impl<H> SumHalf<H> {
    pub fn sum() -> Self {
        SumHalf { count: None, element: PhantomData }
    }

    pub fn mean(count: f64) -> Self {
        SumHalf { count: Some(count), element: PhantomData }
    }
}

impl<H: Half> Fold<H> for SumHalf<H> {
    type Out = H;
    type State = PairwiseSum;

    fn start(&self) -> PairwiseSum {
        PairwiseSum::new()
    }

    fn push(&self, state: &mut PairwiseSum, x: &[H]) {
        let mut wide = [0f32; BLOCK];
        for x in x.chunks(BLOCK) {
            H::widen(x, &mut wide[..x.len()]);
            state.push_slice(&wide[..x.len()]);
        }
    }

    fn append(&self, state: &mut PairwiseSum, next: &PairwiseSum) {
        state.append(next);
    }

    fn finish(&self, state: PairwiseSum) -> H {
        H::from_f64(state.finish() / self.count.unwrap_or(1.0))
    }
}

/// Wrapping sum in `i64`.
pub(super) struct SumInt<T>(PhantomData<fn(T)>);

impl<T> SumInt<T> {
    pub fn new() -> Self {
        SumInt(PhantomData)
    }
}

impl<T: Element> Fold<T> for SumInt<T> {
    type Out = i64;
    type State = i64;

    fn start(&self) -> i64 {
        0
    }

    fn push(&self, state: &mut i64, x: &[T]) {
        *state = x.iter().fold(*state, |sum, x| sum.wrapping_add(x.to_i64()));
    }

    fn append(&self, state: &mut i64, next: &i64) {
        *state = state.wrapping_add(*next);
    }

    fn finish(&self, state: i64) -> i64 {
        state
    }

    fn columns(&self, x: &[T], rows: usize, stride: usize, y: &mut [i64]) -> bool {
        y.fill(0);
        for row in 0..rows {
            let x = &x[row * stride..];
            y.iter_mut().zip(x).for_each(|(y, x)| *y = y.wrapping_add(x.to_i64()));
        }
        true
    }
}

/// Largest or smallest float; NaN if there is one, −0 < +0.
pub(super) struct ExtremeFloat<E> {
    largest: bool,
    element: PhantomData<fn(E)>,
}

impl<E> ExtremeFloat<E> {
    pub fn new(largest: bool) -> Self {
        ExtremeFloat { largest, element: PhantomData }
    }
}

impl<E: kernels::Reduce> ExtremeFloat<E> {
    fn of(&self, x: &[E]) -> Option<E> {
        if self.largest { kernels::max(x) } else { kernels::min(x) }
    }
}

impl<E: Element<Stored = E> + Pod + kernels::Reduce> Fold<E> for ExtremeFloat<E> {
    type Out = E;
    type State = Option<E>;

    fn start(&self) -> Option<E> {
        None
    }

    fn push(&self, state: &mut Option<E>, x: &[E]) {
        let next = self.of(x);
        self.append(state, &next);
    }

    fn append(&self, state: &mut Option<E>, next: &Option<E>) {
        *state = match (*state, *next) {
            (Some(a), Some(b)) => self.of(&[a, b]),
            (a, b) => a.or(b),
        };
    }

    fn finish(&self, state: Option<E>) -> E {
        state.unwrap_or(E::NAN)
    }

    fn columns(&self, x: &[E], rows: usize, stride: usize, y: &mut [E]) -> bool {
        match self.largest {
            true => kernels::max_columns(x, rows, stride, y),
            false => kernels::min_columns(x, rows, stride, y),
        }
        true
    }
}

/// As [`ExtremeFloat`], of elements widened block by block; the result is one of them.
pub(super) struct ExtremeHalf<H> {
    wide: ExtremeFloat<f32>,
    element: PhantomData<fn(H)>,
}

impl<H> ExtremeHalf<H> {
    pub fn new(largest: bool) -> Self {
        ExtremeHalf { wide: ExtremeFloat::new(largest), element: PhantomData }
    }
}

impl<H: Half> Fold<H> for ExtremeHalf<H> {
    type Out = H;
    type State = Option<f32>;

    fn start(&self) -> Option<f32> {
        None
    }

    fn push(&self, state: &mut Option<f32>, x: &[H]) {
        let mut wide = [0f32; BLOCK];
        for x in x.chunks(BLOCK) {
            H::widen(x, &mut wide[..x.len()]);
            self.wide.push(state, &wide[..x.len()]);
        }
    }

    fn append(&self, state: &mut Option<f32>, next: &Option<f32>) {
        self.wide.append(state, next);
    }

    fn finish(&self, state: Option<f32>) -> H {
        H::from_f64(f64::from(self.wide.finish(state)))
    }
}

/// Largest or smallest integer.
pub(super) struct ExtremeInt<T> {
    largest: bool,
    element: PhantomData<fn(T)>,
}

impl<T> ExtremeInt<T> {
    pub fn new(largest: bool) -> Self {
        ExtremeInt { largest, element: PhantomData }
    }
}

impl<T: Element<Stored = T> + Pod + Ord> Fold<T> for ExtremeInt<T> {
    type Out = T;
    type State = Option<T>;

    fn start(&self) -> Option<T> {
        None
    }

    fn push(&self, state: &mut Option<T>, x: &[T]) {
        let next = if self.largest { x.iter().max() } else { x.iter().min() }.copied();
        self.append(state, &next);
    }

    fn append(&self, state: &mut Option<T>, next: &Option<T>) {
        *state = match (*state, *next) {
            (Some(a), Some(b)) => Some(if self.largest { a.max(b) } else { a.min(b) }),
            (a, b) => a.or(b),
        };
    }

    fn finish(&self, state: Option<T>) -> T {
        state.unwrap_or_default()
    }

    fn columns(&self, x: &[T], rows: usize, stride: usize, y: &mut [T]) -> bool {
        let cols = y.len();
        y.copy_from_slice(&x[..cols]);
        for row in 1..rows {
            let x = &x[row * stride..][..cols];
            match self.largest {
                true => y.iter_mut().zip(x).for_each(|(y, x)| *y = (*y).max(*x)),
                false => y.iter_mut().zip(x).for_each(|(y, x)| *y = (*y).min(*x)),
            }
        }
        true
    }
}

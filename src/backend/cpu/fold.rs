//! What a reduction folds with, for each kind of element.
//!
//! | fold | elements | what |
//! |---|---|---|
//! | [`Tree`] | floats | sums, products, moments: the kernels' tree in `f64`, rounded once |
//! | [`Extreme`], [`Place`] | floats | an element, and where it is |
//! | [`Integers`] | integers | sums and products, wrapping |
//! | [`ExtremeInteger`], [`PlaceInteger`] | integers | an element, and where it is |
//! | [`Truth`] | all | any and all |

mod loaded;

use std::marker::PhantomData;

use bytemuck::{Pod, Zeroable};
use swath_kernels::{
    self as kernels, Integer, IntegerEnd, IntegerFold, Pairwise, PairwiseSum, Partial,
};

use super::memory::Buffer;
use super::parallel;
use loaded::{BAND_COLS, widened_bands};

pub(super) use loaded::Loaded;

/// Elements of each of at most so many parts of `len`: equally many, a power of two of, blocks, which are
/// subtrees.
pub(super) fn part_len(len: usize, parts: usize) -> usize {
    len.div_ceil(PairwiseSum::BLOCK).div_ceil(parts).next_power_of_two() * PairwiseSum::BLOCK
}

/// Elements of a result up to which many are turned into columns and folded side by side. Of 24 sums take
/// 0.97 of the time of calls on Zen 3 and 1.1 to 1.3 on Zen 5, of 20 and of 16 0.85 and less; the largest element, variances
/// and logsumexp 0.4 to 0.8 of 24, and of 28 0.65 to 0.8.
pub(super) const MOST_SHORT: usize = 24;

/// As [`MOST_SHORT`], of places, whose calls take 30 ns: 0.64 of the time at 48 (`f64` 1.0), 0.35 at 32.
const MOST_SHORT_PLACES: usize = 48;

/// A fold of elements `T`.
pub(super) trait Fold<T>: Sync {
    /// What it results in.
    type Out: Pod + Send + Sync;
    /// A fold in progress.
    type State: Send;
    /// Most elements of a result where many are folded side by side.
    const MOST_SHORT: usize = MOST_SHORT;
    /// A fold of nothing.
    fn start(&self) -> Self::State;
    /// Takes elements; in all but the last call a whole number of blocks.
    fn push(&self, state: &mut Self::State, x: &[T]);
    /// Takes the fold of the elements that follow, where they are a subtree.
    fn append(&self, state: &mut Self::State, next: &Self::State);
    /// The result. By reference: a tree's state is long.
    fn finish(&self, state: &Self::State) -> Self::Out;
    /// Folds each column of a matrix of `rows` > 0 rows.
    fn columns(&self, x: &[T], rows: usize, stride: usize, y: &mut [Self::Out]);
    /// The same by threads that share the rows.
    fn columns_in_parts(&self, parts: Parts<'_, T>, y: &mut [Self::Out]);
}

/// A matrix whose rows threads share, in parts of a length that [`part_len`] gives.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a, T> {
    pub x: &'a [T],
    pub rows: usize,
    pub stride: usize,
    pub part_rows: usize,
}

impl<T: Sync> Parts<'_, T> {
    /// Hands on what `f` makes of the columns of each part, a row a part.
    fn each<Y: Pod + Send>(&self, cols: usize, f: OfColumns<'_, T, Y>, join: impl FnOnce(&[Y])) {
        let Parts { x, rows, stride, part_rows } = *self;
        let parts = rows.div_ceil(part_rows);
        let mut memory = Buffer::scratch(parts * cols * size_of::<Y>());
        let results = memory.as_slice_mut::<Y>();
        parallel::for_each_part_mut(results, parts, &|part| part * cols, &|part, results| {
            let first = part * part_rows;
            f(&x[first * stride..], part_rows.min(rows - first), stride, results);
        });
        join(results);
    }

    /// Places in the whole of places in the parts, of which the first is taken that no other beats.
    fn places(&self, places: &[i64], y: &mut [i64], beats: impl Fn(&T, &T) -> bool) {
        let cols = y.len();
        for (c, y) in y.iter_mut().enumerate() {
            let rows = places[c..].iter().step_by(cols).enumerate();
            let mut rows = rows.map(|(part, &place)| part * self.part_rows + place as usize);
            let at = |row: usize| &self.x[row * self.stride + c];
            let first = rows.next().unwrap_or(0);
            let best =
                rows.fold(first, |best, row| if beats(at(row), at(best)) { row } else { best });
            *y = best as i64;
        }
    }
}

/// A kernel that makes `Y` of each column of `rows` rows, `stride` elements apart.
pub(super) type OfColumns<'a, E, Y> = &'a (dyn Fn(&[E], usize, usize, &mut [Y]) + Sync);

/// A fold in the kernels' tree.
pub(super) struct Tree<'a, P, E> {
    /// Takes elements.
    pub push: &'a (dyn Fn(&mut Pairwise<P>, &[E]) + Sync),
    /// The result, before it is rounded.
    pub finish: &'a (dyn Fn(P) -> f64 + Sync),
    /// The same of columns.
    pub columns: OfColumns<'a, E, E>,
    /// What columns of a part of the rows fold to.
    pub part: OfColumns<'a, E, P>,
}

impl<P: Partial, T: Loaded> Fold<T> for Tree<'_, P, T> {
    type Out = T;
    type State = Pairwise<P>;

    fn start(&self) -> Pairwise<P> {
        Pairwise::new()
    }

    fn push(&self, state: &mut Pairwise<P>, x: &[T]) {
        (self.push)(state, x);
    }

    fn append(&self, state: &mut Pairwise<P>, next: &Pairwise<P>) {
        state.append(next);
    }

    fn finish(&self, state: &Pairwise<P>) -> T {
        T::rounded((self.finish)(state.finish()))
    }

    fn columns(&self, x: &[T], rows: usize, stride: usize, y: &mut [T]) {
        (self.columns)(x, rows, stride, y);
    }

    fn columns_in_parts(&self, parts: Parts<'_, T>, y: &mut [T]) {
        let cols = y.len();
        parts.each(cols, self.part, |partials| {
            for (c, y) in y.iter_mut().enumerate() {
                let mut whole = Pairwise::new();
                partials[c..].iter().step_by(cols).for_each(|&partial| whole.push(partial));
                *y = T::rounded((self.finish)(whole.finish()));
            }
        });
    }
}

/// The float at one end of an order.
pub(super) struct Extreme<'a, E> {
    /// Of a slice that is not empty.
    pub of: fn(&[E]) -> Option<E>,
    pub columns: OfColumns<'a, E, E>,
    /// Of no elements.
    pub none: f64,
}

impl<T: Loaded> Fold<T> for Extreme<'_, T::Wide> {
    type Out = T;
    type State = Option<T::Wide>;

    fn start(&self) -> Self::State {
        None
    }

    fn push(&self, state: &mut Self::State, x: &[T]) {
        T::feed(x, |x| <Self as Fold<T>>::append(self, state, &(self.of)(x)));
    }

    fn append(&self, state: &mut Self::State, next: &Self::State) {
        *state = match (*state, *next) {
            (Some(a), Some(b)) => (self.of)(&[a, b]),
            (a, b) => a.or(b),
        };
    }

    fn finish(&self, state: &Self::State) -> T {
        T::from_f64(state.map_or(self.none, kernels::Float::to_f64))
    }

    fn columns(&self, x: &[T], rows: usize, stride: usize, y: &mut [T]) {
        if let (Some(x), Some(y)) = (T::native(x), T::native_mut(y)) {
            return (self.columns)(x, rows, stride, y);
        }
        let mut best = [T::Wide::zeroed(); BAND_COLS];
        widened_bands(x, rows, stride, y.len(), |band| {
            let best = &mut best[..band.cols.len()];
            (self.columns)(band.wide, band.held + band.rows.len(), best.len(), best);
            band.wide[..best.len()].copy_from_slice(best);
            if band.rows.end == rows {
                for (y, best) in y[band.cols].iter_mut().zip(best) {
                    *y = T::rounded(kernels::Float::to_f64(*best));
                }
            }
        });
    }

    fn columns_in_parts(&self, parts: Parts<'_, T>, y: &mut [T]) {
        let of = |x: &[T], rows, stride, y: &mut [T]| Fold::columns(self, x, rows, stride, y);
        let cols = y.len();
        parts.each(cols, &of, |found| Fold::columns(self, found, found.len() / cols, cols, y));
    }
}

/// The best element so far, its position, and the number of elements looked at.
#[derive(Clone, Copy)]
pub(super) struct Found<E> {
    best: Option<(E, usize)>,
    seen: usize,
}

impl<E: Copy> Found<E> {
    fn nothing() -> Self {
        Found { best: None, seen: 0 }
    }

    /// The position; there were elements.
    fn position(self) -> i64 {
        self.best.map_or(0, |(_, at)| at as i64)
    }

    /// Takes what was found in the elements that follow; `beats(a, b)` says that `a` is better.
    fn then(&mut self, next: Found<E>, beats: impl Fn(E, E) -> bool) {
        if let Some((value, at)) = next.best
            && self.best.is_none_or(|(best, _)| beats(value, best))
        {
            self.best = Some((value, self.seen + at));
        }
        self.seen += next.seen;
    }
}

/// Where the largest or smallest float is: the first of equals, the first NaN if there is one.
pub(super) struct Place<'a, E> {
    pub largest: bool,
    /// Of a slice that is not empty.
    pub of: fn(&[E]) -> Option<usize>,
    pub columns: OfColumns<'a, E, i64>,
}

impl<E: kernels::Float> Place<'_, E> {
    fn beats(&self, a: E, best: E) -> bool {
        let (a, best) = (a.to_f64(), best.to_f64());
        let better = if self.largest { a > best } else { a < best };
        !best.is_nan() && (better || a.is_nan())
    }
}

impl<T: Loaded> Fold<T> for Place<'_, T::Wide> {
    type Out = i64;
    type State = Found<T::Wide>;
    const MOST_SHORT: usize = MOST_SHORT_PLACES;

    fn start(&self) -> Self::State {
        Found::nothing()
    }

    fn push(&self, state: &mut Self::State, x: &[T]) {
        T::feed(x, |x| {
            let best = (self.of)(x).map(|at| (x[at], at));
            <Self as Fold<T>>::append(self, state, &Found { best, seen: x.len() });
        });
    }

    fn append(&self, state: &mut Self::State, next: &Self::State) {
        state.then(*next, |a, best| self.beats(a, best));
    }

    fn finish(&self, state: &Self::State) -> i64 {
        state.position()
    }

    fn columns(&self, x: &[T], rows: usize, stride: usize, y: &mut [i64]) {
        if let Some(x) = T::native(x) {
            return (self.columns)(x, rows, stride, y);
        }
        let mut places = [0; BAND_COLS];
        widened_bands(x, rows, stride, y.len(), |band| {
            let cols = band.cols.len();
            let places = &mut places[..cols];
            (self.columns)(band.wide, band.held + band.rows.len(), cols, places);
            for (c, (y, &place)) in y[band.cols].iter_mut().zip(&*places).enumerate() {
                let place = place as usize;
                band.wide[c] = band.wide[place * cols + c];
                if let Some(row) = place.checked_sub(band.held) {
                    *y = (band.rows.start + row) as i64;
                }
            }
        });
    }

    fn columns_in_parts(&self, parts: Parts<'_, T>, y: &mut [i64]) {
        let of = |x: &[T], rows, stride, y: &mut [i64]| Fold::columns(self, x, rows, stride, y);
        let beats = |a: &T, best: &T| {
            let mut wide = [T::Wide::zeroed(); 2];
            T::widen(&[*a, *best], &mut wide);
            self.beats(wide[0], wide[1])
        };
        parts.each(y.len(), &of, |places| parts.places(places, y, beats));
    }
}

/// Wrapping sum or product in `i64`.
pub(super) struct Integers(pub IntegerFold);

impl<T: Integer + Pod + Sync> Fold<T> for Integers {
    type Out = i64;
    type State = i64;

    fn start(&self) -> i64 {
        match self.0 {
            IntegerFold::Sum => 0,
            IntegerFold::Product => 1,
        }
    }

    fn push(&self, state: &mut i64, x: &[T]) {
        <Self as Fold<T>>::append(self, state, &kernels::fold_integers(self.0, x));
    }

    fn append(&self, state: &mut i64, next: &i64) {
        *state = match self.0 {
            IntegerFold::Sum => state.wrapping_add(*next),
            IntegerFold::Product => state.wrapping_mul(*next),
        };
    }

    fn finish(&self, state: &i64) -> i64 {
        *state
    }

    fn columns(&self, x: &[T], rows: usize, stride: usize, y: &mut [i64]) {
        kernels::fold_integer_columns(self.0, x, rows, stride, y);
    }

    fn columns_in_parts(&self, parts: Parts<'_, T>, y: &mut [i64]) {
        let of = |x: &[T], rows, stride, y: &mut [i64]| self.columns(x, rows, stride, y);
        let cols = y.len();
        parts.each(cols, &of, |folded| self.columns(folded, folded.len() / cols, cols, y));
    }
}

/// The largest or smallest integer.
pub(super) struct ExtremeInteger(pub IntegerEnd);

impl<T: Integer + Pod + Default + Send + Sync> Fold<T> for ExtremeInteger {
    type Out = T;
    type State = Option<T>;

    fn start(&self) -> Option<T> {
        None
    }

    fn push(&self, state: &mut Option<T>, x: &[T]) {
        self.append(state, &kernels::end_of_integers(self.0, x));
    }

    fn append(&self, state: &mut Option<T>, next: &Option<T>) {
        *state = match (*state, *next) {
            (Some(a), Some(b)) => Some(match self.0 {
                IntegerEnd::Largest => a.max(b),
                IntegerEnd::Smallest => a.min(b),
            }),
            (a, b) => a.or(b),
        };
    }

    fn finish(&self, state: &Option<T>) -> T {
        state.unwrap_or_default()
    }

    fn columns(&self, x: &[T], rows: usize, stride: usize, y: &mut [T]) {
        kernels::end_of_integer_columns(self.0, x, rows, stride, y);
    }

    fn columns_in_parts(&self, parts: Parts<'_, T>, y: &mut [T]) {
        let of = |x: &[T], rows, stride, y: &mut [T]| self.columns(x, rows, stride, y);
        let cols = y.len();
        parts.each(cols, &of, |found| self.columns(found, found.len() / cols, cols, y));
    }
}

/// Where the largest or smallest integer is: the first of equals.
pub(super) struct PlaceInteger(pub IntegerEnd);

impl PlaceInteger {
    fn beats<T: Ord>(&self, a: &T, best: &T) -> bool {
        match self.0 {
            IntegerEnd::Largest => a > best,
            IntegerEnd::Smallest => a < best,
        }
    }
}

impl<T: Integer + Pod + Send + Sync> Fold<T> for PlaceInteger {
    type Out = i64;
    type State = Found<T>;
    const MOST_SHORT: usize = MOST_SHORT_PLACES;

    fn start(&self) -> Found<T> {
        Found::nothing()
    }

    fn push(&self, state: &mut Found<T>, x: &[T]) {
        let best = kernels::place_of_integers(self.0, x).map(|at| (x[at], at));
        self.append(state, &Found { best, seen: x.len() });
    }

    fn append(&self, state: &mut Found<T>, next: &Found<T>) {
        state.then(*next, |a, best| self.beats(&a, &best));
    }

    fn finish(&self, state: &Found<T>) -> i64 {
        state.position()
    }

    fn columns(&self, x: &[T], rows: usize, stride: usize, y: &mut [i64]) {
        kernels::place_of_integer_columns(self.0, x, rows, stride, y);
    }

    fn columns_in_parts(&self, parts: Parts<'_, T>, y: &mut [i64]) {
        let of = |x: &[T], rows, stride, y: &mut [i64]| self.columns(x, rows, stride, y);
        parts.each(y.len(), &of, |places| {
            parts.places(places, y, |a, best| self.beats(a, best));
        });
    }
}

/// Whether any, or all, of the elements are other than 0, as a stored truth value.
pub(super) struct Truth<T> {
    all: bool,
    element: PhantomData<fn(T)>,
}

impl<T> Truth<T> {
    pub fn new(all: bool) -> Self {
        Truth { all, element: PhantomData }
    }
}

impl<T: kernels::Truth + Pod + Sync> Fold<T> for Truth<T> {
    type Out = u8;
    /// True once an element has decided: one that is 0 for all, one that is not for any.
    type State = bool;

    fn start(&self) -> bool {
        false
    }

    fn push(&self, state: &mut bool, x: &[T]) {
        *state = *state || if self.all { !kernels::all(x) } else { kernels::any(x) };
    }

    fn append(&self, state: &mut bool, next: &bool) {
        *state |= *next;
    }

    fn finish(&self, state: &bool) -> u8 {
        u8::from(*state != self.all)
    }

    fn columns(&self, x: &[T], rows: usize, stride: usize, y: &mut [u8]) {
        match self.all {
            true => kernels::all_columns(x, rows, stride, y),
            false => kernels::any_columns(x, rows, stride, y),
        }
    }

    fn columns_in_parts(&self, parts: Parts<'_, T>, y: &mut [u8]) {
        let of = |x: &[T], rows, stride, y: &mut [u8]| self.columns(x, rows, stride, y);
        let cols = y.len();
        parts.each(cols, &of, |decided| {
            Truth::<u8>::new(self.all).columns(decided, decided.len() / cols, cols, y);
        });
    }
}

//! What a reduction folds with, for each kind of element.
//!
//! | fold | elements | what |
//! |---|---|---|
//! | [`Tree`] | floats | sums, products, moments: the kernels' tree in `f64`, rounded once |
//! | [`Extreme`], [`Place`] | floats | an element, and where it is |
//! | [`Integers`] | integers | sums and products, wrapping |
//! | [`ExtremeInteger`], [`PlaceInteger`] | integers | an element, and where it is |
//! | [`Truth`] | all | any and all |

use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use swath_kernels::{
    self as kernels, Integer, IntegerEnd, IntegerFold, Pairwise, PairwiseSum, Partial,
};

use super::cast::Half;
use super::memory::Buffer;
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
    /// The result. By reference: a tree's state is long.
    fn finish(&self, state: &Self::State) -> Self::Out;
    /// Folds each column of a matrix of `rows` > 0 rows.
    fn columns(&self, x: &[T], rows: usize, stride: usize, y: &mut [Self::Out]);
}

/// Floats. Sums take them as they lie; for what looks at one element after the other 16-bit ones are
/// widened, block by block.
pub(super) trait Loaded: Element<Stored = Self> + Pod + kernels::Accumulate {
    /// What they are compared as.
    type Wide: kernels::Reduce + Pod;
    /// Hands the elements on, all but the last time a whole number of blocks.
    fn feed(x: &[Self], f: impl FnMut(&[Self::Wide]));
    /// The elements as they lie, if they are compared so.
    fn native(x: &[Self]) -> Option<&[Self::Wide]>;
    /// As [`Loaded::native`], to be written.
    fn native_mut(x: &mut [Self]) -> Option<&mut [Self::Wide]>;
    /// Writes what elements are compared as.
    fn widen(x: &[Self], wide: &mut [Self::Wide]);
}

macro_rules! native {
    ($($t:ty)*) => {$(
        impl Loaded for $t {
            type Wide = $t;
            fn feed(x: &[Self], mut f: impl FnMut(&[$t])) {
                f(x);
            }
            fn native(x: &[Self]) -> Option<&[$t]> {
                Some(x)
            }
            fn native_mut(x: &mut [Self]) -> Option<&mut [$t]> {
                Some(x)
            }
            fn widen(x: &[Self], wide: &mut [$t]) {
                wide.copy_from_slice(x);
            }
        }
    )*};
}
native!(f32 f64);

macro_rules! widened {
    ($($t:ty)*) => {$(
        impl Loaded for $t {
            type Wide = f32;
            fn feed(x: &[Self], mut f: impl FnMut(&[f32])) {
                let mut wide = [0f32; PairwiseSum::BLOCK];
                for x in x.chunks(PairwiseSum::BLOCK) {
                    let wide = &mut wide[..x.len()];
                    <$t as Half>::widen(x, wide);
                    f(wide);
                }
            }
            fn native(_x: &[Self]) -> Option<&[f32]> {
                None
            }
            fn native_mut(_x: &mut [Self]) -> Option<&mut [f32]> {
                None
            }
            fn widen(x: &[Self], wide: &mut [f32]) {
                <$t as Half>::widen(x, wide);
            }
        }
    )*};
}
widened!(f16 bf16);

/// Rows and columns that are widened at a time, 64 KiB: with fewer rows `argmax` looks up too often what
/// it found in those before.
const BAND_ROWS: usize = 64;
const BAND_COLS: usize = 256;

/// Some rows of some columns, widened and adjacent, after `held` (0 or 1) rows of what was found in the
/// rows before.
struct Band<'a, E> {
    wide: &'a mut [E],
    held: usize,
    rows: Range<usize>,
    cols: Range<usize>,
}

/// Hands on all rows of some columns, band by band, then those of the next. What `f` leaves in a band's
/// first row is what the next one holds.
fn widened_bands<T: Loaded>(
    x: &[T],
    rows: usize,
    stride: usize,
    cols: usize,
    mut f: impl FnMut(Band<'_, T::Wide>),
) {
    let mut wide = Buffer::scratch(BAND_ROWS * BAND_COLS * size_of::<T::Wide>());
    let wide = wide.as_slice_mut::<T::Wide>();
    for first in (0..cols).step_by(BAND_COLS) {
        let cols = first..(first + BAND_COLS).min(cols);
        let (mut row, mut held) = (0, 0);
        while row < rows {
            let band = row..(row + BAND_ROWS - held).min(rows);
            let wide = &mut wide[..(held + band.len()) * cols.len()];
            for (row, wide) in band.clone().zip(wide.chunks_exact_mut(cols.len()).skip(held)) {
                T::widen(&x[row * stride + first..][..cols.len()], wide);
            }
            row = band.end;
            f(Band { wide, held, rows: band, cols: cols.clone() });
            held = 1;
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
}

/// Wrapping sum or product in `i64`.
pub(super) struct Integers(pub IntegerFold);

impl<T: Integer + Pod> Fold<T> for Integers {
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
}

/// Where the largest or smallest integer is: the first of equals.
pub(super) struct PlaceInteger(pub IntegerEnd);

impl<T: Integer + Pod + Send> Fold<T> for PlaceInteger {
    type Out = i64;
    type State = Found<T>;

    fn start(&self) -> Found<T> {
        Found::nothing()
    }

    fn push(&self, state: &mut Found<T>, x: &[T]) {
        let best = kernels::place_of_integers(self.0, x).map(|at| (x[at], at));
        self.append(state, &Found { best, seen: x.len() });
    }

    fn append(&self, state: &mut Found<T>, next: &Found<T>) {
        state.then(*next, |a, best| match self.0 {
            IntegerEnd::Largest => a > best,
            IntegerEnd::Smallest => a < best,
        });
    }

    fn finish(&self, state: &Found<T>) -> i64 {
        state.position()
    }

    fn columns(&self, x: &[T], rows: usize, stride: usize, y: &mut [i64]) {
        kernels::place_of_integer_columns(self.0, x, rows, stride, y);
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

impl<T: kernels::Truth + Pod> Fold<T> for Truth<T> {
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
}

//! Random words addressed by position, and dropout.

use super::call::{Call, Rows, Work};
use crate::dispatch::run;
use crate::map::rows::places;
use crate::output::Output;
use crate::random::{Dropout, DropoutFactors, DropoutTask, Fill, Words};

/// Writes the words of a stream, from word number `first` on.
///
/// ```
/// let mut words = [0; 4];
/// swath_kernels::philox_words(0, 0, 0, &mut words);
/// assert_eq!(words, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
/// ```
pub fn philox_words(seed: u64, stream: u64, first: u64, out: &mut [u32]) {
    run(Fill { words: Words { seed, stream }, first, out });
}

/// Dropout: `y = x · 1/(1 - p)` for the elements that are kept, and `x · 0` for the others, so that a
/// NaN or an infinity among them gives NaN.
///
/// ```
/// use swath_kernels::{Dropout, dropout};
/// let mut y = [0.0f32; 100];
/// dropout(Dropout { p: 0.5, seed: 1, stream: 0, first: 0 }, &[1.0; 100], &mut y);
/// assert!(y.iter().all(|&y| y == 0.0 || y == 2.0));
/// ```
///
/// # Panics
/// If the lengths differ, `p` is not in `[0, 1)`, or `first` is not a multiple of 4.
#[track_caller]
pub fn dropout<E: Rows>(mask: Dropout, x: &[E], y: &mut (impl Output<E> + ?Sized)) {
    let y = places(y);
    assert!(
        x.len() == y.len(),
        "dropout: the input has {} elements, the output {}",
        x.len(),
        y.len()
    );
    check(&mask);
    assert!(
        mask.first.is_multiple_of(4),
        "dropout: first must be a multiple of 4, got {}",
        mask.first
    );
    E::run(Call(Work::Dropout(DropoutTask { mask, x, y })));
}

/// Writes the factors of [`dropout`], 0 or `1/(1 - p)`, for the words from any number `first` on.
///
/// ```
/// use swath_kernels::{Dropout, dropout, dropout_factors};
/// let (mut factors, mut y) = ([0.0f32; 94], [0.0f32; 100]);
/// dropout_factors(Dropout { p: 0.5, seed: 1, stream: 0, first: 6 }, &mut factors);
/// dropout(Dropout { p: 0.5, seed: 1, stream: 0, first: 0 }, &[1.0; 100], &mut y);
/// assert_eq!(factors, y[6..]);
/// ```
///
/// # Panics
/// If `p` is not in `[0, 1)`.
#[track_caller]
pub fn dropout_factors<E: Rows>(mask: Dropout, y: &mut (impl Output<E> + ?Sized)) {
    check(&mask);
    E::run(Call(Work::DropoutFactors(DropoutFactors { mask, y: places(y) })));
}

#[track_caller]
fn check(mask: &Dropout) {
    assert!((0.0..1.0).contains(&mask.p), "dropout: the probability {} is not in 0..1", mask.p);
}

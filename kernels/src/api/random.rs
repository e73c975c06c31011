//! Random words addressed by position, numbers made of them, and dropout.

use super::call::{Call, Rows, Work};
use super::same_len;
use crate::dispatch::run;
use crate::map::rows::places;
use crate::output::Output;
use crate::random::{Drawn, Dropout, DropoutFactors, DropoutTask, Fill, Uniform, Words};

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

/// Makes numbers of a uniform distribution over a range, each of its own `E::WORDS` words.
///
/// ```
/// let range = swath_kernels::Uniform { from: -1.0, half_width: 1.0, largest: 1f32.next_down() };
/// let mut y = [0f32; 3];
/// swath_kernels::draw_uniform(&[0, 1 << 31, u32::MAX], range, &mut y);
/// assert_eq!(y, [-1.0, 0.0, 1.0 - 2f32.powi(-23)]);
/// ```
///
/// # Panics
/// Unless there are `E::WORDS` words per number.
#[track_caller]
pub fn draw_uniform<E: Drawn>(words: &[u32], range: Uniform<E>, y: &mut [E]) {
    same_len("draw_uniform", words.len(), E::WORDS * y.len());
    E::uniform_of(words, range, y);
}

/// Makes numbers of the normal distribution with mean 0 and variance 1, each of its own `E::WORDS` words:
/// the inverse cumulative distribution function at a uniform number. The largest magnitude is 6.34 for
/// `f32` and 9.15 for `f64`.
///
/// ```
/// let mut y = [0f32; 2];
/// swath_kernels::draw_normal(&[1 << 30, 3 << 30], &mut y);
/// assert_eq!(y, [0.67448974, -0.67448974]);
/// ```
///
/// # Panics
/// Unless there are `E::WORDS` words per number.
#[track_caller]
pub fn draw_normal<E: Drawn>(words: &[u32], y: &mut [E]) {
    same_len("draw_normal", words.len(), E::WORDS * y.len());
    E::normal_of(words, y);
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

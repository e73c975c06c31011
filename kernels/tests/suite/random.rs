//! The random words of Philox and dropout do not depend on how the work is split.

use swath_kernels::{Dropout, dropout, philox_words};

#[test]
fn words_do_not_depend_on_how_they_are_split() {
    let mut all = vec![0; 300];
    philox_words(7, 3, 0, &mut all);
    for first in [0, 1, 2, 3, 4, 63, 64, 65, 130] {
        for len in [0, 1, 5, 64, 70] {
            let mut words = vec![0; len];
            philox_words(7, 3, first as u64, &mut words);
            assert_eq!(words, all[first..first + len], "{len} words from {first}");
        }
    }
    // Where the number of a block of four words passes 2^32.
    let before = (1 << 34) - 70;
    philox_words(7, 3, before, &mut all);
    for (first, &expected) in (before..).zip(&all) {
        let mut word = [0];
        philox_words(7, 3, first, &mut word);
        assert_eq!(word[0], expected, "word {first}");
    }
}

#[test]
fn dropout_keeps_elements_by_their_words() {
    let (p, seed, stream) = (0.37, 21, 2);
    let x: Vec<f64> = (0..1000).map(|i| 1.0 + f64::from(i)).collect();
    let mut words = vec![0; 1000];
    philox_words(seed, stream, 400, &mut words);
    let mut y = vec![f64::NAN; 1000];
    dropout(Dropout { p, seed, stream, first: 400 }, &x, &mut y);
    for ((y, x), word) in y.iter().zip(&x).zip(words) {
        let kept = f64::from(word) / 2f64.powi(32) >= p;
        assert!(if kept { (y * (1.0 - p) / x - 1.0).abs() < 1e-15 } else { *y == 0.0 });
    }
    let mut y = [0.0f32; 2];
    dropout(Dropout { p: 0.0, seed, stream, first: 0 }, &[f32::NAN, 3.0], &mut y);
    assert!(y[0].is_nan() && y[1] == 3.0);
    let nearly_all = Dropout { p: 1.0 - f64::EPSILON, seed, stream, first: 0 };
    dropout(nearly_all, &[1.0f32, 3.0], &mut y);
    assert_eq!(y, [0.0, 0.0]);
}

/// A word below p · 2³² is dropped; one equal to it is kept.
#[test]
fn dropout_keeps_a_word_equal_to_the_threshold() {
    let (seed, stream) = (21, 2);
    let kept_at = |p, first: u64, index: usize| {
        let mut y = [0.0f64; 8];
        dropout(Dropout { p, seed, stream, first }, &[1.0; 8], &mut y);
        y[index] != 0.0
    };
    for first in [0, 400, 1 << 34, u64::MAX - 7] {
        let mut words = [0; 8];
        philox_words(seed, stream, first, &mut words);
        for (index, word) in words.into_iter().enumerate() {
            let share = |parts: f64| (f64::from(word) + parts) / 2f64.powi(32);
            assert!(kept_at(share(0.0), first, index), "{word} is p · 2^32");
            assert!(!kept_at(share(0.5), first, index), "{word} lies below p · 2^32");
        }
    }
    // The largest word is dropped only if p · 2³² is above it.
    let mut words = [0; 8];
    philox_words(seed, stream, LARGEST_WORD & !7, &mut words);
    let index = (LARGEST_WORD & 7) as usize;
    assert_eq!(words[index], u32::MAX);
    assert!(kept_at(1.0 - 2f64.powi(-32), LARGEST_WORD & !7, index));
    assert!(!kept_at(1.0 - 2f64.powi(-33), LARGEST_WORD & !7, index));
}

/// The index of the largest word of seed 21 and stream 2.
const LARGEST_WORD: u64 = 3_281_421_353;

//! A 4-gram model of characters with Witten–Bell smoothing (Witten and Bell, 1991, in the interpolated form
//! of Chen and Goodman, 1998), to compare the transformer with.
//!
//! ```text
//! P(c | h) = (count(h c) + kinds(h) P(c | h without its first character)) / (count(h) + kinds(h))
//!            with 1 / vocabulary in place of the last P if h is empty
//! ```
//!
//! `kinds(h)` is the number of different characters seen after h, which estimates how likely a new one is.

use std::collections::HashMap;

/// Characters from which the next one is predicted.
const HISTORY: usize = 3;

/// Bits per token in a key; Unicode has fewer than 2²¹ characters.
const BITS: u32 = 21;

/// Counts of all sequences of up to four characters.
pub struct FourGram {
    vocabulary: usize,
    /// For each history, the number of characters that followed and the number of different ones.
    followed: HashMap<u128, (u32, u32)>,
    /// For each history and next character, its count.
    counts: HashMap<u128, u32>,
}

/// Returns a number that identifies a sequence of up to four tokens. The leading 1 tells sequences of
/// different lengths apart.
fn key(tokens: &[i64]) -> u128 {
    tokens.iter().fold(1, |key, &token| key << BITS | token as u128)
}

impl FourGram {
    /// Counts the sequences of a text.
    pub fn new(text: &[i64], vocabulary: usize) -> Self {
        let mut model = FourGram { vocabulary, followed: HashMap::new(), counts: HashMap::new() };
        for end in 0..text.len() {
            for length in 0..=HISTORY.min(end) {
                let history = key(&text[end - length..end]);
                let count = model.counts.entry(key(&text[end - length..=end])).or_default();
                let (total, kinds) = model.followed.entry(history).or_default();
                *kinds += u32::from(*count == 0);
                *count += 1;
                *total += 1;
            }
        }
        model
    }

    /// Returns the probability of the last token given those before it, of which at most three are used.
    fn probability(&self, tokens: &[i64]) -> f64 {
        let (&last, before) = tokens.split_last().expect("at least one token");
        let mut p = 1.0 / self.vocabulary as f64;
        for length in 0..=HISTORY.min(before.len()) {
            let history = &before[before.len() - length..];
            let Some(&(total, kinds)) = self.followed.get(&key(history)) else { break };
            let with = [history, &[last]].concat();
            let count = self.counts.get(&key(&with)).copied().unwrap_or(0);
            p = (f64::from(count) + f64::from(kinds) * p) / f64::from(total + kinds);
        }
        p
    }

    /// Returns the mean loss, in nats per character, of predicting each character of a text from those before
    /// it.
    pub fn loss(&self, text: &[i64]) -> f64 {
        let total: f64 = (0..text.len())
            .map(|end| -self.probability(&text[end.saturating_sub(HISTORY)..=end]).ln())
            .sum();
        total / text.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_of_next_characters_sum_to_1() {
        let text: Vec<i64> = (0..200).map(|i| (i * i + i / 7) % 5).collect();
        let model = FourGram::new(&text, 6);
        for history in [&[][..], &[1], &[2, 3], &[0, 1, 2], &[4, 4, 4], &[5, 5, 5]] {
            let sum: f64 = (0..6).map(|c| model.probability(&[history, &[c]].concat())).sum();
            assert!((sum - 1.0).abs() < 1e-12, "{history:?}: {sum}");
        }
    }

    #[test]
    fn probabilities_of_a_small_text_match_the_formula() {
        // The text is "aab", the vocabulary {a, b, c}. Counts after the empty history: a 2, b 1; 2 kinds.
        let model = FourGram::new(&[0, 0, 1], 3);
        let unigram = |count: f64| (count + 2.0 / 3.0) / 5.0;
        assert!((model.probability(&[0]) - unigram(2.0)).abs() < 1e-15);
        assert!((model.probability(&[2]) - unigram(0.0)).abs() < 1e-15);
        // Counts after "a": a 1, b 1; 2 kinds.
        let after_a = |count: f64, lower: f64| (count + 2.0 * lower) / 4.0;
        assert!((model.probability(&[0, 1]) - after_a(1.0, unigram(1.0))).abs() < 1e-15);
        // Count after "aa": b 1. Nothing follows "b", so the shorter history is used.
        let b_after_aa = (1.0 + after_a(1.0, unigram(1.0))) / 2.0;
        assert!((model.probability(&[0, 0, 1]) - b_after_aa).abs() < 1e-15);
        assert!((model.probability(&[1, 0]) - unigram(2.0)).abs() < 1e-15);
    }

    #[test]
    fn loss_is_small_on_a_repeated_text_and_large_on_another() {
        let text: Vec<i64> = (0..4000).map(|i| i % 4).collect();
        let model = FourGram::new(&text, 4);
        assert!(model.loss(&text[..400]) < 0.01);
        let other: Vec<i64> = (0..400).map(|i| (3 - i % 4 + i / 9) % 4).collect();
        assert!(model.loss(&other) > 2.0);
    }
}

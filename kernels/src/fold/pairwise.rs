//! The upper part of the tree: block sums combined pairwise.

use crate::reduce::Reduce;

/// A sum in progress: block sums combined like the digits of a binary counter.
///
/// Sums over the same elements give the same bits however they are fed: at once ([`crate::sum`]),
/// in chunks of whole blocks of [`PairwiseSum::BLOCK`] elements, or in parts summed apart and
/// [appended](PairwiseSum::append):
///
/// ```
/// use swath_kernels::{PairwiseSum, sum};
///
/// let x: Vec<f64> = (0..10_000).map(|i| (i as f64).sqrt()).collect();
/// let (mut left, mut right) = (PairwiseSum::new(), PairwiseSum::new());
/// left.push_slice(&x[..8 * PairwiseSum::BLOCK]); // a multiple of a power of two of blocks …
/// right.push_slice(&x[8 * PairwiseSum::BLOCK..]); // … that is no less than what follows
/// left.append(&right);
/// assert_eq!(left.finish(), sum(&x));
/// ```
#[derive(Clone, Debug)]
pub struct PairwiseSum {
    /// Blocks taken. Where bit i is set, entry i is the sum of 2^i of them.
    blocks: u64,
    entries: [f64; 64],
}

impl Default for PairwiseSum {
    fn default() -> Self {
        PairwiseSum::new()
    }
}

impl PairwiseSum {
    /// Elements of a block.
    pub const BLOCK: usize = super::BLOCK;

    /// A sum of nothing.
    #[inline]
    pub const fn new() -> Self {
        PairwiseSum { blocks: 0, entries: [0.0; 64] }
    }

    /// The number of blocks taken.
    #[inline]
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Takes the sum of one block.
    #[inline]
    pub fn push(&mut self, block: f64) {
        self.push_entry(0, block);
    }

    #[inline]
    fn push_entry(&mut self, level: usize, mut sum: f64) {
        let mut at = level;
        while self.blocks >> at & 1 == 1 {
            sum += self.entries[at];
            at += 1;
        }
        self.entries[at] = sum;
        self.blocks += 1 << level;
    }

    /// Takes a slice, block by block; its end is the end of a block, so only the last slice may
    /// have a length that is no multiple of [`PairwiseSum::BLOCK`].
    pub fn push_slice<E: Reduce>(&mut self, x: &[E]) {
        E::push_sum(self, x);
    }

    /// Takes the products of two slices' elements, as [`PairwiseSum::push_slice`] does.
    ///
    /// # Panics
    /// If the lengths differ.
    #[track_caller]
    pub fn push_products<E: Reduce>(&mut self, a: &[E], b: &[E]) {
        assert!(a.len() == b.len(), "dot: the slices have {} and {} elements", a.len(), b.len());
        E::push_dot(self, a, b);
    }

    /// Takes the blocks of a sum over the elements that follow those of this one.
    ///
    /// # Panics
    /// If the parts are no subtrees of the whole: the blocks of `self` must be a multiple of some
    /// power of two that the blocks of `next` don't exceed.
    #[track_caller]
    pub fn append(&mut self, next: &PairwiseSum) {
        assert!(
            next.blocks == 0 || self.blocks.is_multiple_of(next.blocks.next_power_of_two()),
            "append: {} blocks after {} are no subtree of the sum",
            next.blocks,
            self.blocks,
        );
        for level in (0..64).rev().filter(|level| next.blocks >> level & 1 == 1) {
            self.push_entry(level, next.entries[level]);
        }
    }

    /// The sum; +0 of nothing.
    #[inline]
    pub fn finish(&self) -> f64 {
        let mut left = self.blocks;
        if left == 0 {
            return 0.0;
        }
        let mut sum = self.entries[left.trailing_zeros() as usize];
        left &= left - 1;
        while left != 0 {
            sum += self.entries[left.trailing_zeros() as usize];
            left &= left - 1;
        }
        sum
    }
}

//! The upper part of the tree: accumulators of blocks, merged pairwise.

use core::fmt;
use core::mem::MaybeUninit;
use core::ops::Range;

use super::partial::Partial;

/// A fold in progress: accumulators of blocks, merged like the digits of a binary counter.
///
/// Folds of the same elements give the same bits, however the elements arrive: all at once (as in
/// [`crate::sum`]), in chunks of whole blocks of [`PairwiseSum::BLOCK`] elements, or as separate
/// folds of parts that are [appended](Pairwise::append):
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
pub struct Pairwise<P> {
    /// Number of blocks taken. If bit i is set, entry i is the fold of 2^i of them.
    blocks: u64,
    entries: [MaybeUninit<P>; 64],
}

impl<P: Partial> Clone for Pairwise<P> {
    fn clone(&self) -> Self {
        Pairwise { blocks: self.blocks, entries: self.entries }
    }
}

/// A sum in progress.
pub type PairwiseSum = Pairwise<f64>;

impl<P: Partial> Default for Pairwise<P> {
    fn default() -> Self {
        Pairwise::new()
    }
}

impl<P: Partial> fmt::Debug for Pairwise<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels = (0..64).filter(|level| self.blocks >> level & 1 == 1);
        let entries = levels.map(|level| (level, self.entry(level)));
        f.debug_map().entries(entries).finish()
    }
}

impl<P: Partial> Pairwise<P> {
    /// Elements per block.
    pub const BLOCK: usize = super::BLOCK;

    /// A fold of no elements.
    #[inline]
    pub const fn new() -> Self {
        Pairwise { blocks: 0, entries: [MaybeUninit::uninit(); 64] }
    }

    /// The number of blocks taken.
    #[inline]
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The entry of `level`: the fold of 2^`level` blocks.
    #[inline]
    fn entry(&self, level: usize) -> P {
        assert!(self.blocks >> level & 1 == 1);
        // SAFETY: the bit was tested above, and `push_entry` sets it only with the entry.
        unsafe { self.entries[level].assume_init() }
    }

    /// Takes the fold of one block.
    #[inline]
    pub fn push(&mut self, block: P) {
        self.push_entry(0, block);
    }

    #[inline]
    fn push_entry(&mut self, level: usize, mut partial: P) {
        let mut at = level;
        while self.blocks >> at & 1 == 1 {
            partial = self.entry(at).merge(partial);
            at += 1;
        }
        self.entries[at] = MaybeUninit::new(partial);
        self.blocks += 1 << level;
    }

    /// Takes the blocks of a fold of the elements that follow.
    ///
    /// # Panics
    /// If the parts are not subtrees of the whole: the blocks of `self` must be a multiple of a
    /// power of two that is at least the blocks of `next`.
    #[track_caller]
    pub fn append(&mut self, next: &Self) {
        assert!(
            next.blocks == 0 || self.blocks.is_multiple_of(next.blocks.next_power_of_two()),
            "append: {} blocks after {} are not a subtree of the fold",
            next.blocks,
            self.blocks,
        );
        for level in (0..64).rev().filter(|level| next.blocks >> level & 1 == 1) {
            self.push_entry(level, next.entry(level));
        }
    }

    /// The fold of all blocks; [`Partial::EMPTY`] if there are none.
    #[inline]
    pub fn finish(&self) -> P {
        let mut left = self.blocks;
        if left == 0 {
            return P::EMPTY;
        }
        let mut partial = self.entry(left.trailing_zeros() as usize);
        left &= left - 1;
        while left != 0 {
            partial = self.entry(left.trailing_zeros() as usize).merge(partial);
            left &= left - 1;
        }
        partial
    }
}

impl<P: Partial> Pairwise<P> {
    /// Takes `len` elements, folding their ranges by `fold`: at each step the largest subtree that
    /// may come next.
    pub(crate) fn take_subtrees(&mut self, len: usize, fold: impl Fn(Range<usize>) -> P) {
        let mut at = 0;
        while at < len {
            let whole = ((len - at) / Self::BLOCK).max(1);
            let level = whole.ilog2().min(self.blocks.trailing_zeros()) as usize;
            let end = len.min(at + (Self::BLOCK << level));
            self.push_entry(level, fold(at..end));
            at = end;
        }
    }
}

//! Sorts and selects pairs of a key and an index.
//!
//! ```text
//! short rows   a comparison sort, which need not be stable because pairs are distinct
//! long rows    a radix sort: for each byte of the key from the lowest, count the values of the byte; prefix sums
//!              give the offset of each value; write every pair to the next slot of its value
//! very long    every thread sorts a part; adjacent parts are then merged until one is left. Each thread writes a
//!              part of the result, and finds its first pairs by a binary search
//! selection    one vectorized pass computes the maxima of short columns of the row. The k-th largest maximum is a
//!              lower bound, because k columns have an element at or above it. Such elements are gathered in a
//!              small buffer; when it is full, only the first k of them are kept
//! ```
//!
//! The order of pairs is total and strict, so every method gives the same result.

use std::cmp::Ordering::Equal;
use std::mem::swap;

use super::keys::{Keyed, Pair};
use crate::runtime::parallel::{even_start, for_each_item};

/// Minimum number of pairs for a radix sort, which counts 256 values of each byte.
const RADIX_LEN: usize = 1024;

/// Columns of a block. Their maxima are computed together, in the registers of any instruction set.
const LANES: usize = 16;

/// Maximum number of rows of a block. Each selected element costs reading a column again.
const BLOCK_ROWS: usize = 64;

/// Minimum number of rows of a block for which the pass over the maxima pays.
const LEAST_ROWS: usize = 4;

/// Minimum spare capacity of a selection's buffer.
const SPARE: usize = 64;

/// Returns the length of the buffer that selects `count` of `n` pairs.
pub(super) fn buffer_len(count: usize, n: usize) -> usize {
    count.saturating_add(count.max(SPARE)).min(n)
}

/// Returns the rows of a block, such that there are several columns for each element to select.
fn rows_of_block(count: usize, n: usize) -> usize {
    (n / 4 / count).clamp(1, BLOCK_ROWS)
}

/// Returns the length of the maxima of all columns and of a copy; 0 if columns are shorter than [`LEAST_ROWS`].
pub(super) fn maxima_len(count: usize, n: usize) -> usize {
    match rows_of_block(count, n) {
        ..LEAST_ROWS => 0,
        rows => 2 * LANES * (n / (LANES * rows)),
    }
}

/// Writes the pairs of a row. Its first element has the index `first`.
pub(super) fn fill<T: Keyed>(row: &[T], first: usize, descending: bool, pairs: &mut [T::Pair]) {
    let flip = T::flip(descending);
    for (i, (pair, x)) in pairs.iter_mut().zip(row).enumerate() {
        *pair = T::Pair::new(x.key(flip), first + i);
    }
}

/// Sorts pairs. `space` has the same length.
pub(super) fn sort<P: Pair>(pairs: &mut [P], space: &mut [P]) {
    if pairs.len() < RADIX_LEN {
        return pairs.sort_unstable();
    }
    let mut counts = [[0usize; 256]; size_of::<u64>()];
    for pair in pairs.iter() {
        for (i, counts) in counts[..P::DIGITS].iter_mut().enumerate() {
            counts[pair.digit(i)] += 1;
        }
    }
    let (mut from, mut to, mut is_moved) = (pairs, space, false);
    for (i, offsets) in counts[..P::DIGITS].iter_mut().enumerate() {
        // All pairs have the same byte.
        if offsets[from[0].digit(i)] == from.len() {
            continue;
        }
        let mut first = 0;
        for offset in offsets.iter_mut() {
            (*offset, first) = (first, first + *offset);
        }
        for &pair in from.iter() {
            let offset = &mut offsets[pair.digit(i)];
            to[*offset] = pair;
            *offset += 1;
        }
        swap(&mut from, &mut to);
        is_moved = !is_moved;
    }
    if is_moved {
        to.copy_from_slice(from);
    }
}

/// Sorts the pairs of a long row on several threads. Returns the buffer that holds the result.
pub(super) fn sort_in_parts<'a, T: Keyed>(
    row: &[T],
    descending: bool,
    parts: usize,
    [mut pairs, mut space]: [&'a mut [T::Pair]; 2],
) -> &'a mut [T::Pair] {
    let n = row.len();
    let start = |part: usize| even_start(n, parts, part.min(parts));
    let both = split(pairs, parts).into_iter().zip(split(space, parts));
    for_each_item(both, |part, (pairs, space)| {
        fill(&row[start(part)..start(part + 1)], start(part), descending, pairs);
        sort(pairs, space);
    });
    let mut width = 1;
    while width < parts {
        let sorted = &*pairs;
        for_each_item(split(space, parts), |part, merged| {
            let first = part / (2 * width) * (2 * width);
            let [low, middle, high] = [first, first + width, first + 2 * width].map(start);
            merge(&sorted[low..middle], &sorted[middle..high], start(part) - low, merged);
        });
        swap(&mut pairs, &mut space);
        width *= 2;
    }
    pairs
}

/// Splits a slice into `parts` of nearly equal length.
fn split<P>(mut rest: &mut [P], parts: usize) -> Vec<&mut [P]> {
    let n = rest.len();
    let part = |part| {
        let len = even_start(n, parts, part + 1) - even_start(n, parts, part);
        rest.split_off_mut(..len).unwrap_or_default()
    };
    (0..parts).map(part).collect()
}

/// Merges `a` and `b`, skips the first `skipped` pairs, and writes as many as fit.
fn merge<P: Pair>(a: &[P], b: &[P], skipped: usize, merged: &mut [P]) {
    // Binary search for `i`: the skipped pairs are the first `i` of `a` and the first `skipped - i` of `b`.
    let (mut i, mut high) = (skipped.saturating_sub(b.len()), skipped.min(a.len()));
    while i < high {
        let middle = i.midpoint(high);
        match a[middle] < b[skipped - middle - 1] {
            true => i = middle + 1,
            false => high = middle,
        }
    }
    let (mut a, mut b) = (a[i..].iter(), b[skipped - i..].iter());
    let (mut next_a, mut next_b) = (a.next(), b.next());
    for slot in merged {
        let next = match (next_a, next_b) {
            (Some(x), Some(y)) if x < y => std::mem::replace(&mut next_a, a.next()),
            (Some(_), None) => std::mem::replace(&mut next_a, a.next()),
            _ => std::mem::replace(&mut next_b, b.next()),
        };
        if let Some(&next) = next {
            *slot = next;
        }
    }
}

/// Returns the first `count` pairs of a row in order. `count` is not 0, `buffer` has [`buffer_len`] elements, `maxima`
/// has [`maxima_len`].
pub(super) fn select<'a, T: Keyed>(
    row: &[T],
    descending: bool,
    count: usize,
    buffer: &'a mut [T::Pair],
    maxima: &mut [T::Rank],
) -> &'a mut [T::Pair] {
    let rows = rows_of_block(count, row.len());
    let blocks = &row[..row.len() / (rows * LANES) * rows * LANES];
    let (maxima, copy) = maxima.split_at_mut(maxima.len() / 2);
    match descending {
        true => block_maxima::<T, true>(blocks, rows, maxima),
        false => block_maxima::<T, false>(blocks, rows, maxima),
    }
    let lowest = match maxima.len() < count {
        true => T::LOWEST,
        false => {
            copy.copy_from_slice(maxima);
            let descending = |a: &T::Rank, b: &T::Rank| b.partial_cmp(a).unwrap_or(Equal);
            *copy.select_nth_unstable_by(count - 1, descending).1
        }
    };
    let (flip, mut first) = (T::flip(descending), First { buffer, count, len: 0, limit: None });
    let mut add = |i: usize| first.add(T::Pair::new(row[i].key(flip), i));
    // No NaN has a rank above the lowest, so all elements at or above the bound are numbers.
    if lowest > T::LOWEST {
        for (i, _) in maxima.iter().enumerate().filter(|(_, max)| **max >= lowest) {
            let start = i / LANES * rows * LANES + i % LANES;
            (0..rows)
                .map(|r| start + r * LANES)
                .filter(|&i| row[i].rank(descending) >= lowest)
                .for_each(&mut add);
        }
        let rest = blocks.len()..row.len();
        rest.filter(|&i| row[i].rank(descending) >= lowest).for_each(add);
    } else {
        (0..row.len()).for_each(add);
    }
    first.sorted()
}

/// Writes the largest rank of every column of blocks of `rows` rows of [`LANES`] elements.
fn block_maxima<T: Keyed, const DESCENDING: bool>(
    elements: &[T],
    rows: usize,
    maxima: &mut [T::Rank],
) {
    let blocks = elements.chunks_exact(rows * LANES).zip(maxima.as_chunks_mut::<LANES>().0);
    for (block, maxima) in blocks {
        let mut largest = [T::LOWEST; LANES];
        for row in block.as_chunks::<LANES>().0 {
            for (largest, x) in largest.iter_mut().zip(row) {
                let rank = x.rank(DESCENDING);
                *largest = if rank > *largest { rank } else { *largest };
            }
        }
        *maxima = largest;
    }
}

/// Keeps the first `count` of the added pairs, among others.
struct First<'a, P> {
    buffer: &'a mut [P],
    count: usize,
    len: usize,
    limit: Option<P>,
}

impl<'a, P: Pair> First<'a, P> {
    #[inline]
    fn add(&mut self, pair: P) {
        if self.limit.is_some_and(|limit| pair > limit) {
            return;
        }
        self.buffer[self.len] = pair;
        self.len += 1;
        if self.len == self.buffer.len() && self.len > self.count {
            let (_, &mut last, _) = self.buffer.select_nth_unstable(self.count - 1);
            (self.len, self.limit) = (self.count, Some(last));
        }
    }

    fn sorted(self) -> &'a mut [P] {
        if self.len > self.count {
            self.buffer[..self.len].select_nth_unstable(self.count - 1);
        }
        let first = &mut self.buffer[..self.count];
        first.sort_unstable();
        first
    }
}

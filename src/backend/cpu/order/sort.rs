//! Sorting and selection of pairs of a key and an index.
//!
//! ```text
//! short rows   a comparison sort: pairs are distinct, so that it need not be stable
//! long rows    radix sort, for each byte of the key from the lowest: count the values of the byte; their sums
//!              are the first places of each value; write every pair to the next place of its value
//! very long    every thread sorts a part; then pairs of neighbouring parts are merged until one is left, in
//!              parts of the result, each of which begins where a binary search finds its first pairs
//! selection    pairs before the k-th of those seen so far are gathered in a small buffer; when it is full, the
//!              first k of them stay, and the k-th is the new limit. Blocks without an element before the limit
//!              are skipped, which takes one vectorized pass
//! ```
//!
//! The order of pairs is strict, so every method gives the same result.

use std::mem::swap;

use super::keys::{Keyed, Pair, any_before};
use crate::runtime::parallel::{even_start, for_each_item};

/// Pairs from which on a radix sort takes less time: it counts 256 values of each byte.
const RADIX_LEN: usize = 1024;

/// Elements of a block that are compared with the limit at a time.
const BLOCK: usize = 64;

/// Free places of the buffer of a selection, at least.
const FREE: usize = 16;

/// Places of the buffer to select `count` of `n` pairs.
pub(super) fn buffer_len(count: usize, n: usize) -> usize {
    count.saturating_add(count.max(FREE)).min(n)
}

/// Writes the pairs of a row.
pub(super) fn fill<T: Keyed>(row: &[T], first: usize, descending: bool, pairs: &mut [T::Pair]) {
    let flip = T::flip(descending);
    for (i, (pair, x)) in pairs.iter_mut().zip(row).enumerate() {
        *pair = T::Pair::new(x.key(flip), first + i);
    }
}

/// Sorts pairs; `space` has as many elements.
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
    for (i, places) in counts[..P::DIGITS].iter_mut().enumerate() {
        // All pairs have the same byte.
        if places[from[0].digit(i)] == from.len() {
            continue;
        }
        let mut first = 0;
        for place in places.iter_mut() {
            (*place, first) = (first, first + *place);
        }
        for &pair in from.iter() {
            let place = &mut places[pair.digit(i)];
            to[*place] = pair;
            *place += 1;
        }
        swap(&mut from, &mut to);
        is_moved = !is_moved;
    }
    if is_moved {
        to.copy_from_slice(from);
    }
}

/// Sorts the pairs of a long row on several threads and returns them, in one of the two buffers.
pub(super) fn sort_in_parts<'a, T: Keyed>(
    row: &[T],
    descending: bool,
    parts: usize,
    [mut pairs, mut space]: [&'a mut [T::Pair]; 2],
) -> &'a mut [T::Pair] {
    let n = row.len();
    let start = |part: usize| even_start(n, parts, part.min(parts));
    let both = cut(pairs, parts).into_iter().zip(cut(space, parts));
    for_each_item(both, |part, (pairs, space)| {
        fill(&row[start(part)..start(part + 1)], start(part), descending, pairs);
        sort(pairs, space);
    });
    let mut width = 1;
    while width < parts {
        let sorted = &*pairs;
        for_each_item(cut(space, parts), |part, merged| {
            let first = part / (2 * width) * (2 * width);
            let [low, middle, high] = [first, first + width, first + 2 * width].map(start);
            merge(&sorted[low..middle], &sorted[middle..high], start(part) - low, merged);
        });
        swap(&mut pairs, &mut space);
        width *= 2;
    }
    pairs
}

/// Cuts evenly.
fn cut<P>(mut rest: &mut [P], parts: usize) -> Vec<&mut [P]> {
    let n = rest.len();
    let part = |part| {
        let len = even_start(n, parts, part + 1) - even_start(n, parts, part);
        rest.split_off_mut(..len).unwrap_or_default()
    };
    (0..parts).map(part).collect()
}

/// Writes the pairs from number `skipped` on of `a` and `b` merged.
fn merge<P: Pair>(a: &[P], b: &[P], skipped: usize, merged: &mut [P]) {
    // The first `i` pairs of `a` and `skipped - i` of `b` are before all others.
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

/// Returns the first `count` pairs of a row in order; `count` is not 0, and `buffer` has [`buffer_len`] elements.
pub(super) fn select<'a, T: Keyed>(
    row: &[T],
    descending: bool,
    count: usize,
    buffer: &'a mut [T::Pair],
) -> &'a mut [T::Pair] {
    let flip = T::flip(descending);
    let (mut len, mut limit) = (0, None);
    for (block, elements) in row.chunks(BLOCK).enumerate() {
        if let Some(limit) = limit {
            let limit: T::Pair = limit;
            // The last key may be NaN, of which comparisons are false.
            let is_last = limit.key() == T::LAST;
            if !is_last && !any_before(elements, row[limit.index()], descending) {
                continue;
            }
        }
        for (i, x) in elements.iter().enumerate() {
            let pair = T::Pair::new(x.key(flip), block * BLOCK + i);
            if limit.is_some_and(|limit| pair > limit) {
                continue;
            }
            buffer[len] = pair;
            len += 1;
            if len == buffer.len() && len > count {
                let (_, &mut last, _) = buffer.select_nth_unstable(count - 1);
                (len, limit) = (count, Some(last));
            }
        }
    }
    if len > count {
        buffer[..len].select_nth_unstable(count - 1);
    }
    let first = &mut buffer[..count];
    first.sort_unstable();
    first
}

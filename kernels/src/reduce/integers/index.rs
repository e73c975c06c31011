//! Indices of the largest or smallest integers of a slice and of the columns of a matrix.

use super::{CHUNK, GROUP, Integer, Join, ROUND, TILE, Takes, four_rows, prefetch_rows};
use crate::fold::columns::Matrix;
use crate::fold::prefetch_ahead;
use crate::simd::{Simd, Task};

/// The index of the first largest or smallest element of a slice that is not empty.
pub(super) struct Index<'a, T> {
    pub(super) x: &'a [T],
    pub(super) join: Join<T>,
}

impl<T: Integer + Takes<T>> Task for Index<'_, T> {
    type Home = Self;
    type Output = usize;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> usize {
        let Index { x, join } = self;
        match join {
            Join::Largest => index(simd, x, Join::Largest),
            _ => index(simd, x, Join::Smallest),
        }
    }
}

#[inline(always)]
fn index<T: Integer + Takes<T>, S: Simd>(simd: S, x: &[T], join: Join<T>) -> usize {
    let (mut best, mut found, mut at) = (x[0], 0, 0);
    for x in x.chunks(CHUNK / size_of::<T>()) {
        prefetch_ahead(simd, x.as_ptr(), x.len());
        let mut here = best;
        for &x in x {
            here = here.take(x, join);
        }
        if here != best {
            (best, found) = (here, at);
        }
        at += x.len();
    }
    found + first(&x[found..], best)
}

/// The index of the first element that equals `wanted`; there must be one.
#[inline(always)]
fn first<T: Integer>(x: &[T], wanted: T) -> usize {
    let (groups, rest) = x.as_chunks::<GROUP>();
    let mut at = 0;
    for group in groups {
        let mut found = T::NONE;
        for i in 0..GROUP {
            let here = if group[i] == wanted { T::number(i) } else { T::NONE };
            found = if here < found { here } else { found };
        }
        if found != T::NONE {
            return at + found.into() as usize;
        }
        at += GROUP;
    }
    for &x in rest {
        if x == wanted {
            break;
        }
        at += 1;
    }
    at
}

/// The row of the first winner of each column; there must be rows.
pub(super) struct IndexColumns<'a, T> {
    pub(super) x: Matrix<&'a [T]>,
    pub(super) y: &'a mut [i64],
    pub(super) join: Join<T>,
}

impl<T: Integer + Takes<T>> Task for IndexColumns<'_, T> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let IndexColumns { x: Matrix { x, rows, stride, .. }, y, join } = self;
        let mut first = 0;
        for y in y.chunks_mut(TILE) {
            let (mut best, mut numbers) = ([T::NONE; TILE], [T::NONE; TILE]);
            let (x, cols) = (&x[first..], y.len());
            let (best, numbers) = (&mut best[..cols], &mut numbers[..cols]);
            best.copy_from_slice(&x[..cols]);
            y.fill(0);
            for band in (0..rows).step_by(GROUP) {
                numbers.fill(T::NONE);
                let count = GROUP.min(rows - band);
                let x = Matrix { x: &x[band * stride..], rows: count, cols, stride };
                match join {
                    Join::Largest => compete(simd, x, best, numbers, Join::Largest),
                    _ => compete(simd, x, best, numbers, Join::Smallest),
                }
                for i in 0..cols {
                    let here = (band as i64).wrapping_add(numbers[i].into());
                    y[i] = if numbers[i] == T::NONE { y[i] } else { here };
                }
            }
            first += TILE;
        }
    }
}

/// Compares rows with the best so far; `numbers` become those of the rows that win.
#[inline(always)]
fn compete<T: Integer + Takes<T>, S: Simd>(
    simd: S,
    x: Matrix<&[T]>,
    best: &mut [T],
    numbers: &mut [T],
    join: Join<T>,
) {
    let Matrix { x, rows, cols, stride } = x;
    let (best, numbers) = (&mut best[..cols], &mut numbers[..cols]);
    let mut row = 0;
    while rows - row >= ROUND {
        prefetch_rows(simd, x, row + ROUND, stride, cols);
        let [a, b, c, d] = four_rows(x, row, stride, cols);
        for i in 0..cols {
            let mut found = (best[i], numbers[i]);
            found = better(found, a[i], T::number(row), join);
            found = better(found, b[i], T::number(row + 1), join);
            found = better(found, c[i], T::number(row + 2), join);
            found = better(found, d[i], T::number(row + 3), join);
            (best[i], numbers[i]) = found;
        }
        row += ROUND;
    }
    while row < rows {
        let x = &x[row * stride..][..cols];
        for i in 0..cols {
            (best[i], numbers[i]) = better((best[i], numbers[i]), x[i], T::number(row), join);
        }
        row += 1;
    }
}

/// The better of the best so far and `x`, with its number; the former if they are equal.
#[inline(always)]
fn better<T: Takes<T>>((best, of_best): (T, T), x: T, number: T, join: Join<T>) -> (T, T) {
    let winner = best.take(x, join);
    (winner, if winner == best { of_best } else { number })
}

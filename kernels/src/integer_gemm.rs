//! Matrix products of integers, wrapping.
//!
//! ```text
//! for each block of b, [ROWS, COLS]                  stays in the L2 cache
//!     for each row of a and of c:
//!         for each four rows of the block: add their multiples to the row of c
//! ```
//!
//! These are plain loops, which the compiler vectorises for the instruction set that the dispatcher
//! enters.

use crate::simd::{Simd, Task};

/// Rows and columns of a block of `b`: 128 KiB, and a row of `c` in 2 KiB.
const ROWS: usize = 64;
const COLS: usize = 256;

/// `c += a · b` for row-major matrices `a` `[m, k]`, `b` `[k, n]` and `c` `[m, n]`; `k` and `n` are not 0.
pub(crate) struct IntegerGemm<'a> {
    pub a: &'a [i64],
    pub b: &'a [i64],
    pub k: usize,
    pub n: usize,
    pub c: &'a mut [i64],
}

impl Task for IntegerGemm<'_> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let IntegerGemm { a, b, k, n, c } = self;
        for top in (0..k).step_by(ROWS) {
            for left in (0..n).step_by(COLS) {
                let (height, width) = (ROWS.min(k - top), COLS.min(n - left));
                for (a, c) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)) {
                    let block = Block { b: &b[top * n + left..], n, width };
                    block.add(&a[top..top + height], &mut c[left..left + width]);
                }
            }
        }
    }
}

/// A block of rows of `width` elements, `n` apart.
struct Block<'a> {
    b: &'a [i64],
    n: usize,
    width: usize,
}

impl Block<'_> {
    /// Adds the product of a row of `a` and the block to a row of `c`.
    #[inline(always)]
    fn add(&self, a: &[i64], c: &mut [i64]) {
        let row = |i: usize| &self.b[i * self.n..][..self.width];
        let (fours, rest) = a.as_chunks::<4>();
        for (i, a) in fours.iter().enumerate() {
            let [b0, b1, b2, b3] = [0, 1, 2, 3].map(|j| row(4 * i + j));
            let columns = c.iter_mut().zip(b0).zip(b1).zip(b2).zip(b3);
            for ((((c, b0), b1), b2), b3) in columns {
                let left = a[0].wrapping_mul(*b0).wrapping_add(a[1].wrapping_mul(*b1));
                let right = a[2].wrapping_mul(*b2).wrapping_add(a[3].wrapping_mul(*b3));
                *c = c.wrapping_add(left.wrapping_add(right));
            }
        }
        for (i, a) in rest.iter().enumerate() {
            for (c, b) in c.iter_mut().zip(row(4 * fours.len() + i)) {
                *c = c.wrapping_add(a.wrapping_mul(*b));
            }
        }
    }
}

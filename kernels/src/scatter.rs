//! Scatter-add of rows in the order of the index: the gradient of an embedding or of an index
//! selection.

use crate::dispatch::run;
use crate::simd::{Simd, Task};

/// Element types of scatter-add: `f32`, `f64`, `i64` and `u8`. Sealed.
pub trait Addend: Copy + sealed::Sealed {
    /// Returns `self + other`, rounded for floats, wrapping for integers.
    fn plus(self, other: Self) -> Self;
    #[doc(hidden)]
    fn add_rows(x: &[Self], index: &[i64], shape: [usize; 2], first: usize, y: &mut [Self]);
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! impl_addend {
    ($($t:ident: $plus:expr;)*) => {$(
        impl sealed::Sealed for $t {}

        impl Addend for $t {
            #[inline(always)]
            fn plus(self, other: $t) -> $t {
                $plus(self, other)
            }
            fn add_rows(x: &[$t], index: &[i64], shape: [usize; 2], first: usize, y: &mut [$t]) {
                run(AddRows { x, index, shape, first, y });
            }
        }
    )*};
}
impl_addend! {
    f32: core::ops::Add::add;
    f64: core::ops::Add::add;
    i64: i64::wrapping_add;
    u8: u8::wrapping_add;
}

/// Adds the rows of `x` to the rows of `y` that `index` names. `shape` is `[rows, cols]` of a block of
/// the result, and `y` begins at row `first` of all blocks.
struct AddRows<'a, E> {
    x: &'a [E],
    index: &'a [i64],
    shape: [usize; 2],
    first: usize,
    y: &'a mut [E],
}

/// Indices filtered at a time, so that an index's position among them fits into a byte.
const CHUNK: usize = 256;

impl<E: Addend> Task for AddRows<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let AddRows { x, index, shape: [rows, cols], mut first, mut y } = self;
        if x.is_empty() || y.is_empty() {
            return;
        }
        let (mut left, block_len) = (y.len() / cols, index.len() * cols);
        let mut x = &x[first / rows * block_len..];
        first %= rows;
        while left > 0 {
            let count = left.min(rows - first);
            let (here, after) = y.split_at_mut(count * cols);
            let part = Part { first: first as u64, rows: count as u64, cols };
            match count == rows {
                true => part.add_all(&x[..block_len], index, here),
                false => part.add_filtered(&x[..block_len], index, here),
            }
            (x, y, first, left) = (&x[block_len..], after, 0, left - count);
        }
    }
}

/// The part of a block to add to: `rows` rows from row `first` on.
struct Part {
    first: u64,
    rows: u64,
    cols: usize,
}

impl Part {
    /// Returns the row within the part that an index names. If the index is negative or lies before
    /// the part, the result exceeds every possible number of rows.
    #[inline(always)]
    fn row(&self, index: i64) -> u64 {
        (index as u64).wrapping_sub(self.first)
    }

    /// Adds the rows of `x` to a part that is a whole block. Few rows are skipped, so the branch is
    /// predicted well.
    #[inline(always)]
    fn add_all<E: Addend>(&self, x: &[E], index: &[i64], y: &mut [E]) {
        if self.cols == 1 {
            for (&to, &x) in index.iter().zip(x) {
                if (to as u64) < y.len() as u64 {
                    y[to as usize] = y[to as usize].plus(x);
                }
            }
            return;
        }
        for (&to, x) in index.iter().zip(x.chunks_exact(self.cols)) {
            if (to as u64) < self.rows {
                self.add(x, to as usize, y);
            }
        }
    }

    /// Adds those rows of `x` whose index names a row of the part. Which rows these are is
    /// unpredictable, so they are found without a branch.
    #[inline(always)]
    fn add_filtered<E: Addend>(&self, x: &[E], index: &[i64], y: &mut [E]) {
        let chunks = x.chunks(CHUNK.saturating_mul(self.cols));
        for (index, x) in index.chunks(CHUNK).zip(chunks) {
            let (mut found, mut count) = ([0u8; CHUNK], 0);
            for (i, &to) in index.iter().enumerate() {
                found[count] = i as u8;
                count += usize::from(self.row(to) < self.rows);
            }
            for &i in &found[..count] {
                let (i, to) = (usize::from(i), self.row(index[usize::from(i)]) as usize);
                self.add(&x[i * self.cols..][..self.cols], to, y);
            }
        }
    }

    /// Adds one row of `x` to row `to` of the part.
    #[inline(always)]
    fn add<E: Addend>(&self, x: &[E], to: usize, y: &mut [E]) {
        let y = &mut y[to * self.cols..][..self.cols];
        for (y, &x) in y.iter_mut().zip(x) {
            *y = y.plus(x);
        }
    }
}

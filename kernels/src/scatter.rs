//! Scatter-add of rows in the order of the index: the gradient of embeddings and selections.

use crate::dispatch::run;
use crate::simd::{Simd, Task};

/// Element types that can be added up: `f32`, `f64`, `i64` and `u8`. Sealed.
pub trait Addend: Copy + sealed::Sealed {
    /// Returns the sum, rounded for floats, wrapping for integers.
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

struct AddRows<'a, E> {
    x: &'a [E],
    index: &'a [i64],
    shape: [usize; 2],
    first: usize,
    y: &'a mut [E],
}

/// Indices filtered at once; a position among them fits a byte.
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
        let (mut left, block) = (y.len() / cols, index.len() * cols);
        let mut x = &x[first / rows * block..];
        first %= rows;
        while left > 0 {
            let own = left.min(rows - first);
            let (here, after) = y.split_at_mut(own * cols);
            let part = Part { first: first as u64, own: own as u64, cols };
            match own == rows {
                true => part.add_all(&x[..block], index, here),
                false => part.add_own(&x[..block], index, here),
            }
            (x, y, first, left) = (&x[block..], after, 0, left - own);
        }
    }
}

/// The rows of a block that a part owns, `own` rows from number `first` on.
struct Part {
    first: u64,
    own: u64,
    cols: usize,
}

impl Part {
    /// The row within the part; for a negative index or a row before the part, a number beyond any
    /// length.
    #[inline(always)]
    fn row(&self, index: i64) -> u64 {
        (index as u64).wrapping_sub(self.first)
    }

    /// Adds rows to a whole block. Hardly any row is skipped, so a branch is cheap.
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
            if (to as u64) < self.own {
                self.add(x, to as usize, y);
            }
        }
    }

    /// Adds rows to a part of a block. Skipped rows are unpredictable, so they are filtered out
    /// without a branch.
    #[inline(always)]
    fn add_own<E: Addend>(&self, x: &[E], index: &[i64], y: &mut [E]) {
        let chunks = x.chunks(CHUNK.saturating_mul(self.cols));
        for (index, x) in index.chunks(CHUNK).zip(chunks) {
            let (mut own, mut count) = ([0u8; CHUNK], 0);
            for (i, &to) in index.iter().enumerate() {
                own[count] = i as u8;
                count += usize::from(self.row(to) < self.own);
            }
            for &i in &own[..count] {
                let (i, to) = (usize::from(i), self.row(index[usize::from(i)]) as usize);
                self.add(&x[i * self.cols..][..self.cols], to, y);
            }
        }
    }

    #[inline(always)]
    fn add<E: Addend>(&self, x: &[E], to: usize, y: &mut [E]) {
        let y = &mut y[to * self.cols..][..self.cols];
        for (y, &x) in y.iter_mut().zip(x) {
            *y = y.plus(x);
        }
    }
}

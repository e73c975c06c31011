//! Addition of rows to rows that an index names, in the index's order: gradients of embeddings and of
//! selections.

use crate::dispatch::run;
use crate::simd::{Simd, Task};

/// Elements that are added up: `f32`, `f64`, `i64` and `u8`. Sealed.
pub trait Addend: Copy + sealed::Sealed {
    /// The sum: of floats rounded, of integers wrapping.
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

/// Indices that are looked at before their rows are added: a place among them fits into a byte.
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

/// Which rows of a block are added to.
struct Part {
    first: u64,
    own: u64,
    cols: usize,
}

impl Part {
    /// Where a row of the block lies in the part: of a negative index, or a row before the part, beyond any length.
    #[inline(always)]
    fn row(&self, index: i64) -> u64 {
        (index as u64).wrapping_sub(self.first)
    }

    /// Of a whole block: hardly a row is another's.
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

    /// Of a part of a block: whether a row is another part's cannot be foretold, so that no branch depends on
    /// it.
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

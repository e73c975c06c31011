//! Comparisons, tests of single numbers, and selection between two slices by a mask. Results and
//! masks are booleans in bytes, 0 or 1; as a mask, any byte but 0 is true.
//!
//! Comparisons are exact on every machine, so these are plain loops. The compiler vectorises them
//! for the instruction set that the dispatcher enters. Slices are blocks of one row.

mod widened;

use bytemuck::{Pod, cast_slice_mut};
use half::{bf16, f16};

use crate::dispatch::run;
use crate::simd::{Simd, Task};
use crate::{Arg, Block, BlockArg};
use widened::Widened;

/// A comparison. With NaN every comparison is false, except `Ne`, which is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the six usual ones")]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// A test of a number. Integers are finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumberTest {
    /// Not a number.
    IsNan,
    /// +∞ or −∞.
    IsInf,
    /// Neither NaN nor infinite.
    IsFinite,
}

/// Element types that can be compared: `f16`, `bf16`, `f32`, `f64`, `i64`, `i32`, `u32`, `u8`.
/// Sealed.
pub trait Compare: Copy + PartialOrd + sealed::Sealed {
    #[doc(hidden)]
    fn compare(op: Comparison, a: &BlockArg<Self>, b: &BlockArg<Self>, rows: &mut ResultRows<u8>);
    #[doc(hidden)]
    fn test(test: NumberTest, x: &BlockArg<Self>, rows: &mut ResultRows<u8>);
}

/// Element types that a mask can select: integers and floats of 1, 2, 4 or 8 bytes. Sealed.
pub trait Select: Pod + sealed::Choose {}

mod sealed {
    pub trait Sealed {}

    pub trait Choose {
        /// The unsigned integer of the element's size, as which elements are selected.
        type Bits: bytemuck::Pod;
        #[doc(hidden)]
        fn choose(selection: super::Selection<'_, Self::Bits>);
    }
}

macro_rules! select {
    ($($bits:ident: $($t:ident)*;)*) => {$($(
        impl Select for $t {}
        impl sealed::Choose for $t {
            type Bits = $bits;
            fn choose(selection: Selection<'_, $bits>) {
                run(selection);
            }
        }
    )*)*};
}
select! {
    u8: u8 i8;
    u16: u16 i16 f16 bf16;
    u32: u32 i32 f32;
    u64: u64 i64 f64;
}

/// Selects rows; the shape was checked.
pub(crate) fn choose<T: Select>(
    mask: &BlockArg<u8>,
    a: &BlockArg<T>,
    b: &BlockArg<T>,
    shape: Block,
    y: &mut [T],
) {
    let rows = &mut ResultRows { shape, y: cast_slice_mut::<T, T::Bits>(y) };
    T::choose(Selection { mask, a: &a.cast(), b: &b.cast(), rows });
}

/// The rows of a result.
pub struct ResultRows<'a, T> {
    shape: Block,
    y: &'a mut [T],
}

impl<'a, T> ResultRows<'a, T> {
    pub(crate) fn one(y: &'a mut [T]) -> Self {
        ResultRows { shape: Block::row(y.len()), y }
    }

    #[track_caller]
    pub(crate) fn checked(name: &str, shape: Block, y: &'a mut [T]) -> Self {
        ResultRows { shape: shape.checked(name, y.len()), y }
    }

    /// Calls an `#[inline(always)]` closure with every row and its number.
    #[inline(always)]
    fn each(&mut self, mut f: impl FnMut(usize, &mut [T])) {
        let Block { rows, cols, stride } = self.shape;
        for r in 0..rows {
            f(r, &mut self.y[r * stride..r * stride + cols]);
        }
    }
}

/// Elements of a row processed at once if an argument is one value, which is repeated that often.
const PIECE: usize = 64;

/// A buffer of one repeated value, so that loops only see slices.
struct Pieces<T>([T; PIECE]);

impl<T: Copy> Pieces<T> {
    /// Returns `len` elements of row `r` from element `at` on; `len` is at most [`PIECE`] for a
    /// value.
    #[inline(always)]
    fn get<'x>(&'x mut self, x: &'x BlockArg<'_, T>, r: usize, at: usize, len: usize) -> &'x [T] {
        if x.is_value {
            if at == 0 {
                self.0.fill(x.elements(r, 1)[0]);
            }
            return &self.0[..len];
        }
        &x.elements(r, at + len)[at..]
    }
}

/// A selection of rows by a mask. Its fields are references: rows passed by value would be loaded
/// in wider pieces than they were stored in, which is slow.
#[doc(hidden)]
pub struct Selection<'t, T> {
    mask: &'t BlockArg<'t, u8>,
    a: &'t BlockArg<'t, T>,
    b: &'t BlockArg<'t, T>,
    rows: &'t mut ResultRows<'t, T>,
}

macro_rules! selections {
    ($($t:ident)*) => {$(
        impl Task for Selection<'_, $t> {
            type Home = Self;
            type Output = ();
            #[inline(always)]
            fn run<S: Simd>(self, _simd: S) {
                let Selection { mask, a, b, rows } = self;
                let Block { rows: count, cols, stride } = rows.shape;
                let piece = if a.is_value || b.is_value { PIECE } else { cols };
                let (mut of_a, mut of_b) = (Pieces([0; PIECE]), Pieces([0; PIECE]));
                for r in 0..count {
                    mask.prefetch_ahead(r, rows.shape);
                    a.prefetch_ahead(r, rows.shape);
                    b.prefetch_ahead(r, rows.shape);
                    let masks = mask.elements(r, cols);
                    if mask.is_value {
                        let chosen = if masks[0] != 0 { a } else { b };
                        let (x, y) = (chosen.elements(r, cols), &mut rows.y[r * stride..][..cols]);
                        if chosen.is_value {
                            y.fill(x[0]);
                        } else {
                            y.copy_from_slice(x);
                        }
                        continue;
                    }
                    let mut at = 0;
                    while at < cols {
                        let len = piece.min(cols - at);
                        let y = &mut rows.y[r * stride + at..][..len];
                        let masks = &masks[at..at + len];
                        let (a, b) = (of_a.get(a, r, at, len), of_b.get(b, r, at, len));
                        for i in 0..len {
                            // In bits, because the compiler turns a choice between two loads into a
                            // load from a chosen address, which is not vectorised.
                            let all = (0 as $t).wrapping_sub((masks[i] != 0) as $t);
                            y[i] = b[i] ^ (a[i] ^ b[i]) & all;
                        }
                        at += len;
                    }
                }
            }
        }
    )*};
}
selections!(u8 u16 u32 u64);

/// Comparisons of rows, negated if `negate` is 1. Its fields are references, as in [`Selection`].
struct Holds<'t, 'a, 'b, 'y, T, F> {
    a: &'t BlockArg<'a, T>,
    b: &'t BlockArg<'b, T>,
    rows: &'t mut ResultRows<'y, u8>,
    negate: u8,
    holds: F,
}

impl<T: Copy, F: Fn(T, T) -> bool> Task for Holds<'_, '_, '_, '_, T, F> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let Holds { a, b, rows, negate, holds } = self;
        let Block { rows: count, cols, stride } = rows.shape;
        for r in 0..count {
            a.prefetch_ahead(r, rows.shape);
            b.prefetch_ahead(r, rows.shape);
            let y = &mut rows.y[r * stride..][..cols];
            let (of_a, of_b) = (a.elements(r, cols), b.elements(r, cols));
            match (a.is_value, b.is_value) {
                (false, false) => {
                    let (of_a, of_b) = (&of_a[..cols], &of_b[..cols]);
                    for i in 0..cols {
                        y[i] = u8::from(holds(of_a[i], of_b[i])) ^ negate;
                    }
                }
                (false, true) => {
                    let (of_a, b) = (&of_a[..cols], of_b[0]);
                    for i in 0..cols {
                        y[i] = u8::from(holds(of_a[i], b)) ^ negate;
                    }
                }
                (true, false) => {
                    let (a, of_b) = (of_a[0], &of_b[..cols]);
                    for i in 0..cols {
                        y[i] = u8::from(holds(a, of_b[i])) ^ negate;
                    }
                }
                (true, true) => y.fill(u8::from(holds(of_a[0], of_b[0])) ^ negate),
            }
        }
    }
}

/// Compares rows. If elements are `ORDERED` (never NaN), a ≤ b is the negation of b < a.
fn compare_each<T: Copy + PartialOrd, const ORDERED: bool>(
    op: Comparison,
    a: &BlockArg<T>,
    b: &BlockArg<T>,
    rows: &mut ResultRows<u8>,
) {
    let negate = u8::from(matches!(op, Comparison::Ne | Comparison::Le | Comparison::Ge));
    match op {
        Comparison::Gt => compare_each::<T, ORDERED>(Comparison::Lt, b, a, rows),
        Comparison::Ge => compare_each::<T, ORDERED>(Comparison::Le, b, a, rows),
        Comparison::Eq | Comparison::Ne => run(Holds { a, b, rows, negate, holds: |a, b| a == b }),
        Comparison::Le if const { !ORDERED } => {
            run(Holds { a, b, rows, negate: 0, holds: |a, b| a <= b });
        }
        Comparison::Le | Comparison::Lt => {
            let (a, b) = if op == Comparison::Le { (b, a) } else { (a, b) };
            run(Holds { a, b, rows, negate, holds: |a, b| a < b });
        }
    }
}

macro_rules! compare {
    (integer $($t:ident)*) => {$(
        impl sealed::Sealed for $t {}
        impl Compare for $t {
            fn compare(op: Comparison, a: &BlockArg<$t>, b: &BlockArg<$t>, rows: &mut ResultRows<u8>) {
                compare_each::<$t, true>(op, a, b, rows);
            }
            fn test(test: NumberTest, _x: &BlockArg<$t>, rows: &mut ResultRows<u8>) {
                rows.each(|_, y| y.fill(u8::from(test == NumberTest::IsFinite)));
            }
        }
    )*};
    (float $($t:ident)*) => {$(
        impl sealed::Sealed for $t {}
        impl Compare for $t {
            fn compare(op: Comparison, a: &BlockArg<$t>, b: &BlockArg<$t>, rows: &mut ResultRows<u8>) {
                compare_each::<$t, false>(op, a, b, rows);
            }
            fn test(test: NumberTest, x: &BlockArg<$t>, rows: &mut ResultRows<u8>) {
                let infinity = Arg::Scalar($t::INFINITY);
                let (a, b, negate) = (x, &infinity.as_row(), 0);
                match test {
                    NumberTest::IsNan => compare_each::<$t, false>(Comparison::Ne, x, x, rows),
                    NumberTest::IsInf => {
                        run(Holds { a, b, rows, negate, holds: |x: $t, inf| x.abs() == inf })
                    }
                    NumberTest::IsFinite => {
                        run(Holds { a, b, rows, negate, holds: |x: $t, inf| x.abs() < inf })
                    }
                }
            }
        }
    )*};
    (half $($t:ident)*) => {$(
        impl sealed::Sealed for $t {}
        impl Compare for $t {
            fn compare(op: Comparison, a: &BlockArg<$t>, b: &BlockArg<$t>, rows: &mut ResultRows<u8>) {
                let cols = rows.shape.cols;
                let mut wide = Widened::new();
                rows.each(|r, y| {
                    wide.each([a.row(r, cols), b.row(r, cols)], y, |[a, b], y| {
                        f32::compare(op, &a.as_row(), &b.as_row(), &mut ResultRows::one(y));
                    });
                });
            }
            fn test(test: NumberTest, x: &BlockArg<$t>, rows: &mut ResultRows<u8>) {
                let cols = rows.shape.cols;
                let mut wide = Widened::new();
                rows.each(|r, y| {
                    wide.each([x.row(r, cols)], y, |[x], y| {
                        f32::test(test, &x.as_row(), &mut ResultRows::one(y));
                    });
                });
            }
        }
    )*};
}
compare!(integer i64 i32 u32 u8);
compare!(float f32 f64);
compare!(half f16 bf16);

//! Reductions in which order does not matter: of integers, and *any* and *all* of every type.
//!
//! ```text
//! sums of u8      u16 lanes take the bytes of a chunk or of 256 rows, then are added to the totals
//! indices         the winners of chunks compete, then the best chunk is searched once; for columns,
//!                 numbers of the element type say which of 128 rows won, then become row indices
//! any and all     the elements' bits (except the signs of floats), or marks of zeros, are combined
//!                 by OR; a slice is left at the first chunk that decides
//! ```
//!
//! These are plain loops, which the compiler vectorises for the instruction set that the dispatcher
//! enters. Column loops take four rows at once and prefetch the next four.

mod index;
pub(crate) mod scan;

use core::mem::MaybeUninit;

use index::{Index, IndexColumns};

use super::{All, Any, ArgMax, ArgMin, Max, Min, Prod, Reduction, Sum};
use crate::convert::{Truth, Words};
use crate::dispatch::run;
use crate::fold::columns::{Matrix, Target, filled};
use crate::fold::partial::{Decided, Extremum, Located, Partial, Total, WrappedProduct};
use crate::fold::{prefetch, prefetch_ahead};
use crate::simd::{Simd, Task, Token};

/// Bytes per chunk; the next chunk is prefetched meanwhile.
const CHUNK: usize = 2048;
/// Elements searched at once, and rows that compete: their numbers fit every element type.
const GROUP: usize = 128;
/// Rows folded at once.
const ROUND: usize = 4;
/// Rows of bytes that u16 lanes can take: 256 · 255 is below 2^16.
const BAND: usize = 256;
/// Columns per tile: their winners, indices and lanes stay in the L1 cache.
const TILE: usize = 512;

/// Integers whose extrema have an index; their type holds row numbers.
pub(crate) trait Integer: Copy + Ord + Into<i64> {
    const NONE: Self;
    /// Converts a number below 128.
    fn number(i: usize) -> Self;
}

/// The operation by which a total takes an element; a constant in hot loops, see `for_join`.
#[derive(Clone, Copy)]
pub(crate) enum Join<T> {
    Add,
    Multiply,
    Largest,
    Smallest,
    /// ORs the bits that the mask selects.
    Any(T),
    /// Marks that an element has none of the mask's bits.
    All(T),
}

/// Totals of elements `T`.
pub(crate) trait Takes<T>: Copy + PartialEq {
    fn take(self, x: T, join: Join<T>) -> Self;
}

macro_rules! takes {
    ($($y:ident $x:ident |$total:ident, $element:ident| { $($join:pat => $value:expr,)* })*) => {$(
        impl Takes<$x> for $y {
            #[inline(always)]
            fn take(self, $element: $x, join: Join<$x>) -> $y {
                let $total = self;
                match join {
                    $($join => $value,)*
                    _ => $total,
                }
            }
        }
    )*};
}
takes! {
    i64 i64 |total, x| {
        Join::Add => total.wrapping_add(x),
        Join::Multiply => total.wrapping_mul(x),
        Join::Largest => if x > total { x } else { total },
        Join::Smallest => if x < total { x } else { total },
    }
    i64 u8 |total, x| {
        Join::Add => total.wrapping_add(i64::from(x)),
        Join::Multiply => total.wrapping_mul(i64::from(x)),
    }
    u16 u8 |total, x| { Join::Add => total.wrapping_add(u16::from(x)), }
    u8 u8 |total, x| {
        Join::Largest => if x > total { x } else { total },
        Join::Smallest => if x < total { x } else { total },
        Join::Any(mask) => total | (x & mask),
        Join::All(mask) => total | u8::from(x & mask == 0),
    }
    u16 u16 |total, x| {
        Join::Any(mask) => total | (x & mask),
        Join::All(mask) => total | u16::from(x & mask == 0),
    }
    u32 u32 |total, x| {
        Join::Any(mask) => total | (x & mask),
        Join::All(mask) => total | u32::from(x & mask == 0),
    }
    u64 u64 |total, x| {
        Join::Any(mask) => total | (x & mask),
        Join::All(mask) => total | u64::from(x & mask == 0),
    }
}

/// Evaluates an expression with `$join` bound to a constant kind.
macro_rules! for_join {
    ($join:ident => $body:expr) => {
        match $join {
            Join::Add => for_join!(@arm $join Join::Add, $body),
            Join::Multiply => for_join!(@arm $join Join::Multiply, $body),
            Join::Largest => for_join!(@arm $join Join::Largest, $body),
            Join::Smallest => for_join!(@arm $join Join::Smallest, $body),
            Join::Any(mask) => for_join!(@arm $join Join::Any(mask), $body),
            Join::All(mask) => for_join!(@arm $join Join::All(mask), $body),
        }
    };
    (@arm $join:ident $known:expr, $body:expr) => {{
        let $join = $known;
        $body
    }};
}

/// The total of a slice; *any* and *all* stop at the first chunk that decides.
struct Slice<'a, T, Y> {
    x: &'a [T],
    start: Y,
    join: Join<T>,
}

impl<T: Copy, Y: Takes<T>> Task for Slice<'_, T, Y> {
    type Home = Self;
    type Output = Y;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Y {
        let Slice { x, start, join } = self;
        for_join!(join => chunks(simd, x, start, join))
    }
}

#[inline(always)]
fn chunks<T: Copy, Y: Takes<T>, S: Simd>(simd: S, x: &[T], start: Y, join: Join<T>) -> Y {
    let mut total = start;
    for x in x.chunks(CHUNK / size_of::<T>()) {
        prefetch_ahead(simd, x.as_ptr(), x.len());
        for &x in x {
            total = total.take(x, join);
        }
        if matches!(join, Join::Any(_) | Join::All(_)) && total != start {
            break;
        }
    }
    total
}

/// The sum of bytes.
struct Bytes<'a>(&'a [u8]);

impl Task for Bytes<'_> {
    type Home = Self;
    type Output = i64;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> i64 {
        let mut total = 0;
        for x in self.0.chunks(CHUNK) {
            prefetch_ahead(simd, x.as_ptr(), x.len());
            let (groups, rest) = x.as_chunks::<GROUP>();
            let mut lanes = [0u16; GROUP];
            for group in groups {
                for i in 0..GROUP {
                    lanes[i] += u16::from(group[i]);
                }
            }
            for lane in lanes {
                total += i64::from(lane);
            }
            for &x in rest {
                total += i64::from(x);
            }
        }
        total
    }
}

/// The totals of columns, starting from those in `y`.
struct Columns<'a, T, Y> {
    x: Matrix<&'a [T]>,
    y: &'a mut [Y],
    join: Join<T>,
}

impl<T: Copy, Y: Takes<T>> Task for Columns<'_, T, Y> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Columns { x, y, join } = self;
        for_join!(join => join_rows(simd, x, y, join));
    }
}

#[inline(always)]
fn join_rows<T: Copy, Y: Takes<T>, S: Simd>(simd: S, x: Matrix<&[T]>, y: &mut [Y], join: Join<T>) {
    let Matrix { x, rows, stride, .. } = x;
    let cols = y.len();
    if cols == 0 {
        // Without columns, rows may be outside of the slice.
        return;
    }
    let mut row = 0;
    while rows - row >= ROUND {
        prefetch_rows(simd, x, row + ROUND, stride, cols);
        let [a, b, c, d] = four_rows(x, row, stride, cols);
        for i in 0..cols {
            y[i] = y[i].take(a[i], join).take(b[i], join).take(c[i], join).take(d[i], join);
        }
        row += ROUND;
    }
    while row < rows {
        let x = &x[row * stride..][..cols];
        for i in 0..cols {
            y[i] = y[i].take(x[i], join);
        }
        row += 1;
    }
}

/// Prefetches [`ROUND`] rows, which need not exist.
#[inline(always)]
fn prefetch_rows<T, S: Token>(simd: S, x: &[T], first: usize, stride: usize, cols: usize) {
    for row in first..first + ROUND {
        let x = x.as_ptr().wrapping_add(row.wrapping_mul(stride));
        prefetch(simd, x.cast(), cols * size_of::<T>());
    }
}

#[inline(always)]
fn four_rows<T>(x: &[T], row: usize, stride: usize, cols: usize) -> [&[T]; ROUND] {
    let x = &x[row * stride..];
    [&x[..cols], &x[stride..][..cols], &x[2 * stride..][..cols], &x[3 * stride..][..cols]]
}

/// Adds rows of bytes to totals.
struct ByteColumns<'a> {
    x: Matrix<&'a [u8]>,
    y: &'a mut [i64],
}

impl Task for ByteColumns<'_> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let ByteColumns { x: Matrix { x, rows, stride, .. }, y } = self;
        let mut first = 0;
        for y in y.chunks_mut(TILE) {
            for band in (0..rows).step_by(BAND) {
                let mut lanes = [0u16; TILE];
                let lanes = &mut lanes[..y.len()];
                let x = &x[band * stride + first..];
                let x = Matrix { x, rows: BAND.min(rows - band), cols: y.len(), stride };
                join_rows(simd, x, lanes, Join::Add);
                for i in 0..y.len() {
                    y[i] = y[i].wrapping_add(i64::from(lanes[i]));
                }
            }
            first += TILE;
        }
    }
}

/// Calls `of_tile` with tiles of columns, and writes the accumulator of each result.
fn each_tile<T, Y: Copy, P>(
    x: Matrix<&[T]>,
    y: &mut [MaybeUninit<P>],
    of_tile: impl Fn(Matrix<&[T]>, &mut [Y]),
    start: Y,
    acc: impl Fn(Y, &dyn Fn(usize) -> usize) -> P,
) {
    let mut results = [start; TILE];
    for (tile, y) in y.chunks_mut(TILE).enumerate() {
        let (first, results) = (tile * TILE, &mut results[..y.len()]);
        results.fill(start);
        of_tile(Matrix { x: &x.x[first..], cols: y.len(), ..x }, results);
        for (c, y) in y.iter_mut().enumerate() {
            y.write(acc(results[c], &|row| row * x.stride + first + c));
        }
    }
}

/// Implements the reductions of an integer type.
macro_rules! integers {
    ($t:ident, |$slice:ident| $sum:expr, |$x:ident, $y:ident| $sums:expr) => {
        impl Integer for $t {
            const NONE: $t = $t::MAX;
            #[inline(always)]
            fn number(i: usize) -> $t {
                i as $t
            }
        }

        integers!(@total $t Sum "sum" Total 0, |$slice| $sum, |$x, $y| $sums);
        integers!(@total $t Prod "prod" WrappedProduct 1,
            |x| run(Slice { x, start: 1i64, join: Join::Multiply }),
            |x, y| run(Columns { x, y, join: Join::Multiply }));
        integers!(@extremum $t Max "max" true Largest);
        integers!(@extremum $t Min "min" false Smallest);
        integers!(@index $t ArgMax "argmax" true Largest);
        integers!(@index $t ArgMin "argmin" false Smallest);
    };
    (@total $t:ident $op:ident $name:literal $acc:ident $start:literal,
        |$slice:ident| $total:expr, |$x:ident, $y:ident| $totals:expr) => {
        reduction! {
            [] $op, $t, $name: $acc => i64,
            |_op, $slice| $acc($total),
            |$x, y| {
                let $y = match y {
                    Target::Results(y) => filled(y, $start),
                    Target::Partial(y) => bytemuck::cast_slice_mut(filled(y, $acc($start))),
                };
                $totals
            },
            |acc, _count| acc.0,
        }
    };
    (@extremum $t:ident $op:ident $name:literal $largest:literal $join:ident) => {
        reduction! {
            [] $op, $t, $name, needs_rows: Extremum<i64, $largest> => $t,
            |_op, x| x.first().map_or(Partial::EMPTY, |&start| {
                Extremum(i64::from(run(Slice { x, start, join: Join::$join })))
            }),
            |x, y| {
                let of_tile = |x: Matrix<&[$t]>, y: &mut [$t]| {
                    y.copy_from_slice(&x.x[..y.len()]);
                    run(Columns { x, y, join: Join::$join });
                };
                match y {
                    Target::Results(y) => of_tile(x, filled(y, 0)),
                    Target::Partial(y) => {
                        each_tile(x, y, of_tile, 0, |found, _| Extremum(i64::from(found)));
                    }
                }
            },
            |acc, _count| acc.0 as $t,
        }
    };
    (@index $t:ident $op:ident $name:literal $largest:literal $join:ident) => {
        reduction! {
            [] $op, $t, $name, needs_rows: Located<i64, $largest> => i64,
            |_op, x| {
                if x.is_empty() {
                    return Partial::EMPTY;
                }
                let index = run(Index { x, join: Join::$join });
                let (value, count) = (i64::from(x[index]), x.len() as i64);
                Located { value, index: index as i64, count }
            },
            |x, y| {
                let of_tile =
                    |x: Matrix<&[$t]>, y: &mut [i64]| run(IndexColumns { x, y, join: Join::$join });
                match y {
                    Target::Results(y) => of_tile(x, filled(y, 0)),
                    Target::Partial(y) => each_tile(x, y, of_tile, 0, |index, at| {
                        let value = i64::from(x.x[at(index as usize)]);
                        Located { value, index, count: x.rows as i64 }
                    }),
                }
            },
            |acc, _count| acc.index,
        }
    };
}
integers!(i64, |x| run(Slice { x, start: 0i64, join: Join::Add }), |x, y| run(Columns {
    x,
    y,
    join: Join::Add
}));
integers!(u8, |x| run(Bytes(x)), |x, y| run(ByteColumns { x, y }));

/// True if an element decides: a zero for *all*, any other for *any*. Not generic, so that it is
/// compiled with this crate.
fn is_decided(x: Words<'_>, all: bool) -> bool {
    match x {
        Words::U8(x) => decided(x, u8::MAX, all),
        Words::U16(x, mask) => decided(x, mask, all),
        Words::U32(x, mask) => decided(x, mask, all),
        Words::U64(x, mask) => decided(x, mask, all),
    }
}

/// The matrix with its elements in another form; code that reads them checks the bounds.
fn with<X, Y>(of: &Matrix<X>, x: Y) -> Matrix<Y> {
    Matrix { x, rows: of.rows, cols: of.cols, stride: of.stride }
}

/// [`is_decided`] for each column.
fn are_decided(x: Matrix<Words<'_>>, all_and_flip: [bool; 2], y: &mut [u8]) {
    match x.x {
        Words::U8(words) => decided_columns(with(&x, words), u8::MAX, all_and_flip, y),
        Words::U16(words, mask) => decided_columns(with(&x, words), mask, all_and_flip, y),
        Words::U32(words, mask) => decided_columns(with(&x, words), mask, all_and_flip, y),
        Words::U64(words, mask) => decided_columns(with(&x, words), mask, all_and_flip, y),
    }
}

/// True if an element decides: one without bits of the mask for *all*, one with such bits for
/// *any*.
fn decided<W: Takes<W> + Default>(x: &[W], mask: W, all: bool) -> bool {
    let join = if all { Join::All(mask) } else { Join::Any(mask) };
    run(Slice { x, start: W::default(), join }) != W::default()
}

/// Writes 1 for each column in which an element decides, else 0; the reverse if `flip`.
fn decided_columns<W: Takes<W> + Default>(
    x: Matrix<&[W]>,
    mask: W,
    [all, flip]: [bool; 2],
    y: &mut [u8],
) {
    let join = if all { Join::All(mask) } else { Join::Any(mask) };
    let mut found = [W::default(); TILE];
    for (tile, y) in y.chunks_mut(TILE).enumerate() {
        let found = &mut found[..y.len()];
        found.fill(W::default());
        if x.rows > 0 {
            let x = Matrix { x: &x.x[tile * TILE..], cols: y.len(), ..x };
            run(Columns { x, y: found, join });
        }
        for (y, &found) in y.iter_mut().zip(&*found) {
            *y = u8::from((found != W::default()) != flip);
        }
    }
}

macro_rules! truths {
    ($($op:ident $name:literal $all:literal;)*) => {$(
        reduction! {
            [T: Truth] $op, T, $name: Decided => u8,
            |_op, x| Decided(u8::from(is_decided(T::words(x), $all))),
            |x, y| {
                let (y, flip) = match y {
                    Target::Results(y) => (filled(y, 0), $all),
                    Target::Partial(y) => {
                        (bytemuck::cast_slice_mut(filled(y, Decided(0))), false)
                    }
                };
                are_decided(with(&x, T::words(x.x)), [$all, flip], y);
            },
            |acc, _count| u8::from((acc.0 != 0) != $all),
        }
    )*};
}
truths! {
    Any "any" false;
    All "all" true;
}

//! Comparisons, number tests, and selection between two arguments by a mask: on slices, and as
//! `…_block` on the rows of a block.

use crate::compare::{Compare, Comparison, NumberTest, ResultRows, Select, choose};
use crate::map::{Arg, Block, BlockArg};

/// Compares elements: `y[i] = a[i] op b[i]`, 1 if true, else 0.
///
/// ```
/// use swath_kernels::{Arg, Comparison, compare};
/// let mut y = [0; 3];
/// compare(Comparison::Lt, Arg::Slice(&[1.0f32, 2.0, f32::NAN]), Arg::Scalar(2.0), &mut y);
/// assert_eq!(y, [1, 0, 0]);
/// ```
///
/// # Panics
/// If a slice's length is not that of `y`.
#[track_caller]
pub fn compare<T: Compare>(op: Comparison, a: Arg<T>, b: Arg<T>, y: &mut [u8]) {
    check("compare", [len(&a), len(&b)], y.len());
    T::compare(op, &a.as_row(), &b.as_row(), &mut ResultRows::one(y));
}

/// [`compare`] on rows: `y[r · stride + c] = a[r, c] op b[r, c]`. Elements between the rows of `y`
/// are left alone.
///
/// ```
/// use swath_kernels::{Block, BlockArg, Comparison, compare_block};
/// let a = BlockArg { data: &[1, 2, 3, 4, 5, 6i64], start: 0, stride: 3, is_value: false };
/// let column = BlockArg { data: &[2, 5], start: 0, stride: 1, is_value: true };
/// let mut y = [7; 6];
/// let shape = Block { rows: 2, cols: 3, stride: 3 };
/// compare_block(Comparison::Ge, a, column, shape, &mut y);
/// assert_eq!(y, [0, 1, 1, 0, 1, 1]);
/// ```
///
/// # Panics
/// If a row of an argument or of the result exceeds its slice, or if rows of the result overlap.
#[track_caller]
pub fn compare_block<T: Compare>(
    op: Comparison,
    a: BlockArg<T>,
    b: BlockArg<T>,
    shape: Block,
    y: &mut [u8],
) {
    let mut rows = ResultRows::checked("compare_block", shape, y);
    a.check("compare_block", shape);
    b.check("compare_block", shape);
    T::compare(op, &a, &b, &mut rows);
}

/// Tests elements: `y[i]` is 1 if `x[i]` passes the test, else 0.
///
/// ```
/// use swath_kernels::{NumberTest, test_numbers};
/// let mut y = [0; 3];
/// test_numbers(NumberTest::IsInf, &[1.0f32, f32::NAN, -f32::INFINITY], &mut y);
/// assert_eq!(y, [0, 0, 1]);
/// ```
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub fn test_numbers<T: Compare>(test: NumberTest, x: &[T], y: &mut [u8]) {
    check("test_numbers", [Some(x.len()), None], y.len());
    T::test(test, &Arg::Slice(x).as_row(), &mut ResultRows::one(y));
}

/// [`test_numbers`] on rows: `y[r · stride + c]` is 1 if `x[r, c]` passes the test, else 0.
/// Elements between the rows of `y` are left alone.
///
/// ```
/// use swath_kernels::{Block, BlockArg, NumberTest, test_numbers_block};
/// let x = BlockArg { data: &[f64::NAN, 1.0], start: 0, stride: 1, is_value: true };
/// let mut y = [7; 5];
/// test_numbers_block(NumberTest::IsNan, x, Block { rows: 2, cols: 2, stride: 3 }, &mut y);
/// assert_eq!(y, [1, 1, 7, 0, 0]);
/// ```
///
/// # Panics
/// In the cases of [`compare_block`].
#[track_caller]
pub fn test_numbers_block<T: Compare>(
    test: NumberTest,
    x: BlockArg<T>,
    shape: Block,
    y: &mut [u8],
) {
    let mut rows = ResultRows::checked("test_numbers_block", shape, y);
    x.check("test_numbers_block", shape);
    T::test(test, &x, &mut rows);
}

/// Selects elements: `y[i] = a[i]` where `mask[i]` is not 0, else `b[i]`.
///
/// ```
/// use swath_kernels::{Arg, select};
/// let mut y = [0u32; 3];
/// select(&[1, 0, 2], Arg::Slice(&[1, 2, 3]), Arg::Scalar(9), &mut y);
/// assert_eq!(y, [1, 9, 3]);
/// ```
///
/// # Panics
/// If a slice's length is not that of `y`.
#[track_caller]
pub fn select<T: Select>(mask: &[u8], a: Arg<T>, b: Arg<T>, y: &mut [T]) {
    check("select", [Some(mask.len()), None], y.len());
    check("select", [len(&a), len(&b)], y.len());
    let (mask, shape) = (Arg::Slice(mask), Block::row(y.len()));
    choose(&mask.as_row(), &a.as_row(), &b.as_row(), shape, y);
}

/// [`select`] on rows: `y[r · stride + c]` is `a[r, c]` where `mask[r, c]` is not 0, else
/// `b[r, c]`. Elements between the rows of `y` are left alone.
///
/// ```
/// use swath_kernels::{Block, BlockArg, select_block};
/// let mask = BlockArg { data: &[0, 1], start: 1, stride: -1, is_value: true };
/// let a = BlockArg { data: &[1u8, 2, 3], start: 0, stride: 0, is_value: false };
/// let b = BlockArg { data: &[9], start: 0, stride: 0, is_value: true };
/// let mut y = [7; 6];
/// select_block(mask, a, b, Block { rows: 2, cols: 3, stride: 3 }, &mut y);
/// assert_eq!(y, [1, 2, 3, 9, 9, 9]);
/// ```
///
/// # Panics
/// In the cases of [`compare_block`].
#[track_caller]
pub fn select_block<T: Select>(
    mask: BlockArg<u8>,
    a: BlockArg<T>,
    b: BlockArg<T>,
    shape: Block,
    y: &mut [T],
) {
    let shape = shape.checked("select_block", y.len());
    mask.check("select_block", shape);
    a.check("select_block", shape);
    b.check("select_block", shape);
    choose(&mask, &a, &b, shape, y);
}

fn len<T>(x: &Arg<T>) -> Option<usize> {
    match x {
        Arg::Slice(x) => Some(x.len()),
        Arg::Scalar(_) => None,
    }
}

#[track_caller]
fn check(name: &str, inputs: [Option<usize>; 2], output: usize) {
    for input in inputs.into_iter().flatten() {
        assert!(input == output, "{name}: an input has {input} elements, the output {output}");
    }
}

//! Folds and scans of integers, folds of truth values: against loops over elements in wider integers.

use half::{bf16, f16};
use swath_kernels::testing::with_isa;
use swath_kernels::{
    Integer, IntegerEnd, IntegerFold, Isa, Truth, all, all_columns, any, any_columns,
    end_of_integer_columns, end_of_integers, fold_integer_columns, fold_integers,
    place_of_integer_columns, place_of_integers, scan_integer_columns, scan_integer_rows,
};

fn on_every_isa(f: impl Fn()) {
    for isa in Isa::ALL {
        if with_isa(isa, &f).is_none() {
            println!("{isa} skipped, this machine lacks it");
        }
    }
}

/// Every tail, several chunks, and more bytes than a lane of 16 bits takes.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=130).chain([255, 256, 257, 1000, 2047, 2048, 2049, 2176, 5000, 40000])
}

/// A matrix's rows, columns and distance of rows.
const SHAPES: [[usize; 3]; 12] = [
    [1, 1, 1],
    [3, 5, 7],
    [4, 130, 130],
    [5, 64, 70],
    [127, 3, 3],
    [128, 33, 40],
    [129, 17, 17],
    [255, 9, 9],
    [256, 511, 511],
    [257, 512, 512],
    [300, 513, 515],
    [1030, 20, 21],
];

/// Lists of elements: spread ones, all alike, both ends, few different ones.
fn lists<T: Copy>(len: usize, from: impl Fn(u64) -> T, ends: [T; 2]) -> Vec<Vec<T>> {
    let hash = |i: usize| (i as u64 + 9).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7;
    let spread = (0..len).map(|i| from(hash(i))).collect();
    let few = (0..len).map(|i| from(hash(i) >> 30 & 3)).collect();
    let both = (0..len).map(|i| ends[(hash(i) >> 20 & 1) as usize]).collect();
    // One that differs, at a place that moves with the length.
    let one = |x: T, y: T| (0..len).map(|i| if i == len * 2 / 3 { y } else { x }).collect();
    let [low, high] = ends;
    vec![spread, few, both, vec![low; len], vec![high; len], one(low, high), one(high, low)]
}

fn fold<T: Copy + Into<i128>>(fold: IntegerFold, x: &[T]) -> i64 {
    let wrap = |x: i128| x as i64 as i128;
    let total = match fold {
        IntegerFold::Sum => x.iter().fold(0, |total, &x| wrap(total + x.into())),
        IntegerFold::Product => x.iter().fold(1, |total, &x| wrap(total * x.into())),
    };
    total as i64
}

fn place<T: Copy + Into<i128>>(end: IntegerEnd, x: &[T]) -> Option<usize> {
    let key = |x: T| if end == IntegerEnd::Largest { -x.into() } else { x.into() };
    // The first of the least.
    (0..x.len()).min_by_key(|&i| key(x[i]))
}

const FOLDS: [IntegerFold; 2] = [IntegerFold::Sum, IntegerFold::Product];
const ENDS: [IntegerEnd; 2] = [IntegerEnd::Largest, IntegerEnd::Smallest];

fn check_slices<T>(from: impl Fn(u64) -> T, ends: [T; 2])
where
    T: Integer + Into<i128> + std::fmt::Debug,
{
    for x in lengths().flat_map(|len| lists(len, &from, ends)) {
        for op in FOLDS {
            assert_eq!(fold_integers(op, &x), fold(op, &x), "{op:?} of {}", x.len());
        }
        for end in ENDS {
            let at = place(end, &x);
            assert_eq!(place_of_integers(end, &x), at, "{end:?} of {}", x.len());
            assert_eq!(end_of_integers(end, &x), at.map(|at| x[at]), "{end:?} of {}", x.len());
        }
    }
}

fn column<T: Copy>(x: &[T], [rows, _, stride]: [usize; 3], c: usize) -> Vec<T> {
    (0..rows).map(|row| x[row * stride + c]).collect()
}

fn check_columns<T>(from: impl Fn(u64) -> T, ends: [T; 2])
where
    T: Integer + Into<i128> + std::fmt::Debug,
{
    for shape in SHAPES {
        let [rows, cols, stride] = shape;
        for x in lists((rows - 1) * stride + cols, &from, ends) {
            let columns: Vec<Vec<T>> = (0..cols).map(|c| column(&x, shape, c)).collect();
            let mut y = vec![77; cols];
            for op in FOLDS {
                fold_integer_columns(op, &x, rows, stride, &mut y);
                let expected: Vec<i64> = columns.iter().map(|x| fold(op, x)).collect();
                assert_eq!(y, expected, "{op:?} {shape:?}");
            }
            for end in ENDS {
                place_of_integer_columns(end, &x, rows, stride, &mut y);
                let places: Vec<usize> = columns.iter().filter_map(|x| place(end, x)).collect();
                assert!(y.iter().zip(&places).all(|(&y, &at)| y == at as i64), "{end:?} {shape:?}");
                let mut found = vec![x[0]; cols];
                end_of_integer_columns(end, &x, rows, stride, &mut found);
                let best: Vec<T> = columns.iter().zip(places).map(|(x, at)| x[at]).collect();
                assert_eq!(found, best, "{end:?} {shape:?}");
            }
        }
    }
}

#[test]
fn slices_of_integers_fold_as_wider_ones() {
    on_every_isa(|| {
        check_slices(|x| x as u8, [0, u8::MAX]);
        check_slices(|x| (x as i64).wrapping_mul(77), [i64::MIN, i64::MAX]);
    });
}

#[test]
fn columns_of_integers_fold_as_wider_ones() {
    on_every_isa(|| {
        check_columns(|x| x as u8, [0, u8::MAX]);
        check_columns(|x| (x as i64).wrapping_mul(77), [i64::MIN, i64::MAX]);
    });
}

fn check_scans<T: Integer + Into<i128>>(from: impl Fn(u64) -> T, ends: [T; 2]) {
    for [rows, cols] in [[1, 1], [1, 300], [5, 7], [33, 16], [70, 130]] {
        for x in lists(rows * cols, &from, ends) {
            // Row i of the turned matrix is column i.
            let turned: Vec<T> = (0..cols * rows).map(|i| x[i % rows * cols + i / rows]).collect();
            for op in FOLDS {
                let context = format!("{op:?} [{rows}, {cols}]");
                // Up to each element, from the row's first.
                let want = |i: usize| fold(op, &x[i / cols * cols..=i]);
                let want: Vec<i64> = (0..x.len()).map(want).collect();
                let mut y = vec![77; x.len()];
                scan_integer_rows(op, &x, cols, &mut y);
                assert_eq!(y, want, "{context}");
                let mut totals = vec![fold::<T>(op, &[]); rows];
                let cut = cols / 3 * rows;
                scan_integer_columns(op, &turned[..cut], &mut totals, &mut y[..cut]);
                scan_integer_columns(op, &turned[cut..], &mut totals, &mut y[cut..]);
                let down = |i: usize| y[i % cols * rows + i / cols];
                assert!((0..x.len()).all(|i| down(i) == want[i]), "down columns, {context}");
                assert!(totals[..] == y[x.len() - rows..], "totals, {context}");
            }
        }
    }
}

#[test]
fn scans_of_integers_are_folds_up_to_each_element() {
    on_every_isa(|| {
        check_scans(|x| x as u8, [0, u8::MAX]);
        check_scans(|x| (x as i64).wrapping_mul(77), [i64::MIN, i64::MAX]);
    });
}

#[test]
fn no_rows_fold_to_what_folds_start_from() {
    let mut y = [7; 3];
    fold_integer_columns::<u8>(IntegerFold::Sum, &[], 0, 5, &mut y);
    assert_eq!(y, [0; 3]);
    fold_integer_columns::<i64>(IntegerFold::Product, &[], 0, 5, &mut y);
    assert_eq!(y, [1; 3]);
    let mut y = [7; 3];
    any_columns::<f32>(&[], 0, 5, &mut y);
    assert_eq!(y, [0; 3]);
    all_columns::<f32>(&[], 0, 5, &mut y);
    assert_eq!(y, [1; 3]);
}

#[test]
fn rows_of_nothing_may_lie_anywhere() {
    fold_integer_columns(IntegerFold::Sum, &[1i64], 9, 5, &mut []);
    fold_integer_columns(IntegerFold::Product, &[1u8], 9, 5, &mut []);
    end_of_integer_columns(IntegerEnd::Largest, &[1u8], 9, 5, &mut []);
    place_of_integer_columns(IntegerEnd::Largest, &[1u8], 9, 5, &mut []);
    any_columns(&[1.0f32], 9, 5, &mut []);
}

#[test]
#[should_panic(expected = "end_of_integer_columns: no rows")]
fn an_end_needs_a_row() {
    end_of_integer_columns::<u8>(IntegerEnd::Largest, &[], 0, 5, &mut [0; 3]);
}

#[test]
#[should_panic(expected = "place_of_integer_columns: 2 rows of 3 with stride 4 exceed 6 elements")]
fn rows_must_lie_within_the_slice() {
    place_of_integer_columns(IntegerEnd::Largest, &[0u8; 6], 2, 4, &mut [0; 3]);
}

/// Lists in which one place, none or all are true; `truths` and `zeros` are all kinds of either.
fn check_truth<T: Truth>(truths: &[T], zeros: &[T]) {
    let lists = |len: usize| {
        let fill = |from: &[T]| (0..len).map(|i| from[i % from.len()]).collect::<Vec<T>>();
        let mut lists = vec![fill(truths), fill(zeros)];
        for (i, at) in [0, len / 2, len.saturating_sub(1)].into_iter().enumerate() {
            if len > 0 {
                let (mut but_one, mut one) = (fill(truths), fill(zeros));
                but_one[at] = zeros[i % zeros.len()];
                one[at] = truths[i % truths.len()];
                lists.extend([but_one, one]);
            }
        }
        for &x in truths.iter().chain(zeros) {
            lists.push(vec![x; len]);
        }
        // All are true but for where they are zeros.
        let is = |len: usize, x: &[T]| {
            let mut y = vec![7; len];
            swath_kernels::nonzero(x, &mut y);
            y
        };
        lists.into_iter().map(|x| (is(len, &x), x)).collect::<Vec<_>>()
    };
    for (truth, x) in lengths().filter(|&len| len < 10000).flat_map(lists) {
        assert_eq!(any(&x), truth.contains(&1), "any of {}", x.len());
        assert_eq!(all(&x), !truth.contains(&0), "all of {}", x.len());
    }
    for shape in SHAPES {
        let [rows, cols, stride] = shape;
        for (truth, x) in lists((rows - 1) * stride + cols) {
            let truths = (0..cols).map(|c| column(&truth, shape, c));
            let (is_any, is_all): (Vec<u8>, Vec<u8>) =
                truths.map(|x| (x.contains(&1) as u8, !x.contains(&0) as u8)).unzip();
            let mut y = vec![7; cols];
            any_columns(&x, rows, stride, &mut y);
            assert_eq!(y, is_any, "any {shape:?}");
            all_columns(&x, rows, stride, &mut y);
            assert_eq!(y, is_all, "all {shape:?}");
        }
    }
}

#[test]
fn any_and_all_are_of_what_is_not_zero() {
    on_every_isa(|| {
        check_truth(&[1u8, 2, 128, 255], &[0]);
        check_truth(&[1i64, -1, 1 << 32, i64::MIN], &[0]);
        check_truth(&[1i32, i32::MIN], &[0]);
        check_truth(&[1u32, 1 << 31], &[0]);
        check_truth(&[1.0f32, f32::NAN, -f32::NAN, 1e-45, f32::NEG_INFINITY], &[0.0, -0.0]);
        check_truth(&[1.0f64, f64::NAN, -f64::NAN, 5e-324, f64::NEG_INFINITY], &[0.0, -0.0]);
        check_truth(&[1, 0x8001, 0x7e00, 0xfc00].map(f16::from_bits), &[f16::ZERO, f16::NEG_ZERO]);
        check_truth(
            &[1, 0x8001, 0x7fc0, 0xff80].map(bf16::from_bits),
            &[bf16::ZERO, bf16::NEG_ZERO],
        );
    });
}

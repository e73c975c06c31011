//! Reductions and scans of integers, and *any* and *all*, against loops over elements in wider
//! integers.

use half::{bf16, f16};
use swath_kernels::reduce::{All, Any, ArgMax, ArgMin, Max, Min, Prod, Reduction, Sum};
use swath_kernels::testing::with_isa;
use swath_kernels::{
    Isa, Scan, Truth, all, any, cumprod_columns, cumprod_rows, cumsum_columns, cumsum_rows,
    integer_gemm,
};
use swath_kernels::{reduce, reduce_columns};

fn on_every_isa(f: impl Fn()) {
    for isa in Isa::ALL {
        if with_isa(isa, &f).is_none() {
            println!("{isa} skipped, this machine lacks it");
        }
    }
}

/// Every tail, several chunks, and more bytes than a lane of 16 bits can sum.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=130).chain([255, 256, 257, 1000, 2047, 2048, 2049, 2176, 5000, 40000])
}

/// Rows, columns and row stride of a matrix.
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

/// Lists of elements: spread ones, all equal, both extremes, few distinct ones.
fn lists<T: Copy>(len: usize, from: impl Fn(u64) -> T, ends: [T; 2]) -> Vec<Vec<T>> {
    let hash = |i: usize| (i as u64 + 9).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7;
    let spread = (0..len).map(|i| from(hash(i))).collect();
    let few = (0..len).map(|i| from(hash(i) >> 30 & 3)).collect();
    let both = (0..len).map(|i| ends[(hash(i) >> 20 & 1) as usize]).collect();
    // One that differs, at a position that moves with the length.
    let one = |x: T, y: T| (0..len).map(|i| if i == len * 2 / 3 { y } else { x }).collect();
    let [low, high] = ends;
    vec![spread, few, both, vec![low; len], vec![high; len], one(low, high), one(high, low)]
}

/// The sum or product.
fn fold<T: Copy + Into<i128>>(product: bool, x: &[T]) -> i64 {
    let wrap = |x: i128| x as i64 as i128;
    let total = match product {
        false => x.iter().fold(0, |total, &x| wrap(total + x.into())),
        true => x.iter().fold(1, |total, &x| wrap(total * x.into())),
    };
    total as i64
}

/// The index of the first largest or smallest element.
fn index<T: Copy + Into<i128>>(largest: bool, x: &[T]) -> Option<usize> {
    let key = |x: T| if largest { -x.into() } else { x.into() };
    (0..x.len()).min_by_key(|&i| key(x[i]))
}

fn column<T: Copy>(x: &[T], [rows, _, stride]: [usize; 3], c: usize) -> Vec<T> {
    (0..rows).map(|row| x[row * stride + c]).collect()
}

/// Checks a reduction of slices and of columns against its definition on a slice that is not empty.
fn check<T: Copy, Y: Copy + PartialEq + std::fmt::Debug>(
    reduction: &impl Reduction<T, Out = Y>,
    from: impl Fn(u64) -> T,
    ends: [T; 2],
    definition: impl Fn(&[T]) -> Y,
) {
    let name = reduction.name();
    for x in lengths().skip(1).flat_map(|len| lists(len, &from, ends)) {
        assert_eq!(reduce(reduction, &x), definition(&x), "{name} of {}", x.len());
    }
    for shape in SHAPES {
        let [rows, cols, stride] = shape;
        for x in lists((rows - 1) * stride + cols, &from, ends) {
            let expected: Vec<Y> = (0..cols).map(|c| definition(&column(&x, shape, c))).collect();
            let mut y = vec![definition(&x[..1]); cols];
            reduce_columns(reduction, &x, rows, stride, &mut y);
            assert_eq!(y, expected, "{name} {shape:?}");
        }
    }
}

macro_rules! check_all {
    ($t:ty, $from:expr, $ends:expr) => {{
        let (from, ends): (fn(u64) -> $t, [$t; 2]) = ($from, $ends);
        check(&Sum, from, ends, |x| fold(false, x));
        check(&Prod, from, ends, |x| fold(true, x));
        check(&Max, from, ends, |x: &[$t]| x[index(true, x).unwrap()]);
        check(&Min, from, ends, |x: &[$t]| x[index(false, x).unwrap()]);
        check(&ArgMax, from, ends, |x: &[$t]| index(true, x).unwrap() as i64);
        check(&ArgMin, from, ends, |x: &[$t]| index(false, x).unwrap() as i64);
    }};
}

#[test]
fn integers_reduce_like_wider_integers() {
    on_every_isa(|| {
        check_all!(u8, |x| x as u8, [0, u8::MAX]);
        check_all!(i64, |x| (x as i64).wrapping_mul(77), [i64::MIN, i64::MAX]);
    });
    assert_eq!((reduce(&Sum, &[0u8; 0]), reduce(&Prod, &[0i64; 0])), (0, 1));
}

fn check_scans<T: Scan<Total = i64, Out = i64> + Into<i128>>(
    from: impl Fn(u64) -> T,
    ends: [T; 2],
) {
    for [rows, cols] in [[1, 1], [1, 300], [5, 7], [33, 16], [70, 130]] {
        for x in lists(rows * cols, &from, ends) {
            // Row i of the transposed matrix is column i.
            let transposed: Vec<T> =
                (0..cols * rows).map(|i| x[i % rows * cols + i / rows]).collect();
            for product in [false, true] {
                let context = format!("[{rows}, {cols}], product: {product}");
                // Up to each element, from the row's first.
                let want = |i: usize| fold(product, &x[i / cols * cols..=i]);
                let want: Vec<i64> = (0..x.len()).map(want).collect();
                let mut y = vec![77; x.len()];
                match product {
                    true => cumprod_rows(&x, cols, &mut y),
                    false => cumsum_rows(&x, cols, &mut y),
                }
                assert_eq!(y, want, "{context}");
                let mut totals = vec![fold::<T>(product, &[]); rows];
                let cut = cols / 3 * rows;
                for part in [0..cut, cut..x.len()] {
                    match product {
                        true => {
                            cumprod_columns(&transposed[part.clone()], &mut totals, &mut y[part])
                        }
                        false => {
                            cumsum_columns(&transposed[part.clone()], &mut totals, &mut y[part])
                        }
                    }
                }
                let down = |i: usize| y[i % cols * rows + i / cols];
                assert!((0..x.len()).all(|i| down(i) == want[i]), "down columns, {context}");
                assert!(totals[..] == y[x.len() - rows..], "totals, {context}");
            }
        }
    }
}

#[test]
fn integer_scans_equal_folds_of_prefixes() {
    on_every_isa(|| {
        check_scans(|x| x as u8, [0, u8::MAX]);
        check_scans(|x| (x as i64).wrapping_mul(77), [i64::MIN, i64::MAX]);
    });
}

#[test]
fn columns_without_rows_have_the_results_of_empty_slices() {
    let mut y = [7; 3];
    reduce_columns(&Sum, &[0u8; 0], 0, 5, &mut y);
    assert_eq!(y, [0; 3]);
    reduce_columns(&Prod, &[0i64; 0], 0, 5, &mut y);
    assert_eq!(y, [1; 3]);
    let mut y = [7; 3];
    reduce_columns(&Any, &[0.0f32; 0], 0, 5, &mut y);
    assert_eq!(y, [0; 3]);
    reduce_columns(&All, &[0.0f32; 0], 0, 5, &mut y);
    assert_eq!(y, [1; 3]);
}

#[test]
fn rows_without_columns_may_exceed_the_slice() {
    reduce_columns(&Sum, &[1i64], 9, 5, &mut []);
    reduce_columns(&Prod, &[1u8], 9, 5, &mut []);
    reduce_columns(&Max, &[1u8], 9, 5, &mut []);
    reduce_columns(&ArgMax, &[1u8], 9, 5, &mut []);
    reduce_columns(&Any, &[1.0f32], 9, 5, &mut []);
}

#[test]
#[should_panic(expected = "max: no rows, so the columns have no elements")]
fn max_of_columns_without_rows_panics() {
    reduce_columns(&Max, &[0u8; 0], 0, 5, &mut [0; 3]);
}

#[test]
#[should_panic(expected = "argmax: 2 rows of 3 with stride 4 exceed 6 elements")]
fn rows_beyond_the_slice_panic() {
    reduce_columns(&ArgMax, &[0u8; 6], 2, 4, &mut [0; 3]);
}

/// Lists in which one, none or all elements are true; `truths` and `zeros` are all kinds of either.
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
        // All are true, except the zeros.
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
            reduce_columns(&Any, &x, rows, stride, &mut y);
            assert_eq!(y, is_any, "any {shape:?}");
            reduce_columns(&All, &x, rows, stride, &mut y);
            assert_eq!(y, is_all, "all {shape:?}");
        }
    }
}

#[test]
fn any_and_all_test_for_nonzero_elements() {
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

/// Blocks and the rows and columns that are left over, against sums of 128 bits.
#[test]
fn products_are_those_of_wider_integers() {
    let mut state = 1u64;
    let mut draw = |len: usize| -> Vec<i64> {
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state as i64) >> (state >> 59)
        };
        (0..len).map(|_| next()).collect()
    };
    for [m, k, n] in [[1, 1, 1], [2, 3, 5], [3, 64, 256], [2, 131, 517], [0, 3, 2]] {
        let (a, b, start) = (draw(m * k), draw(k * n), draw(m * n));
        let sum = |i: usize, j: usize| {
            let terms = (0..k).map(|l| i128::from(a[i * k + l]) * i128::from(b[l * n + j]));
            terms.fold(i128::from(start[i * n + j]), i128::wrapping_add) as i64
        };
        let want: Vec<i64> = (0..m * n).map(|at| sum(at / n, at % n)).collect();
        on_every_isa(|| {
            let mut c = start.clone();
            integer_gemm(&a, &b, [m, k, n], &mut c);
            assert_eq!(c, want, "{m} {k} {n}");
        });
    }
    let mut c = [5; 4];
    integer_gemm(&[], &[], [2, 0, 2], &mut c);
    assert_eq!(c, [5; 4]);
    integer_gemm(&[1; 4], &[], [2, 2, 0], &mut []);
}

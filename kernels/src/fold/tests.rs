//! The tree against its definition in plain loops and recursion, and against exact sums.

use crate::dispatch::with_isa;
use crate::reduce::{Max, Min, Sum};
use crate::simd::{Float, Isa};
use crate::testing::unless_miri;
use crate::{PairwiseSum, Reduce, dot, max, min, reduce_columns, sum};

const LENGTHS: [usize; 24] = [
    0,
    1,
    2,
    7,
    8,
    15,
    16,
    17,
    31,
    33,
    64,
    100,
    127,
    1000,
    1023,
    1024,
    1025,
    2048,
    2049,
    3072,
    4096,
    5000,
    7 * 1024,
    9 * 1024 + 77,
];

/// Lengths to test; under Miri only up to one block and an element.
fn lengths() -> impl Iterator<Item = usize> {
    unless_miri(&LENGTHS[..], &[0, 1, 17, 1025]).iter().copied()
}

/// Signed integers times powers of two, whose sums round.
fn values<E: Float>(len: usize, seed: u64) -> Vec<E> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let mantissa = (state >> 40) as f64 - (1 << 23) as f64;
        E::from_f64(mantissa * 2f64.powi((state >> 33 & 31) as i32 - 30))
    };
    (0..len).map(next).collect()
}

fn on_every_isa(check: impl Fn(Isa)) {
    for isa in Isa::ALL {
        if with_isa(isa, || check(isa)).is_none() {
            println!("skipped: this machine lacks {isa}");
        }
    }
}

/// The definition: splits at the largest power of two of blocks below the whole.
fn tree(terms: &[(f64, f64)]) -> f64 {
    if terms.is_empty() {
        return 0.0;
    }
    let blocks = terms.len().div_ceil(1024);
    if blocks > 1 {
        let (left, right) = terms.split_at(1024 * (blocks.next_power_of_two() / 2));
        return tree(left) + tree(right);
    }
    let mut lane = [0.0f64; 16];
    for (i, (a, b)) in terms.iter().enumerate() {
        lane[i % 16] = a.mul_add(*b, lane[i % 16]);
    }
    let four = |l: usize| (lane[l] + lane[l + 8]) + (lane[l + 4] + lane[l + 12]);
    (four(0) + four(2)) + (four(1) + four(3))
}

fn check_tree<E: Reduce>(isa: Isa) {
    for len in lengths() {
        let (a, b) = (values::<E>(len, 1), values::<E>(len, 2));
        let wide = |x: &[E]| x.iter().map(|x| x.to_f64()).collect::<Vec<_>>();
        let pairs = |y: Vec<f64>| wide(&a).into_iter().zip(y).collect::<Vec<_>>();
        let expected = E::from_f64(tree(&pairs(vec![1.0; len])));
        assert_eq!(sum(&a), expected, "sum of {len} on {isa}");
        let expected = E::from_f64(tree(&pairs(wide(&b))));
        assert_eq!(dot(&a, &b), expected, "dot of {len} on {isa}");
        let shifted = [&[E::ONE], &a[..]].concat();
        assert_eq!(sum(&shifted[1..]), sum(&a), "offset, {len} on {isa}");
    }
}

#[test]
fn sums_and_dots_follow_the_tree() {
    on_every_isa(|isa| {
        check_tree::<f32>(isa);
        check_tree::<f64>(isa);
    });
}

#[test]
fn sums_are_close_to_exact_sums() {
    for len in lengths() {
        let x = values::<f32>(len, 5);
        let exact: i128 = x.iter().map(|&x| (f64::from(x) * 2f64.powi(30)) as i128).sum();
        let exact = exact as f64 / 2f64.powi(30);
        let error = (f64::from(sum(&x)) - exact).abs();
        assert!(error <= exact.abs() * 2f64.powi(-24) + 1e-6, "{len}: {error} of {exact}");
    }
    assert_eq!(sum(&[3e38f32; 4]), f32::INFINITY);
    let mut total = PairwiseSum::new();
    total.push_slice(&[3e38f32; 4]);
    assert_eq!((total.finish() / 4.0) as f32, 3e38);
}

#[test]
fn zeros_and_underflowing_products_have_one_sign_on_every_isa() {
    on_every_isa(|isa| {
        for len in (1..=50).step_by(unless_miri(1, 15)) {
            let (x, tiny) = (vec![-0.0f32; len], vec![-1e-300f64; len]);
            assert_eq!(sum(&x).to_bits(), 0, "{len} on {isa}");
            let product = dot(&tiny, &vec![1e-300; len]);
            let expected = if len % 16 == 0 { -0.0f64 } else { 0.0 };
            assert_eq!(product.to_bits(), expected.to_bits(), "{len} on {isa}");
        }
    });
}

#[test]
fn sums_of_subtrees_and_chunks_equal_the_whole() {
    let lengths: &[usize] =
        unless_miri(&[4096, 20 * 1024 + 5, 33 * 1024, 63 * 1024 + 1000], &[2049]);
    let parts: &[usize] = unless_miri(&[1024, 2048, 8192, 32 * 1024, 1 << 20], &[1024, 2048]);
    for &len in lengths {
        let x = values::<f64>(len, 9);
        let whole = sum(&x);
        for &part in parts {
            let mut total = PairwiseSum::new();
            for part in x.chunks(part) {
                let mut of_part = PairwiseSum::new();
                for chunk in part.chunks(1024) {
                    of_part.push_slice(chunk);
                }
                total.append(&of_part);
            }
            assert_eq!(total.finish(), whole, "{len} in parts of {part}");
            assert_eq!(total.blocks() as usize, len.div_ceil(1024));
        }
    }
}

#[test]
#[should_panic(expected = "2 blocks after 3 are not a subtree")]
fn appending_parts_that_are_not_subtrees_panics() {
    let (mut a, mut b) = (PairwiseSum::new(), PairwiseSum::new());
    a.push_slice(&[1.0f32; 2049]);
    b.push_slice(&[1.0f32; 1025]);
    a.append(&b);
}

#[test]
#[should_panic(expected = "dot: the slices have 2 and 3 elements")]
fn dot_of_unequal_lengths_panics() {
    dot(&[1.0f32; 2], &[1.0; 3]);
}

fn check_columns<E: Reduce>(isa: Isa) {
    let shapes: &[(usize, usize, usize)] = &[
        (0, 4, 0),
        (1, 1, 0),
        (5, 3, 1),
        (16, 40, 0),
        (130, 33, 7),
        (1024, 5, 0),
        (2600, 9, 2),
        (300, 530, 1),
        (40, 256, 0),
    ];
    // More than one vector of columns, and more than one block of rows.
    let few = &[(0, 4, 0), (1, 1, 0), (3, 9, 1), (1025, 1, 1)];
    for &(rows, cols, gap) in unless_miri(shapes, few) {
        let stride = cols + gap;
        let x: Box<[E]> = values::<E>((rows * stride).saturating_sub(gap), 3).into();
        let column = |c: usize| (0..rows).map(|r| x[r * stride + c]).collect::<Vec<E>>();
        let mut y: Box<[E]> = vec![E::NAN; cols].into();
        reduce_columns(&Sum, &x, rows, stride, &mut y[..]);
        for c in 0..cols {
            assert_eq!(y[c], sum(&column(c)), "sum of column {c} of {rows} {cols} on {isa}");
        }
        if rows == 0 {
            continue;
        }
        reduce_columns(&Max, &x, rows, stride, &mut y[..]);
        for c in 0..cols {
            assert_eq!(Some(y[c]), max(&column(c)), "column {c} of {rows} {cols} on {isa}");
        }
        reduce_columns(&Min, &x, rows, stride, &mut y[..]);
        for c in 0..cols {
            assert_eq!(Some(y[c]), min(&column(c)), "column {c} of {rows} {cols} on {isa}");
        }
    }
}

#[test]
fn column_folds_have_the_bits_of_slice_folds() {
    on_every_isa(|isa| {
        check_columns::<f32>(isa);
        check_columns::<f64>(isa);
    });
}

#[test]
#[should_panic(expected = "sum: 3 rows of 4 with stride 5 exceed 13 elements")]
fn columns_beyond_the_slice_panic() {
    reduce_columns(&Sum, &[0.0f32; 13], 3, 5, &mut [0.0; 4][..]);
}

#[test]
#[should_panic(expected = "exceed")]
fn columns_whose_size_overflows_panic() {
    reduce_columns(&Sum, &[0.0f32; 13], usize::MAX, usize::MAX, &mut [0.0; 4][..]);
}

fn check_extrema<E: Reduce>(isa: Isa) {
    let (nan, zero) = (E::NAN, E::ZERO);
    let negative = -E::ONE;
    let bits = |x: Option<E>| x.map(|x| x.to_f64().to_bits());
    for len in (1..=70).chain([1000]).filter(|len| !cfg!(miri) || matches!(len, 1 | 6)) {
        for at in [0, len / 2, len - 1] {
            let with = |rest: E, one: E| {
                let mut x = vec![rest; len];
                x[at] = one;
                x.into_boxed_slice()
            };
            let cases = [
                (with(negative, -zero), Some(-zero), if len > 1 { negative } else { -zero }),
                (with(-zero, zero), Some(zero), if len > 1 { -zero } else { zero }),
                (with(zero, -zero), Some(if len > 1 { zero } else { -zero }), -zero),
                (with(E::ONE, -E::INFINITY), None, -E::INFINITY),
                (
                    with(-E::ONE, E::INFINITY),
                    Some(E::INFINITY),
                    if len > 1 { negative } else { E::INFINITY },
                ),
            ];
            for (x, largest, smallest) in cases {
                if largest.is_some() {
                    assert_eq!(bits(max(&x)), bits(largest), "{x:?} on {isa}");
                }
                assert_eq!(bits(min(&x)), bits(Some(smallest)), "{x:?} on {isa}");
                let mut y = [E::ONE];
                reduce_columns(&Max, &x, len, 1, &mut y[..]);
                assert_eq!(bits(Some(y[0])), bits(max(&x)), "columns on {isa}");
                reduce_columns(&Min, &x, len, 1, &mut y[..]);
                assert_eq!(bits(Some(y[0])), bits(Some(smallest)), "columns on {isa}");
            }
            for rest in [zero, E::INFINITY, -E::INFINITY] {
                let x = with(rest, nan);
                assert!(max(&x).is_some_and(|x| x.to_f64().is_nan()), "{len} {at} on {isa}");
                assert!(min(&x).is_some_and(|x| x.to_f64().is_nan()), "{len} {at} on {isa}");
            }
        }
        let x = values::<E>(len, len as u64);
        let largest = x.iter().copied().fold(x[0], |a, b| if b > a { b } else { a });
        let smallest = x.iter().copied().fold(x[0], |a, b| if b < a { b } else { a });
        assert_eq!((max(&x), min(&x)), (Some(largest), Some(smallest)), "{len} on {isa}");
    }
    assert_eq!((max::<E>(&[]), min::<E>(&[])), (None, None));
}

#[test]
fn extrema_propagate_nan_and_order_zeros() {
    on_every_isa(|isa| {
        check_extrema::<f32>(isa);
        check_extrema::<f64>(isa);
    });
}

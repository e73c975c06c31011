//! Reductions against definitions in plain loops, on every instruction set; columns against slices.

mod halves;

use super::*;
use crate::dispatch::with_isa;
use crate::simd::Isa;
use crate::testing::unless_miri;
use crate::*;

const LENGTHS: [usize; 16] =
    [1, 2, 3, 15, 16, 17, 100, 255, 256, 257, 1023, 1024, 1025, 3000, 4096, 9 * 1024 + 77];

/// Lengths to test; under Miri up to one search chunk and an element (other tests have more than a
/// block).
fn lengths() -> impl Iterator<Item = usize> {
    unless_miri(&LENGTHS[..], &[1, 17, 257]).iter().copied()
}

fn on_every_isa(check: impl Fn(Isa)) {
    for isa in Isa::ALL {
        if with_isa(isa, || check(isa)).is_none() {
            println!("skipped: this machine lacks {isa}");
        }
    }
}

/// Uniform in [0, 1), with 24 bits.
fn uniform(len: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f64 / (1 << 24) as f64
    };
    (0..len).map(next).collect()
}

fn narrowed<E: Reduce>(x: &[f64]) -> Vec<E> {
    x.iter().map(|&x| E::from_f64(x)).collect()
}

fn is_close(found: f64, expected: f64, relative: f64) -> bool {
    (found - expected).abs() <= relative * expected.abs()
}

/// The variance by two passes over integers: multiples of 2^-24 below 2^15, so that d and Σ d are
/// exact.
fn two_pass_variance(x: &[f64], ddof: usize) -> f64 {
    let scaled: Vec<i128> = x.iter().map(|x| (x * 2f64.powi(24)) as i128).collect();
    let (n, sum) = (x.len() as i128, scaled.iter().sum::<i128>());
    let squares: i128 = scaled.iter().map(|x| (n * x - sum) * (n * x - sum)).sum();
    // Σ (n x − Σ x)² = n² Σ (x − mean)²
    squares as f64 / 2f64.powi(48) / (n * n) as f64 / (n - ddof as i128) as f64
}

#[test]
fn variances_far_from_zero_are_close_to_exact() {
    on_every_isa(|isa| {
        for len in lengths().filter(|&len| len > 1) {
            // The mean is 1e4 standard deviations away from 0.
            let x: Vec<f64> = uniform(len, 3).iter().map(|x| 2887.0 + x).collect();
            let exact = two_pass_variance(&x, 1);
            assert!(is_close(variance(&x, 1), exact, 1e-10), "{len} on {isa}");
            assert!(is_close(std(&x, 1), exact.sqrt(), 1e-10), "{len} on {isa}");
            let narrow = narrowed::<f32>(&x);
            let x: Vec<f64> = narrow.iter().map(|&x| f64::from(x)).collect();
            let exact = two_pass_variance(&x, 0);
            let found = f64::from(variance(&narrow, 0));
            assert!(is_close(found, exact, 1e-7), "{len}: {found}, not {exact} on {isa}");
        }
    });
}

#[test]
fn variance_is_accurate_with_an_outlying_first_element() {
    for len in unless_miri([1000, 5000], [3, 1025]) {
        let mut x: Vec<f64> = uniform(len, 4).iter().map(|x| 2887.0 + x).collect();
        x[0] = -20_000.0;
        assert!(is_close(variance(&x, 0), two_pass_variance(&x, 0), 1e-11), "{len}");
    }
}

/// Means of blocks differ by hundredths where neighbouring floats are 2^-13, and finally 1/8,
/// apart.
#[test]
fn f64_variances_are_close_to_exact_at_any_mean() {
    let len = unless_miri(4096, 1030);
    for mean in [1e9, 1e12, 1e15] {
        // Multiples of 1/8 near 0, so that adding the mean is exact.
        let near: Vec<f64> = uniform(len, 5).iter().map(|x| (x * 32.0).floor() / 8.0).collect();
        let x: Vec<f64> = near.iter().map(|x| mean + x).collect();
        assert!(x.iter().zip(&near).all(|(x, near)| x - mean == *near));
        let exact = two_pass_variance(&near, 0);
        let found = variance(&x, 0);
        assert!(is_close(found, exact, 2f64.powi(-40)), "{mean:e}: {found}, not {exact}");
        let mut y = [0.0];
        reduce_columns(&Variance { ddof: 0 }, &x, len, 1, &mut y);
        assert_eq!(y[0], found);
    }
}

#[test]
fn variances_of_few_extreme_or_nonfinite_elements() {
    assert_eq!(variance(&[0.1f32; 2000], 1), 0.0);
    assert_eq!(std(&[7.3f64; 33], 0), 0.0);
    assert!(variance::<f32>(&[], 0).is_nan());
    assert!(variance(&[1.0f32], 1).is_nan());
    assert_eq!(variance(&[1.0f32, 2.0], 2), f32::INFINITY);
    assert!(variance(&[1.0, f64::INFINITY], 0).is_nan());
    assert!(variance(&[1.0, f32::NAN], 0).is_nan());
    assert_eq!(variance(&[1e200, -1e200, 0.0], 0), f64::INFINITY);
    assert!(variance(&[1e308f64, -1e308], 0).is_nan());
    assert_eq!(variance(&[3e38f32, -3e38], 0), f32::INFINITY);
    assert_eq!(std(&[3e38f32, -3e38], 0), 3e38);
    assert_eq!(std(&[1e-45f32, 4e-45], 0), 1e-45);
    assert_eq!(std(&[1e200, -1e200], 0), f64::INFINITY);
    assert_eq!(std(&[1e-170, 3e-170], 0), 0.0);
    assert!(is_close(std(&[1e-150, 3e-150], 0), 1e-150, 1e-12));
    assert!(is_close(std(&[1e150, 3e150], 0), 1e150, 1e-12));
    // Fewer elements than ddof.
    assert!(variance::<f32>(&[], 1).is_nan());
    assert_eq!(variance(&[1.0f32, 2.0], 5), f32::INFINITY);
    // The squares underflow, and their sum is a few times the smallest number.
    let mut tiny = [1.4e-162f64; 100];
    tiny[0] = 0.0;
    assert_eq!(variance(&tiny, 99).to_bits(), 0);
    assert_eq!(std(&tiny, 1).to_bits(), 0);
}

/// The tree of `fold/tests.rs`, for products.
fn product_tree(x: &[f64]) -> f64 {
    let blocks = x.len().div_ceil(1024);
    if blocks > 1 {
        let (left, right) = x.split_at(1024 * (blocks.next_power_of_two() / 2));
        return product_tree(left) * product_tree(right);
    }
    let mut lane = [1.0f64; 16];
    x.iter().enumerate().for_each(|(i, x)| lane[i % 16] *= x);
    let four = |l: usize| (lane[l] * lane[l + 8]) * (lane[l + 4] * lane[l + 12]);
    (four(0) * four(2)) * (four(1) * four(3))
}

#[test]
fn products_follow_the_tree() {
    on_every_isa(|isa| {
        for len in lengths() {
            let x: Vec<f64> = uniform(len, 5).iter().map(|x| x - 1.5).collect();
            assert_eq!(prod(&x).to_bits(), product_tree(&x).to_bits(), "{len} on {isa}");
            let narrow = narrowed::<f32>(&x);
            let x: Vec<f64> = narrow.iter().map(|&x| f64::from(x)).collect();
            assert_eq!(prod(&narrow), product_tree(&x) as f32, "{len} on {isa}");
        }
    });
    assert_eq!(prod::<f32>(&[]), 1.0);
    assert_eq!(prod(&[-1.0f32, 0.0]).to_bits(), (-0.0f32).to_bits());
    assert_eq!(prod(&[1e-30f32, 1e-30, 1e30, 1e30]), 1.0);
}

#[test]
fn norms_neither_overflow_nor_underflow() {
    on_every_isa(|isa| {
        for len in lengths() {
            let x: Vec<f64> = uniform(len, 6).iter().map(|x| x - 0.5).collect();
            let squares: i128 = x.iter().map(|x| ((x * 2f64.powi(24)) as i128).pow(2)).sum();
            let exact = (squares as f64).sqrt() / 2f64.powi(24);
            for scale in [0, 500, -500, 1000, -1000, 470, -470, 590] {
                if cfg!(miri) && len != 17 && scale != 470 {
                    continue;
                }
                let scaled: Vec<f64> = x.iter().map(|x| x * 2f64.powi(scale)).collect();
                let found = norm2(&scaled) * 2f64.powi(-scale);
                assert!(is_close(found, exact, 1e-15), "{len} at 2^{scale} on {isa}");
            }
            assert!(
                is_close(f64::from(norm2(&narrowed::<f32>(&x))), exact, 1e-7),
                "{len} on {isa}"
            );
            let sum: i128 = x.iter().map(|x| ((x * 2f64.powi(24)) as i128).abs()).sum();
            assert_eq!(norm1(&x), sum as f64 / 2f64.powi(24), "{len} on {isa}");
        }
        assert_eq!(norm2(&[3e20f32, 4e20]), 5e20);
        assert_eq!(norm2(&[3e-30f32, 4e-30]), 5e-30);
        assert_eq!(norm2(&[5e-324f64]), 5e-324);
        // Large, medium and small elements together.
        assert_eq!(norm2(&[1e300, 1.0, 1e-300]), 1e300);
        assert_eq!(norm2(&[1e-300, 3.0, 4.0]), 5.0);
        let edge = 2f64.powi(480);
        assert!(is_close(norm2(&[3.0 * edge, edge, edge]), 11f64.sqrt() * edge, 1e-15));
        // Each square is in range, but their sum is not.
        let many = [2f64.powi(509); 1000];
        assert!(is_close(norm2(&many), 1000f64.sqrt() * 2f64.powi(509), 1e-15));
        assert_eq!(norm2(&[f64::INFINITY, 1.0]), f64::INFINITY);
        assert!(norm2(&[f64::NAN, f64::INFINITY]).is_nan() && norm2(&[f64::NAN]).is_nan());
        assert_eq!((norm2::<f64>(&[]), norm2(&[0.0; 50]), norm1::<f32>(&[])), (0.0, 0.0, 0.0));
        assert_eq!(reduce(&MaxMagnitude, &[1.0, -3.0, 2.0f32]), 3.0);
        assert_eq!(reduce(&MinMagnitude, &[-0.0f64]).to_bits(), 0);
    });
}

#[test]
fn logsumexp_matches_its_definition() {
    on_every_isa(|isa| {
        for len in lengths() {
            let x: Vec<f64> = uniform(len, 7).iter().map(|x| 40.0 * (x - 0.5)).collect();
            for shift in [0.0, 700.0, -700.0, 1e4] {
                if cfg!(miri) && len != 17 && shift != 700.0 {
                    continue;
                }
                let shifted = x.iter().map(|x| x + shift).collect::<Vec<f64>>();
                let direct = x.iter().map(|x| x.exp()).sum::<f64>().ln() + shift;
                let bound = 1e-14 * (1.0 + shift.abs());
                assert!((logsumexp(&shifted) - direct).abs() < bound, "{len} {shift} on {isa}");
                let narrow = narrowed::<f32>(&shifted);
                let wide = narrow.iter().map(|&x| (f64::from(x) - shift).exp()).sum::<f64>();
                let bound = 1.2e-7 * (1.0 + shift.abs() + (wide.ln() + shift).abs());
                let found = f64::from(logsumexp(&narrow));
                assert!((found - (wide.ln() + shift)).abs() < bound, "{len} {shift} on {isa}");
            }
        }
    });
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    assert_eq!(logsumexp::<f32>(&[]), -inf);
    assert_eq!(logsumexp(&[-inf; 20]), -inf);
    assert_eq!(logsumexp(&[-inf, 2.0]), 2.0);
    assert_eq!(logsumexp(&[inf, 2.0, inf]), inf);
    assert_eq!(logsumexp(&[3e38f32, -3e38]), 3e38);
    for x in [[nan, inf], [nan, -inf], [1.0, nan]] {
        assert!(logsumexp(&x).is_nan());
    }
}

/// The index of the first NaN, else of the first largest element.
fn plain_argmax(x: &[f64]) -> usize {
    let mut best = 0;
    for i in 1..x.len() {
        if !x[best].is_nan() && (x[i] > x[best] || x[i].is_nan()) {
            best = i;
        }
    }
    best
}

fn check_argmax<E: Reduce>(isa: Isa) {
    let values = [0.0, -0.0, 1.0, -1.0, 2.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    for len in lengths() {
        // Few distinct values, so that there are ties; mostly without NaN.
        for (seed, kinds) in [(1, 2), (2, 5), (3, 7), (4, 8)] {
            let choose = |x: &f64| values[(x * kinds as f64) as usize];
            let mut x: Vec<f64> = uniform(len, seed).iter().map(choose).collect();
            if kinds == 5 {
                x[len - 1] = 3.0;
            }
            let negated: Vec<f64> = x.iter().map(|x| -x).collect();
            let typed = narrowed::<E>(&x);
            let found = (argmax(&typed), argmin(&typed));
            let expected = (Some(plain_argmax(&x)), Some(plain_argmax(&negated)));
            assert_eq!(found, expected, "{len} of {kinds} on {isa}");
        }
        let x = uniform(len, 9);
        let typed = narrowed::<E>(&x);
        assert_eq!(argmax(&typed), Some(plain_argmax(&x)), "{len} on {isa}");
        let mut x = vec![E::from_f64(-1.0 / 3.0); len];
        x[len / 2] = E::NAN;
        assert_eq!((argmax(&x), argmin(&x)), (Some(len / 2), Some(len / 2)), "{len} on {isa}");
    }
    assert_eq!((argmax::<E>(&[]), argmin::<E>(&[])), (None, None));
}

#[test]
fn argmax_and_argmin_return_the_first_of_equals() {
    on_every_isa(|isa| {
        check_argmax::<f32>(isa);
        check_argmax::<f64>(isa);
    });
}

/// Parts of whole blocks of rows: their accumulators merge to that of the whole column.
fn check_parts<E: Reduce>(x: &[E], rows: usize, stride: usize, cols: usize, isa: Isa) {
    fn check<E: Reduce, R: Reduction<E>>(
        reduction: &R,
        x: &[E],
        [rows, stride, cols]: [usize; 3],
        isa: Isa,
    ) {
        let part = Pairwise::<f64>::BLOCK * 2;
        let mut counters: Vec<Pairwise<R::Acc>> = (0..cols).map(|_| Pairwise::new()).collect();
        for first in (0..rows).step_by(part) {
            let mut y = vec![R::Acc::EMPTY; cols];
            let count = part.min(rows - first);
            partial_columns(reduction, &x[first * stride..], count, stride, &mut y);
            counters.iter_mut().zip(y).for_each(|(counter, y)| counter.push(y));
        }
        for (c, counter) in counters.iter().enumerate() {
            let column: Vec<E> = (0..rows).map(|r| x[r * stride + c]).collect();
            let mut whole = Pairwise::new();
            whole.take(reduction, &column);
            let (got, want) = (format!("{:?}", counter.finish()), format!("{:?}", whole.finish()));
            assert_eq!(got, want, "{}, column {c} of {rows} {cols} on {isa}", reduction.name());
        }
    }
    let shape = [rows, stride, cols];
    check(&Sum, x, shape, isa);
    check(&Norm0, x, shape, isa);
    check(&Norm1, x, shape, isa);
    check(&Norm2, x, shape, isa);
    check(&Variance { ddof: 0 }, x, shape, isa);
    check(&Max, x, shape, isa);
    check(&MinMagnitude, x, shape, isa);
    check(&ArgMin, x, shape, isa);
    // Near 1, so that products of thousands stay in range.
    let factors: Vec<f64> = uniform(x.len(), 12).iter().map(|x| 1.0 + x / 64.0).collect();
    check(&Prod, &narrowed::<E>(&factors), shape, isa);
}

fn check_columns<E: Reduce>(isa: Isa) {
    let shapes: &[(usize, usize, usize)] = &[
        (1, 1, 0),
        (5, 3, 1),
        (16, 40, 0),
        (17, 33, 2),
        (130, 33, 7),
        (300, 530, 1),
        (1024, 5, 0),
        (2600, 9, 2),
        (5200, 17, 0),
    ];
    // More than one tile of columns, and more than one band of rows.
    let few = &[(1, 1, 0), (3, 17, 2), (130, 1, 1)];
    for &(rows, cols, gap) in unless_miri(shapes, few) {
        let stride = cols + gap;
        let len = rows * stride - gap;
        let mut x: Box<[E]> = narrowed::<E>(&uniform(len, 11)).into();
        let values = [0.5, -0.0, 1.0, f64::INFINITY, f64::NAN, 1e300, 1e-300, -0.5];
        if rows != 300 {
            for (i, special) in values.into_iter().enumerate().filter(|(i, _)| i * 7 + 3 < len) {
                x[(i * 7 + 3) * (len / 64).max(1) % len] = E::from_f64(special);
            }
        }
        let column = |c: usize| (0..rows).map(|r| x[r * stride + c]).collect::<Vec<E>>();
        let bits = |x: E| if x.to_f64().is_nan() { u64::MAX } else { x.to_f64().to_bits() };
        type OfColumns<'a, E> = &'a dyn Fn(&mut [E]);
        type OfSlice<'a, E> = &'a dyn Fn(&[E]) -> E;
        let folds: [(&str, OfColumns<'_, E>, OfSlice<'_, E>); 11] = [
            ("sum", &|y| reduce_columns(&Sum, &x, rows, stride, y), &sum::<E>),
            ("mean", &|y| reduce_columns(&Mean, &x, rows, stride, y), &mean::<E>),
            ("prod", &|y| reduce_columns(&Prod, &x, rows, stride, y), &prod::<E>),
            ("variance", &|y| reduce_columns(&Variance { ddof: 1 }, &x, rows, stride, y), &|x| {
                variance(x, 1)
            }),
            ("std", &|y| reduce_columns(&Std { ddof: 0 }, &x, rows, stride, y), &|x| std(x, 0)),
            ("norm0", &|y| reduce_columns(&Norm0, &x, rows, stride, y), &|x| reduce(&Norm0, x)),
            ("norm1", &|y| reduce_columns(&Norm1, &x, rows, stride, y), &norm1::<E>),
            ("norm2", &|y| reduce_columns(&Norm2, &x, rows, stride, y), &norm2::<E>),
            ("logsumexp", &|y| logsumexp_columns(&x, rows, stride, y), &logsumexp::<E>),
            ("largest", &|y| reduce_columns(&MaxMagnitude, &x, rows, stride, y), &|x| {
                reduce(&MaxMagnitude, x)
            }),
            ("smallest", &|y| reduce_columns(&MinMagnitude, &x, rows, stride, y), &|x| {
                reduce(&MinMagnitude, x)
            }),
        ];
        for (name, of_columns, of_slice) in folds {
            let mut y: Box<[E]> = vec![E::NAN; cols].into();
            of_columns(&mut y);
            for c in 0..cols {
                let expected = bits(of_slice(&column(c)));
                assert_eq!(bits(y[c]), expected, "{name}, column {c} of {rows} {cols} on {isa}");
            }
        }
        check_parts(&x, rows, stride, cols, isa);
        let mut y: Box<[i64]> = vec![-1; cols].into();
        reduce_columns(&ArgMax, &x, rows, stride, &mut y[..]);
        for c in 0..cols {
            assert_eq!(Some(y[c] as usize), argmax(&column(c)), "{c} of {rows} {cols} on {isa}");
        }
        reduce_columns(&ArgMin, &x, rows, stride, &mut y[..]);
        for c in 0..cols {
            assert_eq!(Some(y[c] as usize), argmin(&column(c)), "{c} of {rows} {cols} on {isa}");
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

/// Norms of one row, which are exact: sums of squares need the most scratch per column, so tiles
/// are narrow.
#[test]
fn norms_of_columns_in_several_tiles_are_exact() {
    let x = uniform(unless_miri(1100, 390), 21);
    let mut y = vec![f64::NAN; x.len()];
    reduce_columns(&Norm2, &x, 1, x.len(), &mut y[..]);
    assert_eq!(x, y);
}

/// The bits of every reduction of some values.
fn all_bits<E: Reduce>(x: &[E]) -> Vec<u64> {
    let numbers = [sum(x), mean(x), prod(x), variance(x, 1), std(x, 0), norm1(x), norm2(x)];
    let bits = numbers.into_iter().chain([logsumexp(x), reduce(&MaxMagnitude, x)]);
    bits.map(|x| x.to_f64().to_bits()).collect()
}

#[test]
fn every_isa_gives_the_same_bits() {
    // Under Miri there is only one.
    for len in unless_miri(&LENGTHS[..], &[17]).iter().copied() {
        let wide: Vec<f64> = uniform(len, 13).iter().map(|x| x + 0.6).collect();
        let narrow = narrowed::<f32>(&wide);
        let all = || (all_bits(&wide), all_bits(&narrow));
        let expected = with_isa(Isa::Scalar, all).unwrap();
        on_every_isa(|isa| assert_eq!(all(), expected, "{len} on {isa}"));
    }
}

#[test]
fn folds_of_subtrees_and_chunks_equal_the_whole() {
    let (half, rest) = unless_miri((32 * 1024, 1524), (1024, 5));
    let x = uniform(half + rest, 15);
    let (mut whole, mut left, mut right) = (Pairwise::new(), Pairwise::new(), Pairwise::new());
    whole.take(&Variance { ddof: 0 }, &x);
    for chunk in x[..half].chunks(2048) {
        left.take(&Variance { ddof: 0 }, chunk);
    }
    right.take(&Variance { ddof: 0 }, &x[half..]);
    left.append(&right);
    let (whole, parts): (Moments, Moments) = (whole.finish(), left.finish());
    assert_eq!(whole, parts);
    assert_eq!(whole.variance(0), variance(&x, 0));
    assert_eq!(whole.count, x.len() as f64);
    let largest = max(&x).unwrap();
    let mut exps = PairwiseSum::new();
    x.chunks(4096).for_each(|chunk| exps.push_exps(chunk, largest));
    let direct: f64 = x.iter().map(|x| (x - largest).exp()).sum();
    assert!(is_close(exps.finish(), direct, 1e-13));
    let mut nonzeros = PairwiseSum::new();
    nonzeros.take(&Norm0, &[0.0f32, -0.0, f32::NAN, 1.0, 5e-45]);
    assert_eq!(nonzeros.finish(), 3.0);
}

/// One row, repeated with stride 0: a column of 2^26 elements without its memory.
#[test]
fn sums_of_many_elements_are_within_two_units_of_rounding() {
    let count = unless_miri(1 << 26, 1 << 10);
    let row = narrowed::<f32>(&uniform(3, 17));
    let mut sums = [0.0f32; 3];
    reduce_columns(&Sum, &row, count, 0, &mut sums);
    let u = 2f64.powi(-24);
    for (sum, x) in sums.iter().zip(&row) {
        assert!(is_close(f64::from(*sum), f64::from(*x) * count as f64, 2.0 * u));
    }
    let (len, times) = unless_miri((1 << 20, 64), (1 << 10, 2));
    let part = narrowed::<f32>(&uniform(len, 19));
    let exact: u64 = part.iter().map(|x| (x * 2f32.powi(24)) as u64).sum();
    let mut sum = PairwiseSum::new();
    (0..times).for_each(|_| sum.push_slice(&part));
    let found = f64::from(sum.finish() as f32);
    assert!(is_close(found, exact as f64 * f64::from(times) / 2f64.powi(24), 2.0 * u));
}

#[test]
fn argmax_counts_rows_beyond_f32_precision() {
    let rows = unless_miri(1 << 24, 1 << 8) + 5;
    let mut x = vec![0.0f32; rows];
    for row in [rows - 1, rows - 2, 3] {
        x[row] += 1.0;
        let mut y = [0i64];
        reduce_columns(&ArgMax, &x, rows, 1, &mut y);
        assert_eq!(y, [row as i64]);
        assert_eq!(argmax(&x), Some(row));
    }
}

#[test]
#[should_panic(expected = "argmax: no rows, so the columns have no elements")]
fn argmax_of_columns_without_rows_panics() {
    reduce_columns(&ArgMax, &[0.0f32; 0], 0, 2, &mut [0i64; 2]);
}

#[test]
#[should_panic(expected = "variance: 3 rows of 4 with stride 5 exceed 13 elements")]
fn columns_beyond_the_slice_panic() {
    reduce_columns(&Variance { ddof: 0 }, &[0.0f32; 13], 3, 5, &mut [0.0; 4]);
}

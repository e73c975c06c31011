//! Random numbers, and elements picked, replaced and counted by indices, against plain definitions.

use std::collections::BTreeMap;

use swath::prelude::*;
use swath::{RandomFloat, RngState, runtime};
use swath_kernels::dispatch::{levels, with_isa};

use crate::support::alone;

type T = Tensor<CpuBackend>;

/// Positions at block boundaries, within blocks, and before the last word, after which word 0 follows.
const POSITIONS: [u64; 7] = [0, 1, 2, 3, 1 << 40, u64::MAX - 300, u64::MAX];
const LENGTHS: [usize; 9] = [0, 1, 2, 63, 255, 256, 257, 1000, 20_001];

fn at(position: u64) -> Rng {
    Rng::from_state(RngState { seed: 42, stream: 3, position })
}

#[test]
fn vectors_are_the_numbers_drawn_one_by_one() {
    fn check<F: RandomFloat + PartialEq>(position: u64, len: usize) {
        let (mut all, mut each) = (at(position), at(position));
        let normals: Vec<F> = (0..len).map(|_| each.normal()).collect();
        assert_eq!(all.normal_vec::<F>(len).unwrap(), normals, "{position} {len}");
        let units: Vec<F> = (0..len).map(|_| each.uniform()).collect();
        assert_eq!(all.uniform_vec::<F>(len, 0.0..1.0).unwrap(), units, "{position} {len}");
        assert_eq!(all, each);
    }
    for position in POSITIONS {
        for len in LENGTHS {
            check::<f32>(position, len);
            check::<f64>(position, len);
        }
    }
}

/// Widths from 1 to one that rejects a quarter of the words.
#[test]
fn integers_are_those_of_below_even_if_words_are_rejected() {
    alone("draws::integers_are_those_of_below_even_if_words_are_rejected", || {
        for threads in [1, 3] {
            runtime::set_threads(threads).unwrap();
            for range in
                [0..1, -5..1000, 0..1 << 40, 0..3 << 61, i64::MIN..i64::MAX, i64::MIN..1 << 62]
            {
                for (position, len) in POSITIONS.into_iter().zip(LENGTHS.into_iter().rev()) {
                    let (mut all, mut each) = (at(position), at(position));
                    let width = range.end.wrapping_sub(range.start) as u64;
                    let below = |_| range.start.wrapping_add(each.below(width) as i64);
                    let want: Vec<i64> = (0..len).map(below).collect();
                    assert_eq!(all.integer_vec(len, range.clone()).unwrap(), want, "{range:?}");
                    assert_eq!(all, each);
                }
            }
        }
    });
}

#[test]
fn permutations_are_those_of_fisher_yates() {
    for position in POSITIONS {
        for n in LENGTHS {
            let (mut rng, mut each) = (at(position), at(position));
            let mut want: Vec<i64> = (0..n as i64).collect();
            (1..n).rev().for_each(|last| want.swap(last, each.below(last as u64 + 1) as usize));
            assert_eq!(rng.permutation(n).unwrap(), want);
            assert_eq!(rng, each);
        }
    }
}

fn digest(bits: impl IntoIterator<Item = u64>) -> u64 {
    bits.into_iter().fold(0, |sum: u64, x| sum.rotate_left(7) ^ x)
}

/// The numbers of a seed never change: recorded before they were drawn by vectors.
#[test]
fn numbers_are_the_recorded_ones_on_every_instruction_set() {
    let numbers = || {
        let rng = |stream| Rng::from_state(RngState { seed: 42, stream, position: 0 });
        let n = 10_000;
        let singles = |x: Vec<f32>| digest(x.into_iter().map(|x| u64::from(x.to_bits())));
        let doubles = |x: Vec<f64>| digest(x.into_iter().map(f64::to_bits));
        let integers = |x: Vec<i64>| digest(x.into_iter().map(|x| x as u64));
        [
            singles(rng(1).normal_vec(n).unwrap()),
            doubles(rng(2).normal_vec(n).unwrap()),
            singles(rng(3).uniform_vec(n, -2.0..3.0).unwrap()),
            doubles(rng(4).uniform_vec(n, -2.0..3.0).unwrap()),
            integers(rng(5).integer_vec(n, 0..1000).unwrap()),
            integers(rng(6).permutation(n).unwrap()),
        ]
    };
    for isa in levels() {
        let got = with_isa(isa, numbers).unwrap();
        assert_eq!(got, RECORDED, "{isa}: {got:#x?}");
    }
}

const RECORDED: [u64; 6] = [
    0x7896_f03c_03b2_3e51,
    0xa137_0eca_c95c_4200,
    0x30d8_5606_f5e7_c800,
    0x21e7_bc0d_b92b_2dc4,
    0xf100_db9b_fafa_8c0c,
    0x7a9b_3b5b_c371_89b0,
];

/// Φ(−x) for x ≥ 0: Zelen and Severo, Abramowitz and Stegun 26.2.17, absolute error below 7.5e-8.
fn upper_tail(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x);
    let c = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = c.iter().rev().fold(0.0, |sum, c| (sum + c) * t);
    (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt() * sum
}

#[test]
fn normal_numbers_have_the_right_tails_and_independent_lanes() {
    const N: usize = 1 << 21;
    let x: Vec<f64> =
        Rng::seed(77).normal_vec::<f32>(N).unwrap().into_iter().map(f64::from).collect();
    for bound in [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0] {
        for side in [-1.0, 1.0] {
            let count = x.iter().filter(|&&x| side * x > bound).count() as f64;
            let expected = N as f64 * upper_tail(bound);
            assert!(
                (count - expected).abs() < 4.5 * expected.sqrt(),
                "{bound}: {count} {expected}"
            );
        }
    }
    // Powers' means: 0, 1, 0, 3, with variances 1, 2, 15, 96.
    for (power, mean, variance) in [(1, 0.0, 1.0f64), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)]
    {
        let got = x.iter().map(|x| x.powi(power)).sum::<f64>() / N as f64;
        assert!((got - mean).abs() < 4.5 * (variance / N as f64).sqrt(), "{power}: {got}");
    }
    // Products of numbers in different lanes, counters and groups, and of their squares.
    for lag in (1..=66).chain([128, 256, 1024]) {
        let pairs = || x.iter().zip(&x[lag..]);
        let plain = pairs().map(|(a, b)| a * b).sum::<f64>() / (N as f64).sqrt();
        let squares = pairs().map(|(a, b)| (a * a - 1.0) * (b * b - 1.0) / 2.0).sum::<f64>();
        assert!(plain.abs() < 4.5, "{lag}: {plain}");
        assert!(squares.abs() / (N as f64).sqrt() < 5.0, "{lag}: {squares}");
    }
    // The ends of the range of words.
    let mut ends = [0f32; 4];
    swath_kernels::draw_normal(&[0, 1 << 31, u32::MAX >> 1, u32::MAX], &mut ends);
    assert!((f64::from(ends[0]) - 6.337_957_754_553_792).abs() < 1e-5, "{ends:?}");
    assert_eq!((ends[1], ends[3]), (-ends[0], -ends[2]));
    assert!(ends[2] > 0.0 && ends[2] < 1e-9);
}

#[test]
fn integers_and_orders_are_equally_likely() {
    let dice = Rng::seed(5).integer_vec(600_000, 1..7).unwrap();
    let mut counts = BTreeMap::<i64, f64>::new();
    dice.iter().for_each(|die| *counts.entry(*die).or_default() += 1.0);
    let chi2: f64 = counts.values().map(|count| (count - 1e5).powi(2) / 1e5).sum();
    // Five degrees of freedom: above 25 with probability 1.4e-4.
    assert!(counts.len() == 6 && chi2 < 25.0, "{counts:?}");
    let mut rng = Rng::seed(6);
    let mut orders = BTreeMap::<Vec<i64>, f64>::new();
    for _ in 0..60_000 {
        *orders.entry(rng.permutation(5).unwrap()).or_default() += 1.0;
    }
    let chi2: f64 = orders.values().map(|count| (count - 500.0).powi(2) / 500.0).sum();
    // 119 degrees of freedom: above 190 with probability 4e-5.
    assert!(orders.len() == 120 && chi2 < 190.0, "{chi2}");
}

#[test]
fn numbers_of_16_bits_stay_below_the_end_of_the_range() -> Result<()> {
    for dtype in [DType::F16, DType::BF16] {
        for (from, end) in [(0.0, 1.0), (-1.0, 0.0), (-3.0, -2.0), (0.1, 0.3), (1000.0, 1008.0)] {
            let like = T::zeros(20_000, dtype)?;
            let x = like.rand_like(from..end, &mut Rng::seed(8))?;
            assert_eq!(x.dtype(), dtype);
            let round =
                |x: f64| T::full((), x)?.to_dtype(dtype)?.to_dtype(DType::F64)?.item::<f64>();
            let (from, end) = (round(from)?, round(end)?);
            let x = x.to_dtype(DType::F64)?.to_vec::<f64>()?;
            assert!(x.iter().all(|x| (from..end).contains(x)), "{dtype}: {from}..{end}");
        }
        assert!(T::zeros(3, dtype)?.rand_like(1.0..1.0001, &mut Rng::seed(8)).is_err());
    }
    Ok(())
}

#[test]
fn positions_of_true_elements_are_in_row_major_order() -> Result<()> {
    let mut rng = Rng::seed(3);
    let shapes: [&[usize]; 9] =
        [&[], &[0], &[1], &[1000], &[17, 1], &[1, 17], &[3, 0, 2], &[7, 33, 5], &[2, 3, 1, 4]];
    for shape in shapes {
        for density in [0.0, 0.01, 0.5, 1.0] {
            let mask = T::rand(shape, 0.0..1.0, &mut rng)?.lt(density)?;
            let flags = mask.to_vec::<bool>()?;
            let strides: Vec<usize> =
                (0..shape.len()).map(|i| shape[i + 1..].iter().product()).collect();
            let mut want = Vec::new();
            for (position, _) in flags.iter().enumerate().filter(|(_, flag)| **flag) {
                let index = strides.iter().zip(shape).map(|(s, dim)| (position / s % dim) as i64);
                want.extend(index);
            }
            let got = mask.nonzero()?;
            let count = flags.iter().filter(|flag| **flag).count();
            assert_eq!(got.dims(), [count, shape.len()]);
            assert_eq!(got.to_vec::<i64>()?, want, "{shape:?} {density}");
        }
    }
    Ok(())
}

/// The indices of an axis and a broadcast index, with negative ones among them.
fn drawn_index(shape: &[usize], extent: i64, rng: &mut Rng) -> Result<T> {
    T::randint(shape, -extent..extent, rng)
}

#[test]
fn several_indices_pick_and_put_like_loops() -> Result<()> {
    let mut rng = Rng::seed(4);
    let dims = [5, 7, 3];
    let x = T::randn(dims, &mut rng)?;
    let values = x.to_vec::<f32>()?;
    let shapes: [[&[usize]; 2]; 5] =
        [[&[40], &[40]], [&[6, 1], &[9]], [&[], &[4]], [&[0], &[0]], [&[1, 4], &[3, 1]]];
    for [first, second] in shapes {
        let (a, b) = (drawn_index(first, 5, &mut rng)?, drawn_index(second, 7, &mut rng)?);
        let common = a.add(&b)?;
        let spread = |x: &T| x.broadcast_to(common.shape())?.to_vec::<i64>();
        let (rows, columns) = (spread(&a)?, spread(&b)?);
        let starts = rows.iter().zip(&columns).map(|(a, b)| a.rem_euclid(5) * 7 + b.rem_euclid(7));
        let starts: Vec<usize> = starts.map(|row| row as usize * 3).collect();
        let picked = x.index(&[Some(&a), Some(&b)])?;
        let want: Vec<f32> = starts.iter().flat_map(|&at| values[at..at + 3].to_vec()).collect();
        assert_eq!(picked.to_vec::<f32>()?, want, "{first:?} {second:?}");
        let source = T::randn(*picked.shape(), &mut rng)?;
        let put = x.index_put(&[Some(&a), Some(&b)], &source)?;
        let mut want = values.clone();
        for (at, row) in starts.into_iter().zip(source.to_vec::<f32>()?.chunks_exact(3)) {
            want[at..at + 3].copy_from_slice(row);
        }
        assert_eq!(put.to_vec::<f32>()?, want, "{first:?} {second:?}");
    }
    // The first in row-major order is named.
    let bad = tensor![i64; [0, 7], [-9, 1]];
    let error = x.index(&[None, Some(&bad)]).unwrap_err();
    assert!(matches!(error, Error::IndexOutOfRange { index: 7, axis: 1, .. }), "{error}");
    let error = x.index(&[Some(&tensor![i64; i64::MIN]), Some(&bad)]).unwrap_err();
    assert!(matches!(error, Error::IndexOutOfRange { index: i64::MIN, axis: 0, .. }), "{error}");
    Ok(())
}

#[test]
fn the_last_element_put_remains_on_any_number_of_threads() {
    alone("draws::the_last_element_put_remains_on_any_number_of_threads", || {
        let check = |threads| -> Result<()> {
            runtime::set_threads(threads)?;
            let mut rng = Rng::seed(12);
            for (above, extent, count) in [(1, 50, 30_000), (9, 1000, 4000), (3, 1, 70), (2, 5, 0)]
            {
                let x = T::randn((above, extent), &mut rng)?;
                let index = T::randint(count, 0..extent as i64, &mut rng)?;
                let source = T::randn((above, count), &mut rng)?;
                let got = x.index_put(&[None, Some(&index)], &source)?;
                let (mut want, from) = (x.to_vec::<f32>()?, source.to_vec::<f32>()?);
                for row in 0..above {
                    for (i, &to) in index.to_vec::<i64>()?.iter().enumerate() {
                        want[row * extent + to as usize] = from[row * count + i];
                    }
                }
                assert_eq!(got.to_vec::<f32>()?, want, "{above} {extent} {count} {threads}");
            }
            Ok(())
        };
        [1, 2, 5].into_iter().for_each(|threads| check(threads).unwrap());
    });
}

#[test]
fn histograms_and_searches_in_even_rows_match_comparisons() -> Result<()> {
    let mut rng = Rng::seed(15);
    let ranges = [
        -1.0..1.0,
        0.1..0.7,
        1e300..1.7e308,
        -1e-310..1e-310,
        3.0..3.0 + 1e-15,
        f64::MIN / 2.0..f64::MAX / 2.0,
    ];
    for range in ranges {
        for bins in [1, 2, 7, 100, 1000] {
            let ends =
                Tensor::<CpuBackend>::linspace_as(range.start, range.end, bins + 1, DType::F64)?;
            let ends = ends.to_vec::<f64>()?;
            let middle = range.end * 0.5 - range.start * 0.5;
            let drawn = Rng::uniform_vec::<f64>(&mut rng, 9000, 0.0..1.0)?;
            let mut values: Vec<f64> = drawn
                .into_iter()
                .map(|u| range.start + middle * (2.4 * u) - middle * 0.2)
                .collect();
            // The ends themselves, their neighbours, and what is not counted.
            values.extend(ends.iter().flat_map(|&x| [x.next_down(), x, x.next_up()]));
            values.extend([f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0]);
            let mut want = vec![0i64; bins];
            for &x in values.iter().filter(|&&x| x >= range.start && x <= range.end) {
                let place = ends.iter().filter(|&&end| end <= x).count();
                let bin = if x == range.end { bins } else { place };
                want.get_mut(bin.wrapping_sub(1)).into_iter().for_each(|count| *count += 1);
            }
            let x = T::from_slice(&values, values.len())?;
            assert_eq!(
                x.histogram(bins, range.clone())?.to_vec::<i64>()?,
                want,
                "{range:?} {bins}"
            );
            let row = T::from_slice(&ends, ends.len())?;
            let places = x.searchsorted(&row)?.to_vec::<i64>()?;
            for (x, place) in values.iter().zip(places) {
                let below = ends.iter().filter(|&&end| end < *x || x.is_nan()).count();
                assert_eq!(place, below as i64, "{x} in {range:?}, {bins}");
            }
        }
    }
    // Rows that are even but for a repeated element, and of integers.
    let row = tensor![i64; 0, 10, 20, 20, 40, 50];
    let values = T::randint(5000, -5..60, &mut rng)?;
    let places = values.searchsorted_right(&row)?.to_vec::<i64>()?;
    for (x, place) in values.to_vec::<i64>()?.into_iter().zip(places) {
        let row = [0, 10, 20, 20, 40, 50];
        assert_eq!(place, row.iter().filter(|&&at| at <= x).count() as i64, "{x}");
    }
    Ok(())
}

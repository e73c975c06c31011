//! The row kernels of attention against their formulas in `f64`, with the same bits on every
//! instruction set.

use swath_kernels::testing::with_isa;
use swath_kernels::{Isa, Rows, ScoreBlock, attention_weights, attention_weights_grad, row_dots};
use swath_kernels::{dot, testing};

fn values<E: Rows>(len: usize, seed: u32, scale: f64) -> Vec<E> {
    let sample = testing::interval_sample_f64(-scale, scale, len as u32 + seed);
    sample.skip(seed as usize).map(E::from_f64).collect()
}

fn wide<E: Rows>(x: &[E]) -> Vec<f64> {
    x.iter().map(|x| x.to_f64()).collect()
}

/// Rows, columns, and the columns that the first row attends to.
const BLOCKS: [(usize, usize, Option<isize>); 9] = [
    (1, 1, None),
    (3, 17, None),
    (5, 64, Some(60)),
    (7, 100, Some(-3)),
    (4, 129, Some(500)),
    (2, 2500, None),
    (66, 33, Some(1)),
    (3, 0, None),
    (0, 5, None),
];

type Results = [Vec<f64>; 5];

/// Scores near `offset`, which may be large.
fn scores<E: Rows>(len: usize, offset: f64) -> Vec<E> {
    let near = values::<E>(len, 1, 8.0);
    near.into_iter().map(|x| E::from_f64(x.to_f64() + offset)).collect()
}

fn run<E: Rows>(rows: usize, columns: usize, seen: Option<isize>, offset: f64) -> Results {
    let stride = columns + 3;
    let block = ScoreBlock { rows, columns, stride, seen, scale: E::from_f64(0.7) };
    let x = scores::<E>(rows * stride, offset);
    let mut weights = x.clone();
    let (mut largest, mut inverse) = (vec![E::NAN; rows], vec![E::NAN; rows]);
    attention_weights(&mut weights, block, &mut largest, &mut inverse);
    let (mut again, mut grad) = (x, values::<E>(rows * stride, 2, 1.0));
    let mean = values::<E>(rows, 3, 0.2);
    let scale = E::from_f64(1.5);
    attention_weights_grad(&mut again, &mut grad, block, &largest, &inverse, &mean, scale);
    [&weights, &largest, &inverse, &again, &grad].map(|x| wide(x))
}

fn check<E: Rows>(epsilon: f64) {
    let offsets = [0.0, 1e4].into_iter().flat_map(|offset| BLOCKS.map(|block| (block, offset)));
    for ((rows, columns, seen), offset) in offsets {
        let mut results = Isa::ALL.iter().filter_map(|&isa| {
            with_isa(isa, || {
                run::<E>(rows, columns, seen, offset)
                    .map(|x| x.into_iter().map(f64::to_bits).collect::<Vec<_>>())
            })
        });
        let first = results.next().expect("every machine has the scalar level");
        results.for_each(|other| assert!(other == first, "{rows} {columns} {seen:?}: bits differ"));

        let [weights, largest, inverse, again, grad] = run::<E>(rows, columns, seen, offset);
        let stride = columns + 3;
        let (x, d) = (scores::<E>(rows * stride, offset), values::<E>(rows * stride, 2, 1.0));
        let (x, d, mean) = (wide(&x), wide(&d), wide(&values::<E>(rows, 3, 0.2)));
        let scale = E::from_f64(0.7).to_f64();
        for i in 0..rows {
            let sees = seen.map_or(columns as isize, |seen| seen + i as isize);
            let sees = sees.clamp(0, columns as isize) as usize;
            let row = &x[i * stride..][..sees];
            let most = row.iter().map(|x| x * scale).fold(f64::NEG_INFINITY, f64::max);
            // The product with the scale is fused into the difference, but the largest score is
            // rounded.
            assert!(most == largest[i] || (most - largest[i]).abs() <= epsilon * most.abs());
            let e: Vec<f64> = row.iter().map(|x| x.mul_add(scale, -largest[i]).exp()).collect();
            let total: f64 = e.iter().sum();
            for j in 0..columns {
                let (p, q) = (weights[i * stride + j] * inverse[i], again[i * stride + j]);
                let slope = grad[i * stride + j];
                if j >= sees {
                    assert_eq!([p, q, slope], [0.0; 3]);
                    continue;
                }
                let exact = e[j] / total;
                assert!((p / exact - 1.0).abs() <= 16.0 * epsilon, "{p} {exact}");
                assert!((q / exact - 1.0).abs() <= 32.0 * epsilon, "{q} {exact}");
                let exact = 1.5 * exact * (d[i * stride + j] - mean[i]);
                assert!((slope - exact).abs() <= 64.0 * epsilon * (e[j] / total), "{slope}");
            }
        }
    }
}

#[test]
fn attention_weights_match_softmax_and_its_derivative() {
    check::<f32>(f32::EPSILON.into());
    check::<f64>(f64::EPSILON);
}

#[test]
fn rows_of_minus_infinity_give_zeros_and_nan_spreads_over_its_row() {
    let (nan, low) = (f32::NAN, f32::NEG_INFINITY);
    let x = [low, low, low, nan, 1.0, 2.0, low, nan, low, low, 0.0, low];
    let block = ScoreBlock { rows: 4, columns: 3, stride: 3, seen: None, scale: 1.0 };
    let (mut p, mut largest, mut inverse) = (x, [0f32; 4], [0f32; 4]);
    attention_weights(&mut p, block, &mut largest, &mut inverse);
    assert_eq!((p[..3].to_vec(), largest[0], inverse[0]), (vec![0.0; 3], low, 1.0));
    assert!(p[3..9].iter().all(|p| p.is_nan()) && largest[1].is_nan() && largest[2].is_nan());
    assert_eq!((p[9..].to_vec(), largest[3], inverse[3]), (vec![0.0, 1.0, 0.0], 0.0, 1.0));
    let (mut again, mut grad) = (x, [1f32; 12]);
    attention_weights_grad(&mut again, &mut grad, block, &largest, &inverse, &[0.5; 4], 1.0);
    assert_eq!((again[..3].to_vec(), grad[..3].to_vec()), (vec![0.0; 3], vec![0.0; 3]));
    assert!(again[3..9].iter().chain(&grad[3..9]).all(|x| x.is_nan()));
    assert_eq!(
        (again[9..].to_vec(), grad[9..].to_vec()),
        (vec![0.0, 1.0, 0.0], vec![0.0, 0.5, 0.0])
    );
}

#[test]
fn row_dots_equal_dots_of_slices() {
    for columns in [0, 1, 17, 100, 1500] {
        let (a, b) = (values::<f32>(5 * columns + 8, 4, 1.0), values::<f32>(columns + 8, 5, 1.0));
        let mut y = [f32::NAN; 5];
        row_dots(columns, (&a, columns + 2), (&b, 1), &mut y);
        for (i, y) in y.iter().enumerate() {
            let expected = dot(&a[i * (columns + 2)..][..columns], &b[i..][..columns]);
            assert_eq!(y.to_bits(), expected.to_bits());
        }
    }
}

#[test]
#[should_panic(expected = "attention_weights: 2 rows of 4")]
fn a_block_beyond_the_scores_panics() {
    let block = ScoreBlock { rows: 2, columns: 4, stride: 4, seen: None, scale: 1.0 };
    attention_weights(&mut [0f32; 7], block, &mut [0.0; 2], &mut [0.0; 2]);
}

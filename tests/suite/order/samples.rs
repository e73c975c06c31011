//! Random integers and indices: their distribution, and that a seed gives the same ones.

use swath::prelude::*;

type T = Tensor<CpuBackend>;

/// Pearson's statistic of counts. With k degrees of freedom its mean is k and its variance 2 k.
fn chi_squared(counts: &[usize], probabilities: &[f64]) -> f64 {
    let total = counts.iter().sum::<usize>() as f64;
    let term = |(&count, p): (&usize, &f64)| (count as f64 - total * p).powi(2) / (total * p);
    counts.iter().zip(probabilities).filter(|(_, p)| **p > 0.0).map(term).sum()
}

/// Checks that the statistic is within five standard deviations of its mean.
fn assert_distributed(counts: &[usize], probabilities: &[f64]) {
    let freedom = probabilities.iter().filter(|&&p| p > 0.0).count() as f64 - 1.0;
    let statistic = chi_squared(counts, probabilities);
    let allowed = freedom + 5.0 * (2.0 * freedom).sqrt();
    assert!(statistic <= allowed, "{statistic} > {allowed}: {counts:?}");
    let impossible = counts.iter().zip(probabilities).filter(|(_, p)| **p == 0.0);
    assert!(impossible.into_iter().all(|(&count, _)| count == 0), "{counts:?}");
}

fn counts(indices: &T, n: usize) -> Vec<usize> {
    let counts = indices.bincount(n).unwrap().to_vec::<i64>().unwrap();
    counts.into_iter().map(|count| count as usize).collect()
}

const WEIGHTS: [f32; 7] = [1.0, 0.0, 4.0, 2.5, 0.0, 0.5, 2.0];

#[test]
fn indices_are_drawn_with_their_probabilities() {
    let weights = T::from_slice(&WEIGHTS, 7).unwrap();
    let probabilities = WEIGHTS.map(|w| f64::from(w) / 10.0);
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let weights = weights.to_dtype(dtype).unwrap();
        let drawn = weights.multinomial(100_000, &mut Rng::seed(15)).unwrap();
        assert_eq!(drawn.dims(), [100_000]);
        assert_distributed(&counts(&drawn, 7), &probabilities);
    }
    let integers = tensor![i64; 1, 0, 3].multinomial(10_000, &mut Rng::seed(6)).unwrap();
    assert_distributed(&counts(&integers, 3), &[0.25, 0.0, 0.75]);
}

/// The first index has the probabilities of the weights, and the second, given the first, those of the others.
#[test]
fn draws_without_replacement_follow_one_another() {
    let rows = 60_000;
    let weights = T::from_slice(&WEIGHTS, (1, 7)).unwrap().broadcast_to((rows, 7)).unwrap();
    let drawn = weights.multinomial_distinct(5, &mut Rng::seed(7)).unwrap();
    let drawn = drawn.to_vec::<i64>().unwrap();
    let (mut first, mut second) = ([0; 7], [[0; 7]; 7]);
    for row in drawn.chunks(5) {
        first[row[0] as usize] += 1;
        second[row[0] as usize][row[1] as usize] += 1;
        let mut sorted = row.to_vec();
        sorted.sort();
        assert_eq!(sorted, [0, 2, 3, 5, 6]);
    }
    assert_distributed(&first, &WEIGHTS.map(|w| f64::from(w) / 10.0));
    for (i, counts) in second.iter().enumerate().filter(|(i, _)| WEIGHTS[*i] > 0.0) {
        let left = 10.0 - f64::from(WEIGHTS[i]);
        let mut probabilities = WEIGHTS.map(|w| f64::from(w) / left);
        probabilities[i] = 0.0;
        assert_distributed(counts, &probabilities);
    }
}

#[test]
fn a_weight_of_zero_is_never_drawn() {
    // Sums of such weights are rounded at every step.
    let mut values = vec![0.0f64; 1000];
    (0..1000).filter(|i| i % 7 == 3).for_each(|i| values[i] = 10f64.powi(i as i32 % 37 - 18));
    let weights = T::from_slice(&values, 1000).unwrap();
    let drawn = weights.multinomial(20_000, &mut Rng::seed(8)).unwrap().to_vec::<i64>().unwrap();
    assert!(drawn.iter().all(|&i| values[i as usize] > 0.0));
    let all = values.iter().filter(|&&x| x > 0.0).count();
    let drawn = weights.multinomial_distinct(all, &mut Rng::seed(9)).unwrap();
    let mut drawn = drawn.to_vec::<i64>().unwrap();
    drawn.sort();
    drawn.dedup();
    assert_eq!(drawn.len(), all);
    assert!(drawn.iter().all(|&i| values[i as usize] > 0.0));
    assert!(weights.multinomial_distinct(all + 1, &mut Rng::seed(9)).is_err());
}

/// Rows are drawn one after the other, each index from two words.
#[test]
fn a_seed_gives_the_same_samples() {
    let weights = tensor![[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]];
    let (mut rng, mut again) = (Rng::seed(10), Rng::seed(10));
    let drawn = weights.multinomial(3, &mut rng).unwrap().to_vec::<i64>().unwrap();
    let rows = [0, 1].map(|i| {
        let row = weights.slice(s![i]).unwrap();
        row.multinomial(3, &mut again).unwrap().to_vec::<i64>().unwrap()
    });
    assert_eq!(drawn, rows.concat());
    assert_eq!(rng, again);
    assert_eq!(rng.state().position, 12);
    assert_eq!(weights.multinomial(0, &mut rng).unwrap().dims(), [2, 0]);
    assert_eq!(rng, again);
    // Recorded on x86-64: the samples of a seed are the same on every machine and in every version.
    let weights = T::from_slice(&WEIGHTS, 7).unwrap();
    let drawn = weights.multinomial(12, &mut Rng::seed(42)).unwrap();
    assert_eq!(drawn.to_vec::<i64>().unwrap(), [3, 2, 2, 3, 5, 6, 5, 2, 6, 2, 2, 2]);
    let integers = T::randint(8, -50..50, &mut Rng::seed(42)).unwrap();
    assert_eq!(integers.to_vec::<i64>().unwrap(), [-4, -16, -18, -5, 15, 27, 17, -13]);
}

#[test]
fn integers_are_drawn_evenly() {
    let drawn = T::randint((300, 400), 3..16, &mut Rng::seed(11)).unwrap();
    assert_eq!((drawn.dims(), drawn.dtype()), (&[300, 400][..], DType::I64));
    let counts = counts(&drawn, 16);
    assert_eq!(counts[..3], [0; 3]);
    assert_distributed(&counts[3..], &[1.0 / 13.0; 13]);
    // A remainder of 64 bits would be in the lower third twice as often.
    let (bound, third) = (3i64 << 61, 1i128 << 62);
    let drawn = T::randint(60_000, -bound..bound, &mut Rng::seed(12)).unwrap();
    let mut thirds = [0; 3];
    for x in drawn.to_vec::<i64>().unwrap() {
        thirds[((i128::from(x) + i128::from(bound)) / third) as usize] += 1;
    }
    assert_distributed(&thirds, &[1.0 / 3.0; 3]);
    let all = T::randint(2000, i64::MIN..i64::MAX, &mut Rng::seed(13)).unwrap();
    let negative = all.lt(0.0).unwrap().sum(None, false).unwrap().item::<i64>().unwrap();
    assert!((900..1100).contains(&negative), "{negative}");
}

#[test]
fn integers_of_other_dtypes_are_the_same() {
    let want = T::randint(50, 0..2, &mut Rng::seed(14)).unwrap();
    for dtype in DType::ALL {
        let drawn = T::randint_as(50, 0..2, dtype, &mut Rng::seed(14)).unwrap();
        assert_eq!(drawn.dtype(), dtype);
        let drawn = drawn.to_dtype(DType::I64).unwrap().to_vec::<i64>().unwrap();
        assert_eq!(drawn, want.to_vec::<i64>().unwrap());
    }
    assert_eq!(
        T::randint_as(3, 255..256, DType::U8, &mut Rng::seed(1)).unwrap().dtype(),
        DType::U8
    );
}

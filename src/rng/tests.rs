use super::*;

const N: usize = 1 << 18;

fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64;
    (mean, variance)
}

/// Largest distance between the values' distribution and `cdf` (Kolmogorov-Smirnov), times √n; it
/// exceeds 2 with probability 7e-4.
fn kolmogorov_smirnov(mut values: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let distance = |(i, &x): (usize, &f64)| {
        let p = cdf(x);
        (p - i as f64 / n).abs().max(((i + 1) as f64 / n - p).abs())
    };
    values.iter().enumerate().map(distance).fold(0.0, f64::max) * n.sqrt()
}

/// Φ by Simpson's rule over the density, sharing nothing with the inverse under test.
fn normal_cdf(x: f64) -> f64 {
    let density = |t: f64| (-t * t / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let steps = 200;
    let h = x / f64::from(steps);
    let weight = |i: i32| match i {
        0 => 1.0,
        i if i == steps => 1.0,
        i => 2.0 + 2.0 * f64::from(i % 2),
    };
    0.5 + h / 3.0 * (0..=steps).map(|i| weight(i) * density(h * f64::from(i))).sum::<f64>()
}

#[test]
fn words_are_the_lanes_of_published_blocks() {
    // Seed, stream and counter of the third known answer, whose block number is the first two words.
    let (seed, stream) = (0x299f_31d0_a409_3822, 0x0370_7344_1319_8a2e);
    let block = 0x85a3_08d3_243f_6a88u64;
    // A position has 64 bits and a block four words: the top two bits of the number are not
    // reachable, so the block is computed directly.
    let rng = Rng::from_state(RngState { seed, stream, position: 0 });
    assert_eq!(rng.block(block), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    let mut zero = Rng::seed(0);
    assert_eq!(zero.next_u64(), 0xe169_c58d_6627_e8d5);
    assert_eq!(zero.next_u32(), 0xbc57_ac4c);
    assert_eq!(zero.next_u32(), 0x9b00_dbd8);
}

#[test]
fn values_do_not_depend_on_portions_or_resumption() {
    fn check<T: RandomFloat>(words: u64) {
        // Large enough to be split among threads.
        const LEN: usize = 20_000;
        let whole_normal = Rng::seed(5).normal_vec::<T>(LEN).unwrap();
        let whole_uniform = Rng::seed(5).uniform_vec::<T>(LEN, -2.0..3.0).unwrap();
        for portion in [1, 3, 10, 257, LEN - 1] {
            let (mut normals, mut uniforms) = (Rng::seed(5), Rng::seed(5));
            let (mut normal, mut uniform) = (Vec::new(), Vec::new());
            for start in (0..LEN).step_by(portion) {
                let len = portion.min(LEN - start);
                normal.extend(normals.normal_vec::<T>(len).unwrap());
                uniform.extend(uniforms.uniform_vec::<T>(len, -2.0..3.0).unwrap());
                uniforms = Rng::from_state(uniforms.state());
            }
            assert_eq!(normal, whole_normal);
            assert_eq!(uniform, whole_uniform);
            normals.next_u32();
            assert_eq!(normals, Rng::from_state(normals.state()));
        }
        for i in [0, 1, 255, 256, 9_999, LEN - 1] {
            let position = i as u64 * words;
            let mut rng = Rng::from_state(RngState { seed: 5, stream: 0, position });
            assert_eq!(rng.normal::<T>(), whole_normal[i]);
            assert_eq!(rng.state().position, position + words);
        }
    }
    check::<f32>(1);
    check::<f64>(2);
}

#[test]
fn uniform_numbers_follow_the_uniform_distribution() {
    fn check<T: RandomFloat>() {
        let values = Rng::seed(11).uniform_vec::<T>(N, 0.0..1.0).unwrap();
        let values: Vec<f64> = values.into_iter().map(T::to_f64).collect();
        assert!(values.iter().all(|x| (0.0..1.0).contains(x)));
        let (mean, variance) = moments(&values);
        assert!((mean - 0.5).abs() < 4.0 * (1.0 / 12.0 / N as f64).sqrt(), "{mean}");
        assert!((variance - 1.0 / 12.0).abs() < 1e-3, "{variance}");
        assert!(kolmogorov_smirnov(values, |x| x) < 2.0);
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn normal_numbers_follow_the_normal_distribution() {
    fn check<T: RandomFloat>() {
        let values = Rng::seed(12).stream(3).normal_vec::<T>(N).unwrap();
        let values: Vec<f64> = values.into_iter().map(T::to_f64).collect();
        let (mean, variance) = moments(&values);
        assert!(mean.abs() < 4.0 / (N as f64).sqrt(), "{mean}");
        assert!((variance - 1.0).abs() < 4.0 * (2.0 / N as f64).sqrt(), "{variance}");
        assert!(kolmogorov_smirnov(values, normal_cdf) < 2.0);
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn the_upper_bound_is_excluded_after_rounding() {
    let one_step = 1.0..f64::from(1f32.next_up());
    assert!(Rng::seed(1).uniform_vec::<f32>(1000, one_step).unwrap().iter().all(|&x| x == 1.0));
    let wide = Rng::seed(1).uniform_vec::<f64>(1000, f64::MIN..f64::MAX).unwrap();
    assert!(wide.iter().all(|x| (f64::MIN..f64::MAX).contains(x)));
    assert!(wide.iter().any(|x| *x < 0.0) && wide.iter().any(|x| *x > 0.0));
    let large = Rng::seed(1).uniform_vec::<f32>(N, 16777210.0..16777216.0).unwrap();
    assert!(large.iter().all(|x| (16777210.0..16777216.0).contains(x)));
}

#[test]
fn ranges_without_numbers_are_errors() {
    for range in [1.0..1.0, 2.0..1.0, f64::NAN..1.0, 0.0..f64::INFINITY, 1.0..1.0 + 1e-12] {
        let error = Rng::seed(1).uniform_vec::<f32>(1, range).unwrap_err();
        assert!(error.to_string().starts_with("rand: the range"), "{error}");
    }
    assert!(Rng::seed(1).uniform_vec::<f64>(usize::MAX, 0.0..1.0).is_err());
}

#[test]
fn below_is_unbiased_and_bounded() {
    // Three quarters of 2^64: multiplication without rejection would make one result in three
    // twice as likely.
    let n = 3u64 << 62;
    let mut rng = Rng::seed(9);
    let mut counts = [0u32; 3];
    for _ in 0..30_000 {
        counts[(rng.below(n) % 3) as usize] += 1;
    }
    assert!(counts.iter().all(|count| count.abs_diff(10_000) < 400), "{counts:?}");
    assert_eq!(rng.below(0), 0);
    assert_eq!(rng.below(1), 0);
}

#[test]
fn all_permutations_are_equally_likely() {
    let mut rng = Rng::seed(2);
    let mut counts = std::collections::BTreeMap::<Vec<i64>, u32>::new();
    for _ in 0..24_000 {
        *counts.entry(rng.permutation(4).unwrap()).or_default() += 1;
    }
    assert_eq!(counts.len(), 24);
    assert!(counts.values().all(|count| count.abs_diff(1000) < 150), "{counts:?}");
}

#[test]
fn bernoulli_follows_its_probability() {
    let mut rng = Rng::seed(8);
    let hits = (0..100_000).filter(|_| rng.bernoulli(0.3)).count();
    assert!(hits.abs_diff(30_000) < 600, "{hits}");
    assert!((0..1000).all(|_| rng.bernoulli(1.0) && !rng.bernoulli(0.0)));
}

#[test]
fn streams_and_splits_differ() {
    let mut rng = Rng::seed(1);
    let draws = |mut rng: Rng| (0..8).map(|_| rng.next_u64()).collect::<Vec<_>>();
    let child = rng.split();
    let others = [rng.stream(1), rng.stream(2), rng.stream(1 << 40), child, Rng::seed(2)];
    let mut all: Vec<u64> = others.into_iter().flat_map(draws).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 40);
}

#[test]
fn values_match_another_implementation() {
    // Computed with another implementation of Philox and of the inverse.
    let normals = [0.07882346885253207, 0.41011294279565164, 0.4480366278979281];
    for (got, expected) in Rng::seed(42).normal_vec::<f64>(3).unwrap().into_iter().zip(normals) {
        assert!((got - expected).abs() < 4e-16, "{got} {expected}");
    }
    let uniforms = [0.6129598617553711, 0.4685865044593811, 0.07323169708251953];
    let got = Rng::seed(42).uniform_vec::<f32>(3, 0.0..1.0).unwrap();
    assert_eq!(got.into_iter().map(f64::from).collect::<Vec<_>>(), uniforms);
    // The bits are part of the contract: the same on every machine and instruction set.
    let digest = |bits: Vec<u64>| bits.iter().fold(0, |sum: u64, x| sum.rotate_left(7) ^ x);
    let normals = Rng::seed(42).normal_vec::<f64>(4096).unwrap();
    assert_eq!(digest(normals.into_iter().map(f64::to_bits).collect()), 0xb78a_2e30_0e75_2058);
}

//! Functions of rows, dropout and optimizer steps against simple `f64` loops, with the same bits on
//! every instruction set, alone or in a matrix.

use swath_kernels::testing::with_isa;
use swath_kernels::{
    Adam, CrossEntropyRows, Dropout, Isa, LayerNormGradRows, LayerNormRows, Rows, Sgd, adam,
    cross_entropy_grad_rows, cross_entropy_rows, dropout, layer_norm_grad_rows, layer_norm_rows,
    log_softmax, log_softmax_grad_rows, log_softmax_rows, logsumexp, sgd, softmax,
    softmax_grad_rows, softmax_rows,
};

/// A small generator (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn fill<E: Rows>(&mut self, len: usize, scale: f64) -> Box<[E]> {
        (0..len).map(|_| E::from_f64(scale * self.next())).collect()
    }
}

/// Lengths around vectors, groups of sixteen and blocks of 1024.
const COLUMNS: [usize; 15] = [1, 2, 7, 8, 15, 16, 17, 31, 33, 100, 1023, 1024, 1040, 2049, 3100];

fn wide<E: Rows>(x: &[E]) -> Vec<f64> {
    x.iter().map(|x| x.to_f64()).collect()
}

/// `|got - want| <= bound`, element by element.
fn assert_within<E: Rows>(what: &str, got: &[E], want: &[f64], bound: impl Fn(usize) -> f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let (got, bound) = (got.to_f64(), bound(i));
        let error = (got - want).abs();
        assert!(
            error <= bound,
            "{what}, element {i}: {got:e}, not {want:e}: {error:e} > {bound:e}"
        );
    }
}

/// The unit roundoff.
fn roundoff<E: Rows>() -> f64 {
    if size_of::<E>() == 4 { 2f64.powi(-24) } else { 2f64.powi(-53) }
}

/// Runs a test for both types on every instruction set of the machine.
fn on_every_isa(f: impl Fn(), g: impl Fn()) {
    for isa in Isa::ALL {
        match with_isa(isa, || (f(), g())) {
            Some(_) => {}
            None => println!("SKIPPED {isa}: this machine lacks it"),
        }
    }
}

fn check_softmax<E: Rows>() {
    let u = roundoff::<E>();
    let mut random = Random(3);
    for cols in COLUMNS {
        let of_f64 = 2f64.powi(-52) * cols as f64;
        let mut x = random.fill::<E>(2 * cols, 9.0);
        let g = random.fill::<E>(2 * cols, 2.0);
        // The second row's differences all round in the same direction, by nearly half an ULP.
        x[cols..].fill(E::from_f64(-8.01));
        x[cols] = E::from_f64(15.84 * u);
        let (mut y, mut log_y) = (vec![E::NAN; 2 * cols], vec![E::NAN; 2 * cols]);
        softmax_rows(&x, cols, &mut y);
        log_softmax_rows(&x, cols, &mut log_y);
        for row in 0..2 {
            let span = row * cols..(row + 1) * cols;
            let x_row = &x[span.clone()];
            let x = wide(x_row);
            let most = x.iter().copied().fold(f64::MIN, f64::max);
            let sum: f64 = x.iter().map(|x| (x - most).exp()).sum();
            let want: Vec<f64> = x.iter().map(|x| (x - most).exp() / sum).collect();
            let spread: f64 = x.iter().zip(&want).map(|(x, y)| y * (x - most).abs()).sum();
            // The documented bounds, and the error of the reference in f64. In the first row the rounding
            // errors of the other differences cancel.
            let (constant, spread) = if row == 0 { (3.2, 0.0) } else { (4.3, spread) };
            assert_within("softmax", &y[span.clone()], &want, |i| {
                (constant + (x[i] - most).abs() + spread) * u * want[i] + of_f64 * want[i]
            });
            let want: Vec<f64> = x.iter().map(|x| x - most - sum.ln()).collect();
            let bound = (1.2 + spread) * u + (sum.ln() + most).abs() * u + of_f64;
            let lse = logsumexp(x_row);
            assert!((lse.to_f64() - most - sum.ln()).abs() <= bound, "logsumexp of {cols}");
            assert_within("log_softmax", &log_y[span], &want, |i| {
                u * ((x[i] - most).abs() + spread + 2.0 * sum.ln() + want[i].abs() + 2.0) + of_f64
            });
        }
        let (mut dx, mut log_dx) = (vec![E::NAN; 2 * cols], vec![E::NAN; 2 * cols]);
        softmax_grad_rows(&g, &y, cols, &mut dx);
        log_softmax_grad_rows(&g, &log_y, cols, &mut log_dx);
        for row in 0..2 {
            let span = row * cols..(row + 1) * cols;
            let (g, y) = (wide(&g[span.clone()]), wide(&y[span.clone()]));
            let along: f64 = g.iter().zip(&y).map(|(g, y)| g * y).sum();
            let want: Vec<f64> = g.iter().zip(&y).map(|(g, y)| y * (g - along)).collect();
            assert_within("softmax_grad", &dx[span.clone()], &want, |i| {
                8.0 * u * y[i] * (g[i].abs() + along.abs()) + (u * 1e-3 + of_f64) * y[i]
            });
            let log_y = wide(&log_y[span.clone()]);
            let sum: f64 = g.iter().sum();
            let want: Vec<f64> = g.iter().zip(&log_y).map(|(g, y)| g - y.exp() * sum).collect();
            assert_within("log_softmax_grad", &log_dx[span], &want, |i| {
                4.0 * u * (g[i].abs() + log_y[i].exp() * (sum.abs() + cols as f64))
            });
        }
    }
}

#[test]
fn softmax_is_within_its_documented_bounds() {
    on_every_isa(check_softmax::<f32>, check_softmax::<f64>);
}

/// For logits of any size, probabilities depend only on their differences.
fn check_cross_entropy<E: Rows>() {
    let u = roundoff::<E>();
    let mut random = Random(5);
    for cols in COLUMNS {
        let log_cols = (cols as f64).ln();
        let of_f64 = 2f64.powi(-52) * cols as f64;
        let targets = [0, cols as i64 - 1, -100, cols as i64 / 2];
        for (offset, smoothing) in [(0.0, 0.0), (0.0, 0.1), (1e3, 0.0), (-1e5, 0.1), (0.0, 1.0)] {
            let near = random.fill::<E>(4 * cols, 6.0);
            let logits: Vec<E> = near.iter().map(|x| E::from_f64(x.to_f64() + offset)).collect();
            let rows = CrossEntropyRows {
                logits: &logits,
                targets: &targets,
                ignore_index: Some(-100),
                label_smoothing: smoothing,
            };
            let [mut losses, mut largest, mut rest] = [(); 3].map(|()| vec![E::NAN; 4]);
            cross_entropy_rows(rows, &mut losses, &mut largest, &mut rest);
            let g = random.fill::<E>(4, 1.0);
            let mut dx = vec![E::NAN; 4 * cols];
            cross_entropy_grad_rows(rows, &g, &largest, &rest, &mut dx);
            for (row, &target) in targets.iter().enumerate() {
                let x = wide(&logits[row * cols..][..cols]);
                let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let e: Vec<f64> = x.iter().map(|x| (x - most).exp()).collect();
                let beside = |k: Option<usize>| -> f64 {
                    e.iter().enumerate().filter(|&(i, _)| Some(i) != k).map(|(_, e)| e).sum()
                };
                let sum = beside(None);
                assert_eq!(largest[row].to_f64(), most);
                let first = x.iter().position(|&x| x == most);
                let of_others = |k: usize| if Some(k) == first { 0.0 } else { e[k] };
                let size = (0..cols).map(|k| of_others(k) * (most - x[k] + 4.0)).sum::<f64>();
                let of_sum = if cols == 1 { 0.0 } else { of_f64 };
                assert_within("Σ", &rest[row..=row], &[beside(first)], |_| u * size + of_sum);
                let dx = &dx[row * cols..][..cols];
                if target == -100 {
                    assert!(losses[row].to_f64() == 0.0 && dx.iter().all(|x| x.to_f64() == 0.0));
                    continue;
                }
                let target = target as usize;
                let (x_target, spread) = (x[target], smoothing / cols as f64);
                let above: f64 = x.iter().map(|x| x_target - x).sum::<f64>() / cols as f64;
                let want = (most - x_target) + sum.ln() + smoothing * above;
                let exact = 2f64.powi(-52) * (2.0 + 4.0 * smoothing * offset.abs()) + of_f64;
                assert_within("loss", &losses[row..=row], &[want], |_| {
                    u * (want.abs() + log_cols + 4.0) + exact
                });
                let g = g[row].to_f64();
                // Terms that depend on the logits, and terms that do not.
                let parts = |k: usize| match k == target {
                    true if smoothing < 0.5 => (-beside(Some(k)) / sum, smoothing - spread),
                    true => (e[k] / sum, smoothing - 1.0 - spread),
                    false => (e[k] / sum, -spread),
                };
                let want: Vec<f64> =
                    (0..cols).map(parts).map(|(p, fixed)| g * (p + fixed)).collect();
                assert_within("gradient", dx, &want, |k| {
                    let (p, fixed) = parts(k);
                    let of_p = p.abs() * (most - x[k] + log_cols + 8.0);
                    let of_sum = if k == target { of_f64 } else { of_f64 * p };
                    // For any p, at most four ULP of the upstream gradient.
                    g.abs() * (u * (of_p + 3.0 * fixed.abs()) + of_sum).min(4.0 * u)
                });
            }
        }
    }
}

#[test]
fn cross_entropy_matches_plain_sums() {
    on_every_isa(check_cross_entropy::<f32>, check_cross_entropy::<f64>);
}

#[test]
fn losses_near_zero_and_their_gradients_keep_relative_accuracy() {
    // ln(1 + e^-20) beside logits of 50: ln Σ e^x alone would be exactly 50, and p of the target 1.
    let rows = CrossEntropyRows {
        logits: &[50.0f32, 30.0],
        targets: &[0],
        ignore_index: None,
        label_smoothing: 0.0,
    };
    let [mut loss, mut largest, mut rest] = [[0f32]; 3];
    cross_entropy_rows(rows, &mut loss, &mut largest, &mut rest);
    let e = (-20f64).exp();
    let near = |x: f32, want: f64| assert!((f64::from(x) / want - 1.0).abs() < 1e-6, "{x} {want}");
    near(loss[0], e.ln_1p());
    let mut dx = [0f32; 2];
    cross_entropy_grad_rows(rows, &[1.0], &largest, &rest, &mut dx);
    near(dx[0], -e / (1.0 + e));
    near(dx[1], e / (1.0 + e));
}

fn check_layer_norm<E: Rows>() {
    let u = roundoff::<E>();
    let mut random = Random(7);
    for cols in COLUMNS {
        for offset in [0.0, 300.0, 1e4] {
            let mut x = random.fill::<E>(3 * cols, 2.0);
            x.iter_mut().for_each(|x| *x = E::from_f64(x.to_f64() + offset));
            let (g, w, b) =
                (random.fill::<E>(3 * cols, 1.0), random.fill(cols, 2.0), random.fill(cols, 1.0));
            for (weight, bias) in [
                (Some(&w[..]), Some(&b[..])),
                (Some(&w[..]), None),
                (None, Some(&b[..])),
                (None, None),
            ] {
                let rows = LayerNormRows { x: &x, weight, bias, eps: 1e-3 };
                let mut y = vec![E::NAN; 3 * cols];
                let (mut mean, mut deviation) = (vec![E::NAN; 3], vec![E::NAN; 3]);
                layer_norm_rows(rows, &mut y, &mut mean, &mut deviation);
                let of = |p: Option<&[E]>, k: usize, or: f64| p.map_or(or, |p| p[k].to_f64());
                let mut dx = vec![E::NAN; 3 * cols];
                let (mut dw, mut db) = (vec![0.5; cols], vec![-0.25; cols]);
                let deviation_of = wide(&deviation);
                let gradient =
                    LayerNormGradRows { g: &g, x: &x, weight, reciprocal_deviation: &deviation };
                layer_norm_grad_rows(gradient, &mut dx, &mut dw, &mut db);
                let (mut want_dw, mut want_db) = (vec![0.5; cols], vec![-0.25; cols]);
                for row in 0..3 {
                    let span = row * cols..(row + 1) * cols;
                    let (x, g) = (wide(&x[span.clone()]), wide(&g[span.clone()]));
                    let n = cols as f64;
                    let mu = x.iter().sum::<f64>() / n;
                    let r = (x.iter().map(|x| (x - mu).powi(2)).sum::<f64>() / n + 1e-3).sqrt();
                    // The error of f64 sums of that size.
                    let lost = 2f64.powi(-50) * (offset + 2.0) * n.sqrt();
                    assert_within("mean", &mean[row..=row], &[mu], |_| u * mu.abs() + lost);
                    let want: Vec<f64> = (0..cols)
                        .map(|k| (x[k] - mu) / r * of(weight, k, 1.0) + of(bias, k, 0.0))
                        .collect();
                    assert_within("layer_norm", &y[span.clone()], &want, |k| {
                        let normal = (x[k] - mu).abs() / r * of(weight, k, 1.0).abs();
                        u * (5.0 * normal + want[k].abs()) + 4.0 * lost / r + u * 1e-2
                    });
                    // The gradients use the deviations as they were rounded.
                    let r = deviation_of[row];
                    let normal: Vec<f64> = x.iter().map(|x| (x - mu) * r).collect();
                    let h: Vec<f64> = (0..cols).map(|k| g[k] * of(weight, k, 1.0)).collect();
                    let a = h.iter().sum::<f64>() / n;
                    let along = h.iter().zip(&normal).map(|(h, x)| h * x).sum::<f64>() / n;
                    let want: Vec<f64> =
                        (0..cols).map(|k| r * (h[k] - a - normal[k] * along)).collect();
                    assert_within("dx", &dx[span], &want, |k| {
                        let size = h[k].abs() + a.abs() + (normal[k] * along).abs() + 0.2;
                        let off = r * r * lost * (along.abs() + (normal[k] * a).abs());
                        8.0 * u * r * size + 4.0 * off
                    });
                    for k in 0..cols {
                        want_dw[k] += g[k] * normal[k];
                        want_db[k] += g[k];
                    }
                }
                assert_within("dweight", &dw, &want_dw, |_| 1e-14 * (1.0 + offset));
                assert_within("dbias", &db, &want_db, |_| 1e-14);
            }
        }
    }
}

#[test]
fn layer_norm_matches_plain_sums() {
    on_every_isa(check_layer_norm::<f32>, check_layer_norm::<f64>);
}

#[test]
fn special_values_make_only_their_own_row_nan() {
    for isa in Isa::ALL {
        let ran = with_isa(isa, || {
            for cols in [1, 5, 40] {
                for special in [f32::NAN, f32::INFINITY] {
                    for at in 0..cols {
                        let mut x = vec![1.0f32; 2 * cols];
                        x[at] = special;
                        let (mut y, mut z) = (vec![0.0; 2 * cols], vec![0.0; 2 * cols]);
                        softmax_rows(&x, cols, &mut y);
                        log_softmax_rows(&x, cols, &mut z);
                        let (mut n, mut m, mut r) = (y.clone(), vec![0.0; 2], vec![0.0; 2]);
                        let rows = LayerNormRows { x: &x, weight: None, bias: None, eps: 1.0 };
                        layer_norm_rows(rows, &mut n, &mut m, &mut r);
                        for y in [y, z, n] {
                            assert!(
                                y[..cols].iter().all(|y| y.is_nan()),
                                "{special} {at} of {cols}"
                            );
                            assert!(y[cols..].iter().all(|y| y.is_finite()));
                        }
                    }
                }
                let mut y = vec![0.0; cols];
                softmax(&vec![f32::NEG_INFINITY; cols], &mut y);
                assert!(y.iter().all(|y| y.is_nan()));
            }
            let mut y = [0.0f32; 3];
            softmax(&[f32::NEG_INFINITY, 1e30, -1e30], &mut y);
            assert_eq!(y, [0.0, 1.0, 0.0]);
            log_softmax(&[f32::NEG_INFINITY, 1e30, -1e30], &mut y);
            assert_eq!(y, [f32::NEG_INFINITY, 0.0, -2e30]);
            let rows = LayerNormRows { x: &[1e30, -1e30], weight: None, bias: None, eps: 1e-5 };
            let (mut y, mut m, mut r) = ([0.0f32; 2], [0.0], [0.0]);
            layer_norm_rows(rows, &mut y, &mut m, &mut r);
            assert_eq!((y, m, r), ([1.0, -1.0], [0.0], [1e-30]));
        });
        if ran.is_none() {
            println!("SKIPPED {isa}: this machine lacks it");
        }
    }
    softmax::<f32>(&[], &mut []);
    softmax_rows::<f64>(&[], 0, &mut []);
}

#[test]
fn softmax_of_a_million_sums_to_one() {
    let x = Random(3).fill::<f32>(1_000_000, 4.0);
    let mut y = vec![0.0; x.len()];
    softmax(&x, &mut y);
    let sum: f64 = y.iter().map(|&y| f64::from(y)).sum();
    assert!((sum - 1.0).abs() <= 2e-7, "{sum}");
}

/// Bits of all results of the row kernels for some inputs.
fn bits<E: Rows>(cols: usize, shift: usize) -> Vec<u64> {
    let mut random = Random(11);
    let mut of = |len: usize, scale: f64| random.fill::<E>(len + shift, scale);
    let (x, g) = (of(3 * cols, 8.0), of(3 * cols, 1.0));
    let (w, b) = (of(cols, 2.0), of(cols, 1.0));
    let (x, g, w, b) = (&x[shift..], &g[shift..], &w[shift..], &b[shift..]);
    let mut out = Vec::new();
    let mut keep = |y: &[E]| {
        out.extend(y.iter().map(|y| y.to_f64()).map(|y| if y.is_nan() { 1 } else { y.to_bits() }));
    };
    let (mut y, mut dx) = (vec![E::NAN; 3 * cols], vec![E::NAN; 3 * cols]);
    softmax_rows(x, cols, &mut y);
    softmax_grad_rows(g, &y, cols, &mut dx);
    keep(&y);
    keep(&dx);
    log_softmax_rows(x, cols, &mut y);
    log_softmax_grad_rows(g, &y, cols, &mut dx);
    keep(&y);
    keep(&dx);
    let targets = [0, -1, cols as i64 - 1];
    let rows = CrossEntropyRows {
        logits: x,
        targets: &targets,
        ignore_index: Some(-1),
        label_smoothing: 0.2,
    };
    let [mut one, mut other, mut third] = [(); 3].map(|()| vec![E::NAN; 3]);
    cross_entropy_rows(rows, &mut one, &mut other, &mut third);
    cross_entropy_grad_rows(rows, &g[..3], &other, &third, &mut dx);
    keep(&one);
    keep(&other);
    keep(&third);
    keep(&dx);
    let rows = LayerNormRows { x, weight: Some(w), bias: Some(b), eps: 1e-5 };
    layer_norm_rows(rows, &mut y, &mut one, &mut other);
    let rows = LayerNormGradRows { g, x, weight: Some(w), reciprocal_deviation: &other };
    let (mut dw, mut db) = (vec![0.0; cols], vec![0.0; cols]);
    layer_norm_grad_rows(rows, &mut dx, &mut dw, &mut db);
    keep(&y);
    keep(&dx);
    let mask = Dropout { p: 0.3, seed: 9, stream: 4, first: 8 };
    dropout(mask, x, &mut y);
    keep(&y);
    let step = Sgd {
        rate: 0.1,
        momentum: 0.9,
        dampening: 0.2,
        weight_decay: 0.01,
        nesterov: true,
        first: false,
    };
    let (mut p, mut m, mut v) = (x.to_vec(), g.to_vec(), x.to_vec());
    sgd(step, &mut p, g, Some(&mut m));
    keep(&p);
    keep(&m);
    v.iter_mut().for_each(|v| *v = E::from_f64(v.to_f64().abs()));
    let step = Adam {
        rate: 0.1,
        betas: [0.9, 0.99],
        eps: 1e-8,
        weight_decay: 0.01,
        decoupled: true,
        step: 3,
    };
    adam(step, &mut p, g, &mut m, &mut v);
    keep(&p);
    keep(&m);
    keep(&v);
    out.extend(dw.iter().chain(&db).map(|x| x.to_bits()));
    out
}

#[test]
fn every_isa_and_alignment_gives_the_same_bits() {
    for cols in COLUMNS {
        let expected = with_isa(Isa::Scalar, || (bits::<f32>(cols, 0), bits::<f64>(cols, 0)));
        for isa in Isa::ALL {
            match with_isa(isa, || (bits::<f32>(cols, 0), bits::<f64>(cols, 0))) {
                Some(bits) => assert!(Some(bits) == expected, "{isa}, {cols} columns"),
                None => println!("SKIPPED {isa}: this machine lacks it"),
            }
        }
        let mut random = Random(13);
        let x = random.fill::<f32>(3 * cols + 3, 8.0);
        let (mut all, mut alone) = (vec![0.0; 3 * cols], vec![0.0; cols]);
        softmax_rows(&x[3..], cols, &mut all);
        softmax(&x[3 + cols..][..cols], &mut alone);
        assert_eq!(all[cols..2 * cols], alone, "a row alone and in a matrix");
    }
}

/// The tree of `sum`, also beyond three blocks: g − e^0·Σg.
#[test]
fn sums_of_long_rows_follow_the_pairwise_tree() {
    let mut g = Random(17).fill::<f64>(5 * 1024 + 9, 1.0);
    g[0] = 0.0;
    let mut dx = vec![f64::NAN; g.len()];
    log_softmax_grad_rows(&g, &vec![0.0; g.len()], g.len(), &mut dx);
    assert_eq!(dx[0], -swath_kernels::sum(&g));
}

#[test]
fn overflowing_squares_of_f64_give_a_row_of_zeros() {
    let (mut y, mut mean, mut r) = ([f64::NAN; 2], [f64::NAN], [f64::NAN]);
    let rows = LayerNormRows { x: &[1e200, -1e200], weight: None, bias: None, eps: 0.0 };
    layer_norm_rows(rows, &mut y, &mut mean, &mut r);
    assert_eq!((y, mean, r), ([0.0; 2], [0.0], [0.0]));
}

#[test]
fn wrong_lengths_panic() {
    let panics = |f: fn()| std::panic::catch_unwind(f).is_err();
    assert!(panics(|| softmax(&[1.0f32, 2.0], &mut [0.0; 3])));
    assert!(panics(|| softmax_rows(&[1.0f32, 2.0, 3.0], 2, &mut [0.0; 3])));
    assert!(panics(|| softmax_grad_rows(&[1.0f32; 2], &[1.0; 4], 2, &mut [0.0; 4])));
    let rows = |targets: &'static [i64]| CrossEntropyRows {
        logits: &[1.0f32, 2.0, 3.0, 4.0],
        targets,
        ignore_index: None,
        label_smoothing: 0.0,
    };
    let losses = |targets: &'static [i64], len: usize| {
        let run = move |lens: [usize; 3]| {
            let [mut losses, mut largest, mut rest] = lens.map(|len| vec![0.0; len]);
            cross_entropy_rows(rows(targets), &mut losses, &mut largest, &mut rest);
        };
        let panics = |lens| std::panic::catch_unwind(|| run(lens)).is_err();
        let wrong = [[len, 2, 2], [2, len, 2], [2, 2, len]].map(panics);
        assert!(wrong == [wrong[0]; 3]);
        wrong[0]
    };
    assert!(!losses(&[0, 1], 2));
    assert!(losses(&[0, 1], 3) && losses(&[0, 2], 2) && losses(&[-1, 0], 2) && losses(&[0; 3], 2));
    assert!(panics(|| {
        let rows = LayerNormRows { x: &[1.0f32; 6], weight: Some(&[1.0; 2]), bias: None, eps: 0.0 };
        layer_norm_rows(rows, &mut [0.0; 6], &mut [0.0; 2], &mut [0.0; 2]);
    }));
    assert!(panics(|| {
        let mask = Dropout { p: 0.5, seed: 0, stream: 0, first: 2 };
        dropout(mask, &[1.0f32; 2], &mut [0.0; 2]);
    }));
    assert!(panics(|| {
        let step = Adam {
            rate: 0.1,
            betas: [0.9, 0.99],
            eps: 1e-8,
            weight_decay: 0.0,
            decoupled: false,
            step: 1,
        };
        adam(step, &mut [0.0f32; 2], &[0.0; 2], &mut [0.0; 2], &mut [0.0; 3]);
    }));
}

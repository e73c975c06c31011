//! Rms norm of rows against simple `f64` loops, with the same bits on every instruction set.

use crate::reference::DoubleDouble;
use swath_kernels::testing::with_isa;
use swath_kernels::{
    Isa, RmsNormGradRows, RmsNormRows, Rows, philox_words, rms_norm_grad_rows, rms_norm_rows,
};

/// Lengths around vectors, groups of sixteen and blocks of 1024.
const COLUMNS: [usize; 12] = [0, 1, 3, 7, 8, 15, 17, 33, 100, 1024, 1031, 2500];
const ROWS: usize = 3;

fn random<E: Rows>(len: usize, scale: f64, stream: u64) -> Vec<E> {
    let mut words = vec![0u32; len];
    philox_words(7, stream, 0, &mut words);
    words.iter().map(|&word| E::from_f64(scale * (f64::from(word) / 2f64.powi(31) - 1.0))).collect()
}

fn near<E: Rows>(what: &str, got: E, want: impl Into<DoubleDouble>, bound: f64) {
    let want = want.into();
    let error = (DoubleDouble::from(got.to_f64()) - want).high.abs();
    assert!(error <= bound, "{what}: {got:?}, not {want:?}: {error:e} > {bound:e}");
}

/// `√(mean x² + eps)`, far more precise than `f64`.
fn root_mean_square(x: &[f64], eps: f64) -> DoubleDouble {
    let zero = DoubleDouble::from(0.0);
    let squares = x.iter().fold(zero, |sum, &x| sum + DoubleDouble::from(x) * x.into());
    let mean = squares / (x.len() as f64).into() + eps.into();
    let root = DoubleDouble::from(mean.high.sqrt());
    root + (mean - root * root) / (2.0 * root.high).into()
}

/// Checks a matrix and returns the bits of all results.
fn check<E: Rows>(cols: usize, scale: f64, weighted: bool) -> Vec<u64> {
    // The rounding, and the relative error of 1/rms: one rounding for f32; sum, root and division
    // for f64.
    let (u, statistic) = match size_of::<E>() {
        4 => (2f64.powi(-24), 1.1 * 2f64.powi(-24)),
        _ => (2f64.powi(-53), 2.0 * 2f64.powi(-53)),
    };
    let eps = 1e-3;
    let (x, g) = (random::<E>(ROWS * cols, scale, 0), random::<E>(ROWS * cols, 1.0, 1));
    let w = random::<E>(cols, 2.0, 2);
    let weight = weighted.then_some(&w[..]);
    let of = |k: usize| weight.map_or(1.0, |w| w[k].to_f64());
    let (mut y, mut r) = (vec![E::NAN; ROWS * cols], vec![E::NAN; ROWS]);
    rms_norm_rows(RmsNormRows { x: &x, weight, eps }, &mut y, &mut r);
    let (mut dx, mut dw) = (y.clone(), vec![0.5; cols]);
    let rows = RmsNormGradRows { g: &g, x: &x, weight, reciprocal_rms: &r };
    rms_norm_grad_rows(rows, &mut dx, &mut dw);
    let (mut want_dw, mut size_dw) = (vec![0.5; cols], vec![1.0; cols]);
    for row in 0..ROWS {
        let wide = |a: &[E]| a[row * cols..][..cols].iter().map(|x| x.to_f64()).collect::<Vec<_>>();
        let (x, g, y, dx) = (wide(&x), wide(&g), wide(&y), wide(&dx));
        let n = cols as f64;
        let rms = root_mean_square(&x, eps);
        if cols > 0 {
            let want = DoubleDouble::from(1.0) / rms;
            near("1/rms", r[row], want, statistic * want.high);
        }
        let reciprocal = r[row].to_f64();
        let normal: Vec<f64> = x.iter().map(|x| x * reciprocal).collect();
        let h: Vec<f64> = (0..cols).map(|k| g[k] * of(k)).collect();
        let along = h.iter().zip(&normal).map(|(h, x)| h * x).sum::<f64>() / n;
        let sizes = h.iter().zip(&normal).map(|(h, x)| (h * x).abs()).sum::<f64>() / n;
        for k in 0..cols {
            let want = DoubleDouble::from(x[k]) / rms * of(k).into();
            let bound = (2.0 * u + statistic).min(3.5 * u) * want.high.abs() + f64::MIN_POSITIVE;
            near("y", E::from_f64(y[k]), want, bound);
            let want = reciprocal * (h[k] - normal[k] * along);
            let size = reciprocal * (h[k].abs() + normal[k].abs() * sizes);
            near("dx", E::from_f64(dx[k]), want, 6.0 * u * size + 2f64.powi(-50) * size);
            want_dw[k] += g[k] * normal[k];
            size_dw[k] += (g[k] * normal[k]).abs();
        }
    }
    for k in 0..cols {
        near("dweight", dw[k], want_dw[k], 2f64.powi(-50) * size_dw[k]);
    }
    let bits = |x: &f64| if x.is_nan() { 1 } else { x.to_bits() };
    let results = [y, dx, r].concat();
    results.iter().map(|x| bits(&x.to_f64())).chain(dw.iter().map(bits)).collect()
}

#[test]
fn rms_norm_matches_plain_sums_with_the_same_bits_on_every_isa() {
    for cols in COLUMNS {
        for (scale, weighted) in [(2.0, true), (1e18, false), (3e-3, true)] {
            let of = |isa| {
                with_isa(isa, || {
                    [check::<f32>(cols, scale, weighted), check::<f64>(cols, scale, weighted)]
                })
            };
            let want = of(Isa::Scalar).expect("every machine has it");
            for isa in Isa::ALL {
                match of(isa) {
                    Some(got) => assert!(got == want, "{isa}, {cols} columns"),
                    None => println!("SKIPPED {isa}: this machine lacks it"),
                }
            }
        }
    }
}

#[test]
fn rms_norm_of_special_values_and_wrong_lengths() {
    let of = |x: &[f32]| {
        let (mut y, mut r) = (vec![9.0; x.len()], [9.0]);
        rms_norm_rows(RmsNormRows { x, weight: None, eps: 0.0 }, &mut y, &mut r);
        (y, r[0])
    };
    assert!(of(&[1.0, f32::NAN, 2.0]).0.iter().all(|y| y.is_nan()));
    let (y, r) = of(&[1.0, f32::INFINITY, -2.0]);
    assert!(y[0] == 0.0 && y[1].is_nan() && y[2] == 0.0 && r == 0.0);
    let (y, _) = of(&[3e38, -3e38]);
    assert!((y[0] - 1.0).abs() < 1e-6 && (y[1] + 1.0).abs() < 1e-6, "{y:?}");
    for (weight, rows, out) in [(3, 2, 4), (2, 3, 4), (2, 2, 5)] {
        let wrong = move || {
            let (x, weight) = ([1.0f32; 4], vec![1.0; weight]);
            let rows_of = RmsNormRows { x: &x, weight: Some(&weight), eps: 0.0 };
            rms_norm_rows(rows_of, &mut vec![0.0; out], &mut vec![0.0; rows]);
        };
        assert!(std::panic::catch_unwind(wrong).is_err(), "{weight} {rows} {out}");
    }
}

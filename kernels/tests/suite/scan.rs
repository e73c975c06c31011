//! Running sums and products are sequential in `f64`, bit for bit, along rows and down columns, on every
//! instruction set; the memory around the results must not change.

use swath_kernels::testing::with_isa;
use swath_kernels::{
    Isa, Rows, Scan, cumprod_columns, cumprod_rows, cumsum_columns, cumsum_rows, philox_words,
};

const BORDER: usize = 3;

fn random<E: Rows>(len: usize, low: f64, high: f64, stream: u64) -> Vec<E> {
    let mut words = vec![0u32; len];
    philox_words(11, stream, 0, &mut words);
    let unit = |word: &u32| f64::from(*word) / 2f64.powi(32);
    words.iter().map(|word| E::from_f64(low + (high - low) * unit(word))).collect()
}

fn bits<E: Rows>(x: &[E]) -> Vec<u64> {
    x.iter().map(|x| x.to_f64()).map(|x| if x.is_nan() { 1 } else { x.to_bits() }).collect()
}

/// Runs `f` on a slice, and checks that the elements around it do not change.
fn bordered<E: Rows>(len: usize, f: impl FnOnce(&mut [E])) -> Vec<E> {
    let mut y = vec![E::from_f64(77.0); len + 2 * BORDER];
    f(&mut y[BORDER..BORDER + len]);
    let border = y[..BORDER].iter().chain(&y[BORDER + len..]);
    assert!(border.into_iter().all(|y| y.to_f64() == 77.0), "written outside of {len} elements");
    y[BORDER..BORDER + len].to_vec()
}

fn check<E: Rows + Scan<Total = f64, Out = E>>(rows: usize, cols: usize) {
    for (product, low, high) in [(false, -1e3, 1e3), (false, 0.0, 1.0), (true, -2.0, 2.2)] {
        let mut x = random::<E>(rows * cols, low, high, (rows * 31 + cols) as u64);
        if cols > 5 {
            x[cols / 2] = E::from_f64(f64::INFINITY);
            x[rows * cols - 2] = E::from_f64(-0.0);
        }
        let start = if product { 1.0 } else { 0.0 };
        let join = |a: f64, b: f64| if product { a * b } else { a + b };
        let mut want = Vec::new();
        for row in x.chunks_exact(cols) {
            let mut total = start;
            for x in row {
                total = join(total, x.to_f64());
                want.push(E::from_f64(total));
            }
        }
        let context = format!("{rows} rows of {cols}, product: {product}");
        let y = bordered(rows * cols, |y: &mut [E]| match product {
            true => cumprod_rows(&x, cols, y),
            false => cumsum_rows(&x, cols, y),
        });
        assert!(bits(&y) == bits(&want), "along {context}");

        let transposed: Vec<E> = (0..cols * rows).map(|i| x[i % rows * cols + i / rows]).collect();
        for cut in [cols, cols / 2, 0] {
            let mut totals = vec![start; rows];
            let mut y = Vec::new();
            for x in [&transposed[..cut * rows], &transposed[cut * rows..]] {
                y.extend(bordered(x.len(), |y: &mut [E]| match product {
                    true => cumprod_columns(x, &mut totals, y),
                    false => cumsum_columns(x, &mut totals, y),
                }));
            }
            let y: Vec<E> = (0..rows * cols).map(|i| y[i % cols * rows + i / cols]).collect();
            assert!(bits(&y) == bits(&want), "down {context}, in two calls at {cut}");
        }
    }
}

#[test]
fn scans_are_sequential_in_f64() {
    for isa in Isa::ALL {
        let ran = with_isa(isa, || {
            for (rows, cols) in
                [(1, 1), (1, 40), (3, 7), (4, 8), (5, 9), (8, 16), (9, 17), (19, 130), (67, 33)]
            {
                check::<f32>(rows, cols);
                check::<f64>(rows, cols);
            }
        });
        if ran.is_none() {
            println!("SKIPPED {isa}: this machine lacks it");
        }
    }
}

#[test]
fn empty_scans_are_accepted_and_wrong_lengths_panic() {
    cumsum_rows::<f32>(&[], 0, &mut []);
    cumsum_columns::<f64>(&[], &mut [], &mut []);
    cumprod_columns::<f64>(&[], &mut [1.0; 3], &mut []);
    let panics = |f: fn()| std::panic::catch_unwind(f).is_err();
    assert!(panics(|| cumsum_rows(&[1.0f32; 3], 2, &mut [0.0; 3])));
    assert!(panics(|| cumsum_rows(&[1.0f32; 4], 2, &mut [0.0; 2])));
    assert!(panics(|| cumprod_columns(&[1.0f32; 4], &mut [1.0; 3], &mut [0.0; 4])));
}

//! A product with a bias: the bits of a product and of additions after it.

use swath_kernels::dispatch::with_isa;
use swath_kernels::{
    Float, Gemm, GemmError, Isa, MatMut, MatRef, Workspace, gemm, gemm_bias, testing,
};

fn values<E: Float>(len: usize, seed: u32) -> Vec<E> {
    let sample = testing::interval_sample_f64(-1.0, 1.0, len as u32 + seed);
    sample.skip(seed as usize).map(E::from_f64).collect()
}

/// Shapes that take every way through the loops: one and several blocks of k, B read in place,
/// streamed and packed, edges of tiles, and what has no elements.
const SHAPES: [[usize; 3]; 12] = [
    [1, 1, 1],
    [7, 3, 1],
    [5, 64, 33],
    [30, 300, 70],
    [64, 600, 129],
    [3, 700, 300],
    [6, 4, 1100],
    [12, 520, 520],
    [1, 513, 1030],
    [4, 0, 9],
    [0, 5, 6],
    [6, 5, 0],
];

fn check<E: Float + PartialEq>(of_bits: fn(E) -> u64) {
    let workspace = &mut Workspace::new();
    for [m, k, n] in SHAPES {
        let (a, b, bias) = (values::<E>(m * k, 1), values::<E>(k * n, 2), values::<E>(n, 3));
        for b_is_transposed in [false, true] {
            let a = MatRef::row_major(&a, [m, k]).unwrap();
            let b = match b_is_transposed {
                false => MatRef::row_major(&b, [k, n]).unwrap(),
                true => MatRef::row_major(&b, [n, k]).unwrap().t(),
            };
            let mut expected = vec![E::NAN; m * n];
            let c = MatMut::row_major(&mut expected, [m, n]).unwrap();
            gemm(Gemm { a, b, alpha: E::ONE, beta: E::ZERO }, c, workspace).unwrap();
            for row in expected.chunks_mut(n.max(1)) {
                row.iter_mut().zip(&bias).for_each(|(y, &bias)| *y = *y + bias);
            }
            for [down, right] in [[n, 1], [n + 3, 1], [1, m], [2 * n, 2]] {
                let mut c = vec![E::NAN; 2 * m * n + 3 * m];
                let strides = [down as isize, right as isize];
                let out = MatMut::new(&mut c, 0, [m, n], strides).unwrap();
                gemm_bias(a, b, &bias, out, workspace).unwrap();
                for i in 0..m * n {
                    let (y, expected) = (c[i / n * down + i % n * right], expected[i]);
                    let at = format!("{m} {k} {n}, {strides:?}: element {i}");
                    assert_eq!(of_bits(y), of_bits(expected), "{at}: {y:?}, not {expected:?}");
                }
            }
        }
    }
}

#[test]
fn a_bias_gives_the_bits_of_an_addition_after_the_product() {
    for isa in Isa::ALL {
        with_isa(isa, || {
            check::<f32>(|x| x.to_bits().into());
            check::<f64>(f64::to_bits);
        });
    }
}

#[test]
fn a_bias_of_another_length_is_an_error() {
    let (a, mut c) = ([1f32; 6], [0f32; 4]);
    let a = MatRef::row_major(&a, [2, 3]).unwrap();
    let c = MatMut::row_major(&mut c, [2, 2]).unwrap();
    let error = gemm_bias(a, a.t(), &[0.0; 3], c, &mut Workspace::new()).unwrap_err();
    assert_eq!(error, GemmError::ShapeMismatch { a: [2, 3], b: [3, 2], c: [1, 3] });
}

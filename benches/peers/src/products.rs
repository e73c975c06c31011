//! Matrix products beside those of other crates.

use std::hint::black_box;

use swath_kernels::{Gemm, MatMut, MatRef, Workspace};

use crate::race::{Rival, race};
use crate::support::values;

/// C = A·B of square row-major matrices.
pub fn products(size: usize, once: bool) {
    let (a, b) = (values(size * size), values(size * size));
    let (a, b) = (&a[..], &b[..]);
    let mut results = [vec![0f32; size * size], vec![0f32; size * size], vec![0f32; size * size]];
    {
        let [own, gemm, matrixmultiply] = &mut results;
        let shape = [size, size];
        let mut workspace = Workspace::new();
        let rivals: Vec<Rival> = vec![
            (
                "swath",
                Box::new(move || {
                    let a = MatRef::row_major(black_box(a), shape).expect("a square matrix");
                    let b = MatRef::row_major(b, shape).expect("a square matrix");
                    let c = MatMut::row_major(own, shape).expect("a square matrix");
                    let product = Gemm { a, b, alpha: 1.0, beta: 0.0 };
                    swath_kernels::gemm(product, c, &mut workspace).expect("shapes fit");
                }),
            ),
            ("gemm", Box::new(move || peer_gemm(size, black_box(a), b, gemm))),
            (
                "matrixmultiply",
                Box::new(move || peer_matrixmultiply(size, black_box(a), b, matrixmultiply)),
            ),
        ];
        race(&format!("f32 product {size}"), rivals, once);
    }
    // A rival that computes something else is no rival.
    let [own, others @ ..] = &results;
    for other in others {
        let bound = 1e-4 * size as f32;
        assert!(own.iter().zip(other).all(|(x, y)| (x - y).abs() <= bound), "results differ");
    }
}

fn peer_gemm(size: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    assert!([a.len(), b.len(), c.len()] == [size * size; 3]);
    let stride = size as isize;
    // SAFETY: the slices hold size² elements, row-major, as just asserted; `c` is borrowed mutably.
    unsafe {
        gemm::gemm(
            size,
            size,
            size,
            c.as_mut_ptr(),
            1,
            stride,
            false,
            a.as_ptr(),
            1,
            stride,
            b.as_ptr(),
            1,
            stride,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

fn peer_matrixmultiply(size: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    assert!([a.len(), b.len(), c.len()] == [size * size; 3]);
    let stride = size as isize;
    // SAFETY: the slices hold size² elements, row-major, as just asserted; `c` is borrowed mutably.
    unsafe {
        matrixmultiply::sgemm(
            size,
            size,
            size,
            1.0,
            a.as_ptr(),
            stride,
            1,
            b.as_ptr(),
            stride,
            1,
            0.0,
            c.as_mut_ptr(),
            stride,
            1,
        );
    }
}

//! Functions of slices, on one thread.

use crate::{Call, Rows};
use std::hint::black_box;
use swath::prelude::{Result, Rng};
use swath_kernels::{self as kernels, Gemm, MatMut, MatRef, Workspace, gemm};

type OfSlices = fn(&[f32], &[f32], &mut [f32]);
type Reduction = fn(&[f32]) -> f32;

const FUNCTIONS: [(&str, OfSlices); 14] = [
    ("neg", |x, _, y| kernels::neg(x, y)),
    ("relu", |x, _, y| kernels::relu(x, y)),
    ("sqrt", |x, _, y| kernels::sqrt(x, y)),
    ("exp", |x, _, y| kernels::exp(x, y)),
    ("log", |x, _, y| kernels::log(x, y)),
    ("tanh", |x, _, y| kernels::tanh(x, y)),
    ("gelu", |x, _, y| kernels::gelu(x, y)),
    ("erf", |x, _, y| kernels::erf(x, y)),
    ("sin", |x, _, y| kernels::sin(x, y)),
    ("add", |a, b, y| kernels::add(a, b, y)),
    ("mul", |a, b, y| kernels::mul(a, b, y)),
    ("pow", |a, b, y| kernels::pow(a, b, y)),
    ("softmax", |x, _, y| kernels::softmax(x, y)),
    ("log_softmax", |x, _, y| kernels::log_softmax(x, y)),
];

const REDUCTIONS: [(&str, Reduction); 5] = [
    ("sum", kernels::sum),
    ("max", |x| kernels::max(x).unwrap_or(0.0)),
    ("argmax", |x| kernels::argmax(x).unwrap_or(0) as f32),
    ("variance", |x| kernels::variance(x, 1)),
    ("logsumexp", kernels::logsumexp),
];

/// Positive numbers, so that every function is defined.
fn values(size: usize) -> Vec<f32> {
    let mut rng = Rng::seed(1);
    (0..size).map(|_| 0.1 + 3.0 * rng.uniform::<f32>()).collect()
}

fn square(size: usize) -> Result<Call> {
    let (a, b, mut c) = (values(size * size), values(size * size), vec![0.0; size * size]);
    let mut workspace = Workspace::new();
    Ok(Box::new(move || {
        let matrix = |data| MatRef::row_major(data, [size; 2]).expect("as many as given");
        let (a, b) = (matrix(black_box(&a[..])), matrix(black_box(&b[..])));
        let c = MatMut::row_major(&mut c, [size; 2]).expect("as many as given");
        gemm(Gemm::new(a, b), c, &mut workspace).expect("shapes fit");
    }))
}

pub fn rows(rows: &mut Rows) {
    for size in [64, 4096, 262_144] {
        for (name, function) in FUNCTIONS {
            // A few tell a call's own cost and what the second caches give.
            let shown = matches!(name, "neg" | "exp" | "gelu" | "add" | "pow" | "softmax");
            if size == 4096 || shown {
                rows.add("slices", format!("{name} {size}"), move || {
                    let (a, b, mut y) = (values(size), values(size), vec![0.0; size]);
                    Ok(Box::new(move || function(black_box(&a), black_box(&b), &mut y)))
                });
            }
        }
        for (name, function) in REDUCTIONS {
            if size == 4096 || matches!(name, "sum" | "max") {
                rows.add("slices", format!("{name} {size}"), move || {
                    let x = values(size);
                    Ok(Box::new(move || _ = black_box(function(black_box(&x)))))
                });
            }
        }
    }
    for size in [16, 64, 256] {
        rows.add("slices", format!("gemm {size}"), move || square(size));
    }
}

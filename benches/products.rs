//! Matrix products by the embedded product, as slice calls: GFLOP/s and the share of the peak of
//! fused multiply-adds on one thread, on the instruction set that `SWATH_ISA` picks.
//!
//! NN: both operands row-major. NT: B stored transposed, as the weights of a linear layer are.

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod support;

use std::hint::black_box;
use support::{Bench, Work, values};
use swath_kernels::{Float, Gemm, MatMut, MatRef, Workspace, gemm};

fn main() {
    let bench = Bench::from_args("products");
    println!("{:20} {:>12} {:>10} {:>8} {:>10}", "", "time", "GFLOP/s", "of peak", "peak");
    for transposed in [false, true] {
        let name = if transposed { "NT" } else { "NN" };
        for size in [64, 128, 256, 512, 1024] {
            report::<f32>(&bench, &format!("f32 {name} {size}"), size, transposed);
        }
        report::<f64>(&bench, &format!("f64 {name} 512"), 512, transposed);
    }
}

/// Times C = A·B for square matrices.
fn report<E: Float>(bench: &Bench, name: &str, size: usize, transposed: bool) {
    let matrix = || values(size * size).iter().map(|&x| E::from_f64(x.into())).collect();
    let (a, b, mut c): (Vec<E>, Vec<E>, Vec<E>) = (matrix(), matrix(), matrix());
    let mut workspace = Workspace::new();
    let shape = [size, size];
    let product = Work::new(2 * size * size * size, || {
        let a = MatRef::row_major(black_box(&a), shape).expect("a square matrix");
        let b = MatRef::row_major(black_box(&b), shape).expect("a square matrix");
        let b = if transposed { b.t() } else { b };
        let c = MatMut::row_major(&mut c, shape).expect("a square matrix");
        let product = Gemm { a, b, alpha: E::ONE, beta: E::ZERO };
        gemm(product, c, &mut workspace).expect("shapes fit");
    });
    let peak = if size_of::<E>() == 8 { Work::fma_f64() } else { Work::fma_f32() };
    if let Some(measured) = bench.measure(name, product, &mut [peak]) {
        let (peak, share) = measured.yardsticks[0];
        println!(
            "{name:20} {:9.1} us {:10.1} {share:8.3} {:10.1}",
            measured.seconds * 1e6,
            measured.rate / 1e9,
            peak / 1e9,
        );
    }
}

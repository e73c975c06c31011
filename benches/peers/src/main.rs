//! swath beside other crates, in one process, interleaved: a figure is the other's time over
//! swath's, the median over repetitions in which both ran one after the other.
//!
//! ```text
//! cargo run --release --manifest-path benches/peers/Cargo.toml [-- --test]
//! ```

#[allow(dead_code, reason = "the benchmarks of swath use the rest")]
#[path = "../../support/mod.rs"]
mod support;

use std::hint::black_box;
use std::time::Instant;
use support::values;
use swath_kernels::{Gemm, MatMut, MatRef, Workspace};

const REPETITIONS: usize = 31;
const SAMPLE: f64 = 1e-3;

/// A crate and one call of it.
type Rival<'a> = (&'static str, Box<dyn FnMut() + 'a>);

fn main() {
    let once = std::env::args().any(|argument| argument == "--test");
    println!("kernels run on {}, one thread", swath_kernels::isa());
    println!("{:16} {:>12}   time over swath's", "", "swath");
    for size in [16, 64, 256, 1024] {
        products(size, once);
    }
    for size in [64, 4096, 262_144] {
        sums(size, once);
    }
}

/// C = A·B of square row-major matrices.
fn products(size: usize, once: bool) {
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

/// y = a + b into memory that is there.
fn sums(size: usize, once: bool) {
    let (a, b) = (values(size), values(size));
    let (mut own, mut other) = (values(size), ndarray::Array1::<f32>::zeros(size));
    let (x, y) = (ndarray::ArrayView1::from(&a[..]), ndarray::ArrayView1::from(&b[..]));
    let rivals: Vec<Rival> = vec![
        ("swath", Box::new(|| swath_kernels::add(black_box(&a[..]), &b[..], &mut own[..]))),
        (
            "ndarray",
            Box::new(|| {
                ndarray::Zip::from(&mut other).and(black_box(&x)).and(&y).for_each(|z, x, y| {
                    *z = x + y;
                });
            }),
        ),
    ];
    race(&format!("f32 add {size}"), rivals, once);
}

/// Times the rivals in turn and prints the first one's time and the others' over it.
fn race(name: &str, mut rivals: Vec<Rival>, once: bool) {
    let mut calls = Vec::new();
    for (_, run) in &mut rivals {
        time(run, 1);
        let seconds = time(run, 1).max(1e-8);
        calls.push(if once { 1 } else { (SAMPLE / seconds).clamp(1.0, 1e5) as usize });
    }
    let mut own = Vec::new();
    let mut ratios = vec![Vec::new(); rivals.len()];
    for _ in 0..if once { 1 } else { REPETITIONS } {
        let mut seconds = Vec::new();
        for ((_, run), &calls) in rivals.iter_mut().zip(&calls) {
            seconds.push(time(run, calls) / calls as f64);
        }
        own.push(seconds[0]);
        for (ratios, time) in ratios.iter_mut().zip(&seconds) {
            ratios.push(time / seconds[0]);
        }
    }
    print!("{name:16} {:9.2} us  ", support::median(own) * 1e6);
    for ((rival, _), ratios) in rivals.iter().zip(ratios).skip(1) {
        print!(" {rival} {:.2}", support::median(ratios));
    }
    println!();
}

fn time(run: &mut dyn FnMut(), calls: usize) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        run();
    }
    start.elapsed().as_secs_f64()
}

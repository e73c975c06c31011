//! Matrix products: the share of what the machine can do at most, measured beside each case, and the
//! target for that share. `SWATH_ISA` picks the instruction set of the embedded product.
//!
//! * NN: both operands row-major. NT: B stored transposed, as the weights of a linear layer are. TN: A
//!   stored transposed, as in the gradient of weights.
//! * Slices on one thread, then through `Tensor` on one and two: by a BLAS library if the build has one.
//! * Large products are limited by fused multiply-adds, those with few rows by reading B once.

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod support;

use std::hint::black_box;

use support::{Bench, Work, values};
use swath::prelude::*;
use swath_kernels::{Factor, Float, Gemm, MatMut, MatRef, Workspace, gemm, peak};

/// How the operands are stored.
#[derive(Clone, Copy, PartialEq)]
enum Stored {
    Nn,
    Nt,
    Tn,
}

impl Stored {
    const ALL: [(Stored, &str); 3] = [(Stored::Nn, "NN"), (Stored::Nt, "NT"), (Stored::Tn, "TN")];
}

/// What bounds a case from below.
#[derive(Clone, Copy)]
enum Limit {
    /// Fused multiply-adds.
    Fma,
    /// Reading B.
    ReadB,
}

fn main() -> Result<()> {
    let bench = Bench::from_args("products");
    println!("{:30} {:>12} {:>10} {:>10} {:>8}", "", "time", "GFLOP/s", "of limit", "target");
    for (stored, name) in Stored::ALL {
        for size in [4, 8, 16, 32, 64, 96, 128, 256, 512, 1024, 2048] {
            let target = match (stored, size) {
                (Stored::Nn, 64) => Some(0.85),
                (Stored::Nt, 64) => Some(0.80),
                // 70 and 90 ns where the peak is 247 GFLOP/s.
                (Stored::Nn, 16) => Some(0.47),
                (Stored::Nt, 16) => Some(0.37),
                (_, 256..) => Some(0.88),
                _ => None,
            };
            let shape = [size; 3];
            slices::<f32>(&bench, &format!("f32 {name} {size}"), shape, stored, Limit::Fma, target);
            if size >= 64 && size != 96 {
                let name = format!("f64 {name} {size}");
                slices::<f64>(&bench, &name, shape, stored, Limit::Fma, target);
            }
        }
    }
    for (stored, name) in &Stored::ALL[..2] {
        for (shape, target) in [
            ([1, 4096, 4096], 1.0),
            ([8, 1024, 4096], if *stored == Stored::Nn { 0.8 } else { 0.75 }),
        ] {
            let [m, k, n] = shape;
            let name = format!("{name} {m}x{k}x{n}");
            let target = Some(target);
            slices::<f32>(&bench, &format!("f32 {name}"), shape, *stored, Limit::ReadB, target);
            slices::<f64>(&bench, &format!("f64 {name}"), shape, *stored, Limit::ReadB, target);
        }
    }
    println!("\nthrough Tensor: {}", swath::blas::info());
    for threads in [1, 2] {
        swath::runtime::set_threads(threads)?;
        for (stored, name) in Stored::ALL {
            for size in [4, 16, 64, 128, 256, 512, 1024, 2048] {
                let target = match (threads, size) {
                    (2, 128 | 256) => Some(0.75),
                    (2, 512..) => Some(0.84),
                    _ => None,
                };
                let name = format!("tensor {name} {size} T{threads}");
                tensors(&bench, &name, threads, 1, [size; 3], stored, DType::F32, target)?;
            }
        }
        for (batch, shape) in [(32, [128, 64, 128]), (512, [16, 16, 16]), (64, [32, 32, 32])] {
            let name = format!("tensor batch {batch} x {shape:?} T{threads}");
            tensors(&bench, &name, threads, batch, shape, Stored::Nn, DType::F32, None)?;
        }
        for dtype in [DType::F64, DType::BF16, DType::F16] {
            for shape in [[256; 3], [1024; 3], [8, 1024, 4096], [1, 4096, 4096]] {
                let name = format!("tensor {dtype} {shape:?} T{threads}");
                tensors(&bench, &name, threads, 1, shape, Stored::Nt, dtype, None)?;
            }
        }
        for shape in [[8, 1024, 4096], [1, 4096, 4096], [64, 8192, 64]] {
            let name = format!("tensor f32 {shape:?} T{threads}");
            tensors(&bench, &name, threads, 1, shape, Stored::Nt, DType::F32, None)?;
        }
    }
    Ok(())
}

/// Times C = A·B on slices, `[m, k] × [k, n]`.
fn slices<E: Float + Factor<Sum = E>>(
    bench: &Bench,
    name: &str,
    [m, k, n]: [usize; 3],
    stored: Stored,
    limit: Limit,
    target: Option<f64>,
) {
    let matrix = |len| values(len).iter().map(|&x| E::from_f64(x.into())).collect();
    let (a, b, mut c): (Vec<E>, Vec<E>, Vec<E>) = (matrix(m * k), matrix(k * n), matrix(m * n));
    let mut workspace = Workspace::new();
    let product = Work::new(2 * m * k * n, || {
        let view = |data, [rows, cols]: [usize; 2], transposed: bool| {
            let shape = if transposed { [cols, rows] } else { [rows, cols] };
            let view = MatRef::row_major(data, shape).expect("a matrix that fills its slice");
            if transposed { view.t() } else { view }
        };
        let a = view(black_box(&a[..]), [m, k], stored == Stored::Tn);
        let b = view(black_box(&b[..]), [k, n], stored == Stored::Nt);
        let c = MatMut::row_major(&mut c, [m, n]).expect("a matrix that fills its slice");
        let product = Gemm { a, b, alpha: E::ONE, beta: E::ZERO };
        gemm(product, c, &mut workspace).expect("shapes fit");
    });
    let is_f64 = size_of::<E>() == 8;
    let yardstick = match limit {
        Limit::Fma if is_f64 => Work::fma_f64(),
        Limit::Fma => Work::fma_f32(),
        Limit::ReadB => {
            let elements = k * n * size_of::<E>() / 4;
            Work { amount: (2 * m * k * n) as f64, ..Work::read(elements) }
        }
    };
    report(bench, name, product, yardstick, target);
}

/// Times a product of tensors, its result in recycled memory.
#[allow(clippy::too_many_arguments, reason = "a table's columns")]
fn tensors(
    bench: &Bench,
    name: &str,
    threads: usize,
    batch: usize,
    [m, k, n]: [usize; 3],
    stored: Stored,
    dtype: DType,
    target: Option<f64>,
) -> Result<()> {
    let mut rng = Rng::seed(1);
    let mut matrix = |rows, cols, transposed: bool| -> Result<Tensor> {
        let shape = if transposed { [batch, cols, rows] } else { [batch, rows, cols] };
        let x = Tensor::<CpuBackend>::randn(shape, &mut rng)?.to_dtype(dtype)?;
        if transposed { x.t() } else { Ok(x) }
    };
    let (a, b) = (matrix(m, k, stored == Stored::Tn)?, matrix(k, n, stored == Stored::Nt)?);
    let (a, b) = if batch == 1 { (a.squeeze(0)?, b.squeeze(0)?) } else { (a, b) };
    let product = Work::new(2 * batch * m * k * n, || {
        black_box(black_box(&a).matmul(black_box(&b)).expect("shapes fit"));
    });
    report(bench, name, product, fma_on(threads, dtype == DType::F64), target);
    Ok(())
}

/// The peak of fused multiply-adds on so many threads at once.
fn fma_on<'a>(threads: usize, is_f64: bool) -> Work<'a> {
    let run = move |count| if is_f64 { peak::fma::<f64>(count) } else { peak::fma::<f32>(count) };
    if threads == 1 {
        return if is_f64 { Work::fma_f64() } else { Work::fma_f32() };
    }
    // Long enough for the start of the threads not to count.
    let count = 400_000;
    Work::new(threads * run(1) * count, move || {
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(move || run(count));
            }
            run(count);
        });
    })
}

fn report(bench: &Bench, name: &str, case: Work, limit: Work, target: Option<f64>) {
    if let Some(measured) = bench.measure(name, case, &mut [limit]) {
        let target = target.map(|target| format!("{target:.2}")).unwrap_or_default();
        println!(
            "{name:30} {:9.2} us {:10.1} {:10.3} {target:>8}",
            measured.seconds * 1e6,
            measured.rate / 1e9,
            measured.yardsticks[0].1,
        );
    }
}

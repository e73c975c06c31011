//! Matrix products: of slices on one thread, then of tensors on one and two threads. Products of tensors are
//! computed by a BLAS library if the build has one. `SWATH_ISA` selects the instruction set of the embedded
//! product.
//!
//! * NN: both operands are row-major. NT: B is stored transposed, as the weights of a linear layer are. TN: A
//!   is stored transposed, as for the gradient of the weights.
//! * The limit is the peak of fused multiply-adds, and for slices with few rows reading B once. The
//!   elements in criterion's report are floating-point operations.

#[allow(dead_code, reason = "each benchmark uses only a part of the module")]
mod support;

use std::hint::black_box;

use support::values::values;
use support::{Group, Limit, Suite};
use swath::prelude::*;
use swath_kernels::{Factor, Float, Gemm, MatMut, MatRef, Workspace, gemm};

/// Storage order of the operands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stored {
    NN,
    NT,
    TN,
}
use Stored::{NN, NT, TN};

fn main() -> Result<()> {
    let mut suite = Suite::from_args();
    let sizes = [4, 8, 16, 32, 64, 96, 128, 256, 512, 1024, 2048];
    slices::<f32>(suite.group("products_f32"), &sizes, Limit::fma_f32);
    slices::<f64>(suite.group("products_f64"), &[64, 128, 256, 512, 1024, 2048], Limit::fma_f64);
    for threads in [1, 2] {
        let mut group = suite.group_on(threads, "products_tensor")?;
        let mut case = |batch, shape, stored, dtype| {
            tensors(&mut group, threads, batch, shape, stored, dtype);
        };
        for stored in [NN, NT, TN] {
            for size in [4, 16, 64, 128, 256, 512, 1024, 2048] {
                case(1, [size; 3], stored, DType::F32);
            }
        }
        for (batch, shape) in [(32, [128, 64, 128]), (512, [16, 16, 16]), (64, [32, 32, 32])] {
            case(batch, shape, NN, DType::F32);
        }
        for dtype in [DType::F64, DType::BF16, DType::F16] {
            for shape in [[256; 3], [1024; 3], [8, 1024, 4096], [1, 4096, 4096]] {
                case(1, shape, NT, dtype);
            }
        }
        for shape in [[8, 1024, 4096], [1, 4096, 4096], [64, 8192, 64]] {
            case(1, shape, NT, DType::F32);
        }
    }
    suite.finish();
    Ok(())
}

/// Times products of slices: of square matrices, then of a few rows with a large matrix.
fn slices<E: Float + Factor<Sum = E>>(
    mut group: Group,
    sizes: &[usize],
    fma: fn(usize, usize) -> Limit,
) {
    for stored in [NN, NT, TN] {
        for &size in sizes {
            let limit = fma(1, 2 * size * size * size);
            group.case(&format!("{stored:?}/{size}"), limit, || product::<E>([size; 3], stored));
        }
    }
    for stored in [NN, NT] {
        for shape @ [m, k, n] in [[1, 4096, 4096], [8, 1024, 4096]] {
            let read_b = Limit::read(1, k * n * size_of::<E>() / 4);
            let name = format!("{stored:?}/{m}x{k}x{n}");
            group.case(&name, read_b, || product::<E>(shape, stored));
        }
    }
}

/// Returns a closure that computes C = A·B on slices, `[m, k] × [k, n]`.
fn product<E: Float + Factor<Sum = E>>([m, k, n]: [usize; 3], stored: Stored) -> impl FnMut() {
    let matrix = |len| values(len).iter().map(|&x| E::from_f64(x.into())).collect();
    let (a, b, mut c): (Vec<E>, Vec<E>, Vec<E>) = (matrix(m * k), matrix(k * n), matrix(m * n));
    let mut workspace = Workspace::new();
    move || {
        let view = |data, [rows, cols]: [usize; 2], transposed: bool| {
            let shape = if transposed { [cols, rows] } else { [rows, cols] };
            let view =
                MatRef::row_major(data, shape).expect("the slice has the length of the matrix");
            if transposed { view.t() } else { view }
        };
        let a = view(black_box(&a[..]), [m, k], stored == TN);
        let b = view(black_box(&b[..]), [k, n], stored == NT);
        let c = MatMut::row_major(&mut c, [m, n]).expect("the slice has the length of the matrix");
        gemm(Gemm::new(a, b), c, &mut workspace).expect("the shapes match");
    }
}

/// Times a product of tensors. The result of each run takes the memory of the one before.
fn tensors(
    group: &mut Group,
    threads: usize,
    batch: usize,
    [m, k, n]: [usize; 3],
    stored: Stored,
    dtype: DType,
) {
    let size = if m == k && k == n { m.to_string() } else { format!("{m}x{k}x{n}") };
    let batches = if batch == 1 { String::new() } else { format!("{batch} of ") };
    let operations = 2 * batch * m * k * n;
    let limit = match dtype {
        DType::F64 => Limit::fma_f64(threads, operations),
        _ => Limit::fma_f32(threads, operations),
    };
    group.case(&format!("{dtype} {stored:?}/{batches}{size}"), limit, || {
        let mut rng = Rng::seed(1);
        let mut matrix = |rows, cols, transposed: bool| -> Result<Tensor> {
            let shape = if transposed { [batch, cols, rows] } else { [batch, rows, cols] };
            let x = Tensor::<CpuBackend>::randn(shape, &mut rng)?.to_dtype(dtype)?;
            let x = if transposed { x.t()? } else { x };
            if batch == 1 { x.squeeze(0) } else { Ok(x) }
        };
        let a = matrix(m, k, stored == TN).expect("the shape is valid");
        let b = matrix(k, n, stored == NT).expect("the shape is valid");
        move || black_box(&a).matmul(black_box(&b)).expect("the shapes match")
    });
}

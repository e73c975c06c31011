//! Tests with a mock library: which products reach it, by which calls, and that all arguments are valid.

use std::collections::BTreeMap;
use std::ops::Range;

use super::call::MAX_INT;
use super::mock::{self, NOTHING, NOTHING_WHERE_EVEN, Record, gemm, library};
use crate::backend::cpu::{CpuBackend, CpuTensor};
use crate::backend::{Backend, TensorData};
use crate::blas::trace::{Path, trace};
use crate::dtype::{DType, HostData};
use crate::layout::Layout;
use crate::ops::{Activation, FusedOp};
use crate::rng::Rng;
use crate::shape::{Shape, Strides};

mod calls;
mod page;
mod plan;
mod vendors;

/// Arrangement of a matrix in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Arrangement {
    Plain,
    Transposed,
    /// Rows of a wider matrix.
    Wider,
    /// Transpose of `Wider`.
    WiderTransposed,
    /// Rows in reverse order.
    Flipped,
    /// Every other column.
    Spread,
    /// One row repeated.
    Repeated,
}

const ALL: [Arrangement; 7] = [
    Arrangement::Plain,
    Arrangement::Transposed,
    Arrangement::Wider,
    Arrangement::WiderTransposed,
    Arrangement::Flipped,
    Arrangement::Spread,
    Arrangement::Repeated,
];

impl Arrangement {
    /// Strides, offset and number of stored elements of a matrix `[rows, cols]`.
    fn of(self, rows: usize, cols: usize) -> ([isize; 2], usize, usize) {
        let [r, c] = [rows as isize, cols as isize];
        match self {
            Arrangement::Plain => ([c, 1], 0, rows * cols),
            Arrangement::Transposed => ([1, r], 0, rows * cols),
            Arrangement::Wider => ([c + 5, 1], 3, rows * (cols + 5)),
            Arrangement::WiderTransposed => ([1, r + 5], 3, cols * (rows + 5)),
            Arrangement::Flipped => ([-c, 1], (rows - 1) * cols, rows * cols),
            Arrangement::Spread => ([2 * c, 2], 1, rows * cols * 2),
            Arrangement::Repeated => ([0, 1], 0, cols),
        }
    }

    fn is_transposed(self) -> bool {
        matches!(self, Arrangement::Transposed | Arrangement::WiderTransposed)
    }

    /// True if BLAS can express the arrangement; it can express any if an extent is 1.
    fn is_expressible(self) -> bool {
        !matches!(self, Arrangement::Flipped | Arrangement::Spread | Arrangement::Repeated)
    }
}

/// `batch` matrices that lie as said, one after the other or (a batch stride of 0) all the same.
fn operand(
    kind: Arrangement,
    [rows, cols]: [usize; 2],
    batch: usize,
    shared: bool,
    dtype: DType,
    rng: &mut Rng,
) -> CpuTensor {
    let ([down, right], offset, len) = kind.of(rows, cols);
    let copies = if shared { 1 } else { batch };
    let values: Vec<f32> = (0..len * copies).map(|_| rng.normal()).collect();
    let tensor = CpuBackend::from_host(HostData::F32(values), [len * copies].into()).unwrap();
    let tensor = CpuBackend::cast(&tensor, dtype).unwrap();
    let step = if shared { 0 } else { len as isize };
    let shape = Shape::from([batch, rows, cols]);
    let layout = Layout::new(shape, Strides::new([step, down, right]), offset).unwrap();
    CpuBackend::view(&tensor, layout).unwrap()
}

fn values(x: &CpuTensor) -> Vec<f64> {
    let x = CpuBackend::contiguous(x).unwrap();
    match CpuBackend::to_host(&CpuBackend::cast(&x, DType::F64).unwrap()).unwrap() {
        HostData::F64(values) => values,
        _ => unreachable!("cast to f64"),
    }
}

/// Checks `c` against sums in f64: |error| ≤ k·u·(|A||B|), plus the rounding error of 16-bit results. For f64
/// both sides have this error, so u is doubled; for 16-bit floats u is doubled for the second rounding.
fn check(c: &CpuTensor, a: &CpuTensor, b: &CpuTensor, what: &str) {
    let [batch, m, k] = [0, 1, 2].map(|axis| a.shape().dim(axis));
    let n = b.shape().dim(2);
    let (a, b, got) = (values(a), values(b), values(c));
    // Unit roundoff of the sums; of the result, relative; of the result, absolute for subnormal numbers.
    let (u, rounding, tiny) = match c.dtype() {
        DType::F64 => (f64::EPSILON, 0.0, 0.0),
        DType::F32 => (f64::from(f32::EPSILON) / 2.0, 0.0, 0.0),
        DType::F16 => (f64::from(f32::EPSILON), 2f64.powi(-11), 2f64.powi(-25)),
        DType::BF16 => (f64::from(f32::EPSILON), 2f64.powi(-8), 0.0),
        dtype => unreachable!("{dtype}"),
    };
    for i in 0..batch * m {
        for j in 0..n {
            let term = |p: usize| a[i * k + p] * b[(i / m * k + p) * n + j];
            let sum: f64 = (0..k).map(term).sum();
            let size: f64 = (0..k).map(|p| term(p).abs()).sum();
            let error = (got[i * n + j] - sum).abs();
            let bound = k as f64 * u * size + rounding * sum.abs() + tiny;
            assert!(error <= bound, "{what}: {} instead of {sum} at {i}, {j}", got[i * n + j]);
        }
    }
}

/// Address range of a tensor's storage.
fn storage(x: &CpuTensor) -> Range<usize> {
    let bytes = match x.dtype() {
        DType::F64 => bytemuck::cast_slice::<f64, u8>(x.elements()),
        _ => bytemuck::cast_slice::<f32, u8>(x.elements()),
    };
    let start = bytes.as_ptr() as usize;
    start..start + bytes.len()
}

fn contains(inner: &Range<usize>, outer: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// True if a call reads A and B in place, in either order, as gemv may swap them.
fn reads_in_place(record: &Record, a: &CpuTensor, b: &CpuTensor) -> bool {
    let [x, y, _] = &record.addresses;
    let (a, b) = (storage(a), storage(b));
    contains(x, &a) && contains(y, &b) || contains(x, &b) && contains(y, &a)
}

#[test]
fn exactly_the_layouts_that_blas_can_express_reach_it_and_without_a_copy() {
    let mut rng = Rng::seed(71);
    for dtype in [DType::F32, DType::F64] {
        for a_kind in ALL {
            for b_kind in ALL {
                for (batch, shared) in [(1, false), (3, false), (3, true)] {
                    let a = operand(a_kind, [17, 19], batch, false, dtype, &mut rng);
                    let b = operand(b_kind, [19, 21], batch, shared, dtype, &mut rng);
                    let what = format!("{dtype} {a_kind:?} {b_kind:?} batch {batch} {shared}");
                    let ((c, traced), records) =
                        mock::with(library(), || trace(|| CpuBackend::matmul(&a, &b).unwrap()));
                    check(&c, &a, &b, &what);
                    let expressible = a_kind.is_expressible() && b_kind.is_expressible();
                    assert_eq!(!records.is_empty(), expressible, "{what}");
                    assert!(records.iter().all(|record| reads_in_place(record, &a, &b)), "{what}");
                    let transposed = [a_kind, b_kind].map(Arrangement::is_transposed);
                    assert!(records.iter().all(|it| it.transposed == transposed), "{what}");
                    let path = traced[0].path;
                    assert_eq!(path.is_provider(), expressible, "{what}: {path}");
                    // A stack of rows with one right side is one product.
                    let folds = batch == 1
                        || shared && matches!(a_kind, Arrangement::Plain | Arrangement::Wider);
                    assert!(!expressible || records.len() == if folds { 1 } else { 3 }, "{what}");
                }
            }
        }
    }
}

/// Without a library, a right side of this size would be packed once for the batch.
#[test]
fn a_large_right_side_of_a_batch_reaches_the_library() {
    let mut rng = Rng::seed(79);
    let a = operand(Arrangement::Transposed, [60, 300], 3, false, DType::F32, &mut rng);
    let b = operand(Arrangement::Plain, [300, 200], 3, true, DType::F32, &mut rng);
    let ((c, traced), records) =
        mock::with(library(), || trace(|| CpuBackend::matmul(&a, &b).unwrap()));
    check(&c, &a, &b, "one right side of [300, 200]");
    assert!(records.len() == 3 && records.iter().all(|record| reads_in_place(record, &a, &b)));
    assert!(traced[0].path.is_provider());
}

#[test]
fn random_products_are_correct_and_no_call_has_an_invalid_argument() {
    let mut rng = Rng::seed(72);
    let mut functions = BTreeMap::<&str, usize>::new();
    for round in 0..3000 {
        let dtype = [DType::F32, DType::F64, DType::F16, DType::BF16][rng.below(4) as usize];
        let mut extent = |most: u64| [0, 1, 1 + rng.below(most)][rng.below(8).min(2) as usize];
        let [m, k, n] = [extent(90), extent(90), extent(90)].map(|x| x as usize);
        // Matrix-vector products get about as many terms as other products.
        let k = if m == 1 || n == 1 { 9 * k } else { k };
        let batch = 1 + rng.below(3) as usize;
        let kind = |rng: &mut Rng| ALL[rng.below(ALL.len() as u64) as usize];
        let (a_kind, b_kind) = (kind(&mut rng), kind(&mut rng));
        let shared = rng.below(2) == 0;
        if m * k * n == 0 {
            continue;
        }
        let a = operand(a_kind, [m, k], batch, false, dtype, &mut rng);
        let b = operand(b_kind, [k, n], batch, shared, dtype, &mut rng);
        let (c, records) = mock::with(library(), || CpuBackend::matmul(&a, &b).unwrap());
        let what = format!("round {round}: {dtype} [{m}, {k}] {a_kind:?} [{k}, {n}] {b_kind:?}");
        check(&c, &a, &b, &what);
        for record in records {
            *functions.entry(record.function).or_default() += 1;
        }
    }
    println!("calls: {functions:?}");
    for function in ["sgemm", "dgemm", "sgemv", "dgemv"] {
        assert!(functions.get(function).is_some_and(|&count| count > 20), "{functions:?}");
    }
}

/// Several tiles, a vector, and a batch that is not a stack of rows, compared with a product of the same
/// library followed by an addition and the function.
#[test]
fn bias_and_activation_are_applied_to_every_tile() {
    let mut rng = Rng::seed(76);
    for (batch, m, k, n) in [(1, 300, 40, 1100), (1, 1, 300, 200), (3, 40, 30, 50)] {
        for dtype in [DType::F32, DType::F64] {
            let x = operand(Arrangement::Wider, [m, k], batch, false, dtype, &mut rng);
            let weight = operand(Arrangement::Plain, [n, k], 1, false, dtype, &mut rng);
            let weight = CpuBackend::reshape(&weight, [n, k]).unwrap();
            let bias = operand(Arrangement::Plain, [1, n], 1, false, dtype, &mut rng);
            let bias = CpuBackend::reshape(&bias, [n]).unwrap();
            let linear = |bias, activation: Option<Activation>| {
                let keep_sums = activation.is_some();
                let op = FusedOp::Linear { x: &x, weight: &weight, bias, activation, keep_sums };
                CpuBackend::fused(&op).unwrap()
            };
            for activation in Activation::ALL {
                let Some(function) = activation.op() else { continue };
                let ((found, wanted), records) = mock::with(library(), || {
                    let z = linear(None, None).remove(0);
                    let z = CpuBackend::add(&z, &bias).unwrap();
                    let y = CpuBackend::unary(function, &z).unwrap();
                    (linear(Some(&bias), Some(activation)), [y, z])
                });
                assert!(records.len() >= 2, "the library computed both");
                for (found, wanted) in found.iter().zip(&wanted) {
                    assert_eq!(values(found), values(wanted), "{activation:?} {dtype} {m} {k} {n}");
                }
            }
        }
    }
}

/// `[batch, m, k] x [k, n]` with a bias and an activation: the most rows that stay embedded, one more, stacks
/// of rows, few columns, and a batch that is not a stack.
#[test]
fn sixteen_bit_products_of_many_rows_reach_the_library_widened() {
    let mut rng = Rng::seed(77);
    let stack = Arrangement::Plain;
    for (kind, batch, m, n, reaches) in [
        (stack, 1, 48, 90, false),
        (stack, 1, 49, 90, true),
        (stack, 4, 12, 90, false),
        (stack, 4, 13, 90, true),
        (stack, 1, 90, 48, false),
        (Arrangement::Transposed, 4, 60, 90, false),
    ] {
        for dtype in [DType::F16, DType::BF16] {
            let x = operand(kind, [m, 70], batch, false, dtype, &mut rng);
            let tensor = |shape: &[usize], rng: &mut Rng| {
                let x = operand(stack, [shape.iter().product(), 1], 1, false, dtype, rng);
                CpuBackend::reshape(&x, shape).unwrap()
            };
            let (weight, bias) = (tensor(&[n, 70], &mut rng), tensor(&[n], &mut rng));
            let product = |[x, weight, bias]: [&CpuTensor; 3]| {
                let (bias, activation, keep_sums) = (Some(bias), Some(Activation::Gelu), true);
                let op = FusedOp::Linear { x, weight, bias, activation, keep_sums };
                mock::with(library(), || trace(|| CpuBackend::fused(&op).unwrap()))
            };
            let ((found, traced), records) = product([&x, &weight, &bias]);
            let what = format!("{dtype} {batch} {m} {n} {kind:?}");
            assert_eq!((records.is_empty(), records.len() <= 1), (!reaches, true), "{what}");
            let provider = traced.iter().any(|traced| traced.path.is_provider());
            assert_eq!(provider, reaches, "{what}");

            let wide = [&x, &weight, &bias].map(|x| CpuBackend::cast(x, DType::F32).unwrap());
            let ((wanted, _), _) = product(wide.each_ref());
            for (found, wanted) in found.iter().zip(&wanted) {
                assert_eq!(found.shape(), wanted.shape(), "{what}");
                for (y, z) in values(found).into_iter().zip(values(wanted)) {
                    let unit = if dtype == DType::F16 { 2f64.powi(-11) } else { 2f64.powi(-8) };
                    assert!((y - z).abs() <= 1.1 * unit * z.abs() + 1e-6, "{what}: {y}, not {z}");
                }
            }
        }
    }
}

#[test]
fn extents_of_zero_never_reach_the_library() {
    for [m, k, n] in [[0, 20, 30], [20, 0, 30], [20, 30, 0], [0, 0, 0], [20, 0, 1]] {
        for batch in [1, 2] {
            let zeros = |rows, cols| CpuBackend::zeros([batch, rows, cols]);
            let (a, b) = (zeros(m, k).unwrap(), zeros(k, n).unwrap());
            let (c, records) = mock::with(library(), || CpuBackend::matmul(&a, &b).unwrap());
            assert!(records.is_empty() && values(&c).iter().all(|&x| x == 0.0));
            assert_eq!(c.shape().dims(), [batch, m, n]);
        }
    }
}

#[test]
fn products_of_at_most_16_cubed_multiplications_are_embedded() {
    let mut rng = Rng::seed(80);
    for ([m, k, n], reaches) in [
        ([16, 16, 16], false),
        ([16, 17, 16], true),
        ([1, 64, 64], false),
        ([1, 64, 65], true),
        ([512, 8, 1], false),
        ([513, 8, 1], true),
    ] {
        for (dtype, batch) in [(DType::F32, 1), (DType::F64, 1), (DType::F32, 5), (DType::F64, 5)] {
            let a = operand(Arrangement::Plain, [m, k], batch, false, dtype, &mut rng);
            let b = operand(Arrangement::Plain, [k, n], batch, false, dtype, &mut rng);
            let (_, records) = mock::with(library(), || CpuBackend::matmul(&a, &b).unwrap());
            let calls = if reaches { batch } else { 0 };
            assert_eq!(records.len(), calls, "{batch} of {m}, {k}, {n}");
        }
    }
}

/// Extents and leading dimensions at and beyond the limit. The mock checks that the arguments of calls fit.
#[test]
fn products_beyond_the_librarys_integers_are_embedded() {
    let mut rng = Rng::seed(73);
    use Arrangement::{Plain, Transposed, Wider, WiderTransposed};
    let wide = MAX_INT - 4;
    for ([m, k, n], a_kind, b_kind, reaches) in [
        ([MAX_INT, 5, 6], Plain, Plain, true),
        ([MAX_INT + 1, 5, 6], Plain, Plain, false),
        ([5, MAX_INT, 6], Plain, Plain, true),
        ([5, MAX_INT + 1, 6], Plain, Plain, false),
        ([5, 6, MAX_INT], Plain, Plain, true),
        ([5, 6, MAX_INT + 1], Plain, Plain, false),
        ([5, wide, 6], Wider, Plain, false),
        ([wide, 5, 6], WiderTransposed, Plain, false),
        ([5, 6, wide], Plain, Wider, false),
        ([5, wide, 6], Plain, WiderTransposed, false),
        ([5, wide, 6], Plain, Transposed, true),
        ([1, wide, 6], Wider, Plain, true),
        ([1, 6, wide], Plain, Wider, false),
        ([wide, 6, 1], WiderTransposed, Plain, false),
    ] {
        for batch in [1, 2] {
            let a = operand(a_kind, [m, k], batch, false, DType::F32, &mut rng);
            let b = operand(b_kind, [k, n], batch, false, DType::F32, &mut rng);
            let what = format!("{batch} of {a_kind:?} {b_kind:?} {m} {k} {n}");
            let ((c, traced), records) =
                mock::with(library(), || trace(|| CpuBackend::matmul(&a, &b).unwrap()));
            check(&c, &a, &b, &what);
            let found = (traced[0].path.is_provider(), records.len());
            assert_eq!(found, (reaches, if reaches { batch } else { 0 }), "{what}");
        }
    }
}

/// All four tiles or only the last one fail, on one thread and on two.
#[test]
fn a_library_that_writes_nothing_is_detected_and_not_called_again() {
    let mut rng = Rng::seed(74);
    let [a, b] = [[301, 80], [80, 601]]
        .map(|shape| operand(Arrangement::Plain, shape, 1, false, DType::F32, &mut rng));
    for (threads, is_last, written) in [(1, false, 0), (1, true, 3), (2, false, 0), (2, true, 3)] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut broken = library();
        broken.products.f32.gemm =
            if is_last { gemm::<f32, NOTHING_WHERE_EVEN> } else { gemm::<f32, NOTHING> };
        let products = || {
            for _ in 0..2 {
                check(&CpuBackend::matmul(&a, &b).unwrap(), &a, &b, "embedded instead");
                let failure = mock::provider().failure.get().unwrap();
                assert!(failure.contains("without writing a product"), "{failure}");
            }
            let info = crate::blas::info();
            assert!(info.warning.is_some_and(|warning| warning.contains("embedded")));
        };
        let ((), records) = mock::with(broken, || {
            let library = mock::current();
            pool.install(|| mock::on_this_thread(library, products));
        });
        assert_eq!(records.len(), written, "{threads} threads");
    }
}

/// Products of one and of several tiles, alone and in batches of fewer products than the mock's six cores and
/// of as many.
#[test]
fn the_number_of_threads_changes_no_call() {
    let mut rng = Rng::seed(75);
    for (batch, [m, k, n], function, calls) in [
        (1, [700, 40, 1100], "sgemm", 6),
        (2, [300, 40, 600], "sgemm", 4),
        (3, [300, 40, 600], "sgemm", 6),
        (6, [300, 40, 600], "sgemm", 6),
        (3, [60, 70, 80], "sgemm", 3),
        (3, [1, 70, 80], "sgemv", 3),
    ] {
        let what = format!("{batch} of {m}, {k}, {n}");
        let a = operand(Arrangement::Plain, [m, k], batch, false, DType::F32, &mut rng);
        let b = operand(Arrangement::Transposed, [k, n], batch, false, DType::F32, &mut rng);
        let calls_of = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let ((_, traced), mut records) = mock::with(library(), || {
                let library = mock::current();
                let product = || trace(|| CpuBackend::matmul(&a, &b).unwrap());
                pool.install(|| mock::on_this_thread(library, product))
            });
            assert_eq!(traced[0].path, Path::Provider, "{what}, {threads} threads");
            records.sort_by_key(|record| record.addresses[2].start);
            let c = records[0].addresses[2].start;
            let call = |Record { function, shape, transposed, addresses: [a, b, out] }: Record| {
                (function, shape, transposed, a, b, out.start - c)
            };
            records.into_iter().map(call).collect::<Vec<_>>()
        };
        let one = calls_of(1);
        assert_eq!(one.len(), calls, "{what}");
        assert!(one.iter().all(|call| call.0 == function), "{what}: {one:?}");
        for threads in [2, 3, 5] {
            assert_eq!(calls_of(threads), one, "{what}, {threads} threads");
        }
    }
}

//! Tests of properties that a comparison with the reference backend does not show: the memory of results, and
//! equal bits for all layouts.

use super::*;
use crate::Error;
use crate::backend::transposed;
use crate::ops::{BinaryOp::Add, ReduceOp, UnaryOp::Exp};

/// Numbers of very different magnitudes, so that their sum depends on the order of additions.
fn wild(shape: impl Into<Shape>) -> CpuTensor {
    let shape = shape.into();
    let mut state = 1u64;
    let value = |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let bits = (state >> 33) as u32;
        f32::from_bits((bits & 0x807F_FFFF) | ((90 + bits % 60) << 23))
    };
    CpuBackend::from_vec((0..shape.numel()).map(value).collect(), shape).unwrap()
}

fn address(x: &CpuTensor) -> usize {
    x.as_slice::<f32>().unwrap().as_ptr().addr()
}

fn bits(x: &CpuTensor) -> Vec<u32> {
    match CpuBackend::to_host(x).unwrap() {
        HostData::F32(values) => values.iter().map(|x| x.to_bits()).collect(),
        other => panic!("f32 expected, not {}", other.dtype()),
    }
}

fn t(x: &CpuTensor) -> CpuTensor {
    CpuBackend::view(x, transposed("t", x.layout(), None).unwrap()).unwrap()
}

#[test]
fn extrema_of_16_bit_columns_are_those_of_rows() {
    let (rows, cols) = (200, 1300);
    let number = |i: usize| match (i / cols, i % cols) {
        // In the first band of rows that is widened, and in later ones.
        (5 | 190, 7) | (150, 300 | 1299) | (63 | 64, 600) => f32::NAN,
        (_, 8) => [0.0, -0.0][i / cols % 63 / 62],
        (row, 9) => [-0.0, 0.0][row / 199],
        _ => (i * 7919 % 97) as f32 - 48.0,
    };
    let x = (0..rows * cols).map(number).collect();
    let x = CpuBackend::from_host(HostData::F32(x), [rows, cols].into()).unwrap();
    for dtype in [DType::F16, DType::BF16] {
        let x = CpuBackend::cast(&x, dtype).unwrap();
        let transposed = CpuBackend::contiguous(&t(&x)).unwrap();
        let norm = |p| ReduceOp::Norm { p };
        let norms = [norm(f64::INFINITY), norm(f64::NEG_INFINITY)];
        let ops = [ReduceOp::Max, ReduceOp::Min, ReduceOp::ArgMax, ReduceOp::ArgMin];
        for op in ops.into_iter().chain(norms) {
            let found = CpuBackend::reduce(op, &x, &[0]).unwrap();
            let wanted = CpuBackend::reduce(op, &transposed, &[1]).unwrap();
            let [found, wanted] =
                [found, wanted].map(|x| CpuBackend::cast(&x, DType::F32).unwrap());
            assert_eq!(bits(&found), bits(&wanted), "{op:?} of {dtype}");
        }
    }
}

#[test]
fn the_result_reuses_the_memory_of_an_owned_operand() {
    let (a, b) = (wild([70, 50]), wild([70, 50]));
    let sum = bits(&CpuBackend::binary(Add, &a, &b).unwrap());

    let given = a.clone();
    let fresh = CpuBackend::binary(Add, Arg::Owned(given), &b).unwrap();
    assert_ne!(address(&fresh), address(&a), "a shared operand is not written to");
    assert_eq!(bits(&fresh), sum);

    let at = address(&fresh);
    let doubled = CpuBackend::binary(Add, Arg::Owned(fresh), &b).unwrap();
    assert_eq!(address(&doubled), at);
    let right = CpuBackend::binary(Add, &b, Arg::Owned(doubled)).unwrap();
    assert_eq!(address(&right), at);
    let exp = CpuBackend::unary(Exp, Arg::Owned(right)).unwrap();
    assert_eq!(address(&exp), at);

    let part = CpuBackend::view(&exp, exp.layout().narrow("narrow", 0, 1, 3).unwrap()).unwrap();
    drop(exp);
    let copied = CpuBackend::unary(Exp, Arg::Owned(part)).unwrap();
    assert_ne!(address(&copied), at, "a part of the storage is not reused");
}

#[test]
fn the_result_reuses_the_memory_of_an_owned_view_of_a_whole_storage() {
    let a = wild([4, 6]);
    let expected = bits(&CpuBackend::unary(Exp, &a).unwrap());
    let at = address(&a);
    let layout = a.layout().reshape("r", &[24].into()).unwrap().unwrap();
    let view = CpuBackend::view(&a, layout).unwrap();
    let mut kept = CpuBackend::view(&view, *a.layout()).unwrap();
    let copied = CpuBackend::unary(Exp, Arg::Owned(view)).unwrap();
    assert_ne!(address(&copied), at, "the memory is shared");
    assert_eq!((bits(&copied), copied.shape().dims()), (expected.clone(), &[24][..]));
    assert!(kept.as_slice_mut::<f32>().is_err(), "the memory is shared with a");
    drop(a);
    kept.as_slice_mut::<f32>().unwrap()[0] += 0.0;
    let layout = kept.layout().reshape("r", &[3, 8].into()).unwrap().unwrap();
    let view = CpuBackend::view(&kept, layout).unwrap();
    drop(kept);
    let there = CpuBackend::unary(Exp, Arg::Owned(view)).unwrap();
    assert_eq!((address(&there), there.shape().dims()), (at, &[3, 8][..]));
    assert_eq!(bits(&there), expected);
}

#[test]
fn a_reduction_has_the_same_bits_in_every_layout() {
    let base = wild([40, 3000, 5]);
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1], [2, 0, 1]] {
        let view = CpuBackend::view(&base, base.layout().permute("p", &order).unwrap()).unwrap();
        for view in [view.clone(), {
            let flipped = view.layout().flip(1);
            CpuBackend::view(&view, flipped).unwrap()
        }] {
            let copy = CpuBackend::contiguous(&view).unwrap();
            for axes in [&[0][..], &[1], &[2], &[0, 1], &[1, 2], &[0, 2], &[0, 1, 2], &[]] {
                for op in ReduceOp::ALL {
                    let seen = CpuBackend::reduce(op, &view, axes).unwrap();
                    let copied = CpuBackend::reduce(op, &copy, axes).unwrap();
                    // Indices and booleans are exact in f32.
                    let [seen, copied] =
                        [seen, copied].map(|x| CpuBackend::cast(&x, DType::F32).unwrap());
                    assert_eq!(bits(&seen), bits(&copied), "{op:?} {order:?} {axes:?}");
                }
            }
        }
    }
}

#[test]
fn a_view_beyond_the_storage_is_an_error() {
    let x = wild([6]);
    assert!(CpuBackend::view(&x, Layout::contiguous([7].into())).is_err());
    assert!(CpuBackend::view(&x, Layout::contiguous([2, 3].into())).is_ok());
}

#[test]
fn slices_need_the_dtype_contiguity_and_unshared_storage() {
    let mut x = wild([4, 3]);
    assert!(matches!(x.as_slice::<f64>(), Err(Error::DTypeMismatch { .. })));
    assert!(t(&x).as_slice::<f32>().is_err());
    let other = x.clone();
    assert!(x.as_slice_mut::<f32>().is_err());
    drop(other);
    x.as_slice_mut::<f32>().unwrap()[5] = 7.0;
    assert_eq!(x.as_slice::<f32>().unwrap()[5], 7.0);
}

/// The product that backends without a kernel compose, with several parts along the inner axis.
#[test]
fn composed_products_of_integers_are_those_of_the_kernel() {
    for (a, b) in [([3, 7], [7, 5]), ([1, 0], [0, 2]), ([900, 40], [40, 700])] {
        let integers = |dims: [usize; 2], step: i64| {
            let values = (0..dims[0] * dims[1]).map(|i| (i as i64 * step) << (i % 50)).collect();
            CpuBackend::from_host(HostData::I64(values), dims.into()).unwrap()
        };
        let (a, b) = (integers(a, 7), integers(b, -13));
        let composed =
            crate::backend::integer_matmul::integer_matmul::<CpuBackend>(&a, &b).unwrap();
        let product = CpuBackend::matmul(&a, &b).unwrap();
        assert_eq!(composed.shape(), product.shape());
        assert_eq!(CpuBackend::to_host(&composed), CpuBackend::to_host(&product));
    }
}

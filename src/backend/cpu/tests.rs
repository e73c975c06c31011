//! What the comparison with the reference backend cannot see: whose memory a result has, and that
//! neither threads nor layouts change a bit.

use super::*;
use crate::backend::transposed;
use crate::ops::{BinaryOp::Add, ReduceOp, UnaryOp::Exp};

/// Numbers of very different sizes, so that the order of additions shows in their sum.
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
fn an_operand_given_away_gives_its_memory() {
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
    assert_ne!(address(&copied), at, "a part of a storage is not the result's size");
}

#[test]
fn a_view_of_a_whole_storage_gives_its_memory_and_a_lone_one_is_written() {
    let a = wild([4, 6]);
    let expected = bits(&CpuBackend::unary(Exp, &a).unwrap());
    let at = address(&a);
    let layout = a.layout().reshape("r", &[24].into()).unwrap().unwrap();
    let view = CpuBackend::view(&a, layout).unwrap();
    let mut kept = CpuBackend::view(&view, *a.layout()).unwrap();
    let copied = CpuBackend::unary(Exp, Arg::Owned(view)).unwrap();
    assert_ne!(address(&copied), at, "others refer to the memory");
    assert_eq!((bits(&copied), copied.shape().dims()), (expected.clone(), &[24][..]));
    assert!(kept.as_slice_mut::<f32>().is_err(), "a refers to the memory");
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
fn extremes_of_16_bit_columns_are_those_of_rows() {
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
        let turned = CpuBackend::contiguous(&t(&x)).unwrap();
        let norm = |p| ReduceOp::Norm { p };
        let norms = [norm(f64::INFINITY), norm(f64::NEG_INFINITY)];
        let ops = [ReduceOp::Max, ReduceOp::Min, ReduceOp::ArgMax, ReduceOp::ArgMin];
        for op in ops.into_iter().chain(norms) {
            let found = CpuBackend::reduce(op, &x, &[0]).unwrap();
            let wanted = CpuBackend::reduce(op, &turned, &[1]).unwrap();
            let [found, wanted] =
                [found, wanted].map(|x| CpuBackend::cast(&x, DType::F32).unwrap());
            assert_eq!(bits(&found), bits(&wanted), "{op:?} of {dtype}");
        }
    }
}

#[test]
fn an_operand_that_meets_itself_is_shared() {
    let a = wild([300]);
    let twice = CpuBackend::binary(Add, Arg::Owned(a.clone()), &a).unwrap();
    let expected = CpuBackend::binary(Add, &a, &a).unwrap();
    assert_eq!(bits(&twice), bits(&expected));
}

#[test]
fn in_place_on_either_side_equals_out_of_place() {
    let (a, b) = (wild([64, 96]), t(&wild([96, 64])));
    for op in [BinaryOp::Sub, BinaryOp::Div, BinaryOp::Maximum] {
        let expected = bits(&CpuBackend::binary(op, &a, &b).unwrap());
        let own = |x: &CpuTensor| {
            CpuBackend::from_host(CpuBackend::to_host(x).unwrap(), *x.shape()).unwrap()
        };
        let left = CpuBackend::binary(op, Arg::Owned(own(&a)), &b).unwrap();
        assert_eq!(bits(&left), expected, "{op:?}");
        let right = CpuBackend::binary(op, &a, Arg::Owned(own(&b))).unwrap();
        assert_eq!(bits(&right), expected, "{op:?}");
    }
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
                    // The tree itself, fed with each result's elements written out in order.
                    let copied = CpuBackend::reduce(op, &copy, axes).unwrap();
                    // Positions and truth values are exact in f32.
                    let [seen, copied] =
                        [seen, copied].map(|x| CpuBackend::cast(&x, DType::F32).unwrap());
                    assert_eq!(bits(&seen), bits(&copied), "{op:?} {order:?} {axes:?}");
                }
            }
        }
    }
}

#[test]
fn sums_along_any_axis_have_the_bits_of_the_slice() {
    let x = wild([2100, 37]);
    let columns = bits(&CpuBackend::reduce(ReduceOp::Sum, &x, &[0]).unwrap());
    let means = bits(&CpuBackend::reduce(ReduceOp::Mean, &x, &[0]).unwrap());
    let values = x.as_slice::<f32>().unwrap();
    for col in 0..37 {
        let column: Vec<f32> = values.iter().skip(col).step_by(37).copied().collect();
        assert_eq!(columns[col], swath_kernels::sum(&column).to_bits());
        let mut sum = swath_kernels::PairwiseSum::new();
        sum.push_slice(&column);
        assert_eq!(means[col], ((sum.finish() / 2100.0) as f32).to_bits());
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let (a, b) = (wild([1100, 1300]), wild([1300, 1100]));
    let (p, q) = (wild([9, 150, 160]), wild([9, 160, 140]));
    let (embedding, few) = (wild([50, 24]), wild([9000, 40]));
    let index: Vec<i64> = (0..4000).map(|i| i * 7 % 50).collect();
    let index = CpuBackend::from_host(HostData::I64(index), [4000, 1].into()).unwrap();
    let index =
        CpuBackend::view(&index, index.layout().broadcast_to("i", &[4000, 24].into()).unwrap())
            .unwrap();
    let run = || {
        let rows = CpuBackend::gather(&embedding, 0, &index).unwrap();
        [
            CpuBackend::unary(Exp, &t(&a)).unwrap(),
            CpuBackend::unary(Exp, &t(&few)).unwrap(),
            CpuBackend::binary(Add, &t(&few), &t(&few)).unwrap(),
            CpuBackend::binary(Add, &t(&a), &b).unwrap(),
            CpuBackend::reduce(ReduceOp::Sum, &a, &[0, 1]).unwrap(),
            CpuBackend::reduce(ReduceOp::Sum, &a, &[0]).unwrap(),
            CpuBackend::reduce(ReduceOp::Mean, &a, &[0]).unwrap(),
            CpuBackend::reduce(ReduceOp::Max, &a, &[1]).unwrap(),
            CpuBackend::reduce(ReduceOp::Variance { ddof: 1 }, &a, &[0, 1]).unwrap(),
            CpuBackend::reduce(ReduceOp::Variance { ddof: 1 }, &a, &[0]).unwrap(),
            CpuBackend::reduce(ReduceOp::LogSumExp, &a, &[0, 1]).unwrap(),
            CpuBackend::reduce(ReduceOp::Norm { p: 2.0 }, &a, &[0, 1]).unwrap(),
            CpuBackend::matmul(&a, &b).unwrap(),
            CpuBackend::matmul(&p, &q).unwrap(),
            CpuBackend::scatter_add(&embedding, 0, &index, &rows).unwrap(),
            CpuBackend::contiguous(&t(&b)).unwrap(),
        ]
        .map(|x| bits(&x))
    };
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let one = pool(1).install(run);
    for threads in [2, 3, 7] {
        let many = pool(threads).install(run);
        for (i, (one, many)) in one.iter().zip(&many).enumerate() {
            assert!(one == many, "result {i} on {threads} threads");
        }
    }
}

#[test]
fn a_steady_loop_takes_its_memory_from_the_pool() {
    let (a, b) = (wild([300, 200]), wild([200, 100]));
    let step = || {
        let y = CpuBackend::matmul(&a, &b).unwrap();
        CpuBackend::reduce(ReduceOp::Sum, &CpuBackend::unary(Exp, &t(&y)).unwrap(), &[0]).unwrap()
    };
    step();
    // Other tests share the pool and may take a block in between: one quiet step is enough.
    let quiet = (0..50).any(|_| {
        let before = crate::runtime::memory::stats();
        step();
        let after = crate::runtime::memory::stats();
        after.allocated == before.allocated && after.reused >= before.reused + 3
    });
    assert!(quiet, "{}", crate::runtime::memory::stats());
}

#[test]
fn a_view_beyond_the_storage_is_an_error() {
    let x = wild([6]);
    assert!(CpuBackend::view(&x, Layout::contiguous([7].into())).is_err());
    assert!(CpuBackend::view(&x, Layout::contiguous([2, 3].into())).is_ok());
}

#[test]
fn slices_are_of_the_dtype_contiguous_and_alone() {
    let mut x = wild([4, 3]);
    assert!(matches!(x.as_slice::<f64>(), Err(Error::DTypeMismatch { .. })));
    assert!(t(&x).as_slice::<f32>().is_err());
    let other = x.clone();
    assert!(x.as_slice_mut::<f32>().is_err());
    drop(other);
    x.as_slice_mut::<f32>().unwrap()[5] = 7.0;
    assert_eq!(x.as_slice::<f32>().unwrap()[5], 7.0);
}

//! Tensors large enough to be split over threads, with one op of each kind.

use crate::testing::suite::Tested;
use crate::testing::suite::agree::{Disagreements, Reference, Tolerance, among};
use crate::testing::suite::inputs::{Arrangement, Fill, Input, Rng};
use swath::ops::{BinaryOp, CompareOp, ReduceOp, UnaryOp};
use swath::{Arg, Backend, DType, Scalar, Tensor, TensorData};

/// Over a million elements; no extent is a multiple of a vector or a block.
const SHAPE: [usize; 2] = [1031, 1019];

const EXACT: Tolerance = Tolerance::EXACT;

fn large_tensors_agree<B: Tested>(arrangement: Arrangement, other: Arrangement) {
    let mut rng = Rng(arrangement as u64);
    let mut seen = Disagreements::default();
    let fill = Fill::plain(0.5, 2.0);
    let mut input =
        |dtype, arrangement| Input::new(dtype, SHAPE, arrangement, || fill.draw(&mut rng, dtype));
    let (a, b) = (input(DType::F32, arrangement), input(DType::F32, other));
    let (x, y) = (a.on::<B>(), b.on::<B>());
    let (u, v) = (a.on::<Reference>(), b.on::<Reference>());
    let mut compare = |op: &str, got, want, tolerance: &Tolerance| {
        seen.compare::<B>(|| format!("{op} {arrangement:?} {other:?}"), got, want, tolerance);
    };

    let (got, want) = (B::unary(UnaryOp::Exp, &x), Reference::unary(UnaryOp::Exp, &u));
    compare("exp", got, want, &Tolerance::ulp(1));
    let want = || Reference::binary(BinaryOp::Sub, &u, &v);
    compare("sub", B::binary(BinaryOp::Sub, &x, &y), want(), &EXACT);
    let given_away = (Arg::Owned(a.on::<B>()), Arg::Owned(y.clone()));
    compare("sub, owned", B::binary(BinaryOp::Sub, given_away.0, given_away.1), want(), &EXACT);
    let (less, smaller) =
        (B::compare(CompareOp::Lt, &x, &y), Reference::compare(CompareOp::Lt, &u, &v));
    compare("lt", less.clone(), smaller.clone(), &EXACT);
    let got = B::where_cond(&less.unwrap(), &x, &y);
    compare("where", got, Reference::where_cond(&smaller.unwrap(), &u, &v), &EXACT);
    compare("cast", B::cast(&x, DType::F16), Reference::cast(&u, DType::F16), &EXACT);
    compare("contiguous", B::contiguous(&x), Ok(u.clone()), &EXACT);
    compare("cat", B::cat(&[&x, &y], 1), Reference::cat(&[&u, &v], 1), &EXACT);
    for axes in [&[0][..], &[1], &[0, 1]] {
        // All terms are positive: u Σ|x| is half an ULP of the sum.
        let (got, want) =
            (B::reduce(ReduceOp::Sum, &x, axes), Reference::reduce(ReduceOp::Sum, &u, axes));
        compare("sum", got, want, &Tolerance::ulp(1));
        let (got, want) =
            (B::reduce(ReduceOp::Max, &x, axes), Reference::reduce(ReduceOp::Max, &u, axes));
        compare("max", got, want, &EXACT);
    }
    let index = Input::new(DType::I64, [2000, SHAPE[1]], Arrangement::RepeatedColumns, || {
        Scalar::Int(rng.below(SHAPE[0]) as i64)
    });
    let (rows, lines) = (index.on::<B>(), index.on::<Reference>());
    let (got, want) = (B::gather(&x, 0, &rows), Reference::gather(&u, 0, &lines));
    compare("gather", got.clone(), want.clone(), &EXACT);
    let (ours, theirs) = (got.unwrap(), want.unwrap());
    assert_eq!(ours.shape(), theirs.shape());
    let got = B::scatter_add(&y, 0, &rows, &ours);
    compare("scatter_add", got, Reference::scatter_add(&v, 0, &lines, &theirs), &EXACT);
    seen.finish();
}

pub fn large_contiguous_tensors_agree<B: Tested>() {
    large_tensors_agree::<B>(Arrangement::Contiguous, Arrangement::RepeatedRows);
}

pub fn large_permuted_tensors_agree<B: Tested>() {
    large_tensors_agree::<B>(Arrangement::Permuted, Arrangement::Contiguous);
}

pub fn large_tensors_of_mixed_arrangement_agree<B: Tested>() {
    large_tensors_agree::<B>(Arrangement::Mixed, Arrangement::Stepped);
}

/// Concatenates runs of every small width, in more rows than are copied at a time.
pub fn cat_of_narrow_tensors_agrees<B: Tested>() {
    const ROWS: usize = 4099;
    for dtype in among::<B>(&[DType::U8, DType::BF16, DType::F32, DType::I64]) {
        for width in (0..=20).chain([31, 32, 33, 48, 63, 64, 65]) {
            let widths = [width, 1, 3, width];
            let value = |part: usize, i: usize| ((part * 37 + i * 11) % 101) as f32;
            let parts: Vec<Tensor<B>> = (0..4)
                .map(|part| {
                    let values = (0..ROWS * widths[part]).map(|i| value(part, i)).collect();
                    let x = Tensor::from_vec(values, [ROWS, widths[part]]).unwrap();
                    x.to_dtype(dtype).unwrap()
                })
                .collect();
            let joined = Tensor::cat(&parts.iter().collect::<Vec<_>>(), 1).unwrap();
            let found = joined.to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap();
            let rows = (0..ROWS).flat_map(|row| (0..4).map(move |part| (row, part)));
            let want = rows.flat_map(|(row, part)| {
                let from = row * widths[part];
                (from..from + widths[part]).map(move |i| value(part, i))
            });
            assert!(want.eq(found), "{dtype}, width {width}");
        }
    }
}

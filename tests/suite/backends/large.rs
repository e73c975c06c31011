//! Tensors large enough that a backend splits the work over threads, one op of each kind.

use swath::ops::{BinaryOp, CompareOp, ReduceOp, UnaryOp};
use swath::{Arg, Backend, DType, Scalar, TensorData};

use super::Subject;
use crate::support::agree::{Disagreements, Reference, Tolerance};
use crate::support::inputs::{Arrangement, Fill, Input, Rng};

/// Above a million elements; no extent is a multiple of a vector or a block.
const SHAPE: [usize; 2] = [1031, 1019];

const EXACT: Tolerance = Tolerance::EXACT;

fn large_tensors_agree<B: Backend>(arrangement: Arrangement, other: Arrangement) {
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
        // All terms are positive: u Σ|x| is half a place of the sum.
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

#[test]
fn large_contiguous_tensors_agree() {
    large_tensors_agree::<Subject>(Arrangement::Contiguous, Arrangement::RepeatedRows);
}

#[test]
fn large_permuted_tensors_agree() {
    large_tensors_agree::<Subject>(Arrangement::Permuted, Arrangement::Contiguous);
}

#[test]
fn large_tensors_of_mixed_arrangement_agree() {
    large_tensors_agree::<Subject>(Arrangement::Mixed, Arrangement::Stepped);
}

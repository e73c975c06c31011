//! Owned operands: they give the same values as borrowed ones, and tensors that share their storage do not
//! change.

use crate::testing::suite::Tested;
use crate::testing::suite::agree::{Disagreements, Reference, Tolerance, dtypes, first_difference};
use crate::testing::suite::inputs::{Arrangement, Fill, Input, Rng, Specials};
use swath::ops::{BinaryOp, CompareOp, UnaryOp};
use swath::{Arg, Backend, HostData, Scalar};

const SHAPES: [&[usize]; 6] = [&[], &[0], &[7], &[3, 5], &[33, 65], &[2, 3, 4, 5]];

fn inputs<B: Tested>(rng: &mut Rng) -> Vec<Input> {
    let fill = Fill::plain(0.25, 4.0).with(5, Specials::Divisors);
    let mut inputs = Vec::new();
    for dtype in dtypes::<B>() {
        for shape in SHAPES {
            for arrangement in Arrangement::ALL {
                inputs.push(Input::new(dtype, shape, arrangement, || fill.draw(rng, dtype)));
            }
        }
    }
    inputs
}

fn text<B: Backend>(x: &B::Tensor) -> String {
    format!("{:?}", B::to_host(x).unwrap())
}

/// Two runs of one backend must give the same bits.
fn assert_same<B: Backend>(
    context: &str,
    got: swath::Result<B::Tensor>,
    want: &swath::Result<B::Tensor>,
) {
    match (got, want) {
        (Ok(got), Ok(want)) => {
            let (got, want) = (B::to_host(&got).unwrap(), B::to_host(want).unwrap());
            let difference = first_difference(&got, &want, &Tolerance::EXACT);
            assert!(difference.is_none(), "{context}: {}", difference.unwrap_or_default());
        }
        (Err(got), Err(want)) => assert_eq!(&got, want, "{context}"),
        (got, want) => panic!("{context}: {got:?}, not {want:?}"),
    }
}

pub fn unary_ops_on_owned_operands<B: Tested>() {
    let mut rng = Rng(1);
    for x in inputs::<B>(&mut rng) {
        for op in [UnaryOp::Neg, UnaryOp::Exp, UnaryOp::Sqrt, UnaryOp::Square] {
            let context = format!("{} {} {} {:?}", op.name(), x.dtype(), x.shape, x.arrangement);
            let kept = x.on::<B>();
            let before = text::<B>(&kept);
            let want = B::unary(op, &kept);
            assert_same::<B>(&context, B::unary(op, Arg::Owned(x.on::<B>())), &want);
            // `kept` shares the storage of the owned operand.
            assert_same::<B>(&context, B::unary(op, Arg::Owned(kept.clone())), &want);
            assert_eq!(text::<B>(&kept), before, "{context}: a shared operand was modified");
        }
    }
}

pub fn binary_ops_on_owned_operands<B: Tested>() {
    let mut rng = Rng(2);
    let fill = Fill::plain(0.25, 4.0).with(5, Specials::Divisors);
    for a in inputs::<B>(&mut rng) {
        let arrangement = rng.pick(&Arrangement::ALL);
        let b = Input::new(a.dtype(), a.shape, arrangement, || fill.draw(&mut rng, a.dtype()));
        for op in [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Div, BinaryOp::Maximum] {
            let context = format!(
                "{} {} {} {:?} {:?}",
                op.name(),
                a.dtype(),
                a.shape,
                a.arrangement,
                b.arrangement
            );
            let (x, y) = (a.on::<B>(), b.on::<B>());
            let before = (text::<B>(&x), text::<B>(&y));
            let fresh = || (a.on::<B>(), b.on::<B>());
            let owned = Arg::Owned::<B::Tensor>;
            let want = B::binary(op, &x, &y);
            let runs = [
                B::binary(op, owned(fresh().0), &y),
                B::binary(op, &x, owned(fresh().1)),
                B::binary(op, owned(fresh().0), owned(fresh().1)),
                B::binary(op, owned(x.clone()), owned(fresh().1)),
                B::binary(op, owned(fresh().0), owned(y.clone())),
                B::binary(op, owned(x.clone()), owned(y.clone())),
            ];
            for (i, got) in runs.into_iter().enumerate() {
                assert_same::<B>(&format!("{context} run {i}"), got, &want);
            }
            // Both operands are views of one storage, which has no other owner.
            let itself = B::binary(op, &x, &x);
            let twice = a.on::<B>();
            let got = B::binary(op, owned(twice.clone()), owned(twice));
            assert_same::<B>(&format!("{context} with itself"), got, &itself);

            let number = || Arg::Scalar(Scalar::Int(3));
            let want = B::binary(op, &x, number());
            assert_same::<B>(&context, B::binary(op, owned(fresh().0), number()), &want);
            let want = B::binary(op, number(), &x);
            assert_same::<B>(&context, B::binary(op, number(), owned(fresh().0)), &want);
            let after = (text::<B>(&x), text::<B>(&y));
            assert_eq!(after, before, "{context}: a shared operand was modified");
        }
        let (x, y) = (a.on::<B>(), b.on::<B>());
        let want = B::compare(CompareOp::Le, &x, &y);
        let got = B::compare(CompareOp::Le, Arg::Owned(x.clone()), Arg::Owned(b.on::<B>()));
        assert_same::<B>("le", got, &want);
    }
}

/// Uses results of owned operands further: their storage must not be shared with another tensor.
pub fn chains_of_owned_results_agree<B: Tested>() {
    fn chain<B: Backend>(values: Vec<f32>) -> swath::Result<(B::Tensor, B::Tensor)> {
        let shape = values.len();
        let x = B::from_host(HostData::F32(values), shape.into())?;
        let mut y = B::unary(UnaryOp::Neg, &x)?;
        for op in [UnaryOp::Square, UnaryOp::Sqrt, UnaryOp::Neg, UnaryOp::Abs] {
            let view = y.clone();
            y = B::unary(op, Arg::Owned(y))?;
            drop(view);
            y = B::binary(BinaryOp::Add, Arg::Owned(y), &x)?;
        }
        Ok((x, y))
    }
    let mut seen = Disagreements::default();
    for len in [1, 7, 1030, 100_000] {
        let values: Vec<f32> = (0..len).map(|i| i as f32 * 0.37 - 11.0).collect();
        let (got, want) =
            (chain::<B>(values.clone()).unwrap(), chain::<Reference>(values).unwrap());
        seen.compare::<B>(|| format!("x {len}"), Ok(got.0), Ok(want.0), &Tolerance::EXACT);
        seen.compare::<B>(|| format!("y {len}"), Ok(got.1), Ok(want.1), &Tolerance::EXACT);
    }
    seen.finish();
}

/// `accumulate_grad` adds into its first operand, but not into tensors that share its storage.
pub fn accumulate_grad_leaves_copies_unchanged<B: Tested>() {
    let values = |x: f32| B::from_vec(vec![x, 2.0 * x], 2).unwrap();
    let mut total = values(1.0);
    let copy = total.clone();
    B::accumulate_grad(&mut total, &values(10.0)).unwrap();
    assert_eq!(B::to_host(&total).unwrap(), HostData::F32(vec![11.0, 22.0]));
    assert_eq!(B::to_host(&copy).unwrap(), HostData::F32(vec![1.0, 2.0]));
    assert!(B::accumulate_grad(&mut total, &B::zeros(3).unwrap()).is_err());
    assert_eq!(B::to_host(&total).unwrap(), HostData::F32(vec![11.0, 22.0]));
}

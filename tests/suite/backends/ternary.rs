//! Ops of three operands, in every layout, with numbers in place of some, and given away.

use swath::ops::TernaryOp;
use swath::{Arg, Backend, DType, HostData, Scalar, TensorData};

use super::Subject;
use super::elementwise::{Bounds, tolerance};
use crate::support::agree::{Disagreements, Reference, Tolerance};
use crate::support::inputs::{Arrangement, Fill, Input, Rng, SHAPES, Specials};

/// Sums cancel: what holds is relative to the operands, of at most 4 where bounds have units.
fn bounds(op: TernaryOp) -> (Bounds, Specials) {
    match op {
        TernaryOp::Clamp | TernaryOp::LeakyReluGrad => (Bounds(0, 0, 0.0), Specials::All),
        TernaryOp::MulAdd => (Bounds(1, 0, 0.0), Specials::All),
        TernaryOp::EluGrad => (Bounds(3, 4, 0.0), Specials::Unit),
        _ => (Bounds(2, 2, 8.0), Specials::Unit),
    }
}

fn inputs(op: TernaryOp, dtype: DType, shape: &[usize], rng: &mut Rng, turn: usize) -> [Input; 3] {
    let all = Arrangement::ALL;
    [0, 1, 2].map(|i| {
        let (low, high) = op.domain()[i];
        // Bounds stay in order.
        let specials = if op == TernaryOp::Clamp && i > 0 { 0 } else { 4 };
        let fill = match specials {
            0 => Fill::plain(low, high),
            every => Fill::plain(low, high).with(every, bounds(op).1),
        };
        let arrangement = all[(turn * (i + 1) + i) % all.len()];
        Input::new(dtype, shape, arrangement, || fill.draw(rng, dtype))
    })
}

fn allowed(op: TernaryOp, dtype: DType, x: &Input) -> Tolerance {
    let largest = HostData::F64(vec![4.0; x.on::<Reference>().shape().numel()]);
    tolerance(&bounds(op).0, dtype, Some(&largest))
}

fn number<'a, T>(value: f64) -> Arg<'a, T> {
    Arg::Scalar(Scalar::Float(value))
}

fn ternary_agrees<B: Backend>() {
    let mut seen = Disagreements::default();
    for &op in TernaryOp::ALL {
        let mut rng = Rng(200 + op as u64);
        for dtype in DType::ALL {
            for shape in SHAPES {
                for turn in 0..Arrangement::ALL.len() {
                    let [a, b, c] = inputs(op, dtype, shape, &mut rng, turn);
                    let tolerance = allowed(op, dtype, &a);
                    let (x, y, z) = (a.on::<B>(), b.on::<B>(), c.on::<B>());
                    let (r, s, t) = (a.on::<Reference>(), b.on::<Reference>(), c.on::<Reference>());
                    let context = || format!("{} {dtype} {shape:?}, turn {turn}", op.name());
                    let want = Reference::ternary(op, &r, &s, &t);
                    seen.compare::<B>(context, B::ternary(op, &x, &y, &z), want, &tolerance);
                    let got = B::ternary(op, &x, number(-0.5), number(0.75));
                    let want = Reference::ternary(op, &r, number(-0.5), number(0.75));
                    seen.compare::<B>(context, got, want, &tolerance);
                    let got = B::ternary(op, number(0.25), &y, number(0.75));
                    let want = Reference::ternary(op, number(0.25), &s, number(0.75));
                    seen.compare::<B>(context, got, want, &tolerance);
                }
            }
        }
    }
    seen.finish();
}

#[test]
fn ops_of_three_operands_agree() {
    ternary_agrees::<Subject>();
}

fn owned_is_ref<B: Backend>() {
    let mut rng = Rng(300);
    for op in [TernaryOp::MulAdd, TernaryOp::Lerp] {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            for shape in [&[7][..], &[3, 5], &[33, 65]] {
                for turn in 0..Arrangement::ALL.len() {
                    let all = inputs(op, dtype, shape, &mut rng, turn);
                    let [x, y, z] = all.each_ref().map(|input| input.on::<B>());
                    let text = |x: &B::Tensor| format!("{:?}", B::to_host(x).unwrap());
                    let want = text(&B::ternary(op, &x, &y, &z).unwrap());
                    for owned in 1..8 {
                        let [a, b, c] = [0, 1, 2].map(|i| match owned >> i & 1 {
                            1 => Arg::Owned(all[i].on::<B>()),
                            _ => Arg::Ref([&x, &y, &z][i]),
                        });
                        let got = text(&B::ternary(op, a, b, c).unwrap());
                        assert_eq!(got, want, "{} {dtype} {shape:?}, {owned:b}", op.name());
                    }
                }
            }
        }
    }
}

#[test]
fn operands_of_three_that_are_given_away_give_the_same() {
    owned_is_ref::<Subject>();
}

//! Ternary ops in every layout, with scalars as some of the operands, and with owned operands, against the
//! composite on the reference backend in `f64`.

use super::elementwise::{Bounds, tolerance};
use crate::testing::suite::Tested;
use crate::testing::suite::agree::{Disagreements, Reference, ReferenceTensor, among, dtypes};
use crate::testing::suite::inputs::{Arrangement, Fill, Input, Rng, SHAPES, Specials};
use crate::testing::suite::is_sampled;
use crate::testing::suite::oracle::{values, wide};
use swath::ops::TernaryOp;
use swath::{Arg, Backend, DType, HostData, Scalar};

/// Sums may cancel, so bounds with units are relative to the operands, which are at most 4.
fn bounds<B: Tested>(op: TernaryOp) -> (Bounds, Specials) {
    match op {
        TernaryOp::Clamp | TernaryOp::LeakyReluGrad => (Bounds(0, 0, 0.0), Specials::All),
        // A composite rounds the product, which may overflow.
        TernaryOp::MulAdd if B::SLACK > 1.0 => (Bounds(1, 1, 8.0), Specials::NoHuge),
        TernaryOp::MulAdd => (Bounds(1, 0, 0.0), Specials::All),
        TernaryOp::EluGrad => (Bounds(3, 4, 0.0), Specials::Unit),
        _ => (Bounds(2, 2, 8.0), Specials::Unit),
    }
}

fn inputs<B: Tested>(
    op: TernaryOp,
    dtype: DType,
    shape: &[usize],
    rng: &mut Rng,
    turn: usize,
) -> [Input; 3] {
    let all = Arrangement::ALL;
    [0, 1, 2].map(|i| {
        let (low, high) = op.domain()[i];
        let plain = Fill::plain(low, high);
        // The lower bound must stay below the upper one.
        let fill = match op == TernaryOp::Clamp && i > 0 {
            true => plain,
            false => plain.with(4, bounds::<B>(op).1),
        };
        let arrangement = all[(turn * (i + 1) + i) % all.len()];
        Input::new(dtype, shape, arrangement, || fill.draw(rng, dtype))
    })
}

type Operand<'a> = (&'a Input, Option<f64>);

fn arg<'a, B: Backend>(x: &'a B::Tensor, number: Option<f64>) -> Arg<'a, B::Tensor> {
    number.map_or(Arg::Ref(x), |number| Arg::Scalar(Scalar::Float(number)))
}

/// `a · b + c` rounded once, where the composite rounds twice.
fn product_and_sum(operands: [Operand; 3]) -> ReferenceTensor {
    let shape = operands[0].0.shape;
    let [a, b, c] = operands.map(|(x, number)| match number {
        Some(number) => vec![number; shape.numel()],
        None => values(&wide(x)),
    });
    let each = a.into_iter().zip(b).zip(c).map(|((a, b), c)| a.mul_add(b, c));
    Reference::from_host(HostData::F64(each.collect()), shape).unwrap()
}

/// Compares one call, in which each operand is a tensor or a scalar.
fn compare<B: Tested>(
    seen: &mut Disagreements,
    op: TernaryOp,
    operands: [Operand; 3],
    turn: usize,
) {
    let dtype = operands[0].0.dtype();
    let [x, y, z] = operands.map(|(x, _)| x.on::<B>());
    let [a, b, c] = operands.map(|(_, number)| number);
    let got = B::ternary(op, arg::<B>(&x, a), arg::<B>(&y, b), arg::<B>(&z, c));
    let [x, y, z] = operands.map(|(x, _)| wide(x));
    let [a, b, c] = operands.map(|(_, number)| number);
    let (a, b, c) = (arg::<Reference>(&x, a), arg::<Reference>(&y, b), arg::<Reference>(&z, c));
    let want = Reference::ternary(op, a, b, c);
    let want = match (&want, op) {
        (Ok(_), TernaryOp::MulAdd) => Ok(product_and_sum(operands)),
        _ => want,
    };
    let context = || format!("{} {dtype} {}, turn {turn}", op.name(), operands[0].0.shape);
    let largest = HostData::F64(vec![4.0; operands[0].0.shape.numel()]);
    let tolerance = tolerance(&bounds::<B>(op).0, dtype, Some(&largest));
    let want = want.and_then(|y| Reference::cast(&y, dtype));
    seen.compare::<B>(context, got, want, &tolerance);
}

/// By default one of the three placements of scalars for each op, dtype, shape and turn, rotating with the
/// last three.
pub fn ternary_ops_agree<B: Tested>() {
    let mut seen = Disagreements::default();
    for &op in TernaryOp::ALL {
        let mut rng = Rng(200 + op as u64);
        for (d, dtype) in dtypes::<B>().enumerate() {
            for (s, shape) in SHAPES.into_iter().enumerate() {
                for turn in 0..Arrangement::ALL.len() {
                    let [a, b, c] = &inputs::<B>(op, dtype, shape, &mut rng, turn);
                    let numbers = [
                        [None, None, None],
                        [None, Some(-0.5), Some(0.75)],
                        [Some(0.25), None, Some(0.75)],
                    ];
                    let numbers = numbers.into_iter().enumerate();
                    let is_taken = |i| is_sampled(d + s + turn + i, 3);
                    for (_, [x, y, z]) in numbers.filter(|&(i, _)| is_taken(i)) {
                        compare::<B>(&mut seen, op, [(a, x), (b, y), (c, z)], turn);
                    }
                }
            }
        }
    }
    seen.finish();
}

pub fn ternary_ops_on_owned_operands<B: Tested>() {
    let mut rng = Rng(300);
    for op in [TernaryOp::MulAdd, TernaryOp::Lerp] {
        for dtype in among::<B>(&[DType::F16, DType::BF16, DType::F32, DType::F64]) {
            for shape in [&[7][..], &[3, 5], &[33, 65]] {
                for turn in 0..Arrangement::ALL.len() {
                    let all = inputs::<B>(op, dtype, shape, &mut rng, turn);
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

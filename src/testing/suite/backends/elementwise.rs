//! Unary and binary ops and comparisons.

use crate::testing::suite::Tested;
use crate::testing::suite::agree::{Disagreements, Reference, Tolerance, dtypes};
use crate::testing::suite::inputs::{Arrangement, Fill, Input, Rng, SHAPES, Specials};
use crate::testing::suite::is_sampled;
use crate::testing::suite::ulp::unit_roundoff;
use swath::ops::{BinaryOp, CompareOp, NumberTest, UnaryOp};
use swath::{Arg, Backend, DType, HostData, Scalar};

const EXACT: Tolerance = Tolerance::EXACT;

/// Error bounds of an op: ULP in f32, ULP in f64, and, near zeros of the result, an absolute error in
/// units of the spacing of floats at 1 times the first operand (0: none). 16-bit types are computed in
/// f32 and rounded once more.
///
/// The f64 bounds include the error of the reference formula, which is computed in f64 too: that of gelu
/// multiplies the rounding error of its argument by the argument, by 130 at the special value −9.
pub struct Bounds(pub u64, pub u64, pub f64);

/// Bounds of the ops that the functions below do not list.
const COMPOSED: Bounds = Bounds(2, 4, 0.0);

fn unary_bounds(op: UnaryOp) -> Bounds {
    match op {
        UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sign | UnaryOp::Square => Bounds(0, 0, 0.0),
        UnaryOp::Sqrt | UnaryOp::Recip | UnaryOp::Relu | UnaryOp::Relu6 => Bounds(0, 0, 0.0),
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc => Bounds(0, 0, 0.0),
        UnaryOp::Hardsigmoid | UnaryOp::Hardswish => Bounds(1, 3, 0.0),
        UnaryOp::Exp | UnaryOp::Log | UnaryOp::Sin | UnaryOp::Cos => Bounds(1, 2, 0.0),
        UnaryOp::Tanh | UnaryOp::Cbrt | UnaryOp::Rsqrt => Bounds(1, 3, 0.0),
        UnaryOp::Erf | UnaryOp::Erfc => Bounds(1, 8, 0.0),
        UnaryOp::Sigmoid => Bounds(1, 4, 0.0),
        UnaryOp::Silu => Bounds(2, 4, 0.0),
        UnaryOp::GeluTanh => Bounds(2, 256, 0.0),
        UnaryOp::Gelu => Bounds(1, 16, 0.0),
        _ => COMPOSED,
    }
}

fn binary_bounds(op: BinaryOp) -> Bounds {
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => Bounds(0, 0, 0.0),
        BinaryOp::Maximum | BinaryOp::Minimum | BinaryOp::ReluGrad => Bounds(0, 0, 0.0),
        BinaryOp::Rem | BinaryOp::Remainder => Bounds(0, 0, 0.0),
        BinaryOp::Pow | BinaryOp::Hypot => Bounds(1, 3, 0.0),
        BinaryOp::ErfGrad => Bounds(3, 8, 0.0),
        BinaryOp::LeakyRelu | BinaryOp::Relu6Grad => Bounds(0, 0, 0.0),
        BinaryOp::HardsigmoidGrad => Bounds(0, 0, 0.0),
        BinaryOp::TanhGrad => Bounds(1, 2, 1.0),
        BinaryOp::SigmoidGrad => Bounds(2, 4, 0.0),
        BinaryOp::SiluGrad | BinaryOp::GeluTanhGrad | BinaryOp::GeluGrad => Bounds(6, 8, 4.0),
        BinaryOp::MishGrad => Bounds(8, 8, 4.0),
        _ => COMPOSED,
    }
}

/// Special values of the second operand for which an op is defined.
fn second_operands(op: BinaryOp) -> Specials {
    match op {
        BinaryOp::TanhGrad | BinaryOp::SigmoidGrad => Specials::Unit,
        op if op.divides_integers() => Specials::Divisors,
        _ => Specials::All,
    }
}

/// Tolerance of the bounds for a dtype. `first` is the first operand, in `f64`.
pub fn tolerance(bounds: &Bounds, dtype: DType, first: Option<&HostData>) -> Tolerance {
    let Bounds(single, double, units) = *bounds;
    let ulp = match dtype {
        DType::F64 => double,
        DType::F32 => single,
        _ => single.min(1),
    };
    let unit = 2.0 * unit_roundoff(dtype) * units;
    let scales = first.filter(|_| units > 0.0).into_iter().flat_map(|first| {
        let finite = |x: Scalar| if x.to_f64().is_finite() { x.to_f64().abs() } else { 0.0 };
        (0..first.len()).filter_map(move |i| first.get(i).map(finite))
    });
    Tolerance { ulp, absolute: scales.map(|scale| unit * scale).collect() }
}

/// By default every second arrangement for each op, dtype and shape, alternating with all three.
pub fn unary_ops_agree<B: Tested>() {
    let mut seen = Disagreements::default();
    for (o, &op) in UnaryOp::ALL.iter().enumerate() {
        let mut rng = Rng(op as u64);
        let (low, high) = op.domain();
        let fill = Fill::plain(low, high).with(4, Specials::All);
        for (d, dtype) in dtypes::<B>().enumerate() {
            let tolerance = tolerance(&unary_bounds(op), dtype, None);
            for (s, shape) in SHAPES.into_iter().enumerate() {
                let arrangements = Arrangement::ALL.into_iter().enumerate();
                for (_, arrangement) in arrangements.filter(|(i, _)| is_sampled(o + d + s + i, 2)) {
                    let draw = || fill.draw(&mut rng, dtype);
                    let x = Input::new(dtype, shape, arrangement, draw);
                    let got = B::unary(op, &x.on::<B>());
                    let want = Reference::unary(op, &x.on::<Reference>());
                    let context = || format!("{} {dtype} {shape:?} {arrangement:?}", op.name());
                    seen.compare::<B>(context, got, want, &tolerance);
                }
            }
        }
    }
    seen.finish();
}

/// Pairs of arrangements: on small shapes all pairs, by default every second one, alternating with the
/// shape; on large shapes a rotating pairing.
fn pairings(shape: &[usize], turn: usize) -> Vec<(Arrangement, Arrangement)> {
    let all = Arrangement::ALL;
    if shape.iter().product::<usize>() > 500 {
        return (0..all.len()).map(|i| (all[i], all[(i + turn) % all.len()])).collect();
    }
    let pairs = (0..all.len()).flat_map(|a| (0..all.len()).map(move |b| [a, b]));
    let taken = pairs.filter(|[a, b]| is_sampled(turn + a + b, 2));
    taken.map(|[a, b]| (all[a], all[b])).collect()
}

fn in_f64(x: &Input) -> HostData {
    Reference::to_host(&Reference::cast(&x.on::<Reference>(), DType::F64).unwrap()).unwrap()
}

fn binary_agrees<B: Tested>(among: &[DType]) {
    let mut seen = Disagreements::default();
    for &op in BinaryOp::ALL {
        let mut rng = Rng(100 + op as u64);
        let [a_domain, b_domain] = op.domain();
        let a_fill = Fill::plain(a_domain.0, a_domain.1).with(4, Specials::All);
        let b_fill = Fill::plain(b_domain.0, b_domain.1).with(4, second_operands(op));
        for dtype in dtypes::<B>().filter(|dtype| among.contains(dtype)) {
            for (turn, shape) in SHAPES.into_iter().enumerate() {
                for (a, b) in pairings(shape, turn) {
                    let a = Input::new(dtype, shape, a, || a_fill.draw(&mut rng, dtype));
                    let b = Input::new(dtype, shape, b, || b_fill.draw(&mut rng, dtype));
                    let tolerance = tolerance(&binary_bounds(op), dtype, Some(&in_f64(&a)));
                    let got = B::binary(op, &a.on::<B>(), &b.on::<B>());
                    let (x, y) = (a.on::<Reference>(), b.on::<Reference>());
                    let want = Reference::binary(op, &x, &y);
                    let context = || {
                        let (a, b) = (a.arrangement, b.arrangement);
                        format!("{} {dtype} {shape:?} {a:?} {b:?}", op.name())
                    };
                    seen.compare::<B>(context, got, want, &tolerance);
                }
            }
        }
    }
    seen.finish();
}

pub fn binary_ops_on_16_bit_floats_agree<B: Tested>() {
    binary_agrees::<B>(&[DType::F16, DType::BF16]);
}

pub fn binary_ops_on_floats_agree<B: Tested>() {
    binary_agrees::<B>(&[DType::F32, DType::F64]);
}

pub fn binary_ops_on_integers_agree<B: Tested>() {
    use DType::{Bool, I8, I16, I32, I64, U8, U16, U32, U64};
    binary_agrees::<B>(&[I64, U8, Bool, I32, U32, I8, I16, U16, U64]);
}

fn number<'a, T>(value: Scalar) -> Arg<'a, T> {
    Arg::Scalar(value)
}

/// Scalars as either operand, some of which the dtype cannot represent.
pub fn scalar_operands_agree<B: Tested>() {
    let scalars = [
        Scalar::Float(0.1),
        Scalar::Float(-2.75),
        Scalar::Float(300.5),
        Scalar::Float(f64::NAN),
        Scalar::Float(-0.0),
        Scalar::Int(3),
        Scalar::Int(-1),
        Scalar::Int((1 << 53) + 1),
    ];
    let mut rng = Rng(7);
    let mut seen = Disagreements::default();
    for dtype in dtypes::<B>() {
        for arrangement in Arrangement::ALL {
            let fill = Fill::plain(0.25, 4.0).with(8, Specials::Divisors);
            let x = Input::new(dtype, [3, 5], arrangement, || fill.draw(&mut rng, dtype));
            let (ours, theirs) = (x.on::<B>(), x.on::<Reference>());
            for scalar in scalars {
                let context = |op, side| format!("{op} {dtype} {arrangement:?} {scalar:?} {side}");
                for op in [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div] {
                    let got = B::binary(op, &ours, number(scalar));
                    let want = Reference::binary(op, &theirs, number(scalar));
                    seen.compare::<B>(|| context(op.name(), "right"), got, want, &EXACT);
                    let got = B::binary(op, number(scalar), &ours);
                    let want = Reference::binary(op, number(scalar), &theirs);
                    seen.compare::<B>(|| context(op.name(), "left"), got, want, &EXACT);
                }
                for op in CompareOp::ALL {
                    let got = B::compare(op, &ours, number(scalar));
                    let want = Reference::compare(op, &theirs, number(scalar));
                    seen.compare::<B>(|| context(op.name(), "right"), got, want, &EXACT);
                    let got = B::compare(op, number(scalar), &ours);
                    let want = Reference::compare(op, number(scalar), &theirs);
                    seen.compare::<B>(|| context(op.name(), "left"), got, want, &EXACT);
                }
            }
        }
    }
    seen.finish();
}

pub fn comparisons_of_tensors_agree<B: Tested>() {
    let mut seen = Disagreements::default();
    let mut rng = Rng(11);
    // Few distinct values, so that some pairs are equal.
    let fill = Fill::plain(-4.0, 4.0).with(2, Specials::All);
    for op in CompareOp::ALL {
        for dtype in dtypes::<B>() {
            for (turn, shape) in SHAPES.into_iter().enumerate() {
                for (a, b) in pairings(shape, turn) {
                    let a = Input::new(dtype, shape, a, || fill.draw(&mut rng, dtype));
                    let b = Input::new(dtype, shape, b, || fill.draw(&mut rng, dtype));
                    let got = B::compare(op, &a.on::<B>(), &b.on::<B>());
                    let (x, y) = (a.on::<Reference>(), b.on::<Reference>());
                    let want = Reference::compare(op, &x, &y);
                    let context = || {
                        let (a, b) = (a.arrangement, b.arrangement);
                        format!("{} {dtype} {shape:?} {a:?} {b:?}", op.name())
                    };
                    seen.compare::<B>(context, got, want, &EXACT);
                }
            }
        }
    }
    seen.finish();
}

pub fn number_tests_agree<B: Tested>() {
    let mut seen = Disagreements::default();
    let mut rng = Rng(13);
    let fill = Fill::plain(-4.0, 4.0).with(3, Specials::All);
    for op in NumberTest::ALL {
        for dtype in dtypes::<B>() {
            for shape in SHAPES {
                for arrangement in Arrangement::ALL {
                    let x = Input::new(dtype, shape, arrangement, || fill.draw(&mut rng, dtype));
                    let got = B::test(op, &x.on::<B>());
                    let want = Reference::test(op, &x.on::<Reference>());
                    let context = || format!("{} {dtype} {shape:?} {arrangement:?}", op.name());
                    seen.compare::<B>(context, got, want, &EXACT);
                }
            }
        }
    }
    seen.finish();
}

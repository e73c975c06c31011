//! Ops of one to three operands in all combinations of layouts, on tensors that are traversed in blocks of
//! rows, in tiles and in parts of tiles.

use crate::testing::suite::Tested;
use crate::testing::suite::agree::{Disagreements, Reference, ReferenceTensor, Tolerance, among};
use crate::testing::suite::inputs::{Arrangement, Input, Rng, host};
use crate::testing::suite::is_sampled;
use crate::testing::suite::oracle::values;
use swath::ops::{BinaryOp, CompareOp, NumberTest, TernaryOp, UnaryOp};
use swath::{Arg, Backend, DType, Result, Scalar, Shape, TensorData};

const EXACT: Tolerance = Tolerance::EXACT;

/// More than one tile in both directions, and rows that consist of two axes.
const SHAPES: [&[usize]; 2] = [&[70, 200], &[3, 9, 140]];

#[derive(Clone, Copy, Debug)]
enum Kind {
    As(Arrangement),
    /// Rows in reverse order, columns in order.
    Upwards,
    /// One element, broadcast to the shape.
    Repeated,
}

const KINDS: [Kind; 10] = {
    let mut kinds = [Kind::Repeated; 10];
    let mut i = 0;
    while i < Arrangement::ALL.len() {
        kinds[i] = Kind::As(Arrangement::ALL[i]);
        i += 1;
    }
    kinds[i] = Kind::Upwards;
    kinds
};

struct Operand {
    kind: Kind,
    shape: Shape,
    input: Input,
}

impl Operand {
    /// Random integers so small that every result is exact in every dtype.
    fn new(dtype: DType, shape: &[usize], kind: Kind, rng: &mut Rng, below: usize) -> Self {
        let (dims, arrangement) = match kind {
            Kind::As(arrangement) => (shape, arrangement),
            Kind::Upwards => (shape, Arrangement::Contiguous),
            Kind::Repeated => (&[][..], Arrangement::Contiguous),
        };
        let input = Input::new(dtype, dims, arrangement, || Scalar::Int(rng.below(below) as i64));
        Operand { kind, shape: shape.into(), input }
    }

    fn on<B: Backend>(&self) -> B::Tensor {
        let x = self.input.on::<B>();
        match self.kind {
            Kind::As(_) => x,
            Kind::Upwards => B::view(&x, x.layout().flip(0)).unwrap(),
            Kind::Repeated => {
                B::view(&x, x.layout().broadcast_to("test", &self.shape).unwrap()).unwrap()
            }
        }
    }
}

/// Triples of kinds: by default a fifth of them, in which each pair of kinds of any two operands occurs
/// twice.
fn triples() -> impl Iterator<Item = [Kind; 3]> {
    let count = KINDS.len();
    (0..count.pow(3))
        .map(move |mix| [mix, mix / count, mix / count / count].map(|i| i % count))
        .filter(|mix| is_sampled(mix.iter().sum(), 5))
        .map(|mix| mix.map(|i| KINDS[i]))
}

/// The elementwise function `f` of three operands, whose results must be exact in the dtype.
fn pointwise(dtype: DType, xs: [&Operand; 3], f: fn([f64; 3]) -> f64) -> Result<ReferenceTensor> {
    let all = xs.map(|x| values(&x.on::<Reference>()));
    let y = (0..all[0].len()).map(|i| Scalar::Float(f(all.each_ref().map(|x| x[i]))));
    Reference::from_host(host(dtype, y), xs[0].shape)
}

fn three_operands_agree<B: Tested>(dtype: DType) {
    let mut seen = Disagreements::default();
    let mut rng = Rng(31);
    for shape in SHAPES {
        for (turn, mix) in triples().enumerate() {
            let all = mix.map(|kind| Operand::new(dtype, shape, kind, &mut rng, 5));
            let [x, y, z] = all.each_ref().map(|input| input.on::<B>());
            let context = |what| move || format!("{what} {dtype} {shape:?} {mix:?}");
            let want = pointwise(dtype, all.each_ref(), |[a, b, c]| a * b + c);
            let got = B::ternary(TernaryOp::MulAdd, &x, &y, &z);
            seen.compare::<B>(context("mul_add"), got, want.clone(), &EXACT);
            // Each operand in turn is owned, so that its memory is reused if it is contiguous.
            let owned = Arg::Owned(all[turn % 3].on::<B>());
            let got = match turn % 3 {
                0 => B::ternary(TernaryOp::MulAdd, owned, &y, &z),
                1 => B::ternary(TernaryOp::MulAdd, &x, owned, &z),
                _ => B::ternary(TernaryOp::MulAdd, &x, &y, owned),
            };
            seen.compare::<B>(context("mul_add, owned"), got, want, &EXACT);
        }
    }
    seen.finish();
}

pub fn functions_of_three_operands_agree<B: Tested>() {
    among::<B>(&[DType::F32, DType::BF16]).for_each(three_operands_agree::<B>);
}

fn check_where_cond<B: Tested>(mask: DType, dtype: DType) {
    let mut seen = Disagreements::default();
    let mut rng = Rng(37);
    for shape in SHAPES {
        for mix in triples() {
            let m = Operand::new(mask, shape, mix[0], &mut rng, 2);
            let [a, b] = [mix[1], mix[2]].map(|kind| Operand::new(dtype, shape, kind, &mut rng, 5));
            let got = B::where_cond(&m.on::<B>(), &a.on::<B>(), &b.on::<B>());
            let want = pointwise(dtype, [&m, &a, &b], |[m, a, b]| if m != 0.0 { a } else { b });
            seen.compare::<B>(|| format!("{mask} {dtype} {shape:?} {mix:?}"), got, want, &EXACT);
        }
    }
    seen.finish();
}

pub fn where_cond_agrees_in_every_mix_of_layouts<B: Tested>() {
    check_where_cond::<B>(DType::Bool, DType::F32);
    if B::DTYPES.contains(&DType::F16) {
        check_where_cond::<B>(DType::F32, DType::F16);
        check_where_cond::<B>(DType::F16, DType::I64);
    }
}

fn one_and_two_operands_agree<B: Tested>(dtype: DType) {
    let mut seen = Disagreements::default();
    let mut rng = Rng(41);
    for (shape, a) in SHAPES.iter().flat_map(|shape| KINDS.map(|a| (shape, a))) {
        let x = Operand::new(dtype, shape, a, &mut rng, 5);
        let (ours, theirs) = (x.on::<B>(), x.on::<Reference>());
        let context = |what| move || format!("{what} {dtype} {shape:?} {a:?}");
        let (got, want) =
            (B::unary(UnaryOp::Square, &ours), Reference::unary(UnaryOp::Square, &theirs));
        seen.compare::<B>(context("square"), got, want, &EXACT);
        let (got, want) =
            (B::test(NumberTest::IsFinite, &ours), Reference::test(NumberTest::IsFinite, &theirs));
        seen.compare::<B>(context("finite"), got, want, &EXACT);
        let to = among::<B>(&[DType::F64, DType::BF16, DType::F32]).find(|&to| to != dtype);
        let to = to.unwrap_or(DType::F16);
        seen.compare::<B>(
            context("cast"),
            B::cast(&ours, to),
            Reference::cast(&theirs, to),
            &EXACT,
        );
        for b in KINDS {
            let y = Operand::new(dtype, shape, b, &mut rng, 5);
            let (other, of_reference) = (y.on::<B>(), y.on::<Reference>());
            let context = |what| move || format!("{what} {dtype} {shape:?} {a:?} {b:?}");
            let got = B::compare(CompareOp::Le, &ours, &other);
            let want = Reference::compare(CompareOp::Le, &theirs, &of_reference);
            seen.compare::<B>(context("le"), got, want, &EXACT);
            let got = B::binary(BinaryOp::Mul, &ours, &other);
            let want = Reference::binary(BinaryOp::Mul, &theirs, &of_reference);
            seen.compare::<B>(context("mul"), got, want, &EXACT);
        }
    }
    seen.finish();
}

pub fn functions_of_one_and_two_operands_agree<B: Tested>() {
    let each = among::<B>(&[DType::F32, DType::F64, DType::F16, DType::I64, DType::U8]);
    each.for_each(one_and_two_operands_agree::<B>);
}

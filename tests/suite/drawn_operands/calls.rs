//! A drawn call of a method of [`Backend`].

use swath::ops::{
    BinaryOp, CompareOp, Extremum, NumberTest, OrderOp, ReduceOp, ScanOp, TernaryOp, UnaryOp,
    UpdateOp,
};
use swath::prelude::*;
use swath::{Arg, AxisPart, Backend, Scalar, SliceItem, TensorData};

use super::draw::Draw;
use super::operand::{DTYPES, Operand, Spec, compare, values};

/// What calls have besides operands: an axis, axes, and a number that chooses an op.
#[derive(Clone, Debug)]
struct Params {
    axis: usize,
    axes: Vec<usize>,
    flag: bool,
    number: usize,
    items: Vec<SliceItem>,
    parts: Vec<Vec<AxisPart>>,
    shape: Shape,
}

impl Params {
    fn new(draw: &mut Draw<'_>, dims: &[usize]) -> Self {
        let rank = dims.len();
        let axis = |draw: &mut Draw<'_>| match draw.once_in(12) {
            true => draw.choose(&[rank, usize::MAX, 8]),
            false => draw.below(rank.max(1)),
        };
        let item = |draw: &mut Draw<'_>| {
            let bounds =
                [None, None, Some(0), Some(1), Some(-1), Some(isize::MAX), Some(isize::MIN)];
            match draw.below(4) {
                0 => SliceItem::Index(draw.choose(&[0, -1, 1, 0, isize::MIN, isize::MAX])),
                _ => SliceItem::Range {
                    start: draw.choose(&bounds),
                    end: draw.choose(&bounds),
                    step: draw.choose(&[1, 2, -1, 1, 0, isize::MAX, isize::MIN]),
                },
            }
        };
        let part = |draw: &mut Draw<'_>| match draw.below(3) {
            0 => AxisPart::Fill(draw.choose(&[1, 0, 3])),
            _ => AxisPart::From {
                start: draw.choose(&[0, 1, 0, 2, usize::MAX]),
                len: draw.choose(&[1, 2, 0, 1, usize::MAX]),
                step: draw.choose(&[1, 0, -1, 1, 2, isize::MIN]),
            },
        };
        let mut some = |most: usize| 0..draw.below(most + 1);
        let [axes, items, parts] = [some(3), some(rank + 1), some(3)];
        let mut other = dims.to_vec();
        if draw.once_in(2) {
            other.insert(draw.below(rank.max(1)), draw.choose(&[1, 3]));
        }
        if draw.once_in(16) {
            other = vec![1 << 33, 1 << 33];
        }
        Params {
            axis: axis(draw),
            axes: axes.map(|_| axis(draw)).collect(),
            flag: draw.once_in(2),
            number: draw.below(256),
            items: items.map(|_| item(draw)).collect(),
            parts: (0..rank + usize::from(draw.once_in(8)))
                .map(|_| parts.clone().map(|_| part(draw)).collect())
                .collect(),
            shape: Shape::new(other),
        }
    }

    fn pick<V: Copy>(&self, all: &[V]) -> V {
        all[self.number % all.len()]
    }
}

/// The operands, given the shape and dtype of the first.
type Specs = fn(&Spec, &Params, &mut Draw<'_>) -> Vec<Spec>;

/// Number of kinds of calls.
pub const KINDS: usize = 36;

/// Those that are steps of optimizers.
#[allow(dead_code, reason = "the fuzz target calls one backend alone")]
pub const UPDATES: std::ops::Range<usize> = 20..24;

fn one(x: &Spec, _: &Params, _: &mut Draw<'_>) -> Vec<Spec> {
    vec![x.clone()]
}

fn two(x: &Spec, _: &Params, _: &mut Draw<'_>) -> Vec<Spec> {
    vec![x.clone(), x.clone()]
}

fn three(x: &Spec, _: &Params, _: &mut Draw<'_>) -> Vec<Spec> {
    vec![x.clone(), x.clone(), x.clone()]
}

/// A tensor, an index along the axis, and a source of its shape.
fn indexed(x: &Spec, p: &Params, draw: &mut Draw<'_>) -> Vec<Spec> {
    let mut dims = x.dims.clone();
    let extent = dims.get(p.axis).copied().unwrap_or(1);
    if let Some(dim) = dims.get_mut(p.axis) {
        *dim = draw.choose(&[*dim, 1, 7]);
    }
    let index = Spec::labels(dims.clone(), extent + usize::from(draw.once_in(8)));
    vec![x.clone(), index, Spec::new(dims, x.dtype)]
}

/// Factors, and a sum of the product's shape.
fn factors(x: &Spec, _: &Params, draw: &mut Draw<'_>) -> Vec<Spec> {
    let [m, k, n] = [0; 3].map(|_| draw.choose(&[3, 1, 5, 40, 2]));
    let with = |last: [usize; 2]| {
        let dims = [&x.dims[..x.dims.len().min(3)], &last[..]].concat();
        Spec::new(dims, x.dtype)
    };
    vec![with([m, k]), with([k, n]), with([m, n])]
}

fn searched(x: &Spec, p: &Params, draw: &mut Draw<'_>) -> Vec<Spec> {
    let mut dims = x.dims.clone();
    if let Some(last) = dims.last_mut() {
        *last = draw.choose(&[3, 1, 0, 12]);
    }
    let sorted = if p.flag { vec![draw.choose(&[4, 0, 1])] } else { x.dims.clone() };
    vec![Spec::new(sorted, x.dtype), Spec::new(dims, x.dtype)]
}

fn specs(kind: usize) -> Specs {
    match kind {
        2..=4 | 17 | 24..=28 | 33 => two,
        5 | 6 | 20 | 22 => three,
        14..=16 => indexed,
        12 | 13 => factors,
        11 => searched,
        _ => one,
    }
}

/// Calls the method. The first operand is alone, so that it may be overwritten.
fn call<B: Backend>(kind: usize, tensors: Vec<B::Tensor>, p: &Params) -> Result<Vec<B::Tensor>> {
    let mut others = tensors.into_iter();
    let mut x = others.next().expect("an operand");
    let others: Vec<B::Tensor> = others.collect();
    let at = |i: usize| others.get(i).unwrap_or(&x);
    let (a, b, axis) = (at(0), at(1), p.axis);
    let one = |y: B::Tensor| vec![y];
    let scalar = Scalar::Float(1.5);
    let axes = p.flag.then_some(&p.axes[..]);
    Ok(match kind {
        0 => one(B::unary(p.pick(UnaryOp::ALL), &x)?),
        1 => one(B::unary(p.pick(UnaryOp::ALL), Arg::Owned(x))?),
        2 => one(B::binary(p.pick(BinaryOp::ALL), &x, a)?),
        3 => {
            let (a, op) = (a.clone(), p.pick(BinaryOp::ALL));
            B::binary_assign(op, &mut x, if p.flag { Arg::Ref(&a) } else { Arg::Scalar(scalar) })?;
            one(x)
        }
        4 => one(B::compare(p.pick(&CompareOp::ALL), &x, a)?),
        5 if p.flag => one(B::ternary(p.pick(TernaryOp::ALL), &x, Arg::Scalar(scalar), b)?),
        5 => one(B::ternary(p.pick(TernaryOp::ALL), &x, a, b)?),
        6 => one(B::where_cond(&x, a, b)?),
        7 => one(B::test(p.pick(&NumberTest::ALL), &x)?),
        8 => one(B::reduce(p.pick(&ReduceOp::ALL), &x, &p.axes)?),
        9 => one(B::scan(p.pick(&ScanOp::ALL), &x, axis)?),
        10 => {
            let count = p.pick(&[None, Some(0), Some(2), Some(usize::MAX)]);
            let (values, indices) = B::order(OrderOp { descending: p.flag, count }, &x, axis)?;
            vec![values, indices]
        }
        11 => one(B::search_sorted(&x, a, p.flag)?),
        12 => one(B::matmul(&x, a)?),
        13 => one(B::matmul_add(&x, a, b.clone())?),
        14 => one(B::gather(&x, axis, a)?),
        15 => one(B::scatter_add(&x, axis, a, b)?),
        16 => one(B::scatter(&x, axis, a, b)?),
        17 => one(B::cat(&[&x, a], axis)?),
        18 => {
            let source = B::view(&x, x.layout().slice("slice_assign", &p.items)?)?;
            B::slice_assign(&mut x, &p.items, &source)?;
            one(x)
        }
        19 => one(B::assemble(&x, &p.parts, scalar)?),
        20 | 21 => {
            let (rate, weight_decay) = (0.1, 0.0);
            let (momentum, dampening) = (p.pick(&[0.9, 0.0]), 0.0);
            let op = UpdateOp::Sgd {
                rate,
                momentum,
                dampening,
                weight_decay,
                nesterov: false,
                first: p.flag,
            };
            let (gradient, mut state) = (a.clone(), others[others.len().min(1)..].to_vec());
            B::update(&op, &mut x, &gradient, &mut state)?;
            [vec![x], state].concat()
        }
        22 | 23 => {
            let (rate, betas, eps, weight_decay) = (0.1, [0.9, 0.99], 1e-8, 0.0);
            let (step, decoupled) = (p.pick(&[1, 5, 0, u64::MAX]), p.flag);
            let op = UpdateOp::Adam { rate, betas, eps, weight_decay, decoupled, step };
            let (gradient, mut state) = (a.clone(), vec![a.clone(), b.clone()]);
            B::update(&op, &mut x, &gradient, &mut state)?;
            [vec![x], state].concat()
        }
        24 => one(B::add(&x, a)?),
        25 => one(B::mul(&x, a)?),
        26 => one(B::eq(&x, a)?),
        27 => {
            let gradient = a.clone();
            B::accumulate_grad(&mut x, &gradient)?;
            one(x)
        }
        28 => one(B::sum_to(&x, a.shape())?),
        29 => one(B::sum(&x, axes, p.pick(&[true, false]))?),
        30 => one(B::transpose(&x, axes)?),
        31 => one(B::broadcast_to(&x, &p.shape)?),
        32 => one(B::reshape(&x, p.shape)?),
        33 => one(B::arg_scan(p.pick(&Extremum::ALL), &x, axis)?),
        34 => one(B::cast(&x, p.pick(&DTYPES))?),
        _ => {
            let value = B::item(&x)?;
            one(B::full(p.shape, value, p.pick(&DTYPES))?)
        }
    })
}

/// Runs a method twice, with other elements around its operands. Returns its number, and true if it was computed.
pub fn run<B: Backend>(bytes: &[u8]) -> (usize, bool) {
    let mut draw = Draw(bytes);
    let kind = draw.below(KINDS);
    let dims: Vec<usize> = match kind {
        35 => vec![1; draw.below(3)],
        _ => (0..draw.choose(&[2, 1, 3, 0])).map(|_| draw.choose(&[3, 4, 2, 1, 5, 9, 0])).collect(),
    };
    let first = Spec::new(dims, draw.choose(&DTYPES));
    let p = Params::new(&mut draw, &first.dims);
    let mut specs = specs(kind)(&first, &p, &mut draw);
    if draw.once_in(3) {
        let at = draw.below(specs.len());
        specs[at].spoil(&mut draw);
    }
    let operands: Vec<_> = specs.into_iter().map(|spec| Operand::new(&mut draw, spec)).collect();
    let found = [1, 2].map(|noise| {
        let tensors = operands.iter().map(|x| x.view::<B>(noise)).collect();
        values::<B>(call::<B>(kind, tensors, &p))
    });
    (kind, compare(&(kind, &p, &operands), "", found))
}

//! For each recorded op, by name: functions of it and inputs in several layouts, at which its
//! derivatives are checked. The cases of the op table are derived from its rows; ops with parameters have an
//! arm in [`suite`].

use super::images::images;
use crate::mutation::mutants::apply;
use swath::ops::{Activation, BinaryOp, DropoutMask, TernaryOp, UnaryOp};
use swath::prelude::*;
use swath::{CrossEntropy, Reduction};

pub type T = Tensor<CpuBackend>;

type Function = dyn Fn(&[T]) -> Result<T> + Send + Sync;

/// A function at a point.
pub struct Case {
    pub name: String,
    pub inputs: Vec<T>,
    pub f: Box<Function>,
}

pub fn uniform(shape: impl Into<Shape>, (low, high): (f64, f64), seed: u64) -> T {
    let shape = shape.into();
    let values = Rng::seed(seed).uniform_vec::<f64>(shape.numel(), low..high).unwrap();
    T::from_vec(values, shape).unwrap()
}

/// How the elements of an input lie in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrangement {
    Contiguous,
    Permuted,
    Reversed,
    Strided,
    /// Repeated along the first axis by a stride of 0.
    Expanded,
}

use Arrangement::*;

pub const DENSE: [Arrangement; 4] = [Contiguous, Permuted, Reversed, Strided];
pub const ALL: [Arrangement; 5] = [Contiguous, Permuted, Reversed, Strided, Expanded];

/// `x` in another layout, with the same values except for `Expanded`. A tensor without axes is returned as it
/// is.
pub fn arranged(x: &T, arrangement: Arrangement) -> T {
    let last = match x.rank() {
        0 => return x.clone(),
        rank => rank - 1,
    };
    let reversed: Vec<usize> = (0..x.rank()).rev().collect();
    let arrange = || match arrangement {
        Contiguous => Ok(x.clone()),
        Permuted => x.permute(&reversed)?.contiguous()?.permute(&reversed),
        Reversed => x.flip(last)?.contiguous()?.flip(last),
        Strided => {
            let x = x.unsqueeze(-1)?;
            T::cat(&[&x, &x.zeros_like()?], -1)?.narrow(-1, 0, 1)?.squeeze(-1)
        }
        Expanded => x.narrow(0, 0, 1)?.broadcast_to(*x.shape()),
    };
    arrange().unwrap()
}

/// The cases of the op that is recorded under the name `op`.
pub fn suite(op: &str) -> Vec<Case> {
    if let Some(&op) = UnaryOp::ALL.iter().find(|row| row.name() == op) {
        return unary(op);
    }
    if let Some(&op) = BinaryOp::ALL.iter().find(|row| row.name() == op) {
        return binary(op);
    }
    if let Some(&op) = TernaryOp::ALL.iter().find(|row| row.name() == op) {
        return ternary(op);
    }
    let mut suite = Suite(Vec::new());
    with_parameters(op, &mut suite);
    assert!(!suite.0.is_empty(), "no case of {op}: add an arm in tests/suite/gradcheck/cases.rs");
    suite.0
}

fn unary(op: UnaryOp) -> Vec<Case> {
    let f = move |xs: &[T]| apply(op.name(), xs, move |xs| xs[0].unary(op));
    let case = |arrangement| Case {
        name: format!("{op:?}, {arrangement:?}"),
        inputs: vec![arranged(&uniform((2, 3), op.domain(), 10), arrangement)],
        f: Box::new(f),
    };
    let scalar = Case {
        name: format!("{op:?}, scalar"),
        inputs: vec![uniform((), op.domain(), 11)],
        f: Box::new(f),
    };
    ALL.into_iter().map(case).chain([scalar]).collect()
}

/// Every pair of arrangements, and broadcasting of either operand or both.
fn binary(op: BinaryOp) -> Vec<Case> {
    let [a_domain, b_domain] = op.domain();
    let mut cases = Vec::new();
    let mut add = |a_dims: &[usize], b_dims: &[usize], arrangements: [Arrangement; 2]| {
        let a = arranged(&uniform(a_dims, a_domain, 20), arrangements[0]);
        let b = arranged(&uniform(b_dims, b_domain, 30), arrangements[1]);
        cases.push(Case {
            name: format!("{op:?}, {a_dims:?} and {b_dims:?}, {arrangements:?}"),
            inputs: vec![a, b],
            f: Box::new(move |xs| apply(op.name(), xs, move |xs| xs[0].binary(op, &xs[1]))),
        });
    };
    for a in ALL {
        for b in ALL {
            add(&[2, 3], &[2, 3], [a, b]);
        }
        for dims in [&[3][..], &[2, 1], &[]] {
            add(&[2, 3], dims, [a, Reversed]);
            add(dims, &[2, 3], [Reversed, a]);
        }
        add(&[2, 1], &[1, 3], [a, Strided]);
    }
    cases
}

/// Combinations of three arrangements, and broadcasting of some of the operands.
fn ternary(op: TernaryOp) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |dims: [&[usize]; 3], arrangements: [Arrangement; 3]| {
        let input = |i: usize| {
            let x = uniform(dims[i], op.domain()[i], 20 + 10 * i as u64);
            arranged(&x, arrangements[i])
        };
        cases.push(Case {
            name: format!("{op:?}, {dims:?}, {arrangements:?}"),
            inputs: (0..3).map(input).collect(),
            f: Box::new(move |xs| {
                apply(op.name(), xs, move |xs| xs[0].ternary(op, &xs[1], &xs[2]))
            }),
        });
    };
    let full: &[usize] = &[2, 3];
    for (i, a) in ALL.into_iter().enumerate() {
        for (j, b) in ALL.into_iter().enumerate() {
            add([full; 3], [a, b, ALL[(i + j) % ALL.len()]]);
        }
        for dims in [&[3][..], &[2, 1], &[]] {
            add([full, dims, full], [a, Reversed, Strided]);
            add([dims, full, dims], [Reversed, a, Contiguous]);
            add([full, full, dims], [Strided, Permuted, a]);
        }
    }
    cases
}

/// Collects cases of ops with parameters.
pub struct Suite(Vec<Case>);

impl Suite {
    /// Adds a function at uniform inputs of these shapes, once for each arrangement; with several inputs each
    /// has another arrangement.
    pub fn add(
        &mut self,
        name: &str,
        shapes: &[&[usize]],
        arrangements: &[Arrangement],
        f: impl Fn(&[T]) -> Result<T> + Clone + Send + Sync + 'static,
    ) {
        for (i, arrangement) in arrangements.iter().enumerate() {
            let input = |j: usize| {
                let x = uniform(shapes[j], (-2.0, 2.0), 50 + j as u64);
                arranged(&x, arrangements[(i + j) % arrangements.len()])
            };
            self.0.push(Case {
                name: format!("{name}, {arrangement:?}"),
                inputs: (0..shapes.len()).map(input).collect(),
                f: Box::new(f.clone()),
            });
        }
    }

    pub fn one(&mut self, name: &str, f: impl Fn(&T) -> Result<T> + Clone + Send + Sync + 'static) {
        self.add(name, &[&[2, 3, 4]], &ALL, move |xs| f(&xs[0]));
    }
}

fn with_parameters(op: &str, s: &mut Suite) {
    match op {
        "sum" => {
            s.one("sum of two axes", |x| x.sum(Some(&[0, 2]), false));
            s.one("sum kept", |x| x.sum(Some(&[1]), true));
            s.one("sum of all", |x| x.sum(None, false));
        }
        "mean" => {
            s.one("mean of two axes", |x| x.mean(Some(&[0, 2]), false));
            s.one("mean kept", |x| x.mean(Some(&[1]), true));
            s.one("mean of all", |x| x.mean(None, false));
        }
        "prod" => {
            s.one("prod of two axes", |x| x.prod(Some(&[0, 2]), false));
            s.one("prod kept", |x| x.prod(Some(&[1]), true));
            s.one("prod of all", |x| x.div(2.0)?.prod(None, false));
            // One, two or three factors of 0 among those that are multiplied.
            let zeros =
                tensor![f64; [1.0, 1.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0]];
            let at = uniform((2, 3, 4), (-2.0, 2.0), 50).mul(&zeros).unwrap();
            s.add("prod with zeros", &[&[2, 3, 4]], &DENSE, move |xs| {
                xs[0].sub(&at.to_dtype(xs[0].dtype())?)?.prod(Some(&[1]), false)
            });
        }
        "variance" => {
            s.one("variance of two axes", |x| x.variance(Some(&[0, 2]), false, 1));
            s.one("variance kept", |x| x.variance(Some(&[1]), true, 0));
            s.one("variance of all", |x| x.variance(None, false, 2));
        }
        // Equal elements deviate by 0, where std has no derivative, so not all reduced axes may be expanded.
        "std" => {
            s.one("std of two axes", |x| x.std(Some(&[0, 2]), false, 1));
            s.one("std kept", |x| x.std(Some(&[1]), true, 0));
            s.one("std of all", |x| x.std(None, false, 2));
        }
        "norm" => {
            s.one("norm 2 of two axes", |x| x.norm(2.0, Some(&[0, 2]), false));
            s.one("norm 2.5 kept", |x| x.norm(2.5, Some(&[1]), true));
            s.one("norm -1.5", |x| x.norm(-1.5, Some(&[1]), false));
            s.one("norm 1 of all", |x| x.norm(1.0, None, false));
            s.one("norm 0", |x| x.norm(0.0, Some(&[1]), false)?.add(&x.norm_axis(2.0, 1, false)?));
            s.one("largest magnitude", |x| x.norm(f64::INFINITY, Some(&[1]), false));
            s.one("smallest magnitude", |x| x.norm(f64::NEG_INFINITY, Some(&[1]), true));
            s.one("norm 2 of all", |x| x.norm(2.0, None, false));
        }
        "logsumexp" => {
            s.one("logsumexp of two axes", |x| x.logsumexp(Some(&[0, 2]), false));
            s.one("logsumexp kept", |x| x.logsumexp(Some(&[1]), true));
            s.one("logsumexp of all", |x| x.mul(2.0)?.logsumexp(None, false));
        }
        // Equal elements tie, where max and min have no derivative, so no input may be expanded along a
        // reduced axis.
        "max" => {
            s.one("max", |x| x.max(Some(&[1]), false));
            s.add("max of two axes", &[&[2, 3, 4]], &DENSE, |xs| xs[0].max(Some(&[0, 2]), true));
            s.add("max of all", &[&[2, 3, 4]], &DENSE, |xs| xs[0].max(None, false));
        }
        "min" => {
            s.one("min", |x| x.min(Some(&[1]), false));
            s.add("min of two axes", &[&[2, 3, 4]], &DENSE, |xs| xs[0].min(Some(&[0, 2]), true));
            s.add("min of all", &[&[2, 3, 4]], &DENSE, |xs| xs[0].min(None, false));
        }
        "cumsum" => {
            s.one("last axis", |x| x.cumsum(-1));
            s.one("inner axis", |x| x.cumsum(1));
            s.one("first axis", |x| x.cumsum(0));
        }
        "cumprod" => {
            s.one("last axis", |x| x.cumprod(-1));
            s.one("inner axis", |x| x.cumprod(1));
            s.add("odd", &[&[5, 2]], &ALL, |xs| xs[0].cumprod(0));
        }
        "reshape" => s.one("reshape", |x| x.reshape((4, 6))),
        "squeeze" => s.add("squeeze", &[&[2, 1, 3]], &ALL, |xs| xs[0].squeeze(1)),
        "unsqueeze" => s.one("unsqueeze", |x| x.unsqueeze(1)),
        "transpose" => {
            s.one("last two", |x| x.transpose(None));
            s.one("all", |x| x.transpose(Some(&[2, 0, 1])));
        }
        "permute" => s.one("permute", |x| x.permute(&[2, 0, 1])),
        "diagonal" => {
            s.add("square", &[&[2, 3, 3]], &ALL, |xs| xs[0].diagonal(1, 2));
            s.one("wide", |x| x.diagonal(2, 0));
            s.one("tall", |x| x.diagonal(2, 1));
            s.add("tall by two", &[&[4, 2]], &ALL, |xs| xs[0].diagonal(0, 1));
        }
        "narrow" => s.one("narrow", |x| x.narrow(2, 1, 2)),
        "slice" => {
            s.one("backwards", |x| x.slice(s![1, ..;2, 3..;-2]));
            s.one("forwards", |x| x.slice(s![.., 1.., ..;3]));
        }
        "flip" => s.one("flip", |x| x.flip(2)),
        "broadcast_to" => {
            s.one("a new axis", |x| x.broadcast_to((2, 2, 3, 4)));
            s.add("within", &[&[3, 1]], &ALL, |xs| xs[0].broadcast_to((2, 3, 2)));
        }
        "expand" => s.add("expand", &[&[3, 1]], &ALL, |xs| xs[0].expand((2, 3, 2))),
        "sum_to" => s.one("sum_to", |x| x.sum_to((3, 1))),
        "contiguous" => s.one("contiguous", |x| x.contiguous()),
        "cat" => {
            s.add("cat", &[&[2, 3], &[2, 2]], &ALL, |xs| T::cat(&[&xs[0], &xs[1]], 1));
            s.add("equal parts", &[&[2, 3], &[2, 3]], &ALL, |xs| T::cat(&[&xs[0], &xs[1]], 0));
            s.add("with itself", &[&[2, 3]], &ALL, |xs| T::cat(&[&xs[0], &xs[0]], 0));
        }
        "logaddexp" => {
            s.add("equal shapes", &[&[2, 3], &[2, 3]], &ALL, |xs| xs[0].logaddexp(&xs[1]));
            s.add("broadcast", &[&[2, 1], &[3]], &ALL, |xs| xs[0].logaddexp(&xs[1]));
            s.add("with itself", &[&[2, 3]], &ALL, |xs| xs[0].logaddexp(&xs[0]));
        }
        "where_cond" => {
            let mask = tensor![bool; [true, false, true], [false, false, true]];
            let f = move |xs: &[T]| T::where_cond(&mask, &xs[0], &xs[1]);
            s.add("equal shapes", &[&[2, 3], &[2, 3]], &ALL, f.clone());
            s.add("broadcast", &[&[3], &[2, 1]], &ALL, f);
            let column = tensor![f64; [1.0], [0.0]];
            let f = move |xs: &[T]| column.select(&xs[0], &xs[1]);
            s.add("mask broadcast", &[&[2, 3], &[3]], &ALL, f);
        }
        "gather" => {
            let index = tensor![i64; [[0, 2, 2, 1]], [[1, 1, 0, 0]]];
            s.one("gather", move |x| x.gather(1, &index));
        }
        "index_select" => s.one("index_select", |x| x.index_select(2, &tensor![i64; 3, 0, 3, 1])),
        "scatter_add" => {
            let index = tensor![i64; [0, 2, 2, 1], [1, 1, 0, 0]];
            let f = move |xs: &[T]| xs[0].scatter_add(1, &index, &xs[1]);
            s.add("scatter_add", &[&[2, 4], &[2, 4]], &ALL, f);
            let index = tensor![i64; 1, 1, 0];
            let f = move |xs: &[T]| xs[0].index_add(0, &index, &xs[1]);
            s.add("index_add", &[&[2, 4], &[3, 4]], &ALL, f);
        }
        "matmul" => {
            let f = |xs: &[T]| xs[0].matmul(&xs[1]);
            s.add("square", &[&[3, 3], &[3, 3]], &ALL, f);
            s.add("one right side of a batch", &[&[2, 3, 4], &[4, 5]], &ALL, f);
            s.add("one left side of a batch", &[&[3, 4], &[2, 4, 2]], &ALL, f);
            s.add("both broadcast", &[&[2, 1, 2, 3], &[3, 3, 2]], &ALL, f);
            s.add("one right side, three axes", &[&[2, 3, 4], &[1, 4, 5]], &ALL, f);
            s.add("one left side, three axes", &[&[1, 3, 4], &[2, 4, 2]], &ALL, f);
            s.add("shared along one axis", &[&[2, 3, 1, 4], &[2, 1, 4, 3]], &ALL, f);
            s.add("shared along the outer axis", &[&[2, 3, 2, 2], &[3, 2, 2]], &ALL, f);
            s.add("extents of 1", &[&[1, 2, 3], &[3, 1]], &ALL, f);
            s.add("vectors", &[&[3], &[3]], &ALL, f);
            s.add("a vector on the left", &[&[3], &[2, 3, 2]], &ALL, f);
            s.add("a vector on the right", &[&[2, 2, 3], &[3]], &ALL, f);
            s.add("a row and a matrix", &[&[3], &[3, 4]], &ALL, f);
            s.add("with itself", &[&[2, 3, 4]], &ALL, |xs| xs[0].matmul(&xs[0].t()?));
        }
        "dot" => {
            s.add("dot", &[&[5], &[5]], &ALL, |xs| xs[0].dot(&xs[1]));
            s.add("with itself", &[&[4]], &ALL, |xs| xs[0].dot(&xs[0]));
        }
        "einsum" => {
            let cases: [(&str, &[&[usize]]); 5] = [
                ("ij,ij->i", &[&[2, 3], &[2, 3]]),
                ("bi,bj->bij", &[&[2, 3], &[2, 3]]),
                ("ij,jkl->lik", &[&[2, 3], &[3, 2, 2]]),
                ("bi,bij->j", &[&[1, 3], &[2, 3, 2]]),
                ("ij,j->ji", &[&[2, 3], &[3]]),
            ];
            for (equation, shapes) in cases {
                s.add(equation, shapes, &ALL, move |xs| T::einsum(equation, &[&xs[0], &xs[1]]));
            }
            s.add("tensordot", &[&[3], &[2, 2]], &ALL, |xs| xs[0].tensordot(&xs[1], 0));
        }
        "outer" => {
            s.add("outer", &[&[2], &[3]], &ALL, |xs| xs[0].outer(&xs[1]));
            s.add("with itself", &[&[3]], &ALL, |xs| xs[0].outer(&xs[0]));
        }
        // The input has the narrower type: differences of values that are rounded to f32 would be noise.
        "to_dtype" => {
            s.one("to_dtype", |x| x.to_dtype(DType::F64));
            for case in &mut s.0 {
                case.inputs[0] = case.inputs[0].to_dtype(DType::F32).unwrap();
            }
        }
        _ => fused(op, s),
    }
}

fn fused(op: &str, s: &mut Suite) {
    match op {
        "softmax" => {
            s.one("last axis", |x| x.softmax(-1));
            s.one("inner axis", |x| x.softmax(1));
        }
        "log_softmax" => {
            s.one("last axis", |x| x.log_softmax(-1));
            s.one("inner axis", |x| x.log_softmax(1));
        }
        "cross_entropy" => {
            let options = [
                CrossEntropy { reduction: Reduction::None, ..Default::default() },
                CrossEntropy { label_smoothing: 0.2, ..Default::default() },
                CrossEntropy { ignore_index: Some(2), label_smoothing: 0.1, ..Default::default() },
            ];
            for options in options {
                let targets = tensor![i64; [3, 2, 0], [1, 2, 3]];
                s.one(&format!("{options:?}"), move |x| x.cross_entropy(&targets, options));
            }
        }
        "layer_norm" => {
            let shapes: &[&[usize]] = &[&[3, 2, 4], &[4], &[4]];
            s.add("all", shapes, &ALL, |xs| xs[0].layer_norm(Some(&xs[1]), Some(&xs[2]), 1e-2));
            s.one("x alone", |x| x.layer_norm(None, None, 1e-2));
        }
        "rms_norm" => {
            let shapes: &[&[usize]] = &[&[3, 2, 4], &[4]];
            s.add("all", shapes, &ALL, |xs| xs[0].rms_norm(Some(&xs[1]), 1e-2));
            s.one("x alone", |x| x.rms_norm(None, 1e-2));
        }
        "linear" => {
            let f = |xs: &[T]| xs[0].linear(&xs[1], Some(&xs[2]));
            s.add("batch", &[&[2, 2, 3], &[4, 3], &[4]], &ALL, f);
            s.add("square", &[&[3, 3], &[3, 3], &[3]], &ALL, f);
            s.add("no bias", &[&[3], &[2, 3]], &ALL, |xs| xs[0].linear(&xs[1], None));
            for activation in Activation::ALL {
                let f = move |xs: &[T]| xs[0].linear_activation(&xs[1], Some(&xs[2]), activation);
                s.add(&format!("{activation:?}"), &[&[2, 2, 3], &[4, 3], &[4]], &ALL, f);
            }
        }
        "bias_activation" => {
            for activation in Activation::ALL {
                let f = move |xs: &[T]| xs[0].bias_activation(&xs[1], activation);
                s.add(&format!("{activation:?}"), &[&[2, 2, 3], &[3]], &ALL, f);
            }
        }
        "sincos" => {
            s.one("sine", |x| Ok(x.sincos()?.0));
            s.one("cosine", |x| Ok(x.sincos()?.1));
            s.one("both", |x| {
                let (sine, cosine) = x.sincos()?;
                sine.mul_scalar(2.0)?.add(&cosine)?.add(&sine.mul(&cosine)?)
            });
        }
        "dropout" => {
            let mask = DropoutMask { p: 0.3, seed: 3, stream: 1 };
            s.one("dropout", move |x| x.dropout(mask));
        }
        "scaled_dot_product_attention" => {
            let f = |dropout, causal| {
                move |xs: &[T]| {
                    let options = Attention { dropout, causal, ..Default::default() };
                    xs[0].scaled_dot_product_attention(&xs[1], &xs[2], options)
                }
            };
            let mask = Some(DropoutMask { p: 0.3, seed: 3, stream: 1 });
            s.add("equal shapes", &[&[2, 3, 2], &[2, 3, 2], &[2, 3, 2]], &ALL, f(None, false));
            s.add("causal", &[&[2, 3, 2], &[2, 4, 2], &[2, 4, 3]], &ALL, f(None, true));
            s.add("dropout", &[&[3, 2], &[3, 2], &[3, 2]], &ALL, f(mask, true));
            let masks = [
                tensor![1.0, 1.0, 0.0].ne(0.0).unwrap(),
                tensor![f64; [0.5, -1.0, 0.0], [0.0, f64::NEG_INFINITY, 1.0]],
            ];
            for mask in masks {
                let f = move |xs: &[T]| {
                    let scores = xs[0].dtype();
                    let mask = match mask.dtype() {
                        DType::Bool => mask.clone(),
                        _ => mask.to_dtype(scores)?,
                    };
                    let options = Attention { mask: Some(&mask), ..Default::default() };
                    xs[0].scaled_dot_product_attention(&xs[1], &xs[2], options)
                };
                s.add("masked", &[&[2, 2, 2], &[2, 3, 2], &[2, 3, 2]], &ALL, f);
            }
        }
        _ => images(op, s),
    }
}

//! Comparison of fused kernels with the reference backend, which runs the same program of tensors by
//! composites, in `F64`.

use super::agree::{Disagreements, Reference, ReferenceTensor, Tolerance};
use super::inputs::Input;
use super::ulp::{limits, unit_roundoff};
use crate::testing::suite::Tested;
use swath::ops::{Activation, DropoutMask};
use swath::{Backend, ConvOptions, CrossEntropy, DType, Result, Shape, Tensor, TensorData};

/// A method of tensors with its options. Optional operands are the last ones.
#[derive(Clone, Debug)]
pub enum Program {
    /// x.
    Softmax { axis: isize, log: bool },
    /// Logits, targets.
    CrossEntropy(CrossEntropy<'static>),
    /// x, weight unless `bias_alone`, bias.
    LayerNorm { eps: f64, bias_alone: bool },
    /// x, weight.
    RmsNorm { eps: f64 },
    /// x, bias.
    BiasActivation(Activation),
    /// x, weight, bias.
    Linear(Option<Activation>),
    /// x.
    Dropout(DropoutMask),
    /// x.
    SinCos,
    /// Images.
    Im2col([usize; 2], ConvOptions<2>),
    /// Columns.
    Col2im([usize; 2], [usize; 2], ConvOptions<2>),
    /// Two tensors, whose rows are multiplied.
    Dot,
}

impl Program {
    pub fn run<B: Backend>(&self, xs: &[Tensor<B>]) -> Result<Vec<Tensor<B>>> {
        let x = &xs[0];
        let y = match *self {
            Program::Softmax { axis, log: false } => x.softmax(axis),
            Program::Softmax { axis, log: true } => x.log_softmax(axis),
            Program::CrossEntropy(CrossEntropy {
                ignore_index,
                label_smoothing,
                reduction,
                axis,
                ..
            }) => {
                let options =
                    CrossEntropy { weight: None, ignore_index, label_smoothing, reduction, axis };
                x.cross_entropy(&xs[1], options)
            }
            Program::LayerNorm { eps, bias_alone: true } => x.layer_norm(None, xs.get(1), eps),
            Program::LayerNorm { eps, .. } => x.layer_norm(xs.get(1), xs.get(2), eps),
            Program::RmsNorm { eps } => x.rms_norm(xs.get(1), eps),
            Program::BiasActivation(activation) => x.bias_activation(&xs[1], activation),
            Program::Linear(None) => x.linear(&xs[1], xs.get(2)),
            Program::Linear(Some(activation)) => x.linear_activation(&xs[1], xs.get(2), activation),
            Program::Dropout(mask) => x.dropout(mask),
            Program::SinCos => return x.sincos().map(|(sine, cosine)| vec![sine, cosine]),
            Program::Im2col(kernel, options) => x.im2col(kernel, options),
            Program::Col2im(image, kernel, options) => x.col2im(image, kernel, options),
            Program::Dot if x.rank() == 1 => x.dot(&xs[1]),
            Program::Dot => {
                let equation = if x.rank() == 2 { "ij,ij->i" } else { "hij,hij->hi" };
                Tensor::einsum(equation, &[x, &xs[1]])
            }
        };
        Ok(vec![y?])
    }
}

/// Inputs, upstream gradients and results of a program on the reference backend, all floats in `F64`.
pub struct Oracle {
    pub inputs: Vec<ReferenceTensor>,
    pub upstream: Vec<ReferenceTensor>,
    /// The results; then, if there are upstream gradients, the gradients of the inputs by each result.
    pub results: Vec<ReferenceTensor>,
}

/// Results of a program, followed, for each result, by the gradients of the inputs for the upstream gradient
/// that `upstream` returns.
fn results<B: Backend>(
    program: &Program,
    xs: &[B::Tensor],
    mut upstream: Option<impl FnMut(&Shape) -> B::Tensor>,
) -> Result<Vec<B::Tensor>> {
    let tracked = |x: &B::Tensor| {
        let x = Tensor::<B>::from_data(x.clone());
        if upstream.is_some() && x.dtype().is_float() { x.requires_grad() } else { x }
    };
    let xs: Vec<_> = xs.iter().map(tracked).collect();
    let ys = program.run(&xs)?;
    let mut all: Vec<_> = ys.iter().map(|y| y.data().clone()).collect();
    let Some(upstream) = &mut upstream else { return Ok(all) };
    for y in &ys {
        let gradients = y.backward_with(&Tensor::from_data(upstream(y.shape())))?;
        all.extend(xs.iter().filter_map(|x| gradients.get(x)).map(|dx| dx.data().clone()));
    }
    Ok(all)
}

/// Runs a program on the backend under test and on the reference backend in `F64`, and compares result k
/// within `bounds(oracle)[k]`, exactly if that is empty or missing; or the kinds of errors.
///
/// `upstream` returns an upstream gradient for a result of the given shape; without it no gradients are
/// compared.
pub fn agrees<B: Tested>(
    seen: &mut Disagreements,
    context: &str,
    program: &Program,
    inputs: &[&Input],
    upstream: Option<&mut dyn FnMut(&Shape) -> Input>,
    bounds: impl Fn(&Oracle) -> Vec<Vec<f64>>,
) {
    let dtype = inputs[0].dtype();
    let context = format!("{program:?} {context}");
    let operands: Vec<_> = inputs.iter().map(|x| wide(x)).collect();
    let mut given = Vec::new();
    let draw = upstream.map(|upstream| {
        |shape: &Shape| {
            given.push(upstream(shape));
            wide(&given[given.len() - 1])
        }
    });
    let want = results::<Reference>(program, &operands, draw);
    let operands_here: Vec<_> = inputs.iter().map(|x| x.on::<B>()).collect();
    let mut each = given.iter();
    let next = (!given.is_empty()).then_some(|_: &Shape| each.next().unwrap().on::<B>());
    let got = results::<B>(program, &operands_here, next);
    let (got, want) = match (got, want) {
        (Ok(got), Ok(want)) => (got, want),
        (got, want) => {
            let first = |results: Vec<_>| results.into_iter().next();
            let got = got.map(|all| all[0].clone());
            let want = want.map(|all| first(all).unwrap());
            return seen.compare::<B>(|| context, got, want, &Tolerance::EXACT);
        }
    };
    assert_eq!(got.len(), want.len(), "{context}");
    let upstream = given.iter().map(wide).collect();
    let oracle = Oracle { inputs: operands, upstream, results: want };
    let mut bounds = bounds(&oracle).into_iter();
    for (k, (got, want)) in got.into_iter().zip(&oracle.results).enumerate() {
        let want = Reference::cast(want, dtype);
        let tolerance = Tolerance::absolute(bounds.next().unwrap_or_default());
        seen.compare::<B>(|| format!("{context}, result {k}"), Ok(got), want, &tolerance);
    }
}

/// The input on the reference backend, floats in `F64`.
pub fn wide(x: &Input) -> ReferenceTensor {
    let tensor = x.on::<Reference>();
    match x.dtype().is_float() {
        true => Reference::cast(&tensor, DType::F64).unwrap(),
        false => tensor,
    }
}

pub fn values(x: &ReferenceTensor) -> Vec<f64> {
    let host = Reference::to_host(x).unwrap();
    (0..host.len()).map(|i| host.get(i).unwrap().to_f64()).collect()
}

/// The values row by row.
pub fn rows(x: &ReferenceTensor) -> Vec<Vec<f64>> {
    let n = x.shape().dims().last().copied().unwrap_or(1);
    values(x).chunks(n.max(1)).map(<[f64]>::to_vec).collect()
}

/// Rounding errors of a dtype.
pub struct Rounding {
    /// Unit roundoff of the type that operations compute in: `f32` for 16-bit floats.
    pub wide: f64,
    /// Unit roundoff of the result.
    pub out: f64,
    pub tiny: f64,
}

impl Rounding {
    pub fn of(dtype: DType) -> Rounding {
        let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let (wide, out) = (unit_roundoff(wide), unit_roundoff(dtype));
        Rounding { wide, out, tiny: 2.0 * limits(dtype)[0] }
    }

    /// Bound for a result `want` computed from terms with the sum of magnitudes `size`.
    pub fn bound(&self, want: f64, size: f64) -> f64 {
        let finite = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
        2.0 * self.out * finite(want) + self.wide * finite(size) + self.tiny
    }

    /// Bounds for results of about `terms` terms as large as 1 or the largest result, after `roundings`
    /// roundings to the dtype.
    pub fn of_largest(&self, want: &ReferenceTensor, terms: f64, roundings: f64) -> Vec<f64> {
        let want = values(want);
        let largest =
            want.iter().filter(|x| x.is_finite()).fold(1.0, |most: f64, x| most.max(x.abs()));
        let size = largest * (terms + roundings * self.out / self.wide);
        want.iter().map(|&y| self.bound(y, size)).collect()
    }
}

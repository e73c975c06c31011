//! A drawn [`FusedOp`]: operands that fit, of which one is then often changed.

use swath::ops::{Activation, AttentionParameters, DropoutMask, FusedOp, Geometry, Sliding};
use swath::prelude::*;
use swath::{Backend, CpuBackend};

use super::draw::Draw;
use super::operand::{Operand, Spec, compare, values};

/// Number of kinds of ops.
pub const KINDS: usize = 22;

/// What ops have besides operands.
#[derive(Clone, Copy, Debug)]
struct Parameters {
    flag: bool,
    number: f64,
    ignore_index: Option<i64>,
    activation: Option<Activation>,
    attention: AttentionParameters,
    mask: DropoutMask,
    geometry: Geometry,
    groups: usize,
}

/// The windows along an axis of images.
fn sliding(draw: &mut Draw<'_>) -> Sliding {
    let [image, kernel] = [draw.choose(&[5, 4, 7, 1, 12, 2, 0]), draw.choose(&[1, 3, 2])];
    let [stride, dilation] = [draw.choose(&[1, 2, 3]), draw.choose(&[1, 2])];
    let padding = [draw.choose(&[0, 1, 2, -1]), draw.choose(&[0, 1, 2, -1])];
    let padded = image as isize + padding.iter().sum::<isize>();
    let room = usize::try_from(padded - ((kernel - 1) * dilation) as isize - 1).unwrap_or(0);
    let mut windows = room / stride + 1;
    if draw.once_in(16) {
        windows = draw.choose(&[0, windows + 1, 40]);
    }
    Sliding { image, kernel, stride, dilation, padding, windows }
}

impl Parameters {
    fn new(draw: &mut Draw<'_>, axes: usize) -> Option<Self> {
        let along = [0, 1, 2].map(|axis| match axis + axes < 3 && !draw.once_in(64) {
            true => Sliding::default(),
            false => sliding(draw),
        });
        let p = draw.choose(&[0.5, 0.0, 0.25, 0.5, 0.1, 0.5, 1.0, f64::NAN]);
        let mask = DropoutMask { p, seed: 1, stream: 2 };
        let dropout = draw.once_in(4).then_some(mask);
        let activations =
            [None, Some(Activation::Relu), Some(Activation::Tanh), Some(Activation::Elu(1.0))];
        Some(Parameters {
            flag: draw.once_in(2),
            number: draw.choose(&[0.0, 0.5, 1e-5]),
            ignore_index: draw.choose(&[None, Some(0), Some(-1)]),
            activation: draw.choose(&activations),
            attention: AttentionParameters { scale: 0.5, causal: draw.once_in(3), dropout },
            mask,
            geometry: Geometry::new(along).ok()?,
            groups: draw.choose(&[1, 1, 2, 1]),
        })
    }
}

/// The operands of a kind of op, absent ones too, that fit one another.
fn specs(kind: usize, draw: &mut Draw<'_>, p: &Parameters, axes: usize) -> Vec<Option<Spec>> {
    let dtype = draw.choose(&[DType::F32, DType::F64, DType::F16, DType::BF16, DType::F32]);
    let wide = if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype };
    let lead: Vec<usize> =
        (0..draw.choose(&[1, 2, 0, 3])).map(|_| draw.choose(&[2, 3, 1, 4])).collect();
    let [n, t, s, e] = [0; 4].map(|_| draw.choose(&[4, 3, 17, 1, 9, 2, 5, 70]));
    let with = |last: &[usize]| [&lead, last].concat();
    let x = |dims: Vec<usize>| Some(Spec::new(dims, dtype));
    let statistic = |dims: Vec<usize>| Some(Spec::new(dims, wide));
    let targets = Some(Spec::labels(lead.clone(), n + usize::from(draw.once_in(8))));
    let mut optional = |spec: Option<Spec>| spec.filter(|_| !draw.once_in(3));
    let own = |extents: [usize; 3]| extents[3 - axes..].to_vec();
    let images = |n: usize, c: usize, extents: [usize; 3]| {
        Some(Spec::new([vec![n, c], own(extents)].concat(), dtype))
    };
    let (g, [c, o]) = (&p.geometry, [t.min(5), s.min(5)].map(|each| each * p.groups));
    let count = lead.first().copied().unwrap_or(1);
    match kind {
        0 | 9 | 10 => vec![x(with(&[n]))],
        1 | 11 => vec![x(with(&[n])), x(with(&[n]))],
        2 => vec![x(with(&[n])), targets],
        3 => {
            vec![x(lead.clone()), x(with(&[n])), targets, statistic(lead.clone()), statistic(lead)]
        }
        4 => vec![x(with(&[n])), optional(x(vec![n])), optional(x(vec![n]))],
        5 | 7 => vec![x(with(&[n])), x(with(&[n])), optional(x(vec![n])), statistic(with(&[1]))],
        6 => vec![x(with(&[n])), optional(x(vec![n]))],
        8 => vec![x(with(&[n])), x(vec![n])],
        12 => vec![x(with(&[n])), x(with(&[n])), x(vec![n])],
        13 | 14 => {
            let mask = if p.flag { DType::Bool } else { dtype };
            let mask = optional(Some(Spec::new(with(&[t, s]), mask)));
            let mut all = vec![x(with(&[t, n])), x(with(&[s, n])), x(with(&[s, e])), mask];
            if kind == 14 {
                all.extend([
                    x(with(&[t, e])),
                    statistic(with(&[t])),
                    statistic(with(&[t])),
                    statistic(with(&[t, e])),
                ]);
            }
            all
        }
        15 => vec![x(with(&[n])), x(vec![e, n]), optional(x(vec![e]))],
        16 => vec![
            images(count, c, g.image()),
            images(o, c / p.groups, g.kernel()),
            optional(x(vec![o])),
        ],
        17 => vec![images(count, o, g.windows()), images(o, c / p.groups, g.kernel())],
        18 => vec![images(count, o, g.windows()), images(count, c, g.image())],
        19 | 20 => vec![images(count, c, g.image())],
        _ => vec![images(count, c, g.windows())],
    }
}

/// The op; `None` if a tensor is absent that it needs.
fn op<'a, T>(kind: usize, tensors: &'a [Option<T>], p: &Parameters) -> Option<FusedOp<'a, T>> {
    let get = |i: usize| tensors.get(i).and_then(Option::as_ref);
    let Parameters { flag: log, number, ignore_index, activation, mask, geometry, groups, .. } = *p;
    let (eps, label_smoothing, parameters) = (number, number, p.attention);
    let f = activation.unwrap_or(Activation::Gelu);
    Some(match kind {
        0 => FusedOp::Softmax { x: get(0)?, log },
        1 => FusedOp::SoftmaxGrad { g: get(0)?, y: get(1)?, log },
        2 => FusedOp::CrossEntropy {
            logits: get(0)?,
            targets: get(1)?,
            ignore_index,
            label_smoothing,
        },
        3 => {
            let (g, logits, targets) = (get(0)?, get(1)?, get(2)?);
            let (largest, rest) = (get(3)?, get(4)?);
            FusedOp::CrossEntropyGrad {
                g,
                logits,
                targets,
                largest,
                rest,
                ignore_index,
                label_smoothing,
            }
        }
        4 => FusedOp::LayerNorm { x: get(0)?, weight: get(1), bias: get(2), eps },
        5 => FusedOp::LayerNormGrad {
            g: get(0)?,
            x: get(1)?,
            weight: get(2),
            reciprocal_deviation: get(3)?,
        },
        6 => FusedOp::RmsNorm { x: get(0)?, weight: get(1), eps },
        7 => {
            FusedOp::RmsNormGrad { g: get(0)?, x: get(1)?, weight: get(2), reciprocal_rms: get(3)? }
        }
        8 => FusedOp::BiasActivation { x: get(0)?, bias: get(1)?, activation: f },
        9 => FusedOp::Dropout { x: get(0)?, mask },
        10 => FusedOp::SinCos { x: get(0)? },
        11 => FusedOp::Dot { a: get(0)?, b: get(1)? },
        12 => FusedOp::BiasActivationGrad { g: get(0)?, x: get(1)?, bias: get(2)?, activation: f },
        13 => FusedOp::Attention { q: get(0)?, k: get(1)?, v: get(2)?, mask: get(3), parameters },
        14 => {
            let (q, k, v, mask, g) = (get(0)?, get(1)?, get(2)?, get(3), get(4)?);
            let (largest, inverse, y) = (get(5)?, get(6)?, get(7)?);
            FusedOp::AttentionGrad { g, q, k, v, mask, largest, inverse, y, parameters }
        }
        15 => FusedOp::Linear {
            x: get(0)?,
            weight: get(1)?,
            bias: get(2),
            activation,
            keep_sums: log,
        },
        16 => FusedOp::Conv {
            x: get(0)?,
            weight: get(1)?,
            bias: get(2),
            activation,
            geometry,
            groups,
        },
        17 => FusedOp::ConvTranspose { g: get(0)?, weight: get(1)?, geometry, groups },
        18 => FusedOp::ConvWeightGrad { g: get(0)?, x: get(1)?, geometry, groups },
        19 => FusedOp::MaxPool { x: get(0)?, geometry, with_positions: log },
        20 => FusedOp::AvgPool { x: get(0)?, geometry, count_include_pad: log },
        _ => FusedOp::AvgPoolGrad { g: get(0)?, geometry, count_include_pad: log },
    })
}

/// Runs an op twice, with other elements around its operands. Returns its kind, and true if it was computed.
pub fn run(bytes: &[u8]) -> (usize, bool) {
    let mut draw = Draw(bytes);
    let (kind, axes) = (draw.below(KINDS), draw.choose(&[2, 1, 3]));
    let Some(mut p) = Parameters::new(&mut draw, axes) else { return (kind, false) };
    let mut specs = specs(kind, &mut draw, &p, axes);
    if draw.once_in(2) {
        for _ in 0..draw.choose(&[1, 1, 2]) {
            let at = draw.below(specs.len());
            if let Some(spec) = &mut specs[at] {
                spec.spoil(&mut draw);
            }
        }
        if draw.once_in(8) {
            p.groups = draw.choose(&[0, 2, 3, usize::MAX, 1 << 63]);
        }
    }
    let operands: Vec<_> =
        specs.into_iter().map(|spec| spec.map(|spec| Operand::new(&mut draw, spec))).collect();
    let found = [1, 2].map(|noise| {
        let view = |x: &Option<Operand>| x.as_ref().map(|x| x.view::<CpuBackend>(noise));
        let tensors: Vec<_> = operands.iter().map(view).collect();
        let op = op(kind, &tensors, &p).expect("an operand is absent where it may be");
        let results = CpuBackend::fused(&op);
        (op.name(), values::<CpuBackend>(results.map(|all| all.into_iter().collect())))
    });
    let [(name, first), (_, second)] = found;
    (kind, compare(&(kind, &p, &operands), name, [first, second]))
}

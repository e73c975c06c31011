//! Every op × dtype × shape × arrangement in memory, at the level of the [`Backend`] trait.

use swath::ops::{Activation, DropoutMask, FusedOp};
use swath::{Backend, DType, ReferenceBackend, Scalar, Shape, TensorData};

use super::Subject;
use super::bounds::{self, Normal, Places};
use crate::support::agree::{Disagreements, Reference, ReferenceTensor, Tolerance};
use crate::support::inputs::{Arrangement, FLOATS, Fill, Input, Rng, Specials};

/// Rows of all lengths, in one and several axes, none and empty.
const SHAPES: [&[usize]; 13] = [
    &[0],
    &[1],
    &[7],
    &[3, 0, 2],
    &[3, 0],
    &[2, 1],
    &[3, 5],
    &[33, 65],
    &[2, 3, 4, 5],
    &[2, 1030],
    &[70, 129],
    &[300, 3],
    &[3, 2050],
];

/// Of these, every arrangement.
const ARRANGED: [&[usize]; 4] = [&[7], &[3, 5], &[33, 65], &[2, 3, 4, 5]];

pub type Case = (DType, Shape, Arrangement);

pub fn cases() -> impl Iterator<Item = Case> {
    let shapes = SHAPES.into_iter().flat_map(|shape| {
        let all = if ARRANGED.contains(&shape) { 8 } else { 1 };
        Arrangement::ALL[..all].iter().map(move |&arrangement| (Shape::from(shape), arrangement))
    });
    let shapes: Vec<_> = shapes.collect();
    FLOATS.into_iter().flat_map(move |dtype| {
        shapes.clone().into_iter().map(move |(shape, arrangement)| (dtype, shape, arrangement))
    })
}

/// Logits, some of them special, each with a twin that is plain.
pub fn fills() -> [Fill; 2] {
    let plain = Fill::plain(-6.0, 6.0);
    [plain, plain.with(40, Specials::NoHuge)]
}

pub fn input(
    rng: &mut Rng,
    fill: Fill,
    dtype: DType,
    shape: impl Into<Shape>,
    arrangement: Arrangement,
) -> Input {
    Input::new(dtype, shape, arrangement, || fill.draw(rng, dtype))
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

pub type Wanted = Vec<ReferenceTensor>;

/// Runs the op on both backends and compares result k within `bounds(results)[k]`.
pub fn compare(
    found: &mut Disagreements,
    op: &FusedOp,
    context: &str,
    inputs: &[Option<&Input>],
    bounds: impl Fn(&[Option<ReferenceTensor>], &Wanted) -> Vec<Vec<f64>>,
) {
    let operands: Vec<_> = inputs.iter().map(|x| x.map(|x| x.on::<Reference>())).collect();
    let on_subject: Vec<_> = inputs.iter().map(|x| x.map(|x| x.on::<Subject>())).collect();
    let context = format!("{op:?} {context}");
    let of = |x: &[Option<ReferenceTensor>]| {
        ReferenceBackend::fused(op, &x.iter().map(Option::as_ref).collect::<Vec<_>>())
    };
    let want = of(&operands).unwrap_or_else(|error| panic!("{context}: {error}")).to_vec();
    let got: Vec<_> = on_subject.iter().map(Option::as_ref).collect();
    let got = Subject::fused(op, &got).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(got.len(), want.len(), "{context}");
    let bounds = bounds(&operands, &want);
    for (k, ((got, want), bounds)) in got.into_iter().zip(want).zip(bounds).enumerate() {
        let context = || format!("{context}, result {k}");
        found.compare::<Subject>(context, Ok(got), Ok(want), &Tolerance::absolute(bounds));
    }
}

#[test]
fn softmax_and_log_softmax_with_their_gradients() {
    let (mut found, mut rng) = (Disagreements::default(), Rng(1));
    for (dtype, shape, arrangement) in cases() {
        let (p, context) = (Places::of(dtype), format!("{dtype} {shape} {arrangement:?}"));
        for fill in fills() {
            let x = input(&mut rng, fill, dtype, shape, arrangement);
            for (op, bound) in [
                (FusedOp::Softmax, bounds::softmax as fn(&_, &[f64], &[f64]) -> _),
                (FusedOp::LogSoftmax, bounds::log_softmax),
            ] {
                compare(&mut found, &op, &context, &[Some(&x)], |operands, want| {
                    let x = rows(operands[0].as_ref().unwrap());
                    let rows = x.iter().zip(rows(&want[0]));
                    vec![rows.flat_map(|(x, y)| bound(&p, x, &y)).collect()]
                });
            }
        }
        let unit = Fill::plain(-2.0, 2.0);
        let g = input(&mut rng, unit, dtype, shape, arrangement);
        for (op, bound, fill) in [
            (
                FusedOp::SoftmaxGrad,
                bounds::softmax_grad as fn(&_, &[f64], &[f64], &[f64]) -> _,
                Fill::plain(0.0, 1.0),
            ),
            (FusedOp::LogSoftmaxGrad, bounds::log_softmax_grad, Fill::plain(-9.0, 0.0)),
        ] {
            let y = input(&mut rng, fill, dtype, shape, Arrangement::Contiguous);
            compare(&mut found, &op, &context, &[Some(&g), Some(&y)], |operands, want| {
                let (g, y) = (operands[0].as_ref().unwrap(), operands[1].as_ref().unwrap());
                let rows = rows(g).into_iter().zip(rows(y)).zip(rows(&want[0]));
                vec![rows.flat_map(|((g, y), dx)| bound(&p, &g, &y, &dx)).collect()]
            });
        }
    }
    found.finish();
}

#[test]
fn cross_entropy_and_its_gradient() {
    let (mut found, mut rng) = (Disagreements::default(), Rng(2));
    for (dtype, shape, arrangement) in cases().filter(|(_, shape, _)| shape.ndim() == 2) {
        let p = Places::of(dtype);
        let (count, classes) = (shape.dim(0), shape.dim(1));
        for (i, fill) in fills().into_iter().enumerate() {
            for (ignore_index, label_smoothing) in
                [(None, 0.0), (Some(-100), 0.0), (Some(0), 0.2), (None, 1.0)]
            {
                if classes == 0 && ignore_index != Some(-100) {
                    continue;
                }
                let x = input(&mut rng, fill, dtype, shape, arrangement);
                let ignored = ignore_index == Some(-100);
                let targets = Input::new(DType::I64, count, Arrangement::Contiguous, || {
                    let ignore = ignored && (classes == 0 || rng.below(3) == 0);
                    Scalar::Int(if ignore { -100 } else { rng.below(classes) as i64 })
                });
                let context = format!("{dtype} {shape} {arrangement:?}");
                let op = FusedOp::CrossEntropy { ignore_index, label_smoothing };
                let inputs = [Some(&x), Some(&targets)];
                compare(&mut found, &op, &context, &inputs, |operands, want| {
                    let x = rows(operands[0].as_ref().unwrap());
                    let losses = x.iter().zip(values(&want[0]));
                    let losses = losses.map(|(x, y)| bounds::loss(&p, x, label_smoothing, y));
                    let wide = Places::of(want[1].dtype());
                    let largest = values(&want[1]).iter().map(|&x| wide.bound(x, 0.0)).collect();
                    let rests = x.iter().zip(values(&want[2]));
                    let rests = rests.map(|(x, y)| bounds::rest(&wide, x, y)).collect();
                    vec![losses.collect(), largest, rests]
                });
                if i > 0 {
                    continue;
                }
                let g = input(&mut rng, Fill::plain(-2.0, 2.0), dtype, count, arrangement);
                let mut saved = ReferenceBackend::fused(
                    &op,
                    &[Some(&x.on::<Reference>()), Some(&targets.on::<Reference>())],
                )
                .unwrap()
                .into_iter()
                .skip(1)
                .map(|x| {
                    let scalars: Vec<_> = values(&x).into_iter().map(Scalar::Float).collect();
                    Input::of(x.dtype(), count, &scalars)
                });
                let (largest, rest) = (saved.next().unwrap(), saved.next().unwrap());
                let op = FusedOp::CrossEntropyGrad { ignore_index, label_smoothing };
                let inputs = [&g, &x, &targets, &largest, &rest].map(Some);
                compare(&mut found, &op, &context, &inputs, |operands, want| {
                    let (g, x) = (operands[0].as_ref().unwrap(), operands[1].as_ref().unwrap());
                    let targets = values(operands[2].as_ref().unwrap());
                    let each = rows(x)
                        .into_iter()
                        .zip(rows(&want[0]))
                        .zip(values(g).into_iter().zip(targets));
                    let bounds = each.flat_map(|((x, dx), (g, target))| {
                        bounds::cross_entropy_grad(&p, g, &x, target as i64, label_smoothing, &dx)
                    });
                    vec![bounds.collect()]
                });
            }
        }
    }
    found.finish();
}

fn check_layer_norm(
    found: &mut Disagreements,
    rng: &mut Rng,
    (dtype, shape, arrangement): Case,
    (has_weight, has_bias, i): (bool, bool, usize),
) {
    let p = Places::of(dtype);
    let n = shape.dim(shape.ndim() - 1);
    let unit = Fill::plain(-2.0, 2.0);
    let x = input(rng, fills()[i], dtype, shape, arrangement);
    let weight = has_weight.then(|| input(rng, unit, dtype, n, arrangement));
    let bias = has_bias.then(|| input(rng, unit, dtype, n, arrangement));
    let context = format!("{dtype} {shape} {arrangement:?} {has_weight} {has_bias}");
    let eps = 1e-3;
    let inputs = [Some(&x), weight.as_ref(), bias.as_ref()];
    let column = |x: &Option<ReferenceTensor>| x.as_ref().map_or_else(|| vec![1.0; n], values);
    compare(found, &FusedOp::LayerNorm { eps }, &context, &inputs, |operands, want| {
        let x = rows(operands[0].as_ref().unwrap());
        let (weight, wide) = (column(&operands[1]), Places::of(want[1].dtype()));
        let y = x.iter().zip(rows(&want[0]));
        let (means, deviations) = (values(&want[1]), values(&want[2]));
        vec![
            y.flat_map(|(x, y)| bounds::layer_norm(&p, x, eps, &weight, &y)).collect(),
            x.iter().zip(means).map(|(x, mean)| bounds::mean(&wide, x, mean)).collect(),
            deviations.iter().map(|&r| bounds::reciprocal_deviation(&wide, r)).collect(),
        ]
    });
    if i > 0 || has_bias {
        return;
    }
    let g = input(rng, unit, dtype, shape, arrangement);
    let normals: Vec<Normal> =
        rows(&x.on::<Reference>()).iter().map(|x| Normal::of(x, eps)).collect();
    let statistic = |f: fn(&Normal) -> f64| {
        let mut each = normals.iter().map(f).chain(std::iter::repeat(1.0));
        let lead = &shape.dims()[..shape.ndim() - 1];
        let shape: Shape = lead.iter().copied().chain([1]).collect();
        let dtype = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
        Input::new(dtype, shape, Arrangement::Contiguous, || Scalar::Float(each.next().unwrap()))
    };
    let deviation = statistic(|n| n.reciprocal);
    let inputs = [Some(&g), Some(&x), weight.as_ref(), Some(&deviation)];
    compare(found, &FusedOp::LayerNormGrad, &context, &inputs, |operands, want| {
        let [g, x] = [0, 1].map(|i| rows(operands[i].as_ref().unwrap()));
        let r = values(operands[3].as_ref().unwrap());
        let weight = column(&operands[2]);
        let (mut dx, mut along, mut sizes) = (Vec::new(), vec![0.0; n], vec![0.0; n]);
        for (i, want) in rows(&want[0]).into_iter().enumerate() {
            let mean = Normal::of(&x[i], eps).mean;
            let normal: Vec<f64> = x[i].iter().map(|x| (x - mean) * r[i]).collect();
            let lost = bounds::lost_in_mean(&x[i]) * r[i];
            let h: Vec<f64> = g[i].iter().zip(&weight).map(|(g, w)| g * w).collect();
            dx.extend(bounds::layer_norm_dx(&p, &h, &normal, r[i], lost, &want));
            for k in 0..n {
                along[k] += (g[i][k] * normal[k]).abs() + g[i][k].abs() * lost / bounds::SUM;
                sizes[k] += g[i][k].abs();
            }
        }
        let of = |k: usize, sizes: &[f64]| {
            let each = sizes.iter().zip(values(&want[k]));
            each.map(|(&size, want)| bounds::column(&p, size, want)).collect()
        };
        vec![dx, of(1, &along), of(2, &sizes)]
    });
}

#[test]
fn layer_norm_and_its_gradients() {
    let (mut found, mut rng) = (Disagreements::default(), Rng(3));
    for case in cases() {
        for (weight, bias) in [(true, true), (true, false), (false, true), (false, false)] {
            for i in 0..2 {
                check_layer_norm(&mut found, &mut rng, case, (weight, bias, i));
            }
        }
    }
    found.finish();
}

#[test]
fn bias_activation_and_its_gradient() {
    let (mut found, mut rng) = (Disagreements::default(), Rng(4));
    for (dtype, shape, arrangement) in cases() {
        let p = Places::of(dtype);
        let n = shape.dim(shape.ndim() - 1);
        let context = format!("{dtype} {shape} {arrangement:?}");
        let fill = Fill::plain(-5.0, 5.0);
        let x = input(&mut rng, fill, dtype, shape, arrangement);
        let bias = input(&mut rng, Fill::plain(-2.0, 2.0), dtype, n, arrangement);
        let g = input(&mut rng, Fill::plain(-2.0, 2.0), dtype, shape, arrangement);
        for activation in Activation::ALL {
            let op = FusedOp::BiasActivation(activation);
            compare(&mut found, &op, &context, &[Some(&x), Some(&bias)], |_, want| {
                let y = values(&want[0]);
                vec![y.iter().map(|&y| p.bound(y, 2.0 * 7.0 + 4.0 * y.abs())).collect()]
            });
            // The slope of relu jumps where the sum is 0: its rounding must not decide.
            if activation == Activation::Relu {
                continue;
            }
            let op = FusedOp::BiasActivationGrad(activation);
            compare(&mut found, &op, &context, &[Some(&g), Some(&x), Some(&bias)], |x, want| {
                let g = values(x[0].as_ref().unwrap()).into_iter().zip(values(&want[0]));
                vec![g.map(|(g, dx)| p.bound(dx, 20.0 * g.abs())).collect()]
            });
        }
    }
    found.finish();
}

#[test]
fn dropout_of_every_probability() {
    for p in [1.0, -0.5, f64::NAN] {
        let op = FusedOp::Dropout(DropoutMask { p, seed: 0, stream: 0 });
        let shape = Shape::from(2);
        let x = Subject::full(shape, Scalar::Float(1.0), DType::F32).unwrap();
        let error = Subject::fused(&op, &[Some(&x)]).unwrap_err();
        assert!(error.to_string().contains("probability"), "{error}");
        let x = Reference::full(shape, Scalar::Float(1.0), DType::F32).unwrap();
        assert!(Reference::fused(&op, &[Some(&x)]).is_err());
    }

    let (mut found, mut rng) = (Disagreements::default(), Rng(5));
    for (dtype, shape, arrangement) in cases() {
        let p = Places::of(dtype);
        for (i, probability) in [0.0, 0.1, 0.5, 0.97].into_iter().enumerate() {
            let seed = [3, u64::MAX, 1 << 40, 0][i];
            let mask = DropoutMask { p: probability, seed, stream: 5 << (16 * i) };
            let context = format!("{dtype} {shape} {arrangement:?}");
            let x = input(&mut rng, fills()[i % 2], dtype, shape, arrangement);
            compare(&mut found, &FusedOp::Dropout(mask), &context, &[Some(&x)], |_, want| {
                vec![values(&want[0]).iter().map(|&y| p.bound(y, 2.0 * y.abs())).collect()]
            });
        }
    }
    found.finish();
}

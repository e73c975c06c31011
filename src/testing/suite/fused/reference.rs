//! Every fused op and its gradients × dtype × shape × layout, against the composites in `f64`.

use super::bounds::{self, Normal};
use crate::testing::suite::Tested;
use crate::testing::suite::agree::{Disagreements, ReferenceTensor, dtypes, floats};
use crate::testing::suite::inputs::{Arrangement, Fill, Input, Rng, Specials};
use crate::testing::suite::oracle::{Oracle, Program, Rounding, agrees, rows, values};
use std::marker::PhantomData;
use swath::ops::{Activation, DropoutMask};
use swath::{ConvOptions, CrossEntropy, DType, Reduction, ReferenceBackend, Scalar, Shape, Tensor};

/// Rows of many lengths, along one and several axes, none and empty.
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

/// Shapes that are tested in every arrangement.
const ARRANGED: [&[usize]; 4] = [&[7], &[3, 5], &[33, 65], &[2, 3, 4, 5]];

const UNIT: Fill = Fill { domain: (-2.0, 2.0), special_every: 0, specials: Specials::All };

type Case = (DType, Shape, Arrangement);

fn cases<B: Tested>() -> impl Iterator<Item = Case> {
    floats::<B>().flat_map(|dtype| {
        SHAPES.into_iter().flat_map(move |shape| {
            let all = if ARRANGED.contains(&shape) { 8 } else { 1 };
            Arrangement::ALL[..all].iter().map(move |&by| (dtype, shape.into(), by))
        })
    })
}

/// Fills for logits, without and with special values, and whether their gradients are compared.
fn fills() -> [(Fill, bool); 2] {
    let plain = Fill::plain(-6.0, 6.0);
    [(plain, true), (plain.with(40, Specials::NoHuge), false)]
}

type Bounds = Vec<Vec<f64>>;

/// Draws inputs and compares programs with the reference.
struct Trials<B> {
    seen: Disagreements,
    rng: Rng,
    backend: PhantomData<B>,
}

impl<B: Tested> Trials<B> {
    fn new(seed: u64) -> Self {
        Trials { seen: Disagreements::default(), rng: Rng(seed), backend: PhantomData }
    }

    fn input(
        &mut self,
        fill: Fill,
        dtype: DType,
        shape: impl Into<Shape>,
        by: Arrangement,
    ) -> Input {
        Input::new(dtype, shape, by, || fill.draw(&mut self.rng, dtype))
    }

    /// Compares results and gradients within their bounds. Upstream gradients are random, in the arrangement
    /// of the first input.
    fn check(
        &mut self,
        gradients: bool,
        program: Program,
        inputs: &[&Input],
        bounds: impl Fn(&Rounding, &Oracle) -> Bounds,
    ) {
        let (dtype, by) = (inputs[0].dtype(), inputs[0].arrangement);
        let (context, p) = (format!("{dtype} {} {by:?}", inputs[0].shape), Rounding::of(dtype));
        let rng = &mut self.rng;
        let mut draw = |shape: &Shape| Input::new(dtype, *shape, by, || UNIT.draw(rng, dtype));
        let upstream = gradients.then_some(&mut draw as _);
        agrees::<B>(&mut self.seen, &context, &program, inputs, upstream, |o| bounds(&p, o));
    }
}

/// Bound of each element from the elements of `xs` at the same index.
fn each<const N: usize>(xs: [&ReferenceTensor; N], bound: impl Fn([f64; N]) -> f64) -> Vec<f64> {
    let all = xs.map(values);
    (0..all[0].len()).map(|i| bound(all.each_ref().map(|x| x[i]))).collect()
}

/// Bounds of each row from the rows of `xs` at the same index.
fn by_row<const N: usize>(
    xs: [&ReferenceTensor; N],
    bound: impl Fn([&[f64]; N]) -> Vec<f64>,
) -> Vec<f64> {
    let all = xs.map(rows);
    (0..all[0].len()).flat_map(|i| bound(all.each_ref().map(|rows| &rows[i][..]))).collect()
}

/// Bounds relative to the largest element of each result and gradient.
fn of_largest(terms: f64, roundings: f64) -> impl Fn(&Rounding, &Oracle) -> Bounds {
    move |p, o| o.results.iter().map(|want| p.of_largest(want, terms, roundings)).collect()
}

pub fn softmax_and_log_softmax_agree<B: Tested>() {
    let mut trials = Trials::<B>::new(1);
    for (dtype, shape, by) in cases::<B>() {
        for ((fill, gradients), log) in
            fills().into_iter().flat_map(|fill| [(fill, false), (fill, true)])
        {
            let x = trials.input(fill, dtype, shape, by);
            trials.check(gradients, Program::Softmax { axis: -1, log }, &[&x], |p, o| {
                let (x, y) = (&o.inputs[0], &o.results[0]);
                let forward = if log { bounds::log_softmax } else { bounds::softmax };
                let backward = if log { bounds::log_softmax_grad } else { bounds::softmax_grad };
                let of_x = |g| by_row([g, y, &o.results[1]], |[g, y, dx]| backward(p, g, y, dx));
                let mut all = vec![by_row([x, y], |[x, y]| forward(p, x, y))];
                all.extend(o.upstream.first().map(of_x));
                all
            });
        }
    }
    for dtype in floats::<B>() {
        for (by, axis) in
            Arrangement::ALL.into_iter().flat_map(|by| [0, 1, 2].map(|axis| (by, axis)))
        {
            let x = trials.input(UNIT, dtype, [4, 3, 5], by);
            for log in [false, true] {
                trials.check(true, Program::Softmax { axis, log }, &[&x], of_largest(32.0, 2.0));
            }
        }
    }
    trials.seen.finish();
}

pub fn cross_entropy_agrees<B: Tested>() {
    let mut trials = Trials::<B>::new(2);
    let by_row = CrossEntropy { reduction: Reduction::None, ..Default::default() };
    for (dtype, shape, by) in cases::<B>().filter(|(_, shape, _)| shape.ndim() == 2) {
        let (count, classes) = (shape.dim(0), shape.dim(1));
        for (ignore_index, smoothing) in
            [(None, 0.0), (Some(-100), 0.0), (Some(0), 0.2), (None, 1.0)]
        {
            let ignored = ignore_index == Some(-100);
            if classes == 0 && !ignored {
                continue;
            }
            for (fill, gradients) in fills() {
                let x = trials.input(fill, dtype, shape, by);
                let targets = Input::new(DType::I64, count, Arrangement::Contiguous, || {
                    let ignore = ignored && (classes == 0 || trials.rng.below(3) == 0);
                    Scalar::Int(if ignore { -100 } else { trials.rng.below(classes) as i64 })
                });
                let options = CrossEntropy { ignore_index, label_smoothing: smoothing, ..by_row };
                trials.check(gradients, Program::CrossEntropy(options), &[&x, &targets], |p, o| {
                    let (x, losses) = (rows(&o.inputs[0]), values(&o.results[0]));
                    let loss = |(x, y): (&Vec<f64>, f64)| bounds::loss(p, x, smoothing, y);
                    let mut all = vec![x.iter().zip(losses).map(loss).collect()];
                    if let [g] = &o.upstream[..] {
                        let (g, targets) = (values(g), values(&o.inputs[1]));
                        let of_row = |(i, dx): (usize, Vec<f64>)| {
                            let target = targets[i] as i64;
                            // Composites compute 1 - p of the target by a subtraction, which cancels.
                            if B::SLACK > 1.0 {
                                return dx.iter().map(|dx| p.bound(*dx, 4.0 * g[i])).collect();
                            }
                            bounds::cross_entropy_grad(p, g[i], &x[i], target, smoothing, &dx)
                        };
                        all.push(
                            rows(&o.results[1]).into_iter().enumerate().flat_map(of_row).collect(),
                        );
                    }
                    all
                });
            }
        }
    }
    // Reductions of the losses; targets with two axes.
    for dtype in floats::<B>() {
        for (other, reduction, label_smoothing, ignore_index) in [
            (1, Reduction::Mean, 0.0, None),
            (1, Reduction::None, 0.0, None),
            (1, Reduction::Sum, 0.0, Some(1)),
            (1, Reduction::Mean, 0.3, None),
            (-100, Reduction::Mean, 0.3, Some(-100)),
        ] {
            let x = trials.input(UNIT, dtype, [2, 3, 7], Arrangement::Contiguous);
            let targets = [0, other, 6, 2, 2, other].map(Scalar::Int);
            let targets = Input::of(DType::I64, [2, 3], &targets);
            let options =
                CrossEntropy { ignore_index, label_smoothing, reduction, ..Default::default() };
            trials.check(
                true,
                Program::CrossEntropy(options),
                &[&x, &targets],
                of_largest(32.0, 2.0),
            );
        }
    }
    let x = trials.input(UNIT, DType::F32, [2, 4], Arrangement::Contiguous);
    for wrong in [-1, 4, i64::MIN] {
        let targets = Input::of(DType::I64, 2, &[0, wrong].map(Scalar::Int));
        trials.check(false, Program::CrossEntropy(by_row), &[&x, &targets], |_, _| unreachable!());
    }
    trials.seen.finish();
}

pub fn norms_agree<B: Tested>() {
    const EPS: f64 = 1e-3;
    let mut trials = Trials::<B>::new(3);
    let parameters = [(true, true), (true, false), (false, true), (false, false)];
    let programs = parameters.map(|of| (of, true)).into_iter();
    let programs = programs.chain([((true, false), false), ((false, false), false)]);
    for ((dtype, shape, by), ((has_weight, has_bias), centred)) in
        cases::<B>().flat_map(|case| programs.clone().map(move |program| (case, program)))
    {
        let n = shape.dim(shape.ndim() - 1);
        for (fill, gradients) in fills() {
            let x = trials.input(fill, dtype, shape, by);
            let [weight, bias] = [(); 2].map(|()| trials.input(UNIT, dtype, n, by));
            let inputs = [Some(&x), has_weight.then_some(&weight), has_bias.then_some(&bias)];
            let inputs: Vec<_> = inputs.into_iter().flatten().collect();
            let program = match centred {
                true => Program::LayerNorm { eps: EPS, bias_alone: has_bias && !has_weight },
                false => Program::RmsNorm { eps: EPS },
            };
            trials.check(gradients, program, &inputs, |p, o| {
                let weight = if has_weight { values(&o.inputs[1]) } else { vec![1.0; n] };
                let mut all = vec![by_row([&o.inputs[0], &o.results[0]], |[x, y]| {
                    bounds::norm(p, x, &Normal::of(x, EPS, centred), &weight, y)
                })];
                let [g] = &o.upstream[..] else { return all };
                let (mut along, mut sizes) = (vec![0.0; n], vec![0.0; n]);
                let (x, g) = (rows(&o.inputs[0]), rows(g));
                let of_row = |(i, dx): (usize, Vec<f64>)| {
                    let normal = Normal::of(&x[i], EPS, centred);
                    for (k, g) in g[i].iter().enumerate() {
                        along[k] += (g * normal.at(x[i][k])).abs()
                            + g.abs() * normal.mean_error / bounds::SUM;
                        sizes[k] += g.abs();
                    }
                    let h: Vec<f64> = g[i].iter().zip(&weight).map(|(g, w)| g * w).collect();
                    bounds::norm_dx(p, &h, &x[i], &normal, &dx)
                };
                all.push(rows(&o.results[1]).into_iter().enumerate().flat_map(of_row).collect());
                // Gradients of the weight and the bias, if present.
                let columns =
                    [has_weight.then_some((along, 2.0)), has_bias.then_some((sizes, 0.0))];
                for ((sizes, errors), want) in columns.into_iter().flatten().zip(&o.results[2..]) {
                    all.push(bounds::columns(p, &sizes, errors, &values(want)));
                }
                all
            });
        }
    }
    trials.seen.finish();
}

/// True unless the slope jumps somewhere, where rounding of the argument would change it.
fn is_smooth(activation: Activation) -> bool {
    use Activation::*;
    !matches!(activation, Relu | Relu6 | Selu | Hardsigmoid | Hardswish | LeakyRelu(_) | Elu(_))
}

pub fn bias_activation_agrees<B: Tested>() {
    let mut trials = Trials::<B>::new(4);
    for (dtype, shape, by) in cases::<B>() {
        let n = shape.dim(shape.ndim() - 1);
        let x = trials.input(Fill::plain(-5.0, 5.0), dtype, shape, by);
        let bias = trials.input(UNIT, dtype, n, by);
        for activation in Activation::ALL {
            let gradients = is_smooth(activation);
            trials.check(gradients, Program::BiasActivation(activation), &[&x, &bias], |p, o| {
                let mut all = vec![each([&o.results[0]], |[y]| p.bound(y, 14.0 + 4.0 * y.abs()))];
                let [g] = &o.upstream[..] else { return all };
                all.push(each([g, &o.results[1]], |[g, dx]| p.bound(dx, 20.0 * g.abs())));
                // The gradient of the bias sums values that are rounded to the dtype.
                let mut sizes = vec![0.0; n];
                values(g).iter().enumerate().for_each(|(i, g)| sizes[i % n] += g.abs());
                let errors = 20.0 + 1.2 * p.out / p.wide;
                all.push(bounds::columns(p, &sizes, errors, &values(&o.results[2])));
                all
            });
        }
    }
    trials.seen.finish();
}

pub fn linear_agrees_with_and_without_activation<B: Tested>() {
    let mut trials = Trials::<B>::new(7);
    let shapes: [(&[usize], usize, usize); 6] =
        [(&[5], 7, 3), (&[2, 3], 6, 4), (&[], 4, 9), (&[3, 9], 20, 11), (&[3], 0, 2), (&[0], 3, 2)];
    for (dtype, (lead, k, n)) in floats::<B>().flat_map(|dtype| shapes.map(|shape| (dtype, shape)))
    {
        for (i, by) in Arrangement::ALL.into_iter().enumerate() {
            let [x, weight, bias] = [&[lead, &[k]].concat()[..], &[n, k], &[n]]
                .map(|shape| trials.input(UNIT, dtype, shape, by));
            let inputs = if i % 2 == 0 { &[&x, &weight, &bias][..] } else { &[&x, &weight] };
            for activation in [None].into_iter().chain(Activation::ALL.map(Some)) {
                let gradients = activation.is_none_or(is_smooth);
                // Each term of the gradients' sums reads values that are rounded to the dtype.
                let roundings = if activation.is_some() { (8 + 4 * n) as f64 } else { 2.0 };
                let bounds = |p: &Rounding, o: &Oracle| {
                    let terms = 16.0 + (4 * k) as f64;
                    let all = o.results.iter().enumerate();
                    all.map(|(i, want)| {
                        p.of_largest(want, terms, if i == 0 { 2.0 } else { roundings })
                    })
                    .collect()
                };
                trials.check(gradients, Program::Linear(activation), inputs, bounds);
            }
        }
    }
    trials.seen.finish();
}

pub fn dropout_of_every_probability_agrees<B: Tested>() {
    let mut trials = Trials::<B>::new(5);
    for (dtype, shape, by) in cases::<B>() {
        for (i, p) in [0.0, 0.1, 0.5, 0.97].into_iter().enumerate() {
            let seed = [3, u64::MAX, 1 << 40, 0][i];
            let mask = DropoutMask { p, seed, stream: 5 << (16 * i) };
            let x = trials.input(fills()[i % 2].0, dtype, shape, by);
            trials.check(true, Program::Dropout(mask), &[&x], |p, o| {
                o.results.iter().map(|y| each([y], |[y]| p.bound(y, 2.0 * y.abs()))).collect()
            });
        }
    }
    for p in [1.0, -0.5, f64::NAN] {
        let program = Program::Dropout(DropoutMask { p, seed: 0, stream: 0 });
        let x = trials.input(UNIT, DType::F32, 2, Arrangement::Contiguous);
        trials.check(false, program, &[&x], |_, _| unreachable!());
    }
    trials.seen.finish();
}

/// Vectors; rows: many, long, none; more rows along an axis than are gathered at a time.
const DOTS: [&[usize]; 17] = [
    &[0],
    &[1],
    &[7],
    &[16],
    &[1023],
    &[1024],
    &[1025],
    &[3000],
    &[4096],
    &[9001],
    &[3, 7],
    &[130, 3],
    &[2, 3, 1025],
    &[2, 70, 3],
    &[5, 2, 1],
    &[4, 0],
    &[0, 4],
];

pub fn inner_products_agree<B: Tested>() {
    let mut trials = Trials::<B>::new(31);
    for (dtype, shape) in floats::<B>().flat_map(|dtype| DOTS.map(|shape| (dtype, shape))) {
        for (i, by) in Arrangement::ALL.into_iter().enumerate() {
            let special = Fill::plain(0.0, 1.0).with(900, Specials::NoHuge);
            for (fill, gradients) in [(UNIT, true), (special, false)] {
                let a = trials.input(fill, dtype, shape, by);
                let b = trials.input(UNIT, dtype, shape, Arrangement::ALL[(i + 3) % 8]);
                trials.check(gradients, Program::Dot, &[&a, &b], |p, o| {
                    // Sums are in f64; for operands of f64 each term takes part in a few dozen additions.
                    let factor = if dtype == DType::F64 { 64.0 } else { 1e-6 };
                    let [a, b] = [0, 1].map(|i| rows(&o.inputs[i]));
                    let bound = |(row, want): (usize, f64)| {
                        let terms =
                            a.get(row).into_iter().flatten().zip(b.get(row).into_iter().flatten());
                        let terms = terms.map(|(a, b)| (a * b).abs());
                        p.bound(want, factor * terms.filter(|term| term.is_finite()).sum::<f64>())
                    };
                    let dots = values(&o.results[0]).into_iter().enumerate().map(bound).collect();
                    let gradients =
                        o.results[1..].iter().map(|dx| each([dx], |[dx]| p.bound(dx, 0.0)));
                    [dots].into_iter().chain(gradients).collect()
                });
            }
        }
    }
    trials.seen.finish();
}

/// Images, some without elements; the last two shapes are invalid.
const IMAGES: [&[usize]; 9] = [
    &[2, 3, 5, 7],
    &[1, 1, 1, 1],
    &[3, 1, 13, 20],
    &[0, 2, 4, 4],
    &[2, 0, 4, 4],
    &[1, 2, 0, 3],
    &[2, 1, 3, 0],
    &[2, 3, 4],
    &[1, 2, 3, 4, 1],
];

/// Extents and options of windows of every kind; the last five are invalid or too large.
fn windows() -> [([usize; 2], ConvOptions<2>); 12] {
    let plain = ConvOptions::new();
    [
        ([1, 1], plain),
        ([3, 3], plain),
        ([3, 3], plain.stride(2).padding(1)),
        ([2, 3], plain.stride([3, 1]).padding([(2, 0), (0, 1)]).dilation([1, 2])),
        ([1, 4], plain.padding([0, 3])),
        ([3, 3], plain.padding(9).stride([5, 4]).dilation([4, 3])),
        ([3, 3], plain.padding(2).stride(usize::MAX)),
        ([3, 3], plain.stride([1, 0])),
        ([3, 3], plain.dilation([0, 1])),
        ([0, 1], plain),
        ([3, 3], plain.padding(usize::MAX)),
        ([3, 3], plain.padding(1 << 31)),
    ]
}

/// Bounds of sums of as many elements as the window has taps, each at most 4.
fn of_taps(p: &Rounding, kernel: [usize; 2], want: &ReferenceTensor) -> Vec<f64> {
    let taps = (kernel[0] * kernel[1]) as f64;
    each([want], |[y]| p.bound(y, 4.0 * taps))
}

pub fn im2col_agrees<B: Tested>() {
    let mut trials = Trials::<B>::new(11);
    for (dtype, shape) in dtypes::<B>().flat_map(|dtype| IMAGES.map(|shape| (dtype, shape))) {
        for by in Arrangement::ALL {
            let x = trials.input(Fill::plain(-4.0, 4.0).with(9, Specials::All), dtype, shape, by);
            for (kernel, options) in windows() {
                let program = Program::Im2col(kernel, options);
                trials.check(dtype.is_float(), program, &[&x], |p, o| {
                    let gradient = |(k, dx)| if k == 0 { vec![] } else { of_taps(p, kernel, dx) };
                    o.results.iter().enumerate().map(gradient).collect()
                });
            }
        }
    }
    trials.seen.finish();
}

pub fn col2im_agrees<B: Tested>() {
    let mut trials = Trials::<B>::new(12);
    for (dtype, image) in floats::<B>().flat_map(|dtype| IMAGES.map(|shape| (dtype, shape))) {
        for (kernel, options) in windows() {
            let &[_, _, height, width] = image else { continue };
            let images = Tensor::<ReferenceBackend>::zeros(image, DType::F32).expect("small");
            let Ok(columns) = images.im2col(kernel, options) else { continue };
            for by in Arrangement::ALL {
                let x = trials.input(Fill::plain(-4.0, 4.0), dtype, columns.dims(), by);
                let program = Program::Col2im([height, width], kernel, options);
                trials.check(true, program, &[&x], |p, o| {
                    vec![of_taps(p, kernel, &o.results[0]), vec![]]
                });
            }
        }
    }
    trials.seen.finish();
}

/// Compares gradients; other tests compare sine and cosine with those of the separate ops, bit for bit.
pub fn gradients_of_sine_and_cosine_agree<B: Tested>() {
    let mut trials = Trials::<B>::new(21);
    for (dtype, shape, by) in cases::<B>() {
        let x = trials.input(Fill::plain(-1e4, 1e4), dtype, shape, by);
        trials.check(true, Program::SinCos, &[&x], |p, o| {
            let of = |k: usize| each([&o.results[k]], |[y]| p.bound(y, 2.0));
            // The upstream gradient times the other function, which is rounded before the product.
            let gradient = |k: usize| {
                each([&o.results[2 + k], &o.upstream[k]], |[dx, g]| p.bound(2.0 * dx, 4.0 * g))
            };
            vec![of(0), of(1), gradient(0), gradient(1)]
        });
    }
    trials.seen.finish();
}

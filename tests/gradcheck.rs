//! Every derivative against central differences in f64, orders 1 and 2, with broadcast, expanded
//! and permuted inputs.

use swath::ops::{BinaryOp, UnaryOp};
use swath::prelude::*;

type T = Tensor<CpuBackend>;

const SECOND_ORDER: GradCheck =
    GradCheck { order: 2, eps: None, rtol: None, atol: None, directions: 8, seed: 1 };

fn uniform(shape: impl Into<Shape>, (low, high): (f64, f64), seed: u64) -> T {
    let shape = shape.into();
    let values = Rng::seed(seed).uniform_vec::<f64>(shape.numel(), low..high).unwrap();
    T::from_vec(values, shape).unwrap()
}

/// Inputs of one shape in three layouts: as they are, permuted, expanded.
fn layouts(domain: (f64, f64), seed: u64) -> Vec<(&'static str, T)> {
    vec![
        ("contiguous", uniform((2, 3), domain, seed)),
        ("permuted", uniform((3, 2), domain, seed + 1).t().unwrap()),
        ("expanded", uniform((2, 1), domain, seed + 2).broadcast_to((2, 3)).unwrap()),
        ("reversed", uniform((2, 3), domain, seed + 3).flip(1).unwrap()),
    ]
}

#[test]
fn every_unary_row() {
    for &op in UnaryOp::ALL {
        for (name, x) in layouts(op.domain(), 10) {
            check_gradients(|xs: &[T]| xs[0].unary(op), &[&x], SECOND_ORDER)
                .unwrap_or_else(|error| panic!("{op:?}, {name}: {error}"));
        }
    }
}

#[test]
fn every_binary_row() {
    for &op in BinaryOp::ALL {
        let [a_domain, b_domain] = op.domain();
        for (name, a) in layouts(a_domain, 20) {
            for b_shape in
                [Shape::new([2, 3]), Shape::new([3]), Shape::new([2, 1]), Shape::scalar()]
            {
                let b = uniform(b_shape, b_domain, 30);
                let f = |xs: &[T]| xs[0].binary(op, &xs[1]);
                check_gradients(f, &[&a, &b], SECOND_ORDER)
                    .unwrap_or_else(|error| panic!("{op:?}, {name} and {b_shape}: {error}"));
            }
        }
    }
}

#[test]
fn scalars_on_either_side() {
    let x = uniform((2, 3), (0.5, 3.0), 40);
    let f = |xs: &[T]| {
        let x = &xs[0];
        Ok((2.0 - x) / 3.0 + 1.5 / x * (x - 0.5) - (-x) + x.affine(2.0, 1.0)?)
    };
    check_gradients(f, &[&x], SECOND_ORDER).unwrap();
}

/// Ops with parameters, by name.
#[test]
fn every_op_with_parameters() {
    type Case = (&'static str, fn(&[T]) -> Result<T>);
    let cases: &[Case] = &[
        ("sum", |xs| xs[0].sum(Some(&[0, 2]), false)),
        ("sum keepdims", |xs| xs[0].sum(Some(&[1]), true)),
        ("sum all", |xs| xs[0].sum(None, false)),
        ("mean", |xs| xs[0].mean(Some(&[1]), false)?.square()),
        ("max", |xs| xs[0].max(Some(&[1]), false)),
        ("max all", |xs| xs[0].max(None, true)),
        ("min", |xs| xs[0].min(Some(&[0, 1]), true)),
        ("softmax", |xs| xs[0].softmax(1)),
        ("log_softmax", |xs| xs[0].log_softmax(-1)),
        ("sum_to", |xs| xs[0].sum_to((3, 1))),
        ("broadcast_to", |xs| xs[0].broadcast_to((2, 2, 3, 4))?.square()),
        ("reshape", |xs| xs[0].reshape((4, 6))?.square()),
        ("flatten", |xs| xs[0].flatten(0, 1)?.square()),
        ("permute", |xs| xs[0].permute(&[2, 0, 1])?.square()),
        ("transpose", |xs| xs[0].transpose(None)?.square()),
        ("narrow", |xs| xs[0].narrow(2, 1, 2)?.square()),
        ("slice", |xs| xs[0].slice(s![1, ..;2, 3..;-2])?.square()),
        ("slice forwards", |xs| xs[0].slice(s![.., 1.., ..;3])?.square()),
        ("flip", |xs| xs[0].flip(2)?.mul(&xs[0])),
        ("unsqueeze", |xs| xs[0].unsqueeze(1)?.square()),
        ("squeeze", |xs| xs[0].narrow(0, 1, 1)?.squeeze(0)?.square()),
        ("contiguous", |xs| xs[0].permute(&[1, 0, 2])?.contiguous()?.square()),
        ("cat", |xs| T::cat(&[&xs[0], &xs[0].square()?], 1)),
        ("where_cond", |xs| {
            T::where_cond(&xs[0].gt(0.0)?, &xs[0].square()?, &xs[0].sum(None, false)?)
        }),
        ("gather", |xs| xs[0].gather(1, &tensor![i64; [[0, 2, 2, 1]], [[1, 1, 0, 0]]])?.square()),
        ("index_select", |xs| xs[0].index_select(2, &tensor![i64; 3, 0, 3, 1])?.square()),
        ("index_add", |xs| {
            xs[0]
                .index_add(
                    0,
                    &tensor![i64; 1, 1, 0],
                    &xs[0]
                        .square()?
                        .narrow(1, 0, 1)?
                        .broadcast_to((2, 3, 4))?
                        .narrow(0, 0, 1)?
                        .broadcast_to((3, 3, 4))?,
                )?
                .square()
        }),
        ("matmul", |xs| xs[0].matmul(&xs[0].t()?)),
        ("matmul broadcast", |xs| xs[0].matmul(&xs[0].narrow(0, 0, 1)?.squeeze(0)?.t()?)),
        ("matmul vector", |xs| {
            let v = xs[0].slice(s![0, 0])?;
            xs[0].matmul(&v)?.matmul(&xs[0].slice(s![1, 1, 1..])?)?.square()
        }),
        ("dot", |xs| xs[0].slice(s![0, 0])?.matmul(&xs[0].slice(s![1, 2])?)),
        ("to_dtype", |xs| xs[0].to_dtype(DType::F64)?.square()),
    ];
    let inputs = [
        ("contiguous", uniform((2, 3, 4), (-2.0, 2.0), 50)),
        ("permuted", uniform((4, 3, 2), (-2.0, 2.0), 51).permute(&[2, 1, 0]).unwrap()),
    ];
    for (name, f) in cases {
        for (layout, x) in &inputs {
            check_gradients(f, &[x], SECOND_ORDER)
                .unwrap_or_else(|error| panic!("{name}, {layout}: {error}"));
        }
    }
}

#[test]
fn a_wrong_derivative_is_noticed() {
    let x = uniform(4, (0.5, 2.0), 60);
    // detach() hides one factor of the product from the derivative.
    let halved = |xs: &[T]| xs[0].mul(xs[0].detach());
    let error = check_gradients(halved, &[&x], GradCheck::default()).unwrap_err();
    assert!(matches!(error, Error::GradientCheck { .. }), "{error}");
}

#[test]
fn ties_and_kinks_have_the_documented_gradients() {
    let at = |f: fn(&T) -> Result<T>, values: &[f32]| {
        let x = T::from_slice(values, values.len()).unwrap().requires_grad();
        let grads = f(&x).unwrap().sum(None, false).unwrap().backward().unwrap();
        grads.wrt(&x).unwrap().to_vec::<f32>().unwrap()
    };
    assert_eq!(at(|x| x.abs(), &[-2.0, 0.0, 3.0]), [-1.0, 0.0, 1.0]);
    assert_eq!(at(|x| x.relu(), &[-2.0, 0.0, 3.0]), [0.0, 0.0, 1.0]);
    assert_eq!(at(|x| x.sign(), &[-2.0, 0.0, 3.0]), [0.0, 0.0, 0.0]);
    assert_eq!(at(|x| x.max(None, false), &[3.0, 1.0, 3.0]), [0.5, 0.0, 0.5]);
    assert_eq!(at(|x| x.min(None, false), &[1.0, 1.0, 3.0]), [0.5, 0.5, 0.0]);
    assert_eq!(at(|x| x.maximum(2.0), &[1.0, 2.0, 3.0]), [0.0, 0.5, 1.0]);
    assert_eq!(at(|x| x.minimum(2.0), &[1.0, 2.0, 3.0]), [1.0, 0.5, 0.0]);
    assert_eq!(at(|x| tensor![2.0].maximum(x), &[1.0, 2.0, 3.0]), [0.0, 0.5, 1.0]);
    assert_eq!(at(|x| tensor![2.0].minimum(x), &[1.0, 2.0, 3.0]), [1.0, 0.5, 0.0]);
    // An infinite gradient stays where the value came from.
    assert_eq!(at(|x| x.maximum(0.0)?.sqrt(), &[-1.0, 4.0]), [0.0, 0.25]);
    assert_eq!(at(|x| x.add(1.0)?.max(None, false)?.sqrt(), &[-1.0, -2.0]), [f32::INFINITY, 0.0]);
    // -1e30 / x² without x² being formed, which is not a number of f32.
    let slope = at(|x| x.recip()?.mul(1e30), &[1e25])[0];
    assert!((slope / -1e-20 - 1.0).abs() < 1e-6, "{slope:e}");
}

#[test]
fn conversions_pass_the_gradient_in_the_inputs_dtype() {
    let x = tensor![f64; 0.5, 2.0].requires_grad();
    let y = x.to_dtype(DType::F32).unwrap().mul_scalar(3.0).unwrap();
    let grads = y.sum(None, false).unwrap().backward().unwrap();
    let gradient = grads.wrt(&x).unwrap();
    assert_eq!(gradient.to_vec::<f64>().unwrap(), [3.0, 3.0]);
}

#[test]
fn many_ties_in_16_bits_share_the_gradient() {
    let count = 70_000;
    let x = T::ones(count, DType::F16).unwrap().requires_grad();
    for y in [x.max(None, false).unwrap(), x.mean(None, false).unwrap()] {
        let grads = y.backward().unwrap();
        let g = grads.wrt(&x).unwrap().to_dtype(DType::F32).unwrap().to_vec::<f32>().unwrap();
        assert!((g[0] * count as f32 - 1.0).abs() < 0.01 && g[0] == g[count - 1], "{}", g[0]);
    }
}

#[test]
fn one_right_side_of_a_batch_gets_one_gradient() {
    let a = uniform((2, 3, 4), (-1.0, 1.0), 70);
    let b = uniform((4, 5), (-1.0, 1.0), 71);
    check_gradients(|xs: &[T]| xs[0].matmul(&xs[1]), &[&a, &b], SECOND_ORDER).unwrap();
    let transposed = uniform((2, 4, 3), (-1.0, 1.0), 72).t().unwrap();
    check_gradients(|xs: &[T]| xs[0].matmul(&xs[1]), &[&transposed, &b], SECOND_ORDER).unwrap();
}

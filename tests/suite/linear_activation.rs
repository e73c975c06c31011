//! `linear_activation` against `linear` followed by the activation, and its bits on several threads;
//! `fused/reference.rs` compares it with the reference backend.

use swath::ops::{Activation, FusedOp};
use swath::prelude::*;

use crate::support::alone;

type T = Tensor<CpuBackend>;

fn randn(shape: impl Into<Shape>, seed: u64, dtype: DType) -> T {
    T::randn(shape, &mut Rng::seed(seed)).unwrap().to_dtype(dtype).unwrap()
}

fn values(x: &T) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
}

fn bits(x: &T) -> Vec<u64> {
    values(x).into_iter().map(f64::to_bits).collect()
}

/// x `[…, k]` contiguous, with leading axes swapped so that its rows cannot be stacked, and reversed.
fn layouts(lead: &[usize], k: usize, dtype: DType) -> Vec<T> {
    let shape = [lead, &[k]].concat();
    let mut all = vec![randn(shape.clone(), 1, dtype)];
    if let [a, b] = *lead {
        all.push(randn([b, a, k], 2, dtype).permute(&[1, 0, 2]).unwrap());
    }
    if !lead.is_empty() {
        all.push(randn(shape, 3, dtype).flip(0).unwrap());
    }
    all
}

/// x, weight, bias.
fn operands(lead: &[usize], k: usize, n: usize, dtype: DType) -> Vec<[Option<T>; 3]> {
    let weights = [randn([n, k], 10, dtype), randn([k, n], 11, dtype).t().unwrap()];
    let biases = [None, Some(randn(n, 13, dtype)), Some(randn(n, 14, dtype).flip(0).unwrap())];
    let each = |(i, x): (usize, T)| {
        [Some(x), Some(weights[(i + n) % 2].clone()), biases[(i + k) % 3].clone()]
    };
    layouts(lead, k, dtype).into_iter().enumerate().map(each).collect()
}

const SIZES: [(usize, usize); 7] =
    [(3, 2), (1, 5), (0, 4), (300, 70), (64, 192), (520, 1), (16, 1030)];

#[test]
fn its_bits_are_those_of_linear_and_the_activation() {
    for dtype in [DType::F32, DType::F64] {
        for lead in [&[][..], &[1], &[7], &[3, 4], &[9, 33], &[0, 2]] {
            for (k, n) in SIZES {
                for (i, [x, weight, bias]) in operands(lead, k, n, dtype).into_iter().enumerate() {
                    let (x, weight) = (x.unwrap(), weight.unwrap());
                    let tracked = x.requires_grad();
                    for activation in Activation::ALL {
                        let z = x.linear(&weight, bias.as_ref()).unwrap();
                        let expected = z.activation(activation).unwrap();
                        let of = |x: &T| x.linear_activation(&weight, bias.as_ref(), activation);
                        let (y, same) = (of(&x).unwrap(), of(&tracked).unwrap());
                        let at = format!("{dtype} {lead:?} {k} {n} {activation:?}, layout {i}");
                        assert_eq!(y.dims(), expected.dims(), "{at}");
                        assert_eq!(bits(&y), bits(&expected), "{at}");
                        assert_eq!(bits(&same.detach()), bits(&expected), "{at}, recorded");
                    }
                }
            }
        }
    }
}

/// The product, the bias and the activation are computed in f32 and rounded once.
#[test]
fn sixteen_bits_are_rounded_once() {
    if swath::blas::info().provider != "embedded" {
        println!("SKIPPED: a library computes f32 products, and not all of 16-bit floats");
        return;
    }
    for dtype in [DType::F16, DType::BF16] {
        for lead in [&[][..], &[7], &[3, 4]] {
            for (k, n) in SIZES {
                for [x, weight, bias] in operands(lead, k, n, dtype) {
                    let (x, weight) = (x.unwrap(), weight.unwrap());
                    let wide = |x: &T| x.to_dtype(DType::F32).unwrap();
                    let (x32, w32, b32) = (wide(&x), wide(&weight), bias.as_ref().map(wide));
                    for activation in Activation::ALL.into_iter().filter(|f| f.op().is_some()) {
                        let z = x32.linear(&w32, b32.as_ref()).unwrap();
                        let y = z.activation(activation).unwrap().to_dtype(dtype).unwrap();
                        let of = |x: &T| x.linear_activation(&weight, bias.as_ref(), activation);
                        let at = format!("{dtype} {lead:?} {k} {n} {activation:?}");
                        assert_eq!(bits(&of(&x).unwrap()), bits(&y), "{at}");
                        let recorded = of(&x.requires_grad()).unwrap();
                        assert_eq!(bits(&recorded.detach()), bits(&y), "{at}, recorded");
                    }
                }
            }
        }
    }
}

#[test]
fn threads_do_not_change_the_bits() {
    alone("linear_activation::threads_do_not_change_the_bits", || {
        // Tall, wide, a batch whose rows cannot be stacked, and a batch of few large products.
        let shapes =
            [(&[520][..], 257, 300), (&[5], 257, 3000), (&[9, 64], 65, 96), (&[2, 300], 65, 300)];
        let all = shapes.into_iter().flat_map(|shape| [(shape, DType::F32), (shape, DType::BF16)]);
        for ((lead, k, n), dtype) in all {
            for [x, weight, bias] in operands(lead, k, n, dtype) {
                let (x, weight) = (x.unwrap(), weight.unwrap());
                for activation in [Activation::Relu, Activation::Gelu] {
                    let of = |x: &T| {
                        let y = x.linear_activation(&weight, bias.as_ref(), activation).unwrap();
                        bits(&y.detach())
                    };
                    let kept = |x: &T| {
                        let (x, weight, bias) =
                            (x.data(), weight.data(), bias.as_ref().map(T::data));
                        let (activation, keep_sums) = (Some(activation), true);
                        let op = FusedOp::Linear { x, weight, bias, activation, keep_sums };
                        CpuBackend::fused(&op)
                            .unwrap()
                            .into_iter()
                            .map(|y| bits(&T::from_data(y)))
                            .collect::<Vec<_>>()
                    };
                    swath::runtime::set_threads(1).unwrap();
                    let (expected, both) = (of(&x), kept(&x));
                    assert_eq!(both[0], expected);
                    for threads in [1, 2, 3, 5] {
                        swath::runtime::set_threads(threads).unwrap();
                        let at = format!("{dtype} {lead:?} {k} {n}, {threads} threads");
                        assert_eq!(of(&x), expected, "{at}");
                        assert!(kept(&x) == both, "{at}");
                        assert_eq!(of(&x.requires_grad()), expected, "{threads} threads, recorded");
                    }
                }
            }
        }
    });
}

#[test]
fn its_gradients_match_those_of_linear_and_the_activation() {
    for dtype in [DType::F32, DType::F64] {
        let (x, w, b) =
            (randn([9, 33, 70], 1, dtype), randn([40, 70], 2, dtype), randn(40, 3, dtype));
        let [x, w, b] = [x, w, b].map(|x| x.requires_grad());
        let g = randn([9, 33, 40], 4, dtype);
        for activation in Activation::ALL {
            let fused = x.linear_activation(&w, Some(&b), activation).unwrap();
            let plain = x.linear(&w, Some(&b)).unwrap().activation(activation).unwrap();
            let [fused, plain] = [fused, plain].map(|y| y.backward_with(&g).unwrap());
            for input in [&x, &w, &b] {
                let [found, wanted] = [&fused, &plain].map(|all| bits(all.wrt(input).unwrap()));
                assert_eq!(found, wanted, "{dtype} {activation:?}");
            }
        }
    }
}

#[test]
fn only_tracked_inputs_get_gradients() {
    let (x, w, b) =
        (randn([3, 4], 50, DType::F32), randn([2, 4], 51, DType::F32), randn(2, 52, DType::F32));
    for activation in Activation::ALL {
        for i in 0..3 {
            let track = |j: usize, x: &T| if i == j { x.requires_grad() } else { x.detach() };
            let (x, w, b) = (track(0, &x), track(1, &w), track(2, &b));
            let y = x.linear_activation(&w, Some(&b), activation).unwrap();
            let grads = y.sum(None, false).unwrap().backward().unwrap();
            let found = [&x, &w, &b].map(|x| grads.get(x).is_some());
            assert_eq!(found, [i == 0, i == 1, i == 2]);
        }
        assert!(!x.linear_activation(&w, Some(&b), activation).unwrap().is_tracked());
        let without = swath::no_grad(|| {
            x.requires_grad().linear_activation(&w, Some(&b), activation).unwrap()
        });
        assert!(!without.is_tracked());
    }
}

#[test]
fn operands_that_do_not_fit_are_errors_that_name_the_op() {
    let (x, w) = (randn([2, 3], 60, DType::F32), randn([4, 3], 61, DType::F32));
    let of = |x: &T, w: &T, b: Option<&T>| {
        x.linear_activation(w, b, Activation::Gelu).unwrap_err().to_string()
    };
    let transposed = w.t().unwrap();
    let expected = "linear_activation: 4 inputs expected, found 3, for shapes [2, 3] and [3, 4]";
    assert_eq!(of(&x, &transposed, None), expected);
    let bias = randn(3, 62, DType::F32);
    assert!(
        of(&x, &w, Some(&bias)).starts_with("linear_activation: a bias of 4 expected, found 3")
    );
    assert!(of(&x, &w.to_dtype(DType::F64).unwrap(), None).starts_with("linear_activation"));
    let whole = T::zeros((2, 3), DType::I64).unwrap();
    assert!(of(&whole, &whole, None).starts_with("linear_activation"));
}

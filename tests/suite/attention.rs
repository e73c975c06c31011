//! `scaled_dot_product_attention` against another composition of ops, PyTorch and finite differences.

mod vectors;

use crate::testing::suite::fused::attention::{Case, Masked, PLAIN, close, randn, wide};
use swath::prelude::*;

type T = Tensor<CpuBackend>;

/// Checks against a composition of other ops than the library's composite.
#[test]
fn attention_is_softmax_of_scaled_products_times_values() {
    let case = Case { lead: &[2, 2], t: 6, s: 6, ..PLAIN };
    let [q, k, v, _] = case.operands(1, DType::F64);
    let e = q.matmul(&k.t().unwrap()).unwrap().mul_scalar(0.5).unwrap().exp().unwrap();
    let below = T::arange(0.0, 36.0, 1.0).unwrap().to_vec::<f32>().unwrap();
    let below: Vec<f64> =
        below.iter().map(|&i| f64::from(i as usize % 6 <= i as usize / 6)).collect();
    let e = e.mul(T::from_vec(below, (6, 6)).unwrap()).unwrap();
    let expected = e.matmul(&v).unwrap().div(e.sum(Some(&[3]), true).unwrap()).unwrap();
    let causal = Attention { causal: true, ..Default::default() };
    let y = q.scaled_dot_product_attention(&k, &v, causal).unwrap();
    assert_eq!(close(&wide(&y), &wide(&expected), 1e-14), None);
}

#[test]
fn merging_the_heads_copies_nothing() {
    let [q, k, v, _] = Case { t: 6, s: 6, ..PLAIN }.operands::<CpuBackend>(1, DType::F32);
    for dtype in [DType::F32, DType::BF16] {
        let [q, k, v] = [&q, &k, &v].map(|x| x.to_dtype(dtype).unwrap().requires_grad());
        let y = q.scaled_dot_product_attention(&k, &v, Attention::default()).unwrap();
        let grads = y.sum(None, false).unwrap().backward().unwrap();
        for x in [&y, grads.wrt(&q).unwrap(), grads.wrt(&k).unwrap(), grads.wrt(&v).unwrap()] {
            assert!(x.permute(&[0, 2, 1, 3]).unwrap().layout().is_contiguous(), "{dtype}");
        }
    }
}

/// One key, broadcast: a block of their scores has more elements than can be counted.
#[test]
fn more_keys_than_memory_are_an_error() {
    let keys = T::ones((1, 2), DType::F32).unwrap().broadcast_to((1 << 58, 2)).unwrap();
    let q = T::ones((3, 2), DType::F32).unwrap();
    let error = q.scaled_dot_product_attention(&keys, &keys, Attention::default()).unwrap_err();
    assert!(matches!(error, Error::Overflow { .. }), "{error}");
}

#[test]
fn gradients_agree_with_finite_differences_twice() {
    let order = |order| GradCheck { order, directions: 4, ..Default::default() };
    for case in [
        Case { lead: &[2], t: 3, s: 4, d: 2, e: 3, ..PLAIN },
        Case { lead: &[1, 2], t: 3, s: 3, d: 2, e: 2, causal: true, ..PLAIN },
        Case { lead: &[], t: 3, s: 4, d: 2, e: 2, mask: Masked::Bool, ..PLAIN },
        Case { lead: &[], t: 3, s: 3, d: 2, e: 2, mask: Masked::Float, causal: true, ..PLAIN },
        Case { lead: &[], t: 4, s: 3, d: 2, e: 2, causal: true, dropout: true, ..PLAIN },
    ] {
        let [q, k, v, _] = case.operands(2, DType::F64);
        let mask = case.mask(DType::F64);
        let f = |xs: &[T]| {
            xs[0].scaled_dot_product_attention(&xs[1], &xs[2], case.options(mask.as_ref()))
        };
        check_gradients(f, &[&q, &k, &v], order(2)).unwrap_or_else(|e| panic!("{case:?}: {e}"));
    }
    // More than one block of queries, in two groups of keys and values; and one tensor as q, k and v.
    let case = Case { lead: &[1, 1], t: 70, s: 70, d: 2, e: 2, causal: true, ..PLAIN };
    let [q, k, v, _] = case.operands(1, DType::F64);
    let f = |xs: &[T]| xs[0].scaled_dot_product_attention(&xs[1], &xs[2], case.options(None));
    check_gradients(f, &[&q, &k, &v], order(1)).unwrap();
    let f = |xs: &[T]| xs[0].scaled_dot_product_attention(&xs[0], &xs[0], case.options(None));
    check_gradients(f, &[&q.narrow(2, 0, 4).unwrap()], order(2)).unwrap();
}

#[test]
fn only_tracked_operands_get_gradients() {
    let [q, k, v, _] = PLAIN.operands::<CpuBackend>(0, DType::F32);
    let tracked = v.requires_grad();
    let y = q.scaled_dot_product_attention(&k, &tracked, Attention::default()).unwrap();
    let grads = y.sum(None, false).unwrap().backward().unwrap();
    // Each element of v gets the sum of its weights, which are 1 in total for every query.
    let total: f64 = wide(grads.wrt(&tracked).unwrap()).iter().sum();
    assert!((total - (2 * 3 * 5 * 4) as f64).abs() < 1e-3);
    let mask = randn((5, 5), 1, DType::F32).requires_grad();
    let options = Attention { mask: Some(&mask), ..Default::default() };
    let y = q.scaled_dot_product_attention(&k, &v, options).unwrap();
    let grads = y.sum(None, false).unwrap().backward().unwrap();
    // A number added to all scores of a query changes nothing.
    let rows = grads.wrt(&mask).unwrap().sum_axis(1, false).unwrap();
    assert!(wide(&rows).iter().all(|sum| sum.abs() < 1e-4), "{rows}");
    assert!(wide(grads.wrt(&mask).unwrap()).iter().any(|g| g.abs() > 1e-2));
}

#[test]
fn operands_that_do_not_fit_are_errors() {
    let full = |dims: &[usize], dtype| T::ones(dims, dtype).unwrap();
    let [q, k, v] = [&[2, 3, 4], &[2, 5, 4], &[2, 5, 6]].map(|dims| full(dims, DType::F32));
    let error = |q: &T, k: &T, v: &T, mask: Option<&T>, part: &str| {
        let options = Attention { mask, ..Default::default() };
        let error = q.scaled_dot_product_attention(k, v, options).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    error(&q, &v, &v, None, "[2, 5, 6]");
    error(&q, &full(&[1, 5, 4], DType::F32), &v, None, "[1, 5, 4]");
    error(&q, &k, &full(&[2, 4, 6], DType::F32), None, "[2, 4, 6]");
    error(&q, &k, &full(&[2, 5, 6], DType::F64), None, "f64");
    error(&q, &k, &v, Some(&full(&[2, 3, 4], DType::F32)), "[2, 3, 4]");
    error(&q, &k, &v, Some(&full(&[3, 5], DType::F64)), "f64");
    let whole = full(&[2, 3, 4], DType::I64);
    error(&whole, &whole, &whole, None, "i64");
}

//! Attention with fewer heads of keys, and with a bias that has a gradient, against PyTorch's
//! `scaled_dot_product_attention(…, enable_gqa=True)`.

use super::{T, assert_close, check};
use swath::prelude::*;
use swath::{Attention, s};

fn line(low: f64, high: f64, shape: &[usize]) -> T {
    T::linspace_as(low, high, shape.iter().product(), DType::F64).unwrap().reshape(shape).unwrap()
}

/// Queries, keys, values and bias of the page's example.
fn operands() -> [T; 4] {
    [
        line(-1.0, 1.0, &[2, 4, 3, 2]).sin().unwrap(),
        line(-2.0, 1.0, &[2, 2, 5, 2]).cos().unwrap(),
        line(0.0, 3.0, &[2, 2, 5, 3]).sin().unwrap(),
        line(-1.0, 2.0, &[3, 5]).cos().unwrap(),
    ]
}

fn loss(xs: &[T]) -> Result<T> {
    let options = Attention { mask: Some(&xs[3]), ..Default::default() };
    let y = xs[0].scaled_dot_product_attention(&xs[1], &xs[2], options)?;
    y.mul(line(0.5, 1.5, &[2, 4, 3, 3]))?.sum(None, false)
}

#[test]
fn grouped_queries_and_a_bias_match_torch() {
    let leaves = operands().map(|x| x.requires_grad());
    let y = loss(&leaves).unwrap();
    assert_close(&y, &[48.2526489216452]);
    let g = grad(&y, &leaves.iter().collect::<Vec<_>>(), false).unwrap();
    let want = [
        [0.044858828709932685, 0.04518299029612175, 0.04495665002448945, 0.04535940424069597],
        [0.35036464492943975, 0.3345652264572587, 0.10212976945654295, 0.09770101584689558],
        [1.0487291571552957, 1.072915725168568, 1.0971022931818397, 0.8656867429048698],
        [0.11123546323611767, 0.1580837988463722, 0.10148399217370875, -0.06246856840277372],
    ];
    for (g, want) in g.iter().zip(want) {
        assert_close(&g.reshape(g.numel()).unwrap().narrow(0, 0, 4).unwrap(), &want);
    }
    let [q, k, v, bias] = operands();
    let small = |x: &T, heads| x.narrow(0, 0, 1).unwrap().narrow(1, 0, heads).unwrap();
    let (q, k, v) = (small(&q, 2), small(&k, 1), small(&v, 1));
    check(&[&q, &k, &v, &bias], |xs| {
        let options = Attention { mask: Some(&xs[3]), causal: true, ..Default::default() };
        xs[0].scaled_dot_product_attention(&xs[1], &xs[2], options)
    });
    check(&[&q, &k, &v], |xs| {
        xs[0].scaled_dot_product_attention(&xs[1], &xs[2], Attention::default())
    });
}

/// Grouped queries give the bits of repeated keys and values, in every dtype.
#[test]
fn grouped_queries_are_those_of_repeated_keys() {
    let [q, k, v, bias] = operands();
    let repeated = |x: &T| {
        let each: Vec<T> = (0..4).map(|h| x.narrow(1, h / 2, 1).unwrap()).collect();
        T::cat(&each.iter().collect::<Vec<_>>(), 1).unwrap()
    };
    let per_head = line(-1.0, 1.0, &[4, 1, 5]).sin().unwrap();
    let visible = tensor![bool; [true, true, false, true, true], [true, false, false, true, true],
        [true, true, true, true, false]];
    for dtype in [DType::F64, DType::F32, DType::F16] {
        let [q, k, v, bias, per_head] =
            [&q, &k, &v, &bias, &per_head].map(|x| x.to_dtype(dtype).unwrap());
        for mask in [None, Some(&bias), Some(&per_head), Some(&visible)] {
            for causal in [false, true] {
                let options = || Attention { mask, causal, ..Default::default() };
                let y = q.scaled_dot_product_attention(&k, &v, options()).unwrap();
                let want = q
                    .scaled_dot_product_attention(&repeated(&k), &repeated(&v), options())
                    .unwrap();
                assert_eq!(y.dims(), want.dims());
                let [y, want] = [&y, &want].map(super::values);
                assert_eq!(y, want, "{dtype} {causal}");
            }
        }
    }
    // One head of keys, from a view; three axes.
    let (q, k, v) =
        (q.slice(s![0]).unwrap(), k.slice(s![0, 0..1]).unwrap(), v.slice(s![1, 1..2]).unwrap());
    let y = q.scaled_dot_product_attention(&k, &v, Attention::default()).unwrap();
    let head = q.slice(s![3]).unwrap();
    let (k, v) = (k.squeeze(0).unwrap(), v.squeeze(0).unwrap());
    let want = head.scaled_dot_product_attention(&k, &v, Attention::default()).unwrap();
    assert_close(&y.slice(s![3]).unwrap(), &super::values(&want));
}

#[test]
fn heads_that_do_not_divide_are_errors() {
    let [q, k, v, _] = operands();
    let three = line(0.0, 1.0, &[2, 3, 3, 2]);
    for (q, k, v) in [(&three, &k, &v), (&k.narrow(2, 0, 3).unwrap(), &q, &q), (&q, &k, &q)] {
        let error = q.scaled_dot_product_attention(k, v, Attention::default()).unwrap_err();
        let op = "scaled_dot_product_attention";
        assert!(matches!(error, Error::ShapeMismatch { op: name, .. } if name == op), "{error}");
    }
    let none = line(0.0, 1.0, &[2, 0, 5, 2]);
    assert!(q.scaled_dot_product_attention(&none, &none, Attention::default()).is_err());
}

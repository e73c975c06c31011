//! Functions of whole rows, forward and with their gradients.

use crate::{Rows, T, normal};
use swath::prelude::*;

const SQUARE: &[usize] = &[1024, 1024];
const SHORT: &[usize] = &[16_384, 16];

fn classes(count: usize, of: usize) -> T {
    let ids = (0..count).map(|i| (i * 7919 % of) as i64).collect();
    T::from_vec(ids, count).expect("as many as the shape has")
}

fn attention(rows: &mut Rows, shape: &'static [usize], causal: bool) {
    let name = format!("attention {shape:?}{}", if causal { " causal" } else { "" });
    let inputs = move || {
        let x = normal(shape, DType::F32)?;
        Ok([x.mul_scalar(0.5)?, x.neg()?, x])
    };
    rows.with_backward("rows", name, inputs, move |[q, k, v]| {
        q.scaled_dot_product_attention(k, v, Attention { causal, ..Default::default() })
    });
}

pub fn rows(rows: &mut Rows) {
    type Function = fn(&T, &T) -> Result<T>;
    let functions: [(&str, Function); 4] = [
        ("softmax", |x, _| x.softmax(-1)),
        ("log_softmax", |x, _| x.log_softmax(-1)),
        ("layer_norm", |x, w| x.layer_norm(Some(w), Some(w), 1e-5)),
        ("rms_norm", |x, w| x.rms_norm(Some(w), 1e-5)),
    ];
    for (name, function) in functions {
        let of = |shape: &'static [usize], dtype| {
            move || Ok([normal(shape, dtype)?, normal(shape[1], dtype)?])
        };
        let mut forward = |shape, dtype| {
            let name = format!("{name} {dtype} {shape:?}");
            rows.of("rows", name, of(shape, dtype), move |[x, w]| function(x, w));
        };
        forward(SHORT, DType::F32);
        if name != "rms_norm" {
            forward(SQUARE, DType::F64);
            forward(SQUARE, DType::BF16);
        }
        let name = format!("{name} f32 {SQUARE:?}");
        rows.with_backward("rows", name, of(SQUARE, DType::F32), move |[x, w]| function(x, w));
    }
    rows.of("rows", "softmax axis 0", || Ok([normal(SQUARE, DType::F32)?]), |[x]| x.softmax(0));
    for shape in [SQUARE, SHORT] {
        let name = format!("cross_entropy {shape:?}");
        let inputs = move || Ok([normal(shape, DType::F32)?]);
        let classes = classes(shape[0], shape[1]);
        rows.with_backward("rows", name, inputs, move |[x]| {
            x.cross_entropy(&classes, CrossEntropy::default())
        });
    }
    attention(rows, &[4, 4, 128, 64], false);
    attention(rows, &[1, 4, 512, 64], true);
    let inputs = || Ok([normal((1000, 64), DType::F32)?, normal((16_384, 64), DType::F32)?]);
    let ids = classes(16_384, 1000);
    let same = ids.clone();
    rows.of("rows", "index_select of 16384 rows of 64", inputs, move |[x, _]| {
        x.index_select(0, &same)
    });
    rows.of("rows", "index_add of 16384 rows of 64", inputs, move |[x, added]| {
        x.index_add(0, &ids, added)
    });
}

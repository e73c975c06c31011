//! Functions of whole rows, forward and with their gradients.

use crate::{Call, Rows, T, call, normal};
use std::hint::black_box;
use swath::prelude::*;

const SQUARE: &[usize] = &[1024, 1024];
const SHORT: &[usize] = &[16_384, 16];

/// The backward pass too: the gradients of a sum of the result's elements.
fn backward(function: impl Fn() -> Result<T> + 'static) -> Result<Call> {
    Ok(Box::new(move || {
        let gradients = function().and_then(|y| y.sum(None, false)?.backward());
        black_box(gradients.expect("the result depends on a variable"));
    }))
}

fn classes(count: usize, of: usize) -> Result<T> {
    T::from_vec((0..count).map(|i| (i * 7919 % of) as i64).collect(), count)
}

fn attention(rows: &mut Rows, shape: &'static [usize], causal: bool) {
    let name = format!("attention {shape:?}{}", if causal { " causal" } else { "" });
    let inputs = move || -> Result<[T; 3]> {
        let x = normal(shape, DType::F32)?;
        Ok([x.mul_scalar(0.5)?.requires_grad(), x.neg()?.requires_grad(), x.requires_grad()])
    };
    let apply = move |[q, k, v]: &[T; 3]| {
        q.scaled_dot_product_attention(k, v, Attention { causal, ..Default::default() })
    };
    rows.add("rows", name.clone(), move || {
        let inputs = inputs()?;
        call(move || no_grad(|| apply(&inputs)))
    });
    rows.add("rows", name + ", backward too", move || {
        let inputs = inputs()?;
        backward(move || apply(&inputs))
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
            let inputs = of(shape, dtype);
            rows.add("rows", format!("{name} {dtype} {shape:?}"), move || {
                let [x, w] = inputs()?;
                call(move || function(&x, &w))
            });
        };
        forward(SQUARE, DType::F32);
        forward(SHORT, DType::F32);
        if name != "rms_norm" {
            forward(SQUARE, DType::F64);
            forward(SQUARE, DType::BF16);
        }
        let inputs = of(SQUARE, DType::F32);
        rows.add("rows", format!("{name} f32 {SQUARE:?}, backward too"), move || {
            let [x, w] = inputs()?.map(|tensor: T| tensor.requires_grad());
            backward(move || function(&x, &w))
        });
    }
    rows.add("rows", "softmax axis 0", || {
        let x = normal(SQUARE, DType::F32)?;
        call(move || x.softmax(0))
    });
    for shape in [SQUARE, SHORT] {
        let name = format!("cross_entropy {shape:?}");
        let inputs = move || Ok((normal(shape, DType::F32)?, classes(shape[0], shape[1])?));
        rows.add("rows", name.clone(), move || {
            let (x, classes) = inputs()?;
            call(move || x.cross_entropy(&classes, CrossEntropy::default()))
        });
        rows.add("rows", name + ", backward too", move || {
            let (x, classes) = inputs()?;
            let x = x.requires_grad();
            backward(move || x.cross_entropy(&classes, CrossEntropy::default()))
        });
    }
    attention(rows, &[4, 4, 128, 64], false);
    attention(rows, &[1, 4, 512, 64], true);
    rows.add("rows", "index_select of 16384 rows of 64", || {
        let (table, ids) = (normal((1000, 64), DType::F32)?, classes(16_384, 1000)?);
        call(move || table.index_select(0, &ids))
    });
    rows.add("rows", "index_add of 16384 rows of 64", || {
        let (table, ids) = (normal((1000, 64), DType::F32)?, classes(16_384, 1000)?);
        let added = normal((16_384, 64), DType::F32)?;
        call(move || table.index_add(0, &ids, &added))
    });
}

//! The convolutions of `benches/convolution.rs`, and poolings.

#[allow(dead_code, reason = "its other cases are of other benchmarks")]
#[path = "../../support/cases.rs"]
mod cases;

use crate::{Rows, T, normal};
use cases::{CONVOLUTIONS, POOLED};
use swath::prelude::*;
use swath::{ConvOptions, Padding, PoolOptions};

type Pooling = fn(&[T; 1]) -> Result<T>;

const POOLINGS: [(&str, Pooling); 4] = [
    ("max_pool2d", |[x]| x.max_pool2d(PoolOptions::default())),
    ("avg_pool2d", |[x]| x.avg_pool2d(PoolOptions::default())),
    ("adaptive_avg_pool2d to 7x7", |[x]| x.adaptive_avg_pool2d([7, 7])),
    ("adaptive_avg_pool2d to 5x5", |[x]| x.adaptive_avg_pool2d([5, 5])),
];

pub fn rows(rows: &mut Rows) {
    for case in CONVOLUTIONS {
        let inputs =
            move || Ok([normal(case.images, DType::F32)?, normal(case.filters, DType::F32)?]);
        let padding = Padding::Zeros([case.padding(); 2]);
        let options = ConvOptions { padding, groups: case.groups(), ..Default::default() };
        rows.with_backward("convolution", case, inputs, move |[x, w]| x.conv2d(w, None, options));
    }
    for (name, function) in POOLINGS {
        rows.with_backward("pooling", name, || Ok([normal(POOLED, DType::F32)?]), function);
    }
}

//! Products of matrices. NT: B is stored transposed, as weights of a linear layer are.

use crate::{Rows, normal};
use swath::prelude::*;

fn product(rows: &mut Rows, shape: [usize; 3], batch: usize, transposed: bool, dtype: DType) {
    let [m, k, n] = shape;
    let stored = if transposed { "NT" } else { "NN" };
    let size = if m == k && k == n { format!("{m}") } else { format!("{m}x{k}x{n}") };
    let times = if batch > 1 { format!("{batch} times ") } else { String::new() };
    let inputs = move || {
        let a = normal((batch, m, k), dtype)?;
        let b = match transposed {
            true => normal((batch, n, k), dtype)?.swap_axes(1, 2)?,
            false => normal((batch, k, n), dtype)?,
        };
        if batch == 1 { Ok([a.squeeze(0)?, b.squeeze(0)?]) } else { Ok([a, b]) }
    };
    rows.of("products", format!("{stored} {dtype} {times}{size}"), inputs, |[a, b]| a.matmul(b));
}

pub fn rows(rows: &mut Rows) {
    for transposed in [false, true] {
        for size in [4, 8, 16, 32, 64, 128, 256, 512, 1024] {
            product(rows, [size; 3], 1, transposed, DType::F32);
        }
        for m in [1, 4, 8] {
            product(rows, [m, 1024, 4096], 1, transposed, DType::F32);
        }
        for size in [16, 64, 256, 512] {
            product(rows, [size; 3], 1, transposed, DType::F64);
        }
        for size in [64, 256, 512] {
            product(rows, [size; 3], 1, transposed, DType::BF16);
        }
        product(rows, [64; 3], 32, transposed, DType::F32);
    }
    product(rows, [4; 3], 1024, false, DType::F32);
    product(rows, [1, 1024, 4096], 1, true, DType::F64);
    product(rows, [1, 1024, 4096], 1, true, DType::BF16);
    product(rows, [2048, 128, 512], 1, true, DType::F32);
    let inputs = || {
        let [x, w] = [(256, 512), (512, 512)].map(|shape| normal(shape, DType::F32));
        Ok([x?, w?, normal(512, DType::F32)?])
    };
    rows.of("products", "linear with gelu 256x512x512", inputs, |[x, w, bias]| {
        x.linear_activation(w, Some(bias), nn::Activation::Gelu)
    });
}

//! Products of matrices. NT: B is stored transposed, as weights of a linear layer are.

use crate::{Rows, call, normal};
use swath::prelude::*;

fn product(rows: &mut Rows, shape: [usize; 3], batch: usize, transposed: bool, dtype: DType) {
    let [m, k, n] = shape;
    let stored = if transposed { "NT" } else { "NN" };
    let size = if m == k && k == n { format!("{m}") } else { format!("{m}x{k}x{n}") };
    let times = if batch > 1 { format!("{batch} times ") } else { String::new() };
    rows.add("products", format!("{stored} {dtype} {times}{size}"), move || {
        let (mut a, b) = (normal((batch, m, k), dtype)?, [batch, n, k]);
        let mut b = if transposed {
            normal(b, dtype)?.swap_axes(1, 2)?
        } else {
            normal((batch, k, n), dtype)?
        };
        if batch == 1 {
            (a, b) = (a.squeeze(0)?, b.squeeze(0)?);
        }
        call(move || a.matmul(&b))
    });
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
    rows.add("products", "linear with gelu 256x512x512", || {
        let (x, w) = (normal((256, 512), DType::F32)?, normal((512, 512), DType::F32)?);
        let bias = normal(512, DType::F32)?;
        call(move || x.linear_activation(&w, Some(&bias), nn::Activation::Gelu))
    });
}

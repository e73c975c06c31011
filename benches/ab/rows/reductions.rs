//! Reductions and running sums, over everything, the first, a middle and the last axis.

use crate::{Rows, T, normal};
use swath::prelude::*;

type Reduction = fn(&T) -> Result<T>;

const SQUARE: &[usize] = &[1024, 1024];
const CUBE: &[usize] = &[32, 256, 128];
const SHORT: &[usize] = &[65_536, 8];
const SHORTER: &[usize] = &[131_072, 3];

const CASES: [(&str, &[usize], Reduction); 34] = [
    ("sum", &[64], |x| x.sum(None, false)),
    ("sum", &[4096], |x| x.sum(None, false)),
    ("sum", SQUARE, |x| x.sum(None, false)),
    ("sum axis 0", SQUARE, |x| x.sum_axis(0, false)),
    ("sum axis 1", SQUARE, |x| x.sum_axis(1, false)),
    ("sum axis 1", CUBE, |x| x.sum_axis(1, false)),
    ("sum axis 1", SHORT, |x| x.sum_axis(1, false)),
    ("sum axis 1", SHORTER, |x| x.sum_axis(1, false)),
    ("sum axis 0", SHORT, |x| x.sum_axis(0, false)),
    ("sum of a.t()", SQUARE, |x| x.t()?.sum_axis(1, false)),
    ("mean", SQUARE, |x| x.mean(None, false)),
    ("mean axis 1", SHORT, |x| x.mean_axis(1, false)),
    ("max", SQUARE, |x| x.max(None, false)),
    ("max axis 0", SQUARE, |x| x.max_axis(0, false)),
    ("max axis 1", SQUARE, |x| x.max_axis(1, false)),
    ("max axis 1", CUBE, |x| x.max_axis(1, false)),
    ("max axis 1", SHORT, |x| x.max_axis(1, false)),
    ("argmax", SQUARE, T::argmax_all),
    ("argmax axis 0", SQUARE, |x| x.argmax(0, false)),
    ("argmax axis 1", SQUARE, |x| x.argmax(1, false)),
    ("argmax axis 1", SHORT, |x| x.argmax(1, false)),
    ("variance", SQUARE, |x| x.variance(None, false, 1)),
    ("variance axis 0", SQUARE, |x| x.variance_axis(0, false, 1)),
    ("variance axis 1", SQUARE, |x| x.variance_axis(1, false, 1)),
    ("variance axis 1", SHORT, |x| x.variance_axis(1, false, 1)),
    ("norm", SQUARE, |x| x.norm(2.0, None, false)),
    ("norm axis 1", SQUARE, |x| x.norm_axis(2.0, 1, false)),
    ("logsumexp", SQUARE, |x| x.logsumexp(None, false)),
    ("logsumexp axis 0", SQUARE, |x| x.logsumexp_axis(0, false)),
    ("logsumexp axis 1", SQUARE, |x| x.logsumexp_axis(1, false)),
    ("logsumexp axis 1", SHORT, |x| x.logsumexp_axis(1, false)),
    ("cumsum axis 0", SQUARE, |x| x.cumsum(0)),
    ("cumsum axis 1", SQUARE, |x| x.cumsum(1)),
    ("cumsum axis 1", SHORT, |x| x.cumsum(1)),
];

fn add(rows: &mut Rows, name: &str, shape: &'static [usize], dtype: DType, function: Reduction) {
    let inputs = move || {
        // Small numbers of both signs, and not all of them 0 where they are whole.
        let x = normal(shape, DType::F32)?;
        let x = match dtype {
            DType::U8 => x.abs()?.mul_scalar(20.0)?.to_dtype(dtype)?,
            DType::Bool => x.gt(&x.mul_scalar(0.0)?.add_scalar(100.0)?)?,
            DType::I64 => x.mul_scalar(20.0)?.to_dtype(dtype)?,
            _ => x.to_dtype(dtype)?,
        };
        Ok([x])
    };
    rows.of("reductions", format!("{name} {dtype} {shape:?}"), inputs, move |[x]| function(x));
}

pub fn rows(rows: &mut Rows) {
    for (name, shape, function) in CASES {
        add(rows, name, shape, DType::F32, function);
    }
    for dtype in [DType::F64, DType::BF16] {
        add(rows, "sum", SQUARE, dtype, |x| x.sum(None, false));
        add(rows, "sum axis 0", SQUARE, dtype, |x| x.sum_axis(0, false));
        add(rows, "max axis 1", SQUARE, dtype, |x| x.max_axis(1, false));
        add(rows, "variance axis 1", SQUARE, dtype, |x| x.variance_axis(1, false, 1));
    }
    for dtype in [DType::I64, DType::U8] {
        add(rows, "sum", SQUARE, dtype, |x| x.sum(None, false));
        add(rows, "sum axis 0", SQUARE, dtype, |x| x.sum_axis(0, false));
        add(rows, "sum axis 1", SQUARE, dtype, |x| x.sum_axis(1, false));
    }
    add(rows, "cumsum axis 1", SQUARE, DType::I64, |x| x.cumsum(1));
    add(rows, "any", SQUARE, DType::Bool, |x| x.any(None, false));
    add(rows, "any axis 1", SQUARE, DType::Bool, |x| x.any_axis(1, false));
    add(rows, "all of half of the columns", SQUARE, DType::Bool, |x| {
        x.narrow(1, 0, 512)?.all(None, false)
    });
    add(rows, "max axis 1", &[4096, 40], DType::F32, |x| x.max_axis(1, false));
    add(rows, "max axis 1", &[4096, 40], DType::I64, |x| x.max_axis(1, false));
    add(rows, "argmax axis 1", &[512, 300], DType::F32, |x| x.argmax(1, false));
}

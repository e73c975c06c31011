//! Operands that do not lie in order, and copies that put them in order.

use crate::{Rows, T, call, normal};
use swath::prelude::*;

const ELEMENTS: usize = 1 << 20;

/// A copy of a view of 1 Mi elements of a dtype, or of as many as the shape has.
fn copied(
    rows: &mut Rows,
    name: &str,
    dtype: DType,
    shape: &'static [usize],
    view: fn(&T) -> Result<T>,
) {
    rows.add("layout", format!("{name} {dtype}"), move || {
        let view = view(&normal(shape, dtype)?)?;
        call(move || view.contiguous())
    });
}

fn added(rows: &mut Rows, name: &'static str, size: usize, view: fn(&T) -> Result<T>) {
    rows.add("layout", format!("{name} + b {size}x{size}"), move || {
        let a = view(&normal((size, size), DType::F32)?)?;
        let b = normal((size, size), DType::F32)?;
        call(move || a.add(&b))
    });
}

pub fn rows(rows: &mut Rows) {
    added(rows, "a.t()", 64, T::t);
    added(rows, "a.t()", 1024, T::t);
    added(rows, "a.t()", 4096, T::t);
    added(rows, "a.flip(1).t()", 1024, |a| a.flip(1)?.t());
    added(rows, "a.flip(1)", 1024, |a| a.flip(1));
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        copied(rows, "t() of 1024x1024", dtype, &[1024, 1024], T::t);
    }
    copied(rows, "t() of 16384x64", DType::F32, &[16_384, 64], T::t);
    copied(rows, "t() of 3 columns", DType::F32, &[ELEMENTS / 4, 3], T::t);
    copied(rows, "permute(0, 2, 1) of [n, 4, 4]", DType::F32, &[ELEMENTS / 16, 4, 4], |a| {
        a.permute(&[0, 2, 1])
    });
    copied(rows, "permute(0, 2, 1, 3) of heads", DType::F32, &[8, 128, 16, 64], |a| {
        a.permute(&[0, 2, 1, 3])
    });
    copied(rows, "permute(2, 0, 1) of images", DType::F32, &[512, 512, 4], |a| {
        a.permute(&[2, 0, 1])
    });
    let of_runs: [(&str, &[usize]); 4] = [
        ("runs of 2", &[32, 256, 64, 2]),
        ("runs of 4", &[32, 256, 32, 4]),
        ("runs of 8", &[32, 256, 16, 8]),
        ("runs of 16", &[32, 256, 8, 16]),
    ];
    for (name, shape) in of_runs {
        copied(rows, name, DType::F32, shape, |a| a.permute(&[0, 2, 1, 3]));
    }
    copied(rows, "half of the columns", DType::F32, &[1024, 1024], |a| a.narrow(1, 256, 512));
    copied(rows, "every other column", DType::F32, &[1024, 1024], |a| a.slice(s![.., ..;2]));
    copied(rows, "row broadcast", DType::F32, &[1, 1024], |a| a.broadcast_to((1024, 1024)));
    rows.add("layout", "rows of 4 + row", || {
        let (a, row) = (normal((65_536, 4), DType::F32)?, normal(4, DType::F32)?);
        call(move || a.add(&row))
    });
    rows.add("layout", "strided rows of 12 + row", || {
        let a = normal((65_536, 16), DType::F32)?.narrow(1, 2, 12)?;
        let row = normal(12, DType::F32)?;
        call(move || a.add(&row))
    });
    rows.add("layout", "exp of half of the columns", || {
        let a = normal((512, 1024), DType::F32)?.narrow(1, 256, 512)?;
        call(move || a.exp())
    });
    rows.add("layout", "exp of a.t()", || {
        let a = normal((512, 512), DType::F32)?.t()?;
        call(move || a.exp())
    });
    rows.add("layout", "cat of 1 and 3 columns", || {
        let (a, b) = (normal((65_536, 1), DType::F32)?, normal((65_536, 3), DType::F32)?);
        call(move || T::cat(&[&a, &b], 1))
    });
    rows.add("layout", "f32 to bf16", || {
        let a = normal(262_144, DType::F32)?;
        call(move || a.to_dtype(DType::BF16))
    });
    rows.add("layout", "bf16 to f32", || {
        let a = normal(262_144, DType::BF16)?;
        call(move || a.to_dtype(DType::F32))
    });
    rows.add("layout", "a < b", || {
        let (a, b) = (normal(262_144, DType::F32)?, normal(262_144, DType::F32)?.neg()?);
        call(move || a.lt(&b))
    });
    rows.add("layout", "where_cond", || {
        let (a, b) = (normal(262_144, DType::F32)?, normal(262_144, DType::F32)?.neg()?);
        let mask = a.lt(&b)?;
        call(move || T::where_cond(&mask, &a, &b))
    });
}

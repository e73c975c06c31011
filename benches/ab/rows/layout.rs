//! Operands that do not lie in order, and copies that put them in order.

use crate::{Rows, T, normal};
use swath::prelude::*;

const ELEMENTS: usize = 1 << 20;

type View = fn(&T) -> Result<T>;
type Function = fn(&[T; 2]) -> Result<T>;

/// Views that are copied.
const COPIES: [(&str, &[usize], View); 13] = [
    ("t() of 1024x1024", &[1024, 1024], T::t),
    ("t() of 16384x64", &[16_384, 64], T::t),
    ("t() of 3 columns", &[ELEMENTS / 4, 3], T::t),
    ("permute(0, 2, 1) of [n, 4, 4]", &[ELEMENTS / 16, 4, 4], |a| a.permute(&[0, 2, 1])),
    ("permute(0, 2, 1, 3) of heads", &[8, 128, 16, 64], |a| a.permute(&[0, 2, 1, 3])),
    ("permute(2, 0, 1) of images", &[512, 512, 4], |a| a.permute(&[2, 0, 1])),
    ("runs of 2", &[32, 256, 64, 2], |a| a.permute(&[0, 2, 1, 3])),
    ("runs of 4", &[32, 256, 32, 4], |a| a.permute(&[0, 2, 1, 3])),
    ("runs of 8", &[32, 256, 16, 8], |a| a.permute(&[0, 2, 1, 3])),
    ("runs of 16", &[32, 256, 8, 16], |a| a.permute(&[0, 2, 1, 3])),
    ("half of the columns", &[1024, 1024], |a| a.narrow(1, 256, 512)),
    ("every other column", &[1024, 1024], |a| a.slice(s![.., ..;2])),
    ("row broadcast", &[1, 1024], |a| a.broadcast_to((1024, 1024))),
];

/// Sums of a view of a square matrix and another one.
const SUMS: [(&str, usize, Function); 5] = [
    ("a.t()", 64, |[a, b]| a.t()?.add(b)),
    ("a.t()", 1024, |[a, b]| a.t()?.add(b)),
    ("a.t()", 4096, |[a, b]| a.t()?.add(b)),
    ("a.flip(1).t()", 1024, |[a, b]| a.flip(1)?.t()?.add(b)),
    ("a.flip(1)", 1024, |[a, b]| a.flip(1)?.add(b)),
];

/// Functions of two matrices.
const OTHERS: [(&str, [usize; 2], [usize; 2], Function); 7] = [
    ("rows of 4 + row", [65_536, 4], [1, 4], |[a, row]| a.add(row)),
    ("strided rows of 12 + row", [65_536, 16], [1, 12], |[a, row]| a.narrow(1, 2, 12)?.add(row)),
    ("exp of half of the columns", [512, 1024], [1, 1], |[a, _]| a.narrow(1, 256, 512)?.exp()),
    ("exp of a.t()", [512, 512], [1, 1], |[a, _]| a.t()?.exp()),
    ("cat of 1 and 3 columns", [65_536, 1], [65_536, 3], |[a, b]| T::cat(&[a, b], 1)),
    ("f32 to bf16", [1, 262_144], [1, 1], |[a, _]| a.to_dtype(DType::BF16)),
    ("a < b", [1, 262_144], [1, 262_144], |[a, b]| a.lt(b)),
];

pub fn rows(rows: &mut Rows) {
    for (name, size, function) in SUMS {
        let inputs = move || {
            let x = normal((size, size), DType::F32)?;
            Ok([x.neg()?, x])
        };
        rows.of("layout", format!("{name} + b {size}x{size}"), inputs, function);
    }
    for (name, shape, view) in COPIES {
        let inputs = move || Ok([view(&normal(shape, DType::F32)?)?]);
        rows.of("layout", name, inputs, |[x]| x.contiguous());
    }
    for dtype in [DType::F64, DType::BF16] {
        let inputs = move || Ok([normal((1024, 1024), dtype)?.t()?]);
        rows.of("layout", format!("t() of 1024x1024 {dtype}"), inputs, |[x]| x.contiguous());
    }
    for (name, a, b, function) in OTHERS {
        let inputs = move || Ok([normal(a, DType::F32)?, normal(b, DType::F32)?.neg()?]);
        rows.of("layout", name, inputs, function);
    }
    rows.of(
        "layout",
        "bf16 to f32",
        || Ok([normal(262_144, DType::BF16)?]),
        |[a]| a.to_dtype(DType::F32),
    );
    let masked = || {
        let a = normal(262_144, DType::F32)?;
        Ok([a.lt(&a.neg()?)?, a.neg()?, a])
    };
    rows.of("layout", "where_cond", masked, |[mask, b, a]| T::where_cond(mask, a, b));
}

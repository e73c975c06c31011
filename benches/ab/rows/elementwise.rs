//! Functions of one, two and three tensors.

use crate::{Rows, T, normal};
use swath::prelude::*;

type Unary = fn(&T) -> Result<T>;
type Binary = fn(&T, &T) -> Result<T>;
type Ternary = fn(&T, &T, &T) -> Result<T>;

const UNARY: [(&str, Unary); 9] = [
    ("neg", T::neg),
    ("relu", T::relu),
    ("sqrt", T::sqrt),
    ("exp", T::exp),
    ("log", T::log),
    ("tanh", T::tanh),
    ("gelu", T::gelu),
    ("erf", T::erf),
    ("sin", T::sin),
];

const BINARY: [(&str, Binary); 3] =
    [("add", |a, b| a.add(b)), ("mul", |a, b| a.mul(b)), ("pow", |a, b| a.pow(b))];

const TERNARY: [(&str, Ternary); 3] = [
    ("mul_add", |a, b, c| a.mul_add(b, c)),
    ("clamp", |a, b, c| a.clamp(b, c)),
    ("lerp", |a, b, c| a.lerp(b, c)),
];

/// Where a call's own cost counts, in the first caches, in the second ones, in memory.
const SIZES: [usize; 4] = [64, 4096, 262_144, 4 << 20];

/// Sizes other than the middle ones are for a few functions.
fn wanted(name: &str, size: usize) -> bool {
    match size {
        64 => matches!(name, "neg" | "exp" | "gelu" | "add" | "pow"),
        4096 | 262_144 => true,
        _ => matches!(name, "neg" | "exp" | "add"),
    }
}

/// Positive where the function wants it.
fn input(name: &str, size: usize, dtype: DType) -> Result<T> {
    let x = normal(size, dtype)?;
    if matches!(name, "sqrt" | "log" | "pow") { x.abs() } else { Ok(x) }
}

fn unary(rows: &mut Rows, name: &'static str, function: Unary, size: usize, dtype: DType) {
    let inputs = move || Ok([input(name, size, dtype)?]);
    rows.of("unary", format!("{name} {dtype} {size}"), inputs, move |[x]| function(x));
}

fn binary(rows: &mut Rows, name: &'static str, function: Binary, size: usize, dtype: DType) {
    let inputs = move || Ok([input(name, size, dtype)?, normal(size, dtype)?]);
    rows.of("binary", format!("{name} {dtype} {size}"), inputs, move |[a, b]| function(a, b));
}

/// Functions of a matrix of 512 × 512 and something that is broadcast to it.
const BROADCAST: [(&str, [usize; 2], Binary); 8] = [
    ("a + scalar", [1, 1], |a, _| a.add_scalar(0.5)),
    ("pow(a, scalar)", [1, 1], |a, _| a.powf(1.7)),
    ("a + [1, 1]", [1, 1], |a, b| a.add(b)),
    ("a + row", [1, 512], |a, b| a.add(b)),
    ("a * column", [512, 1], |a, b| a.mul(b)),
    ("row + a", [1, 512], |a, b| b.add(a)),
    ("a < scalar", [1, 1], |a, b| a.lt(b)),
    ("a < column", [512, 1], |a, b| a.lt(b)),
];

pub fn rows(rows: &mut Rows) {
    for (name, function) in UNARY {
        for size in SIZES.into_iter().filter(|&size| wanted(name, size)) {
            unary(rows, name, function, size, DType::F32);
        }
        if matches!(name, "neg" | "sqrt" | "exp" | "tanh") {
            unary(rows, name, function, 262_144, DType::F64);
        }
        if matches!(name, "neg" | "exp" | "gelu") {
            unary(rows, name, function, 262_144, DType::BF16);
        }
    }
    unary(rows, "isinf", T::isinf, 1000, DType::F32);
    for (name, function) in BINARY {
        for size in SIZES.into_iter().filter(|&size| wanted(name, size)) {
            binary(rows, name, function, size, DType::F32);
        }
        for dtype in [DType::F64, DType::BF16] {
            if name != "mul" {
                binary(rows, name, function, 262_144, dtype);
            }
        }
    }
    for dtype in [DType::I64, DType::U8] {
        let inputs = move || Ok([normal(4096, DType::F32)?.abs()?.to_dtype(dtype)?]);
        rows.of("binary", format!("add {dtype} 4096"), inputs, |[a]| a.add(a));
    }
    let of = |shape: [usize; 2]| normal(shape, DType::F32);
    for (name, other, function) in BROADCAST {
        let inputs = move || Ok([of([512, 512])?, of(other)?]);
        rows.of("broadcast", name, inputs, move |[a, b]| function(a, b));
    }
    let inputs = move || Ok([of([512, 1])?, of([1, 512])?]);
    rows.of("broadcast", "column + row", inputs, |[a, b]| a.add(b));
    let inputs = move || {
        let a = of([512, 512])?;
        Ok([of([512, 1])?.lt(&of([1, 1])?)?, a.neg()?, a])
    };
    rows.of("broadcast", "where_cond by a column", inputs, |[mask, b, a]| {
        T::where_cond(mask, a, b)
    });
    let inputs = || Ok([normal((4096, 1), DType::BF16)?.expand([4096, 64])?]);
    rows.of("broadcast", "exp bf16 of a column", inputs, |[a]| a.exp());
    for (name, function) in TERNARY {
        for size in [4096, 262_144] {
            let inputs = move || {
                let x = normal(size, DType::F32)?;
                Ok([x.affine(0.5, -1.0)?, x.affine(0.5, 1.0)?, x])
            };
            rows.of("ternary", format!("{name} f32 {size}"), inputs, move |[b, c, a]| {
                function(a, b, c)
            });
        }
    }
}

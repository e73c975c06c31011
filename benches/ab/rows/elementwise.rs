//! Functions of one, two and three tensors.

use crate::{Rows, T, call, normal};
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
    rows.add("unary", format!("{name} {dtype} {size}"), move || {
        let x = input(name, size, dtype)?;
        call(move || function(&x))
    });
}

fn binary(rows: &mut Rows, name: &'static str, function: Binary, size: usize, dtype: DType) {
    rows.add("binary", format!("{name} {dtype} {size}"), move || {
        let (a, b) = (input(name, size, dtype)?, normal(size, dtype)?);
        call(move || function(&a, &b))
    });
}

/// A matrix and something that is broadcast to it.
fn broadcast(rows: &mut Rows, name: &'static str, other: [usize; 2], function: Binary) {
    rows.add("broadcast", name, move || {
        let (a, b) = (normal((512, 512), DType::F32)?, normal((other[0], other[1]), DType::F32)?);
        call(move || function(&a, &b))
    });
}

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
        rows.add("binary", format!("add {dtype} 4096"), move || {
            let a = normal(4096, DType::F32)?.abs()?.to_dtype(dtype)?;
            call(move || a.add(&a))
        });
    }
    broadcast(rows, "a + scalar", [1, 1], |a, _| a.add_scalar(0.5));
    broadcast(rows, "pow(a, scalar)", [1, 1], |a, _| a.powf(1.7));
    broadcast(rows, "a + [1, 1]", [1, 1], |a, b| a.add(b));
    broadcast(rows, "a + row", [1, 512], |a, b| a.add(b));
    broadcast(rows, "a * column", [512, 1], |a, b| a.mul(b));
    broadcast(rows, "row + a", [1, 512], |a, b| b.add(a));
    rows.add("broadcast", "column + row", || {
        let (a, b) = (normal((512, 1), DType::F32)?, normal((1, 512), DType::F32)?);
        call(move || a.add(&b))
    });
    broadcast(rows, "a < scalar", [1, 1], |a, b| a.lt(b));
    broadcast(rows, "a < column", [512, 1], |a, b| a.lt(b));
    rows.add("broadcast", "where_cond by a column", || {
        let (a, b) = (normal((512, 512), DType::F32)?, normal((512, 512), DType::F32)?.neg()?);
        let mask = normal((512, 1), DType::F32)?.lt(&normal((1, 1), DType::F32)?)?;
        call(move || T::where_cond(&mask, &a, &b))
    });
    rows.add("broadcast", "exp bf16 of a column", || {
        let a = normal((4096, 1), DType::BF16)?.expand([4096, 64])?;
        call(move || a.exp())
    });
    for (name, function) in TERNARY {
        for size in [4096, 262_144] {
            rows.add("ternary", format!("{name} f32 {size}"), move || {
                let (a, b) =
                    (normal(size, DType::F32)?, normal(size, DType::F32)?.affine(0.5, -1.0)?);
                let c = normal(size, DType::F32)?.affine(0.5, 1.0)?;
                call(move || function(&a, &b, &c))
            });
        }
    }
}

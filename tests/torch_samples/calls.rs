//! What each operation of PyTorch is called here. A call without results is not said: its options are none of swath's.

#[path = "images.rs"]
mod images;
#[path = "linear.rs"]
mod linear;
#[path = "order.rs"]
mod order;

use swath::cpu::prelude::*;

use crate::sample::{Arg, Call};

type Results = Result<Vec<Tensor>>;

fn one(x: Result<Tensor>) -> Results {
    Ok(vec![x?])
}

fn two(x: Result<(Tensor, Tensor)>) -> Results {
    x.map(|(a, b)| vec![a, b])
}

/// Applies a function of two operands.
fn binary(call: &Call, f: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Results {
    let [a, b] = call.pair()?;
    // Operators of swath broadcast operands of different numbers of axes alike.
    one(f(&a, &b))
}

/// Applies a function of two floats: two operands of integers are converted.
fn floats(call: &Call, f: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Results {
    let [a, b] = call.float_pair()?;
    one(f(&a, &b))
}

/// The axes that an argument names: all if there is none, or if the list is empty.
fn axes(call: &Call, at: usize, name: &str) -> Option<Vec<usize>> {
    let rank = call.x().rank() as i64;
    let axes = call.ints(at, name).filter(|list| !list.is_empty())?;
    Some(axes.into_iter().map(|axis| axis.rem_euclid(rank.max(1)) as usize).collect())
}

/// Reductions along one axis of all elements, if no axis is named.
fn flat(call: &Call, at: usize) -> Result<(Tensor, isize)> {
    match call.int(at, "dim") {
        Some(axis) => Ok((call.x().clone(), axis as isize)),
        None => Ok((call.x().reshape(-1)?, 0)),
    }
}

/// Whether an operation takes axes, and 0 and -1 for axes of a tensor that has none.
pub fn has_axes(op: &str) -> bool {
    let ops = "amax amin sum nansum nanmean count_nonzero cosine_similarity logcumsumexp linalg.vander median \
        nanmedian mode nanquantile topk";
    ["index_reduce", "scatter_reduce"].iter().any(|name| op.starts_with(name))
        || ops.split(' ').any(|name| name == op)
}

pub fn call(op: &str, c: &Call) -> Results {
    match op {
        "add" if c.x().dtype() == DType::U8 && c.has(2, "alpha") => Ok(vec![]),
        "sub" if c.x().dtype() == DType::U8 => Ok(vec![]),
        "add" | "sub" | "fmax" | "fmin" if c.x().dtype() == DType::Bool => Ok(vec![]),
        "add"
        | "sub"
        | "pow"
        | "fmod"
        | "remainder"
        | "floor_divide"
        | "fmax"
        | "fmin"
        | "copysign"
        | "heaviside"
        | "logaddexp2"
        | "float_power"
        | "ldexp"
        | "gcd"
        | "lcm"
        | "bitwise_and"
        | "bitwise_or"
        | "bitwise_xor"
        | "bitwise_left_shift"
        | "bitwise_right_shift"
        | "logical_and"
        | "logical_or"
        | "logical_xor" => operators(op, c),
        "signbit"
        | "erfinv"
        | "lgamma"
        | "digamma"
        | "sinc"
        | "i0"
        | "special.i0e"
        | "special.i1"
        | "hardshrink"
        | "softshrink"
        | "hardsigmoid"
        | "logit"
        | "frexp"
        | "bitwise_not"
        | "polygamma-polygamma_n_1"
        | "polygamma-polygamma_n_2" => functions(op, c),
        _ => order::call(op, c),
    }
}

fn operators(op: &str, c: &Call) -> Results {
    match op {
        "add" | "sub" => {
            let [a, b] = c.pair()?;
            let alpha = c.float(2, "alpha").unwrap_or(1.0);
            one(match op {
                "add" => a.add_scaled(&b, alpha),
                _ => a.add_scaled(&b, -alpha),
            })
        }
        "pow" => match c.get(1, "exponent") {
            Arg::Float(p) if c.x().dtype().is_float() => one(c.x().powf(*p)),
            Arg::Int(p) if c.x().dtype().is_float() => one(c.x().powf(*p as f64)),
            _ if !c.pair()?[0].dtype().is_float() => Ok(vec![]),
            _ => binary(c, |a, b| a.pow(b)),
        },
        "fmod" => binary(c, |a, b| a.rem(b)),
        "remainder" => binary(c, |a, b| a.remainder(b)),
        "floor_divide" => binary(c, |a, b| a.floor_divide(b)),
        "fmax" => binary(c, |a, b| a.fmax(b)),
        "fmin" => binary(c, |a, b| a.fmin(b)),
        "copysign" => floats(c, |a, b| a.copysign(b)),
        "heaviside" => binary(c, |a, b| a.heaviside(b)),
        "logaddexp2" => binary(c, |a, b| a.logaddexp2(b)),
        "float_power" => binary(c, |a, b| a.float_power(b)),
        "ldexp" => floats(c, |a, b| a.ldexp(b)),
        "gcd" => binary(c, |a, b| a.gcd(b)),
        "lcm" => binary(c, |a, b| a.lcm(b)),
        "bitwise_and" => binary(c, |a, b| a.bitwise_and(b)),
        "bitwise_or" => binary(c, |a, b| a.bitwise_or(b)),
        "bitwise_xor" => binary(c, |a, b| a.bitwise_xor(b)),
        "bitwise_left_shift" => binary(c, |a, b| a.bitwise_left_shift(b)),
        "bitwise_right_shift" => binary(c, |a, b| a.bitwise_right_shift(b)),
        "logical_and" => binary(c, |a, b| a.logical_and(b)),
        "logical_or" => binary(c, |a, b| a.logical_or(b)),
        _ => binary(c, |a, b| a.logical_xor(b)),
    }
}

fn functions(op: &str, c: &Call) -> Results {
    let float = |at: usize| match c.tensor(at, "input") {
        Some(x) if x.dtype().is_float() => Ok(x.clone()),
        Some(x) => x.to_dtype(DType::F32),
        None => unreachable!("an operand"),
    };
    match op {
        "signbit" => one(c.x().signbit()),
        "erfinv" => one(float(0)?.erfinv()),
        "lgamma" => one(float(0)?.lgamma()),
        "digamma" => one(float(0)?.digamma()),
        "sinc" => one(float(0)?.sinc()),
        "i0" => one(float(0)?.i0()),
        "special.i0e" => one(float(0)?.i0e()),
        "special.i1" => one(float(0)?.i1()),
        "hardshrink" => one(c.x().hardshrink(c.float(1, "lambd").unwrap_or(0.5))),
        "softshrink" => one(c.x().softshrink(c.float(1, "lambd").unwrap_or(0.5))),
        "hardsigmoid" => one(c.x().hardsigmoid_with(1.0 / 6.0, 0.5)),
        "logit" if c.float(1, "eps").is_some_and(|eps| eps > 0.5) => Ok(vec![]),
        "logit" => one(float(0)?.logit(c.float(1, "eps"))),
        "frexp" => two(c.x().frexp()),
        "bitwise_not" => one(c.x().bitwise_not()),
        _ => {
            let n = c.int(1, "n").expect("an order") as u32;
            one(float(0)?.polygamma(n))
        }
    }
}

//! Logic, comparisons and operations on bits.

use swath::ops::CompareOp;
use swath::{Backend, Tensor};

use super::Rows;
use crate::error::Error;
use crate::row::Default::Required;
use crate::row::{Call, Results, Row, one, row};

/// A function of two tensors, whose shapes broadcast.
fn binary<B: Backend>(
    call: &Call<'_, B>,
    f: fn(&Tensor<B>, &Tensor<B>) -> swath::Result<Tensor<B>>,
) -> Results<B> {
    one(f(call.tensor(0)?, call.tensor(1)?))
}

/// A comparison of two tensors, whose shapes broadcast.
fn compare<B: Backend>(call: &Call<'_, B>, op: CompareOp) -> Results<B> {
    one(call.tensor(0)?.compare(op, call.tensor(1)?))
}

impl<B: Backend> Rows<B> {
    pub const LOGIC: &'static [Row<B>] = &[
        row("And", 7, &[], |c| binary(c, |a, b| a.logical_and(b))),
        row("Or", 7, &[], |c| binary(c, |a, b| a.logical_or(b))),
        row("Xor", 7, &[], |c| binary(c, |a, b| a.logical_xor(b))),
        row("Not", 1, &[], |c| one(c.tensor(0)?.logical_not())),
        row("Equal", 7, &[], |c| compare(c, CompareOp::Eq)),
        row("Greater", 7, &[], |c| compare(c, CompareOp::Gt)),
        row("GreaterOrEqual", 12, &[], |c| compare(c, CompareOp::Ge)),
        row("Less", 7, &[], |c| compare(c, CompareOp::Lt)),
        row("LessOrEqual", 12, &[], |c| compare(c, CompareOp::Le)),
        row("BitShift", 11, &[("direction", Required)], |c| match c.text("direction")? {
            "LEFT" => binary(c, |a, b| a.bitwise_left_shift(b)),
            "RIGHT" => binary(c, |a, b| a.bitwise_right_shift(b)),
            other => Err(Error::operator(format!(
                "direction must be \"LEFT\" or \"RIGHT\", got {other:?}"
            ))),
        }),
        row("BitwiseAnd", 18, &[], |c| binary(c, |a, b| a.bitwise_and(b))),
        row("BitwiseOr", 18, &[], |c| binary(c, |a, b| a.bitwise_or(b))),
        row("BitwiseXor", 18, &[], |c| binary(c, |a, b| a.bitwise_xor(b))),
        row("BitwiseNot", 18, &[], |c| one(c.tensor(0)?.bitwise_not())),
    ];
}

//! The table of operators: one file for each family.
//!
//! An operator is a [`row`](crate::row::row): its name, the first version of ONNX's operators with which it works here,
//! its attributes with their defaults, and a function. Where ONNX's rule differs from that of swath's operation, the
//! function follows ONNX's.

use std::marker::PhantomData;

use swath::Backend;

use crate::row::Row;

mod attention;
mod cast;
mod control;
mod convolution;
mod elementwise;
mod gather;
mod image;
mod logic;
mod loss;
mod matrix;
mod ml;
mod normalize;
mod pad;
mod pool;
mod prepared;
mod quantize;
mod random;
mod recurrent;
mod reduce;
mod rotary;
mod shape;
mod signal;
mod training;
mod windows;

/// The tables, for a backend.
pub struct Rows<B: Backend>(PhantomData<B>);

impl<B: Backend> Rows<B> {
    const TABLES: &'static [&'static [Row<B>]] = &[
        Self::ELEMENTWISE,
        Self::LOGIC,
        Self::CAST,
        Self::REDUCE,
        Self::SIGNAL,
        Self::RANDOM,
        Self::LOSS,
        Self::SHAPE,
        Self::PAD,
        Self::GATHER,
        Self::CONTROL,
        Self::MATRIX,
        Self::CONVOLUTION,
        Self::POOL,
        Self::QUANTIZE,
        Self::NORMALIZE,
        Self::IMAGE,
        Self::RECURRENT,
        Self::ATTENTION,
        Self::ROTARY,
        Self::TRAINING,
        Self::ML,
        Self::PREPARED,
    ];
}

/// Finds an operator.
pub fn find<B: Backend>(domain: &str, op: &str) -> Option<&'static Row<B>> {
    let is_named = |row: &&Row<B>| match domain {
        "" => row.name == op,
        _ => row.name.strip_prefix(domain).and_then(|rest| rest.strip_prefix('.')) == Some(op),
    };
    Rows::<B>::TABLES.iter().flat_map(|table| table.iter()).find(is_named)
}

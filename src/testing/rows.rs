//! The rows of the op table as text.

use crate::ops::{binary_ops, ternary_ops, unary_ops};

/// An element-wise op of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name of the op and of its method.
    pub name: &'static str,
    /// Its documentation.
    pub doc: &'static str,
    /// The derivative for each input.
    pub rules: &'static [RowRule],
}

/// A derivative as a row states it.
#[derive(Clone, Copy, Debug)]
pub struct RowRule {
    /// The values that it names: `g`, inputs (`x`, or `a`, `b`, `c`) and the output `y`.
    pub parameters: &'static [&'static str],
    /// Its code.
    pub text: &'static str,
}

macro_rules! row_rules {
    ($(($($parameter:ident),*) => $gradient:expr;)*) => {
        &[$(RowRule {
            parameters: &[$(stringify!($parameter)),*],
            text: stringify!($gradient),
        }),*]
    };
}

macro_rules! unary_rows {
    ($({
        $(#[doc = $doc:literal])*
        $method:ident, $Variant:ident;
        value: $value:expr;
        $(integer: $integer:tt;)?
        domain: $low:expr, $high:expr;
        gradient: $parameters:tt => $gradient:expr;
    })*) => {
        const UNARY: &[Row] = &[$(Row {
            name: stringify!($method),
            doc: concat!($($doc),*),
            rules: row_rules! { $parameters => $gradient; },
        }),*];
    };
}
unary_ops!(unary_rows);

macro_rules! binary_rows {
    ($({
        $(#[doc = $doc:literal])*
        $(#[doc($hidden:ident)])?
        $method:ident, $Variant:ident;
        value: $value:expr;
        $(integer: $integer:tt;)?
        domain: $a_low:expr, $a_high:expr; $b_low:expr, $b_high:expr;
        gradient_a: $a_parameters:tt => $a_gradient:expr;
        gradient_b: $b_parameters:tt => $b_gradient:expr;
    })*) => {
        const BINARY: &[Row] = &[$(Row {
            name: stringify!($method),
            doc: concat!($($doc),*),
            rules: row_rules! { $a_parameters => $a_gradient; $b_parameters => $b_gradient; },
        }),*];
    };
}
binary_ops!(binary_rows);

macro_rules! ternary_rows {
    ($({
        $(#[doc = $doc:literal])*
        $(#[doc($hidden:ident)])?
        $method:ident, $Variant:ident;
        composite: $operands:tt => $composite:expr;
        domain: $a_low:expr, $a_high:expr; $b_low:expr, $b_high:expr; $c_low:expr, $c_high:expr;
        gradient_a: $a_parameters:tt => $a_gradient:expr;
        gradient_b: $b_parameters:tt => $b_gradient:expr;
        gradient_c: $c_parameters:tt => $c_gradient:expr;
    })*) => {
        const TERNARY: &[Row] = &[$(Row {
            name: stringify!($method),
            doc: concat!($($doc),*),
            rules: row_rules! {
                $a_parameters => $a_gradient;
                $b_parameters => $b_gradient;
                $c_parameters => $c_gradient;
            },
        }),*];
    };
}
ternary_ops!(ternary_rows);

/// The unary, binary and ternary rows.
pub const ROWS: [&[Row]; 3] = [UNARY, BINARY, TERNARY];

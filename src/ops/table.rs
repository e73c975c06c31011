//! The rows, a file a family, and the macros that gather them. See the parent module for how to read one.
//!
//! A family is a macro that is handed the rows gathered so far, adds its own, and hands them to the
//! next one named; the last, `expanded`, hands them all to whoever asked.

mod activation;
mod arithmetic;
mod binary;
mod exponential;
mod gradient;
mod rounding;
mod special;
mod trigonometric;

/// Hands the rows of all unary ops to the macro `$expand`.
macro_rules! unary_ops {
    ($expand:ident) => {
        $crate::ops::table::arithmetic! {
            $expand, [], exponential trigonometric special rounding activation expanded
        }
    };
}

/// Hands the rows of all binary ops to the macro `$expand`.
macro_rules! binary_ops {
    ($expand:ident) => {
        $crate::ops::table::binary! { $expand, [], gradient expanded }
    };
}

/// The end of a chain.
macro_rules! expanded {
    ($expand:ident, [$($rows:tt)*],) => {
        $expand! { $($rows)* }
    };
}

pub(crate) use activation::activation;
pub(crate) use arithmetic::arithmetic;
pub(crate) use binary::binary;
pub(crate) use exponential::exponential;
pub(crate) use gradient::gradient;
pub(crate) use rounding::rounding;
pub(crate) use special::special;
pub(crate) use trigonometric::trigonometric;
pub(crate) use {binary_ops, expanded, unary_ops};

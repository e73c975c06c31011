//! The rows of the op table, one file per family, and the macros that collect them. The parent
//! module describes a row.
//!
//! Each family is a macro that takes the rows collected so far, appends its own, and passes them to
//! the next family named. The last macro, `expanded`, passes all rows to the macro that asked for
//! them.

mod activation;
mod arithmetic;
mod binary;
mod exponential;
mod gradient;
mod rounding;
mod special;
mod trigonometric;

/// Passes the rows of all unary ops to the macro `$expand`.
macro_rules! unary_ops {
    ($expand:ident) => {
        $crate::ops::table::arithmetic! {
            $expand, [], exponential trigonometric special rounding activation expanded
        }
    };
}

/// Passes the rows of all binary ops to the macro `$expand`.
macro_rules! binary_ops {
    ($expand:ident) => {
        $crate::ops::table::binary! { $expand, [], gradient expanded }
    };
}

/// Ends a chain: passes all rows to `$expand`.
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

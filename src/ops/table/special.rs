//! Special and power functions. `ops.rs` says how to read a row.

/// The rows so far, with these, handed on.
macro_rules! special {
    ($expand:ident, [$($before:tt)*], $next:ident $($rest:ident)*) => {
        $crate::ops::table::$next! { $expand, [
            $($before)*
        ], $($rest)* }
    };
}

pub(crate) use special;

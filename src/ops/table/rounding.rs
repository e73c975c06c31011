//! Rounding. `ops.rs` says how to read a row.

/// The rows so far, with these, handed on.
macro_rules! rounding {
    ($expand:ident, [$($before:tt)*], $next:ident $($rest:ident)*) => {
        $crate::ops::table::$next! { $expand, [
            $($before)*
            {
                /// The largest integer that is not above. The derivative is exactly 0.
                floor, Floor;
                value: |x| x.floor();
                integer: (|x| x);
                domain: -4.0, 4.0;
                gradient: (g) => g.zeros_like();
            }
            {
                /// The smallest integer that is not below. The derivative is exactly 0.
                ceil, Ceil;
                value: |x| x.ceil();
                integer: (|x| x);
                domain: -4.0, 4.0;
                gradient: (g) => g.zeros_like();
            }
            {
                /// The nearest integer, the even one of two. The derivative is exactly 0.
                round, Round;
                value: |x| x.round_ties_even();
                integer: (|x| x);
                domain: -4.0, 4.0;
                gradient: (g) => g.zeros_like();
            }
            {
                /// Without the fraction. The derivative is exactly 0.
                trunc, Trunc;
                value: |x| x.trunc();
                integer: (|x| x);
                domain: -4.0, 4.0;
                gradient: (g) => g.zeros_like();
            }
        ], $($rest)* }
    };
}

pub(crate) use rounding;

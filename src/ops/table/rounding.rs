//! Rounding. `ops.rs` describes a row.

/// Appends these rows to `$before` and passes them to `$next`.
macro_rules! rounding {
    ($expand:ident, [$($before:tt)*], $next:ident $($rest:ident)*) => {
        $crate::ops::table::$next! { $expand, [
            $($before)*
            {
                /// Rounds down to an integer. The derivative is 0 everywhere.
                floor, Floor;
                value: |x| x.floor();
                integer: (|x| x);
                domain: -4.0, 4.0;
                gradient: (g) => g.zeros_like();
            }
            {
                /// Rounds up to an integer. The derivative is 0 everywhere.
                ceil, Ceil;
                value: |x| x.ceil();
                integer: (|x| x);
                domain: -4.0, 4.0;
                gradient: (g) => g.zeros_like();
            }
            {
                /// Rounds to the nearest integer, ties to even. The derivative is 0 everywhere.
                round, Round;
                value: |x| x.round_ties_even();
                integer: (|x| x);
                domain: -4.0, 4.0;
                gradient: (g) => g.zeros_like();
            }
            {
                /// Rounds towards zero to an integer. The derivative is 0 everywhere.
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

//! Exponentials and logarithms. `ops.rs` says how to read a row.

/// The rows so far, with these, handed on.
macro_rules! exponential {
    ($expand:ident, [$($before:tt)*], $next:ident $($rest:ident)*) => {
        $crate::ops::table::$next! { $expand, [
            $($before)*
            {
                /// Natural exponential, `e^x`.
                exp, Exp;
                value: |x| x.exp();
                integer: ();
                domain: -4.0, 4.0;
                gradient: (g, y) => g.mul(y);
            }
            {
                /// Natural logarithm; −∞ of ±0, NaN of negative numbers.
                log, Log;
                value: |x| x.ln();
                integer: ();
                domain: 0.1, 6.0;
                gradient: (g, x) => g.div(x);
            }
        ], $($rest)* }
    };
}

pub(crate) use exponential;

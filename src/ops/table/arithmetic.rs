//! Arithmetic of one tensor. `ops.rs` describes a row.

/// Appends these rows to `$before` and passes them to `$next`.
macro_rules! arithmetic {
    ($expand:ident, [$($before:tt)*], $next:ident $($rest:ident)*) => {
        $crate::ops::table::$next! { $expand, [
            $($before)*
            {
                /// Negation, `-x`.
                neg, Neg;
                value: |x| -x;
                integer: (|x| x.wrapping_neg());
                domain: -4.0, 4.0;
                gradient: (g) => g.neg();
            }
            {
                /// Absolute value. The derivative at 0 is 0.
                abs, Abs;
                value: |x| x.abs();
                integer: (|x| x.wrapping_abs());
                domain: -4.0, 4.0;
                gradient: (g, x) => g.mul(x.sign()?)?.masked_fill(&x.eq(0.0)?, 0.0);
            }
            {
                /// Sign: −1, ±0 or 1; NaN for NaN. The derivative is 0 everywhere.
                sign, Sign;
                value: |x| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x };
                integer: (|x| x.signum());
                domain: -4.0, 4.0;
                gradient: (g) => g.zeros_like();
            }
            {
                /// Square, `x²`.
                square, Square;
                value: |x| x * x;
                integer: (|x| x.wrapping_mul(x));
                domain: -4.0, 4.0;
                gradient: (g, x) => g.mul(x)?.mul_scalar(2.0);
            }
            {
                /// Square root, correctly rounded; NaN for negative numbers, −0 for −0.
                sqrt, Sqrt;
                value: |x| x.sqrt();
                domain: 0.1, 4.0;
                gradient: (g, y) => g.mul_scalar(0.5)?.div(y);
            }
            {
                /// Reciprocal, `1/x`, correctly rounded.
                recip, Recip;
                value: |x| 1.0 / x;
                domain: 0.3, 4.0;
                gradient: (g, y) => g.mul(y)?.mul(y)?.neg();
            }
        ], $($rest)* }
    };
}

pub(crate) use arithmetic;

//! Exponentials and logarithms. `ops.rs` describes a row.

/// Appends these rows to `$before` and passes them to `$next`.
macro_rules! exponential {
    ($expand:ident, [$($before:tt)*], $next:ident $($rest:ident)*) => {
        $crate::ops::table::$next! { $expand, [
            $($before)*
            {
                /// Natural exponential, `e^x`.
                exp, Exp;
                value: |x| x.exp();
                domain: -4.0, 4.0;
                gradient: (g, y) => g.mul(y);
            }
            {
                /// Power of two, `2^x`; exact where x is an integer.
                exp2, Exp2;
                value: |x| x.exp2();
                domain: -4.0, 4.0;
                gradient: (g, y) => {
                    let slope = y.widened()?.mul_scalar(std::f64::consts::LN_2)?;
                    slope.mul(g.widened()?)?.to_dtype(g.dtype())
                };
            }
            {
                /// Power of ten, `10^x`; exact where the result is.
                exp10, Exp10;
                value: |x| 10f64.powf(x);
                domain: -2.0, 2.0;
                gradient: (g, y) => g.mul(y)?.mul_scalar(std::f64::consts::LN_10);
            }
            {
                /// Natural exponential minus one, `e^x - 1`, accurate near 0 too.
                expm1, Expm1;
                value: |x| x.exp_m1();
                domain: -4.0, 4.0;
                gradient: (g, x) => g.mul(x.exp()?);
            }
            {
                /// Natural logarithm; −∞ for ±0, NaN for negative numbers.
                log, Log;
                value: |x| x.ln();
                domain: 0.1, 6.0;
                gradient: (g, x) => g.div(x);
            }
            {
                /// Logarithm of base 2; −∞ for ±0, NaN for negative numbers.
                log2, Log2;
                value: |x| x.log2();
                domain: 0.1, 6.0;
                gradient: (g, x) => g.div(x)?.mul_scalar(std::f64::consts::LOG2_E);
            }
            {
                /// Logarithm of base 10; −∞ for ±0, NaN for negative numbers.
                log10, Log10;
                value: |x| x.log10();
                domain: 0.1, 6.0;
                gradient: (g, x) => {
                    let scaled = g.widened()?.mul_scalar(std::f64::consts::LOG10_E)?;
                    scaled.div(x.widened()?)?.to_dtype(g.dtype())
                };
            }
            {
                /// Natural logarithm of `1 + x`, accurate near 0 too; −∞ for −1, NaN below.
                log1p, Log1p;
                value: |x| x.ln_1p();
                domain: -0.8, 6.0;
                gradient: (g, x) => g.div(x.add_scalar(1.0)?);
            }
        ], $($rest)* }
    };
}

pub(crate) use exponential;

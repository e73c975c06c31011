//! Special and power functions. `ops.rs` describes a row.

/// Appends these rows to `$before` and passes them to `$next`.
macro_rules! special {
    ($expand:ident, [$($before:tt)*], $next:ident $($rest:ident)*) => {
        $crate::ops::table::$next! { $expand, [
            $($before)*
            {
                /// Error function, `2/√π ∫₀ˣ e^(-t²) dt`.
                erf, Erf;
                value: |x| crate::ops::erf(x);
                domain: -3.0, 3.0;
                gradient: (g, x) => g.erf_grad(x);
            }
            {
                /// Complementary error function, `1 - erf(x)`, accurate where it is small.
                erfc, Erfc;
                value: |x| crate::ops::erfc(x);
                domain: -3.0, 3.0;
                gradient: (g, x) => g.erf_grad(x)?.neg();
            }
            {
                /// Cube root, of negative numbers too. The derivative at 0 is infinite.
                cbrt, Cbrt;
                value: |x| x.cbrt();
                domain: 0.1, 4.0;
                gradient: (g, y) => g.div(y.square()?.mul_scalar(3.0)?);
            }
            {
                /// Reciprocal square root, `1/√x`; ±∞ for ±0, NaN for negative numbers.
                rsqrt, Rsqrt;
                value: |x| 1.0 / x.sqrt();
                domain: 0.2, 4.0;
                gradient: (g, x, y) => {
                    // In 16 bits an intermediate result would leave the range, in any order.
                    let slope = y.widened()?.mul_scalar(-0.5)?;
                    slope.mul(g.widened()?)?.div(x.widened()?)?.to_dtype(g.dtype())
                };
            }
        ], $($rest)* }
    };
}

pub(crate) use special;

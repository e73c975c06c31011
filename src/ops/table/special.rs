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
                integer: ();
                domain: -3.0, 3.0;
                gradient: (g, x) => g.erf_grad(x);
            }
            {
                /// Complementary error function, `1 - erf(x)`, accurate where it is small.
                erfc, Erfc;
                value: |x| crate::ops::erfc(x);
                integer: ();
                domain: -3.0, 3.0;
                gradient: (g, x) => g.erf_grad(x)?.neg();
            }
            {
                /// Cube root, of negative numbers too. The derivative at 0 is infinite.
                cbrt, Cbrt;
                value: |x| x.cbrt();
                integer: ();
                domain: 0.1, 4.0;
                gradient: (g, y) => g.div(y.square()?.mul_scalar(3.0)?);
            }
            {
                /// Reciprocal square root, `1/√x`; ±∞ for ±0, NaN for negative numbers.
                rsqrt, Rsqrt;
                value: |x| 1.0 / x.sqrt();
                integer: ();
                domain: 0.2, 4.0;
                gradient: (g, x, y) => {
                    // In 16 bits an intermediate result would leave the range, in any order.
                    let (dtype, wide) = (g.dtype(), g.dtype().at_least_f32());
                    let (g, x, y) = (g.to_dtype(wide)?, x.to_dtype(wide)?, y.to_dtype(wide)?);
                    y.mul_scalar(-0.5)?.mul(g)?.div(x)?.to_dtype(dtype)
                };
            }
        ], $($rest)* }
    };
}

pub(crate) use special;

//! Trigonometric and hyperbolic functions. `ops.rs` describes a row.

/// Appends these rows to `$before` and passes them to `$next`.
macro_rules! trigonometric {
    ($expand:ident, [$($before:tt)*], $next:ident $($rest:ident)*) => {
        $crate::ops::table::$next! { $expand, [
            $($before)*
            {
                /// Sine of an angle in radians; NaN for ±∞.
                sin, Sin;
                value: |x| x.sin();
                domain: -6.0, 6.0;
                gradient: (g, x) => g.mul(x.cos()?);
            }
            {
                /// Cosine of an angle in radians; NaN for ±∞.
                cos, Cos;
                value: |x| x.cos();
                domain: -6.0, 6.0;
                gradient: (g, x) => g.mul(x.sin()?)?.neg();
            }
            {
                /// Tangent of an angle in radians; NaN for ±∞.
                tan, Tan;
                value: |x| x.tan();
                domain: -1.2, 1.2;
                gradient: (g, y) => g.mul(y.square()?.add_scalar(1.0)?);
            }
            {
                /// Arcsine, in −π/2 … π/2; NaN outside −1 … 1.
                asin, Asin;
                value: |x| x.asin();
                domain: -0.9, 0.9;
                gradient: (g, x) => g.div(x.one_less_square()?.sqrt()?);
            }
            {
                /// Arccosine, in 0 … π; NaN outside −1 … 1.
                acos, Acos;
                value: |x| x.acos();
                domain: -0.9, 0.9;
                gradient: (g, x) => g.div(x.one_less_square()?.sqrt()?)?.neg();
            }
            {
                /// Arctangent, in −π/2 … π/2.
                atan, Atan;
                value: |x| x.atan();
                domain: -4.0, 4.0;
                gradient: (g, x) => {
                    // 1 / (1 + x²), whose square may overflow
                    let h = x.hypot(1.0)?;
                    g.div(&h)?.div(&h)
                };
            }
            {
                /// Hyperbolic sine.
                sinh, Sinh;
                value: |x| x.sinh();
                domain: -3.0, 3.0;
                gradient: (g, x) => g.mul(x.cosh()?);
            }
            {
                /// Hyperbolic cosine.
                cosh, Cosh;
                value: |x| x.cosh();
                domain: -3.0, 3.0;
                gradient: (g, x) => g.mul(x.sinh()?);
            }
            {
                /// Hyperbolic tangent.
                tanh, Tanh;
                value: |x| x.tanh();
                domain: -3.0, 3.0;
                gradient: (g, y) => g.tanh_grad(y);
            }
            {
                /// Inverse hyperbolic sine.
                asinh, Asinh;
                value: |x| crate::ops::asinh(x);
                domain: -4.0, 4.0;
                gradient: (g, x) => g.div(x.hypot(1.0)?);
            }
            {
                /// Inverse hyperbolic cosine, at least 0; NaN below 1.
                acosh, Acosh;
                value: |x| crate::ops::acosh(x);
                domain: 1.2, 6.0;
                gradient: (g, x) => {
                    // 1 / √(x² − 1), whose square may overflow
                    g.div(x.add_scalar(-1.0)?.sqrt()?)?.div(x.add_scalar(1.0)?.sqrt()?)
                };
            }
            {
                /// Inverse hyperbolic tangent; ±∞ for ±1, NaN outside −1 … 1.
                atanh, Atanh;
                value: |x| crate::ops::atanh(x);
                domain: -0.9, 0.9;
                gradient: (g, x) => g.div(x.one_less_square()?);
            }
        ], $($rest)* }
    };
}

pub(crate) use trigonometric;

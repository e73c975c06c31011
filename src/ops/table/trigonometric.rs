//! Trigonometric and hyperbolic functions. `ops.rs` says how to read a row.

/// The rows so far, with these, handed on.
macro_rules! trigonometric {
    ($expand:ident, [$($before:tt)*], $next:ident $($rest:ident)*) => {
        $crate::ops::table::$next! { $expand, [
            $($before)*
            {
                /// Sine of an angle in radians; NaN of ±∞.
                sin, Sin;
                value: |x| x.sin();
                integer: ();
                domain: -6.0, 6.0;
                gradient: (g, x) => g.mul(x.cos()?);
            }
            {
                /// Cosine of an angle in radians; NaN of ±∞.
                cos, Cos;
                value: |x| x.cos();
                integer: ();
                domain: -6.0, 6.0;
                gradient: (g, x) => g.mul(x.sin()?)?.neg();
            }
            {
                /// Hyperbolic tangent.
                tanh, Tanh;
                value: |x| x.tanh();
                integer: ();
                domain: -3.0, 3.0;
                gradient: (g, y) => g.tanh_grad(y);
            }
        ], $($rest)* }
    };
}

pub(crate) use trigonometric;

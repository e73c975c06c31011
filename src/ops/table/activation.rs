//! Activations. `ops.rs` says how to read a row.

/// The rows so far, with these, handed on.
macro_rules! activation {
    ($expand:ident, [$($before:tt)*], $next:ident $($rest:ident)*) => {
        $crate::ops::table::$next! { $expand, [
            $($before)*
            {
                /// Rectified linear unit, `max(x, 0)`; −0 of −0, NaN of NaN. The derivative at 0 is 0.
                relu, Relu;
                value: |x| if x < 0.0 { 0.0 } else { x };
                integer: (|x| x.max(0));
                domain: -4.0, 4.0;
                gradient: (g, y) => g.relu_grad(y);
            }
            {
                /// Logistic sigmoid, `1 / (1 + e^-x)`.
                sigmoid, Sigmoid;
                value: |x| crate::ops::sigmoid(x);
                integer: ();
                domain: -5.0, 5.0;
                gradient: (g, y) => g.sigmoid_grad(y);
            }
            {
                /// Sigmoid linear unit (swish), `x / (1 + e^-x)`; −0 of −∞.
                silu, Silu;
                value: |x| crate::ops::gate(x, x);
                integer: ();
                domain: -5.0, 5.0;
                gradient: (g, x) => g.silu_grad(x);
            }
            {
                /// Gaussian error linear unit, `x/2 · (1 + erf(x/√2))`; −0 of −∞.
                gelu, Gelu;
                value: |x| crate::ops::gelu(x);
                integer: ();
                domain: -4.0, 4.0;
                gradient: (g, x) => g.gelu_grad(x);
            }
            {
                /// Gaussian error linear unit in its tanh form,
                /// `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`; −0 of −∞.
                gelu_tanh, GeluTanh;
                value: |x| crate::ops::gate(x, 2.0 * crate::ops::gelu_tanh_argument(x).0);
                integer: ();
                domain: -4.0, 4.0;
                gradient: (g, x) => g.gelu_tanh_grad(x);
            }
        ], $($rest)* }
    };
}

pub(crate) use activation;

//! Activations. `ops.rs` describes a row.

/// Appends these rows to `$before` and passes them to `$next`.
macro_rules! activation {
    ($expand:ident, [$($before:tt)*], $next:ident $($rest:ident)*) => {
        $crate::ops::table::$next! { $expand, [
            $($before)*
            {
                /// Rectified linear unit, `max(x, 0)`; −0 for −0, NaN for NaN. The derivative at 0 is 0.
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
                domain: -5.0, 5.0;
                gradient: (g, y) => g.sigmoid_grad(y);
            }
            {
                /// Sigmoid linear unit (swish), `x / (1 + e^-x)`; −0 for −∞.
                silu, Silu;
                value: |x| crate::ops::gate(x, x);
                domain: -5.0, 5.0;
                gradient: (g, x) => g.silu_grad(x);
            }
            {
                /// Gaussian error linear unit, `x/2 · (1 + erf(x/√2))`; −0 for −∞.
                gelu, Gelu;
                value: |x| crate::ops::gelu(x);
                domain: -4.0, 4.0;
                gradient: (g, x) => g.gelu_grad(x);
            }
            {
                /// Tanh approximation of the Gaussian error linear unit,
                /// `x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))`; −0 for −∞.
                gelu_tanh, GeluTanh;
                value: |x| crate::ops::gate(x, 2.0 * crate::ops::gelu_tanh_argument(x).0);
                domain: -4.0, 4.0;
                gradient: (g, x) => g.gelu_tanh_grad(x);
            }
            {
                /// Softplus, `ln(1 + e^x)`.
                softplus, Softplus;
                value: |x| crate::ops::softplus(x);
                domain: -5.0, 5.0;
                gradient: (g, x) => g.softplus_grad(x);
            }
            {
                /// Logarithm of the logistic sigmoid, `-ln(1 + e^-x)`.
                log_sigmoid, LogSigmoid;
                value: |x| -crate::ops::softplus(-x);
                domain: -5.0, 5.0;
                gradient: (g, x) => g.log_sigmoid_grad(x);
            }
            {
                /// Mish, `x · tanh(softplus(x))`; −0 for −∞.
                mish, Mish;
                value: |x| crate::ops::mish(x);
                domain: -5.0, 5.0;
                gradient: (g, x) => g.mish_grad(x);
            }
            {
                /// Scaled exponential linear unit (Klambauer et al., 2017): `λ x` where `x ≥ 0`,
                /// else `λ α · (e^x - 1)`, with λ = 1.05070098735548 and α = 1.673263242354377. The
                /// derivative at 0 is `λ α`.
                selu, Selu;
                value: |x| crate::ops::SELU_SCALE
                    * if x < 0.0 { crate::ops::SELU_ALPHA * x.exp_m1() } else { x };
                domain: -4.0, 4.0;
                gradient: (g, x) => g.selu_grad(x);
            }
            {
                /// Rectified linear unit clipped at 6, `min(max(x, 0), 6)`. The derivative at 0 and
                /// 6 is 0.
                relu6, Relu6;
                value: |x| if x < 0.0 { 0.0 } else if x > 6.0 { 6.0 } else { x };
                integer: (|x| x.clamp(0, 6));
                domain: -4.0, 10.0;
                gradient: (g, y) => g.relu6_grad(y);
            }
            {
                /// Piecewise linear sigmoid, `min(max(x + 3, 0), 6) / 6`. The derivative at ±3 is
                /// 0.
                hardsigmoid, Hardsigmoid;
                value: |x| (x.clamp(-3.0, 3.0) + 3.0) / 6.0;
                domain: -5.0, 5.0;
                gradient: (g, x) => g.hardsigmoid_grad(x);
            }
            {
                /// Piecewise swish, `x · hardsigmoid(x)`; −0 for −∞. The derivative is 0 at −3 and
                /// 1 at 3.
                hardswish, Hardswish;
                value: |x| match x {
                    x if x <= -3.0 => -0.0,
                    x if x >= 3.0 => x,
                    x => x * (x + 3.0) / 6.0,
                };
                domain: -5.0, 5.0;
                gradient: (g, x) => g.hardswish_grad(x);
            }
        ], $($rest)* }
    };
}

pub(crate) use activation;

//! Derivatives with kernels of their own, helpers of the other rows' gradients. `ops.rs` describes a row.

/// Appends these rows to `$before` and passes them to `$next`.
macro_rules! gradient {
    ($expand:ident, [$($before:tt)*], $next:ident $($rest:ident)*) => {
        $crate::ops::table::$next! { $expand, [
            $($before)*
            {
                /// Derivative of `erf` at `b`, times `a`: `a · 2/√π · e^(-b²)`.
                #[doc(hidden)]
                erf_grad, ErfGrad;
                value: |a, b| a * crate::ops::erf_slope(b);
                domain: -2.0, 2.0; -3.0, 3.0;
                gradient_a: (g, b) => g.erf_grad(b);
                gradient_b: (g, a, b) => g.mul(a)?.erf_grad(b)?.mul(b)?.mul_scalar(-2.0);
            }
            {
                /// Derivative of `tanh` from its output `b`: `a · (1 - b²)`.
                #[doc(hidden)]
                tanh_grad, TanhGrad;
                value: |a, b| a * (1.0 - b * b);
                domain: -2.0, 2.0; -0.9, 0.9;
                gradient_a: (g, b) => g.tanh_grad(b);
                gradient_b: (g, a, b) => g.mul(a)?.mul(b)?.mul_scalar(-2.0);
            }
            {
                /// Derivative of `sigmoid` from its output `b`: `a · b · (1 - b)`.
                #[doc(hidden)]
                sigmoid_grad, SigmoidGrad;
                value: |a, b| a * b * (1.0 - b);
                domain: -2.0, 2.0; 0.1, 0.9;
                gradient_a: (g, b) => g.sigmoid_grad(b);
                gradient_b: (g, a, b) => g.mul(a)?.mul(b.affine(-2.0, 1.0)?);
            }
            {
                /// Derivative of `relu` from its input or output `b`: `a` where
                /// `b > 0`, else 0; NaN where `b` is.
                #[doc(hidden)]
                relu_grad, ReluGrad;
                value: |a, b| crate::ops::within(a, b, 0.0, f64::INFINITY);
                domain: -2.0, 2.0; -4.0, 4.0;
                gradient_a: (g, b) => g.relu_grad(b);
                gradient_b: (g) => g.zeros_like();
            }
            {
                /// Derivative of `silu` at `b`: `a · s · (1 + b · (1 - s))` with
                /// `s = sigmoid(b)`.
                #[doc(hidden)]
                silu_grad, SiluGrad;
                value: |a, b| a * crate::ops::gate_slope(b, b, 1.0);
                domain: -2.0, 2.0; -5.0, 5.0;
                gradient_a: (g, b) => g.silu_grad(b);
                gradient_b: (g, a, b) => {
                    // s (1 - s) (2 + b (1 - 2 s))
                    let s = b.sigmoid()?;
                    let slope = s.sub(s.square()?)?;
                    g.mul(a)?.mul(slope)?.mul(b.mul(s.affine(-2.0, 1.0)?)?.add_scalar(2.0)?)
                };
            }
            {
                /// Derivative of `gelu_tanh` at `b`, times `a`.
                #[doc(hidden)]
                gelu_tanh_grad, GeluTanhGrad;
                value: |a, b| {
                    let (u, slope) = crate::ops::gelu_tanh_argument(b);
                    a * crate::ops::gate_slope(b, 2.0 * u, 2.0 * slope)
                };
                domain: -2.0, 2.0; -4.0, 4.0;
                gradient_a: (g, b) => g.gelu_tanh_grad(b);
                gradient_b: (g, a, b) => {
                    // With t = tanh(u): (1 - t²) (u' + b/2 (u'' - 2 t u'²))
                    let (k, c) = (crate::ops::GELU_TANH_FACTOR, crate::ops::GELU_TANH_CUBIC);
                    // Beyond 12, 1 - t² is 0, and the other factor may overflow.
                    let b = &b.clamp(-12.0, 12.0)?;
                    let square = b.square()?;
                    let t = square.affine(k * c, k)?.mul(b)?.tanh()?;
                    let first = square.affine(3.0 * k * c, k)?;
                    let second = b.mul_scalar(6.0 * k * c)?;
                    let bend = second.sub(t.mul(first.square()?)?.mul_scalar(2.0)?)?;
                    let inner = first.add(b.mul(bend)?.mul_scalar(0.5)?)?;
                    g.mul(a)?.mul(t.square()?.affine(-1.0, 1.0)?)?.mul(inner)
                };
            }
            {
                /// Derivative of `gelu` at `b`, times `a`.
                #[doc(hidden)]
                gelu_grad, GeluGrad;
                value: |a, b| a * crate::ops::gelu_slope(b);
                domain: -2.0, 2.0; -4.0, 4.0;
                gradient_a: (g, b) => g.gelu_grad(b);
                gradient_b: (g, a, b) => {
                    // φ(b) (2 - b²); φ is 0 beyond 60, where b² may overflow.
                    let square = b.clamp(-60.0, 60.0)?.square()?;
                    let density = square.mul_scalar(-0.5)?.exp()?;
                    let density = density.mul_scalar(crate::ops::NORMAL_DENSITY_AT_0)?;
                    g.mul(a)?.mul(density)?.mul(square.affine(-1.0, 2.0)?)
                };
            }
            {
                /// Derivative of `softplus` at `b`: `a · sigmoid(b)`.
                #[doc(hidden)]
                softplus_grad, SoftplusGrad;
                value: |a, b| a * crate::ops::sigmoid(b);
                domain: -2.0, 2.0; -5.0, 5.0;
                gradient_a: (g, b) => g.softplus_grad(b);
                gradient_b: (g, a, b) => {
                    let s = b.sigmoid()?;
                    g.mul(a)?.mul(s.sub(s.square()?)?)
                };
            }
            {
                /// Derivative of `log_sigmoid` at `b`: `a · sigmoid(-b)`.
                #[doc(hidden)]
                log_sigmoid_grad, LogSigmoidGrad;
                value: |a, b| a * crate::ops::sigmoid(-b);
                domain: -2.0, 2.0; -5.0, 5.0;
                gradient_a: (g, b) => g.log_sigmoid_grad(b);
                gradient_b: (g, a, b) => {
                    let s = b.sigmoid()?;
                    g.mul(a)?.mul(s.square()?.sub(s)?)
                };
            }
            {
                /// Derivative of `selu` at `b`: `a · λ` where `b > 0`, else `a · λ α · e^b`.
                #[doc(hidden)]
                selu_grad, SeluGrad;
                value: |a, b| {
                    let slope = if b > 0.0 { 1.0 } else { crate::ops::SELU_ALPHA * b.exp() };
                    a * (crate::ops::SELU_SCALE * slope)
                };
                domain: -2.0, 2.0; -4.0, 4.0;
                gradient_a: (g, b) => g.selu_grad(b);
                gradient_b: (g, a, b) => {
                    g.mul(a)?.selu_grad(b)?.masked_fill(&b.gt(0.0)?, 0.0)
                };
            }
            {
                /// Derivative of `mish` at `b`, times `a`.
                #[doc(hidden)]
                mish_grad, MishGrad;
                value: |a, b| a * crate::ops::mish_slope(b);
                domain: -2.0, 2.0; -5.0, 5.0;
                gradient_a: (g, b) => g.mish_grad(b);
                gradient_b: (g, a, b) => {
                    // (1 - t²) s (2 + b (1 - s (1 + 2 t))) with t = tanh(softplus(b)), s = sigmoid(b).
                    // Beyond 100, 1 - t² is 0, and the other factor may overflow.
                    let b = &b.minimum(100.0)?;
                    let (t, s) = (b.softplus()?.tanh()?, b.sigmoid()?);
                    let inner = s.mul(t.affine(2.0, 1.0)?)?.affine(-1.0, 1.0)?;
                    let slope = t.square()?.affine(-1.0, 1.0)?.mul(s)?;
                    g.mul(a)?.mul(slope)?.mul(b.mul(inner)?.add_scalar(2.0)?)
                };
            }
            {
                /// Derivative of `relu6` from its input or output `b`: `a` where `0 < b < 6`, else 0;
                /// NaN where `b` is.
                #[doc(hidden)]
                relu6_grad, Relu6Grad;
                value: |a, b| crate::ops::within(a, b, 0.0, 6.0);
                domain: -2.0, 2.0; -4.0, 10.0;
                gradient_a: (g, b) => g.relu6_grad(b);
                gradient_b: (g) => g.zeros_like();
            }
            {
                /// Derivative of `hardsigmoid` at `b`: `a / 6` where `-3 < b < 3`, else 0; NaN
                /// where `b` is.
                #[doc(hidden)]
                hardsigmoid_grad, HardsigmoidGrad;
                value: |a, b| crate::ops::within(a / 6.0, b, -3.0, 3.0);
                domain: -2.0, 2.0; -5.0, 5.0;
                gradient_a: (g, b) => g.hardsigmoid_grad(b);
                gradient_b: (g) => g.zeros_like();
            }
            {
                /// Derivative of `hardswish` at `b`: `a · (2 b + 3) / 6` where `-3 < b < 3`, 0 below,
                /// `a` above.
                #[doc(hidden)]
                hardswish_grad, HardswishGrad;
                value: |a, b| match b {
                    b if b <= -3.0 => 0.0,
                    b if b >= 3.0 => a,
                    b => a * ((2.0 * b + 3.0) / 6.0),
                };
                domain: -2.0, 2.0; -5.0, 5.0;
                gradient_a: (g, b) => g.hardswish_grad(b);
                gradient_b: (g, a, b) => g.mul(a)?.mul_scalar(2.0)?.hardsigmoid_grad(b);
            }
        ], $($rest)* }
    };
}

pub(crate) use gradient;

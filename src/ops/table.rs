//! The rows. See the parent module for how to read one.

/// Hands the rows of all unary ops to the macro `$expand`.
macro_rules! unary_ops {
    ($expand:ident) => {
        $expand! {
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
                gradient: (g, x) => g.mul(x.sign()?);
            }
            {
                /// Sign: −1, ±0 or 1; NaN of NaN. The derivative is exactly 0.
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
                /// Square root, correctly rounded; NaN of negative numbers, −0 of −0.
                sqrt, Sqrt;
                value: |x| x.sqrt();
                integer: ();
                domain: 0.1, 4.0;
                gradient: (g, y) => g.mul_scalar(0.5)?.div(y);
            }
            {
                /// Reciprocal, `1/x`, correctly rounded.
                recip, Recip;
                value: |x| 1.0 / x;
                integer: ();
                domain: 0.3, 4.0;
                gradient: (g, y) => g.mul(y)?.mul(y)?.neg();
            }
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
            {
                /// Hyperbolic tangent.
                tanh, Tanh;
                value: |x| x.tanh();
                integer: ();
                domain: -3.0, 3.0;
                gradient: (g, y) => g.tanh_grad(y);
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
                /// Rectified linear unit, `max(x, 0)`; −0 of −0, NaN of NaN. The derivative at 0 is 0.
                relu, Relu;
                value: |x| if x < 0.0 { 0.0 } else { x };
                integer: (|x| x.max(0));
                domain: -4.0, 4.0;
                gradient: (g, y) => g.relu_grad(y);
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
            {
                /// Gaussian error linear unit, `x/2 · (1 + erf(x/√2))`; −0 of −∞.
                gelu, Gelu;
                value: |x| crate::ops::gelu(x);
                integer: ();
                domain: -4.0, 4.0;
                gradient: (g, x) => g.gelu_grad(x);
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
        }
    };
}

/// Hands the rows of all binary ops to the macro `$expand`.
macro_rules! binary_ops {
    ($expand:ident) => {
        $expand! {
            {
                /// Sum, `a + b`.
                add, Add;
                value: |a, b| a + b;
                integer: (|a, b| Some(a.wrapping_add(b)));
                domain: -4.0, 4.0; -4.0, 4.0;
                gradient_a: (g) => g.same();
                gradient_b: (g) => g.same();
            }
            {
                /// Difference, `a - b`.
                sub, Sub;
                value: |a, b| a - b;
                integer: (|a, b| Some(a.wrapping_sub(b)));
                domain: -4.0, 4.0; -4.0, 4.0;
                gradient_a: (g) => g.same();
                gradient_b: (g) => g.neg();
            }
            {
                /// Product, `a · b`.
                mul, Mul;
                value: |a, b| a * b;
                integer: (|a, b| Some(a.wrapping_mul(b)));
                domain: -4.0, 4.0; -4.0, 4.0;
                gradient_a: (g, b) => g.mul(b);
                gradient_b: (g, a) => g.mul(a);
            }
            {
                /// Quotient, `a / b`. Integer division cuts towards zero; by zero it is an error.
                div, Div;
                value: |a, b| a / b;
                integer: (|a, b| a.checked_div(b));
                domain: -4.0, 4.0; 0.5, 4.0;
                gradient_a: (g, b) => g.div(b);
                gradient_b: (g, b, y) => g.mul(y)?.div(b)?.neg();
            }
            {
                /// The larger of two; NaN if either is, −0 < +0. Ties split the gradient evenly.
                maximum, Maximum;
                value: |a, b| {
                    if a.is_nan() || b.is_nan() {
                        f64::NAN
                    } else if a > b || (a == b && a.is_sign_positive()) {
                        a
                    } else {
                        b
                    }
                };
                integer: (|a, b| Some(a.max(b)));
                domain: -4.0, 4.0; -4.0, 4.0;
                gradient_a: (g, a, b) => g.chosen(&a.gt(b)?, &a.eq(b)?);
                gradient_b: (g, a, b) => g.chosen(&b.gt(a)?, &a.eq(b)?);
            }
            {
                /// The smaller of two; NaN if either is, −0 < +0. Ties split the gradient evenly.
                minimum, Minimum;
                value: |a, b| {
                    if a.is_nan() || b.is_nan() {
                        f64::NAN
                    } else if a < b || (a == b && a.is_sign_negative()) {
                        a
                    } else {
                        b
                    }
                };
                integer: (|a, b| Some(a.min(b)));
                domain: -4.0, 4.0; -4.0, 4.0;
                gradient_a: (g, a, b) => g.chosen(&a.lt(b)?, &a.eq(b)?);
                gradient_b: (g, a, b) => g.chosen(&b.lt(a)?, &a.eq(b)?);
            }
            {
                /// Derivative of `tanh` from its output `b`: `a · (1 - b²)`.
                tanh_grad, TanhGrad;
                value: |a, b| a * (1.0 - b * b);
                integer: ();
                domain: -2.0, 2.0; -0.9, 0.9;
                gradient_a: (g, b) => g.tanh_grad(b);
                gradient_b: (g, a, b) => g.mul(a)?.mul(b)?.mul_scalar(-2.0);
            }
            {
                /// Derivative of `sigmoid` from its output `b`: `a · b · (1 - b)`.
                sigmoid_grad, SigmoidGrad;
                value: |a, b| a * b * (1.0 - b);
                integer: ();
                domain: -2.0, 2.0; 0.1, 0.9;
                gradient_a: (g, b) => g.sigmoid_grad(b);
                gradient_b: (g, a, b) => g.mul(a)?.mul(b.affine(-2.0, 1.0)?);
            }
            {
                /// Derivative of `relu` from its input or output `b`: `a` where
                /// `b > 0`, else 0.
                relu_grad, ReluGrad;
                value: |a, b| if b > 0.0 { a } else { 0.0 };
                integer: ();
                domain: -2.0, 2.0; -4.0, 4.0;
                gradient_a: (g, b) => g.relu_grad(b);
                gradient_b: (g) => g.zeros_like();
            }
            {
                /// Derivative of `silu` at `b`: `a · s · (1 + b · (1 - s))` with
                /// `s = sigmoid(b)`.
                silu_grad, SiluGrad;
                value: |a, b| a * crate::ops::gate_slope(b, b, 1.0);
                integer: ();
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
                gelu_tanh_grad, GeluTanhGrad;
                value: |a, b| {
                    let (u, slope) = crate::ops::gelu_tanh_argument(b);
                    a * crate::ops::gate_slope(b, 2.0 * u, 2.0 * slope)
                };
                integer: ();
                domain: -2.0, 2.0; -4.0, 4.0;
                gradient_a: (g, b) => g.gelu_tanh_grad(b);
                gradient_b: (g, a, b) => {
                    // With t = tanh(u): (1 - t²) (u' + b/2 (u'' - 2 t u'²))
                    let (k, c) = (crate::ops::GELU_TANH_FACTOR, crate::ops::GELU_TANH_CUBIC);
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
                gelu_grad, GeluGrad;
                value: |a, b| a * crate::ops::gelu_slope(b);
                integer: ();
                domain: -2.0, 2.0; -4.0, 4.0;
                gradient_a: (g, b) => g.gelu_grad(b);
                gradient_b: (g, a, b) => {
                    // φ(b) (2 - b²)
                    let square = b.square()?;
                    let density = square.mul_scalar(-0.5)?.exp()?;
                    let density = density.mul_scalar(crate::ops::NORMAL_DENSITY_AT_0)?;
                    g.mul(a)?.mul(density)?.mul(square.affine(-1.0, 2.0)?)
                };
            }
        }
    };
}

pub(crate) use {binary_ops, unary_ops};

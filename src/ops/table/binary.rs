//! Arithmetic of two tensors. `ops.rs` describes a row.

/// Appends these rows to `$before` and passes them to `$next`.
macro_rules! binary {
    ($expand:ident, [$($before:tt)*], $next:ident $($rest:ident)*) => {
        $crate::ops::table::$next! { $expand, [
            $($before)*
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
                /// Quotient, `a / b`. Integer division truncates; division by zero is an error.
                div, Div;
                value: |a, b| a / b;
                integer: (|a, b| a.checked_div(b));
                domain: -4.0, 4.0; 0.5, 4.0;
                gradient_a: (g, b) => g.div(b);
                gradient_b: (g, b, y) => g.mul(y)?.div(b)?.neg();
            }
            {
                /// Maximum of two elements; NaN if either is, and −0 < +0. Ties split the gradient
                /// evenly; a NaN gets all of it.
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
                gradient_a: (g, a, b) => g.chosen(&a.gt(b)?.logical_or(&a.isnan()?)?, &a.eq(b)?);
                gradient_b: (g, a, b) => g.chosen(&b.gt(a)?.logical_or(&b.isnan()?)?, &a.eq(b)?);
            }
            {
                /// Minimum of two elements; NaN if either is, and −0 < +0. Ties split the gradient
                /// evenly; a NaN gets all of it.
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
                gradient_a: (g, a, b) => g.chosen(&a.lt(b)?.logical_or(&a.isnan()?)?, &a.eq(b)?);
                gradient_b: (g, a, b) => g.chosen(&b.lt(a)?.logical_or(&b.isnan()?)?, &a.eq(b)?);
            }
            {
                /// Angle of the point (`b`, `a`), from −π to π, with the sign of `a`. The derivatives at
                /// the origin are NaN.
                atan2, Atan2;
                value: |a, b| a.atan2(b);
                domain: -4.0, 4.0; 0.5, 4.0;
                // b / (a² + b²), whose squares may overflow
                gradient_a: (g, a, b) => {
                    let [cosine, h, scale] = b.cosine(a)?;
                    cosine.div(&h)?.mul(&scale)?.mul(&g.widened()?)?.to_dtype(g.dtype())
                };
                gradient_b: (g, a, b) => {
                    let [cosine, h, scale] = a.cosine(b)?;
                    cosine.div(&h)?.mul(&scale)?.mul(&g.widened()?)?.neg()?.to_dtype(g.dtype())
                };
            }
            {
                /// Power, `a^b`, with the special cases of C's `pow`: `a^0` and `1^b` are 1 even
                /// for NaN; a negative number to a non-integer power is NaN.
                ///
                /// The derivative with respect to `a` is 0 where `b` is 0; that with respect to `b`
                /// is 0 where `a` is 0 and `b` is not negative. The former is `a^(b - 1)` times
                /// `b`, where `b - 1` is rounded (for 16-bit floats to `f32`).
                pow, Pow;
                value: |a, b| a.powf(b);
                domain: 0.3, 3.0; -2.0, 2.0;
                gradient_a: (g, a, b) => {
                    // For 16-bit floats `b - 1` may round to `b`.
                    let (a, b) = (a.widened()?, b.widened()?);
                    let gradient = g.widened()?.mul(a.pow(b.sub(1.0)?)?.mul(&b)?)?;
                    let zeros = b.zeros_like()?;
                    Tensor::where_cond(&b.eq(0.0)?, &zeros, &gradient)?.to_dtype(g.dtype())
                };
                gradient_b: (g, a, y) => {
                    // If a is 0, y is 0, 1 or infinite, and the slope is 0 or infinite, for y = −∞
                    // (of a = −0) +∞.
                    let at_zero = y.clamp(-1.0, 1.0)?.sub(y)?;
                    g.mul(Tensor::where_cond(&a.eq(0.0)?, &at_zero, &y.mul(a.log()?)?)?)
                };
            }
            {
                /// Length of the vector `(a, b)`, `√(a² + b²)` without intermediate overflow. The
                /// derivative at the origin is NaN.
                hypot, Hypot;
                value: |a, b| a.hypot(b);
                domain: 0.5, 4.0; 0.5, 4.0;
                gradient_a: (g, a, b) => {
                    let [cosine, ..] = a.cosine(b)?;
                    g.widened()?.mul(cosine)?.to_dtype(g.dtype())
                };
                gradient_b: (g, a, b) => {
                    let [cosine, ..] = b.cosine(a)?;
                    g.widened()?.mul(cosine)?.to_dtype(g.dtype())
                };
            }
            {
                /// Remainder of truncated division, as Rust's `%` and `fmod` (that of Python's `%` is
                /// `remainder`): exact, with the sign of `a`. For
                /// integers, division by zero and overflow of the quotient are errors.
                rem, Rem;
                value: |a, b| a % b;
                integer: (|a, b| a.checked_rem(b));
                domain: 2.2, 2.8; 1.0, 1.05;
                gradient_a: (g) => g.same();
                gradient_b: (g, a, b, y) => g.mul(y.sub(a)?.div(b)?);
            }
            {
                /// Remainder of `floor_divide`, as Python's `%`: `rem` where that has the
                /// sign of `b` or is 0, else `rem + b`, rounded once; so `a = b · floor_divide + remainder`. A
                /// zero has the sign of `a`, as in PyTorch. For an infinite `b` it is `a`, or `b` where the
                /// signs differ (`-1 % ∞` is ∞, and `floor_divide` -1). For integers, division by zero and
                /// overflow of the quotient are errors.
                remainder, Remainder;
                value: |a, b| crate::ops::remainder(a, b);
                integer: (|a, b| {
                    let moved = |r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r };
                    a.checked_rem(b).map(moved)
                });
                domain: -2.8, -2.6; 0.6, 0.63;
                gradient_a: (g) => g.same();
                gradient_b: (g, a, b) => g.mul(a.floor_divide(b)?)?.neg();
            }
            {
                /// Quotient rounded down, as Python's `//`: the largest integer that is not above the exact
                /// quotient. It goes with `remainder`, which has the sign of `b`; `rem`, which has the sign of
                /// `a`, goes with the truncated quotient. Of floats it is that integer while it is below 2^22 (`f64`: 2^51),
                /// and within 2 floats of it beyond. Floats divided by 0 give `a / b`. For integers, division by zero
                /// and overflow of the quotient are errors.
                floor_divide, FloorDivide;
                value: |a, b| crate::ops::floor_divide(a, b);
                integer: (|a, b| {
                    let below = |q| q - if a % b != 0 && (a < 0) != (b < 0) { 1 } else { 0 };
                    a.checked_div(b).map(below)
                });
                domain: 2.2, 2.8; 1.0, 1.05;
                gradient_a: (g) => g.zeros_like();
                gradient_b: (g) => g.zeros_like();
            }
            {
                /// `a · ln b`, and 0 where `a` is 0, even if `b` is 0, negative or infinite; NaN if either
                /// is. Where `a` is 0 and `b` is not positive, the derivatives are 0.
                xlogy, XLogY;
                value: |a, b| if a == 0.0 && !b.is_nan() { 0.0 } else { a * b.ln() };
                domain: -4.0, 4.0; 0.3, 3.0;
                gradient_a: (g, a, b) => g.mul(b.one_beside_zeros(a)?.log()?);
                gradient_b: (g, a, b) => g.mul(a.div(b.one_beside_zeros(a)?)?);
            }
            {
                /// Leaky rectified linear unit: `a` where `a ≥ 0`, else `a · b`. The derivative at
                /// 0 is `b`.
                leaky_relu, LeakyRelu;
                value: |a, b| if a >= 0.0 { a } else { a * b };
                domain: -4.0, 4.0; -0.6, 0.6;
                gradient_a: (g, a, b) => g.leaky_relu_grad(a, b);
                gradient_b: (g, a) => g.mul(a)?.masked_fill(&a.ge(0.0)?, 0.0);
            }
            {
                /// Exponential linear unit: `a` where `a ≥ 0`, else `b · (e^a - 1)`. The derivative
                /// at 0 is `b`.
                elu, Elu;
                value: |a, b| if a >= 0.0 { a } else { b * a.exp_m1() };
                domain: -4.0, 4.0; -1.5, 1.5;
                gradient_a: (g, a, b) => g.elu_grad(a, b);
                gradient_b: (g, a) => {
                    g.mul(a.minimum(0.0)?.expm1()?)?.masked_fill(&a.ge(0.0)?, 0.0)
                };
            }
        ], $($rest)* }
    };
}

pub(crate) use binary;

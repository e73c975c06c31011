//! Ops of three tensors. A row looks like those of binary ops (see the parent module), except that
//! it defines the op by a composite of simpler ops of `backend/composite.rs`, which also runs on
//! backends without a kernel. No op is defined on integers.

/// Passes the rows of all ternary ops to the macro `$expand`.
macro_rules! ternary_ops {
    ($expand:ident) => {
        $expand! {
            {
                /// Fused multiply-add, `a · b + c`, rounded once.
                mul_add, MulAdd;
                composite: (a, b, c) => a.mul(b)?.add(c);
                domain: -4.0, 4.0; -4.0, 4.0; -4.0, 4.0;
                gradient_a: (g, b) => g.mul(b);
                gradient_b: (g, a) => g.mul(a);
                gradient_c: (g) => g.same();
            }
            {
                /// `a` clamped to the bounds `b` and `c`; NaN for NaN. The derivative is 1 for the
                /// operand that is the result (the bound, where `a` equals a bound) and 0 for the
                /// others. If `b > c`, the result is `c`. A bound that is NaN is none.
                clamp, Clamp;
                composite: (a, b, c) => {
                    let low = a.lt(b)?.choose(b, a)?;
                    c.lt(&low)?.choose(c, &low)
                };
                domain: -4.0, 4.0; -3.0, 1.0; -1.0, 3.0;
                gradient_a: (g, a, b, c) => {
                    let bounded = a.le(b)?.logical_or(&a.ge(c)?)?.logical_or(&b.ge(c)?)?;
                    g.masked_fill(&bounded, 0.0)
                };
                gradient_b: (g, a, b, c) => {
                    g.masked_fill(&a.le(b)?.logical_not()?.logical_or(&b.ge(c)?)?, 0.0)
                };
                gradient_c: (g, a, b, c) => {
                    g.masked_fill(&a.ge(c)?.logical_or(&b.ge(c)?)?.logical_not()?, 0.0)
                };
            }
            {
                /// Linear interpolation from `a` to `b`, `a + c · (b - a)`. If `b - a` is finite,
                /// exactly `a` for `c = 0` and `b` for `c = 1` (−0 may become +0). For `c ≥ 1/2` it
                /// is computed as `b - (1 - c) · (b - a)`.
                lerp, Lerp;
                composite: (a, b, c) => {
                    let d = b.sub(a)?;
                    let near_a = a.add(&c.mul(&d)?)?;
                    let near_b = b.sub(&c.one_minus()?.mul(&d)?)?;
                    c.below(0.5)?.choose(&near_a, &near_b)
                };
                domain: -4.0, 4.0; -4.0, 4.0; -0.5, 1.5;
                gradient_a: (g, c) => g.mul(c.affine(-1.0, 1.0)?);
                gradient_b: (g, c) => g.mul(c);
                gradient_c: (g, a, b) => g.mul(b.sub(a)?);
            }
            {
                /// Huber loss of `a` and `b` with a finite threshold `c`: `d²/2` where `d = a - b` is
                /// between `-c` and `c`, else `c · (|d| - c/2)`.
                #[doc(hidden)]
                huber, Huber;
                composite: (a, b, c) => {
                    let d = a.sub(b)?;
                    let low = c.times(-1.0)?;
                    let raised = d.lt(&low)?.choose(&low, &d)?;
                    let near = c.lt(&raised)?.choose(c, &raised)?;
                    near.mul(&d.sub(&near.times(0.5)?)?)
                };
                domain: -4.0, 4.0; -4.0, 4.0; 0.5, 2.0;
                gradient_a: (g, a, b, c) => g.mul(a.sub(b)?.clamp(c.neg()?, c)?);
                gradient_b: (g, a, b, c) => g.mul(b.sub(a)?.clamp(c.neg()?, c)?);
                gradient_c: (g, a, b, c) => g.mul(a.sub(b)?.abs()?.sub(c)?.relu()?);
            }
            {
                /// Derivative of `leaky_relu` at `b` with slope `c`: `a` where `b > 0`, else `a · c`;
                /// NaN where `b` is.
                #[doc(hidden)]
                leaky_relu_grad, LeakyReluGrad;
                composite: (a, b, c) => {
                    let below = b.is_nan()?.choose(b, &a.mul(c)?)?;
                    b.is_positive()?.choose(a, &below)
                };
                domain: -2.0, 2.0; -4.0, 4.0; -0.6, 0.6;
                gradient_a: (g, b, c) => g.leaky_relu_grad(b, c);
                gradient_b: (g) => g.zeros_like();
                gradient_c: (g, a, b) => g.mul(a)?.masked_fill(&b.gt(0.0)?, 0.0);
            }
            {
                /// Derivative of `elu` at `b` with scale `c`: `a` where `b > 0`, else `a · c · e^b`.
                #[doc(hidden)]
                elu_grad, EluGrad;
                composite: (a, b, c) => {
                    b.is_positive()?.choose(a, &a.mul(&c.mul(&b.exp()?)?)?)
                };
                domain: -2.0, 2.0; -4.0, 4.0; -1.5, 1.5;
                gradient_a: (g, b, c) => g.elu_grad(b, c);
                gradient_b: (g, a, b, c) => {
                    g.mul(a)?.mul(c)?.mul(b.exp()?)?.masked_fill(&b.gt(0.0)?, 0.0)
                };
                gradient_c: (g, a, b) => g.mul(a)?.mul(b.exp()?)?.masked_fill(&b.gt(0.0)?, 0.0);
            }
        }
    };
}

macro_rules! ternary_enum {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        composite: ($($operand:ident),*) => $composite:expr;
        domain: $a_low:expr, $a_high:expr; $b_low:expr, $b_high:expr; $c_low:expr, $c_high:expr;
        $($rest:tt)*
    })*) => {
        /// An element-wise function of three tensors.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum TernaryOp {
            $($(#[$doc])* $Variant,)*
        }

        impl TernaryOp {
            /// All ops.
            pub const ALL: &[TernaryOp] = &[$(TernaryOp::$Variant),*];

            /// The name of the method, for error messages.
            pub const fn name(self) -> &'static str {
                match self {
                    $(TernaryOp::$Variant => stringify!($method),)*
                }
            }

            /// The intervals of the three test inputs.
            pub const fn domain(self) -> [(f64, f64); 3] {
                match self {
                    $(TernaryOp::$Variant => {
                        [($a_low, $a_high), ($b_low, $b_high), ($c_low, $c_high)]
                    })*
                }
            }
        }
    };
}
ternary_ops!(ternary_enum);

pub(crate) use ternary_ops;

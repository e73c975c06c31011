//! Arithmetic of two tensors. `ops.rs` says how to read a row.

/// The rows so far, with these, handed on.
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
                /// The angle of the point (`b`, `a`), in −π … π, with the sign of `a`.
                atan2, Atan2;
                value: |a, b| a.atan2(b);
                integer: ();
                domain: -4.0, 4.0; 0.5, 4.0;
                gradient_a: (g, a, b) => g.mul(b)?.div(a.square()?.add(b.square()?)?);
                gradient_b: (g, a, b) => g.mul(a)?.div(a.square()?.add(b.square()?)?)?.neg();
            }
        ], $($rest)* }
    };
}

pub(crate) use binary;

//! Expands the op tables to functions of slices: kernels for floats, and the table's formulas for integers. A
//! row without a kernel of the same name in `swath_kernels::math` fails to compile.

use swath_kernels::{Arg as Run, Function, Kernel, math};

use crate::dtype::Element;
use crate::ops::{
    BinaryOp, IntegerFn, TernaryOp, UnaryOp, binary_ops, integer_functions, ternary_ops, unary_ops,
};

macro_rules! unary_kernels {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        value: $value:expr;
        $(integer: ($integer:expr);)?
        domain: $low:expr, $high:expr;
        gradient: $parameters:tt => $gradient:expr;
    })*) => {
        /// Kernel of an op.
        pub(super) fn unary_kernel(op: UnaryOp) -> &'static Kernel<1> {
            match op {
                $(UnaryOp::$Variant => math::$Variant::KERNEL,)*
            }
        }

        /// Runs the integer formula of the op, if it has one.
        pub(super) fn unary_integer<T: Element>(op: UnaryOp, x: Run<T>, y: &mut [T]) {
            match op {
                $(UnaryOp::$Variant => {
                    $(map1(x, y, $integer);)?
                    let _ = (&x, &y);
                })*
            }
        }
    };
}
unary_ops!(unary_kernels);

macro_rules! binary_kernels {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        value: $value:expr;
        $(integer: ($integer:expr);)?
        domain: $a_low:expr, $a_high:expr; $b_low:expr, $b_high:expr;
        gradient_a: $a_parameters:tt => $a_gradient:expr;
        gradient_b: $b_parameters:tt => $b_gradient:expr;
    })*) => {
        /// Kernel of an op.
        pub(super) fn binary_kernel(op: BinaryOp) -> &'static Kernel<2> {
            match op {
                $(BinaryOp::$Variant => math::$Variant::KERNEL,)*
            }
        }

        /// Runs the integer formula of the op, if it has one; false if it failed for an element.
        pub(super) fn binary_integer<T: Element>(op: BinaryOp, a: Run<T>, b: Run<T>, y: &mut [T]) -> bool {
            match op {
                $(BinaryOp::$Variant => {
                    $(return map2(a, b, y, $integer);)?
                    #[allow(unreachable_code, reason = "reached if the row has no formula")]
                    false
                })*
            }
        }
    };
}
binary_ops!(binary_kernels);

macro_rules! ternary_kernels {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident;
        $($rest:tt)*
    })*) => {
        /// Kernel of an op.
        pub(super) fn ternary_kernel(op: TernaryOp) -> &'static Kernel<3> {
            match op {
                $(TernaryOp::$Variant => math::$Variant::KERNEL,)*
            }
        }
    };
}
ternary_ops!(ternary_kernels);

macro_rules! integer_loops {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident; ($a:ident, $b:ident) => $value:expr;
        $($rest:tt)*
    })*) => {
        /// Runs a function of two integers.
        pub(super) fn integer_function<T: Element>(f: IntegerFn, a: Run<T>, b: Run<T>, y: &mut [T]) {
            match f {
                $(IntegerFn::$Variant => _ = map2(a, b, y, |$a: i64, $b: i64| Some($value)),)*
            }
        }

        /// The same on the bits of `U64`.
        #[allow(unused_comparisons, reason = "formulas of signed integers, too")]
        pub(super) fn unsigned_function(f: IntegerFn, a: Run<i64>, b: Run<i64>, y: &mut [i64]) {
            match f {
                $(IntegerFn::$Variant => _ = map2(a, b, y, |a, b| {
                    let ($a, $b) = (a.cast_unsigned(), b.cast_unsigned());
                    let value: u64 = $value;
                    Some(value.cast_signed())
                }),)*
            }
        }
    };
}
integer_functions!(integer_loops);

fn map1<T: Element>(x: Run<T>, y: &mut [T], f: impl Fn(i64) -> i64) {
    let value = |x: T| T::from_i64(f(x.to_i64()));
    match x {
        Run::Slice(x) => y.iter_mut().zip(x).for_each(|(y, &x)| *y = value(x)),
        Run::Scalar(x) => y.fill(value(x)),
    }
}

fn map2<T: Element>(
    a: Run<T>,
    b: Run<T>,
    y: &mut [T],
    f: impl Fn(i64, i64) -> Option<i64>,
) -> bool {
    let mut failed = false;
    let mut put = |y: &mut T, a: T, b: T| {
        let value = f(a.to_i64(), b.to_i64());
        failed |= value.is_none();
        *y = T::from_i64(value.unwrap_or(0));
    };
    match (a, b) {
        (Run::Slice(a), Run::Slice(b)) => {
            y.iter_mut().zip(a).zip(b).for_each(|((y, &a), &b)| put(y, a, b));
        }
        (Run::Slice(a), Run::Scalar(b)) => y.iter_mut().zip(a).for_each(|(y, &a)| put(y, a, b)),
        (Run::Scalar(a), Run::Slice(b)) => y.iter_mut().zip(b).for_each(|(y, &b)| put(y, a, b)),
        (Run::Scalar(a), Run::Scalar(b)) => y.iter_mut().for_each(|y| put(y, a, b)),
    }
    !failed
}

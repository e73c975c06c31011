//! [`IntegerFn`]: functions of two integers that have no kernel, one row each.

/// Passes the rows to the macro `$expand`: documentation, method and variant; the definition, on `i64`, or on `u64` for
/// that dtype, modulo the dtype's range; whether it is defined for booleans; operands of an example and its result.
macro_rules! integer_functions {
    ($expand:ident) => {
        $expand! {
            {
                /// Bits that are set in both; of booleans the logical function.
                bitwise_and, And; (a, b) => a & b; booleans: true; "12, 10", 6, "4, 2"
            }
            {
                /// Bits that are set in one or both; of booleans the logical function.
                bitwise_or, Or; (a, b) => a | b; booleans: true; "12, 10", 6, "14, 14"
            }
            {
                /// Bits that are set in one of the two; of booleans the logical function.
                bitwise_xor, Xor; (a, b) => a ^ b; booleans: true; "12, 10", 6, "10, 12"
            }
            {
                /// `a · 2^b`, modulo the dtype's range. As in PyTorch it is 0 if `b` is negative, or the dtype's
                /// width or more.
                bitwise_left_shift, LeftShift; (a, b) => if (0..64).contains(&b) { a << b } else { 0 };
                booleans: false; "3, -1", 2, "12, -4"
            }
            {
                /// `a / 2^b`, rounded down. As in PyTorch it is 0, and -1 for a negative `a`, if `b` is negative,
                /// or the dtype's width or more.
                bitwise_right_shift, RightShift; (a, b) => match (0..64).contains(&b) {
                    true => a >> b,
                    false if a < 0 => !0,
                    false => 0,
                };
                booleans: false; "12, -5", 2, "3, -2"
            }
            {
                /// Greatest common divisor, not negative: `|a|` if `b` is 0. That of a least integer may wrap.
                gcd, Gcd; (a, b) => crate::ops::greatest_divisor(a.abs_diff(0), b.abs_diff(0)) as _;
                booleans: false; "12, -9", 6, "6, 3"
            }
            {
                /// Least common multiple, not negative; 0 if either is 0. It wraps as products do.
                lcm, Lcm; (a, b) => match crate::ops::greatest_divisor(a.abs_diff(0), b.abs_diff(0)) {
                    0 => 0,
                    divisor => (a.abs_diff(0) / divisor).wrapping_mul(b.abs_diff(0)) as _,
                };
                booleans: false; "12, -9", 6, "12, 18"
            }
        }
    };
}
pub(crate) use integer_functions;

macro_rules! integer_enum {
    ($({
        $(#[$doc:meta])*
        $method:ident, $Variant:ident; ($a:ident, $b:ident) => $value:expr;
        booleans: $booleans:literal; $left:literal, $right:literal, $result:literal
    })*) => {
        /// A function of two integers that has no kernel.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum IntegerFn {
            $($Variant,)*
        }

        impl IntegerFn {
            /// The name of the method, for error messages.
            pub const fn name(self) -> &'static str {
                match self {
                    $(IntegerFn::$Variant => stringify!($method),)*
                }
            }

            /// True if it is defined for booleans.
            pub const fn takes_booleans(self) -> bool {
                match self {
                    $(IntegerFn::$Variant => $booleans,)*
                }
            }
        }
    };
}
integer_functions!(integer_enum);

/// Greatest common divisor, by Euclid's algorithm.
pub(crate) fn greatest_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

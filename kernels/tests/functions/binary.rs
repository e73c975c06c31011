use super::{Function2, slices2};
use crate::reference;

/// Name, kernel, `rounded`, `wide`, `reference`, `intervals`, `hard`.
macro_rules! functions2 {
    ($($name:ident $Kernel:ident $rounded:expr, $wide:expr, $reference:expr, $intervals:expr, $hard:expr;)*) => {
        pub const ROWS: &[Function2] = &[$(Function2 {
            name: stringify!($name),
            f32: slices2!($Kernel f32),
            f64: slices2!($Kernel f64),
            rounded: $rounded,
            wide: $wide,
            reference: $reference,
            intervals: &$intervals,
            hard: &$hard,
        }),*];
    };
}

/// A formula in f64 for f32 arguments: with 53 bits the second rounding changes none of these operations.
macro_rules! narrowed {
    ($wide:expr) => {
        |a, b| {
            let wide: fn(f64, f64) -> f64 = $wide;
            wide(a.into(), b.into()) as f32
        }
    };
}

functions2! {
    add Add narrowed!(|a, b| a + b), |a, b| a + b, |a, b| b + a, [], [];
    sub Sub narrowed!(|a, b| a - b), |a, b| a - b, |a, b| a + -b, [], [];
    mul Mul narrowed!(|a, b| a * b), |a, b| a * b, |a, b| b * a, [], [];
    div Div narrowed!(|a, b| a / b), |a, b| a / b, |a, b| -(-a / b), [], [];
    maximum Maximum narrowed!(reference::maximum), reference::maximum, reference::maximum, [], [];
    minimum Minimum narrowed!(reference::minimum), reference::minimum, reference::minimum, [], [];
    atan2 Atan2 core_math::atan2f, core_math::atan2, core_math::atan2,
        [[(-4.0, 4.0), (-4.0, 4.0)], [(0.999, 1.001), (0.999, 1.001)], [(-1e-3, 1e-3), (-1e3, 1e3)]],
        [(1e-310, 1e300), (3e-45, 2.0), (1e-38, 1e7), (1e300, 1e-310)];
}

use super::Function2;
use crate::reference;

/// Name, kernel, `rounded`, `wide`, `reference`, `intervals`, `hard`.
macro_rules! functions2 {
    ($($name:ident $Kernel:ident $rounded:expr, $wide:expr, $reference:expr, $intervals:expr, $hard:expr;)*) => {
        pub const ROWS: &[Function2] = &[$(Function2 {
            name: stringify!($name),
            kernel: <swath_kernels::math::$Kernel as swath_kernels::Function<2>>::KERNEL,
            rounded: $rounded,
            wide: $wide,
            reference: $reference,
            intervals: &$intervals,
            hard: &$hard,
        }),*];
    };
}

/// A formula in f64 for f32 arguments: f64 has so many more bits that rounding twice equals rounding once for
/// these operations.
macro_rules! narrowed {
    ($wide:expr) => {
        |a, b| {
            let wide: fn(f64, f64) -> f64 = $wide;
            wide(a.into(), b.into()) as f32
        }
    };
}

/// The exact remainder of `f32`, moved by the divisor in one rounding.
fn narrowed_remainder(a: f32, b: f32) -> f32 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
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
    pow Pow core_math::powf, core_math::pow, core_math::pow, [
        [(0.0, 10.0), (-40.0, 40.0)],
        [(0.93, 1.07), (-1300.0, 1300.0)],
        [(0.999, 1.001), (-9e4, 9e4)],
        [(0.0, 1e300), (-1.1, 1.1)],
        [(-10.0, 0.0), (-3.0, 3.0)]
    ], [
        (1.0 - 2e-8, 3e9), (1.0 + 1.2e-7, 7.4e8), (1.0 + 2.3e-16, 3e18), (-1.0, 1e30), (-1.0, f64::INFINITY),
        (2.0, 128.0), (2.0, 127.99999), (2.0, -149.0), (2.0, -150.0), (2.0, -149.5), (2.0, 1024.0), (2.0, -1074.5),
        (-2.0, -1074.0), (-8.0, 1.0 / 3.0), (0.0, -3.0), (-0.0, -3.0), (-0.0, 3.0), (-0.0, -2.0), (-0.0, 0.5),
        (f64::NEG_INFINITY, 3.0), (f64::NEG_INFINITY, -3.0), (f64::NEG_INFINITY, 0.5), (f64::NEG_INFINITY, -0.5),
        (f64::NAN, 0.0), (1.0, f64::NAN), (-1.5, 16_777_215.0), (-1.0, 9_007_199_254_740_991.0), (-1.0, 4_194_304.5),
        (0.5, f64::INFINITY), (-0.5, f64::NEG_INFINITY), (1.5, f64::INFINITY), (1e-40, 0.9), (1e-310, -0.5)
    ];
    hypot Hypot core_math::hypotf, core_math::hypot, core_math::hypot, [[(-4.0, 4.0), (-4.0, 4.0)], [(0.0, 1e-310), (0.0, 1e-310)]], [
        (3e38, 1.7e38), (3.4e38, 1e31), (1.7e308, 5e307), (f64::INFINITY, f64::NAN), (f64::NAN, f64::NEG_INFINITY),
        (1e-45, 1e-45), (3e-45, 4e-45), (5e-324, 5e-324), (1.2e-38, 1e-45), (-0.0, -0.0), (3e20, 4e20)
    ];
    rem Rem |a, b| a % b, |a, b| a % b, |a, b| a % b, [[(-1e9, 1e9), (-3.0, 3.0)], [(-4.0, 4.0), (-4.0, 4.0)], [(0.0, 1e300), (0.0, 1e-300)]], [
        (6.0, 3.0), (-6.0, 3.0), (5.5, -2.0), (3.4e38, 1e-45), (-1.7e308, 5e-324), (1e-45, 3e38), (0.0, 0.0), (1.0, 0.0),
        (f64::INFINITY, 2.0), (2.0, f64::INFINITY), (-2.0, f64::NEG_INFINITY), (f64::INFINITY, f64::INFINITY),
        (12_582_911.0, 3.0), (8_388_607.5, 1.0), (4_194_303.5, 0.5), (-1e-45, 1e-40)
    ];
    remainder Remainder narrowed_remainder, reference::remainder, reference::remainder,
        [[(-1e9, 1e9), (-3.0, 3.0)], [(-4.0, 4.0), (-4.0, 4.0)], [(0.0, 1e300), (-1e-300, 0.0)]], [
        (6.0, 3.0), (-6.0, 3.0), (5.5, -2.0), (-5.5, 2.0), (-7.0, 3.0), (7.0, -3.0), (3.4e38, -1e-45), (-1.7e308, 5e-324),
        (-1e-45, 3e38), (-1e-20, 1.0), (0.0, 0.0), (-0.0, 2.0), (0.0, -2.0), (1.0, 0.0), (f64::INFINITY, 2.0),
        (2.0, f64::INFINITY), (-2.0, f64::INFINITY), (2.0, f64::NEG_INFINITY), (-0.0, f64::INFINITY), (12_582_911.0, -3.0)
    ];
    floor_divide FloorDivide narrowed!(reference::floor_divide), reference::floor_divide, reference::floor_divide,
        [[(-1e9, 1e9), (-3.0, 3.0)], [(-40.0, 40.0), (-4.0, 4.0)], [(0.0, 1e300), (0.0, 1e-300)]], [
        (1.0, 0.1), (-1.0, 0.1), (6.0, 3.0), (-6.0, 3.0), (7.0, -2.0), (-7.0, -2.0), (3.4e38, 1e-45), (1e-45, 3e38), (-1e-45, 3e38),
        (0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (0.0, -1.0), (-0.0, 2.0), (f64::INFINITY, 2.0), (2.0, f64::INFINITY),
        (-2.0, f64::INFINITY), (12_582_911.0, 3.0), (8_388_607.5, 1.0), (-4_194_303.5, 0.5)
    ];
    xlogy XLogY |a, b| reference::xlogy(a.into(), b.into()) as f32, reference::xlogy, reference::xlogy,
        [[(-4.0, 4.0), (0.0, 10.0)], [(-1e-3, 1e3), (0.999, 1.001)], [(0.0, 1e-300), (0.0, 1e300)]], [
        (0.0, 0.0), (-0.0, 0.0), (0.0, -1.0), (0.0, f64::INFINITY), (0.0, f64::NAN), (f64::NAN, 1.0), (1.0, 0.0), (-1.0, 0.0),
        (1.0, -1.0), (f64::INFINITY, 1.0), (f64::INFINITY, 2.0), (1e-45, 2.0), (3e38, 3e38), (-3.0, 1.0)
    ];
    leaky_relu LeakyRelu narrowed!(|a, b| if a < 0.0 { a * b } else { a }),
        |a, b| if a < 0.0 { a * b } else { a }, |a, b| if a < 0.0 { a * b } else { a }, [], [];
    elu Elu |a, b| reference::elu_wide(a.into(), b.into()) as f32, reference::elu_wide, reference::elu,
        [[(-4.0, 1.0), (0.5, 2.0)], [(-40.0, 0.0), (-2.0, 2.0)], [(-1e-3, 0.0), (0.5, 2.0)]],
        [(-0.0, 2.0), (0.0, -2.0), (f64::NEG_INFINITY, 1.5), (-1.0, f64::INFINITY), (-1e-45, f64::NEG_INFINITY),
        (f64::NAN, 1.0), (-1.0, f64::NAN), (1.0, f64::NAN), (-1e-45, 0.5), (-3e-45, 0.3), (-1.0, 3e-45), (-2.0, 3e38)];
}

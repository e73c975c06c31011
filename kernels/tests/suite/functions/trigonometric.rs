use super::functions1;

functions1! {
    sin Sin core_math::sinf, core_math::sin, core_math::sin,
        [(-4.0, 4.0), (-1e5, 1e5), (-2e9, 2e9)];
    cos Cos core_math::cosf, core_math::cos, core_math::cos,
        [(-4.0, 4.0), (-1e5, 1e5), (-2e9, 2e9)];
    tan Tan core_math::tanf, core_math::tan, core_math::tan,
        [(-4.0, 4.0), (-1e5, 1e5), (-2e9, 2e9)];
    asin Asin core_math::asinf, core_math::asin, core_math::asin, [(-1.0, 1.0), (-0.1, 0.1)];
    acos Acos core_math::acosf, core_math::acos, core_math::acos, [(-1.0, 1.0), (0.99, 1.0)];
    atan Atan core_math::atanf, core_math::atan, core_math::atan, [(-1.0, 1.0), (-10.0, 10.0)];
    sinh Sinh core_math::sinhf, core_math::sinh, core_math::sinh,
        [(-1.0, 1.0), (-10.0, 10.0), (-711.0, 711.0)];
    cosh Cosh core_math::coshf, core_math::cosh, core_math::cosh,
        [(-1.0, 1.0), (-10.0, 10.0), (-711.0, 711.0)];
    tanh Tanh core_math::tanhf, core_math::tanh, core_math::tanh,
        [(-20.0, 20.0), (-1.0, 1.0), (-0.1, 0.1)];
    asinh Asinh core_math::asinhf, core_math::asinh, core_math::asinh,
        [(-1.0, 1.0), (-10.0, 10.0), (-1e10, 1e10)];
    acosh Acosh core_math::acoshf, core_math::acosh, core_math::acosh,
        [(1.0, 1.001), (1.0, 2.0), (1.0, 10.0), (1.0, 1e10)];
    atanh Atanh core_math::atanhf, core_math::atanh, core_math::atanh,
        [(-1.0, 1.0), (-0.1, 0.1), (0.99, 1.0)];
}

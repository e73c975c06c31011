use super::functions1;

functions1! {
    sin Sin core_math::sinf, core_math::sin, core_math::sin,
        [(-4.0, 4.0), (-1e5, 1e5), (-2e9, 2e9)];
    cos Cos core_math::cosf, core_math::cos, core_math::cos,
        [(-4.0, 4.0), (-1e5, 1e5), (-2e9, 2e9)];
    tanh Tanh core_math::tanhf, core_math::tanh, core_math::tanh,
        [(-20.0, 20.0), (-1.0, 1.0), (-0.1, 0.1)];
}

use super::functions1;

functions1! {
    erf Erf core_math::erff, core_math::erf, core_math::erf, [(-6.0, 6.0), (-1.0, 1.0)];
    erfc Erfc core_math::erfcf, core_math::erfc, core_math::erfc, [(-6.0, 28.0), (-1.0, 1.0), (25.0, 28.0)];
    cbrt Cbrt core_math::cbrtf, core_math::cbrt, core_math::cbrt, [(-8.0, 8.0)];
    rsqrt Rsqrt core_math::rsqrtf, core_math::rsqrt, core_math::rsqrt, [(0.25, 4.0)];
}

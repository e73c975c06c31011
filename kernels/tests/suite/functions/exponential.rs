use super::functions1;

functions1! {
    exp Exp core_math::expf, core_math::exp, core_math::exp, [(-746.0, 710.0), (-1.0, 1.0)];
    exp2 Exp2 core_math::exp2f, core_math::exp2, core_math::exp2,
        [(-1076.0, 1025.0), (-1.0, 1.0)];
    exp10 Exp10 core_math::exp10f, core_math::exp10, core_math::exp10,
        [(-325.0, 309.0), (-1.0, 1.0)];
    expm1 Expm1 core_math::expm1f, core_math::expm1, core_math::expm1,
        [(-40.0, 710.0), (-1.0, 1.0), (-0.1, 0.1), (30.0, 40.0)];
    log Log core_math::logf, core_math::log, core_math::log,
        [(0.5, 2.0), (0.99, 1.01), (0.0, 1e-307)];
    log2 Log2 core_math::log2f, core_math::log2, core_math::log2,
        [(0.5, 2.0), (0.99, 1.01), (0.0, 1e-307)];
    log10 Log10 core_math::log10f, core_math::log10, core_math::log10,
        [(0.5, 2.0), (0.99, 1.01), (0.0, 1e-307)];
    log1p Log1p core_math::log1pf, core_math::log1p, core_math::log1p,
        [(-1.0, 3.0), (-0.1, 0.1), (0.0, 1e6)];
    pow3 Pow3 |x| core_math::powf(x, 3.0), |x| core_math::pow(x, 3.0), |x| core_math::pow(x, 3.0),
        [(-2.0, 2.0), (1e102, 6e102), (1e-108, 1e-102)];
    pow4 Pow4 |x| core_math::powf(x, 4.0), |x| core_math::pow(x, 4.0), |x| core_math::pow(x, 4.0),
        [(-2.0, 2.0), (1e76, 2e77), (1e-81, 1e-76)];
    pow_minus2 PowMinus2 |x| core_math::powf(x, -2.0), |x| core_math::pow(x, -2.0),
        |x| core_math::pow(x, -2.0), [(-2.0, 2.0), (1e153, 1e162), (1e-155, 1e-153)];
    pow_half PowHalf |x| core_math::powf(x, 0.5), |x| core_math::pow(x, 0.5),
        |x| core_math::pow(x, 0.5), [(0.0, 2.0)];
    pow_minus_half PowMinusHalf |x| core_math::powf(x, -0.5), |x| core_math::pow(x, -0.5),
        |x| core_math::pow(x, -0.5), [(0.0, 2.0)];
}

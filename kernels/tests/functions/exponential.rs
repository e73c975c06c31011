use super::functions1;

functions1! {
    exp Exp core_math::expf, core_math::exp, core_math::exp, [(-746.0, 710.0), (-1.0, 1.0)];
    log Log core_math::logf, core_math::log, core_math::log,
        [(0.5, 2.0), (0.99, 1.01), (0.0, 1e-307)];
}

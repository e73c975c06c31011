//! Arithmetic, functions, comparisons. Written by `tests/vectors/check_page.py`.

use crate::page::{found, row};
use swath::cpu::prelude::*;

pub fn rows() -> Result<()> {
    let x = tensor![1.0, -4.0, 2.5, 0.25];
    let y = tensor![2.0, 3.0, -0.5, 0.25];
    let z = tensor![0.5, 1.0, 2.0, 3.0];
    let (i, j) = (tensor![i64; 12, -7, 5, 0], tensor![i64; 3, 2, 4, 1]);
    let (m, n) = (x.gt(1.0)?, x.eq(&y)?);
    row(
        "`x + y` `2 * x` `1 - x` `&x + &y` `&x * 2.0` `1.0 - &x` `x.add(&y)?` `x.mul(2)?`",
        &[
            found(&(&x + &y)),
            found(&(&x * 2.0)),
            found(&(1.0 - &x)),
            found(&(x.add(&y)?)),
            found(&(x.mul(2)?)),
        ],
        &["[4]: 3 -1 2 0.5", "[4]: 2 -8 5 0.5", "[4]: 0 5 -1.5 0.75"],
    );
    row(
        "`x * y` `np.multiply(x, y)` `x.mul(&y)?`",
        &[found(&(x.mul(&y)?))],
        &["[4]: 2 -12 -1.25 0.0625", "[4]: 2 -12 -1.25 0.0625"],
    );
    row(
        "`x ** 2` `x ** 1.5` `x ** y` `x.square()?` `x.powf(1.5)?` `x.pow(&y)?`",
        &[found(&(x.square()?)), found(&(x.powf(1.5)?)), found(&(x.pow(&y)?))],
        &[
            "[4]: 1 16 6.25 0.0625",
            "[4]: 1 nan 3.9528470039367676 0.125",
            "[4]: 1 -64 0.6324555277824402 0.7071067690849304",
        ],
    );
    row(
        "`x % y` `torch.remainder(x, y)` `x.remainder(&y)?`",
        &[found(&(x.remainder(&y)?))],
        &["[4]: 1 2 -0 0", "[4]: 1 2 0 0"],
    );
    row(
        "`np.fmod(x, y)` `torch.fmod(x, y)` `x.rem(&y)?`",
        &[found(&(x.rem(&y)?))],
        &["[4]: 1 -1 0 0", "[4]: 1 -1 0 0"],
    );
    row(
        "`x // y` `torch.floor_divide(x, y)` `x.floor_divide(&y)?`",
        &[found(&(x.floor_divide(&y)?))],
        &["[4]: 0 -2 -5 1", "[4]: 0 -2 -5 1"],
    );
    row(
        "`x += y` `x.add_(y)` `z += &y;` `z.add_assign(&y)?;`",
        &[
            found(
                &({
                    let mut z = x.clone();
                    z += &y;
                    z
                }),
            ),
            found(
                &({
                    let mut z = x.clone();
                    z.add_assign(&y)?;
                    z
                }),
            ),
        ],
        &["[4]: 3 -1 2 0.5", "[4]: 3 -1 2 0.5"],
    );
    row(
        "`np.exp(x)` `torch.exp(x)` `x.exp()?` `log` `sqrt` `sin` `tanh` `erf`",
        &[found(&(x.exp()?))],
        &[
            "[4]: 2.7182819843292236 0.018315639346837997 12.182493209838867 1.2840255498886108",
            "[4]: 2.7182817459106445 0.018315639346837997 12.182494163513184 1.2840254306793213",
        ],
    );
    row(
        "`np.logaddexp(x, y)` `scipy.special.xlogy(x, y)` `x.logaddexp(&y)?` `x.xlogy(&y)?`",
        &[found(&(x.logaddexp(&y)?)), found(&(x.xlogy(&y)?))],
        &[
            "[4]: 2.3132617473602295 3.0009114742279053 2.5485873222351074 0.9431471824645996",
            "[4]: 0.6931471824645996 -4.394449234008789 nan -0.3465735912322998",
        ],
    );
    row(
        "`np.maximum(x, y)` `torch.maximum(x, y)` `x.maximum(&y)?`",
        &[found(&(x.maximum(&y)?))],
        &["[4]: 2 3 2.5 0.25", "[4]: 2 3 2.5 0.25"],
    );
    row(
        "`np.fmax(x, y)` `torch.fmin(x, y)` `x.fmax(&y)?` `x.fmin(&y)?`",
        &[found(&(x.fmax(&y)?)), found(&(x.fmin(&y)?))],
        &["[4]: 2 3 2.5 0.25", "[4]: 1 -4 -0.5 0.25"],
    );
    row(
        "`np.copysign(x, y)` `torch.signbit(x)` `x.copysign(&y)?` `x.signbit()?`",
        &[found(&(x.copysign(&y)?)), found(&(x.signbit()?))],
        &["[4]: 1 4 -2.5 0.25", "[4]: 0 1 0 0"],
    );
    row(
        "`np.heaviside(x, 0.5)` `x.heaviside(0.5)?`",
        &[found(&(x.heaviside(0.5)?))],
        &["[4]: 1 0 1 1"],
    );
    row(
        "`np.ldexp(x, i)` `torch.frexp(x)` `x.ldexp(&i)?` `x.frexp()?`",
        &[found(&(x.ldexp(&i)?)), found(&(x.frexp()?))],
        &["[4]: 4096 -0.03125 80 0.25", "[4]: 0.5 -0.5 0.625 0.5; [4]: 1 3 2 -1"],
    );
    row(
        "`np.logaddexp2(x, y)` `np.float_power(x, 3)` `x.logaddexp2(&y)?` `x.float_power(3)?`",
        &[found(&(x.logaddexp2(&y)?)), found(&(x.float_power(3)?))],
        &[
            "[4]: 2.5849623680114746 3.0112273693084717 2.6699249744415283 1.25",
            "[4]: 1 -64 15.625 0.015625",
        ],
    );
    row(
        "`torch.lgamma(y)` `scipy.special.digamma(y)` `torch.polygamma(1, y)` `y.lgamma()?` `y.digamma()?` `y.polygamma(1)?`",
        &[found(&(y.lgamma()?)), found(&(y.digamma()?)), found(&(y.polygamma(1)?))],
        &[
            "[4]: 0 0.6931471824645996 1.2655121088027954 1.288022518157959",
            "[4]: 0.42278432846069336 0.9227843284606934 0.036489974707365036 -4.227453708648682",
            "[4]: 0.6449340581893921 0.3949340581893921 8.934802055358887 17.19733238220215",
        ],
    );
    row(
        "`torch.special.i0(x)` `torch.special.i0e(x)` `torch.special.i1(x)` `x.i0()?` `x.i0e()?` `x.i1()?`",
        &[found(&(x.i0()?)), found(&(x.i0e()?)), found(&(x.i1()?))],
        &[
            "[4]: 1.2660659551620483 11.301920890808105 3.289839506149292 1.015686273574829",
            "[4]: 0.46575963497161865 0.20700190961360931 0.2700464725494385 0.7910172343254089",
            "[4]: 0.5651590824127197 -9.759467124938965 2.5167160034179688 0.12597911059856415",
        ],
    );
    row(
        "`torch.erfinv(x)` `np.sinc(x)` `torch.logit(x, 1e-6)` `x.erfinv()?` `x.sinc()?` `x.logit(1e-6)?`",
        &[found(&(x.erfinv()?)), found(&(x.sinc()?)), found(&(x.logit(1e-6)?))],
        &[
            "[4]: inf nan nan 0.22531205415725708",
            "[4]: -0.000000027827534054836178 0.000000027827534054836178 0.1273239552974701 0.9003162980079651",
            "[4]: 13.80231761932373 -13.815509796142578 13.80231761932373 -1.0986123085021973",
        ],
    );
    row(
        "`F.hardshrink(x, 0.5)` `F.softshrink(x, 0.5)` `x.hardshrink(0.5)?` `x.softshrink(0.5)?`",
        &[found(&(x.hardshrink(0.5)?)), found(&(x.softshrink(0.5)?))],
        &["[4]: 1 -4 2.5 0", "[4]: 0.5 -3.5 2 0"],
    );
    row(
        "`np.gcd(i, j)` `torch.lcm(i, j)` `i.gcd(&j)?` `i.lcm(&j)?`",
        &[found(&(i.gcd(&j)?)), found(&(i.lcm(&j)?))],
        &["[4]: 3 1 1 1", "[4]: 12 14 20 0"],
    );
    row(
        "`i & j` `i | j` `i ^ j` `~i` `&i & &j` `&i | &j` `&i ^ &j` `!&i` `i.bitwise_and(&j)?`",
        &[
            found(&(&i & &j)),
            found(&(&i | &j)),
            found(&(&i ^ &j)),
            found(&(!&i)),
            found(&(i.bitwise_and(&j)?)),
        ],
        &["[4]: 0 0 4 0", "[4]: 15 -5 5 1", "[4]: 15 -5 1 1", "[4]: -13 6 -6 -1"],
    );
    row(
        "`i << j` `i >> j` `i.bitwise_left_shift(&j)?` `i.bitwise_right_shift(&j)?`",
        &[found(&(i.bitwise_left_shift(&j)?)), found(&(i.bitwise_right_shift(&j)?))],
        &["[4]: 96 -28 80 0", "[4]: 1 -2 0 0"],
    );
    row(
        "`x.view(np.int32)` `x.view(torch.int32)` `x.view_as(DType::I32)?`",
        &[found(&(x.view_as(DType::I32)?))],
        &[
            "[4]: 1065353216 -1065353216 1075838976 1048576000",
            "[4]: 1065353216 -1065353216 1075838976 1048576000",
        ],
    );
    row(
        "`np.clip(x, 0, 1)` `x.clamp(0, 1)` `x.clamp(0.0, 1.0)?`",
        &[found(&(x.clamp(0.0, 1.0)?))],
        &["[4]: 1 0 1 0.25", "[4]: 1 0 1 0.25"],
    );
    row(
        "`x.clamp(min=2)` `x.clamp(max=2)` `x.clamp_min(2.0)?` `x.clamp_max(2.0)?`",
        &[found(&(x.clamp_min(2.0)?)), found(&(x.clamp_max(2.0)?))],
        &["[4]: 2 2 2.5 2", "[4]: 1 -4 2 0.25"],
    );
    row(
        "`x * y + z` `torch.addcmul` `x.mul_add(&y, &z)?`",
        &[found(&(x.mul_add(&y, &z)?))],
        &["[4]: 2.5 -11 0.75 3.0625"],
    );
    row(
        "`torch.add(x, y, alpha=2)` `torch.sub(x, y, alpha=2)` `x.add_scaled(&y, 2)?` `x.add_scaled(&y, -2)?`",
        &[found(&(x.add_scaled(&y, 2)?)), found(&(x.add_scaled(&y, -2)?))],
        &["[4]: 5 2 1.5 0.75", "[4]: -3 -10 3.5 -0.25"],
    );
    row(
        "`torch.lerp(x, y, 0.5)` `x.lerp(&y, 0.5)?`",
        &[found(&(x.lerp(&y, 0.5)?))],
        &["[4]: 1.5 -0.5 1 0.25"],
    );
    row(
        "`x > 1` `x == y` `x.gt(1.0)?` `x.eq(&y)?`",
        &[found(&(x.gt(1.0)?)), found(&(x.eq(&y)?))],
        &["[4]: 0 0 1 0", "[4]: 0 0 0 1"],
    );
    row(
        "`np.where(m, x, y)` `torch.where(m, x, y)` `m.select(&x, &y)?`",
        &[found(&(m.select(&x, &y)?))],
        &["[4]: 2 3 2.5 0.25", "[4]: 2 3 2.5 0.25"],
    );
    row(
        "`x[m] = 0` `m` `x.masked_fill(m, 0)` `x.masked_fill(&m, 0.0)?`",
        &[found(&(x.masked_fill(&m, 0.0)?))],
        &["[4]: 1 -4 0 0.25", "[4]: 1 -4 0 0.25"],
    );
    row(
        "`m & n` `~m` `m.logical_and(&n)?` `m.logical_not()?`",
        &[found(&(m.logical_and(&n)?)), found(&(m.logical_not()?))],
        &["[4]: 0 0 0 0", "[4]: 1 1 0 1"],
    );
    row(
        "`m ^ n` `np.logical_and(x, 2)` `m.logical_xor(&n)?` `x.logical_and(2)?`",
        &[found(&(m.logical_xor(&n)?)), found(&(x.logical_and(2)?))],
        &["[4]: 0 0 1 1", "[4]: 1 1 1 1"],
    );
    row(
        "`np.isnan(x)` `x.isnan()` `x.isnan()?`",
        &[found(&(x.isnan()?))],
        &["[4]: 0 0 0 0", "[4]: 0 0 0 0"],
    );
    row(
        "`np.nan_to_num(x)` `x.nan_to_num(0.0, None, None)?`",
        &[found(&(x.nan_to_num(0.0, None, None)?))],
        &["[4]: 1 -4 2.5 0.25"],
    );
    row(
        "`np.isclose(x, y)` `torch.allclose(x, y)` `x.isclose(&y, 1e-5, 1e-8, false)?` `x.allclose(&y, 1e-5, 1e-8)?`",
        &[found(&(x.isclose(&y, 1e-5, 1e-8, false)?)), found(&(x.allclose(&y, 1e-5, 1e-8)?))],
        &["[4]: 0 0 0 1", "[]: 0"],
    );
    Ok(())
}

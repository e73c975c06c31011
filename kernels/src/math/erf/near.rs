//! All constants of `erf` of `f32`, from `tools/coefficients.py erf`.

/// Past it, erf rounds to 1.
pub(super) const LIMIT: f32 = 3.96;
/// Where the second form begins: erfc is a quarter there, but for the float's error.
pub(super) const POINT: f32 = 0.8134198;
/// u there, which is that error's.
pub(super) const BEGIN: f32 = -6.6886635e-8;
/// The middle of a².
pub(super) const MIDDLE: f32 = 0.21875;
/// P, lowest power first.
#[rustfmt::skip]
pub(super) const SERIES: &[f32] = &[
    0.051231313, -0.33040726, 0.096621394, -0.022680735, 0.0043705488, -0.0007033155, 8.184593e-5,
];
/// M, lowest power first.
#[rustfmt::skip]
pub(super) const RATE: &[f32] = &[
    2.3289669, 0.81761366, 0.04978171, -0.012048712, 0.0023249297, -0.00030609008, 1.9697858e-5,
];
/// (e^r − 1) / (4 r) for |r| <= ln 2 / 2, lowest power first.
#[rustfmt::skip]
pub(super) const BELL: &[f32] = &[
    0.25, 0.12499997, 0.041666295, 0.010417412, 0.0020922362, 0.0003436326,
];
/// The largest n: beyond it r is past its range, but counts no more.
pub(super) const MOST: f32 = 22.0;
/// The bits of 1.
pub(super) const ONE_BITS: i32 = 0x3f80_0000;

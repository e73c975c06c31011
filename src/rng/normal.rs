//! The inverse of the normal cumulative distribution function: Wichura, "Algorithm AS 241: the
//! percentage points of the normal distribution", Applied Statistics 37 (1988), routine PPND16,
//! relative error about 1e-16. Three rational functions: of q² within 0.425 of the median, and of
//! √(−log p) in the tails. The coefficients are those of the paper, lowest power first.

#![allow(clippy::excessive_precision, reason = "coefficients as published")]

use swath_kernels::log as natural_log;

use super::{CHUNK, Tail};

type Rational = ([f64; 8], [f64; 8]);

const MIDDLE: Rational = (
    [
        3.387_132_872_796_366_608,
        133.141_667_891_784_377_45,
        1_971.590_950_306_551_442_7,
        13_731.693_765_509_461_125,
        45_921.953_931_549_871_457,
        67_265.770_927_008_700_853,
        33_430.575_583_588_128_105,
        2_509.080_928_730_122_672_7,
    ],
    [
        1.0,
        42.313_330_701_600_911_252,
        687.187_007_492_057_908_3,
        5_394.196_021_424_751_107_7,
        21_213.794_301_586_595_867,
        39_307.895_800_092_710_61,
        28_729.085_735_721_942_674,
        5_226.495_278_852_854_561,
    ],
);

/// For √(−log p) up to 5.
const TAIL: Rational = (
    [
        1.423_437_110_749_683_577_34,
        4.630_337_846_156_545_295_9,
        5.769_497_221_460_691_405_5,
        3.647_848_324_763_204_605_04,
        1.270_458_252_452_368_382_58,
        0.241_780_725_177_450_611_77,
        2.272_384_498_926_918_458_33e-2,
        7.745_450_142_783_414_076_4e-4,
    ],
    [
        1.0,
        2.053_191_626_637_758_821_87,
        1.676_384_830_183_803_849_4,
        0.689_767_334_985_100_004_55,
        0.148_103_976_427_480_074_59,
        1.519_866_656_361_645_719_66e-2,
        5.475_938_084_995_344_946e-4,
        1.050_750_071_644_416_843_24e-9,
    ],
);

/// For √(−log p) above 5.
const FAR_TAIL: Rational = (
    [
        6.657_904_643_501_103_777_2,
        5.463_784_911_164_114_369_9,
        1.784_826_539_917_291_335_8,
        0.296_560_571_828_504_891_23,
        2.653_218_952_657_612_309_3e-2,
        1.242_660_947_388_078_438_6e-3,
        2.711_555_568_743_487_578_15e-5,
        2.010_334_399_292_288_132_65e-7,
    ],
    [
        1.0,
        0.599_832_206_555_887_937_69,
        0.136_929_880_922_735_805_31,
        1.487_536_129_085_061_485_25e-2,
        7.868_691_311_456_132_591e-4,
        1.846_318_317_510_054_681_8e-5,
        1.421_511_758_316_445_888_7e-7,
        2.044_263_103_389_939_785_64e-15,
    ],
);

fn quotient((numerator, denominator): &Rational, x: f64) -> f64 {
    let horner = |coefficients: &[f64; 8]| coefficients.iter().rfold(0.0, |sum, c| sum * x + c);
    horner(numerator) / horner(denominator)
}

/// The point with tail probability `tail.p` beyond it, on its side of 0.
pub(super) fn inverse_cdf(tail: Tail) -> f64 {
    let mut log = [0.0];
    let needs_log = in_tail(tail);
    if needs_log {
        natural_log(&[tail.p], &mut log);
    }
    point(tail, log[0])
}

/// Passes `len` points to `emit`, in order. Logarithms are computed for many points at a time.
pub(super) fn for_each(len: usize, mut next: impl FnMut() -> Tail, mut emit: impl FnMut(f64)) {
    let mut drawn = [Tail { p: 0.5, negative: false }; CHUNK];
    let (mut p, mut log) = ([0.0; CHUNK], [0.0; CHUNK]);
    for start in (0..len).step_by(CHUNK) {
        let count = CHUNK.min(len - start);
        let mut tails = 0;
        for slot in &mut drawn[..count] {
            *slot = next();
            p[tails] = slot.p;
            tails += usize::from(in_tail(*slot));
        }
        natural_log(&p[..tails], &mut log[..tails]);
        let mut logs = log[..tails].iter();
        for &tail in &drawn[..count] {
            let log = if in_tail(tail) { logs.next().copied().unwrap_or(0.0) } else { 0.0 };
            emit(point(tail, log));
        }
    }
}

fn in_tail(tail: Tail) -> bool {
    0.5 - tail.p > 0.425
}

/// The point of a tail probability. `log` is the logarithm of `tail.p`, and is not read unless
/// [`in_tail`].
fn point(tail: Tail, log: f64) -> f64 {
    let magnitude = if in_tail(tail) {
        let r = (-log).sqrt();
        if r <= 5.0 { quotient(&TAIL, r - 1.6) } else { quotient(&FAR_TAIL, r - 5.0) }
    } else {
        let q = 0.5 - tail.p;
        q * quotient(&MIDDLE, 0.180625 - q * q)
    };
    if tail.negative { -magnitude } else { magnitude }
}

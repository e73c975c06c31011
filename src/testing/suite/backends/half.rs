//! Unary ops and conversions on all 65,536 values of either 16-bit float type.

use crate::testing::suite::Tested;
use crate::testing::suite::agree::{Disagreements, Reference, Tolerance, dtypes};
use half::{bf16, f16};
use swath::ops::UnaryOp;
use swath::{Backend, HostData};

pub fn every_value<B: Tested>() -> impl Iterator<Item = HostData> {
    let all = || 0..=u16::MAX;
    let each = [
        HostData::F16(all().map(f16::from_bits).collect()),
        HostData::BF16(all().map(bf16::from_bits).collect()),
    ];
    each.into_iter().filter(|data| B::DTYPES.contains(&data.dtype()))
}

/// Number of results that are not the nearest 16-bit float: their `f32` lies next to the midpoint of two,
/// on the other side of it than the exact result.
fn not_nearest(got: &HostData, want: &HostData) -> usize {
    let differs = |i: &usize| match (got.get(*i), want.get(*i)) {
        (Some(got), Some(want)) => {
            let (got, want) = (got.to_f64(), want.to_f64());
            got.to_bits() != want.to_bits() && !(got.is_nan() && want.is_nan())
        }
        _ => true,
    };
    (0..want.len()).filter(differs).count()
}

pub fn unary_ops_agree_on_every_16_bit_float<B: Tested>() {
    let mut seen = Disagreements::default();
    for data in every_value::<B>() {
        let (dtype, count) = (data.dtype(), data.len());
        let x = B::from_host(data.clone(), count.into()).unwrap();
        let same = Reference::from_host(data, count.into()).unwrap();
        for &op in UnaryOp::ALL {
            let (got, want) = (B::unary(op, &x), Reference::unary(op, &same));
            if let (Ok(got), Ok(want)) = (&got, &want) {
                let (got, want) = (B::to_host(got).unwrap(), Reference::to_host(want).unwrap());
                let differing = not_nearest(&got, &want);
                assert!(
                    differing * 1000 <= count,
                    "{} of {dtype}: {differing} of {count} are not the nearest",
                    op.name()
                );
            }
            seen.compare::<B>(|| format!("{} {dtype}", op.name()), got, want, &Tolerance::ulp(1));
        }
    }
    seen.finish();
}

pub fn every_16_bit_float_converts_to_every_type<B: Tested>() {
    let mut seen = Disagreements::default();
    for data in every_value::<B>() {
        let (dtype, count) = (data.dtype(), data.len());
        let x = B::from_host(data.clone(), count.into()).unwrap();
        let same = Reference::from_host(data, count.into()).unwrap();
        for to in dtypes::<B>() {
            seen.compare::<B>(
                || format!("{dtype} to {to}"),
                B::cast(&x, to),
                Reference::cast(&same, to),
                &Tolerance::EXACT,
            );
        }
    }
    seen.finish();
}

//! Ops of one argument and conversions on every 16-bit float: all 65,536 of either type.

use half::{bf16, f16};
use swath::ops::UnaryOp;
use swath::{Backend, DType, HostData};

use super::Subject;
use crate::support::agree::{Disagreements, Reference, Tolerance};

fn every_value() -> [HostData; 2] {
    [
        HostData::F16((0..=u16::MAX).map(f16::from_bits).collect()),
        HostData::BF16((0..=u16::MAX).map(bf16::from_bits).collect()),
    ]
}

/// Results that are not the nearest 16-bit float, of so many: those whose `f32` lies next to the middle
/// of two, on the other side of it than the exact result.
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

#[test]
fn every_op_of_one_argument_on_every_16_bit_float() {
    let mut seen = Disagreements::default();
    for data in every_value() {
        let (dtype, count) = (data.dtype(), data.len());
        let x = Subject::from_host(data.clone(), count.into()).unwrap();
        let same = Reference::from_host(data, count.into()).unwrap();
        for &op in UnaryOp::ALL {
            let (got, want) = (Subject::unary(op, &x), Reference::unary(op, &same));
            if let (Ok(got), Ok(want)) = (&got, &want) {
                let (got, want) =
                    (Subject::to_host(got).unwrap(), Reference::to_host(want).unwrap());
                let differing = not_nearest(&got, &want);
                assert!(
                    differing * 1000 <= count,
                    "{} of {dtype}: {differing} of {count} are not the nearest",
                    op.name()
                );
            }
            seen.compare::<Subject>(
                || format!("{} {dtype}", op.name()),
                got,
                want,
                &Tolerance::ulp(1),
            );
        }
    }
    seen.finish();
}

#[test]
fn every_16_bit_float_converts_to_every_type() {
    let mut seen = Disagreements::default();
    for data in every_value() {
        let (dtype, count) = (data.dtype(), data.len());
        let x = Subject::from_host(data.clone(), count.into()).unwrap();
        let same = Reference::from_host(data, count.into()).unwrap();
        for to in DType::ALL {
            seen.compare::<Subject>(
                || format!("{dtype} to {to}"),
                Subject::cast(&x, to),
                Reference::cast(&same, to),
                &Tolerance::EXACT,
            );
        }
    }
    seen.finish();
}

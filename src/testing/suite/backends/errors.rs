//! Errors: both backends return the same variant, which names the operation.

use crate::testing::suite::Tested;
use crate::testing::suite::agree::{Disagreements, Reference, Tolerance, dtypes, settled};
use crate::testing::suite::inputs::{Arrangement, Input};
use swath::ops::BinaryOp;
use swath::{Arg, Backend, DType, Error, Scalar};

const EXACT: Tolerance = Tolerance::EXACT;

fn integers(dtype: DType, values: &[i64], arrangement: Arrangement) -> Input {
    let mut values = values.iter().cycle().copied();
    let next = || Scalar::Int(values.next().unwrap());
    Input::new(dtype, [3, 5], arrangement, next)
}

/// One division in the tensor fails, by a tensor and by a scalar.
pub fn divisions_that_fail_are_errors<B: Tested>() {
    let mut seen = Disagreements::default();
    for arrangement in Arrangement::ALL {
        let rows: [(DType, &[i64], &[i64], bool); 16] = [
            (DType::I64, &[7, 8, 9], &[1, 2, 0], true),
            (DType::I64, &[7, i64::MIN, 9], &[-1], true),
            (DType::I64, &[7, i64::MAX, 9], &[-1], false),
            (DType::I64, &[i64::MIN], &[1, -2], false),
            (DType::U8, &[200, 3], &[1, 7, 0], true),
            (DType::U8, &[200, 3], &[255], false),
            (DType::I8, &[7, -128, 9], &[1, -1], true),
            (DType::I16, &[7, -32767, 9], &[1, -1], false),
            (DType::U16, &[65535, 3], &[255, 7, 0], true),
            (DType::U64, &[-1, 3], &[-2, 7, 0], true),
            (DType::U64, &[i64::MIN, -1, 3], &[-1, -2, 7], false),
            (DType::I32, &[7, 8, 9], &[1, 2, 0], true),
            (DType::I32, &[7, i32::MIN.into(), 9], &[-1], true),
            (DType::I32, &[7, i32::MAX.into(), 9], &[-1, -2], false),
            (DType::U32, &[7, 8, 9], &[1, 2, 0], true),
            (DType::U32, &[u32::MAX.into(), 3], &[u32::MAX.into(), 7], false),
        ];
        for (dtype, a, b, fails) in rows.into_iter().filter(|row| B::DTYPES.contains(&row.0)) {
            let (a, b) = (integers(dtype, a, arrangement), integers(dtype, b, arrangement));
            let (x, y) = (a.on::<Reference>(), b.on::<Reference>());
            for op in BinaryOp::ALL.iter().copied().filter(|op| op.divides_integers()) {
                let got = B::binary(op, &a.on::<B>(), &b.on::<B>());
                let want = Reference::binary(op, &x, &y);
                assert_eq!(matches!(want, Err(Error::IntegerDivision { .. })), fails);
                let context = || format!("{} {dtype} {arrangement:?}", op.name());
                seen.compare::<B>(context, got, want, &EXACT);
            }
            for number in [0, -1, 3] {
                let number = Scalar::Int(number);
                let got = B::binary(BinaryOp::Div, Arg::Owned(a.on::<B>()), Arg::Scalar(number));
                let want = Reference::binary(BinaryOp::Div, &x, Arg::Scalar(number));
                seen.compare::<B>(|| format!("{dtype} by a number"), got, want, &EXACT);
            }
        }
        let zero = integers(DType::F32, &[0], arrangement);
        let got = B::binary(BinaryOp::Div, &zero.on::<B>(), &zero.on::<B>());
        let x = zero.on::<Reference>();
        seen.compare::<B>(
            || "floats divide by zero".to_owned(),
            got,
            Reference::binary(BinaryOp::Div, &x, &x),
            &EXACT,
        );
    }
    seen.finish();
}

pub fn indices_out_of_range_are_errors<B: Tested>() {
    let mut seen = Disagreements::default();
    for dtype in dtypes::<B>() {
        for axis in [0, 1] {
            for bad in [-1, 3, 5, i64::MIN, i64::MAX] {
                for place in [0, 4, 9] {
                    let x = integers(dtype, &[1, 2, 3], Arrangement::Contiguous);
                    let mut values = [Scalar::Int(1); 10];
                    values[place] = Scalar::Int(bad);
                    let index = Input::of(DType::I64, [2, 5], &values);
                    let source = Input::of(dtype, [2, 5], &[Scalar::Int(1); 10]);
                    let (ours, i, s) = (x.on::<B>(), index.on::<B>(), source.on::<B>());
                    let (theirs, j, t) =
                        (x.on::<Reference>(), index.on::<Reference>(), source.on::<Reference>());
                    let context = |op| format!("{op} {dtype} axis {axis} index {bad}");
                    let (got, want) = (
                        settled::<B>(B::gather(&ours, axis, &i)),
                        Reference::gather(&theirs, axis, &j),
                    );
                    if bad != 3 || axis == 0 {
                        assert_eq!(
                            got.as_ref().err(),
                            want.as_ref().err(),
                            "{}",
                            context("gather")
                        );
                    }
                    seen.compare::<B>(|| context("gather"), got, want, &EXACT);
                    let got = B::scatter_add(&ours, axis, &i, &s);
                    let want = Reference::scatter_add(&theirs, axis, &j, &t);
                    seen.compare::<B>(|| context("scatter_add"), got, want, &EXACT);
                }
            }
        }
    }
    seen.finish();
}

/// Two indices are out of range in a tensor that is split over threads; the error names the first.
pub fn the_first_index_out_of_range_is_the_error<B: Tested>() {
    let shape = [300, 400];
    let ones = Input::new(DType::F32, shape, Arrangement::Contiguous, || Scalar::Int(1));
    let mut values = vec![Scalar::Int(1); 120_000];
    (values[70_001], values[119_999]) = (Scalar::Int(-7), Scalar::Int(900));
    let index = Input::of(DType::I64, shape, &values).on::<B>();
    let x = ones.on::<B>();
    for axis in [0, 1] {
        for result in [B::gather(&x, axis, &index), B::scatter_add(&x, axis, &index, &x)] {
            let error = settled::<B>(result).unwrap_err();
            assert!(matches!(error, Error::IndexOutOfRange { index: -7, .. }), "{error}");
        }
    }
}

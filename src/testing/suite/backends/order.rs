//! Order along every axis, searches in sorted rows, indices of running extrema.

use crate::testing::suite::Tested;
use crate::testing::suite::agree::{Disagreements, Reference, Tolerance, dtypes};
use crate::testing::suite::inputs::{Arrangement, Fill, Input, Rng, SHAPES, Specials};
use crate::testing::suite::is_sampled;
use swath::ops::{Extremum, OrderOp};
use swath::{Backend, DType, Error, HostData, Shape, TensorData};

const EXACT: Tolerance = Tolerance::EXACT;

/// In addition to [`SHAPES`]: rows that are longer than those that are sorted by comparisons, and many rows.
const MORE: [&[usize]; 3] = [&[2, 1500], &[4, 2, 3], &[300, 9]];

/// Ties, zeros of both signs, infinities and NaN among other values.
fn fill() -> Fill {
    Fill::plain(-4.0, 4.0).with(3, Specials::All)
}

/// Calls `compare` with inputs of every dtype, by default in every third arrangement for each dtype and shape, and
/// in one of eight for large ones.
fn for_inputs<B: Tested>(mut compare: impl FnMut(&mut Disagreements, &Input, &str)) {
    let (mut seen, mut rng) = (Disagreements::default(), Rng(31));
    for (d, dtype) in dtypes::<B>().enumerate() {
        for (s, shape) in SHAPES.into_iter().chain(MORE).enumerate() {
            let every = if shape.iter().product::<usize>() > 300 { 8 } else { 3 };
            for (a, arrangement) in Arrangement::ALL.into_iter().enumerate() {
                if is_sampled(d + s + a, every) {
                    let x = Input::new(dtype, shape, arrangement, || fill().draw(&mut rng, dtype));
                    compare(&mut seen, &x, &format!("{dtype} {shape:?} {arrangement:?}"));
                }
            }
        }
    }
    seen.finish();
}

pub fn orders_agree<B: Tested>() {
    for_inputs::<B>(|seen, x, context| {
        let (ours, theirs) = (x.on::<B>(), x.on::<Reference>());
        for axis in 0..x.shape.ndim() + 1 {
            for descending in [false, true] {
                for count in [None, Some(0), Some(1), Some(3), Some(40)] {
                    let op = OrderOp { descending, count };
                    let context = || format!("{} {context} {axis} {op:?}", op.name());
                    let (got, want) =
                        (B::order(op, &ours, axis), Reference::order(op, &theirs, axis));
                    let (values, indices) = match got {
                        Ok((values, indices)) => (Ok(values), Ok(indices)),
                        Err(error) => (Err(error.clone()), Err(error)),
                    };
                    seen.compare::<B>(context, values, want.clone().map(|both| both.0), &EXACT);
                    seen.compare::<B>(context, indices, want.map(|both| both.1), &EXACT);
                }
            }
        }
    });
}

pub fn running_extrema_agree<B: Tested>() {
    for_inputs::<B>(|seen, x, context| {
        let (ours, theirs) = (x.on::<B>(), x.on::<Reference>());
        for axis in 0..x.shape.ndim() + 1 {
            for op in Extremum::ALL {
                let context = || format!("{} {context} {axis}", op.name());
                let (got, want) =
                    (B::arg_scan(op, &ours, axis), Reference::arg_scan(op, &theirs, axis));
                seen.compare::<B>(context, got, want, &EXACT);
            }
        }
    });
}

/// Values are searched in their own sorted rows, in all of them in one row, and in other shapes, which is an error.
pub fn searches_agree<B: Tested>() {
    let ascending = OrderOp { descending: false, count: None };
    for_inputs::<B>(|seen, x, context| {
        let Some(last) = x.shape.ndim().checked_sub(1) else { return };
        let (ours, theirs) = (x.on::<B>(), x.on::<Reference>());
        let (rows, _) = B::order(ascending, &ours, last).unwrap();
        let (want_rows, _) = Reference::order(ascending, &theirs, last).unwrap();
        let line = |shape: &Shape| Shape::from(shape.numel());
        let all = B::reshape(&ours, line(ours.shape())).unwrap();
        let want_all = Reference::reshape(&theirs, line(theirs.shape())).unwrap();
        let (all, _) = B::order(ascending, &all, 0).unwrap();
        let (want_all, _) = Reference::order(ascending, &want_all, 0).unwrap();
        for right in [false, true] {
            for (kind, sorted, want) in [("rows", &rows, &want_rows), ("line", &all, &want_all)] {
                let context = || format!("searchsorted {kind} {context} {right}");
                let got = B::search_sorted(sorted, &ours, right);
                let want = Reference::search_sorted(want, &theirs, right);
                seen.compare::<B>(context, got, want, &EXACT);
                let got = B::search_sorted(&ours, sorted, right);
                if let Err(error) = got {
                    assert!(matches!(error, Error::ShapeMismatch { op: "searchsorted", .. }));
                }
            }
        }
    });
}

/// Indices are those of a stable sort, worked out by hand.
pub fn equal_elements_keep_their_order<B: Tested>() {
    let nan = f32::NAN;
    let values = vec![2.0, nan, -0.0, 2.0, 0.0, -1.0, nan, 0.0];
    let x = B::from_host(HostData::F32(values), Shape::from((8, 1))).unwrap();
    let indices = |op| B::to_host(&B::order(op, &x, 0).unwrap().1).unwrap();
    let all = |descending| OrderOp { descending, count: None };
    assert_eq!(indices(all(false)), HostData::I64(vec![5, 2, 4, 7, 0, 3, 1, 6]));
    assert_eq!(indices(all(true)), HostData::I64(vec![0, 3, 2, 4, 7, 5, 1, 6]));
    let some = |count| OrderOp { descending: true, count: Some(count) };
    assert_eq!(indices(some(4)), HostData::I64(vec![0, 3, 2, 4]));
    let running = |op| B::to_host(&B::arg_scan(op, &x, 0).unwrap()).unwrap();
    assert_eq!(running(Extremum::Max), HostData::I64(vec![0, 1, 1, 1, 1, 1, 1, 1]));
    let narrowed = B::view(&x, x.layout().narrow("test", 0, 2, 4).unwrap()).unwrap();
    let smallest = B::arg_scan(Extremum::Min, &narrowed, 0).unwrap();
    assert_eq!(B::to_host(&smallest).unwrap(), HostData::I64(vec![0, 0, 0, 3]));
    assert_eq!(smallest.dtype(), DType::I64);
}

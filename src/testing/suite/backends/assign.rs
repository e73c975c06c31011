//! Provided methods that move elements: `scatter`, `slice_assign`, `assemble`. All are exact.

use super::movement::{INDEX_CASES, fill, indices, pairings};
use crate::testing::suite::Tested;
use crate::testing::suite::agree::{Disagreements, Reference, Tolerance, dtypes, settled};
use crate::testing::suite::inputs::{Arrangement, Input, Rng, SHAPES};
use crate::testing::suite::is_sampled;
use swath::{AxisPart, Backend, DType, Error, Scalar, Shape, SliceItem, TensorData, s};

const EXACT: Tolerance = Tolerance::EXACT;

pub fn scatter_agrees<B: Tested>() {
    let mut rng = Rng(10);
    let mut seen = Disagreements::default();
    let all = Arrangement::ALL;
    for (d, dtype) in dtypes::<B>().enumerate() {
        for (c, case) in INDEX_CASES.into_iter().enumerate() {
            for [a, i] in pairings(c + d).filter(|[a, i]| is_sampled(a + 3 * i + c, 4)) {
                let (shape, axis, index_shape) = case;
                let index = indices(&mut rng, case, all[i]);
                let mut draw = || fill().draw(&mut rng, dtype);
                let x = Input::new(dtype, shape, all[a], &mut draw);
                let source = Input::new(dtype, index_shape, all[(i + 3) % 8], &mut draw);
                let (ours, sources) = (x.on::<B>(), source.on::<B>());
                let got = B::scatter(&ours, axis, &index.on::<B>(), &sources);
                let [x, index, source] = [&x, &index, &source].map(|x| x.on::<Reference>());
                let want = Reference::scatter(&x, axis, &index, &source);
                let context = || format!("scatter {dtype} {case:?} {:?} {:?}", all[a], all[i]);
                seen.compare::<B>(context, got, want, &EXACT);
                let untouched = B::to_host(&ours).unwrap();
                let original = Reference::to_host(&x).unwrap();
                assert_eq!(format!("{untouched:?}"), format!("{original:?}"), "{case:?}");
            }
        }
    }
    seen.finish();
}

/// Many elements for each target, on all threads, of rows and of single elements: the last one remains.
pub fn the_last_element_of_a_target_remains<B: Tested>() {
    for shape in [[40_000, 1], [20_000, 5], [30, 4_000]] {
        for arrangement in [Arrangement::Contiguous, Arrangement::RepeatedColumns] {
            let mut next = 0i64;
            let index = Input::new(DType::I64, shape, arrangement, || {
                next += 1;
                Scalar::Int(next * next % 7)
            });
            let mut place = 0i64;
            let source = Input::new(DType::I64, shape, Arrangement::Contiguous, || {
                place += 1;
                Scalar::Int(place)
            });
            let zeros = B::full([7, shape[1]].into(), Scalar::Int(0), DType::I64).unwrap();
            let got = B::scatter(&zeros, 0, &index.on::<B>(), &source.on::<B>()).unwrap();
            let mut want = vec![0; 7 * shape[1]];
            let indices = Reference::to_host(&index.on::<Reference>()).unwrap();
            for i in 0..shape[0] * shape[1] {
                let target = indices.get(i).unwrap().to_i64() as usize;
                want[target * shape[1] + i % shape[1]] = i as i64 + 1;
            }
            let got = B::to_host(&got).unwrap();
            let got: Vec<i64> = (0..want.len()).map(|i| got.get(i).unwrap().to_i64()).collect();
            assert_eq!(got, want, "{shape:?} {arrangement:?}");
        }
    }
}

pub fn scatters_out_of_range_are_errors<B: Tested>() {
    for (axis, bad) in [(0, -1), (0, 3), (1, 5), (1, i64::MIN), (0, i64::MAX)] {
        for place in [0, 4, 9] {
            let x = B::full([3, 5].into(), Scalar::Int(1), DType::F32).unwrap();
            let mut values = [Scalar::Int(1); 10];
            values[place] = Scalar::Int(bad);
            let index = Input::of(DType::I64, [2, 5], &values).on::<B>();
            let source = B::full([2, 5].into(), Scalar::Int(2), DType::F32).unwrap();
            let error = settled::<B>(B::scatter(&x, axis, &index, &source)).unwrap_err();
            let shape = Shape::new([3, 5]);
            assert_eq!(error, Error::IndexOutOfRange { op: "scatter", index: bad, axis, shape });
        }
    }
}

/// A random index or range, of any step, of an axis.
fn any_item(rng: &mut Rng, dim: usize) -> SliceItem {
    let bound = |rng: &mut Rng| (rng.below(3) > 0).then(|| rng.below(dim + 1) as isize);
    match rng.below(4) {
        0 if dim > 0 => SliceItem::Index(rng.below(dim) as isize),
        _ => {
            let step = rng.pick(&[1, 1, 1, 2, 3, -1, -2]);
            SliceItem::Range { start: bound(rng), end: bound(rng), step }
        }
    }
}

pub fn slice_assign_agrees<B: Tested>() {
    let mut rng = Rng(11);
    let mut seen = Disagreements::default();
    let all = Arrangement::ALL;
    for dtype in dtypes::<B>() {
        for shape in SHAPES {
            for (i, arrangement) in all.into_iter().enumerate() {
                let count = rng.below(shape.len() + 1);
                let items: Vec<_> =
                    shape[..count].iter().map(|&dim| any_item(&mut rng, dim)).collect();
                let x = Input::new(dtype, shape, arrangement, || fill().draw(&mut rng, dtype));
                let mut theirs = x.on::<Reference>();
                let slice = theirs.layout().slice("slice", &items).unwrap();
                let turn = all[(i + rng.below(8)) % 8];
                let source =
                    Input::new(dtype, *slice.shape(), turn, || fill().draw(&mut rng, dtype));
                let want = Reference::slice_assign(&mut theirs, &items, &source.on::<Reference>());
                let context =
                    || format!("slice_assign {dtype} {shape:?} {arrangement:?} {items:?} {turn:?}");
                // Shared with another tensor, which keeps its elements, and not shared.
                let original = x.on::<B>();
                for mut ours in [original.clone(), x.on::<B>()] {
                    let got = B::slice_assign(&mut ours, &items, &source.on::<B>());
                    let want = want.clone().map(|()| theirs.clone());
                    seen.compare::<B>(context, got.map(|()| ours), want, &EXACT);
                }
                let untouched = B::to_host(&original).unwrap();
                let before = Reference::to_host(&x.on::<Reference>()).unwrap();
                assert_eq!(format!("{untouched:?}"), format!("{before:?}"), "{}", context());
            }
        }
    }
    seen.finish();
    let mut x = B::zeros([2, 3]).unwrap();
    let row = B::ones(3).unwrap();
    let (lhs, rhs) = (Shape::new([2]), Shape::new([3]));
    let error = B::slice_assign(&mut x, &s![.., 0], &row).unwrap_err();
    assert_eq!(error, Error::ShapeMismatch { op: "slice_assign", lhs, rhs });
}

/// Random parts of an axis: an empty list, ranges in both directions, elements repeated, and fill.
fn any_parts(rng: &mut Rng, dim: usize) -> Vec<AxisPart> {
    let part = |rng: &mut Rng| {
        let start = rng.below(dim.max(1));
        match rng.below(4) {
            0 => AxisPart::Fill(rng.below(4)),
            _ if dim == 0 => AxisPart::Fill(0),
            1 => AxisPart::From { start, len: 1 + rng.below(dim - start), step: 1 },
            2 => AxisPart::From { start, len: 1 + rng.below(start + 1), step: -1 },
            _ => AxisPart::From { start, len: rng.below(5), step: 0 },
        }
    };
    (0..rng.below(4)).map(|_| part(rng)).collect()
}

pub fn assemble_agrees<B: Tested>() {
    let mut rng = Rng(12);
    let mut seen = Disagreements::default();
    for dtype in dtypes::<B>() {
        for shape in SHAPES {
            for arrangement in Arrangement::ALL {
                let axes: Vec<_> = shape.iter().map(|&dim| any_parts(&mut rng, dim)).collect();
                let x = Input::new(dtype, shape, arrangement, || fill().draw(&mut rng, dtype));
                let value = fill().draw(&mut rng, dtype);
                let got = B::assemble(&x.on::<B>(), &axes, value);
                let want = Reference::assemble(&x.on::<Reference>(), &axes, value);
                let context =
                    || format!("assemble {dtype} {shape:?} {arrangement:?} {axes:?} {value:?}");
                seen.compare::<B>(context, got, want, &EXACT);
            }
        }
    }
    seen.finish();
    let x = B::zeros([2, 3]).unwrap();
    let beyond = [
        AxisPart::From { start: 1, len: 3, step: 1 },
        AxisPart::From { start: 1, len: 3, step: -1 },
        AxisPart::From { start: 3, len: 1, step: 0 },
        AxisPart::From { start: usize::MAX, len: 2, step: 1 },
        AxisPart::From { start: 0, len: usize::MAX, step: -1 },
    ];
    for part in beyond {
        let error = B::assemble(&x, &[vec![], vec![part]], Scalar::Int(0)).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { op: "assemble", .. }), "{error}");
    }
    let huge = vec![AxisPart::Fill(usize::MAX); 2];
    let error = B::assemble(&x, &[vec![], huge], Scalar::Int(0)).unwrap_err();
    assert!(matches!(error, Error::Overflow { op: "assemble", .. }), "{error}");
    assert!(B::assemble(&x, &[vec![]], Scalar::Int(0)).is_err());
}

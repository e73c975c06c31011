//! Operations that move elements: `view` and `contiguous`, `where_cond`, `gather`, `scatter_add`,
//! `cat`; and `cast` and `full`. All are exact.

use crate::testing::suite::Tested;
use crate::testing::suite::agree::{Disagreements, Reference, Tolerance, among, dtypes};
use crate::testing::suite::inputs::{
    Arrangement, Fill, Input, Rng, SHAPES, Specials, host, special_floats,
};
use crate::testing::suite::is_sampled;
use swath::ops::{BinaryOp, UnaryOp};
use swath::{Arg, Backend, DType, Scalar, Shape, SliceItem, TensorData};

const EXACT: Tolerance = Tolerance::EXACT;

pub(super) fn fill() -> Fill {
    Fill::plain(-4.0, 4.0).with(4, Specials::All)
}

pub fn views_and_copies_agree<B: Tested>() {
    let mut rng = Rng(1);
    let mut seen = Disagreements::default();
    for dtype in dtypes::<B>() {
        for shape in SHAPES {
            for arrangement in Arrangement::ALL {
                let x = Input::new(dtype, shape, arrangement, || fill().draw(&mut rng, dtype));
                let (ours, theirs) = (x.on::<B>(), x.on::<Reference>());
                let context = || format!("view {dtype} {shape:?} {arrangement:?}");
                seen.compare::<B>(context, Ok(ours.clone()), Ok(theirs.clone()), &EXACT);
                let got = B::contiguous(&ours);
                if let Ok(got) = &got {
                    assert!(got.layout().is_contiguous(), "{dtype} {shape:?} {arrangement:?}");
                }
                let context = || format!("contiguous {dtype} {shape:?} {arrangement:?}");
                seen.compare::<B>(context, got, Reference::contiguous(&theirs), &EXACT);
            }
        }
    }
    seen.finish();
}

/// A random view of up to 8 axes of a tensor: permuted, narrowed, stepped, flipped, broadcast.
fn any_view<B: Backend>(rng: &mut Rng, base: &B::Tensor) -> B::Tensor {
    let mut layout = *base.layout();
    for axis in 0..layout.shape().ndim() {
        let dim = layout.dims()[axis];
        let mut items = vec![SliceItem::Range { start: None, end: None, step: 1 }; axis + 1];
        items[axis] = match rng.below(8) {
            0 => SliceItem::Range { start: Some((dim / 3) as isize), end: None, step: 1 },
            1 => SliceItem::Range { start: None, end: None, step: 2 },
            2 => SliceItem::Range { start: None, end: None, step: -1 },
            _ => continue,
        };
        layout = layout.slice("slice", &items).unwrap();
    }
    let mut order: Vec<usize> = (0..layout.shape().ndim()).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, rng.below(i + 1));
    }
    layout = layout.permute("permute", &order).unwrap();
    if layout.shape().ndim() < 8 && rng.below(3) == 0 {
        let at = rng.below(layout.shape().ndim() + 1);
        let repeated = layout.unsqueeze("unsqueeze", at).unwrap();
        let mut dims = repeated.dims().to_vec();
        dims[at] = 1 + rng.below(4);
        layout = repeated.broadcast_to("expand", &Shape::new(dims)).unwrap();
    }
    B::view(base, layout).unwrap()
}

/// Extents that give full and partial tiles, and short and long runs, for every element size.
const MANY_AXES: [&[usize]; 8] = [
    &[300, 517],
    &[131, 3, 140],
    &[3, 130, 5, 67],
    &[70, 2, 3, 2, 65],
    &[5, 4, 3, 2, 3, 4, 33],
    &[2, 3, 2, 3, 2, 3, 2, 40],
    &[40, 2, 2, 2, 2, 2, 2, 9],
    &[2000, 3],
];

pub fn permutes_of_many_axes_agree<B: Tested>() {
    let mut rng = Rng(8);
    let mut seen = Disagreements::default();
    for dtype in among::<B>(&[DType::U8, DType::F16, DType::F32, DType::I64]) {
        for shape in MANY_AXES {
            let draw = || fill().draw(&mut rng, dtype);
            let base = Input::new(dtype, shape, Arrangement::Contiguous, draw);
            for turn in 0..6 {
                let seed = rng.next_u64();
                let ours = any_view::<B>(&mut Rng(seed), &base.on::<B>());
                let theirs = any_view::<Reference>(&mut Rng(seed), &base.on::<Reference>());
                let context =
                    || format!("contiguous {dtype} {shape:?} turn {turn}: {:?}", ours.layout());
                seen.compare::<B>(context, B::contiguous(&ours), Ok(theirs.clone()), &EXACT);
                if dtype == DType::F32 {
                    // The view with a contiguous copy of itself, in both orders and in place.
                    let (x, y) =
                        (B::contiguous(&ours).unwrap(), Reference::contiguous(&theirs).unwrap());
                    let want = Reference::binary(BinaryOp::Sub, &theirs, &y);
                    let got = B::binary(BinaryOp::Sub, &ours, &x);
                    seen.compare::<B>(
                        || format!("sub {:?}", ours.layout()),
                        got,
                        want.clone(),
                        &EXACT,
                    );
                    let got = B::binary(BinaryOp::Sub, &ours, Arg::Owned(x));
                    seen.compare::<B>(
                        || format!("sub owned {:?}", ours.layout()),
                        got,
                        want,
                        &EXACT,
                    );
                }
            }
        }
    }
    seen.finish();
}

/// Results larger than the caches: 17 MiB, of rows that are and that are not whole cache lines.
pub fn copies_larger_than_the_caches_agree<B: Tested>() {
    let mut rng = Rng(9);
    let mut seen = Disagreements::default();
    for shape in [[2192usize, 2048], [2161, 2063]] {
        let draw = || Scalar::Int(rng.below(1 << 20) as i64);
        let base = Input::new(DType::F32, shape, Arrangement::Contiguous, draw);
        let (x, u) = (base.on::<B>(), base.on::<Reference>());
        let transposed = x.layout().permute("permute", &[1, 0]).unwrap();
        let (t, v) = (B::view(&x, transposed).unwrap(), Reference::view(&u, transposed).unwrap());
        seen.compare::<B>(|| "t".into(), B::contiguous(&t), Ok(v.clone()), &EXACT);
        let back = x.layout().reshape("reshape", &transposed.shape().clone()).unwrap().unwrap();
        let (y, w) = (B::view(&x, back).unwrap(), Reference::view(&u, back).unwrap());
        let got = B::binary(BinaryOp::Sub, &t, &y);
        seen.compare::<B>(|| "t - y".into(), got, Reference::binary(BinaryOp::Sub, &v, &w), &EXACT);
        let got = B::binary(BinaryOp::Sub, &x, &x);
        seen.compare::<B>(|| "x - x".into(), got, Reference::binary(BinaryOp::Sub, &u, &u), &EXACT);
        let got = B::unary(UnaryOp::Neg, &x);
        seen.compare::<B>(|| "-x".into(), got, Reference::unary(UnaryOp::Neg, &u), &EXACT);
        let got = B::cat(&[&t, &t], 0);
        seen.compare::<B>(|| "cat".into(), got, Reference::cat(&[&v, &v], 0), &EXACT);
        let got = B::full(shape.into(), Scalar::Float(1.5), DType::F32);
        let want = Reference::full(shape.into(), Scalar::Float(1.5), DType::F32);
        seen.compare::<B>(|| "full".into(), got, want, &EXACT);
    }
    seen.finish();
}

pub fn host_values_come_back<B: Tested>() {
    for dtype in dtypes::<B>() {
        let mut rng = Rng(2);
        let data = host(dtype, (0..60).map(|_| fill().draw(&mut rng, dtype)));
        let back = B::to_host(&B::from_host(data.clone(), [3, 4, 5].into()).unwrap()).unwrap();
        // Compared as debug text, because NaN is not equal to itself.
        assert_eq!(format!("{back:?}"), format!("{data:?}"));
    }
}

pub fn filled_tensors_agree<B: Tested>() {
    let mut seen = Disagreements::default();
    let floats = special_floats(DType::F64, Specials::All).into_iter().map(Scalar::Float);
    let integers = [0, -1, 300, 1 << 40, i64::MIN].into_iter().map(Scalar::Int);
    for value in floats.chain(integers) {
        for dtype in dtypes::<B>() {
            for shape in SHAPES {
                let (got, want) = (
                    B::full(shape.into(), value, dtype),
                    Reference::full(shape.into(), value, dtype),
                );
                seen.compare::<B>(
                    || format!("full {value:?} {dtype} {shape:?}"),
                    got,
                    want,
                    &EXACT,
                );
            }
        }
    }
    seen.finish();
}

/// Values near which one of the conversions changes its behaviour.
fn boundary_values(dtype: DType) -> Vec<Scalar> {
    if !dtype.is_float() {
        let powers = [7, 8, 11, 24, 31, 32, 53, 62].map(|power| 1i64 << power);
        let around = powers.into_iter().flat_map(|x| [x - 1, x, x + 1, -x - 1, -x, 1 - x]);
        let ties = [(1 << 62) + (1 << 54), (1 << 62) + (1 << 54) + 1, (1 << 25) + 1, 65519, 65520];
        let edges = [0, i64::MIN, i64::MAX];
        return around.chain(ties).chain(edges).map(Scalar::Int).collect();
    }
    let powers = [-24, -14, 7, 8, 11, 15, 16, 24, 31, 32, 53, 63, 64].map(|n| 2f64.powi(n));
    let around = powers.into_iter().flat_map(|x| [x * 0.999, x, x * 1.001, x + 0.5, x - 1.0]);
    let ties = [1.0 + 2f64.powi(-11), 1.0 + 2f64.powi(-11) + 2f64.powi(-40), 65519.999, 65520.0];
    let more = [1.0 + 2f64.powi(-8), 1.0 + 2f64.powi(-8) + 2f64.powi(-30), 2f64.powi(-25), 1.5];
    let positive = around.chain(ties).chain(more).flat_map(|x| [x, -x]);
    positive.chain(special_floats(dtype, Specials::All)).map(Scalar::Float).collect()
}

pub fn casts_between_all_dtypes_agree<B: Tested>() {
    let mut rng = Rng(3);
    let mut seen = Disagreements::default();
    for from in dtypes::<B>() {
        let values = boundary_values(from);
        let mut inputs = vec![Input::of(from, values.len(), &values)];
        for arrangement in Arrangement::ALL {
            for shape in [&[][..], &[0], &[33, 65], &[2, 3, 4, 5]] {
                let draw = || match rng.below(3) {
                    0 => rng.pick(&values),
                    _ => Fill::plain(-300.0, 300.0).draw(&mut rng, from),
                };
                inputs.push(Input::new(from, shape, arrangement, draw));
            }
        }
        for to in dtypes::<B>() {
            for x in &inputs {
                let got = B::cast(&x.on::<B>(), to);
                let want = Reference::cast(&x.on::<Reference>(), to);
                let context = || format!("cast {from} to {to} {} {:?}", x.shape, x.arrangement);
                seen.compare::<B>(context, got, want, &EXACT);
            }
        }
    }
    seen.finish();
}

/// By default a third of the arrangements for each shape and pair of dtypes, rotating with all three.
pub fn where_cond_agrees<B: Tested>() {
    let mut rng = Rng(4);
    let mut seen = Disagreements::default();
    let all = Arrangement::ALL;
    let few_zeros = Fill::plain(-1.0, 1.0).with(2, Specials::All);
    for (m, mask_dtype) in dtypes::<B>().enumerate() {
        for (d, dtype) in dtypes::<B>().enumerate() {
            for (s, shape) in SHAPES.into_iter().enumerate() {
                let arrangements = all.into_iter().enumerate();
                for (i, arrangement) in arrangements.filter(|(i, _)| is_sampled(m + d + s + i, 3)) {
                    let turn = rng.below(64);
                    let (a, b) = (all[(i + turn) % 8], all[(i + turn / 8) % 8]);
                    let mut draw = |fill: Fill, dtype| fill.draw(&mut rng, dtype);
                    let mask =
                        Input::new(mask_dtype, shape, arrangement, || draw(few_zeros, mask_dtype));
                    let a = Input::new(dtype, shape, a, || draw(fill(), dtype));
                    let b = Input::new(dtype, shape, b, || draw(fill(), dtype));
                    let got = B::where_cond(&mask.on::<B>(), &a.on::<B>(), &b.on::<B>());
                    let [m, x, y] = [&mask, &a, &b].map(|x| x.on::<Reference>());
                    let want = Reference::where_cond(&m, &x, &y);
                    let context = || {
                        let (a, b) = (a.arrangement, b.arrangement);
                        format!("where {mask_dtype} {arrangement:?} {dtype} {shape:?} {a:?} {b:?}")
                    };
                    seen.compare::<B>(context, got, want, &EXACT);
                }
            }
        }
    }
    seen.finish();
}

/// Shape of `x`, axis, shape of the tensor of indices.
pub(super) type IndexCase = (&'static [usize], usize, &'static [usize]);

pub(super) const INDEX_CASES: [IndexCase; 17] = [
    (&[7], 0, &[12]),
    (&[7], 0, &[0]),
    (&[1], 0, &[3]),
    (&[3, 5], 0, &[4, 5]),
    (&[3, 5], 1, &[3, 9]),
    (&[3, 5], 1, &[2, 9]),
    (&[3, 5], 0, &[6, 2]),
    (&[33, 65], 0, &[50, 65]),
    (&[33, 65], 1, &[33, 40]),
    (&[2, 3, 4, 5], 2, &[2, 2, 7, 5]),
    (&[3, 0, 2], 0, &[2, 0, 2]),
    (&[1030], 0, &[2000]),
    // Bands of columns, of one matrix and of several; an index of most of a tensor; an empty index.
    (&[9, 200], 0, &[30, 200]),
    (&[3, 4, 5, 30], 1, &[2, 6, 5, 30]),
    (&[40, 7, 3], 0, &[2, 7, 3]),
    (&[2, 3, 4], 2, &[2, 3, 1]),
    (&[0, 5], 0, &[2, 5]),
];

pub(super) fn indices(rng: &mut Rng, case: IndexCase, arrangement: Arrangement) -> Input {
    let (shape, axis, index_shape) = case;
    let extent = shape[axis].max(1);
    Input::new(DType::I64, index_shape, arrangement, || Scalar::Int(rng.below(extent) as i64))
}

/// Pairs of arrangements: by default every second one, alternating with `turn`.
pub(super) fn pairings(turn: usize) -> impl Iterator<Item = [usize; 2]> {
    let count = Arrangement::ALL.len();
    let pairs = (0..count).flat_map(move |a| (0..count).map(move |b| [a, b]));
    pairs.filter(move |[a, b]| is_sampled(turn + a + b, 2))
}

pub fn gather_agrees<B: Tested>() {
    let mut rng = Rng(5);
    let mut seen = Disagreements::default();
    let all = Arrangement::ALL;
    for (d, dtype) in dtypes::<B>().enumerate() {
        for (c, case) in INDEX_CASES.into_iter().enumerate() {
            for [arrangement, index_arrangement] in pairings(c + d).map(|pair| pair.map(|i| all[i]))
            {
                let (shape, axis, _) = case;
                let index = indices(&mut rng, case, index_arrangement);
                let x = Input::new(dtype, shape, arrangement, || fill().draw(&mut rng, dtype));
                let got = B::gather(&x.on::<B>(), axis, &index.on::<B>());
                let (x, i) = (x.on::<Reference>(), index.on::<Reference>());
                let want = Reference::gather(&x, axis, &i);
                let context =
                    || format!("gather {dtype} {case:?} {arrangement:?} {index_arrangement:?}");
                seen.compare::<B>(context, got, want, &EXACT);
            }
        }
    }
    seen.finish();
}

pub fn scatter_add_agrees<B: Tested>() {
    let mut rng = Rng(6);
    let mut seen = Disagreements::default();
    let all = Arrangement::ALL;
    for (d, dtype) in dtypes::<B>().enumerate() {
        for (c, case) in INDEX_CASES.into_iter().enumerate() {
            for [a, i] in pairings(c + d) {
                let (arrangement, index_arrangement) = (all[a], all[i]);
                let (shape, axis, index_shape) = case;
                let index = indices(&mut rng, case, index_arrangement);
                let mut draw = || fill().draw(&mut rng, dtype);
                let x = Input::new(dtype, shape, arrangement, &mut draw);
                let source = Input::new(dtype, index_shape, all[(i + 3) % 8], &mut draw);
                let (ours, sources) = (x.on::<B>(), source.on::<B>());
                let got = B::scatter_add(&ours, axis, &index.on::<B>(), &sources);
                let [x, index, source] = [&x, &index, &source].map(|x| x.on::<Reference>());
                let want = Reference::scatter_add(&x, axis, &index, &source);
                let context =
                    || format!("scatter {dtype} {case:?} {arrangement:?} {index_arrangement:?}");
                seen.compare::<B>(context, got, want, &EXACT);
                let untouched = B::to_host(&ours).unwrap();
                let original = Reference::to_host(&x).unwrap();
                assert_eq!(format!("{untouched:?}"), format!("{original:?}"), "{case:?}");
            }
        }
    }
    seen.finish();
}

/// Adds ones of a 16-bit float type at one index, and one at another: such sums stagnate if each addition is
/// rounded to 16 bits.
pub fn sums_of_16_bit_floats_do_not_stagnate<B: Tested>() {
    for dtype in among::<B>(&[DType::BF16, DType::F16]) {
        let count = 5000;
        for dims in [&[count][..], &[count, 3], &[count, 40], &[2, count], &[count, 1]] {
            let axis = usize::from(dims[0] == 2);
            let mut to = dims.to_vec();
            to[axis] = 2;
            let ones = Input::new(dtype, dims, Arrangement::Contiguous, || Scalar::Int(1));
            let zeros = Input::new(dtype, to, Arrangement::Contiguous, || Scalar::Int(0));
            // Every index is 0, except the last, which is 1.
            let mut values = vec![Scalar::Int(0); ones.shape.numel()];
            *values.last_mut().unwrap() = Scalar::Int(1);
            let index = Input::of(DType::I64, dims, &values);
            let rows =
                Input::new(DType::I64, dims, Arrangement::RepeatedColumns, || Scalar::Int(0));
            for index in [index, rows] {
                let sums =
                    B::scatter_add(&zeros.on::<B>(), axis, &index.on::<B>(), &ones.on::<B>());
                let sums = B::to_host(&sums.unwrap()).unwrap();
                let first = sums.get(0).unwrap().to_f64();
                let want = host(dtype, [Scalar::Int(count as i64)].into_iter());
                assert_eq!(first, want.get(0).unwrap().to_f64(), "{dtype} {dims:?}");
            }
        }
    }
}

pub fn cat_agrees<B: Tested>() {
    let mut rng = Rng(7);
    let mut seen = Disagreements::default();
    let all = Arrangement::ALL;
    for dtype in dtypes::<B>() {
        for shape in SHAPES.into_iter().filter(|shape| !shape.is_empty()) {
            for axis in 0..shape.len() {
                for (turn, extents) in
                    [&[2][..], &[1, 3], &[0, 2, 0], &[4, 1, 7, 2], &[1, 1], &[3, 3, 3]]
                        .iter()
                        .enumerate()
                {
                    let parts: Vec<Input> = (0..extents.len())
                        .map(|i| {
                            let mut dims = shape.to_vec();
                            dims[axis] = extents[i];
                            let arrangement = all[rng.below(8) * turn.min(1)];
                            Input::new(dtype, dims, arrangement, || fill().draw(&mut rng, dtype))
                        })
                        .collect();
                    let ours: Vec<B::Tensor> = parts.iter().map(|x| x.on::<B>()).collect();
                    let theirs: Vec<_> = parts.iter().map(|x| x.on::<Reference>()).collect();
                    let got = B::cat(&ours.iter().collect::<Vec<_>>(), axis);
                    let want = Reference::cat(&theirs.iter().collect::<Vec<_>>(), axis);
                    let context = || format!("cat {dtype} {shape:?} axis {axis} {extents:?}");
                    seen.compare::<B>(context, got, want, &EXACT);
                }
            }
        }
    }
    seen.finish();
}

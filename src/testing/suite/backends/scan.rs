//! Running sums and products along every axis.

use crate::testing::suite::Tested;
use crate::testing::suite::agree::{
    Disagreements, Reference, ReferenceTensor, Tolerance, dtypes, floats,
};
use crate::testing::suite::inputs::{Arrangement, Fill, Input, Rng, SHAPES, Specials};
use crate::testing::suite::is_sampled;
use crate::testing::suite::oracle::{values, wide};
use crate::testing::suite::ulp::unit_roundoff;
use swath::ops::{ScanOp, UnaryOp};
use swath::{Backend, DType, Error, HostData, Scalar, Shape, TensorData};

/// In addition to [`SHAPES`]: bands of columns of every width, columns that are split over threads, blocks of
/// rows.
const MORE: [&[usize]; 5] = [&[9, 37], &[20, 130], &[2, 19, 3], &[3, 17, 150], &[5, 1, 2]];

/// The rounding of the result, and the `f64` error of a sequence of additions (relative to the running sum of
/// magnitudes) or multiplications (relative to the product).
fn tolerance(op: ScanOp, x: &ReferenceTensor, axis: usize, want: &ReferenceTensor) -> Tolerance {
    let dtype = x.dtype();
    if !dtype.is_float() {
        return Tolerance::EXACT;
    }
    let wide = Reference::cast(x, DType::F64).unwrap();
    let sizes = match op {
        ScanOp::Sum => {
            Reference::scan(op, &Reference::unary(UnaryOp::Abs, &wide).unwrap(), axis).unwrap()
        }
        _ => Reference::scan(op, &wide, axis).unwrap(),
    };
    let smallest = crate::testing::suite::ulp::limits(dtype)[0];
    let links = x.shape().dim(axis) as f64;
    let (lost, out) = (links * unit_roundoff(DType::F64), unit_roundoff(dtype));
    // 16-bit results are rounded by way of f32.
    let twice = if dtype.size() == 2 { unit_roundoff(DType::F32) } else { 0.0 };
    let finite = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
    let bound = |(size, want): (f64, f64)| {
        lost * finite(size) + (2.0 * out + twice) * finite(want) + 2.0 * smallest
    };
    Tolerance::absolute(values(&sizes).into_iter().zip(values(want)).map(bound).collect())
}

/// Running products of floats, multiplied one after the other in `f64`, as the kernels do.
fn products(x: &Input, axis: usize) -> ReferenceTensor {
    let (dims, mut totals) = (x.shape.dims(), values(&wide(x)));
    let step: usize = dims[axis + 1..].iter().product();
    for i in 0..totals.len() {
        if !(i / step).is_multiple_of(dims[axis]) {
            totals[i] *= totals[i - step];
        }
    }
    let wide = Reference::from_host(HostData::F64(totals), x.shape).unwrap();
    // 16-bit results are rounded by way of f32.
    let by = if x.dtype().size() == 2 { DType::F32 } else { x.dtype() };
    Reference::cast(&Reference::cast(&wide, by).unwrap(), x.dtype()).unwrap()
}

/// By default every second arrangement for each dtype and shape, alternating with both.
fn scans_agree<B: Tested>(op: ScanOp, fill: Fill) {
    let mut seen = Disagreements::default();
    let mut rng = Rng(17 + op as u64);
    for (d, dtype) in dtypes::<B>().enumerate() {
        for (s, shape) in SHAPES.into_iter().chain(MORE).enumerate() {
            // The time of the reference grows with the square of the extent.
            let step = if shape.iter().product::<usize>() > 300 { 4 } else { 1 };
            let arrangements = Arrangement::ALL.into_iter().step_by(step).enumerate();
            for (_, arrangement) in arrangements.filter(|(i, _)| is_sampled(d + s + i, 2)) {
                for fill in [fill, fill.with(16, Specials::NoHuge)] {
                    let x = Input::new(dtype, shape, arrangement, || fill.draw(&mut rng, dtype));
                    let (ours, theirs) = (x.on::<B>(), x.on::<Reference>());
                    for axis in 0..shape.len() + 1 {
                        let context =
                            || format!("{} {dtype} {shape:?} {arrangement:?} {axis}", op.name());
                        let got = B::scan(op, &ours, axis);
                        let want = match Reference::scan(op, &theirs, axis) {
                            Ok(_) if op == ScanOp::Product && dtype.is_float() => {
                                Ok(products(&x, axis))
                            }
                            want => want,
                        };
                        let tolerance = match &want {
                            Ok(want) => tolerance(op, &theirs, axis, want),
                            Err(_) => Tolerance::EXACT,
                        };
                        seen.compare::<B>(context, got, want, &tolerance);
                    }
                }
            }
        }
    }
    seen.finish();
}

pub fn running_sums_agree<B: Tested>() {
    scans_agree::<B>(ScanOp::Sum, Fill::plain(-4.0, 4.0));
}

pub fn running_products_agree<B: Tested>() {
    scans_agree::<B>(ScanOp::Product, Fill::plain(-1.6, 1.6));
}

pub fn running_products_of_special_values_match_a_sequential_loop<B: Tested>() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let rows = [
        [2.0, -0.0, inf, 1.0],
        [-1.0, inf, -2.0, 0.5],
        [nan, 0.0, 1.0, inf],
        [0.0, -3.0, -2.0, nan],
    ];
    for (dtype, row) in floats::<B>().flat_map(|dtype| rows.map(|row| (dtype, row))) {
        let x = Input::of(dtype, 4, &row.map(Scalar::Float)).on::<B>();
        let y = B::to_host(&B::scan(ScanOp::Product, &x, 0).unwrap()).unwrap();
        let mut want = 1.0;
        for (i, x) in row.into_iter().enumerate() {
            want *= x;
            let y = y.get(i).unwrap().to_f64();
            assert!(y == want || y.is_nan() && want.is_nan(), "{dtype} {row:?}: {y}, not {want}");
        }
    }
}

/// In another order, parts of these would overflow.
pub fn scans_overflow_only_where_a_sequential_loop_does<B: Tested>() {
    let scan = |op, x: Vec<f64>, dtype| {
        let x: Vec<Scalar> = x.into_iter().map(Scalar::Float).collect();
        let x = Input::of(dtype, x.len(), &x).on::<B>();
        B::to_host(&B::scan(op, &x, 0).unwrap()).unwrap()
    };
    let products = scan(ScanOp::Product, [&[0.0][..], &[1e38; 39]].concat(), DType::F32);
    assert!((0..40).all(|i| products.get(i) == Some(Scalar::Float(0.0))), "{products:?}");
    if B::DTYPES.contains(&DType::F64) {
        let sums = scan(ScanOp::Sum, vec![-1.7e308, 1.7e308, 1.7e308], DType::F64);
        assert_eq!(sums, HostData::F64(vec![-1.7e308, 0.0, 1.7e308]));
    }
}

fn sums<B: Tested>(values: Vec<f32>, shape: impl Into<Shape>, axis: usize) -> Vec<f32> {
    let x = B::from_host(HostData::F32(values), shape.into()).unwrap();
    match B::to_host(&B::scan(ScanOp::Sum, &x, axis).unwrap()).unwrap() {
        HostData::F32(values) => values,
        other => panic!("sums of dtype {}", other.dtype()),
    }
}

pub fn sums_of_one_sign_are_within_five_eighths_of_an_ulp<B: Tested>() {
    let n = 1 << 20;
    let values: Vec<f32> = (0..n).map(|i| 0.1 + (i * 7919 % 1000) as f32 * 1e-3).collect();
    let mut exact = 0u128;
    for (x, y) in values.iter().zip(sums::<B>(values.clone(), n, 0)) {
        // Every element is a multiple of 2^-27.
        exact += (f64::from(*x) * 2f64.powi(27)) as u128;
        let want = exact as f64 / 2f64.powi(27);
        let ulp = 2f64.powi(want.log2().floor() as i32 - 23);
        assert!((f64::from(y) - want).abs() <= 0.625 * ulp, "{y} {want}");
    }
}

pub fn every_axis_gives_the_same_bits<B: Tested>() {
    let (rows, cols) = (67, 133);
    let mut rng = Rng(5);
    let fill = Fill::plain(-1e3, 1e3);
    let x: Vec<f32> =
        (0..rows * cols).map(|_| fill.draw(&mut rng, DType::F32).to_f64() as f32).collect();
    let along = sums::<B>(x.clone(), [rows, cols], 1);
    let transposed: Vec<f32> = (0..cols * rows).map(|i| x[i % rows * cols + i / rows]).collect();
    let down = sums::<B>(transposed.clone(), [cols, rows], 0);
    let middle = sums::<B>([transposed.clone(), transposed].concat(), [2, cols, rows], 1);
    for (i, want) in along.into_iter().map(f32::to_bits).enumerate() {
        let (row, col) = (i / cols, i % cols);
        assert_eq!(down[col * rows + row].to_bits(), want);
        assert_eq!(middle[cols * rows + col * rows + row].to_bits(), want);
    }
}

pub fn wrong_axes_are_errors<B: Tested>() {
    let x = B::from_host(HostData::F32(vec![1.0; 4]), Shape::from((2, 2))).unwrap();
    let error = B::scan(ScanOp::Sum, &x, 2).unwrap_err();
    assert!(matches!(error, Error::AxisOutOfRange { op: "cumsum", axis: 2, .. }), "{error}");
}

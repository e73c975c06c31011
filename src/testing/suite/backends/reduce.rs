//! Reductions over every set of axes.

use crate::testing::suite::Tested;
use crate::testing::suite::agree::{
    Disagreements, Reference, ReferenceTensor, Tolerance, dtypes, floats,
};
use crate::testing::suite::inputs::{Arrangement, Fill, Input, Rng, SHAPES, Specials};
use crate::testing::suite::ulp::unit_roundoff;
use swath::ops::{ReduceOp, UnaryOp};
use swath::{Backend, DType, HostData, Scalar, Shape, TensorData};

/// Factor of Σ|x|: 2 u if sums accumulate in a wider type; an f64 sum accumulates rounding errors.
fn sum_bound(dtype: DType) -> f64 {
    unit_roundoff(dtype) * if dtype == DType::F64 { 16.0 } else { 2.0 }
}

/// Magnitudes of the results of a reduction on the reference backend.
fn sizes(op: ReduceOp, x: &ReferenceTensor, axes: &[usize]) -> Vec<f64> {
    let Ok(results) = Reference::reduce(op, x, axes) else { return Vec::new() };
    let sizes = Reference::unary(UnaryOp::Abs, &Reference::cast(&results, DType::F64).unwrap());
    match Reference::to_host(&sizes.unwrap()).unwrap() {
        HostData::F64(sizes) => sizes,
        other => panic!("magnitudes of dtype {}", other.dtype()),
    }
}

fn tolerance(op: ReduceOp, x: &Input, axes: &[usize]) -> Tolerance {
    let dtype = x.dtype();
    let exact = matches!(op, ReduceOp::Norm { p } if p == 0.0 || p.is_infinite());
    if exact || op.needs_elements() || !dtype.is_float() {
        return Tolerance::EXACT;
    }
    let x = x.on::<Reference>();
    let magnitudes = || Reference::unary(UnaryOp::Abs, &Reference::cast(&x, DType::F64).unwrap());
    let (u, wide) = (unit_roundoff(dtype), unit_roundoff(DType::F64));
    let smallest = crate::testing::suite::ulp::limits(dtype)[0];
    let count: usize = axes.iter().map(|&axis| x.shape().dim(axis)).product();
    let bound: Box<dyn Fn(f64) -> f64> = match op {
        // 2 u Σ|x|, or its mean.
        ReduceOp::Sum | ReduceOp::Mean => {
            let sizes = sizes(op, &magnitudes().unwrap(), axes);
            return Tolerance::absolute(
                sizes.iter().map(|size| sum_bound(dtype) * size + smallest).collect(),
            );
        }
        // Wide accumulation with two roundings per factor, and the rounding of the result.
        ReduceOp::Prod => Box::new(move |size| (u + (2 * count) as f64 * wide) * size),
        // Deviations from a rounded mean, in blocks of 1024.
        ReduceOp::Variance { .. } | ReduceOp::Std { .. } => {
            Box::new(move |size| (1.01 * u + 1e4 * wide) * size)
        }
        // The power is the exponential of a multiple of a rounded logarithm.
        ReduceOp::Norm { p: 2.5 } => Box::new(move |size| (u + 100.0 * wide) * size),
        // Exponentials with the precision of the type (16-bit: of f32), then two roundings.
        ReduceOp::LogSumExp => {
            let power = if dtype == DType::F64 { 20.0 * wide } else { 2f64.powi(-22) };
            Box::new(move |size| 1.01 * u * size + power)
        }
        _ => Box::new(move |size| sum_bound(dtype) * size),
    };
    let sizes = sizes(op, &x, axes);
    Tolerance::absolute(sizes.into_iter().map(|size| bound(size) + smallest).collect())
}

fn subsets(rank: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..1usize << rank).map(move |set| (0..rank).filter(|axis| set >> axis & 1 == 1).collect())
}

fn reductions_agree<B: Tested>(op: ReduceOp) {
    let mut seen = Disagreements::default();
    let mut rng = Rng(op.name().len() as u64);
    // Products of many factors must neither overflow nor underflow in any order.
    let is_product = matches!(op, ReduceOp::Prod);
    let plain = if is_product { Fill::plain(0.8, 1.24) } else { Fill::plain(-4.0, 4.0) };
    let special =
        if is_product { plain.with(16, Specials::Signs) } else { plain.with(16, Specials::NoHuge) };
    for dtype in dtypes::<B>() {
        for shape in SHAPES {
            for arrangement in Arrangement::ALL {
                for fill in [plain, special] {
                    let x = Input::new(dtype, shape, arrangement, || fill.draw(&mut rng, dtype));
                    let (ours, theirs) = (x.on::<B>(), x.on::<Reference>());
                    for axes in subsets(shape.len()) {
                        let context = || {
                            format!("{} {dtype} {shape:?} {arrangement:?} axes {axes:?}", op.name())
                        };
                        let got = B::reduce(op, &ours, &axes);
                        let want = Reference::reduce(op, &theirs, &axes);
                        seen.compare::<B>(context, got, want, &tolerance(op, &x, &axes));
                    }
                }
            }
        }
    }
    seen.finish();
}

/// One test per op, so that they run in parallel.
macro_rules! agree {
    ($($test:ident => [$($op:pat_param)|+];)*) => {
        $(
            pub fn $test<B: Tested>() {
                let mut tested = 0;
                for op in ReduceOp::ALL.into_iter().filter(|op| matches!(op, $($op)|+)) {
                    reductions_agree::<B>(op);
                    tested += 1;
                }
                assert!(tested > 0);
            }
        )*

        #[test]
        fn every_reduction_is_tested() {
            for op in ReduceOp::ALL {
                let tested = [$(matches!(op, $($op)|+)),*];
                assert_eq!(tested.iter().filter(|tested| **tested).count(), 1, "{}", op.name());
            }
        }
    };
}

agree! {
    sums_agree => [ReduceOp::Sum];
    products_agree => [ReduceOp::Prod];
    means_agree => [ReduceOp::Mean];
    variances_agree => [ReduceOp::Variance { .. }];
    deviations_agree => [ReduceOp::Std { .. }];
    norms_agree => [ReduceOp::Norm { .. }];
    logarithms_of_sums_of_powers_agree => [ReduceOp::LogSumExp];
    maxima_agree => [ReduceOp::Max];
    minima_agree => [ReduceOp::Min];
    indices_of_extrema_agree => [ReduceOp::ArgMax | ReduceOp::ArgMin];
    any_and_all_agree => [ReduceOp::Any | ReduceOp::All];
}

/// Sums that cancel, overflow in between or lose small terms unless the accumulator is wider.
pub fn sums_of_floats_accumulate_in_f64<B: Tested>() {
    let mut seen = Disagreements::default();
    let mut big = vec![3e38f32; 4000];
    big[1..].iter_mut().step_by(2).for_each(|x| *x = -3e38);
    big[3999] = 1.0;
    let mut small = vec![1e-8f32; 5000];
    small[0] = 1.0;
    let mut cases = vec![("absorbing", small)];
    if B::WIDE == DType::F64 {
        cases.extend([("cancelling", big), ("huge", vec![3e38f32; 4])]);
    }
    for (name, values) in cases {
        let shape: Shape = values.len().into();
        let data = || HostData::F32(values.clone());
        let sizes: f64 = values.iter().map(|&x| f64::from(x.abs())).sum();
        for op in [ReduceOp::Sum, ReduceOp::Mean] {
            let count = if op == ReduceOp::Mean { values.len() as f64 } else { 1.0 };
            let bound = sizes / count * unit_roundoff(DType::F64) * 64.0;
            // Error of the accumulator and rounding of the result.
            let tolerance = Tolerance { ulp: 1, absolute: vec![bound] };
            let got = B::reduce(op, &B::from_host(data(), shape).unwrap(), &[0]);
            let want = Reference::reduce(op, &Reference::from_host(data(), shape).unwrap(), &[0]);
            seen.compare::<B>(|| format!("{} {name}", op.name()), got, want, &tolerance);
        }
    }
    seen.finish();
}

/// Zeros, infinities and NaN among factors give the results of plain multiplication; norms with magnitudes
/// near the limits of f64.
pub fn reductions_agree_at_the_edges<B: Tested>() {
    let mut seen = Disagreements::default();
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let rows: [&[f64]; 12] = [
        &[0.0, -2.0, 3.0],
        &[0.0, 0.0, 1.0],
        &[inf, 0.0, 1.0],
        &[inf, -1.0, 2.0],
        &[nan, 0.0, 1.0],
        &[-inf, -inf, -inf],
        &[inf, -inf, 0.0],
        &[0.0, -0.0, 0.0],
        &[-0.0, 0.0, -0.0],
        &[1.0, nan, nan],
        &[3e38, -3e38, 3e38],
        &[1e-40, 1e-42, 0.0],
    ];
    // Sums of f32 in f32 may overflow on the way, and devices may take subnormal numbers for 0.
    let is_in_range = |x: f64| x == 0.0 || !x.is_finite() || (1e-30..1e30).contains(&x.abs());
    for dtype in floats::<B>() {
        for row in rows {
            if B::WIDE != DType::F64 && !row.iter().all(|&x| is_in_range(x)) {
                continue;
            }
            let values: Vec<Scalar> = row.iter().map(|&x| Scalar::Float(x)).collect();
            let x = Input::of(dtype, row.len(), &values);
            for op in ReduceOp::ALL {
                let context = || format!("{} {dtype} {row:?}", op.name());
                let got = B::reduce(op, &x.on::<B>(), &[0]);
                let want = Reference::reduce(op, &x.on::<Reference>(), &[0]);
                seen.compare::<B>(context, got, want, &tolerance(op, &x, &[0]));
            }
        }
    }
    let extremes = [1e300, -1e300, 5e-324, 1e-300, 1e-160, 1e160, 3.0];
    for a in extremes.into_iter().filter(|_| B::DTYPES.contains(&DType::F64)) {
        for b in extremes {
            let x = Input::of(DType::F64, 2, &[Scalar::Float(a), Scalar::Float(b)]);
            for p in [1.0, 2.0, 2.5, -1.5, 0.5, inf, -inf] {
                let op = ReduceOp::Norm { p };
                let context = || format!("norm {p} of {a} and {b}");
                let got = B::reduce(op, &x.on::<B>(), &[0]);
                let want = Reference::reduce(op, &x.on::<Reference>(), &[0]);
                let bound = sizes(op, &x.on::<Reference>(), &[0])[0] * 1e-13;
                let tolerance = Tolerance { ulp: 1, absolute: vec![bound] };
                seen.compare::<B>(context, got, want, &tolerance);
            }
        }
    }
    seen.finish();
}

//! Reductions over every set of axes.

use swath::ops::{ReduceOp, UnaryOp};
use swath::{Backend, DType, HostData, Shape};

use crate::Subject;
use crate::agree::{Disagreements, Reference, ReferenceTensor, Tolerance};
use crate::inputs::{Arrangement, Fill, Input, Rng, SHAPES, Specials};
use crate::ulp::unit_roundoff;

/// 2 u Σ|x| where sums accumulate in a wider type; an f64 sum adds its rounding errors up.
fn sum_bound(dtype: DType) -> f64 {
    unit_roundoff(dtype) * if dtype == DType::F64 { 16.0 } else { 2.0 }
}

/// Σ|x| (or its mean) of the finite elements, per element of the result.
fn magnitudes(op: ReduceOp, x: &ReferenceTensor, axes: &[usize]) -> Vec<f64> {
    let wide = Reference::cast(x, DType::F64).unwrap();
    let sizes = Reference::reduce(op, &Reference::unary(UnaryOp::Abs, &wide).unwrap(), axes);
    match Reference::to_host(&sizes.unwrap()).unwrap() {
        HostData::F64(sizes) => sizes,
        other => panic!("magnitudes of dtype {}", other.dtype()),
    }
}

fn tolerance(op: ReduceOp, x: &Input, axes: &[usize]) -> Tolerance {
    let dtype = x.dtype();
    if matches!(op, ReduceOp::Max | ReduceOp::Min) || !dtype.is_float() {
        return Tolerance::EXACT;
    }
    let sizes = magnitudes(op, &x.on::<Reference>(), axes);
    let smallest = crate::ulp::limits(dtype)[0];
    Tolerance::absolute(sizes.iter().map(|size| sum_bound(dtype) * size + smallest).collect())
}

fn subsets(rank: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..1usize << rank).map(move |set| (0..rank).filter(|axis| set >> axis & 1 == 1).collect())
}

fn reductions_agree<B: Backend>(op: ReduceOp) {
    let mut seen = Disagreements::default();
    let mut rng = Rng(op as u64);
    let plain = Fill::plain(-4.0, 4.0);
    for dtype in DType::ALL {
        for shape in SHAPES {
            for arrangement in Arrangement::ALL {
                for fill in [plain, plain.with(16, Specials::NoHuge)] {
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

#[test]
fn sums_agree() {
    reductions_agree::<Subject>(ReduceOp::Sum);
}

#[test]
fn means_agree() {
    reductions_agree::<Subject>(ReduceOp::Mean);
}

#[test]
fn maxima_agree() {
    reductions_agree::<Subject>(ReduceOp::Max);
}

#[test]
fn minima_agree() {
    reductions_agree::<Subject>(ReduceOp::Min);
}

#[test]
fn every_reduction_is_tested() {
    assert_eq!(ReduceOp::ALL.len(), 4);
}

/// Sums that cancel, overflow on the way or lose small terms, unless the accumulator is wider.
fn hard_sums_agree<B: Backend>() {
    let mut seen = Disagreements::default();
    let mut big = vec![3e38f32; 4000];
    big[1..].iter_mut().step_by(2).for_each(|x| *x = -3e38);
    big[3999] = 1.0;
    let mut small = vec![1e-8f32; 5000];
    small[0] = 1.0;
    for (name, values) in [("cancelling", big), ("absorbing", small), ("huge", vec![3e38f32; 4])] {
        let shape: Shape = values.len().into();
        let data = || HostData::F32(values.clone());
        let sizes: f64 = values.iter().map(|&x| f64::from(x.abs())).sum();
        for op in [ReduceOp::Sum, ReduceOp::Mean] {
            let count = if op == ReduceOp::Mean { values.len() as f64 } else { 1.0 };
            let bound = sizes / count * unit_roundoff(DType::F64) * 64.0;
            // The accumulator's error and the rounding of the result.
            let tolerance = Tolerance { ulp: 1, absolute: vec![bound] };
            let got = B::reduce(op, &B::from_host(data(), shape).unwrap(), &[0]);
            let want = Reference::reduce(op, &Reference::from_host(data(), shape).unwrap(), &[0]);
            seen.compare::<B>(|| format!("{} {name}", op.name()), got, want, &tolerance);
        }
    }
    seen.finish();
}

#[test]
fn sums_of_floats_accumulate_in_f64() {
    hard_sums_agree::<Subject>();
}

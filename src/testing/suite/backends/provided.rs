//! Provided methods, composed of the required ones: broadcasting, `sum_to`, reshapes, edge cases.

use crate::testing::suite::Tested;
use crate::testing::suite::agree::{Disagreements, Reference, Tolerance, dtypes};
use crate::testing::suite::inputs::{Arrangement, Fill, Input, Rng};
use swath::{Backend, DType, Error, HostData, Result, Shape, TensorData};

/// A provided method; methods of one tensor take the first.
#[derive(Clone, Copy, Debug)]
enum Provided {
    Add,
    Sub,
    Mul,
    Div,
    Eq,
    ReshapeToRow,
    SumTo(&'static [usize]),
    Transpose,
    Sum(Option<&'static [usize]>, bool),
    Mean(Option<&'static [usize]>, bool),
    Max(Option<&'static [usize]>, bool),
}

impl Provided {
    fn call<B: Backend>(&self, x: &B::Tensor, y: &B::Tensor) -> Result<B::Tensor> {
        match *self {
            Provided::Add => B::add(x, y),
            Provided::Sub => B::sub(x, y),
            Provided::Mul => B::mul(x, y),
            Provided::Div => B::div(x, y),
            Provided::Eq => B::eq(x, y),
            Provided::ReshapeToRow => B::reshape(x, [1, x.numel()]),
            Provided::SumTo(shape) => B::sum_to(x, &shape.into()),
            Provided::Transpose => B::transpose(x, None),
            Provided::Sum(axes, keepdims) => B::sum(x, axes, keepdims),
            Provided::Mean(axes, keepdims) => B::mean(x, axes, keepdims),
            Provided::Max(axes, keepdims) => B::max(x, axes, keepdims),
        }
    }
}

const PROVIDED: [Provided; 19] = [
    Provided::Add,
    Provided::Sub,
    Provided::Mul,
    Provided::Div,
    Provided::Eq,
    Provided::ReshapeToRow,
    Provided::SumTo(&[4, 3, 5]),
    Provided::SumTo(&[1, 5]),
    Provided::SumTo(&[3, 1]),
    Provided::SumTo(&[]),
    Provided::SumTo(&[2, 5]),
    Provided::Transpose,
    Provided::Sum(None, false),
    Provided::Sum(Some(&[2, 0]), true),
    Provided::Sum(Some(&[2, 2]), true),
    Provided::Mean(Some(&[1]), false),
    Provided::Mean(Some(&[3]), false),
    Provided::Max(None, true),
    Provided::Max(Some(&[0, 1]), false),
];

pub fn provided_functions_agree<B: Tested>() {
    let mut rng = Rng(1);
    let mut seen = Disagreements::default();
    let fill = Fill::plain(0.5, 2.0);
    let shapes: [&[usize]; 7] = [&[], &[5], &[1, 5], &[3, 1], &[4, 3, 1], &[4, 3, 5], &[2]];
    for dtype in dtypes::<B>() {
        for other in [dtype, DType::Bool, DType::F32] {
            for arrangement in Arrangement::ALL {
                for shape in shapes {
                    let x =
                        Input::new(dtype, [4, 3, 5], arrangement, || fill.draw(&mut rng, dtype));
                    let y = Input::new(other, shape, arrangement, || fill.draw(&mut rng, other));
                    for function in PROVIDED {
                        let got = function.call::<B>(&x.on::<B>(), &y.on::<B>());
                        let (x, y) = (x.on::<Reference>(), y.on::<Reference>());
                        let want = function.call::<Reference>(&x, &y);
                        // All terms are positive: a few ULP cover every order of addition.
                        let tolerance = match function {
                            Provided::Sum(..) | Provided::Mean(..) | Provided::SumTo(_) => 2,
                            _ => 0,
                        };
                        let context =
                            || format!("{function:?} {dtype} {arrangement:?} {other} {shape:?}");
                        seen.compare::<B>(context, got, want, &Tolerance::ulp(tolerance));
                    }
                }
            }
        }
    }
    seen.finish();
}

/// Expected values are written out, so that an error which both backends share fails too.
pub fn edges_are_as_documented<B: Tested>() {
    let x = |values: &[f32]| B::from_vec(values.to_vec(), values.len()).unwrap();
    let host = |x: Result<B::Tensor>| B::to_host(&x.unwrap()).unwrap();
    assert_eq!(host(B::sum(&x(&[]), None, false)), HostData::F32(vec![0.0]));
    assert!(host(B::mean(&x(&[]), None, false)).get(0).unwrap().to_f64().is_nan());
    assert!(matches!(B::max(&x(&[]), None, false), Err(Error::EmptyReduction { op: "max", .. })));
    assert!(host(B::max(&x(&[1.0, f32::NAN, 2.0]), None, false)).get(0).unwrap().to_f64().is_nan());
    if B::WIDE == DType::F64 {
        assert_eq!(host(B::mean(&x(&[3e38; 4]), None, false)), HostData::F32(vec![3e38]));
    }
    let zero = host(B::max(&x(&[-0.0, 0.0]), None, false)).get(0).unwrap();
    assert_eq!(zero.to_f64().to_bits(), 0);

    let flags = B::from_host(HostData::Bool(vec![true, false, true]), 3.into()).unwrap();
    assert_eq!(host(B::sum(&flags, None, false)), HostData::I64(vec![2]));
    assert_eq!(host(B::mul(&x(&[5.0, 6.0, 7.0]), &flags)), HostData::F32(vec![5.0, 0.0, 7.0]));
    let wrapping = B::from_host(HostData::I64(vec![i64::MAX, 1]), 2.into()).unwrap();
    assert_eq!(host(B::sum(&wrapping, None, false)), HostData::I64(vec![i64::MIN]));
    let bytes = B::from_host(HostData::U8(vec![200, 100]), 2.into()).unwrap();
    assert_eq!(host(B::sum(&bytes, None, false)), HostData::I64(vec![300]));
    assert_eq!(host(B::add(&bytes, &bytes)), HostData::U8(vec![144, 200]));

    let mismatch = B::add(&x(&[1.0, 2.0]), &x(&[1.0, 2.0, 3.0]));
    let (lhs, rhs) = (Shape::new([2]), Shape::new([3]));
    assert_eq!(mismatch.unwrap_err(), Error::ShapeMismatch { op: "add", lhs, rhs });
    let mismatch = B::add(&x(&[1.0, 2.0]), &bytes);
    assert!(matches!(mismatch, Err(Error::DTypeMismatch { op: "add", .. })));
    assert!(matches!(B::from_vec(vec![1.0], [2, 3]), Err(Error::LengthMismatch { .. })));
    assert!(matches!(B::zeros([usize::MAX, 2]), Err(Error::Overflow { .. })));
}

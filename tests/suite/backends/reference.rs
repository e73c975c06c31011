//! The reference backend, the oracle of the other tests, against values that are written out.

use crate::testing::suite::backends::{movement, provided};
use swath::ops::ReduceOp;
use swath::{Backend, DType, Scalar, TensorData};

use crate::support::agree::Reference;
use crate::support::inputs::Input;

#[test]
fn edges_are_as_documented_on_the_reference() {
    provided::edges_are_as_documented::<Reference>();
}

/// The other tests compare refused dtypes, since they run every dtype; this one checks that the reference
/// backend refuses those that the contract excludes.
#[test]
fn the_reference_refuses_what_is_undefined() {
    for dtype in DType::ALL {
        let x = Input::of(dtype, 2, &[Scalar::Int(1), Scalar::Int(2)]).on::<Reference>();
        let arithmetic = dtype != DType::Bool;
        assert_eq!(Reference::add(&x, &x).is_ok(), arithmetic, "{dtype}");
        assert_eq!(Reference::neg(&x).is_ok(), arithmetic, "{dtype}");
        assert_eq!(Reference::exp(&x).is_ok(), dtype.is_float(), "{dtype}");
        assert_eq!(Reference::mean(&x, None, false).is_ok(), dtype.is_float(), "{dtype}");
        let sum = Reference::reduce(ReduceOp::Sum, &x, &[0]).unwrap();
        assert_eq!(sum.dtype(), dtype.accumulated());
    }
}

#[test]
fn sums_of_16_bit_floats_do_not_stagnate_on_the_reference() {
    movement::sums_of_16_bit_floats_do_not_stagnate::<Reference>();
}

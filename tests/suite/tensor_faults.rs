//! Faults of tensor methods: operands of two devices, numbers at the ends of their types, gradients of parts, indices
//! from the end, infinities.

mod devices;
mod extents;
mod indices;
mod infinities;
mod manners;
mod parts;

use swath::prelude::*;

type T = Tensor<CpuBackend>;

fn floats<B: Backend>(values: &[f64]) -> Tensor<B> {
    Tensor::from_slice(values, values.len()).unwrap()
}

fn integers<B: Backend>(values: &[i64]) -> Tensor<B> {
    Tensor::from_slice(values, values.len()).unwrap()
}

fn values<B: Backend>(x: &Tensor<B>) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

/// Fails unless all numbers are equal; NaN equals itself.
#[track_caller]
fn assert_same(found: &[f64], expected: &[f64], context: &str) {
    let is_same = |(x, y): (&f64, &f64)| x == y || (x.is_nan() && y.is_nan());
    let all = found.len() == expected.len() && found.iter().zip(expected).all(is_same);
    assert!(all, "{context}: {found:?}, not {expected:?}");
}

fn text<V>(result: Result<V>) -> String {
    result.err().expect("should be an error").to_string()
}

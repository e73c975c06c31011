//! Compares the reference backend with values computed by hand.

use super::*;

type R = ReferenceBackend;

fn tensor<T: Element>(values: &[T], shape: impl Into<Shape>) -> ReferenceTensor {
    R::from_host(T::into_host(values.to_vec()), shape.into()).unwrap()
}

fn values<T: Element>(x: &ReferenceTensor) -> Vec<T> {
    T::from_host(R::to_host(x).unwrap()).unwrap()
}

#[test]
fn positions_and_indices_are_inverse() {
    let shape = Shape::new([2, 3, 4]);
    assert_eq!(ravel(&[1, 2, 3], &shape), 23);
    assert_eq!(ravel(&[1, 0, 2], &shape), 14);
    assert!((0..24).all(|i| ravel(&unravel(i, &shape), &shape) == i));
    assert_eq!(ravel(&[], &Shape::scalar()), 0);
}

#[test]
fn views_have_the_elements_at_their_indices() {
    let x = tensor(&[0i64, 1, 2, 3, 4, 5], [2, 3]);
    let turned = R::view(&x, x.layout().permute("t", &[1, 0]).unwrap()).unwrap();
    assert_eq!(values::<i64>(&turned), [0, 3, 1, 4, 2, 5]);
    let flipped = R::view(&x, x.layout().flip(1)).unwrap();
    assert_eq!(values::<i64>(&flipped), [2, 1, 0, 5, 4, 3]);
    let outside = Layout::contiguous(Shape::new([7]));
    assert!(matches!(R::view(&x, outside), Err(Error::InvalidArgument { .. })));
}

#[test]
fn sums_keep_rounding_errors() {
    assert_eq!(exact::sum([1.0, 1e100, 1.0, -1e100]), 2.0);
    assert_eq!(exact::sum([]), 0.0);
    assert!(exact::sum([f64::INFINITY, f64::NEG_INFINITY]).is_nan());
    assert_eq!(exact::sum([f64::INFINITY, 1.0]), f64::INFINITY);
    let tiny = 1.0 + f64::EPSILON;
    assert_eq!(exact::dot([(tiny, tiny), (-1.0, 1.0)]), 2.0 * f64::EPSILON + f64::EPSILON.powi(2));
    let mean = R::reduce(ReduceOp::Mean, &tensor(&[3e38f32; 4], 4), &[0]).unwrap();
    assert_eq!(values::<f32>(&mean), [3e38]);
}

#[test]
fn matrix_products_match_hand_computed_values() {
    let a = tensor(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]);
    let b = tensor(&[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0], [3, 2]);
    assert_eq!(values::<f32>(&R::matmul(&a, &b).unwrap()), [4.0, 5.0, 10.0, 11.0]);
    let (a, b) = (tensor::<f64>(&[], [2, 0]), tensor::<f64>(&[], [0, 1]));
    assert_eq!(values::<f64>(&R::matmul(&a, &b).unwrap()), [0.0, 0.0]);
    assert!(matches!(R::matmul(&a, &a), Err(Error::ShapeMismatch { .. })));
}

#[test]
fn numbers_are_converted_to_the_tensors_dtype() {
    let x = tensor(&[0.1f32, 0.2], 2);
    let same = R::compare(CompareOp::Eq, &x, Arg::Scalar(Scalar::Float(0.1))).unwrap();
    assert_eq!(values::<bool>(&same), [true, false]);
}

#[test]
fn gather_scatter_add_and_cat_match_hand_computed_values() {
    let x = tensor(&[10i64, 11, 12, 20, 21, 22], [2, 3]);
    let index = tensor(&[2i64, 0, 1, 1], [2, 2]);
    assert_eq!(values::<i64>(&R::gather(&x, 1, &index).unwrap()), [12, 10, 21, 21]);
    let source = tensor(&[1i64, 2, 3, 4], [2, 2]);
    let added = R::scatter_add(&x, 1, &index, &source).unwrap();
    assert_eq!(values::<i64>(&added), [12, 11, 13, 20, 28, 22]);
    let outside = tensor(&[0i64, 3], [2, 1]);
    let gathered = R::gather(&x, 1, &outside);
    assert!(matches!(gathered, Err(Error::IndexOutOfRange { index: 3, axis: 1, .. })));
    let joined = R::cat(&[&x, &source], 1).unwrap();
    assert_eq!(values::<i64>(&joined), [10, 11, 12, 1, 2, 20, 21, 22, 3, 4]);
    assert_eq!(joined.shape(), &Shape::new([2, 5]));

    // 1 + 2^-24 rounds back to 1 each time, as additions are rounded one by one.
    let (one, step) = (tensor(&[1.0f32], 1), tensor(&[2f32.powi(-24); 2], 2));
    let twice = R::scatter_add(&one, 0, &tensor(&[0i64, 0], 2), &step).unwrap();
    assert_eq!(values::<f32>(&twice), [1.0]);
}

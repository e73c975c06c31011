//! Matrices and vectors of nalgebra.

use nalgebra::{DMatrix, DVector, RowDVector};
use swath::cpu::prelude::Tensor;

use super::layouts;

#[test]
fn owned_matrices_go_in_and_out_without_a_copy() {
    let matrix = DMatrix::from_fn(100, 70, |i, j| (1000 * i + j) as f64);
    let (first, copy) = (matrix.as_ptr(), matrix.clone());
    let x = Tensor::from_nalgebra(matrix).unwrap();
    assert_eq!((x.dims(), x.layout().strides()), (&[100, 70][..], &[1, 100][..]));
    assert_eq!(x.view::<f64>().unwrap().storage().as_ptr(), first);
    assert_eq!(x.view::<f64>().unwrap().get(&[3, 4]), Some(3004.0));
    let matrix = x.into_nalgebra::<f64>().unwrap();
    assert_eq!((matrix.as_ptr(), &matrix), (first, &copy));
}

#[test]
fn vectors_have_one_axis_and_rows_two() {
    let x = Tensor::from_nalgebra(DVector::from_vec(vec![1.0f32, 2.0, 3.0])).unwrap();
    assert_eq!((x.dims(), x.to_vec::<f32>().unwrap()), (&[3][..], vec![1.0, 2.0, 3.0]));
    assert_eq!(x.view::<f32>().unwrap().nalgebra().unwrap().shape(), (3, 1));
    assert_eq!(x.into_nalgebra::<f32>().unwrap().as_slice(), [1.0, 2.0, 3.0]);
    let x = Tensor::from_nalgebra(RowDVector::from_vec(vec![1.0f32, 2.0])).unwrap();
    assert_eq!(x.dims(), [1, 2]);
    for (rows, columns) in [(0, 0), (0, 3), (3, 0), (1, 1), (1, 3)] {
        let matrix = DMatrix::from_element(rows, columns, 2.0f32);
        let x = Tensor::from_nalgebra(matrix.clone()).unwrap();
        assert_eq!(x.dims(), [rows, columns]);
        assert_eq!(x.view::<f32>().unwrap().nalgebra().unwrap(), matrix);
        assert_eq!(x.into_nalgebra::<f32>().unwrap(), matrix);
    }
}

#[test]
fn views_of_any_layout_but_negative_strides_are_matrices() {
    for x in layouts() {
        let expected =
            DMatrix::from_row_slice(x.dims()[0], x.dims()[1], &x.to_vec::<f32>().unwrap());
        match x.view::<f32>().unwrap().nalgebra() {
            Ok(matrix) => assert_eq!(matrix, expected),
            Err(error) => {
                assert!(x.layout().strides().iter().any(|&stride| stride < 0));
                assert!(
                    error
                        .to_string()
                        .starts_with("nalgebra: nalgebra has no negative strides, got [")
                );
            }
        }
        assert_eq!(x.into_nalgebra::<f32>().unwrap(), expected);
    }
    let cube = Tensor::ones((2, 2, 2), swath::DType::F32).unwrap();
    let error = cube.view::<f32>().unwrap().nalgebra().unwrap_err();
    assert_eq!(error.to_string(), "nalgebra: shape [2, 2, 2]: a matrix has two axes");
    assert!(cube.into_nalgebra::<f32>().is_err());
}

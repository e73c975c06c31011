//! Invalid views and mismatched operands: errors that name the call and the shapes.

use swath_kernels::{Bias, Epilogue, Gemm, GemmError, MatMut, MatRef, Workspace, gemm};

#[test]
fn invalid_views_are_errors_that_name_the_shapes() {
    let data = [0.0f32; 12];
    for (offset, shape, strides) in [
        (0, [3, 5], [5, 1]),
        (1, [3, 4], [4, 1]),
        (0, [2, 2], [-1, 1]),
        (usize::MAX, [1, 1], [1, 1]),
        (0, [usize::MAX, 2], [1, 1]),
        (0, [3, 3], [isize::MAX, isize::MAX]),
        (0, [2, 2], [isize::MIN, 1]),
    ] {
        let error = MatRef::new(&data, offset, shape, strides).unwrap_err();
        assert_eq!(error, GemmError::OutOfBounds { offset, shape, strides, len: 12 });
        assert!(error.to_string().contains(&format!("{shape:?}")), "{error}");
    }
    assert!(MatRef::new(&data, 99, [0, usize::MAX], [isize::MAX, isize::MIN]).is_ok());
    assert!(MatRef::new(&data, 11, [3, 4], [-4, -1]).is_ok());

    let mut data = [0.0f32; 12];
    for strides in [[0, 1], [1, 0], [1, 1], [2, 1], [-1, 1], [1, 2]] {
        let error = MatMut::new(&mut data, 4, [3, 3], strides).unwrap_err();
        assert_eq!(error, GemmError::Overlap { shape: [3, 3], strides });
    }
    assert!(MatMut::new(&mut data, 0, [1, 3], [0, 1]).is_ok());
    assert!(MatMut::new(&mut data, 0, [3, 2], [2, 1]).is_ok());

    let (a, b) = ([0.0f32; 6], [0.0f32; 8]);
    let product =
        Gemm::new(MatRef::row_major(&a, [2, 3]).unwrap(), MatRef::row_major(&b, [4, 2]).unwrap());
    let c = MatMut::row_major(&mut data, [2, 2]).unwrap();
    let error = gemm(product, c, &mut Workspace::new()).unwrap_err();
    assert_eq!(error, GemmError::ShapeMismatch { a: [2, 3], b: [4, 2], c: [2, 2] });
    assert_eq!(
        error.to_string(),
        "gemm: the product of [2, 3] and [4, 2] does not have the shape [2, 2]"
    );
}

#[test]
fn mismatched_operands_are_errors() {
    let (a, mut c, mut z) = ([1f32; 6], [0f32; 4], [0f32; 6]);
    let a = MatRef::row_major(&a, [2, 3]).unwrap();
    let error = |shape| GemmError::ShapeMismatch { a: [2, 3], b: [3, 2], c: shape };
    let out = MatMut::row_major(&mut c, [2, 2]).unwrap();
    let found = gemm(
        Gemm { epilogue: Bias::PerColumn(&[0.0; 3]).into(), ..Gemm::new(a, a.t()) },
        out,
        &mut Workspace::new(),
    )
    .unwrap_err();
    assert_eq!(found, GemmError::BiasLength { len: 3, expected: 2 });
    assert_eq!(found.to_string(), "gemm: expected a bias of 2 elements, got 3");

    let out = MatMut::row_major(&mut c, [2, 2]).unwrap();
    let sums = Some(MatMut::row_major(&mut z, [2, 3]).unwrap());
    let epilogue = Epilogue { sums, ..Epilogue::default() };
    assert_eq!(
        gemm(Gemm { epilogue, ..Gemm::new(a, a.t()) }, out, &mut Workspace::new()),
        Err(error([2, 3]))
    );
}

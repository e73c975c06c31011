//! Matrices of faer, and the derivatives of its solutions.

use faer::Mat;
use swath::cpu::prelude::*;

use super::layouts;
use super::solve_faer::{Cholesky, Solve};

#[test]
fn matrices_come_in() {
    for (rows, columns) in [(0, 0), (0, 3), (3, 0), (1, 1), (1, 3), (5, 2), (67, 129)] {
        let matrix = Mat::from_fn(rows, columns, |i, j| (1000 * i + j) as f64);
        let x = Tensor::from_faer(matrix.as_ref()).unwrap();
        let y = Tensor::from_faer(matrix.transpose().reverse_rows()).unwrap();
        assert_eq!((x.dims(), y.dims()), (&[rows, columns][..], &[columns, rows][..]));
        let expected = (0..rows).flat_map(|i| (0..columns).map(move |j| (1000 * i + j) as f64));
        assert!(x.view::<f64>().unwrap().iter().eq(expected));
        assert_eq!(x.to_faer::<f64>().unwrap(), matrix);
        assert_eq!(y.to_faer::<f64>().unwrap(), matrix.transpose().reverse_rows());
    }
}

#[test]
fn views_with_adjacent_rows_or_columns_are_matrices() {
    let mut refused = 0;
    for x in layouts() {
        let values = x.to_vec::<f32>().unwrap();
        let expected = Mat::from_fn(x.dims()[0], x.dims()[1], |i, j| values[i * x.dims()[1] + j]);
        assert_eq!(x.to_faer::<f32>().unwrap(), expected);
        match x.view::<f32>().unwrap().faer() {
            Ok(matrix) => assert_eq!(matrix, expected),
            Err(error) => {
                refused += 1;
                assert!(x.layout().strides().iter().all(|stride| stride.abs() != 1));
                assert!(error.to_string().contains("call contiguous()"), "{error}");
            }
        }
    }
    assert_eq!(refused, 3);
    let error = tensor![1.0].view::<f32>().unwrap().faer().unwrap_err();
    assert_eq!(error.to_string(), "faer: shape [1]: a matrix has two axes");
}

fn drawn(shape: [usize; 2], seed: u64) -> Tensor {
    Tensor::rand(shape, -1.0..1.0, &mut Rng::seed(seed)).unwrap().to_dtype(DType::F64).unwrap()
}

/// A tensor with as many different weights as `x` has elements, so that no element's gradient is hidden.
fn weighted(x: &Tensor) -> Result<Tensor> {
    let weights = Tensor::arange_as(1.0, 1.0 + x.numel() as f64, 1.0, DType::F64)?;
    x.mul(&weights.reshape(*x.shape())?.sin()?)?.sum(None, false)
}

#[test]
fn solutions_have_first_and_second_derivatives() {
    for (n, m) in [(1, 1), (3, 2), (4, 1)] {
        let a =
            drawn([n, n], 1).add(Tensor::eye(n, DType::F64).unwrap().mul(2.0).unwrap()).unwrap();
        let (a, b) = (a.requires_grad(), drawn([n, m], 2).requires_grad());
        let options = GradCheck { order: 2, ..Default::default() };
        let f = |xs: &[Tensor]| weighted(&Tensor::apply(&Solve, &[&xs[0], &xs[1]])?);
        check_gradients(f, &[&a, &b], options).unwrap();
        // Operands in other layouts.
        let f = |xs: &[Tensor]| {
            weighted(&Tensor::apply(&Solve, &[&xs[0].t()?.flip(0)?, &xs[1].flip(0)?])?)
        };
        check_gradients(f, &[&a, &b], options).unwrap();
    }
}

#[test]
fn choleskys_factor_has_first_and_second_derivatives() {
    for n in [1, 2, 4] {
        let w = drawn([n, n], 3).requires_grad();
        let options = GradCheck { order: 2, ..Default::default() };
        let f = |xs: &[Tensor]| {
            let a = xs[0].matmul(&xs[0].t()?)?.add(Tensor::eye(n, DType::F64)?)?;
            weighted(&Tensor::apply(&Cholesky, &[&a])?)
        };
        check_gradients(f, &[&w], options).unwrap();
    }
}

#[test]
fn faers_failures_are_errors() {
    let ones = Tensor::ones((2, 2), DType::F64).unwrap();
    let error = Tensor::apply(&Solve, &[&ones, &ones]).unwrap_err();
    assert_eq!(error.to_string(), "solve: the matrix of shape [2, 2] is singular");
    let error = Tensor::apply(&Cholesky, &[&ones.neg().unwrap()]).unwrap_err();
    assert!(
        error.to_string().starts_with("cholesky: the matrix is not positive definite"),
        "{error}"
    );
    assert!(Tensor::apply(&Solve, &[&ones, &drawn([3, 1], 1)]).is_err());
}

/// `torch.linalg.solve` and `torch.linalg.cholesky` of PyTorch 2.15, and their gradients.
#[test]
fn values_and_gradients_are_pytorchs() {
    let a = tensor![f64; [4.0, 1.0], [1.0, 3.0]].requires_grad();
    let b = tensor![f64; [1.0], [2.0]].requires_grad();
    let y = Tensor::apply(&Solve, &[&a, &b]).unwrap();
    let grads = y.square().unwrap().sum(None, false).unwrap().backward().unwrap();
    let close =
        |x: &Tensor, expected: Tensor| assert!(x.allclose(&expected, 1e-12, 1e-14).unwrap(), "{x}");
    close(&y.detach(), tensor![f64; [0.09090909090909091], [0.6363636363636364]]);
    close(
        grads.wrt(&a).unwrap(),
        tensor![f64; [0.006010518407212622, 0.042073628850488355], [-0.0405709992486852, -0.28399699474079637]],
    );
    close(grads.wrt(&b).unwrap(), tensor![f64; [-0.06611570247933884], [0.4462809917355372]]);
    let l = Tensor::apply(&Cholesky, &[&a]).unwrap();
    let weights = tensor![f64; [1.0, 0.0], [2.0, 3.0]];
    let grads = l.mul(&weights).unwrap().sum(None, false).unwrap().backward().unwrap();
    close(&l.detach(), tensor![f64; [2.0, 0.0], [0.5, 1.6583123951777]]);
    close(
        grads.wrt(&a).unwrap(),
        tensor![f64; [0.18153337710833067, 0.2738664915666773], [0.2738664915666773, 0.9045340337332909]],
    );
}

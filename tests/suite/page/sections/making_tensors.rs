//! Making tensors. Written by `tests/vectors/check_page.py`.

use crate::page::{found, row};
use swath::cpu::prelude::*;

pub fn rows() -> Result<()> {
    let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    let ids = tensor![i64; 1, 2];
    let (data, values) = (vec![0.5f64; 6], [1.0f32, 2.0, 3.0, 4.0]);
    let y = Tensor::from_vec(data, (2, 3))?;
    let dtype = DType::BF16;
    let mut rng = Rng::seed(1);
    let uniform = Tensor::rand((2, 3), 0.0..1.0, &mut rng)?;
    let normal = Tensor::randn((2, 3), &mut rng)?;
    row(
        "`np.array([[1, 2], [3, 4]], dtype=np.float32)` `torch.tensor([[1., 2.], [3., 4.]])` `tensor![[1.0, 2.0], [3.0, 4.0]]`",
        &[found(&(tensor![[1.0, 2.0], [3.0, 4.0]]))],
        &["[2, 2]: 1 2 3 4", "[2, 2]: 1 2 3 4"],
    );
    row(
        "`np.array([1, 2])` `torch.tensor([1, 2])` `tensor![i64; 1, 2]`",
        &[found(&(tensor![i64; 1, 2]))],
        &["[2]: 1 2", "[2]: 1 2"],
    );
    row(
        "`np.zeros((2, 3))` `torch.zeros(2, 3)` `Tensor::zeros((2, 3), DType::F32)?`",
        &[found(&(Tensor::zeros((2, 3), DType::F32)?))],
        &["[2, 3]: 0 0 0 0 0 0", "[2, 3]: 0 0 0 0 0 0"],
    );
    row(
        "`torch.ones(2, 3, dtype=torch.float64)` `Tensor::ones((2, 3), DType::F64)?`",
        &[found(&(Tensor::ones((2, 3), DType::F64)?))],
        &["[2, 3]: 1 1 1 1 1 1"],
    );
    row(
        "`np.full(3, 2.5)` `torch.full((3,), 2.5)` `Tensor::full(3, 2.5f32)?` `Tensor::full_as(3, 2.5, dtype)?`",
        &[found(&(Tensor::full(3, 2.5f32)?)), found(&(Tensor::full_as(3, 2.5, dtype)?))],
        &["[3]: 2.5 2.5 2.5", "[3]: 2.5 2.5 2.5"],
    );
    row(
        "`np.eye(3)` `torch.eye(3)` `Tensor::eye(3, DType::F32)?`",
        &[found(&(Tensor::eye(3, DType::F32)?))],
        &["[3, 3]: 1 0 0 0 1 0 0 0 1", "[3, 3]: 1 0 0 0 1 0 0 0 1"],
    );
    row(
        "`np.eye(2, 3)` `Tensor::eye((2, 3), DType::F32)?`",
        &[found(&(Tensor::eye((2, 3), DType::F32)?))],
        &["[2, 3]: 1 0 0 0 1 0"],
    );
    row(
        "`np.eye(2, 3, 1)` `Tensor::eye_with((2, 3), 1, DType::F32)?`",
        &[found(&(Tensor::eye_with((2, 3), 1, DType::F32)?))],
        &["[2, 3]: 0 1 0 0 0 1"],
    );
    row(
        "`np.arange(0, 10, 2)` `torch.arange(0, 10, 2)` `Tensor::arange_as(0., 10., 2., DType::I64)?`",
        &[found(&(Tensor::arange_as(0., 10., 2., DType::I64)?))],
        &["[5]: 0 2 4 6 8", "[5]: 0 2 4 6 8"],
    );
    row(
        "`np.linspace(0, 1, 5)` `torch.linspace(0, 1, 5)` `Tensor::linspace(0., 1., 5)?`",
        &[found(&(Tensor::linspace(0., 1., 5)?))],
        &["[5]: 0 0.25 0.5 0.75 1", "[5]: 0 0.25 0.5 0.75 1"],
    );
    row(
        "`np.logspace(0, 2, 3)` `torch.logspace(0, 2, 3)` `Tensor::logspace(0., 2., 3, 10.)?`",
        &[found(&(Tensor::logspace(0., 2., 3, 10.)?))],
        &["[3]: 1 10 100", "[3]: 1 10 100"],
    );
    row(
        "`torch.tril_indices(2, 2)` `torch.triu_indices(2, 2, 1)` `Tensor::tril_indices(2, 2, 0)?` `Tensor::triu_indices(2, 2, 1)?`",
        &[found(&(Tensor::tril_indices(2, 2, 0)?)), found(&(Tensor::triu_indices(2, 2, 1)?))],
        &["[2, 3]: 0 1 1 0 0 1", "[2, 1]: 0 1"],
    );
    row(
        "`np.zeros_like(x)` `torch.zeros_like(x)` `x.zeros_like()?`",
        &[found(&(x.zeros_like()?))],
        &["[2, 2]: 0 0 0 0", "[2, 2]: 0 0 0 0"],
    );
    row(
        "`np.full_like(x, 7)` `torch.full_like(x, 7)` `x.full_like(7)?`",
        &[found(&(x.full_like(7)?))],
        &["[2, 2]: 7 7 7 7", "[2, 2]: 7 7 7 7"],
    );
    row(
        "`rng.random((2, 3))` `torch.rand(2, 3)` `Tensor::rand((2, 3), 0.0..1.0, &mut rng)?`",
        &[found(&(Tensor::rand((2, 3), 0.0..1.0, &mut rng)?))],
        &["[2, 3]", "[2, 3]"],
    );
    row(
        "`rng.standard_normal((2, 3))` `torch.randn(2, 3)` `Tensor::randn((2, 3), &mut rng)?`",
        &[found(&(Tensor::randn((2, 3), &mut rng)?))],
        &["[2, 3]", "[2, 3]"],
    );
    row(
        "`rng.integers(0, 10, 4)` `torch.randint(0, 10, (4,))` `Tensor::randint(4, 0..10, &mut rng)?`",
        &[found(&(Tensor::randint(4, 0..10, &mut rng)?))],
        &["[4]", "[4]"],
    );
    row(
        "`rng.permutation(5)` `torch.randperm(5)` `rng.permutation(5)?` `i64`",
        &[found(&(rng.permutation(5)?))],
        &["[5]", "[5]"],
    );
    Ok(())
}

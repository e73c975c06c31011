//! Solves linear systems with faer, and differentiates through the solution and through Cholesky's factor. Backward
//! passes consist of tensor operations, so that second derivatives work.
//!
//! ```text
//! Y = A⁻¹ B      dB = A⁻ᵀ dY, dA = -dB Yᵀ
//! A = L Lᵀ       dA = ½ L⁻ᵀ (P + Pᵀ) L⁻¹ with P = Φ(Lᵀ dL), where Φ keeps the lower triangle and halves the diagonal
//! ```
//!
//! The latter is from Murray (2016), "Differentiation of the Cholesky decomposition", arXiv:1602.07527, section 3.
//!
//! Run it with `cargo run --release --features faer --example solve_faer`.

use faer::Side;
use faer::linalg::solvers::Solve as _;
use swath::backend::cpu::CpuTensor;
use swath::cpu::prelude::*;

/// `A⁻¹ B` of `A` `[n, n]` and `B` `[n, m]`, both `f64`.
#[derive(Clone)]
pub struct Solve;

impl CustomOp<CpuBackend> for Solve {
    fn name(&self) -> &'static str {
        "solve"
    }

    fn forward(&self, inputs: &[&CpuTensor]) -> Result<CpuTensor> {
        let [a, b] = [0, 1].map(|i| Tensor::from_data(inputs[i].clone()));
        if a.dims().first() != a.dims().last() || a.dims().first() != b.dims().first() {
            return Err(Error::ShapeMismatch { op: "solve", lhs: *a.shape(), rhs: *b.shape() });
        }
        let (a, mut x) = (a.contiguous()?, b.to_faer::<f64>()?);
        a.view::<f64>()?.faer()?.partial_piv_lu().solve_in_place(x.as_mut());
        if !x.is_all_finite() {
            let reason = format!("the matrix of shape {} is singular", a.shape());
            return Err(Error::InvalidArgument { op: "solve", reason });
        }
        Ok(Tensor::from_faer(x.as_ref())?.data().clone())
    }

    fn backward(&self, inputs: &[&Tensor], y: &Tensor, dy: &Tensor) -> Result<Vec<Option<Tensor>>> {
        let db = Tensor::apply(&Solve, &[&inputs[0].t()?, dy])?;
        let da = db.matmul(&y.t()?)?.neg()?;
        Ok(vec![Some(da), Some(db)])
    }
}

/// The lower triangular `L` with `L Lᵀ = A`, of a symmetric positive definite `A` `[n, n]`, `f64`. Only the lower triangle
/// of `A` is read; the gradient is that of a symmetric matrix.
#[derive(Clone)]
pub struct Cholesky;

impl CustomOp<CpuBackend> for Cholesky {
    fn name(&self) -> &'static str {
        "cholesky"
    }

    fn forward(&self, inputs: &[&CpuTensor]) -> Result<CpuTensor> {
        let a = Tensor::from_data(inputs[0].clone());
        if a.dims().first() != a.dims().last() {
            let reason = "expected a square matrix";
            return Err(Error::InvalidShape { op: "cholesky", shape: *a.shape(), reason });
        }
        let factors = a.contiguous()?.view::<f64>()?.faer()?.llt(Side::Lower);
        let factors = factors.map_err(|error| {
            let reason = format!("the matrix is not positive definite: {error:?}");
            Error::InvalidArgument { op: "cholesky", reason }
        })?;
        Ok(Tensor::from_faer(factors.L())?.tril(0)?.data().clone())
    }

    fn backward(&self, _: &[&Tensor], l: &Tensor, dl: &Tensor) -> Result<Vec<Option<Tensor>>> {
        let lt = l.t()?;
        let product = lt.matmul(&dl.tril(0)?)?;
        let p = product.tril(0)?.add(&product.tril(-1)?)?;
        let left = Tensor::apply(&Solve, &[&lt, &p.add(&p.t()?)?])?;
        Ok(vec![Some(Tensor::apply(&Solve, &[&lt, &left.t()?])?.t()?.mul(0.25)?)])
    }
}

fn main() -> Result<()> {
    let mut rng = Rng::seed(42);
    let w = Tensor::rand((4, 4), -1.0..1.0, &mut rng)?.to_dtype(DType::F64)?;
    let a = w.matmul(&w.t()?)?.add(Tensor::eye(4, DType::F64)?)?.requires_grad();
    let b = Tensor::rand((4, 1), -1.0..1.0, &mut rng)?.to_dtype(DType::F64)?.requires_grad();

    let y = Tensor::apply(&Solve, &[&a, &b])?;
    println!("A y - b = {}", a.matmul(&y)?.sub(&b)?.abs()?.max(None, false)?.detach());
    let grads = y.square()?.sum(None, false)?.backward()?;
    println!("gradient of |y|² by b: {}", grads.wrt(&b)?);

    // The logarithm of A's determinant, whose gradient is A⁻¹.
    let logdet = Tensor::apply(&Cholesky, &[&a])?.diag(0)?.log()?.sum(None, false)?.mul(2.0)?;
    let grads = logdet.backward()?;
    let inverse = Tensor::apply(&Solve, &[&a.detach(), &Tensor::eye(4, DType::F64)?])?;
    println!(
        "gradient of log |A|, less A⁻¹: {}",
        grads.wrt(&a)?.sub(&inverse)?.abs()?.max(None, false)?
    );
    Ok(())
}

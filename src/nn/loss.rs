//! Losses. The formulas and the order of the arguments are PyTorch's (`torch.nn.functional`).
//!
//! Each function gives the mean over all elements as a scalar; its `_with` form takes a
//! [`Reduction`]. Shapes must be equal: nothing broadcasts, because a loss of `[n]` against `[n, 1]` is
//! a mistake.
//!
//! ```
//! use swath::nn::loss;
//! use swath::prelude::*;
//!
//! let (input, target) = (tensor![1.0, 2.0, 4.0], tensor![1.0, 1.0, 1.0]);
//! assert_eq!(loss::mse(&input, &target)?.item::<f32>()?, 10.0 / 3.0);
//! let each = loss::mae_with(&input, &target, loss::Reduction::None)?;
//! assert_eq!(each.to_vec::<f32>()?, [0.0, 1.0, 3.0]);
//! # Ok::<(), Error>(())
//! ```

use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor::fused::cross_entropy::CrossEntropy;
pub use crate::tensor::fused::cross_entropy::Reduction;

/// Mean of `(input - target)²`.
///
/// # Errors
/// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for integers.
pub fn mse<B: Backend>(input: &Tensor<B>, target: &Tensor<B>) -> Result<Tensor<B>> {
    mse_with(input, target, Reduction::Mean)
}

/// As [`mse`], with a reduction.
///
/// # Errors
/// As [`mse`].
pub fn mse_with<B: Backend>(
    input: &Tensor<B>,
    target: &Tensor<B>,
    reduction: Reduction,
) -> Result<Tensor<B>> {
    check("mse", input, target)?;
    reduced(input.sub(target)?.square()?, reduction)
}

/// Mean of `|input - target|`; PyTorch's `l1_loss`.
///
/// # Errors
/// As [`mse`].
pub fn mae<B: Backend>(input: &Tensor<B>, target: &Tensor<B>) -> Result<Tensor<B>> {
    mae_with(input, target, Reduction::Mean)
}

/// As [`mae`], with a reduction.
///
/// # Errors
/// As [`mse`].
pub fn mae_with<B: Backend>(
    input: &Tensor<B>,
    target: &Tensor<B>,
    reduction: Reduction,
) -> Result<Tensor<B>> {
    check("mae", input, target)?;
    reduced(input.sub(target)?.abs()?, reduction)
}

/// Mean of `d²/2` where `d = |input - target|` is at most `delta`, else `delta (d - delta/2)`.
///
/// # Errors
/// As [`mse`]; [`Error::InvalidArgument`] unless `delta > 0`.
pub fn huber<B: Backend>(input: &Tensor<B>, target: &Tensor<B>, delta: f64) -> Result<Tensor<B>> {
    huber_with(input, target, delta, Reduction::Mean)
}

/// As [`huber`], with a reduction.
///
/// # Errors
/// As [`huber`].
pub fn huber_with<B: Backend>(
    input: &Tensor<B>,
    target: &Tensor<B>,
    delta: f64,
    reduction: Reduction,
) -> Result<Tensor<B>> {
    let op = "huber";
    check(op, input, target)?;
    if delta.is_nan() || delta <= 0.0 {
        return Err(Error::InvalidArgument {
            op,
            reason: format!("delta is {delta}, not above 0"),
        });
    }
    let difference = input.sub(target)?;
    let distance = difference.abs()?;
    let near = difference.square()?.mul_scalar(0.5)?;
    let far = distance.add_scalar(-0.5 * delta)?.mul_scalar(delta)?;
    reduced(Tensor::where_cond(&distance.detach().le(delta)?, &near, &far)?, reduction)
}

/// Mean cross-entropy in nats between logits `[…, n]` and class numbers `target` `[…]` (`I64`).
/// [`Tensor::cross_entropy`] has options: an ignored class, label smoothing, a reduction.
///
/// # Errors
/// Those of [`Tensor::cross_entropy`].
pub fn cross_entropy<B: Backend>(logits: &Tensor<B>, target: &Tensor<B>) -> Result<Tensor<B>> {
    logits.cross_entropy(target, CrossEntropy::default())
}

/// Mean of `-log_p[target]`, for logarithms of probabilities `log_p` `[…, n]` and class numbers `target`
/// `[…]` (`I64`). From logits, [`cross_entropy`] is both in one.
///
/// # Errors
/// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`] if the targets are not `I64`;
/// [`Error::IndexOutOfRange`] for a target that is no class.
pub fn nll<B: Backend>(log_p: &Tensor<B>, target: &Tensor<B>) -> Result<Tensor<B>> {
    nll_with(log_p, target, Reduction::Mean)
}

/// As [`nll`], with a reduction.
///
/// # Errors
/// As [`nll`].
pub fn nll_with<B: Backend>(
    log_p: &Tensor<B>,
    target: &Tensor<B>,
    reduction: Reduction,
) -> Result<Tensor<B>> {
    let op = "nll";
    check_float(op, log_p)?;
    let rank = target.rank();
    if log_p.rank() != rank + 1 || log_p.dims()[..rank] != *target.dims() {
        return Err(Error::ShapeMismatch { op, lhs: *log_p.shape(), rhs: *target.shape() });
    }
    let picked = log_p.gather(-1, &target.detach().unsqueeze(-1)?)?.squeeze(-1)?;
    reduced(picked.neg()?, reduction)
}

/// Mean of `-target log σ(input) - (1 - target) log(1 - σ(input))` for logits `input` and targets in
/// `[0, 1]`, without overflow for any logit.
///
/// # Errors
/// As [`mse`].
pub fn binary_cross_entropy_with_logits<B: Backend>(
    input: &Tensor<B>,
    target: &Tensor<B>,
) -> Result<Tensor<B>> {
    binary_cross_entropy_with_logits_with(input, target, Reduction::Mean)
}

/// As [`binary_cross_entropy_with_logits`], with a reduction.
///
/// # Errors
/// As [`mse`].
pub fn binary_cross_entropy_with_logits_with<B: Backend>(
    input: &Tensor<B>,
    target: &Tensor<B>,
    reduction: Reduction,
) -> Result<Tensor<B>> {
    check("binary_cross_entropy_with_logits", input, target)?;
    // max(x, 0) - x t + log(1 + e^-|x|): what is large cancels exactly, in the value and in gradients.
    let positive = input.detach().ge(0.0)?.to_dtype(input.dtype())?;
    let linear = input.mul(&positive.sub(target)?)?;
    let small = input.mul(&positive.affine(-2.0, 1.0)?)?.exp()?;
    reduced(linear.add(&log_1p(&small)?)?, reduction)
}

/// `log(1 + x)` for x in `[0, 1]`, precise for small x.
///
/// The derivatives are those of `log(1 + x)` as it stands. Its value loses what `w = 1 + x` rounds off;
/// `x log(w) / (w - 1)` does not, because that quotient hardly changes with w (Goldberg, 1991).
fn log_1p<B: Backend>(x: &Tensor<B>) -> Result<Tensor<B>> {
    let rough = x.add_scalar(1.0)?.log()?;
    let plain = x.detach();
    let rounded = plain.add_scalar(1.0)?;
    let excess = rounded.add_scalar(-1.0)?;
    let precise = plain.mul(&rounded.log()?.div(&excess)?)?;
    let precise = Tensor::where_cond(&excess, &precise, &plain)?;
    rough.add(&precise.sub(rough.detach())?)
}

/// Mean of `target (log target - input)` for logarithms of probabilities `input` and probabilities
/// `target`; 0 where the target is 0.
///
/// The mean is over all elements, as PyTorch's default. The divergence itself is
/// [`Reduction::Sum`] divided by the number of distributions (PyTorch's `batchmean`).
///
/// # Errors
/// As [`mse`].
pub fn kl_div<B: Backend>(input: &Tensor<B>, target: &Tensor<B>) -> Result<Tensor<B>> {
    kl_div_with(input, target, Reduction::Mean)
}

/// As [`kl_div`], with a reduction.
///
/// # Errors
/// As [`mse`].
pub fn kl_div_with<B: Backend>(
    input: &Tensor<B>,
    target: &Tensor<B>,
    reduction: Reduction,
) -> Result<Tensor<B>> {
    check("kl_div", input, target)?;
    // log 1 in place of log 0, which times 0 is no number, neither in the value nor in a gradient.
    let none = target.detach().eq(0.0)?;
    let one = Tensor::ones(Shape::scalar(), target.dtype())?;
    let log_target = Tensor::where_cond(&none, &one, target)?.log()?;
    reduced(target.mul(&log_target)?.sub(&target.mul(input)?)?, reduction)
}

fn reduced<B: Backend>(losses: Tensor<B>, reduction: Reduction) -> Result<Tensor<B>> {
    match reduction {
        Reduction::None => Ok(losses),
        Reduction::Mean => losses.mean(None, false),
        Reduction::Sum => losses.sum(None, false),
    }
}

fn check_float<B: Backend>(op: &'static str, x: &Tensor<B>) -> Result<()> {
    match x.dtype() {
        dtype if dtype.is_float() => Ok(()),
        dtype => Err(Error::UnsupportedDType { op, dtype, shape: *x.shape() }),
    }
}

fn check<B: Backend>(op: &'static str, input: &Tensor<B>, target: &Tensor<B>) -> Result<()> {
    check_float(op, input)?;
    if input.shape() != target.shape() {
        return Err(Error::ShapeMismatch { op, lhs: *input.shape(), rhs: *target.shape() });
    }
    let (lhs, rhs): (DType, DType) = (input.dtype(), target.dtype());
    if lhs != rhs {
        return Err(Error::DTypeMismatch { op, lhs, rhs, shape: *input.shape() });
    }
    Ok(())
}

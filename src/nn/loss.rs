//! Losses. The formulas and the order of the arguments are PyTorch's (`torch.nn.functional`).
//!
//! Each function returns the mean over all elements as a scalar; its `_with` form takes a
//! [`Reduction`]. Shapes must be equal and do not broadcast, because a loss of `[n]` against
//! `[n, 1]` is usually a mistake.
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
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::tensor::fused::cross_entropy::CrossEntropy;
pub use crate::tensor::fused::cross_entropy::Reduction;

/// Mean squared error: mean of `(input - target)²`.
///
/// # Errors
/// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for integers.
pub fn mse<B: Backend>(input: &Tensor<B>, target: &Tensor<B>) -> Result<Tensor<B>> {
    mse_with(input, target, Reduction::Mean)
}

/// Like [`mse`], with a reduction.
///
/// # Errors
/// As for [`mse`].
pub fn mse_with<B: Backend>(
    input: &Tensor<B>,
    target: &Tensor<B>,
    reduction: Reduction,
) -> Result<Tensor<B>> {
    check("mse", input, target)?;
    reduced(input.sub(target)?.square()?, reduction)
}

/// Mean absolute error: mean of `|input - target|`; PyTorch's `l1_loss`.
///
/// # Errors
/// As for [`mse`].
pub fn mae<B: Backend>(input: &Tensor<B>, target: &Tensor<B>) -> Result<Tensor<B>> {
    mae_with(input, target, Reduction::Mean)
}

/// Like [`mae`], with a reduction.
///
/// # Errors
/// As for [`mse`].
pub fn mae_with<B: Backend>(
    input: &Tensor<B>,
    target: &Tensor<B>,
    reduction: Reduction,
) -> Result<Tensor<B>> {
    check("mae", input, target)?;
    reduced(input.sub(target)?.abs()?, reduction)
}

/// Huber loss: mean of `d²/2` where `d = |input - target|` is at most `delta`, and of
/// `delta (d - delta/2)` elsewhere.
///
/// # Errors
/// As for [`mse`]; [`Error::InvalidArgument`] unless `delta > 0`.
pub fn huber<B: Backend>(input: &Tensor<B>, target: &Tensor<B>, delta: f64) -> Result<Tensor<B>> {
    huber_with(input, target, delta, Reduction::Mean)
}

/// Like [`huber`], with a reduction.
///
/// # Errors
/// As for [`huber`].
pub fn huber_with<B: Backend>(
    input: &Tensor<B>,
    target: &Tensor<B>,
    delta: f64,
    reduction: Reduction,
) -> Result<Tensor<B>> {
    let op = "huber";
    check(op, input, target)?;
    if delta.is_nan() || delta <= 0.0 {
        let reason = format!("delta must be positive, got {delta}");
        return Err(Error::InvalidArgument { op, reason });
    }
    // A finite threshold: neither the op nor its derivative then multiplies 0 by an infinity.
    reduced(input.huber(target, delta.min(input.dtype().largest()))?, reduction)
}

/// Mean cross-entropy in nats between logits `[…, n]` and class indices `target` `[…]` (integers), or of images
/// `[n, c, h, w]` and `[n, h, w]`. [`Tensor::cross_entropy`] has options: weights of classes, an ignored class, label smoothing, a
/// reduction.
///
/// # Errors
/// Errors of [`Tensor::cross_entropy`].
pub fn cross_entropy<B: Backend>(logits: &Tensor<B>, target: &Tensor<B>) -> Result<Tensor<B>> {
    logits.cross_entropy(target, CrossEntropy::default())
}

/// Negative log-likelihood: mean of `-log_p[target]` for log-probabilities `log_p` `[…, n]` and
/// class indices `target` `[…]` (integers), or of images `[n, c, h, w]` and `[n, h, w]`. For logits, use [`cross_entropy`]; [`Tensor::nll`] has
/// options.
///
/// # Errors
/// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`] if the targets are not integers;
/// [`Error::IndexOutOfRange`] for a target outside `0..n`.
pub fn nll<B: Backend>(log_p: &Tensor<B>, target: &Tensor<B>) -> Result<Tensor<B>> {
    nll_with(log_p, target, Reduction::Mean)
}

/// Like [`nll`], with a reduction.
///
/// # Errors
/// As for [`nll`].
pub fn nll_with<B: Backend>(
    log_p: &Tensor<B>,
    target: &Tensor<B>,
    reduction: Reduction,
) -> Result<Tensor<B>> {
    log_p.nll(target, CrossEntropy { reduction, ..Default::default() })
}

/// Binary cross-entropy: mean of `-target log σ(input) - (1 - target) log(1 - σ(input))` for logits
/// `input` and targets in `[0, 1]`, without overflow for any logit.
///
/// # Errors
/// As for [`mse`].
pub fn binary_cross_entropy_with_logits<B: Backend>(
    input: &Tensor<B>,
    target: &Tensor<B>,
) -> Result<Tensor<B>> {
    binary_cross_entropy_with_logits_with(input, target, Reduction::Mean)
}

/// Like [`binary_cross_entropy_with_logits`], with a reduction.
///
/// # Errors
/// As for [`mse`].
pub fn binary_cross_entropy_with_logits_with<B: Backend>(
    input: &Tensor<B>,
    target: &Tensor<B>,
    reduction: Reduction,
) -> Result<Tensor<B>> {
    check("binary_cross_entropy_with_logits", input, target)?;
    // max(x, 0) - x t + log(1 + e^-|x|): large terms cancel exactly, in the value and in the
    // gradients.
    let positive = input.detach().ge(0.0)?.to_dtype(input.dtype())?;
    let slope = positive.sub(target)?;
    // An infinite logit that agrees with its target costs nothing; ∞ times 0 would be NaN.
    let agrees = input.isinf()?.logical_and(&slope.eq(0.0)?)?;
    let linear = input.masked_fill(&agrees, 0.0)?.mul(&slope)?;
    let small = input.mul(&positive.affine(-2.0, 1.0)?)?.exp()?;
    reduced(linear.add(&small.log1p()?)?, reduction)
}

/// Kullback-Leibler divergence: mean of `target (log target - input)` for log-probabilities `input`
/// and probabilities `target`; 0 where the target is 0, whatever the input is there, as for a class
/// that is masked by a logit of −∞.
///
/// The mean is over all elements, as PyTorch's default. The divergence of distributions is
/// [`Reduction::Sum`] divided by their number (PyTorch's `batchmean`).
///
/// # Errors
/// As for [`mse`].
pub fn kl_div<B: Backend>(input: &Tensor<B>, target: &Tensor<B>) -> Result<Tensor<B>> {
    kl_div_with(input, target, Reduction::Mean)
}

/// Like [`kl_div`], with a reduction.
///
/// # Errors
/// As for [`mse`].
pub fn kl_div_with<B: Backend>(
    input: &Tensor<B>,
    target: &Tensor<B>,
    reduction: Reduction,
) -> Result<Tensor<B>> {
    check("kl_div", input, target)?;
    // Where the target is 0, log 0 and a class of probability 0 would be infinities times 0, both in
    // the value and in the gradient.
    let none = target.detach().eq(0.0)?;
    let log_target = target.masked_fill(&none, 1.0)?.log()?;
    let input = input.masked_fill(&none, 0.0)?;
    reduced(target.mul(&log_target.sub(&input)?)?, reduction)
}

fn reduced<B: Backend>(losses: Tensor<B>, reduction: Reduction) -> Result<Tensor<B>> {
    match reduction {
        Reduction::None => Ok(losses),
        Reduction::Mean => losses.mean(None, false),
        Reduction::Sum => losses.sum(None, false),
    }
}

fn check<B: Backend>(op: &'static str, input: &Tensor<B>, target: &Tensor<B>) -> Result<()> {
    input.check_float(op)?;
    input.check_like(op, target)
}

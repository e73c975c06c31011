//! `cross_entropy`: the loss of classification from logits.

use crate::autodiff::graph::{SharedRule, Upstream, bytes_of, record, rule_keeping};
use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::FusedOp;
use crate::shape::Shape;

use super::{gradients, kernel};
use crate::tensor::Tensor;

/// The reduction of the losses of single elements or rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// The mean. Ignored rows do not count; NaN if no row counts.
    #[default]
    Mean,
    /// The sum.
    Sum,
    /// No reduction: every loss is returned.
    None,
}

/// Options of [`Tensor::cross_entropy`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CrossEntropy {
    /// Rows with this target are ignored: their loss and gradient are 0. PyTorch's default is −100.
    pub ignore_index: Option<i64>,
    /// Label smoothing ε in `[0, 1]`: the target has probability `1 - ε + ε/n`, every other class
    /// `ε/n`.
    pub label_smoothing: f64,
    /// The reduction of the losses.
    pub reduction: Reduction,
}

/// # Cross-entropy
impl<B: Backend> Tensor<B> {
    /// Cross-entropy in nats between logits `[…, n]` and class indices `targets` `[…]` (`I64`):
    /// `log Σ e^x - x[target]`, reduced as the options say. The result is a scalar, or `[…]`
    /// without reduction.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let logits = tensor![[2.0, 0.0], [0.0, 0.0]];
    /// let loss = logits.cross_entropy(&tensor![i64; 0, 1], CrossEntropy::default())?;
    /// let expected = ((1.0 + (-2.0f32).exp()).ln() + 2.0f32.ln()) / 2.0;
    /// assert!((loss.item::<f32>()? - expected).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`] if the targets are not `I64`;
    /// [`Error::IndexOutOfRange`] for a target that is neither a class nor ignored;
    /// [`Error::InvalidArgument`] for a label smoothing outside `[0, 1]`.
    pub fn cross_entropy(&self, targets: &Tensor<B>, options: CrossEntropy) -> Result<Self> {
        B::engine_cross_entropy(self, targets, options)
    }

    pub(crate) fn cross_entropy_body(
        x: &Tensor<B>,
        targets: &Tensor<B>,
        options: CrossEntropy,
    ) -> Result<Self> {
        let op = "cross_entropy";
        x.check_float(op)?;
        targets.check_dtype(op, DType::I64)?;
        let fits = x.rank() == targets.rank() + 1 && x.dims()[..targets.rank()] == *targets.dims();
        if !fits {
            return Err(Error::ShapeMismatch { op, lhs: *x.shape(), rhs: *targets.shape() });
        }
        if !(0.0..=1.0).contains(&options.label_smoothing) {
            let reason =
                format!("label_smoothing must be in [0, 1], got {}", options.label_smoothing);
            return Err(Error::InvalidArgument { op, reason });
        }
        let (rows, classes) = (targets.numel(), x.dims()[targets.rank()]);
        let logits = x.reshape((rows, classes))?;
        let flat = targets.detach().reshape(rows)?;
        let losses = logits.cross_entropy_rows(&flat, options)?;
        match options.reduction {
            Reduction::None => losses.reshape(*targets.shape()),
            Reduction::Sum => losses.sum(None, false),
            Reduction::Mean => match options.ignore_index {
                None => losses.mean(None, false),
                Some(ignored) => {
                    let counted = flat.ne(&Tensor::full(Shape::scalar(), ignored)?)?;
                    // In `F32` at least: 16-bit floats hold neither the count nor the sum.
                    let wide = x.dtype().at_least_f32();
                    let count = counted.sum(None, false)?.to_dtype(wide)?;
                    let sum = losses.to_dtype(wide)?.sum(None, false)?;
                    sum.div(&count)?.to_dtype(x.dtype())
                }
            },
        }
    }

    /// The losses `[r]` of logits `[r, n]`.
    fn cross_entropy_rows(&self, targets: &Tensor<B>, options: CrossEntropy) -> Result<Self> {
        let op = "cross_entropy";
        let CrossEntropy { ignore_index, label_smoothing, .. } = options;
        let (logits, labels) = (self.data(), targets.data());
        let fused =
            FusedOp::CrossEntropy { logits, targets: labels, ignore_index, label_smoothing };
        match kernel::<B, 3>(&fused)? {
            Some([losses, largest, rest]) => Ok(record(op, losses, &[self], |_| {
                cross_entropy_rule(self, targets, [largest, rest], options)
            })),
            None => self.cross_entropy_composite(targets, &options).map_err(|e| e.named(op)),
        }
    }

    /// Defines [`Tensor::cross_entropy`] for logits `[r, n]`.
    fn cross_entropy_composite(&self, targets: &Tensor<B>, options: &CrossEntropy) -> Result<Self> {
        let rows = targets.numel();
        if self.numel() == 0 {
            // Without classes every row must be ignored.
            let targets = targets.to_vec::<i64>()?;
            return match targets.into_iter().find(|&index| options.ignore_index != Some(index)) {
                None => self.sum(Some(&[1]), false),
                Some(index) => {
                    let (op, shape) = ("cross_entropy", *self.shape());
                    Err(Error::IndexOutOfRange { op, index, axis: 1, shape })
                }
            };
        }
        let zero =
            Tensor::full_scalar("cross_entropy", Shape::scalar(), Scalar::Int(0), DType::I64)?;
        let ignored = match options.ignore_index {
            Some(ignored) => targets.eq(&Tensor::full(Shape::scalar(), ignored)?)?,
            None => targets.ne(targets)?,
        };
        let class = Tensor::where_cond(&ignored, &zero, targets)?;
        let mut logits = self.widened()?;
        let none = Tensor::zeros(Shape::scalar(), logits.dtype())?;
        if options.ignore_index.is_some() {
            // Ignored rows may hold values without a gradient, such as NaN.
            logits = Tensor::where_cond(&ignored.reshape((rows, 1))?, &none, &logits)?;
        }
        let log_p = logits.softmax_composite(1, true)?;
        let picked = log_p.gather(1, &class.reshape((rows, 1))?)?.reshape(rows)?;
        let smooth = options.label_smoothing;
        let spread = || log_p.mean(Some(&[1]), false)?.mul_scalar(-smooth);
        // A term with factor 0 is left out: 0 times an infinite loss is NaN.
        let losses = match smooth {
            0.0 => picked.neg()?,
            1.0 => spread()?,
            _ => picked.mul_scalar(smooth - 1.0)?.add(&spread()?)?,
        };
        Tensor::where_cond(&ignored, &none, &losses)?.to_dtype(self.dtype())
    }
}

/// Gradient of the logits, `g (softmax(x) - (1 - ε) onehot(target) - ε/n)`.
fn cross_entropy_rule<B: Backend>(
    logits: &Tensor<B>,
    targets: &Tensor<B>,
    [largest, rest]: [B::Tensor; 2],
    options: CrossEntropy,
) -> SharedRule<B> {
    let (logits, targets) = (logits.clone(), targets.clone());
    let bytes = bytes_of([logits.data(), targets.data(), &largest, &rest].map(Some));
    rule_keeping(bytes, move |upstream: &Upstream<'_, B>, _| {
        let fused = FusedOp::CrossEntropyGrad {
            g: upstream.g.data(),
            logits: logits.data(),
            targets: targets.data(),
            largest: &largest,
            rest: &rest,
            ignore_index: options.ignore_index,
            label_smoothing: options.label_smoothing,
        };
        gradients(upstream, &fused, [Some(&logits)], || {
            logits.cross_entropy_composite(&targets, &options)
        })
    })
}

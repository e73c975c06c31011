//! `cross_entropy` and `nll`: the losses of classification from logits and from log-probabilities.

use crate::autodiff::graph::{SharedRule, Upstream, bytes_of, record, rule_keeping};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::FusedOp;
use crate::shape::Shape;

use super::{gradients, kernel};
use crate::tensor::Tensor;

/// The reduction of the losses of single elements or rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// The mean. Ignored rows do not count; NaN if no row counts. With weights of classes, the sum divided
    /// by the sum of the weights of the targets that count.
    #[default]
    Mean,
    /// The sum.
    Sum,
    /// No reduction: every loss is returned.
    None,
}

/// Options of [`Tensor::cross_entropy`] and [`Tensor::nll`], with PyTorch's meaning.
#[derive(Debug)]
pub struct CrossEntropy<'a, B: Backend = CpuBackend> {
    /// Weights of the classes, `[n]`, of the logits' dtype. They have a gradient if tracked.
    pub weight: Option<&'a Tensor<B>>,
    /// Rows with this target are ignored: their loss and gradient are 0. PyTorch's default is −100.
    pub ignore_index: Option<i64>,
    /// Label smoothing ε in `[0, 1]`: the target has probability `1 - ε + ε/n`, every other class
    /// `ε/n`.
    pub label_smoothing: f64,
    /// The reduction of the losses.
    pub reduction: Reduction,
}

impl<B: Backend> Clone for CrossEntropy<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for CrossEntropy<'_, B> {}

impl<B: Backend> Default for CrossEntropy<'_, B> {
    fn default() -> Self {
        CrossEntropy {
            weight: None,
            ignore_index: None,
            label_smoothing: 0.0,
            reduction: Reduction::default(),
        }
    }
}

impl<B: Backend> CrossEntropy<'_, B> {
    fn check(&self, op: &'static str, x: &Tensor<B>) -> Result<()> {
        x.check_float(op)?;
        if !(0.0..=1.0).contains(&self.label_smoothing) {
            let reason = format!("label_smoothing must be in [0, 1], got {}", self.label_smoothing);
            return Err(Error::InvalidArgument { op, reason });
        }
        let Some(weight) = self.weight else { return Ok(()) };
        x.check_dtype(op, weight.dtype())?;
        match (x.dims().last(), weight.dims()) {
            (Some(classes), [count]) if classes == count => Ok(()),
            _ => Err(Error::ShapeMismatch { op, lhs: *x.shape(), rhs: *weight.shape() }),
        }
    }

    /// The number of targets that are not ignored, unless it is that of all; `F32` for 16-bit floats.
    fn counted(&self, targets: &Tensor<B>, dtype: DType) -> Result<Option<Tensor<B>>> {
        let count = |ignored| targets.ne(ignored)?.sum(None, false)?.to_dtype(dtype.at_least_f32());
        self.ignore_index.map(count).transpose()
    }

    /// `losses` `[r]` reduced; not reduced, they get `shape`. `total` is what a mean divides by, if not by
    /// their number.
    fn reduced(
        &self,
        losses: Tensor<B>,
        shape: Shape,
        total: impl FnOnce() -> Result<Option<Tensor<B>>>,
    ) -> Result<Tensor<B>> {
        match self.reduction {
            Reduction::None => losses.reshape(shape),
            Reduction::Sum => losses.sum(None, false),
            Reduction::Mean => match total()? {
                None => losses.mean(None, false),
                Some(total) => {
                    // In `F32` at least: 16-bit floats hold neither the count nor the sum.
                    let sum = losses.widened()?.sum(None, false)?;
                    sum.div(&total)?.to_dtype(losses.dtype())
                }
            },
        }
    }
}

/// Classes of rows, all of them valid if their targets are.
struct Classes<B: Backend> {
    /// True for rows that are ignored, `[r]`.
    ignored: Tensor<B>,
    /// The class, 0 where ignored, `[r]`.
    class: Tensor<B>,
}

impl<B: Backend> Classes<B> {
    fn new(targets: &Tensor<B>, ignore_index: Option<i64>) -> Result<Self> {
        let ignored = match ignore_index {
            Some(ignored) => targets.eq(ignored)?,
            None => targets.ne(targets)?,
        };
        let class = targets.masked_fill(&ignored, 0)?;
        Ok(Classes { ignored, class })
    }

    /// The weights of the classes, 0 where ignored, `[r]`, in `F32` at least.
    fn weights(&self, weight: &Tensor<B>) -> Result<Tensor<B>> {
        weight.widened()?.index_select(0, &self.class)?.masked_fill(&self.ignored, 0.0)
    }
}

/// # Cross-entropy
impl<B: Backend> Tensor<B> {
    /// Cross-entropy in nats between logits `[…, n]` and class indices `targets` `[…]` (integers):
    /// `log Σ e^x - x[target]`, reduced as the options say. The result is a scalar, or `[…]`
    /// without reduction.
    ///
    /// Targets of the shape and dtype of the logits are probabilities p of the classes, whose loss is
    /// `Σ p (log Σ e^x - x)`; a mean divides by the number of rows, and they have a gradient if tracked.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let logits = tensor![[2.0, 0.0], [0.0, 0.0]];
    /// let loss = logits.cross_entropy(&tensor![i64; 0, 1], CrossEntropy::default())?;
    /// let expected = ((1.0 + (-2.0f32).exp()).ln() + 2.0f32.ln()) / 2.0;
    /// assert!((loss.item::<f32>()? - expected).abs() < 1e-6);
    /// // The same targets as probabilities.
    /// let p = tensor![[1.0, 0.0], [0.0, 1.0]];
    /// let loss = logits.cross_entropy(&p, CrossEntropy::default())?;
    /// assert!((loss.item::<f32>()? - expected).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`] if the targets are neither integers nor of the
    /// logits' dtype, or the weights not of that; [`Error::IndexOutOfRange`] for a target that is neither
    /// a class nor ignored; [`Error::InvalidArgument`] for a label smoothing outside `[0, 1]`, and for
    /// probabilities with `ignore_index`.
    pub fn cross_entropy(&self, targets: &Tensor<B>, options: CrossEntropy<'_, B>) -> Result<Self> {
        B::engine_cross_entropy(self, targets, options)
    }

    /// Negative log-likelihood `-log_p[target]` of log-probabilities `log_p` `[…, n]`, this tensor, and class
    /// indices `targets` `[…]` (integers), with the options of [`cross_entropy`](Tensor::cross_entropy),
    /// which is this of the logits' [`log_softmax`](Tensor::log_softmax).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let log_p = tensor![[-0.5, -1.0], [-2.0, -0.25]];
    /// let options = CrossEntropy { weight: Some(&tensor![3.0, 1.0]), ..Default::default() };
    /// let loss = log_p.nll(&tensor![i64; 0, 1], options)?;
    /// assert_eq!(loss.item::<f32>()?, (3.0 * 0.5 + 0.25) / 4.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`cross_entropy`](Tensor::cross_entropy) with class indices.
    pub fn nll(&self, targets: &Tensor<B>, options: CrossEntropy<'_, B>) -> Result<Self> {
        B::engine_nll(self, targets, options)
    }

    pub(crate) fn nll_body(
        log_p: &Tensor<B>,
        targets: &Tensor<B>,
        options: CrossEntropy<'_, B>,
    ) -> Result<Self> {
        let op = "nll";
        options.check(op, log_p)?;
        log_p.check_labels(op, targets)?;
        let targets = log_p.class_indices(op, targets)?;
        log_p.likelihood(op, &targets, options, |log_p, classes| {
            log_p.counted_rows(classes, &options)
        })
    }

    /// Fails for a float for each row.
    fn check_labels(&self, op: &'static str, targets: &Tensor<B>) -> Result<()> {
        let (dtype, rows) = (targets.dtype(), self.rank().saturating_sub(1));
        if dtype.is_float() && self.rank() > 0 && targets.dims() == &self.dims()[..rows] {
            let shape = targets.shape();
            let reason = format!("labels are integers, got {dtype} of shape {shape}: use to_dtype");
            return Err(Error::InvalidArgument { op, reason });
        }
        Ok(())
    }

    /// The targets as indices; fails if their shape is not that of the rows.
    fn class_indices(&self, op: &'static str, targets: &Tensor<B>) -> Result<Self> {
        let targets = targets.as_index(op)?;
        match self.dims().split_last() {
            Some((_, rows)) if rows == targets.dims() => Ok(targets),
            _ => Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *targets.shape() }),
        }
    }

    /// The loss of checked targets by the definition, from log-probabilities `log_p(x, classes)` of rows x.
    fn likelihood(
        &self,
        op: &'static str,
        targets: &Tensor<B>,
        options: CrossEntropy<'_, B>,
        log_p: impl FnOnce(&Tensor<B>, &Classes<B>) -> Result<Tensor<B>>,
    ) -> Result<Self> {
        let rows = targets.numel();
        let x = self.reshape((rows, self.dims()[targets.rank()]))?;
        let flat = targets.reshape(rows)?;
        let classes = Classes::new(&flat, options.ignore_index)?;
        let losses = match x.numel() {
            0 => x.no_classes(op, &flat, options.ignore_index)?,
            _ => log_p(&x, &classes)?
                .losses(&classes, &options)
                .and_then(|losses| losses.to_dtype(self.dtype()))
                .map_err(|e| e.named(op))?,
        };
        options.reduced(losses, *targets.shape(), || match options.weight {
            Some(weight) if x.numel() > 0 => classes.weights(weight)?.sum(None, false).map(Some),
            _ => options.counted(targets, self.dtype()),
        })
    }

    pub(crate) fn cross_entropy_body(
        x: &Tensor<B>,
        targets: &Tensor<B>,
        options: CrossEntropy<'_, B>,
    ) -> Result<Self> {
        let op = "cross_entropy";
        options.check(op, x)?;
        x.check_labels(op, targets)?;
        if targets.dtype().is_float() {
            return x.expected_loss(op, targets, options);
        }
        let targets = x.class_indices(op, targets)?;
        if options.weight.is_some() {
            return x.likelihood(op, &targets, options, |logits, classes| {
                logits.counted_rows(classes, &options)?.log_softmax(1)
            });
        }
        let rows = targets.numel();
        let logits = x.reshape((rows, x.dims()[targets.rank()]))?;
        let flat = targets.reshape(rows)?;
        let losses = logits.cross_entropy_rows(&flat, options)?;
        options.reduced(losses, *targets.shape(), || options.counted(&flat, x.dtype()))
    }

    /// The loss of probabilities as targets.
    fn expected_loss(
        &self,
        op: &'static str,
        targets: &Tensor<B>,
        options: CrossEntropy<'_, B>,
    ) -> Result<Self> {
        self.check_like(op, targets)?;
        let Some((&classes, rows)) = self.dims().split_last() else {
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *targets.shape() });
        };
        if options.ignore_index.is_some() {
            let reason = "ignore_index is for class indices, not for probabilities".to_owned();
            return Err(Error::InvalidArgument { op, reason });
        }
        let smooth = options.label_smoothing;
        let mut p = targets.widened()?;
        if smooth > 0.0 {
            p = p.affine(1.0 - smooth, smooth / classes.max(1) as f64)?;
        }
        let log_p = self.widened()?.log_softmax(-1)?;
        // An impossible class that does not occur adds nothing: 0 times an infinite loss is NaN.
        let none = p.detach().eq(0.0)?.logical_and(&log_p.detach().eq(f64::NEG_INFINITY)?)?;
        let mut terms = p.mul(&log_p.masked_fill(&none, 0.0)?)?;
        if let Some(weight) = options.weight {
            terms = terms.mul(&weight.widened()?)?;
        }
        let losses = terms.sum_axis(-1, false)?.neg()?.to_dtype(self.dtype())?;
        let shape = Shape::from(rows);
        options.reduced(losses.reshape(shape.numel())?, shape, || Ok(None))
    }

    /// The losses `[r]` of logits `[r, n]`.
    fn cross_entropy_rows(
        &self,
        targets: &Tensor<B>,
        options: CrossEntropy<'_, B>,
    ) -> Result<Self> {
        let op = "cross_entropy";
        let CrossEntropy { ignore_index, label_smoothing, .. } = options;
        let (logits, labels) = (self.data(), targets.data());
        let fused =
            FusedOp::CrossEntropy { logits, targets: labels, ignore_index, label_smoothing };
        match kernel::<B, 3>(&fused)? {
            Some([losses, largest, rest]) => Ok(record(op, losses, &[self], |_| {
                cross_entropy_rule(self, targets, [largest, rest], (ignore_index, label_smoothing))
            })),
            None => self
                .cross_entropy_composite(targets, (ignore_index, label_smoothing))
                .map_err(|e| e.named(op)),
        }
    }

    /// Defines [`Tensor::cross_entropy`] for logits `[r, n]`, without weights.
    fn cross_entropy_composite(
        &self,
        targets: &Tensor<B>,
        (ignore_index, label_smoothing): (Option<i64>, f64),
    ) -> Result<Self> {
        if self.numel() == 0 {
            return self.no_classes("cross_entropy", targets, ignore_index);
        }
        let options = CrossEntropy { ignore_index, label_smoothing, ..Default::default() };
        let classes = Classes::new(targets, ignore_index)?;
        let log_p = self.counted_rows(&classes, &options)?.softmax_composite(1, true)?;
        log_p.losses(&classes, &options)?.to_dtype(self.dtype())
    }

    /// The losses `[r]` of rows without an element: all of them must be ignored.
    fn no_classes(
        &self,
        op: &'static str,
        targets: &Tensor<B>,
        ignore_index: Option<i64>,
    ) -> Result<Self> {
        let targets = targets.to_vec::<i64>()?;
        match targets.into_iter().find(|&index| ignore_index != Some(index)) {
            None => self.sum(Some(&[1]), false),
            Some(index) => Err(Error::IndexOutOfRange { op, index, axis: 1, shape: *self.shape() }),
        }
    }

    /// Logits `[r, n]`, widened, without ignored rows, which may hold values without a gradient, such as NaN.
    fn counted_rows(&self, classes: &Classes<B>, options: &CrossEntropy<'_, B>) -> Result<Self> {
        let logits = self.widened()?;
        match options.ignore_index {
            None => Ok(logits),
            Some(_) => logits.masked_fill(&classes.ignored.unsqueeze(1)?, 0.0),
        }
    }

    /// The losses `[r]` of log-probabilities `[r, n]`, 0 where ignored.
    fn losses(&self, classes: &Classes<B>, options: &CrossEntropy<'_, B>) -> Result<Self> {
        let (smooth, weight) = (options.label_smoothing, options.weight);
        let picked = || {
            let picked = self.gathered("gather", 1, classes.class.unsqueeze(1)?)?.squeeze(1)?;
            match weight {
                Some(weight) => picked.mul(&classes.weights(weight)?),
                None => Ok(picked),
            }
        };
        let spread = || {
            let weighted = match weight {
                Some(weight) => self.mul(&weight.widened()?)?,
                None => self.clone(),
            };
            weighted.mean(Some(&[1]), false)?.mul_scalar(-smooth)
        };
        // A term with factor 0 is left out: 0 times an infinite loss is NaN.
        let losses = match smooth {
            0.0 => picked()?.neg()?,
            1.0 => {
                picked()?;
                spread()?
            }
            _ => picked()?.mul_scalar(smooth - 1.0)?.add(&spread()?)?,
        };
        losses.masked_fill(&classes.ignored, 0.0)
    }
}

/// Gradient of the logits, `g (softmax(x) - (1 - ε) onehot(target) - ε/n)`.
fn cross_entropy_rule<B: Backend>(
    logits: &Tensor<B>,
    targets: &Tensor<B>,
    [largest, rest]: [B::Tensor; 2],
    (ignore_index, label_smoothing): (Option<i64>, f64),
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
            ignore_index,
            label_smoothing,
        };
        gradients(upstream, &fused, [Some(&logits)], || {
            logits.cross_entropy_composite(&targets, (ignore_index, label_smoothing))
        })
    })
}

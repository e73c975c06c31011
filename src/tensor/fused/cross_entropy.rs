//! `cross_entropy` and `nll`: the losses of classification from logits and from log-probabilities.

use crate::autodiff::graph::{SharedRule, Upstream, bytes_of, record, rule_keeping};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::FusedOp;
use crate::shape::{Axis, Shape};

use super::softmax::to_last;
use super::{gradients, kernel};
use crate::tensor::base::Tensor;

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
    /// The axis of the classes. By default it is the last one or axis 1, as of images `[n, c, h, w]` with targets
    /// `[n, h, w]`: the one without which the logits have the targets' shape. If both fit, it is an error not to say which.
    /// With probabilities as targets it is the last one by default; PyTorch's is axis 1 of tensors with several axes.
    pub axis: Option<Axis>,
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
            axis: None,
        }
    }
}

impl<B: Backend> CrossEntropy<'_, B> {
    /// Checks the arguments; returns the axis of the classes.
    fn check(&self, op: &'static str, x: &Tensor<B>, targets: &Tensor<B>) -> Result<usize> {
        if !(0.0..=1.0).contains(&self.label_smoothing) {
            let reason = format!("label_smoothing must be in [0, 1], got {}", self.label_smoothing);
            return Err(Error::InvalidArgument { op, reason });
        }
        let axis = self.class_axis(op, x, targets)?;
        let Some(weight) = self.weight else { return Ok(axis) };
        x.check_dtype(op, weight.dtype())?;
        match *weight.dims() {
            [count] if x.dims()[axis] == count => Ok(axis),
            _ => Err(Error::ShapeMismatch { op, lhs: *x.shape(), rhs: *weight.shape() }),
        }
    }

    /// The axis without which the logits have the targets' shape, or with which for probabilities.
    fn class_axis(&self, op: &'static str, x: &Tensor<B>, targets: &Tensor<B>) -> Result<usize> {
        let are_probabilities = targets.dtype().is_float();
        let fits = |&axis: &usize| match are_probabilities {
            true => x.shape() == targets.shape(),
            false => x.shape().with_axis(axis, None) == *targets.shape(),
        };
        let last = x.rank().wrapping_sub(1);
        let axis = match self.axis {
            Some(axis) => Some(axis.resolve(op, x.shape())?).filter(fits),
            None if !are_probabilities && last > 1 && x.rank() > 1 && fits(&1) && fits(&last) => {
                let reason = format!(
                    "axes 1 and {last} of logits {} both fit targets {}: set CrossEntropy::axis",
                    x.shape(),
                    targets.shape()
                );
                return Err(Error::InvalidArgument { op, reason });
            }
            None => [last, 1].into_iter().filter(|&i| i < x.rank()).find(fits),
        };
        axis.ok_or(Error::ShapeMismatch { op, lhs: *x.shape(), rhs: *targets.shape() })
    }

    /// The number of targets that are not ignored, unless it is that of all; `F32` for 16-bit floats.
    fn counted(&self, targets: &Tensor<B>, dtype: DType) -> Result<Option<Tensor<B>>> {
        let count = |ignored| targets.ne(ignored)?.sum(None, false)?.to_dtype(dtype.at_least_f32());
        self.ignore_index.map(count).transpose()
    }

    /// `losses` reduced; not reduced, they get `shape`. `total` is what a mean divides by, if not by
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

/// Classes of the elements of targets, all of them valid if the targets are.
struct Classes<B: Backend> {
    /// True for those that are ignored.
    ignored: Tensor<B>,
    /// The class, 0 where ignored.
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

    /// The weights of the classes, 0 where ignored, in `F32` at least.
    fn weights(&self, weight: &Tensor<B>) -> Result<Tensor<B>> {
        let flat = self.class.reshape(self.class.numel())?;
        let weights = weight.widened()?.index_select(0, &flat)?.reshape(*self.class.shape())?;
        weights.masked_fill(&self.ignored, 0.0)
    }
}

/// # Cross-entropy
impl<B: Backend> Tensor<B> {
    /// Cross-entropy in nats between logits `[…, n]` and class indices `targets` `[…]` (integers):
    /// `log Σ e^x - x[target]`, reduced as the options say. The result is a scalar, or `[…]`
    /// without reduction. The classes may lie on [another axis](CrossEntropy::axis): images `[n, c, h, w]` have
    /// targets `[n, h, w]`.
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
    /// [`Error::ShapeMismatch`]; [`Error::AxisOutOfRange`]; [`Error::DTypeMismatch`] if the targets are neither
    /// integers nor of the logits' dtype, or the weights not of that; [`Error::IndexOutOfRange`] for a target that is neither
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
        log_p.check_labels(op, targets)?;
        let targets = targets.as_index(op)?;
        let axis = options.check(op, log_p, &targets)?;
        log_p.likelihood((op, axis), &targets, options, Ok)
    }

    /// Fails unless this is a tensor of floats, and for a float for each row.
    fn check_labels(&self, op: &'static str, targets: &Tensor<B>) -> Result<()> {
        self.check_float(op)?;
        let (dtype, shape) = (targets.dtype(), targets.shape());
        let mut axes = 0..self.rank();
        if dtype.is_float() && axes.any(|axis| self.shape().with_axis(axis, None) == *shape) {
            let reason = format!("labels are integers, got {dtype} of shape {shape}: use to_dtype");
            return Err(Error::InvalidArgument { op, reason });
        }
        Ok(())
    }

    /// The loss of checked targets by the definition, from log-probabilities `log_p(x)`.
    fn likelihood(
        &self,
        (op, axis): (&'static str, usize),
        targets: &Tensor<B>,
        options: CrossEntropy<'_, B>,
        log_p: impl FnOnce(Tensor<B>) -> Result<Tensor<B>>,
    ) -> Result<Self> {
        let classes = Classes::new(targets, options.ignore_index)?;
        let losses = match self.numel() {
            0 => self.no_classes((op, axis), targets, options.ignore_index)?,
            _ => log_p(self.counted(axis, &classes, &options)?)?
                .losses(axis, &classes, &options)
                .and_then(|losses| losses.to_dtype(self.dtype()))
                .map_err(|e| e.named(op))?,
        };
        options.reduced(losses, *targets.shape(), || match options.weight {
            Some(weight) if self.numel() > 0 => classes.weights(weight)?.sum(None, false).map(Some),
            _ => options.counted(targets, self.dtype()),
        })
    }

    pub(crate) fn cross_entropy_body(
        x: &Tensor<B>,
        targets: &Tensor<B>,
        options: CrossEntropy<'_, B>,
    ) -> Result<Self> {
        let op = "cross_entropy";
        x.check_labels(op, targets)?;
        let indices;
        let targets = match targets.dtype().is_float() {
            true => targets,
            false => {
                indices = targets.as_index(op)?;
                &indices
            }
        };
        let axis = options.check(op, x, targets)?;
        if targets.dtype().is_float() {
            return x.expected_loss((op, axis), targets, options);
        }
        if options.weight.is_some() {
            return x.likelihood((op, axis), targets, options, |x| x.log_softmax(axis));
        }
        let last = x.rank() - 1;
        let losses = match axis == last {
            true => {
                let rows = targets.numel();
                let logits = x.reshape((rows, x.dims()[last]))?;
                logits.cross_entropy_rows(&targets.reshape(rows)?, options)?
            }
            // The columns are read where they are.
            false => x
                .permute(&to_last(axis, last))?
                .cross_entropy_rows(targets, options)
                .map_err(|e| match e {
                    Error::IndexOutOfRange { op, index, .. } => {
                        Error::IndexOutOfRange { op, index, axis, shape: *x.shape() }
                    }
                    e => e,
                })?,
        };
        options.reduced(losses, *targets.shape(), || options.counted(targets, x.dtype()))
    }

    /// The loss of probabilities as targets.
    fn expected_loss(
        &self,
        (op, axis): (&'static str, usize),
        targets: &Tensor<B>,
        options: CrossEntropy<'_, B>,
    ) -> Result<Self> {
        self.check_like(op, targets)?;
        let classes = self.dims()[axis];
        if options.ignore_index.is_some() {
            let reason = "ignore_index is for class indices, not for probabilities".to_owned();
            return Err(Error::InvalidArgument { op, reason });
        }
        let smooth = options.label_smoothing;
        let mut p = targets.widened()?;
        if smooth > 0.0 {
            p = p.affine(1.0 - smooth, smooth / classes.max(1) as f64)?;
        }
        let log_p = self.widened()?.log_softmax(axis)?;
        // An impossible class that does not occur adds nothing: 0 times an infinite loss is NaN.
        let none = p.detach().eq(0.0)?.logical_and(&log_p.detach().eq(f64::NEG_INFINITY)?)?;
        let mut terms = p.mul(&log_p.masked_fill(&none, 0.0)?)?;
        if let Some(weight) = options.weight {
            terms = terms.mul(&self.weights_along(axis, weight)?)?;
        }
        let losses = terms.sum_axis(axis, false)?.neg()?.to_dtype(self.dtype())?;
        let shape = *losses.shape();
        options.reduced(losses, shape, || Ok(None))
    }

    /// Weights `[n]`, in `F32` at least, to be broadcast along an axis of this tensor.
    fn weights_along(&self, axis: usize, weight: &Tensor<B>) -> Result<Self> {
        let below = std::iter::repeat_n(1, self.rank() - axis - 1);
        weight.widened()?.reshape(std::iter::once(weight.numel()).chain(below).collect::<Shape>())
    }

    /// The losses `[…]` of logits `[…, n]`.
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

    /// Defines [`Tensor::cross_entropy`] for logits `[…, n]`, without weights.
    fn cross_entropy_composite(
        &self,
        targets: &Tensor<B>,
        (ignore_index, label_smoothing): (Option<i64>, f64),
    ) -> Result<Self> {
        let last = self.rank() - 1;
        if self.numel() == 0 {
            return self.no_classes(("cross_entropy", last), targets, ignore_index);
        }
        let options = CrossEntropy { ignore_index, label_smoothing, ..Default::default() };
        let classes = Classes::new(targets, ignore_index)?;
        let log_p = self.counted(last, &classes, &options)?.softmax_composite(last, true)?;
        log_p.losses(last, &classes, &options)?.to_dtype(self.dtype())
    }

    /// The losses without an element along the axis: all targets must be ignored.
    fn no_classes(
        &self,
        (op, axis): (&'static str, usize),
        targets: &Tensor<B>,
        ignore_index: Option<i64>,
    ) -> Result<Self> {
        let targets = targets.to_vec::<i64>()?;
        match targets.into_iter().find(|&index| ignore_index != Some(index)) {
            None => self.sum(Some(&[axis]), false),
            Some(index) => Err(Error::IndexOutOfRange { op, index, axis, shape: *self.shape() }),
        }
    }

    /// Logits, widened, without those of ignored targets, which may be values without a gradient, such as NaN.
    fn counted(
        &self,
        axis: usize,
        classes: &Classes<B>,
        options: &CrossEntropy<'_, B>,
    ) -> Result<Self> {
        let logits = self.widened()?;
        match options.ignore_index {
            None => Ok(logits),
            Some(_) => logits.masked_fill(&classes.ignored.unsqueeze(axis)?, 0.0),
        }
    }

    /// The losses of log-probabilities along an axis, 0 where ignored.
    fn losses(
        &self,
        axis: usize,
        classes: &Classes<B>,
        options: &CrossEntropy<'_, B>,
    ) -> Result<Self> {
        let (smooth, weight) = (options.label_smoothing, options.weight);
        let picked = || {
            let class = classes.class.unsqueeze(axis)?;
            let picked = self.gathered("gather", axis, class)?.squeeze(axis)?;
            match weight {
                Some(weight) => picked.mul(&classes.weights(weight)?),
                None => Ok(picked),
            }
        };
        let spread = || {
            let weighted = match weight {
                Some(weight) => self.mul(&self.weights_along(axis, weight)?)?,
                None => self.clone(),
            };
            weighted.mean(Some(&[axis]), false)?.mul_scalar(-smooth)
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

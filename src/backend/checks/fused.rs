//! The check of a fused op's operands, which [`Backend::fused`](crate::Backend::fused) owes to its callers.

use super::check_mask;
use crate::backend::TensorData;
use crate::backend::windows::images_like;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::{AttentionParameters, FusedOp, Geometry, Sliding};
use crate::shape::Shape;

impl<T: TensorData> FusedOp<'_, T> {
    /// Checks that the operands fit one another: numbers of axes, shapes, dtypes, and the parameters that kernels rely
    /// on. Backends call it before they run a kernel. Labels are not read.
    ///
    /// ```
    /// use swath::{Backend, CpuBackend, ops::FusedOp};
    /// let (a, b) = (CpuBackend::ones([2, 3])?, CpuBackend::ones([2, 4])?);
    /// let error = FusedOp::Dot { a: &a, b: &b }.check().unwrap_err();
    /// assert_eq!(error.to_string(), "dot: shapes [2, 3] and [2, 4] do not fit");
    /// # Ok::<(), swath::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] with the shape expected and the one found; [`Error::InvalidShape`] for a wrong number of
    /// axes; [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] unless operands are floats;
    /// [`Error::InvalidArgument`] for groups that do not divide the channels, windows that images do not have, and a
    /// probability outside `[0, 1)`.
    pub fn check(&self) -> Result<()> {
        let op = self.name();
        match *self {
            FusedOp::Softmax { x, .. } => rows(op, x).map(drop),
            FusedOp::SoftmaxGrad { g, y, .. } => rows(op, y)?.like(g, y.shape()),
            FusedOp::CrossEntropy { logits, targets, .. } => {
                labelled(op, logits, targets).map(drop)
            }
            FusedOp::CrossEntropyGrad { g, logits, targets, largest, rest, .. } => {
                let (all, each) = labelled(op, logits, targets)?;
                all.like(g, &each)?;
                all.statistic(largest, &each)?;
                all.statistic(rest, &each)
            }
            FusedOp::LayerNorm { x, weight, bias, .. } => {
                let all = rows(op, x)?;
                all.parameter(weight)?;
                all.parameter(bias)
            }
            FusedOp::RmsNorm { x, weight, .. } => rows(op, x)?.parameter(weight),
            FusedOp::LayerNormGrad { g, x, weight, reciprocal_deviation: reciprocal }
            | FusedOp::RmsNormGrad { g, x, weight, reciprocal_rms: reciprocal } => {
                let all = rows(op, x)?;
                all.like(g, x.shape())?;
                all.parameter(weight)?;
                all.statistic(reciprocal, &x.shape().with_axis(x.shape().ndim() - 1, Some(1)))
            }
            FusedOp::BiasActivation { x, bias, .. } => rows(op, x)?.parameter(Some(bias)),
            FusedOp::BiasActivationGrad { g, x, bias, .. } => {
                let all = rows(op, x)?;
                all.like(g, x.shape())?;
                all.parameter(Some(bias))
            }
            FusedOp::Dropout { x, mask } => {
                floats(op, x)?;
                check_mask(op, &mask)
            }
            FusedOp::SinCos { x } => floats(op, x).map(drop),
            FusedOp::Attention { q, k, v, mask, parameters } => {
                attention(op, [q, k, v], mask, parameters).map(drop)
            }
            FusedOp::AttentionGrad { g, q, k, v, mask, largest, inverse, y, parameters } => {
                let (all, result) = attention(op, [q, k, v], mask, parameters)?;
                all.like(g, &result)?;
                all.statistic(y, &result)?;
                let each = q.shape().with_axis(q.shape().ndim() - 1, None);
                all.statistic(largest, &each)?;
                all.statistic(inverse, &each)
            }
            FusedOp::Linear { x, weight, bias, .. } => {
                let all = rows(op, x)?;
                let outputs = weight.shape().dim(0);
                all.like(weight, &Shape::new([outputs, all.columns()]))?;
                bias.map_or(Ok(()), |bias| all.like(bias, &Shape::from(outputs)))
            }
            FusedOp::Dot { a, b } => rows(op, a)?.like(b, a.shape()),
            FusedOp::Conv { x, weight, bias, ref geometry, groups, .. } => {
                convolution(op, [x, weight], bias, geometry, groups)
            }
            FusedOp::ConvTranspose { g, weight, ref geometry, groups } => {
                transposed(op, [g, weight], geometry, groups)
            }
            FusedOp::ConvWeightGrad { g, x, ref geometry, groups } => {
                let all = images(op, x, geometry, geometry.image())?;
                let ([n, channels], [_, outputs]) = (extents(x), extents(g));
                check_groups(op, groups, [channels, outputs])?;
                all.like(g, &images_like(x.shape(), n, outputs, geometry.windows()))
            }
            FusedOp::MaxPool { x, ref geometry, .. } => {
                images(op, x, geometry, geometry.image())?;
                let empty = (0..3).find_map(|axis| geometry.axis(axis).empty_window());
                empty.map_or(Ok(()), |window| {
                    let reason =
                        format!("window {window} has no pixel of images of shape {}", x.shape());
                    Err(Error::InvalidArgument { op, reason })
                })
            }
            FusedOp::AvgPool { x, ref geometry, .. } => {
                images(op, x, geometry, geometry.image()).map(drop)
            }
            FusedOp::AvgPoolGrad { g, ref geometry, .. } => {
                images(op, g, geometry, geometry.windows()).map(drop)
            }
        }
    }
}

/// The operand that gives an op its dtype and most of its shapes.
struct Main<'a, T> {
    op: &'static str,
    x: &'a T,
}

impl<T: TensorData> Main<'_, T> {
    fn has(&self, other: &T, shape: &Shape, dtype: DType) -> Result<()> {
        if other.shape() != shape {
            return Err(Error::ShapeMismatch { op: self.op, lhs: *shape, rhs: *other.shape() });
        }
        super::check_dtype(self.op, other, dtype)
    }

    /// Checks an operand of this shape and the same dtype.
    fn like(&self, other: &T, shape: &Shape) -> Result<()> {
        self.has(other, shape, self.x.dtype())
    }

    /// Checks an operand of this shape and the dtype of the computation.
    fn statistic(&self, other: &T, shape: &Shape) -> Result<()> {
        self.has(other, shape, self.x.dtype().at_least_f32())
    }

    /// Checks an operand with a value for each column.
    fn parameter(&self, other: Option<&T>) -> Result<()> {
        other.map_or(Ok(()), |other| self.like(other, &Shape::from(self.columns())))
    }

    fn columns(&self) -> usize {
        self.x.shape().dims().last().copied().unwrap_or(1)
    }

    fn with_axes(self, fits: bool, reason: &'static str) -> Result<Self> {
        match fits {
            true => Ok(self),
            false => Err(Error::InvalidShape { op: self.op, shape: *self.x.shape(), reason }),
        }
    }
}

/// Checks an operand of floats.
fn floats<'a, T: TensorData>(op: &'static str, x: &'a T) -> Result<Main<'a, T>> {
    match x.dtype() {
        dtype if dtype.is_float() => Ok(Main { op, x }),
        dtype => Err(Error::UnsupportedDType { op, dtype, shape: *x.shape() }),
    }
}

/// Checks an operand of rows.
fn rows<'a, T: TensorData>(op: &'static str, x: &'a T) -> Result<Main<'a, T>> {
    floats(op, x)?.with_axes(x.shape().ndim() > 0, "expected at least one axis")
}

/// Checks logits and targets; returns the shape of one value per row too.
fn labelled<'a, T: TensorData>(
    op: &'static str,
    logits: &'a T,
    targets: &T,
) -> Result<(Main<'a, T>, Shape)> {
    let all = rows(op, logits)?;
    let each = logits.shape().with_axis(logits.shape().ndim() - 1, None);
    all.has(targets, &each, DType::I64)?;
    Ok((all, each))
}

/// Checks queries, keys, values and mask; returns the shape of the result too.
fn attention<'a, T: TensorData>(
    op: &'static str,
    [q, k, v]: [&'a T; 3],
    mask: Option<&T>,
    parameters: AttentionParameters,
) -> Result<(Main<'a, T>, Shape)> {
    let (shape, rank) = (q.shape(), q.shape().ndim());
    let all = floats(op, q)?.with_axes(rank >= 2, "expected the axes [..., queries, depth]")?;
    let (rows, columns) = (rank - 2, rank - 1);
    let (keys, width) = (k.shape().dim(rows), v.shape().dim(columns));
    all.like(k, &shape.with_axis(rows, Some(keys)))?;
    all.like(v, &shape.with_axis(rows, Some(keys)).with_axis(columns, Some(width)))?;
    let scores = shape.with_axis(columns, Some(keys));
    scores.validate(op)?;
    if let Some(mask) = mask {
        let dtype = if mask.dtype() == DType::Bool { DType::Bool } else { q.dtype() };
        all.has(mask, &scores, dtype)?;
    }
    if let Some(dropout) = &parameters.dropout {
        check_mask(op, dropout)?;
    }
    Ok((all, shape.with_axis(columns, Some(width))))
}

/// Checks images `[n, c, …]` of these extents, with windows that have taps along the axes of the images.
fn images<'a, T: TensorData>(
    op: &'static str,
    x: &'a T,
    geometry: &Geometry,
    image: [usize; 3],
) -> Result<Main<'a, T>> {
    let axes = x.shape().ndim().saturating_sub(2);
    let reason = "expected the axes [n, channels, ...] of images of one to three axes";
    let all = floats(op, x)?.with_axes((1..=3).contains(&axes), reason)?;
    let [n, channels] = extents(x);
    all.like(x, &images_like(x.shape(), n, channels, image))?;
    let is_lacking = |axis| *geometry.axis(axis) == Sliding::default();
    let has_none = geometry.kernel().contains(&0) || geometry.windows().contains(&0);
    if has_none || !(0..3 - axes).all(is_lacking) {
        let reason = format!(
            "{:?} windows of {:?} taps do not fit images of shape {}",
            geometry.windows(),
            geometry.kernel(),
            x.shape()
        );
        return Err(Error::InvalidArgument { op, reason });
    }
    Ok(all)
}

/// Checks images, filters and bias of a convolution.
fn convolution<T: TensorData>(
    op: &'static str,
    [x, weight]: [&T; 2],
    bias: Option<&T>,
    geometry: &Geometry,
    groups: usize,
) -> Result<()> {
    let all = images(op, x, geometry, geometry.image())?;
    let ([_, channels], [outputs, _]) = (extents(x), extents(weight));
    let each = check_groups(op, groups, [channels, outputs])?;
    all.like(weight, &images_like(x.shape(), outputs, each, geometry.kernel()))?;
    bias.map_or(Ok(()), |bias| all.like(bias, &Shape::from(outputs)))
}

/// Checks the upstream gradient and the filters of a transposed convolution.
fn transposed<T: TensorData>(
    op: &'static str,
    [g, weight]: [&T; 2],
    geometry: &Geometry,
    groups: usize,
) -> Result<()> {
    let all = images(op, g, geometry, geometry.windows())?;
    let ([_, outputs], [_, each]) = (extents(g), extents(weight));
    all.like(weight, &images_like(g.shape(), outputs, each, geometry.kernel()))?;
    let overflow = Error::Overflow { op, shape: *weight.shape() };
    let channels = each.checked_mul(groups).ok_or(overflow)?;
    check_groups(op, groups, [channels, outputs]).map(drop)
}

/// The first two extents.
fn extents<T: TensorData>(x: &T) -> [usize; 2] {
    [x.shape().dim(0), x.shape().dim(1)]
}

/// Checks that groups divide input and output channels; returns the input channels of a group.
pub(crate) fn check_groups(op: &'static str, groups: usize, channels: [usize; 2]) -> Result<usize> {
    let [inputs, outputs] = channels;
    let reason = match groups {
        0 => "expected at least 1 group, got 0".to_owned(),
        _ if channels.iter().all(|channels| channels.is_multiple_of(groups)) => {
            return Ok(inputs / groups);
        }
        _ => format!("{groups} groups do not divide {inputs} input and {outputs} output channels"),
    };
    Err(Error::InvalidArgument { op, reason })
}

//! Quantiles, medians, the most frequent elements.

use smallvec::{SmallVec, smallvec};

use crate::backend::Backend;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::shape::{Axis, Shape};

use super::base::Tensor;
use super::order::ASCENDING;

/// How [`Tensor::quantiles`] computes a quantile between two elements, as in NumPy.
///
/// The quantile q of n elements is at position `q (n - 1)` of the sorted elements, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QuantileMethod {
    /// Linear interpolation between the two elements around the position.
    #[default]
    Linear,
    /// The element before the position.
    Lower,
    /// The element after the position.
    Higher,
    /// The nearest element; of two equally near ones, the one with the even index.
    Nearest,
    /// The mean of the two elements around the position.
    Midpoint,
}

impl QuantileMethod {
    /// The indices of the elements that a position lies between, and the weight of the upper one.
    fn around(self, position: f64) -> (i64, i64, f64) {
        let (lower, upper) = (position.floor() as i64, position.ceil() as i64);
        match self {
            QuantileMethod::Linear => (lower, upper, position - position.floor()),
            QuantileMethod::Midpoint => (lower, upper, 0.5),
            QuantileMethod::Lower => (lower, lower, 0.0),
            QuantileMethod::Higher => (upper, upper, 0.0),
            QuantileMethod::Nearest => {
                let nearest = position.round_ties_even() as i64;
                (nearest, nearest, 0.0)
            }
        }
    }
}

/// Elements along an axis by their rank. Equal elements keep their order (−0 equals +0). The gradient of a value flows back
/// to the elements it was computed from. Indices are `I64` and have no gradient.
///
/// # Errors
/// [`Error::AxisOutOfRange`].
impl<B: Backend> Tensor<B> {
    /// Median along an axis: the middle one of the sorted elements, or the lower of the two middle ones. NaN if any
    /// element is NaN. The gradient flows to that element.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[5.0, 1.0, 2.0], [0.0, 9.0, 9.0]];
    /// assert_eq!(x.median(1, false)?.to_vec::<f32>()?, [2.0, 9.0]);
    /// assert_eq!(x.median(0, true)?.to_vec::<f32>()?, [0.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::EmptyReduction`] if the axis has extent 0.
    pub fn median(&self, axis: impl Into<Axis>, keepdims: bool) -> Result<Self> {
        self.one_quantile("median", 0.5, axis.into(), keepdims, QuantileMethod::Lower, false)
    }

    /// [`median`](Tensor::median) and its index along the axis; of NaN, that of the first.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[5.0, 1.0, 2.0], [0.0, f32::NAN, 9.0]];
    /// let (_, indices) = x.median_with_indices(1, false)?;
    /// assert_eq!(indices.to_vec::<i64>()?, [2, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::EmptyReduction`] if the axis has extent 0.
    pub fn median_with_indices(
        &self,
        axis: impl Into<Axis>,
        keepdims: bool,
    ) -> Result<(Self, Self)> {
        self.middle("median_with_indices", axis.into(), keepdims, false)
    }

    /// [`median`](Tensor::median) of the elements that are not NaN, NaN if there are none, and its index along the axis.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[5.0, 1.0, f32::NAN], [f32::NAN, f32::NAN, 9.0]];
    /// let (values, indices) = x.nanmedian(1, false)?;
    /// assert_eq!(values.to_vec::<f32>()?, [1.0, 9.0]);
    /// assert_eq!(indices.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::EmptyReduction`] if the axis has extent 0.
    pub fn nanmedian(&self, axis: impl Into<Axis>, keepdims: bool) -> Result<(Self, Self)> {
        self.middle("nanmedian", axis.into(), keepdims, true)
    }

    fn middle(
        &self,
        op: &'static str,
        axis: Axis,
        keepdims: bool,
        skips_nan: bool,
    ) -> Result<(Self, Self)> {
        self.selected_along(op, axis, keepdims, |sorted, axis| {
            let numbers = sorted.eq(sorted)?.sum(Some(&[axis]), true)?;
            let middle = numbers.sub(1)?.clamp_min(0)?.floor_divide(2)?;
            if skips_nan {
                return Ok(middle);
            }
            // The first NaN comes after the numbers.
            let has_nan = numbers.lt(sorted.dims()[axis] as i64)?;
            Tensor::where_cond(&has_nan, &numbers, &middle)
        })
    }

    /// Returns the most frequent element along an axis, the smallest of equally frequent ones, and the index of its last
    /// occurrence. NaN equals nothing. The gradient flows to that occurrence.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (values, indices) = tensor![[3.0, 1.0, 3.0, 1.0, 2.0]].mode(1, false)?;
    /// assert_eq!((values.to_vec::<f32>()?, indices.to_vec::<i64>()?), (vec![1.0], vec![3]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::EmptyReduction`] if the axis has extent 0.
    pub fn mode(&self, axis: impl Into<Axis>, keepdims: bool) -> Result<(Self, Self)> {
        let op = "mode";
        self.selected_along(op, axis.into(), keepdims, |sorted, axis| {
            let pairs = sorted.dims()[axis] - 1;
            let column = |count, first: i64| {
                sorted.along(op, axis, count, DType::I64, |i| Scalar::Int(i as i64 + first))
            };
            // Where each run of equal elements begins, so far; the longest run ends farthest from its beginning.
            let (here, next) = (sorted.narrow(axis, 0, pairs)?, sorted.narrow(axis, 1, pairs)?);
            let zero = Tensor::zeros((), DType::I64)?;
            let begins = Tensor::where_cond(&here.ne(&next)?, &column(pairs, 1)?, &zero)?;
            let first = zero.broadcast_to(sorted.shape().with_axis(axis, Some(1)))?;
            let begins = Tensor::cat(&[&first, &begins], axis)?.cummax(axis)?.0;
            column(pairs + 1, 0)?.sub(&begins)?.argmax(axis, true)
        })
    }

    /// Selects an element along an axis by its rank among the sorted ones, which `rank` computes from them, and returns
    /// it and its index.
    fn selected_along(
        &self,
        op: &'static str,
        axis: Axis,
        keepdims: bool,
        rank: impl FnOnce(&Self, usize) -> Result<Self>,
    ) -> Result<(Self, Self)> {
        let shape = *self.shape();
        let axis = axis.resolve(op, &shape)?;
        let select = || {
            let one = shape.with_axis(axis, Some(1));
            let index = match shape.dim(axis) {
                0 if one.numel() > 0 => return Err(Error::EmptyReduction { op, shape }),
                0 => Tensor::zeros(one, DType::I64)?,
                _ => {
                    let (sorted, order) = B::order(ASCENDING, self.data(), axis)?;
                    let rank = rank(&Tensor::from_data(sorted), axis)?;
                    Tensor::from_data(order).gather(axis, &rank)?
                }
            };
            let values = self.gather(axis, &index)?;
            if keepdims {
                return Ok((values, index));
            }
            Ok((values.squeeze(axis)?, index.squeeze(axis)?))
        };
        select().map_err(|error| error.named(op))
    }

    /// Quantile `q` of floats along an axis, from 0 (minimum) to 1 (maximum), with linear interpolation between
    /// elements. NaN if any element is NaN. Computed in `f64` and rounded once. The gradient flows to the one or two
    /// elements it is computed from.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![4.0, 1.0, 2.0, 3.0];
    /// assert_eq!(x.quantile(0.5, 0, false)?.item::<f32>()?, 2.5);
    /// assert_eq!(x.quantile(0.1, 0, false)?.item::<f32>()?, 1.3);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless q is in 0..=1; [`Error::UnsupportedDType`] for integers;
    /// [`Error::EmptyReduction`] if the axis has extent 0.
    pub fn quantile(&self, q: f64, axis: impl Into<Axis>, keepdims: bool) -> Result<Self> {
        self.one_quantile("quantile", q, axis.into(), keepdims, QuantileMethod::Linear, false)
    }

    /// Several quantiles along an axis from one sort, stacked along a new first axis; see
    /// [`quantile`](Tensor::quantile). Methods that select an element also work for integers.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[4.0, 1.0, 2.0, 3.0], [0.0, 8.0, 2.0, 4.0]];
    /// let quartiles = x.quantiles(&[0.25, 0.75], 1, false, QuantileMethod::Higher)?;
    /// assert_eq!(quartiles.dims(), [2, 2]);
    /// assert_eq!(quartiles.to_vec::<f32>()?, [2.0, 2.0, 4.0, 8.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`quantile`](Tensor::quantile).
    pub fn quantiles(
        &self,
        qs: &[f64],
        axis: impl Into<Axis>,
        keepdims: bool,
        method: QuantileMethod,
    ) -> Result<Self> {
        self.stacked_quantiles("quantiles", qs, axis.into(), keepdims, method, false)
    }

    /// [`quantile`](Tensor::quantile) of the elements that are not NaN; NaN if there are none.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![4.0, 1.0, f32::NAN, 2.0, 3.0];
    /// assert_eq!(x.nanquantile(0.5, 0, false)?.item::<f32>()?, 2.5);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`quantile`](Tensor::quantile).
    pub fn nanquantile(&self, q: f64, axis: impl Into<Axis>, keepdims: bool) -> Result<Self> {
        self.one_quantile("nanquantile", q, axis.into(), keepdims, QuantileMethod::Linear, true)
    }

    /// [`quantiles`](Tensor::quantiles) of the elements that are not NaN; NaN if there are none.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[4.0, f32::NAN, 2.0, 3.0]];
    /// let y = x.nanquantiles(&[0.0, 0.5], 1, false, QuantileMethod::Linear)?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`quantile`](Tensor::quantile).
    pub fn nanquantiles(
        &self,
        qs: &[f64],
        axis: impl Into<Axis>,
        keepdims: bool,
        method: QuantileMethod,
    ) -> Result<Self> {
        self.stacked_quantiles("nanquantiles", qs, axis.into(), keepdims, method, true)
    }

    fn one_quantile(
        &self,
        op: &'static str,
        q: f64,
        axis: Axis,
        keepdims: bool,
        method: QuantileMethod,
        skips_nan: bool,
    ) -> Result<Self> {
        let y = B::engine_quantile(self, op, &[q], axis, method, skips_nan)?;
        if keepdims { Ok(y) } else { y.squeeze(axis) }
    }

    fn stacked_quantiles(
        &self,
        op: &'static str,
        qs: &[f64],
        axis: Axis,
        keepdims: bool,
        method: QuantileMethod,
        skips_nan: bool,
    ) -> Result<Self> {
        let y = B::engine_quantile(self, op, qs, axis, method, skips_nan)?;
        let axis = axis.resolve(op, y.shape())?;
        let y = y.movedim(axis, 0)?;
        if keepdims { y.unsqueeze(axis + 1).map_err(|error| error.named(op)) } else { Ok(y) }
    }

    /// Returns the quantiles along `axis`, which gets their number as its extent.
    pub(crate) fn quantile_body(
        x: &Tensor<B>,
        op: &'static str,
        qs: &[f64],
        axis: Axis,
        method: QuantileMethod,
        skips_nan: bool,
    ) -> Result<Self> {
        let (shape, dtype) = (*x.shape(), x.dtype());
        let axis = axis.resolve(op, &shape)?;
        let blends = matches!(method, QuantileMethod::Linear | QuantileMethod::Midpoint);
        if blends && !dtype.is_float() {
            return Err(Error::UnsupportedDType { op, dtype, shape });
        }
        if let Some(q) = qs.iter().find(|q| !(0.0..=1.0).contains(*q)) {
            let reason = format!("expected a quantile in 0..=1, got {q}, for shape {shape}");
            return Err(Error::InvalidArgument { op, reason });
        }
        let out = shape.with_axis(axis, Some(qs.len()));
        out.validate(op)?;
        let Some(last) = shape.dim(axis).checked_sub(1) else {
            return match out.numel() {
                0 => x.reshape(out),
                _ => Err(Error::EmptyReduction { op, shape }),
            };
        };
        let (sorted, order) = B::order(ASCENDING, x.data(), axis).map_err(|e| e.named(op))?;
        let (sorted, order) = (Tensor::<B>::from_data(sorted), Tensor::<B>::from_data(order));
        // A row of positions for all lines along the axis, or without NaN one for each.
        let mut shown = Shape::from(vec![1; shape.ndim()]).with_axis(axis, Some(qs.len()));
        let mut lasts: SmallVec<[usize; 4]> = smallvec![last];
        if skips_nan {
            let numbers = sorted.eq(&sorted)?.sum(Some(&[axis]), true)?.to_vec::<i64>()?;
            lasts = numbers.into_iter().map(|count| (count as usize).saturating_sub(1)).collect();
            shown = out;
        }
        let below: usize = shown.dims()[axis + 1..].iter().product();
        let positions = (0..shown.numel()).map(|i| {
            let (row, column) = (i / below, i % below);
            let line = row / qs.len() * below + column;
            method.around(qs[row % qs.len()] * lasts[line] as f64)
        });
        let positions: SmallVec<[(i64, i64, f64); 4]> = positions.collect();
        let is_nan = sorted.narrow(axis, last, 1)?.isnan()?;
        let nan = order.narrow(axis, last, 1)?;
        let selected = |rank: &dyn Fn(&(i64, i64, f64)) -> i64| {
            let ranks: Vec<i64> = positions.iter().map(rank).collect();
            let ranks = Tensor::from_vec(ranks, shown)?.broadcast_to(out)?;
            let mut index = order.gathered(op, axis, ranks)?;
            if !skips_nan {
                index = Tensor::where_cond(&is_nan, &nan, &index)?;
            }
            x.gather(axis, &index)
        };
        let lower = selected(&|position| position.0)?;
        if !blends {
            return Ok(lower);
        }
        let wide = B::wide(Some(x.data()));
        let upper = selected(&|position| position.1)?;
        let weights = |weight: &dyn Fn(f64) -> f64| {
            let weight = |i: usize| Scalar::Float(weight(positions[i].2));
            Tensor::from_scalars(op, shown, wide, weight)
        };
        let (lower, upper) = (lower.to_dtype(wide)?, upper.to_dtype(wide)?);
        let between = lower.lerp(&upper, &weights(&|w| w)?)?;
        // If the difference is infinite, use a weighted sum. A weight of 0 becomes 0.5, because 0 times ∞ is NaN.
        let split = |w| if w == 0.0 { 0.5 } else { w };
        let part = lower.mul(&weights(&|w| 1.0 - split(w))?)?;
        let sum = upper.mul_add(&weights(&split)?, &part)?;
        Tensor::where_cond(&between.isfinite()?, &between, &sum)?.to_dtype(dtype)
    }
}

//! Counts, histograms, and random samples.

use std::ops::Range;

use crate::backend::Backend;
use crate::dtype::{DType, Element, for_dtype};
use crate::error::{Error, Result, reserved};
use crate::rng::Rng;
use crate::shape::Shape;

use super::base::Tensor;

impl<B: Backend> Tensor<B> {
    /// Counts how often each of 0, 1, … occurs among integers or booleans: `[m]`, `I64`. m is the largest element
    /// plus 1, and at least `n`. No gradient.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![i64; [1, 3], [1, 0]];
    /// assert_eq!(x.bincount(6)?.to_vec::<i64>()?, [1, 2, 0, 1, 0, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`] for floats; [`Error::InvalidArgument`] for a negative element.
    pub fn bincount(&self, n: usize) -> Result<Self> {
        B::engine_bincount(self, None, n)
    }

    /// Adds up the weights of the elements that are 0, 1, …; see [`bincount`](Tensor::bincount). Weights have the
    /// shape of this tensor, and sums their dtype; they are added in row-major order, each rounded (16-bit floats
    /// in `f32`, rounded once). Their gradient is that of the sum to which each was added.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![i64; 1, 0, 1];
    /// let sums = x.bincount_weighted(&tensor![0.5, 1.0, 2.0], 3)?;
    /// assert_eq!(sums.to_vec::<f32>()?, [1.0, 2.5, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`bincount`](Tensor::bincount); [`Error::ShapeMismatch`]; [`Error::UnsupportedDType`] for boolean
    /// weights.
    pub fn bincount_weighted(&self, weights: &Tensor<B>, n: usize) -> Result<Self> {
        B::engine_bincount(self, Some(weights), n).map_err(|e| e.named("bincount_weighted"))
    }

    pub(crate) fn bincount_body(
        x: &Tensor<B>,
        weights: Option<&Tensor<B>>,
        n: usize,
    ) -> Result<Self> {
        let (op, count, shape) = ("bincount", x.numel(), *x.shape());
        if x.dtype().is_float() {
            return Err(Error::UnsupportedDType { op, dtype: x.dtype(), shape });
        }
        let weights = match weights {
            Some(weights) if *weights.shape() != shape => {
                return Err(Error::ShapeMismatch { op, lhs: shape, rhs: *weights.shape() });
            }
            Some(weights) => weights.reshape(count)?,
            None => Tensor::ones(1, DType::I64)?.broadcast_to(count)?,
        };
        let index = Tensor::from_data(B::cast(x.data(), DType::I64)?).reshape(count)?;
        let bins = if count == 0 { n } else { n.max(index.largest_index(op)? + 1) };
        let zeros = Tensor::zeros(bins, weights.dtype()).map_err(|e| e.named(op))?;
        zeros.scatter_add(0, &index, &weights).map_err(|e| e.named(op))
    }

    /// The largest of some `I64` numbers; a negative one is an error.
    fn largest_index(&self, op: &'static str) -> Result<usize> {
        let least = self.min(None, false)?.item::<i64>()?;
        let largest = self.max(None, false)?.item::<i64>()?;
        match usize::try_from(largest) {
            Ok(largest) if least >= 0 && largest < usize::MAX => Ok(largest),
            _ => {
                let reason = format!("expected integers from 0, got {least} to {largest}");
                Err(Error::InvalidArgument { op, reason })
            }
        }
    }

    /// Counts the elements in each of `bins` intervals of equal length that divide `range`: `[bins]`, `I64`. An
    /// interval contains its lower end, the last one both ends. Elements outside the range, and NaN, are not
    /// counted. Elements and ends are compared in the backend's widest float type, `f64` on the CPU. No gradient.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![0.0, 0.1, 0.5, 0.9, 1.0, 1.5, f32::NAN];
    /// assert_eq!(x.histogram(2, 0.0..1.0)?.to_vec::<i64>()?, [2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless there is at least one bin and the ends are finite and in order.
    pub fn histogram(&self, bins: usize, range: Range<f64>) -> Result<Self> {
        B::engine_histogram(self, bins, range)
    }

    pub(crate) fn histogram_body(x: &Tensor<B>, bins: usize, range: Range<f64>) -> Result<Self> {
        let op = "histogram";
        let is_finite = range.start.is_finite() && range.end.is_finite();
        if bins == 0 || !is_finite || range.is_empty() {
            let reason = format!(
                "expected bins and a range of finite ends in order, got {bins} bins of {range:?}, for \
                 shape {}",
                x.shape()
            );
            return Err(Error::InvalidArgument { op, reason });
        }
        Shape::from(bins.saturating_add(2)).validate(op)?;
        let wide = B::wide(Some(x.data()));
        let ends = Tensor::linspace_as(range.start, range.end, bins + 1, wide);
        let ends = ends.map_err(|error| error.named(op))?;
        // The last interval contains its upper end.
        let end = match wide {
            DType::F64 => Tensor::full(1, range.end.next_up())?,
            _ => Tensor::full(1, (range.end as f32).next_up())?,
        };
        let ends = Tensor::cat(&[&ends.narrow(0, 0, bins)?, &end], 0)?;
        let x = x.detach().to_dtype(wide)?.reshape(x.numel())?;
        // 0 is below the range, and NaN is above it.
        let bin = x.searchsorted_right(&ends).map_err(|error| error.named(op))?;
        let ones = Tensor::ones(1, DType::I64)?.broadcast_to(bin.shape())?;
        let counts = Tensor::zeros(bins + 2, DType::I64)?.scatter_add(0, &bin, &ones);
        counts.map_err(|error| error.named(op))?.narrow(0, 1, bins)?.contiguous()
    }

    /// Draws `n` indices from the last axis, `[…, c]` to `[…, n]`, `I64`, with replacement: each index i with
    /// probability `w[i] / Σ w`, where w are the elements. A seed gives the same indices on every machine. For
    /// draws without replacement see [`multinomial_distinct`](Tensor::multinomial_distinct). No gradient.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let weights = tensor![[0.0, 1.0, 0.0], [2.0, 0.0, 2.0]];
    /// let drawn = weights.multinomial(4, &mut Rng::seed(1))?;
    /// assert_eq!(drawn.dims(), [2, 4]);
    /// assert_eq!(drawn.slice(s![0])?.to_vec::<i64>()?, [1, 1, 1, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless the weights of every row are finite, not negative and not all 0, and
    /// their sum is finite; [`Error::InvalidShape`] without an axis.
    pub fn multinomial(&self, n: usize, rng: &mut Rng) -> Result<Self> {
        B::engine_multinomial(self, n, false, rng)
    }

    /// Draws `n` different indices from the last axis, one after the other: an index that was drawn has weight 0
    /// from then on. See [`multinomial`](Tensor::multinomial).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let weights = tensor![5.0, 0.0, 1.0];
    /// let mut drawn = weights.multinomial_distinct(2, &mut Rng::seed(1))?.to_vec::<i64>()?;
    /// drawn.sort();
    /// assert_eq!(drawn, [0, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`multinomial`](Tensor::multinomial); [`Error::InvalidArgument`] if a row has fewer than `n`
    /// weights that are not 0.
    pub fn multinomial_distinct(&self, n: usize, rng: &mut Rng) -> Result<Self> {
        B::engine_multinomial(self, n, true, rng)
    }

    pub(crate) fn multinomial_body(
        x: &Tensor<B>,
        n: usize,
        distinct: bool,
        rng: &mut Rng,
    ) -> Result<Self> {
        let op = if distinct { "multinomial_distinct" } else { "multinomial" };
        let shape = *x.shape();
        let Some(last) = shape.ndim().checked_sub(1) else {
            let reason = "expected weights along at least one axis";
            return Err(Error::InvalidShape { op, shape, reason });
        };
        let out = shape.with_axis(last, Some(n));
        out.validate(op)?;
        let host = B::to_host(x.data())?;
        let weights: Vec<f64> = for_dtype!(host.dtype(), T => {
            T::host_slice(&host).unwrap_or(&[]).iter().map(|x| x.to_f64()).collect()
        });
        let columns = shape.dim(last);
        let rows = shape.with_axis(last, Some(1)).numel();
        let too_few = |row: usize| {
            let row = &weights[row * columns..][..columns];
            let (count, sum) = (row.iter().filter(|&&x| x > 0.0).count(), row.iter().sum::<f64>());
            let reason = format!(
                "cannot draw {n} indices from {count} positive weights with the sum {sum}, of shape {shape}"
            );
            Error::InvalidArgument { op, reason }
        };
        if distinct && n > columns && rows > 0 {
            return Err(too_few(0));
        }
        let indices = reserved(op, out.numel()).map_err(|error| error.of_shape(&out))?;
        let drawn = rng.weighted_indices(&weights, columns, [rows, n], distinct, indices);
        Tensor::from_vec(drawn.map_err(too_few)?, out)
    }
}

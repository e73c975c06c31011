//! Counts, histograms, and random samples.

use std::ops::Range;

use crate::backend::{Backend, check_same_shape};
use crate::dtype::{DType, Element, Scalar, for_dtype};
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
        if let Some(weights) = weights {
            check_same_shape(op, x.data(), weights.data())?;
        }
        let index = Tensor::from_data(B::cast(x.data(), DType::I64)?).reshape(count)?;
        let bins = if count == 0 { n } else { n.max(index.largest_index(op)? + 1) };
        index.bin_totals(op, bins, weights)
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
        let edges = range_edges::<B>(op, x, bins, range)?;
        x.bin_numbers(op, &edges)?.bin_totals(op, bins + 2, None)?.narrow(0, 1, bins)?.contiguous()
    }

    /// Like [`histogram`](Tensor::histogram), with intervals between given edges `[n + 1]`, of this tensor's dtype and in
    /// order: `[n]`. With weights, of this tensor's shape, each interval has the sum of those of its elements, in their
    /// dtype; their gradient is that of the sum. `density` divides by the total and by the length of the interval, in the
    /// dtype of the weights or else of the edges. NumPy's and PyTorch's `histogram`, where PyTorch's counts are floats.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (x, edges) = (tensor![0.5, 1.0, 4.0, 5.0], tensor![0.0, 1.0, 4.0]);
    /// assert_eq!(x.histogram_edges(&edges, None, false)?.to_vec::<i64>()?, [1, 2]);
    /// let weights = tensor![1.0, 2.0, 3.0, 9.0];
    /// assert_eq!(x.histogram_edges(&edges, Some(&weights), false)?.to_vec::<f32>()?, [1.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless there are at least two edges along one axis, in ascending order;
    /// [`Error::DTypeMismatch`]; [`Error::ShapeMismatch`] for weights of another shape; [`Error::UnsupportedDType`] for
    /// boolean weights, and for a density of integers.
    pub fn histogram_edges(
        &self,
        edges: &Tensor<B>,
        weights: Option<&Tensor<B>>,
        density: bool,
    ) -> Result<Self> {
        let (op, shape) = ("histogram_edges", *self.shape());
        self.check_beside(op, edges)?;
        self.check_dtype(op, edges.dtype())?;
        let numbers = edges.host_floats()?;
        if edges.rank() != 1 || numbers.len() < 2 || !numbers.is_sorted() {
            let reason = format!(
                "expected at least two edges along one axis, in ascending order, got {} of shape {}, for shape {shape}",
                edges.numel(),
                edges.shape()
            );
            return Err(Error::InvalidArgument { op, reason });
        }
        let dtype = weights.map_or(edges.dtype(), Tensor::dtype);
        if density && !dtype.is_float() {
            return Err(Error::UnsupportedDType { op, dtype, shape });
        }
        let bins = numbers.len() - 1;
        if let Some(weights) = weights {
            check_same_shape(op, self.data(), weights.data())?;
        }
        let bin = self.bin_numbers(op, &numbers)?;
        let totals = bin.bin_totals(op, bins + 2, weights)?.narrow(0, 1, bins)?.contiguous()?;
        if !density {
            return Ok(totals);
        }
        let wide = B::wide(Some(self.data()));
        let length = |i: usize| Scalar::Float(numbers[i + 1] - numbers[i]);
        let lengths = Tensor::from_scalars(op, bins.into(), wide, length)?;
        let totals = totals.to_dtype(wide)?;
        totals.div(&totals.sum_all()?)?.div(&lengths)?.to_dtype(dtype)
    }

    /// Counts pairs of elements of two tensors of one shape in each of `bins[0] · bins[1]` rectangles: `bins`, `I64`. The
    /// first axis divides the first range, for this tensor, the second axis the second one, for `y`, both as in
    /// [`histogram`](Tensor::histogram). No gradient. NumPy's `histogram2d`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (x, y) = (tensor![0.1, 0.9, 0.8], tensor![0.0, 3.0, 2.0]);
    /// let counts = x.histogram2d(&y, [1, 3], [0.0..1.0, 0.0..3.0])?;
    /// assert_eq!((counts.dims(), counts.to_vec::<i64>()?), (&[1, 3][..], vec![1, 0, 2]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`histogram`](Tensor::histogram); [`Error::ShapeMismatch`]; [`Error::Overflow`] for too many bins.
    pub fn histogram2d(
        &self,
        y: &Tensor<B>,
        bins: [usize; 2],
        ranges: [Range<f64>; 2],
    ) -> Result<Self> {
        let op = "histogram2d";
        check_same_shape(op, self.data(), y.data())?;
        let all = bins.map(|bins| bins.saturating_add(2));
        let count = Shape::from(all).checked_numel(op)?;
        let [first, second] = ranges;
        let row = self.bin_numbers(op, &range_edges::<B>(op, self, bins[0], first)?)?;
        let column = y.bin_numbers(op, &range_edges::<B>(op, y, bins[1], second)?)?;
        let totals = row.mul(all[1])?.add(&column)?.bin_totals(op, count, None)?;
        totals.reshape(all)?.narrow(0, 1, bins[0])?.narrow(1, 1, bins[1])?.contiguous()
    }

    /// Number of the interval of each element between edges, in row-major order: 0 is below them. NaN is above them.
    fn bin_numbers(&self, op: &'static str, edges: &[f64]) -> Result<Self> {
        let wide = B::wide(Some(self.data()));
        let last = edges.len() - 1;
        // The last interval contains its upper end.
        let edge = |i: usize| match (i == last, wide) {
            (true, _) if edges[i] == f64::INFINITY => f64::NAN,
            (true, DType::F64) => edges[i].next_up(),
            (true, _) => (edges[i] as f32).next_up().into(),
            _ => edges[i],
        };
        let edge = |i| Scalar::Float(edge(i));
        let edges = Tensor::from_scalars(op, edges.len().into(), wide, edge)?;
        let x = self.detach().to_dtype(wide)?.reshape(self.numel())?;
        x.searchsorted_right(&edges).map_err(|error| error.named(op))
    }

    /// Sums of the weights, or of ones, of these numbers of bins.
    fn bin_totals(
        &self,
        op: &'static str,
        bins: usize,
        weights: Option<&Tensor<B>>,
    ) -> Result<Self> {
        let weights = match weights {
            Some(weights) => weights.reshape(self.numel())?,
            None => Tensor::ones(1, DType::I64)?.broadcast_to(self.numel())?,
        };
        let zeros = Tensor::zeros(bins, weights.dtype()).map_err(|e| e.named(op))?;
        zeros.scatter_add(0, self, &weights).map_err(|e| e.named(op))
    }

    /// The elements in row-major order as `f64`.
    pub(super) fn host_floats(&self) -> Result<Vec<f64>> {
        let host = B::to_host(self.data())?;
        Ok(for_dtype!(host.dtype(), T => {
            T::host_slice(&host).unwrap_or(&[]).iter().map(|x| x.to_f64()).collect()
        }))
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
        let weights = x.host_floats()?;
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

/// The edges of `bins` intervals of equal length, in the precision in which the elements of `x` are compared with them.
fn range_edges<B: Backend>(
    op: &'static str,
    x: &Tensor<B>,
    bins: usize,
    range: Range<f64>,
) -> Result<Vec<f64>> {
    let is_finite = range.start.is_finite() && range.end.is_finite();
    if bins == 0 || !is_finite || range.is_empty() {
        let reason = format!(
            "expected bins and a range of finite ends in order, got {bins} bins of {range:?}, for shape {}",
            x.shape()
        );
        return Err(Error::InvalidArgument { op, reason });
    }
    Shape::from(bins.saturating_add(2)).validate(op)?;
    let wide = B::wide(Some(x.data()));
    let edges = Tensor::<B>::linspace_as(range.start, range.end, bins + 1, wide);
    edges.map_err(|error| error.named(op))?.host_floats()
}

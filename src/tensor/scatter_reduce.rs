//! Elements reduced at indices: `scatter_reduce`, `index_reduce`.
//!
//! ```text
//! sum, mean    scatter_add
//! max, min     one pass on the CPU
//! prod         the same, unless it has a gradient: then the source in the order of the indices; products of adjacent
//!              elements of one index, of pairs of them, …; then scatter of the first of each index
//! ```

use smallvec::smallvec;

use crate::autodiff::graph::{Upstream, bytes_of, record, rule_keeping};
use crate::backend::cpu::scatter_with;
use crate::backend::{Backend, check_arithmetic};
use crate::error::{Error, Result};
use crate::ops::BinaryOp;
use crate::shape::Axis;

use super::base::Tensor;
use super::order::ASCENDING;
use super::special::{from_cpu, on_cpu};

/// How [`Tensor::scatter_reduce`] and [`Tensor::index_reduce`] reduce. PyTorch's names are `sum`, `mean`, `prod`, `amax`
/// and `amin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceMode {
    /// The sum.
    Sum,
    /// The mean; of integers rounded down.
    Mean,
    /// The product. Floats up to 32 bits are multiplied in `f32`.
    Prod,
    /// The largest element; NaN if one is.
    Max,
    /// The smallest element; NaN if one is.
    Min,
}

/// # Reductions at indices
impl<B: Backend> Tensor<B> {
    /// Returns a copy in which the elements at `index` along an axis are reduced with those of `source`, of the index's
    /// shape: with `ReduceMode::Sum`, as [`scatter_add`](Tensor::scatter_add). Without `include_self` an element that
    /// has an index is replaced by the reduction of its sources alone. PyTorch's `scatter_reduce`.
    ///
    /// The gradient of the largest and the smallest element is split evenly among equal ones (without `include_self`
    /// among the sources, where PyTorch counts the tensor's own element too), that of a product is the product of the
    /// others, right where elements are 0.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 1.0, 1.0];
    /// let (index, source) = (tensor![i64; 0, 0, -1], tensor![2.0, 3.0, 4.0]);
    /// let reduce = |mode, include_self| x.scatter_reduce(0, &index, &source, mode, include_self);
    /// assert_eq!(reduce(ReduceMode::Prod, true)?.to_vec::<f32>()?, [6.0, 1.0, 4.0]);
    /// assert_eq!(reduce(ReduceMode::Mean, false)?.to_vec::<f32>()?, [2.5, 1.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::AxisOutOfRange`]; [`Error::IndexOutOfRange`] for an
    /// index outside the axis; [`Error::UnsupportedDType`] for booleans.
    pub fn scatter_reduce(
        &self,
        axis: impl Into<Axis>,
        index: &Tensor<B>,
        source: &Tensor<B>,
        mode: ReduceMode,
        include_self: bool,
    ) -> Result<Self> {
        self.reduced_at("scatter_reduce", axis.into(), index, source, mode, include_self)
    }

    /// Returns a copy in which the slices along an axis that the one-dimensional `index` names are reduced with those of
    /// `source`, as [`scatter_reduce`](Tensor::scatter_reduce) does elements: PyTorch's `index_reduce`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 5.0], [0.0, 0.0]];
    /// let y = x.index_reduce(0, &tensor![i64; 0, 0], &tensor![[2.0, 3.0], [4.0, 1.0]], ReduceMode::Max, true)?;
    /// assert_eq!(y.to_vec::<f32>()?, [4.0, 5.0, 0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`scatter_reduce`](Tensor::scatter_reduce); [`Error::InvalidShape`] unless the index has one axis.
    pub fn index_reduce(
        &self,
        axis: impl Into<Axis>,
        index: &Tensor<B>,
        source: &Tensor<B>,
        mode: ReduceMode,
        include_self: bool,
    ) -> Result<Self> {
        let op = "index_reduce";
        let (axis, index) = self.slice_targets(op, axis.into(), index, source)?;
        self.reduced_at(op, axis.into(), &index, source, mode, include_self)
    }

    fn reduced_at(
        &self,
        op: &'static str,
        axis: Axis,
        index: &Tensor<B>,
        source: &Tensor<B>,
        mode: ReduceMode,
        include_self: bool,
    ) -> Result<Self> {
        let (axis, index) = self.check_targets(op, axis, index, source)?;
        let dtype = self.dtype();
        check_arithmetic(op, dtype, self.shape())?;
        let reduce = || {
            // This tensor, of elements that are replaced without their value.
            let start = |value: i64| match include_self {
                true => Ok(self.clone()),
                false => {
                    let value = Tensor::full((), value)?.to_dtype(dtype)?;
                    self.scatter(axis, &index, &value.broadcast_to(index.shape())?)
                }
            };
            match mode {
                ReduceMode::Sum => start(0)?.scatter_add(axis, &index, source),
                ReduceMode::Mean => {
                    let sums =
                        start(0)?.widened()?.scatter_add(axis, &index, &source.widened()?)?;
                    let ones = Tensor::full((), 1i64)?.broadcast_to(index.shape())?;
                    let own = Tensor::full(*self.shape(), i64::from(include_self))?;
                    let counts = own.scatter_add(axis, &index, &ones)?.clamp_min(1)?;
                    let counts = counts.to_dtype(sums.dtype())?;
                    match dtype.is_float() {
                        true => sums.div(&counts)?.to_dtype(dtype),
                        false => sums.floor_divide(&counts),
                    }
                }
                ReduceMode::Prod if !self.is_tracked() && !source.is_tracked() => {
                    Ok(Tensor::from_data(combined(
                        op,
                        BinaryOp::Mul,
                        &start(1)?,
                        axis,
                        &index,
                        source,
                    )?))
                }
                ReduceMode::Prod => {
                    let [products, at] = source.products_at(axis, &index)?;
                    let ones = Tensor::ones(*self.shape(), products.dtype())?;
                    let products = ones.scatter(axis, &at, &products)?;
                    start(1)?.widened()?.mul(&products)?.to_dtype(dtype)
                }
                ReduceMode::Max | ReduceMode::Min => {
                    let extremum =
                        if mode == ReduceMode::Max { BinaryOp::Maximum } else { BinaryOp::Minimum };
                    // Of elements that are replaced, one of the others.
                    let start = if include_self {
                        self.detach()
                    } else {
                        self.detach().scatter(axis, &index, &source.detach())?
                    };
                    let y = combined(op, extremum, &start, axis, &index, source)?;
                    self.extrema_at(axis, index, source, y, include_self)
                }
            }
        };
        reduce().map_err(|error: Error| error.named(op))
    }

    /// Products of these sources, in an order along the axis in which the last one of each index is the product of all
    /// its sources; and the indices in that order. 16-bit floats are widened.
    fn products_at(&self, axis: usize, index: &Tensor<B>) -> Result<[Self; 2]> {
        let (at, order) = B::order(ASCENDING, index.data(), axis)?;
        let (at, order) = (Tensor::<B>::from_data(at), Tensor::from_data(order));
        let mut products = self.widened()?.gather(axis, &order)?;
        let one = Tensor::ones((), products.dtype())?;
        let (n, mut step) = (index.dims()[axis], 1);
        while step < n {
            let rest = n - step;
            let is_same = at.narrow(axis, 0, rest)?.eq(&at.narrow(axis, step, rest)?)?;
            if !is_same.any(None, false)?.item::<bool>()? {
                break;
            }
            let later = Tensor::where_cond(&is_same, &products.narrow(axis, step, rest)?, &one)?;
            let head = products.narrow(axis, 0, rest)?.mul(&later)?;
            products = Tensor::cat(&[&head, &products.narrow(axis, rest, step)?], axis)?;
            step *= 2;
        }
        // In reverse order the first of an index, the product of all of them, comes last.
        Ok([products.flip(axis)?, at.flip(axis)?])
    }

    /// Records the extrema `y` of this tensor and the source.
    fn extrema_at(
        &self,
        axis: usize,
        index: Tensor<B>,
        source: &Tensor<B>,
        y: B::Tensor,
        include_self: bool,
    ) -> Result<Self> {
        let (x, values, y) = (self.detach(), source.detach(), Tensor::from_data(y));
        let bytes = bytes_of([&x, &values, &index, &y].map(|kept| Some(kept.data())));
        Ok(record("scatter_reduce", y.data().clone(), &[self, source], |_| {
            rule_keeping(bytes, move |upstream: &Upstream<'_, B>, wanted| {
                let g = upstream.g;
                let is_chosen = |x: &Self, y: &Self| x.eq(y)?.logical_or(&x.isnan()?);
                let mut own = is_chosen(&x, &y)?;
                if !include_self {
                    let none = Tensor::full((), false)?.broadcast_to(index.shape())?;
                    own = own.scatter(axis, &index, &none)?;
                }
                let chosen = is_chosen(&values, &y.gather(axis, &index)?)?;
                let wide = g.dtype().at_least_f32();
                let ties =
                    own.to_dtype(wide)?.scatter_add(axis, &index, &chosen.to_dtype(wide)?)?;
                let share = g.to_dtype(wide)?.div(&ties.clamp_min(1.0)?)?.to_dtype(g.dtype())?;
                let zero = Tensor::zeros((), g.dtype())?;
                let x = wanted[0].then(|| Tensor::where_cond(&own, &share, &zero));
                let source = wanted[1]
                    .then(|| Tensor::where_cond(&chosen, &share.gather(axis, &index)?, &zero));
                Ok(smallvec![x.transpose()?, source.transpose()?])
            })
        }))
    }
}

/// `x` with the elements of `source` at an index, reduced on the CPU.
fn combined<B: Backend>(
    op: &'static str,
    by: BinaryOp,
    x: &Tensor<B>,
    axis: usize,
    index: &Tensor<B>,
    source: &Tensor<B>,
) -> Result<B::Tensor> {
    from_cpu(&scatter_with(op, by, &on_cpu(x)?, axis, &on_cpu(index)?, &on_cpu(source)?)?, x)
}

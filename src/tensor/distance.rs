//! Distances between points, and the cosine of the angle between vectors.

use crate::autodiff::checkpoint_with;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::ops::UnaryOp;
use crate::shape::{Axis, broadcast_shape_for};

use super::base::Tensor;
use super::linalg::{shape_of, shapes_of, split};
use super::operators::Input;

/// The largest number of points for which no products are made, PyTorch's.
const FEW_POINTS: usize = 25;
/// With so many coordinates differences take less time than products, which near points need as well.
const FEW_COORDINATES: usize = 8;

/// Differences computed at a time, which stay in the caches.
const DIFFERENCES: usize = 1 << 18;

/// The least share of the squared lengths that a squared distance may be: it divides the error of the products.
const SHARE: f64 = 0.125;

/// Products are given up if more than one distance in so many is below the share.
const FEW: usize = 16;

/// # Distances
///
/// Distances between vectors of floats; those of 16 bits are computed in `f32` and rounded once.
///
/// # Errors
/// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for integers; [`Error::AxisOutOfRange`];
/// [`Error::InvalidArgument`] for a `p` that is NaN.
impl<B: Backend> Tensor<B> {
    /// Cosine of the angle between the vectors along an axis: `Σ a b` of `a / max(‖a‖, eps)` and `b / max(‖b‖, eps)`, as
    /// in PyTorch. Shapes broadcast; the axis is one of the common shape.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (a, b) = (tensor![[3.0, 4.0], [0.0, 2.0]], tensor![0.0, 1.0]);
    /// assert_eq!(a.cosine_similarity(&b, -1, 1e-8)?.to_vec::<f32>()?, [0.8, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn cosine_similarity(
        &self,
        rhs: &Tensor<B>,
        axis: impl Into<Axis>,
        eps: f64,
    ) -> Result<Self> {
        let op = "cosine_similarity";
        self.check_float(op)?;
        self.check_dtype(op, rhs.dtype())?;
        let shape = broadcast_shape_for(op, self.shape(), rhs.shape())?;
        let axis = axis.into().resolve(op, &shape)?;
        let unit = |x: &Tensor<B>| {
            let x = x.widened()?.broadcast_to(shape)?;
            x.div(x.norm_axis(2.0, axis, true)?.clamp_min(eps)?)
        };
        unit(self)?.mul(unit(rhs)?)?.sum_axis(axis, false)?.to_dtype(self.dtype())
    }

    /// The p-norm of `self - rhs + eps` along the last axis, as PyTorch's. Shapes broadcast.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (a, b) = (tensor![[3.0, 4.0], [1.0, 1.0]], tensor![0.0, 1.0]);
    /// assert_eq!(a.pairwise_distance(&b, 1.0, 0.0, false)?.to_vec::<f32>()?, [6.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn pairwise_distance(
        &self,
        rhs: &Tensor<B>,
        p: f64,
        eps: f64,
        keepdims: bool,
    ) -> Result<Self> {
        let op = "pairwise_distance";
        self.check_float(op)?;
        self.check_dtype(op, rhs.dtype())?;
        let distance = || {
            let difference = self.widened()?.sub(rhs.widened()?)?.add_scalar(eps)?;
            difference.norm_axis(p, -1, keepdims)?.to_dtype(self.dtype())
        };
        distance().map_err(|error| error.named(op))
    }

    /// Distances of all pairs of points `[…, m, d]` and `[…, n, d]`, the p-norms of their differences, as `[…, m, n]`.
    /// Leading axes broadcast. The gradient is 0 where a distance is 0.
    ///
    /// Beyond 25 points of each kind, with more than 8 coordinates, the Euclidean distances, p = 2, come from products, `‖a‖² + ‖b‖² - 2 a·b` with the mean of the
    /// points subtracted. Where most of that cancels, as between near points, they are computed from the difference, and
    /// so are all if that concerns many: the relative error in `f32` is a few 1e-6, where PyTorch's is unbounded.
    /// Differences take memory for a block of rows at a time, and are computed again for gradients.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let (a, b) = (tensor![[0.0, 0.0], [3.0, 0.0]], tensor![[3.0, 4.0]]);
    /// let distances = a.cdist(&b, 2.0)?;
    /// assert_eq!((distances.dims(), distances.to_vec::<f32>()?), (&[2, 1][..], vec![5.0, 4.0]));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a `p` that is negative, too.
    pub fn cdist(&self, rhs: &Tensor<B>, p: f64) -> Result<Self> {
        let op = "cdist";
        self.check_float(op)?;
        self.check_dtype(op, rhs.dtype())?;
        let mismatch = |_| Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *rhs.shape() };
        let (&[.., m, d], &[.., n, width]) = (self.dims(), rhs.dims()) else {
            return Err(mismatch(()));
        };
        if d != width {
            return Err(mismatch(()));
        }
        if p.is_nan() || p < 0.0 {
            let (lhs, rhs) = (self.shape(), rhs.shape());
            let reason = format!("p must be at least 0, got {p}, for shapes {lhs} and {rhs}");
            return Err(Error::InvalidArgument { op, reason });
        }
        let batch = broadcast_shape_for(op, &split(self.shape()).0, &split(rhs.shape()).0)
            .map_err(|_| mismatch(()))?;
        let shape = shape_of(&batch, m, n);
        let pairs = shape.checked_numel(op)?;
        let distances = || {
            let points = |x: &Tensor<B>, count| {
                let all = x.widened()?.broadcast_to(shape_of(&batch, count, d))?;
                all.reshape((batch.numel(), count, d))
            };
            let (a, b) = (points(self, m)?, points(rhs, n)?);
            let y = match p == 2.0 && m.min(n) > FEW_POINTS && d > FEW_COORDINATES && pairs > 0 {
                true => a.euclidean(&b)?,
                false => a.distances(&b, p)?,
            };
            y.reshape(shape)?.to_dtype(self.dtype())
        };
        distances().map_err(|step: Error| step.in_step_of(op, || shapes_of(self, rhs)))
    }

    /// Distances of points `[k, m, d]` and `[k, n, d]` from their differences, rows in blocks.
    fn distances(&self, rhs: &Tensor<B>, p: f64) -> Result<Self> {
        let between = move |xs: &[Tensor<B>]| {
            xs[0].unsqueeze(2)?.sub(xs[1].unsqueeze(1)?)?.norm_axis(p, 3, false)
        };
        let rows = (DIFFERENCES / rhs.numel().max(1)).max(1);
        if rows >= self.dims()[1] {
            return between(&[self.clone(), rhs.clone()]);
        }
        let blocks = self.split(rows, 1)?;
        let blocks = blocks.iter().map(|block| checkpoint_with(&[block, rhs], between));
        Tensor::cat(&blocks.collect::<Result<Vec<_>>>()?, 1)
    }

    /// Euclidean distances of points `[k, m, d]` and `[k, n, d]` by products, or from the differences of near points.
    fn euclidean(&self, rhs: &Tensor<B>) -> Result<Self> {
        let center = rhs.detach().mean_axis(1, true)?;
        let (x, y) = (self.sub(&center)?, rhs.sub(&center)?);
        let [xx, yy] = [&x, &y].map(|points| points.square()?.sum_axis(2, true));
        let (xx, yy) = (xx?, yy?);
        let left = Tensor::cat(&[&x.mul(-2.0)?, &xx, &xx.ones_like()?], 2)?;
        let right = Tensor::cat(&[&y, &yy.ones_like()?, &yy], 2)?;
        let squares = left.matmul(&right.t()?)?;
        // Squares that are not normal numbers are not accurate either; those that overflow are not larger than the sum.
        let least = 1e6 / squares.dtype().largest();
        let (xx, yy) = (xx.detach().affine(SHARE, least)?, yy.detach().mul(SHARE)?);
        let largest = xx.max_all()?.add(yy.max_all()?)?;
        if squares.detach().min_all()?.gt(&largest)?.item::<bool>()? {
            return B::engine_unary(UnaryOp::Sqrt, Input::Owned(squares));
        }
        let is_far = squares.detach().gt(&xx.add(yy.t()?)?)?;
        let near = is_far.logical_not()?.true_positions("cdist")?;
        let (count, shape) = (near.len(), *squares.shape());
        if count > squares.numel() / FEW {
            return self.distances(rhs, 2.0);
        }
        let &[_, m, n] = shape.dims() else { return squares.sqrt() };
        let (m, n) = (m as i64, n as i64);
        let points = |x: &Tensor<B>, row: &dyn Fn(i64) -> i64| {
            let rows = near.iter().map(|&pair| row(pair)).collect::<Vec<_>>();
            x.flatten(0, 1)?.index_select(0, &Tensor::from_vec(rows, count)?)
        };
        let own = points(self, &|pair| pair / n)?;
        let others = points(rhs, &|pair| pair / (m * n) * n + pair % n)?;
        let distances = own.sub(&others)?.norm_axis(2.0, 1, false)?;
        // Near pairs get 1, of which the root has a gradient to be replaced.
        let far = Tensor::where_cond(&is_far, &squares, &Tensor::ones((), squares.dtype())?)?;
        let flat = far.sqrt()?.reshape(squares.numel())?;
        flat.scatter(0, &Tensor::from_vec(near, count)?, &distances)?.reshape(shape)
    }
}

//! Matrix products.

use smallvec::SmallVec;

use crate::autodiff::graph::record;
use crate::autodiff::ops::matmul::matmul_rule;
use crate::backend::{Arg, Backend, TensorData, broadcast, broadcast_pair, check_arithmetic};
use crate::error::{Error, Result};
use crate::ops::BinaryOp;
use crate::shape::{Axis, AxisSet, MAX_RANK, Shape, broadcast_shape_for};

use super::base::Tensor;
use super::einsum::contract::{Factor, contract};
use super::einsum::equation::{Label, Labels};

/// # Matrix products
impl<B: Backend> Tensor<B> {
    /// Matrix product `[…, m, k] × […, k, n] → […, m, n]`; leading axes broadcast. A vector `[k]`
    /// is a row on the left and a column on the right, and its axis is removed from the result.
    ///
    /// Transposed, sliced and broadcast operands are read in place, without a copy. Products of
    /// integers are exact and wrap; like sums, they are `I64` for every integer dtype.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let a = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// assert_eq!(a.matmul(&a.t()?)?.to_vec::<f32>()?, [5.0, 11.0, 11.0, 25.0]);
    /// let a = tensor![i64; [1, 2], [3, 4]];
    /// assert_eq!(a.matmul(&a)?.to_vec::<i64>()?, [7, 10, 15, 22]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the inner extents differ or an operand is a scalar;
    /// [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for booleans.
    pub fn matmul(&self, rhs: &Tensor<B>) -> Result<Tensor<B>> {
        B::engine_matmul(self, rhs)
    }

    pub(crate) fn matmul_body(x: &Tensor<B>, rhs: &Tensor<B>) -> Result<Tensor<B>> {
        let op = "matmul";
        let mismatch = || Error::ShapeMismatch { op, lhs: *x.shape(), rhs: *rhs.shape() };
        // Errors of the steps below name the operands' shapes, not the steps'.
        let rename = |error| match error {
            Error::ShapeMismatch { .. } => mismatch(),
            error => error,
        };
        x.check_dtype(op, rhs.dtype())?;
        let (x, rhs) = (&x.summable(op)?, &rhs.summable(op)?);
        match (x.rank(), rhs.rank()) {
            (0, _) | (_, 0) => return Err(mismatch()),
            (1, 1) => {
                return x.unsqueeze(0)?.matmul(&rhs.unsqueeze(1)?).map_err(rename)?.reshape(());
            }
            (1, _) => return x.unsqueeze(0)?.matmul(rhs).map_err(rename)?.squeeze(-2),
            (_, 1) => return x.matmul(&rhs.unsqueeze(1)?).map_err(rename)?.squeeze(-1),
            _ => {}
        }
        let (a_batch, [m, k]) = split(x.shape());
        let (b_batch, [inner, n]) = split(rhs.shape());
        if k != inner {
            return Err(mismatch());
        }
        let batch = broadcast_shape_for(op, &a_batch, &b_batch).map_err(rename)?;
        shape_of(&batch, m, n).validate(op)?;
        let data = if a_batch == b_batch {
            B::matmul(x.data(), rhs.data())?
        } else {
            let a = broadcast::<B>(op, x.data(), &shape_of(&batch, m, k))?;
            B::matmul(&a, &broadcast::<B>(op, rhs.data(), &shape_of(&batch, k, n))?)?
        };
        Ok(record(op, data, &[x, rhs], |_| matmul_rule(x, rhs, &batch)))
    }

    /// This tensor as a factor of products that are added up: integers as `I64`.
    ///
    /// # Errors
    /// [`Error::UnsupportedDType`] for booleans.
    pub(super) fn summable(&self, op: &'static str) -> Result<Tensor<B>> {
        check_arithmetic(op, self.dtype(), self.shape())?;
        self.to_dtype(self.dtype().accumulated())
    }

    /// Computes `self·rhs + total` without recording, in the memory of `total` if nothing else
    /// shares it. `self` is `[…, m, k]`, `rhs` `[…, k, n]` or `[k, n]`, `total` `[…, m, n]`.
    pub(crate) fn matmul_add(&self, rhs: &Tensor<B>, total: Tensor<B>) -> Result<Tensor<B>> {
        let lead = &self.dims()[..self.rank() - 2];
        let shape: Shape = lead.iter().chain(&rhs.dims()[rhs.rank() - 2..]).copied().collect();
        let rhs = B::view(rhs.data(), rhs.layout().broadcast_to("matmul", &shape)?)?;
        Ok(Tensor::from_data(B::matmul_add(self.data(), &rhs, total.into_data())?))
    }

    /// Outer product of vectors, `[m] × [n] → [m, n]`: element `[i, j]` is `self[i] · rhs[j]`, of
    /// integers as `I64`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let y = tensor![1.0, 2.0].outer(&tensor![3.0, 4.0, 5.0])?;
    /// assert_eq!(y.dims(), [2, 3]);
    /// assert_eq!(y.to_vec::<f32>()?, [3.0, 4.0, 5.0, 6.0, 8.0, 10.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if an operand is not a vector; [`Error::DTypeMismatch`];
    /// [`Error::UnsupportedDType`] for booleans.
    pub fn outer(&self, rhs: &Tensor<B>) -> Result<Tensor<B>> {
        let op = "outer";
        self.check_dtype(op, rhs.dtype())?;
        if self.rank() != 1 || rhs.rank() != 1 {
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *rhs.shape() });
        }
        Shape::from([self.numel(), rhs.numel()]).validate(op)?;
        let (x, y) = (self.summable(op)?, rhs.summable(op)?);
        let product = x.unsqueeze(1)?.outer_matrices(&y.unsqueeze(0)?);
        product.map_err(|step| step.in_step_of(op, || shapes_of(self, rhs)))
    }

    /// Product `[…, m, 1] × […, 1, n] → […, m, n]` of one dtype. It is computed element
    /// by element; its gradients are matrix products.
    pub(crate) fn outer_matrices(&self, rhs: &Tensor<B>) -> Result<Tensor<B>> {
        B::engine_outer(self, rhs)
    }

    pub(crate) fn outer_body(x: &Tensor<B>, rhs: &Tensor<B>) -> Result<Tensor<B>> {
        let op = "outer";
        let (a, b) = broadcast_pair::<B>(op, x.data(), rhs.data())?;
        let (batch, _) = split(a.shape());
        let data = B::binary(BinaryOp::Mul, Arg::Owned(a), Arg::Owned(b))?;
        Ok(record(op, data, &[x, rhs], |_| matmul_rule(x, rhs, &batch)))
    }

    /// Cross product of vectors of 3 elements along an axis, PyTorch's `linalg.cross`. Shapes broadcast; the axis is one of
    /// the common shape. 16-bit floats are computed in `f32` and rounded once; integers wrap.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let y = tensor![1.0, 2.0, 3.0].cross(&tensor![[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], -1)?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, -1.0, 0.0, 0.0, 3.0, -2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`], also unless both have 3 elements along the axis; [`Error::AxisOutOfRange`];
    /// [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for booleans.
    pub fn cross(&self, rhs: &Tensor<B>, axis: impl Into<Axis>) -> Result<Tensor<B>> {
        let op = "cross";
        self.check_dtype(op, rhs.dtype())?;
        check_arithmetic(op, self.dtype(), self.shape())?;
        let shape = broadcast_shape_for(op, self.shape(), rhs.shape())?;
        // Counted from the end, the axis is the same one of both operands.
        let below = shape.ndim() - axis.into().resolve(op, &shape)?;
        let fits = |x: &Tensor<B>| x.dims().iter().nth_back(below - 1) == Some(&3);
        if !fits(self) || !fits(rhs) {
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *rhs.shape() });
        }
        let next = |x: &Tensor<B>| x.roll(-1, -(below as isize));
        let (a, b) = (self.widened()?, rhs.widened()?);
        next(&a.mul(next(&b)?)?.sub(next(&a)?.mul(&b)?)?)?.to_dtype(self.dtype())
    }

    /// Kronecker product: the products of every element of this tensor with the whole of `rhs`, at its place. The extents are
    /// the products of both, axes of extent 1 being added in front where one has fewer.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let y = tensor![[1.0, 10.0]].kron(&tensor![[1.0, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(y.dims(), [2, 4]);
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0, 10.0, 20.0, 3.0, 4.0, 30.0, 40.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for booleans; [`Error::Overflow`]; [`Error::TooManyAxes`] for
    /// operands with more than 8 extents other than 1.
    pub fn kron(&self, rhs: &Tensor<B>) -> Result<Tensor<B>> {
        let op = "kron";
        self.check_dtype(op, rhs.dtype())?;
        let rank = self.rank().max(rhs.rank());
        let extents = |x: &Tensor<B>| {
            let lead = std::iter::repeat_n(1, rank - x.rank());
            lead.chain(x.dims().iter().copied()).collect::<AxisSet>()
        };
        let (mut own, mut other, mut both) = (AxisSet::new(), AxisSet::new(), AxisSet::new());
        for (m, n) in extents(self).into_iter().zip(extents(rhs)) {
            for (m, n) in [(m, 1), (1, n)].into_iter().filter(|&pair| pair != (1, 1)) {
                own.push(m);
                other.push(n);
            }
            both.push(m.saturating_mul(n));
        }
        let shapes = [own, other, both].map(Shape::new);
        shapes.iter().try_for_each(|shape| shape.validate(op))?;
        let [own, other, both] = shapes;
        let product = || self.reshape(own)?.mul(rhs.reshape(other)?)?.reshape(both);
        product().map_err(|error| error.named(op))
    }

    /// Sum of products over pairs of axes, as NumPy's and PyTorch's `tensordot`. The result has the
    /// other axes of this tensor, then those of `rhs`.
    ///
    /// `axes` is either a number n, for the last n axes of this tensor and the first n of `rhs` in
    /// order (0 gives the outer product of all axes), or two lists of axes, the first of this
    /// tensor. Like [`einsum`](Tensor::einsum), this is one matrix product of views where strides
    /// allow; sums of products of integers are `I64`.
    ///
    /// ```
    /// use swath::prelude::*;
    /// type T = Tensor<CpuBackend>;
    /// let a = T::arange(0., 60., 1.)?.reshape((3, 4, 5))?;
    /// let b = T::arange(0., 24., 1.)?.reshape((4, 3, 2))?;
    /// let c = a.tensordot(&b, ([1, 0], [0, 1]))?;
    /// assert_eq!(c.dims(), [5, 2]);
    /// assert_eq!(c.to_vec::<f32>()?[..2], [4400.0, 4730.0]);
    /// assert_eq!(b.tensordot(&tensor![1.0, -1.0], 1)?.dims(), [4, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AxisOutOfRange`]; [`Error::RepeatedAxis`]; [`Error::ShapeMismatch`] if paired
    /// extents differ; [`Error::InvalidArgument`] for lists of different lengths, and if an
    /// intermediate product is too large; [`Error::TooManyAxes`]; [`Error::Overflow`];
    /// [`Error::DTypeMismatch`]; [`Error::UnsupportedDType`] for booleans.
    pub fn tensordot(&self, rhs: &Tensor<B>, axes: impl Into<TensordotAxes>) -> Result<Tensor<B>> {
        B::engine_tensordot(self, rhs, axes.into())
    }

    pub(crate) fn tensordot_body(
        x: &Tensor<B>,
        rhs: &Tensor<B>,
        axes: TensordotAxes,
    ) -> Result<Tensor<B>> {
        let op = "tensordot";
        x.check_dtype(op, rhs.dtype())?;
        let (x, rhs) = (&x.summable(op)?, &rhs.summable(op)?);
        let [own, theirs] = axes.resolve(op, x.shape(), rhs.shape())?;
        if own.iter().zip(&theirs).any(|(&i, &j)| x.dims()[i] != rhs.dims()[j]) {
            return Err(Error::ShapeMismatch { op, lhs: *x.shape(), rhs: *rhs.shape() });
        }
        let label = |axis: usize| axis as Label;
        let labels: Labels = (0..x.rank()).map(label).collect();
        let rhs_labels: Labels = (0..rhs.rank())
            .map(|axis| match theirs.iter().position(|&paired| paired == axis) {
                Some(pair) => labels[own[pair]],
                None => label(x.rank() + axis),
            })
            .collect();
        let free = |labels: &Labels, paired: &AxisSet, of: &Tensor<B>| {
            let kept = (0..of.rank()).filter(|axis| !paired.contains(axis));
            kept.map(|axis| (labels[axis], of.dims()[axis])).collect::<SmallVec<[_; MAX_RANK]>>()
        };
        let (left, right) = (free(&labels, &own, x), free(&rhs_labels, &theirs, rhs));
        let result = || left.iter().chain(&right);
        let shape: Shape = result().map(|&(_, dim)| dim).collect();
        shape.validate(op)?;
        let order: Labels =
            result().filter(|&&(_, dim)| dim != 1).map(|&(label, _)| label).collect();
        let kept = result().map(|&(label, _)| label).collect();
        let contracted = || {
            let (a, b) = (Factor::new(x, &labels)?, Factor::new(rhs, &rhs_labels)?);
            contract(&a, &b, kept, Some(&order), &labels)?.into_tensor(&order, shape)
        };
        contracted().map_err(|step: Error| step.in_step_of(op, || shapes_of(x, rhs)))
    }
}

/// The axes that [`Tensor::tensordot`] sums over: a number of axes, or two lists of equal length.
#[derive(Clone, Debug)]
pub struct TensordotAxes(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Count(usize),
    Pairs([SmallVec<[Axis; MAX_RANK]>; 2]),
}

impl From<usize> for TensordotAxes {
    fn from(count: usize) -> Self {
        TensordotAxes(Kind::Count(count))
    }
}

impl<L, R, const N: usize> From<([L; N], [R; N])> for TensordotAxes
where
    L: Into<Axis>,
    R: Into<Axis>,
{
    fn from((left, right): ([L; N], [R; N])) -> Self {
        let left = left.into_iter().map(Into::into).collect();
        let right = right.into_iter().map(Into::into).collect();
        TensordotAxes(Kind::Pairs([left, right]))
    }
}

impl<L, R> From<(&[L], &[R])> for TensordotAxes
where
    L: Into<Axis> + Copy,
    R: Into<Axis> + Copy,
{
    fn from((left, right): (&[L], &[R])) -> Self {
        let left = left.iter().map(|&axis| axis.into()).collect();
        let right = right.iter().map(|&axis| axis.into()).collect();
        TensordotAxes(Kind::Pairs([left, right]))
    }
}

impl TensordotAxes {
    /// The summed axes of both operands, pair by pair.
    fn resolve(&self, op: &'static str, lhs: &Shape, rhs: &Shape) -> Result<[AxisSet; 2]> {
        let lists = match &self.0 {
            Kind::Count(count) => {
                let first = lhs.ndim().checked_sub(*count).filter(|_| *count <= rhs.ndim());
                let Some(first) = first else {
                    let reason = format!(
                        "expected at most as many axes as {lhs} and {rhs} have, got {count}"
                    );
                    return Err(Error::InvalidArgument { op, reason });
                };
                return Ok([(first..lhs.ndim()).collect(), (0..*count).collect()]);
            }
            Kind::Pairs(lists) => lists,
        };
        if lists[0].len() != lists[1].len() {
            let [left, right] = [lists[0].len(), lists[1].len()];
            let reason = format!(
                "expected lists of equal length, got {left} axes of {lhs} and {right} of {rhs}"
            );
            return Err(Error::InvalidArgument { op, reason });
        }
        let resolved = |axes: &[Axis], shape: &Shape| -> Result<AxisSet> {
            let axes: AxisSet =
                axes.iter().map(|axis| axis.resolve(op, shape)).collect::<Result<_>>()?;
            shape.resolve_axes(op, Some(&axes))?;
            Ok(axes)
        };
        Ok([resolved(&lists[0], lhs)?, resolved(&lists[1], rhs)?])
    }
}

pub(super) fn shapes_of<B: Backend>(lhs: &Tensor<B>, rhs: &Tensor<B>) -> String {
    format!("shapes {} and {}", lhs.shape(), rhs.shape())
}

/// Splits a shape into the leading axes and the last two.
pub(super) fn split(shape: &Shape) -> (Shape, [usize; 2]) {
    let dims = shape.dims();
    let (batch, matrix) = dims.split_at(dims.len() - 2);
    (batch.into(), [matrix[0], matrix[1]])
}

pub(super) fn shape_of(batch: &Shape, rows: usize, cols: usize) -> Shape {
    batch.dims().iter().copied().chain([rows, cols]).collect()
}

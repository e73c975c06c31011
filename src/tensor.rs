//! [`Tensor`]: values on a backend and, if tracked, the graph node that records how they were
//! computed.
//!
//! | file | what |
//! |---|---|
//! | `create.rs` | tensors from values, ranges, random numbers |
//! | `elementwise.rs` | the op table's methods, scalars, comparisons, `where_cond` |
//! | `arithmetic.rs` | functions composed of those: `logaddexp`, `isclose` |
//! | `operators.rs` | `+ - * /`, `Operand` |
//! | `view.rs` | views, transposition, reshaping |
//! | `pad.rs` | `pad` |
//! | `resample.rs` | `interpolate` |
//! | `reduce.rs` | reductions |
//! | `scan.rs` | `cumsum`, `cumprod` |
//! | `fused.rs` | softmax, cross-entropy, layer norm, rms norm, linear, dropout, attention |
//! | `linalg.rs` | `matmul`, `outer`, `tensordot` |
//! | `einsum.rs` | `einsum` |
//! | `index.rs` | `gather`, `index_select`, `cat` |
//! | `display.rs` | text |
//!
//! Shapes and dtypes are checked here, once. Backends rely on these checks.

mod arithmetic;
mod choose;
mod create;
mod device;
mod display;
pub(crate) mod einsum;
mod elementwise;
pub(crate) mod fused;
mod index;
mod linalg;
mod operators;
mod pad;
mod reduce;
mod resample;
mod scan;
mod ternary;
mod view;

use std::fmt;

pub(crate) use fused::attention::Attention;
pub(crate) use fused::cross_entropy::CrossEntropy;
pub use linalg::TensordotAxes;
pub(crate) use operators::Input;
pub use operators::Operand;
pub use pad::PadMode;
pub use resample::Interpolation;

use crate::autodiff::graph::GraphNode;
use crate::backend::cpu::CpuBackend;
use crate::backend::{Backend, IntoBackend, TensorData};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::runtime::shared::Shared;
use crate::shape::Shape;

/// An n-dimensional array on backend `B`. Cloning is cheap: the clone shares values and graph node.
///
/// Operations return new tensors and leave their operands unchanged. An operation on a *tracked*
/// tensor is recorded, so that [`backward`](Tensor::backward) can compute gradients.
///
/// ```
/// use swath::prelude::*;
/// type T = Tensor<CpuBackend>;
/// let a = tensor![[1.0, 2.0], [3.0, 4.0]];
/// let b = T::from_vec(vec![1.0f32, -1.0], 2)?;
/// let c = (&a * 2.0 + &b).exp()?.sum(Some(&[1]), false)?;
/// assert_eq!(c.shape(), &Shape::new([2]));
/// # Ok::<(), Error>(())
/// ```
pub struct Tensor<B: Backend = CpuBackend> {
    data: B::Tensor,
    node: Option<Shared<GraphNode<B>>>,
}

impl<B: Backend> Clone for Tensor<B> {
    fn clone(&self) -> Self {
        Tensor::from_parts(self.data.clone(), self.node.clone())
    }
}

impl<B: Backend> Tensor<B> {
    /// Wraps a backend's tensor. The result is untracked.
    pub fn from_data(data: B::Tensor) -> Self {
        Tensor::from_parts(data, None)
    }

    pub(crate) fn from_parts(data: B::Tensor, node: Option<Shared<GraphNode<B>>>) -> Self {
        Tensor { data, node }
    }

    /// Returns a named, tracked leaf. Error messages about its gradient use the name.
    ///
    /// Only floats have gradients: a leaf of another dtype stays untracked.
    ///
    /// ```
    /// use swath::prelude::*;
    /// type T = Tensor<CpuBackend>;
    /// let x = T::var("x", CpuBackend::from_vec(vec![1.0, 2.0, 3.0], Shape::new(vec![3]))?);
    /// assert_eq!(x.name(), Some("x"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn var(name: &str, data: B::Tensor) -> Self {
        Tensor::leaf(Some(name), data)
    }

    fn leaf(name: Option<&str>, data: B::Tensor) -> Self {
        let float = data.dtype().is_float();
        let node = float.then(|| GraphNode::leaf(name, *data.shape(), data.dtype()));
        Tensor::from_parts(data, node)
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        self.data.shape()
    }

    /// The extents of the axes.
    pub fn dims(&self) -> &[usize] {
        self.shape().dims()
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape().ndim()
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.shape().numel()
    }

    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    /// Shape, strides and offset of the elements in storage.
    pub fn layout(&self) -> &Layout {
        self.data.layout()
    }

    /// The backend's tensor.
    pub fn data(&self) -> &B::Tensor {
        &self.data
    }

    /// Gives the data to the backend, which may overwrite the storage if nothing else holds it.
    /// Derivative rules that saved the tensor hold it.
    pub(crate) fn into_data(self) -> B::Tensor {
        self.data
    }

    /// The data, to be changed in place. The backend copies storage that is shared, so recorded
    /// operations keep the old values. The tensor remains the same leaf.
    pub(crate) fn data_mut(&mut self) -> &mut B::Tensor {
        &mut self.data
    }

    /// Replaces the leaf's graph node by a new one of the same name. Gradients of the old leaf do
    /// not belong to the new one.
    pub(crate) fn renew_leaf(&mut self) {
        let node = self.node.as_ref();
        self.node = node.map(|node| GraphNode::leaf(node.name(), *node.shape(), node.dtype()));
    }

    pub(crate) fn node(&self) -> Option<&Shared<GraphNode<B>>> {
        self.node.as_ref()
    }

    /// Copies the elements into a vector in row-major order.
    ///
    /// # Errors
    /// [`Error::DTypeMismatch`] if `T` is not the tensor's dtype; convert with
    /// [`to_dtype`](Tensor::to_dtype) first.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check_dtype("to_vec", T::DTYPE)?;
        let host = B::to_host(self.data())?;
        let (rhs, shape) = (host.dtype(), *self.shape());
        T::from_host(host).ok_or(Error::DTypeMismatch { op: "to_vec", lhs: T::DTYPE, rhs, shape })
    }

    /// Returns the value of a tensor with exactly one element.
    ///
    /// # Errors
    /// [`Error::InvalidShape`] if the number of elements is not 1; [`Error::DTypeMismatch`] if `T`
    /// is not the tensor's dtype.
    pub fn item<T: Element>(&self) -> Result<T> {
        if self.numel() != 1 {
            let reason = "item needs exactly one element";
            return Err(Error::InvalidShape { op: "item", shape: *self.shape(), reason });
        }
        self.check_dtype("item", T::DTYPE)?;
        Ok(T::from_scalar(B::item(self.data())?))
    }

    /// Fails unless the tensor has the dtype `wanted`.
    pub(crate) fn check_dtype(&self, op: &'static str, wanted: DType) -> Result<()> {
        match self.dtype() {
            dtype if dtype == wanted => Ok(()),
            lhs => Err(Error::DTypeMismatch { op, lhs, rhs: wanted, shape: *self.shape() }),
        }
    }

    /// Fails unless the elements are floats.
    pub(crate) fn check_float(&self, op: &'static str) -> Result<()> {
        match self.dtype() {
            dtype if dtype.is_float() => Ok(()),
            dtype => Err(Error::UnsupportedDType { op, dtype, shape: *self.shape() }),
        }
    }

    /// Fails unless `other` has the shape and dtype of this tensor.
    pub(crate) fn check_like(&self, op: &'static str, other: &Tensor<B>) -> Result<()> {
        if self.shape() != other.shape() {
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *other.shape() });
        }
        self.check_dtype(op, other.dtype())
    }

    /// Copies the values to another backend.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the tensor is tracked; gradients do not cross backends, so
    /// [`detach`](Tensor::detach) it first.
    pub fn to_backend<Target: Backend>(&self) -> Result<Tensor<Target>>
    where
        B: IntoBackend<Target>,
    {
        if self.is_tracked() {
            let reason = "the tensor is tracked, and gradients do not cross backends: detach it";
            return Err(Error::InvalidArgument { op: "to_backend", reason: reason.to_owned() });
        }
        Ok(Tensor::from_data(B::convert(self.data())?))
    }

    /// True if operations on this tensor are recorded.
    pub fn is_tracked(&self) -> bool {
        self.node.is_some()
    }

    /// The name given to [`var`](Tensor::var).
    pub fn name(&self) -> Option<&str> {
        self.node()?.name()
    }

    /// Returns a tracked leaf with the same values, for which backward passes compute gradients. A
    /// leaf returns itself.
    ///
    /// Only floats have gradients: a tensor of another dtype stays untracked, and asking for its
    /// gradient is an error.
    pub fn requires_grad(&self) -> Self {
        match self.node() {
            Some(node) if node.is_leaf() => self.clone(),
            _ => Tensor::leaf(None, self.data().clone()),
        }
    }

    /// Returns an untracked tensor that shares this tensor's storage.
    pub fn detach(&self) -> Self {
        Tensor::from_data(self.data().clone())
    }
}

impl Tensor<CpuBackend> {
    /// Borrows the elements in row-major order for writing, for data that changes from step to step
    /// in the same memory.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let mut batch = Tensor::<CpuBackend>::zeros(3, DType::F32)?;
    /// batch.as_slice_mut::<f32>()?.copy_from_slice(&[1.0, 2.0, 3.0]);
    /// assert_eq!(batch.sum(None, false)?.item::<f32>()?, 6.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the tensor is tracked, not contiguous, or shares its storage
    /// with another tensor or a recorded operation; [`Error::DTypeMismatch`] if `T` is not the
    /// tensor's dtype; [`Error::UnsupportedDType`] for `bool`.
    pub fn as_slice_mut<T: Element>(&mut self) -> Result<&mut [T::Stored]> {
        if self.is_tracked() {
            let reason = format!("the tensor of shape {} is tracked", self.shape());
            return Err(Error::InvalidArgument { op: "as_slice_mut", reason });
        }
        self.data.as_slice_mut::<T>()
    }
}

impl<B: Backend> fmt::Debug for Tensor<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = self.node().map(|node| node.op());
        f.debug_struct("Tensor")
            .field("backend", &B::NAME)
            .field("shape", self.shape())
            .field("dtype", &self.dtype())
            .field("op", &op)
            .finish()
    }
}

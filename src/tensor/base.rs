//! [`Tensor`]: its parts, its properties, tracking.

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
/// use swath::cpu::prelude::*;
/// let a = tensor![[1.0, 2.0], [3.0, 4.0]];
/// let b = Tensor::from_vec(vec![1.0f32, -1.0], 2)?;
/// let c = (&a * 2.0 + &b).exp()?.sum_axis(1, false)?;
/// assert_eq!(c.shape(), &Shape::new([2]));
/// # Ok::<(), Error>(())
/// ```
///
/// Methods return errors and do not panic. [`cpu::prelude`](crate::cpu::prelude) exports this type
/// with `B = CpuBackend`.
///
/// # Operators
///
/// `+ - * /`, unary `-`, and in place `+= -= *= /=` take tensors, references to them and numbers, as
/// the methods [`add`](Tensor::add), [`sub`](Tensor::sub), [`mul`](Tensor::mul), [`div`](Tensor::div),
/// [`neg`](Tensor::neg) and [`add_assign`](Tensor::add_assign) do. An operand that is passed by value
/// gives its memory to the result if nothing else shares it.
///
/// # Panics
///
/// Operators cannot return an error, so they panic with its text, at the caller's line: for shapes
/// that do not broadcast, dtypes that differ or on which the operation is not defined, a number that
/// the dtype cannot represent, an integer division by zero, and if memory runs out; assignments also
/// if a tensor is tracked. Where such operands may occur, use the methods.
///
/// ```should_panic
/// use swath::prelude::*;
/// let _ = tensor![1.0, 2.0] + tensor![1.0, 2.0, 3.0]; // add: shapes [2] and [3] do not fit
/// ```
///
/// # Formatting
///
/// `{}` shows the values as NumPy does, `{:.2}` with two decimals, `{:e}` with exponents; `{:?}`
/// shows shape, dtype, backend, the recorded operation and a few values.
///
/// ```
/// use swath::prelude::*;
/// let x = tensor![[0.5, -1.25], [3.0, 20.0]];
/// assert_eq!(format!("{x:.1}"), "[[ 0.5, -1.2],\n [ 3.0, 20.0]]");
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

/// # Properties, values, tracking
impl<B: Backend> Tensor<B> {
    /// Wraps a backend's tensor. The result is untracked.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let data = CpuBackend::from_vec(vec![1.0, 2.0], 2)?;
    /// assert_eq!(Tensor::from_data(data).dims(), [2]);
    /// # Ok::<(), Error>(())
    /// ```
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
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![[1.0, 2.0]].shape(), &Shape::new([1, 2]));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn shape(&self) -> &Shape {
        self.data.shape()
    }

    /// The extents of the axes.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![[1.0, 2.0]].dims(), [1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn dims(&self) -> &[usize] {
        self.shape().dims()
    }

    /// Number of axes.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![[1.0, 2.0]].rank(), 2);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn rank(&self) -> usize {
        self.shape().ndim()
    }

    /// Number of elements.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![[1.0, 2.0]].numel(), 2);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn numel(&self) -> usize {
        self.shape().numel()
    }

    /// Type of the elements.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![i64; 1, 2].dtype(), DType::I64);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    /// Shape, strides and offset of the elements in storage.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// assert_eq!(x.t()?.layout().strides(), [1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn layout(&self) -> &Layout {
        self.data.layout()
    }

    /// The backend's tensor.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 2.0];
    /// assert_eq!(CpuBackend::exp(x.data())?.shape(), x.shape());
    /// # Ok::<(), Error>(())
    /// ```
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

    /// Replaces the node by a new one of the same name, of a leaf or a frozen parameter. Gradients and other handles of
    /// the old one do not belong to the new one.
    pub(crate) fn renew_leaf(&mut self) {
        self.node = self.node.as_ref().map(|node| {
            let new = if node.is_frozen() { GraphNode::frozen } else { GraphNode::leaf };
            new(node.name(), *node.shape(), node.dtype())
        });
    }

    /// The node, if the tensor is tracked.
    pub(crate) fn node(&self) -> Option<&Shared<GraphNode<B>>> {
        self.node.as_ref().filter(|node| !node.is_frozen())
    }

    /// The id that the handles of one parameter share, whether it is tracked or frozen.
    pub(crate) fn identity(&self) -> Option<u64> {
        self.node.as_ref().map(|node| node.id())
    }

    /// The same values as a frozen parameter.
    pub(crate) fn frozen(self, name: Option<&str>) -> Self {
        let node = GraphNode::frozen(name, *self.shape(), self.dtype());
        Tensor::from_parts(self.data, Some(node))
    }

    /// These values: tracked, frozen or neither, and named, as `other` is.
    pub(crate) fn marked_like<A: Backend>(self, other: &Tensor<A>) -> Self {
        match (other.is_tracked(), other.is_frozen()) {
            (true, _) => Tensor::leaf(other.name(), self.data),
            (_, true) => self.frozen(other.name()),
            _ => self,
        }
    }

    /// Copies the elements into a vector in row-major order.
    ///
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![[1.0, 2.0]].to_vec::<f32>()?, [1.0, 2.0]);
    /// assert!(tensor![1.0].to_vec::<f64>().is_err());
    /// # Ok::<(), Error>(())
    /// ```
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
    /// ```
    /// use swath::prelude::*;
    /// assert_eq!(tensor![1.0, 2.0].sum(None, false)?.item::<f32>()?, 3.0);
    /// # Ok::<(), Error>(())
    /// ```
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

    /// Fails unless `other` has the shape, dtype and device of this tensor.
    pub(crate) fn check_like(&self, op: &'static str, other: &Tensor<B>) -> Result<()> {
        if self.shape() != other.shape() {
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *other.shape() });
        }
        self.check_beside(op, other)?;
        self.check_dtype(op, other.dtype())
    }

    /// Copies the values to another backend.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x: Tensor<ReferenceBackend> = tensor![1.0, 4.0].to_backend()?;
    /// assert_eq!(x.sqrt()?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
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
        Ok(Tensor::from_data(B::convert(self.data())?).marked_like(self))
    }

    /// True if operations on this tensor are recorded.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0].requires_grad();
    /// assert!(x.exp()?.is_tracked() && !x.detach().is_tracked());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn is_tracked(&self) -> bool {
        self.node().is_some()
    }

    /// True for a parameter that [`nn::freeze`](crate::nn::freeze) has frozen. Clones are frozen too, and so are
    /// results that are clones, such as [`to_dtype`](Tensor::to_dtype) of the same dtype; other results and
    /// [`detach`](Tensor::detach) are not. [`requires_grad`](Tensor::requires_grad) ends it.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let mut w = tensor![1.0].requires_grad();
    /// nn::freeze(&mut w, |_, _| true)?;
    /// assert!(w.is_frozen() && !w.is_tracked());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn is_frozen(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.is_frozen())
    }

    /// The name given to [`var`](Tensor::var).
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// let x = Tensor::var("x", tensor![1.0].data().clone());
    /// assert_eq!((x.name(), x.exp()?.name()), (Some("x"), None));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.node.as_ref()?.name()
    }

    /// Returns a tracked leaf with the same values, for which backward passes compute gradients. A
    /// leaf returns itself.
    ///
    /// Only floats have gradients: a tensor of another dtype stays untracked, and asking for its
    /// gradient is an error.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 2.0].requires_grad();
    /// let grads = x.square()?.sum(None, false)?.backward()?;
    /// assert_eq!(grads.wrt(&x)?.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn requires_grad(&self) -> Self {
        match self.node() {
            Some(node) if node.is_leaf() => self.clone(),
            _ => Tensor::leaf(self.name(), self.data().clone()),
        }
    }

    /// Returns an untracked tensor that shares this tensor's storage.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![3.0].requires_grad();
    /// let grads = x.mul(x.detach())?.backward()?; // the second factor counts as a constant
    /// assert_eq!(grads.wrt(&x)?.item::<f32>()?, 3.0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn detach(&self) -> Self {
        Tensor::from_data(self.data().clone())
    }
}

/// # Slices of the CPU's memory
impl Tensor<CpuBackend> {
    /// Borrows the elements in row-major order, as stored (`bool` as bytes 0 and 1).
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![[1.0, 2.0], [3.0, 4.0]];
    /// assert_eq!(x.as_slice::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// assert!(x.t()?.as_slice::<f32>().is_err());
    /// assert_eq!(x.t()?.contiguous()?.as_slice::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the tensor is not contiguous; [`Error::DTypeMismatch`] if `T`
    /// is not the tensor's dtype.
    pub fn as_slice<T: Element>(&self) -> Result<&[T::Stored]> {
        self.data.as_slice::<T>()
    }

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
        if self.data.as_slice_mut::<T>().is_ok() {
            self.renew_leaf();
        }
        self.data.as_slice_mut::<T>()
    }
}

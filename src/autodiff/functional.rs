//! Derivatives of functions: [`vjp`], [`jvp`], [`jacobian`], [`hessian_vector_product`], [`hessian`].
//!
//! ```text
//! argument := a new node over x                     y = f(argument) is recorded, even inside no_grad
//! vjp       = gradient of y from v                  one pass
//! jvp       = gradient, from v, of vjp by its v      two passes, the first recorded
//! jacobian  = gradients of y from each unit vector  one pass an element of y, graph retained
//! H v       = gradient, from v, of the gradient     two passes, the first recorded
//! ```
//!
//! 1. Passes end at `argument` and visit nothing older: values that `f` captures are constants,
//!    even if they were computed from `x`, and their graph is left untouched.
//! 2. The result is recorded, as that of any operation, if the thread records and `x`, `v` or a
//!    value that `f` captures is tracked. Inside [`no_grad`](super::no_grad), or of detached
//!    tensors, it costs no memory beyond the pass.

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::shape::{MAX_RANK, Shape};
use crate::tensor::Tensor;

use super::backward::{Backward, partial};
use super::graph::GraphNode;
use super::mode::is_grad_enabled;
use super::visited::depends_on_older;
use crate::runtime::recording::with_recording;

/// The value of a function, and its argument.
struct Evaluated<B: Backend> {
    argument: Tensor<B>,
    y: Tensor<B>,
    /// True if results computed from them are recorded.
    recorded: bool,
}

impl<B: Backend> Evaluated<B> {
    fn new(
        op: &'static str,
        f: &dyn Fn(&Tensor<B>) -> Result<Tensor<B>>,
        x: &Tensor<B>,
        direction: Option<&Tensor<B>>,
    ) -> Result<Self> {
        x.check_float(op)?;
        let recording = is_grad_enabled();
        with_recording(true, || {
            let argument = match recording && x.is_tracked() {
                // A new node, so that nothing older depends on it.
                true => x.reshape(*x.shape())?,
                false => x.detach().requires_grad(),
            };
            let y = f(&argument)?;
            y.check_float(op)?;
            let id = argument.node().map_or(0, |node| GraphNode::id(node));
            let recorded = recording
                && (x.is_tracked()
                    || direction.is_some_and(Tensor::is_tracked)
                    || depends_on_older(&y, id));
            Ok(Evaluated { argument, y, recorded })
        })
    }

    /// The gradient of `y`, a function of the argument, from its upstream gradient; zeros if it
    /// does not depend on the argument.
    fn gradient(
        &self,
        y: &Tensor<B>,
        upstream: &Tensor<B>,
        create_graph: bool,
    ) -> Result<Tensor<B>> {
        let options = Backward { create_graph, retain_graph: true, ..Backward::default() };
        match partial(y, upstream, &[&self.argument], options)?.remove(&self.argument) {
            Some(gradient) => Ok(gradient),
            None => Tensor::zeros(*self.argument.shape(), self.argument.dtype()),
        }
    }

    /// The gradient of `y`, which must have one element, recorded.
    fn slope(&self, op: &'static str) -> Result<Tensor<B>> {
        if self.y.numel() != 1 {
            let reason = "expected a function that returns one element";
            return Err(Error::InvalidShape { op, shape: *self.y.shape(), reason });
        }
        with_recording(true, || self.gradient(&self.y, &self.y.unit_upstream()?, true))
    }

    /// The gradients of all elements of `y`, a function of the argument, stacked in one tensor.
    fn rows(&self, op: &'static str, y: &Tensor<B>) -> Result<Tensor<B>> {
        let x = &self.argument;
        let rank = y.rank() + x.rank();
        if rank > MAX_RANK {
            return Err(Error::TooManyAxes { op, rank });
        }
        let shape: Shape = y.dims().iter().chain(x.dims()).copied().collect();
        shape.validate(op)?;
        if shape.numel() == 0 || !y.is_tracked() {
            return Tensor::zeros(shape, x.dtype());
        }
        with_recording(self.recorded, || {
            let row = |i| {
                let unit = |j| f64::from(u8::from(i == j)).into();
                let upstream = Tensor::from_scalars(op, *y.shape(), y.dtype(), unit)?;
                self.gradient(y, &upstream, self.recorded)?.reshape((1, x.numel()))
            };
            let rows = (0..y.numel()).map(row).collect::<Result<Vec<_>>>()?;
            Tensor::cat(&rows, 0)?.reshape(shape)
        })
    }
}

/// Computes `vᵀ·J`, the vector-Jacobian product of `f` at `x`. `v` has the shape and dtype of
/// `f(x)`, the result those of `x`. It is zero if `f` ignores its argument.
///
/// Values that `f` captures are constants. The result can be differentiated again if `x`, `v` or a
/// captured value is tracked, outside [`no_grad`](crate::no_grad).
///
/// ```
/// use swath::prelude::*;
/// let (x, v) = (tensor![1.0, 2.0, 3.0], tensor![1.0, 0.0, -1.0]);
/// assert_eq!(vjp(|x| x.square(), &x, &v)?.to_vec::<f32>()?, [2.0, 0.0, -6.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::ShapeMismatch`] and [`Error::DTypeMismatch`] if `v` is not like the value of `f`;
/// [`Error::UnsupportedDType`] for integers; errors of `f`.
pub fn vjp<B: Backend>(
    f: impl Fn(&Tensor<B>) -> Result<Tensor<B>>,
    x: &Tensor<B>,
    v: &Tensor<B>,
) -> Result<Tensor<B>> {
    let point = Evaluated::new("vjp", &f, x, Some(v))?;
    point.y.check_like("vjp", v)?;
    point.gradient(&point.y, v, point.recorded)
}

/// Computes the value of `f` at `x` and `J·v`, the Jacobian-vector product: the derivative of `f` in
/// the direction `v`. `v` has the shape and dtype of `x`, both results those of `f(x)`. The product
/// is zero if `f` ignores its argument.
///
/// Takes two backward passes: `Jᵀ·u` is linear in `u`, and its gradient from `v` is `J·v` (Townsend,
/// [A new trick for calculating Jacobian vector products][trick], 2017). Values that `f` captures are
/// constants. The results can be differentiated again if `x`, `v` or a captured value is tracked,
/// outside [`no_grad`](crate::no_grad).
///
/// [trick]: https://j-towns.github.io/2017/06/12/A-new-trick.html
///
/// ```
/// use swath::prelude::*;
/// let (x, v) = (tensor![1.0, 2.0, 3.0], tensor![1.0, 0.0, -1.0]);
/// let (value, slope) = jvp(|x| x.square()?.sum(None, false), &x, &v)?;
/// assert_eq!((value.item::<f32>()?, slope.item::<f32>()?), (14.0, -4.0));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::ShapeMismatch`] and [`Error::DTypeMismatch`] if `v` is not like `x`;
/// [`Error::UnsupportedDType`] for integers; errors of `f`.
pub fn jvp<B: Backend>(
    f: impl Fn(&Tensor<B>) -> Result<Tensor<B>>,
    x: &Tensor<B>,
    v: &Tensor<B>,
) -> Result<(Tensor<B>, Tensor<B>)> {
    let op = "jvp";
    x.check_like(op, v)?;
    let point = Evaluated::new(op, &f, x, Some(v))?;
    let (y, create_graph) = (&point.y, point.recorded);
    let slope = with_recording(true, || {
        let u = y.detach().zeros_like()?.requires_grad();
        let product = point.gradient(y, &u, true)?;
        let options = Backward { create_graph, ..Backward::default() };
        match partial(&product, v, &[&u], options)?.remove(&u) {
            Some(slope) => Ok(slope),
            None => u.detach().zeros_like(),
        }
    })?;
    Ok((if point.recorded { y.clone() } else { y.detach() }, slope))
}

/// The Jacobian of `f` at `x` by reverse mode: for `x` `[…]` and `f(x)` `[…]` a tensor whose shape
/// is that of `f(x)` followed by that of `x`, of the dtype of `x`. Element `[i…, j…]` is the
/// derivative of element `i…` of `f(x)` by element `j…` of `x`.
///
/// One backward pass for each element of `f(x)`. A function that ignores its argument has the
/// Jacobian 0. What `f` captures is a constant. The result can be differentiated again if `x` or
/// something that `f` captures is tracked, outside [`no_grad`](crate::no_grad).
///
/// ```
/// use swath::prelude::*;
/// let x = tensor![2.0, 3.0];
/// let f = |x: &Tensor| Tensor::cat(&[&x.square()?, &x.sum(None, true)?], 0);
/// assert_eq!(jacobian(f, &x)?.to_vec::<f32>()?, [4.0, 0.0, 0.0, 6.0, 1.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::TooManyAxes`] for more than 8 axes in all; [`Error::UnsupportedDType`] for integers;
/// errors of `f`.
pub fn jacobian<B: Backend>(
    f: impl Fn(&Tensor<B>) -> Result<Tensor<B>>,
    x: &Tensor<B>,
) -> Result<Tensor<B>> {
    let point = Evaluated::new("jacobian", &f, x, None)?;
    point.rows("jacobian", &point.y)
}

/// Computes `H·v`, the product of the Hessian at `x` of `f`, which returns one element, and `v`.
/// `v` and the result have the shape and dtype of `x`. The Hessian itself is never formed.
///
/// Takes two backward passes. The Hessian of a function that is linear or ignores its argument is
/// 0. Values that `f` captures are constants. The result can be differentiated again if `x`, `v` or
/// a captured value is tracked, outside [`no_grad`](crate::no_grad).
///
/// ```
/// use swath::prelude::*;
/// let f = |x: &Tensor| x.square()?.mul(x)?.sum(None, false);
/// let product = hessian_vector_product(f, &tensor![1.0, 2.0], &tensor![1.0, -1.0])?;
/// assert_eq!(product.to_vec::<f32>()?, [6.0, -12.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::ShapeMismatch`] and [`Error::DTypeMismatch`] if `v` is not like `x`;
/// [`Error::InvalidShape`] if `f` returns another number of elements; [`Error::UnsupportedDType`] for
/// integers; errors of `f`.
pub fn hessian_vector_product<B: Backend>(
    f: impl Fn(&Tensor<B>) -> Result<Tensor<B>>,
    x: &Tensor<B>,
    v: &Tensor<B>,
) -> Result<Tensor<B>> {
    let op = "hessian_vector_product";
    x.check_like(op, v)?;
    let point = Evaluated::new(op, &f, x, Some(v))?;
    let slope = point.slope(op)?;
    point.gradient(&slope, v, point.recorded)
}

/// Computes the Hessian at `x` of `f`, which returns one element. The shape of the result is that
/// of `x` twice.
///
/// Takes one backward pass for each element of `x` and one more; [`hessian_vector_product`] takes
/// two. Recording is as described there.
///
/// ```
/// use swath::prelude::*;
/// let product = |x: &Tensor| x.narrow(0, 0, 1)?.mul(x.narrow(0, 1, 1)?)?.sum(None, false);
/// assert_eq!(hessian(product, &tensor![3.0, 5.0])?.to_vec::<f32>()?, [0.0, 1.0, 1.0, 0.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidShape`] if `f` returns another number of elements; [`Error::TooManyAxes`] for more
/// than 8 axes in all; [`Error::UnsupportedDType`] for integers; errors of `f`.
pub fn hessian<B: Backend>(
    f: impl Fn(&Tensor<B>) -> Result<Tensor<B>>,
    x: &Tensor<B>,
) -> Result<Tensor<B>> {
    let point = Evaluated::new("hessian", &f, x, None)?;
    point.rows("hessian", &point.slope("hessian")?)
}

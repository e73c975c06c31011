//! Operations with a value and a gradient that the program defines: [`CustomOp`] and
//! [`Tensor::apply`].
//!
//! ```text
//! apply      op' := clone of op; y := op'.forward(inputs)          recorded, with op' and the inputs, if one is tracked
//! backward   op'.backward(inputs, y, g)                            checked: one gradient an input, shapes, missing ones
//! again      the gradient depends on g through recorded ops,       else it is wrapped in a node whose own
//!            or it says that it does not                           derivative is an error, never a silent zero
//! ```

use std::sync::Arc;

use smallvec::smallvec;

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::runtime::recording::with_recording;
use crate::shape::broadcast_shape;
use crate::tensor::Tensor;

use super::graph::{InputGradients, Upstream, bytes_of, record, rule, rule_keeping};

/// An operation with its own gradient, for [`Tensor::apply`].
///
/// [`forward`](CustomOp::forward) computes the value from the backend's tensors, by any means;
/// [`backward`](CustomOp::backward) computes the gradients of the inputs. If `backward` consists of
/// tensor operations it can itself be differentiated. If it does not, for instance because it reads
/// values with [`to_vec`](Tensor::to_vec), [`first_order_only`](CustomOp::first_order_only) must
/// return true.
///
/// `backward` gets the inputs and the output. Other values that `forward` computes can be kept in
/// the op itself: each application runs on a clone, which its backward pass gets again, so that a
/// field such as `OnceLock<…>`, empty in the op that is applied, can hold them.
///
/// ```
/// use swath::prelude::*;
///
/// /// The sign of x, with the gradient of x where |x| is at most 1: the straight-through estimator of
/// /// binary networks (Bengio et al., 2013).
/// #[derive(Clone)]
/// struct StraightThrough;
///
/// impl<B: Backend> CustomOp<B> for StraightThrough {
///     fn name(&self) -> &'static str {
///         "straight_through"
///     }
///
///     fn forward(&self, inputs: &[&B::Tensor]) -> Result<B::Tensor> {
///         Ok(Tensor::<B>::from_data(inputs[0].clone()).sign()?.data().clone())
///     }
///
///     fn backward(
///         &self,
///         inputs: &[&Tensor<B>],
///         _output: &Tensor<B>,
///         upstream: &Tensor<B>,
///     ) -> Result<Vec<Option<Tensor<B>>>> {
///         let inside = inputs[0].abs()?.le(1.0)?;
///         Ok(vec![Some(upstream.mul(inside)?)])
///     }
/// }
///
/// let x = tensor![-2.0, -0.5, 0.25].requires_grad();
/// let y = Tensor::apply(&StraightThrough, &[&x])?;
/// assert_eq!(y.to_vec::<f32>()?, [-1.0, -1.0, 1.0]);
/// let grads = y.sum(None, false)?.backward()?;
/// assert_eq!(grads.wrt(&x)?.to_vec::<f32>()?, [0.0, 1.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operation on tensors of backend `{B}`",
    label = "`CustomOp` is not implemented",
    note = "implement `CustomOp<{B}>` with the methods `name`, `forward` and `backward`"
)]
pub trait CustomOp<B: Backend>: Send + Sync + 'static {
    /// The name of the op in the graph and in error messages.
    fn name(&self) -> &'static str;

    /// Computes the value. Nothing in it is recorded.
    fn forward(&self, inputs: &[&B::Tensor]) -> Result<B::Tensor>;

    /// Computes one gradient per input from `upstream`, the gradient of the output, which has the
    /// output's shape and dtype. A gradient has the dtype of its input, and its shape or one that it
    /// broadcasts to; it is then summed. `None` is allowed for untracked inputs, such as indices;
    /// for a tracked input it is an error, so that no gradient is lost: return
    /// [`zeros_like`](Tensor::zeros_like) instead.
    fn backward(
        &self,
        inputs: &[&Tensor<B>],
        output: &Tensor<B>,
        upstream: &Tensor<B>,
    ) -> Result<Vec<Option<Tensor<B>>>>;

    /// True if `backward` does not consist of tensor operations alone. Differentiating the gradient
    /// again is then an error. False by default.
    fn first_order_only(&self) -> bool {
        false
    }
}

impl<B: Backend, O: CustomOp<B> + ?Sized> CustomOp<B> for Arc<O> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn forward(&self, inputs: &[&B::Tensor]) -> Result<B::Tensor> {
        (**self).forward(inputs)
    }

    fn backward(
        &self,
        inputs: &[&Tensor<B>],
        output: &Tensor<B>,
        upstream: &Tensor<B>,
    ) -> Result<Vec<Option<Tensor<B>>>> {
        (**self).backward(inputs, output, upstream)
    }

    fn first_order_only(&self) -> bool {
        (**self).first_order_only()
    }
}

/// # Operations that a program defines
impl<B: Backend> Tensor<B> {
    /// Applies an operation that the program defines, and records it with its gradient. See
    /// [`CustomOp`]. Ops that are not `Clone`, or of different types, can be applied as
    /// `Arc<dyn CustomOp<B>>`.
    ///
    /// ```
    /// use swath::cpu::prelude::*;
    /// use swath::backend::cpu::CpuTensor;
    ///
    /// #[derive(Clone)]
    /// struct Double;
    ///
    /// impl CustomOp<CpuBackend> for Double {
    ///     fn name(&self) -> &'static str {
    ///         "double"
    ///     }
    ///     fn forward(&self, inputs: &[&CpuTensor]) -> Result<CpuTensor> {
    ///         CpuBackend::add(inputs[0], inputs[0])
    ///     }
    ///     fn backward(&self, _: &[&Tensor], _: &Tensor, upstream: &Tensor) -> Result<Vec<Option<Tensor>>> {
    ///         Ok(vec![Some(upstream.mul(2.0)?)])
    ///     }
    /// }
    ///
    /// let x = tensor![3.0].requires_grad();
    /// let y = Tensor::apply(&Double, &[&x])?;
    /// assert_eq!(y.backward()?.wrt(&x)?.item::<f32>()?, 2.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of [`CustomOp::forward`]. A backward pass returns errors of [`CustomOp::backward`],
    /// [`Error::InvalidArgument`] for gradients of another number, shape or dtype than the inputs,
    /// and [`Error::NoGradient`] if one is missing.
    pub fn apply<O: CustomOp<B> + Clone>(op: &O, inputs: &[&Tensor<B>]) -> Result<Self> {
        let op = op.clone();
        let data: Vec<&B::Tensor> = inputs.iter().map(|input| input.data()).collect();
        let y = with_recording(false, || op.forward(&data))?;
        Ok(record(op.name(), y, inputs, |y| {
            let saved: Vec<Tensor<B>> = inputs.iter().map(|&input| input.clone()).collect();
            let y = y.clone();
            let bytes = bytes_of(saved.iter().map(Tensor::data).chain([&y]).map(Some));
            rule_keeping(bytes, move |upstream, _| gradients(&op, &saved, &y, upstream))
        }))
    }
}

/// Calls the backward function of an op and checks its gradients.
fn gradients<B: Backend>(
    op: &impl CustomOp<B>,
    inputs: &[Tensor<B>],
    y: &B::Tensor,
    upstream: &Upstream<'_, B>,
) -> Result<InputGradients<B>> {
    let (name, g) = (op.name(), upstream.g);
    let again = upstream.create_graph();
    let refs: Vec<&Tensor<B>> = inputs.iter().collect();
    let found = with_recording(again && !op.first_order_only(), || {
        op.backward(&refs, &upstream.output(y), g)
    })?;
    if found.len() != inputs.len() {
        let reason =
            format!("expected {} gradients, one per input, got {}", inputs.len(), found.len());
        return Err(Error::InvalidArgument { op: name, reason });
    }
    let mut gradients: InputGradients<B> = smallvec![];
    for (i, (gradient, input)) in found.into_iter().zip(inputs).enumerate() {
        let Some(gradient) = gradient else {
            gradients.push(None);
            continue;
        };
        let fits = broadcast_shape(input.shape(), gradient.shape()) == Ok(*gradient.shape());
        if !fits || (input.is_tracked() && gradient.dtype() != input.dtype()) {
            let [expected, got] =
                [input, &gradient].map(|x| format!("{} of shape {}", x.dtype(), x.shape()));
            let reason = format!("gradient of input {i}: expected {expected}, got {got}");
            return Err(Error::InvalidArgument { op: name, reason });
        }
        // A gradient is a linear function of `g`. If it has no recorded path to a tracked `g`, or
        // if the op is of first order only, its derivative is unknown.
        let opaque = again && (op.first_order_only() || (g.is_tracked() && !gradient.is_tracked()));
        gradients.push(Some(if opaque {
            not_differentiable(name, gradient, g, &refs)
        } else {
            gradient
        }));
    }
    Ok(gradients)
}

/// Wraps the gradient in a node whose own derivative is an error.
fn not_differentiable<B: Backend>(
    name: &'static str,
    gradient: Tensor<B>,
    g: &Tensor<B>,
    inputs: &[&Tensor<B>],
) -> Tensor<B> {
    let mut from = vec![g];
    from.extend_from_slice(inputs);
    record(name, gradient.data().clone(), &from, |_| {
        rule(move |_, _| {
            let reason = format!(
                "backward of the custom op `{name}` is not made of recorded tensor operations, so its \
                 gradient cannot be differentiated again"
            );
            Err(Error::NoGradient { op: name, reason })
        })
    })
}

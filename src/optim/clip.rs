//! [`clip_grad_norm`].

use crate::autodiff::Gradients;
use crate::autodiff::gradients::IdSet;
use crate::autodiff::scratch;
use crate::backend::{Arg, Backend};
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::nn::{Kind, Visit, Visitor};
use crate::ops::{BinaryOp, UnaryOp};
use crate::tensor::Tensor;

/// Scales the gradients of a model's parameters so that their total norm, as of one vector, is at
/// most `max_norm`, and returns the norm before scaling.
///
/// As in PyTorch, the factor is `max_norm / (norm + 1e-6)` if that is below 1. Squares are
/// accumulated in `f64` (on a GPU in `f32`), in the order of the model's parameters. A parameter counts once; one
/// without a gradient does not count. If the norm is not finite, the gradients are unchanged: check
/// it before a step.
///
/// ```
/// use swath::nn::{Linear, Module};
/// use swath::prelude::*;
///
/// let layer = Linear::new(2, 1, &mut Rng::seed(1))?;
/// let mut grads = layer.forward(&tensor![[3.0, 0.0], [1.0, 0.0]])?.sum(None, false)?.backward()?;
/// let norm = optim::clip_grad_norm(&layer, &mut grads, 1.0)?;
/// assert_eq!(norm, 20f64.sqrt());                       // weight [4, 0], bias [2]
/// assert!(grads.wrt(&layer.weight)?.to_vec::<f32>()?[0] < 0.9);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidArgument`] unless `max_norm` is at least 0, and if this thread has a guard that
/// [`Shared::write`](crate::nn::Shared::write) returned for a part; errors of computing the norm.
pub fn clip_grad_norm<B: Backend>(
    model: &(impl Visit<B> + ?Sized),
    grads: &mut Gradients<B>,
    max_norm: f64,
) -> Result<f64> {
    let invalid = |reason| Error::InvalidArgument { op: "clip_grad_norm", reason };
    if max_norm.is_nan() || max_norm < 0.0 {
        return Err(invalid(format!("max_norm must be at least 0, got {max_norm}")));
    }
    let mut leaves: Vec<Tensor<B>> = scratch::take();
    let norm = match for_each_leaf(model, |x| leaves.push(x.clone())) {
        Some(locked) => Err(invalid(format!("a part of the model {locked}"))),
        None => B::engine_clip(&leaves, grads, max_norm),
    };
    leaves.clear();
    scratch::give(leaves);
    norm
}

impl<B: Backend> Tensor<B> {
    pub(crate) fn clip_body(
        leaves: &[Tensor<B>],
        grads: &mut Gradients<B>,
        max_norm: f64,
    ) -> Result<f64> {
        // Added up where they are, so that a device that computes later is waited for once.
        let mut total: Option<B::Tensor> = None;
        for gradient in leaves.iter().filter_map(|x| grads.get(x)) {
            let squares = sum_of_squares(gradient)?;
            total = Some(match total {
                None => squares,
                Some(total) => B::binary(BinaryOp::Add, Arg::Owned(total), &squares)?,
            });
        }
        let squares = total.as_ref().map_or(Ok(Scalar::Float(0.0)), B::item)?;
        let norm = squares.to_f64().sqrt();
        let factor = max_norm / (norm + 1e-6);
        if norm.is_finite() && factor < 1.0 {
            leaves.iter().try_for_each(|x| grads.scale_wrt(x, factor))?;
        }
        Ok(norm)
    }
}

fn sum_of_squares<B: Backend>(x: &Tensor<B>) -> Result<B::Tensor> {
    let widest = B::wide(Some(x.data()));
    let wide = match x.dtype() == widest {
        true => B::unary(UnaryOp::Square, x.data())?,
        false => B::unary(UnaryOp::Square, Arg::Owned(B::cast(x.data(), widest)?))?,
    };
    B::sum(&wide, None, false)
}

/// Calls `f` once for every parameter, in the order of first occurrence. Returns the reason why a
/// part could not be read, if there is one.
fn for_each_leaf<B: Backend>(
    model: &(impl Visit<B> + ?Sized),
    f: impl FnMut(&Tensor<B>),
) -> Option<&'static str> {
    struct Each<F> {
        f: F,
        seen: IdSet,
        locked: Option<&'static str>,
    }
    impl<B: Backend, F: FnMut(&Tensor<B>)> Visitor<B> for Each<F> {
        fn enter(&mut self, _name: &str) {}
        fn leave(&mut self) {}
        fn tensor(&mut self, tensor: &Tensor<B>, kind: Kind) {
            let leaf = tensor.node().is_some_and(|node| self.seen.insert(node.id()));
            if kind == Kind::Parameter && leaf {
                (self.f)(tensor);
            }
        }
        fn locked(&mut self, reason: &'static str) {
            self.locked = Some(reason);
        }
    }
    let mut each = Each { f, seen: scratch::take(), locked: None };
    model.visit(&mut each);
    each.seen.clear();
    scratch::give(each.seen);
    each.locked
}

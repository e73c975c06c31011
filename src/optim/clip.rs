//! [`clip_grad_norm`], [`clip_grad_norm_with`].

use crate::autodiff::Gradients;
use crate::autodiff::ids::IdSet;
use crate::autodiff::scratch;
use crate::backend::{Arg, Backend, TensorData};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::nn::{Kind, Visit, Visitor};
use crate::ops::{BinaryOp, UnaryOp};
use crate::tensor::Tensor;

/// Options of [`clip_grad_norm_with`].
#[derive(Clone, Copy, Debug)]
pub struct ClipOptions {
    /// The largest norm; 1 by default. An infinite one clips nothing.
    pub max_norm: f64,
    /// Makes a norm that is not finite an error, instead of returning it; false by default.
    pub error_if_nonfinite: bool,
}

impl Default for ClipOptions {
    fn default() -> Self {
        ClipOptions { max_norm: 1.0, error_if_nonfinite: false }
    }
}

/// Scales the gradients of a model's parameters so that their total norm, as of one vector, is at
/// most `max_norm`, and returns the norm before scaling.
///
/// As in PyTorch, the factor is `max_norm / (norm + 1e-6)` if that is below 1; for a norm below
/// 1e-6, the summand is 1e-6 times the norm. Like [`Tensor::norm`], the norm is finite if it is a
/// finite float: squares are accumulated in `f64` (on a GPU in `f32`), in the order of the model's
/// parameters, and of scaled gradients if they overflow or underflow. A parameter counts once; one
/// without a gradient does not count. If the norm is not finite, the gradients are unchanged, and a
/// step would make the parameters NaN: check it, or use [`clip_grad_norm_with`].
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
    clip_grad_norm_with(model, grads, ClipOptions { max_norm, ..Default::default() })
}

/// Like [`clip_grad_norm`], with options.
///
/// ```
/// use swath::optim::{self, ClipOptions};
/// use swath::prelude::*;
///
/// let w = tensor![1.0].requires_grad();
/// let mut grads = w.sub(1.0)?.log()?.sum(None, false)?.backward()?;
/// let options = ClipOptions { max_norm: 1.0, error_if_nonfinite: true };
/// let error = optim::clip_grad_norm_with(&w, &mut grads, options).unwrap_err();
/// assert!(error.to_string().contains("the norm of the gradients is inf"));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// As for [`clip_grad_norm`]; [`Error::InvalidArgument`] for a norm that is NaN or infinite, if the
/// options say so. The gradients are then unchanged.
pub fn clip_grad_norm_with<B: Backend>(
    model: &(impl Visit<B> + ?Sized),
    grads: &mut Gradients<B>,
    options: ClipOptions,
) -> Result<f64> {
    let max_norm = options.max_norm;
    if max_norm.is_nan() || max_norm < 0.0 {
        return Err(invalid(format!("max_norm must be at least 0, got {max_norm}")));
    }
    let mut leaves: Vec<Tensor<B>> = scratch::take();
    let norm = match for_each_leaf(model, |x| leaves.push(x.clone())) {
        Some(locked) => Err(invalid(format!("a part of the model {locked}"))),
        None => B::engine_clip(&leaves, grads, options),
    };
    leaves.clear();
    scratch::give(leaves);
    norm
}

fn invalid(reason: String) -> Error {
    Error::InvalidArgument { op: "clip_grad_norm", reason }
}

impl<B: Backend> Tensor<B> {
    pub(crate) fn clip_body(
        leaves: &[Tensor<B>],
        grads: &mut Gradients<B>,
        options: ClipOptions,
    ) -> Result<f64> {
        let norm = total_norm(leaves, grads)?;
        if options.error_if_nonfinite && !norm.is_finite() {
            let reason = format!(
                "the norm of the gradients is {norm}, so they cannot be clipped to {}",
                options.max_norm
            );
            return Err(invalid(reason));
        }
        let divisor = norm + if norm < 1e-6 { 1e-6 * norm } else { 1e-6 };
        let factor = options.max_norm / divisor;
        if norm.is_finite() && factor < 1.0 {
            // A factor that the dtype cannot hold is applied as two, the first of which rounds nothing.
            let first = match factor >= f32::MIN_POSITIVE.into() {
                true => 1.0,
                false => {
                    let half = (options.max_norm.log2() - divisor.log2()) / 2.0;
                    2f64.powi(half.max(-1000.0) as i32)
                }
            };
            let factors = [first, options.max_norm / (divisor * first)];
            for factor in factors.into_iter().filter(|&factor| factor != 1.0) {
                leaves.iter().try_for_each(|x| grads.scale_wrt(x, factor))?;
            }
        }
        Ok(norm)
    }
}

/// The norm of all gradients together.
fn total_norm<B: Backend>(leaves: &[Tensor<B>], grads: &Gradients<B>) -> Result<f64> {
    // Added up where they are, so that a device that computes later is waited for once.
    let mut total: Option<B::Tensor> = None;
    for gradient in leaves.iter().filter_map(|x| grads.get(x)) {
        let squares = sum_of_squares(gradient)?;
        total = Some(match total {
            None => squares,
            Some(total) => B::binary(BinaryOp::Add, Arg::Owned(total), &squares)?,
        });
    }
    let Some(total) = total else { return Ok(0.0) };
    // The square of a smaller norm has terms near the smallest normal number, which have lost digits.
    let least = if total.dtype() == DType::F64 { 2f64.powi(-480) } else { 2f64.powi(-45) };
    let norm = B::item(&total)?.to_f64().sqrt();
    if norm.is_finite() && norm >= least {
        return Ok(norm);
    }
    let mut norms = Vec::new();
    for gradient in leaves.iter().filter_map(|x| grads.get(x)) {
        let norm = Tensor::<B>::from_data(wide(gradient)?).norm(2.0, None, false)?;
        norms.push(B::item(norm.data())?.to_f64());
    }
    let largest = norms.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 || !norms.iter().all(|norm| norm.is_finite()) {
        return Ok(norms.iter().sum());
    }
    // By a power of two, without rounding: squares are then neither infinite nor 0, if they matter.
    let scale = 2f64.powi(-largest.log2().floor().clamp(-1000.0, 1000.0) as i32);
    let squares: f64 = norms.iter().map(|norm| (norm * scale) * (norm * scale)).sum();
    Ok(squares.sqrt() / scale)
}

/// The values in the widest dtype of the backend.
fn wide<B: Backend>(x: &Tensor<B>) -> Result<B::Tensor> {
    let widest = B::wide(Some(x.data()));
    if x.dtype() == widest { Ok(x.data().clone()) } else { B::cast(x.data(), widest) }
}

fn sum_of_squares<B: Backend>(x: &Tensor<B>) -> Result<B::Tensor> {
    let wide = match x.dtype() == B::wide(Some(x.data())) {
        true => B::unary(UnaryOp::Square, x.data())?,
        false => B::unary(UnaryOp::Square, Arg::Owned(wide(x)?))?,
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

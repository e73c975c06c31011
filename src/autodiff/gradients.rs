//! [`Gradients`]: what a backward pass returns.

use std::collections::hash_map::Entry;

use crate::backend::{Arg, Backend, TensorData};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::BinaryOp;
use crate::shape::Shape;
use crate::tensor::Tensor;

use super::ids::{IdMap, tick};
use super::scratch;

/// Gradients by the tensor they belong to.
///
/// ```
/// use swath::prelude::*;
/// let x = tensor![1.0, 2.0, 3.0].requires_grad();
/// let loss = x.square()?.sum(None, false)?;
/// let grads = loss.backward()?;
/// assert_eq!(grads.wrt(&x)?.to_vec::<f32>()?, [2.0, 4.0, 6.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Gradients<B: Backend> {
    by_id: IdMap<Tensor<B>>,
    /// The [`tick`] at which the backward pass began; `None` if the gradients are not of a single
    /// pass.
    pass: Option<u32>,
}

impl<B: Backend> Default for Gradients<B> {
    fn default() -> Self {
        Gradients { by_id: scratch::take(), pass: None }
    }
}

impl<B: Backend> Drop for Gradients<B> {
    fn drop(&mut self) {
        let mut map = std::mem::take(&mut self.by_id);
        map.clear();
        scratch::give(map);
    }
}

impl<B: Backend> Gradients<B> {
    /// Creates an empty collection, to [`accumulate`](Gradients::accumulate) into.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty collection for a backward pass that begins now.
    pub(crate) fn of_a_pass() -> Self {
        Gradients { by_id: scratch::take(), pass: Some(tick()) }
    }

    /// Number of gradients.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// True if there are no gradients.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Returns the gradient of `x`, if there is one. [`Gradients::wrt`] says why there is none.
    pub fn get(&self, x: &Tensor<B>) -> Option<&Tensor<B>> {
        self.by_id.get(&x.node()?.id())
    }

    /// Returns the gradient of `x`.
    ///
    /// # Errors
    /// [`Error::NoGradient`] if `x` is not tracked, is frozen, or the result does not depend on it;
    /// [`Error::GradientNotKept`] if it is an intermediate result whose gradient was not kept.
    pub fn wrt(&self, x: &Tensor<B>) -> Result<&Tensor<B>> {
        self.get(x).ok_or_else(|| missing(x, self.pass))
    }

    /// Removes and returns the gradient of `x`.
    pub fn remove(&mut self, x: &Tensor<B>) -> Option<Tensor<B>> {
        self.by_id.remove(&x.node()?.id())
    }

    /// Adds `gradient` to the gradient of `x`. Its shape and dtype must be those of `x`.
    ///
    /// # Errors
    /// [`Error::NoGradient`] if `x` is not tracked; [`Error::ShapeMismatch`],
    /// [`Error::DTypeMismatch`].
    pub fn accumulate(&mut self, x: &Tensor<B>, gradient: Tensor<B>) -> Result<()> {
        let Some(node) = x.node() else { return Err(missing(x, self.pass)) };
        x.check_like("accumulate", &gradient)?;
        let recorded = gradient.is_tracked() || self.get(x).is_some_and(Tensor::is_tracked);
        self.add(node.id(), gradient, recorded)
    }

    /// Adds the gradients of another pass to these: up to rounding, two batches of b give the
    /// gradients of one of 2b if the losses are sums. For means, [`scale`](Gradients::scale) the
    /// total by ½.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let w = tensor![1.0, 2.0].requires_grad();
    /// let mut total = Gradients::new();
    /// for batch in [tensor![1.0, 0.0], tensor![3.0, 1.0]] {
    ///     total.merge(w.mul(&batch)?.sum(None, false)?.backward()?)?;
    /// }
    /// total.scale(0.5)?;
    /// assert_eq!(total.wrt(&w)?.to_vec::<f32>()?, [2.0, 0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of the additions.
    pub fn merge(&mut self, mut other: Gradients<B>) -> Result<()> {
        if self.is_empty() {
            std::mem::swap(self, &mut other);
            return Ok(());
        }
        for (id, gradient) in other.by_id.drain() {
            let held = self.by_id.get(&id);
            let recorded = gradient.is_tracked() || held.is_some_and(Tensor::is_tracked);
            self.add(id, gradient, recorded)?;
        }
        Ok(())
    }

    /// Multiplies every gradient by `factor`, in place if nothing else shares its storage. 16-bit
    /// floats are multiplied in `f32` and rounded once.
    ///
    /// # Errors
    /// Errors of the multiplications, after which a gradient may be missing.
    pub fn scale(&mut self, factor: f64) -> Result<()> {
        self.by_id.values_mut().try_for_each(|gradient| scale(gradient, factor))
    }

    /// Multiplies the gradient of `x`, if there is one, by `factor`.
    pub(crate) fn scale_wrt(&mut self, x: &Tensor<B>, factor: f64) -> Result<()> {
        let held = x.node().and_then(|node| self.by_id.get_mut(&node.id()));
        held.map_or(Ok(()), |gradient| scale(gradient, factor))
    }

    /// Adds `gradient` to that of a node; the caller has checked it. The addition is recorded if
    /// `create_graph` is true.
    pub(crate) fn add(&mut self, id: u64, gradient: Tensor<B>, create_graph: bool) -> Result<()> {
        match self.by_id.entry(id) {
            Entry::Vacant(slot) => {
                slot.insert(gradient);
            }
            Entry::Occupied(mut slot) if create_graph => {
                let sum = slot.get().add(&gradient)?;
                slot.insert(sum);
            }
            Entry::Occupied(slot) => {
                let (key, total) = slot.remove_entry();
                let total = Arg::Owned(total.into_data());
                let sum = B::binary(BinaryOp::Add, total, gradient.data())?;
                self.by_id.insert(key, Tensor::from_data(sum));
            }
        }
        Ok(())
    }

    pub(crate) fn get_id(&self, id: u64) -> Option<&Tensor<B>> {
        self.by_id.get(&id)
    }

    pub(crate) fn take_id(&mut self, id: u64) -> Option<Tensor<B>> {
        self.by_id.remove(&id)
    }

    pub(crate) fn insert_id(&mut self, id: u64, gradient: Tensor<B>) {
        self.by_id.insert(id, gradient);
    }
}

fn scale<B: Backend>(gradient: &mut Tensor<B>, factor: f64) -> Result<()> {
    let (dtype, wide) = (gradient.dtype(), gradient.dtype().at_least_f32());
    if gradient.is_tracked() || dtype != wide {
        *gradient = gradient.to_dtype(wide)?.mul_scalar(factor)?.to_dtype(dtype)?;
        return Ok(());
    }
    let data = gradient.data_mut();
    let empty = B::full(Shape::scalar(), Scalar::Int(0), data.dtype())?;
    let owned = std::mem::replace(data, empty);
    *data = B::binary(BinaryOp::Mul, Arg::Owned(owned), Arg::Scalar(factor.into()))?;
    Ok(())
}

/// The reason why `x` has no gradient, after a pass that began at `pass`.
pub(crate) fn missing<B: Backend>(x: &Tensor<B>, pass: Option<u32>) -> Error {
    let node = x.node().map(|node| {
        let is_leaf = node.is_leaf();
        Absent {
            label: node.label(),
            is_kept: is_leaf || node.is_retained(),
            is_retained_late: !is_leaf && pass.is_some_and(|pass| node.is_retained_after(pass)),
            op: node.op(),
        }
    });
    reason_of(node, x.dtype(), x.shape(), x.is_frozen(), pass.is_some())
}

/// A node without a gradient.
struct Absent {
    op: &'static str,
    label: String,
    /// True for leaves and retained results.
    is_kept: bool,
    /// True if `retain_grad` was called after the pass.
    is_retained_late: bool,
}

/// The error for a missing gradient. Not generic, so that it is compiled once, in this crate.
fn reason_of(
    node: Option<Absent>,
    dtype: DType,
    shape: &Shape,
    is_frozen: bool,
    after_a_pass: bool,
) -> Error {
    let op = "gradients";
    let Some(Absent { op: made_by, label, is_kept, is_retained_late }) = node else {
        let reason = match dtype.is_float() {
            true if is_frozen => format!(
                "the parameter of shape {shape} is frozen; call nn::unfreeze before using it"
            ),
            true => format!(
                "the {dtype} tensor of shape {shape} is not tracked; call requires_grad() before \
                 using it, and compute from it outside no_grad"
            ),
            false => format!(
                "the tensor of shape {shape} is {dtype}, and only floats have gradients: \
                 requires_grad() leaves it untracked"
            ),
        };
        return Error::NoGradient { op, reason };
    };
    if !is_kept {
        return Error::GradientNotKept { op: made_by, name: label };
    }
    let reason = match after_a_pass {
        true if is_retained_late => format!(
            "retain_grad() was called on {label} of shape {shape} after the backward pass; call it \
             before"
        ),
        true => format!("the result does not depend on {label} of shape {shape}"),
        false => format!("none was added for {label} of shape {shape}"),
    };
    Error::NoGradient { op, reason }
}

//! [`Gradients`]: what a backward pass returns.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::backend::{Arg, Backend, TensorData};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::ops::BinaryOp;
use crate::shape::Shape;
use crate::tensor::Tensor;

use super::graph::{GraphNode, tick};
use super::scratch;

/// Maps keyed by node id.
pub(crate) type IdMap<T> = HashMap<u64, T, BuildHasherDefault<IdHasher>>;

/// Sets of node ids.
pub(crate) type IdSet = HashSet<u64, BuildHasherDefault<IdHasher>>;

/// Spreads consecutive ids over all bits (Fibonacci hashing: 2^64 / φ).
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn write_u64(&mut self, id: u64) {
        self.0 = (self.0 ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

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
    /// When the backward pass began, on the clock of [`tick`]; `None` if they are of no single pass.
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
    /// None yet: to [`accumulate`](Gradients::accumulate) into.
    pub fn new() -> Self {
        Self::default()
    }

    /// None yet, of a backward pass that begins now.
    pub(crate) fn of_a_pass() -> Self {
        Gradients { by_id: scratch::take(), pass: Some(tick()) }
    }

    /// Number of gradients held.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The gradient of `x`, if there is one; [`Gradients::wrt`] says why there is none.
    pub fn get(&self, x: &Tensor<B>) -> Option<&Tensor<B>> {
        self.by_id.get(&x.node()?.id())
    }

    /// The gradient of `x`.
    ///
    /// # Errors
    /// [`Error::NoGradient`] if `x` is not tracked or the result did not depend on it,
    /// [`Error::GradientNotKept`] if it is an intermediate value that was not asked to be kept.
    pub fn wrt(&self, x: &Tensor<B>) -> Result<&Tensor<B>> {
        self.get(x).ok_or_else(|| missing(x, self.pass))
    }

    /// Takes the gradient of `x` out.
    pub fn remove(&mut self, x: &Tensor<B>) -> Option<Tensor<B>> {
        self.by_id.remove(&x.node()?.id())
    }

    /// Adds `gradient` to the gradient of `x`; shape and dtype are `x`'s.
    ///
    /// # Errors
    /// [`Error::NoGradient`] if `x` is not tracked; [`Error::ShapeMismatch`],
    /// [`Error::DTypeMismatch`].
    pub fn accumulate(&mut self, x: &Tensor<B>, gradient: Tensor<B>) -> Result<()> {
        let op = "accumulate";
        let Some(node) = x.node() else { return Err(missing(x, self.pass)) };
        if x.shape() != gradient.shape() {
            return Err(Error::ShapeMismatch { op, lhs: *x.shape(), rhs: *gradient.shape() });
        }
        if x.dtype() != gradient.dtype() {
            return Err(Error::DTypeMismatch {
                op,
                lhs: x.dtype(),
                rhs: gradient.dtype(),
                shape: *x.shape(),
            });
        }
        let recorded = gradient.is_tracked() || self.get(x).is_some_and(Tensor::is_tracked);
        self.add(node, gradient, recorded)
    }

    /// Adds the gradients of another pass to these: two batches of b give the gradients of one of 2b,
    /// up to rounding, if the losses are sums. With means, [`scale`](Gradients::scale) the total by
    /// ½.
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
    /// Those of adding.
    pub fn merge(&mut self, mut other: Gradients<B>) -> Result<()> {
        if self.is_empty() {
            std::mem::swap(self, &mut other);
            return Ok(());
        }
        for (id, gradient) in other.by_id.drain() {
            let held = self.by_id.get(&id);
            let recorded = gradient.is_tracked() || held.is_some_and(Tensor::is_tracked);
            self.add_to(id, gradient, recorded)?;
        }
        Ok(())
    }

    /// Multiplies every gradient by `factor`, in place where nothing shares its storage.
    ///
    /// # Errors
    /// Those of multiplying; a gradient may be lost then.
    pub fn scale(&mut self, factor: f64) -> Result<()> {
        self.by_id.values_mut().try_for_each(|gradient| scale(gradient, factor))
    }

    /// As [`scale`](Gradients::scale), of one tensor's gradient.
    pub(crate) fn scale_wrt(&mut self, x: &Tensor<B>, factor: f64) -> Result<()> {
        let held = x.node().and_then(|node| self.by_id.get_mut(&node.id()));
        held.map_or(Ok(()), |gradient| scale(gradient, factor))
    }

    /// As [`accumulate`](Gradients::accumulate), checked by the caller; the addition is recorded
    /// with `create_graph`.
    pub(crate) fn add(
        &mut self,
        node: &GraphNode<B>,
        gradient: Tensor<B>,
        create_graph: bool,
    ) -> Result<()> {
        self.add_to(node.id(), gradient, create_graph)
    }

    fn add_to(&mut self, id: u64, gradient: Tensor<B>, create_graph: bool) -> Result<()> {
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

    pub(crate) fn take_id(&mut self, id: u64) -> Option<Tensor<B>> {
        self.by_id.remove(&id)
    }

    pub(crate) fn insert_id(&mut self, id: u64, gradient: Tensor<B>) {
        self.by_id.insert(id, gradient);
    }
}

fn scale<B: Backend>(gradient: &mut Tensor<B>, factor: f64) -> Result<()> {
    if gradient.is_tracked() {
        *gradient = gradient.mul_scalar(factor)?;
        return Ok(());
    }
    let data = gradient.data_mut();
    let empty = B::full(Shape::scalar(), Scalar::Int(0), data.dtype())?;
    let owned = std::mem::replace(data, empty);
    *data = B::binary(BinaryOp::Mul, Arg::Owned(owned), Arg::Scalar(factor.into()))?;
    Ok(())
}

/// Why there is no gradient of `x`, after a pass that began at `pass`.
pub(crate) fn missing<B: Backend>(x: &Tensor<B>, pass: Option<u32>) -> Error {
    let node = x.node().map(|node| Absent {
        op: node.op(),
        label: node.label(),
        is_leaf: node.is_leaf(),
        is_retained: node.is_retained(),
        is_retained_late: pass.is_some_and(|pass| node.is_retained_after(pass)),
    });
    reason_of(node, x.dtype(), x.shape(), pass.is_some())
}

/// A node without a gradient.
struct Absent {
    op: &'static str,
    label: String,
    is_leaf: bool,
    is_retained: bool,
    /// `retain_grad` came after the pass.
    is_retained_late: bool,
}

fn reason_of(node: Option<Absent>, dtype: DType, shape: &Shape, after_a_pass: bool) -> Error {
    let op = "gradients";
    let Some(Absent { op: made_by, label, is_leaf, is_retained, is_retained_late }) = node else {
        let reason = match dtype.is_float() {
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
    if !is_leaf && !is_retained {
        return Error::GradientNotKept { op: made_by, name: label };
    }
    let reason = match after_a_pass {
        true if !is_leaf && is_retained_late => format!(
            "retain_grad() was called on {label} of shape {shape} after the backward pass; call it \
             before"
        ),
        true => format!("the result does not depend on {label} of shape {shape}"),
        false => format!("none was added for {label} of shape {shape}"),
    };
    Error::NoGradient { op, reason }
}

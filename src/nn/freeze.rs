//! [`freeze`], [`unfreeze`]: parameters that are not to be trained.
//!
//! A frozen parameter has a node, like a tracked one, so that its handles stay tied and keep the
//! mark in clones; but operations on it are not recorded.

use super::{Kind, Visit, for_each_tensor_mut};
use crate::autodiff::ids::{IdMap, IdSet};
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Freezes the parameters that `selects` chooses by path and shape: nothing is recorded for them,
/// optimizers leave them as they are, and files have them as before. Returns the number of
/// parameters chosen. A parameter at several paths counts once, and is frozen if any of them is
/// chosen.
///
/// Gradients that were computed before belong to other leaves. The state that an optimizer has of a
/// frozen parameter is used again after [`unfreeze`].
///
/// ```
/// use swath::nn::{self, Linear, Module, Sequential};
/// use swath::optim::{Optimizer, Sgd, SgdOptions};
/// use swath::prelude::*;
///
/// let mut rng = Rng::seed(1);
/// let mut model: Sequential =
///     Sequential::new().push(Linear::new(3, 4, &mut rng)?).push(Linear::new(4, 2, &mut rng)?);
/// assert_eq!(nn::freeze(&mut model, |path, _| path.starts_with("0."))?, 2);
/// let grads = model.forward(&Tensor::ones((1, 3), DType::F32)?)?.sum(None, false)?.backward()?;
/// assert_eq!(grads.len(), 2);
/// Sgd::new(SgdOptions::default())?.step(&mut model, &grads)?;
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidArgument`] names a parameter that is the result of an operation, or a part that
/// cannot be changed, as [`for_each_tensor_mut`] does. The model is then unchanged.
pub fn freeze<B: Backend>(
    model: &mut (impl Visit<B> + ?Sized),
    selects: impl FnMut(&str, &Shape) -> bool,
) -> Result<usize> {
    set(model, true, selects)
}

/// Makes the parameters that `selects` chooses tracked leaves again, as [`freeze`] chooses them.
///
/// ```
/// use swath::nn::{self, Linear};
/// use swath::prelude::*;
/// let mut layer: Linear = Linear::new(3, 2, &mut Rng::seed(1))?;
/// nn::freeze(&mut layer, |_, _| true)?;
/// nn::unfreeze(&mut layer, |path, _| path == "bias")?;
/// assert!(layer.weight.is_frozen() && layer.bias.unwrap().is_tracked());
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// As for [`freeze`].
pub fn unfreeze<B: Backend>(
    model: &mut (impl Visit<B> + ?Sized),
    selects: impl FnMut(&str, &Shape) -> bool,
) -> Result<usize> {
    set(model, false, selects)
}

fn set<B: Backend>(
    model: &mut (impl Visit<B> + ?Sized),
    frozen: bool,
    mut selects: impl FnMut(&str, &Shape) -> bool,
) -> Result<usize> {
    // A parameter that is neither tracked nor frozen has no id. A `Shared` part is visited at one address.
    let (mut ids, mut addresses) = (IdSet::default(), IdSet::default());
    let address = |x: &Tensor<B>| std::ptr::from_ref(x).addr() as u64;
    for_each_tensor_mut(model, |path, x, kind| {
        if kind == Kind::Buffer || !selects(path, x.shape()) {
            return Ok(());
        }
        if x.node().is_some_and(|node| !node.is_leaf()) {
            let op = if frozen { "nn::freeze" } else { "nn::unfreeze" };
            return Err(not_a_leaf(op, path));
        }
        match x.identity() {
            Some(id) => ids.insert(id),
            None => addresses.insert(address(x)),
        };
        Ok(())
    })?;
    let mut done: IdMap<Tensor<B>> = IdMap::default();
    for_each_tensor_mut(model, |_, x, _| {
        let id = x.identity();
        let is_selected = match id {
            Some(id) => ids.contains(&id),
            None => addresses.contains(&address(x)),
        };
        if !is_selected || x.is_frozen() == frozen && id.is_some() {
            return Ok(());
        }
        if let Some(tied) = id.and_then(|id| done.get(&id)) {
            *x = tied.clone();
            return Ok(());
        }
        *x = match frozen {
            true => x.detach().frozen(x.name()),
            false => x.requires_grad(),
        };
        done.extend(id.map(|id| (id, x.clone())));
        Ok(())
    })?;
    Ok(ids.len() + addresses.len())
}

/// True for a parameter that optimizers update, false for a buffer and a frozen parameter.
///
/// # Errors
/// [`Error::InvalidArgument`] names a parameter that is neither tracked nor frozen.
pub(crate) fn is_trained<B: Backend>(
    op: &'static str,
    path: &str,
    x: &Tensor<B>,
    kind: Kind,
) -> Result<bool> {
    if kind == Kind::Buffer || x.is_frozen() {
        return Ok(false);
    }
    if !x.is_tracked() {
        let reason = format!(
            "the parameter `{path}` of shape {} is not tracked; call requires_grad(), or nn::freeze if it is not to be \
             trained",
            x.shape()
        );
        return Err(Error::InvalidArgument { op, reason });
    }
    Ok(true)
}

/// The error of a parameter that is the result of an operation.
pub(crate) fn not_a_leaf(op: &'static str, path: &str) -> Error {
    let reason = format!("`{path}` is the result of an operation, not a leaf");
    Error::InvalidArgument { op, reason }
}

//! The tensors of a model, in the order of their exchange.

use crate::autodiff::ids::{IdMap, IdSet};
use crate::backend::Backend;
use crate::error::Result;
use crate::nn::{Kind, Visit, for_each_tensor, for_each_tensor_mut};
use crate::tensor::Tensor;

/// A tensor of a model, with its path.
pub(super) type Named<B> = (String, Tensor<B>);

/// The trained parameters. Tied parameters are listed once, under their first path.
pub(super) fn parameters<B: Backend>(model: &(impl Visit<B> + ?Sized)) -> Vec<Named<B>> {
    let mut seen = IdSet::default();
    let mut found = Vec::new();
    for_each_tensor(model, |path, x, kind| {
        let id = x.node().map(|node| node.id());
        if kind == Kind::Parameter && id.is_some_and(|id| seen.insert(id)) {
            found.push((path.to_owned(), x.clone()));
        }
    });
    found
}

pub(super) fn buffers<B: Backend>(model: &(impl Visit<B> + ?Sized)) -> Vec<Named<B>> {
    tensors(model, |_, kind| kind == Kind::Buffer)
}

/// Parameters that are frozen or not tracked. No step changes them.
pub(super) fn constants<B: Backend>(model: &(impl Visit<B> + ?Sized)) -> Vec<Named<B>> {
    tensors(model, is_constant)
}

pub(super) fn is_constant<B: Backend>(x: &Tensor<B>, kind: Kind) -> bool {
    kind == Kind::Parameter && !x.is_tracked()
}

fn tensors<B: Backend>(
    model: &(impl Visit<B> + ?Sized),
    is_wanted: impl Fn(&Tensor<B>, Kind) -> bool,
) -> Vec<Named<B>> {
    let mut found = Vec::new();
    for_each_tensor(model, |path, x, kind| {
        if is_wanted(x, kind) {
            found.push((path.to_owned(), x.clone()));
        }
    });
    found
}

/// All tensors: trained parameters, then buffers, then constants.
pub(super) fn all<B: Backend>(model: &(impl Visit<B> + ?Sized)) -> Vec<Named<B>> {
    [parameters(model), buffers(model), constants(model)].concat()
}

/// Replaces the values of the parameters, in the order of [`parameters`]. Each becomes a new leaf; tied parameters
/// share theirs.
pub(super) fn set_parameters<B: Backend>(
    model: &mut (impl Visit<B> + ?Sized),
    values: Vec<Tensor<B>>,
) -> Result<()> {
    let mut values = values.into_iter();
    let mut done: IdMap<Tensor<B>> = IdMap::default();
    for_each_tensor_mut(model, |_, x, kind| {
        let Some(id) = x.node().map(|node| node.id()).filter(|_| kind == Kind::Parameter) else {
            return Ok(());
        };
        if let Some(tied) = done.get(&id) {
            *x = tied.clone();
            return Ok(());
        }
        *x.data_mut() = values.next().expect("a value for each parameter").into_data();
        x.renew_leaf();
        // A shared part is visited again with its new leaf.
        let new = x.node().map(|node| node.id());
        done.extend([Some(id), new].into_iter().flatten().map(|id| (id, x.clone())));
        Ok(())
    })
}

/// Restores the buffers to their values before the step.
pub(super) fn restore_buffers<B: Backend>(
    model: &mut (impl Visit<B> + ?Sized),
    before: &[Named<B>],
) -> Result<()> {
    let values: Vec<_> = before.iter().map(|(_, x)| x.clone()).collect();
    if values.is_empty() { Ok(()) } else { set_buffers(model, &values) }
}

/// Replaces the values of the buffers, in visiting order.
pub(super) fn set_buffers<B: Backend>(
    model: &mut (impl Visit<B> + ?Sized),
    values: &[Tensor<B>],
) -> Result<()> {
    set(model, values, |_, kind| kind == Kind::Buffer)
}

/// Replaces the values of the wanted tensors, in visiting order. Frozen parameters stay frozen.
pub(super) fn set<B: Backend>(
    model: &mut (impl Visit<B> + ?Sized),
    values: &[Tensor<B>],
    is_wanted: impl Fn(&Tensor<B>, Kind) -> bool,
) -> Result<()> {
    let mut values = values.iter();
    for_each_tensor_mut(model, |_, x, kind| {
        if is_wanted(x, kind) {
            *x.data_mut() = values.next().expect("a value for each tensor").data().clone();
        }
        Ok(())
    })
}

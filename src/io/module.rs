//! The tensors of a model by name: what a file is compared with, and how its values are set.

use std::collections::{BTreeMap, BTreeSet};

use super::{Place, Problem};
use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::Result as Checked;
use crate::nn::{Visit, for_each_counter, for_each_tensor, for_each_tensor_mut};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Returns handles to the parameters and buffers of a model, with their paths.
pub fn module_tensors<B: Backend>(model: &(impl Visit<B> + ?Sized)) -> Vec<(String, Tensor<B>)> {
    let mut tensors = Vec::new();
    for_each_tensor(model, |path, tensor, _| tensors.push((path.to_owned(), tensor.clone())));
    tensors
}

/// The shapes and dtypes of a model's tensors, by name.
pub(super) struct Wanted {
    pub tensors: BTreeMap<String, (Shape, DType)>,
    /// The names of counters, which may be missing.
    pub optional: BTreeSet<String>,
}

impl Wanted {
    /// Lists the tensors of a model. Fails if a part of it cannot be changed.
    pub fn of<B: Backend>(model: &mut (impl Visit<B> + ?Sized), prefix: &str) -> Checked<Self> {
        let mut tensors = BTreeMap::new();
        for_each_tensor_mut(model, |name, tensor, _| {
            tensors.insert(format!("{prefix}{name}"), (*tensor.shape(), tensor.dtype()));
            Ok(())
        })?;
        let mut optional = BTreeSet::new();
        for_each_counter(model, |name| optional.extend([format!("{prefix}{name}")]));
        Ok(Wanted { tensors, optional })
    }

    /// Checks a tensor of the file against the model.
    pub fn check(&self, name: &str, found: &Shape, dtype: DType) -> Result<(), Problem> {
        self.misfit(name, found, dtype.name())
            .map_or(Ok(()), |reason| Err(Problem::with(name, reason)))
    }

    /// Says why a tensor of the file is not that of the model, if so.
    pub fn misfit(&self, name: &str, found: &Shape, dtype: &str) -> Option<String> {
        match self.tensors.get(name) {
            None => Some("the model has no such tensor".to_owned()),
            Some((shape, _)) if found != shape => {
                Some(format!("it has shape {found} in the file and {shape} in the model"))
            }
            Some((_, wanted)) if wanted.name() != dtype => {
                Some(format!("it is {dtype} in the file and {wanted} in the model"))
            }
            Some(_) => None,
        }
    }

    /// Fails if the file lacks a tensor of the model that is no counter, and names the first.
    pub fn check_complete(&self, has: impl Fn(&str) -> bool) -> Result<(), Problem> {
        let is_missing = |name: &String| !has(name) && !self.optional.contains(name);
        match self.tensors.iter().find(|(name, _)| is_missing(name)) {
            Some((name, (shape, dtype))) => {
                let reason =
                    format!("the model has it ({dtype} of shape {shape}), the file has not");
                Err(Problem::with(name, reason))
            }
            None => Ok(()),
        }
    }
}

/// Fails unless the tensors with names that begin with `prefix` are exactly those of the model.
pub(super) fn check_module<B: Backend>(
    place: Place<'_>,
    model: &mut (impl Visit<B> + ?Sized),
    tensors: &BTreeMap<String, Tensor<B>>,
    prefix: &str,
) -> Checked<()> {
    let wanted = Wanted::of(model, prefix)?;
    check_paths(place, model)?;
    for (name, tensor) in tensors.iter().filter(|(name, _)| name.starts_with(prefix)) {
        let checked = wanted.check(name, tensor.shape(), tensor.dtype());
        checked.map_err(|problem| place.problem(problem))?;
    }
    let complete = wanted.check_complete(|name| tensors.contains_key(name));
    complete.map_err(|problem| place.problem(problem))
}

/// Fails if the model has two tensors at one path.
fn check_paths<B: Backend>(place: Place<'_>, model: &(impl Visit<B> + ?Sized)) -> Checked<()> {
    let mut paths = BTreeSet::new();
    let mut result = Ok(());
    for_each_tensor(model, |path, _, _| {
        if !paths.insert(path.to_owned()) && result.is_ok() {
            result = Err(place.error(Some(path), "the model has two tensors of this path"));
        }
    });
    result
}

/// Fails if the file has different values for a parameter that the model has at two paths.
pub(super) fn check_tied<B: Backend>(
    place: Place<'_>,
    model: &(impl Visit<B> + ?Sized),
    values: &BTreeMap<String, Tensor<B>>,
    prefix: &str,
) -> Checked<()> {
    let mut first: BTreeMap<u64, String> = BTreeMap::new();
    let mut result = Ok(());
    for_each_tensor(model, |name, tensor, _| {
        let (Some(id), Ok(())) = (tensor.identity(), &result) else { return };
        let name = format!("{prefix}{name}");
        match first.get(&id) {
            Some(other) => result = check_equal(place, &name, other, values),
            None => drop(first.insert(id, name)),
        }
    });
    result
}

fn check_equal<B: Backend>(
    place: Place<'_>,
    name: &str,
    other: &str,
    values: &BTreeMap<String, Tensor<B>>,
) -> Checked<()> {
    // A file may hold it once.
    let (Some(one), Some(two)) = (values.get(name), values.get(other)) else { return Ok(()) };
    if B::to_host(one.data())?.as_bytes() != B::to_host(two.data())?.as_bytes() {
        let reason =
            format!("the model ties it to `{other}`, but the file has other values for it");
        return Err(place.error(Some(name), reason));
    }
    Ok(())
}

/// The names of a model's tensors that are one parameter, by the first of them.
pub(super) fn tied_names<B: Backend>(
    model: &(impl Visit<B> + ?Sized),
) -> BTreeMap<String, Vec<String>> {
    let mut names: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for_each_tensor(model, |name, tensor, _| {
        if let Some(id) = tensor.identity() {
            names.entry(id).or_default().push(name.to_owned());
        }
    });
    let tied = names.into_values().filter(|names| names.len() > 1);
    tied.map(|names| (names[0].clone(), names)).collect()
}

/// Replaces the values of all tensors of a model but those that have none. They have been
/// checked, so that this does not fail midway. Names of one parameter have one value or the same.
pub(super) fn set_values<B: Backend>(
    model: &mut (impl Visit<B> + ?Sized),
    mut value: impl FnMut(&str) -> Option<B::Tensor>,
) -> Checked<()> {
    let mut first: BTreeMap<u64, Tensor<B>> = BTreeMap::new();
    for_each_tensor_mut(model, |name, tensor, _| {
        let id = tensor.identity();
        if let Some(tied) = id.and_then(|id| first.get(&id)) {
            *tensor = tied.clone();
            return Ok(());
        }
        if let Some(value) = value(name) {
            *tensor.data_mut() = value;
        }
        first.extend(id.map(|id| (id, tensor.clone())));
        Ok(())
    })
}

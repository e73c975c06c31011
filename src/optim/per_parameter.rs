//! [`PerParameter`]: the step of an optimizer over a model, and its state of each parameter.
//!
//! ```text
//! check:   the options; every parameter is a leaf with a gradient and fitting state; count its handles
//! update:  every parameter at its first occurrence, by a kernel or the formula; the same tensor at the
//!          others; a new leaf if there are handles outside the model
//! ```
//!
//! 1. Errors of what is passed to a step are found by the check and leave the model unchanged. After an
//!    error of a kernel or a formula no further parameter is updated, but tied ones stay tied. (To
//!    exclude such errors, all new values would have to be computed first, in as much memory as
//!    parameters and state take.)
//! 2. Steps after the first allocate nothing if the backend has a kernel: slots are found by `&str`
//!    and collections are kept between steps.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use crate::autodiff::Gradients;
use crate::autodiff::ids::{IdMap, IdSet};
use crate::autodiff::{no_grad, scratch};
use crate::backend::cpu::CpuBackend;
use crate::backend::{Backend, TensorData};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::nn::{Kind, Visit, for_each_tensor_mut, is_trained, not_a_leaf};
use crate::shape::Shape;
use crate::tensor::Tensor;

use super::{Optimizer, Step, Update};

/// An [`Optimizer`] that updates each parameter by an [`Update`].
///
/// The state tensors have the dtype of their parameter. In 16 bits small squares of gradients round
/// to zero, so that optimizers that divide by their root take far too large steps.
///
/// ```
/// use swath::optim::{Optimizer, Sgd, SgdOptions};
/// use swath::prelude::*;
/// let mut optimizer = Sgd::new(SgdOptions { learning_rate: 0.5, ..Default::default() })?;
/// let mut w = tensor![1.0, -2.0].requires_grad();
/// let grads = w.square()?.sum(None, false)?.backward()?;
/// optimizer.step(&mut w, &grads)?;
/// assert_eq!(w.to_vec::<f32>()?, [0.0, 0.0]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct PerParameter<U, B: Backend = CpuBackend> {
    update: U,
    learning_rate: f64,
    slots: Slots<B>,
}

/// The state of each parameter, by path.
pub type Slots<B> = BTreeMap<String, Slot<B>>;

/// The optimizer state of one parameter.
#[derive(Debug)]
pub struct Slot<B: Backend> {
    /// Number of steps taken.
    steps: u64,
    values: SmallVec<[B::Tensor; 3]>,
}

/// Name of the step count among the state entries of a parameter.
const STEP: &str = "step";
const LEARNING_RATE: &str = "learning_rate";

impl<U: Update<B>, B: Backend> PerParameter<U, B> {
    /// Creates an optimizer without state.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an option that is negative or not finite, a decay rate of a
    /// moving average that is not below 1, and as documented at the fields of the options.
    pub fn new(mut update: U) -> Result<Self> {
        update.check()?;
        let learning_rate = *update.learning_rate();
        Ok(PerParameter { update, learning_rate, slots: BTreeMap::new() })
    }

    /// The bytes of the state tensors.
    pub(crate) fn state_bytes(&self) -> usize {
        let tensors = self.slots.values().flat_map(|slot| &slot.values);
        tensors.map(|x| x.shape().numel() * x.dtype().size()).sum()
    }

    pub(crate) fn update(&self) -> &U {
        &self.update
    }

    pub(crate) fn update_mut(&mut self) -> &mut U {
        &mut self.update
    }

    /// Fails if the options are invalid with this learning rate, and leaves them unchanged.
    fn set_checked(&mut self, rate: f64) -> Result<()> {
        let before = std::mem::replace(self.update.learning_rate(), rate);
        self.update.check().inspect_err(|_| *self.update.learning_rate() = before)
    }
}

/// The step over a model, for every optimizer.
impl<B: Backend> Tensor<B> {
    pub(crate) fn step_body(
        update: &dyn Update<B>,
        slots: &mut Slots<B>,
        model: &mut dyn Visit<B>,
        grads: &Gradients<B>,
    ) -> Result<()> {
        // By id: the number of the model's own handles, which a `Shared` part has once however often
        // it is visited, and the updated tensor. By address: the handles.
        let mut counts: IdMap<usize> = scratch::take();
        let mut updated: IdMap<Tensor<B>> = scratch::take();
        let mut addresses: IdSet = scratch::take();
        let mut result = for_each_tensor_mut(model, |path, tensor, kind| {
            if is_trained(update.name(), path, tensor, kind)? {
                let count = counts.entry(check(update, slots, path, tensor, grads)?).or_default();
                *count += usize::from(addresses.insert((&raw const *tensor).addr() as u64));
            }
            Ok(())
        });
        if result.is_ok() {
            let mut changed = Ok(());
            result = for_each_tensor_mut(model, |path, tensor, kind| {
                let node = tensor.node().filter(|_| kind == Kind::Parameter);
                let Some((id, handles)) = node.map(|node| (node.id(), node.handles())) else {
                    return Ok(());
                };
                if let Some(tied) = updated.get(&id) {
                    *tensor = tied.clone();
                    return Ok(());
                }
                let gradient = match &changed {
                    Ok(()) => grads.wrt(tensor),
                    Err(_) => return Ok(()),
                };
                changed = gradient.and_then(|g| change(update, slots, path, tensor, g));
                if changed.is_ok() {
                    if counts.get(&id).is_none_or(|&count| handles > count) {
                        tensor.renew_leaf();
                        // Under its new id too: a `Shared` part is visited again.
                        if let Some(node) = tensor.node() {
                            updated.insert(node.id(), tensor.clone());
                        }
                    }
                    updated.insert(id, tensor.clone());
                }
                Ok(())
            })
            .and(changed);
        }
        counts.clear();
        updated.clear();
        addresses.clear();
        scratch::give(counts);
        scratch::give(updated);
        scratch::give(addresses);
        result.map_err(|error| match error {
            Error::InvalidArgument { op: "visit_mut", reason } => {
                Error::InvalidArgument { op: update.name(), reason }
            }
            error => error,
        })
    }
}

/// Checks that a parameter can be updated, and returns the id of its node.
fn check<B: Backend>(
    update: &dyn Update<B>,
    slots: &Slots<B>,
    path: &str,
    tensor: &Tensor<B>,
    grads: &Gradients<B>,
) -> Result<u64> {
    let op = update.name();
    let Some(node) = tensor.node().filter(|node| node.is_leaf()) else {
        return Err(not_a_leaf(op, path));
    };
    if let Err(error) = grads.wrt(tensor) {
        let reason = match error {
            Error::NoGradient { reason, .. } => reason,
            error => error.to_string(),
        };
        let hint = match slots.contains_key(path) {
            true => "; a clone of a parameter that is kept over a step is another leaf",
            false => "",
        };
        return Err(Error::NoGradient { op, reason: format!("`{path}`: {reason}{hint}") });
    }
    let values = slots.get(path).map(|slot| slot.values.as_slice()).unwrap_or_default();
    for (value, name) in values.iter().zip(update.state()) {
        if value.shape() != tensor.shape() || value.dtype() != tensor.dtype() {
            let reason = format!(
                "`{path}` is {} of shape {}, but its {name} is {} of shape {}",
                tensor.dtype(),
                tensor.shape(),
                value.dtype(),
                value.shape()
            );
            return Err(Error::InvalidArgument { op, reason });
        }
    }
    Ok(node.id())
}

/// Updates the parameter at `path`, by the backend's kernel or, without one, by the formula.
fn change<B: Backend>(
    update: &dyn Update<B>,
    slots: &mut Slots<B>,
    path: &str,
    tensor: &mut Tensor<B>,
    gradient: &Tensor<B>,
) -> Result<()> {
    let (shape, dtype) = (*tensor.shape(), tensor.dtype());
    if !slots.contains_key(path) {
        let initial = Scalar::Float(update.initial_state());
        let values = update.state().iter().map(|_| B::full(shape, initial, dtype));
        slots.insert(path.to_owned(), Slot { steps: 0, values: values.collect::<Result<_>>()? });
    }
    let Slot { steps, values: state } = slots.get_mut(path).expect("inserted above");
    let step = Step { path, shape: &shape, number: *steps + 1 };
    let parameter = tensor.data_mut();
    if !parameter.layout().is_contiguous() {
        *parameter = B::contiguous(parameter)?;
    }
    if let Some(op) = update.kernel(&step) {
        match B::update(&op, parameter, &B::contiguous(gradient.data())?, state) {
            Err(Error::Unsupported { op: lacking, .. }) if lacking == op.name() => {}
            result => return result.map(|()| *steps += 1),
        }
    }
    let wide = |x: &B::Tensor| Tensor::<B>::from_data(x.clone()).to_dtype(dtype.at_least_f32());
    no_grad(|| {
        let mut values: SmallVec<[Tensor<B>; 3]> = state.iter().map(wide).collect::<Result<_>>()?;
        let new = update.update(&wide(parameter)?, &wide(gradient.data())?, &mut values, &step)?;
        if let Some(other) = values.iter().chain([&new]).find(|x| *x.shape() != shape) {
            let (op, lhs, rhs) = (update.name(), shape, *other.shape());
            return Err(Error::ShapeMismatch { op, lhs, rhs });
        }
        let narrow = |x: &Tensor<B>| x.to_dtype(dtype).map(Tensor::into_data);
        let values: SmallVec<[B::Tensor; 3]> = values.iter().map(narrow).collect::<Result<_>>()?;
        *parameter = narrow(&new)?;
        state.iter_mut().zip(values).for_each(|(old, new)| *old = new);
        *steps += 1;
        Ok(())
    })
}

impl<U: Update<B>, B: Backend> Optimizer<B> for PerParameter<U, B> {
    fn step(&mut self, model: &mut dyn Visit<B>, grads: &Gradients<B>) -> Result<()> {
        self.set_checked(self.learning_rate)?;
        B::engine_step(&self.update, &mut self.slots, model, grads)
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn set_learning_rate(&mut self, rate: f64) {
        self.learning_rate = rate;
    }

    fn state(&self) -> Result<Vec<(String, Tensor<B>)>> {
        let rate = Scalar::Float(self.learning_rate);
        let rate = Tensor::full_scalar("learning_rate", Shape::scalar(), rate, B::wide(None))?;
        let mut state = vec![(LEARNING_RATE.to_owned(), rate)];
        for (path, slot) in &self.slots {
            let steps = Tensor::full(Shape::scalar(), slot.steps.cast_signed())?;
            state.push((format!("{path}.{STEP}"), steps));
            for (name, value) in self.update.state().iter().zip(&slot.values) {
                state.push((format!("{path}.{name}"), Tensor::from_data(value.clone())));
            }
        }
        Ok(state)
    }

    fn load_state(&mut self, state: Vec<(String, Tensor<B>)>) -> Result<()> {
        let op = self.update.name();
        let invalid = |reason: String| Error::InvalidArgument { op, reason };
        let names = self.update.state();
        let mut entries = entries_of(op, state, names)?;
        let paths: BTreeSet<String> = entries
            .keys()
            .filter_map(|name| name.rsplit_once('.'))
            .map(|(path, _)| path.to_owned())
            .collect();
        let mut take = |name: &str| {
            entries.remove(name).ok_or_else(|| invalid(format!("`{name}` is missing")))
        };
        let scalar = |name: &str, x: Tensor<B>, dtype: DType| match (x.rank(), x.dtype()) {
            (0, found) if found == dtype => Ok(x),
            (_, found) => {
                let shape = x.shape();
                Err(invalid(format!(
                    "`{name}`: expected one {dtype}, got {found} of shape {shape}"
                )))
            }
        };
        let rate = scalar(LEARNING_RATE, take(LEARNING_RATE)?, B::wide(None))?;
        let rate = B::item(rate.data())?.to_f64();
        let mut slots = BTreeMap::new();
        for path in paths {
            let name = format!("{path}.{STEP}");
            let steps = scalar(&name, take(&name)?, DType::I64)?.item::<i64>()?;
            let steps = u64::try_from(steps)
                .map_err(|_| invalid(format!("`{name}` must be at least 0, got {steps}")))?;
            let mut values = SmallVec::<[B::Tensor; 3]>::new();
            for entry in names {
                let name = format!("{path}.{entry}");
                let x = take(&name)?;
                if !x.dtype().is_float() {
                    return Err(invalid(format!("`{name}`: expected floats, got {}", x.dtype())));
                }
                values.push(B::contiguous(x.data())?);
            }
            let is_alike =
                |x: &B::Tensor| (x.shape(), x.dtype()) == (values[0].shape(), values[0].dtype());
            if !values.iter().all(is_alike) {
                return Err(invalid(format!("expected state of one shape and dtype for `{path}`")));
            }
            slots.insert(path, Slot { steps, values });
        }
        self.set_checked(rate)?;
        self.slots = slots;
        self.learning_rate = rate;
        Ok(())
    }
}

/// Returns the entries of a state by name. Fails if one occurs twice, or is unknown to an optimizer that keeps `names` for
/// each parameter.
fn entries_of<B: Backend>(
    op: &'static str,
    state: Vec<(String, Tensor<B>)>,
    names: &[&str],
) -> Result<BTreeMap<String, Tensor<B>>> {
    let invalid = |reason: String| Err(Error::InvalidArgument { op, reason });
    let mut entries = BTreeMap::new();
    for (name, x) in state {
        let is_known = match name.rsplit_once('.') {
            Some((_, entry)) => entry == STEP || names.contains(&entry),
            None => name == LEARNING_RATE,
        };
        match entries.entry(name) {
            Entry::Occupied(entry) => return invalid(format!("`{}` appears twice", entry.key())),
            Entry::Vacant(entry) if !is_known => {
                return invalid(format!("unknown entry `{}`", entry.key()));
            }
            Entry::Vacant(entry) => entry.insert(x),
        };
    }
    Ok(entries)
}

//! [`Memory`]: what an optimizer remembers of each parameter, and the step over a model.
//!
//! ```text
//! check:   for every leaf: it is one, it has a gradient, its memory fits; note leaves met twice
//! change:  for every parameter: met before: the new value; else one fused update, in place
//! ```
//!
//! 1. All that can be wrong is found by the check, so that an error leaves the model as it was.
//! 2. A step after the first takes no memory from the system: memory is found by `&str`, collections
//!    are kept between steps.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::autodiff::Gradients;
use crate::autodiff::gradients::{IdMap, IdSet};
use crate::autodiff::scratch;
use crate::backend::{Backend, TensorData};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::nn::{Kind, Visit, for_each_tensor_mut};
use crate::ops::UpdateOp;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// The methods of [`Optimizer`](super::Optimizer) that are the same for every optimizer with `options`
/// and a `memory`.
macro_rules! keeping_methods {
    () => {
        fn learning_rate(&self) -> f64 {
            self.options.learning_rate
        }

        fn set_learning_rate(&mut self, rate: f64) {
            self.options.learning_rate = rate;
        }

        fn state(&self) -> Result<Vec<(String, Tensor<B>)>> {
            self.memory.state(self.options.learning_rate)
        }

        fn load_state(&mut self, state: Vec<(String, Tensor<B>)>) -> Result<()> {
            self.options.learning_rate = self.memory.load(state)?;
            Ok(())
        }
    };
}
pub(super) use keeping_methods;

/// What an optimizer remembers of each parameter, by path.
#[derive(Debug)]
pub(super) struct Memory<B: Backend> {
    /// The optimizer's name, which errors give.
    op: &'static str,
    /// Names of the state tensors, in the order in which updates take them.
    names: &'static [&'static str],
    slots: BTreeMap<String, Slot<B>>,
}

#[derive(Debug)]
struct Slot<B: Backend> {
    /// Steps done.
    steps: u64,
    values: SmallVec<[B::Tensor; 2]>,
}

/// Name of the number of steps done, beside the state tensors' names.
const STEP: &str = "step";
const LEARNING_RATE: &str = "learning_rate";

impl<B: Backend> Memory<B> {
    pub fn new(op: &'static str, names: &'static [&'static str]) -> Self {
        Memory { op, names, slots: BTreeMap::new() }
    }

    /// One step of every parameter; `update(path, shape, t)` is the t-th of a parameter, from 1.
    pub fn step(
        &mut self,
        model: &mut dyn Visit<B>,
        grads: &Gradients<B>,
        update: impl Fn(&str, &Shape, u64) -> UpdateOp,
    ) -> Result<()> {
        let (mut seen, mut twice): (IdSet, IdSet) = scratch::take();
        let mut stepped: IdMap<Tensor<B>> = scratch::take();
        let mut result = for_each_tensor_mut(model, |path, tensor, kind| {
            if kind == Kind::Parameter {
                let node = self.check(path, tensor, grads)?;
                if !seen.insert(node) {
                    twice.insert(node);
                }
            }
            Ok(())
        });
        if result.is_ok() {
            result = for_each_tensor_mut(model, |path, tensor, kind| {
                let node = tensor.node().map(|node| node.id());
                let Some(node) = node.filter(|_| kind == Kind::Parameter) else { return Ok(()) };
                if let Some(updated) = stepped.get(&node) {
                    *tensor = updated.clone();
                    return Ok(());
                }
                self.update(path, tensor, grads.wrt(tensor)?, &update)?;
                if twice.contains(&node) {
                    stepped.insert(node, tensor.clone());
                }
                Ok(())
            });
        }
        seen.clear();
        twice.clear();
        stepped.clear();
        scratch::give((seen, twice));
        scratch::give(stepped);
        result
    }

    /// The parameter's node, if it can be stepped.
    fn check(&self, path: &str, tensor: &Tensor<B>, grads: &Gradients<B>) -> Result<u64> {
        let op = self.op;
        let Some(node) = tensor.node().filter(|node| node.is_leaf()) else {
            let reason = format!("`{path}` is the result of an operation, not a leaf");
            return Err(Error::InvalidArgument { op, reason });
        };
        if let Err(error) = grads.wrt(tensor) {
            let reason = match error {
                Error::NoGradient { reason, .. } => reason,
                error => error.to_string(),
            };
            return Err(Error::NoGradient { op, reason: format!("`{path}`: {reason}") });
        }
        let values = self.slots.get(path).map(|slot| slot.values.as_slice()).unwrap_or_default();
        for (value, name) in values.iter().zip(self.names) {
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

    fn update(
        &mut self,
        path: &str,
        tensor: &mut Tensor<B>,
        gradient: &Tensor<B>,
        update: impl Fn(&str, &Shape, u64) -> UpdateOp,
    ) -> Result<()> {
        let (shape, dtype) = (*tensor.shape(), tensor.dtype());
        if !self.names.is_empty() && !self.slots.contains_key(path) {
            let zeros = |_| B::full(shape, Scalar::Int(0), dtype);
            let values = self.names.iter().map(zeros).collect::<Result<_>>()?;
            self.slots.insert(path.to_owned(), Slot { steps: 0, values });
        }
        let mut slot = self.slots.get_mut(path);
        let t = slot.as_ref().map_or(1, |slot| slot.steps + 1);
        let op = update(path, &shape, t);
        let gradient = B::contiguous(gradient.data())?;
        let state = slot.as_mut().map(|slot| slot.values.as_mut_slice()).unwrap_or_default();
        let data = tensor.data_mut();
        if !data.layout().is_contiguous() {
            *data = B::contiguous(data)?;
        }
        B::update(&op, data, &gradient, state)?;
        if let Some(slot) = slot {
            slot.steps = t;
        }
        Ok(())
    }

    /// [`Optimizer::state`](super::Optimizer::state).
    pub fn state(&self, learning_rate: f64) -> Result<Vec<(String, Tensor<B>)>> {
        let rate = Tensor::full(Shape::scalar(), learning_rate)?;
        let mut state = vec![(LEARNING_RATE.to_owned(), rate)];
        for (path, slot) in &self.slots {
            let steps = Tensor::full(Shape::scalar(), slot.steps.cast_signed())?;
            state.push((format!("{path}.{STEP}"), steps));
            for (name, value) in self.names.iter().zip(&slot.values) {
                state.push((format!("{path}.{name}"), Tensor::from_data(value.clone())));
            }
        }
        Ok(state)
    }

    /// [`Optimizer::load_state`](super::Optimizer::load_state); returns the learning rate.
    pub fn load(&mut self, state: Vec<(String, Tensor<B>)>) -> Result<f64> {
        let op = self.op;
        let invalid = |reason: String| Error::InvalidArgument { op, reason };
        let mut rate = None;
        /// Steps and state tensors, where they were found.
        type Found<T> = (Option<u64>, [Option<T>; 2]);
        let mut found: BTreeMap<String, Found<B::Tensor>> = BTreeMap::new();
        for (name, tensor) in state {
            let scalar = |dtype: DType| match (tensor.rank(), tensor.dtype()) {
                (0, found) if found == dtype => Ok(&tensor),
                (_, found) => {
                    let shape = tensor.shape();
                    Err(invalid(format!("`{name}` is {found} of shape {shape}, not one {dtype}")))
                }
            };
            if name == LEARNING_RATE {
                rate = Some(scalar(DType::F64)?.item::<f64>()?);
                continue;
            }
            let unknown = || invalid(format!("`{name}` is nothing to remember here"));
            let (path, what) = name.rsplit_once('.').ok_or_else(unknown)?;
            let place = self.names.iter().position(|&known| known == what);
            if self.names.is_empty() || (place.is_none() && what != STEP) {
                return Err(unknown());
            }
            let slot = found.entry(path.to_owned()).or_default();
            let Some(place) = place else {
                let steps = scalar(DType::I64)?.item::<i64>()?;
                let steps = u64::try_from(steps);
                slot.0 = Some(steps.map_err(|_| invalid(format!("`{name}` is negative")))?);
                continue;
            };
            if !tensor.dtype().is_float() {
                return Err(invalid(format!("`{name}` is {}, not a float", tensor.dtype())));
            }
            slot.1[place] = Some(B::contiguous(tensor.data())?);
        }
        let rate = rate.ok_or_else(|| invalid(format!("`{LEARNING_RATE}` is missing")))?;
        let mut slots = BTreeMap::new();
        for (path, (steps, mut values)) in found {
            let missing = |name: &str| invalid(format!("`{path}.{name}` is missing"));
            let steps = steps.ok_or_else(|| missing(STEP))?;
            let named = self.names.iter().zip(&mut values);
            let values = named.map(|(name, value)| value.take().ok_or_else(|| missing(name)));
            let values: SmallVec<[B::Tensor; 2]> = values.collect::<Result<_>>()?;
            let first = &values[0];
            let alike = |x: &B::Tensor| x.shape() == first.shape() && x.dtype() == first.dtype();
            if !values.iter().all(alike) {
                return Err(invalid(format!("what is remembered of `{path}` differs in type")));
            }
            slots.insert(path, Slot { steps, values });
        }
        self.slots = slots;
        Ok(rate)
    }
}

/// Options that must be finite and at least 0, by name.
pub(super) fn check_options(op: &'static str, options: &[(&str, f64)]) -> Result<()> {
    for (name, value) in options {
        if !(value.is_finite() && *value >= 0.0) {
            let reason = format!("{name} is {value}, not a finite number from 0 on");
            return Err(Error::InvalidArgument { op, reason });
        }
    }
    Ok(())
}

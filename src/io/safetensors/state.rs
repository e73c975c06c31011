//! [`TrainingState`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{Metadata, Source, module_tensors, write};
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::error::{Error, Result};
use crate::io::Place;
use crate::io::module::{check_module, check_tied, set_values};
use crate::nn::{Visit, for_each_tensor};
use crate::optim::Optimizer;
use crate::rng::{Rng, RngState};
use crate::shape::Shape;
use crate::tensor::Tensor;

const MODEL: &str = "model.";
const OPTIMIZER: &str = "optimizer.";
const RNG: &str = "rng.";
const COUNTER: &str = "counter.";
const EXTRA: &str = "extra.";

/// The state of a training run, saved to one file and restored bit for bit: a model, its optimizer,
/// random number generators, counters, other tensors, and texts.
///
/// In the file, names begin with `model.`, `optimizer.`, `rng.`, `counter.` and `extra.`; texts are
/// metadata. A state shares the storage of its tensors: drop it before the next step, which
/// otherwise cannot update parameters in place.
///
/// ```
/// use swath::io::safetensors::TrainingState;
/// use swath::nn::Linear;
/// use swath::optim::{AdamW, AdamWOptions};
/// use swath::prelude::*;
///
/// # let folder = std::env::temp_dir();
/// let path = folder.join("swath-state.safetensors");
/// let mut rng = Rng::seed(1);
/// let mut model: Linear = Linear::new(3, 2, &mut rng)?;
/// let mut optimizer: AdamW = AdamW::new(AdamWOptions::default())?;
/// TrainingState::new()
///     .with_model(&model)
///     .with_optimizer(&optimizer)?
///     .with_rng("batches", &rng)?
///     .with_counter("step", 17)?
///     .with_text("seed", "1")
///     .save(&path)?;
///
/// let mut state = TrainingState::load(&path)?;
/// state.restore(&mut model, &mut optimizer)?;
/// rng = state.rng("batches")?;
/// assert_eq!(state.counter("step")?, 17);
/// assert_eq!(state.text("seed"), Some("1"));
/// # let _ = rng.next_u32();
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TrainingState<B: Backend = CpuBackend> {
    tensors: BTreeMap<String, Tensor<B>>,
    texts: Metadata,
    /// A name that was given to two tensors.
    repeated: Option<String>,
    /// Path of the file it was loaded from, for error messages.
    path: PathBuf,
}

impl<B: Backend> Default for TrainingState<B> {
    fn default() -> Self {
        let (tensors, texts) = (BTreeMap::new(), Metadata::new());
        TrainingState { tensors, texts, repeated: None, path: PathBuf::from("training state") }
    }
}

impl<B: Backend> TrainingState<B> {
    /// Creates an empty state.
    pub fn new() -> Self {
        TrainingState::default()
    }

    /// Adds the parameters and buffers of a model.
    #[must_use]
    pub fn with_model(mut self, model: &dyn Visit<B>) -> Self {
        self.extend(MODEL, module_tensors(model));
        self
    }

    /// Adds the state of an optimizer.
    ///
    /// # Errors
    /// Errors of [`Optimizer::state`].
    pub fn with_optimizer(mut self, optimizer: &dyn Optimizer<B>) -> Result<Self> {
        self.extend(OPTIMIZER, optimizer.state()?);
        Ok(self)
    }

    /// Adds the state of a random number generator.
    ///
    /// # Errors
    /// Errors of tensor creation.
    pub fn with_rng(mut self, name: &str, rng: &Rng) -> Result<Self> {
        let RngState { seed, stream, position } = rng.state();
        let bits = [seed, stream, position].map(u64::cast_signed);
        self.extend(RNG, [(name, Tensor::from_slice(&bits, 3)?)]);
        Ok(self)
    }

    /// Adds a counter.
    ///
    /// # Errors
    /// Errors of tensor creation.
    pub fn with_counter(mut self, name: &str, value: u64) -> Result<Self> {
        self.extend(COUNTER, [(name, Tensor::full(Shape::scalar(), value.cast_signed())?)]);
        Ok(self)
    }

    /// Adds another tensor.
    #[must_use]
    pub fn with_tensor(mut self, name: &str, tensor: Tensor<B>) -> Self {
        self.extend(EXTRA, [(name, tensor)]);
        self
    }

    /// Adds a text.
    #[must_use]
    pub fn with_text(mut self, name: &str, text: &str) -> Self {
        self.texts.insert(name.to_owned(), text.to_owned());
        self
    }

    fn extend(
        &mut self,
        prefix: &str,
        tensors: impl IntoIterator<Item = (impl AsRef<str>, Tensor<B>)>,
    ) {
        for (name, x) in tensors {
            let name = format!("{prefix}{}", name.as_ref());
            if self.tensors.insert(name.clone(), x).is_some() {
                self.repeated.get_or_insert(name);
            }
        }
    }

    /// Writes the state to a file, which is replaced atomically.
    ///
    /// # Errors
    /// Errors of [`save`](super::save), as for a name that was given to two tensors.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        if let Some(name) = &self.repeated {
            let reason = format!("there are two tensors of the name `{name}`");
            return Err(Error::InvalidArgument { op: "TrainingState::save", reason });
        }
        let tensors = self.tensors.iter().map(|(name, tensor)| (name.clone(), tensor.clone()));
        let place = Place { op: "TrainingState::save", path: path.as_ref() };
        write(place, tensors.collect(), &self.texts)
    }

    /// Reads a file that [`TrainingState::save`] wrote.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let source = Source::open(Place { op: "TrainingState::load", path })?;
        let texts = source.metadata()?;
        let (tensors, path) = (source.read()?, path.to_owned());
        Ok(TrainingState { tensors, texts, repeated: None, path })
    }

    /// Restores the model, whose parameters remain the same leaves, and the optimizer. Their
    /// tensors are removed from this state. If it was saved without an optimizer, this is
    /// [`restore_model`](TrainingState::restore_model), and the optimizer keeps what it remembers.
    ///
    /// # Errors
    /// [`Error::File`] unless the state has exactly the model's tensors, of which counters may be
    /// missing, with the same shapes and dtypes; errors of [`Optimizer::load_state`]. Model and
    /// optimizer are then unchanged.
    pub fn restore(
        &mut self,
        model: &mut dyn Visit<B>,
        optimizer: &mut dyn Optimizer<B>,
    ) -> Result<()> {
        let place = self.place("TrainingState::restore");
        self.check_model(place, model)?;
        self.check_optimizer(place, model)?;
        let remembered: Vec<_> = self
            .tensors
            .iter()
            .filter_map(|(name, tensor)| {
                Some((name.strip_prefix(OPTIMIZER)?.to_owned(), tensor.clone()))
            })
            .collect();
        if !remembered.is_empty() {
            let loaded = optimizer.load_state(remembered);
            loaded.map_err(|error| match error {
                Error::InvalidArgument { reason, .. } => {
                    place.error(None, format_args!("optimizer: {reason}"))
                }
                error => error,
            })?;
        }
        self.set_model(model)?;
        self.tensors.retain(|name, _| !name.starts_with(OPTIMIZER));
        Ok(())
    }

    /// Restores the model, as [`restore`](TrainingState::restore) does, and leaves the state of the
    /// optimizer.
    ///
    /// # Errors
    /// [`Error::File`] unless the state has exactly the model's tensors, of which counters may be
    /// missing, with the same shapes and dtypes. The model is then unchanged.
    pub fn restore_model(&mut self, model: &mut dyn Visit<B>) -> Result<()> {
        self.check_model(self.place("TrainingState::restore_model"), model)?;
        self.set_model(model)
    }

    fn check_model(&self, place: Place<'_>, model: &mut dyn Visit<B>) -> Result<()> {
        check_module(place, model, &self.tensors, MODEL)?;
        check_tied(place, model, &self.tensors, MODEL)
    }

    /// Moves the tensors of a checked model there.
    fn set_model(&mut self, model: &mut dyn Visit<B>) -> Result<()> {
        set_values(model, |name| {
            let value = self.tensors.remove(&format!("{MODEL}{name}"));
            value.map(Tensor::into_data)
        })?;
        self.tensors.retain(|name, _| !name.starts_with(MODEL));
        Ok(())
    }

    /// Checks that the optimizer's state belongs to the parameters of the model: entries
    /// `path.name` are scalars or have the parameter's shape and dtype, and exist for all
    /// parameters that are not frozen, or for none.
    fn check_optimizer(&self, place: Place<'_>, model: &dyn Visit<B>) -> Result<()> {
        let mut parameters = BTreeMap::new();
        for_each_tensor(model, |path, tensor, _| {
            if let Some(id) = tensor.identity() {
                let frozen = tensor.is_frozen();
                parameters.insert(path.to_owned(), (id, tensor.dtype(), *tensor.shape(), frozen));
            }
        });
        let mut found = BTreeSet::new();
        for (name, tensor) in &self.tensors {
            let Some(entry) = name.strip_prefix(OPTIMIZER) else { continue };
            // A name without a path belongs to the optimizer as a whole.
            let Some((path, _)) = entry.rsplit_once('.') else { continue };
            let Some((id, dtype, shape, _)) = parameters.get(path) else {
                let reason = "the model has no such parameter";
                return Err(place.error(Some(name), reason));
            };
            if tensor.rank() > 0 && (tensor.dtype() != *dtype || tensor.shape() != shape) {
                let (has, of) = (tensor.dtype(), tensor.shape());
                let reason = format_args!("{has} {of} for a parameter that is {dtype} {shape}");
                return Err(place.error(Some(name), reason));
            }
            found.insert(*id);
        }
        // The state of a tied parameter is saved under one of its paths; a frozen one may have none.
        let lacks = |id: &u64, frozen: &bool| !found.is_empty() && !frozen && !found.contains(id);
        match parameters.iter().find(|(_, (id, .., frozen))| lacks(id, frozen)) {
            Some((path, _)) => {
                let name = format!("{OPTIMIZER}{path}");
                Err(place.error(Some(&name), "is missing"))
            }
            None => Ok(()),
        }
    }

    /// Returns a saved random number generator.
    ///
    /// # Errors
    /// [`Error::File`] if there is none of this name.
    pub fn rng(&self, name: &str) -> Result<Rng> {
        let [seed, stream, position] = self.numbers(RNG, name)?;
        Ok(Rng::from_state(RngState { seed, stream, position }))
    }

    /// Returns a saved counter.
    ///
    /// # Errors
    /// [`Error::File`] if there is none of this name.
    pub fn counter(&self, name: &str) -> Result<u64> {
        let [value] = self.numbers(COUNTER, name)?;
        Ok(value)
    }

    /// Returns a tensor saved by [`with_tensor`](TrainingState::with_tensor).
    ///
    /// # Errors
    /// [`Error::File`] if there is none of this name.
    pub fn tensor(&self, name: &str) -> Result<&Tensor<B>> {
        self.get(EXTRA, name)
    }

    /// Returns a saved text, if there is one of this name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }

    fn place(&self, op: &'static str) -> Place<'_> {
        Place { op, path: &self.path }
    }

    fn get(&self, prefix: &str, name: &str) -> Result<&Tensor<B>> {
        let name = format!("{prefix}{name}");
        let missing = || self.place("TrainingState").error(Some(&name), "there is no such tensor");
        self.tensors.get(&name).ok_or_else(missing)
    }

    fn numbers<const N: usize>(&self, prefix: &str, name: &str) -> Result<[u64; N]> {
        let tensor = self.get(prefix, name)?;
        let numbers = tensor.to_vec::<i64>().ok().and_then(|x| <[i64; N]>::try_from(x).ok());
        let Some(numbers) = numbers else {
            let (dtype, shape) = (tensor.dtype(), tensor.shape());
            let reason = format!("{dtype} of shape {shape} instead of {N} i64");
            let name = format!("{prefix}{name}");
            return Err(self.place("TrainingState").error(Some(&name), reason));
        };
        Ok(numbers.map(i64::cast_unsigned))
    }
}

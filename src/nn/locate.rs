//! The path of the layer that failed, in an error.
//!
//! ```text
//! fails:   the layer notes on its thread: this error, from the part of this address and type
//! around:  a container looks for that part among its own, puts the path in front of the error and
//!          notes itself
//! ```
//!
//! Nothing is done until a layer fails, and errors of layers that are called directly do not change.

use std::any::type_name;
use std::cell::RefCell;

use super::visit::{Kind, Path, Visit, Visitor};
use crate::backend::Backend;
use crate::error::Error;
use crate::ops::Activation;
use crate::tensor::Tensor;

/// The identity of a part of a model: its address and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartId {
    address: usize,
    type_name: &'static str,
}

impl PartId {
    /// The identity of a part, as long as it is not moved.
    pub fn of<T: ?Sized>(part: &T) -> Self {
        let address = std::ptr::from_ref(part).cast::<()>().addr();
        PartId { address, type_name: type_name::<T>() }
    }
}

thread_local! {
    /// The last error of a part, and the part.
    static FAILED: RefCell<Option<(PartId, Error)>> = const { RefCell::new(None) };
}

/// The part that returned `error`, if the model can be searched for it.
fn failed(error: &Error) -> Option<PartId> {
    // Visiting makes tensors of counters, which a device that fails may refuse.
    let can_visit = !matches!(error.root(), Error::Device { .. } | Error::OutOfMemory { .. });
    // There is no note in destructors of thread-local values that outlive it.
    let noted = FAILED.try_with(|noted| noted.borrow().clone()).ok().flatten();
    noted.filter(|(_, noted)| can_visit && noted == error).map(|(id, _)| id)
}

/// True if `error` is that of an activation which follows `layer`, and is no part of it.
pub(super) fn is_of_activation_after<B: Backend>(
    layer: &(impl Visit<B> + ?Sized),
    error: &Error,
) -> bool {
    let failed = failed(error).filter(|id| id.type_name == type_name::<Activation>());
    failed.is_some_and(|id| path_of(layer, id).is_none())
}

/// Puts the path of the part that returned `error` in front of it: [`Error::In`]. Returns `error` unchanged if that
/// is `part` itself or is not known, as for errors that arise between layers.
///
/// The part is known by its last error on this thread: an error that is dealt with names the path of a later, equal one
/// that no part returned.
///
/// [`Module::call`](super::Module::call) and [`Sequential`](super::Sequential) do this. A model with
/// another signature does it itself:
///
/// ```
/// use swath::nn::{self, Linear, Module};
/// use swath::prelude::*;
///
/// struct Encoder {
///     words: Linear,
///     places: Linear,
/// }
/// swath::module!(Encoder: CpuBackend { words, places });
///
/// impl Encoder {
///     fn encode(&self, x: &Tensor, at: &Tensor) -> Result<Tensor> {
///         let sum = || self.words.forward(x)?.add(&self.places.forward(at)?);
///         sum().map_err(|error| nn::locate(self, error))
///     }
/// }
///
/// let mut rng = Rng::seed(1);
/// let encoder = Encoder { words: Linear::new(4, 8, &mut rng)?, places: Linear::new(2, 8, &mut rng)? };
/// let x = Tensor::zeros((1, 4), DType::F32)?;
/// let error = encoder.encode(&x, &x).unwrap_err();
/// assert_eq!(error.to_string(), "in `places`: linear: 2 inputs expected, found 4, for shapes [1, 4] and [8, 2]");
/// assert!(matches!(error.root(), Error::ShapeMismatch { .. }));
/// # Ok::<(), Error>(())
/// ```
pub fn locate<B: Backend>(part: &(impl Visit<B> + ?Sized), error: Error) -> Error {
    let error = match failed(&error).and_then(|id| path_of(part, id)) {
        Some(path) if !path.is_empty() => error.within(&path),
        _ => error,
    };
    _ = FAILED.try_with(|noted| noted.replace(Some((PartId::of(part), error.clone()))));
    error
}

/// The path of a part. A part that is used several times has the path that all its uses have in common.
fn path_of<B: Backend>(model: &(impl Visit<B> + ?Sized), id: PartId) -> Option<String> {
    struct Find {
        id: PartId,
        path: Path,
        found: Option<String>,
    }
    impl<B: Backend> Visitor<B> for Find {
        fn enter(&mut self, name: &str) {
            self.path.enter(name);
        }
        fn leave(&mut self) {
            self.path.leave();
        }
        fn tensor(&mut self, _tensor: &Tensor<B>, _kind: Kind) {}
        fn part(&mut self, id: PartId) {
            if id != self.id {
                return;
            }
            let path = self.path.as_str();
            self.found = Some(match self.found.take() {
                None => path.to_owned(),
                Some(other) => {
                    let steps = path.split('.').zip(other.split('.'));
                    let common: Vec<&str> =
                        steps.take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
                    common.join(".")
                }
            });
        }
        fn locked(&mut self, _reason: &'static str) {}
    }
    let mut find = Find { id, path: Path::default(), found: None };
    model.visit(&mut find);
    find.found
}

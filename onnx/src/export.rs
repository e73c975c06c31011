//! Models of swath as ONNX files.
//!
//! [`Trace`] is a backend that computes on the CPU and records what it computes as nodes of ONNX. A model is made on
//! it, given the values of one on another backend by [`copy_values`], and run once.
//!
//! ```
//! use swath::nn::Linear;
//! use swath::cpu::prelude::*;
//! use swath_onnx::{Export, Trace, copy_values};
//! let mut rng = Rng::seed(1);
//! let trained: Linear = Linear::new(3, 2, &mut rng)?;
//! let mut model: Linear<Trace> = Linear::new(3, 2, &mut rng)?;
//! copy_values(&trained, &mut model)?;
//! let x = Tensor::zeros((4, 3), DType::F32)?;
//! let file = Export::new().model(&model).dynamic("x", &[(0, "batch")]).trace(&[("x", x)], |inputs| {
//!     Ok(vec![("y", model.forward(&inputs[0])?)])
//! })?;
//! assert!(!file.into_bytes().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is recorded
//! What depends on an input or a parameter; all else is a constant, random numbers too. The file uses operator set 20.
//! Operations that ONNX lacks are composed of those that it has (`recipes.rs` says how accurately). Those that read
//! values, such as `nonzero`, `unique` and `lgamma`, are errors, and so is dropout in training. Gradients are not
//! recorded.
//!
//! # Extents with names
//! The program runs once with the given inputs, once more for each name with a larger extent, and once with all of them
//! larger; inputs are made larger by repetition. The recordings must have the same nodes and attributes, and constants
//! may differ in three ways only: extents of a reshape that it keeps or finds itself; integers, and single numbers,
//! that are an extent times a number plus a number, or a product of extents and a number, in all recordings; and lists
//! of numbers at equal distances whose length is such an integer. Anything else is an error that names the operation.
//! Of a program that branches on an extent, the branch that all recordings took is written.

mod fused;
mod recipes;
mod record;
mod trace;
mod view;
mod write;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use swath::nn::{Kind, Module, Visit, Visitor, for_each_tensor, for_each_tensor_mut};
use swath::{Backend, IntoBackend, Tensor, no_grad};

use crate::error::Result;
use crate::proto::Message as _;
use record::{Recording, TraceTensor, error, record, whole};
pub use trace::Trace;
use write::{Named, Pass};

/// Exports a model with one input; its output is `y`. The model is traced in evaluation.
///
/// # Errors
/// Those of [`Export::trace`].
pub fn export<M: Module<Trace>>(model: &M, inputs: &[(&str, Tensor)]) -> Result<Vec<u8>> {
    if inputs.len() != 1 {
        return Err(error(format!("a module has one input, not {}", inputs.len())).into());
    }
    let forward = |inputs: &[Tensor<Trace>]| Ok(vec![("y", model.forward(&inputs[0])?)]);
    Ok(Export::new().model(model).trace(inputs, forward)?.into_bytes())
}

/// Gives the tensors of a model the values of those with the same paths in another one, on any backend.
///
/// # Errors
/// [`swath::Error::InvalidArgument`] for a tensor that the other model does not have with this shape and dtype.
pub fn copy_values<A: IntoBackend<B>, B: Backend>(
    from: &(impl Visit<A> + ?Sized),
    to: &mut (impl Visit<B> + ?Sized),
) -> swath::Result<()> {
    let mut values = HashMap::new();
    for_each_tensor(from, |path, x, _| drop(values.insert(path.to_owned(), x.clone())));
    for_each_tensor_mut(to, |path, x, _| {
        let (shape, dtype) = (*x.shape(), x.dtype());
        let value =
            values.get(path).filter(|value| *value.shape() == shape && value.dtype() == dtype);
        let missing = || error(format!("there is no {path:?} of shape {shape} and dtype {dtype}"));
        let value = value.ok_or_else(missing)?.detach().to_backend::<B>()?;
        *x = if x.is_tracked() { value.requires_grad() } else { value };
        Ok(())
    })
}

/// An ONNX file.
#[derive(Clone, Debug)]
pub struct Exported(Vec<u8>);

impl Exported {
    /// Writes the file, as a whole or not at all.
    ///
    /// # Errors
    /// [`swath::Error::File`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        Ok(swath::io::replace_file(path, |file| file.write_all(&self.0))?)
    }

    /// The bytes of the file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Options of an export.
#[derive(Default)]
pub struct Export<'m> {
    name: String,
    model: Option<&'m dyn Visit<Trace>>,
    named: Vec<Named>,
    steps: HashMap<String, usize>,
}

impl<'m> Export<'m> {
    /// An export of a graph without a name, parameters, and extents with names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the graph.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Gives the parameters and buffers of a model their paths as names, and puts the model into evaluation while it is
    /// traced. Without that they are constants, and what depends on them alone is computed now.
    pub fn model<M: Visit<Trace>>(mut self, model: &'m M) -> Self {
        self.model = Some(model);
        self
    }

    /// Gives names to extents of an input, which may then have any value. Extents of one name are equal.
    pub fn dynamic(mut self, input: &str, axes: &[(usize, &str)]) -> Self {
        let named = |&(axis, name): &(usize, &str)| Named {
            name: name.to_owned(),
            input: input.to_owned(),
            axis,
        };
        self.named.extend(axes.iter().map(named));
        self
    }

    /// Traces a named extent with values that differ by a multiple of this, for programs that take no others.
    pub fn step(mut self, name: &str, step: usize) -> Self {
        self.steps.insert(name.to_owned(), step.max(1));
        self
    }

    /// Records a program: outputs with their names, from inputs in the given order.
    ///
    /// # Errors
    /// Those of the program, and [`swath::Error::InvalidArgument`] for what cannot be recorded.
    pub fn trace<'n>(
        &self,
        inputs: &[(&str, Tensor)],
        mut program: impl FnMut(&[Tensor<Trace>]) -> swath::Result<Vec<(&'n str, Tensor<Trace>)>>,
    ) -> Result<Exported> {
        let mut parameters: Vec<(String, TraceTensor)> = Vec::new();
        if let Some(model) = self.model {
            let keep = |path: &str, x: &Tensor<Trace>, _| {
                parameters.push((path.to_owned(), x.data().clone()))
            };
            for_each_tensor(model, keep);
        }
        let (named, settings) = self.settings(inputs)?;
        let mut pass = |setting: &[i64]| {
            let mut recording = Recording { is_dynamic: !named.is_empty(), ..Default::default() };
            parameters.iter().for_each(|(_, x)| recording.leaf(x, false));
            let mut xs = Vec::new();
            for (name, x) in inputs {
                let mut x = x.detach();
                for Named { name, axis, .. } in
                    self.named.iter().filter(|named| named.input == *name)
                {
                    let extents =
                        named.iter().zip(setting).filter(|(named, _)| named.name == *name);
                    let extent = extents.map(|(_, &extent)| extent).sum();
                    let index: Vec<i64> = (0..extent).map(|i| i % x.dims()[*axis] as i64).collect();
                    x = x.index_select(*axis, &Tensor::from_slice(&index, index.len())?)?;
                }
                let x = TraceTensor::new(x.contiguous()?.data().clone());
                recording.leaf(&x, true);
                xs.push(Tensor::from_data(x));
            }
            let (recording, outputs) = record(recording, || {
                let outputs = no_grad(|| program(&xs))?.into_iter();
                outputs.map(|(name, y)| Ok((name.to_owned(), whole(y.data())?))).collect()
            })?;
            Ok(Pass { recording, outputs, extents: setting.to_vec() })
        };
        let flags = self.model.map(|model| set_training(model, &[]));
        let passes =
            settings.iter().map(|setting| pass(setting)).collect::<swath::Result<Vec<_>>>();
        if let Some(model) = self.model {
            set_training(model, &flags.unwrap_or_default());
        }
        let parameters: Vec<_> = parameters.into_iter().map(|(path, x)| (path, x.data)).collect();
        let names = inputs.iter().map(|(name, _)| (*name).to_owned()).collect();
        let model = write::model(&self.name, &parameters, names, &named, &passes?)?;
        let mut bytes = Vec::new();
        model.write(&mut bytes);
        match i32::try_from(bytes.len()) {
            Ok(_) => Ok(Exported(bytes)),
            Err(_) => {
                Err(error("the file would have more than 2 GiB, which its format does not allow")
                    .into())
            }
        }
    }

    /// One place of each named extent, and their values in the passes.
    fn settings(&self, inputs: &[(&str, Tensor)]) -> Result<(Vec<Named>, Vec<Vec<i64>>)> {
        let (mut all, mut sizes): (Vec<Named>, Vec<[i64; 2]>) = Default::default();
        for named in &self.named {
            let Named { name, input, axis } = named;
            let x = inputs.iter().find(|(name, _)| name == input);
            let extent = x.and_then(|(_, x)| x.dims().get(*axis).copied());
            let reason = || error(format!("no input {input:?} has elements along an axis {axis}"));
            let extent = extent.filter(|&extent| extent > 0).ok_or_else(reason)? as i64;
            let step = self.steps.get(name).map_or(1, |&step| step as i64);
            // An extent of 1 would look like one that broadcasts.
            let size = [if extent == 1 { 1 + step } else { extent }, step];
            match all.iter().position(|other| other.name == *name) {
                Some(at) if sizes[at] != size => {
                    return Err(error(format!("inputs have different extents {name:?}")).into());
                }
                Some(_) => {}
                None => {
                    all.push(named.clone());
                    sizes.push(size);
                }
            }
        }
        // How often the step is added.
        let setting = |count: &dyn Fn(usize) -> i64| {
            let each = sizes.iter().enumerate();
            each.map(|(i, [extent, step])| extent + count(i) * step).collect()
        };
        let mut settings = vec![setting(&|_| 0)];
        settings.extend((0..all.len()).map(|i| setting(&|j| i64::from(i == j))));
        settings.extend((!all.is_empty()).then(|| setting(&|_| 2)));
        Ok((all, settings))
    }
}

/// Sets the training flags of a model to these, and to false beyond them. Returns what they were.
fn set_training(model: &dyn Visit<Trace>, new: &[bool]) -> Vec<bool> {
    struct Flags<'a>(&'a [bool], Vec<bool>);
    impl Visitor<Trace> for Flags<'_> {
        fn enter(&mut self, _name: &str) {}
        fn leave(&mut self) {}
        fn tensor(&mut self, _tensor: &Tensor<Trace>, _kind: Kind) {}
        fn training(&mut self, flag: &AtomicBool) {
            let new = self.0.get(self.1.len()).copied().unwrap_or_default();
            self.1.push(flag.swap(new, Ordering::Relaxed));
        }
    }
    let mut flags = Flags(new, Vec::new());
    model.visit(&mut flags);
    flags.1
}

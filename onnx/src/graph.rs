//! [`Graph`]: a model as a module.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use swath::nn::{Module, Visit, Visitor, VisitorMut};
use swath::{Backend, CpuBackend, IntoBackend, Tensor};

use crate::error::{Error, Result};
use crate::model::Outputs;
use crate::program::{Extent, Id, Kind, Port, Program};
use crate::run::{Body, Value};

/// A model on a backend, whose parameters are tracked: it can be trained, saved and loaded as any other module.
///
/// Parameters are the initializers of floats with an axis; they have the names of the file, and so do buffers, which are
/// the other initializers and the statistics of batch norms.
pub struct Graph<B: Backend = CpuBackend> {
    body: Body<B>,
    /// Number of runs, by which random numbers differ.
    runs: AtomicU64,
}

impl<B: Backend> fmt::Debug for Graph<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph of {} nodes", self.body.program.nodes.len())
    }
}

impl<B: Backend> Graph<B> {
    pub(crate) fn new(program: Arc<Program>, tracks: bool) -> Result<Self>
    where
        CpuBackend: IntoBackend<B>,
    {
        let (mut body, statistics) = (Body::new(program.clone())?, statistics(&program));
        for (constant, value) in program.constants.iter().zip(&mut body.constants) {
            if tracks
                && constant.is_initializer
                && is_weight(value)
                && !statistics.contains(&constant.id)
            {
                *value = value.requires_grad();
            }
        }
        Ok(Graph { body, runs: AtomicU64::new(0) })
    }

    /// Computes the outputs.
    ///
    /// # Errors
    /// [`Error::Input`] for inputs that do not fit; [`Error::Node`] for a node that cannot be computed.
    pub fn run<'n>(
        &self,
        inputs: impl IntoIterator<Item = (&'n str, Tensor<B>)>,
    ) -> Result<Outputs<B>> {
        let ports = &self.body.program.inputs;
        let mut values: Vec<Option<Value<B>>> = vec![None; ports.len()];
        for (name, x) in inputs {
            let at = ports.iter().position(|port| port.name == name).ok_or_else(|| {
                let names: Vec<&str> = ports.iter().map(|port| &*port.name).collect();
                Error::Input {
                    name: name.to_owned(),
                    reason: format!("the model has the inputs {}", names.join(", ")),
                }
            })?;
            values[at] = Some(Value::Tensor(x));
        }
        self.run_values(values)
    }

    /// Computes the outputs from inputs in the order of the model's, of which those with a default may be missing.
    ///
    /// # Errors
    /// Those of [`run`](Graph::run).
    pub fn run_values(&self, inputs: Vec<Option<Value<B>>>) -> Result<Outputs<B>> {
        let program = &self.body.program;
        let mut named: Vec<(&str, usize)> = Vec::new();
        for (at, port) in program.inputs.iter().enumerate() {
            match inputs.get(at).and_then(Option::as_ref) {
                Some(value) => check(port, value, &mut named)?,
                None if port.has_default => {}
                None => {
                    let reason = "it is missing".to_owned();
                    return Err(Error::Input { name: port.name.clone(), reason });
                }
            }
        }
        let results = self.body.run(inputs, &[], self.runs.fetch_add(1, Ordering::Relaxed))?;
        let names = program.outputs.iter().map(|port| port.name.clone());
        Ok(Outputs(names.zip(results).collect()))
    }
}

/// Whether an initializer is trained: a number without an axis is an exponent, a bound, an epsilon.
fn is_weight<B: Backend>(x: &Tensor<B>) -> bool {
    x.dtype().is_float() && x.rank() > 0
}

/// The means and variances of batch norms, which training does not change.
fn statistics(program: &Program) -> HashSet<Id> {
    let norms = program.nodes.iter().filter(|node| node.op == "BatchNormalization");
    norms.flat_map(|norm| norm.inputs.iter().skip(3)).copied().flatten().collect()
}

/// Checks the dtype and extents of an input; extents of one name are equal.
fn check<'p, B: Backend>(
    port: &'p Port,
    value: &Value<B>,
    named: &mut Vec<(&'p str, usize)>,
) -> Result<()> {
    let fails = |reason: String| Err(Error::Input { name: port.name.clone(), reason });
    match (&port.kind, value) {
        (Kind::Unknown, _) | (Kind::Sequence, Value::Sequence(_)) => Ok(()),
        (Kind::Tensor(dtype, extents), Value::Tensor(x)) => {
            let found = format!("expected {port}, got {} {}", x.dtype(), x.shape());
            if x.dtype() != *dtype {
                return fails(found);
            }
            let Some(extents) = extents else { return Ok(()) };
            if extents.len() != x.rank() {
                return fails(found);
            }
            for (extent, &dim) in extents.iter().zip(x.dims()) {
                match extent {
                    Extent::Known(extent) if *extent != dim => return fails(found),
                    Extent::Named(name) if !name.is_empty() => match named
                        .iter()
                        .find(|(own, _)| own == name)
                    {
                        Some((_, other)) if *other != dim => {
                            return fails(format!("{found}; {name} is {other} in another place"));
                        }
                        Some(_) => {}
                        None => named.push((name, dim)),
                    },
                    _ => {}
                }
            }
            Ok(())
        }
        _ => fails(format!("expected {port}")),
    }
}

impl<B: Backend> Visit<B> for Graph<B> {
    fn visit(&self, visitor: &mut dyn Visitor<B>) {
        let program = &self.body.program;
        for (constant, value) in program.constants.iter().zip(&self.body.constants) {
            if constant.is_initializer {
                let steps = || program.names[constant.id].split('.');
                steps().for_each(|step| visitor.enter(step));
                value.visit(visitor);
                steps().for_each(|_| visitor.leave());
            }
        }
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<B>) {
        let program = self.body.program.clone();
        for (constant, value) in program.constants.iter().zip(&mut self.body.constants) {
            if constant.is_initializer {
                let steps = || program.names[constant.id].split('.');
                steps().for_each(|step| visitor.enter(step));
                value.visit_mut(visitor);
                steps().for_each(|_| visitor.leave());
            }
        }
    }
}

/// The model with one input, and its first output.
impl<B: Backend> Module<B> for Graph<B> {
    fn forward(&self, x: &Tensor<B>) -> swath::Result<Tensor<B>> {
        let port = self.body.program.inputs.iter().find(|port| !port.has_default);
        let name = port.map_or("", |port| &*port.name);
        let outputs = self.run([(name, x.clone())]).map_err(Error::into_swath)?;
        match outputs.0.into_iter().next() {
            Some((_, Value::Tensor(y))) => Ok(y),
            _ => {
                let reason = "the model has no tensor as its first output".to_owned();
                Err(swath::Error::InvalidArgument { op: "Graph::forward", reason })
            }
        }
    }
}

//! Running a program: the nodes in order, each value dropped after its last use.

use swath::{Backend, CpuBackend, IntoBackend, Tensor};

use crate::error::{Error, Result};
use crate::ops;
use crate::program::{Attribute, Id, Program};
use crate::row::{Call, Default, Row};
use crate::weights;

/// A value of a graph.
#[derive(Clone, Debug)]
pub enum Value<B: Backend = CpuBackend> {
    /// A tensor.
    Tensor(Tensor<B>),
    /// A list of tensors.
    Sequence(Vec<Tensor<B>>),
}

impl<B: Backend> Value<B> {
    /// The tensor, if it is one.
    pub fn as_tensor(&self) -> Option<&Tensor<B>> {
        match self {
            Value::Tensor(x) => Some(x),
            Value::Sequence(_) => None,
        }
    }
}

/// A program that is ready to run on a backend.
pub struct Body<B: Backend> {
    pub program: std::sync::Arc<Program>,
    steps: Vec<Step<B>>,
    /// The values of the program's constants.
    pub constants: Vec<Tensor<B>>,
}

struct Step<B: Backend> {
    row: &'static Row<B>,
    bodies: Vec<(String, Body<B>)>,
    /// The values that nothing uses after this node.
    last_used: Vec<Id>,
}

/// Operators, attributes and the like that a program needs and this crate does not have.
pub fn unsupported(program: &Program) -> Vec<String> {
    let mut missing = Vec::new();
    for node in &program.nodes {
        match ops::find::<CpuBackend>(&node.domain, &node.op) {
            None => missing.push(format!("operator {}", node.title())),
            Some(row) if node.domain.is_empty() && node.version < row.since => {
                missing.push(format!("operator {} of version {}", node.title(), node.version));
            }
            Some(row) => {
                for (name, value) in &node.attributes {
                    if let (Attribute::Int(code), "to" | "dtype" | "output_dtype") =
                        (value, &**name)
                        && *code != 0
                        && (weights::dtype(*code).is_none() || *code > 20 && node.op == "Cast")
                    {
                        missing.push(format!(
                            "type {} in {}",
                            weights::type_name(*code),
                            node.title()
                        ));
                    }
                    if !row.attributes.iter().any(|(own, _)| own == name) {
                        missing.push(format!("attribute {name:?} of {}", node.title()));
                    }
                    if let Attribute::Graph(body) = value {
                        missing.extend(unsupported(body));
                    }
                }
            }
        }
    }
    missing.dedup();
    missing
}

impl<B: Backend> Body<B> {
    /// Prepares a program, whose operators must be known.
    pub fn new(program: std::sync::Arc<Program>) -> Result<Self>
    where
        CpuBackend: IntoBackend<B>,
    {
        let mut last_use = vec![None; program.names.len()];
        for (at, node) in program.nodes.iter().enumerate() {
            for id in node.inputs.iter().chain(&node.outputs).flatten() {
                last_use[*id] = Some(at);
            }
            for (_, value) in &node.attributes {
                if let Attribute::Graph(body) = value {
                    body.captures.iter().for_each(|&(outer, _)| last_use[outer] = Some(at));
                }
            }
        }
        program.outputs.iter().for_each(|port| last_use[port.id] = None);
        let mut last_used = vec![Vec::new(); program.nodes.len()];
        for (id, at) in last_use.into_iter().enumerate() {
            if let Some(at) = at {
                last_used[at].push(id);
            }
        }
        let mut steps = Vec::with_capacity(program.nodes.len());
        for (node, last_used) in program.nodes.iter().zip(last_used) {
            let row = ops::find::<B>(&node.domain, &node.op);
            let row =
                row.ok_or_else(|| Error::Unsupported(vec![format!("operator {}", node.title())]))?;
            for (name, default) in row.attributes {
                if matches!(default, Default::Required) && node.attribute(name).is_none() {
                    return Err(
                        node.error(Error::operator(format!("attribute {name:?} is missing")))
                    );
                }
            }
            let mut bodies = Vec::new();
            for (name, value) in &node.attributes {
                if let Attribute::Graph(program) = value {
                    bodies.push((
                        name.clone(),
                        Body::new(program.clone()).map_err(|error| node.error(error))?,
                    ));
                }
            }
            steps.push(Step { row, bodies, last_used });
        }
        let constants =
            program.constants.iter().map(|constant| Ok(constant.value.to_backend::<B>()?));
        Ok(Body { constants: constants.collect::<Result<_>>()?, steps, program: program.clone() })
    }

    /// Computes the outputs from values of the inputs, in their order; those that have a default may be missing.
    /// `number` is that of the run, by which random numbers differ.
    pub fn run(
        &self,
        inputs: Vec<Option<Value<B>>>,
        outer: &[Option<Value<B>>],
        number: u64,
    ) -> Result<Vec<Value<B>>> {
        let program = &*self.program;
        let mut values: Vec<Option<Value<B>>> = vec![None; program.names.len()];
        for (constant, value) in program.constants.iter().zip(&self.constants) {
            values[constant.id] = Some(Value::Tensor(value.clone()));
        }
        for &(outer_id, id) in &program.captures {
            values[id] = outer[outer_id].clone();
        }
        for (port, value) in program.inputs.iter().zip(inputs) {
            if value.is_some() {
                values[port.id] = value;
            }
        }
        for (node, step) in program.nodes.iter().zip(&self.steps) {
            let inputs = node.inputs.iter().map(|id| values[(*id)?].clone()).collect();
            let bodies: Vec<(&str, &Body<B>)> =
                step.bodies.iter().map(|(name, body)| (&**name, body)).collect();
            let call =
                Call { node, row: step.row, inputs, bodies: &bodies, outer: &values, number };
            let results = (step.row.run)(&call).map_err(|error| call.error(error))?;
            if results.len() < call.outputs() {
                let reason = format!("output {} is not supported", results.len());
                return Err(call.error(Error::operator(reason)));
            }
            drop(call);
            for (id, result) in node.outputs.iter().zip(results) {
                if let Some(id) = id {
                    values[*id] = Some(result);
                }
            }
            for &id in &step.last_used {
                values[id] = None;
            }
        }
        let output = |port: &crate::program::Port| {
            let missing = || Error::Invalid(format!("output {:?} has no value", port.name));
            values[port.id].clone().ok_or_else(missing)
        };
        program.outputs.iter().map(output).collect()
    }
}

impl<B: Backend> Call<'_, B> {
    /// Names the node, and the dtypes and shapes of its inputs.
    fn error(&self, source: Error) -> Error {
        let input = |value: &Option<Value<B>>| match value {
            None => "nothing".to_owned(),
            Some(Value::Tensor(x)) => format!("{} {}", x.dtype(), x.shape()),
            Some(Value::Sequence(list)) => format!("{} tensors", list.len()),
        };
        let inputs: Vec<String> = self.inputs.iter().map(input).collect();
        let node = format!("{} of {}", self.node.title(), inputs.join(", "));
        Error::Node { node, source: Box::new(source) }
    }

    /// Runs a graph among the attributes.
    pub fn run_body(&self, body: &Body<B>, inputs: Vec<Value<B>>) -> Result<Vec<Value<B>>> {
        if inputs.len() != body.program.inputs.len() {
            let wanted = body.program.inputs.len();
            return Err(Error::operator(format!(
                "a graph with {wanted} inputs is given {}",
                inputs.len()
            )));
        }
        body.run(inputs.into_iter().map(Some).collect(), self.outer, self.number)
    }
}

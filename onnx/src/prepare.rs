//! Preparing a program for inference: constants computed, several nodes made one.
//!
//! Each rewrite is a rule of [`RULES`], with a name by which [`Prepare::without`] turns it off, and with what its results
//! may differ from those of the nodes that it replaces.

mod fuse;
mod shorten;

use std::collections::HashMap;
use std::sync::Arc;

use swath::{CpuBackend, Tensor};

use crate::ops;
use crate::program::{Attribute, Constant, Id, Node, Program};
use crate::row::Call;
use crate::run::Value;

/// A rewrite.
#[derive(Debug)]
pub struct Rule {
    /// The name.
    pub name: &'static str,
    /// What becomes what.
    pub what: &'static str,
    /// How results may differ.
    pub rounding: &'static str,
    apply: fn(&mut Editor, usize) -> Option<()>,
}

/// All rewrites, in the order in which they are tried for a node.
pub const RULES: &[Rule] = &[
    Rule {
        name: "constants",
        what: "a node of constants: its result",
        rounding: "none",
        apply: shorten::fold,
    },
    Rule {
        name: "identities",
        what: "Identity, Dropout, Cast to the same type, Transpose that changes nothing: its input",
        rounding: "none",
        apply: shorten::identity,
    },
    Rule {
        name: "transposes",
        what: "a Transpose of a Transpose: one of them, or none",
        rounding: "none",
        apply: shorten::transposes,
    },
    Rule {
        name: "batch-norms",
        what: "BatchNormalization of a convolution by constants: the convolution by others",
        rounding: "that of the filters: 2 ULP of the largest product",
        apply: fuse::batch_norm,
    },
    Rule {
        name: "biases",
        what: "MatMul by a constant matrix and Add of a constant vector: a linear layer",
        rounding: "none; of 16-bit floats product and sum are rounded once",
        apply: fuse::linear,
    },
    Rule {
        name: "gelu",
        what: "x/2 · (1 + erf(x/√2)), spelled out: Gelu",
        rounding: "1 ULP, where the nodes have several",
        apply: fuse::gelu,
    },
    Rule {
        name: "silu",
        what: "x · Sigmoid(x): one pass",
        rounding: "1 ULP, where the nodes have two roundings",
        apply: fuse::silu,
    },
    Rule {
        name: "layer-norms",
        what: "(x - mean) / √(variance + ε) over the last axis, spelled out: LayerNormalization",
        rounding: "that of sums in another order",
        apply: fuse::layer_norm,
    },
    Rule {
        name: "attention",
        what: "MatMul, scale, mask, Softmax, MatMul: attention without a matrix of scores",
        rounding: "that of sums in another order; a row that is masked as a whole gives 0, not NaN",
        apply: fuse::attention,
    },
    Rule {
        name: "activations",
        what: "a convolution or linear layer and the function after it: one pass",
        rounding: "none",
        apply: fuse::activation,
    },
];

/// Which rewrites are made.
#[derive(Clone, Debug, Default)]
pub struct Prepare {
    without: Vec<String>,
    none: bool,
}

impl Prepare {
    /// All rewrites.
    pub fn all() -> Self {
        Prepare::default()
    }

    /// No rewrite.
    pub fn none() -> Self {
        Prepare { none: true, ..Prepare::default() }
    }

    /// Leaves out the rewrite of this name; see [`RULES`].
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.without.push(name.to_owned());
        self
    }

    fn has(&self, rule: &Rule) -> bool {
        !self.none && !self.without.iter().any(|name| name == rule.name)
    }
}

/// Prepares a program and those within it: the new one, and how often each rule was used.
pub fn prepare(program: &Program, options: &Prepare) -> (Program, Vec<(&'static str, usize)>) {
    let mut editor = Editor::new(program);
    for node in editor.nodes.iter_mut().flatten() {
        for (_, value) in &mut node.attributes {
            if let Attribute::Graph(body) = value {
                *body = Arc::new(prepare(body, options).0);
            }
        }
    }
    let mut used = Vec::new();
    // From the first node on, so that the inputs of a node are rewritten before it; again, until nothing changes.
    loop {
        let before = editor.changes;
        for rule in RULES.iter().filter(|rule| options.has(rule)) {
            for at in 0..editor.nodes.len() {
                if editor.nodes[at].is_some() && (rule.apply)(&mut editor, at).is_some() {
                    editor.changes += 1;
                    match used.iter_mut().find(|(name, _)| *name == rule.name) {
                        Some((_, count)) => *count += 1,
                        None => used.push((rule.name, 1)),
                    }
                }
            }
        }
        if editor.changes == before {
            return (editor.finish(), used);
        }
    }
}

/// Whether a node is of this operator, whose name has its domain before it unless that is ONNX's own.
pub fn is(node: &Node, op: &str) -> bool {
    match &*node.domain {
        "" => node.op == op,
        domain => {
            op.strip_prefix(domain).and_then(|rest| rest.strip_prefix('.')) == Some(&*node.op)
        }
    }
}

/// A program that is being rewritten.
pub struct Editor {
    program: Program,
    /// The nodes; `None` where one was removed.
    pub nodes: Vec<Option<Node>>,
    constants: HashMap<Id, Tensor>,
    /// The node that makes each value.
    makers: HashMap<Id, usize>,
    /// The number of uses of each value.
    uses: Vec<usize>,
    changes: usize,
}

impl Editor {
    fn new(program: &Program) -> Self {
        let program = Program {
            names: program.names.clone(),
            inputs: program.inputs.clone(),
            outputs: program.outputs.clone(),
            constants: program.constants.clone(),
            nodes: program.nodes.clone(),
            captures: program.captures.clone(),
        };
        // An initializer that is an input too may be replaced by a caller.
        let is_input = |id: Id| program.inputs.iter().any(|port| port.id == id);
        let known = program.constants.iter().filter(|constant| !is_input(constant.id));
        let constants = known.map(|constant| (constant.id, constant.value.clone())).collect();
        let nodes: Vec<Option<Node>> = program.nodes.iter().cloned().map(Some).collect();
        let made = nodes.iter().enumerate().flat_map(|(at, node)| {
            node.iter().flat_map(|node| &node.outputs).flatten().map(move |&id| (id, at))
        });
        let makers = made.collect();
        let mut uses = vec![0; program.names.len()];
        program.outputs.iter().for_each(|port| uses[port.id] += 1);
        let mut editor = Editor { program, nodes, constants, makers, uses, changes: 0 };
        (0..editor.nodes.len()).for_each(|at| editor.count(at, true));
        editor
    }

    /// The node at a place, which was checked to be there.
    pub fn node(&self, at: usize) -> Option<&Node> {
        self.nodes.get(at)?.as_ref()
    }

    /// The constant that is a value.
    pub fn constant(&self, id: Option<Id>) -> Option<&Tensor> {
        self.constants.get(&id?)
    }

    /// The constant that is a value, if it is one number, which gives no operand beside it more axes.
    pub fn number(&self, id: Option<Id>) -> Option<f64> {
        let x = self.constant(id).filter(|x| x.numel() == 1 && x.rank() <= 1)?;
        x.to_dtype(swath::DType::F64).ok()?.to_vec::<f64>().ok()?.first().copied()
    }

    /// The node of an operator that makes a value.
    pub fn maker(&self, id: Option<Id>, op: &str) -> Option<(usize, &Node)> {
        let at = *self.makers.get(&id?)?;
        self.node(at).filter(|node| is(node, op)).map(|node| (at, node))
    }

    /// Number of uses of a value, by nodes, graphs within them and as an output.
    pub fn uses(&self, id: Id) -> usize {
        self.uses[id]
    }

    /// Counts the uses that a node makes of values, or no longer makes.
    fn count(&mut self, at: usize, is_new: bool) {
        let Some(node) = &self.nodes[at] else { return };
        let captured = node.attributes.iter().flat_map(|(_, value)| match value {
            Attribute::Graph(body) => body.captures.iter().map(|&(outer, _)| outer).collect(),
            _ => Vec::new(),
        });
        for id in node.inputs.iter().copied().flatten().chain(captured) {
            self.uses[id] = if is_new { self.uses[id] + 1 } else { self.uses[id] - 1 };
        }
    }

    /// The node of an operator that makes a value which nothing else uses.
    pub fn only_maker(&self, id: Option<Id>, op: &str) -> Option<(usize, &Node)> {
        self.maker(id, op)
            .filter(|(_, node)| node.outputs.len() == 1 && id.is_some_and(|id| self.uses(id) == 1))
    }

    /// Adds a constant.
    pub fn add_constant(&mut self, name: &str, value: Tensor) -> Id {
        let id = self.program.names.len();
        self.program.names.push(name.to_owned());
        self.uses.push(0);
        self.set_constant(id, value);
        id
    }

    /// Makes a value a constant.
    pub fn set_constant(&mut self, id: Id, value: Tensor) {
        self.program.constants.push(Constant { id, value: value.clone(), is_initializer: false });
        self.constants.insert(id, value);
        self.makers.remove(&id);
    }

    /// Removes a node.
    pub fn remove(&mut self, at: usize) {
        self.count(at, false);
        self.nodes[at] = None;
    }

    /// Puts a node in the place of another one; its outputs may be new.
    pub fn replace(&mut self, at: usize, node: Node) {
        self.makers.extend(node.outputs.iter().flatten().map(|&id| (id, at)));
        self.count(at, false);
        self.nodes[at] = Some(node);
        self.count(at, true);
    }

    /// Lets all uses of a value be uses of another one, unless the value is an output.
    pub fn redirect(&mut self, from: Id, to: Id) -> Option<()> {
        let is_captured = |node: &Node| {
            node.attributes.iter().any(|(_, value)| match value {
                Attribute::Graph(body) => body.captures.iter().any(|(outer, _)| *outer == from),
                _ => false,
            })
        };
        let is_output = self.program.outputs.iter().any(|port| port.id == from);
        if is_output || self.nodes.iter().flatten().any(is_captured) {
            return None;
        }
        let inputs = self.nodes.iter_mut().flatten().flat_map(|node| &mut node.inputs);
        inputs.filter(|input| **input == Some(from)).for_each(|input| *input = Some(to));
        self.uses[to] += std::mem::take(&mut self.uses[from]);
        Some(())
    }

    /// Computes a node whose inputs are all constants.
    pub fn compute(&self, node: &Node) -> Option<Vec<Value>> {
        let row = ops::find::<CpuBackend>(&node.domain, &node.op)?;
        let value = |id: &Option<Id>| match id {
            None => Some(None),
            Some(id) => self.constants.get(id).map(|x| Some(Value::Tensor(x.clone()))),
        };
        let inputs = node.inputs.iter().map(value).collect::<Option<Vec<_>>>()?;
        // An error is one of the run, which names the node.
        (row.run)(&Call { node, row, inputs, bodies: &[], outer: &[], number: 0 }).ok()
    }

    /// The program, without what nothing uses.
    fn finish(self) -> Program {
        let Editor { mut program, nodes, .. } = self;
        let mut is_used = vec![false; program.names.len()];
        program.outputs.iter().for_each(|port| is_used[port.id] = true);
        let mut kept = Vec::new();
        for node in nodes.into_iter().flatten().rev() {
            if !node.outputs.iter().flatten().any(|&id| is_used[id]) {
                continue;
            }
            node.inputs.iter().flatten().for_each(|&id| is_used[id] = true);
            for (_, value) in &node.attributes {
                if let Attribute::Graph(body) = value {
                    body.captures.iter().for_each(|&(outer, _)| is_used[outer] = true);
                }
            }
            kept.push(node);
        }
        kept.reverse();
        program.nodes = kept;
        program.constants.retain(|constant| is_used[constant.id]);
        program.captures.retain(|&(_, own)| is_used[own]);
        program
    }
}

//! A model as this crate computes it: values by number, nodes in order, functions expanded.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use swath::{DType, Tensor};

use crate::error::{Error, Result};
use crate::proto;
use crate::weights::{self, Source};

/// Functions are expanded into each other at most so deep.
const MAX_CALLS: usize = 32;

/// A graph has at most so many values, or functions that call others twice would fill all memory.
const MAX_VALUES: usize = 10_000_000;

/// The names of values have so many bytes: that of a value in a function has those of the calls before it.
const MAX_NAMES: usize = 1 << 28;

/// The number of a value in its [`Program`].
pub type Id = usize;

/// A graph or subgraph.
#[derive(Debug, Default)]
pub struct Program {
    /// The names of values, by number; a value that a function made has the name of its node before its own.
    pub names: Vec<String>,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    /// Initializers, and what `Constant` nodes hold.
    pub constants: Vec<Constant>,
    pub nodes: Vec<Node>,
    /// The values of the graph around this one that it uses: theirs and the number that they have here.
    pub captures: Vec<(Id, Id)>,
}

/// A value that is known before a run.
#[derive(Clone, Debug)]
pub struct Constant {
    pub id: Id,
    pub value: Tensor,
    /// True of initializers, which training changes.
    pub is_initializer: bool,
}

/// An input or output.
#[derive(Clone, Debug)]
pub struct Port {
    pub(crate) id: Id,
    /// The name.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// True if an initializer gives it a value, which a caller may replace.
    pub has_default: bool,
}

/// What a port holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Kind {
    /// A tensor; without extents, of any shape.
    Tensor(DType, Option<Vec<Extent>>),
    /// A list of tensors.
    Sequence,
    /// What the model does not say.
    #[default]
    Unknown,
}

/// An extent of an input or output.
#[derive(Clone, Debug, PartialEq)]
pub enum Extent {
    /// The extent itself.
    Known(usize),
    /// The name of an extent that inputs decide; empty if it has none.
    Named(String),
}

/// A node: an operator and what it is applied to.
#[derive(Clone, Debug)]
pub struct Node {
    pub op: String,
    pub domain: String,
    pub name: String,
    /// The version of its operator set that the model uses.
    pub version: i64,
    pub inputs: Vec<Option<Id>>,
    pub outputs: Vec<Option<Id>>,
    pub attributes: Vec<(String, Attribute)>,
}

impl Node {
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// The operator and the name, for errors.
    pub fn title(&self) -> String {
        let op = if self.domain.is_empty() {
            self.op.clone()
        } else {
            format!("{}.{}", self.domain, self.op)
        };
        if self.name.is_empty() { op } else { format!("{op} {:?}", self.name) }
    }

    pub fn error(&self, source: impl Into<Error>) -> Error {
        Error::Node { node: self.title(), source: Box::new(source.into()) }
    }
}

/// The value of an attribute.
#[derive(Clone, Debug)]
pub enum Attribute {
    Float(f32),
    Int(i64),
    Text(String),
    Tensor(Tensor),
    Graph(Arc<Program>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Texts(Vec<String>),
}

/// A graph that is being read: its program and what its names stand for, which is nothing for an input that the call of
/// a function leaves out.
#[derive(Default)]
struct Frame<'a> {
    program: Program,
    ids: HashMap<Cow<'a, str>, Option<Id>>,
    /// The types of constants and inputs, which a dtype does not tell of integers of less than 8 bits.
    types: HashMap<Id, i64>,
}

/// What a function is called with, by name of its attribute.
type Bindings<'b> = HashMap<&'b str, &'b proto::Attribute<'b>>;

struct Reader<'a> {
    source: &'a Source,
    versions: HashMap<&'a str, i64>,
    functions: HashMap<(&'a str, &'a str, &'a str), &'a proto::Function<'a>>,
    /// The number of nodes, and of bytes of names.
    sizes: [usize; 2],
    /// The graphs around the one that is read, and that one.
    frames: Vec<Frame<'a>>,
    /// The calls of functions around the node that is read.
    calls: Vec<String>,
}

/// Reads a model.
pub fn read(model: &proto::Model<'_>, source: &Source) -> Result<Program> {
    let graph = model.graph.as_ref().ok_or_else(|| Error::Invalid("it has no graph".to_owned()))?;
    let functions =
        model.functions.iter().map(|f| ((domain(&f.domain), &*f.name, &*f.overload), f)).collect();
    let versions = versions(&model.operator_sets);
    let mut reader = Reader {
        source,
        versions,
        functions,
        sizes: [0; 2],
        frames: Vec::new(),
        calls: Vec::new(),
    };
    reader.graph(graph, &Bindings::new())
}

fn versions<'a>(sets: &'a [proto::OperatorSet<'_>]) -> HashMap<&'a str, i64> {
    sets.iter().map(|set| (domain(&set.domain), set.version)).collect()
}

/// The domain of ONNX's own operators has two names.
fn domain(name: &str) -> &str {
    if name == "ai.onnx" { "" } else { name }
}

impl<'a> Reader<'a> {
    fn frame(&mut self) -> &mut Frame<'a> {
        self.frames.last_mut().expect("a graph is read")
    }

    /// Gives a name to a new value.
    fn define(&mut self, name: &'a str) -> Result<Id> {
        let prefix = self.calls.last().cloned().unwrap_or_default();
        let frame = self.frame();
        let id = frame.program.names.len();
        if id >= MAX_VALUES {
            return Err(Error::Invalid(format!("it has more than {MAX_VALUES} values")));
        }
        frame.program.names.push(format!("{prefix}{name}"));
        self.sizes[1] += prefix.len() + name.len();
        let frame = self.frame();
        match frame.ids.insert(Cow::Borrowed(name), Some(id)) {
            None => Ok(id),
            Some(_) => Err(Error::Invalid(format!("two values have the name {name:?}"))),
        }
    }

    /// The value of a name, which may be one of a graph around this one.
    fn resolve(&mut self, name: &'a str) -> Result<Option<Id>> {
        if name.is_empty() {
            return Ok(None);
        }
        let found = (0..self.frames.len())
            .rev()
            .find_map(|depth| Some((depth, *self.frames[depth].ids.get(name)?)));
        let Some((depth, id)) = found else {
            return Err(Error::Invalid(format!("no value before has the name {name:?}")));
        };
        let Some(mut id) = id else { return Ok(None) };
        for frame in &mut self.frames[depth + 1..] {
            let own = frame.program.names.len();
            frame.program.names.push(name.to_owned());
            frame.program.captures.push((id, own));
            frame.ids.insert(Cow::Borrowed(name), Some(own));
            id = own;
        }
        Ok(Some(id))
    }

    fn graph(&mut self, graph: &'a proto::Graph<'a>, bindings: &Bindings<'a>) -> Result<Program> {
        self.frames.push(Frame::default());
        if !graph.sparse_initializers.is_empty() {
            return Err(Error::Unsupported(vec!["sparse initializers".to_owned()]));
        }
        for tensor in &graph.initializers {
            let id = self.define(&tensor.name)?;
            let value = weights::read(tensor, self.source);
            let value = value.map_err(|error| {
                Error::Invalid(format!("initializer {:?}: {error}", &*tensor.name))
            })?;
            self.frame().program.constants.push(Constant { id, value, is_initializer: true });
            self.frame().types.insert(id, tensor.dtype);
        }
        for input in &graph.inputs {
            let known = self.frame().ids.get(&*input.name).copied().flatten();
            let id = known.map_or_else(|| self.define(&input.name), Ok)?;
            let port = port(id, input, known.is_some())?;
            self.frame().program.inputs.push(port);
            let kind = input.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
            self.frame().types.extend(kind.map(|tensor| (id, tensor.dtype)));
        }
        for node in &graph.nodes {
            self.node(node, bindings)?;
        }
        for output in &graph.outputs {
            let id = self.resolve(&output.name)?;
            let id = id.ok_or_else(|| Error::Invalid("an output has no name".to_owned()))?;
            let port = port(id, output, false)?;
            self.frame().program.outputs.push(port);
        }
        Ok(self.frames.pop().expect("a graph is read").program)
    }

    fn node(&mut self, node: &'a proto::Node<'a>, bindings: &Bindings<'a>) -> Result<()> {
        self.sizes[0] += 1;
        if self.sizes[0] > MAX_VALUES / 10 || self.sizes[1] > MAX_NAMES {
            return Err(Error::Invalid("it has too many nodes, or too long names".to_owned()));
        }
        let domain = domain(&node.domain);
        let title = || {
            let first = node.outputs.first().map_or("", |name| name);
            format!("{} {:?}", node.op, if node.name.is_empty() { first } else { &*node.name })
        };
        let located = |source: Error| Error::Node { node: title(), source: Box::new(source) };
        let inputs = node
            .inputs
            .iter()
            .map(|name| self.resolve(name))
            .collect::<Result<Vec<_>>>()
            .map_err(located)?;
        let mut attributes = Vec::new();
        let mut given = Bindings::new();
        for attribute in &node.attributes {
            // An attribute of a function's node may stand for one of the function's.
            let value = match attribute.reference.is_empty() {
                true => Some(attribute),
                false => bindings.get(&*attribute.reference).copied(),
            };
            if let Some(value) = value {
                given.insert(&*attribute.name, value);
            }
        }
        if let Some(&function) = self.functions.get(&(domain, &*node.op, &*node.overload)) {
            return self.call(function, node, inputs, given).map_err(located);
        }
        for (name, value) in given {
            let value = self.attribute(value, bindings).map_err(|error| {
                located(Error::operator(format!("attribute {name:?}: {error}")))
            })?;
            attributes.push((name.to_owned(), value));
        }
        // The type of QuantizeLinear's result is that of its zero point, unless an attribute says it.
        let zero = inputs.get(2).copied().flatten().filter(|_| node.op == "QuantizeLinear");
        if let Some(&code) = zero.and_then(|id| self.frame().types.get(&id))
            && !attributes.iter().any(|(name, _)| name == "output_dtype")
        {
            attributes.push(("output_dtype".to_owned(), Attribute::Int(code)));
        }
        attributes.sort_by(|(a, _), (b, _)| a.cmp(b));
        let version = self.versions.get(domain).copied();
        let version = version.or_else(|| (!domain.is_empty()).then_some(1)).ok_or_else(|| {
            Error::Invalid("it does not say which version of ONNX's operators it uses".to_owned())
        })?;
        let define = |name: &'a Cow<'a, str>| match name.is_empty() {
            true => Ok(None),
            false => self.define(name).map(Some),
        };
        let outputs =
            node.outputs.iter().map(define).collect::<Result<Vec<_>>>().map_err(located)?;
        if let (Some(&Some(id)), [constant]) = (outputs.first(), &node.attributes[..])
            && let Some(tensor) = constant.tensor.as_ref().filter(|_| node.op == "Constant")
        {
            self.frame().types.insert(id, tensor.dtype);
        }
        // Some programs write all weights as nodes.
        if let ("Constant", "", [Some(id)], [(_, Attribute::Tensor(value))]) =
            (&*node.op, domain, &outputs[..], &attributes[..])
        {
            let constant = Constant { id: *id, value: value.clone(), is_initializer: true };
            self.frame().program.constants.push(constant);
            return Ok(());
        }
        // One without a name has that of its first output.
        let first = node.outputs.first().map_or("", |name| name);
        let name = if node.name.is_empty() { first } else { &*node.name };
        let (op, name) = (node.op.to_string(), name.to_owned());
        let node =
            Node { op, domain: domain.to_owned(), name, version, inputs, outputs, attributes };
        self.frame().program.nodes.push(node);
        Ok(())
    }

    /// Expands the call of a function.
    fn call(
        &mut self,
        function: &'a proto::Function<'a>,
        node: &'a proto::Node<'a>,
        inputs: Vec<Option<Id>>,
        mut bindings: Bindings<'a>,
    ) -> Result<()> {
        if self.calls.len() >= MAX_CALLS {
            return Err(Error::Invalid("functions call each other without an end".to_owned()));
        }
        if inputs.len() > function.inputs.len() || node.outputs.len() > function.outputs.len() {
            return Err(Error::operator("it has more inputs or outputs than its function"));
        }
        for default in &function.defaults {
            bindings.entry(&*default.name).or_insert(default);
        }
        let all = inputs.into_iter().chain(std::iter::repeat(None));
        let ids = function.inputs.iter().map(|name| Cow::Borrowed(&**name)).zip(all).collect();
        let outer_ids = std::mem::replace(&mut self.frame().ids, ids);
        let outer_versions =
            std::mem::replace(&mut self.versions, versions(&function.operator_sets));
        let prefix = self.calls.last().cloned().unwrap_or_default();
        let first = node.outputs.first().map_or("", |name| name);
        let own = if node.name.is_empty() { first } else { &*node.name };
        self.calls.push(format!("{prefix}{own}/"));
        for node in &function.nodes {
            self.node(node, &bindings)?;
        }
        let results =
            function.outputs.iter().map(|name| self.resolve(name)).collect::<Result<Vec<_>>>()?;
        self.calls.pop();
        self.versions = outer_versions;
        self.frame().ids = outer_ids;
        for (name, result) in node.outputs.iter().zip(results).filter(|(name, _)| !name.is_empty())
        {
            if self.frame().ids.insert(Cow::Borrowed(name), result).is_some() {
                return Err(Error::Invalid(format!("two values have the name {name:?}")));
            }
        }
        Ok(())
    }

    fn attribute(
        &mut self,
        attribute: &'a proto::Attribute<'a>,
        bindings: &Bindings<'a>,
    ) -> Result<Attribute> {
        let texts = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(match attribute.kind {
            1 => Attribute::Float(attribute.float),
            2 => Attribute::Int(attribute.int),
            3 => Attribute::Text(texts(&attribute.bytes)),
            4 => match &attribute.tensor {
                Some(tensor) => Attribute::Tensor(weights::read(tensor, self.source)?),
                None => return Err(Error::operator("the tensor is missing")),
            },
            5 => match &attribute.graph {
                Some(graph) => Attribute::Graph(Arc::new(self.graph(graph, bindings)?)),
                None => return Err(Error::operator("the graph is missing")),
            },
            6 => Attribute::Floats(attribute.floats.clone()),
            7 => Attribute::Ints(attribute.ints.clone()),
            // The type of an optional value, which values tell themselves.
            13 => Attribute::Text(String::new()),
            8 => Attribute::Texts(attribute.texts.iter().map(|text| texts(text)).collect()),
            other => return Err(Error::Unsupported(vec![format!("attributes of type {other}")])),
        })
    }
}

fn port(id: Id, info: &proto::ValueInfo<'_>, has_default: bool) -> Result<Port> {
    let unsupported =
        |what: &str| Error::Unsupported(vec![format!("{what}, as {:?} is one", &*info.name)]);
    let kind = match &info.kind {
        None => Kind::Unknown,
        Some(kind) if kind.sequence.is_some() => Kind::Sequence,
        // A tensor or a list of them, or nothing.
        Some(kind) if kind.optional.is_some() => {
            return Ok(Port {
                id,
                name: info.name.to_string(),
                kind: Kind::Unknown,
                has_default: true,
            });
        }
        Some(kind) => match &kind.tensor {
            None if kind.sparse.is_some() => return Err(unsupported("sparse tensors")),
            None => Kind::Unknown,
            Some(tensor) if tensor.dtype == 0 => Kind::Unknown,
            Some(tensor) => {
                let dtype = weights::dtype(tensor.dtype).ok_or_else(|| {
                    unsupported(&format!("tensors of type {}", weights::type_name(tensor.dtype)))
                })?;
                let extent = |dim: &proto::Dimension<'_>| match usize::try_from(dim.value) {
                    // An extent of 0 is not written to the file, and neither is one that is not known.
                    // Some programs write a question mark for a name.
                    Ok(0) | Err(_) => Extent::Named(dim.name.trim_matches('?').to_owned()),
                    Ok(extent) => Extent::Known(extent),
                };
                Kind::Tensor(
                    dtype,
                    tensor.shape.as_ref().map(|shape| shape.dims.iter().map(extent).collect()),
                )
            }
        },
    };
    Ok(Port { id, name: info.name.to_string(), kind, has_default })
}

//! Rows: an operator is one, and so is what [`prepare`](crate::prepare) puts in the place of several.

use swath::{Backend, DType, Tensor};

use crate::error::{Error, Result};
use crate::program::{Attribute, Node};
use crate::run::{Body, Value};

/// An operator.
pub struct Row<B: Backend> {
    /// Its name; those that are not ONNX's own have their domain before it, as `com.microsoft.Gelu`.
    pub name: &'static str,
    /// The first version of ONNX's operator sets whose definition the function computes.
    pub since: i64,
    /// The names and defaults of its attributes.
    pub attributes: &'static [(&'static str, Default)],
    /// What it computes.
    pub run: fn(&Call<'_, B>) -> Results<B>,
}

/// What a node computes: a value for each output, of which those at the end may be left out if nothing uses them.
pub type Results<B> = Result<Vec<Value<B>>>;

/// The value of an attribute that a node does not have.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// A node must have the attribute.
    Required,
    /// [`Call::find_ints`] and its kin tell whether a node has it.
    Absent,
    Int(i64),
    Float(f32),
    Text(&'static str),
}

/// A row, for the tables in `ops/`.
pub const fn row<B: Backend>(
    name: &'static str,
    since: i64,
    attributes: &'static [(&'static str, Default)],
    run: fn(&Call<'_, B>) -> Results<B>,
) -> Row<B> {
    Row { name, since, attributes, run }
}

/// A node that is computed: its inputs and attributes.
pub struct Call<'a, B: Backend> {
    pub node: &'a Node,
    pub row: &'static Row<B>,
    /// The inputs; `None` for one that is left out.
    pub inputs: Vec<Option<Value<B>>>,
    /// The graphs among the attributes.
    pub bodies: &'a [(&'a str, &'a Body<B>)],
    /// The values of the graph around the node, which the graphs among its attributes may use.
    pub outer: &'a [Option<Value<B>>],
    /// The number of the run.
    pub number: u64,
}

/// The results of an operator that has one output.
pub fn one<B: Backend, E: Into<Error>>(x: std::result::Result<Tensor<B>, E>) -> Results<B> {
    Ok(vec![Value::Tensor(x.map_err(E::into)?)])
}

/// The results of an operator whose outputs are tensors.
pub fn all<B: Backend>(xs: impl IntoIterator<Item = Tensor<B>>) -> Results<B> {
    Ok(xs.into_iter().map(Value::Tensor).collect())
}

macro_rules! attribute_getters {
    ($($(#[$doc:meta])* $get:ident, $find:ident: $Kind:ident($value:ident) -> $t:ty = $from:expr, $default:pat => $or:expr;)*) => {$(
        $(#[$doc])*
        pub fn $get(&self, name: &str) -> Result<$t> {
            match (self.$find(name)?, self.default(name)) {
                (Some(value), _) => Ok(value),
                (None, $default) => Ok($or),
                _ => Err(Error::operator(format!("attribute {name:?} is missing"))),
            }
        }

        attribute_finders! { $(#[$doc])* $find: $Kind($value) -> $t = $from, stringify!($get); }
    )*};
}

/// Getters of attributes that a node may lack. A list without elements may be one of another kind, `$Other`.
macro_rules! attribute_finders {
    ($($(#[$doc:meta])* $find:ident: $Kind:ident($value:ident) -> $t:ty = $from:expr, $what:expr $(, $Other:ident)?;)*) => {$(
        $(#[$doc])*
        pub fn $find(&self, name: &str) -> Result<Option<$t>> {
            match self.attribute(name) {
                None => Ok(None),
                Some(Attribute::$Kind($value)) => Ok(Some($from)),
                $(Some(Attribute::$Other(list)) if list.is_empty() => Ok(Some(&[])),)?
                Some(_) => Err(Error::operator(format!("attribute {name:?} is no {}", $what))),
            }
        }
    )*};
}

impl<'a, B: Backend> Call<'a, B> {
    fn default(&self, name: &str) -> Default {
        let found = self.row.attributes.iter().find(|(own, _)| *own == name);
        found.unwrap_or_else(|| panic!("{} has no attribute {name:?} in its row", self.row.name)).1
    }

    fn attribute(&self, name: &str) -> Option<&'a Attribute> {
        self.default(name);
        self.node.attribute(name)
    }

    attribute_getters! {
        int, find_int: Int(x) -> i64 = *x, Default::Int(x) => x;
        float, find_float: Float(x) -> f64 = f64::from(*x), Default::Float(x) => f64::from(x);
        text, find_text: Text(x) -> &'a str = x, Default::Text(x) => x;
    }

    /// An attribute that is true or false.
    pub fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.int(name)? != 0)
    }

    attribute_finders! {
        /// A tensor; `None` if the node has none.
        find_tensor: Tensor(x) -> &'a Tensor = x, "tensor";
        /// A list of integers; `None` if the node has none.
        find_ints: Ints(x) -> &'a [i64] = x, "list of integers", Floats;
        /// A list of floats; `None` if the node has none.
        find_floats: Floats(x) -> &'a [f32] = x, "list of floats", Ints;
        /// A list of texts; `None` if the node has none.
        find_texts: Texts(x) -> &'a [String] = x, "list of texts";
    }

    /// The version of the operator set that the model uses.
    pub fn version(&self) -> i64 {
        self.node.version
    }

    /// Number of outputs that something uses, and all before them.
    pub fn outputs(&self) -> usize {
        self.node.outputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1)
    }

    /// An input that must be there.
    pub fn tensor(&self, at: usize) -> Result<&Tensor<B>> {
        self.find(at).ok_or_else(|| Error::operator(format!("input {at} is missing, or no tensor")))
    }

    /// An input that may be left out.
    pub fn find(&self, at: usize) -> Option<&Tensor<B>> {
        self.inputs.get(at)?.as_ref()?.as_tensor()
    }

    /// An input that is a list of tensors.
    pub fn sequence(&self, at: usize) -> Result<&[Tensor<B>]> {
        match self.inputs.get(at) {
            Some(Some(Value::Sequence(list))) => Ok(list),
            _ => Err(Error::operator(format!("input {at} is missing, or no sequence"))),
        }
    }

    /// All inputs, none of which may be left out.
    pub fn tensors(&self) -> Result<Vec<&Tensor<B>>> {
        (0..self.inputs.len()).map(|at| self.tensor(at)).collect()
    }

    /// The integers in an input; `None` if it is left out.
    pub fn ints_of(&self, at: usize) -> Result<Option<Vec<i64>>> {
        self.find(at).map(ints).transpose()
    }

    /// The integers in an attribute, or, since later versions of the operator, in an input.
    pub fn ints_in(&self, name: &str, at: usize) -> Result<Option<Vec<i64>>> {
        match self.find_ints(name)? {
            Some(list) => Ok(Some(list.to_vec())),
            None => self.ints_of(at),
        }
    }

    /// The number in an input; `None` if it is left out.
    pub fn number_of(&self, at: usize) -> Result<Option<f64>> {
        let Some(x) = self.find(at) else { return Ok(None) };
        let numbers = x.to_dtype(DType::F64)?.to_vec::<f64>()?;
        match numbers[..] {
            [number] => Ok(Some(number)),
            _ => Err(Error::operator(format!(
                "input {at} must be one number, but has shape {}",
                x.shape()
            ))),
        }
    }

    /// A graph among the attributes.
    pub fn body(&self, name: &str) -> Result<&'a Body<B>> {
        let found = self.bodies.iter().find(|(own, _)| *own == name);
        found
            .map(|(_, body)| *body)
            .ok_or_else(|| Error::operator(format!("graph {name:?} is missing")))
    }

    /// The axis of an attribute, among the axes of a tensor.
    pub fn axis(&self, name: &str, rank: usize) -> Result<usize> {
        axis(self.int(name)?, rank)
    }
}

/// An axis counted from the front or, if negative, from the end.
pub fn axis(axis: i64, rank: usize) -> Result<usize> {
    let counted = if axis < 0 { axis + rank as i64 } else { axis };
    let found = usize::try_from(counted).ok().filter(|&axis| axis < rank);
    found.ok_or_else(|| Error::operator(format!("axis {axis} is out of range for {rank} axes")))
}

/// The elements of a tensor of integers.
pub fn ints<B: Backend>(x: &Tensor<B>) -> Result<Vec<i64>> {
    Ok(x.to_dtype(DType::I64)?.to_vec::<i64>()?)
}

/// Extents that must not be negative.
pub fn extents(list: &[i64]) -> Result<Vec<usize>> {
    let all: Option<Vec<usize>> = list.iter().map(|&extent| usize::try_from(extent).ok()).collect();
    all.ok_or_else(|| Error::operator(format!("extents must not be negative: {list:?}")))
}

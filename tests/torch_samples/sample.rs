//! The arguments of a sample.

use std::collections::BTreeMap;

use serde_json::Value;
use swath::cpu::prelude::*;

/// An argument of a call in Python.
#[derive(Clone, Debug)]
pub enum Arg {
    None,
    Tensor(Tensor),
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Arg>),
    DType(DType),
}

/// A call in Python: arguments by position and by name.
pub struct Call {
    args: Vec<Arg>,
    kwargs: BTreeMap<String, Arg>,
    /// The tensors that have gradients, in the order of the sample's.
    pub leaves: Vec<Tensor>,
    pub id: usize,
    /// All tensors among the arguments.
    tensors: Vec<Tensor>,
}

impl Call {
    /// `lift`: tensors without an axis get one, since PyTorch takes 0 and -1 for axes of theirs.
    pub fn new(sample: &Value, tensors: &BTreeMap<String, Tensor>, id: usize, lift: bool) -> Call {
        let tracks = !sample["gradients"].as_array().unwrap().is_empty();
        let mut leaves = Vec::new();
        let mut all = Vec::new();
        let mut read = |value: &Value| {
            let arg = argument(value, tensors, id, lift, tracks.then_some(&mut leaves));
            collect(&arg, &mut all);
            arg
        };
        let args = sample["args"].as_array().unwrap().iter().map(&mut read).collect();
        let kwargs = sample["kwargs"].as_object().unwrap();
        let kwargs = kwargs.iter().map(|(name, value)| (name.clone(), read(value))).collect();
        Call { args, kwargs, leaves, id, tensors: all }
    }

    /// An argument by position or name.
    pub fn get(&self, at: usize, name: &str) -> &Arg {
        self.args.get(at).or_else(|| self.kwargs.get(name)).unwrap_or(&Arg::None)
    }

    pub fn has(&self, at: usize, name: &str) -> bool {
        !matches!(self.get(at, name), Arg::None)
    }

    pub fn tensor(&self, at: usize, name: &str) -> Option<&Tensor> {
        match self.get(at, name) {
            Arg::Tensor(x) => Some(x),
            _ => None,
        }
    }

    /// The first argument.
    pub fn x(&self) -> &Tensor {
        self.tensor(0, "input").expect("a tensor")
    }

    fn floats_of(&self) -> impl Iterator<Item = &Tensor> {
        self.tensors.iter().filter(|x| x.dtype().is_float())
    }

    /// Whether an argument has an element that is NaN or infinite.
    pub fn is_not_finite(&self) -> bool {
        let is_finite = |x: &Tensor| x.isfinite()?.all(None, false)?.item::<bool>();
        !self.floats_of().all(|x| is_finite(x).unwrap())
    }

    /// Whether an argument is in `f32`, whose rounding the results have then.
    pub fn is_f32(&self) -> bool {
        self.floats_of().any(|x| x.dtype() == DType::F32)
    }

    /// The first argument, and integers as PyTorch promotes them.
    pub fn float_x(&self) -> Result<Tensor> {
        let x = self.x();
        if x.dtype().is_float() { Ok(x.clone()) } else { x.to_dtype(DType::F32) }
    }

    pub fn int(&self, at: usize, name: &str) -> Option<i64> {
        match *self.get(at, name) {
            Arg::Int(value) => Some(value),
            Arg::Float(value) => Some(value as i64),
            _ => None,
        }
    }

    pub fn float(&self, at: usize, name: &str) -> Option<f64> {
        match self.get(at, name) {
            Arg::Float(value) => Some(*value),
            Arg::Int(value) => Some(*value as f64),
            Arg::Tensor(x) => x.to_dtype(DType::F64).and_then(|x| x.item::<f64>()).ok(),
            _ => None,
        }
    }

    pub fn bool(&self, at: usize, name: &str) -> bool {
        matches!(self.get(at, name), Arg::Bool(true))
    }

    pub fn text(&self, sample: &Value) -> String {
        let mut text = format!("sample {}, {:?}", self.id, self.args);
        text.truncate((0..=400).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0));
        format!("{text} {}", sample["kwargs"])
    }

    pub fn word(&self, at: usize, name: &str) -> Option<&str> {
        match self.get(at, name) {
            Arg::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A number or a list of numbers.
    pub fn ints(&self, at: usize, name: &str) -> Option<Vec<i64>> {
        self.floats(at, name).map(|list| list.into_iter().map(|value| value as i64).collect())
    }

    pub fn floats(&self, at: usize, name: &str) -> Option<Vec<f64>> {
        let number = |arg: &Arg| match *arg {
            Arg::Int(value) => Some(value as f64),
            Arg::Float(value) => Some(value),
            _ => None,
        };
        match self.get(at, name) {
            Arg::List(list) => list.iter().map(number).collect(),
            arg => number(arg).map(|value| vec![value]),
        }
    }

    /// All tensors from position `at` on.
    pub fn rest(&self, at: usize) -> Vec<Tensor> {
        self.args.iter().skip(at).filter_map(tensor_of).collect()
    }

    /// Two operands: numbers are tensors without an axis, and both have the dtype of the first tensor.
    pub fn pair(&self) -> Result<[Tensor; 2]> {
        let dtype = match (self.get(0, "input"), self.get(1, "other")) {
            (Arg::Tensor(x), Arg::Tensor(y)) if y.dtype().is_float() && !x.dtype().is_float() => {
                y.dtype()
            }
            (Arg::Tensor(x), Arg::Float(_)) if !x.dtype().is_float() => DType::F32,
            (Arg::Tensor(x), _) | (_, Arg::Tensor(x)) => x.dtype(),
            _ => DType::F64,
        };
        let operand = |arg: &Arg| match arg {
            Arg::Tensor(x) => x.to_dtype(dtype),
            Arg::Int(value) => Tensor::full((), *value)?.to_dtype(dtype),
            Arg::Bool(value) => Tensor::full((), *value)?.to_dtype(dtype),
            Arg::Float(value) => Tensor::full((), *value)?.to_dtype(dtype),
            other => panic!("{other:?} is no operand"),
        };
        Ok([operand(self.get(0, "input"))?, operand(self.get(1, "other"))?])
    }
}

impl Call {
    /// Two operands as [`pair`](Call::pair), of integers as floats.
    pub fn float_pair(&self) -> Result<[Tensor; 2]> {
        let float = |x: Tensor| if x.dtype().is_float() { Ok(x) } else { x.to_dtype(DType::F32) };
        let [a, b] = self.pair()?;
        Ok([float(a)?, float(b)?])
    }
}

fn collect(arg: &Arg, tensors: &mut Vec<Tensor>) {
    match arg {
        Arg::Tensor(x) => tensors.push(x.detach()),
        Arg::List(list) => list.iter().for_each(|arg| collect(arg, tensors)),
        _ => {}
    }
}

fn tensor_of(arg: &Arg) -> Option<Tensor> {
    match arg {
        Arg::Tensor(x) => Some(x.clone()),
        _ => None,
    }
}

fn argument(
    value: &Value,
    tensors: &BTreeMap<String, Tensor>,
    id: usize,
    lift: bool,
    mut leaves: Option<&mut Vec<Tensor>>,
) -> Arg {
    match value {
        Value::Null => Arg::None,
        Value::Bool(value) => Arg::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(value) => Arg::Int(value),
            None => Arg::Float(number.as_f64().expect("a number")),
        },
        Value::String(text) => Arg::Text(text.clone()),
        Value::Array(list) => Arg::List(
            list.iter()
                .map(|value| argument(value, tensors, id, lift, leaves.as_deref_mut()))
                .collect(),
        ),
        Value::Object(object) => match object.iter().next() {
            Some((key, name)) if key == "float" => {
                Arg::Float(name.as_str().and_then(|text| text.parse().ok()).expect("a float"))
            }
            Some((key, name)) if key == "dtype" => {
                Arg::DType(dtype(name.as_str().unwrap_or_default()))
            }
            _ => {
                let x = &tensors[object["tensor"].as_str().expect("a name")];
                // Of every second sample the operands lie in memory otherwise.
                let x = match id % 2 == 1 && x.rank() > 1 {
                    true => x.t().and_then(|x| x.contiguous()).and_then(|x| x.t()),
                    false => Ok(x.clone()),
                };
                let x = x.expect("a transposed copy");
                let x = match leaves {
                    Some(leaves) if x.dtype().is_float() => {
                        leaves.push(x.requires_grad());
                        leaves[leaves.len() - 1].clone()
                    }
                    _ => x,
                };
                let lifted = lift && x.rank() == 0;
                Arg::Tensor(if lifted { x.unsqueeze(0).expect("one axis") } else { x })
            }
        },
    }
}

fn dtype(name: &str) -> DType {
    match name {
        "float64" => DType::F64,
        "float32" => DType::F32,
        "float16" => DType::F16,
        "bfloat16" => DType::BF16,
        "int64" => DType::I64,
        "int32" => DType::I32,
        "int16" => DType::I16,
        "int8" => DType::I8,
        "uint8" => DType::U8,
        "bool" => DType::Bool,
        other => panic!("no dtype {other}"),
    }
}

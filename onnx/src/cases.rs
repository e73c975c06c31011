//! Cases: a model, its inputs, and the outputs that another program gave. Used by tests and by the command `check`.

use std::borrow::Cow;

use swath::{DType, Tensor};

use crate::Model;
use crate::error::{Error, Result};
use crate::proto::{self, Message as _, Reader};
use crate::run::Value;
use crate::weights::{self, Source};

proto::message! {
    /// A file of cases.
    Cases {
        1 cases: Vec<Case<'a>>,
    }
    /// A case.
    Case {
        1 name: Cow<'a, str>,
        2 model: Cow<'a, [u8]>,
        3 inputs: Vec<Given<'a>>,
        4 outputs: Vec<Given<'a>>,
        5 relative: f64,
        6 absolute: f64,
    }
    /// An input or output: a tensor, a list of tensors, or nothing.
    Given {
        1 tensor: Option<Box<proto::Tensor<'a>>>,
        2 sequence: Option<Box<proto::Sequence<'a>>>,
    }
}

/// Runs the cases of a file that are wanted by name: their names, and why they fail.
pub fn run(
    bytes: &[u8],
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<(String, Result<(), String>)>> {
    let cases =
        Cases::read(Reader::new(bytes)).map_err(|reason| Error::Invalid(reason.to_owned()))?;
    let wanted = cases.cases.iter().filter(|case| is_wanted(&case.name));
    Ok(wanted.map(|case| (case.name.to_string(), case.run())).collect())
}

/// The bytes of a model, and its inputs.
pub type Parts = (Vec<u8>, Vec<Option<Value>>);

/// The models of the cases of a file, and their inputs.
pub fn models(bytes: &[u8]) -> Result<Vec<Parts>> {
    let cases =
        Cases::read(Reader::new(bytes)).map_err(|reason| Error::Invalid(reason.to_owned()))?;
    let parts = cases.cases.iter().map(|case| {
        let inputs = case.inputs.iter().map(Given::value).collect::<Result<_>>()?;
        Ok((case.model.to_vec(), inputs))
    });
    parts.collect()
}

impl Given<'_> {
    fn value(&self) -> Result<Option<Value>> {
        let source = Source::from_owner(Vec::new());
        Ok(match (&self.tensor, &self.sequence) {
            (Some(tensor), _) => Some(Value::Tensor(weights::read(tensor, &source)?)),
            (None, Some(list)) => {
                let tensors = list.tensors.iter().map(|tensor| weights::read(tensor, &source));
                Some(Value::Sequence(tensors.collect::<Result<_>>()?))
            }
            (None, None) => None,
        })
    }
}

impl Case<'_> {
    fn run(&self) -> Result<(), String> {
        let text = |error: Error| error.to_string();
        let inputs =
            self.inputs.iter().map(Given::value).collect::<Result<Vec<_>>>().map_err(text)?;
        let outputs =
            self.outputs.iter().map(Given::value).collect::<Result<Vec<_>>>().map_err(text)?;
        let model = Model::from_owner(self.model.to_vec()).map_err(text)?;
        // As it is in the file, and rewritten for inference.
        for (kind, graph) in [("", model.module()), ("prepared, ", model.prepared())] {
            let results = graph.and_then(|graph| graph.run_values(inputs.clone())).map_err(text)?;
            for ((name, result), expected) in results.iter().zip(&outputs) {
                if let Some(expected) = expected {
                    compare(result, expected, self.relative, self.absolute)
                        .map_err(|error| format!("{kind}{name}: {error}"))?;
                }
            }
        }
        Ok(())
    }
}

/// Whether two values agree: `|x - y| ≤ absolute + relative |y|` for all elements.
pub fn compare(x: &Value, y: &Value, relative: f64, absolute: f64) -> Result<(), String> {
    let (xs, ys) = match (x, y) {
        (Value::Tensor(x), Value::Tensor(y)) => (std::slice::from_ref(x), std::slice::from_ref(y)),
        (Value::Sequence(x), Value::Sequence(y)) if x.len() == y.len() => (&x[..], &y[..]),
        _ => return Err("a list of tensors of another length, or no list".to_owned()),
    };
    for (x, y) in xs.iter().zip(ys) {
        if (x.dtype(), x.shape()) != (y.dtype(), y.shape()) {
            let [a, b] = [x, y].map(|x| format!("{} {}", x.dtype(), x.shape()));
            return Err(format!("{a} instead of {b}"));
        }
        let values = |x: &Tensor| {
            x.to_dtype(DType::F64).and_then(|x| x.to_vec::<f64>()).map_err(|e| e.to_string())
        };
        for (i, (a, b)) in values(x)?.into_iter().zip(values(y)?).enumerate() {
            let is_equal = a == b
                || a.is_nan() && b.is_nan()
                || (a - b).abs() <= absolute + relative * b.abs();
            if !is_equal {
                return Err(format!("element {i} is {a} instead of {b}"));
            }
        }
    }
    Ok(())
}

//! Rewrites that compute or remove nodes.

use swath::{DType, Tensor};

use super::{Editor, is};
use crate::program::{Attribute, Node};
use crate::run::Value;

/// A constant has at most so many times the bytes of those that it is made of, or so many bytes.
const GROWTH: usize = 4;
const SMALL: usize = 1 << 16;

/// Operators whose results differ from run to run.
const RANDOM: [&str; 6] = [
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Bernoulli",
    "Multinomial",
];

/// Operators whose results are as large as the numbers in their inputs and attributes say.
const SIZED: [&str; 15] = [
    "CenterCropPad",
    "Col2Im",
    "ConstantOfShape",
    "ConvTranspose",
    "DFT",
    "EyeLike",
    "Expand",
    "MaxUnpool",
    "OneHot",
    "Pad",
    "Range",
    "Resize",
    "STFT",
    "Tile",
    "Upsample",
];

/// Whether the result of a node of constants is of a modest size, as far as can be told before it is computed.
fn is_modest(editor: &Editor, node: &Node) -> bool {
    let inputs: Vec<&Tensor> = node.inputs.iter().filter_map(|&id| editor.constant(id)).collect();
    if SIZED.contains(&&*node.op) {
        // Sizes are small tensors; a number of them that is large makes a large result, and so does a large tensor.
        let size = |x: &&Tensor| match x.numel() {
            0..=16 => match x.to_dtype(DType::F64).and_then(|x| x.to_vec::<f64>()) {
                Ok(numbers) => numbers.iter().fold(1.0, |product, x| product * x.abs().max(1.0)),
                Err(_) => f64::INFINITY,
            },
            count => count as f64,
        };
        return node.op != "Resize" && inputs.iter().map(size).product::<f64>() <= SMALL as f64;
    }
    let mut large = inputs.iter().filter(|x| x.numel() > 1);
    let first = large.next();
    let is_alike =
        large.all(|x| first.is_some_and(|first| first.shape() == x.shape())) && node.op != "MatMul";
    is_alike || inputs.iter().fold(1usize, |product, x| product.saturating_mul(x.numel())) <= SMALL
}

/// Computes a node of constants.
pub fn fold(editor: &mut Editor, at: usize) -> Option<()> {
    let node = editor.node(at)?;
    let is_graph = node.attributes.iter().any(|(_, value)| matches!(value, Attribute::Graph(_)));
    if is_graph
        || RANDOM.contains(&&*node.op)
        || !node.inputs.iter().flatten().all(|&id| editor.constant(Some(id)).is_some())
    {
        return None;
    }
    is_modest(editor, node).then_some(())?;
    let bytes = |value: &Value| value.as_tensor().map(|x| x.numel() * x.dtype().size());
    let own = node.inputs.iter().filter_map(|&id| editor.constant(id));
    let most = SMALL.max(GROWTH * own.map(|x| x.numel() * x.dtype().size()).sum::<usize>());
    let outputs = node.outputs.clone();
    let results = editor.compute(node)?;
    if results.len() < outputs.len()
        || !results.iter().all(|value| bytes(value).is_some_and(|bytes| bytes <= most))
    {
        return None;
    }
    editor.remove(at);
    for (id, value) in outputs.iter().zip(results) {
        if let (Some(id), Value::Tensor(x)) = (id, value) {
            // A view of a large constant would keep that.
            editor.set_constant(*id, x.contiguous().unwrap_or(x));
        }
    }
    Some(())
}

/// Removes a node whose result is its input.
pub fn identity(editor: &mut Editor, at: usize) -> Option<()> {
    let node = editor.node(at)?;
    let is_same = match &*node.op {
        _ if !node.domain.is_empty() => false,
        "Identity" => true,
        // With its third input it may be in training mode, which gives another result.
        "Dropout" => node.outputs.len() == 1 && node.inputs.len() < 3,
        "Transpose" => permutation(node)?.iter().enumerate().all(|(i, &axis)| i as i64 == axis),
        "Cast" => {
            let (_, before) = editor.maker(*node.inputs.first()?, "Cast")?;
            to(before)? == to(node)?
        }
        _ => false,
    };
    let (from, to) = (node.outputs.first().copied()??, node.inputs.first().copied()??);
    is_same.then_some(())?;
    editor.redirect(from, to)?;
    editor.remove(at);
    Some(())
}

fn to(node: &crate::program::Node) -> Option<i64> {
    match node.attribute("to")? {
        Attribute::Int(code) => Some(*code),
        _ => None,
    }
}

fn permutation(node: &crate::program::Node) -> Option<&[i64]> {
    match node.attribute("perm")? {
        Attribute::Ints(axes) => Some(axes),
        _ => None,
    }
}

/// Joins a Transpose with the one that makes its input.
pub fn transposes(editor: &mut Editor, at: usize) -> Option<()> {
    let node = editor.node(at).filter(|node| is(node, "Transpose"))?;
    let (_, before) = editor.maker(*node.inputs.first()?, "Transpose")?;
    let (outer, inner) = (permutation(node)?, permutation(before)?);
    let joined: Option<Vec<i64>> =
        outer.iter().map(|&axis| inner.get(usize::try_from(axis).ok()?).copied()).collect();
    let (joined, input) = (joined?, *before.inputs.first()?);
    let mut node = node.clone();
    node.inputs = vec![input];
    node.attributes = vec![("perm".to_owned(), Attribute::Ints(joined))];
    editor.replace(at, node);
    Some(())
}

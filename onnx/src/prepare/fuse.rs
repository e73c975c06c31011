//! Rewrites that make one node of several.

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

use swath::{DType, Tensor};

use super::{Editor, is};
use crate::program::{Attribute, Id, Node};

/// The domain of nodes that only this crate makes.
pub const DOMAIN: &str = "swath";

/// A node of one output in the place of `old`.
fn node(
    old: &Node,
    domain: &str,
    op: &str,
    inputs: Vec<Option<Id>>,
    attributes: Vec<(&str, Attribute)>,
) -> Node {
    let attributes = attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let (domain, op) = (domain.to_owned(), op.to_owned());
    Node {
        op,
        domain,
        name: old.name.clone(),
        version: old.version,
        inputs,
        outputs: old.outputs.clone(),
        attributes,
    }
}

fn int(node: &Node, name: &str, or: i64) -> i64 {
    match node.attribute(name) {
        Some(Attribute::Int(value)) => *value,
        _ => or,
    }
}

fn float(node: &Node, name: &str, or: f32) -> f64 {
    match node.attribute(name) {
        Some(Attribute::Float(value)) => f64::from(*value),
        _ => f64::from(or),
    }
}

fn input(node: &Node, at: usize) -> Option<Id> {
    node.inputs.get(at).copied().flatten()
}

fn is_near(x: Option<f64>, y: f64) -> bool {
    x.is_some_and(|x| (x - y).abs() <= 1e-6 * y.abs())
}

/// The two inputs of a node, in both orders.
fn both(node: &Node) -> [(Option<Id>, Option<Id>); 2] {
    let (a, b) = (input(node, 0), input(node, 1));
    [(a, b), (b, a)]
}

/// A batch norm after a convolution changes its filters and biases.
pub fn batch_norm(editor: &mut Editor, at: usize) -> Option<()> {
    let norm =
        editor.node(at).filter(|node| is(node, "BatchNormalization") && node.outputs.len() == 1)?;
    let (conv_at, conv) = editor.only_maker(input(norm, 0), "Conv")?;
    if int(norm, "training_mode", 0) != 0 {
        return None;
    }
    let wide = |id| editor.constant(id)?.to_dtype(DType::F64).ok();
    let [gain, offset, mean, variance] = [1, 2, 3, 4].map(|at| wide(input(norm, at)));
    let dtype = editor.constant(input(conv, 1))?.dtype();
    let filters = wide(input(conv, 1))?;
    let bias = match conv.inputs.get(2).copied().flatten() {
        Some(id) => wide(Some(id))?,
        None => Tensor::zeros(filters.dims()[0], DType::F64).ok()?,
    };
    let eps = float(norm, "epsilon", 1e-5);
    let folded = || -> swath::Result<[Tensor; 2]> {
        let missing = || swath::Error::InvalidArgument { op: "batch_norm", reason: String::new() };
        let scale =
            gain.ok_or_else(missing)?.div(variance.ok_or_else(missing)?.add(eps)?.sqrt()?)?;
        let mut shape = vec![1; filters.rank()];
        shape[0] = filters.dims()[0];
        let bias =
            bias.sub(mean.ok_or_else(missing)?)?.mul(&scale)?.add(offset.ok_or_else(missing)?)?;
        Ok([filters.mul(scale.reshape(&shape)?)?.to_dtype(dtype)?, bias.to_dtype(dtype)?])
    };
    let [filters, bias] = folded().ok()?;
    let (mut new, outputs, name) = (conv.clone(), norm.outputs.clone(), conv.name.clone());
    let filters = editor.add_constant(&format!("{name}.filters"), filters);
    let bias = editor.add_constant(&format!("{name}.bias"), bias);
    new.inputs = vec![new.inputs[0], Some(filters), Some(bias)];
    new.outputs = outputs;
    editor.remove(conv_at);
    editor.replace(at, new);
    Some(())
}

/// A product with a constant matrix and the vector that is added.
pub fn linear(editor: &mut Editor, at: usize) -> Option<()> {
    let add = editor.node(at).filter(|node| is(node, "Add"))?;
    let (product, bias) =
        both(add).into_iter().find(|(x, _)| editor.only_maker(*x, "MatMul").is_some())?;
    let (product_at, product) = editor.only_maker(product, "MatMul")?;
    let (matrix, vector) = (editor.constant(input(product, 1))?, editor.constant(bias)?);
    let fits = matrix.rank() == 2
        && vector.rank() == 1
        && vector.numel() == matrix.dims()[1]
        && matrix.dtype().is_float();
    // As the rows of a layer's weight, which its product reads.
    let weight = fits.then(|| matrix.t().and_then(|matrix| matrix.contiguous()).ok())??;
    let (new, name) = (add.clone(), product.name.clone());
    let x = product.inputs[0];
    let weight = editor.add_constant(&format!("{name}.weight"), weight);
    editor.remove(product_at);
    editor.replace(at, node(&new, DOMAIN, "Linear", vec![x, Some(weight), bias], vec![]));
    Some(())
}

/// x/2 · (1 + erf(x/√2)), in any order of the products.
pub fn gelu(editor: &mut Editor, at: usize) -> Option<()> {
    let last = editor.node(at).filter(|node| is(node, "Mul"))?;
    let mut found = None;
    for (a, b) in both(last) {
        // (x · (1 + erf)) · 0.5, (x · 0.5) · (1 + erf), x · (0.5 · (1 + erf))
        if is_near(editor.number(b), 0.5) {
            let Some((mul_at, mul)) = editor.only_maker(a, "Mul") else { continue };
            found = both(mul)
                .into_iter()
                .find_map(|(x, sum)| Some((x?, erf_sum(editor, sum, x?)?, vec![mul_at])));
        } else if let Some((half_at, half)) = editor.only_maker(b, "Mul") {
            for (p, q) in both(half) {
                if is_near(editor.number(q), 0.5) {
                    let own = || Some((a?, erf_sum(editor, p, a?)?, vec![half_at]));
                    let other = || Some((p?, erf_sum(editor, a, p?)?, vec![half_at]));
                    found = found.or_else(own).or_else(other);
                }
            }
        }
        if found.is_some() {
            break;
        }
    }
    let (x, inner, outer) = found?;
    let new = node(last, "", "Gelu", vec![Some(x)], vec![]);
    inner.into_iter().chain(outer).for_each(|at| editor.remove(at));
    editor.replace(at, Node { version: 20, ..new });
    Some(())
}

/// The nodes of 1 + erf(x/√2).
fn erf_sum(editor: &Editor, sum: Option<Id>, x: Id) -> Option<Vec<usize>> {
    let (add_at, add) = editor.only_maker(sum, "Add")?;
    let (erf, _) = both(add).into_iter().find(|(_, one)| is_near(editor.number(*one), 1.0))?;
    let (erf_at, erf) = editor.only_maker(erf, "Erf")?;
    let scaled = input(erf, 0);
    let scaled_at = match editor.only_maker(scaled, "Div") {
        Some((at, div))
            if input(div, 0) == Some(x) && is_near(editor.number(input(div, 1)), SQRT_2) =>
        {
            at
        }
        _ => {
            let (at, mul) = editor.only_maker(scaled, "Mul")?;
            let is_scale = |&(own, by): &(Option<Id>, Option<Id>)| {
                own == Some(x) && is_near(editor.number(by), FRAC_1_SQRT_2)
            };
            both(mul).iter().find(|pair| is_scale(pair))?;
            at
        }
    };
    Some(vec![add_at, erf_at, scaled_at])
}

/// x · Sigmoid(x).
pub fn silu(editor: &mut Editor, at: usize) -> Option<()> {
    let mul = editor.node(at).filter(|node| is(node, "Mul"))?;
    let (x, sigmoid_at) = both(mul).into_iter().find_map(|(x, gate)| {
        let (at, sigmoid) = editor.only_maker(gate, "Sigmoid")?;
        (input(sigmoid, 0) == x).then_some((x?, at))
    })?;
    let new = node(mul, DOMAIN, "Silu", vec![Some(x)], vec![]);
    editor.remove(sigmoid_at);
    editor.replace(at, new);
    Some(())
}

/// Whether a mean is one over the last axis that keeps it.
fn is_last_mean(editor: &Editor, mean: &Node) -> bool {
    let axes = match mean.attribute("axes") {
        Some(Attribute::Ints(axes)) => axes.clone(),
        _ => match editor.constant(input(mean, 1)).map(crate::row::ints) {
            Some(Ok(axes)) => axes,
            _ => return false,
        },
    };
    axes == [-1] && int(mean, "keepdims", 1) == 1
}

/// Add(Mul(Div(x - mean, Sqrt(variance + ε)), weight), bias).
pub fn layer_norm(editor: &mut Editor, at: usize) -> Option<()> {
    let add = editor.node(at).filter(|node| is(node, "Add"))?;
    let (mul, bias) =
        both(add).into_iter().find(|(x, _)| editor.only_maker(*x, "Mul").is_some())?;
    let (mul_at, mul) = editor.only_maker(mul, "Mul")?;
    let (div, weight) =
        both(mul).into_iter().find(|(x, _)| editor.only_maker(*x, "Div").is_some())?;
    let vector = |id| editor.constant(id).filter(|x| x.rank() == 1).map(Tensor::numel);
    let (div_at, div) = editor
        .only_maker(div, "Div")
        .filter(|_| vector(weight).is_some() && vector(weight) == vector(bias))?;
    let (sub_at, sub) = editor.maker(input(div, 0), "Sub")?;
    let (x, mean) = (input(sub, 0)?, input(sub, 1));
    let (mean_at, mean) = editor.only_maker(mean, "ReduceMean")?;
    let (root_at, root) = editor.only_maker(input(div, 1), "Sqrt")?;
    let (eps_at, sum) = editor.only_maker(input(root, 0), "Add")?;
    let (variance, eps) = both(sum).into_iter().find(|(_, eps)| editor.number(*eps).is_some())?;
    let (variance_at, variance) = editor.only_maker(variance, "ReduceMean")?;
    let square = input(variance, 0);
    let centred = sub.outputs.first().copied()??;
    let square_at = match editor.only_maker(square, "Pow") {
        Some((at, pow))
            if input(pow, 0) == Some(centred) && editor.number(input(pow, 1)) == Some(2.0) =>
        {
            at
        }
        _ => {
            let (at, mul) = editor.only_maker(square, "Mul")?;
            (mul.inputs == [Some(centred); 2]).then_some(at)?
        }
    };
    let square_uses = if editor.node(square_at)?.op == "Mul" { 2 } else { 1 };
    let is_norm =
        input(mean, 0) == Some(x) && is_last_mean(editor, mean) && is_last_mean(editor, variance);
    (is_norm && editor.uses(centred) == 1 + square_uses).then_some(())?;
    let eps = editor.number(eps)? as f32;
    let new = node(
        add,
        "",
        "LayerNormalization",
        vec![Some(x), weight, bias],
        vec![("axis", Attribute::Int(-1)), ("epsilon", Attribute::Float(eps))],
    );
    for at in [mul_at, div_at, sub_at, mean_at, root_at, eps_at, variance_at, square_at] {
        editor.remove(at);
    }
    editor.replace(at, Node { version: 17, ..new });
    Some(())
}

/// MatMul(Softmax(scale · MatMul(q, kᵀ) + mask), v), where kᵀ is a Transpose of the last two axes.
pub fn attention(editor: &mut Editor, at: usize) -> Option<()> {
    let last = editor.node(at).filter(|node| is(node, "MatMul"))?;
    let (softmax_at, softmax) = editor.only_maker(input(last, 0), "Softmax")?;
    let default = if softmax.version < 13 { 1 } else { -1 };
    let axis = int(softmax, "axis", default);
    let mut scores = input(softmax, 0);
    let mut removed = vec![softmax_at];
    let mut mask = None;
    if let Some((add_at, add)) = editor.only_maker(scores, "Add") {
        let is_scores =
            |x| ["MatMul", "Mul", "Div"].iter().any(|op| editor.only_maker(x, op).is_some());
        let (own, other) = both(add).into_iter().find(|(own, _)| is_scores(*own))?;
        (scores, mask) = (own, other);
        removed.push(add_at);
    }
    let mut scale = 1.0;
    if let Some((at, mul)) = editor.only_maker(scores, "Mul") {
        let (own, by) = both(mul).into_iter().find(|(_, by)| editor.number(*by).is_some())?;
        (scores, scale) = (own, editor.number(by)?);
        removed.push(at);
    } else if let Some((at, div)) = editor.only_maker(scores, "Div") {
        (scores, scale) = (input(div, 0), 1.0 / editor.number(input(div, 1))?);
        removed.push(at);
    }
    let (product_at, product) = editor.only_maker(scores, "MatMul")?;
    removed.push(product_at);
    let (transpose_at, transpose) = editor.only_maker(input(product, 1), "Transpose")?;
    let Some(Attribute::Ints(perm)) = transpose.attribute("perm") else { return None };
    // The keys as [batch, heads, keys, size], of which the product transposes the last two axes.
    let rank = perm.len();
    (rank == 4 && (axis == -1 || axis == 3)).then_some(())?;
    let mut swapped = perm.clone();
    swapped.swap(rank - 2, rank - 1);
    let is_plain = swapped.iter().enumerate().all(|(i, &axis)| i as i64 == axis);
    let (q, v, source) = (input(product, 0), input(last, 1), input(transpose, 0));
    let mut keys = transpose.clone();
    let new = |k| {
        node(
            last,
            DOMAIN,
            "Attention",
            vec![q, k, v, mask],
            vec![("scale", Attribute::Float(scale as f32))],
        )
    };
    let new = match is_plain {
        true => {
            removed.push(transpose_at);
            new(source)
        }
        false => {
            keys.attributes = vec![("perm".to_owned(), Attribute::Ints(swapped))];
            new(keys.outputs[0])
        }
    };
    removed.into_iter().for_each(|at| editor.remove(at));
    if !is_plain {
        editor.replace(transpose_at, keys);
    }
    editor.replace(at, new);
    Some(())
}

/// Functions that convolutions and linear layers apply in the same pass: their name here.
fn activation_of(node: &Node) -> Option<&'static str> {
    Some(match (&*node.domain, &*node.op) {
        ("", "Relu") => "relu",
        ("", "Sigmoid") => "sigmoid",
        ("", "Tanh") => "tanh",
        ("", "HardSwish") => "hardswish",
        ("", "Mish") => "mish",
        ("", "Gelu") => match node.attribute("approximate") {
            Some(Attribute::Text(kind)) if kind == "tanh" => "gelu_tanh",
            _ => "gelu",
        },
        (DOMAIN, "Silu") => "silu",
        _ => return None,
    })
}

/// A convolution or linear layer and the function after it.
pub fn activation(editor: &mut Editor, at: usize) -> Option<()> {
    let function = editor.node(at)?;
    let activation = activation_of(function)?;
    let x = input(function, 0);
    let (layer_at, layer) =
        editor.only_maker(x, "Conv").or_else(|| editor.only_maker(x, "swath.Linear"))?;
    let is_free = layer.domain.is_empty()
        || layer.domain == DOMAIN && layer.attribute("activation").is_none();
    is_free.then_some(())?;
    let mut new = layer.clone();
    new.domain = DOMAIN.to_owned();
    new.outputs = function.outputs.clone();
    new.attributes.push(("activation".to_owned(), Attribute::Text(activation.to_owned())));
    editor.remove(layer_at);
    editor.replace(at, new);
    Some(())
}

//! Linear models, ensembles of trees and their preparation of data: `ai.onnx.ml`, for classes that are numbers.

use std::collections::{HashMap, HashSet};

use swath::{Backend, DType, Tensor};

use super::Rows;
use crate::error::{Error, Result};
use crate::row::Default::{self, Absent, Float, Int, Text};
use crate::row::{Call, Results, Row, all, extents, one, row};

/// Rows of features; a vector is one row.
fn features<B: Backend>(call: &Call<'_, B>, dtype: DType) -> Result<Tensor<B>> {
    let x = call.tensor(0)?.to_dtype(dtype)?;
    match x.dims() {
        [_] => Ok(x.unsqueeze(0)?),
        [_, _] => Ok(x),
        _ => Err(Error::operator(format!("expected rows of features, got shape {}", x.shape()))),
    }
}

/// Scores of classes or targets, as the node wants them.
fn transformed<B: Backend>(call: &Call<'_, B>, x: &Tensor<B>) -> Result<Tensor<B>> {
    Ok(match call.text("post_transform")? {
        "NONE" => x.clone(),
        "LOGISTIC" => x.sigmoid()?,
        "SOFTMAX" => x.softmax(-1)?,
        "SOFTMAX_ZERO" => {
            let powers = x.sub(&x.max(Some(&[1]), true)?)?.exp()?;
            let powers = powers.masked_fill(&x.abs()?.le(1e-7)?, 0.0)?;
            powers.div(&powers.sum(Some(&[1]), true)?)?
        }
        "PROBIT" => x.affine(2.0, -1.0)?.erfinv()?.mul_scalar(std::f64::consts::SQRT_2)?,
        other => return Err(Error::operator(format!("unknown post_transform {other:?}"))),
    })
}

/// Scores of two classes from those of the second, `[n, 1]`, as onnxruntime makes them: from 1 or the opposites.
fn pair<B: Backend>(call: &Call<'_, B>, x: &Tensor<B>, from_one: bool) -> Result<Tensor<B>> {
    let transform = call.text("post_transform")?;
    let one = if from_one && transform != "LOGISTIC" { 1.0 } else { 0.0 };
    let scores = Tensor::cat(&[&x.affine(-1.0, one)?, x], 1)?;
    if transform.starts_with("SOFTMAX") { Ok(scores) } else { transformed(call, &scores) }
}

/// The integers that are the labels of classes.
fn labels<B: Backend>(call: &Call<'_, B>, ints: &str, texts: &str) -> Result<Tensor<B>> {
    if call.find_texts(texts)?.is_some_and(|texts| !texts.is_empty()) {
        return Err(Error::Unsupported(vec!["labels of text".to_owned()]));
    }
    let labels = call.find_ints(ints)?.unwrap_or_default();
    Ok(Tensor::from_slice(labels, labels.len())?)
}

/// Floats in an attribute, or in a tensor beside it.
fn floats<B: Backend>(call: &Call<'_, B>, name: &str) -> Result<Vec<f64>> {
    match call.find_tensor(&format!("{name}_as_tensor"))? {
        Some(x) => Ok(x.to_dtype(DType::F64)?.to_vec()?),
        None => Ok(call.find_floats(name)?.unwrap_or_default().iter().map(|&x| x.into()).collect()),
    }
}

/// Scores of a linear model, one for each of its rows of coefficients.
fn linear<B: Backend>(call: &Call<'_, B>, count: usize) -> Result<Tensor<B>> {
    let x = features(call, DType::F32)?;
    let weights = call.find_floats("coefficients")?.unwrap_or_default();
    let bias = call.find_floats("intercepts")?.filter(|bias| !bias.is_empty());
    let bias = bias.map(|bias| Tensor::from_slice(bias, bias.len())).transpose()?;
    Ok(x.linear(&Tensor::from_slice(weights, (count, x.dims()[1]))?, bias.as_ref())?)
}

fn linear_regressor<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    one(transformed(call, &linear(call, extents(&[call.int("targets")?])?[0])?))
}

fn linear_classifier<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let labels = labels(call, "classlabels_ints", "classlabels_strings")?;
    let width = features(call, DType::F32)?.dims()[1].max(1);
    let count = call.find_floats("coefficients")?.map_or(0, |weights| weights.len() / width);
    let scores = linear(call, count)?;
    if count == 1 && labels.numel() == 2 {
        let chosen = scores.gt(0.0)?.to_dtype(DType::I64)?.reshape(scores.numel())?;
        return all([labels.index_select(0, &chosen)?, pair(call, &scores, true)?]);
    }
    all([labels.index_select(0, &scores.detach().argmax(1, false)?)?, transformed(call, &scores)?])
}

/// A file may ask for more memory than there is.
const MAX_IDS: usize = 1 << 24;

/// A node of a tree.
struct Node {
    is_root: bool,
    /// The comparison with a feature, none at a leaf.
    test: Option<fn(&f64, &f64) -> bool>,
    feature: usize,
    value: f64,
    is_true_if_missing: bool,
    /// The next node where the comparison is false, and true.
    next: [usize; 2],
    /// The targets or classes that a leaf votes for, and weights.
    votes: Vec<(usize, f64)>,
}

/// The integers in an attribute, which must be so many.
fn list<'a, B: Backend>(call: &Call<'a, B>, name: &str, len: usize) -> Result<&'a [i64]> {
    let list = call.find_ints(name)?.filter(|list| list.len() == len);
    list.ok_or_else(|| Error::operator(format!("{name} must be {len} integers")))
}

/// The nodes of all trees, with votes for ids below `count` from attributes whose names begin so.
fn trees<B: Backend>(call: &Call<'_, B>, begin: &str, count: usize) -> Result<Vec<Node>> {
    let modes = call.find_texts("nodes_modes")?.unwrap_or_default();
    let list_of = |name: &str| list(call, &format!("nodes_{name}"), modes.len());
    let (trees, ids, features) = (list_of("treeids")?, list_of("nodeids")?, list_of("featureids")?);
    let (no, yes, values) =
        (list_of("falsenodeids")?, list_of("truenodeids")?, floats(call, "nodes_values")?);
    let missing = call.find_ints("nodes_missing_value_tracks_true")?.unwrap_or_default();
    let keys = trees.iter().zip(ids).map(|(&tree, &id)| (tree, id));
    let places: HashMap<(i64, i64), usize> = keys.zip(0..).collect();
    let find = |tree: i64, id: i64| {
        let found = places.get(&(tree, id)).copied();
        found.ok_or_else(|| Error::operator(format!("tree {tree} has no node {id}")))
    };
    let (mut nodes, mut seen) = (Vec::new(), HashSet::new());
    for (i, &tree) in trees.iter().enumerate() {
        let test: Option<fn(&f64, &f64) -> bool> = match &*modes[i] {
            "LEAF" => None,
            "BRANCH_LEQ" => Some(f64::le),
            "BRANCH_LT" => Some(f64::lt),
            "BRANCH_GTE" => Some(f64::ge),
            "BRANCH_GT" => Some(f64::gt),
            "BRANCH_EQ" => Some(f64::eq),
            "BRANCH_NEQ" => Some(f64::ne),
            other => return Err(Error::operator(format!("unknown mode of a node: {other:?}"))),
        };
        let value = values.get(i).ok_or_else(|| Error::operator("nodes_values are too few"))?;
        let next = if test.is_none() { [i; 2] } else { [find(tree, no[i])?, find(tree, yes[i])?] };
        nodes.push(Node {
            is_root: seen.insert(tree),
            test,
            feature: extents(&features[i..=i])?[0],
            value: *value,
            is_true_if_missing: missing.get(i).is_some_and(|&is_true| is_true != 0),
            next,
            votes: Vec::new(),
        });
    }
    let weights = floats(call, &format!("{begin}_weights"))?;
    let list_of = |name: &str| list(call, &format!("{begin}_{name}"), weights.len());
    let (targets, trees, ids) = (list_of("ids")?, list_of("treeids")?, list_of("nodeids")?);
    if count > MAX_IDS || extents(targets)?.iter().any(|&id| id >= count) {
        return Err(Error::operator(format!("votes are not for {count} targets or classes")));
    }
    for (i, &weight) in weights.iter().enumerate() {
        nodes[find(trees[i], ids[i])?].votes.push((targets[i] as usize, weight));
    }
    Ok(nodes)
}

/// The leaf below a node for a row of features.
fn leaf<'n>(nodes: &'n [Node], mut node: &'n Node, row: &[f64]) -> Result<&'n Node> {
    for _ in nodes {
        let Some(test) = node.test else { return Ok(node) };
        let value = row.get(node.feature);
        let value = value.ok_or_else(|| Error::operator("rows have too few features"))?;
        let is_true = test(value, &node.value) || value.is_nan() && node.is_true_if_missing;
        node = &nodes[node.next[usize::from(is_true)]];
    }
    Err(Error::operator("a node of a tree leads back to itself"))
}

/// The votes for each of `count` ids on each row of features, `[n, count]`.
fn votes<B: Backend>(
    call: &Call<'_, B>,
    nodes: &[Node],
    count: usize,
    how: &str,
) -> Result<Tensor<B>> {
    let x = features(call, DType::F64)?;
    let (rows, width, values) = (x.dims()[0], x.dims()[1], x.to_vec::<f64>()?);
    let roots: Vec<&Node> = nodes.iter().filter(|node| node.is_root).collect();
    let divisor = if how == "AVERAGE" { roots.len() as f64 } else { 1.0 };
    let mut scores = Vec::new();
    for row in 0..rows {
        let mut totals: Vec<Option<f64>> = vec![None; count];
        for root in &roots {
            for &(id, weight) in &leaf(nodes, root, &values[row * width..][..width])?.votes {
                totals[id] = Some(match (totals[id], how) {
                    (None, _) => weight,
                    (Some(total), "MIN") => total.min(weight),
                    (Some(total), "MAX") => total.max(weight),
                    (Some(total), _) => total + weight,
                });
            }
        }
        scores.extend(totals.iter().map(|total| total.unwrap_or(0.0) / divisor));
    }
    // There may be fewer: those of the first ids.
    let mut base = floats(call, "base_values")?;
    base.resize(count, 0.0);
    let scores = Tensor::from_vec(scores, (rows, count))?.add(&Tensor::from_vec(base, count)?)?;
    Ok(scores.to_dtype(DType::F32)?)
}

fn tree_regressor<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let count = extents(&[call.int("n_targets")?])?[0];
    let nodes = trees(call, "target", count)?;
    one(transformed(call, &votes(call, &nodes, count, call.text("aggregate_function")?)?))
}

fn tree_classifier<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let labels = labels(call, "classlabels_int64s", "classlabels_strings")?;
    let count = labels.numel();
    let nodes = trees(call, "class", count)?;
    let scores = votes(call, &nodes, count, "SUM")?;
    let all_votes = || nodes.iter().flat_map(|node| &node.votes);
    let id = all_votes().next().map_or(0, |vote| vote.0);
    // Votes for one of two classes are those for the second one against the first.
    let scores = match count == 2 && all_votes().all(|vote| vote.0 == id) {
        true => pair(call, &scores.narrow(1, id, 1)?, all_votes().all(|vote| vote.1 >= 0.0))?,
        false => transformed(call, &scores)?,
    };
    all([labels.index_select(0, &scores.argmax(1, false)?)?, scores])
}

fn scaler<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let list = |name, default| {
        let list = call.find_floats(name)?.unwrap_or(default);
        Ok::<_, Error>(Tensor::from_slice(list, list.len())?)
    };
    let x = call.tensor(0)?.to_dtype(DType::F32)?;
    one(x.sub(&list("offset", &[0.0])?)?.mul(&list("scale", &[1.0])?))
}

fn normalizer<B: Backend>(call: &Call<'_, B>) -> Results<B> {
    let x = call.tensor(0)?.to_dtype(DType::F32)?;
    let axis = [x.rank().saturating_sub(1)];
    let size = match call.text("norm")? {
        "MAX" => x.max(Some(&axis), true)?,
        "L1" => x.abs()?.sum(Some(&axis), true)?,
        _ => x.square()?.sum(Some(&axis), true)?.sqrt()?,
    };
    one(x.div(&size.masked_fill(&size.eq(0.0)?, 1.0)?))
}

macro_rules! attributes {
    ($($absent:ident)*; $($name:ident: $default:expr),*) => {
        &[$((stringify!($absent), Absent),)* $((stringify!($name), $default)),*]
    };
}

/// The attributes of all these operators.
const ATTRIBUTES: &[(&str, Default)] = attributes!(
    nodes_treeids nodes_nodeids nodes_featureids nodes_modes nodes_values nodes_values_as_tensor nodes_truenodeids
    nodes_falsenodeids nodes_missing_value_tracks_true nodes_hitrates nodes_hitrates_as_tensor base_values
    base_values_as_tensor target_ids target_treeids target_nodeids target_weights target_weights_as_tensor class_ids
    class_treeids class_nodeids class_weights class_weights_as_tensor classlabels_int64s classlabels_ints
    classlabels_strings coefficients intercepts offset scale; post_transform: Text("NONE"), n_targets: Int(1),
    aggregate_function: Text("SUM"), targets: Int(1), multi_class: Int(0), norm: Text("MAX"), threshold: Float(0.0)
);

impl<B: Backend> Rows<B> {
    pub const ML: &'static [Row<B>] = &[
        row("ai.onnx.ml.TreeEnsembleRegressor", 1, ATTRIBUTES, tree_regressor),
        row("ai.onnx.ml.TreeEnsembleClassifier", 1, ATTRIBUTES, tree_classifier),
        row("ai.onnx.ml.LinearRegressor", 1, ATTRIBUTES, linear_regressor),
        row("ai.onnx.ml.LinearClassifier", 1, ATTRIBUTES, linear_classifier),
        row("ai.onnx.ml.Scaler", 1, ATTRIBUTES, scaler),
        row("ai.onnx.ml.Normalizer", 1, ATTRIBUTES, normalizer),
        row("ai.onnx.ml.Binarizer", 1, ATTRIBUTES, |c| {
            one(c.tensor(0)?.gt(c.float("threshold")?)?.to_dtype(c.tensor(0)?.dtype()))
        }),
    ];
}

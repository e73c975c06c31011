//! The backward pass.
//!
//! ```text
//! order := nodes reachable from the root, by falling id      (a node released before: error, nothing done)
//! pending[root] := upstream
//! for node in order:                                         dropped from `order` as we pass
//!     g := take pending[node]                                complete: every consumer has a larger id
//!     keep g if node is a leaf, retained, or Keep::All
//!     for (input, gradient) in node.rule(g):                 rule and saved values taken out of the node
//!         pending[input] += sum_to(gradient, input.shape)
//! ```

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::shared::Shared;
use crate::tensor::Tensor;

use super::gradients::{Gradients, IdSet};
use super::graph::{GraphNode, Upstream, Visit};
use super::mode::with_recording;

/// Which gradients a backward pass returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Those of leaves and of tensors marked with `retain_grad`.
    #[default]
    Leaves,
    /// Every one.
    All,
}

/// Options of [`Tensor::backward_opts`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Backward {
    /// Keep the graph for another pass instead of releasing it.
    pub retain_graph: bool,
    /// Which gradients are returned.
    pub keep: Keep,
    /// Record the pass itself, so that gradients can be differentiated; implies `retain_graph`.
    pub create_graph: bool,
}

/// Runs the pass from `root` with the gradient `upstream` of its shape and dtype. The gradients of
/// `keep_also` are kept whatever the options say.
pub(crate) fn run<B: Backend>(
    root: &Tensor<B>,
    upstream: Tensor<B>,
    options: Backward,
    keep_also: &[&Tensor<B>],
) -> Result<Gradients<B>> {
    let Some(root_node) = root.node() else {
        let reason = format!(
            "the tensor of shape {} depends on no tracked tensor; call requires_grad() on the \
             leaves, outside no_grad",
            root.shape()
        );
        return Err(Error::NoGradient { op: "backward", reason });
    };
    walk(root_node, upstream, options, keep_also, &IdSet::default())
}

/// Gradients of `y` with respect to `inputs`, which it was computed from, given that of `y`; what the
/// inputs were computed from is left alone. They are recorded.
pub(crate) fn vjp<B: Backend>(
    y: &Tensor<B>,
    upstream: &Tensor<B>,
    inputs: &[&Tensor<B>],
) -> Result<Gradients<B>> {
    let Some(node) = y.node() else { return Ok(Gradients::new()) };
    let ends = inputs.iter().filter_map(|x| Some(x.node()?.id())).collect();
    let options = Backward { create_graph: true, ..Backward::default() };
    walk(node, upstream.clone(), options, &[], &ends)
}

/// The pass; nodes of `ends` count as leaves.
fn walk<B: Backend>(
    root_node: &Shared<GraphNode<B>>,
    upstream: Tensor<B>,
    options: Backward,
    keep_also: &[&Tensor<B>],
    ends: &IdSet,
) -> Result<Gradients<B>> {
    let retain_graph = options.retain_graph || options.create_graph;
    let upstream = if options.create_graph { upstream } else { upstream.detach() };
    let asked_for: IdSet = keep_also.iter().filter_map(|x| Some(x.node()?.id())).collect();
    let mut order = reachable(root_node, ends)?;
    let mut pending = Gradients::new();
    let mut kept = Gradients::new();
    pending.insert_id(root_node.id(), upstream);
    with_recording(options.create_graph, || {
        while let Some(node) = order.pop() {
            let Some(g) = pending.take_id(node.id()) else { continue };
            if ends.contains(&node.id()) {
                kept.insert_id(node.id(), g);
                continue;
            }
            match node.take(retain_graph) {
                Visit::Leaf => kept.insert_id(node.id(), g),
                Visit::Released => return Err(Error::GraphReleased { op: node.op() }),
                Visit::Recorded(recorded) => {
                    let wanted: smallvec::SmallVec<[bool; 4]> =
                        recorded.inputs.iter().map(Option::is_some).collect();
                    let upstream = Upstream::new(&g, &node, options.create_graph);
                    let gradients = recorded.rule.backward(&upstream, &wanted)?;
                    drop(recorded.rule);
                    for (input, gradient) in recorded.inputs.iter().zip(gradients) {
                        let Some(input) = input else { continue };
                        let Some(gradient) = gradient else {
                            let reason = "its rule gave no gradient for a tracked input".to_owned();
                            return Err(Error::NoGradient { op: node.op(), reason });
                        };
                        let gradient = fitted(gradient, input)?;
                        pending.add(input, gradient, options.create_graph)?;
                    }
                    let asked_for = asked_for.contains(&node.id());
                    if options.keep == Keep::All || node.is_retained() || asked_for {
                        kept.insert_id(node.id(), g);
                    }
                }
            }
        }
        Ok(kept)
    })
}

/// The adjoint of broadcasting, applied here once for every rule.
fn fitted<B: Backend>(gradient: Tensor<B>, input: &GraphNode<B>) -> Result<Tensor<B>> {
    let gradient = match gradient.shape() == input.shape() {
        true => gradient,
        false => gradient.sum_to(input.shape())?,
    };
    match gradient.dtype() == input.dtype() {
        true => Ok(gradient),
        false => gradient.to_dtype(input.dtype()),
    }
}

/// Every node that `root` was computed from, and itself, by rising id; not beyond `ends`.
fn reachable<B: Backend>(
    root: &Shared<GraphNode<B>>,
    ends: &IdSet,
) -> Result<Vec<Shared<GraphNode<B>>>> {
    let mut seen = IdSet::default();
    let mut order = Vec::new();
    let mut open = vec![root.clone()];
    seen.insert(root.id());
    while let Some(node) = open.pop() {
        if ends.contains(&node.id()) {
            order.push(node);
            continue;
        }
        match node.tracked_inputs() {
            Visit::Leaf => {}
            Visit::Released => return Err(Error::GraphReleased { op: node.op() }),
            Visit::Recorded(inputs) => {
                open.extend(inputs.into_iter().flatten().filter(|input| seen.insert(input.id())));
            }
        }
        order.push(node);
    }
    order.sort_unstable_by_key(|node| node.id());
    Ok(order)
}

/// Gradients of `y`, a single element, with respect to `xs`, in their order.
///
/// With `create_graph` they are tracked and can be differentiated again.
///
/// ```
/// use swath::prelude::*;
/// let x = tensor![3.0].requires_grad();
/// let y = x.mul(&x)?.mul(&x)?.sum(None, false)?;
/// let first = grad(&y, &[&x], true)?.remove(0);
/// let second = grad(&first.sum(None, false)?, &[&x], false)?.remove(0);
/// assert_eq!(first.to_vec::<f32>()?, [27.0]);
/// assert_eq!(second.to_vec::<f32>()?, [18.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::NotScalar`]; [`Error::NoGradient`] if `y` does not depend on one of `xs`.
pub fn grad<B: Backend>(
    y: &Tensor<B>,
    xs: &[&Tensor<B>],
    create_graph: bool,
) -> Result<Vec<Tensor<B>>> {
    let options = Backward { create_graph, ..Backward::default() };
    let gradients = run(y, y.unit_upstream()?, options, xs)?;
    xs.iter().map(|x| gradients.wrt(x).cloned()).collect()
}

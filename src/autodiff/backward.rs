//! The backward pass.
//!
//! ```text
//! order := nodes reachable from the root, by falling id      (a node released before: error, nothing done)
//! asked for some nodes only: wanted := nodes that lead to one of them; else every node
//! pending[root] := upstream
//! for node in order:                                         dropped from `order` as we pass
//!     g := take pending[node]                                complete: every consumer has a larger id
//!     keep g if node is a leaf, retained, or Keep::All
//!     for (wanted input, gradient) in node.rule(g):          rule and saved values taken out of the node
//!         pending[input] += sum_to(gradient, input.shape)    a rule that multiplies may have added to it itself
//! ```

use std::cell::RefCell;

use smallvec::SmallVec;

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::runtime::shared::Shared;
use crate::tensor::Tensor;

use super::gradients::{Gradients, IdMap, IdSet, missing};
use super::graph::{GraphNode, Upstream, Visit};
use super::scratch;
use crate::runtime::recording::with_recording;

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

/// Whose gradients a pass computes.
enum Ask {
    /// Every leaf's that the root depends on.
    Leaves,
    /// Those of some nodes: what leads to none of them is not passed.
    Only {
        ids: IdSet,
        /// They count as leaves: what they were computed from is not passed either.
        as_leaves: bool,
    },
}

impl Ask {
    fn only<B: Backend>(tensors: &[&Tensor<B>], as_leaves: bool) -> Self {
        let ids = tensors.iter().filter_map(|x| Some(x.node()?.id())).collect();
        Ask::Only { ids, as_leaves }
    }

    fn contains(&self, id: u64) -> bool {
        matches!(self, Ask::Only { ids, .. } if ids.contains(&id))
    }

    fn ends_at(&self, id: u64) -> bool {
        matches!(self, Ask::Only { ids, as_leaves: true } if ids.contains(&id))
    }

    /// Nodes made before this one lead to none that is asked for.
    fn oldest(&self) -> u64 {
        match self {
            Ask::Leaves => 0,
            Ask::Only { ids, .. } => ids.iter().copied().min().unwrap_or(u64::MAX),
        }
    }
}

impl<B: Backend> Tensor<B> {
    /// Asks backward passes to keep the gradient of this tensor though it is no leaf: later passes,
    /// and only if it is tracked. Where a gradient is missing for one of these reasons, asking for it
    /// is an error that names it.
    pub fn retain_grad(&self) {
        if let Some(node) = self.node() {
            node.retain();
        }
    }

    /// Gradients of this tensor, which has one element, with respect to every leaf it depends on.
    ///
    /// The recorded graph is released on the way; a second pass through any of it is
    /// [`Error::GraphReleased`].
    ///
    /// # Errors
    /// [`Error::NotScalar`]; [`Error::NoGradient`] if the tensor is not tracked.
    pub fn backward(&self) -> Result<Gradients<B>> {
        self.backward_opts(Backward::default())
    }

    /// As [`backward`](Tensor::backward), from the gradient of something computed from this tensor.
    /// `upstream` has this tensor's shape and dtype.
    pub fn backward_with(&self, upstream: &Tensor<B>) -> Result<Gradients<B>> {
        let op = "backward_with";
        if self.shape() != upstream.shape() {
            return Err(Error::ShapeMismatch { op, lhs: *self.shape(), rhs: *upstream.shape() });
        }
        if self.dtype() != upstream.dtype() {
            return Err(Error::DTypeMismatch {
                op,
                lhs: self.dtype(),
                rhs: upstream.dtype(),
                shape: *self.shape(),
            });
        }
        B::engine_backward(self, upstream.clone(), Backward::default())
    }

    /// As [`backward`](Tensor::backward) with options.
    pub fn backward_opts(&self, options: Backward) -> Result<Gradients<B>> {
        B::engine_backward(self, self.unit_upstream()?, options)
    }

    pub(crate) fn backward_body(
        root: &Tensor<B>,
        upstream: Tensor<B>,
        options: Backward,
    ) -> Result<Gradients<B>> {
        walk(tracked_node(root)?, upstream, options, &Ask::Leaves)
    }

    pub(crate) fn grad_body(
        y: &Tensor<B>,
        xs: &[&Tensor<B>],
        create_graph: bool,
    ) -> Result<Vec<Tensor<B>>> {
        if let Some(untracked) = xs.iter().find(|x| !x.is_tracked()) {
            return Err(missing(untracked, None));
        }
        let options = Backward { create_graph, ..Backward::default() };
        let ask = Ask::only(xs, false);
        let gradients = walk(tracked_node(y)?, y.unit_upstream()?, options, &ask)?;
        xs.iter().map(|x| gradients.wrt(x).cloned()).collect()
    }

    /// The gradient of a single element with respect to itself.
    pub(crate) fn unit_upstream(&self) -> Result<Tensor<B>> {
        if self.numel() != 1 {
            return Err(Error::NotScalar { shape: *self.shape() });
        }
        Tensor::full_scalar("backward", *self.shape(), 1.0.into(), self.dtype())
    }
}

fn tracked_node<B: Backend>(root: &Tensor<B>) -> Result<&Shared<GraphNode<B>>> {
    root.node().ok_or_else(|| {
        let (dtype, shape) = (root.dtype(), root.shape());
        let reason = match dtype.is_float() {
            true => format!(
                "the tensor of shape {shape} depends on no tracked tensor; call requires_grad() on \
                 the leaves, outside no_grad"
            ),
            false => format!(
                "the tensor of shape {shape} is {dtype}, and only floats have gradients; convert \
                 its inputs with to_dtype"
            ),
        };
        Error::NoGradient { op: "backward", reason }
    })
}

/// Gradients of `y` with respect to `inputs`, which it was computed from, given that of `y`; what the
/// inputs were computed from is left alone. There is none of an input that `y` does not depend on.
pub(crate) fn partial<B: Backend>(
    y: &Tensor<B>,
    upstream: &Tensor<B>,
    inputs: &[&Tensor<B>],
    options: Backward,
) -> Result<Gradients<B>> {
    match y.node() {
        Some(node) => walk(node, upstream.clone(), options, &Ask::only(inputs, true)),
        None => Ok(Gradients::new()),
    }
}

/// True if `y` was computed from a tracked value that is older than the node `id`.
pub(crate) fn depends_on_older<B: Backend>(y: &Tensor<B>, id: u64) -> bool {
    let mut seen = IdSet::default();
    let mut open: Vec<Shared<GraphNode<B>>> = y.node().cloned().into_iter().collect();
    while let Some(node) = open.pop() {
        if node.id() < id {
            return true;
        }
        if let Visit::Recorded(inputs) = node.tracked_inputs() {
            open.extend(inputs.into_iter().flatten().filter(|input| seen.insert(input.id())));
        }
    }
    false
}

fn walk<B: Backend>(
    root_node: &Shared<GraphNode<B>>,
    upstream: Tensor<B>,
    options: Backward,
    ask: &Ask,
) -> Result<Gradients<B>> {
    let retain_graph = options.retain_graph || options.create_graph;
    let upstream = if options.create_graph { upstream } else { upstream.detach() };
    let mut order = reachable(root_node, ask)?;
    let leading = leading(&order, ask);
    let is_wanted = |id: u64| leading.as_ref().is_none_or(|leading| leading.contains_key(&id));
    let goes_on = |id: u64| leading.as_ref().is_none_or(|leading| leading.get(&id) == Some(&true));
    let pending = RefCell::new(Gradients::new());
    let mut kept = Gradients::of_a_pass();
    if is_wanted(root_node.id()) {
        pending.borrow_mut().insert_id(root_node.id(), upstream);
    }
    let take_total = |id| pending.borrow_mut().take_id(id);
    with_recording(options.create_graph, || {
        while let Some(node) = order.pop() {
            let Some(g) = take_total(node.id()) else { continue };
            if !goes_on(node.id()) {
                kept.insert_id(node.id(), g);
                continue;
            }
            match node.take(retain_graph) {
                Visit::Leaf => kept.insert_id(node.id(), g),
                Visit::Released => return Err(Error::GraphReleased { op: node.op() }),
                Visit::Recorded(recorded) => {
                    let is_wanted = |input: &Option<Shared<GraphNode<B>>>| {
                        input.as_ref().is_some_and(|input| is_wanted(input.id()))
                    };
                    let wanted: SmallVec<[bool; 4]> =
                        recorded.inputs.iter().map(is_wanted).collect();
                    let inputs = &recorded.inputs;
                    let upstream =
                        Upstream::new(&g, &node, options.create_graph, inputs, &take_total);
                    let gradients = recorded.rule.backward(&upstream, &wanted)?;
                    #[cfg(feature = "testing")]
                    let gradients = crate::testing::after_rule(node.op(), &upstream, gradients)?;
                    drop(recorded.rule);
                    let inputs = recorded.inputs.iter().zip(gradients).zip(&wanted);
                    for ((input, gradient), _) in inputs.filter(|(_, wanted)| **wanted) {
                        let Some(input) = input else { continue };
                        let Some(gradient) = gradient else {
                            let reason = "its rule gave no gradient for a tracked input".to_owned();
                            return Err(Error::NoGradient { op: node.op(), reason });
                        };
                        let gradient = fitted(gradient, input)?;
                        pending.borrow_mut().add(input, gradient, options.create_graph)?;
                    }
                    let asked_for = ask.contains(node.id());
                    if options.keep == Keep::All || node.is_retained() || asked_for {
                        kept.insert_id(node.id(), g);
                    }
                }
            }
        }
        scratch::give(order);
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

/// Every node that `root` was computed from, and itself, by rising id; not what cannot lead to a node
/// that is asked for.
fn reachable<B: Backend>(
    root: &Shared<GraphNode<B>>,
    ask: &Ask,
) -> Result<Vec<Shared<GraphNode<B>>>> {
    let oldest = ask.oldest();
    let mut seen: IdSet = scratch::take();
    let mut order: Vec<Shared<GraphNode<B>>> = scratch::take();
    let mut open: Vec<Shared<GraphNode<B>>> = scratch::take();
    open.push(root.clone());
    seen.insert(root.id());
    while let Some(node) = open.pop() {
        if ask.ends_at(node.id()) {
            order.push(node);
            continue;
        }
        match node.tracked_inputs() {
            Visit::Leaf => {}
            Visit::Released => return Err(Error::GraphReleased { op: node.op() }),
            Visit::Recorded(inputs) => {
                let inputs = inputs.into_iter().flatten();
                open.extend(inputs.filter(|input| input.id() >= oldest && seen.insert(input.id())));
            }
        }
        order.push(node);
    }
    seen.clear();
    scratch::give(seen);
    scratch::give(open);
    order.sort_unstable_by_key(|node| node.id());
    Ok(order)
}

/// The nodes of `order`, sorted by rising id, that lead to one that is asked for or are one, and
/// whether an input does so too; `None`: all.
fn leading<B: Backend>(order: &[Shared<GraphNode<B>>], ask: &Ask) -> Option<IdMap<bool>> {
    let Ask::Only { ids, .. } = ask else { return None };
    let mut leading = IdMap::default();
    for node in order {
        let goes_on = !ask.ends_at(node.id())
            && match node.tracked_inputs() {
                Visit::Recorded(inputs) => {
                    inputs.iter().flatten().any(|input| leading.contains_key(&input.id()))
                }
                Visit::Leaf | Visit::Released => false,
            };
        if goes_on || ids.contains(&node.id()) {
            leading.insert(node.id(), goes_on);
        }
    }
    Some(leading)
}

/// Gradients of `y`, a single element, with respect to `xs`, in their order.
///
/// With `create_graph` they are tracked and can be differentiated again, where they depend on
/// something at all. Only what leads from `y` to `xs` is passed, and released without `create_graph`.
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
/// [`Error::NotScalar`]; [`Error::NoGradient`] if `y` does not depend on one of `xs`;
/// [`Error::GraphReleased`].
pub fn grad<B: Backend>(
    y: &Tensor<B>,
    xs: &[&Tensor<B>],
    create_graph: bool,
) -> Result<Vec<Tensor<B>>> {
    B::engine_grad(y, xs, create_graph)
}

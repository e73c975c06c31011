//! The backward pass.
//!
//! ```text
//! order := nodes reachable from the root, by falling id      (a node released before: error, nothing done)
//! wanted := nodes that lead to a target, if there are targets; else every node
//! pending[root] := upstream
//! for node in order:                                         dropped from `order` as we pass
//!     g := take pending[node]                                complete: every consumer has a larger id
//!     keep g if node is a leaf, retained, or Keep::All
//!     for (wanted input, gradient) in node.rule(g):          rule and saved values taken out of the node
//!         pending[input] += sum_to(gradient, input.shape)    a rule that multiplies may have added to it itself;
//!                                                            that of a range adds to the range
//!     a checkpointed function instead:                       run it again; its outputs, with the ids of the first
//!                                                            run, replace the node, and go on there
//! ```

use std::cell::RefCell;

use smallvec::SmallVec;

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::runtime::recording::{DETECTING, has, with_flags, with_recording};
use crate::runtime::shared::Shared;
use crate::tensor::Tensor;

use super::checkpoint::Checkpoint;
use super::gradients::{Gradients, IdMap, IdSet, missing};
use super::graph::{GraphNode, Upstream, Visit};
use super::pending::Pending;
use super::{anomaly, scratch};

/// The gradients that a backward pass returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Gradients of leaves, and of tensors marked with `retain_grad`.
    #[default]
    Leaves,
    /// All gradients.
    All,
}

/// Options of [`Tensor::backward_opts`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Backward {
    /// Keeps the graph for another pass instead of releasing it.
    pub retain_graph: bool,
    /// The gradients that are returned.
    pub keep: Keep,
    /// Records the pass itself, so that gradients can be differentiated; implies `retain_graph`.
    pub create_graph: bool,
}

/// The nodes whose gradients a pass computes.
enum Targets {
    /// Every leaf that the root depends on.
    Leaves,
    /// The given nodes. Nodes that lead to none of them are not visited.
    Only {
        ids: IdSet,
        /// True if the nodes are treated as leaves: their inputs are not visited.
        as_leaves: bool,
    },
}

impl Targets {
    fn only<B: Backend>(tensors: &[&Tensor<B>], as_leaves: bool) -> Self {
        let ids = tensors.iter().filter_map(|x| Some(x.node()?.id())).collect();
        Targets::Only { ids, as_leaves }
    }

    fn contains(&self, id: u64) -> bool {
        matches!(self, Targets::Only { ids, .. } if ids.contains(&id))
    }

    fn ends_at(&self, id: u64) -> bool {
        matches!(self, Targets::Only { ids, as_leaves: true } if ids.contains(&id))
    }

    /// Smallest id that can lead to a requested node.
    fn oldest(&self) -> u64 {
        match self {
            Targets::Leaves => 0,
            Targets::Only { ids, .. } => ids.iter().copied().min().unwrap_or(u64::MAX),
        }
    }
}

/// # Gradients
impl<B: Backend> Tensor<B> {
    /// Makes later backward passes keep the gradient of this tensor although it is not a leaf. Has
    /// no effect on an untracked tensor.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![3.0].requires_grad();
    /// let y = x.square()?;
    /// y.retain_grad();
    /// assert_eq!(y.mul(2.0)?.backward()?.wrt(&y)?.item::<f32>()?, 2.0);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn retain_grad(&self) {
        if let Some(node) = self.node() {
            node.retain();
        }
    }

    /// Computes the gradients of this tensor, which has one element, with respect to every leaf it
    /// depends on.
    ///
    /// The recorded graph is released on the way. A second pass through any part of it gives
    /// [`Error::GraphReleased`].
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![3.0].requires_grad();
    /// let grads = x.square()?.backward()?;
    /// assert_eq!(grads.wrt(&x)?.item::<f32>()?, 6.0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotScalar`] unless there is one element; [`Error::NoGradient`] if the tensor is not
    /// tracked; [`Error::GraphReleased`].
    pub fn backward(&self) -> Result<Gradients<B>> {
        self.backward_opts(Backward::default())
    }

    /// Like [`backward`](Tensor::backward), starting from the upstream gradient of this tensor.
    /// `upstream` has this tensor's shape and dtype.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![1.0, 2.0].requires_grad();
    /// let grads = x.square()?.backward_with(&tensor![1.0, 10.0])?;
    /// assert_eq!(grads.wrt(&x)?.to_vec::<f32>()?, [2.0, 40.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`]; [`Error::DTypeMismatch`]; [`Error::NoGradient`];
    /// [`Error::GraphReleased`].
    pub fn backward_with(&self, upstream: &Tensor<B>) -> Result<Gradients<B>> {
        self.check_like("backward_with", upstream)?;
        B::engine_backward(self, upstream.clone(), Backward::default())
    }

    /// Like [`backward`](Tensor::backward), with options.
    ///
    /// ```
    /// use swath::prelude::*;
    /// let x = tensor![3.0].requires_grad();
    /// let y = x.square()?;
    /// let first = y.backward_opts(Backward { retain_graph: true, ..Default::default() })?;
    /// assert_eq!(y.backward()?.wrt(&x)?.item::<f32>()?, first.wrt(&x)?.item::<f32>()?);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn backward_opts(&self, options: Backward) -> Result<Gradients<B>> {
        B::engine_backward(self, self.unit_upstream()?, options)
    }

    pub(crate) fn backward_body(
        root: &Tensor<B>,
        upstream: Tensor<B>,
        options: Backward,
    ) -> Result<Gradients<B>> {
        walk(tracked_node(root)?, upstream, options, &Targets::Leaves)
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
        let targets = Targets::only(xs, false);
        let gradients = walk(tracked_node(y)?, y.unit_upstream()?, options, &targets)?;
        xs.iter().map(|x| gradients.wrt(x).cloned()).collect()
    }

    /// The gradient of a single element with respect to itself: 1.
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

/// Gradients of `y` with respect to `inputs`, treated as leaves, from the upstream gradient of `y`.
/// Inputs that `y` does not depend on have none.
pub(crate) fn partial<B: Backend>(
    y: &Tensor<B>,
    upstream: &Tensor<B>,
    inputs: &[&Tensor<B>],
    options: Backward,
) -> Result<Gradients<B>> {
    match y.node() {
        Some(node) => walk(node, upstream.clone(), options, &Targets::only(inputs, true)),
        None => Ok(Gradients::new()),
    }
}

/// True if `y` depends on a tracked value that is older than the node `id`.
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

/// The nodes that are targets or lead to one, each with true if one of its inputs does so too;
/// `None` if all are visited.
struct Leading(Option<IdMap<bool>>);

impl Leading {
    fn new(targets: &Targets) -> Self {
        Leading(matches!(targets, Targets::Only { .. }).then(IdMap::default))
    }

    /// Adds nodes, by ascending id. What they depend on has been added, or is among them.
    fn extend<B: Backend>(&mut self, nodes: &[Shared<GraphNode<B>>], targets: &Targets) {
        let Some(leading) = &mut self.0 else { return };
        for node in nodes {
            let goes_on = !targets.ends_at(node.id())
                && match node.tracked_inputs() {
                    Visit::Recorded(inputs) => {
                        inputs.iter().flatten().any(|input| leading.contains_key(&input.id()))
                    }
                    Visit::Leaf | Visit::Released => false,
                };
            if goes_on || targets.contains(node.id()) {
                leading.insert(node.id(), goes_on);
            }
        }
    }

    fn is_wanted(&self, id: u64) -> bool {
        self.0.as_ref().is_none_or(|leading| leading.contains_key(&id))
    }

    fn goes_on(&self, id: u64) -> bool {
        self.0.as_ref().is_none_or(|leading| leading.get(&id) == Some(&true))
    }
}

fn walk<B: Backend>(
    root_node: &Shared<GraphNode<B>>,
    upstream: Tensor<B>,
    options: Backward,
    targets: &Targets,
) -> Result<Gradients<B>> {
    anomaly::first()?;
    let detecting = has(DETECTING) && anomaly::is_finite(&upstream);
    let mut excused = IdSet::default();
    let retain_graph = options.retain_graph || options.create_graph;
    let upstream = if options.create_graph { upstream } else { upstream.detach() };
    let mut order = reachable(std::slice::from_ref(root_node), targets, &[])?;
    let mut leading = Leading::new(targets);
    leading.extend(&order, targets);
    let pending = RefCell::new(Pending::new(options.create_graph));
    let mut kept = Gradients::of_a_pass();
    if leading.is_wanted(root_node.id()) {
        pending.borrow_mut().insert(root_node.id(), upstream);
    }
    let take_total = |id| pending.borrow_mut().take(id);
    let mut visit_all = || {
        while let Some(node) = order.pop() {
            let Some(g) = take_total(node.id())? else { continue };
            if !leading.goes_on(node.id()) {
                kept.insert_id(node.id(), g);
                continue;
            }
            let recorded = match node.take(retain_graph) {
                Visit::Leaf => {
                    kept.insert_id(node.id(), g);
                    continue;
                }
                Visit::Released => return Err(node.unrecorded()),
                Visit::Recorded(recorded) => recorded,
            };
            if let Some(checkpoint) = recorded.rule.checkpoint() {
                pending.borrow_mut().insert(node.id(), g);
                let inspected = if detecting { DETECTING } else { 0 };
                let outputs = with_flags(inspected, 0, || {
                    let outputs = replayed_outputs(checkpoint, &node, &mut order, retain_graph)?;
                    anomaly::first()?;
                    Ok(outputs)
                })?;
                let new = reachable(&outputs, targets, &order)?;
                leading.extend(&new, targets);
                insert(&mut order, new)?;
                continue;
            }
            let is_wanted = |input: &Option<Shared<GraphNode<B>>>| {
                input.as_ref().is_some_and(|input| leading.is_wanted(input.id()))
            };
            let wanted: SmallVec<[bool; 4]> = recorded.inputs.iter().map(is_wanted).collect();
            let inputs = &recorded.inputs;
            let upstream = Upstream::new(&g, &node, options.create_graph, inputs, &take_total);
            let gradients = recorded.rule.backward(&upstream, &wanted)?;
            #[cfg(feature = "testing")]
            let gradients = crate::testing::after_rule(node.op(), &upstream, gradients)?;
            let range = recorded.rule.range();
            drop(recorded.rule);
            let inputs = recorded.inputs.iter().zip(gradients).zip(&wanted).enumerate();
            for (i, ((input, gradient), _)) in inputs.filter(|(_, (_, wanted))| **wanted) {
                let Some(input) = input else { continue };
                let Some(gradient) = gradient else {
                    let reason = "its rule gave no gradient for a tracked input".to_owned();
                    return Err(Error::NoGradient { op: node.op(), reason });
                };
                let mut pending = pending.borrow_mut();
                match range {
                    Some(range) => pending.add_range(input.id(), input.shape(), range, gradient)?,
                    None => pending.add(input.id(), fitted(gradient, input)?)?,
                }
                if detecting && let Some(total) = pending.total(input.id())? {
                    anomaly::inspect_gradient(&node, i, input, total, &mut excused)?;
                }
            }
            let is_target = targets.contains(node.id());
            if options.keep == Keep::All || node.is_retained() || is_target {
                kept.insert_id(node.id(), g);
            }
        }
        Ok(())
    };
    // A rule is inspected as a whole.
    with_flags(0, DETECTING, || with_recording(options.create_graph, &mut visit_all))?;
    scratch::give(order);
    Ok(kept)
}

/// Runs a checkpointed function again, at the node of its last output that the pass visits. Returns
/// the nodes of the outputs that it visits, and takes those of the first run out of `order`.
fn replayed_outputs<B: Backend>(
    checkpoint: &Checkpoint<B>,
    node: &Shared<GraphNode<B>>,
    order: &mut Vec<Shared<GraphNode<B>>>,
    retain_graph: bool,
) -> Result<Vec<Shared<GraphNode<B>>>> {
    let mut outputs = checkpoint.replay()?;
    outputs.retain(|output| {
        let first = match output.id() == node.id() {
            true => node.clone(),
            false => match order.binary_search_by_key(&output.id(), |node| node.id()) {
                Ok(place) => order.remove(place),
                Err(_) => return false,
            },
        };
        first.take(retain_graph);
        if first.is_retained() {
            output.retain();
        }
        true
    });
    Ok(outputs)
}

/// Inserts nodes into an order. Both are sorted by ascending id.
fn insert<B: Backend>(
    order: &mut Vec<Shared<GraphNode<B>>>,
    mut nodes: Vec<Shared<GraphNode<B>>>,
) -> Result<()> {
    let Some(oldest) = nodes.first().map(|node| node.id()) else { return Ok(()) };
    for node in &nodes {
        if let Visit::Recorded(inputs) = node.tracked_inputs()
            && inputs.iter().flatten().any(|input| input.id() > node.id())
        {
            let (op, shape) = (node.op(), node.shape());
            let reason = format!(
                "an operand of `{op}`, whose result has shape {shape}, was computed on another thread"
            );
            return Err(Error::InvalidArgument { op: "checkpoint", reason });
        }
    }
    let from = order.partition_point(|node| node.id() < oldest);
    order.append(&mut nodes);
    scratch::give(nodes);
    order[from..].sort_unstable_by_key(|node| node.id());
    Ok(())
}

/// Sums a gradient to the shape of the input, the adjoint of broadcasting, and converts it to the
/// dtype. Rules need not do either.
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

/// All nodes that `roots` depend on and that may lead to a target, and `roots` themselves, by
/// ascending id, without those of `known`, which is sorted by id.
fn reachable<B: Backend>(
    roots: &[Shared<GraphNode<B>>],
    targets: &Targets,
    known: &[Shared<GraphNode<B>>],
) -> Result<Vec<Shared<GraphNode<B>>>> {
    let oldest = targets.oldest();
    let mut seen: IdSet = scratch::take();
    let mut order: Vec<Shared<GraphNode<B>>> = scratch::take();
    let mut open: Vec<Shared<GraphNode<B>>> = scratch::take();
    open.extend(roots.iter().filter(|root| seen.insert(root.id())).cloned());
    let is_known = |id: u64| known.binary_search_by_key(&id, |node| node.id()).is_ok();
    while let Some(node) = open.pop() {
        if targets.ends_at(node.id()) {
            order.push(node);
            continue;
        }
        match node.tracked_inputs() {
            Visit::Leaf => {}
            Visit::Released => return Err(node.unrecorded()),
            Visit::Recorded(inputs) => {
                let inputs = inputs.into_iter().flatten();
                open.extend(inputs.filter(|input| {
                    input.id() >= oldest && seen.insert(input.id()) && !is_known(input.id())
                }));
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

/// Computes the gradients of `y`, which has one element, with respect to `xs`, in their order.
///
/// With `create_graph` the gradients are tracked, so that they can be differentiated again. Only
/// nodes between `y` and `xs` are visited; they are released unless `create_graph` is true.
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

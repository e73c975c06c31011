//! The backward pass.
//!
//! ```text
//! order := nodes reachable from the root, by decreasing id      (a node released before: error, nothing done)
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
use super::gradients::{Gradients, missing};
use super::graph::{GraphNode, Recorded, Upstream, Visit};
use super::ids::IdSet;
use super::pending::Pending;
use super::visited::{Leading, Targets, insert, reachable};
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

fn walk<B: Backend>(
    root_node: &Shared<GraphNode<B>>,
    upstream: Tensor<B>,
    options: Backward,
    targets: &Targets,
) -> Result<Gradients<B>> {
    anomaly::first()?;
    let inspects = has(DETECTING) && anomaly::is_finite(&upstream);
    let upstream = if options.create_graph { upstream } else { upstream.detach() };
    let order = reachable(std::slice::from_ref(root_node), targets, &[])?;
    let mut leading = Leading::new(targets);
    leading.extend(&order, targets);
    let mut pending = Pending::new(options.create_graph);
    if leading.is_wanted(root_node.id()) {
        pending.insert(root_node.id(), upstream);
    }
    let (pending, kept) = (RefCell::new(pending), Gradients::of_a_pass());
    let excused = inspects.then(IdSet::default);
    let mut walk = Walk { options, targets, order, leading, pending, kept, excused };
    // A rule is inspected as a whole.
    with_flags(0, DETECTING, || with_recording(options.create_graph, || walk.visit_all()))?;
    scratch::give(walk.order);
    Ok(walk.kept)
}

/// A backward pass.
struct Walk<'a, B: Backend> {
    options: Backward,
    targets: &'a Targets,
    /// The nodes to visit, by ascending id.
    order: Vec<Shared<GraphNode<B>>>,
    leading: Leading,
    pending: RefCell<Pending<B>>,
    kept: Gradients<B>,
    /// The nodes whose gradients are not finite because earlier values were not; `None` if gradients are not inspected.
    excused: Option<IdSet>,
}

impl<B: Backend> Walk<'_, B> {
    fn retains_graph(&self) -> bool {
        self.options.retain_graph || self.options.create_graph
    }

    fn visit_all(&mut self) -> Result<()> {
        while let Some(node) = self.order.pop() {
            let Some(g) = self.pending.get_mut().take(node.id())? else { continue };
            if !self.leading.continues(node.id()) {
                self.kept.insert_id(node.id(), g);
                continue;
            }
            let recorded = match node.take(self.retains_graph()) {
                Visit::Leaf => {
                    self.kept.insert_id(node.id(), g);
                    continue;
                }
                Visit::Released => return Err(node.unrecorded()),
                Visit::Recorded(recorded) => recorded,
            };
            if let Some(checkpoint) = recorded.rule.checkpoint() {
                self.pending.get_mut().insert(node.id(), g);
                self.replay(checkpoint, &node)?;
                continue;
            }
            self.run_rule(&node, recorded, &g)?;
            let is_target = self.targets.contains(node.id());
            if self.options.keep == Keep::All || node.is_retained() || is_target {
                self.kept.insert_id(node.id(), g);
            }
        }
        Ok(())
    }

    /// Runs a checkpointed function again, and adds its nodes to those to visit.
    fn replay(&mut self, checkpoint: &Checkpoint<B>, node: &Shared<GraphNode<B>>) -> Result<()> {
        let inspected = if self.excused.is_some() { DETECTING } else { 0 };
        let retains_graph = self.retains_graph();
        let outputs = with_flags(inspected, 0, || {
            let outputs = replayed_outputs(checkpoint, node, &mut self.order, retains_graph)?;
            anomaly::first()?;
            Ok(outputs)
        })?;
        let new = reachable(&outputs, self.targets, &self.order)?;
        self.leading.extend(&new, self.targets);
        insert(&mut self.order, new)
    }

    /// Adds the gradients that the rule of a node computes from `g` to those of its inputs.
    fn run_rule(
        &mut self,
        node: &Shared<GraphNode<B>>,
        Recorded { inputs, rule }: Recorded<B>,
        g: &Tensor<B>,
    ) -> Result<()> {
        let is_wanted = |input: &Option<Shared<GraphNode<B>>>| {
            input.as_ref().is_some_and(|input| self.leading.is_wanted(input.id()))
        };
        let wanted: SmallVec<[bool; 4]> = inputs.iter().map(is_wanted).collect();
        let take_total = |id| self.pending.borrow_mut().take(id);
        let upstream = Upstream::new(g, node, self.options.create_graph, &inputs, &take_total);
        let gradients = rule.backward(&upstream, &wanted)?;
        #[cfg(feature = "testing")]
        let gradients = crate::testing::after_rule(node.op(), &upstream, gradients)?;
        let range = rule.range();
        drop(rule);
        let pending = self.pending.get_mut();
        let all = inputs.iter().zip(gradients).zip(&wanted).enumerate();
        for (i, ((input, gradient), _)) in all.filter(|(_, (_, wanted))| **wanted) {
            let Some(input) = input else { continue };
            let Some(gradient) = gradient else {
                let reason = "its rule gave no gradient for a tracked input".to_owned();
                return Err(Error::NoGradient { op: node.op(), reason });
            };
            match range {
                Some(range) => pending.add_range(input.id(), input.shape(), range, gradient)?,
                None => pending.add(input.id(), fitted(gradient, input)?)?,
            }
            if let Some(excused) = &mut self.excused
                && let Some(total) = pending.total(input.id())?
            {
                inspect_gradient(node, i, input, total, excused)?;
            }
        }
        Ok(())
    }
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

/// Fails if the rule of `node` has made the gradient of an input NaN or infinite from finite values. `excused` has the
/// nodes whose gradients are not finite because earlier values were not.
fn inspect_gradient<B: Backend>(
    node: &GraphNode<B>,
    i: usize,
    input: &GraphNode<B>,
    gradient: &Tensor<B>,
    excused: &mut IdSet,
) -> Result<()> {
    if excused.contains(&input.id()) || anomaly::is_finite(gradient) {
        return Ok(());
    }
    if node.saw_non_finite() || excused.contains(&node.id()) {
        excused.insert(input.id());
        return Ok(());
    }
    let name = input.name().map_or(String::new(), |name| format!(" (\"{name}\")"));
    anomaly::fail(node.op(), format!("the gradient of input {i}{name}"), gradient)
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

//! The nodes that a backward pass visits, and their order.

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::runtime::shared::Shared;
use crate::tensor::Tensor;

use super::graph::{GraphNode, Visit};
use super::ids::{IdMap, IdSet};
use super::scratch;

/// The nodes whose gradients a pass computes.
pub(super) enum Targets {
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
    pub fn only<B: Backend>(tensors: &[&Tensor<B>], as_leaves: bool) -> Self {
        let ids = tensors.iter().filter_map(|x| Some(x.node()?.id())).collect();
        Targets::Only { ids, as_leaves }
    }

    pub fn contains(&self, id: u64) -> bool {
        matches!(self, Targets::Only { ids, .. } if ids.contains(&id))
    }

    pub fn ends_at(&self, id: u64) -> bool {
        matches!(self, Targets::Only { ids, as_leaves: true } if ids.contains(&id))
    }

    /// Smallest id that can lead to a requested node.
    pub fn oldest(&self) -> u64 {
        match self {
            Targets::Leaves => 0,
            Targets::Only { ids, .. } => ids.iter().copied().min().unwrap_or(u64::MAX),
        }
    }
}

/// The nodes that are targets or lead to one, each with true if one of its inputs does so too;
/// `None` if all are visited.
pub(super) struct Leading(Option<IdMap<bool>>);

impl Leading {
    pub fn new(targets: &Targets) -> Self {
        Leading(matches!(targets, Targets::Only { .. }).then(IdMap::default))
    }

    /// Adds nodes, by ascending id. What they depend on has been added, or is among them.
    pub fn extend<B: Backend>(&mut self, nodes: &[Shared<GraphNode<B>>], targets: &Targets) {
        let Some(leading) = &mut self.0 else { return };
        for node in nodes {
            let continues = !targets.ends_at(node.id())
                && match node.tracked_inputs() {
                    Visit::Recorded(inputs) => {
                        inputs.iter().flatten().any(|input| leading.contains_key(&input.id()))
                    }
                    Visit::Leaf | Visit::Released => false,
                };
            if continues || targets.contains(node.id()) {
                leading.insert(node.id(), continues);
            }
        }
    }

    pub fn is_wanted(&self, id: u64) -> bool {
        self.0.as_ref().is_none_or(|leading| leading.contains_key(&id))
    }

    pub fn continues(&self, id: u64) -> bool {
        self.0.as_ref().is_none_or(|leading| leading.get(&id) == Some(&true))
    }
}

/// All nodes that `roots` depend on and that may lead to a target, and `roots` themselves, by
/// ascending id, without those of `known`, which is sorted by id.
pub(super) fn reachable<B: Backend>(
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

/// Inserts nodes into an order. Both are sorted by ascending id.
pub(super) fn insert<B: Backend>(
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

//! Gradients that a backward pass adds up until their node is visited.
//!
//! The gradient of a `narrow` is nonzero on a range of its input only. Such ranges are collected while they are
//! disjoint, and joined once, so that n parts of a tensor cost one pass over its gradient instead of n:
//!
//! ```text
//! add_range(a..b, g)     parts[a..b] := g; first join, if a..b overlaps a part or lies on another axis
//! add(g), take()         first join
//! join                   total += cat(0, part, 0, part, …)
//! ```

use smallvec::SmallVec;

use crate::backend::Backend;
use crate::error::Result;
use crate::ops::BinaryOp;
use crate::shape::Shape;
use crate::tensor::{Input, Tensor};

use super::gradients::Gradients;
use super::ids::IdMap;
use super::scratch;

/// A range of an axis of an input: the elements from `start` on.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub axis: usize,
    pub start: usize,
}

/// Disjoint parts of a gradient along an axis, in the order of their starts.
struct Parts<B: Backend> {
    shape: Shape,
    axis: usize,
    by_start: SmallVec<[(usize, Tensor<B>); 4]>,
}

impl<B: Backend> Parts<B> {
    /// Number of parts that start before this position.
    fn before(&self, position: usize) -> usize {
        self.by_start.partition_point(|&(start, _)| start < position)
    }

    /// True if `len` elements from the start of `range` lie on the axis and meet no part.
    fn has_room(&self, range: Range, len: usize) -> bool {
        let before = self.by_start[..self.before(range.start + len)].last();
        let end = before.map_or(0, |(start, part)| start + part.dims()[self.axis]);
        range.axis == self.axis && end <= range.start
    }

    /// The gradient of the whole, with zeros between the parts.
    fn joined(self) -> Result<Tensor<B>> {
        let Parts { shape, axis, by_start } = self;
        let is_sum = by_start.len() > 1;
        let mut pieces: SmallVec<[Tensor<B>; 9]> = SmallVec::new();
        let mut end = 0;
        for (start, part) in by_start {
            pieces.extend(zeros(&part, axis, start - end)?);
            end = start + part.dims()[axis];
            pieces.push(part);
        }
        if let Some(last) = pieces.last() {
            pieces.extend(zeros(last, axis, shape.dim(axis) - end)?);
        }
        let whole = Tensor::cat(&pieces, axis)?;
        match is_sum {
            // As in the sum of gradients that are 0 outside their range, no 0 is negative.
            true => B::engine_binary(BinaryOp::Add, Input::Owned(whole), Input::Scalar(0.0.into())),
            false => Ok(whole),
        }
    }
}

/// Zeros like `x` but for an extent of `len`; `None` for 0.
fn zeros<B: Backend>(x: &Tensor<B>, axis: usize, len: usize) -> Result<Option<Tensor<B>>> {
    let shape = x.shape().with_axis(axis, Some(len));
    (len > 0).then(|| Tensor::zeros(shape, x.dtype())).transpose()
}

/// The gradients of nodes that have not been visited.
pub(super) struct Pending<B: Backend> {
    totals: Gradients<B>,
    parts: IdMap<Parts<B>>,
    create_graph: bool,
}

impl<B: Backend> Pending<B> {
    pub fn new(create_graph: bool) -> Self {
        Pending { totals: Gradients::of_a_pass(), parts: scratch::take(), create_graph }
    }

    /// Sets the gradient of a node, which has none.
    pub fn insert(&mut self, id: u64, gradient: Tensor<B>) {
        self.totals.insert_id(id, gradient);
    }

    /// Adds `gradient` to that of a node.
    pub fn add(&mut self, id: u64, gradient: Tensor<B>) -> Result<()> {
        self.join(id)?;
        self.totals.add(id, gradient, self.create_graph)
    }

    /// Adds `gradient` to a range of that of a node, of this shape.
    pub fn add_range(
        &mut self,
        id: u64,
        shape: &Shape,
        range: Range,
        gradient: Tensor<B>,
    ) -> Result<()> {
        let len = gradient.dims()[range.axis];
        match self.parts.get(&id) {
            // There is nothing to add, and an empty part may begin where another does.
            Some(_) if len == 0 => return Ok(()),
            Some(parts) if !parts.has_room(range, len) => self.join(id)?,
            _ => {}
        }
        let Range { axis, start } = range;
        let none = || Parts { shape: *shape, axis, by_start: SmallVec::new() };
        let parts = self.parts.entry(id).or_insert_with(none);
        let at = parts.before(start);
        match parts.by_start.get_mut(at) {
            // An empty part.
            Some((same, part)) if *same == start => *part = gradient,
            _ => parts.by_start.insert(at, (start, gradient)),
        }
        Ok(())
    }

    /// Adds up all that has been added for a node.
    pub fn total(&mut self, id: u64) -> Result<Option<&Tensor<B>>> {
        self.join(id)?;
        Ok(self.totals.get_id(id))
    }

    /// Takes all that has been added for a node.
    pub fn take(&mut self, id: u64) -> Result<Option<Tensor<B>>> {
        self.join(id)?;
        Ok(self.totals.take_id(id))
    }

    fn join(&mut self, id: u64) -> Result<()> {
        match self.parts.remove(&id) {
            Some(parts) => self.totals.add(id, parts.joined()?, self.create_graph),
            None => Ok(()),
        }
    }
}

impl<B: Backend> Drop for Pending<B> {
    fn drop(&mut self) {
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        scratch::give(parts);
    }
}

//! The mean over micro-batches, with the same bits on every rank and for any number of ranks.
//!
//! ```text
//! 1. each rank adds up its micro-batches as far as they fill nodes of the tree (tree.rs)
//! 2. the tensors of a node are laid side by side, and cut into as many slices as there are ranks
//! 3. rank r receives slice r of all nodes, and does the rest of the additions
//! 4. it divides, and sends the mean of its slice to all others
//! ```
//!
//! With N bytes, R ranks and a power of two of micro-batches each, a rank sends and receives 2 N (R − 1) / R
//! bytes, the least that a sum takes.

use super::agreement::Operation;
use super::tree::{Node, Tree, nodes_of, part};
use super::world::State;
use crate::backend::cpu::CpuBackend;
use crate::backend::{Arg, Backend};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::ops::BinaryOp;
use crate::shape::Shape;
use crate::tensor::Tensor;

type Host = Tensor<CpuBackend>;

/// What a micro-batch gives: gradients, buffers, metrics, each `F32`, `F64` or `I64`. All have the same.
pub(super) type Leaf = Vec<Host>;

/// The dtypes of a leaf.
const DTYPES: [DType; 3] = [DType::F32, DType::F64, DType::I64];

/// Adds floats. Of integers, which count something, it takes the larger.
pub(super) fn add(a: Leaf, b: Leaf) -> Result<Leaf> {
    a.into_iter().zip(b).map(|(a, b)| combine(a, &b)).collect()
}

fn combine(a: Host, b: &Host) -> Result<Host> {
    let op = if a.dtype().is_float() { BinaryOp::Add } else { BinaryOp::Maximum };
    CpuBackend::binary(op, Arg::Owned(a.into_data()), b.data()).map(Tensor::from_data)
}

/// Floats multiplied or divided by a number; integers as they are.
pub(super) fn scaled(x: Host, op: BinaryOp, factor: f64) -> Result<Host> {
    if !x.dtype().is_float() || factor == 1.0 {
        return Ok(x);
    }
    let factor = Arg::Scalar(Scalar::Float(factor));
    CpuBackend::binary(op, Arg::Owned(x.into_data()), factor).map(Tensor::from_data)
}

/// The sum over `count` micro-batches of all ranks, divided by `total`. `own` are the nodes of this rank's part
/// of them, `layout` the dtypes and shapes of a leaf. All ranks have agreed on it.
pub(super) fn mean(
    world: &mut State,
    operation: Operation,
    count: (usize, f64),
    own: Vec<Node<Leaf>>,
    layout: &[(DType, Shape)],
) -> Result<Leaf> {
    let mean = shared_mean(world, operation, count, own, layout);
    world.keep_failure(mean)
}

fn shared_mean(
    world: &mut State,
    operation: Operation,
    (count, total): (usize, f64),
    own: Vec<Node<Leaf>>,
    layout: &[(DType, Shape)],
) -> Result<Leaf> {
    let (rank, size) = world.place();
    if size == 1 {
        let mut tree = Tree::new(count);
        own.into_iter().try_for_each(|node| tree.node(node, add))?;
        let sum = tree.sum().unwrap_or_default();
        return sum.into_iter().map(|x| scaled(x, BinaryOp::Div, total)).collect();
    }
    let others = || (0..size).filter(|&other| other != rank);
    let nodes: Vec<_> = (0..size).map(|r| nodes_of(count, part(r, size, count))).collect();
    let sections: Vec<Section> = DTYPES.iter().map(|&dtype| Section::new(dtype, layout)).collect();

    // By section, then by node: this rank's tensors side by side.
    let mut flat: Vec<Vec<Host>> = Vec::new();
    let (mut sends, mut expected) = (Vec::new(), Vec::new());
    for section in &sections {
        let side_by_side = |node: &Node<Leaf>| section.side_by_side(&node.value);
        let flats: Vec<Host> = own.iter().map(side_by_side).collect::<Result<_>>()?;
        for to in others() {
            let slice = part(to, size, section.len);
            for flat in flats.iter().filter(|_| !slice.is_empty()) {
                sends.push((to, flat.narrow(0, slice.start, slice.len())?));
            }
        }
        let slice = part(rank, size, section.len);
        for from in others().filter(|_| !slice.is_empty()) {
            let message = (from, section.dtype, slice.len());
            expected.extend(std::iter::repeat_n(message, nodes[from].len()));
        }
        flat.push(flats);
    }
    drop(own);
    let mut received = world.exchange(operation, sends, expected)?.into_iter();

    let mut means = Vec::new();
    let (mut sends, mut expected) = (Vec::new(), Vec::new());
    for (section, flats) in sections.iter().zip(flat) {
        let slice = part(rank, size, section.len);
        if !slice.is_empty() {
            let mut tree = Tree::new(count);
            for (from, nodes) in nodes.iter().enumerate() {
                for (i, &Node { level, k, .. }) in nodes.iter().enumerate() {
                    let value = match from == rank {
                        true => flats[i].narrow(0, slice.start, slice.len())?,
                        false => received.next().expect("as many as expected"),
                    };
                    tree.node(Node { level, k, value }, |a, b| combine(a, &b))?;
                }
            }
            let sum = tree.sum().expect("the ranks' parts make up the whole");
            let mean = scaled(sum, BinaryOp::Div, total)?;
            sends.extend(others().map(|to| (to, mean.clone())));
            means.push(mean);
        }
        for from in others() {
            let slice = part(from, size, section.len);
            if !slice.is_empty() {
                expected.push((from, section.dtype, slice.len()));
            }
        }
    }
    let mut received = world.exchange(operation, sends, expected)?.into_iter();
    let mut means = means.into_iter();
    let mut leaf: Vec<Option<Host>> = vec![None; layout.len()];
    for section in &sections {
        let mut slices = Vec::new();
        for from in 0..size {
            if !part(from, size, section.len).is_empty() {
                let slice = if from == rank { means.next() } else { received.next() };
                slices.push(slice.expect("as many as expected"));
            }
        }
        section.cut(&slices, layout, &mut leaf)?;
    }
    Ok(leaf.into_iter().map(|x| x.expect("every dtype has its section")).collect())
}

/// The tensors of one dtype, side by side.
struct Section {
    dtype: DType,
    len: usize,
}

impl Section {
    fn new(dtype: DType, layout: &[(DType, Shape)]) -> Self {
        let own = layout.iter().filter(|(other, _)| *other == dtype);
        Section { dtype, len: own.map(|(_, shape)| shape.numel()).sum() }
    }

    fn side_by_side(&self, leaf: &Leaf) -> Result<Host> {
        side_by_side(self.dtype, leaf)
    }

    /// Puts the tensors of this dtype, out of the slices of all ranks, into their places in a leaf.
    fn cut(
        &self,
        slices: &[Host],
        layout: &[(DType, Shape)],
        leaf: &mut [Option<Host>],
    ) -> Result<()> {
        let mut pieces = Pieces { slices, slice: 0, start: 0 };
        for ((dtype, shape), place) in layout.iter().zip(leaf) {
            if *dtype == self.dtype {
                *place = Some(pieces.next(self.dtype, shape)?);
            }
        }
        Ok(())
    }
}

/// Tensors of one dtype as one, of a single axis.
pub(super) fn side_by_side(dtype: DType, tensors: &[Host]) -> Result<Host> {
    let tensors = tensors.iter().filter(|x| x.dtype() == dtype);
    let flat: Vec<Host> = tensors.map(|x| x.reshape(x.numel())).collect::<Result<_>>()?;
    match &flat[..] {
        [] => Tensor::zeros(0, dtype),
        [one] => one.contiguous(),
        _ => Tensor::cat(&flat.iter().collect::<Vec<_>>(), 0),
    }
}

/// Takes tensors from the slices, one after the other.
pub(super) struct Pieces<'a> {
    pub slices: &'a [Host],
    /// The slice, and the element in it, where the next tensor begins.
    pub slice: usize,
    pub start: usize,
}

impl Pieces<'_> {
    /// The next tensor: a view, unless it lies in several slices.
    pub fn next(&mut self, dtype: DType, shape: &Shape) -> Result<Host> {
        let mut missing = shape.numel();
        let mut pieces = Vec::new();
        while missing > 0 {
            let slice = &self.slices[self.slice];
            let len = missing.min(slice.numel() - self.start);
            pieces.push(slice.narrow(0, self.start, len)?);
            (missing, self.start) = (missing - len, self.start + len);
            if self.start == slice.numel() {
                (self.slice, self.start) = (self.slice + 1, 0);
            }
        }
        match &pieces[..] {
            [] => Tensor::zeros(*shape, dtype),
            [one] => one.reshape(*shape),
            _ => Tensor::cat(&pieces.iter().collect::<Vec<_>>(), 0)?.reshape(*shape),
        }
    }
}

//! The mean over micro-batches, with the same bits on every rank and for any number of ranks.
//!
//! ```text
//! local sums       each rank adds those of its micro-batches that fill nodes of the tree (tree.rs)
//! flatten          the tensors of a node become one bucket for each dtype, with one slice for each rank
//! reduce-scatter   rank r receives slice r of every node, completes the tree, and divides
//! all-gather       rank r sends its slice of the mean to all other ranks
//! ```
//!
//! For N bytes and R ranks with a power of two of micro-batches each, a rank sends and receives 2 N (R − 1) / R
//! bytes, the minimum for an all-reduce.

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

/// The tensors of a micro-batch: gradients, buffers, metrics. Each is `F32`, `F64` or `I64`.
pub(super) type Leaf = Vec<Host>;

/// The dtypes of a leaf's tensors.
const DTYPES: [DType; 3] = [DType::F32, DType::F64, DType::I64];

/// Adds floats. For integers, which are counters, it takes the maximum.
pub(super) fn add(a: Leaf, b: Leaf) -> Result<Leaf> {
    a.into_iter().zip(b).map(|(a, b)| combine(a, &b)).collect()
}

fn combine(a: Host, b: &Host) -> Result<Host> {
    let op = if a.dtype().is_float() { BinaryOp::Add } else { BinaryOp::Maximum };
    CpuBackend::binary(op, Arg::Owned(a.into_data()), b.data()).map(Tensor::from_data)
}

/// Multiplies or divides floats by a number. Returns integers unchanged.
pub(super) fn scaled(x: Host, op: BinaryOp, factor: f64) -> Result<Host> {
    if !x.dtype().is_float() || factor == 1.0 {
        return Ok(x);
    }
    let factor = Arg::Scalar(Scalar::Float(factor));
    CpuBackend::binary(op, Arg::Owned(x.into_data()), factor).map(Tensor::from_data)
}

/// Returns the sum over `count.0` micro-batches of all ranks, divided by `count.1`. `own` has the largest complete subtrees
/// of this rank's micro-batches, `layout` the dtypes and shapes of a leaf. All ranks must have agreed on both.
pub(super) fn mean(
    world: &mut State,
    operation: Operation,
    count: (usize, f64),
    own: Vec<Node<Leaf>>,
    layout: &[(DType, Shape)],
) -> Result<Leaf> {
    let mean = all_reduce(world, operation, count, own, layout);
    world.keep_failure(mean)
}

fn all_reduce(
    world: &mut State,
    operation: Operation,
    count: (usize, f64),
    own: Vec<Node<Leaf>>,
    layout: &[(DType, Shape)],
) -> Result<Leaf> {
    let (rank, size) = world.rank_and_size();
    if size == 1 {
        let mut tree = Tree::new(count.0);
        own.into_iter().try_for_each(|node| tree.node(node, add))?;
        let sum = tree.sum().unwrap_or_default();
        return sum.into_iter().map(|x| scaled(x, BinaryOp::Div, count.1)).collect();
    }
    let buckets: Vec<Bucket> = DTYPES.iter().map(|&dtype| Bucket::new(dtype, layout)).collect();
    let means = reduce_scatter(world, operation, count, own, &buckets)?;
    let others = || (0..size).filter(|&other| other != rank);
    let (mut sends, mut expected) = (Vec::new(), Vec::new());
    for (bucket, mean) in buckets.iter().zip(&means) {
        sends.extend(mean.iter().flat_map(|mean| others().map(|to| (to, mean.clone()))));
        let slices = others().map(|from| (from, part(from, size, bucket.len).len()));
        let slices = slices.filter(|&(_, len)| len > 0);
        expected.extend(slices.map(|(from, len)| (from, bucket.dtype, len)));
    }
    let mut received = world.exchange(operation, sends, expected)?.into_iter();
    let mut leaf: Vec<Option<Host>> = vec![None; layout.len()];
    for (bucket, mut mean) in buckets.iter().zip(means) {
        let mut slices = Vec::new();
        for from in 0..size {
            if !part(from, size, bucket.len).is_empty() {
                let slice = if from == rank { mean.take() } else { received.next() };
                slices.push(slice.expect("as many as expected"));
            }
        }
        bucket.unflatten(&slices, layout, &mut leaf)?;
    }
    Ok(leaf.into_iter().map(|x| x.expect("every dtype has its bucket")).collect())
}

/// Returns the mean of this rank's slice of each bucket, `None` where the slice is empty.
fn reduce_scatter(
    world: &mut State,
    operation: Operation,
    (count, total): (usize, f64),
    own: Vec<Node<Leaf>>,
    buckets: &[Bucket],
) -> Result<Vec<Option<Host>>> {
    let (rank, size) = world.rank_and_size();
    let others = || (0..size).filter(|&other| other != rank);
    let nodes: Vec<_> = (0..size).map(|r| nodes_of(count, part(r, size, count))).collect();
    // By bucket, then by node of this rank.
    let mut flat: Vec<Vec<Host>> = Vec::new();
    let (mut sends, mut expected) = (Vec::new(), Vec::new());
    for bucket in buckets {
        let flatten = |node: &Node<Leaf>| flatten(bucket.dtype, &node.value);
        let flats: Vec<Host> = own.iter().map(flatten).collect::<Result<_>>()?;
        for to in others() {
            let slice = part(to, size, bucket.len);
            for flat in flats.iter().filter(|_| !slice.is_empty()) {
                sends.push((to, flat.narrow(0, slice.start, slice.len())?));
            }
        }
        let slice = part(rank, size, bucket.len);
        for from in others().filter(|_| !slice.is_empty()) {
            let message = (from, bucket.dtype, slice.len());
            expected.extend(std::iter::repeat_n(message, nodes[from].len()));
        }
        flat.push(flats);
    }
    drop(own);
    let mut received = world.exchange(operation, sends, expected)?.into_iter();
    let mut reduce = |bucket: &Bucket, flats: Vec<Host>| {
        let slice = part(rank, size, bucket.len);
        if slice.is_empty() {
            return Ok(None);
        }
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
        let sum = tree.sum().expect("the nodes of all ranks complete the tree");
        scaled(sum, BinaryOp::Div, total).map(Some)
    };
    buckets.iter().zip(flat).map(|(bucket, flats)| reduce(bucket, flats)).collect()
}

/// The tensors of one dtype in a leaf, flattened.
struct Bucket {
    dtype: DType,
    len: usize,
}

impl Bucket {
    fn new(dtype: DType, layout: &[(DType, Shape)]) -> Self {
        let own = layout.iter().filter(|(other, _)| *other == dtype);
        Bucket { dtype, len: own.map(|(_, shape)| shape.numel()).sum() }
    }

    /// Reads the tensors of this dtype from the slices of all ranks, and writes them into a leaf.
    fn unflatten(
        &self,
        slices: &[Host],
        layout: &[(DType, Shape)],
        leaf: &mut [Option<Host>],
    ) -> Result<()> {
        let mut tensors = Unflatten { slices, slice: 0, start: 0 };
        for ((dtype, shape), tensor) in layout.iter().zip(leaf) {
            if *dtype == self.dtype {
                *tensor = Some(tensors.next(self.dtype, shape)?);
            }
        }
        Ok(())
    }
}

/// Joins the tensors of one dtype into a tensor with one axis.
pub(super) fn flatten(dtype: DType, tensors: &[Host]) -> Result<Host> {
    let tensors = tensors.iter().filter(|x| x.dtype() == dtype);
    let flat: Vec<Host> = tensors.map(|x| x.reshape(x.numel())).collect::<Result<_>>()?;
    match &flat[..] {
        [] => Tensor::zeros(0, dtype),
        [one] => one.contiguous(),
        _ => Tensor::cat(&flat.iter().collect::<Vec<_>>(), 0),
    }
}

/// Reads one tensor after another from the slices of a bucket.
pub(super) struct Unflatten<'a> {
    pub slices: &'a [Host],
    /// Index of the slice that contains the start of the next tensor.
    pub slice: usize,
    /// Index of the next tensor's first element within the slice.
    pub start: usize,
}

impl Unflatten<'_> {
    /// Returns the next tensor: a view, or a copy if it spans several slices.
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

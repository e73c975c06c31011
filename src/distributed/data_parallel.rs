//! [`DataParallel`]: gradients of a batch that is split over ranks.

use std::ops::Range;

use super::agreement::{Hash, Operation, Proposal};
use super::batch::Batch;
use super::model::{
    Named, all, buffers, is_constant, parameters, restore_buffers, set, set_buffers, set_parameters,
};
use super::reduce::{self, Leaf};
use super::tree::{Node, Tree, part};
use super::world::{World, pack, unpack};
use crate::autodiff::Gradients;
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::nn::{Visit, locate};
use crate::ops::BinaryOp;
use crate::rng::Rng;
use crate::runtime::recording::with_micro_batch;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Trains one model on all ranks of a world. Each rank computes the gradients of its part of a batch, and all ranks
/// get the mean, with the same bits for any number of ranks.
///
/// A batch is split into a fixed number of micro-batches, and their gradients are added in a fixed order. Losses and
/// parameters therefore depend on the number of micro-batches, but not on the number of ranks. There can be at most
/// as many ranks as micro-batches.
///
/// ```
/// use swath::distributed::{DataParallel, World};
/// use swath::nn::{Linear, loss};
/// use swath::optim::{Sgd, SgdOptions};
/// use swath::prelude::*;
///
/// let train = |world: World| -> Result<Vec<f32>> {
///     let mut model: Linear = Linear::new(3, 1, &mut Rng::seed(1))?;
///     let mut optimizer = Sgd::new(SgdOptions { learning_rate: 0.1, ..Default::default() })?;
///     let mut parallel = DataParallel::new(&world, &mut model, 4)?;
///     let mut rng = Rng::seed(2);
///     for _ in 0..10 {
///         // All ranks draw the same batch; each computes with its own rows.
///         let x = Tensor::<CpuBackend>::randn((16, 3), &mut rng)?;
///         let y = x.sum(Some(&[1]), true)?;
///         let mean = parallel.mean_gradients(&mut model, &(x, y), |model, micro| {
///             let (x, y) = micro.data;
///             loss::mse(&model.forward(&x)?, &y)
///         })?;
///         optimizer.step(&mut model, &mean.gradients)?;
///     }
///     model.weight.to_vec::<f32>()
/// };
/// let alone = train(World::local(1)?.remove(0))?;
/// std::thread::scope(|scope| {
///     let ranks = World::local(3)?.into_iter().map(|world| scope.spawn(move || train(world)));
///     for rank in ranks.collect::<Vec<_>>() {
///         assert_eq!(rank.join().unwrap()?, alone);
///     }
///     Ok::<(), Error>(())
/// })?;
/// # Ok::<(), Error>(())
/// ```
///
/// **Random numbers.** [`Dropout`](crate::nn::Dropout) and [`MicroBatch::rng`] draw separately for each micro-batch.
///
/// **Buffers.** Every micro-batch starts with the buffers as they were before the step; an error restores them. After
/// the step, a changed buffer of floats (such as the running mean of a batch norm) is the mean of its values after
/// each micro-batch. A changed buffer of integers (such as a counter) is the maximum.
///
/// **Backends.** Gradients are added on the CPU, so that the sum is the same for any number of ranks.
#[derive(Debug)]
pub struct DataParallel {
    world: World,
    micro_batches: usize,
    steps: u64,
}

/// A part of a batch.
#[derive(Clone, Debug)]
pub struct MicroBatch<D> {
    /// Index in the batch, from 0.
    pub index: usize,
    /// The range of rows in the batch.
    pub rows: Range<usize>,
    /// The rows themselves.
    pub data: D,
    stream: u64,
}

impl<D> MicroBatch<D> {
    /// Random numbers for this micro-batch of this step. They do not depend on the rank.
    pub fn rng(&self, seed: u64) -> Rng {
        Rng::seed(seed).stream(self.stream)
    }
}

/// The loss of a micro-batch, and other numbers to average. A loss alone converts into it.
#[derive(Clone, Debug)]
pub struct Outcome<B: Backend> {
    /// The mean over the rows of the micro-batch, without axes.
    pub loss: Tensor<B>,
    /// Means over the rows. Every micro-batch has the same number of them.
    pub metrics: Vec<f64>,
}

impl<B: Backend> From<Tensor<B>> for Outcome<B> {
    fn from(loss: Tensor<B>) -> Self {
        Outcome { loss, metrics: Vec::new() }
    }
}

/// Means over all rows of a batch, the same on every rank.
#[derive(Debug)]
pub struct Mean<B: Backend> {
    /// The loss.
    pub loss: f64,
    /// The means of [`Outcome::metrics`].
    pub metrics: Vec<f64>,
    /// The gradient of every parameter; 0 if the loss does not depend on it.
    pub gradients: Gradients<B>,
}

/// Hash of names, dtypes and shapes.
pub(super) fn layout_of<'a, B: Backend>(tensors: impl Iterator<Item = &'a Named<B>>) -> Hash {
    tensors.fold(Hash::new(), |hash, (path, x)| {
        hash.bytes(path.as_bytes()).bytes(x.dtype().name().as_bytes()).shape(x.shape())
    })
}

impl DataParallel {
    /// Copies the parameters and buffers of rank 0 to the models of all ranks.
    ///
    /// # Errors
    /// [`Error::TooManyRanks`] if there are more ranks than micro-batches; [`Error::Mismatch`] if the models or
    /// the numbers of micro-batches differ; [`Error::InvalidArgument`] for a part of the model that cannot be
    /// modified; [`Error::Stalled`], [`Error::Transport`].
    pub fn new<B: Backend>(
        world: &World,
        model: &mut (impl Visit<B> + ?Sized),
        micro_batches: usize,
    ) -> Result<Self> {
        let ranks = world.size();
        let tensors = all(model);
        let [trained, buffered] = [parameters(model).len(), buffers(model).len()];
        let lengths = layout_of(tensors.iter()).number(trained as u64).number(buffered as u64);
        let layout = lengths.finish();
        let proposal =
            Proposal { count: micro_batches, layout, ..Proposal::of(Operation::Broadcast) };
        let own = tensors.iter().map(|(_, x)| pack(x)).collect::<Result<_>>();
        let own = world.state().or_report(own)?;
        world.state().agree(&proposal)?;
        if ranks > micro_batches {
            return Err(Error::TooManyRanks { ranks, micro_batches });
        }
        if ranks > 1 {
            let sent = world.state().broadcast(own)?;
            let values = tensors.iter().zip(sent).map(|((_, x), sent)| unpack(x, sent));
            let mut values: Vec<Tensor<B>> = values.collect::<Result<_>>()?;
            let mut others = values.split_off(trained);
            let constants = others.split_off(buffered);
            set_parameters(model, values)?;
            set_buffers(model, &others)?;
            set(model, &constants, is_constant)?;
        }
        Ok(DataParallel { world: world.clone(), micro_batches, steps: 0 })
    }

    /// The world.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The number of micro-batches in a batch.
    pub fn micro_batches(&self) -> usize {
        self.micro_batches
    }

    /// Sets the number of steps taken. Call it after loading a checkpoint, because [`MicroBatch::rng`] depends on it.
    pub fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
    }

    /// Fails on every rank unless all ranks have the same parameters and buffers, bit for bit. Call it after each rank
    /// has loaded a checkpoint; a step compares names, shapes and dtypes only.
    ///
    /// # Errors
    /// [`Error::Mismatch`], [`Error::Stalled`], [`Error::Transport`].
    pub fn check_model<B: Backend>(&self, model: &(impl Visit<B> + ?Sized)) -> Result<()> {
        let mut hash = Hash::new();
        for (path, x) in all(model) {
            hash = hash.bytes(path.as_bytes()).shape(x.shape());
            for number in pack(&x)?.to_dtype(DType::F64)?.to_vec::<f64>()? {
                hash = hash.number(number.to_bits());
            }
        }
        self.world.agree(hash.finish())
    }

    /// Calls `f` for this rank's micro-batches of `batch`, and returns the mean loss and gradients over all
    /// micro-batches. Every rank passes the same batch, or its indices. `f` returns the mean loss of its rows. If
    /// the rows cannot be split evenly, each micro-batch is weighted by its number of rows.
    ///
    /// # Errors
    /// Those of `f`, which are an [`Error::Mismatch`] on the other ranks; [`Error::NotScalar`] for a loss
    /// with several elements; [`Error::InvalidArgument`] for a batch of fewer rows than micro-batches;
    /// [`Error::Mismatch`], [`Error::Stalled`], [`Error::Transport`].
    pub fn mean_gradients<B, M, D, L>(
        &mut self,
        model: &mut M,
        batch: &D,
        f: impl FnMut(&M, MicroBatch<D::Part>) -> Result<L>,
    ) -> Result<Mean<B>>
    where
        B: Backend,
        M: Visit<B>,
        D: Batch + ?Sized,
        L: Into<Outcome<B>>,
    {
        let parameters = parameters(model);
        let before = buffers(model);
        let part = match self.own_part((&parameters, &before), model, batch, f) {
            Ok(part) => part,
            Err(error) => {
                self.world.state().report_failure();
                restore_buffers(model, &before)?;
                return Err(error);
            }
        };
        let changed = || part.changed.iter().map(|&i| &before[i]);
        let layout = layout_of(parameters.iter().chain(changed()));
        let mut proposal = Proposal::of(Operation::MeanGradients);
        proposal.count = self.micro_batches;
        proposal.step = self.steps;
        proposal.layout = layout.number(part.layout.len() as u64).shape(&part.metrics).finish();
        proposal.value = part.rows as u64;
        let mut world = self.world.state();
        let total = if part.is_weighted { part.rows } else { self.micro_batches } as f64;
        let count = (self.micro_batches, total);
        let mean = world.agree(&proposal).and_then(|()| {
            reduce::mean(&mut world, proposal.operation, count, part.nodes, &part.layout)
        });
        drop(world);
        if mean.is_err() {
            restore_buffers(model, &before)?;
        }
        let mean = mean?;
        self.steps += 1;

        let mut mean = mean.into_iter();
        let mut gradients = Gradients::new();
        for (_, x) in &parameters {
            let gradient = mean.next().expect("a gradient for each parameter");
            gradients.accumulate(x, unpack(x, gradient)?)?;
        }
        if !part.changed.is_empty() {
            let mut after: Vec<Tensor<B>> = before.iter().map(|(_, x)| x.clone()).collect();
            for &i in &part.changed {
                let value = mean.next().expect("a value for each buffer that changed");
                after[i] = unpack(&before[i].1, value)?;
            }
            set_buffers(model, &after)?;
        }
        let mut metrics = mean.next().expect("the metrics come last").to_vec::<f64>()?;
        let loss = metrics.remove(0);
        Ok(Mean { loss, metrics, gradients })
    }

    /// Runs this rank's micro-batches, and adds those that fill nodes of the tree.
    fn own_part<B, M, D, L>(
        &self,
        (parameters, before): (&[Named<B>], &[Named<B>]),
        model: &mut M,
        batch: &D,
        mut f: impl FnMut(&M, MicroBatch<D::Part>) -> Result<L>,
    ) -> Result<Part>
    where
        B: Backend,
        M: Visit<B>,
        D: Batch + ?Sized,
        L: Into<Outcome<B>>,
    {
        let (op, count, rows) = ("mean_gradients", self.micro_batches, batch.rows()?);
        if rows < count {
            let reason =
                format!("expected at least {count} rows, one for each micro-batch, got {rows}");
            return Err(Error::InvalidArgument { op, reason });
        }
        let is_weighted = rows % count != 0;
        let mut tree: Tree<Leaf> = Tree::new(count);
        let mut changed: Option<Vec<usize>> = None;
        let mut found = (Vec::new(), Shape::scalar());
        for index in part(self.world.rank(), self.world.size(), count) {
            if changed.as_ref().is_some_and(|changed| !changed.is_empty()) {
                restore_buffers(model, before)?;
            }
            let rows = part(index, count, rows);
            let stream = self.steps.wrapping_mul(count as u64).wrapping_add(index as u64);
            let data = batch.part(rows.clone())?;
            let weight = rows.len() as f64;
            let micro = MicroBatch { index, rows, data, stream };
            let (outcome, gradients) = with_micro_batch(index as u64, || {
                let outcome = f(model, micro).map_err(|error| locate(model, error))?;
                let outcome: Outcome<B> = outcome.into();
                let gradients = outcome.loss.backward()?;
                Ok::<_, Error>((outcome, gradients))
            })?;

            let after = buffers(model);
            let changed = changed_alike(op, index, (before, &after), &mut changed)?;
            let loss = B::item(outcome.loss.data())?.to_f64();
            let metrics = [&[loss], outcome.metrics.as_slice()].concat();
            let buffers = changed.iter().map(|&i| &after[i].1);
            let mut leaf = leaf_of(parameters, gradients, buffers, &metrics)?;
            if is_weighted {
                let scaled = |x| reduce::scaled(x, BinaryOp::Mul, weight);
                leaf = leaf.into_iter().map(scaled).collect::<Result<_>>()?;
            }
            let layout: Vec<_> = leaf.iter().map(|x| (x.dtype(), *x.shape())).collect();
            let metrics = Shape::from(metrics.len());
            if !found.0.is_empty() && found.0 != layout {
                let reason = format!("micro-batch {index} has a different number of metrics");
                return Err(Error::InvalidArgument { op, reason });
            }
            found = (layout, metrics);
            tree.leaf(index, leaf, reduce::add)?;
        }
        let (layout, metrics) = found;
        let changed = changed.unwrap_or_default();
        Ok(Part { nodes: tree.nodes, layout, metrics, changed, rows, is_weighted })
    }

    /// Calls `f` for each of `count` items, such as the batches of an evaluation, and returns the means of its results.
    /// The ranks share the items. The means are the same for any number of ranks. Nothing is recorded.
    ///
    /// # Errors
    /// Those of `f`; [`Error::InvalidArgument`] if `count` is 0; [`Error::Mismatch`], [`Error::Stalled`],
    /// [`Error::Transport`].
    pub fn mean_of<const N: usize>(
        &self,
        count: usize,
        mut f: impl FnMut(usize) -> Result<[f64; N]>,
    ) -> Result<[f64; N]> {
        let mut tree = Tree::new(count);
        let mut own_part = || {
            if count == 0 {
                let reason = "expected at least one item, got 0".to_owned();
                return Err(Error::InvalidArgument { op: "mean_of", reason });
            }
            for k in part(self.world.rank(), self.world.size(), count) {
                let numbers = crate::autodiff::no_grad(|| f(k))?;
                tree.leaf(k, vec![Tensor::from_slice(&numbers, N)?], reduce::add)?;
            }
            Ok(())
        };
        if let Err(error) = own_part() {
            self.world.state().report_failure();
            return Err(error);
        }
        let operation = Operation::MeanOf;
        let mut world = self.world.state();
        world.agree(&Proposal { count, layout: N as u64, ..Proposal::of(operation) })?;
        let layout = [(DType::F64, Shape::from(N))];
        let mean = reduce::mean(&mut world, operation, (count, count as f64), tree.nodes, &layout)?;
        let mean = mean[0].to_vec::<f64>()?;
        Ok(std::array::from_fn(|i| mean[i]))
    }
}

/// A rank's contribution to a step.
struct Part {
    nodes: Vec<Node<Leaf>>,
    /// Dtypes and shapes of a leaf's tensors.
    layout: Vec<(DType, Shape)>,
    metrics: Shape,
    /// Indices of the buffers that changed.
    changed: Vec<usize>,
    rows: usize,
    is_weighted: bool,
}

/// Moves a tensor to the CPU and widens it to `F32`, `F64` or `I64`.
fn host<B: Backend>(x: Tensor<B>) -> Result<Tensor<CpuBackend>> {
    let wide = match x.dtype().is_float() {
        true => x.dtype().at_least_f32(),
        false => DType::I64,
    };
    let x: Tensor<CpuBackend> = if x.is_tracked() { x.detach() } else { x }.to_backend()?;
    if x.dtype() == wide { Ok(x) } else { x.to_dtype(wide) }
}

/// True if two tensors share their memory. Values are compared where the host cannot see the memory.
fn is_same<B: Backend>(a: &Tensor<B>, b: &Tensor<B>) -> bool {
    match (B::host_bytes(a.data()), B::host_bytes(b.data())) {
        (Some(a), Some(b)) => a.as_ptr() == b.as_ptr() && a.len() == b.len(),
        _ => match (B::to_host(a.data()), B::to_host(b.data())) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        },
    }
}

/// What a micro-batch adds to the tree: gradients, changed buffers, then loss and metrics.
fn leaf_of<'a, B: Backend>(
    parameters: &[Named<B>],
    mut gradients: Gradients<B>,
    buffers: impl Iterator<Item = &'a Tensor<B>>,
    metrics: &[f64],
) -> Result<Leaf> {
    let mut leaf = Leaf::new();
    for (_, x) in parameters {
        let gradient = gradients.remove(x).map_or_else(|| x.detach().zeros_like(), Ok)?;
        leaf.push(host(gradient)?);
    }
    for buffer in buffers {
        leaf.push(host(buffer.clone())?);
    }
    leaf.push(Tensor::from_slice(metrics, metrics.len())?);
    Ok(leaf)
}

/// The buffers that a micro-batch has changed. `expected` is what the first one changed.
fn changed_alike<'a, B: Backend>(
    op: &'static str,
    index: usize,
    (before, after): (&[Named<B>], &[Named<B>]),
    expected: &'a mut Option<Vec<usize>>,
) -> Result<&'a [usize]> {
    let differs = |i: &usize| !is_same(&before[*i].1, &after[*i].1);
    let now: Vec<usize> = (0..before.len()).filter(differs).collect();
    let expected = expected.get_or_insert_with(|| now.clone());
    if let Some(i) = (0..before.len()).find(|i| now.contains(i) != expected.contains(i)) {
        let path = &before[i].0;
        let reason = format!(
            "the buffer `{path}` changed in some micro-batches only: compare {index} with those before it"
        );
        return Err(Error::InvalidArgument { op, reason });
    }
    Ok(expected)
}

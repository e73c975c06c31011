//! [`ShardedOptimizer`]: an optimizer with its state split over the ranks.

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::agreement::{Hash, Operation, Proposal};
use super::data_parallel::layout_of;
use super::model::{parameters, set_parameters};
use super::reduce::{Unflatten, flatten};
use super::tree::part;
use super::world::{World, pack};
use crate::autodiff::Gradients;
use crate::backend::Backend;
use crate::backend::cpu::CpuBackend;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::nn::{Visit, Visitor, VisitorMut, for_each_tensor, is_trained};
use crate::ops::UpdateOp;
use crate::optim::{Optimizer, PerParameter, Step, Update};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// An optimizer that keeps 1/R of its state on each of R ranks. Each rank steps its slice of every parameter, and an
/// all-gather then gives every rank the new values. Parameters get the same bits as with the unsharded optimizer.
///
/// The formula must be element-wise ([`Update::is_elementwise`]), as it is for every optimizer of
/// [`optim`](crate::optim). All ranks must call [`step`](Optimizer::step) and [`state`](Optimizer::state). The state
/// has the format of the unsharded optimizer, so any number of ranks can load a checkpoint. Ranks compare their options
/// by the text that [`Debug`] gives.
///
/// ```
/// use swath::distributed::{ShardedOptimizer, World};
/// use swath::optim::{AdamWOptions, Optimizer};
/// use swath::prelude::*;
///
/// let world = World::local(1)?.remove(0);
/// let mut optimizer = ShardedOptimizer::new(&world, AdamWOptions::default())?;
/// let mut w = tensor![1.0, -2.0].requires_grad();
/// let grads = w.square()?.sum(None, false)?.backward()?;
/// optimizer.step(&mut w, &grads)?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct ShardedOptimizer<U, B: Backend = CpuBackend> {
    world: World,
    inner: PerParameter<Sliced<U>, B>,
}

/// An update of slices. It gives the formula the shape of the whole parameter.
#[derive(Debug)]
struct Sliced<U> {
    update: U,
    shapes: BTreeMap<String, Shape>,
}

impl<U> Sliced<U> {
    fn whole<'a>(&'a self, step: &Step<'a>) -> Step<'a> {
        let shape = self.shapes.get(step.path).unwrap_or(step.shape);
        Step { shape, ..*step }
    }
}

impl<B: Backend, U: Update<B>> Update<B> for Sliced<U> {
    fn name(&self) -> &'static str {
        self.update.name()
    }

    fn learning_rate(&mut self) -> &mut f64 {
        self.update.learning_rate()
    }

    fn check(&self) -> Result<()> {
        self.update.check()
    }

    fn state(&self) -> &'static [&'static str] {
        self.update.state()
    }

    fn is_elementwise(&self) -> bool {
        self.update.is_elementwise()
    }

    fn initial_state(&self) -> f64 {
        self.update.initial_state()
    }

    fn update(
        &self,
        parameter: &Tensor<B>,
        gradient: &Tensor<B>,
        state: &mut [Tensor<B>],
        step: &Step<'_>,
    ) -> Result<Tensor<B>> {
        self.update.update(parameter, gradient, state, &self.whole(step))
    }

    fn kernel(&self, step: &Step<'_>) -> Option<UpdateOp> {
        self.update.kernel(&self.whole(step))
    }
}

/// Slices of parameters, with the paths of the parameters.
struct Slices<B: Backend>(Vec<(String, Tensor<B>)>);

impl<B: Backend> Visit<B> for Slices<B> {
    fn visit(&self, visitor: &mut dyn Visitor<B>) {
        for (path, slice) in &self.0 {
            visitor.enter(path);
            slice.visit(visitor);
            visitor.leave();
        }
    }

    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut<B>) {
        for (path, slice) in &mut self.0 {
            visitor.enter(path);
            slice.visit_mut(visitor);
            visitor.leave();
        }
    }
}

impl<U: Update<B> + Debug, B: Backend> ShardedOptimizer<U, B> {
    /// Returns an optimizer with these options, without state.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] as for [`PerParameter::new`], and unless the formula is element-wise.
    pub fn new(world: &World, update: U) -> Result<Self> {
        if !update.is_elementwise() {
            let op = update.name();
            let reason =
                "expected an element-wise formula; this one needs whole parameters".to_owned();
            return Err(Error::InvalidArgument { op, reason });
        }
        let inner = PerParameter::new(Sliced { update, shapes: BTreeMap::new() })?;
        Ok(ShardedOptimizer { world: world.clone(), inner })
    }

    /// Bytes of this rank's share of the state.
    pub fn own_bytes(&self) -> usize {
        self.inner.state_bytes()
    }

    /// Hashes the options: their text without addresses of functions, and, to see what functions return, the kernels'
    /// ops or, for a formula without a kernel, its results for one element.
    fn options(&mut self, parameters: &[(String, Tensor<B>)]) -> Result<Hash> {
        let rate = self.inner.learning_rate();
        let update = &mut self.inner.update_mut().update;
        *update.learning_rate() = rate;
        let text = format!("{update:?}");
        let words = text.split([' ', ',']).filter(|word| !word.starts_with("0x"));
        let mut hash = words.fold(Hash::new(), |hash, word| hash.bytes(word.as_bytes()));
        hash = hash.number(update.initial_state().to_bits());
        for (path, x) in parameters {
            let step = Step { path, shape: x.shape(), number: 2 };
            if let Some(op) = update.kernel(&step) {
                hash = hash.bytes(format!("{op:?}").as_bytes());
                continue;
            }
            let element = |value: f64| {
                let (op, dtype) = (update.name(), B::wide(None));
                Tensor::<B>::full_scalar(op, Shape::scalar(), Scalar::Float(value), dtype)
            };
            let names = 1..=update.state().len();
            let state: Result<Vec<_>> = names.map(|i| element(1.0 / (i * i) as f64)).collect();
            let mut results = state?;
            let new = update.update(&element(1.5)?, &element(-0.75)?, &mut results, &step)?;
            results.push(new);
            for result in results {
                hash = hash.number(B::item(result.data())?.to_f64().to_bits());
            }
        }
        Ok(hash)
    }

    /// Returns this rank's slice of a tensor.
    fn slice(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        let own = part(self.world.rank(), self.world.size(), x.numel());
        x.detach().reshape(x.numel())?.narrow(0, own.start, own.len())
    }

    /// All-gather: returns whole tensors with the dtypes and shapes of `like`. `own` has this rank's slices. All ranks
    /// must have agreed on `like`.
    fn all_gather(
        &self,
        operation: Operation,
        own: Vec<Tensor<B>>,
        like: &[(DType, Shape)],
    ) -> Result<Vec<Tensor<B>>> {
        let (rank, size) = (self.world.rank(), self.world.size());
        let own = own.iter().map(pack).collect::<Result<Vec<_>>>();
        let own = self.world.state().keep_failure(own)?;
        let mut dtypes: Vec<DType> = Vec::new();
        for (dtype, _) in like {
            if !dtypes.contains(dtype) {
                dtypes.push(*dtype);
            }
        }
        let len = |rank: usize, dtype: DType| -> usize {
            let same = like.iter().filter(|(other, _)| *other == dtype);
            same.map(|(_, shape)| part(rank, size, shape.numel()).len()).sum()
        };
        let others = || (0..size).filter(|&other| other != rank);
        let flat: Result<Vec<_>> = dtypes.iter().map(|&dtype| flatten(dtype, &own)).collect();
        let flat = self.world.state().keep_failure(flat)?;
        let (mut sends, mut expected) = (Vec::new(), Vec::new());
        for (&dtype, flat) in dtypes.iter().zip(&flat) {
            sends.extend(others().map(|to| (to, flat.clone())));
            expected.extend(others().map(|from| (from, dtype, len(from, dtype))));
        }
        let mut received = self.world.state().exchange(operation, sends, expected)?.into_iter();
        let mut ranks: Vec<Vec<Tensor<CpuBackend>>> = Vec::new();
        for flat in flat {
            let flat_of = |from| match from == rank {
                true => flat.clone(),
                false => received.next().expect("as many as expected"),
            };
            ranks.push((0..size).map(flat_of).collect());
        }
        let mut offsets: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let mut whole = Vec::new();
        for (dtype, shape) in like {
            let bucket = dtypes.iter().position(|other| other == dtype).expect("collected above");
            let mut pieces = Vec::new();
            for (from, flat) in ranks[bucket].iter().enumerate() {
                let len = part(from, size, shape.numel()).len();
                let start = offsets.entry((bucket, from)).or_default();
                if len > 0 {
                    pieces.push(flat.narrow(0, *start, len)?);
                }
                *start += len;
            }
            let mut tensors = Unflatten { slices: &pieces, slice: 0, start: 0 };
            whole.push(tensors.next(*dtype, shape)?.to_backend()?);
        }
        Ok(whole)
    }

    /// Steps this rank's slices of the parameters, and returns the new values.
    fn own_step(
        &mut self,
        parameters: &[(String, Tensor<B>)],
        grads: &Gradients<B>,
    ) -> Result<Vec<Tensor<B>>> {
        let mut slices = Vec::new();
        let mut slice_grads = Gradients::new();
        for (path, x) in parameters {
            let gradient = grads.wrt(x).map_err(|error| match error {
                Error::NoGradient { op, reason } => {
                    Error::NoGradient { op, reason: format!("`{path}`: {reason}") }
                }
                error => error,
            })?;
            let slice = self.slice(x)?.contiguous()?.requires_grad();
            slice_grads.accumulate(&slice, self.slice(gradient)?)?;
            slices.push((path.clone(), slice));
        }
        let mut slices = Slices(slices);
        self.inner.step(&mut slices, &slice_grads)?;
        Ok(slices.0.into_iter().map(|(_, slice)| slice.detach()).collect())
    }
}

impl<U: Update<B> + Debug, B: Backend> Optimizer<B> for ShardedOptimizer<U, B> {
    fn step(&mut self, model: &mut dyn Visit<B>, grads: &Gradients<B>) -> Result<()> {
        let op = Update::<B>::name(self.inner.update());
        let parameters = parameters(model);
        let mut options = self.options(&parameters);
        for_each_tensor(model, |path, x, kind| {
            if let Err(error) = is_trained(op, path, x, kind) {
                options = Err(error);
            }
        });
        let options = self.world.state().or_report(options)?;
        let proposal = Proposal {
            layout: layout_of(parameters.iter()).finish(),
            value: options.finish(),
            ..Proposal::of(Operation::ShardedStep)
        };
        self.world.state().agree(&proposal)?;
        let shapes = &mut self.inner.update_mut().shapes;
        let mut known = parameters.iter().map(|(path, x)| {
            let known = *shapes.entry(path.clone()).or_insert(*x.shape());
            if known == *x.shape() {
                return Ok(());
            }
            let reason =
                format!("`{path}` has shape {}, but its state has shape {known}", x.shape());
            Err(Error::InvalidArgument { op, reason })
        });
        // The ranks may have loaded states of different shapes.
        let known = known.try_for_each(|result| result);
        let own = known.and_then(|()| self.own_step(&parameters, grads));
        let own = self.world.state().or_report(own)?;
        self.world.state().agree(&proposal)?;
        let like: Vec<_> = parameters.iter().map(|(_, x)| (x.dtype(), *x.shape())).collect();
        let values = self.all_gather(proposal.operation, own, &like)?;
        drop(parameters);
        set_parameters(model, values)
    }

    fn learning_rate(&self) -> f64 {
        self.inner.learning_rate()
    }

    fn set_learning_rate(&mut self, rate: f64) {
        self.inner.set_learning_rate(rate);
    }

    /// Gathers the state of all ranks. Every rank must call it.
    fn state(&self) -> Result<Vec<(String, Tensor<B>)>> {
        let mut state = self.inner.state()?;
        let is_slice = |(_, x): &&mut (String, Tensor<B>)| x.rank() > 0;
        let slices: Vec<_> = state.iter_mut().filter(is_slice).collect();
        let shape = |name: &str| {
            let path = name.rsplit_once('.').map_or("", |(path, _)| path);
            self.inner.update().shapes.get(path).copied().unwrap_or(Shape::scalar())
        };
        let like: Vec<_> = slices.iter().map(|(name, x)| (x.dtype(), shape(name))).collect();
        let names = slices
            .iter()
            .fold(Hash::new(), |hash, (name, _)| hash.bytes(name.as_bytes()).shape(&shape(name)));
        let operation = Operation::ShardedState;
        self.world
            .state()
            .agree(&Proposal { layout: names.finish(), ..Proposal::of(operation) })?;
        let own = slices.iter().map(|(_, x)| x.clone()).collect();
        for ((_, x), whole) in slices.into_iter().zip(self.all_gather(operation, own, &like)?) {
            *x = whole;
        }
        Ok(state)
    }

    fn load_state(&mut self, state: Vec<(String, Tensor<B>)>) -> Result<()> {
        let mut shapes = BTreeMap::new();
        let mut own = Vec::new();
        for (name, x) in state {
            match (name.rsplit_once('.'), x.rank()) {
                (Some((path, entry)), _) if entry != "step" => {
                    let shape = *shapes.entry(path.to_owned()).or_insert(*x.shape());
                    if shape != *x.shape() {
                        let op = Update::<B>::name(self.inner.update());
                        let reason = format!(
                            "expected state of one shape for `{path}`, got {shape} and {}",
                            x.shape()
                        );
                        return Err(Error::InvalidArgument { op, reason });
                    }
                    let slice = self.slice(&x)?.contiguous()?;
                    own.push((name, slice));
                }
                _ => own.push((name, x)),
            }
        }
        self.inner.load_state(own)?;
        self.inner.update_mut().shapes = shapes;
        Ok(())
    }
}

//! Checkpointing: a function whose intermediate values are not kept for the backward pass, which
//! runs it again instead (Griewank and Walther, Algorithm 799: Revolve, 2000; Chen, Xu, Zhang and
//! Guestrin, Training Deep Nets with Sublinear Memory Cost, 2016).
//!
//! ```text
//! first run   every result gets a node, without rule and inputs           ids and drawn values: to the tape
//!             the nodes of the outputs := { function, tape, nodes from outside that it used }
//! backward    the walk reaches an output: run the function again, recorded, with the ids of the tape
//!             replace the outputs in the walk's order by the replayed ones, insert what they depend on
//! ```
//!
//! 1. The replayed nodes have the ids of the first run, so the walk continues as if they had
//!    always been there. Gradients have the bits of the plain run.
//! 2. The replay reads the same tensors, so that its nodes depend on the same leaves as a plain run:
//!    parameters that the function captures have their gradients like its declared inputs.
//! 3. In the first run of an enclosing function nothing is kept anyway, and a nested one is called
//!    as it is. It is checkpointed in the replay of the enclosing one.
//! 4. A result of the first run that leaves the function by another way than its outputs has a node
//!    without rule: a backward pass through it is an error, and no gradient is lost in silence.

use std::fmt;
use std::sync::Arc;

use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::runtime::parallel::even_start;
use crate::runtime::recording::{FIRST_RUN, REPLAY, has, is_recording, with_flags};
use crate::runtime::shared::Shared;
use crate::shape::Shape;
use crate::tensor::Tensor;

use super::graph::{GraphNode, InputGradients, Recorded, Rule, Upstream, shared_rule};
use super::tape::{Counts, Tape, first_run, note, replay};

const OP: &str = "checkpoint";

/// True in the first run of a checkpointed function, which keeps nothing for the backward pass, and
/// in [`with_checkpoint_mode`].
pub fn is_checkpointing() -> bool {
    has(FIRST_RUN)
}

/// True while a backward pass runs a checkpointed function again. A layer that updates its state in
/// each call, such as running statistics, must not do so then.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use swath::autodiff::is_recomputing;
/// use swath::prelude::*;
///
/// let calls = Arc::new(AtomicUsize::new(0));
/// let (x, counter) = (tensor![1.0].requires_grad(), calls.clone());
/// let y = checkpoint_with(&[&x], move |xs| {
///     counter.fetch_add(usize::from(!is_recomputing()), Ordering::Relaxed);
///     xs[0].exp()
/// })?;
/// y.backward()?;
/// assert_eq!(calls.load(Ordering::Relaxed), 1);
/// # Ok::<(), Error>(())
/// ```
pub fn is_recomputing() -> bool {
    has(REPLAY)
}

/// Runs `f` as the first run of a checkpointed function runs: results of tracked tensors are tracked,
/// but nothing is kept for them, and a backward pass through them is an error. The mode is that of the
/// calling thread and is restored afterwards, also if `f` panics.
///
/// ```
/// use swath::prelude::*;
/// let x = tensor![1.0].requires_grad();
/// let y = with_checkpoint_mode(|| {
///     assert!(is_checkpointing());
///     x.exp()
/// })?;
/// assert!(matches!(y.backward(), Err(Error::NoGradient { .. })));
/// # Ok::<(), Error>(())
/// ```
pub fn with_checkpoint_mode<R>(f: impl FnOnce() -> R) -> R {
    with_flags(FIRST_RUN, 0, f)
}

/// What a checkpointed function returns: a tensor, or a `Vec`, an array or a tuple of two to four of
/// such.
#[diagnostic::on_unimplemented(
    message = "a checkpointed function returns tensors, not `{Self}`",
    label = "not a tensor, or several",
    note = "return a tensor, or a `Vec`, an array or a tuple of two to four of such"
)]
pub trait CheckpointOutput<B: Backend> {
    /// The tensors, in order.
    fn tensors(&self) -> Vec<&Tensor<B>>;
}

impl<B: Backend> CheckpointOutput<B> for Tensor<B> {
    fn tensors(&self) -> Vec<&Tensor<B>> {
        vec![self]
    }
}

impl<B: Backend, Y: CheckpointOutput<B>> CheckpointOutput<B> for Vec<Y> {
    fn tensors(&self) -> Vec<&Tensor<B>> {
        self.iter().flat_map(Y::tensors).collect()
    }
}

impl<B: Backend, Y: CheckpointOutput<B>, const N: usize> CheckpointOutput<B> for [Y; N] {
    fn tensors(&self) -> Vec<&Tensor<B>> {
        self.iter().flat_map(Y::tensors).collect()
    }
}

macro_rules! tuple_outputs {
    ($(($($Y:ident $y:ident),*);)*) => {$(
        impl<B: Backend, $($Y: CheckpointOutput<B>),*> CheckpointOutput<B> for ($($Y),*) {
            fn tensors(&self) -> Vec<&Tensor<B>> {
                let ($($y),*) = self;
                [$($y.tensors()),*].concat()
            }
        }
    )*};
}
tuple_outputs! {
    (Y y, Z z);
    (X x, Y y, Z z);
    (W w, X x, Y y, Z z);
}

/// Runs `f` without keeping its intermediate values. A backward pass runs it again, recorded, when
/// it reaches one of the outputs: memory for the time of one more forward run.
///
/// Gradients are bit for bit those of the plain run. `inputs` are the tensors that `f` depends on;
/// `f` captures them by value, as clones. Other tracked tensors that it captures, such as parameters
/// of a layer, have their gradients too.
///
/// Both runs must do the same. Dropout draws its masks once; other random numbers and changing
/// states go through [`replayed`](super::replayed) or ask [`is_recomputing`]. Gradients that `f`
/// itself needs are computed by [`vjp`](super::vjp) or a function like it, on the calling thread. Calls
/// can be nested. Inside [`no_grad`](super::no_grad) `f` is just called.
///
/// ```
/// use swath::prelude::*;
/// let (x, w) = (tensor![1.0, 2.0].requires_grad(), tensor![3.0, 4.0].requires_grad());
/// let y = checkpoint({
///     let (x, w) = (x.clone(), w.clone());
///     move || x.mul(&w)?.exp()?.sum(None, false)
/// }, &[&x, &w])?;
/// let plain = x.mul(&w)?.exp()?.sum(None, false)?;
/// let (grads, expected) = (y.backward()?, plain.backward()?);
/// assert_eq!(grads.wrt(&w)?.to_vec::<f32>()?, expected.wrt(&w)?.to_vec::<f32>()?);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Errors of `f`. A backward pass returns [`Error::InvalidArgument`] if the second run differs in
/// the number of its draws, in the number, shape or dtype of its outputs, or in its recorded
/// operations: their number and order, and the shape and dtype of each result.
pub fn checkpoint<B: Backend, Y: CheckpointOutput<B>>(
    f: impl Fn() -> Result<Y> + Send + Sync + 'static,
    inputs: &[&Tensor<B>],
) -> Result<Y> {
    // The first run finds the inputs, and those that are not declared.
    let _ = inputs;
    if !is_recording() || is_checkpointing() {
        return f();
    }
    let (y, tape, used) = first_run(|| {
        let y = f()?;
        note(&y.tensors().into_iter().map(|y| y.node().cloned()).collect());
        Ok(y)
    })?;
    let outcome = Outcome::new(&y.tensors(), tape.counts(), &tape);
    let run = Box::new(move || Ok(f()?.tensors().into_iter().cloned().collect()));
    let mut made: Vec<_> = y.tensors().into_iter().filter_map(Tensor::node).collect();
    made.retain(|node| tape.contains(node.id()) && !node.is_leaf());
    let rule = shared_rule(Checkpoint { run, tape, outcome });
    for node in made {
        node.replace(Recorded { inputs: used.clone(), rule: rule.clone() });
    }
    Ok(y)
}

/// Like [`checkpoint`], for a function of its inputs.
///
/// ```
/// use swath::prelude::*;
/// let x = tensor![[1.0, 2.0], [3.0, 4.0]].requires_grad();
/// let (mean, variance) = checkpoint_with(&[&x], |xs| {
///     let deviation = xs[0].sub(xs[0].mean(Some(&[1]), true)?)?;
///     Ok((xs[0].mean(Some(&[1]), false)?, deviation.square()?.mean(Some(&[1]), false)?))
/// })?;
/// let grads = mean.add(variance)?.sum(None, false)?.backward()?;
/// assert_eq!(grads.wrt(&x)?.to_vec::<f32>()?, [0.0, 1.0, 0.0, 1.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// As for [`checkpoint`].
pub fn checkpoint_with<B: Backend, Y: CheckpointOutput<B>>(
    inputs: &[&Tensor<B>],
    f: impl Fn(&[Tensor<B>]) -> Result<Y> + Send + Sync + 'static,
) -> Result<Y> {
    let xs: Vec<Tensor<B>> = inputs.iter().map(|&x| x.clone()).collect();
    checkpoint(move || f(&xs), inputs)
}

/// A layer of [`checkpoint_sequential`]: a function pointer, or a function or module in an [`Arc`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a layer that can be checkpointed",
    label = "not a checkpointable layer",
    note = "layers are `fn` pointers, or functions and modules in an `Arc`"
)]
pub trait CheckpointLayer<B: Backend>: Clone + Send + Sync + 'static {
    /// Computes the output for the input `x`.
    fn run(&self, x: &Tensor<B>) -> Result<Tensor<B>>;
}

impl<B: Backend> CheckpointLayer<B> for fn(&Tensor<B>) -> Result<Tensor<B>> {
    fn run(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        self(x)
    }
}

impl<B: Backend> CheckpointLayer<B> for Arc<dyn Fn(&Tensor<B>) -> Result<Tensor<B>> + Send + Sync> {
    fn run(&self, x: &Tensor<B>) -> Result<Tensor<B>> {
        self(x)
    }
}

/// Runs layers one after the other, in `segments` parts of about equal length, each of which is
/// checkpointed: only the inputs of the parts are kept. With n layers, about √n parts need the
/// least memory. There are at most as many parts as layers.
///
/// ```
/// use std::sync::Arc;
/// use swath::nn::{Linear, Module, Sequential};
/// use swath::prelude::*;
///
/// let mut rng = Rng::seed(1);
/// let layers: Vec<Arc<dyn Module<CpuBackend>>> = vec![
///     Arc::new(Linear::new(2, 8, &mut rng)?),
///     Arc::new(nn::Activation::Gelu),
///     Arc::new(Linear::new(8, 1, &mut rng)?),
/// ];
/// let x = tensor![[1.0, -1.0]].requires_grad();
/// let grads = checkpoint_sequential(&x, &layers, 2)?.backward()?;
/// assert_eq!(grads.len(), 1 + 2 + 2);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidArgument`] for no segments; as for [`checkpoint`]; those of a layer as [`Error::In`]
/// with its index.
pub fn checkpoint_sequential<B: Backend, L: CheckpointLayer<B>>(
    x: &Tensor<B>,
    layers: &[L],
    segments: usize,
) -> Result<Tensor<B>> {
    if segments == 0 {
        let reason = format!("expected at least one segment for {} layers, got 0", layers.len());
        return Err(Error::InvalidArgument { op: "checkpoint_sequential", reason });
    }
    let parts = segments.min(layers.len());
    let first = |part| even_start(layers.len(), parts, part);
    (0..parts).try_fold(x.clone(), |x, part| {
        let start = first(part);
        let own = layers[start..first(part + 1)].to_vec();
        checkpoint_with(&[&x], move |xs: &[Tensor<B>]| {
            own.iter().zip(start..).try_fold(xs[0].clone(), |x, (layer, index)| {
                layer.run(&x).map_err(|error| error.within(&index.to_string()))
            })
        })
    })
}

type Run<B> = dyn Fn() -> Result<Vec<Tensor<B>>> + Send + Sync;

/// The rule of the outputs of a checkpointed function. The walk does not run it, but replays the
/// function.
pub(crate) struct Checkpoint<B: Backend> {
    run: Box<Run<B>>,
    tape: Tape,
    outcome: Outcome,
}

impl<B: Backend> Checkpoint<B> {
    /// Runs the function again. Returns the nodes of the outputs that it computed, which have the
    /// ids of those of the first run.
    pub fn replay(&self) -> Result<Vec<Shared<GraphNode<B>>>> {
        let (outputs, counts, difference) = replay(&self.tape, || (self.run)());
        let outputs = outputs?;
        let tensors: Vec<&Tensor<B>> = outputs.iter().collect();
        let outcome = Outcome::new(&tensors, counts, &self.tape);
        if outcome != self.outcome || difference.is_some() {
            let step = difference.map_or(String::new(), |step| format!("; in the replay {step}"));
            let reason = format!(
                "the function does not do the same again: its first run made {}, its replay {outcome}{step}",
                self.outcome
            );
            return Err(Error::InvalidArgument { op: OP, reason });
        }
        let nodes = outputs.iter().filter_map(Tensor::node);
        Ok(nodes.filter(|node| self.tape.contains(node.id())).cloned().collect())
    }
}

impl<B: Backend> Rule<B> for Checkpoint<B> {
    fn backward(&self, _: &Upstream<'_, B>, _: &[bool]) -> Result<InputGradients<B>> {
        let reason = "a checkpointed function has no rule: it is replayed".to_owned();
        Err(Error::NoGradient { op: OP, reason })
    }

    fn checkpoint(&self) -> Option<&Checkpoint<B>> {
        Some(self)
    }
}

/// What must be the same in both runs.
#[derive(PartialEq)]
struct Outcome {
    /// Shape and dtype of each output, and the id of its node if the run recorded it.
    outputs: Vec<(Shape, DType, Option<u64>)>,
    counts: Counts,
}

impl Outcome {
    fn new<B: Backend>(outputs: &[&Tensor<B>], counts: Counts, tape: &Tape) -> Self {
        let output = |x: &&Tensor<B>| {
            let id = x.node().map(|node| node.id()).filter(|&id| tape.contains(id));
            (*x.shape(), x.dtype(), id)
        };
        Outcome { outputs: outputs.iter().map(output).collect(), counts }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { nodes, draws } = self.counts;
        write!(f, "{nodes} recorded operations, {draws} draws and {} outputs", self.outputs.len())?;
        for (shape, dtype, id) in &self.outputs {
            write!(f, ", {shape} {dtype}")?;
            if let Some(id) = id {
                write!(f, " (#{id})")?;
            }
        }
        Ok(())
    }
}

//! What the first run of a checkpointed function leaves for its replays.
//!
//! ```text
//! first run   ids and steps of recorded nodes, and drawn values, are appended to the thread's recorder
//! replay      they are taken from the thread's player, in the same order; steps are compared
//! ```
//!
//! 1. A replayed node has the id that it had in the first run, which no other node of the process
//!    has. A backward pass visits nodes in decreasing order of their ids. So it visits those of a replay when it
//!    would have visited those of a plain run, and adds gradients up in the same order.
//! 2. A function that is checkpointed inside a replay has its first run there: its recorder takes
//!    what the player of the outer one gives.
//! 3. A step is the op of a node with a hash of its shape and dtype. A replay of as many nodes whose
//!    steps differ would give gradients of another function.

use std::any::Any;
use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter::Flatten;
use std::ops::Range;
use std::sync::Arc;
use std::vec::IntoIter;

use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::Result;
use crate::runtime::on_drop::OnDrop;
use crate::runtime::recording::{FIRST_RUN, RECORDING, REPLAY, TAPED, has, with_flags};
use crate::runtime::shared::Shared;
use crate::shape::Shape;

use super::graph::{GraphNode, Inputs, Visit};
use super::ids::{IdMap, IdSet};

type Draw = Arc<dyn Any + Send + Sync>;

/// What must be the same of a node in both runs: its op, and its shape and dtype by their hash.
#[derive(Clone, Copy, PartialEq)]
struct Step {
    op: &'static str,
    hash: u64,
}

impl Step {
    fn new(op: &'static str, shape: &Shape, dtype: DType) -> Self {
        let mut hasher = DefaultHasher::new();
        (shape, dtype).hash(&mut hasher);
        Step { op, hash: hasher.finish() }
    }
}

/// The ids of the nodes that a run recorded, ascending, their steps, and the values that it drew, in
/// order.
#[derive(Clone, Default)]
pub(crate) struct Tape {
    ids: Vec<Range<u64>>,
    steps: Vec<Step>,
    draws: Vec<Draw>,
}

impl Tape {
    fn push(&mut self, id: u64, step: Step) {
        self.steps.push(step);
        match self.ids.last_mut() {
            Some(last) if last.end == id => last.end += 1,
            _ => self.ids.push(id..id + 1),
        }
    }

    /// True if the run recorded the node of this id.
    pub fn contains(&self, id: u64) -> bool {
        let next = self.ids.partition_point(|range| range.start <= id);
        next.checked_sub(1).is_some_and(|i| self.ids[i].contains(&id))
    }

    /// What the run took.
    pub fn counts(&self) -> Counts {
        Counts { nodes: self.steps.len(), draws: self.draws.len() }
    }
}

/// Numbers of the nodes that a run recorded and of the values that it drew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub nodes: usize,
    pub draws: usize,
}

/// Gathers what a first run does.
struct Recorder {
    tape: Tape,
    /// The nodes from outside that it used: an `IdMap<Shared<GraphNode<B>>>`.
    used: Box<dyn Any>,
}

/// Gives a replay what the first run recorded.
struct Player {
    ids: Flatten<IntoIter<Range<u64>>>,
    steps: IntoIter<Step>,
    draws: IntoIter<Draw>,
    taken: Counts,
    /// The first step that differs, in words.
    difference: Option<String>,
}

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
    static PLAYER: RefCell<Option<Player>> = const { RefCell::new(None) };
}

/// Runs `f` as a first run: its results are tracked, but nothing is kept for them. Returns with its
/// result the tape and the tracked nodes from outside that it used.
pub(crate) fn first_run<B: Backend, R>(
    f: impl FnOnce() -> Result<R>,
) -> Result<(R, Tape, Inputs<B>)> {
    let used = Box::new(IdMap::<Shared<GraphNode<B>>>::default());
    let recorder = Recorder { tape: Tape::default(), used };
    let mut outer = RECORDER.replace(Some(recorder));
    // What was recorded belongs to an enclosing first run, too.
    let _restore = OnDrop(move || {
        let inner = RECORDER.replace(outer.take());
        RECORDER.with_borrow_mut(|outer| {
            if let (Some(outer), Some(inner)) = (outer, inner) {
                outer.tape.ids.extend(inner.tape.ids);
                outer.tape.steps.extend(inner.tape.steps);
                outer.tape.draws.extend(inner.tape.draws);
            }
        });
    });
    let result = with_flags(FIRST_RUN | TAPED, 0, f)?;
    let (tape, mut used) = RECORDER.with_borrow_mut(|recorder| {
        let Some(recorder) = recorder else { return Default::default() };
        let used = recorder.used.downcast_mut::<IdMap<Shared<GraphNode<B>>>>();
        (recorder.tape.clone(), used.map(std::mem::take).unwrap_or_default())
    });
    let mut ids: Vec<u64> = used.keys().copied().collect();
    ids.sort_unstable();
    Ok((result, tape, ids.iter().map(|id| used.remove(id)).collect()))
}

/// Notes the inputs of an operation in a first run. Of those that the run itself recorded, it notes
/// what they were computed from.
pub(crate) fn note<B: Backend>(inputs: &Inputs<B>) {
    RECORDER.with_borrow_mut(|recorder| {
        let Some(Recorder { tape, used }) = recorder else { return };
        let Some(used) = used.downcast_mut::<IdMap<Shared<GraphNode<B>>>>() else { return };
        let mut seen = IdSet::default();
        let mut open: Inputs<B> = inputs.clone();
        while let Some(node) = open.pop() {
            let Some(node) = node else { continue };
            if !tape.contains(node.id()) {
                used.insert(node.id(), node);
            } else if let Visit::Recorded(inputs) = node.tracked_inputs()
                && seen.insert(node.id())
            {
                open.extend(inputs);
            }
        }
    });
}

/// Runs `f` recorded, with the ids and draws of the tape. Returns with its result what it took, and the
/// first step that differs from the tape's, in words.
pub(crate) fn replay<R>(tape: &Tape, f: impl FnOnce() -> R) -> (R, Counts, Option<String>) {
    let Tape { ids, steps, draws } = tape.clone();
    let (ids, steps, draws) = (ids.into_iter().flatten(), steps.into_iter(), draws.into_iter());
    let player = Player { ids, steps, draws, taken: Counts::default(), difference: None };
    let mut outer = (RECORDER.take(), PLAYER.replace(Some(player)));
    let _restore = OnDrop(move || {
        RECORDER.set(outer.0.take());
        PLAYER.set(outer.1.take());
    });
    let result = with_flags(RECORDING | REPLAY | TAPED, FIRST_RUN, f);
    let (taken, difference) = PLAYER.with_borrow_mut(|player| {
        player.as_mut().map(|p| (p.taken, p.difference.take())).unwrap_or_default()
    });
    (result, taken, difference)
}

/// Returns the id of a new node, of an op whose result has this shape and dtype: that of the tape in a
/// replay, else `fresh()`.
pub(crate) fn numbered(
    op: &'static str,
    shape: &Shape,
    dtype: DType,
    fresh: impl FnOnce() -> u64,
) -> u64 {
    if !has(TAPED) {
        return fresh();
    }
    let step = Step::new(op, shape, dtype);
    let played = PLAYER.with_borrow_mut(|player| {
        let player = player.as_mut()?;
        player.taken.nodes += 1;
        if let Some(first) = player.steps.next().filter(|&first| first != step) {
            let number = player.taken.nodes;
            let other = if first.op == op { " of another shape or dtype" } else { "" };
            let first = first.op;
            player.difference.get_or_insert_with(|| {
                format!(
                    "operation {number} is `{op}` of shape {shape} and dtype {dtype} instead of \
                     `{first}`{other}"
                )
            });
        }
        player.ids.next()
    });
    let id = played.unwrap_or_else(fresh);
    RECORDER.with_borrow_mut(|recorder| {
        if let Some(recorder) = recorder {
            recorder.tape.push(id, step);
        }
    });
    id
}

/// Returns `draw()`; in the replay of a checkpointed function, what its first run drew at this
/// place. For random numbers, counters and modes of layers, which must be the same in both and
/// advance once. [`Dropout`](crate::nn::Dropout) draws its masks so.
///
/// ```
/// use std::sync::Mutex;
/// use swath::autodiff::replayed;
/// use swath::prelude::*;
///
/// let rng = Mutex::new(Rng::seed(1));
/// let noisy = move |x: &Tensor| {
///     let seed = replayed(|| rng.lock().unwrap().next_u64());
///     x.mul(Tensor::randn(*x.shape(), &mut Rng::seed(seed))?)
/// };
/// let x = tensor![1.0, 2.0].requires_grad();
/// let y = checkpoint_with(&[&x], move |xs| noisy(&xs[0]))?;
/// let grads = y.sum(None, false)?.backward()?;
/// // The gradient is the noise of the first run.
/// assert_eq!((&x * grads.wrt(&x)?).to_vec::<f32>()?, y.to_vec::<f32>()?);
/// # Ok::<(), Error>(())
/// ```
pub fn replayed<T: Clone + Send + Sync + 'static>(draw: impl FnOnce() -> T) -> T {
    if !has(TAPED) {
        return draw();
    }
    let played = PLAYER.with_borrow_mut(|player| {
        let player = player.as_mut()?;
        player.taken.draws += 1;
        let value = player.draws.next()?.downcast_ref::<T>().cloned();
        // A value of another type counts as a draw too many.
        player.taken.draws += usize::from(value.is_none());
        value
    });
    let value = played.unwrap_or_else(draw);
    RECORDER.with_borrow_mut(|recorder| {
        if let Some(recorder) = recorder {
            recorder.tape.draws.push(Arc::new(value.clone()));
        }
    });
    value
}

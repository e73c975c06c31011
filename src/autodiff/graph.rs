//! Nodes of the recorded graph: creation, and dropping of deep graphs without recursion.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use crate::backend::{Backend, TensorData};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::runtime::recording::{DETECTING, FIRST_RUN, has, is_recording};
use crate::runtime::shared::{Shared, shared_as};
use crate::shape::Shape;
use crate::tensor::Tensor;

use super::checkpoint::Checkpoint;
use super::ids::tick;
use super::pending::Range;
use super::{anomaly, tape};

/// Gradients of a rule's inputs, in order; `None` if not wanted.
pub(crate) type InputGradients<B> = SmallVec<[Option<Tensor<B>>; 4]>;

/// Nodes of the inputs, in order; `None` for an untracked input.
pub(crate) type Inputs<B> = SmallVec<[Option<Shared<GraphNode<B>>>; 4]>;

/// The derivative of one recorded operation, with the saved values that it needs.
pub(crate) trait Rule<B: Backend>: Send + Sync {
    /// Computes the gradients of the inputs from the gradient of the output. `wanted[i]` is true if
    /// the gradient of input `i` is wanted; such an input is tracked. A gradient may have the
    /// broadcast shape: the engine sums it to the input's.
    fn backward(&self, upstream: &Upstream<'_, B>, wanted: &[bool]) -> Result<InputGradients<B>>;

    /// Bytes of the elements of the saved values.
    fn saved_bytes(&self) -> usize {
        0
    }

    /// The range of the only input outside which its gradient is 0, if `backward` returns that of the range alone.
    fn range(&self) -> Option<Range> {
        None
    }

    /// The checkpointed function, if the walk is to replay one instead of running a rule.
    fn checkpoint(&self) -> Option<&Checkpoint<B>> {
        None
    }
}

/// A rule, shared by the nodes that hold it.
pub(crate) type SharedRule<B> = Shared<dyn Rule<B>>;

/// Makes a rule of a closure over the upstream gradient and the flags of the wanted inputs.
pub(crate) fn rule<B, F>(backward: F) -> SharedRule<B>
where
    B: Backend,
    F: Fn(&Upstream<'_, B>, &[bool]) -> Result<InputGradients<B>> + Send + Sync + 'static,
{
    rule_keeping(0, backward)
}

/// Like [`rule`], for a closure that keeps values of so many bytes.
pub(crate) fn rule_keeping<B, F>(saved_bytes: usize, backward: F) -> SharedRule<B>
where
    B: Backend,
    F: Fn(&Upstream<'_, B>, &[bool]) -> Result<InputGradients<B>> + Send + Sync + 'static,
{
    struct Closure<F>(usize, F);
    impl<B, F> Rule<B> for Closure<F>
    where
        B: Backend,
        F: Fn(&Upstream<'_, B>, &[bool]) -> Result<InputGradients<B>> + Send + Sync,
    {
        fn backward(
            &self,
            upstream: &Upstream<'_, B>,
            wanted: &[bool],
        ) -> Result<InputGradients<B>> {
            (self.1)(upstream, wanted)
        }

        fn saved_bytes(&self) -> usize {
            self.0
        }
    }
    shared_rule(Closure(saved_bytes, backward))
}

/// Bytes of the elements of those tensors that there are.
pub(crate) fn bytes_of<'a, T: TensorData>(kept: impl IntoIterator<Item = Option<&'a T>>) -> usize {
    kept.into_iter().flatten().map(|x| x.numel() * x.dtype().size()).sum()
}

/// Like [`bytes_of`], of tensors that may have been kept.
pub(crate) fn bytes_of_kept<B: Backend, const N: usize>(kept: [&Option<Tensor<B>>; N]) -> usize {
    bytes_of(kept.map(|x| x.as_ref().map(Tensor::data)))
}

/// Makes a rule that nodes can share.
pub(crate) fn shared_rule<B: Backend>(rule: impl Rule<B> + 'static) -> SharedRule<B> {
    shared_as!(rule => dyn Rule<B>)
}

/// The arguments of a rule.
pub(crate) struct Upstream<'a, B: Backend> {
    /// Gradient of the output.
    pub g: &'a Tensor<B>,
    /// The node whose rule runs.
    node: &'a Shared<GraphNode<B>>,
    /// True if the gradient will itself be differentiated.
    create_graph: bool,
    inputs: &'a Inputs<B>,
    take_total: &'a TakeTotal<'a, B>,
}

/// Takes the gradient accumulated so far for the node of an id.
pub(crate) type TakeTotal<'a, B> = dyn Fn(u64) -> Result<Option<Tensor<B>>> + 'a;

impl<'a, B: Backend> Upstream<'a, B> {
    pub fn new(
        g: &'a Tensor<B>,
        node: &'a Shared<GraphNode<B>>,
        create_graph: bool,
        inputs: &'a Inputs<B>,
        take_total: &'a TakeTotal<'a, B>,
    ) -> Self {
        Upstream { g, node, create_graph, inputs, take_total }
    }

    /// Computes `a·b`, the gradient of input `i`. If a gradient of the input has been accumulated
    /// already, the product is added to it, in its memory if nothing else shares it, and the sum is
    /// returned; the engine then has nothing to add it to.
    pub fn product(&self, i: usize, a: &Tensor<B>, b: &Tensor<B>) -> Result<Tensor<B>> {
        match self.take_total(i, a, b)? {
            Some(total) => a.matmul_add(b, total),
            None => a.matmul(b),
        }
    }

    /// Takes the accumulated gradient of input `i` if it has the shape and dtype of `a·b` and
    /// nothing is recorded.
    fn take_total(&self, i: usize, a: &Tensor<B>, b: &Tensor<B>) -> Result<Option<Tensor<B>>> {
        let Some(Some(input)) = self.inputs.get(i) else { return Ok(None) };
        let is_plain = b.rank() == 2 || b.rank() == a.rank();
        if self.create_graph || a.rank() < 2 || !is_plain || input.dtype() != a.dtype() {
            return Ok(None);
        }
        // The gradients of an input that occurs twice are added in their order.
        if self.inputs[..i].iter().flatten().any(|earlier| earlier.id() == input.id()) {
            return Ok(None);
        }
        let shape = a.shape().with_axis(a.rank() - 1, b.dims().last().copied());
        if input.shape() == &shape { (self.take_total)(input.id()) } else { Ok(None) }
    }

    /// True if the gradient will itself be differentiated. It must then be made of recorded ops.
    pub fn create_graph(&self) -> bool {
        self.create_graph
    }

    /// The op's output as a tensor, from its saved values. A rule saves the values only: the output
    /// tensor would own its own node.
    pub fn output(&self, values: &B::Tensor) -> Tensor<B> {
        let node = self.create_graph.then(|| self.node.clone());
        Tensor::from_parts(values.clone(), node)
    }
}

/// A tracked value: a leaf, or the result of a recorded operation.
pub(crate) struct GraphNode<B: Backend> {
    id: u64,
    shape: Shape,
    dtype: DType,
    /// True if an operand or the result was seen to be NaN or infinite, by [`anomaly`].
    saw_non_finite: bool,
    label: Label,
    /// The [`tick`] of the first call of `retain_grad`, or 0. 32 bits fit into padding.
    retained: AtomicU32,
    state: Mutex<State<B>>,
}

/// The op or the name of a node.
enum Label {
    Op(&'static str),
    Leaf(Option<Box<str>>),
    /// A parameter that is not to be trained. Nothing is recorded for it.
    Frozen(Option<Box<str>>),
}

impl Label {
    fn op(&self) -> &'static str {
        match self {
            Label::Op(op) => op,
            Label::Leaf(_) => "leaf",
            Label::Frozen(_) => "frozen",
        }
    }
}

enum State<B: Backend> {
    Leaf,
    Recorded(Recorded<B>),
    Released,
    /// A result in the first run of a checkpointed function, for which nothing is kept.
    FirstRun,
}

/// A recorded operation.
pub(crate) struct Recorded<B: Backend> {
    pub inputs: Inputs<B>,
    pub rule: SharedRule<B>,
}

/// The state of a node as a backward pass finds it.
pub(crate) enum Visit<T> {
    Leaf,
    Recorded(T),
    /// Nothing is recorded, because of an earlier pass or a first run: see `GraphNode::unrecorded`.
    Released,
}

/// Returns the id of a new node of an op.
fn next_id(op: &'static str, shape: &Shape, dtype: DType) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    tape::numbered(op, shape, dtype, || NEXT.fetch_add(1, Ordering::Relaxed))
}

impl<B: Backend> GraphNode<B> {
    pub fn leaf(name: Option<&str>, shape: Shape, dtype: DType) -> Shared<Self> {
        Self::new(Label::Leaf(name.map(Into::into)), shape, dtype, State::Leaf, false)
    }

    /// The node of a frozen parameter.
    pub fn frozen(name: Option<&str>, shape: Shape, dtype: DType) -> Shared<Self> {
        Self::new(Label::Frozen(name.map(Into::into)), shape, dtype, State::Leaf, false)
    }

    pub fn is_frozen(&self) -> bool {
        matches!(self.label, Label::Frozen(_))
    }

    fn new(
        label: Label,
        shape: Shape,
        dtype: DType,
        state: State<B>,
        saw_non_finite: bool,
    ) -> Shared<Self> {
        Shared::new(GraphNode {
            id: next_id(label.op(), &shape, dtype),
            shape,
            dtype,
            saw_non_finite,
            label,
            retained: AtomicU32::new(0),
            state: Mutex::new(state),
        })
    }

    /// A unique number, larger than the ids of all nodes that this one was computed from.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    pub fn op(&self) -> &'static str {
        self.label.op()
    }

    pub fn saw_non_finite(&self) -> bool {
        self.saw_non_finite
    }

    pub fn name(&self) -> Option<&str> {
        match &self.label {
            Label::Op(_) => None,
            Label::Leaf(name) | Label::Frozen(name) => name.as_deref(),
        }
    }

    /// The name, or the id if there is none, for error messages.
    pub fn label(&self) -> String {
        self.name().map_or_else(|| format!("tensor #{}", self.id), |name| format!("\"{name}\""))
    }

    /// Op or leaf, name, shape, dtype and what the rule keeps, for the graph as text.
    pub fn describe(&self, between: &str) -> String {
        let (op, kept) = match &*self.lock() {
            State::Leaf => (self.op(), String::new()),
            State::Recorded(Recorded { rule, .. }) => {
                let op = rule.checkpoint().map_or(self.op(), |_| "checkpoint");
                let bytes = rule.saved_bytes();
                let text = format!("{between}saves {bytes} B");
                (op, if bytes > 0 { text } else { String::new() })
            }
            State::Released => (self.op(), format!("{between}released")),
            State::FirstRun => (self.op(), format!("{between}not kept")),
        };
        let name = self.name().map_or(String::new(), |name| format!(" \"{name}\""));
        format!("{op}{name}{between}{} {}{kept}", self.shape, self.dtype)
    }

    pub fn retain(&self) {
        // The first call counts.
        let _ = self.retained.compare_exchange(0, tick(), Ordering::Relaxed, Ordering::Relaxed);
    }

    pub fn is_retained(&self) -> bool {
        self.retained.load(Ordering::Relaxed) != 0
    }

    /// True if `retain_grad` was first called after the tick `time`.
    pub fn is_retained_after(&self, time: u32) -> bool {
        self.retained.load(Ordering::Relaxed) > time
    }

    pub fn is_leaf(&self) -> bool {
        matches!(*self.lock(), State::Leaf)
    }

    fn lock(&self) -> MutexGuard<'_, State<B>> {
        // The state is replaced as a whole, so a panic cannot leave it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The nodes of the tracked inputs.
    pub fn tracked_inputs(&self) -> Visit<Inputs<B>> {
        match &*self.lock() {
            State::Leaf => Visit::Leaf,
            State::Recorded(r) => {
                Visit::Recorded(r.inputs.iter().flatten().cloned().map(Some).collect())
            }
            State::Released | State::FirstRun => Visit::Released,
        }
    }

    /// Takes the recorded operation, or clones it if the graph is retained.
    pub fn take(&self, retain_graph: bool) -> Visit<Recorded<B>> {
        let mut state = self.lock();
        match &*state {
            State::Leaf => Visit::Leaf,
            State::Released | State::FirstRun => Visit::Released,
            State::Recorded(r) if retain_graph => {
                Visit::Recorded(Recorded { inputs: r.inputs.clone(), rule: r.rule.clone() })
            }
            State::Recorded(_) => match std::mem::replace(&mut *state, State::Released) {
                State::Recorded(recorded) => Visit::Recorded(recorded),
                State::Leaf | State::Released | State::FirstRun => Visit::Released,
            },
        }
    }

    /// Replaces what is recorded for the node.
    pub fn replace(&self, recorded: Recorded<B>) {
        let before = std::mem::replace(&mut *self.lock(), State::Recorded(recorded));
        drop(before);
    }

    /// The error of a backward pass that finds nothing recorded for the node.
    pub fn unrecorded(&self) -> Error {
        let op = self.op();
        if !matches!(*self.lock(), State::FirstRun) {
            return Error::GraphReleased { op };
        }
        let reason = format!(
            "the tensor of shape {} is of the first run of a checkpointed function, which keeps \
             nothing; return it from the function, or use vjp inside",
            self.shape
        );
        Error::NoGradient { op, reason }
    }
}

/// Wraps computed values, with a node if any input is tracked and recording is enabled.
///
/// `rule` is called only in that case, so that saving values costs nothing otherwise. Results of
/// integer dtypes have no derivative and are never tracked.
pub(crate) fn record<B: Backend>(
    op: &'static str,
    values: B::Tensor,
    inputs: &[&Tensor<B>],
    rule: impl FnOnce(&B::Tensor) -> SharedRule<B>,
) -> Tensor<B> {
    if !should_record(values.dtype(), inputs) {
        return Tensor::from_parts(values, None);
    }
    let nodes = inputs.iter().map(|input| input.node().cloned()).collect();
    record_nodes(op, values, nodes, &|| inputs.iter().all(|x| anomaly::is_finite(x)), rule)
}

/// True if an operation on these inputs with a result of this dtype is recorded.
pub(crate) fn should_record<B: Backend>(dtype: DType, inputs: &[&Tensor<B>]) -> bool {
    inputs.iter().any(|input| input.is_tracked()) && is_recording() && dtype.is_float()
}

/// Like [`record`], unconditionally. `are_finite` tells whether all operands are, scalars too.
pub(crate) fn record_nodes<B: Backend>(
    op: &'static str,
    values: B::Tensor,
    inputs: Inputs<B>,
    are_finite: &dyn Fn() -> bool,
    rule: impl FnOnce(&B::Tensor) -> SharedRule<B>,
) -> Tensor<B> {
    let (is_first_run, saw_non_finite) = match has(FIRST_RUN | DETECTING) {
        true => observe(op, &values, &inputs, are_finite),
        false => (false, false),
    };
    let state = match is_first_run {
        true => State::FirstRun,
        false => State::Recorded(Recorded { inputs, rule: rule(&values) }),
    };
    let label = Label::Op(op);
    let node = GraphNode::new(label, *values.shape(), values.dtype(), state, saw_non_finite);
    Tensor::from_parts(values, Some(node))
}

/// Does with a result what modes other than plain recording do. Returns whether nothing is kept for it, and
/// whether it or an operand was seen not to be finite.
#[cold]
fn observe<B: Backend>(
    op: &'static str,
    values: &B::Tensor,
    inputs: &Inputs<B>,
    are_finite: &dyn Fn() -> bool,
) -> (bool, bool) {
    let saw_non_finite = has(DETECTING) && !anomaly::inspect::<B>(op, values, are_finite);
    if has(FIRST_RUN) {
        tape::note(inputs);
    }
    (has(FIRST_RUN), saw_non_finite)
}

/// Largest depth of nested drops; deeper ones are queued. A level takes a few hundred bytes of
/// stack.
const MAX_DROP_DEPTH: usize = 32;

thread_local! {
    static DROP_DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The queue is never dropped, because destructors of other thread-local values drop graphs
    /// too. It holds no memory between drops.
    static DROP_QUEUE: ManuallyDrop<RefCell<Vec<Box<dyn Any>>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// Dropping a node drops its inputs, which may be the last owners of theirs, and so on for a
/// million steps. Drops therefore nest at most [`MAX_DROP_DEPTH`] deep; deeper nodes are put in a
/// queue, which the outermost drop empties.
impl<B: Backend> Drop for GraphNode<B> {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let State::Recorded(recorded) = std::mem::replace(state, State::Released) else { return };
        let depth = DROP_DEPTH.get();
        if depth >= MAX_DROP_DEPTH {
            DROP_QUEUE.with(|queue| queue.borrow_mut().push(Box::new(recorded)));
            return;
        }
        DROP_DEPTH.set(depth + 1);
        if depth > 0 {
            drop(recorded);
            DROP_DEPTH.set(depth);
            return;
        }
        // A destructor of a user's may panic: the others still run, and the depth is restored.
        let mut panic = catch_unwind(AssertUnwindSafe(|| drop(recorded))).err();
        while let Some(deeper) = DROP_QUEUE.with(|queue| queue.borrow_mut().pop()) {
            DROP_DEPTH.set(1);
            match catch_unwind(AssertUnwindSafe(|| drop(deeper))) {
                Err(next) if panic.is_none() => panic = Some(next),
                // Dropping a payload may panic too.
                done => std::mem::forget(done),
            }
        }
        DROP_QUEUE.with(|queue| queue.take());
        DROP_DEPTH.set(0);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

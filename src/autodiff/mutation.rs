//! Derivative rules made wrong on purpose, for tests of tests.
//!
//! ```text
//! rules.rs       a row's rule reads one of its values wrongly       DropTerm, WrongInput of table rows
//! backward.rs    the gradients that a rule returned are changed     everything else
//! ```
//!
//! A mutation is set for a thread while a closure runs, and concerns one input of the ops of one name.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::backend::Backend;
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

use super::graph::{InputGradients, Upstream};
use super::rules::{is_zero, readings};

/// How a derivative rule is made wrong. A rule whose gradient is zero is first made to return the
/// gradient of its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// The gradient is negated.
    Sign,
    /// The gradient is multiplied by 1.1.
    Factor,
    /// A part of the rule goes missing: of a row of the op table, one of the values that it names is 1
    /// everywhere; of any other, the last element of the gradient that is not 0 becomes 0.
    DropTerm,
    /// The rule reads something else: of a row of the op table, another value in place of one that it
    /// names; any other returns the gradient of another input, or, where that is no different, every
    /// element one place further on.
    WrongInput,
}

impl Mutation {
    /// Every mutation.
    pub const ALL: [Mutation; 4] =
        [Mutation::Sign, Mutation::Factor, Mutation::DropTerm, Mutation::WrongInput];
}

/// One derivative rule made wrong in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutant<'a> {
    /// The op, by the name under which it is recorded.
    pub op: &'a str,
    /// The input whose gradient is wrong.
    pub input: usize,
    /// What is wrong.
    pub mutation: Mutation,
    /// Which of the ways to do so, from 0.
    pub way: usize,
    /// Wrong only in passes that are themselves recorded (`create_graph`), for which fused ops have a
    /// rule of their own.
    pub recorded_only: bool,
}

/// A value that a row's rule names and what is read in its place: another one, or ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The value's name.
    pub value: &'static str,
    /// The name of the other value; `None`: ones.
    pub instead: Option<&'static str>,
}

impl Mutant<'_> {
    /// What a rule of the op table reads wrongly; `None` if something else is wrong.
    pub fn reading(&self) -> Option<Reading> {
        readings(self.op, self.input, self.mutation).get(self.way).copied()
    }
}

impl Reading {
    /// Every misreading by a rule with these parameters where there are these values.
    pub(crate) fn all(
        mutation: Mutation,
        parameters: &[&'static str],
        values: &[&'static str],
    ) -> Vec<Self> {
        let others = |value: &'static str| {
            let others = values.iter().filter(move |&&other| other != value);
            others.map(move |&other| Reading { value, instead: Some(other) })
        };
        let ones = |value: &'static str| Reading { value, instead: None };
        match mutation {
            Mutation::Sign | Mutation::Factor => Vec::new(),
            Mutation::DropTerm => {
                parameters.iter().filter(|&&value| value != "g").map(|&value| ones(value)).collect()
            }
            Mutation::WrongInput => parameters.iter().flat_map(|&value| others(value)).collect(),
        }
    }
}

/// A mutation that is in force.
struct Active {
    op: String,
    input: usize,
    mutation: Mutation,
    reading: Option<Reading>,
    recorded_only: bool,
}

impl Active {
    /// What the rule returns is changed, not what it reads.
    fn is_of_the_result(&self) -> bool {
        self.reading.is_none()
    }
}

thread_local! {
    static ACTIVE: RefCell<Option<Active>> = const { RefCell::new(None) };
    static RUN: RefCell<Option<BTreeSet<&'static str>>> = const { RefCell::new(None) };
}

/// Sets a thread's value while `f` runs, also if it panics; gives what it was at the end.
fn while_set<T: 'static, R>(
    key: &'static std::thread::LocalKey<RefCell<Option<T>>>,
    value: T,
    f: impl FnOnce() -> R,
) -> (R, Option<T>) {
    struct Restore<T: 'static>(&'static std::thread::LocalKey<RefCell<Option<T>>>, Option<T>);
    impl<T> Restore<T> {
        fn swap(&mut self) {
            self.0.with_borrow_mut(|current| std::mem::swap(current, &mut self.1));
        }
    }
    impl<T> Drop for Restore<T> {
        fn drop(&mut self) {
            self.swap();
        }
    }
    let mut restore = Restore(key, Some(value));
    restore.swap();
    let result = f();
    restore.swap();
    let last = restore.1.take();
    std::mem::forget(restore);
    (result, last)
}

/// Runs `f` with the derivative rule of `op` for `input` made wrong on this thread: for tests that
/// tests of derivatives notice.
///
/// ```
/// use swath::prelude::*;
/// use swath::testing::{Mutation, with_mutation};
/// let suite = || {
///     let x = tensor![f64; 0.5, -1.0];
///     check_gradients(|xs: &[Tensor]| xs[0].tanh(), &[&x], GradCheck::default())
/// };
/// assert!(suite().is_ok());
/// assert!(with_mutation("tanh", 0, Mutation::Sign, suite).is_err());
/// ```
pub fn with_mutation<R>(op: &str, input: usize, mutation: Mutation, f: impl FnOnce() -> R) -> R {
    with_mutant(&Mutant { op, input, mutation, way: 0, recorded_only: false }, f)
}

/// As [`with_mutation`], for one of several ways to be wrong.
pub fn with_mutant<R>(mutant: &Mutant<'_>, f: impl FnOnce() -> R) -> R {
    let &Mutant { op, input, mutation, recorded_only, .. } = mutant;
    let active =
        Active { op: op.to_owned(), input, mutation, reading: mutant.reading(), recorded_only };
    while_set(&ACTIVE, active, f).0
}

/// Runs `f` and says which ops' rules ran meanwhile on this thread.
pub fn with_rules_noted<R>(f: impl FnOnce() -> R) -> (R, BTreeSet<&'static str>) {
    let (result, run) = while_set(&RUN, BTreeSet::new(), f);
    (result, run.unwrap_or_default())
}

/// True if recording `op` must keep all its values, because a rule will read others than it names.
pub(crate) fn keeps_all(op: &str) -> bool {
    ACTIVE.with_borrow(|active| {
        active.as_ref().is_some_and(|active| active.op == op && active.reading.is_some())
    })
}

/// What the rule of an input of `op` reads wrongly.
pub(crate) fn reading(op: &str, input: usize, recorded: bool) -> Option<Reading> {
    ACTIVE.with_borrow(|active| {
        let active = active.as_ref()?;
        let meant = active.op == op && active.input == input;
        (meant && (recorded || !active.recorded_only)).then_some(active.reading).flatten()
    })
}

/// What the rule of `op` returned, made wrong where a mutation says so.
pub(crate) fn mutated<B: Backend>(
    op: &'static str,
    upstream: &Upstream<'_, B>,
    mut gradients: InputGradients<B>,
) -> Result<InputGradients<B>> {
    RUN.with_borrow_mut(|run| run.as_mut().map(|run| run.insert(op)));
    let found = ACTIVE.with_borrow(|active| {
        let active =
            active.as_ref().filter(|active| active.op == op && active.is_of_the_result())?;
        (upstream.create_graph() || !active.recorded_only)
            .then_some((active.input, active.mutation))
    });
    let Some((input, mutation)) = found else { return Ok(gradients) };
    let Some(Some(gradient)) = gradients.get(input) else { return Ok(gradients) };
    let gradient = if is_zero(op, input) { upstream.g } else { gradient };
    let wrong = match mutation {
        _ if gradient.numel() == 0 => gradient.clone(),
        Mutation::Sign => gradient.neg()?,
        Mutation::Factor => gradient.mul_scalar(1.1)?,
        Mutation::DropTerm => without_last(gradient)?,
        Mutation::WrongInput => match other(&gradients, input)? {
            Some(other) => other,
            None => moved_on(gradient)?,
        },
    };
    gradients[input] = Some(wrong);
    Ok(gradients)
}

fn values<B: Backend>(x: &Tensor<B>) -> Result<Vec<f64>> {
    x.detach().to_dtype(DType::F64)?.to_vec::<f64>()
}

/// The last element that is not 0 made 0.
fn without_last<B: Backend>(x: &Tensor<B>) -> Result<Tensor<B>> {
    let last = values(x)?.iter().rposition(|&value| value != 0.0);
    let factor = |i| f64::from(u8::from(Some(i) != last)).into();
    x.mul(&Tensor::from_scalars("mutation", *x.shape(), x.dtype(), factor)?)
}

/// Every element at the next place in row-major order, the last one at the first.
fn moved_on<B: Backend>(x: &Tensor<B>) -> Result<Tensor<B>> {
    let (flat, count) = (x.reshape(x.numel())?, x.numel());
    let last = flat.narrow(0, count - 1, 1)?;
    Tensor::cat(&[&last, &flat.narrow(0, 0, count - 1)?], 0)?.reshape(*x.shape())
}

/// A gradient of another input that could be mistaken for that of `input`, and differs.
fn other<B: Backend>(gradients: &InputGradients<B>, input: usize) -> Result<Option<Tensor<B>>> {
    let Some(right) = &gradients[input] else { return Ok(None) };
    for (i, other) in gradients.iter().enumerate() {
        if let Some(other) = other
            && i != input
            && other.shape() == right.shape()
            && other.dtype() == right.dtype()
            && values(other)? != values(right)?
        {
            return Ok(Some(other.clone()));
        }
    }
    Ok(None)
}

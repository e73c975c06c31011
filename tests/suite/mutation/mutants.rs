//! Mutations of derivative rules, one at a time.
//!
//! For a row of the op table, the values that its rule reads are changed: [`apply`] computes the row as a
//! custom op whose backward is the row's rule at other values. For other ops, a hook in the backward pass
//! changes the gradients that the rule returned.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use crate::gradcheck::cases::T;
use crate::gradcheck::registry::recorded_ops;
use swath::prelude::*;
use swath::testing::{ROWS, Row, RuleRun, row_gradient, with_rule_hook};

/// A kind of mutation. A rule whose gradient is zero is first made to return the upstream gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// The gradient is negated.
    Sign,
    /// The gradient is multiplied by 1.1.
    Factor,
    /// A part of the rule is missing. In a row of the op table, one of the values that it names is replaced
    /// by ones; in another op, the last nonzero element of the gradient becomes 0.
    DropTerm,
    /// The rule reads another value. In a row of the op table, a value replaces one that it names; another op
    /// returns the gradient of another input, or, if that is equal, the gradient rotated by one element.
    WrongInput,
}

impl Mutation {
    pub const ALL: [Mutation; 4] =
        [Mutation::Sign, Mutation::Factor, Mutation::DropTerm, Mutation::WrongInput];
}

/// A value that a row's rule names, and the value that is read instead (`None`: ones).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misreading {
    pub value: &'static str,
    pub instead: Option<&'static str>,
}

/// One mutation of one derivative rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The op, by the name under which it is recorded.
    pub op: &'static str,
    /// The input whose gradient is wrong.
    pub input: usize,
    pub mutation: Mutation,
    /// The value that a row's rule misreads; `None`: the result is changed.
    pub misreading: Option<Misreading>,
    /// Mutates only recorded passes (`create_graph`), for which fused ops have a second rule.
    pub recorded_only: bool,
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, gradient of input {}: {:?}", self.op, self.input, self.mutation)?;
        if let Some(Misreading { value, instead }) = self.misreading {
            write!(f, ", {} read as {value}", instead.unwrap_or("1"))?;
        }
        if self.recorded_only { write!(f, ", in recorded passes") } else { Ok(()) }
    }
}

fn row(op: &str) -> Option<&'static Row> {
    ROWS.into_iter().flatten().find(|row| row.name == op)
}

/// The names of a row's inputs.
fn inputs(row: &Row) -> &'static [&'static str] {
    if row.rules.len() == 1 { &["x"] } else { &["a", "b", "c"][..row.rules.len()] }
}

/// True if a row's rule always returns zeros.
fn is_zero(op: &str, input: usize) -> bool {
    let text = row(op).map(|row| row.rules[input].text);
    text.is_some_and(|text| text.split_whitespace().collect::<String>() == "g.zeros_like()")
}

/// The misreadings of a row's rule; none for other ops and for rules that return zeros.
fn misreadings(op: &str, input: usize, mutation: Mutation) -> Vec<Misreading> {
    let Some(row) = row(op).filter(|_| !is_zero(op, input)) else { return Vec::new() };
    let named = row.rules[input].parameters;
    let all: Vec<&str> = ["g"].iter().chain(inputs(row)).chain(&["y"]).copied().collect();
    match mutation {
        Mutation::Sign | Mutation::Factor => Vec::new(),
        Mutation::DropTerm => {
            let named = named.iter().filter(|&&value| value != "g");
            named.map(|&value| Misreading { value, instead: None }).collect()
        }
        Mutation::WrongInput => {
            let pairs = named.iter().flat_map(|value| all.iter().map(move |other| (value, other)));
            let different = pairs.filter(|(value, other)| value != other);
            let misreading = |(&value, &other)| Misreading { value, instead: Some(other) };
            different.map(misreading).collect()
        }
    }
}

/// All mutants: at least one for each op, input and [`Mutation`], and for both rules if recorded passes have
/// a second one.
pub fn mutants() -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for op in recorded_ops() {
        for input in 0..op.gradients.len() {
            for mutation in Mutation::ALL {
                let mut ways: Vec<Option<Misreading>> =
                    misreadings(op.name, input, mutation).into_iter().map(Some).collect();
                if ways.is_empty() {
                    ways.push(None);
                }
                for misreading in ways {
                    for recorded_only in
                        [false, true].into_iter().take(1 + usize::from(op.two_rules))
                    {
                        let op = op.name;
                        mutants.push(Mutant { op, input, mutation, misreading, recorded_only });
                    }
                }
            }
        }
    }
    mutants
}

thread_local! {
    static MISREAD: RefCell<Option<Mutant>> = const { RefCell::new(None) };
}

/// Runs `f` with a mutated derivative rule on this thread.
pub fn with_mutant<R>(mutant: &Mutant, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Mutant>);
    impl Drop for Restore {
        fn drop(&mut self) {
            MISREAD.set(self.0);
        }
    }
    let mutant = *mutant;
    match mutant.misreading {
        Some(_) => {
            let _restore = Restore(MISREAD.replace(Some(mutant)));
            f()
        }
        None => with_rule_hook(move |run| change_result(&mutant, run), f),
    }
}

/// Runs `f` and returns the names of the ops whose rules ran meanwhile on this thread.
pub fn with_rules_noted<R>(f: impl FnOnce() -> R) -> (R, BTreeSet<&'static str>) {
    let noted = Rc::new(RefCell::new(BTreeSet::new()));
    let hook = {
        let noted = Rc::clone(&noted);
        move |run: &mut RuleRun<'_, CpuBackend>| {
            noted.borrow_mut().insert(run.op);
            Ok(())
        }
    };
    (with_rule_hook(hook, f), noted.take())
}

fn change_result(mutant: &Mutant, run: &mut RuleRun<'_, CpuBackend>) -> Result<()> {
    let &Mutant { op, input, mutation, recorded_only, .. } = mutant;
    if run.op != op || (recorded_only && !run.create_graph) {
        return Ok(());
    }
    let Some(Some(gradient)) = run.gradients.get(input) else { return Ok(()) };
    let gradient = if is_zero(op, input) { run.g } else { gradient };
    let wrong = match mutation {
        _ if gradient.numel() == 0 => gradient.clone(),
        Mutation::Sign => gradient.neg()?,
        Mutation::Factor => gradient.mul_scalar(1.1)?,
        Mutation::DropTerm => without_last(gradient)?,
        Mutation::WrongInput => match other_gradient(run.gradients, input)? {
            Some(other) => other,
            None => rotated(gradient)?,
        },
    };
    run.gradients[input] = Some(wrong);
    Ok(())
}

fn values(x: &T) -> Result<Vec<f64>> {
    x.detach().to_dtype(DType::F64)?.to_vec::<f64>()
}

/// Sets the last nonzero element to 0.
fn without_last(x: &T) -> Result<T> {
    let last = values(x)?.iter().rposition(|&value| value != 0.0);
    let factors = (0..x.numel()).map(|i| f64::from(u8::from(Some(i) != last))).collect();
    x.mul(T::from_vec(factors, *x.shape())?.to_dtype(x.dtype())?)
}

/// Moves every element to the next index in row-major order, the last one to the first.
fn rotated(x: &T) -> Result<T> {
    let (flat, count) = (x.reshape(x.numel())?, x.numel());
    let last = flat.narrow(0, count - 1, 1)?;
    T::cat(&[&last, &flat.narrow(0, 0, count - 1)?], 0)?.reshape(*x.shape())
}

/// The gradient of another input, of the same shape and dtype, that differs from that of `input`.
fn other_gradient(gradients: &[Option<T>], input: usize) -> Result<Option<T>> {
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

/// Calls `f`, which computes a row of the op table, with the rule that the current mutant misreads, if it is
/// of this op.
pub fn apply<F>(op: &str, xs: &[T], f: F) -> Result<T>
where
    F: Fn(&[T]) -> Result<T> + Clone + Send + Sync + 'static,
{
    match MISREAD.with_borrow(|mutant| mutant.filter(|mutant| mutant.op == op)) {
        Some(mutant) => T::apply(&Misread { mutant, f }, &xs.iter().collect::<Vec<_>>()),
        None => f(xs),
    }
}

/// A row of the op table whose rule for one input misreads a value.
#[derive(Clone)]
struct Misread<F> {
    mutant: Mutant,
    f: F,
}

impl<F> CustomOp<CpuBackend> for Misread<F>
where
    F: Fn(&[T]) -> Result<T> + Clone + Send + Sync + 'static,
{
    fn name(&self) -> &'static str {
        self.mutant.op
    }

    fn forward(
        &self,
        xs: &[&<CpuBackend as Backend>::Tensor],
    ) -> Result<<CpuBackend as Backend>::Tensor> {
        let xs: Vec<T> = xs.iter().map(|&x| T::from_data(x.clone())).collect();
        Ok((self.f)(&xs)?.data().clone())
    }

    fn backward(&self, xs: &[&T], y: &T, g: &T) -> Result<Vec<Option<T>>> {
        let Mutant { op, input, misreading, .. } = self.mutant;
        let names = inputs(row(op).expect("a row"));
        let value = |name: &str| match name {
            "g" => Some(g),
            "y" => Some(y),
            _ => names.iter().position(|&input| input == name).map(|i| xs[i]),
        };
        let Misreading { value: wrong, instead } = misreading.expect("a misreading");
        let read = match instead {
            Some(other) => value(other).expect("a value of the row").broadcast_to(*g.shape())?,
            None => value(wrong).expect("a value of the row").zeros_like()?.add_scalar(1.0)?,
        };
        let gradient =
            |i| {
                row_gradient(op, i, |name| {
                    if i == input && name == wrong { Some(&read) } else { value(name) }
                })
            };
        (0..xs.len()).map(|i| gradient(i).map(Some)).collect()
    }
}

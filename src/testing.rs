//! For tests of tests: what is recorded, derivative rules made wrong on purpose, and whether work was
//! shared by threads. Feature `testing`; no part of a program.

mod registry;

pub use crate::autodiff::mutation::{
    Mutant, Mutation, Reading, with_mutant, with_mutation, with_rules_noted,
};
pub use crate::runtime::parallel::shared_regions;
pub use registry::{Kind, RecordedOp, recorded_ops};

use crate::autodiff::rules;

/// Every way to make every rule wrong: a mutant or more for each op, input and [`Mutation`].
///
/// Where the gradient that will itself be differentiated has a rule of its own, that one is made wrong
/// alone as well.
pub fn mutants() -> Vec<Mutant<'static>> {
    let mut mutants = Vec::new();
    for op in recorded_ops() {
        for input in 0..op.inputs.len() {
            for mutation in Mutation::ALL {
                let ways = rules::readings(op.name, input, mutation).len().max(1);
                let mutant = |way, recorded_only| Mutant {
                    op: op.name,
                    input,
                    mutation,
                    way,
                    recorded_only,
                };
                mutants.extend((0..ways).map(|way| mutant(way, false)));
                if op.two_rules {
                    mutants.extend((0..ways).map(|way| mutant(way, true)));
                }
            }
        }
    }
    mutants
}

impl std::fmt::Display for Mutant<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, gradient of input {}: {:?}", self.op, self.input, self.mutation)?;
        match self.reading() {
            Some(Reading { value, instead: Some(instead) }) => {
                write!(f, ", {instead} read as {value}")?;
            }
            Some(Reading { value, instead: None }) => write!(f, ", {value} read as 1")?,
            None => {}
        }
        if self.recorded_only { write!(f, ", in recorded passes") } else { Ok(()) }
    }
}

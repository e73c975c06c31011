//! Checks the cases of an op.

use swath::prelude::*;

use super::cases::{Case, T, suite};

const SECOND_ORDER: GradCheck =
    GradCheck { order: 2, eps: None, rtol: None, atol: None, directions: 4, seed: 1 };

/// A case that failed.
#[derive(Debug)]
pub struct Failure {
    pub case: String,
    pub error: Error,
}

/// Checks all cases of an op, up to the first that fails.
pub fn check(op: &str) -> Result<(), Box<Failure>> {
    suite(op).into_iter().try_for_each(|case| {
        check_case(&case).map_err(|error| Box::new(Failure { case: case.name, error }))
    })
}

/// Checks first and second order, of the function and of its square, whose upstream gradient depends on the
/// inputs, so that linear functions have second derivatives too.
fn check_case(case: &Case) -> Result<()> {
    let inputs: Vec<&T> = case.inputs.iter().collect();
    check_gradients(&case.f, &inputs, SECOND_ORDER)?;
    check_gradients(|xs: &[T]| (case.f)(xs)?.square(), &inputs, SECOND_ORDER)
}

//! Mutation tests of the derivative rules: the checks of `gradcheck.rs` fail for every rule made wrong in
//! every way, one at a time.

pub mod mutants;

use std::collections::BTreeSet;
use std::io::Write;
use std::time::Instant;

use crate::gradcheck::check::check;
use crate::gradcheck::registry::recorded_ops;
use mutants::{Misreading, Mutant, Mutation, mutants, with_mutant, with_rules_noted};
use swath::Error;

/// Mutants that compute the right gradient, with the reason. They must pass the checks.
const EQUIVALENT: &[(&str, usize, Misreading, &str)] = &[
    ("relu", 0, READ_X_AS_Y, "relu_grad compares with 0, and x > 0 where y > 0"),
    ("relu6", 0, READ_X_AS_Y, "x lies between 0 and 6 where y does"),
    ("xlogy", 0, READ_1_AS_A, AT_ZEROS),
    ("xlogy", 0, READ_G_AS_A, AT_ZEROS),
    ("xlogy", 0, READ_B_AS_A, AT_ZEROS),
    ("xlogy", 0, READ_Y_AS_A, AT_ZEROS),
    ("clamp", 0, READ_Y_AS_A, "a lies between the bounds where y does"),
    ("clamp", 1, READ_Y_AS_A, "a is above its lower bound where y is"),
    ("clamp", 2, READ_Y_AS_A, "a is below its upper bound where y is"),
    ("clamp", 2, READ_Y_AS_B, "y is the upper bound where a or b is not below that"),
];

const AT_ZEROS: &str =
    "a matters where it is 0, and b not positive, where there are no differences";

const READ_1_AS_A: Misreading = Misreading { value: "a", instead: None };
const READ_G_AS_A: Misreading = Misreading { value: "a", instead: Some("g") };
const READ_B_AS_A: Misreading = Misreading { value: "a", instead: Some("b") };
const READ_X_AS_Y: Misreading = Misreading { value: "y", instead: Some("x") };
const READ_Y_AS_A: Misreading = Misreading { value: "a", instead: Some("y") };
const READ_Y_AS_B: Misreading = Misreading { value: "b", instead: Some("y") };

fn is_equivalent(mutant: &Mutant) -> bool {
    EQUIVALENT.iter().any(|&(op, input, reading, _)| {
        (mutant.op, mutant.input, mutant.misreading) == (op, input, Some(reading))
    })
}

/// The registry lists exactly the ops whose rules run, so that no rule is left out.
#[test]
fn unchanged_rules_pass_and_the_registry_lists_the_rules_that_run() {
    let listed: BTreeSet<&str> = recorded_ops().iter().map(|op| op.name).collect();
    let mut run = BTreeSet::new();
    for op in &listed {
        let (result, names) = with_rules_noted(|| check(op));
        result.unwrap_or_else(|failed| panic!("{op}: {}: {}", failed.case, failed.error));
        assert!(names.contains(op), "the cases of {op} do not run its rule");
        run.extend(names);
    }
    assert_eq!(run, listed, "the ops in gradcheck/registry.rs differ from those whose rules run");
}

#[test]
fn every_mutant_is_killed() {
    let start = Instant::now();
    let (equivalent, mutants): (Vec<_>, Vec<_>) = mutants().into_iter().partition(is_equivalent);
    let mut survivors = Vec::new();
    for mutant in &mutants {
        match with_mutant(mutant, || check(mutant.op)) {
            Err(failed) => {
                let detected = matches!(failed.error, Error::GradientCheck { .. });
                assert!(detected, "{mutant}: {}: {}", failed.case, failed.error);
            }
            Ok(()) => survivors.push(mutant.to_string()),
        }
    }
    let (all, killed) = (mutants.len(), mutants.len() - survivors.len());
    let seconds = start.elapsed().as_secs_f64();
    // Written directly, because the harness hides the output of the macros if the test passes.
    writeln!(std::io::stderr(), "{killed} of {all} mutants killed in {seconds:.1} s").unwrap();
    assert!(survivors.is_empty(), "survivors:\n{}", survivors.join("\n"));
    assert_eq!(equivalent.len(), EQUIVALENT.len());
    for mutant in equivalent {
        assert!(with_mutant(&mutant, || check(mutant.op)).is_ok(), "{mutant} is killed");
    }
}

#[test]
fn every_input_of_every_op_has_every_mutation() {
    let mutants = mutants();
    for op in recorded_ops() {
        for input in 0..op.gradients.len() {
            for mutation in Mutation::ALL {
                let found = mutants.iter().any(|mutant| {
                    (mutant.op, mutant.input, mutant.mutation) == (op.name, input, mutation)
                });
                assert!(found, "{} {input} {mutation:?}", op.name);
            }
        }
    }
}

#[test]
fn a_mutation_is_limited_to_its_closure_and_thread() {
    let exp = || check("exp");
    let mutant = |op, misreading| {
        let mutation = Mutation::Sign;
        Mutant { op, input: 0, mutation, misreading, recorded_only: false }
    };
    let g_as_y = Misreading { value: "y", instead: Some("g") };
    for misreading in [None, Some(g_as_y)] {
        let wrong = mutant("exp", misreading);
        assert!(with_mutant(&wrong, exp).is_err());
        assert!(exp().is_ok());
        let panicked = std::panic::catch_unwind(|| with_mutant(&wrong, || panic!("on purpose")));
        assert!(panicked.is_err() && exp().is_ok());
        let elsewhere = || std::thread::spawn(|| check("exp").is_ok()).join().unwrap();
        assert!(with_mutant(&wrong, elsewhere));
        // Other ops and other inputs are not changed.
        assert!(with_mutant(&mutant("log", misreading), exp).is_ok());
    }
    assert!(with_mutant(&Mutant { input: 1, ..mutant("exp", None) }, exp).is_ok());
}

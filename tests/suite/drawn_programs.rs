//! Programs drawn at random: what an operation gives for drawn operands, shapes, dtypes, layouts and arguments, of
//! which some are wrong, equals the reference backend's result, or is an error that names the operation. Nothing
//! panics. The fuzz target `programs` draws more of them.

mod calls;
pub mod draw;
mod program;

use std::panic::{AssertUnwindSafe, catch_unwind};

use swath::Rng;

#[test]
fn programs_give_the_references_values_or_errors_that_name_the_operation() {
    let programs = if crate::support::is_full() { 20_000 } else { 1_500 };
    let mut failed = 0;
    let mut seen = program::Seen::default();
    for seed in 0..programs {
        let mut rng = Rng::seed(seed);
        let bytes: Vec<u8> = (0..1500).map(|_| rng.next_u64() as u8).collect();
        let run = catch_unwind(AssertUnwindSafe(|| program::run(&bytes, &mut seen)));
        failed += usize::from(run.is_err());
    }
    assert_eq!(failed, 0, "programs failed, of {programs}");
    // The draws reach every operation, with values and with errors.
    let missing = seen.without_a_value();
    assert!(missing.is_empty(), "never computed: {missing:?}");
    assert!(seen.errors > 0 && seen.values > seen.errors, "{seen:?}");
}

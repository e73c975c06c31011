//! Every operation of a backend against the reference backend, at the level of the [`Backend`](swath::Backend)
//! trait: operation × dtype × shape × layout.
//!
//! The tests are functions of the backend. [`backend_suite`](crate::testing::suite::backend_suite) lists them: those of
//! the required methods, of which some cover all combinations of layouts, and those of methods that have a default.

pub mod assign;
pub mod elementwise;
pub mod errors;
pub mod half;
pub mod large;
pub mod matmul;
pub mod mixes;
pub mod movement;
pub mod order;
pub mod owned;
pub mod provided;
pub mod reduce;
pub mod scan;
pub mod ternary;

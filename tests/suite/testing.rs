//! The tests of all backends: compiled here, or those of the library with the feature `testing-suite`.

#[cfg(not(feature = "testing-suite"))]
#[path = "../../src/testing/suite/mod.rs"]
pub mod suite;
#[cfg(feature = "testing-suite")]
pub use swath::testing::suite;

pub use suite::{Tested, backend_suite};

//! Every operation of the CPU backend against the reference backend, at the level of the
//! [`swath::Backend`] trait: operation × dtype × shape × arrangement in memory.

#[path = "backends/agree.rs"]
mod agree;
#[path = "backends/elementwise.rs"]
mod elementwise;
#[path = "backends/errors.rs"]
mod errors;
#[path = "backends/inputs.rs"]
mod inputs;
#[path = "backends/large.rs"]
mod large;
#[path = "backends/matmul.rs"]
mod matmul;
#[path = "backends/movement.rs"]
mod movement;
#[path = "backends/owned.rs"]
mod owned;
#[path = "backends/provided.rs"]
mod provided;
#[path = "backends/reduce.rs"]
mod reduce;
#[path = "backends/scan.rs"]
mod scan;
#[path = "backends/ternary.rs"]
mod ternary;
#[path = "backends/ulp.rs"]
mod ulp;

/// The backend under test.
type Subject = swath::CpuBackend;

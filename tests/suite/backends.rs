//! Every operation of the CPU backend against the reference backend, at the level of the
//! [`swath::Backend`] trait: operation × dtype × shape × arrangement in memory.

mod elementwise;
mod errors;
mod half;
mod large;
mod matmul;
mod mixes;
mod movement;
mod owned;
mod provided;
mod reduce;
mod scan;
mod ternary;

/// The backend under test.
type Subject = swath::CpuBackend;

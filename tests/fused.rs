//! Fused ops of rows and optimizer steps: the CPU backend against the reference backend, against the
//! ops they are made of, and against PyTorch. Derivatives against finite differences, and every rule
//! made wrong, are in `tests/gradcheck.rs` and `tests/mutation.rs`.

#[allow(dead_code, reason = "shared with tests/backends.rs")]
#[path = "backends/agree.rs"]
mod agree;
#[path = "fused/behaviour.rs"]
mod behaviour;
#[path = "fused/bounds.rs"]
mod bounds;
#[path = "fused/definitions.rs"]
mod definitions;
#[allow(dead_code, reason = "shared with tests/backends.rs")]
#[path = "backends/inputs.rs"]
mod inputs;
#[path = "fused/reference.rs"]
mod reference;
#[path = "fused/rms_norm.rs"]
mod rms_norm;
#[allow(dead_code, reason = "shared with tests/backends.rs")]
#[path = "backends/ulp.rs"]
mod ulp;
#[path = "fused/update.rs"]
mod update;
#[path = "fused/vectors.rs"]
mod vectors;

/// The backend under test.
type Subject = swath::CpuBackend;

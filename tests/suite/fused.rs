//! Fused ops and optimizer steps: the CPU backend against the reference backend, against the
//! ops they are made of, and against PyTorch. Derivatives against finite differences, and every rule
//! made wrong, are in `gradcheck.rs` and `mutation.rs`.

mod behaviour;
mod bounds;
mod columns;
mod definitions;
mod dot;
mod reference;
mod rms_norm;
mod sincos;
mod update;
mod vectors;

/// The backend under test.
type Subject = swath::CpuBackend;

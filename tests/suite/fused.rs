//! Fused ops and optimizer steps: PyTorch's results, bits, errors. Every backend's are compared with the reference
//! backend's by `crate::testing::backend_suite!`; derivatives are checked against finite differences in
//! `gradcheck.rs`, and by mutation in `mutation.rs`.

mod behaviour;
mod columns;
mod conv;
mod definitions;
mod dot;
mod pool;
mod sincos;
mod update;
mod vectors;

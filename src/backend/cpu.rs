//! The CPU backend.

pub use super::reference::ReferenceBackend as CpuBackend;

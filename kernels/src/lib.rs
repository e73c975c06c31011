//! Accurate, bit-reproducible SIMD kernels on slices.

pub mod dispatch;
mod simd;

pub use dispatch::{Isa, IsaError, isa, try_isa};
pub use simd::Float;

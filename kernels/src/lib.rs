//! Accurate, bit-reproducible SIMD kernels on slices.

pub mod dispatch;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod peak;
mod simd;

pub use dispatch::{Isa, IsaError, isa, try_isa};
pub use simd::Float;

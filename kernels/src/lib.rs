//! Accurate, bit-reproducible SIMD kernels on slices.

pub mod dispatch;
mod map;
pub mod math;
mod output;
mod simd;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use dispatch::{Isa, IsaError, isa, try_isa};
pub use map::{Arg, Binary, Unary};
pub use math::functions::*;
pub use output::Output;
pub use simd::Float;

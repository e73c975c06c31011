//! Accurate, bit-reproducible SIMD kernels on slices.

pub mod dispatch;
mod map;
mod output;
mod simd;

pub use dispatch::{Isa, IsaError, isa, try_isa};
pub use map::{Arg, Binary, Unary};
pub use output::Output;
pub use simd::Float;

//! Accurate, bit-reproducible SIMD kernels on slices.

pub mod dispatch;
pub mod gemm;
mod simd;

pub use dispatch::{Isa, IsaError, isa, try_isa};
pub use gemm::{
    Gemm, GemmError, MatMut, MatRef, PackedB, PackedGemm, Workspace, gemm, gemm_packed,
};
pub use simd::Float;

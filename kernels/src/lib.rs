//! Accurate, bit-reproducible SIMD kernels on slices.

mod copy;
pub mod dispatch;
mod fold;
pub mod gemm;
mod map;
pub mod math;
mod output;
#[cfg(feature = "peak")]
#[doc(hidden)]
pub mod peak;
mod reduce;
mod simd;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use copy::{Plain, Transpose, copy_strided, fill, transpose};
pub use dispatch::{Isa, IsaError, isa, try_isa};
pub use fold::PairwiseSum;
pub use gemm::{
    Gemm, GemmError, MatMut, MatRef, PackedB, PackedGemm, Workspace, gemm, gemm_packed,
};
pub use map::{Arg, Binary, Unary};
pub use math::functions::*;
pub use output::Output;
pub use reduce::{Reduce, dot, max, max_columns, min, min_columns, sum, sum_columns};
pub use simd::Float;

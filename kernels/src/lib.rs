//! Accurate, bit-reproducible SIMD kernels on slices of `f32` and `f64`: element-wise functions,
//! reductions, functions of rows (softmax, cross-entropy, layer norm, rms norm), scans,
//! scatter-add, optimizer steps, matrix products, copies and transposes. Reductions and products
//! also take 16-bit floats. The crate knows no tensors and no threads, and allocates only a
//! product's [`Workspace`], which the caller keeps.
//!
//! ```
//! let x = [0.5f32, 1.0, 2.0];
//! let mut y = [0.0; 3];
//! swath_kernels::log(&x, &mut y);
//! assert_eq!(y[1], 0.0);
//! assert_eq!(swath_kernels::sum(&x), 3.5);
//! ```
//!
//! - *Fast in a plain build.* The instruction set (AVX-512, AVX2 with FMA and F16C, NEON, or
//!   portable code) is detected once, at run time; see [`isa`] and [`dispatch`].
//! - *The same bits everywhere.* An element's result depends on its value alone: not on its
//!   position, the length of the slice or the instruction set. The order in which a sum is added
//!   depends on its length alone; see [`PairwiseSum`]. (A NaN is a NaN: its sign and payload are
//!   the CPU's own.)
//! - *Accurate.* [`math::ULP_BOUNDS`] holds an error bound per function, valid on every instruction
//!   set. Functions of one `f32` were measured on all inputs, functions of two on 2^30 pairs. Each
//!   function in [`math`] documents its measured error; derivatives and functions of three
//!   arguments state their bounds there too.
//! - *Outputs may be uninitialised memory*, see [`Output`]. A [`Kernel`] also runs in place and on
//!   blocks of rows.
//!
//! # Stack
//!
//! A thread that calls these functions needs 512 KiB of stack (Rust's threads have 2 MiB by
//! default). The largest user is a reduction along columns, which keeps 194 KiB of sums there.
//!
//! # Write a kernel in five steps
//!
//! These are for kernels of this crate. A program that depends on it defines its own with the feature
//! `pulp`: see `SimdOp` and `map_with`.
//!
//! 1. *Learn the vocabulary*: the traits `Lanes` and `Vector` of `simd.rs`. Every operation is
//!    specified exactly, so a kernel written in it has the same bits on every instruction set. If
//!    an operation is missing, add it to the trait, to the four instruction sets under `simd/` and
//!    to `wide.rs`, which pairs vectors; the tests beside them compare it with the scalar level.
//! 2. *Write the kernel* in the file of its family under `math/`: a unit struct that implements
//!    `Map` for its number of arguments, with `#[inline(always)]` on `apply` and on everything it
//!    calls.
//!
//!    ```text
//!    pub struct Cube;
//!
//!    impl<E: Float> Map<E, 1> for Cube {
//!        #[inline(always)]
//!        fn apply<S: Lanes<E>>(_simd: S, [x]: [S::V; 1]) -> S::V {
//!            x * x * x
//!        }
//!    }
//!    ```
//! 3. *Name it* by a row in the table of `math.rs`: `cube Cube cheap;`, or `costly` if an element
//!    costs a polynomial or more. The cost decides how work is shared among threads. The row makes
//!    the function `swath_kernels::cube` and the [`Kernel`] `math::Cube::KERNEL`, compiled for
//!    every instruction set.
//! 4. *State its contract* in the struct's documentation: domain, largest error (as measured in
//!    `ACCURACY.md`), NaN, infinities, signed zeros, subnormals, and the provenance of the
//!    coefficients.
//! 5. *Promise a bound* by two numbers in the row, `cube Cube cheap 1 1;`: the largest distance
//!    from the correctly rounded result, in floats, for `f32` and `f64`. In `tests/suite/`, `accuracy.rs`
//!    then requires a row under `functions/`, with independent references and domains, and a row
//!    of `ACCURACY.md` (`exhaustive.rs` says how to measure it). `hashes.rs` requires the
//!    function's bits in `HASHES.txt`, and says how to record them. Rows without numbers are
//!    tested elsewhere: functions of three arguments by `ternary.rs` and by their calls in
//!    `calls/element_wise.rs`, derivatives by `gradients.rs` and their list in
//!    `functions/gradient.rs`.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over ranges share one iterator; iterator adaptors are compiled anew per kernel"
)]

mod api;
mod attention;
mod compare;
mod convert;
mod copy;
pub mod dispatch;
mod fold;
pub mod gemm;
mod geometry;
mod integer_gemm;
mod integer_map;
mod map;
pub mod math;
mod optim;
mod output;
#[cfg(feature = "peak")]
#[doc(hidden)]
pub mod peak;
#[doc(hidden)]
pub mod poison;
mod pool;
mod random;
pub mod reduce;
mod rows;
mod scatter;
mod simd;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use api::{
    Rows, Scan, adam, all, any, argmax, argmin, attention_weights, attention_weights_grad,
    avg_pool, avg_pool_grad, compare, compare_block, convert, copy_strided, cross_entropy_columns,
    cross_entropy_grad_columns, cross_entropy_grad_rows, cross_entropy_rows, cumprod_columns,
    cumprod_rows, cumsum_columns, cumsum_rows, dot, draw_normal, draw_uniform, dropout,
    dropout_factors, fill, gemm, integer_gemm, integer_map, layer_norm_grad_rows, layer_norm_rows,
    log_softmax, log_softmax_columns, log_softmax_grad_columns, log_softmax_grad_rows,
    log_softmax_rows, logsumexp, logsumexp_columns, math::*, max, max_pool, mean, min, nonzero,
    norm1, norm2, partial_columns, permute, philox_words, power, prod, reduce, reduce_columns,
    rms_norm_grad_rows, rms_norm_rows, row_dots, scatter_add_rows, select, select_block, sgd,
    sincos, softmax, softmax_columns, softmax_grad_columns, softmax_grad_rows, softmax_rows, std,
    sum, test_numbers, test_numbers_block, transpose, variance, with_place,
};
pub use attention::ScoreBlock;
pub use compare::{Compare, Comparison, NumberTest, Select};
pub use convert::{Convert, Truth};
pub use copy::{Permute, Plain, Transpose};
pub use dispatch::{Isa, IsaError, isa, try_isa};
pub use fold::partial::{
    Decided, Extremum, Located, Moments, Ordered, Partial, Product, SquareSum, Total,
    WrappedProduct,
};
pub use fold::{Pairwise, PairwiseSum};
pub use gemm::{
    Bias, Epilogue, Factor, Gemm, GemmError, GemmPath, InPlace, Indirect, Left, MatMut, MatRef,
    PackedB, Right, Windows, Workspace,
};
pub use geometry::{Geometry, GeometryError, Sliding};
pub use integer_map::{ArithmeticInteger, IntegerOp};
#[cfg(feature = "pulp")]
pub use map::program::{SimdFloat, SimdOp, map_block_with, map_with};
pub use map::{Arg, Block, BlockArg, Function, Kernel, Stored};
pub use math::Angle;
pub use optim::{Adam, Sgd};
pub use output::{Output, Place};
#[cfg(feature = "pulp")]
pub use pulp;
pub use random::{Drawn, Dropout, Uniform};
pub use reduce::{Accumulate, Reduce};
pub use rows::{
    CrossEntropyColumns, CrossEntropyRows, LayerNormGradRows, LayerNormRows, RmsNormGradRows,
    RmsNormRows,
};
pub use scatter::Addend;
pub use simd::Float;

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

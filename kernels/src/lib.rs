//! Accurate, bit-reproducible SIMD kernels on slices: element-wise functions, folds, functions of
//! rows (softmax, cross-entropy, layer norm, rms norm), scans, addition of rows by index, optimizers' steps,
//! matrix products, copies and transposes, for `f32` and `f64`, folds and products for 16-bit floats too. No
//! tensors, no threads, no allocation but that of a product's [`Workspace`], which the caller keeps.
//!
//! ```
//! let x = [0.5f32, 1.0, 2.0];
//! let mut y = [0.0; 3];
//! swath_kernels::log(&x, &mut y);
//! assert_eq!(y[1], 0.0);
//! assert_eq!(swath_kernels::sum(&x), 3.5);
//! ```
//!
//! - *Fast in a plain build.* The instruction set (AVX-512, AVX2 with FMA and F16C, NEON, else portable code)
//!   is detected at run time, once; see [`isa`] and [`dispatch`].
//! - *The same bits everywhere.* An element's result depends on its value alone: not on its position,
//!   the slice's length or the instruction set. Sums are added in an order that depends on the
//!   length alone; see [`PairwiseSum`]. (NaN is NaN: its sign and payload are the CPU's own.)
//! - *Accurate.* [`math::ULP_BOUNDS`] is what is promised, on every instruction set: for functions of one `f32`
//!   it was measured on all inputs, of two on 2^30 pairs. The figures measured stand with each function in
//!   [`math`], as does what derivatives and functions of three arguments promise.
//! - *Outputs may be uninitialised memory*, see [`Output`]; a [`Kernel`] also runs in place, and on blocks of rows.
//!
//! # Stack
//!
//! A thread that calls these functions needs 512 KiB: Rust's have 2 MiB. Reductions along columns keep their sums
//! there, 194 KiB.
//!
//! # Write a kernel in five steps
//!
//! 1. *Learn the vocabulary*: the traits `Lanes` and `Vector` of `simd.rs`. Every operation is exactly
//!    specified, so a kernel written in it has the same bits on every instruction set. An operation
//!    that is missing is added to the trait, to the four files of instruction sets under `simd/` and to
//!    `wide.rs`, which pairs vectors; the tests beside them compare it with the scalar level.
//! 2. *Write the kernel* in the file of its family under `math/`: a unit struct that implements `Map` for its
//!    number of arguments, with `#[inline(always)]` on `apply` and all that it calls.
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
//! 3. *Name it* by a row in the table of `math.rs`: `cube Cube cheap;`, or `costly` where an element costs a
//!    polynomial or more: the cost decides how work is shared among threads. The row gives the function `swath_kernels::cube` and
//!    the [`Kernel`] `math::Cube::KERNEL`, compiled for every instruction set.
//! 4. *State its contract* in the struct's documentation: domain, largest error (`ACCURACY.md` says
//!    where), NaN, infinities, signed zeros and subnormals, where the coefficients come from.
//! 5. *Promise a bound* by two numbers in the row, `cube Cube cheap 1 1;` (floats from the correctly rounded
//!    result, `f32` and `f64`). `tests/accuracy.rs` then wants a row under `tests/functions/` too:
//!    independent references and domains, and a row of `ACCURACY.md`, which `tests/exhaustive.rs` says how
//!    to measure. The sample runs on every instruction set of the machine. `tests/hashes.rs` wants the
//!    function's bits in `HASHES.txt`, and says how they get there. A row of three arguments takes no numbers:
//!    its contract alone promises, a test in `tests/ternary.rs` holds it to that, and its bits are those of
//!    its calls in `tests/calls/element_wise.rs`, which `tests/lengths.rs` asks for. Nor does the row of a
//!    derivative, which is compared in `tests/gradients.rs` and listed in `tests/functions/gradient.rs`.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over ranges share one iterator; adaptors are compiled anew for each kernel"
)]

mod api;
mod attention;
mod compare;
mod convert;
mod copy;
pub mod dispatch;
mod fold;
pub mod gemm;
mod map;
pub mod math;
mod optim;
mod output;
#[cfg(feature = "peak")]
#[doc(hidden)]
pub mod peak;
mod random;
pub mod reduce;
mod rows;
mod scatter;
mod simd;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use api::{
    IntegerFold, Rows, adam, all, all_columns, any, any_columns, argmax, argmax_columns, argmin,
    argmin_columns, attention_weights, attention_weights_grad, col2im, compare, compare_block,
    convert, copy_strided, cross_entropy_grad_rows, cross_entropy_rows, cumprod_columns,
    cumprod_rows, cumsum_columns, cumsum_rows, dot, dropout, fill, gemm, gemm_bias, gemm_epilogue,
    gemm_packed, im2col, layer_norm_grad_rows, layer_norm_rows, log_softmax, log_softmax_grad_rows,
    log_softmax_rows, logsumexp, logsumexp_columns, math::*, max, max_columns, max_magnitude,
    max_magnitude_columns, mean, mean_columns, min, min_columns, min_magnitude,
    min_magnitude_columns, nonzero, norm0, norm0_columns, norm1, norm1_columns, norm2,
    norm2_columns, partial_columns, permute, philox_words, power, prod, prod_columns, reduce,
    reduce_columns, rms_norm_grad_rows, rms_norm_rows, row_dots, scan_integer_columns,
    scan_integer_rows, scatter_add_rows, scatter_add_rows_from, select, select_block, sgd, sincos,
    softmax, softmax_grad_rows, softmax_rows, std, std_columns, sum, sum_columns, test_numbers,
    test_numbers_block, transpose, variance, variance_columns, with_place,
};
pub use attention::{Attend, ScoreBlock};
pub use compare::{Compare, Comparison, NumberTest, Select};
pub use convert::{Convert, Truth};
pub use copy::{Im2col, Permute, Plain, Transpose};
pub use dispatch::{Isa, IsaError, isa, try_isa};
pub use fold::partial::{
    Decided, Extremum, Located, Moments, Ordered, Partial, Product, SquareSum, Total,
    WrappedProduct,
};
pub use fold::{Pairwise, PairwiseSum};
pub use gemm::{
    Activation, Epilogue, Factor, Gemm, GemmError, GemmPath, MatMut, MatRef, PackedB, PackedGemm,
    Workspace,
};
pub use map::{Arg, Block, BlockArg, Function, Kernel, Stored};
pub use math::Angle;
pub use optim::{Adam, Sgd};
pub use output::{Output, Place};
pub use random::Dropout;
pub use reduce::{Accumulate, Integer, Reduce};
pub use rows::{CrossEntropyRows, LayerNormGradRows, LayerNormRows, RmsNormGradRows, RmsNormRows};
pub use scatter::Addend;
pub use simd::Float;

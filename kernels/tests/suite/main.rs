//! The tests of the kernels' public interface, in one program, so that generic code and the tables of
//! functions and calls are compiled once.
//!
//! `cargo test -p swath-kernels --test kernels gemm::` runs the tests of one file. Tests run concurrently, so
//! none may change global state.

mod accuracy;
mod attention;
mod bounds;
mod calls;
mod compare;
mod convert;
mod exhaustive;
mod functions;
mod gemm;
mod gemm_batch;
mod gemm_bounds;
mod gemm_epilogue;
mod gemm_errors;
mod gemm_halves;
mod gemm_nothing;
mod gemm_specials;
mod gradients;
mod guarded;
mod hashes;
mod integers;
mod invariance;
mod lengths;
mod parameters;
mod products;
mod random;
mod reference;
mod rms_norm;
mod rows;
mod scan;
mod scatter;
mod table;
mod ternary;
mod trigonometric;
mod unfit;

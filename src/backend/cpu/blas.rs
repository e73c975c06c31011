//! The system BLAS. The rest of the backend calls [`Blas`], which declines products that the library cannot
//! or should not compute.
//!
//! A [`Provider`](provider::Provider) is a library: its `products`, the functions that compute, and its
//! `threads`, the control that limits a call to the calling thread.
//!
//! | file | content |
//! |---|---|
//! | `open` | the library of this process: linked, or opened at run time |
//! | `provider` | a library as swath calls it |
//! | `vendor` | detection of the vendor, control of its threads, version and core type |
//! | `self_test` | products that a library must compute correctly before it is used |
//! | `plan` | matrices in BLAS's terms; the grid of calls |
//! | `product` | the calls of a product, shared by threads |
//! | `call` | one call, with checked arguments |
//! | `none` | a build without a provider |
//!
//! 1. A matrix must be row-major with a leading dimension, or the transpose of such a matrix. All others
//!    are declined and left to the embedded product.
//! 2. The library uses the calling thread alone; swath's threads share the calls.
//! 3. C is cut into tiles, one call each, unless a batch has at least one product per core. The grid depends
//!    on the shapes and on the number of cores available to the process, so the bits do not depend on the
//!    number of threads.
//! 4. Every argument is checked to fit the library's integers, and no extent is zero. A canary in each C
//!    shows if a call wrote it. A library that fails is not called again.

#![cfg_attr(not(blas = "blas-dynamic"), allow(dead_code, reason = "other builds use less of it"))]

#[cfg(any(test, blas))]
mod call;
#[cfg(test)]
mod mock;
#[cfg(not(any(test, blas)))]
mod none;
#[cfg(blas)]
mod open;
#[cfg(any(test, blas))]
mod plan;
#[cfg(any(test, blas))]
mod product;
#[cfg(any(test, blas))]
mod provider;
#[cfg(any(test, blas))]
mod self_test;
#[cfg(test)]
mod tests;
#[cfg(any(test, blas))]
mod vendor;

#[cfg(not(any(test, blas)))]
pub(super) use none::Blas;
#[cfg(not(any(test, blas)))]
pub(crate) use none::info;
#[cfg(any(test, blas))]
pub(super) use product::Blas;
#[cfg(any(test, blas))]
pub(crate) use provider::info;

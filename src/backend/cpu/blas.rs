//! The system BLAS. The rest of the backend asks [`Blas`], which declines what the library cannot or
//! should not compute.
//!
//! A [`Provider`](provider::Provider) is a library: its `products`, the functions that compute, and its
//! `threads`, the control that keeps a call to the thread that makes it.
//!
//! | file | content |
//! |---|---|
//! | `open` | the library of this process: linked, or opened at run time |
//! | `provider` | a library as swath calls it |
//! | `vendor` | who made it, how its threads are controlled, what it says of itself |
//! | `self_test` | products that it must compute before it is used |
//! | `plan` | matrices in BLAS's terms; the grid of calls |
//! | `product` | the calls of a product, shared by threads |
//! | `call` | one call, its arguments checked |
//!
//! 1. A matrix is row-major with a leading dimension, or the transpose of one; everything else is
//!    declined and goes to the embedded product.
//! 2. The library uses the calling thread alone; swath's threads share the calls.
//! 3. C is cut into tiles, one call each, unless a batch has a product for every core. The grid depends
//!    on the shapes and on the cores that the process may use, so the bits do not depend on the threads.
//! 4. Every number is checked to fit the library's integers, extents of zero never reach it, and a
//!    canary in each C tells whether a call wrote it. A library that fails is not called again.

#![cfg_attr(not(blas = "blas-dynamic"), allow(dead_code, reason = "other builds use less of it"))]

mod call;
#[cfg(test)]
mod mock;
#[cfg(blas)]
mod open;
mod plan;
mod product;
mod provider;
mod self_test;
#[cfg(test)]
mod tests;
mod vendor;

pub(super) use product::Blas;
pub(crate) use provider::info;

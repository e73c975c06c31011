//! The crate's public functions on slices, with their contracts, one file per family. A function
//! checks its arguments, or calls a kernel that does; a check that `unsafe` code relies on stays
//! beside that code.

mod attention;
mod call;
mod columns;
mod compare;
mod convert;
mod copy;
mod integers;
pub mod math;
mod optim;
mod pool;
mod products;
mod random;
mod reduce;
mod rows;
mod scan;
mod scatter;

pub use self::{
    attention::*, columns::*, compare::*, convert::*, copy::*, integers::*, math::sincos, optim::*,
    pool::*, products::*, random::*, reduce::*, rows::*, scan::*, scatter::*,
};
pub use call::Rows;

/// Panics unless `len` is `wanted`; `name` is the function at fault.
#[inline]
#[track_caller]
fn same_len(name: &str, len: usize, wanted: usize) {
    assert!(len == wanted, "{name}: expected {wanted} elements, got {len}");
}

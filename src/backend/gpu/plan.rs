//! What is dispatched: an op becomes plans, which are data and know no device.

pub mod attention;
pub mod conv;
pub mod elementwise;
mod expressions;
pub mod index;
pub mod matmul;
pub mod pool;
pub mod reduce;
pub mod rows;
#[cfg(test)]
mod tests;
pub mod update;
pub mod windows;

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::shape::Shape;

use super::shader::{GROUP, WORDS};

/// The words that a kernel reads.
pub type Words = SmallVec<[u32; WORDS]>;

/// One dispatch, without its buffers.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<K> {
    /// The kernel.
    pub kernel: K,
    /// What the kernel reads in `p.words`.
    pub words: Words,
    /// Number of workgroups along each axis.
    pub grid: [u32; 3],
}

/// Maximum number of workgroups along an axis.
pub const MAX_GROUPS: usize = 65_535;

/// The largest position or extent: in the last row of a grid that ends there no thread's number wraps.
const LARGEST: usize = u32::MAX as usize - MAX_GROUPS * GROUP;

/// A position or an extent as a word.
///
/// # Errors
/// [`Error::Overflow`] beyond about 2³², where kernels cannot index. No buffer of a device is larger; a tensor that
/// repeats its elements may be.
pub fn word(op: &'static str, shape: &Shape, x: usize) -> Result<u32> {
    match u32::try_from(x) {
        Ok(word) if x <= LARGEST => Ok(word),
        _ => Err(Error::Overflow { op, shape: *shape }),
    }
}

/// A step as a word: indices wrap, so that negative steps work.
pub fn step(op: &'static str, shape: &Shape, x: isize) -> Result<u32> {
    match i32::try_from(x) {
        Ok(x) => Ok(x.cast_unsigned()),
        Err(_) => word(op, shape, x.unsigned_abs()).map(|x| x.wrapping_neg()),
    }
}

/// The grid of at least `threads` threads in workgroups of [`GROUP`], and the number of threads in a row of it.
pub fn grid_of(threads: usize) -> ([u32; 3], u32) {
    let (grid, across) = groups_of(threads.div_ceil(GROUP));
    (grid, across * GROUP as u32)
}

/// The grid of at least `groups` workgroups, and the number of them in a row of it.
pub fn groups_of(groups: usize) -> ([u32; 3], u32) {
    let groups = groups.max(1);
    let across = groups.min(MAX_GROUPS);
    ([across as u32, groups.div_ceil(across) as u32, 1], across as u32)
}

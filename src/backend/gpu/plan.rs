//! Plans: the dispatches of an op as data, without a device.

/// The text of a file of `shaders/`.
macro_rules! shader {
    ($name:literal) => {
        include_str!(concat!("../shaders/", $name, ".wgsl"))
    };
}

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
pub mod words;

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::shape::Shape;

use super::shader::GROUP;
use words::{GridWords, Pack, Words, pack};

/// One dispatch, without its buffers.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<K> {
    /// The kernel.
    pub kernel: K,
    /// The words that the kernel reads.
    pub words: Words,
    /// Number of workgroups along each axis.
    pub grid: [u32; 3],
}

impl<K> Plan<K> {
    /// Plans the dispatch of a kernel that reads [`GridWords`], `fields` and `axes`, for `count` results.
    ///
    /// # Errors
    /// [`Error::Overflow`] if `count` does not fit a word; [`Error::TooManyAxes`].
    pub fn new(
        kernel: K,
        (op, shape): (&'static str, &Shape),
        count: usize,
        (grid, across): ([u32; 3], u32),
        fields: &[&dyn Pack],
        axes: &[u32],
    ) -> Result<Self> {
        let count = GridWords { count: word(op, shape, count)?, across };
        let fields: SmallVec<[&dyn Pack; 4]> =
            [&count as _].into_iter().chain(fields.iter().copied()).collect();
        Ok(Plan { kernel, words: pack(op, shape, &fields, axes)?, grid })
    }
}

/// Maximum number of workgroups along an axis.
pub const MAX_GROUPS: usize = 65_535;

/// The largest position or extent. The last row of a grid may go beyond it, and its thread numbers still fit a word.
const LARGEST: usize = u32::MAX as usize - MAX_GROUPS * GROUP;

/// Converts a position or an extent to a word.
///
/// # Errors
/// [`Error::Overflow`] beyond about 2³², where kernels cannot index. Buffers are smaller, but a broadcast tensor may not.
pub fn word(op: &'static str, shape: &Shape, x: usize) -> Result<u32> {
    match u32::try_from(x) {
        Ok(word) if x <= LARGEST => Ok(word),
        _ => Err(Error::Overflow { op, shape: *shape }),
    }
}

/// Fails if the last position of a layout does not fit a word.
pub fn check_positions(op: &'static str, layout: &Layout) -> Result<()> {
    let last = layout.extent(op)?.map_or(0, |(_, last)| last);
    word(op, layout.shape(), last).map(drop)
}

/// Converts a step to a word. Positions are computed modulo 2³², so negative steps work.
pub fn step(op: &'static str, shape: &Shape, x: isize) -> Result<u32> {
    match i32::try_from(x) {
        Ok(x) => Ok(x.cast_unsigned()),
        Err(_) => word(op, shape, x.unsigned_abs()).map(|x| x.wrapping_neg()),
    }
}

/// Returns a grid of at least `threads` threads in workgroups of [`GROUP`], and the number of threads in a row.
pub fn grid_of(threads: usize) -> ([u32; 3], u32) {
    let (grid, across) = groups_of(threads.div_ceil(GROUP));
    (grid, across * GROUP as u32)
}

/// Returns a grid of at least `groups` workgroups, and the number of workgroups in a row.
pub fn groups_of(groups: usize) -> ([u32; 3], u32) {
    let groups = groups.max(1);
    let across = groups.min(MAX_GROUPS);
    ([across as u32, groups.div_ceil(across) as u32, 1], across as u32)
}

//! A B whose rows are ranges of one slice that may overlap: products with the windows of padded images, as in the
//! indirect convolution algorithm (Dukhan 2019, arXiv 1907.02129).
//!
//! ```text
//! B[p, j] = data[offsets[p] + j]         nothing is packed: the micro-kernel reads its vectors in place
//! ```

use core::marker::PhantomData;

use super::matrix::GemmError;

/// A matrix `[k, n]` whose row p is `data[offsets[p]..offsets[p] + n]`.
///
/// In a convolution of padded images, rows are the taps of a window: `n` output pixels that are adjacent in memory read
/// `n` adjacent pixels at each tap. (At the end of an image's row these include windows that reach into the next row;
/// their results are not used.)
#[derive(Clone, Copy, Debug)]
pub struct Indirect<'a, E> {
    /// The first element of the slice.
    pub(super) data: *const E,
    pub(super) offsets: &'a [usize],
    columns: usize,
    lifetime: PhantomData<&'a [E]>,
}

impl<'a, E> Indirect<'a, E> {
    /// The matrix with rows of `columns` elements that begin at `offsets`.
    ///
    /// # Errors
    /// [`GemmError::OutOfBounds`] if a row exceeds `data`.
    pub fn new(data: &'a [E], offsets: &'a [usize], columns: usize) -> Result<Self, GemmError> {
        let last = offsets.iter().copied().max().unwrap_or(0);
        let is_inside = last.checked_add(columns).is_some_and(|end| end <= data.len());
        if !offsets.is_empty() && !is_inside {
            let (shape, strides) = ([offsets.len(), columns], [0, 1]);
            return Err(GemmError::OutOfBounds { offset: last, shape, strides, len: data.len() });
        }
        Ok(Indirect { data: data.as_ptr(), offsets, columns, lifetime: PhantomData })
    }

    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        [self.offsets.len(), self.columns]
    }
}

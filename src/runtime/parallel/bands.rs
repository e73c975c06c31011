//! Outputs that are cut into parts: several at the same units, or a matrix by its columns.

use std::marker::PhantomData;
use std::ops::Range;

use super::{Cost, even_start, for_each_index, parts};

/// An output in units of `width` elements; the last may be short.
pub(crate) struct Band<'a, T> {
    first: *mut T,
    len: usize,
    width: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: parts borrow disjoint pieces of a `&mut [T]`, and `T: Send`.
unsafe impl<T: Send> Sync for Band<'_, T> {}

impl<'a, T> Band<'a, T> {
    /// Makes an output from a slice.
    pub fn new(out: &'a mut [T], width: usize) -> Self {
        let (first, len) = (out.as_mut_ptr(), out.len());
        Band { first, len, width, borrow: PhantomData }
    }
}

/// A row-major matrix in units of `width` columns; the last may be short.
pub(crate) struct ColumnBand<'a, T> {
    first: *mut T,
    rows: usize,
    cols: usize,
    width: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: as for `Band`.
unsafe impl<T: Send> Sync for ColumnBand<'_, T> {}

impl<'a, T> ColumnBand<'a, T> {
    /// Makes an output from the rows of a matrix; `cols` is not 0.
    pub fn new(out: &'a mut [T], cols: usize, width: usize) -> Self {
        let (first, rows) = (out.as_mut_ptr(), out.len() / cols);
        ColumnBand { first, rows, cols, width, borrow: PhantomData }
    }
}

/// A range of columns of a matrix.
pub(crate) struct Columns<'a, T> {
    first: *mut T,
    rows: usize,
    pitch: usize,
    width: usize,
    borrow: PhantomData<&'a mut [T]>,
}

impl<T> Columns<'_, T> {
    /// The elements of row `i` in these columns.
    pub fn row(&mut self, i: usize) -> &mut [T] {
        assert!(i < self.rows, "row {i} of {}", self.rows);
        // SAFETY: the row is within the matrix, and this piece alone borrows its columns.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(i * self.pitch), self.width) }
    }
}

/// One output, or a tuple or an array of them.
pub(crate) trait Bands: Sync {
    /// Slices of a part, in the same arrangement as the outputs.
    type Piece;

    /// True if this number of units has all elements.
    fn is_covered(&self, units: usize) -> bool;

    /// Borrows a range of units.
    ///
    /// # Safety
    /// No other piece contains any of these units.
    unsafe fn piece(&self, units: &Range<usize>) -> Self::Piece;
}

impl<'a, T: Send> Bands for Band<'a, T> {
    type Piece = &'a mut [T];

    fn is_covered(&self, units: usize) -> bool {
        units.saturating_mul(self.width) >= self.len
    }

    unsafe fn piece(&self, units: &Range<usize>) -> &'a mut [T] {
        let at = |unit: usize| unit.saturating_mul(self.width).min(self.len);
        let (start, end) = (at(units.start), at(units.end));
        // SAFETY: `start <= end.max(start) <= len`; the band borrows the memory for `'a`, and as the caller
        // guarantees, no other piece contains this range.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(start), end.max(start) - start) }
    }
}

impl<'a, T: Send> Bands for ColumnBand<'a, T> {
    type Piece = Columns<'a, T>;

    fn is_covered(&self, units: usize) -> bool {
        units.saturating_mul(self.width) >= self.cols || self.rows == 0
    }

    unsafe fn piece(&self, units: &Range<usize>) -> Columns<'a, T> {
        let at = |unit: usize| unit.saturating_mul(self.width).min(self.cols);
        let (start, end) = (at(units.start), at(units.end));
        // Without rows, an offset would leave the allocation.
        let first = if self.rows == 0 { self.first } else { self.first.wrapping_add(start) };
        let width = end.max(start) - start;
        Columns { first, rows: self.rows, pitch: self.cols, width, borrow: PhantomData }
    }
}

impl<A: Bands, B: Bands> Bands for (A, B) {
    type Piece = (A::Piece, B::Piece);

    fn is_covered(&self, units: usize) -> bool {
        self.0.is_covered(units) && self.1.is_covered(units)
    }

    unsafe fn piece(&self, units: &Range<usize>) -> Self::Piece {
        // SAFETY: as the caller guarantees.
        unsafe { (self.0.piece(units), self.1.piece(units)) }
    }
}

impl<A: Bands, const N: usize> Bands for [A; N] {
    type Piece = [A::Piece; N];

    fn is_covered(&self, units: usize) -> bool {
        self.iter().all(|band| band.is_covered(units))
    }

    unsafe fn piece(&self, units: &Range<usize>) -> Self::Piece {
        // SAFETY: as the caller guarantees.
        std::array::from_fn(|i| unsafe { self[i].piece(units) })
    }
}

/// Cuts outputs of `units` units into as many parts as the work is worth and calls `f(units, pieces)` on each;
/// not at all if there are no units. `cost` is that of a unit.
///
/// # Panics
/// In debug builds, if the units leave elements out.
#[track_caller]
pub(crate) fn for_each_band<B: Bands>(
    units: usize,
    cost: Cost,
    out: B,
    f: impl Fn(Range<usize>, B::Piece) + Sync,
) {
    // A trait object, because `f` is called in two places and would be compiled twice.
    let f: &(dyn Fn(Range<usize>, B::Piece) + Sync) = &f;
    debug_assert!(out.is_covered(units), "{units} units leave out elements of an output");
    if units == 0 {
        return;
    }
    let parts = parts(units, cost);
    if parts == 1 {
        // SAFETY: there is only one part.
        let pieces = unsafe { out.piece(&(0..units)) };
        return f(0..units, pieces);
    }
    for_each_index(parts, |part| {
        let range = even_start(units, parts, part)..even_start(units, parts, part + 1);
        // SAFETY: ranges of different parts are disjoint, and each part comes once.
        let pieces = unsafe { out.piece(&range) };
        f(range, pieces);
    });
}

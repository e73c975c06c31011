//! Packing: B into panels as wide as a tile, and matrices copied row by row, such as an A whose k
//! is not contiguous. 16-bit floats are widened at the same time.
//!
//! ```text
//! B [depth, columns] ──> tile 0 [depth, width 0] | tile 1 [depth, width 1] | …
//! ```
//!
//! The micro-kernel reads each tile from front to back. The last one is padded with zeros to whole
//! vectors; the padding's products end up in lanes that are never written out.

use super::KC;
use super::factor::Factor;
use super::matrix::{MatRef, step};
use super::split::Split;
use super::tile::{MR, max_vectors};
use crate::simd::{Float, Isa, Lanes, MAX_LANES, Task, Vector};

/// Copies and packs an operand of any type, for loops that only know the type of the sums.
///
/// Positions and shapes are pairs, which are passed in registers. An array would be stored as two
/// numbers and read as one vector, which waits until the stores have reached the cache.
pub(super) trait Source<E> {
    /// Elements between rows and between columns.
    fn strides(&self) -> [isize; 2];
    /// Copies a part row by row by [`Copied`], into rows of length [`copied_row`].
    ///
    /// # Safety
    /// `dst` is valid for writes of these rows.
    unsafe fn copy(&self, at: (usize, usize), shape: (usize, usize), dst: *mut E);
    /// Packs a part, at most one panel wide and one block deep, by [`Pack`].
    ///
    /// # Safety
    /// `dst` is valid for writes of the part's rows, each rounded up to whole vectors.
    unsafe fn pack(&self, at: (usize, usize), shape: (usize, usize), dst: *mut E);
}

impl<T: Factor> Source<T::Sum> for MatRef<'_, T> {
    fn strides(&self) -> [isize; 2] {
        self.strides
    }
    unsafe fn copy(&self, at: (usize, usize), shape: (usize, usize), dst: *mut T::Sum) {
        let part = self.part(at.into(), shape.into());
        // SAFETY: the caller promises room for the rows.
        T::copy(&unsafe { Copied::new(&part, dst, copied_row(shape.1)) });
    }
    unsafe fn pack(&self, at: (usize, usize), shape: (usize, usize), dst: *mut T::Sum) {
        let part = self.part(at.into(), shape.into());
        // SAFETY: the caller promises room for the rows.
        T::pack(&unsafe { Pack::new(&part, usize::MAX, dst) });
    }
}

/// A B to pack: by panels, in each by blocks of k, in each by tiles. Passed by reference, for the
/// reason that [`Small`](super::Small) is.
pub struct Pack<'a, T: Factor> {
    b: &'a MatRef<'a, T>,
    nc: usize,
    dst: *mut T::Sum,
}

impl<'a, T: Factor> Pack<'a, T> {
    /// Packs into panels of at most `nc` columns, a multiple of whole vectors.
    ///
    /// # Safety
    /// `dst` is valid for writes of all rows of `b`, each rounded up to whole vectors.
    #[inline(always)]
    pub(super) unsafe fn new(b: &'a MatRef<'a, T>, nc: usize, dst: *mut T::Sum) -> Self {
        Pack { b, nc, dst }
    }
}

impl<'a, T: Factor> Task<T::Sum> for &Pack<'a, T> {
    type Home = Pack<'a, T>;
    type Output = Isa;

    #[inline(always)]
    fn run<S: Lanes<T::Sum>>(self, simd: S) -> Isa {
        let Pack { b, nc, dst } = *self;
        let [k, n] = b.shape;
        let panels = Split::new(n.div_ceil(S::LANES), nc / S::LANES);
        for panel in 0..panels.parts() {
            let (left, vectors) = (panels.start(panel) * S::LANES, panels.len(panel));
            let tiles = Split::new(vectors, const { max_vectors(S::ISA) });
            for from in (0..k).step_by(KC) {
                let depth = KC.min(k - from);
                // Earlier panels took `left * k` elements, earlier blocks of this panel whole
                // vectors.
                let block = dst.wrapping_add(left * k + from * vectors * S::LANES);
                for tile in 0..tiles.parts() {
                    let (start, width) = (tiles.start(tile) * S::LANES, tiles.len(tile) * S::LANES);
                    let columns = width.min(n - left - start);
                    let row = step(b.data.cast_mut(), from, b.strides[0]);
                    let data = step(row, left + start, b.strides[1]);
                    let dst = block.wrapping_add(start * depth);
                    let panel = Panel { data, strides: b.strides, depth, columns, width, dst };
                    // SAFETY: the columns `start..start + width` of the block belong to no other
                    // tile; the caller of `Pack::new` promised its memory.
                    unsafe {
                        match b.strides {
                            [_, 1] => panel.copy(simd),
                            [1 | -1, _] => panel.transpose(simd),
                            _ => panel.gather(),
                        }
                    }
                }
            }
        }
        S::ISA
    }
}

/// One tile: `columns` columns of B become `width` columns of `dst`, padded with zeros.
struct Panel<T: Factor> {
    data: *const T,
    strides: [isize; 2],
    depth: usize,
    columns: usize,
    width: usize,
    dst: *mut T::Sum,
}

impl<T: Factor> Panel<T> {
    /// Copies rows, if columns are contiguous.
    ///
    /// # Safety
    /// Every element of the panel is valid for reads, `dst` for writes of `depth * width`, whole
    /// vectors.
    #[inline(always)]
    unsafe fn copy<S: Lanes<T::Sum>>(&self, simd: S) {
        let (whole, rest) = (self.columns / S::LANES, self.columns % S::LANES);
        let (mut src, mut dst) = (self.data, self.dst);
        for _ in 0..self.depth {
            // SAFETY: `whole * LANES + rest` are the panel's columns, at most its width.
            unsafe {
                for v in 0..whole {
                    let at = v * S::LANES;
                    simd.store(dst.wrapping_add(at), T::load(simd, src.wrapping_add(at)));
                }
                if rest > 0 {
                    let at = whole * S::LANES;
                    let x = T::load_up_to(simd, src.wrapping_add(at), rest);
                    simd.store(dst.wrapping_add(at), x);
                }
            }
            src = src.wrapping_offset(self.strides[0]);
            dst = dst.wrapping_add(self.width);
        }
    }

    /// Transposes columns into rows, if k is contiguous in either direction.
    ///
    /// # Safety
    /// Every element of the panel is valid for reads, `dst` for writes of `depth * width`, whole
    /// vectors.
    #[inline(always)]
    unsafe fn transpose<S: Lanes<T::Sum>>(&self, simd: S) {
        let (shape, strides) = ([self.columns, self.depth], [self.strides[1], self.strides[0]]);
        let squares = Squares::new(self.data, strides, shape, self.dst, self.width);
        // SAFETY: the panel's columns are readable over its depth; `width` is whole vectors.
        unsafe { squares.transpose(simd) };
        // A panel ends with the vector that holds its last column.
        debug_assert!(self.width - self.columns < S::LANES);
    }

    /// Copies elements one by one, with any strides.
    ///
    /// # Safety
    /// Every element of the panel is valid for reads, `dst` for writes of `depth * width`, whole
    /// vectors.
    #[inline(always)]
    unsafe fn gather(&self) {
        let Panel { data, strides, depth, columns, width, dst } = *self;
        // SAFETY: rows and columns are the panel's; the rest of its width is written here.
        unsafe {
            gather(data, strides, [depth, columns], dst, width);
            for p in 0..depth {
                dst.wrapping_add(p * width + columns).write_bytes(0, width - columns);
            }
        }
    }
}

/// Columns read at once if the stride between rows is the shorter one.
const STRIP: usize = 4;

/// Writes element (i, j) to `dst[i * dst_row + j]`, reading along the axis of the shorter stride:
/// row by row, or down a few columns at a time.
///
/// # Safety
/// Every element of the matrix is valid for reads, and those of `dst` for writes.
#[inline(always)]
unsafe fn gather<T: Factor>(
    src: *const T,
    strides: [isize; 2],
    [rows, columns]: [usize; 2],
    dst: *mut T::Sum,
    dst_row: usize,
) {
    let down = strides[0].unsigned_abs() < strides[1].unsigned_abs();
    let stripped = if down { columns - columns % STRIP } else { 0 };
    for left in (0..stripped).step_by(STRIP) {
        let (src, dst) = (step(src.cast_mut(), left, strides[1]), dst.wrapping_add(left));
        // SAFETY: the columns `left..left + STRIP` exist.
        unsafe { gather_rows(src, strides, [rows, STRIP], dst, dst_row) };
    }
    let (src, dst) = (step(src.cast_mut(), stripped, strides[1]), dst.wrapping_add(stripped));
    // SAFETY: these are the columns that are left.
    unsafe { gather_rows(src, strides, [rows, columns - stripped], dst, dst_row) };
}

/// [`gather`], row by row.
///
/// # Safety
/// See [`gather`].
#[inline(always)]
unsafe fn gather_rows<T: Factor>(
    src: *const T,
    strides: [isize; 2],
    [rows, columns]: [usize; 2],
    dst: *mut T::Sum,
    dst_row: usize,
) {
    for i in 0..rows {
        let (src, dst) = (step(src.cast_mut(), i, strides[0]), dst.wrapping_add(i * dst_row));
        for j in 0..columns {
            // SAFETY: row i and column j are in the matrix and in the copy.
            unsafe { dst.wrapping_add(j).write((*step(src, j, strides[1])).widened()) };
        }
    }
}

/// A matrix to transpose: `dst[c * dst_row + r] = src[r * src_row + c]`.
pub(super) struct Squares<T: Factor> {
    src: *const T,
    src_row: isize,
    /// Rows and columns of the source.
    shape: [usize; 2],
    dst: *mut T::Sum,
    dst_row: isize,
}

impl<T: Factor> Squares<T> {
    /// Takes a source whose columns are adjacent, in either order; if they are in reverse order,
    /// both matrices are reversed.
    #[inline(always)]
    pub(super) fn new(
        src: *const T,
        [src_row, src_column]: [isize; 2],
        shape: [usize; 2],
        dst: *mut T::Sum,
        dst_row: usize,
    ) -> Self {
        let (dst_row, last) = (dst_row as isize, shape[1].saturating_sub(1));
        if src_column == 1 {
            return Squares { src, src_row, shape, dst, dst_row };
        }
        let (src, dst) = (step(src.cast_mut(), last, src_column), step(dst, last, dst_row));
        Squares { src, src_row, shape, dst, dst_row: -dst_row }
    }

    /// Transposes squares of LANES rows and columns in registers.
    ///
    /// # Safety
    /// The source is valid for reads, the destination for writes of `shape[1]` rows of `shape[0]`
    /// elements, rounded up to whole vectors; the padding becomes zero.
    #[inline(always)]
    pub(super) unsafe fn transpose<S: Lanes<T::Sum>>(&self, simd: S) {
        const { assert!(matches!(S::LANES, 1 | 2 | 4 | 8 | 16)) };
        // SAFETY: the caller promises the memory; N is the number of lanes, as asserted above.
        unsafe {
            match S::LANES {
                16 => self.by::<S, 16>(simd),
                8 => self.by::<S, 8>(simd),
                4 => self.by::<S, 4>(simd),
                2 => self.by::<S, 2>(simd),
                _ => self.by::<S, 1>(simd),
            }
        }
    }

    /// # Safety
    /// See [`Squares::transpose`]; N is the number of lanes.
    #[inline(always)]
    unsafe fn by<S: Lanes<T::Sum>, const N: usize>(&self, simd: S) {
        let [rows, cols] = self.shape;
        let zero = simd.splat(T::Sum::ZERO);
        for r in (0..rows).step_by(N) {
            let src = step(self.src.cast_mut(), r, self.src_row);
            let dst = self.dst.wrapping_add(r);
            let whole = if rows - r < N { 0 } else { cols - cols % N };
            for c in (0..whole).step_by(N) {
                let mut square = [zero; N];
                for (j, lanes) in square.iter_mut().enumerate() {
                    // SAFETY: rows r..r + N and columns c..c + N are in the source.
                    *lanes = unsafe { T::load(simd, step(src, j, self.src_row).wrapping_add(c)) };
                }
                for (i, lanes) in S::V::transpose(square).into_iter().enumerate() {
                    // SAFETY: row c + i of the destination has a vector from r on.
                    unsafe { simd.store(step(dst, c + i, self.dst_row), lanes) };
                }
            }
            for c in (whole..cols).step_by(N) {
                let mut square = [zero; N];
                for (j, lanes) in square.iter_mut().enumerate().take(rows - r) {
                    let src = step(src, j, self.src_row).wrapping_add(c);
                    // SAFETY: row r + j has `cols - c` more columns from c on.
                    *lanes = unsafe { T::load_up_to(simd, src, cols - c) };
                }
                let square = S::V::transpose(square);
                for (i, &lanes) in square.iter().enumerate().take(cols - c) {
                    // SAFETY: row c + i of the destination is rounded up to whole vectors.
                    unsafe { simd.store(step(dst, c + i, self.dst_row), lanes) };
                }
            }
        }
    }
}

/// Tiles of A copied at once: 3 cache lines of `f32` per k if its rows are adjacent.
pub(super) const A_TILES: usize = 8;

/// Rows of A copied at once.
pub(super) const A_ROWS: usize = A_TILES * MR;

/// Elements between the starts of copied rows: whole vectors on every instruction set.
pub(super) fn copied_row(columns: usize) -> usize {
    columns.next_multiple_of(MAX_LANES)
}

/// Elements in a copy whose rows are [`copied_row`] long.
pub(super) fn copied_len([rows, columns]: [usize; 2]) -> usize {
    rows * copied_row(columns)
}

/// A matrix to copy row by row, element (i, j) to `dst[i * dst_row + j]`. A tile reads copied rows
/// of A like those that need no copy. (A copy with k going down would spread a tile's six rows over
/// as many cache lines as there are values of k, more than L1 has beside a tile of B.)
pub struct Copied<'a, T: Factor> {
    matrix: &'a MatRef<'a, T>,
    dst: *mut T::Sum,
    dst_row: usize,
}

impl<'a, T: Factor> Copied<'a, T> {
    /// # Safety
    /// `dst` is valid for writes of the matrix's rows, each of `dst_row` elements, whole vectors
    /// that hold the columns.
    #[inline(always)]
    pub(super) unsafe fn new(matrix: &'a MatRef<'a, T>, dst: *mut T::Sum, dst_row: usize) -> Self {
        debug_assert!(dst_row >= copied_row(matrix.shape[1]));
        Copied { matrix, dst, dst_row }
    }
}

impl<'a, T: Factor> Task<T::Sum> for &Copied<'a, T> {
    const ALIGNS_FRAME: bool = false;
    type Home = Copied<'a, T>;
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes<T::Sum>>(self, simd: S) {
        let Copied { matrix, dst, dst_row } = *self;
        let MatRef { data, strides, shape: [rows, columns], .. } = *matrix;
        match strides {
            [1 | -1, column] if column != 1 => {
                let squares =
                    Squares::new(data, [column, strides[0]], [columns, rows], dst, dst_row);
                // SAFETY: the matrix is readable; rows of the copy are whole vectors long, as the
                // caller of `Copied::new` promised.
                unsafe { squares.transpose(simd) };
            }
            [_, 1] => {
                for i in 0..rows {
                    let src = step(data.cast_mut(), i, strides[0]);
                    let dst = dst.wrapping_add(i * dst_row);
                    for j in (0..columns).step_by(S::LANES) {
                        // SAFETY: row i and the columns from j on are in the matrix; rows of the
                        // copy are whole vectors, as the caller of `Copied::new` promised.
                        unsafe {
                            let x = T::load_up_to(simd, src.wrapping_add(j), columns - j);
                            simd.store(dst.wrapping_add(j), x);
                        }
                    }
                }
            }
            // SAFETY: the matrix is readable, and the copy has its rows.
            _ => unsafe { gather(data, strides, [rows, columns], dst, dst_row) },
        }
    }
}

//! Packing: B by panels as wide as a tile, and rows of an A whose k is not contiguous.
//!
//! ```text
//! B [depth, columns] ──> tile 0 [depth, width 0] | tile 1 [depth, width 1] | …
//! ```
//!
//! Each panel is read from front to back by the micro-kernel. The last one is padded with zeros to
//! whole vectors; the padding's products land in lanes that are never written out.

use super::matrix::step;
use super::split::Split;
use super::tile::MR;
use crate::simd::{Float, Lanes, Vector};

/// The most lanes that any vector has.
pub(super) const MAX_LANES: usize = 16;

/// A block of B to pack.
#[derive(Clone, Copy)]
pub(super) struct BlockOfB<E> {
    /// Element (0, 0) of the block.
    pub(super) data: *const E,
    /// From one k, and from one column, to the next.
    pub(super) strides: [isize; 2],
    /// Steps of k.
    pub(super) depth: usize,
    pub(super) columns: usize,
    /// The block's vectors (`columns` over LANES, rounded up) split into tiles.
    pub(super) tiles: Split,
}

impl<E: Float> BlockOfB<E> {
    /// Writes the block to `dst`, panel after panel.
    ///
    /// # Safety
    /// Every element of the block is valid for reads, and `dst` is valid for writes of
    /// `depth * columns` elements, `columns` rounded up to whole vectors.
    #[inline(always)]
    pub(super) unsafe fn pack<S: Lanes<E>>(&self, simd: S, dst: *mut E) {
        for tile in 0..self.tiles.parts() {
            let (start, width) =
                (self.tiles.start(tile) * S::LANES, self.tiles.len(tile) * S::LANES);
            let panel = Panel {
                data: step(self.data.cast_mut(), start, self.strides[1]),
                strides: self.strides,
                depth: self.depth,
                columns: width.min(self.columns - start),
                width,
                // Panels of the tiles before hold `start` columns.
                dst: dst.wrapping_add(start * self.depth),
            };
            // SAFETY: the panel is a part of the block, and its columns `start..start + width` of
            // the destination are no other panel's.
            unsafe {
                match self.strides {
                    [_, 1] => panel.copy(simd),
                    [1, _] => panel.transpose(simd),
                    _ => panel.gather(),
                }
            }
        }
    }
}

/// One panel: `columns` of B become `width` columns of `dst`, the rest zero.
struct Panel<E> {
    data: *const E,
    strides: [isize; 2],
    depth: usize,
    columns: usize,
    width: usize,
    dst: *mut E,
}

impl<E: Float> Panel<E> {
    /// Columns are contiguous: rows are copied.
    ///
    /// # Safety
    /// As [`BlockOfB::pack`].
    #[inline(always)]
    unsafe fn copy<S: Lanes<E>>(&self, simd: S) {
        let (whole, rest) = (self.columns / S::LANES, self.columns % S::LANES);
        let (mut src, mut dst) = (self.data, self.dst);
        for _ in 0..self.depth {
            // SAFETY: `whole * LANES + rest` are the panel's columns, at most its width.
            unsafe {
                for v in 0..whole {
                    let at = v * S::LANES;
                    simd.store(dst.wrapping_add(at), simd.load(src.wrapping_add(at)));
                }
                if rest > 0 {
                    let at = whole * S::LANES;
                    simd.store(dst.wrapping_add(at), simd.load_first(src.wrapping_add(at), rest));
                }
            }
            src = src.wrapping_offset(self.strides[0]);
            dst = dst.wrapping_add(self.width);
        }
    }

    /// k is contiguous: blocks of LANES columns and LANES steps of k are transposed in registers.
    ///
    /// One round interleaves vector i with vector i + LANES/2. In the number made of the bits of
    /// (vector, lane) that is a rotation by one bit, so log2(LANES) rounds swap vector and lane:
    ///
    /// ```text
    /// LANES = 4   a0 a1 a2 a3      a0 c0 a1 c1      a0 b0 c0 d0
    ///             b0 b1 b2 b3  ->  a2 c2 a3 c3  ->  a1 b1 c1 d1
    ///             c0 c1 c2 c3      b0 d0 b1 d1      a2 b2 c2 d2
    ///             d0 d1 d2 d3      b2 d2 b3 d3      a3 b3 c3 d3
    /// ```
    ///
    /// # Safety
    /// As [`BlockOfB::pack`].
    #[inline(always)]
    unsafe fn transpose<S: Lanes<E>>(&self, simd: S) {
        let zero = simd.splat(E::ZERO);
        for start in (0..self.width).step_by(S::LANES) {
            let columns = S::LANES.min(self.columns - start);
            let src = step(self.data.cast_mut(), start, self.strides[1]);
            let mut p = 0;
            while p < self.depth {
                let depth = S::LANES.min(self.depth - p);
                let mut block = [zero; MAX_LANES];
                for (j, lanes) in block.iter_mut().enumerate().take(S::LANES) {
                    let src = step(src, j, self.strides[1]).wrapping_add(p);
                    // SAFETY: column `start + j`, steps `p..p + depth` are in the panel; columns
                    // beyond its last stay zero.
                    unsafe {
                        if j < columns {
                            *lanes = if depth == S::LANES {
                                simd.load(src)
                            } else {
                                simd.load_first(src, depth)
                            };
                        }
                    }
                }
                let mut rounds = S::LANES;
                while rounds > 1 {
                    block = interleave_halves::<E, S>(block);
                    rounds /= 2;
                }
                for (i, &lanes) in block.iter().enumerate().take(S::LANES) {
                    if i < depth {
                        let dst = self.dst.wrapping_add((p + i) * self.width + start);
                        // SAFETY: row `p + i` and `start + LANES <= width` are in the panel.
                        unsafe { simd.store(dst, lanes) };
                    }
                }
                p += S::LANES;
            }
        }
    }

    /// Any strides.
    ///
    /// # Safety
    /// As [`BlockOfB::pack`].
    #[inline(always)]
    unsafe fn gather(&self) {
        for p in 0..self.depth {
            let src = step(self.data.cast_mut(), p, self.strides[0]);
            for j in 0..self.width {
                // SAFETY: row p and column j are in the panel, and read only where j < columns.
                unsafe {
                    let x = if j < self.columns { *step(src, j, self.strides[1]) } else { E::ZERO };
                    self.dst.wrapping_add(p * self.width + j).write(x);
                }
            }
        }
    }
}

/// One round of the transposition.
#[inline(always)]
fn interleave_halves<E: Float, S: Lanes<E>>(block: [S::V; MAX_LANES]) -> [S::V; MAX_LANES] {
    let mut next = block;
    for i in 0..S::LANES / 2 {
        let (low, high) = block[i].interleave(block[i + S::LANES / 2]);
        next[2 * i] = low;
        next[2 * i + 1] = high;
    }
    next
}

/// Tiles of A copied at a time, as one block of [KC, A_WIDTH] with k going down: 3 lines of `f32` a
/// step, copied in whole vectors. Slivers of [KC, MR] each cost 13 % of a 256³ product, this 3 %.
pub(super) const A_TILES: usize = 8;

/// Elements from one k to the next in the copy.
pub(super) const A_WIDTH: usize = A_TILES * MR;

/// Up to [`A_WIDTH`] rows of A over a block of k.
pub(super) struct BlockOfA<E> {
    /// First row, first k.
    pub(super) data: *const E,
    /// From one row, and from one k, to the next.
    pub(super) strides: [isize; 2],
    pub(super) rows: usize,
    /// Steps of k.
    pub(super) depth: usize,
}

impl<E: Float> BlockOfA<E> {
    /// Writes element (i, p) to `dst[p * A_WIDTH + i]`.
    ///
    /// # Safety
    /// Every element of the block is valid for reads, and `dst` for writes of `depth * A_WIDTH`
    /// elements.
    #[inline(always)]
    pub(super) unsafe fn pack<S: Lanes<E>>(&self, simd: S, dst: *mut E) {
        const { assert!(A_WIDTH.is_multiple_of(MAX_LANES)) };
        let (whole, rest) = (self.rows / S::LANES, self.rows % S::LANES);
        for p in 0..self.depth {
            let src = step(self.data.cast_mut(), p, self.strides[1]);
            let dst = dst.wrapping_add(p * A_WIDTH);
            // SAFETY: `rows` elements are readable; a whole vector written at the last of them
            // still ends inside the width, a multiple of LANES.
            unsafe {
                if self.strides[0] == 1 {
                    for v in 0..whole {
                        let at = v * S::LANES;
                        simd.store(dst.wrapping_add(at), simd.load(src.wrapping_add(at)));
                    }
                    if rest > 0 {
                        let at = whole * S::LANES;
                        let lanes = simd.load_first(src.wrapping_add(at), rest);
                        simd.store(dst.wrapping_add(at), lanes);
                    }
                } else {
                    for i in 0..self.rows {
                        dst.wrapping_add(i).write(*step(src, i, self.strides[0]));
                    }
                }
            }
        }
    }
}

//! Transposes of matrices, except those with a side too narrow for vectors (`narrow.rs`).
//!
//! ```text
//! for each tile of 128 source rows x 256 bytes (for elements over 8 bytes, 32 rows x 1024):
//!     for each block of G L x G L elements in it (L lanes of 32 or 64 bits; G elements per lane):
//!         load G L rows
//!         G > 1: exchange elements between G neighbouring rows, so that a lane holds G rows' elements
//!             of one column; every G-th row is then one of G matrices of L x L lanes
//!         transpose each matrix in registers
//!         store G L rows into a buffer
//!     copy the buffer's rows to the result
//! ```
//!
//! 1. A line of 64 bytes is read and written by few instructions, but in registers a block costs
//!    log2(L) shuffles per row: this, not memory, is the limit within the caches.
//! 2. Elements of 2 and 1 bytes need only shifts and masks before they move as lanes of 4.
//! 3. Elements of other sizes, which are short runs, are moved one by one.
//! 4. Rows of a large matrix are often a power of two apart, and then share few sets of the caches,
//!    which hold fewer lines than a tile has rows. So blocks go along the rows, and use a line as
//!    soon as it is loaded. Meanwhile the lines of the next L rows are prefetched, no more than the
//!    sets hold; they are too far apart for the hardware prefetcher.
//! 5. A result no larger than the buffer is written directly. Larger ones leave the buffer as whole
//!    lines, by non-temporal stores if too large for the caches: writing a line in parts costs more
//!    than fetching it first.

use core::marker::PhantomData;
use core::mem::{MaybeUninit, size_of};
use core::ptr::copy_nonoverlapping;

use super::Plain;
use super::permute::Nest;
use super::stream::{LINE, stream_lines, streaming};
use super::unit::for_unit;
use crate::dispatch::run;
use crate::output::Output;
use crate::simd::{Float, IntVector, Lanes, Task, Vector};

/// The layout that [`transpose`] reads and writes, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transpose {
    /// Rows of the source, columns of the result.
    pub rows: usize,
    /// Columns of the source, rows of the result.
    pub cols: usize,
    /// Index of the source's first element.
    pub src_offset: usize,
    /// Distance between the starts of source rows; rows are contiguous.
    pub src_row_stride: usize,
    /// Distance between the starts of result rows; at least `rows`.
    pub dst_row_stride: usize,
}

/// Writes the transpose of a row-major matrix:
/// `dst[c * dst_row_stride + r] = src[src_offset + r * src_row_stride + c]` for `r < rows`,
/// `c < cols`. Elements between the rows of the result are left alone.
///
/// ```
/// use swath_kernels::{Transpose, transpose};
///
/// let x = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let mut y = [0.0; 6];
/// let shape =
///     Transpose { rows: 2, cols: 3, src_offset: 0, src_row_stride: 3, dst_row_stride: 2 };
/// transpose(&x, &mut y, shape);
/// assert_eq!(y, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// ```
///
/// # Panics
/// If the source or the result exceeds its slice, or rows of the result overlap.
#[track_caller]
pub fn transpose<T: Plain>(src: &[T], dst: &mut (impl Output<T> + ?Sized), shape: Transpose) {
    let Transpose { rows, cols, src_offset, src_row_stride, dst_row_stride } = shape;
    if rows == 0 || cols == 0 {
        return;
    }
    let (streams, _fence) = streaming(dst);
    let (dst, dst_len) = dst.as_raw();
    let end = |count: usize, stride: usize, width: usize| {
        (count - 1).checked_mul(stride).and_then(|start| start.checked_add(width))
    };
    let src_end = end(rows, src_row_stride, cols).and_then(|end| end.checked_add(src_offset));
    let dst_end = end(cols, dst_row_stride, rows);
    assert!(
        src_end.is_some_and(|end| end <= src.len()) && dst_end.is_some_and(|end| end <= dst_len),
        "transpose: {shape:?} exceeds {} elements or a result of {dst_len}",
        src.len()
    );
    assert!(
        cols == 1 || dst_row_stride >= rows,
        "transpose: rows of the result overlap: {shape:?}"
    );
    let (mut nest, len) = (Nest::default(), isize::try_from);
    // No stride exceeds a slice, whose bytes fit an `isize`, unless there is only one row.
    nest.push(cols, 1, len(dst_row_stride).unwrap_or(0));
    nest.push(rows, len(src_row_stride).unwrap_or(0), 1);
    let (size, src) = (size_of::<T>(), src.as_ptr());
    // SAFETY: the source's last row ends inside `src` and the result's inside `dst`, which the
    // borrows keep apart; the rows of the result do not overlap, as asserted above.
    unsafe {
        let src = src.add(src_offset);
        transpose_nest(nest.in_bytes(size), 0, src.cast(), dst.cast(), size, streams);
    }
}

/// Copies a nest of elements of `size` bytes, less than two cache lines, that are contiguous along
/// `axis` in the source and along the last axis in the result. Steps are in bytes; nothing needs to
/// be aligned.
///
/// # Safety
/// Every element of the nest is valid for reads from `src` and writes from `dst`; elements of the
/// result overlap neither each other nor the source.
pub(super) unsafe fn transpose_nest(
    mut nest: Nest,
    axis: usize,
    src: *const u8,
    dst: *mut u8,
    size: usize,
    streams: bool,
) {
    if let Some(loops) = nest.narrow(axis, size) {
        // SAFETY: the caller promises the elements.
        return unsafe { nest.copy_narrow(loops, src, dst, size, streams) };
    }
    let (rows, src_stride, _) = nest.remove(nest.rank() - 1);
    let (cols, _, dst_stride) = nest.remove(axis);
    let matrix = Matrix { size, rows, cols, src_stride, dst_stride, streams };
    match size {
        8 => run::<f64, _>(Tiles { src, dst, matrix, outer: nest, lane: PhantomData }),
        _ => run::<f32, _>(Tiles { src, dst, matrix, outer: nest, lane: PhantomData }),
    }
}

/// One of several transposes of the same shape; strides are in bytes.
#[derive(Clone, Copy)]
struct Matrix {
    size: usize,
    rows: usize,
    cols: usize,
    src_stride: isize,
    dst_stride: isize,
    streams: bool,
}

/// Transposes in lanes of `E`, for all matrices of a nest.
struct Tiles<E> {
    src: *const u8,
    dst: *mut u8,
    matrix: Matrix,
    outer: Nest,
    lane: PhantomData<E>,
}

/// Source rows of a tile, and its bytes of each row. 4096² of `f32`, source rows x columns, time
/// over that of a copy by non-temporal stores: 64 x 64 2.1, 128 x 64 1.6, 128 x 128 1.7, 256 x 64
/// 2.2.
const TILE_ROWS: usize = 128;
const TILE_BYTES: usize = 256;

#[repr(align(64))]
struct Buffer([MaybeUninit<u8>; TILE_ROWS * TILE_BYTES]);

impl Task<f32> for Tiles<f32> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<f32>>(self, simd: S) {
        match self.matrix.size {
            1 => self.run_in::<S, Quarters>(simd),
            2 => self.run_in::<S, Halves>(simd),
            _ => self.run_in::<S, Whole>(simd),
        }
    }
}

impl Task<f64> for Tiles<f64> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<f64>>(self, simd: S) {
        self.run_in::<S, Whole>(simd);
    }
}

impl<E: Float> Tiles<E> {
    #[inline(always)]
    fn run_in<S: Lanes<E>, M: Mix<E, S>>(self, simd: S) {
        let Tiles { src, dst, matrix, outer, .. } = self;
        let mut at = outer.walk();
        loop {
            // SAFETY: the caller of `transpose_nest` promises the nest's elements.
            unsafe {
                tiles::<E, S, M>(simd, src.offset(at.from), dst.offset(at.to), matrix);
            }
            if !at.step() {
                return;
            }
        }
    }
}

/// # Safety
/// The matrix's source rows are valid for reads and its result rows for writes.
#[inline(always)]
unsafe fn tiles<E: Float, S: Lanes<E>, M: Mix<E, S>>(
    simd: S,
    src: *const u8,
    dst: *mut u8,
    matrix: Matrix,
) {
    let size = matrix.size;
    let narrower = if size > 8 { 4 } else { 1 };
    let (tile_rows, tile_cols) = (TILE_ROWS / narrower, TILE_BYTES * narrower / size);
    let pitch = tile_rows * size;
    let result = matrix.dst_stride.unsigned_abs().saturating_mul(matrix.cols);
    let is_direct = result <= TILE_ROWS * TILE_BYTES || matrix.rows.saturating_mul(size) < LINE;
    let mut buffer = Buffer([MaybeUninit::uninit(); TILE_ROWS * TILE_BYTES]);
    let buffer: *mut u8 = buffer.0.as_mut_ptr().cast();
    for r in (0..matrix.rows).step_by(tile_rows) {
        let rows = (matrix.rows - r).min(tile_rows);
        for c in (0..matrix.cols).step_by(tile_cols) {
            let cols = (matrix.cols - c).min(tile_cols);
            let tile = Matrix { rows, cols, ..matrix };
            // SAFETY: the tile is a part of the matrix. Its transpose is `cols` rows of at most
            // `TILE_ROWS` elements, which the buffer holds, and which are written before they are
            // read.
            unsafe {
                let src = src.offset(r as isize * matrix.src_stride).add(c * size);
                let dst = dst.offset(c as isize * matrix.dst_stride).add(r * size);
                let (out, dst_stride) =
                    if is_direct { (dst, matrix.dst_stride) } else { (buffer, pitch as isize) };
                blocks::<E, S, M>(simd, src, out, Matrix { dst_stride, ..tile });
                if is_direct {
                    continue;
                }
                for i in 0..cols {
                    let dst = dst.offset(i as isize * matrix.dst_stride);
                    let row = buffer.add(i * pitch);
                    if matrix.streams {
                        stream_lines(simd, row, dst, rows * size, LINE);
                    } else {
                        copy_nonoverlapping(row, dst, rows * size);
                    }
                }
            }
        }
    }
}

/// Transposes a tile, block by block. Meanwhile prefetches the lines of the rows after a row of
/// blocks, and after the last one those beside the tile's first rows.
///
/// # Safety
/// See [`tiles`].
#[inline(always)]
unsafe fn blocks<E: Float, S: Lanes<E>, M: Mix<E, S>>(
    simd: S,
    src: *const u8,
    dst: *mut u8,
    tile: Matrix,
) {
    let side = M::GROUP * S::LANES;
    for r in (0..tile.rows).step_by(side) {
        let (next, rows) = match tile.rows.checked_sub(r + side) {
            Some(rows @ 1..) => (src.wrapping_offset((r + side) as isize * tile.src_stride), rows),
            _ => (src.wrapping_add(tile.cols * tile.size), tile.rows),
        };
        for c in (0..tile.cols).step_by(side) {
            let from = (c * tile.size).next_multiple_of(LINE);
            for line in (from..(c + side).min(tile.cols) * tile.size).step_by(LINE) {
                for i in 0..side.min(rows) {
                    let row = next.wrapping_offset(i as isize * tile.src_stride);
                    simd.prefetch(row.wrapping_add(line));
                }
            }
            let rest = Matrix { rows: tile.rows - r, cols: tile.cols - c, ..tile };
            // SAFETY: the rest is a part of the tile; only a block that is complete goes through
            // lanes, unless a lane is one element.
            unsafe {
                let src = src.offset(r as isize * tile.src_stride).add(c * tile.size);
                let dst = dst.offset(c as isize * tile.dst_stride).add(r * tile.size);
                if S::LANES == 1 || !matches!(tile.size, 1 | 2 | 4 | 8) {
                    by_element(src, dst, rest, side);
                } else if rest.rows >= side && rest.cols >= side {
                    block::<E, S, M>(simd, src, dst, Matrix { rows: side, cols: side, ..tile });
                } else if M::GROUP == 1 {
                    block::<E, S, M>(simd, src, dst, rest);
                } else {
                    by_element(src, dst, rest, side);
                }
            }
        }
    }
}

/// Transposes at most `side` by `side` elements, one by one.
///
/// # Safety
/// See [`tiles`].
unsafe fn by_element(src: *const u8, dst: *mut u8, rest: Matrix, side: usize) {
    #[inline(always)]
    unsafe fn moved(
        src: *const u8,
        dst: *mut u8,
        rest: Matrix,
        side: usize,
        copy: impl Fn(*const u8, *mut u8),
    ) {
        for c in 0..rest.cols.min(side) {
            for r in 0..rest.rows.min(side) {
                let src = src.wrapping_offset(r as isize * rest.src_stride);
                let dst = dst.wrapping_offset(c as isize * rest.dst_stride);
                copy(src.wrapping_add(c * rest.size), dst.wrapping_add(r * rest.size));
            }
        }
    }
    // SAFETY: the caller promises the matrix; row and column are inside it.
    unsafe { for_unit!(rest.size, copy => moved(src, dst, rest, side, copy)) }
}

/// Exchanges elements smaller than a lane between neighbouring rows.
trait Mix<E: Float, S: Lanes<E>> {
    /// Elements in a lane.
    const GROUP: usize;
    /// Mixes the first `GROUP` rows: lane j of result row g holds column `GROUP j + g`.
    fn mix(simd: S, rows: [S::V; 4]) -> [S::V; 4];
}

/// One element per lane.
struct Whole;

impl<E: Float, S: Lanes<E>> Mix<E, S> for Whole {
    const GROUP: usize = 1;
    #[inline(always)]
    fn mix(_simd: S, rows: [S::V; 4]) -> [S::V; 4] {
        rows
    }
}

/// Two elements per lane: `a0 a1, b0 b1` becomes `a0 b0, a1 b1`.
struct Halves;

impl<S: Lanes<f32>> Mix<f32, S> for Halves {
    const GROUP: usize = 2;
    #[inline(always)]
    fn mix(_simd: S, [a, b, c, d]: [S::V; 4]) -> [S::V; 4] {
        let (low, high) = exchange_halves::<S>(a.to_bits(), b.to_bits());
        [S::V::from_bits(low), S::V::from_bits(high), c, d]
    }
}

/// Four elements per lane: exchanges halves of the first and third row and of the second and
/// fourth, then bytes of neighbours.
struct Quarters;

impl<S: Lanes<f32>> Mix<f32, S> for Quarters {
    const GROUP: usize = 4;
    #[inline(always)]
    fn mix(simd: S, [a, b, c, d]: [S::V; 4]) -> [S::V; 4] {
        let (ac_low, ac_high) = exchange_halves::<S>(a.to_bits(), c.to_bits());
        let (bd_low, bd_high) = exchange_halves::<S>(b.to_bits(), d.to_bits());
        let even = simd.splat_int(0x00ff_00ff);
        let odd = simd.splat_int(0xff00_ff00_u32 as i32);
        let exchange = |x: S::I, y: S::I| {
            let low = (x & even) | (y & even).shl::<8>();
            let high = (x & odd).shr::<8>() | (y & odd);
            [S::V::from_bits(low), S::V::from_bits(high)]
        };
        let ([first, second], [third, fourth]) =
            (exchange(ac_low, bd_low), exchange(ac_high, bd_high));
        [first, second, third, fourth]
    }
}

/// Exchanges halves of lanes: `a0 a1, b0 b1` becomes `a0 b0, a1 b1`.
#[inline(always)]
fn exchange_halves<S: Lanes<f32>>(a: S::I, b: S::I) -> (S::I, S::I) {
    (a.shl::<16>().shr::<16>() | b.shl::<16>(), a.shr::<16>() | b.shr::<16>().shl::<16>())
}

/// Transposes a block of up to `GROUP` times lanes in either direction; it must be complete if
/// `GROUP` is not 1.
///
/// # Safety
/// See [`tiles`], for that part of the matrix.
#[inline(always)]
unsafe fn block<E: Float, S: Lanes<E>, M: Mix<E, S>>(
    simd: S,
    src: *const u8,
    dst: *mut u8,
    rest: Matrix,
) {
    // SAFETY: the caller promises the block; `N` is `S::LANES`.
    unsafe {
        match S::LANES {
            16 => block_of::<E, S, M, 16>(simd, src, dst, rest),
            8 => block_of::<E, S, M, 8>(simd, src, dst, rest),
            4 => block_of::<E, S, M, 4>(simd, src, dst, rest),
            2 => block_of::<E, S, M, 2>(simd, src, dst, rest),
            _ => unreachable!("blocks of one lane go element by element"),
        }
    }
}

/// [`block`] with its number of lanes as a constant, for arrays.
///
/// # Safety
/// See [`block`].
#[inline(always)]
unsafe fn block_of<E: Float, S: Lanes<E>, M: Mix<E, S>, const N: usize>(
    simd: S,
    src: *const u8,
    dst: *mut u8,
    rest: Matrix,
) {
    let zero = simd.splat(E::ZERO);
    let mut matrices = [[zero; N]; 4];
    for i in 0..N {
        let mut rows = [zero; 4];
        for g in 0..M::GROUP {
            let r = M::GROUP * i + g;
            if r < rest.rows {
                // SAFETY: the row exists. Vector loads need no alignment.
                rows[g] = unsafe {
                    let src = src.offset(r as isize * rest.src_stride);
                    simd.load_up_to(src.cast(), rest.cols / M::GROUP)
                };
            }
        }
        let rows = M::mix(simd, rows);
        for g in 0..M::GROUP {
            matrices[g][i] = rows[g];
        }
    }
    for g in 0..M::GROUP {
        let rows = S::V::transpose(matrices[g]);
        for j in 0..N {
            let c = M::GROUP * j + g;
            if c < rest.cols {
                // SAFETY: the result's row exists. Vector stores need no alignment.
                unsafe {
                    let dst = dst.offset(c as isize * rest.dst_stride);
                    simd.store_up_to(dst.cast(), rest.rows / M::GROUP, rows[j]);
                }
            }
        }
    }
}

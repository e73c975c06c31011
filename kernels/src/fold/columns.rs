//! Folds over the rows of a matrix: one result a column, vectors across columns.
//!
//! Each column is summed in the tree of its rows (see [the contiguous fold](super)):
//!
//! ```text
//! for each tile of up to 1024 columns:
//!     for each block of 1024 rows:
//!         for each band of 128 rows, for each lane l in 0..16, for each vector of columns:
//!             lane[l] = ((lane[l] + row[l]) + row[l + 16]) + … + row[l + 112]
//!         combine the lanes; push the result on the tile's binary counter
//!     fold the counter; round into the output
//! ```
//!
//! 1. A tile is wide, so that rows are read in long pieces; its lanes live in the second-level cache.
//! 2. A band's eight rows of one lane are added in a register, so lanes are loaded and stored once
//!    for eight elements of input.
//! 3. Up to 1024 rows are one block, which needs no counter.

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use super::extreme::{Extreme, Wanted};
use super::{BLOCK, F64, LANES, Widen};
use crate::dispatch::{ElementTask, Task};
use crate::map::{load_up_to, store_up_to};
use crate::simd::{Float, Lanes, Simd};

/// Columns of a tile where the counter is not deep. Tiles of 256 columns of [4096, 1024] `f32` took
/// 1.4 times as long, their short pieces of rows being fetched late.
const TILE: usize = 1024;
/// Room for a tile's lanes and counter, 160 KiB of stack: 20 rows of a full tile, for up to 15
/// blocks; more make the tiles narrower.
const SCRATCH: usize = 20 * TILE;
/// Rows that compete at a time for the largest or smallest of a column.
const ROUND: usize = 32;
/// Rows of one lane that are added at a time.
const BAND: usize = 8;

/// A row-major matrix whose bounds are checked.
#[derive(Clone, Copy)]
pub(crate) struct Rows<E> {
    first: *const E,
    rows: usize,
    cols: usize,
    stride: usize,
}

impl<E> Rows<E> {
    /// `rows` rows of `cols` elements, their starts `stride` elements apart.
    ///
    /// # Panics
    /// If the last row ends beyond the slice.
    #[inline]
    #[track_caller]
    pub fn new(name: &str, x: &[E], rows: usize, cols: usize, stride: usize) -> Self {
        let end = match rows.checked_sub(1) {
            Some(above) if cols > 0 => above.checked_mul(stride).and_then(|r| r.checked_add(cols)),
            _ => Some(0),
        };
        assert!(
            end.is_some_and(|end| end <= x.len()),
            "{name}: {rows} rows of {cols} with stride {stride} exceed {} elements",
            x.len()
        );
        Rows { first: x.as_ptr(), rows, cols, stride }
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.rows
    }
}

/// Sums the rows into `y`, which has room for a row, dividing each sum before it is rounded.
pub(crate) struct SumColumns<E> {
    pub x: Rows<E>,
    pub y: *mut E,
    pub divisor: f64,
}

impl<E: Widen> Task for SumColumns<E> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Rows { first, rows, cols, stride } = self.x;
        let blocks = rows.div_ceil(BLOCK);
        let levels = (usize::BITS - blocks.leading_zeros()) as usize;
        let width = (SCRATCH / (LANES + levels)).min(TILE) / LANES * LANES;
        let mut scratch = [MaybeUninit::<f64>::uninit(); SCRATCH];
        let lanes = scratch.as_mut_ptr().cast::<f64>();
        for column in (0..cols).step_by(width) {
            let tile = Tile { lanes, pitch: width, width: width.min(cols - column) };
            // SAFETY: lanes and counter are `LANES + levels` rows of `width`, which the scratch
            // holds; the matrix was checked by `Rows::new`; `y` holds `cols` elements.
            unsafe {
                for block in 0..blocks {
                    let row = block * BLOCK;
                    let count = BLOCK.min(rows - row);
                    tile.add_rows(simd, first.add(row * stride + column), stride, count);
                    tile.combine(simd, count);
                    if blocks > 1 {
                        tile.push(simd, block);
                    }
                }
                if blocks != 1 {
                    tile.finish(simd, blocks);
                }
                for c in 0..tile.width {
                    let sum = lanes.add(c).read();
                    self.y.add(column + c).write(E::from_f64(sum / self.divisor));
                }
            }
        }
    }
}

/// Scratch of one tile: [`LANES`] rows of lanes, then the counter's entries, each `pitch` wide.
#[derive(Clone, Copy)]
struct Tile {
    lanes: *mut f64,
    pitch: usize,
    width: usize,
}

impl Tile {
    /// Sets the lanes to the sums of `count` rows, one block.
    ///
    /// # Safety
    /// `x` points to `count` rows of the tile's width; the scratch holds the lanes.
    #[inline(always)]
    unsafe fn add_rows<E: Widen, S: Simd>(self, simd: S, x: *const E, stride: usize, count: usize) {
        for band in (0..count).step_by(BAND * LANES) {
            for lane in 0..LANES.min(count - band) {
                // SAFETY: row `band + lane` is one of the `count`.
                let first = unsafe { x.add((band + lane) * stride) };
                let rows = (count - band - lane).div_ceil(LANES).min(BAND);
                // SAFETY: these are rows band + lane + 16 k, k < `rows`, below `count`.
                unsafe {
                    match rows {
                        BAND => self.add_to_lane(simd, first, stride, lane, BAND, band == 0),
                        _ => self.add_to_lane(simd, first, stride, lane, rows, band == 0),
                    }
                }
            }
        }
    }

    /// Adds `rows` rows, [`LANES`] strides apart, to one lane, or to zeros if it is `fresh`.
    ///
    /// # Safety
    /// The rows are there and the scratch holds the lane.
    #[inline(always)]
    unsafe fn add_to_lane<E: Widen, S: Simd>(
        self,
        simd: S,
        first: *const E,
        stride: usize,
        lane: usize,
        rows: usize,
        fresh: bool,
    ) {
        for c in (0..self.width).step_by(<S as Lanes<f64>>::LANES) {
            // SAFETY: the lane's row is padded to whole vectors; elements beyond the tile's width
            // are not read.
            unsafe {
                let sums = self.lanes.add(lane * self.pitch + c);
                let zero = Lanes::<f64>::splat(simd, 0.0);
                let mut sum: F64<S> = if fresh { zero } else { simd.load(sums) };
                for k in 0..rows {
                    let row = first.add(k * LANES * stride + c);
                    sum = sum + E::widen_up_to(simd, row, self.width - c);
                }
                simd.store(sums, sum);
            }
        }
    }

    /// Adds row `from` of the scratch to row `to`: `to = to + from`.
    ///
    /// # Safety
    /// The scratch holds both rows, and they were written.
    #[inline(always)]
    unsafe fn add_row<S: Simd>(self, simd: S, to: usize, from: usize) {
        for c in (0..self.width).step_by(<S as Lanes<f64>>::LANES) {
            // SAFETY: rows are padded to whole vectors.
            unsafe {
                let (to, from) =
                    (self.lanes.add(to * self.pitch + c), self.lanes.add(from * self.pitch + c));
                let sum: F64<S> = simd.load(to);
                let term: F64<S> = simd.load(from);
                simd.store(to, sum + term);
            }
        }
    }

    /// The tree over the lanes of `count` rows, into the first; lanes that no row reached are +0.
    ///
    /// # Safety
    /// The scratch holds the lanes, and those of `count` rows were written.
    #[inline(always)]
    unsafe fn combine<S: Simd>(self, simd: S, count: usize) {
        for c in (0..self.width).step_by(<S as Lanes<f64>>::LANES) {
            let mut lanes = [Lanes::<f64>::splat(simd, 0.0); LANES];
            for (l, lane) in lanes.iter_mut().enumerate() {
                if l < count {
                    // SAFETY: rows of the scratch are padded to whole vectors.
                    *lane = unsafe { simd.load(self.lanes.add(l * self.pitch + c)) };
                }
            }
            for half in [8, 4, 2, 1] {
                for l in 0..half {
                    lanes[l] = lanes[l] + lanes[l + half];
                }
            }
            // SAFETY: as for the loads.
            unsafe { simd.store(self.lanes.add(c), lanes[0]) };
        }
    }

    /// Pushes the first row as the sum of block number `block`.
    ///
    /// # Safety
    /// The scratch holds the counter's entries of that many blocks.
    #[inline(always)]
    unsafe fn push<S: Simd>(self, simd: S, block: usize) {
        // SAFETY: entries of the counter's set bits were written, and the copied row is `width`
        // of `pitch` elements.
        unsafe {
            let level = block.trailing_ones() as usize;
            for entry in 0..level {
                self.add_row(simd, 0, LANES + entry);
            }
            let to = self.lanes.add((LANES + level) * self.pitch);
            core::ptr::copy_nonoverlapping(self.lanes, to, self.pitch);
        }
    }

    /// Folds the counter of `blocks` blocks into the first row.
    ///
    /// # Safety
    /// As for [`Tile::push`].
    #[inline(always)]
    unsafe fn finish<S: Simd>(self, simd: S, blocks: usize) {
        let zero = Lanes::<f64>::splat(simd, 0.0);
        for c in (0..self.width).step_by(<S as Lanes<f64>>::LANES) {
            // SAFETY: the first row is padded to whole vectors.
            unsafe { simd.store(self.lanes.add(c), zero) };
        }
        for level in (0..usize::BITS as usize).filter(|level| blocks >> level & 1 == 1) {
            // SAFETY: the entry belongs to a set bit.
            unsafe { self.add_row(simd, 0, LANES + level) };
        }
    }
}

/// The largest or smallest of each column into `y`, which has room for a row; there are rows.
pub(crate) struct FindColumns<E, W> {
    pub x: Rows<E>,
    pub y: *mut E,
    /// Which of the two.
    pub wanted: PhantomData<W>,
}

impl<E: Float, W: Wanted> ElementTask<E> for FindColumns<E, W> {
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let Rows { first, rows, cols, stride } = self.x;
        // The winners so far are in `y`; each band of rows competes with them.
        for band in (0..rows).step_by(ROUND) {
            for c in (0..cols).step_by(S::LANES) {
                // SAFETY: the matrix was checked by `Rows::new`; `y` holds `cols` elements, all
                // written by the first band; elements beyond `cols` are not touched.
                unsafe {
                    let x = first.add(band * stride + c);
                    let mut found = Extreme::new(load_up_to(simd, x, cols - c));
                    for row in 1..ROUND.min(rows - band) {
                        found.take::<W>(load_up_to(simd, x.add(row * stride), cols - c));
                    }
                    if band > 0 {
                        found.take::<W>(load_up_to(simd, self.y.add(c), cols - c));
                    }
                    store_up_to(simd, self.y.add(c), cols - c, found.value(simd));
                }
            }
        }
    }
}

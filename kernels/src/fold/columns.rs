//! Folds over the rows of a matrix: one result a column, vectors across columns.
//!
//! Each column is folded in the tree of its rows (see [the contiguous fold](super)), here a sum:
//!
//! ```text
//! for each tile of up to 1024 columns:
//!     for each block of 1024 rows:
//!         for each band of 128 rows, for each lane l in 0..16, for each vector of columns:
//!             lane[l] = ((lane[l] + row[l]) + row[l + 16]) + … + row[l + 112]
//!         combine the lanes; push what they come to on the tile's binary counter
//!     fold the counter; finish, round into the output
//! ```
//!
//! 1. A tile is wide, so that rows are read in long pieces; its lanes live in the second-level cache.
//! 2. A band's eight rows of one lane are added in a register, so lanes are loaded and stored once
//!    for eight elements of input.
//! 3. Up to 1024 rows are one block, which needs no counter; of up to 16 the lanes stay in registers.

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use super::extreme::{Extreme, Wanted};
use super::partial::{Finished, Partial};
use super::terms::Term;
use super::{BLOCK, LANES, Widen};
use crate::dispatch::{ElementTask, Task};
use crate::map::{load_up_to, store_up_to};
use crate::simd::{Float, Lanes, Simd, Vector};

/// Columns of a tile where the counter is not deep. Tiles of 256 columns of [4096, 1024] `f32` took
/// 1.4 times as long, their short pieces of rows being fetched late.
const TILE: usize = 1024;
/// From a lane's numbers to those of the next beyond the tile's: a power of two of lines apart all lanes
/// would fall into one set of the first-level cache.
const PADDING: usize = 8;
/// Room for a tile's lanes and counter, 194 KiB of stack: a full tile's sums of up to 127 blocks; more
/// blocks and more numbers a lane make the tiles narrower.
const SCRATCH: usize = 24 * (TILE + PADDING);
/// Rows that compete at a time for the largest or smallest of a column.
const ROUND: usize = 8;
/// Rows of one lane that are added at a time.
const BAND: usize = 8;
/// Bytes ahead that lines of rows are asked for where one row of at least half as many follows the
/// other: 0.85 of the time of [4096, 1024] `f32` on Zen 5, 1.15 in the second-level cache. Where
/// others take the columns beside, their lines would be asked for.
const AHEAD: usize = 2048;
/// Bytes of rows that are expected in the second-level cache.
const CACHED: usize = 1 << 20;

/// A row-major matrix whose bounds are checked.
#[derive(Clone, Copy)]
pub(crate) struct Rows<E> {
    pub(super) first: *const E,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) stride: usize,
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
}

/// Room for a row of what columns come to.
pub(crate) enum Folded<E, P: Finished> {
    /// Finished and rounded.
    Rounded(*mut E, P::Finish),
    /// What a part of the rows folds to.
    Partial(*mut P),
}

/// Folds the rows.
pub(crate) struct FoldColumns<E, K: Term<M>, const M: usize> {
    pub x: Rows<E>,
    pub y: Folded<E, K::Entry>,
}

impl<E: Widen, K: Term<M>, const M: usize> Task for FoldColumns<E, K, M> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Rows { first, rows, cols, stride } = self.x;
        let blocks = rows.div_ceil(BLOCK);
        let levels = (usize::BITS - blocks.leading_zeros()) as usize;
        let column_size = LANES * M * size_of::<f64>() + (levels + 1) * size_of::<K::Entry>();
        let most = SCRATCH * size_of::<f64>() / column_size - PADDING;
        let wide = (most.min(TILE) / LANES * LANES).min(cols.max(1).next_multiple_of(LANES));
        let pitch = wide + PADDING;
        let row_size = cols * size_of::<E>();
        let spans = cols == stride && cols <= wide;
        let asks = spans && row_size >= AHEAD / 2 && rows > CACHED / row_size;
        let mut scratch = [MaybeUninit::<f64>::uninit(); SCRATCH];
        let lanes = scratch.as_mut_ptr().cast::<f64>();
        const {
            assert!(
                PADDING >= <S as Lanes<f64>>::LANES && align_of::<K::Entry>() <= align_of::<f64>()
            )
        };
        for column in (0..cols).step_by(wide) {
            // SAFETY: lanes are `LANES * M` rows of `pitch` numbers, the counter `levels + 1` rows of
            // `pitch` entries, which the scratch holds; the matrix was checked by `Rows::new`; `y`
            // holds a row; every entry that is read was written: those of the set bits of the number
            // of blocks.
            unsafe {
                let counter = lanes.add(LANES * M * pitch).cast::<K::Entry>();
                let width = wide.min(cols - column);
                let tile = Tile::<K, M> { lanes, counter, pitch, width, asks };
                if blocks == 0 {
                    (0..width).for_each(|c| counter.add(c).write(K::Entry::EMPTY));
                }
                for block in 0..blocks {
                    let row = block * BLOCK;
                    let count = BLOCK.min(rows - row);
                    let x = first.add(row * stride + column);
                    match count {
                        0..=4 => tile.fold_few::<E, S, 4>(simd, x, stride, count),
                        5..=8 => tile.fold_few::<E, S, 8>(simd, x, stride, count),
                        9..=LANES => tile.fold_few::<E, S, LANES>(simd, x, stride, count),
                        _ => {
                            tile.add_rows(simd, x, stride, count);
                            tile.combine(simd);
                        }
                    }
                    tile.push(x, count, block, blocks == 1);
                }
                if blocks > 1 {
                    tile.finish(blocks);
                }
                match self.y {
                    Folded::Rounded(y, finish) => {
                        for c in 0..width {
                            let result = counter.add(c).read().finished(finish);
                            y.add(column + c).write(E::rounded(result));
                        }
                    }
                    Folded::Partial(y) => counter.copy_to_nonoverlapping(y.add(column), width),
                }
            }
        }
    }
}

/// Scratch of one tile: [`LANES`] times `M` rows of lanes; the newest block's entries, then those of
/// the counter's levels. Rows are `pitch` wide. Lines of the matrix are asked for if `asks`.
#[derive(Clone, Copy)]
struct Tile<K: Term<M>, const M: usize> {
    lanes: *mut f64,
    counter: *mut K::Entry,
    pitch: usize,
    width: usize,
    asks: bool,
}

impl<K: Term<M>, const M: usize> Tile<K, M> {
    /// Sets the lanes to the folds of `count` rows, one block.
    ///
    /// # Safety
    /// `x` points to `count` rows of the tile's width; the scratch holds the lanes.
    #[inline(always)]
    unsafe fn add_rows<E: Widen, S: Simd>(self, simd: S, x: *const E, stride: usize, count: usize) {
        for band in (0..count).step_by(BAND * LANES) {
            for lane in 0..LANES.min(count - band) {
                let row = band + lane;
                let rows = (count - row).div_ceil(LANES).min(BAND);
                // SAFETY: these are rows band + lane + 16 k, k < `rows`, below `count`.
                unsafe {
                    match (rows, self.asks) {
                        (BAND, true) => self.add_to_lane(simd, x, stride, [row, BAND], true),
                        (BAND, false) => self.add_to_lane(simd, x, stride, [row, BAND], false),
                        _ => self.add_to_lane(simd, x, stride, [row, rows], false),
                    }
                }
            }
        }
    }

    /// Adds `rows` rows of the block at `x` to a lane, the first of them number `row`, [`LANES`]
    /// strides apart, if `asks` asking for the lines [`AHEAD`]. The first rows of a block start their
    /// lanes.
    ///
    /// # Safety
    /// The rows are there and the scratch holds the lane.
    #[inline(always)]
    unsafe fn add_to_lane<E: Widen, S: Simd>(
        self,
        simd: S,
        x: *const E,
        stride: usize,
        [row, rows]: [usize; 2],
        asks: bool,
    ) {
        let lane = row % LANES;
        for c in (0..self.width).step_by(<S as Lanes<f64>>::LANES) {
            // SAFETY: the lane's rows are padded to whole vectors; elements beyond the tile's width
            // are not read.
            unsafe {
                let at = |m: usize| self.lanes.add((lane * M + m) * self.pitch + c);
                let mut numbers = [Lanes::<f64>::splat(simd, K::START); M];
                if row >= LANES {
                    for (m, number) in numbers.iter_mut().enumerate() {
                        *number = simd.load(at(m));
                    }
                }
                let shift = match K::SHIFTED {
                    true => E::widen_up_to(simd, x.add(c), self.width - c),
                    false => Lanes::<f64>::splat(simd, 0.0),
                };
                for k in 0..rows {
                    let row = x.add((row + k * LANES) * stride + c);
                    if asks {
                        simd.prefetch(row.cast::<u8>().wrapping_add(AHEAD));
                    }
                    let element = E::widen_up_to(simd, row, self.width - c);
                    numbers = K::add(simd, element, shift, numbers);
                }
                for (m, number) in numbers.into_iter().enumerate() {
                    simd.store(at(m), number);
                }
            }
        }
    }

    /// The tree over the lanes, into the first.
    ///
    /// # Safety
    /// The scratch holds the lanes, which were written.
    #[inline(always)]
    unsafe fn combine<S: Simd>(self, simd: S) {
        for c in (0..self.width).step_by(<S as Lanes<f64>>::LANES) {
            for m in 0..M {
                let mut lanes = [Lanes::<f64>::splat(simd, K::START); LANES];
                for (l, lane) in lanes.iter_mut().enumerate() {
                    // SAFETY: rows of the scratch are padded to whole vectors.
                    *lane = unsafe { simd.load(self.lanes.add((l * M + m) * self.pitch + c)) };
                }
                let whole = Self::tree(lanes);
                // SAFETY: as for the loads.
                unsafe { simd.store(self.lanes.add(m * self.pitch + c), whole) };
            }
        }
    }

    /// Lanes that no row reached are what lanes start from, and such a join changes nothing: of the tree
    /// over all lanes what is left is that over the first `N`, if rows reached no others.
    #[inline(always)]
    fn tree<V: Vector, const N: usize>(mut lanes: [V; N]) -> V {
        let mut half = N / 2;
        while half > 0 {
            for l in 0..half {
                lanes[l] = K::join(lanes[l], lanes[l + half]);
            }
            half /= 2;
        }
        lanes[0]
    }

    /// As [`Tile::add_rows`] and [`Tile::combine`], of `count` rows, at most `N`: each is a lane.
    ///
    /// # Safety
    /// As for [`Tile::add_rows`].
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "lanes of known numbers stay in registers")]
    unsafe fn fold_few<E: Widen, S: Simd, const N: usize>(
        self,
        simd: S,
        x: *const E,
        stride: usize,
        count: usize,
    ) {
        for c in (0..self.width).step_by(<S as Lanes<f64>>::LANES) {
            let start = Lanes::<f64>::splat(simd, K::START);
            let mut lanes = [[start; N]; M];
            // SAFETY: rows below `count` are there, elements beyond the tile's width are not read; rows of
            // the scratch are padded to whole vectors.
            unsafe {
                let shift = match K::SHIFTED {
                    true => E::widen_up_to(simd, x.add(c), self.width - c),
                    false => Lanes::<f64>::splat(simd, 0.0),
                };
                for l in 0..N {
                    if l < count {
                        let element = E::widen_up_to(simd, x.add(l * stride + c), self.width - c);
                        let numbers = K::add(simd, element, shift, [start; M]);
                        for m in 0..M {
                            lanes[m][l] = numbers[m];
                        }
                    }
                }
                for m in 0..M {
                    simd.store(self.lanes.add(m * self.pitch + c), Self::tree(lanes[m]));
                }
            }
        }
    }

    /// Pushes what the first lanes come to as block number `block`, of `count` rows from `x` on; an
    /// only one stays the newest entry.
    ///
    /// # Safety
    /// The scratch holds the counter's entries of that many blocks; those of its set bits and the
    /// first lanes were written.
    #[inline(always)]
    unsafe fn push<E: Widen>(self, x: *const E, count: usize, block: usize, only: bool) {
        // SAFETY: as the caller promised; the block has a row.
        let newest = |c: usize| unsafe {
            let shift = if K::SHIFTED { x.add(c).read().widened() } else { 0.0 };
            let mut numbers = [0.0; M];
            for (m, number) in numbers.iter_mut().enumerate() {
                *number = self.lanes.add(m * self.pitch + c).read();
            }
            K::entry(shift, count, numbers)
        };
        if only {
            for c in 0..self.width {
                // SAFETY: as above.
                unsafe { self.counter.add(c).write(newest(c)) };
            }
            return;
        }
        let level = block.trailing_ones() as usize;
        for c in 0..self.width {
            let mut entry = newest(c);
            // SAFETY: as above.
            unsafe {
                for below in 1..=level {
                    entry = self.counter.add(below * self.pitch + c).read().then(entry);
                }
                self.counter.add((level + 1) * self.pitch + c).write(entry);
            }
        }
    }

    /// Folds the counter of `blocks` blocks, more than one, into the newest entry.
    ///
    /// # Safety
    /// As for [`Tile::push`].
    #[inline(always)]
    unsafe fn finish(self, blocks: usize) {
        let lowest = blocks.trailing_zeros() as usize;
        for c in 0..self.width {
            // SAFETY: the entries of set bits were written.
            unsafe {
                let mut entry = self.counter.add((lowest + 1) * self.pitch + c).read();
                for level in (lowest + 1..usize::BITS as usize).filter(|l| blocks >> l & 1 == 1) {
                    entry = self.counter.add((level + 1) * self.pitch + c).read().then(entry);
                }
                self.counter.add(c).write(entry);
            }
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
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let Rows { first, rows, cols, stride } = self.x;
        // The winners so far are in `y`; each band of rows competes with them.
        for band in (0..rows).step_by(ROUND) {
            // SAFETY: the matrix was checked by `Rows::new`; `y` holds `cols` elements, all written by
            // the first band.
            unsafe {
                let x = first.add(band * stride);
                match ROUND.min(rows - band) {
                    ROUND => compete::<E, S, W>(simd, x, stride, ROUND, self.y, cols, band == 0),
                    count => compete::<E, S, W>(simd, x, stride, count, self.y, cols, band == 0),
                }
            }
        }
    }
}

/// Lets `count` rows compete with the winners in `y` or, if there are none yet, with each other.
/// Inlined with a count that is known, each row has load instructions of its own, whose addresses
/// advance evenly: else the processor does not see them coming.
///
/// # Safety
/// `x` points to `count` rows of `cols` elements, and `y` to as many.
#[inline(always)]
unsafe fn compete<E: Float, S: Lanes<E>, W: Wanted>(
    simd: S,
    x: *const E,
    stride: usize,
    count: usize,
    y: *mut E,
    cols: usize,
    fresh: bool,
) {
    for c in (0..cols).step_by(S::LANES) {
        let left = cols - c;
        // SAFETY: `left` elements are left of each row; those beyond them are not touched.
        unsafe {
            let mut found = Extreme::new(W::key(load_up_to(simd, x.add(c), left)));
            for row in 1..count {
                found.take::<W>(W::key(load_up_to(simd, x.add(row * stride + c), left)));
            }
            if !fresh {
                found.take::<W>(load_up_to(simd, y.add(c), left));
            }
            store_up_to(simd, y.add(c), left, found.value(simd));
        }
    }
}

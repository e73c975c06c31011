//! Folds over the rows of a matrix: one result per column, vectors across columns.
//!
//! Each column is folded in the tree over its rows (see [the contiguous fold](super)), here a sum:
//!
//! ```text
//! for each tile of up to 1024 columns:
//!     for each block of 1024 rows:
//!         for each band of 128 rows, for each lane l in 0..16, for each vector of columns:
//!             lane[l] = ((lane[l] + row[l]) + row[l + 16]) + … + row[l + 112]
//!         join the lanes; push the block's accumulator on the tile's binary counter
//!     fold the counter; finish, round into the output
//! ```
//!
//! 1. A tile is wide, so rows are read in long pieces; its lanes stay in the L2 cache.
//! 2. A band's eight rows of one lane are added in a register, so lanes are loaded and stored once
//!    per eight elements of input.
//! 3. Up to 1024 rows are one block, which needs no counter; with up to 16 rows the lanes stay in
//!    registers.

use core::mem::MaybeUninit;

use super::floats::{Accumulate, Format, for_format, load, read, write};
use super::partial::{Finish, Finished, Partial};
use super::terms::{Term, join};
use super::{BLOCK, F64, LANES, starts};
use crate::simd::{Lanes, Simd, Task};

/// The most columns in a tile. Tiles of 256 columns of [4096, 1024] `f32` took 1.4 times as long,
/// because the hardware prefetches short pieces of rows late.
const TILE: usize = 1024;
/// Numbers between a lane's end and the next lane: if lanes were a power of two of cache lines
/// apart, all would share one set of the L1 cache.
const PADDING: usize = 8;
/// Numbers for a tile's lanes and counter: 194 KiB of stack hold a full tile's sums of up to 127
/// blocks. More blocks, or more numbers per lane, make tiles narrower.
const SCRATCH: usize = 24 * (TILE + PADDING);
/// Rows of one lane that are added at once.
const BAND: usize = 8;
/// Prefetch distance in bytes if contiguous rows are at least half as long: 0.85 of the time of
/// [4096, 1024] `f32` on Zen 5, but 1.15 if the matrix is in L2. If a tile does not span the rows,
/// it would prefetch another thread's columns.
const AHEAD: usize = 2048;
/// Size of a matrix, in bytes, that is expected to be in the L2 cache.
const CACHED: usize = 1 << 20;

/// A row-major matrix of the elements `x`, with checked bounds.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Matrix<X> {
    pub(crate) x: X,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) stride: usize,
}

impl<'a, E> Matrix<&'a [E]> {
    /// A matrix of `rows` rows of `cols` elements, whose starts are `stride` elements apart.
    ///
    /// # Panics
    /// If the last row ends beyond the slice.
    #[inline]
    #[track_caller]
    pub(crate) fn new(name: &str, x: &'a [E], rows: usize, cols: usize, stride: usize) -> Self {
        let end = match rows.checked_sub(1) {
            Some(above) if cols > 0 => above.checked_mul(stride).and_then(|r| r.checked_add(cols)),
            _ => Some(0),
        };
        assert!(
            end.is_some_and(|end| end <= x.len()),
            "{name}: {rows} rows of {cols} with stride {stride} exceed {} elements",
            x.len()
        );
        Matrix { x, rows, cols, stride }
    }
}

/// The row to write: results, or the accumulators of a part of the rows.
#[doc(hidden)]
#[derive(Debug)]
pub enum Target<'a, Y, P> {
    Results(&'a mut [MaybeUninit<Y>]),
    Partial(&'a mut [MaybeUninit<P>]),
}

/// A [`Target`] without the result's type; results have the elements' format.
#[derive(Clone, Copy)]
pub(super) enum Erased<P> {
    Results(*mut u8),
    Partial(*mut P),
}

impl<Y, P> Target<'_, Y, P> {
    /// The same target, checked to have `cols` elements; `Q` is `P` or its only field.
    #[inline]
    pub(super) fn erased<Q>(self, cols: usize) -> Erased<Q> {
        const { assert!(size_of::<P>() == size_of::<Q>()) };
        let (y, len) = match self {
            Target::Results(y) => (Erased::Results(y.as_mut_ptr().cast()), y.len()),
            Target::Partial(y) => (Erased::Partial(y.as_mut_ptr().cast()), y.len()),
        };
        assert!(len == cols, "{cols} columns into {len} results");
        y
    }
}

/// Writes a value to every element.
pub(crate) fn filled<Y: Copy>(y: &mut [MaybeUninit<Y>], value: Y) -> &mut [Y] {
    y.fill(MaybeUninit::new(value));
    // SAFETY: every element has just been written.
    unsafe { core::slice::from_raw_parts_mut(y.as_mut_ptr().cast::<Y>(), y.len()) }
}

/// Folds the columns of a checked matrix into a row.
pub(crate) struct FoldColumns<K: Term<M>, const M: usize> {
    tile: Tile,
    rows: usize,
    cols: usize,
    y: Erased<K::Acc>,
    finish: Finish,
}

impl<K: Term<M>, const M: usize> FoldColumns<K, M> {
    #[inline]
    pub fn new<E: Accumulate>(x: Matrix<&[E]>, finish: Finish, y: Target<'_, E, K::Acc>) -> Self {
        let Matrix { x, rows, cols, stride } = x;
        let y = y.erased(cols);
        let tile = Tile {
            x: x.as_ptr().cast(),
            format: E::FORMAT,
            stride,
            lanes: core::ptr::null_mut(),
            pitch: 0,
            width: 0,
            prefetches: false,
        };
        FoldColumns { tile, rows, cols, y, finish }
    }
}

impl<K: Term<M>, const M: usize> Task for FoldColumns<K, M> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut scratch = [MaybeUninit::<f64>::uninit(); SCRATCH];
        let lanes = scratch.as_mut_ptr().cast();
        let tile = Tile { lanes, ..self.tile };
        for_format!(tile.format, format => {
            let fold = FoldColumns { tile: Tile { format, ..tile }, ..self };
            fold.tiles(simd);
        });
    }
}

impl<K: Term<M>, const M: usize> FoldColumns<K, M> {
    #[inline(always)]
    fn tiles<S: Simd>(self, simd: S) {
        let FoldColumns { tile, rows, cols, y, finish } = self;
        let blocks = rows.div_ceil(BLOCK);
        let levels = (usize::BITS - blocks.leading_zeros()) as usize;
        let column_size = LANES * M * size_of::<f64>() + (levels + 1) * size_of::<K::Acc>();
        let most = SCRATCH * size_of::<f64>() / column_size - PADDING;
        let wide = (most.min(TILE) / LANES * LANES).min(cols.max(1).next_multiple_of(LANES));
        let row_size = cols * tile.format.size();
        let spans = cols == tile.stride && cols <= wide;
        let prefetches = spans && row_size >= AHEAD / 2 && rows > CACHED / row_size;
        const {
            assert!(PADDING >= <S as Lanes<f64>>::LANES);
            assert!(align_of::<K::Acc>() <= align_of::<f64>());
        };
        let pitch = wide + PADDING;
        for column in (0..cols).step_by(wide) {
            let width = wide.min(cols - column);
            // SAFETY: lanes are `LANES * M` rows of `pitch` numbers, and the counter `levels + 1`
            // rows of `pitch` accumulators; `wide` was chosen so that the scratch holds them.
            // `Matrix::new` checked the matrix; `y` holds a row; every accumulator that is read was
            // written, because its bit is set in the number of blocks.
            unsafe {
                let x = tile.x.wrapping_add(column * tile.format.size());
                let tile = Tile { x, pitch, width, prefetches, ..tile };
                let lanes = tile.lanes;
                let counter = lanes.add(LANES * M * pitch).cast::<K::Acc>();
                for block in 0..blocks {
                    let count = BLOCK.min(rows - block * BLOCK);
                    let tile = tile.rows_from(block * BLOCK);
                    tile.fold_block::<S, K, M>(simd, count);
                    tile.push::<K, M>(counter, count, block, blocks == 1);
                }
                let mut c = 0;
                while c < width && blocks != 1 {
                    counter.add(c).write(tile.total(counter.add(c), blocks));
                    c += 1;
                }
                match y {
                    Erased::Results(y) => {
                        // Divide and take roots by vectors, in the lanes, which are free again.
                        let mut divisor = 1.0;
                        for c in 0..width {
                            let (x, by) = counter.add(c).read().quotient(finish);
                            lanes.add(c).write(x);
                            divisor = by;
                        }
                        let results = core::slice::from_raw_parts_mut(lanes, width);
                        finish_all(results, divisor, finish);
                        for c in 0..width {
                            write(tile.format, y, column + c, results[c]);
                        }
                    }
                    Erased::Partial(y) => counter.copy_to_nonoverlapping(y.add(column), width),
                }
            }
        }
    }
}

/// The last steps of [`Finished::finished`] for columns, which all have the same number of
/// elements.
#[inline(always)]
fn finish_all(results: &mut [f64], divisor: f64, finish: Finish) {
    if divisor != 1.0 {
        results.iter_mut().for_each(|x| *x /= divisor);
    }
    if matches!(finish, Finish::Std(_)) {
        results.iter_mut().for_each(|x| *x = x.sqrt());
    }
}

/// Some columns of a matrix from some row on, and scratch for [`LANES`] times `M` rows of lanes,
/// `pitch` apart.
#[derive(Clone, Copy)]
struct Tile {
    x: *const u8,
    format: Format,
    stride: usize,
    lanes: *mut f64,
    pitch: usize,
    width: usize,
    prefetches: bool,
}

impl Tile {
    /// The tile from row `row` on.
    ///
    /// # Safety
    /// The row exists.
    #[inline(always)]
    unsafe fn rows_from(self, row: usize) -> Self {
        // SAFETY: the caller promises the row.
        Tile { x: unsafe { self.x.add(row * self.stride * self.format.size()) }, ..self }
    }

    /// Loads a vector of row `row` from column `c` on, or the rest of the tile's row.
    ///
    /// # Safety
    /// The row exists.
    #[inline(always)]
    unsafe fn load<S: Simd>(self, simd: S, row: usize, c: usize) -> F64<S> {
        let at = (row * self.stride + c) * self.format.size();
        // SAFETY: the caller promises the row; elements beyond the tile's width are not read.
        unsafe { load(simd, self.format, self.x.add(at), self.width - c) }
    }

    /// The address of number `m` of a lane of column `c`.
    ///
    /// # Safety
    /// The scratch holds the lanes.
    #[inline(always)]
    unsafe fn lane<const M: usize>(self, lane: usize, m: usize, c: usize) -> *mut f64 {
        // SAFETY: the caller promises that the scratch holds the lanes.
        unsafe { self.lanes.add((lane * M + m) * self.pitch + c) }
    }

    /// Folds `count` rows, one block, into the first lane.
    ///
    /// # Safety
    /// The tile has the rows; the scratch holds the lanes, whose rows are padded to whole vectors.
    #[inline(always)]
    unsafe fn fold_block<S: Simd, K: Term<M>, const M: usize>(self, simd: S, count: usize) {
        // SAFETY: the caller promises the same.
        unsafe {
            match count {
                0..=4 => self.fold_few::<S, K, M>(simd, count, 4),
                5..=8 => self.fold_few::<S, K, M>(simd, count, 8),
                9..=LANES => self.fold_few::<S, K, M>(simd, count, LANES),
                _ => {
                    self.add_rows::<S, K, M>(simd, count);
                    self.join_lanes::<S, K, M>(simd);
                }
            }
        }
    }

    /// Adds `count` rows, one block, to the lanes.
    ///
    /// # Safety
    /// See [`Tile::fold_block`].
    #[inline(always)]
    unsafe fn add_rows<S: Simd, K: Term<M>, const M: usize>(self, simd: S, count: usize) {
        for band in (0..count).step_by(BAND * LANES) {
            let lanes = LANES.min(count - band);
            for row in band..band + lanes {
                let rows = (count - row).div_ceil(LANES).min(BAND);
                // SAFETY: these are rows `row + LANES * k`, k < `rows`, all below `count`.
                unsafe {
                    match (rows, self.prefetches) {
                        (BAND, true) => self.add_to_lane::<S, K, M>(simd, row, BAND, true),
                        (BAND, false) => self.add_to_lane::<S, K, M>(simd, row, BAND, false),
                        _ => self.add_to_lane::<S, K, M>(simd, row, rows, false),
                    }
                }
            }
        }
    }

    /// Adds `rows` rows of the block, from number `row` on, [`LANES`] rows apart, to their lane.
    /// The first [`LANES`] rows of a block start their lanes.
    ///
    /// # Safety
    /// See [`Tile::fold_block`]; these rows exist.
    #[inline(always)]
    unsafe fn add_to_lane<S: Simd, K: Term<M>, const M: usize>(
        self,
        simd: S,
        row: usize,
        rows: usize,
        prefetches: bool,
    ) {
        let (start, zero) = (starts::<S, K, M>(simd), Lanes::<f64>::splat(simd, 0.0));
        let lane = row % LANES;
        for c in (0..self.width).step_by(<S as Lanes<f64>>::LANES) {
            // SAFETY: the rows exist; rows of lanes are padded to whole vectors.
            unsafe {
                let mut numbers = start;
                let mut m = 0;
                while row >= LANES && m < M {
                    numbers[m] = simd.load(self.lane::<M>(lane, m, c));
                    m += 1;
                }
                let shift = if K::SHIFTED { self.load(simd, 0, c) } else { zero };
                let mut below = self.rows_from(row);
                for _ in 0..rows {
                    let x = below.load(simd, 0, c);
                    if prefetches {
                        simd.prefetch(below.x.wrapping_add(c * self.format.size() + AHEAD));
                    }
                    numbers = K::take(simd, [x, x], shift, numbers);
                    // After the last row this address is past the end.
                    let step = LANES * self.stride * self.format.size();
                    below.x = below.x.wrapping_add(step);
                }
                for m in 0..M {
                    simd.store(self.lane::<M>(lane, m, c), numbers[m]);
                }
            }
        }
    }

    /// Folds the lanes into the first one, as a tree.
    ///
    /// # Safety
    /// See [`Tile::fold_block`]; the lanes were written.
    #[inline(always)]
    unsafe fn join_lanes<S: Simd, K: Term<M>, const M: usize>(self, simd: S) {
        for c in (0..self.width).step_by(<S as Lanes<f64>>::LANES) {
            for m in 0..M {
                let mut lanes = [Lanes::<f64>::splat(simd, 0.0); LANES];
                for l in 0..LANES {
                    // SAFETY: the caller promises the lanes.
                    lanes[l] = unsafe { simd.load(self.lane::<M>(l, m, c)) };
                }
                let total = tree::<S>(lanes, LANES, K::PRODUCT && m == 0);
                // SAFETY: the first lane is one of those loaded.
                unsafe { simd.store(self.lane::<M>(0, m, c), total) };
            }
        }
    }

    /// [`Tile::add_rows`] and [`Tile::join_lanes`] for `count` rows, at most `n`: each row is a
    /// lane. Lanes without a row hold the start value, and joining such a lane changes nothing, so
    /// the tree over the first `n` lanes equals the tree over all.
    ///
    /// # Safety
    /// See [`Tile::fold_block`].
    #[inline(always)]
    unsafe fn fold_few<S: Simd, K: Term<M>, const M: usize>(self, simd: S, count: usize, n: usize) {
        let (start, zero) = (starts::<S, K, M>(simd), Lanes::<f64>::splat(simd, 0.0));
        for c in (0..self.width).step_by(<S as Lanes<f64>>::LANES) {
            let mut lanes = start.map(|number| [number; LANES]);
            // SAFETY: the caller promises the rows below `count`.
            unsafe {
                let shift = if K::SHIFTED { self.load(simd, 0, c) } else { zero };
                for l in 0..n {
                    if l < count {
                        let x = self.load(simd, l, c);
                        let numbers = K::take(simd, [x, x], shift, start);
                        for m in 0..M {
                            lanes[m][l] = numbers[m];
                        }
                    }
                }
                for m in 0..M {
                    let total = tree::<S>(lanes[m], n, K::PRODUCT && m == 0);
                    simd.store(self.lane::<M>(0, m, c), total);
                }
            }
        }
    }

    /// Pushes the result of block `block`, of `count` rows, from the first lanes onto the counter.
    /// The counter has the newest entries first, then one row of entries per level, `pitch` apart.
    /// A single block skips the levels and stays the newest.
    ///
    /// # Safety
    /// The counter has room for that many blocks; the first lanes and the entries of the set bits
    /// were written; the block has a row.
    #[inline(always)]
    unsafe fn push<K: Term<M>, const M: usize>(
        self,
        counter: *mut K::Acc,
        count: usize,
        block: usize,
        only: bool,
    ) {
        for c in 0..self.width {
            // SAFETY: the caller promises the row, the lanes and the counter.
            unsafe {
                let mut shift = 0.0;
                if K::SHIFTED {
                    shift = read(self.format, self.x.add(c * self.format.size()));
                }
                let mut numbers = [0.0; M];
                for m in 0..M {
                    numbers[m] = self.lane::<M>(0, m, c).read();
                }
                counter.add(c).write(K::finish(shift, count, numbers));
            }
        }
        let level = block.trailing_ones() as usize;
        let mut c = if only { self.width } else { 0 };
        while c < self.width {
            // SAFETY: the caller promises the entries; those merged belong to set bits of `block`.
            unsafe {
                let mut acc = counter.add(c).read();
                let mut below = 1;
                while below <= level {
                    acc = counter.add(below * self.pitch + c).read().merge(acc);
                    below += 1;
                }
                counter.add((level + 1) * self.pitch + c).write(acc);
            }
            c += 1;
        }
    }

    /// Merges a column's counter of `blocks` blocks, not exactly one.
    ///
    /// # Safety
    /// The entries of the set bits were written.
    #[inline(always)]
    unsafe fn total<P: Partial>(self, column: *const P, blocks: usize) -> P {
        let (mut left, mut acc) = (blocks, P::EMPTY);
        while left != 0 {
            // SAFETY: the caller promises the entries of set bits.
            let entry =
                unsafe { column.add((left.trailing_zeros() as usize + 1) * self.pitch).read() };
            acc = if left == blocks { entry } else { entry.merge(acc) };
            left &= left - 1;
        }
        acc
    }
}

/// Folds the first `n` lanes as a tree.
#[inline(always)]
fn tree<S: Simd>(mut lanes: [F64<S>; LANES], n: usize, product: bool) -> F64<S> {
    let mut half = n / 2;
    while half > 0 {
        for l in 0..half {
            lanes[l] = join(lanes[l], lanes[l + half], product);
        }
        half /= 2;
    }
    lanes[0]
}

//! Running totals: one chain from the first element to the last, in `f64`, whose every link is rounded
//! to the element type.
//!
//! ```text
//! down columns:    lane = column                  totals are loaded and stored once for eight rows
//! along rows:      lane = row                     tiles of W rows and W columns, W lanes of f64:
//!                                                 widened, transposed, W links, transposed back, rounded
//! what is left:    rows and columns one by one
//! ```
//!
//! A lane is a chain in each, so the three give the same bits.

use core::mem::MaybeUninit;

use super::{F64, Widen};
use crate::dispatch::FoldTask;
use crate::map::{load_up_to, store_up_to};
use crate::simd::{Float, Lanes, Simd, Vector};

/// How a total takes an element.
#[derive(Clone, Copy)]
pub(crate) enum Join {
    Sum,
    Product,
}

/// [`Join`], chosen when the kernel is compiled.
trait Link: Copy {
    const START: f64;
    fn lanes<V: Vector>(self, total: V, x: V) -> V;
    fn one(self, total: f64, x: f64) -> f64;
}

#[derive(Clone, Copy)]
struct Sum;

#[derive(Clone, Copy)]
struct Product;

impl Link for Sum {
    const START: f64 = 0.0;
    #[inline(always)]
    fn lanes<V: Vector>(self, total: V, x: V) -> V {
        total + x
    }
    #[inline(always)]
    fn one(self, total: f64, x: f64) -> f64 {
        total + x
    }
}

impl Link for Product {
    const START: f64 = 1.0;
    #[inline(always)]
    fn lanes<V: Vector>(self, total: V, x: V) -> V {
        total * x
    }
    #[inline(always)]
    fn one(self, total: f64, x: f64) -> f64 {
        total * x
    }
}

/// Elements that `f64` lanes are rounded to.
pub(crate) trait Narrow: Float + Widen {
    /// Rounds a vector's lanes or, if that is less, its first `count`, and writes them.
    ///
    /// # Safety
    /// `dst` is valid for writes of `count` elements.
    unsafe fn narrow_up_to<S: Simd>(simd: S, dst: *mut Self, count: usize, x: F64<S>);
}

impl Narrow for f32 {
    #[inline(always)]
    unsafe fn narrow_up_to<S: Simd>(simd: S, dst: *mut f32, count: usize, x: F64<S>) {
        if count >= <S as Lanes<f64>>::LANES {
            // SAFETY: a whole vector may be written.
            return unsafe { simd.store_narrowed(dst, x) };
        }
        let mut lanes = [0.0; MAX_WIDTH];
        // SAFETY: no vector has more lanes than the array; `count` elements may be written.
        unsafe {
            simd.store(lanes.as_mut_ptr(), x);
            for (i, lane) in lanes.iter().enumerate().take(count) {
                dst.add(i).write(*lane as f32);
            }
        }
    }
}

impl Narrow for f64 {
    #[inline(always)]
    unsafe fn narrow_up_to<S: Simd>(simd: S, dst: *mut f64, count: usize, x: F64<S>) {
        // SAFETY: as the caller promised.
        unsafe { store_up_to(simd, dst, count, x) }
    }
}

/// The most lanes of `f64`.
const MAX_WIDTH: usize = 8;

/// Rows that follow one another in memory.
pub(crate) struct ScanRows<'a, E> {
    x: &'a [E],
    cols: usize,
    y: &'a mut [MaybeUninit<E>],
    join: Join,
}

impl<'a, E> ScanRows<'a, E> {
    /// The lengths are equal multiples of `cols`, which is not 0.
    pub fn new(x: &'a [E], cols: usize, y: &'a mut [MaybeUninit<E>], join: Join) -> Self {
        ScanRows { x, cols, y, join }
    }
}

impl<E: Narrow> FoldTask<E> for ScanRows<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        match self.join {
            Join::Sum => scan_rows(simd, self.x, self.cols, self.y, Sum),
            Join::Product => scan_rows(simd, self.x, self.cols, self.y, Product),
        }
    }
}

#[inline(always)]
fn scan_rows<E: Narrow, S: Simd, L: Link>(
    simd: S,
    x: &[E],
    cols: usize,
    y: &mut [MaybeUninit<E>],
    link: L,
) {
    let width = <S as Lanes<f64>>::LANES;
    let band = width * cols;
    let whole = if width > 1 { x.len() / band * band } else { 0 };
    let ((x, x_rest), (y, y_rest)) = (x.split_at(whole), y.split_at_mut(whole));
    for (x, y) in x.chunks_exact(band).zip(y.chunks_exact_mut(band)) {
        // SAFETY: both are a band of `width` rows of `cols` elements.
        unsafe { scan_band(simd, x.as_ptr(), cols, y.as_mut_ptr().cast(), link) };
    }
    for (x, y) in x_rest.chunks_exact(cols).zip(y_rest.chunks_exact_mut(cols)) {
        let mut total = L::START;
        for (x, y) in x.iter().zip(y) {
            total = link.one(total, x.to_f64());
            y.write(E::from_f64(total));
        }
    }
}

/// As many rows as a vector has lanes of `f64`.
///
/// # Safety
/// `x` is valid for reads and `y` for writes of that many rows of `cols` elements.
#[inline(always)]
unsafe fn scan_band<E: Narrow, S: Simd, L: Link>(
    simd: S,
    x: *const E,
    cols: usize,
    y: *mut E,
    link: L,
) {
    let width = <S as Lanes<f64>>::LANES;
    const { assert!(<S as Lanes<f64>>::LANES <= MAX_WIDTH) };
    let mut total = Lanes::<f64>::splat(simd, L::START);
    let whole = cols - cols % width;
    for at in (0..whole).step_by(width) {
        let mut tile = [total; MAX_WIDTH];
        for (r, row) in tile.iter_mut().enumerate().take(width) {
            // SAFETY: `width` columns are left in row r.
            *row = unsafe { E::widen_up_to(simd, x.add(r * cols + at), width) };
        }
        tile = transposed::<S>(tile);
        for column in tile.iter_mut().take(width) {
            total = link.lanes(total, *column);
            *column = total;
        }
        tile = transposed::<S>(tile);
        for (r, row) in tile.iter().enumerate().take(width) {
            // SAFETY: as for the loads.
            unsafe { E::narrow_up_to(simd, y.add(r * cols + at), width, *row) };
        }
    }
    let mut totals = [0.0; MAX_WIDTH];
    // SAFETY: the assertion above.
    unsafe { simd.store(totals.as_mut_ptr(), total) };
    for (r, mut total) in totals.into_iter().enumerate().take(width) {
        for at in r * cols + whole..(r + 1) * cols {
            // SAFETY: the rest of row r.
            unsafe {
                total = link.one(total, x.add(at).read().to_f64());
                y.add(at).write(E::from_f64(total));
            }
        }
    }
}

/// Lane c of vector r becomes lane r of vector c, in a tile as high as a vector is wide.
#[inline(always)]
fn transposed<S: Simd>(mut tile: [F64<S>; MAX_WIDTH]) -> [F64<S>; MAX_WIDTH] {
    let half = <S as Lanes<f64>>::LANES / 2;
    let mut stage = half;
    while stage > 0 {
        let old = tile;
        for i in 0..half {
            (tile[2 * i], tile[2 * i + 1]) = old[i].interleave(old[i + half]);
        }
        stage /= 2;
    }
    tile
}

/// Rows of a matrix whose columns are scanned on from totals.
pub(crate) struct ScanColumns<'a, E> {
    x: &'a [E],
    totals: &'a mut [f64],
    y: &'a mut [MaybeUninit<E>],
    join: Join,
}

impl<'a, E> ScanColumns<'a, E> {
    /// The lengths of `x` and `y` are equal multiples of that of `totals`.
    pub fn new(x: &'a [E], totals: &'a mut [f64], y: &'a mut [MaybeUninit<E>], join: Join) -> Self {
        ScanColumns { x, totals, y, join }
    }
}

impl<E: Narrow> FoldTask<E> for ScanColumns<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let ScanColumns { x, totals, y, join } = self;
        match join {
            Join::Sum => scan_columns(simd, x, totals, y, Sum),
            Join::Product => scan_columns(simd, x, totals, y, Product),
        }
    }
}

/// Rows that are taken at a time.
const ROWS: usize = 8;

#[inline(always)]
fn scan_columns<E: Narrow, S: Simd, L: Link>(
    simd: S,
    x: &[E],
    totals: &mut [f64],
    y: &mut [MaybeUninit<E>],
    link: L,
) {
    let cols = totals.len();
    let some_rows = (ROWS * cols).max(1);
    for (x, y) in x.chunks(some_rows).zip(y.chunks_mut(some_rows)) {
        let (x, rows, y) = (x.as_ptr(), x.len() / cols, y.as_mut_ptr().cast::<E>());
        // SAFETY: both hold so many rows.
        unsafe {
            match rows {
                ROWS => scan_some_rows(simd, x, ROWS, totals, y, link),
                _ => scan_some_rows(simd, x, rows, totals, y, link),
            }
        }
    }
}

/// Inlined with a number of rows that is known, each row has load instructions of its own, whose
/// addresses advance evenly: else the processor does not see them coming.
///
/// # Safety
/// `x` is valid for reads and `y` for writes of `rows` rows of as many columns as there are totals.
#[inline(always)]
unsafe fn scan_some_rows<E: Narrow, S: Simd, L: Link>(
    simd: S,
    x: *const E,
    rows: usize,
    totals: &mut [f64],
    y: *mut E,
    link: L,
) {
    let cols = totals.len();
    for c in (0..cols).step_by(<S as Lanes<f64>>::LANES) {
        let left = cols - c;
        // SAFETY: `left` columns are left of the totals and of each row.
        unsafe {
            let mut total: F64<S> = load_up_to(simd, totals.as_ptr().add(c), left);
            for r in 0..rows {
                let at = r * cols + c;
                total = link.lanes(total, E::widen_up_to(simd, x.add(at), left));
                E::narrow_up_to(simd, y.add(at), left, total);
            }
            store_up_to(simd, totals.as_mut_ptr().add(c), left, total);
        }
    }
}

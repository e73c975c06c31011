//! Running sums and products: one chain from the first element to the last, in `f64`, each total
//! rounded to the element type.
//!
//! ```text
//! down columns:    lane = column                  totals are loaded and stored once per eight rows
//! along rows:      lane = row                     tiles of W rows and W columns, W lanes of f64:
//!                                                 widen, transpose, W steps, transpose back, round
//! what is left:    rows and columns one by one
//! ```
//!
//! All three compute the same chains, and so give the same bits.

use core::mem::MaybeUninit;

use super::floats::load;
use super::terms::join;
use super::{F64, Widen};
use crate::simd::{Float, Lanes, Simd, Task, Vector};

/// The largest number of `f64` lanes in a register.
const MAX_WIDTH: usize = 8;

/// Rounds a vector's lanes, or only its first `count`, and writes them.
///
/// # Safety
/// `dst` is valid for writes of `count` elements.
#[inline(always)]
unsafe fn narrow<E: Float + Widen, S: Simd>(simd: S, dst: *mut E, count: usize, x: F64<S>) {
    const { assert!(<S as Lanes<f64>>::LANES <= MAX_WIDTH) };
    // SAFETY: at most `count` elements of the size of `E` are written; the array holds a whole
    // vector, as asserted above.
    unsafe {
        if size_of::<E>() == size_of::<f64>() {
            simd.store_up_to(dst.cast::<f64>(), count, x);
        } else if count >= <S as Lanes<f64>>::LANES {
            simd.store_narrowed(dst.cast::<f32>(), x);
        } else {
            let mut lanes = [0.0; MAX_WIDTH];
            simd.store(lanes.as_mut_ptr(), x);
            for i in 0..count {
                dst.add(i).write(E::from_f64(lanes[i]));
            }
        }
    }
}

/// A scan along contiguous rows.
pub(crate) struct ScanRows<'a, E> {
    x: &'a [E],
    cols: usize,
    y: &'a mut [MaybeUninit<E>],
    product: bool,
}

impl<'a, E> ScanRows<'a, E> {
    /// Takes slices of the same length, a multiple of `cols`, which is not 0.
    pub fn new(x: &'a [E], cols: usize, y: &'a mut [MaybeUninit<E>], product: bool) -> Self {
        assert!(x.len() == y.len() && x.len().is_multiple_of(cols), "as was checked");
        ScanRows { x, cols, y, product }
    }
}

impl<E: Float + Widen> Task<E> for ScanRows<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        match self.product {
            true => scan_rows(simd, ScanRows { product: true, ..self }),
            false => scan_rows(simd, ScanRows { product: false, ..self }),
        }
    }
}

#[inline(always)]
fn scan_rows<E: Float + Widen, S: Simd>(simd: S, task: ScanRows<'_, E>) {
    let ScanRows { x, cols, y, product } = task;
    let width = <S as Lanes<f64>>::LANES;
    let (len, x, y) = (x.len(), x.as_ptr(), y.as_mut_ptr().cast::<E>());
    let start = if product { 1.0 } else { 0.0 };
    // SAFETY: `ScanRows::new` compared the lengths; rows and bands of rows are below `len`.
    unsafe {
        let mut at = 0;
        while width > 1 && (len - at) / width >= cols {
            scan_band(simd, x.add(at), cols, y.add(at), product);
            at += width * cols;
        }
        while at < len {
            scan_one(x.add(at), y.add(at), cols, start, product);
            at += cols;
        }
    }
}

/// Scans `count` elements one by one.
///
/// # Safety
/// `x` is valid for reads and `y` for writes of them.
#[inline(always)]
unsafe fn scan_one<E: Float>(x: *const E, y: *mut E, count: usize, start: f64, product: bool) {
    let (mut total, mut i) = (start, 0);
    while i < count {
        // SAFETY: the caller promises `count` elements.
        unsafe {
            total = join(total, x.add(i).read().to_f64(), product);
            y.add(i).write(E::from_f64(total));
        }
        i += 1;
    }
}

/// Scans as many rows as a vector has lanes of `f64`.
///
/// # Safety
/// `x` is valid for reads and `y` for writes of that many rows of `cols` elements.
#[inline(always)]
unsafe fn scan_band<E: Float + Widen, S: Simd>(
    simd: S,
    x: *const E,
    cols: usize,
    y: *mut E,
    product: bool,
) {
    let width = <S as Lanes<f64>>::LANES;
    const { assert!(<S as Lanes<f64>>::LANES <= MAX_WIDTH) };
    let mut total = Lanes::<f64>::splat(simd, if product { 1.0 } else { 0.0 });
    let mut at = 0;
    while cols - at >= width {
        let mut tile = [total; MAX_WIDTH];
        for r in 0..width {
            // SAFETY: `width` columns are left in row r.
            tile[r] = unsafe { load(simd, E::FORMAT, x.add(r * cols + at).cast(), width) };
        }
        tile = transposed::<S>(tile);
        for c in 0..width {
            total = join(total, tile[c], product);
            tile[c] = total;
        }
        tile = transposed::<S>(tile);
        for r in 0..width {
            // SAFETY: `width` columns are left in row r.
            unsafe { narrow(simd, y.add(r * cols + at), width, tile[r]) };
        }
        at += width;
    }
    let mut totals = [0.0; MAX_WIDTH];
    // SAFETY: the array holds a whole vector, as asserted above; these are the rests of the rows.
    unsafe {
        simd.store(totals.as_mut_ptr(), total);
        for r in 0..width {
            let first = r * cols + at;
            scan_one(x.add(first), y.add(first), cols - at, totals[r], product);
        }
    }
}

/// Transposes a square tile: lane c of vector r becomes lane r of vector c.
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

/// A scan down the columns of a matrix, starting from `totals`.
pub(crate) struct ScanColumns<'a, E> {
    x: &'a [E],
    totals: &'a mut [f64],
    y: &'a mut [MaybeUninit<E>],
    product: bool,
}

impl<'a, E> ScanColumns<'a, E> {
    /// Takes `x` and `y` of the same length, a multiple of that of `totals`.
    pub fn new(
        x: &'a [E],
        totals: &'a mut [f64],
        y: &'a mut [MaybeUninit<E>],
        product: bool,
    ) -> Self {
        assert!(x.len() == y.len() && x.len().is_multiple_of(totals.len()), "as was checked");
        ScanColumns { x, totals, y, product }
    }
}

/// Rows scanned at once: totals are loaded and stored once for them.
const ROWS: usize = 8;

impl<E: Float + Widen> Task<E> for ScanColumns<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd + Lanes<E>>(self, simd: S) {
        let ScanColumns { x, totals, y, product } = self;
        let (rows, cols) = (x.len().checked_div(totals.len()).unwrap_or(0), totals.len());
        let (x, totals, y) = (x.as_ptr(), totals.as_mut_ptr(), y.as_mut_ptr().cast::<E>());
        for row in (0..rows).step_by(ROWS) {
            // SAFETY: `ScanColumns::new` compared the lengths, so both matrices have the rows.
            unsafe {
                let (x, y) = (x.add(row * cols), y.add(row * cols));
                match (ROWS.min(rows - row), product) {
                    (ROWS, false) => scan_some_rows(simd, x, ROWS, totals, cols, y, false),
                    (count, false) => scan_some_rows(simd, x, count, totals, cols, y, false),
                    (ROWS, true) => scan_some_rows(simd, x, ROWS, totals, cols, y, true),
                    (count, true) => scan_some_rows(simd, x, count, totals, cols, y, true),
                }
            }
        }
    }
}

/// Scans `rows` rows. Inlined with a constant number, each row gets its own load instruction, whose
/// addresses advance evenly, so that the hardware prefetcher recognises them.
///
/// # Safety
/// `x` is valid for reads and `y` for writes of `rows` rows of `cols` columns; there are `cols`
/// totals.
#[inline(always)]
unsafe fn scan_some_rows<E: Float + Widen, S: Simd>(
    simd: S,
    x: *const E,
    rows: usize,
    totals: *mut f64,
    cols: usize,
    y: *mut E,
    product: bool,
) {
    for c in (0..cols).step_by(<S as Lanes<f64>>::LANES) {
        let left = cols - c;
        // SAFETY: `left` columns are left of the totals and of each row.
        unsafe {
            let mut total: F64<S> = simd.load_up_to(totals.add(c), left);
            for r in 0..rows {
                let at = r * cols + c;
                let x = load(simd, E::FORMAT, x.add(at).cast(), left);
                total = join(total, x, product);
                narrow(simd, y.add(at), left, total);
            }
            simd.store_up_to(totals.add(c), left, total);
        }
    }
}

//! Largest and smallest elements: NaN if there is one, and −0 below +0.
//!
//! ```text
//! best  = the comparison's winner, blind to NaN and to the sign of zero
//! nan   = any element was NaN
//! signs = AND (largest) or OR (smallest) of all elements' bits
//! result: NaN if nan; the zero with the sign bit of `signs` if best == 0; else best
//! ```
//!
//! If the largest is zero, nothing is above zero, so it is +0 exactly if some sign bit is clear:
//! one bit operation an element replaces a comparison that orders zeros. Every step is exact, so
//! the order of the elements does not matter.

use half::{bf16, f16};

use super::columns::{Erased, Matrix, Target};
use super::floats::{Accumulate, Floats};
use super::partial::Extremum;
use super::prefetch_ahead;
use crate::convert::Convert;
use crate::dispatch::ElementTask;
use crate::map::{load_up_to, store_up_to};
use crate::simd::sealed::Sealed;
use crate::simd::{Float, Lanes, MAX_LANES, Mask, Vector};

/// Vectors in flight: enough for the latency of a comparison.
pub(super) const UNROLL: usize = 4;

/// Which extremum is wanted. Constant in hot loops, see [`Wanted::constant`].
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub largest: bool,
    /// True if magnitudes are compared.
    pub magnitude: bool,
}

/// Evaluates an expression with `$wanted` bound to a constant.
macro_rules! for_wanted {
    ($wanted:ident => $body:expr) => {
        match ($wanted.largest, $wanted.magnitude) {
            (true, false) => for_wanted!(@arm $wanted true false $body),
            (false, false) => for_wanted!(@arm $wanted false false $body),
            (true, true) => for_wanted!(@arm $wanted true true $body),
            (false, true) => for_wanted!(@arm $wanted false true $body),
        }
    };
    (@arm $wanted:ident $largest:literal $magnitude:literal $body:expr) => {{
        let $wanted = Wanted { largest: $largest, magnitude: $magnitude };
        $body
    }};
}

impl Wanted {
    /// The winner of two lanes, blind to NaN and the sign of zero.
    #[inline(always)]
    pub(super) fn winner<V: Vector>(self, x: V, best: V) -> V {
        if self.largest { x.max_or_other(best) } else { x.min_or_other(best) }
    }
    /// The same of elements.
    #[inline(always)]
    pub(super) fn winner_of<E: Float>(self, x: E, best: E) -> E {
        let better = if self.largest { x > best } else { x < best };
        if better { x } else { best }
    }
    /// The winner of an array's first `lanes` numbers, a power of two.
    #[inline(always)]
    pub(super) fn across<E: Float>(self, mut lanes: [E; MAX_LANES], count: usize) -> E {
        let mut half = count / 2;
        while half > 0 {
            for l in 0..half {
                lanes[l] = self.winner_of(lanes[l + half], lanes[l]);
            }
            half /= 2;
        }
        lanes[0]
    }
    /// The number of an element that is compared.
    #[inline(always)]
    fn key<V: Vector>(self, x: V) -> V {
        if self.magnitude { x.abs() } else { x }
    }
}

/// A vector of winners so far.
#[derive(Clone, Copy)]
struct Winners<V: Vector> {
    best: V,
    signs: V::Int,
    nan: V::Mask,
}

impl<V: Vector> Winners<V> {
    #[inline(always)]
    fn new(x: V) -> Self {
        Winners { best: x, signs: x.to_bits(), nan: x.is_nan() }
    }

    /// Lets the winners of other elements compete.
    #[inline(always)]
    fn merge(self, other: Self, wanted: Wanted) -> Self {
        let (signs, other_signs) = (self.signs, other.signs);
        Winners {
            best: wanted.winner(other.best, self.best),
            signs: if wanted.largest { signs & other_signs } else { signs | other_signs },
            nan: self.nan | other.nan,
        }
    }

    #[inline(always)]
    fn value<S: Lanes<V::Elem, V = V, M = V::Mask, I = V::Int>>(self, simd: S) -> V {
        let zero = simd.splat(V::Elem::ZERO);
        let minus_zero = simd.splat(-V::Elem::ZERO).to_bits();
        let signed_zero = V::from_bits(self.signs & minus_zero);
        let value = signed_zero.select(self.best.eq(zero), self.best);
        simd.splat(V::Elem::NAN).select(self.nan, value)
    }
}

/// The extremum of a slice that is not empty.
struct Find<'a, E> {
    x: &'a [E],
    wanted: Wanted,
}

impl<E: Float> ElementTask<E> for Find<'_, E> {
    type Home = Self;
    type Output = E;
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) -> E {
        let Find { x, wanted } = self;
        for_wanted!(wanted => find(simd, x, wanted))
    }
}

#[inline(always)]
fn find<E: Float, S: Lanes<E>>(simd: S, x: &[E], wanted: Wanted) -> E {
    const { assert!(S::LANES <= MAX_LANES) };
    // An element of the slice stands in where there is none: taking it twice changes nothing.
    let stand_in = wanted.key(simd.splat(x[0]));
    let (x, len) = (x.as_ptr(), x.len());
    let mut found = [Winners::new(stand_in); UNROLL];
    let mut i = 0;
    while len - i >= UNROLL * S::LANES {
        prefetch_ahead(simd, x.wrapping_add(i), UNROLL * S::LANES);
        for k in 0..UNROLL {
            // SAFETY: UNROLL whole vectors are left from `i` on.
            let v = wanted.key(unsafe { simd.load(x.add(i + k * S::LANES)) });
            found[k] = found[k].merge(Winners::new(v), wanted);
        }
        i += UNROLL * S::LANES;
    }
    while i < len {
        // SAFETY: `len - i` elements are left from `i` on.
        let v = wanted.key(unsafe { load_up_to(simd, x.add(i), len - i) });
        let v = v.select(simd.first(len - i), stand_in);
        found[0] = found[0].merge(Winners::new(v), wanted);
        i += S::LANES;
    }
    let [a, b, c, d] = found;
    let found = a.merge(b, wanted).merge(c.merge(d, wanted), wanted);
    if found.nan.any() {
        return E::NAN;
    }
    let mut lanes = [E::ZERO; MAX_LANES];
    // SAFETY: the assertion above: the array holds a whole vector.
    unsafe { simd.store(lanes.as_mut_ptr(), found.value(simd)) };
    let best = wanted.across(lanes, S::LANES);
    if best != E::ZERO {
        return best;
    }
    // The zero that wins is −0 if all zeros are (largest), or if one is (smallest).
    let (mut l, mut zero) = (0, if wanted.largest { -E::ZERO } else { E::ZERO });
    while l < S::LANES {
        let negative = lanes[l].to_f64().is_sign_negative();
        if lanes[l] == E::ZERO && negative != wanted.largest {
            zero = lanes[l];
        }
        l += 1;
    }
    zero
}

/// Rows that compete at a time.
const ROUND: usize = 8;

/// The extremum of each column into `y`, which has room for a row; there are rows.
struct FindColumns<'a, E> {
    x: Matrix<&'a [E]>,
    y: *mut E,
    wanted: Wanted,
}

impl<E: Float> ElementTask<E> for FindColumns<'_, E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let FindColumns { x, y, wanted } = self;
        for_wanted!(wanted => {
            // The winners so far are in `y`; each band of rows competes with them.
            for band in (0..x.rows).step_by(ROUND) {
                // SAFETY: the matrix was checked by `Matrix::new`; `y` holds `cols` elements, all written by
                // the first band.
                unsafe {
                    match ROUND.min(x.rows - band) {
                        ROUND => compete(simd, x, band, ROUND, y, wanted),
                        count => compete(simd, x, band, count, y, wanted),
                    }
                }
            }
        });
    }
}

/// Lets `count` rows from number `band` on compete with the winners in `y` or, if they are the first, with each
/// other. Inlined with a count that is known, each row has load instructions of its own, whose addresses
/// advance evenly: else the processor does not see them coming.
///
/// # Safety
/// The rows are there, and `y` has room for one.
#[inline(always)]
unsafe fn compete<E: Float, S: Lanes<E>>(
    simd: S,
    x: Matrix<&[E]>,
    band: usize,
    count: usize,
    y: *mut E,
    wanted: Wanted,
) {
    let Matrix { cols, stride, .. } = x;
    for c in (0..cols).step_by(S::LANES) {
        let left = cols - c;
        // SAFETY: `left` elements are left of each row; those beyond them are not touched.
        unsafe {
            let first = x.x.as_ptr().add(band * stride + c);
            let mut found = Winners::new(wanted.key(load_up_to(simd, first, left)));
            for row in 1..count {
                let v = wanted.key(load_up_to(simd, first.add(row * stride), left));
                found = found.merge(Winners::new(v), wanted);
            }
            if band > 0 {
                let v = load_up_to(simd, y.add(c), left);
                found = found.merge(Winners::new(v), wanted);
            }
            store_up_to(simd, y.add(c), left, found.value(simd));
        }
    }
}

/// Elements of 16-bit floats that are widened at a time.
const WIDENED: usize = 1024;

/// Calls `f` with the elements in `f32`, some at a time, from the first on, and their indices.
pub(super) fn in_f32<H: Convert<f32>>(x: &[H], mut f: impl FnMut(usize, &[f32])) {
    let mut wide = [0f32; WIDENED];
    for (i, x) in x.chunks(WIDENED).enumerate() {
        let wide = &mut wide[..x.len()];
        H::convert(x, wide);
        f(i * WIDENED, wide);
    }
}

/// The extremum of floats, of which there is one.
pub(crate) fn extremum(x: Floats<'_>, wanted: Wanted) -> f64 {
    fn widened<H: Convert<f32>>(x: &[H], wanted: Wanted) -> f64 {
        let mut best: Option<f32> = None;
        in_f32(x, |_, x| {
            let found = f32::enter(Find { x, wanted });
            best = Some(match best {
                Some(best) => f32::enter(Find { x: &[best, found], wanted }),
                None => found,
            });
        });
        best.map_or(f64::NAN, f64::from)
    }
    match x {
        Floats::F32(x) => f64::from(f32::enter(Find { x, wanted })),
        Floats::F64(x) => f64::enter(Find { x, wanted }),
        Floats::F16(x) => widened(x, wanted),
        Floats::Bf16(x) => widened(x, wanted),
    }
}

/// Rows and columns of 16-bit floats that are widened at a time, 64 KiB: with fewer rows the indices of
/// extrema are looked up too often among those of the rows before.
const BAND_ROWS: usize = 64;
pub(super) const BAND_COLS: usize = 256;

/// Some rows of some columns, widened and adjacent, after `held` (0 or 1) rows of the winners so far.
pub(super) struct Band<'a> {
    pub wide: Matrix<&'a mut [f32]>,
    pub held: usize,
    /// The first row and column of the matrix that are in the band.
    pub row: usize,
    pub column: usize,
    pub is_last: bool,
}

/// Calls `f` with all rows of some columns, band by band, then with those of the next. The first row that `f`
/// leaves in a band is what the next one holds.
pub(super) fn widened_bands<H: Convert<f32>>(x: Matrix<&[H]>, mut f: impl FnMut(Band<'_>)) {
    let mut memory = [core::mem::MaybeUninit::<f32>::uninit(); BAND_ROWS * BAND_COLS];
    let len = x.rows.min(BAND_ROWS) * x.cols.min(BAND_COLS);
    memory[..len].fill(core::mem::MaybeUninit::new(0.0));
    // SAFETY: these elements have just been written; the array is borrowed for as long.
    let wide = unsafe { core::slice::from_raw_parts_mut(memory.as_mut_ptr().cast::<f32>(), len) };
    for column in (0..x.cols).step_by(BAND_COLS) {
        let cols = BAND_COLS.min(x.cols - column);
        let (mut row, mut held) = (0, 0);
        while row < x.rows {
            let rows = (BAND_ROWS - held).min(x.rows - row);
            let wide = &mut wide[..(held + rows) * cols];
            for (i, wide) in wide.chunks_exact_mut(cols).skip(held).enumerate() {
                H::convert(&x.x[(row + i) * x.stride + column..][..cols], wide);
            }
            let wide = Matrix { x: wide, rows: held + rows, cols, stride: cols };
            f(Band { wide, held, row, column, is_last: row + rows == x.rows });
            (row, held) = (row + rows, 1);
        }
    }
}

/// Calls `done` with the extrema of some columns, from the first on, and the first of these columns.
fn halves<H: Convert<f32>>(x: Matrix<&[H]>, wanted: Wanted, done: &mut dyn FnMut(usize, &[f32])) {
    let mut best = [0f32; BAND_COLS];
    widened_bands(x, |Band { wide, column, is_last, .. }| {
        let best = &mut best[..wide.cols];
        let x = Matrix { x: &*wide.x, rows: wide.rows, cols: wide.cols, stride: wide.stride };
        f32::enter(FindColumns { x, y: best.as_mut_ptr(), wanted });
        wide.x[..best.len()].copy_from_slice(best);
        if is_last {
            done(column, best);
        }
    });
}

/// The extrema of columns, which have rows, into room for a row.
pub(crate) struct Extrema<'a> {
    x: Matrix<Floats<'a>>,
    y: Erased<f64>,
    wanted: Wanted,
}

impl<'a> Extrema<'a> {
    #[inline]
    pub fn new<E: Accumulate, const LARGEST: bool>(
        x: Matrix<&'a [E]>,
        magnitude: bool,
        y: Target<'a, E, Extremum<f64, LARGEST>>,
    ) -> Self {
        let Matrix { x, rows, cols, stride } = x;
        assert!(rows > 0, "extrema of columns without rows");
        let wanted = Wanted { largest: LARGEST, magnitude };
        // An `Extremum` is its number.
        Extrema { x: Matrix { x: E::floats(x), rows, cols, stride }, y: y.erased(cols), wanted }
    }

    /// Writes them.
    pub fn find(self) {
        let Extrema { x: Matrix { x, rows, cols, stride }, y, wanted } = self;
        macro_rules! matrix {
            ($x:ident) => {
                Matrix { x: $x, rows, cols, stride }
            };
        }
        match (x, y) {
            (Floats::F32(x), Erased::Results(y)) => {
                f32::enter(FindColumns { x: matrix!(x), y: y.cast(), wanted });
            }
            (Floats::F64(x), Erased::Results(y)) => {
                f64::enter(FindColumns { x: matrix!(x), y: y.cast(), wanted });
            }
            (Floats::F64(x), Erased::Partial(y)) => {
                f64::enter(FindColumns { x: matrix!(x), y, wanted });
            }
            (Floats::F32(x), Erased::Partial(y)) => {
                for first in (0..cols).step_by(BAND_COLS) {
                    let (mut best, cols) = ([0f32; BAND_COLS], BAND_COLS.min(cols - first));
                    let x = Matrix { x: &x[first..], rows, cols, stride };
                    f32::enter(FindColumns { x, y: best.as_mut_ptr(), wanted });
                    for (c, &best) in best[..cols].iter().enumerate() {
                        // SAFETY: the room was compared with the columns in `Extrema::new`.
                        unsafe { y.add(first + c).write(f64::from(best)) };
                    }
                }
            }
            (Floats::F16(x), _) => halves(matrix!(x), wanted, &mut |c, best| {
                // SAFETY: there is room for a row of such elements.
                unsafe { y.write::<f16>(c, best) };
            }),
            (Floats::Bf16(x), _) => halves(matrix!(x), wanted, &mut |c, best| {
                // SAFETY: there is room for a row of such elements.
                unsafe { y.write::<bf16>(c, best) };
            }),
        }
    }
}

impl Erased<f64> {
    /// Writes the extrema of at most [`BAND_COLS`] columns from number `c` on.
    ///
    /// # Safety
    /// There is room for these, results being of type `H`.
    unsafe fn write<H: Accumulate>(self, c: usize, best: &[f32])
    where
        f32: Convert<H>,
    {
        // SAFETY: as the caller promised.
        unsafe {
            match self {
                Erased::Results(y) => {
                    let mut narrow = [H::rounded(0.0); BAND_COLS];
                    f32::convert(best, &mut narrow[..best.len()]);
                    y.cast::<H>().add(c).copy_from_nonoverlapping(narrow.as_ptr(), best.len());
                }
                Erased::Partial(y) => {
                    for (i, &best) in best.iter().enumerate() {
                        y.add(c + i).write(f64::from(best));
                    }
                }
            }
        }
    }
}

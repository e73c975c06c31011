//! Largest and smallest elements: NaN if any element is, and −0 below +0.
//!
//! ```text
//! best  = the comparison's winner, ignoring NaN and the sign of zero
//! nan   = any element was NaN
//! signs = AND (largest) or OR (smallest) of all elements' bits
//! result: NaN if nan; the zero with the sign bit of `signs` if best == 0; else best
//! ```
//!
//! If the largest is zero, no element is above zero, so it is +0 exactly if some sign bit is clear:
//! one bit operation per element replaces a comparison that orders zeros. Every step is exact, so
//! the order of the elements does not matter.

use super::columns::{Erased, Matrix, Target};
use super::floats::{Accumulate, Format, for_format, for_format_in, load_as, read, write};
use super::partial::Extremum;
use super::{AHEAD, Source, prefetch};
use crate::dispatch::run;
use crate::simd::{Float, Lanes, MAX_LANES, Mask, Task, Vector};

/// Vectors in flight: enough for the latency of a comparison.
pub(super) const UNROLL: usize = 4;

/// The extremum to find; a constant in hot loops, see `for_wanted`.
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
    /// The winner of two lanes, ignoring NaN and the sign of zero.
    #[inline(always)]
    pub(super) fn winner<V: Vector>(self, x: V, best: V) -> V {
        if self.largest { x.max_or_other(best) } else { x.min_or_other(best) }
    }
    /// [`Wanted::winner`] for elements.
    #[inline(always)]
    pub(super) fn winner_of<E: Float>(self, x: E, best: E) -> E {
        let better = if self.largest { x > best } else { x < best };
        if better { x } else { best }
    }
    /// The winner of an array's first `count` numbers, a power of two.
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
    /// The number to compare for an element.
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

    /// Combines with the winners of other elements.
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

/// The extremum of at least one element.
struct Find {
    x: Source,
    wanted: Wanted,
}

impl<E: Float> Task<E> for Find {
    type Home = (Self, E);
    type Output = E;
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) -> E {
        let Find { x, wanted } = self;
        // SAFETY: only `enter` makes this task; its caller promises the elements.
        for_format_in!(E, x.format, format => for_wanted!(wanted => unsafe {
            find(simd, Source { format, ..x }, wanted)
        }))
    }
}

/// # Safety
/// The source has an element, and the format may be loaded as `E`.
#[inline(always)]
unsafe fn find<E: Float, S: Lanes<E>>(simd: S, x: Source, wanted: Wanted) -> E {
    const { assert!(S::LANES <= MAX_LANES) };
    let Source { first: [x, _], format, len } = x;
    // An element of the slice stands in for missing ones: taking it twice changes nothing.
    // SAFETY: there is one.
    let stand_in = wanted.key(simd.splat(E::from_f64(unsafe { read(format, x) })));
    let mut found = [Winners::new(stand_in); UNROLL];
    let mut i = 0;
    while len - i >= UNROLL * S::LANES {
        let here = x.wrapping_add(i * format.size());
        prefetch(simd, here.wrapping_add(AHEAD), UNROLL * S::LANES * format.size());
        for k in 0..UNROLL {
            // SAFETY: UNROLL whole vectors are left from `i` on.
            let v = unsafe {
                load_as::<E, S>(simd, format, here.add(k * S::LANES * format.size()), S::LANES)
            };
            found[k] = found[k].merge(Winners::new(wanted.key(v)), wanted);
        }
        i += UNROLL * S::LANES;
    }
    while i < len {
        // SAFETY: `len - i` elements are left from `i` on.
        let v = unsafe { load_as::<E, S>(simd, format, x.add(i * format.size()), len - i) };
        let v = wanted.key(v).select(simd.first(len - i), stand_in);
        found[0] = found[0].merge(Winners::new(v), wanted);
        i += S::LANES;
    }
    let [a, b, c, d] = found;
    let found = a.merge(b, wanted).merge(c.merge(d, wanted), wanted);
    if found.nan.any() {
        return E::NAN;
    }
    let mut lanes = [E::ZERO; MAX_LANES];
    // SAFETY: the array holds a whole vector, as asserted above.
    unsafe { simd.store(lanes.as_mut_ptr(), found.value(simd)) };
    let best = wanted.across(lanes, S::LANES);
    if best != E::ZERO {
        return best;
    }
    // The winning zero is −0 if all zeros are (largest), or if one is (smallest).
    let mut zero = if wanted.largest { -E::ZERO } else { E::ZERO };
    for lane in lanes.into_iter().take(S::LANES) {
        if lane == E::ZERO && lane.to_f64().is_sign_negative() != wanted.largest {
            zero = lane;
        }
    }
    zero
}

/// The extremum of a slice that is not empty.
#[inline]
pub(crate) fn extremum<E: Accumulate>(x: &[E], wanted: Wanted) -> f64 {
    assert!(!x.is_empty(), "an extremum of no elements");
    // SAFETY: the slice is borrowed.
    unsafe { enter(x.as_ptr().cast(), x.len(), E::FORMAT, wanted) }
}

/// Not generic, so that the kernels are compiled with this crate; takes numbers for the reason that
/// `fold_source` does.
///
/// # Safety
/// `x` is valid for reads of `len` elements of the format, at least one.
unsafe fn enter(x: *const u8, len: usize, format: Format, wanted: Wanted) -> f64 {
    match format {
        Format::F64 => run::<f64, _>(Find { x: Source { first: [x; 2], format, len }, wanted }),
        _ => f64::from(run::<f32, _>(Find { x: Source { first: [x; 2], format, len }, wanted })),
    }
}

/// Rows that compete at once.
const ROUND: usize = 8;
/// Columns whose winners are buffered before they are rounded or widened.
const TILE: usize = 1024;

/// The elements of a checked matrix.
#[derive(Clone, Copy)]
pub(super) struct Elements {
    pub x: *const u8,
    pub format: Format,
    pub rows: usize,
    pub cols: usize,
    pub stride: usize,
}

impl Elements {
    #[inline]
    pub fn new<E: Accumulate>(x: Matrix<&[E]>) -> Self {
        let Matrix { x, rows, cols, stride } = x;
        assert!(rows > 0, "extrema of columns without rows");
        Elements { x: x.as_ptr().cast(), format: E::FORMAT, rows, cols, stride }
    }

    /// The `cols` columns from number `first` on.
    pub fn columns(self, first: usize, cols: usize) -> Self {
        Elements { x: self.x.wrapping_add(first * self.format.size()), cols, ..self }
    }

    /// The rows from number `row` on.
    #[inline(always)]
    pub fn rows_from(self, row: usize) -> Self {
        Elements { x: self.x.wrapping_add(row * self.stride * self.format.size()), ..self }
    }

    /// Loads a vector of row `row` from column `c` on, or the rest of the row.
    ///
    /// # Safety
    /// The row exists, and the format may be loaded as `E`.
    #[inline(always)]
    pub unsafe fn load<E: Float, S: Lanes<E>>(self, simd: S, row: usize, c: usize) -> S::V {
        let at = (row * self.stride + c) * self.format.size();
        // SAFETY: the caller promises the row.
        unsafe { load_as(simd, self.format, self.x.add(at), self.cols - c) }
    }
}

/// Writes the extremum of each column into `y`, which has room for a row.
struct FindColumns<E> {
    x: Elements,
    y: *mut E,
    wanted: Wanted,
}

impl<E: Float> Task<E> for FindColumns<E> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let FindColumns { x, y, wanted } = self;
        for_format_in!(E, x.format, format => for_wanted!(wanted => {
            let x = Elements { format, ..x };
            // The winners so far are in `y`; each band of rows competes with them.
            for band in (0..x.rows).step_by(ROUND) {
                // SAFETY: `Matrix::new` checked the matrix; `y` holds `cols` elements, all written
                // by the first band.
                unsafe {
                    match ROUND.min(x.rows - band) {
                        ROUND => compete(simd, x, band, ROUND, y, wanted),
                        count => compete(simd, x, band, count, y, wanted),
                    }
                }
            }
        }));
    }
}

/// Compares `count` rows from number `band` on with the winners in `y`, or, if they are the first,
/// with each other. Inlined with a constant count, each row gets its own load instruction, whose
/// addresses advance evenly, so that the hardware prefetcher recognises them.
///
/// # Safety
/// The rows exist, and `y` has room for one.
#[inline(always)]
unsafe fn compete<E: Float, S: Lanes<E>>(
    simd: S,
    x: Elements,
    band: usize,
    count: usize,
    y: *mut E,
    wanted: Wanted,
) {
    for c in (0..x.cols).step_by(S::LANES) {
        let left = x.cols - c;
        // SAFETY: `left` elements are left of each row; those beyond them are not touched.
        unsafe {
            let mut found = Winners::new(wanted.key(x.load(simd, band, c)));
            for row in band + 1..band + count {
                let v = wanted.key(x.load(simd, row, c));
                found = found.merge(Winners::new(v), wanted);
            }
            if band > 0 {
                let v = simd.load_up_to(y.add(c), left);
                found = found.merge(Winners::new(v), wanted);
            }
            simd.store_up_to(y.add(c), left, found.value(simd));
        }
    }
}

/// The extrema of columns that have rows, into a row.
pub(crate) struct Extrema {
    x: Elements,
    y: Erased<f64>,
    wanted: Wanted,
}

impl Extrema {
    #[inline]
    pub fn new<E: Accumulate, const LARGEST: bool>(
        x: Matrix<&[E]>,
        magnitude: bool,
        y: Target<'_, E, Extremum<f64, LARGEST>>,
    ) -> Self {
        let wanted = Wanted { largest: LARGEST, magnitude };
        // An `Extremum` has only its number as a field.
        Extrema { y: y.erased(x.cols), x: Elements::new(x), wanted }
    }

    /// Finds and writes the extrema.
    pub fn find(self) {
        match self.x.format {
            Format::F64 => self.find_in::<f64>(),
            _ => self.find_in::<f32>(),
        }
    }

    /// Compares in lanes of `E`.
    #[inline(always)]
    fn find_in<E: Float + Accumulate>(self) {
        let Extrema { x, y, wanted } = self;
        if let (true, Erased::Results(y)) = (x.format == E::FORMAT, y) {
            return run(FindColumns::<E> { x, y: y.cast(), wanted });
        }
        let mut best = [E::ZERO; TILE];
        for first in (0..x.cols).step_by(TILE) {
            let best = &mut best[..TILE.min(x.cols - first)];
            let x = x.columns(first, best.len());
            run(FindColumns { x, y: best.as_mut_ptr(), wanted });
            for_format!(x.format, format => for (c, best) in best.iter().enumerate() {
                // SAFETY: `Extrema::new` compared the length of `y` with the number of columns.
                unsafe {
                    match y {
                        Erased::Results(y) => write(format, y, first + c, best.to_f64()),
                        Erased::Partial(y) => y.add(first + c).write(best.to_f64()),
                    }
                }
            });
        }
    }
}

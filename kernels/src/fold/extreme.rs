//! Largest and smallest elements: NaN if there is one, and -0 below +0.
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

use super::ask_ahead;
use crate::dispatch::ElementTask;
use crate::map::load_up_to;
use core::marker::PhantomData;

use crate::simd::{Float, IntVector, Lanes, Mask, Vector};

/// Vectors in flight: enough for the latency of a comparison.
const UNROLL: usize = 4;

/// Which end of the order is wanted.
pub(crate) trait Wanted {
    /// The winner of two lanes, blind to NaN and the sign of zero.
    fn winner<V: Vector>(x: V, best: V) -> V;
    /// Gathers sign bits.
    fn signs<I: IntVector>(x: I, signs: I) -> I;
    /// The winner of two elements, blind to the sign of zero.
    fn winner_of<E: Float>(x: E, best: E) -> E;
    /// The winner of elements of which zeros win.
    fn zero<E: Float>(x: &[E]) -> E;
    /// Lanes of `x` that are better than those of `best`; zeros are equal.
    fn beats<V: Vector>(x: V, best: V) -> V::Mask;
    /// The same, or either is NaN.
    fn beats_or_nan<V: Vector>(x: V, best: V) -> V::Mask;
    /// What of an element competes.
    #[inline(always)]
    fn key<V: Vector>(x: V) -> V {
        x
    }
}

/// The largest element.
pub(crate) struct Max;

/// The smallest element.
pub(crate) struct Min;

impl Wanted for Max {
    #[inline(always)]
    fn winner<V: Vector>(x: V, best: V) -> V {
        x.max_or_other(best)
    }
    #[inline(always)]
    fn signs<I: IntVector>(x: I, signs: I) -> I {
        signs & x
    }
    #[inline(always)]
    fn winner_of<E: Float>(x: E, best: E) -> E {
        if x > best { x } else { best }
    }
    #[inline(always)]
    fn zero<E: Float>(x: &[E]) -> E {
        if x.iter().any(|&x| x == E::ZERO && !is_negative(x)) { E::ZERO } else { -E::ZERO }
    }
    #[inline(always)]
    fn beats<V: Vector>(x: V, best: V) -> V::Mask {
        best.lt(x)
    }
    #[inline(always)]
    fn beats_or_nan<V: Vector>(x: V, best: V) -> V::Mask {
        !x.le(best)
    }
}

impl Wanted for Min {
    #[inline(always)]
    fn winner<V: Vector>(x: V, best: V) -> V {
        x.min_or_other(best)
    }
    #[inline(always)]
    fn signs<I: IntVector>(x: I, signs: I) -> I {
        signs | x
    }
    #[inline(always)]
    fn winner_of<E: Float>(x: E, best: E) -> E {
        if x < best { x } else { best }
    }
    #[inline(always)]
    fn zero<E: Float>(x: &[E]) -> E {
        if x.iter().any(|&x| x == E::ZERO && is_negative(x)) { -E::ZERO } else { E::ZERO }
    }
    #[inline(always)]
    fn beats<V: Vector>(x: V, best: V) -> V::Mask {
        x.lt(best)
    }
    #[inline(always)]
    fn beats_or_nan<V: Vector>(x: V, best: V) -> V::Mask {
        !best.le(x)
    }
}

/// As `W`, of the elements' magnitudes.
pub(crate) struct Magnitude<W>(PhantomData<W>);

impl<W: Wanted> Wanted for Magnitude<W> {
    #[inline(always)]
    fn winner<V: Vector>(x: V, best: V) -> V {
        W::winner(x, best)
    }
    #[inline(always)]
    fn signs<I: IntVector>(x: I, signs: I) -> I {
        W::signs(x, signs)
    }
    #[inline(always)]
    fn winner_of<E: Float>(x: E, best: E) -> E {
        W::winner_of(x, best)
    }
    #[inline(always)]
    fn zero<E: Float>(x: &[E]) -> E {
        W::zero(x)
    }
    #[inline(always)]
    fn beats<V: Vector>(x: V, best: V) -> V::Mask {
        W::beats(x, best)
    }
    #[inline(always)]
    fn beats_or_nan<V: Vector>(x: V, best: V) -> V::Mask {
        W::beats_or_nan(x, best)
    }
    #[inline(always)]
    fn key<V: Vector>(x: V) -> V {
        x.abs()
    }
}

#[inline(always)]
fn is_negative<E: Float>(x: E) -> bool {
    x.to_f64().is_sign_negative()
}

/// A vector of winners so far.
#[derive(Clone, Copy)]
pub(super) struct Extreme<V: Vector> {
    best: V,
    signs: V::Int,
    nan: V::Mask,
}

impl<V: Vector> Extreme<V> {
    #[inline(always)]
    pub fn new(x: V) -> Self {
        Extreme { best: x, signs: x.to_bits(), nan: x.is_nan() }
    }

    #[inline(always)]
    pub fn take<W: Wanted>(&mut self, x: V) {
        self.best = W::winner(x, self.best);
        self.signs = W::signs(x.to_bits(), self.signs);
        self.nan = self.nan | x.is_nan();
    }

    #[inline(always)]
    fn merge<W: Wanted>(self, other: Self) -> Self {
        Extreme {
            best: W::winner(other.best, self.best),
            signs: W::signs(other.signs, self.signs),
            nan: self.nan | other.nan,
        }
    }

    /// The winner of the lanes.
    #[inline(always)]
    fn across<S, W: Wanted>(self, simd: S) -> V::Elem
    where
        S: Lanes<V::Elem, V = V, M = V::Mask, I = V::Int>,
    {
        if self.nan.any() {
            return V::Elem::NAN;
        }
        let mut lanes = [V::Elem::ZERO; 16];
        // SAFETY: no vector has more than 16 lanes.
        unsafe { simd.store(lanes.as_mut_ptr(), self.value(simd)) };
        let mut best = lanes;
        let mut half = S::LANES;
        while half > 1 {
            half /= 2;
            for l in 0..half {
                best[l] = W::winner_of(best[l + half], best[l]);
            }
        }
        if best[0] != V::Elem::ZERO {
            return best[0];
        }
        W::zero(&lanes[..S::LANES])
    }

    #[inline(always)]
    pub fn value<S: Lanes<V::Elem, V = V, M = V::Mask, I = V::Int>>(self, simd: S) -> V {
        let zero = simd.splat(V::Elem::ZERO);
        let minus_zero = simd.splat(-V::Elem::ZERO).to_bits();
        let signed_zero = V::from_bits(self.signs & minus_zero);
        let value = signed_zero.select(self.best.eq(zero), self.best);
        simd.splat(V::Elem::NAN).select(self.nan, value)
    }
}

/// The largest or smallest element of a slice that is not empty.
pub(crate) struct Find<'a, E, W>(pub &'a [E], pub PhantomData<W>);

impl<E: Float, W: Wanted> ElementTask<E> for Find<'_, E, W> {
    type Home = Self;
    type Output = E;
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) -> E {
        let (x, len) = (self.0.as_ptr(), self.0.len());
        // An element of the slice stands in where there is none: taking it twice changes nothing.
        let stand_in = W::key(simd.splat(self.0[0]));
        let mut found = [Extreme::new(stand_in); UNROLL];
        let mut i = 0;
        while len - i >= UNROLL * S::LANES {
            ask_ahead(simd, x.wrapping_add(i), UNROLL * S::LANES);
            for (k, found) in found.iter_mut().enumerate() {
                // SAFETY: UNROLL whole vectors are left from `i` on.
                found.take::<W>(W::key(unsafe { simd.load(x.add(i + k * S::LANES)) }));
            }
            i += UNROLL * S::LANES;
        }
        while i < len {
            // SAFETY: `len - i` elements are left from `i` on.
            let v = W::key(unsafe { load_up_to(simd, x.add(i), len - i) });
            found[0].take::<W>(v.select(simd.first(len - i), stand_in));
            i += S::LANES;
        }
        let [a, b, c, d] = found;
        a.merge::<W>(b).merge::<W>(c.merge::<W>(d)).across::<S, W>(simd)
    }
}

//! What elements add to their lanes: one type a fold. An element arrives widened to `f64`.

use core::marker::PhantomData;
use core::ops::{Add, Mul};

use super::partial::{Finished, Moments, Partial, Product, SquareSum};
use super::{F64, LANES, Widen, ask_for};
use crate::simd::{Lanes, Mask, Simd, Vector};

/// What an element adds to its lane, of `M` numbers.
pub(crate) trait Term<const M: usize>: Copy {
    /// What a block folds to.
    type Entry: Finished;
    /// What lanes start from.
    const START: f64 = 0.0;
    /// True if elements are measured from the first one of their block, else from 0.
    const SHIFTED: bool = false;

    /// The element that missing ones are taken for, so that they change nothing.
    #[inline(always)]
    fn none(_shift: f64) -> f64 {
        0.0
    }
    /// Adds the terms of a vector of elements to their lanes.
    fn add<S: Simd>(simd: S, x: F64<S>, shift: F64<S>, lanes: [F64<S>; M]) -> [F64<S>; M];
    /// Two lanes, or vectors of lanes, in one.
    #[inline(always)]
    fn join<V: Add<Output = V> + Mul<Output = V>>(a: V, b: V) -> V {
        a + b
    }
    /// What the lanes of a block of `count` elements come to.
    fn entry(shift: f64, count: usize, lanes: [f64; M]) -> Self::Entry;
}

/// A fold of terms by their position.
pub(crate) trait Terms<const M: usize>: Copy {
    /// What becomes of an element.
    type Term: Term<M, Entry = Self::Entry>;
    /// What a block folds to.
    type Entry: Finished;

    /// How many there are.
    fn len(self) -> usize;

    /// Adds the terms of a vector of elements from `at` on or, if that is less, of `count`
    /// elements, the rest being taken for none.
    ///
    /// # Safety
    /// `count` elements lie from `at` on.
    unsafe fn take_up_to<S: Simd>(
        self,
        simd: S,
        at: usize,
        count: usize,
        shift: f64,
        lanes: [F64<S>; M],
    ) -> [F64<S>; M];

    /// Asks for the lines of a group of elements from `at` on, which need not exist.
    fn ask_for<S: Simd>(self, simd: S, at: usize);

    /// What the elements of a block that begins at `at` are measured from.
    ///
    /// # Safety
    /// An element lies at `at`.
    #[inline(always)]
    unsafe fn shift(self, _at: usize) -> f64 {
        0.0
    }
}

/// The elements of a slice, each as `K` says.
#[derive(Clone, Copy)]
pub(crate) struct Each<'a, E, K>(&'a [E], PhantomData<K>);

impl<'a, E, K> Each<'a, E, K> {
    #[inline(always)]
    pub fn new(x: &'a [E], _term: K) -> Self {
        Each(x, PhantomData)
    }
}

/// The products of two slices' elements: exact in `f64` if they are narrower, else inside an FMA.
#[derive(Clone, Copy)]
pub(crate) struct Products<'a, E>(&'a [E], &'a [E]);

impl<'a, E> Products<'a, E> {
    /// As many as the shorter slice has elements.
    #[inline(always)]
    pub fn new(a: &'a [E], b: &'a [E]) -> Self {
        let len = a.len().min(b.len());
        Products(&a[..len], &b[..len])
    }
}

impl<E: Widen, K: Term<M>, const M: usize> Terms<M> for Each<'_, E, K> {
    type Term = K;
    type Entry = K::Entry;
    #[inline(always)]
    fn len(self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    unsafe fn take_up_to<S: Simd>(
        self,
        simd: S,
        at: usize,
        count: usize,
        shift: f64,
        lanes: [F64<S>; M],
    ) -> [F64<S>; M] {
        // SAFETY: the elements are there, as the caller promised.
        let x = unsafe { E::widen_up_to(simd, self.0.as_ptr().add(at), count) };
        let x = if count < <S as Lanes<f64>>::LANES {
            x.select(Lanes::<f64>::first(simd, count), simd.splat(K::none(shift)))
        } else {
            x
        };
        K::add(simd, x, simd.splat(shift), lanes)
    }
    #[inline(always)]
    fn ask_for<S: Simd>(self, simd: S, at: usize) {
        ask_for(simd, self.0.as_ptr().wrapping_add(at), LANES);
    }
    #[inline(always)]
    unsafe fn shift(self, at: usize) -> f64 {
        // SAFETY: the element is there, as the caller promised.
        if K::SHIFTED { unsafe { self.0.as_ptr().add(at).read() }.widened() } else { 0.0 }
    }
}

impl<E: Widen> Terms<1> for Products<'_, E> {
    type Term = Sum;
    type Entry = f64;
    #[inline(always)]
    fn len(self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    unsafe fn take_up_to<S: Simd>(
        self,
        simd: S,
        at: usize,
        count: usize,
        _shift: f64,
        [sum]: [F64<S>; 1],
    ) -> [F64<S>; 1] {
        // SAFETY: the elements are there, as the caller promised.
        let (a, b) = unsafe {
            let a = E::widen_up_to(simd, self.0.as_ptr().add(at), count);
            (a, E::widen_up_to(simd, self.1.as_ptr().add(at), count))
        };
        [a.mul_add(b, sum)]
    }
    #[inline(always)]
    fn ask_for<S: Simd>(self, simd: S, at: usize) {
        ask_for(simd, self.0.as_ptr().wrapping_add(at), LANES);
        ask_for(simd, self.1.as_ptr().wrapping_add(at), LANES);
    }
}

/// Σ x
#[derive(Clone, Copy)]
pub(crate) struct Sum;

impl Term<1> for Sum {
    type Entry = f64;
    #[inline(always)]
    fn add<S: Simd>(_: S, x: F64<S>, _: F64<S>, [sum]: [F64<S>; 1]) -> [F64<S>; 1] {
        [sum + x]
    }
    #[inline(always)]
    fn entry(_shift: f64, _count: usize, [sum]: [f64; 1]) -> f64 {
        sum
    }
}

/// Σ |x|
#[derive(Clone, Copy)]
pub(crate) struct Magnitudes;

impl Term<1> for Magnitudes {
    type Entry = f64;
    #[inline(always)]
    fn add<S: Simd>(_: S, x: F64<S>, _: F64<S>, [sum]: [F64<S>; 1]) -> [F64<S>; 1] {
        [sum + x.abs()]
    }
    #[inline(always)]
    fn entry(_shift: f64, _count: usize, [sum]: [f64; 1]) -> f64 {
        sum
    }
}

/// The number of elements that are not 0; NaN is not.
#[derive(Clone, Copy)]
pub(crate) struct Nonzeros;

impl Term<1> for Nonzeros {
    type Entry = f64;
    #[inline(always)]
    fn add<S: Simd>(simd: S, x: F64<S>, _: F64<S>, [sum]: [F64<S>; 1]) -> [F64<S>; 1] {
        let zero = Lanes::<f64>::splat(simd, 0.0);
        [sum + zero.select(x.eq(zero), simd.splat(1.0))]
    }
    #[inline(always)]
    fn entry(_shift: f64, _count: usize, [sum]: [f64; 1]) -> f64 {
        sum
    }
}

/// Π x
#[derive(Clone, Copy)]
pub(crate) struct Factors;

impl Term<1> for Factors {
    type Entry = Product;
    const START: f64 = 1.0;
    #[inline(always)]
    fn none(_shift: f64) -> f64 {
        1.0
    }
    #[inline(always)]
    fn add<S: Simd>(_: S, x: F64<S>, _: F64<S>, [product]: [F64<S>; 1]) -> [F64<S>; 1] {
        [product * x]
    }
    #[inline(always)]
    fn join<V: Add<Output = V> + Mul<Output = V>>(a: V, b: V) -> V {
        a * b
    }
    #[inline(always)]
    fn entry(_shift: f64, _count: usize, [product]: [f64; 1]) -> Product {
        Product(product)
    }
}

/// Σ d and Σ d² of d = x − shift
#[derive(Clone, Copy)]
pub(crate) struct Distances;

impl Term<2> for Distances {
    type Entry = Moments;
    const SHIFTED: bool = true;
    #[inline(always)]
    fn none(shift: f64) -> f64 {
        shift
    }
    #[inline(always)]
    fn add<S: Simd>(_: S, x: F64<S>, shift: F64<S>, [sum, squares]: [F64<S>; 2]) -> [F64<S>; 2] {
        let d = x - shift;
        [sum + d, d.mul_add(d, squares)]
    }
    #[inline(always)]
    fn entry(shift: f64, count: usize, sums: [f64; 2]) -> Moments {
        Moments::about(shift, count as f64, sums)
    }
}

/// Σ x² of elements whose squares neither overflow nor vanish in `f64`
#[derive(Clone, Copy)]
pub(crate) struct Squares;

impl Term<1> for Squares {
    type Entry = SquareSum;
    #[inline(always)]
    fn add<S: Simd>(_: S, x: F64<S>, _: F64<S>, [sum]: [F64<S>; 1]) -> [F64<S>; 1] {
        [x.mul_add(x, sum)]
    }
    #[inline(always)]
    fn entry(_shift: f64, _count: usize, [medium]: [f64; 1]) -> SquareSum {
        SquareSum { medium, ..SquareSum::EMPTY }
    }
}

/// Σ x² of any elements, see [`SquareSum`]
#[derive(Clone, Copy)]
pub(crate) struct ScaledSquares;

impl Term<3> for ScaledSquares {
    type Entry = SquareSum;
    #[inline(always)]
    fn add<S: Simd>(
        simd: S,
        x: F64<S>,
        _: F64<S>,
        [large, medium, small]: [F64<S>; 3],
    ) -> [F64<S>; 3] {
        let splat = |x| Lanes::<f64>::splat(simd, x);
        let size = x.abs();
        let is_large = splat(SquareSum::LARGE).lt(size);
        let is_small = size.lt(splat(SquareSum::SMALL));
        let others = is_large | is_small;
        if !others.any() {
            return [large, x.mul_add(x, medium), small];
        }
        let zero = splat(0.0);
        let down = (x * splat(SquareSum::DOWN)).select(is_large, zero);
        let up = (x * splat(SquareSum::UP)).select(is_small, zero);
        let x = zero.select(others, x);
        [down.mul_add(down, large), x.mul_add(x, medium), up.mul_add(up, small)]
    }
    #[inline(always)]
    fn entry(_shift: f64, _count: usize, [large, medium, small]: [f64; 3]) -> SquareSum {
        SquareSum { large, medium, small }
    }
}

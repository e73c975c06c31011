//! Accumulators: how they merge, and their results.

use core::fmt::{self, Debug};

use bytemuck::{Pod, Zeroable};

/// The accumulator of a range of elements. Sealed.
pub trait Partial: Pod + Debug + Send + Sync + sealed::Sealed {
    /// The accumulator of no elements.
    const EMPTY: Self;
    /// Merges with the accumulator of the elements that follow.
    fn merge(self, next: Self) -> Self;
    /// True if some accumulators are final: merging never changes them.
    #[doc(hidden)]
    const MAY_BE_FINAL: bool = false;
    /// True if this one is final.
    #[doc(hidden)]
    fn is_final(self) -> bool {
        false
    }
}

/// The step from a merged accumulator to the result, before it is rounded.
#[derive(Clone, Copy)]
pub(crate) enum Finish {
    /// Nothing: a sum, a product, a norm.
    Plain,
    /// Divides a sum by the number of elements.
    Mean(f64),
    /// Divides squared distances by the number of elements less the degrees of freedom.
    Variance(usize),
    /// Takes the square root of the variance.
    Std(usize),
}

/// An accumulator of floats.
pub(crate) trait Finished: Partial {
    /// Two numbers whose quotient is the result or, for a standard deviation, its square. The
    /// second depends on the number of elements alone.
    fn quotient(self, finish: Finish) -> (f64, f64);

    /// The result, before it is rounded.
    #[inline(always)]
    fn finished(self, finish: Finish) -> f64 {
        let (x, divisor) = self.quotient(finish);
        if matches!(finish, Finish::Std(_)) { (x / divisor).sqrt() } else { x / divisor }
    }
}

impl Finished for f64 {
    #[inline(always)]
    fn quotient(self, finish: Finish) -> (f64, f64) {
        (self, if let Finish::Mean(count) = finish { count } else { 1.0 })
    }
}

impl Finished for Product {
    #[inline(always)]
    fn quotient(self, _: Finish) -> (f64, f64) {
        (self.value(), 1.0)
    }
}

impl Finished for Moments {
    #[inline(always)]
    fn quotient(self, finish: Finish) -> (f64, f64) {
        match finish {
            Finish::Variance(ddof) | Finish::Std(ddof) => (self.squares, self.freedom(ddof)),
            Finish::Plain | Finish::Mean(_) => (self.squares, 1.0),
        }
    }
}

impl Finished for SquareSum {
    #[inline(always)]
    fn quotient(self, _: Finish) -> (f64, f64) {
        (self.root(), 1.0)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f64 {}
    impl Sealed for super::Product {}
    impl Sealed for super::Moments {}
    impl Sealed for super::SquareSum {}
    impl Sealed for super::Total {}
    impl Sealed for super::WrappedProduct {}
    impl Sealed for super::Decided {}
    impl<V, const LARGEST: bool> Sealed for super::Extremum<V, LARGEST> {}
    impl<V, const LARGEST: bool> Sealed for super::Located<V, LARGEST> {}
}

macro_rules! numbers_alone {
    ($([$($l:ident)?] $t:ty;)*) => {$(
        // SAFETY: only numbers of one size without padding, for which zero bits are valid.
        unsafe impl$(<const $l: bool>)? Zeroable for $t {}
        // SAFETY: only numbers of one size without padding, for which any bits are valid.
        unsafe impl$(<const $l: bool>)? Pod for $t {}
    )*};
}
numbers_alone! {
    [] Product; [] Moments; [] SquareSum; [] Total; [] WrappedProduct; [] Decided;
    [L] Extremum<f64, L>; [L] Extremum<i64, L>; [L] Located<f64, L>; [L] Located<i64, L>;
}

/// A sum.
impl Partial for f64 {
    const EMPTY: f64 = 0.0;
    #[inline(always)]
    fn merge(self, next: f64) -> f64 {
        self + next
    }
}

/// A product that neither overflows nor underflows before it is complete: `number` times two to the
/// power of `exponent`, an integer.
///
/// The numbers are those of the product as it would be without bounds of the exponent, so that its
/// bits do not depend on when powers of two are split off.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Product {
    pub(super) number: f64,
    pub(super) exponent: f64,
}

impl fmt::Debug for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Product").field(&self.value()).finish()
    }
}

/// Powers of two may be split off earlier or later.
impl PartialEq for Product {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl Product {
    /// Magnitudes of lanes are at most this and at least its inverse, so that sixteen of them can be
    /// multiplied.
    pub(super) const LANE: f64 = power_of_two(62);
    /// What subnormal numbers are multiplied by, and its exponent.
    pub(super) const UP: f64 = power_of_two(64);
    pub(super) const UP_POWER: f64 = 64.0;
    /// Added to bits, it makes the exponent of numbers from √½ to √2 that of 1.
    pub(super) const OFFSET: i64 = 0x0009_5f61_9980_c433;
    /// 2^52: its bits with an integer instead of the fraction are its sum with that.
    pub(super) const MAGIC: f64 = power_of_two(52);

    /// `x` as a number of a magnitude from √½ to √2 and a power of two.
    #[inline(always)]
    fn parts(x: f64) -> (f64, f64) {
        if x == 0.0 || !x.is_finite() {
            return (x, 0.0);
        }
        let biased = (x.abs().to_bits() as i64 + Self::OFFSET) >> 52;
        let bits = (x.to_bits() as i64).wrapping_sub(biased << 52).wrapping_add(1023 << 52);
        (f64::from_bits(bits as u64), (biased - 1023) as f64)
    }

    /// The product, rounded once if it is subnormal.
    #[inline(always)]
    pub fn value(self) -> f64 {
        let (number, shift) = Self::parts(self.number);
        // Beyond 2200 the result is 0 or infinite. Each factor is a power of two, the first exact.
        let exponent = (self.exponent + shift).clamp(-2200.0, 2200.0) as i64;
        let first = (exponent / 2).clamp(-1000, 1000);
        let rest = exponent - first;
        let second = rest.clamp(-1000, 1000);
        number * power_of_two(first) * power_of_two(second) * power_of_two(rest - second)
    }
}

impl Partial for Product {
    const EMPTY: Product = Product { number: 1.0, exponent: 0.0 };
    #[inline(always)]
    fn merge(self, next: Product) -> Product {
        let ((a, shift), (b, power)) = (Self::parts(self.number), Self::parts(next.number));
        Product { number: a * b, exponent: self.exponent + next.exponent + (shift + power) }
    }
}

/// Count, mean and spread of elements.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Moments {
    /// The number of elements.
    pub count: f64,
    /// One of the elements.
    pub(super) shift: f64,
    /// The distance from `shift` to the mean. Kept apart, because rounding their sum would lose
    /// digits of means that are far from 0.
    pub(super) distance: f64,
    /// The sum of squared distances from the mean.
    pub squares: f64,
}

impl Moments {
    /// The moments of `count` elements x, from the sums of d = x − shift and of d².
    ///
    /// With `shift` one of the elements, n times the squared mean distance is at most n times the
    /// result, so the subtraction costs the result at most a factor of 2n in precision.
    #[inline(always)]
    pub(super) fn about(shift: f64, count: f64, [sum, squares]: [f64; 2]) -> Moments {
        let distance = sum / count;
        let left = squares - sum * distance;
        // Overflowed squares stay ∞, unless an element was infinite or NaN.
        let overflows = squares == f64::INFINITY && sum.is_finite();
        let squares = if overflows {
            squares
        } else if left < 0.0 {
            0.0
        } else {
            left
        };
        Moments { count, shift, distance, squares }
    }

    /// The arithmetic mean; 0 without elements.
    #[inline(always)]
    pub fn mean(self) -> f64 {
        self.shift + self.distance
    }

    /// The sum of squared distances over `count − ddof`. With at most `ddof` elements it is ∞, or
    /// NaN if all are equal.
    #[inline(always)]
    pub fn variance(self, ddof: usize) -> f64 {
        self.squares / self.freedom(ddof)
    }

    /// `count − ddof`, at least 0.
    #[inline(always)]
    fn freedom(self, ddof: usize) -> f64 {
        let freedom = self.count - ddof as f64;
        if freedom > 0.0 { freedom } else { 0.0 }
    }
}

/// Merges by Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing
/// sample variances" (1979).
impl Partial for Moments {
    const EMPTY: Moments = Moments { count: 0.0, shift: 0.0, distance: 0.0, squares: 0.0 };
    #[inline(always)]
    fn merge(self, next: Moments) -> Moments {
        let count = self.count + next.count;
        let share = next.count / count;
        let apart = (next.shift - self.shift) + (next.distance - self.distance);
        Moments {
            count,
            shift: self.shift,
            distance: self.distance + apart * share,
            squares: self.squares + next.squares + apart * apart * (self.count * share),
        }
    }
}

/// A sum of squares in which large ones do not overflow and small ones do not underflow.
///
/// Elements of magnitude above `LARGE` or below `SMALL` are scaled by powers of two and their
/// squares summed apart (Blue, "A portable Fortran program to find the Euclidean norm of a vector",
/// 1978). `f32` needs neither.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct SquareSum {
    pub(super) large: f64,
    pub(super) medium: f64,
    pub(super) small: f64,
}

impl SquareSum {
    /// Elements of larger magnitude are scaled down. 2^63 squares of smaller ones do not overflow.
    pub(super) const LARGE: f64 = power_of_two(480);
    /// Elements of smaller magnitude are scaled up.
    pub(super) const SMALL: f64 = power_of_two(-480);
    /// The factor for large elements.
    pub(super) const DOWN: f64 = power_of_two(-600);
    /// The factor for small elements, its inverse.
    pub(super) const UP: f64 = power_of_two(600);

    /// The square root of the sum.
    #[inline(always)]
    pub fn root(self) -> f64 {
        let SquareSum { large, medium, small } = self;
        if large > 0.0 {
            (large + medium * Self::DOWN * Self::DOWN).sqrt() * Self::UP
        } else if medium > 0.0 {
            (medium + small * Self::DOWN * Self::DOWN).sqrt()
        } else if medium == 0.0 {
            small.sqrt() * Self::DOWN
        } else {
            medium
        }
    }
}

/// 2^`k`, which must be normal.
const fn power_of_two(k: i64) -> f64 {
    f64::from_bits(((k + 1023) as u64) << 52)
}

impl Partial for SquareSum {
    const EMPTY: SquareSum = SquareSum { large: 0.0, medium: 0.0, small: 0.0 };
    #[inline(always)]
    fn merge(self, next: SquareSum) -> SquareSum {
        SquareSum {
            large: self.large + next.large,
            medium: self.medium + next.medium,
            small: self.small + next.small,
        }
    }
}

/// A sum of integers, wrapping.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct Total(pub i64);

impl Partial for Total {
    const EMPTY: Total = Total(0);
    fn merge(self, next: Total) -> Total {
        Total(self.0.wrapping_add(next.0))
    }
}

/// A product of integers, wrapping.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct WrappedProduct(pub i64);

impl Partial for WrappedProduct {
    const EMPTY: WrappedProduct = WrappedProduct(1);
    fn merge(self, next: WrappedProduct) -> WrappedProduct {
        WrappedProduct(self.0.wrapping_mul(next.0))
    }
}

/// 1 once an element has decided the result (a zero for *all*, any other for *any*), else 0.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct Decided(pub u8);

impl Partial for Decided {
    const EMPTY: Decided = Decided(0);
    fn merge(self, next: Decided) -> Decided {
        Decided(self.0 | next.0)
    }
    const MAY_BE_FINAL: bool = true;
    fn is_final(self) -> bool {
        self.0 != 0
    }
}

/// Numbers that extrema compare: floats as `f64`, integers as `i64`, both exactly.
pub trait Ordered: Copy + Debug + Send + Sync + 'static {
    #[doc(hidden)]
    const LOWEST: Self;
    #[doc(hidden)]
    const HIGHEST: Self;
    /// True if `self` replaces `best`: it is better, or the first NaN; zeros are equal.
    #[doc(hidden)]
    fn beats(self, best: Self, largest: bool) -> bool;
    /// The one of two equal numbers to keep: zeros may differ in sign.
    #[doc(hidden)]
    fn of_equals(self, other: Self, largest: bool) -> Self;
}

impl Ordered for f64 {
    const LOWEST: f64 = f64::NEG_INFINITY;
    const HIGHEST: f64 = f64::INFINITY;
    #[inline]
    fn beats(self, best: f64, largest: bool) -> bool {
        let better = if largest { self > best } else { self < best };
        !best.is_nan() && (better || self.is_nan())
    }
    #[inline]
    fn of_equals(self, other: f64, largest: bool) -> f64 {
        let (a, b) = (self.to_bits(), other.to_bits());
        f64::from_bits(if largest { a & b } else { a | b })
    }
}

impl Ordered for i64 {
    const LOWEST: i64 = i64::MIN;
    const HIGHEST: i64 = i64::MAX;
    #[inline]
    fn beats(self, best: i64, largest: bool) -> bool {
        if largest { self > best } else { self < best }
    }
    #[inline]
    fn of_equals(self, _: i64, _: bool) -> i64 {
        self
    }
}

/// The largest or smallest element: NaN if any is, and −0 below +0.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(transparent)]
pub struct Extremum<V, const LARGEST: bool>(pub V);

impl<V: Ordered, const LARGEST: bool> Partial for Extremum<V, LARGEST>
where
    Self: Pod,
{
    const EMPTY: Self = Extremum(if LARGEST { V::LOWEST } else { V::HIGHEST });
    fn merge(self, next: Self) -> Self {
        if next.0.beats(self.0, LARGEST) {
            next
        } else if self.0.beats(next.0, LARGEST) {
            self
        } else {
            Extremum(self.0.of_equals(next.0, LARGEST))
        }
    }
}

/// The largest or smallest element and the index of its first occurrence, or of the first NaN if
/// there is one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Located<V, const LARGEST: bool> {
    /// The element.
    pub value: V,
    /// Its index.
    pub index: i64,
    /// The number of elements compared.
    pub count: i64,
}

impl<V: Ordered, const LARGEST: bool> Partial for Located<V, LARGEST>
where
    Self: Pod,
{
    const EMPTY: Self =
        Located { value: if LARGEST { V::LOWEST } else { V::HIGHEST }, index: 0, count: 0 };
    fn merge(self, next: Self) -> Self {
        let count = self.count + next.count;
        match next.value.beats(self.value, LARGEST) {
            true => Located { value: next.value, index: self.count + next.index, count },
            false => Located { count, ..self },
        }
    }
}

//! What blocks of elements fold to, how neighbours become one, and results of it.

use core::fmt::Debug;

use bytemuck::{Pod, Zeroable};

/// What a part of the elements folds to. Sealed.
pub trait Partial: Pod + Debug + Send + Sync + sealed::Sealed {
    /// The fold of no elements.
    const EMPTY: Self;
    /// The fold of these elements and then those of `next`.
    fn then(self, next: Self) -> Self;
}

/// What the elements of a column fold to.
pub(crate) trait Finished: Partial {
    /// What may become of it before it is rounded.
    type Finish: Copy;
    /// The result, before it is rounded.
    fn finished(self, finish: Self::Finish) -> f64;
}

/// What becomes of a sum.
#[derive(Clone, Copy)]
pub(crate) enum OfSum {
    /// Nothing.
    Whole,
    /// A mean of so many.
    Mean(f64),
}

impl Finished for f64 {
    type Finish = OfSum;
    #[inline(always)]
    fn finished(self, finish: OfSum) -> f64 {
        match finish {
            OfSum::Whole => self,
            OfSum::Mean(count) => self / count,
        }
    }
}

impl Finished for Product {
    type Finish = ();
    #[inline(always)]
    fn finished(self, (): ()) -> f64 {
        self.0
    }
}

/// What becomes of moments, with so many degrees of freedom less than elements.
#[derive(Clone, Copy)]
pub(crate) enum OfMoments {
    Variance(usize),
    Std(usize),
}

impl Finished for Moments {
    type Finish = OfMoments;
    #[inline(always)]
    fn finished(self, finish: OfMoments) -> f64 {
        match finish {
            OfMoments::Variance(ddof) => self.variance(ddof),
            OfMoments::Std(ddof) => self.variance(ddof).sqrt(),
        }
    }
}

impl Finished for SquareSum {
    type Finish = ();
    #[inline(always)]
    fn finished(self, (): ()) -> f64 {
        self.root()
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f64 {}
    impl Sealed for super::Product {}
    impl Sealed for super::Moments {}
    impl Sealed for super::SquareSum {}
}

macro_rules! numbers_alone {
    ($($t:ty)*) => {$(
        // SAFETY: `f64`s one after the other, all of whose bits are numbers.
        unsafe impl Zeroable for $t {}
        // SAFETY: as above; no padding.
        unsafe impl Pod for $t {}
    )*};
}
numbers_alone! { Product Moments SquareSum }

/// A sum.
impl Partial for f64 {
    const EMPTY: f64 = 0.0;
    #[inline(always)]
    fn then(self, next: f64) -> f64 {
        self + next
    }
}

/// A product.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Product(pub f64);

impl Partial for Product {
    const EMPTY: Product = Product(1.0);
    #[inline(always)]
    fn then(self, next: Product) -> Product {
        Product(self.0 * next.0)
    }
}

/// Number, mean and spread of elements.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Moments {
    /// How many there are.
    pub count: f64,
    /// One of them.
    pub(super) shift: f64,
    /// From there to their arithmetic mean. Rounded to a sum, means far from 0 would be too near each other.
    pub(super) distance: f64,
    /// The sum of the squares of their distances from the mean.
    pub squares: f64,
}

impl Moments {
    /// Of `count` elements x from the sums over d = x − shift and d².
    ///
    /// With `shift` one of the elements, n times the square of the mean distance is at most n times
    /// the result: the subtraction costs the result at most a factor of 2n in precision.
    #[inline(always)]
    pub(super) fn about(shift: f64, count: f64, [sum, squares]: [f64; 2]) -> Moments {
        let distance = sum / count;
        let left = squares - sum * distance;
        // Squares that overflow leave ∞, unless an element was infinite or NaN.
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

    /// Their arithmetic mean; 0 of none.
    #[inline(always)]
    pub fn mean(self) -> f64 {
        self.shift + self.distance
    }

    /// The sum of squared distances over `count − ddof`; of no more than `ddof` elements ∞, or NaN if
    /// they are all equal.
    #[inline(always)]
    pub fn variance(self, ddof: usize) -> f64 {
        let freedom = self.count - ddof as f64;
        self.squares / if freedom > 0.0 { freedom } else { 0.0 }
    }
}

/// Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
/// variances" (1979).
impl Partial for Moments {
    const EMPTY: Moments = Moments { count: 0.0, shift: 0.0, distance: 0.0, squares: 0.0 };
    #[inline(always)]
    fn then(self, next: Moments) -> Moments {
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

/// A sum of squares, of which neither the large ones overflow nor the small ones vanish.
///
/// Squares of magnitudes above `LARGE` and below `SMALL` are summed apart, their roots scaled by powers
/// of two (Blue, "A portable Fortran program to find the Euclidean norm of a vector", 1978). `f32` needs
/// neither.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct SquareSum {
    pub(super) large: f64,
    pub(super) medium: f64,
    pub(super) small: f64,
}

impl SquareSum {
    /// Magnitudes above it are scaled down. 2^63 squares below it don't overflow.
    pub(super) const LARGE: f64 = power_of_two(480);
    /// Magnitudes below it are scaled up.
    pub(super) const SMALL: f64 = power_of_two(-480);
    /// What large ones are multiplied by; small ones are divided by it.
    pub(super) const DOWN: f64 = power_of_two(-600);
    /// Its inverse.
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

/// 2^`k` of a normal number.
const fn power_of_two(k: i64) -> f64 {
    f64::from_bits(((k + 1023) as u64) << 52)
}

impl Partial for SquareSum {
    const EMPTY: SquareSum = SquareSum { large: 0.0, medium: 0.0, small: 0.0 };
    #[inline(always)]
    fn then(self, next: SquareSum) -> SquareSum {
        SquareSum {
            large: self.large + next.large,
            medium: self.medium + next.medium,
            small: self.small + next.small,
        }
    }
}

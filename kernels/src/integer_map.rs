//! Element-wise arithmetic of integers.
//!
//! ```text
//! sums, products   plain loops
//! quotients        q = trunc(a / b) in f64, exact if |a| and |b| are at most 2^51; else one by one
//!                  remainder: a − b q
//!                  rounded down: q − 1 where there is a remainder of other sign than b, which is moved by b
//! ```
//!
//! The quotient in `f64` is exact: the distance from a / b to the next larger integer is 0 or at
//! least 1 / |b|, more than half the distance of floats near a / b, which is at most
//! 2⁻⁵³ |a| / |b|. So it is not rounded across an integer.
//!
//! These are plain loops, which the compiler vectorises for the instruction set that the dispatcher
//! enters.

use crate::map::Arg;
use crate::simd::{Simd, Task};

/// A function of two integers. Sums and products wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntegerOp {
    /// `a + b`.
    Add,
    /// `a − b`.
    Sub,
    /// `a b`.
    Mul,
    /// `a / b`, truncated.
    Div,
    /// The remainder of the truncated quotient, with the sign of `a`.
    Rem,
    /// The remainder of the quotient rounded down, with the sign of `b`.
    Remainder,
    /// `a / b` rounded down.
    FloorDivide,
}

/// Elements computed at once. A scalar is spread over as many, which takes long for small tensors.
const CHUNK: usize = 128;

/// The largest magnitude that is divided in `f64`.
const LARGEST: i64 = 1 << 51;

/// 1.5 · 2^52: the lower bits of its sum with an integer up to 2^51 are those of the integer.
const SHIFT: f64 = 6755399441055744.0;

/// Integers with arithmetic: `i32`, `u32` and `i64`. Sealed.
pub trait ArithmeticInteger: Copy + Default + PartialEq + Send + Sync + sealed::Sealed {
    #[doc(hidden)]
    fn run(task: IntegerMap<'_, Self>) -> bool;
}

mod sealed {
    /// Operations on an element.
    pub trait Sealed: Sized {
        const ONE: Self;
        fn add(self, other: Self) -> Self;
        fn sub(self, other: Self) -> Self;
        fn mul(self, other: Self) -> Self;
        /// The truncated quotient, if there is one.
        fn divide(self, other: Self) -> Option<Self>;
        /// True if `self / other` has no value.
        fn fails(self, other: Self) -> bool;
        /// True if the signs differ.
        fn has_other_sign(self, other: Self) -> bool;
        /// True if all magnitudes are at most 2^51.
        fn are_exact(x: &[Self]) -> bool;
        /// The same number, up to 2^51.
        fn to_f64(self) -> f64;
        /// The integer whose sum with `SHIFT` has these bits.
        fn from_shifted(bits: u64) -> Self;
    }
}

macro_rules! integers {
    ($($t:ident, $is_smallest:expr, |$x:ident| $to_f64:expr, $are_exact:expr;)*) => {$(
        impl sealed::Sealed for $t {
            const ONE: $t = 1;
            #[inline(always)]
            fn add(self, other: $t) -> $t {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: $t) -> $t {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: $t) -> $t {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn divide(self, other: $t) -> Option<$t> {
                self.checked_div(other)
            }
            #[inline(always)]
            fn fails(self, other: $t) -> bool {
                (other == 0) | $is_smallest(self, other)
            }
            #[inline(always)]
            #[allow(unused_comparisons, reason = "one of the types is unsigned")]
            fn has_other_sign(self, other: $t) -> bool {
                (self ^ other) < 0
            }
            #[inline(always)]
            fn are_exact(x: &[$t]) -> bool {
                $are_exact(x)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                let $x = self;
                $to_f64
            }
            #[inline(always)]
            fn from_shifted(bits: u64) -> $t {
                bits.wrapping_sub(SHIFT.to_bits()) as $t
            }
        }

        impl ArithmeticInteger for $t {
            fn run(task: IntegerMap<'_, $t>) -> bool {
                crate::dispatch::run(task)
            }
        }
    )*};
}
integers! {
    i32, |a, b| (b == -1) & (a == i32::MIN), |x| f64::from(x), |_| true;
    u32, |_, _| false, |x| f64::from(x), |_| true;
    i64, |a, b| (b == -1) & (a == i64::MIN),
        |x| f64::from_bits(SHIFT.to_bits().wrapping_add(x as u64)) - SHIFT,
        |x: &[i64]| x.iter().fold(0, |bits, &x| bits | (x ^ (x >> 63))) < LARGEST;
}

/// `y = op(a, b)`; slices are as long as `y`. Returns false if a quotient has no value; results are
/// then unspecified.
pub struct IntegerMap<'a, T> {
    pub(crate) op: IntegerOp,
    pub(crate) x: [Arg<'a, T>; 2],
    pub(crate) y: &'a mut [T],
}

impl<T: ArithmeticInteger> Task for IntegerMap<'_, T> {
    type Home = Self;
    type Output = bool;
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> bool {
        let IntegerMap { op, x, y } = self;
        match op {
            IntegerOp::Add => chunks(x, y, |a, b, y| total(a, b, y, T::add)),
            IntegerOp::Sub => chunks(x, y, |a, b, y| total(a, b, y, T::sub)),
            IntegerOp::Mul => chunks(x, y, |a, b, y| total(a, b, y, T::mul)),
            IntegerOp::Div => chunks(x, y, |a, b, y| divided(a, b, y, |_, _, q| q)),
            IntegerOp::Rem => chunks(x, y, |a, b, y| divided(a, b, y, |a, b, q| a.sub(b.mul(q)))),
            IntegerOp::Remainder => chunks(x, y, |a, b, y| {
                divided(a, b, y, |a, b, q| match floored(a, b, q) {
                    (rest, true) => rest.add(b),
                    (rest, false) => rest,
                })
            }),
            IntegerOp::FloorDivide => chunks(x, y, |a, b, y| {
                divided(a, b, y, |a, b, q| if floored(a, b, q).1 { q.sub(T::ONE) } else { q })
            }),
        }
    }
}

/// The remainder of the truncated quotient `q`, and whether the quotient rounded down is below it.
#[inline(always)]
fn floored<T: ArithmeticInteger>(a: T, b: T, q: T) -> (T, bool) {
    let rest = a.sub(b.mul(q));
    (rest, (rest != T::default()) & rest.has_other_sign(b))
}

/// Calls `f` on chunks of arguments and results; scalars are spread over a chunk.
#[inline(always)]
fn chunks<T: ArithmeticInteger>(
    x: [Arg<'_, T>; 2],
    y: &mut [T],
    f: impl Fn(&[T], &[T], &mut [T]) -> bool,
) -> bool {
    let spread = x.map(|x| match x {
        Arg::Scalar(x) => [x; CHUNK],
        Arg::Slice(_) => [T::default(); CHUNK],
    });
    let mut all = true;
    for (i, y) in y.chunks_mut(CHUNK).enumerate() {
        let (first, len) = (i * CHUNK, y.len());
        let [a, b] = [0, 1].map(|k| match x[k] {
            Arg::Slice(x) => &x[first..first + len],
            Arg::Scalar(_) => &spread[k][..len],
        });
        all &= f(a, b, y);
    }
    all
}

#[inline(always)]
fn total<T: ArithmeticInteger>(a: &[T], b: &[T], y: &mut [T], f: impl Fn(T, T) -> T) -> bool {
    for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
        *y = f(a, b);
    }
    true
}

/// Writes the values of `f` for `a`, `b` and their quotient.
#[inline(always)]
fn divided<T: ArithmeticInteger>(a: &[T], b: &[T], y: &mut [T], f: impl Fn(T, T, T) -> T) -> bool {
    let mut failed = false;
    if T::are_exact(a) && T::are_exact(b) {
        for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
            failed |= a.fails(b);
            let quotient = (a.to_f64() / b.to_f64()).trunc();
            *y = f(a, b, T::from_shifted((quotient + SHIFT).to_bits()));
        }
    } else {
        for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
            let quotient = a.divide(b);
            failed |= quotient.is_none();
            *y = f(a, b, quotient.unwrap_or_default());
        }
    }
    !failed
}

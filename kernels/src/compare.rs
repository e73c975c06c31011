//! Comparisons, tests of single numbers, and the choice between two slices by a mask: what gives or
//! takes truth values, bytes that are 0 or 1 (as a mask, any byte but 0 is true).
//!
//! Comparing is exact on every machine, so these are plain loops; entered through the dispatcher
//! they are vectorised by the compiler for the chosen instruction set.

use half::{bf16, f16};

use crate::Arg;
use crate::convert::with_widened;
use crate::dispatch::{Task, run};
use crate::simd::Simd;

/// A comparison. With NaN all are false, but `Ne` is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the six usual ones")]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// What a number can be tested for. Integers are finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumberTest {
    /// Not a number.
    IsNan,
    /// +∞ or −∞.
    IsInf,
    /// Neither NaN nor infinite.
    IsFinite,
}

/// An element type that can be compared: `f16`, `bf16`, `f32`, `f64`, `i64`, `i32`, `u32`, `u8`. Sealed.
pub trait Compare: Copy + PartialOrd + sealed::Sealed {
    #[doc(hidden)]
    fn compare(op: Comparison, a: Arg<Self>, b: Arg<Self>, y: &mut [u8]);
    #[doc(hidden)]
    fn test(test: NumberTest, x: &[Self], y: &mut [u8]);
}

mod sealed {
    pub trait Sealed {}
}

/// `y[i] = a[i] op b[i]`, 1 where it holds, else 0.
///
/// ```
/// use swath_kernels::{Arg, Comparison, compare};
/// let mut y = [0; 3];
/// compare(Comparison::Lt, Arg::Slice(&[1.0f32, 2.0, f32::NAN]), Arg::Scalar(2.0), &mut y);
/// assert_eq!(y, [1, 0, 0]);
/// ```
///
/// # Panics
/// If a slice's length is not that of `y`.
#[track_caller]
pub fn compare<T: Compare>(op: Comparison, a: Arg<T>, b: Arg<T>, y: &mut [u8]) {
    check("compare", [len(&a), len(&b)], y.len());
    T::compare(op, a, b, y);
}

/// `y[i]` is 1 where `x[i]` passes the test, else 0.
///
/// ```
/// use swath_kernels::{NumberTest, test_numbers};
/// let mut y = [0; 3];
/// test_numbers(NumberTest::IsInf, &[1.0f32, f32::NAN, -f32::INFINITY], &mut y);
/// assert_eq!(y, [0, 0, 1]);
/// ```
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub fn test_numbers<T: Compare>(test: NumberTest, x: &[T], y: &mut [u8]) {
    check("test_numbers", [Some(x.len()), None], y.len());
    T::test(test, x, y);
}

/// `y[i] = a[i]` where `mask[i]` is not 0, else `b[i]`; elements are any of 1, 2, 4 or 8 bytes.
///
/// ```
/// use swath_kernels::{Arg, select};
/// let mut y = [0u32; 3];
/// select(&[1, 0, 2], Arg::Slice(&[1, 2, 3]), Arg::Scalar(9), &mut y);
/// assert_eq!(y, [1, 9, 3]);
/// ```
///
/// # Panics
/// If a slice's length is not that of `y`.
#[track_caller]
pub fn select<T: Copy + Send>(mask: &[u8], a: Arg<T>, b: Arg<T>, y: &mut [T]) {
    check("select", [Some(mask.len()), None], y.len());
    check("select", [len(&a), len(&b)], y.len());
    run(Select { mask, a, b, y });
}

fn len<T>(x: &Arg<T>) -> Option<usize> {
    match x {
        Arg::Slice(x) => Some(x.len()),
        Arg::Scalar(_) => None,
    }
}

#[track_caller]
fn check(name: &str, inputs: [Option<usize>; 2], output: usize) {
    for input in inputs.into_iter().flatten() {
        assert!(input == output, "{name}: an input has {input} elements, the output {output}");
    }
}

struct Select<'a, T> {
    mask: &'a [u8],
    a: Arg<'a, T>,
    b: Arg<'a, T>,
    y: &'a mut [T],
}

impl<T: Copy> Task for Select<'_, T> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let choose = |mask: u8, a: T, b: T| if mask != 0 { a } else { b };
        let y = self.y.iter_mut().zip(self.mask);
        match (self.a, self.b) {
            (Arg::Slice(a), Arg::Slice(b)) => {
                y.zip(a).zip(b).for_each(|(((y, &m), &a), &b)| *y = choose(m, a, b));
            }
            (Arg::Slice(a), Arg::Scalar(b)) => {
                y.zip(a).for_each(|((y, &m), &a)| *y = choose(m, a, b));
            }
            (Arg::Scalar(a), Arg::Slice(b)) => {
                y.zip(b).for_each(|((y, &m), &b)| *y = choose(m, a, b));
            }
            (Arg::Scalar(a), Arg::Scalar(b)) => y.for_each(|(y, &m)| *y = choose(m, a, b)),
        }
    }
}

struct Holds<'a, T, F> {
    a: Arg<'a, T>,
    b: Arg<'a, T>,
    y: &'a mut [u8],
    holds: F,
}

impl<T: Copy, F: Fn(T, T) -> bool> Task for Holds<'_, T, F> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let Holds { a, b, y, holds } = self;
        match (a, b) {
            (Arg::Slice(a), Arg::Slice(b)) => {
                y.iter_mut().zip(a).zip(b).for_each(|((y, &a), &b)| *y = u8::from(holds(a, b)));
            }
            (Arg::Slice(a), Arg::Scalar(b)) => {
                y.iter_mut().zip(a).for_each(|(y, &a)| *y = u8::from(holds(a, b)));
            }
            (Arg::Scalar(a), Arg::Slice(b)) => {
                y.iter_mut().zip(b).for_each(|(y, &b)| *y = u8::from(holds(a, b)));
            }
            (Arg::Scalar(a), Arg::Scalar(b)) => y.fill(u8::from(holds(a, b))),
        }
    }
}

fn compare_each<T: Copy + PartialOrd>(op: Comparison, a: Arg<T>, b: Arg<T>, y: &mut [u8]) {
    match op {
        Comparison::Eq => run(Holds { a, b, y, holds: |a, b| a == b }),
        Comparison::Ne => run(Holds { a, b, y, holds: |a, b| a != b }),
        Comparison::Lt => run(Holds { a, b, y, holds: |a, b| a < b }),
        Comparison::Le => run(Holds { a, b, y, holds: |a, b| a <= b }),
        Comparison::Gt => compare_each(Comparison::Lt, b, a, y),
        Comparison::Ge => compare_each(Comparison::Le, b, a, y),
    }
}

macro_rules! compare {
    (integer $($t:ident)*) => {$(
        impl sealed::Sealed for $t {}
        impl Compare for $t {
            fn compare(op: Comparison, a: Arg<$t>, b: Arg<$t>, y: &mut [u8]) {
                compare_each(op, a, b, y);
            }
            fn test(test: NumberTest, _x: &[$t], y: &mut [u8]) {
                y.fill(u8::from(test == NumberTest::IsFinite));
            }
        }
    )*};
    (float $($t:ident)*) => {$(
        impl sealed::Sealed for $t {}
        impl Compare for $t {
            fn compare(op: Comparison, a: Arg<$t>, b: Arg<$t>, y: &mut [u8]) {
                compare_each(op, a, b, y);
            }
            fn test(test: NumberTest, x: &[$t], y: &mut [u8]) {
                let (a, b) = (Arg::Slice(x), Arg::Scalar($t::INFINITY));
                match test {
                    NumberTest::IsNan => run(Holds { a, b, y, holds: |x: $t, _| x.is_nan() }),
                    NumberTest::IsInf => run(Holds { a, b, y, holds: |x: $t, inf| x.abs() == inf }),
                    NumberTest::IsFinite => run(Holds { a, b, y, holds: |x: $t, inf| x.abs() < inf }),
                }
            }
        }
    )*};
    (half $($t:ident)*) => {$(
        impl sealed::Sealed for $t {}
        impl Compare for $t {
            fn compare(op: Comparison, a: Arg<$t>, b: Arg<$t>, y: &mut [u8]) {
                with_widened(a, b, y, |a, b, y| compare_each(op, a, b, y));
            }
            fn test(test: NumberTest, x: &[$t], y: &mut [u8]) {
                let zero = Arg::Scalar($t::ZERO);
                with_widened(Arg::Slice(x), zero, y, |x, _, y| match x {
                    Arg::Slice(x) => f32::test(test, x, y),
                    Arg::Scalar(_) => {}
                });
            }
        }
    )*};
}
compare!(integer i64 i32 u32 u8);
compare!(float f32 f64);
compare!(half f16 bf16);

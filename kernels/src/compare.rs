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

/// An element type that a mask chooses: integers and floats of 1, 2, 4 or 8 bytes. Sealed.
pub trait Select: Copy + sealed::Choose {}

mod sealed {
    pub trait Sealed {}

    pub trait Choose {
        /// `a` where the mask is not 0, else `b`.
        fn choose(mask: u8, a: Self, b: Self) -> Self;
    }
}

macro_rules! select {
    (@bits $t:ident: |$mask:ident, $a:ident, $b:ident| $chosen:expr) => {
        impl Select for $t {}
        impl sealed::Choose for $t {
            #[inline(always)]
            fn choose($mask: u8, $a: $t, $b: $t) -> $t {
                $chosen
            }
        }
    };
    (integer $($t:ident)*) => {$(
        select!(@bits $t: |mask, a, b| {
            // In bits: of a choice between two loads the compiler makes a load of a chosen address.
            let all = (0 as $t).wrapping_sub((mask != 0) as $t);
            b ^ (a ^ b) & all
        });
    )*};
    (float $($t:ident)*) => {$(
        select!(@bits $t: |mask, a, b| {
            $t::from_bits(sealed::Choose::choose(mask, a.to_bits(), b.to_bits()))
        });
    )*};
}
select!(integer u8 i8 u16 i16 u32 i32 u64 i64);
select!(float f16 bf16 f32 f64);

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

/// `y[i] = a[i]` where `mask[i]` is not 0, else `b[i]`.
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
pub fn select<T: Select>(mask: &[u8], a: Arg<T>, b: Arg<T>, y: &mut [T]) {
    check("select", [Some(mask.len()), None], y.len());
    check("select", [len(&a), len(&b)], y.len());
    run(Selection { mask, a, b, y });
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

struct Selection<'a, T> {
    mask: &'a [u8],
    a: Arg<'a, T>,
    b: Arg<'a, T>,
    y: &'a mut [T],
}

impl<T: Select> Task for Selection<'_, T> {
    type Home = Self;
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let Selection { mask, a, b, y } = self;
        match (a, b) {
            (Arg::Slice(a), Arg::Slice(b)) => {
                for (((y, &mask), &a), &b) in y.iter_mut().zip(mask).zip(a).zip(b) {
                    *y = T::choose(mask, a, b);
                }
            }
            (Arg::Slice(a), Arg::Scalar(b)) => {
                for ((y, &mask), &a) in y.iter_mut().zip(mask).zip(a) {
                    *y = T::choose(mask, a, b);
                }
            }
            (Arg::Scalar(a), Arg::Slice(b)) => {
                for ((y, &mask), &b) in y.iter_mut().zip(mask).zip(b) {
                    *y = T::choose(mask, a, b);
                }
            }
            (Arg::Scalar(a), Arg::Scalar(b)) => {
                for (y, &mask) in y.iter_mut().zip(mask) {
                    *y = T::choose(mask, a, b);
                }
            }
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

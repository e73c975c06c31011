//! The loop of three-argument kernels.
//!
//! An argument is memory or one value for all elements, which is read as memory that the loop does
//! not advance in.

use core::marker::PhantomData;

use super::binary::{Operand, Source, Stepping};
use super::store_up_to;
use crate::Arg;
use crate::dispatch::ElementTask;
use crate::output::Output;
use crate::simd::{Float, Lanes, MAX_LANES};

/// A three-argument element-wise kernel on lanes.
pub trait Map3<E: Float> {
    /// The kernel. `#[inline(always)]` in every implementation.
    fn apply<S: Lanes<E>>(simd: S, a: S::V, b: S::V, c: S::V) -> S::V;
}

/// A three-argument element-wise function of slices of `E`.
///
/// ```
/// use swath_kernels::{Arg, Ternary, math::MulAdd};
///
/// let mut y = [1.0f32, 2.0, 3.0];
/// MulAdd::run_in_place([Some(Arg::Scalar(10.0)), None, Some(Arg::Slice(&[0.5; 3]))], &mut y);
/// assert_eq!(y, [10.5, 20.5, 30.5]);
/// ```
pub trait Ternary<E> {
    /// The function's name.
    const NAME: &'static str;
    /// `y[i] = f(a[i], b[i], c[i])`.
    ///
    /// # Panics
    /// If a slice's length is not that of `y`.
    #[track_caller]
    fn run<O: Output<E> + ?Sized>(a: Arg<E>, b: Arg<E>, c: Arg<E>, y: &mut O);
    /// As [`Ternary::run`]; an argument that is `None` is what `y` holds.
    ///
    /// # Panics
    /// If a slice's length is not that of `y`.
    #[track_caller]
    fn run_in_place(arguments: [Option<Arg<E>>; 3], y: &mut [E]);
}

/// Inputs and output of a three-argument kernel: `len` elements each, apart or the same memory.
pub(crate) struct Operands3<'a, E> {
    sources: [Source<E>; 3],
    y: *mut E,
    len: usize,
    borrow: PhantomData<&'a mut E>,
}

impl<'a, E: Float> Operands3<'a, E> {
    #[inline]
    #[track_caller]
    pub fn new<O: Output<E> + ?Sized>(
        name: &str,
        arguments: [Arg<'a, E>; 3],
        y: &'a mut O,
    ) -> Self {
        let (y, len) = y.as_raw();
        let [a, b, c] = arguments;
        let sources =
            [Source::new(name, a, len), Source::new(name, b, len), Source::new(name, c, len)];
        Operands3 { sources, y, len, borrow: PhantomData }
    }

    #[track_caller]
    pub fn in_place(name: &str, arguments: [Option<Arg<'a, E>>; 3], y: &'a mut [E]) -> Self {
        let (y, len) = (y.as_mut_ptr(), y.len());
        let mut sources = [Source::Memory(y.cast_const(), 0); 3];
        for (source, argument) in sources.iter_mut().zip(arguments) {
            if let Some(argument) = argument {
                *source = Source::new(name, argument, len);
            }
        }
        Operands3 { sources, y, len, borrow: PhantomData }
    }

    #[inline(always)]
    pub fn map<K: Map3<E>>(self) {
        E::enter(Run3::<E, K>(&self, PhantomData));
    }
}

struct Run3<'a, E, K>(&'a Operands3<'a, E>, PhantomData<K>);

impl<E: Float, K: Map3<E>> ElementTask<E> for Run3<'_, E, K> {
    type Home = K;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let Operands3 { sources: [a, b, c], y, len, .. } = *self.0;
        let mut values = [[E::ZERO; MAX_LANES]; 3];
        let [for_a, for_b, for_c] = &mut values;
        let (a, b, c) = (Stepping::new(a, for_a), Stepping::new(b, for_b), Stepping::new(c, for_c));
        // SAFETY: inputs in memory and `y` are valid for `len` elements, as the operands'
        // constructors made sure.
        unsafe { run3::<E, S, K>(simd, a, b, c, y, len) }
    }
}

/// The loop of a three-argument kernel, two vectors at a time.
///
/// # Safety
/// `a`, `b` and `c` have `len` elements, `y` is valid for writes of as many; an input in memory is
/// `y` itself or does not overlap it.
#[inline(always)]
unsafe fn run3<E: Float, S: Lanes<E>, K: Map3<E>>(
    simd: S,
    a: Stepping<E>,
    b: Stepping<E>,
    c: Stepping<E>,
    y: *mut E,
    len: usize,
) {
    let mut i = 0;
    while const { S::LANES > 1 } && len - i >= 2 * S::LANES {
        let next = i + S::LANES;
        // SAFETY: both vectors end within `len`.
        unsafe {
            let (a0, b0, c0) = (a.vector(simd, i), b.vector(simd, i), c.vector(simd, i));
            let (a1, b1, c1) = (a.vector(simd, next), b.vector(simd, next), c.vector(simd, next));
            simd.store(y.add(i), K::apply(simd, a0, b0, c0));
            simd.store(y.add(next), K::apply(simd, a1, b1, c1));
        }
        i += 2 * S::LANES;
    }
    while i < len {
        let count = len - i;
        // SAFETY: `count` elements are left from `i` on.
        unsafe {
            let (a, b, c) =
                (a.up_to(simd, i, count), b.up_to(simd, i, count), c.up_to(simd, i, count));
            store_up_to(simd, y.add(i), count, K::apply(simd, a, b, c));
        }
        i += S::LANES;
    }
}

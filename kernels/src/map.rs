//! Drivers of element-wise kernels: the loop over a slice, and the table that gives each kernel its
//! public face.
//!
//! ```text
//! for each run of UNROLL whole vectors: load them all, apply the kernel to all at once, store them
//! for what is left, a vector at a time: the same, the last vector under a mask
//! ```
//!
//! A kernel with a short form for most numbers ([`Map1::usual`]) has a run go through that, and only a
//! run with another number in it a vector at a time through the kernel itself: one test a run, and
//! one copy of the long form.
//!
//! 1. The tail goes through the kernel's vector code, so an element's bits depend on nothing but
//!    its value.
//! 2. A run is loaded before any of it is stored: in place is the same loop with `y == x`.
//! 3. Whole and masked vectors of the tail share one copy of the kernel: kernels are long.
//! 4. Results too large for the caches are stored past them where there are vectors, runs from an
//!    aligned address on; in place the lines are in the caches already.

mod binary;
mod block;
mod pair;
pub(crate) mod rows;
mod ternary;

use core::marker::PhantomData;

use crate::copy::{Fence, streaming};
use crate::dispatch::ElementTask;
use crate::output::Output;
use crate::simd::{Float, Lanes, Mask, Vector, Wide};
pub(crate) use binary::Operands2;
pub use block::{Arg, Binary, Block, BlockArg};
pub(crate) use pair::{MapPair, map_pair};
pub(crate) use ternary::Operands3;
pub use ternary::{Map3, Ternary};

/// A one-argument element-wise kernel on lanes.
pub trait Map1<E: Float> {
    /// Vectors in flight: 1, 2 or 4. Four hide the latency of short kernels; long ones have enough
    /// independent work in two, or in one, and would spill with more.
    const UNROLL: usize = 4;
    /// The same where there are 32 registers.
    const UNROLL_32: usize = Self::UNROLL;
    /// The kernel. `#[inline(always)]` in every implementation.
    fn apply<S: Lanes<E>>(simd: S, x: S::V) -> S::V;
    /// A short form, and the lanes in which it gives what the kernel gives; `None` without one.
    /// `#[inline(always)]` too.
    #[inline(always)]
    fn usual<S: Lanes<E>>(_simd: S, _x: S::V) -> Option<(S::V, S::M)> {
        None
    }
}

/// A kernel in two forms: the short one with the lanes it holds for, and one for the others, an
/// `#[inline(always)]` closure.
#[inline(always)]
pub(crate) fn usual_or<V: Vector>((usual, holds): (V, V::Mask), other: impl FnOnce() -> V) -> V {
    if holds.all() { usual } else { usual.select(holds, other()) }
}

/// A two-argument element-wise kernel on lanes.
pub trait Map2<E: Float> {
    /// As [`Map1::UNROLL`].
    const UNROLL: usize = 4;
    /// The kernel. `#[inline(always)]` in every implementation.
    fn apply<S: Lanes<E>>(simd: S, a: S::V, b: S::V) -> S::V;
}

/// A one-argument element-wise function of slices of `E`.
///
/// ```
/// use swath_kernels::{Unary, math::Exp};
///
/// fn apply<F: Unary<f32>>(x: &[f32]) -> Vec<f32> {
///     let mut y = vec![0.0; x.len()];
///     F::run(x, &mut y);
///     y
/// }
/// assert_eq!(apply::<Exp>(&[0.0]), [1.0]);
/// ```
pub trait Unary<E> {
    /// The function's name.
    const NAME: &'static str;
    /// `y[i] = f(x[i])`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[track_caller]
    fn run<O: Output<E> + ?Sized>(x: &[E], y: &mut O);
    /// `x[i] = f(x[i])`.
    fn run_in_place(x: &mut [E]);
}

/// Implements [`Unary`], [`Binary`] and [`Ternary`] for kernels and writes their slice functions into a module
/// `functions`: one row a kernel, its documentation, its function's name, its type, and the bounds
/// for `f32` and `f64` that it promises, if it does.
///
/// The bodies behind `run` are generic over nothing, so the kernels are compiled with this crate.
macro_rules! kernels {
    (
        unary { $($(#[$doc:meta])* $function:ident $Kernel:ident $($ulp:literal)*;)* }
        binary { $($(#[$doc2:meta])* $function2:ident $Kernel2:ident $($ulp2:literal)*;)* }
        ternary { $($(#[$doc3:meta])* $function3:ident $Kernel3:ident;)* }
    ) => {
        #[allow(dead_code, reason = "the tests of this macro promise nothing")]
        /// What functions promise, for all inputs and instruction sets: the largest distance, in
        /// floats, from the correctly rounded result.
        ///
        /// ```
        /// let exp = swath_kernels::math::ULP_BOUNDS.iter().find(|row| row.name == "exp").unwrap();
        /// assert_eq!((exp.f32, exp.f64), (1, 1));
        /// ```
        pub const ULP_BOUNDS: &[$crate::math::UlpBound] = $crate::math::UlpBounds::new()
            $(.with(stringify!($function), &[$($ulp),*]))*
            $(.with(stringify!($function2), &[$($ulp2),*]))*
            .rows();

        #[allow(dead_code, reason = "as above")]
        /// The name of every function.
        pub const NAMES: &[&str] =
            &[$(stringify!($function),)* $(stringify!($function2)),*];

        $(
            kernels!(@unary $function $Kernel f32);
            kernels!(@unary $function $Kernel f64);
        )*
        $(
            kernels!(@binary $function2 $Kernel2 f32);
            kernels!(@binary $function2 $Kernel2 f64);
        )*
        $(
            kernels!(@ternary $function3 $Kernel3 f32);
            kernels!(@ternary $function3 $Kernel3 f64);
        )*

        /// The kernels as functions of slices.
        pub mod functions {
            use super::*;
            use $crate::{Arg, Binary, Float, Output, Unary};
            $(
                $(#[$doc])*
                ///
                /// Writes `y[i]` from `x[i]`; panics if the lengths differ.
                #[doc = concat!(
                    "```\nlet x = [0.25f32, 0.5, 1.0];\nlet mut y = [0.0; 3];\nswath_kernels::",
                    stringify!($function), "(&x, &mut y);\n```"
                )]
                #[inline]
                #[track_caller]
                pub fn $function<E: Float>(x: &[E], y: &mut (impl Output<E> + ?Sized))
                where
                    $Kernel: Unary<E>,
                {
                    $Kernel::run(x, y);
                }
            )*
            $(
                $(#[$doc2])*
                ///
                /// Writes `y[i]` from `a[i]` and `b[i]`; panics if the lengths differ.
                #[doc = concat!(
                    "```\nlet (a, b) = ([0.25f32, 0.5], [1.0, 2.0]);\nlet mut y = [0.0; 2];\n",
                    "swath_kernels::", stringify!($function2), "(&a, &b, &mut y);\n```"
                )]
                #[inline]
                #[track_caller]
                pub fn $function2<E: Float>(
                    a: &[E],
                    b: &[E],
                    y: &mut (impl Output<E> + ?Sized),
                ) where
                    $Kernel2: Binary<E>,
                {
                    $Kernel2::run(Arg::Slice(a), Arg::Slice(b), y);
                }
            )*
            $(
                $(#[$doc3])*
                ///
                /// Writes `y[i]` from `a[i]`, `b[i]` and `c[i]`; panics if the lengths differ.
                #[doc = concat!(
                    "```\nlet (a, b, c) = ([0.25f32, 0.5], [1.0, 2.0], [3.0, 4.0]);\n",
                    "let mut y = [0.0; 2];\nswath_kernels::",
                    stringify!($function3), "(&a, &b, &c, &mut y);\n```"
                )]
                #[inline]
                #[track_caller]
                pub fn $function3<E: Float>(
                    a: &[E],
                    b: &[E],
                    c: &[E],
                    y: &mut (impl Output<E> + ?Sized),
                ) where
                    $Kernel3: $crate::Ternary<E>,
                {
                    let [a, b, c] = [a, b, c].map(Arg::Slice);
                    <$Kernel3 as $crate::Ternary<E>>::run(a, b, c, y);
                }
            )*
        }
    };
    (@unary $function:ident $Kernel:ident $t:ident) => {
        impl $crate::Unary<$t> for $Kernel {
            const NAME: &'static str = stringify!($function);
            #[inline]
            #[track_caller]
            fn run<O: $crate::Output<$t> + ?Sized>(x: &[$t], y: &mut O) {
                fn compiled(operands: $crate::map::Operands1<$t>) {
                    operands.map::<$Kernel>();
                }
                compiled($crate::map::Operands1::new(stringify!($function), x, y));
            }
            fn run_in_place(x: &mut [$t]) {
                $crate::map::Operands1::in_place(x).map::<$Kernel>();
            }
        }
    };
    (@binary $function:ident $Kernel:ident $t:ident) => {
        impl $crate::Binary<$t> for $Kernel {
            const NAME: &'static str = stringify!($function);
            #[inline]
            #[track_caller]
            fn run<O: $crate::Output<$t> + ?Sized>(
                a: $crate::Arg<$t>,
                b: $crate::Arg<$t>,
                y: &mut O,
            ) {
                fn compiled(operands: $crate::map::Operands2<$t>) {
                    operands.map::<$Kernel>();
                }
                compiled($crate::map::Operands2::new(stringify!($function), a, b, y));
            }
            #[track_caller]
            fn run_in_place_left(a: &mut [$t], b: $crate::Arg<$t>) {
                $crate::map::Operands2::in_place_left(stringify!($function), a, b).map::<$Kernel>();
            }
            #[track_caller]
            fn run_in_place_right(a: $crate::Arg<$t>, b: &mut [$t]) {
                $crate::map::Operands2::in_place_right(stringify!($function), a, b)
                    .map::<$Kernel>();
            }
            #[inline]
            #[track_caller]
            fn run_block<O: $crate::Output<$t> + ?Sized>(
                a: $crate::BlockArg<$t>,
                b: $crate::BlockArg<$t>,
                shape: $crate::Block,
                y: &mut O,
            ) {
                fn compiled(operands: $crate::map::Operands2<$t>) {
                    operands.map::<$Kernel>();
                }
                let name = stringify!($function);
                compiled($crate::map::Operands2::of_block(name, a, b, shape, y));
            }
            #[track_caller]
            fn run_block_in_place(
                arguments: [Option<$crate::BlockArg<$t>>; 2],
                shape: $crate::Block,
                y: &mut [$t],
            ) {
                let name = stringify!($function);
                $crate::map::Operands2::of_block_in_place(name, arguments, shape, y)
                    .map::<$Kernel>();
            }
        }
    };
    (@ternary $function:ident $Kernel:ident $t:ident) => {
        impl $crate::Ternary<$t> for $Kernel {
            const NAME: &'static str = stringify!($function);
            #[inline]
            #[track_caller]
            fn run<O: $crate::Output<$t> + ?Sized>(
                a: $crate::Arg<$t>,
                b: $crate::Arg<$t>,
                c: $crate::Arg<$t>,
                y: &mut O,
            ) {
                fn compiled(operands: $crate::map::Operands3<$t>) {
                    operands.map::<$Kernel>();
                }
                compiled($crate::map::Operands3::new(stringify!($function), [a, b, c], y));
            }
            #[track_caller]
            fn run_in_place(arguments: [Option<$crate::Arg<$t>>; 3], y: &mut [$t]) {
                $crate::map::Operands3::in_place(stringify!($function), arguments, y)
                    .map::<$Kernel>();
            }
        }
    };
}
pub(crate) use kernels;

#[cold]
#[inline(never)]
#[track_caller]
fn lengths_differ(name: &str, input: usize, output: usize) -> ! {
    panic!("{name}: an input has {input} elements, the output {output}");
}

/// Input and output of a one-argument kernel: `len` elements each, the same memory or apart.
pub(crate) struct Operands1<'a, E> {
    x: *const E,
    y: *mut E,
    len: usize,
    streams: bool,
    _fence: Option<Fence>,
    borrow: PhantomData<&'a mut E>,
}

impl<'a, E: Float> Operands1<'a, E> {
    #[inline]
    #[track_caller]
    pub fn new<O: Output<E> + ?Sized>(name: &str, x: &'a [E], y: &'a mut O) -> Self {
        let (streams, _fence) = streaming(y);
        let (y, len) = y.as_raw();
        if x.len() != len {
            lengths_differ(name, x.len(), len);
        }
        Operands1 { x: x.as_ptr(), y, len, streams, _fence, borrow: PhantomData }
    }

    pub fn in_place(x: &'a mut [E]) -> Self {
        let y = x.as_mut_ptr();
        Operands1 { x: y, y, len: x.len(), streams: false, _fence: None, borrow: PhantomData }
    }

    #[inline(always)]
    pub fn map<K: Map1<E>>(self) {
        E::enter(Run1::<E, K>(self, PhantomData));
    }
}

struct Run1<'a, E, K>(Operands1<'a, E>, PhantomData<K>);

impl<E: Float, K: Map1<E>> ElementTask<E> for Run1<'_, E, K> {
    type Home = K;
    type Output = ();
    #[inline(always)]
    fn run<S: Lanes<E>>(self, simd: S) {
        let Operands1 { x, y, len, streams, .. } = self.0;
        let in_flight = const { unroll::<E, S>([K::UNROLL, K::UNROLL_32]) };
        let mut i = 0;
        // What goes a vector at a time, up to here.
        let mut single = if streams { until_aligned::<E, S>(y, len) } else { 0 };
        loop {
            while i < single {
                let count = (single - i).min(S::LANES);
                // SAFETY: `x` and `y` are valid for `len` elements, as the operands' constructors made
                // sure, and `single` is at most `len`.
                unsafe {
                    let v = load_up_to(simd, x.add(i), count);
                    store_up_to(simd, y.add(i), count, K::apply(simd, v));
                }
                i += count;
            }
            if i == len {
                return;
            }
            // SAFETY: as above. Whole vectors were done since `y` was aligned, if it is streamed.
            i = unsafe {
                match in_flight {
                    4 => run1::<E, _, K>(Wide(Wide(simd)), x, y, i, len, streams),
                    2 => run1::<E, _, K>(Wide(simd), x, y, i, len, streams),
                    _ => i,
                }
            };
            single = if in_flight == 1 { len } else { len.min(i + in_flight * S::LANES) };
        }
    }
}

/// Vectors in flight, of those wanted with 16 and with 32 registers; scalar code leaves them to the
/// processor.
#[inline(always)]
const fn unroll<E: Float, S: Lanes<E>>(wanted: [usize; 2]) -> usize {
    if S::LANES == 1 { 1 } else { wanted[S::ISA.has_32_registers() as usize] }
}

/// Elements before the first that is aligned to a vector, at most `len`.
#[inline(always)]
fn until_aligned<E: Float, S: Lanes<E>>(y: *mut E, len: usize) -> usize {
    y.align_offset(size_of::<S::V>()).min(len)
}

/// Applies `K` to whole vectors from `start` on, up to one for which its short form does not hold;
/// returns where that begins.
///
/// # Safety
/// `x` is valid for reads and `y` for writes of `len` elements; they are equal or don't overlap. If it
/// is streamed, `y` is aligned to a register at `start`.
#[inline(always)]
unsafe fn run1<E: Float, S: Lanes<E>, K: Map1<E>>(
    simd: S,
    x: *const E,
    y: *mut E,
    start: usize,
    len: usize,
    streams: bool,
) -> usize {
    let mut i = start;
    while len - i >= S::LANES {
        // SAFETY: the vector ends within `len`; whole vectors are whole registers, and the first one
        // is aligned if it is streamed.
        unsafe {
            let v = simd.load(x.add(i));
            let result = match K::usual(simd, v) {
                Some((result, holds)) if holds.all() => result,
                Some(_) => break,
                None => K::apply(simd, v),
            };
            store(simd, y.add(i), result, streams);
        }
        i += S::LANES;
    }
    i
}

/// Stores a vector, past the caches or not.
///
/// # Safety
/// `dst` is valid for writes of a vector; if it is streamed, aligned to a register.
#[inline(always)]
unsafe fn store<E: Float, S: Lanes<E>>(simd: S, dst: *mut E, v: S::V, streams: bool) {
    // SAFETY: as the caller promised.
    unsafe { if streams { simd.store_streaming(dst, v) } else { simd.store(dst, v) } }
}

/// Loads a vector or, if that is less, `count` elements.
///
/// # Safety
/// `src` is valid for reads of `count` elements.
#[inline(always)]
pub(crate) unsafe fn load_up_to<E: Float, S: Lanes<E>>(
    simd: S,
    src: *const E,
    count: usize,
) -> S::V {
    // SAFETY: neither branch reads more than `count` elements.
    unsafe { if count >= S::LANES { simd.load(src) } else { simd.load_first(src, count) } }
}

/// Stores a vector or, if that is less, its first `count` elements.
///
/// # Safety
/// `dst` is valid for writes of `count` elements.
#[inline(always)]
pub(crate) unsafe fn store_up_to<E: Float, S: Lanes<E>>(
    simd: S,
    dst: *mut E,
    count: usize,
    v: S::V,
) {
    // SAFETY: neither branch writes more than `count` elements.
    unsafe { if count >= S::LANES { simd.store(dst, v) } else { simd.store_first(dst, count, v) } }
}

#[cfg(test)]
mod tests;

//! Drivers of element-wise kernels: the loop over a slice, and the table that gives each kernel its
//! public face.
//!
//! ```text
//! for each run of UNROLL whole vectors: load them all, apply the kernel to all at once, store them
//! for what is left, a vector at a time: the same, the last vector under a mask
//! ```
//!
//! | file | |
//! |---|---|
//! | `block.rs` | arguments, blocks of rows, functions of two arguments |
//! | `operands.rs`, `row_loop.rs` | what constructors have checked and the loop over rows; that over a row of two or three arguments |
//! | `unary.rs`, `binary.rs`, `ternary.rs` | what is done for a row of one, two, three arguments |
//! | `pair.rs`, `rows.rs` | functions with two results; functions of rows and values of each |
//!
//! 1. The tail goes through the kernel's vector code, so an element's bits depend on nothing but
//!    its value.
//! 2. A run is loaded before any of it is stored: in place is the same loop with `y == x`.
//! 3. Whole and masked vectors of the tail share one copy of the kernel: kernels are long.
//! 4. Runs of long rows begin at an aligned address where all slices lie alike. Results too large for the caches are
//!    stored past them where there are vectors; in place the lines are in the caches already.

mod binary;
mod block;
mod operands;
mod pair;
mod row_loop;
pub(crate) mod rows;
mod ternary;
mod unary;

use crate::simd::{Float, Lanes, Mask, Vector};
pub use block::{Arg, Binary, Block, BlockArg};
pub(crate) use operands::{Operands, Row, prefetch_row};
pub(crate) use pair::{MapPair, map_pair};
pub use ternary::{Map3, Ternary};
pub use unary::{Map1, Unary};

/// A kernel in two forms: the short one with the lanes it holds for, and one for the others, an
/// `#[inline(always)]` closure.
#[inline(always)]
pub(crate) fn usual_or<V: Vector>((usual, holds): (V, V::Mask), other: impl FnOnce() -> V) -> V {
    if holds.all() { usual } else { usual.select(holds, other()) }
}

/// A two-argument element-wise kernel on lanes.
pub trait Map2<E: Float> {
    /// As [`Map1::UNROLL`]. With less than 4 the kernel is a long one: all kinds of arguments share a loop, in which
    /// vectors take turns, operation by operation.
    const UNROLL: usize = 4;
    /// As [`Map1::UNROLL_32`].
    const UNROLL_32: usize = Self::UNROLL;
    /// The kernel. `#[inline(always)]` in every implementation.
    fn apply<S: Lanes<E>>(simd: S, a: S::V, b: S::V) -> S::V;
    /// As [`Map1::usual`].
    #[inline(always)]
    fn usual<S: Lanes<E>>(_simd: S, _a: S::V, _b: S::V) -> Option<(S::V, S::M)> {
        None
    }
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
        /// The name of every function of one argument and of two, derivatives too. `tests/accuracy.rs`
        /// compares them with references, `tests/gradients.rs` the derivatives. Functions of three arguments
        /// are compared in `tests/ternary.rs`, [`sincos`](crate::sincos) in `tests/trigonometric.rs`.
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
                let x = [$crate::Arg::Slice(x)];
                kernels!(@run $Kernel 1 $t: new(stringify!($function), x, y));
            }
            fn run_in_place(x: &mut [$t]) {
                kernels!(@run $Kernel 1 $t: in_place(stringify!($function), [None], x));
            }
            #[inline]
            #[track_caller]
            fn run_block<O: $crate::Output<$t> + ?Sized>(
                x: $crate::BlockArg<$t>,
                shape: $crate::Block,
                y: &mut O,
            ) {
                kernels!(@run $Kernel 1 $t: of_block(stringify!($function), [x], shape, y));
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
                kernels!(@run $Kernel 2 $t: new(stringify!($function), [a, b], y));
            }
            #[track_caller]
            fn run_in_place_left(a: &mut [$t], b: $crate::Arg<$t>) {
                let arguments = [None, Some(b)];
                kernels!(@run $Kernel 2 $t: in_place(stringify!($function), arguments, a));
            }
            #[track_caller]
            fn run_in_place_right(a: $crate::Arg<$t>, b: &mut [$t]) {
                let arguments = [Some(a), None];
                kernels!(@run $Kernel 2 $t: in_place(stringify!($function), arguments, b));
            }
            #[inline]
            #[track_caller]
            fn run_block<O: $crate::Output<$t> + ?Sized>(
                a: $crate::BlockArg<$t>,
                b: $crate::BlockArg<$t>,
                shape: $crate::Block,
                y: &mut O,
            ) {
                kernels!(@run $Kernel 2 $t: of_block(stringify!($function), [a, b], shape, y));
            }
            #[track_caller]
            fn run_block_in_place(
                arguments: [Option<$crate::BlockArg<$t>>; 2],
                shape: $crate::Block,
                y: &mut [$t],
            ) {
                let name = stringify!($function);
                kernels!(@run $Kernel 2 $t: of_block_in_place(name, arguments, shape, y));
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
                kernels!(@run $Kernel 3 $t: new(stringify!($function), [a, b, c], y));
            }
            #[track_caller]
            fn run_in_place(arguments: [Option<$crate::Arg<$t>>; 3], y: &mut [$t]) {
                kernels!(@run $Kernel 3 $t: in_place(stringify!($function), arguments, y));
            }
            #[inline]
            #[track_caller]
            fn run_block<O: $crate::Output<$t> + ?Sized>(
                a: $crate::BlockArg<$t>,
                b: $crate::BlockArg<$t>,
                c: $crate::BlockArg<$t>,
                shape: $crate::Block,
                y: &mut O,
            ) {
                kernels!(@run $Kernel 3 $t: of_block(stringify!($function), [a, b, c], shape, y));
            }
            #[track_caller]
            fn run_block_in_place(
                arguments: [Option<$crate::BlockArg<$t>>; 3],
                shape: $crate::Block,
                y: &mut [$t],
            ) {
                let name = stringify!($function);
                kernels!(@run $Kernel 3 $t: of_block_in_place(name, arguments, shape, y));
            }
        }
    };
    (@run $Kernel:ident $n:literal $t:ident: $made_by:ident($($argument:expr),*)) => {{
        fn compiled(operands: $crate::map::Operands<$t, $n>) {
            operands.map::<$Kernel>();
        }
        compiled($crate::map::Operands::$made_by($($argument),*));
    }};
}
pub(crate) use kernels;

#[cold]
#[inline(never)]
#[track_caller]
fn lengths_differ(name: &str, input: usize, output: usize) -> ! {
    panic!("{name}: an input has {input} elements, the output {output}");
}

/// Vectors in flight, of those wanted with 16 and with 32 registers; scalar code leaves them to the
/// processor.
#[inline(always)]
const fn unroll<E: Float, S: Lanes<E>>(wanted: [usize; 2]) -> usize {
    if S::LANES == 1 { 1 } else { wanted[S::ISA.has_32_registers() as usize] }
}

/// Elements from which on runs of vectors begin at an aligned address where all slices then do: large vectors
/// of the system's allocator begin 16 bytes after one, and loads and stores of 64 bytes there touch two lines
/// each. So 1024 to 2048 elements take .67 to .77 of the time of add and neg, and .98 to 1.06 where they begin at
/// one anyway (Zen 4, AVX-512); of 512 elements, up to 1.13.
pub const ALIGNED_FROM: usize = 1024;

/// Elements before the first that is aligned to a vector, at most `len`; none where alignment neither must
/// be (`streams`) nor pays. `alike` says whether the arguments are aligned where `y` is.
#[inline(always)]
fn until_aligned<E: Float, S: Lanes<E>>(
    y: *mut E,
    len: usize,
    streams: bool,
    alike: impl FnOnce() -> bool,
) -> usize {
    if !streams && (S::LANES == 1 || len < ALIGNED_FROM || !alike()) {
        return 0;
    }
    y.align_offset(size_of::<S::V>()).min(len)
}

/// Whether both addresses are as far from one that is aligned to a vector.
#[inline(always)]
fn lie_alike<E: Float, S: Lanes<E>>(x: *const E, y: *const E) -> bool {
    (x.addr() ^ y.addr()).is_multiple_of(size_of::<S::V>())
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
    // SAFETY: as the caller promised.
    unsafe { simd.load_up_to(src, count) }
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
    // SAFETY: as the caller promised.
    unsafe { simd.store_up_to(dst, count, v) }
}

#[cfg(test)]
mod tests;

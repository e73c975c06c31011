//! Work that is generic over the instruction set, and the trampolines that enter one: functions with the
//! features of a level, inside of which its tokens may be made.
//!
//! ```text
//! Entries::<T>::TABLE[isa](task)
//!    └─ enter_avx512(task)              #[target_feature]: from here on 512-bit code is legal
//!         └─ task.run::<V4>(token)      inlined: loop, kernel and intrinsics become one function
//! ```

use std::marker::PhantomData;
use std::mem::MaybeUninit;

#[cfg(target_arch = "aarch64")]
use std::arch::is_aarch64_feature_detected as is_detected;
#[cfg(target_arch = "x86_64")]
use std::arch::is_x86_feature_detected as is_detected;

use super::scalar::Scalar;
use super::{Float, Isa, Lanes, Simd};

/// Work over whole slices, generic over the instruction set that will run it.
///
/// `run` is `#[inline(always)]` in every implementation, as is all it calls with vectors, so that it is
/// compiled inside the trampoline with the level's features.
pub trait Task {
    /// Whether its frame is aligned for vectors that registers do not hold: not worth it for short calls whose
    /// vectors all fit in registers.
    const ALIGNS_FRAME: bool = true;
    /// The type in whose module the compiled code is filed: the kernel that a driver runs, else the
    /// task itself. Modules are compiled side by side.
    type Home;
    /// What comes back.
    type Output;
    /// Does the work on `S`.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// As [`Task`], for work that is generic over the element type: `E::enter(task)` runs it.
pub trait ElementTask<E: Float> {
    /// As [`Task::ALIGNS_FRAME`].
    const ALIGNS_FRAME: bool = true;
    /// As [`Task::Home`].
    type Home;
    /// What comes back.
    type Output;
    /// Does the work on `S`.
    fn run<S: Lanes<E>>(self, simd: S) -> Self::Output;
}

/// As [`ElementTask`], for work that also sums in `f64`: `E::enter_fold(task)` runs it.
pub trait FoldTask<E: Float> {
    /// As [`Task::Home`].
    type Home;
    /// What comes back.
    type Output;
    /// Does the work on `S`.
    fn run<S: Simd + Lanes<E>>(self, simd: S) -> Self::Output;
}

/// The entries of a task type.
pub(crate) struct Entries<T>(PhantomData<T>);

impl<T: Task> Entries<T> {
    /// The trampoline of each level, by `Isa as usize`; that of the portable level in the place of levels that
    /// the architecture lacks.
    pub const TABLE: [unsafe fn(T) -> T::Output; Isa::ALL.len()] = {
        let mut table: [unsafe fn(T) -> T::Output; Isa::ALL.len()] =
            [<T::Home as Trampolines>::enter_scalar::<T>; Isa::ALL.len()];
        #[cfg(target_arch = "x86_64")]
        {
            table[Isa::Avx2 as usize] = <T::Home as Trampolines>::enter_avx2::<T>;
            table[Isa::Avx512 as usize] = <T::Home as Trampolines>::enter_avx512::<T>;
        }
        #[cfg(target_arch = "aarch64")]
        {
            table[Isa::Neon as usize] = <T::Home as Trampolines>::enter_neon::<T>;
        }
        table
    };
}

/// Aligns the frame of the function that this is inlined into to a cache line. The compiler aligns a
/// frame for variables, of which this makes one, but not for vectors that registers do not hold, and
/// such a vector across two pages costs much: gelu took 1.37 times as long in one of 25 frames.
#[inline(always)]
fn align_frame() {
    #[repr(align(64))]
    struct Line(#[allow(dead_code, reason = "it is there to be aligned")] [u8; 64]);
    let mut line = MaybeUninit::<Line>::uninit();
    std::hint::black_box(&mut line);
}

/// The tokens of instruction sets, and of each the features, stated once: what is detected and what the
/// trampoline enables come from the same literals.
///
/// The body of a trampoline is a method of the task's home, any type at all: the compiler files a
/// method's instances in the module of the type it is called on, a free function's in the function's
/// module. All kernels in one module are one piece of work for one core.
macro_rules! trampolines {
    ($($arch:literal: $(
        $(#[$doc:meta])* $token:ident $name:ident [$($feature:tt)*];
    )*)*) => {
        $($(
            $(#[$doc])*
            #[cfg(target_arch = $arch)]
            #[derive(Clone, Copy)]
            pub struct $token(());

            #[cfg(target_arch = $arch)]
            impl $token {
                /// Whether this machine has the features.
                pub fn is_available() -> bool {
                    true $(&& is_detected!($feature))*
                }

                /// The token.
                ///
                /// # Safety
                /// It [is available](Self::is_available).
                #[inline(always)]
                pub unsafe fn new_unchecked() -> Self {
                    Self(())
                }
            }
        )*)*

        /// # Safety
        /// The machine has the features that a method's row in `trampolines!` lists.
        trait Trampolines {
            $($(
                #[cfg(target_arch = $arch)]
                unsafe fn $name<T: Task>(task: T) -> T::Output;
            )*)*
            unsafe fn enter_scalar<T: Task>(task: T) -> T::Output;
        }

        impl<Home> Trampolines for Home {
            $($(
                #[cfg(target_arch = $arch)]
                $(#[target_feature(enable = $feature)])*
                #[inline(never)]
                unsafe fn $name<T: Task>(task: T) -> T::Output {
                    if const { T::ALIGNS_FRAME } {
                        align_frame();
                    }
                    #[cfg(any(test, feature = "testing"))]
                    entered::record(<$token as super::Token>::ISA);
                    // SAFETY: the machine has what the token stands for, as the caller promises.
                    task.run(unsafe { <$token>::new_unchecked() })
                }
            )*)*

            #[inline(never)]
            unsafe fn enter_scalar<T: Task>(task: T) -> T::Output {
                #[cfg(any(test, feature = "testing"))]
                entered::record(Isa::Scalar);
                task.run(Scalar)
            }
        }

        $($(
            /// # Safety
            /// The machine has the features that its row in `trampolines!` lists.
            #[cfg(target_arch = $arch)]
            #[inline(always)]
            pub(crate) unsafe fn $name<T: Task>(_token: $token, task: T) -> T::Output {
                // SAFETY: as the caller promised.
                unsafe { <T::Home as Trampolines>::$name(task) }
            }
        )*)*
    };
}

trampolines! {
    "x86_64":
    /// AVX2, FMA and F16C.
    Avx2 enter_avx2 [
        "sse" "sse2" "fxsr" "sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "avx" "avx2" "bmi1" "bmi2"
        "fma" "lzcnt" "f16c"
    ];
    /// AVX-512 F, BW, CD, DQ and VL.
    Avx512 enter_avx512 [
        "sse" "sse2" "fxsr" "sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "avx" "avx2" "bmi1" "bmi2"
        "fma" "lzcnt" "avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl"
    ];
    "aarch64":
    /// Advanced SIMD.
    Neon enter_neon ["neon"];
}

/// The level that was entered last on this thread, which tests ask for.
#[cfg(any(test, feature = "testing"))]
pub(crate) mod entered {
    use super::Isa;
    use std::cell::Cell;

    thread_local! {
        static LAST: Cell<Option<Isa>> = const { Cell::new(None) };
    }

    pub(super) fn record(isa: Isa) {
        LAST.set(Some(isa));
    }

    /// The level; none after [`forget`].
    pub fn get() -> Option<Isa> {
        LAST.get()
    }

    /// Forgets which level was entered.
    pub fn forget() {
        LAST.set(None);
    }
}

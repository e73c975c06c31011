//! Work that is generic over the instruction set, and the trampolines that enter one: functions
//! with a level's features enabled, inside of which its tokens may be made.
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

/// Work over whole slices, generic over the instruction set that will run it: `run(task)` of
/// `dispatch.rs` chooses one.
///
/// `E` is the element type whose vectors the work uses. Work on several types, or on none, leaves it
/// out: every instruction set has vectors of `f32`.
pub trait Task<E: Float = f32> {
    /// Aligns the stack frame to 64 bytes so that spilled vectors never straddle a cache line. Off
    /// for tiny tasks that never spill.
    const ALIGNS_FRAME: bool = true;
    /// The type whose module the compiled code goes to: the kernel that a driver runs, or else the
    /// task itself. Modules are compiled in parallel.
    type Home;
    /// The result type.
    type Output;
    /// Does the work with the vectors of `S`. An implementation names the bound that it needs,
    /// `Simd` or `Lanes<E>`, and both where it also sums in `f64`.
    ///
    /// It is `#[inline(always)]`, and so is every function on vectors that it calls, so that all of
    /// it is compiled inside the trampoline with the level's features.
    fn run<S: Simd + Lanes<E>>(self, simd: S) -> Self::Output;
}

/// A token as pulp's of the same level, for kernels written in pulp's vocabulary.
pub trait IntoPulp {
    /// pulp's token.
    type Pulp: pulp::Simd;
    /// Returns pulp's token.
    #[allow(dead_code, reason = "called with the feature `pulp`")]
    fn into_pulp(self) -> Self::Pulp;
}

impl IntoPulp for Scalar {
    type Pulp = pulp::Scalar;

    #[inline(always)]
    fn into_pulp(self) -> pulp::Scalar {
        pulp::Scalar::new()
    }
}

/// The trampolines of a task type.
pub(crate) struct Entries<T>(PhantomData<T>);

impl<T: Task> Entries<T> {
    /// The trampoline of each level, indexed by `Isa as usize`; levels that the architecture lacks
    /// have the portable one.
    pub const TABLE: [unsafe fn(T) -> T::Output; Isa::ALL.len()] = {
        #[allow(unused_mut, reason = "some architectures have the portable level alone")]
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

/// Aligns the frame of the function that this is inlined into to a cache line. The compiler aligns
/// a frame for variables, of which this makes one, but not for spilled vectors, and one that
/// straddles two pages is costly: gelu took 1.37 times as long in one of 25 frames.
#[inline(always)]
#[allow(dead_code, reason = "the portable level aligns none")]
fn align_frame() {
    #[repr(align(64))]
    struct Line(#[allow(dead_code, reason = "only its alignment is used")] [u8; 64]);
    let mut line = MaybeUninit::<Line>::uninit();
    std::hint::black_box(&mut line);
}

/// Declares the tokens of instruction sets, each around pulp's token of its level, and the features
/// of each. pulp detects a level; the literals of the row, which the trampoline enables, are detected
/// too, because pulp's V3 lacks F16C, and so that what is enabled rests on no list of another crate.
///
/// A trampoline is a method of the task's home, which may be any type: the compiler puts a method's
/// instances into the module of the type it is called on, but a free function's into the function's
/// own module, and all kernels in one module would be compiled on one core.
macro_rules! trampolines {
    ($($arch:literal: $(
        $(#[$doc:meta])* $token:ident($Pulp:ty) $name:ident [$($feature:tt)*];
    )*)*) => {
        $($(
            $(#[$doc])*
            #[cfg(target_arch = $arch)]
            #[derive(Clone, Copy)]
            pub struct $token($Pulp);

            #[cfg(target_arch = $arch)]
            impl $token {
                /// True if this machine has the features.
                pub fn is_available() -> bool {
                    <$Pulp>::is_available() $(&& is_detected!($feature))*
                }

                /// Makes the token.
                ///
                /// # Safety
                /// It [is available](Self::is_available).
                #[inline(always)]
                pub unsafe fn new_unchecked() -> Self {
                    // SAFETY: a level is available only if pulp's token is.
                    Self(unsafe { <$Pulp>::new_unchecked() })
                }
            }

            #[cfg(target_arch = $arch)]
            impl IntoPulp for $token {
                type Pulp = $Pulp;

                #[inline(always)]
                fn into_pulp(self) -> $Pulp {
                    self.0
                }
            }
        )*)*

        /// Each token of this architecture: the `Debug` text of pulp's token if this machine has the level, and the
        /// features that the trampoline enables.
        #[cfg(test)]
        fn tokens() -> Vec<(Option<String>, Vec<&'static str>)> {
            let mut tokens = Vec::new();
            $($(
                #[cfg(target_arch = $arch)]
                tokens.push((
                    <$Pulp>::try_new().map(|token| format!("{token:?}")),
                    vec![$($feature),*],
                ));
            )*)*
            tokens
        }

        /// # Safety
        /// Every method requires that the machine has the features its row in `trampolines!` lists.
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
                    // SAFETY: the caller promises that the machine has the token's features.
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
            /// The machine must have the features that the token's row in `trampolines!` lists.
            #[cfg(target_arch = $arch)]
            #[inline(always)]
            pub(crate) unsafe fn $name<T: Task>(_token: $token, task: T) -> T::Output {
                // SAFETY: the caller promises that the machine has the features.
                unsafe { <T::Home as Trampolines>::$name(task) }
            }
        )*)*
    };
}

trampolines! {
    "x86_64":
    /// AVX2, FMA and F16C.
    Avx2(pulp::x86::V3) enter_avx2 [
        "sse" "sse2" "fxsr" "sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "avx" "avx2" "bmi1" "bmi2"
        "fma" "lzcnt" "f16c"
    ];
    /// AVX-512 F, BW, CD, DQ and VL.
    Avx512(pulp::x86::V4) enter_avx512 [
        "sse" "sse2" "fxsr" "sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "avx" "avx2" "bmi1" "bmi2"
        "fma" "lzcnt" "avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl"
    ];
    "aarch64":
    /// Advanced SIMD.
    Neon(pulp::aarch64::Neon) enter_neon ["neon"];
}

/// The level entered last on this thread, recorded for tests.
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

    /// Returns the level; `None` after [`forget`].
    pub fn get() -> Option<Isa> {
        LAST.get()
    }

    /// Forgets which level was entered.
    pub fn forget() {
        LAST.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If pulp asked for more features than the kernels use, machines without these would lose a level.
    #[test]
    fn pulps_tokens_need_no_feature_that_trampolines_do_not_enable() {
        for (printed, features) in tokens() {
            let Some(printed) = printed else {
                println!("skipped: this machine lacks the level of {features:?}");
                continue;
            };
            let fields = printed.split(['{', ',']).filter_map(|part| part.split_once(':'));
            let names: Vec<String> =
                fields.map(|(name, _)| name.trim().replace('_', ".")).collect();
            assert!(!names.is_empty(), "{printed}");
            for name in names {
                assert!(features.contains(&&*name), "{name} of {printed}");
            }
        }
    }

    #[test]
    fn tokens_take_no_space() {
        #[cfg(target_arch = "x86_64")]
        assert_eq!((size_of::<Avx2>(), size_of::<Avx512>()), (0, 0));
        #[cfg(target_arch = "aarch64")]
        assert_eq!(size_of::<Neon>(), 0);
    }
}

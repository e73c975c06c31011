//! Which instruction set runs, decided once; and the trampolines that enter it.
//!
//! [`isa`] detects on first use and remembers. The environment variable `SWATH_ISA` (`scalar`,
//! `avx2`, `avx512`, `neon`) overrides the choice; a level that the machine lacks is an error that
//! [`try_isa`] returns and [`isa`] panics with: silently running another level would make a
//! measurement or a test lie.
//!
//! ```text
//! exp(&x, &mut y)
//!    └─ run(task)                   one branch on the remembered level, for the whole slice
//!         └─ enter_avx512(token, task)      #[target_feature]: from here on 512-bit code is legal
//!              └─ task.run::<V4>(token)     inlined: loop, kernel and intrinsics become one function
//! ```

use std::ffi::OsString;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

#[cfg(target_arch = "aarch64")]
use pulp::aarch64::Neon;
#[cfg(target_arch = "x86_64")]
use pulp::x86::V4;

#[cfg(target_arch = "x86_64")]
use crate::simd::avx2::Avx2;
use crate::simd::scalar::Scalar;
use crate::simd::{Float, Lanes, Simd};

/// An instruction set level that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// Portable code, one lane a vector: for correctness, Miri and other CPUs.
    Scalar,
    /// x86-64 with AVX2, FMA and F16C: 256-bit vectors.
    Avx2,
    /// x86-64 with AVX-512 F, BW, CD, DQ, VL: 512-bit vectors.
    Avx512,
    /// AArch64 Advanced SIMD: 128-bit vectors.
    Neon,
}

impl Isa {
    /// Every level, best last.
    pub const ALL: [Isa; 4] = [Isa::Scalar, Isa::Neon, Isa::Avx2, Isa::Avx512];

    /// The name that `SWATH_ISA` takes.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
            Isa::Neon => "neon",
        }
    }

    /// Whether kernels have 32 vector registers, or 16 (in scalar code for numbers).
    pub(crate) const fn has_32_registers(self) -> bool {
        matches!(self, Isa::Avx512 | Isa::Neon)
    }

    /// True if this machine can run it.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Avx2::try_new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => V4::try_new().is_some(),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => Neon::try_new().is_some(),
            #[allow(unreachable_patterns, reason = "each architecture lacks other levels")]
            _ => false,
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// `SWATH_ISA` names a level that does not exist or that this machine lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsaError(String);

impl fmt::Display for IsaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for IsaError {}

fn best() -> Isa {
    Isa::ALL.into_iter().rev().find(|isa| isa.is_available()).unwrap_or(Isa::Scalar)
}

/// The level that the value of `SWATH_ISA` asks for; unset and empty ask for the best.
fn choose(wanted: Option<OsString>) -> Result<Isa, IsaError> {
    let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else {
        return Ok(best());
    };
    let wanted = wanted.to_string_lossy().to_ascii_lowercase();
    let Some(isa) = Isa::ALL.into_iter().find(|isa| isa.name() == wanted) else {
        return Err(IsaError(format!(
            "SWATH_ISA={wanted}: no such instruction set; one of scalar, avx2, avx512, neon"
        )));
    };
    isa.is_available().then_some(isa).ok_or_else(|| {
        let have = Isa::ALL.into_iter().filter(|isa| isa.is_available());
        let have = have.map(Isa::name).collect::<Vec<_>>().join(", ");
        IsaError(format!("SWATH_ISA={wanted}: this machine lacks it; it has {have}"))
    })
}

fn chosen() -> &'static Result<Isa, IsaError> {
    static LEVEL: OnceLock<Result<Isa, IsaError>> = OnceLock::new();
    LEVEL.get_or_init(|| choose(std::env::var_os("SWATH_ISA")))
}

/// The instruction set that kernels run on, or why `SWATH_ISA` cannot be followed.
///
/// # Errors
/// `SWATH_ISA` names an unknown level or one that this machine lacks.
pub fn try_isa() -> Result<Isa, IsaError> {
    chosen().clone()
}

/// The instruction set that kernels run on.
///
/// ```
/// println!("kernels run on {}", swath_kernels::isa());
/// ```
///
/// # Panics
/// With the text of [`try_isa`]'s error if `SWATH_ISA` cannot be followed.
pub fn isa() -> Isa {
    #[cfg(any(test, feature = "testing"))]
    if let Some(isa) = forced::get() {
        return isa;
    }
    match chosen() {
        Ok(isa) => *isa,
        Err(error) => panic!("{error}"),
    }
}

/// Prefetches the cache line of an address, which need not be valid, where every level of the
/// architecture has the instruction.
#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is a part of x86-64, and a prefetch reads nothing.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Work over whole slices, generic over the instruction set that will run it.
///
/// `run` is `#[inline(always)]` in every implementation, as is all it calls with vectors, so that it is
/// compiled inside the trampoline with the level's features.
pub trait Task {
    /// Whether its frame is aligned for vectors that registers do not hold: worth it for all but
    /// those that hold everything in registers and are called for little work.
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

/// Runs a task on the chosen level.
#[inline]
pub(crate) fn run<T: Task>(task: T) -> T::Output {
    // SAFETY: `isa` returns a level that was detected on this machine.
    unsafe { Entries::<T>::TABLE[isa() as usize](task) }
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

/// The features each trampoline enables, stated once: the trampoline's attribute and the list that
/// a test compares with what the token's type detects come from the same literals.
///
/// The body of a trampoline is a method of the task's home, any type at all: the compiler files a
/// method's instances in the module of the type it is called on, a free function's in the function's
/// module. All kernels in one module are one piece of work for one core.
macro_rules! trampolines {
    ($($arch:literal: $(
        $name:ident($token:ty, proved by $proof:ty) = [$($feature:tt)*];
    )*)*) => {
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
                    forced::record(<$token as crate::simd::Token>::ISA);
                    // SAFETY: the machine has what the token stands for, as the caller promises.
                    task.run(unsafe { <$token>::new_unchecked() })
                }
            )*)*

            #[inline(never)]
            unsafe fn enter_scalar<T: Task>(task: T) -> T::Output {
                #[cfg(any(test, feature = "testing"))]
                forced::record(Isa::Scalar);
                task.run(Scalar::new())
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

        /// Of each trampoline: the type whose detection allows it, whether this machine has what
        /// that type detects, and the features enabled with whether this machine has them.
        #[cfg(test)]
        fn trampolines() -> Vec<(&'static str, bool, Vec<(&'static str, bool)>)> {
            let mut list = Vec::new();
            $(
                #[cfg(target_arch = $arch)]
                list.extend([$((
                    stringify!($proof),
                    <$proof>::try_new().is_some(),
                    vec![$(($feature, detected!($feature))),*],
                )),*]);
            )*
            list
        }
    };
}

#[cfg(all(test, target_arch = "aarch64"))]
use std::arch::is_aarch64_feature_detected as detected;
#[cfg(all(test, target_arch = "x86_64"))]
use std::arch::is_x86_feature_detected as detected;

trampolines! {
    "x86_64":
    enter_avx2(Avx2, proved by Avx2) = [
        "sse" "sse2" "fxsr" "sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "avx" "avx2" "bmi1" "bmi2"
        "fma" "lzcnt" "f16c"
    ];
    enter_avx512(V4, proved by V4) = [
        "sse" "sse2" "fxsr" "sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "avx" "avx2" "bmi1" "bmi2"
        "fma" "lzcnt" "avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl"
    ];
    "aarch64":
    enter_neon(Neon, proved by Neon) = ["neon"];
}

/// Lets a test choose the level for one closure on one thread, and see which level ran.
#[cfg(any(test, feature = "testing"))]
mod forced {
    use super::Isa;
    use std::cell::Cell;

    thread_local! {
        static FORCED: Cell<Option<Isa>> = const { Cell::new(None) };
        static LAST: Cell<Option<Isa>> = const { Cell::new(None) };
    }

    pub(super) fn get() -> Option<Isa> {
        FORCED.get()
    }

    pub(super) fn record(isa: Isa) {
        LAST.set(Some(isa));
    }

    /// The instruction sets that tests force, from the slowest: this machine's, or those of them that
    /// `SWATH_TEST_ISA` names, on emulators.
    ///
    /// # Panics
    /// If it names another: tests would pass without having run on it.
    pub fn levels() -> Vec<Isa> {
        let available = Isa::ALL.into_iter().filter(|isa| isa.is_available());
        let Ok(names) = std::env::var("SWATH_TEST_ISA") else { return available.collect() };
        let is_named = |isa: &Isa| names.split(',').any(|name| name == isa.name());
        let levels: Vec<Isa> = available.filter(is_named).collect();
        let all = levels.len() == names.split(',').count();
        assert!(all, "SWATH_TEST_ISA={names}: of these this machine has {levels:?}");
        levels
    }

    /// Runs `f` with kernels forced to `isa` on this thread; `None` if it is none of [`levels`].
    ///
    /// # Panics
    /// If no kernel entered the level while `f` ran: then the test proved nothing.
    pub fn with_isa<R>(isa: Isa, f: impl FnOnce() -> R) -> Option<R> {
        struct Restore(Option<Isa>);
        impl Drop for Restore {
            fn drop(&mut self) {
                FORCED.set(self.0);
            }
        }
        levels().contains(&isa).then_some(())?;
        let _restore = Restore(FORCED.replace(Some(isa)));
        LAST.set(None);
        let result = f();
        assert_eq!(LAST.get(), Some(isa), "no kernel ran on {isa}");
        Some(result)
    }
}

#[cfg(any(test, feature = "testing"))]
pub use forced::{levels, with_isa};

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports the level that it was compiled for.
    struct WhichIsa;
    impl Task for WhichIsa {
        type Home = Self;
        type Output = Isa;
        #[inline(always)]
        fn run<S: Simd>(self, _simd: S) -> Isa {
            S::ISA
        }
    }

    #[test]
    fn every_level_of_this_machine_runs_when_forced() {
        for isa in Isa::ALL {
            match with_isa(isa, || (run(WhichIsa), super::isa())) {
                Some(ran) => assert_eq!(ran, (isa, isa)),
                None => println!("skipped: this machine lacks {isa}"),
            }
        }
        assert!(with_isa(Isa::Scalar, || run(WhichIsa)).is_some());
    }

    #[test]
    #[should_panic(expected = "no kernel ran on scalar")]
    fn forcing_a_level_that_nothing_uses_panics() {
        with_isa(Isa::Scalar, || ());
    }

    #[test]
    fn the_environment_variable_chooses_or_explains() {
        let choose = |text: &str| choose(Some(text.into()));
        let best = Isa::ALL.into_iter().rfind(|isa| isa.is_available()).unwrap();
        assert_eq!(super::choose(None), Ok(best));
        assert_eq!(choose(""), Ok(best));
        assert_eq!(choose("SCALAR"), Ok(Isa::Scalar));
        for isa in Isa::ALL {
            match choose(isa.name()) {
                Ok(chosen) => assert_eq!(chosen, isa),
                Err(error) => {
                    assert!(!isa.is_available());
                    let text = error.to_string();
                    assert!(text.contains(isa.name()) && text.contains("it has scalar"), "{text}");
                }
            }
        }
        let text = choose("avx3").unwrap_err().to_string();
        assert!(text.contains("SWATH_ISA=avx3") && text.contains("avx512, neon"), "{text}");
    }

    // What the documentation of pulp's types says that they detect, and what our own asks for besides.
    const V3: &[&str] = &[
        "sse", "sse2", "fxsr", "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "avx", "avx2",
        "bmi1", "bmi2", "fma", "lzcnt",
    ];
    const V4: &[&str] = &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"];
    const DETECTED_BY: [(&str, &[&[&str]]); 3] =
        [("Avx2", &[V3, &["f16c"]]), ("V4", &[V3, V4]), ("Neon", &[&["neon"]])];

    #[test]
    fn trampolines_enable_nothing_that_their_token_does_not_detect() {
        for (token, has_token, features) in trampolines() {
            let (_, detected) = DETECTED_BY.iter().find(|(name, _)| *name == token).unwrap();
            for (feature, has_feature) in features {
                assert!(detected.concat().contains(&feature), "{token} does not detect {feature}");
                assert!(has_feature || !has_token, "{token} was made without {feature}");
            }
        }
    }
}

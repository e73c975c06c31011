//! Chooses the instruction set that kernels run on, once.
//!
//! [`isa`] detects on first use and caches the result. The environment variable `SWATH_ISA`
//! (`scalar`, `avx2`, `avx512`, `neon`) overrides the choice. If the machine lacks that level,
//! [`try_isa`] returns an error and [`isa`] panics: silently running another level would falsify
//! measurements and tests.
//!
//! `run(task)` runs a task on the chosen level.

use std::ffi::OsString;
use std::fmt;
use std::sync::OnceLock;

pub use crate::simd::Isa;
use crate::simd::{Float, Task};

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

/// The level that the value of `SWATH_ISA` asks for; the best one if it is unset or empty.
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

/// Returns the instruction set that kernels run on, or why `SWATH_ISA` cannot be followed.
///
/// # Errors
/// `SWATH_ISA` names an unknown level or one that this machine lacks.
pub fn try_isa() -> Result<Isa, IsaError> {
    chosen().clone()
}

/// Returns the instruction set that kernels run on.
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

/// Runs a task on the chosen level: one table lookup for the whole slice.
#[inline(always)]
pub(crate) fn run<E: Float, T: Task<E>>(task: T) -> T::Output {
    // SAFETY: `isa` returns a level that was detected on this machine.
    unsafe { E::enter_on(isa(), task) }
}

/// Lets a test choose the level for one closure on one thread, and check which level ran.
#[cfg(any(test, feature = "testing"))]
mod forced {
    use super::Isa;
    use crate::simd::entered;
    use std::cell::Cell;

    thread_local! {
        static FORCED: Cell<Option<Isa>> = const { Cell::new(None) };
    }

    pub(super) fn get() -> Option<Isa> {
        FORCED.get()
    }

    /// The instruction sets that tests force, slowest first: all of this machine's, or those that
    /// `SWATH_TEST_ISA` names (for emulators).
    ///
    /// # Panics
    /// If it names one that this machine lacks, because tests would pass without having run on it.
    pub fn levels() -> Vec<Isa> {
        let available = Isa::ALL.into_iter().filter(|isa| isa.is_available());
        let Ok(names) = std::env::var("SWATH_TEST_ISA") else { return available.collect() };
        let is_named = |isa: &Isa| names.split(',').any(|name| name == isa.name());
        let levels: Vec<Isa> = available.filter(is_named).collect();
        let all = levels.len() == names.split(',').count();
        assert!(all, "SWATH_TEST_ISA={names}: of these this machine has {levels:?}");
        levels
    }

    /// Runs `f` with kernels forced to `isa` on this thread; returns `None` if `isa` is not one of
    /// [`levels`].
    ///
    /// # Panics
    /// If no kernel entered the level while `f` ran, because the test would then prove nothing.
    pub fn with_isa<R>(isa: Isa, f: impl FnOnce() -> R) -> Option<R> {
        struct Restore(Option<Isa>);
        impl Drop for Restore {
            fn drop(&mut self) {
                FORCED.set(self.0);
            }
        }
        levels().contains(&isa).then_some(())?;
        let _restore = Restore(FORCED.replace(Some(isa)));
        entered::forget();
        let result = f();
        assert_eq!(entered::get(), Some(isa), "no kernel ran on {isa}");
        Some(result)
    }
}

#[cfg(any(test, feature = "testing"))]
pub use forced::{levels, with_isa};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Simd;

    /// Returns the level that it was compiled for.
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
    fn forced_levels_run_if_available() {
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
    fn forcing_a_level_that_no_kernel_enters_panics() {
        with_isa(Isa::Scalar, || ());
    }

    #[test]
    fn swath_isa_selects_a_level_or_explains_why_not() {
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
}

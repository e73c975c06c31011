//! A BLAS library as swath calls it: its products, and the control of its threads.

use std::any::Any;
use std::ffi::c_int;
use std::io::Write;
use std::sync::OnceLock;

use super::call::Failure;
use super::vendor;
use crate::blas::BlasInfo;

/// Numbers of the CBLAS header, whose enumerations are integers.
pub(super) const ROW_MAJOR: c_int = 101;
pub(super) const NO_TRANSPOSE: c_int = 111;
pub(super) const TRANSPOSE: c_int = 112;

/// `cblas_sgemm`, `cblas_dgemm`: the layout, the transposes, the extents, then A, B and C with their leading dimensions.
#[rustfmt::skip]
pub(super) type Gemm<E> = unsafe extern "C" fn(
    c_int, c_int, c_int, c_int, c_int, c_int,
    E, *const E, c_int, *const E, c_int, E, *mut E, c_int,
);

/// `cblas_sgemv`, `cblas_dgemv`: the layout, the transpose, the extents, then the matrix, x and y with their steps.
#[rustfmt::skip]
pub(super) type Gemv<E> = unsafe extern "C" fn(
    c_int, c_int, c_int, c_int,
    E, *const E, c_int, *const E, c_int, E, *mut E, c_int,
);

/// `cblas_sgemm_batch`, `cblas_dgemm_batch` of MKL, BLIS and OpenBLAS (from 0.3.27): groups of
/// products that share all arguments but their operands' addresses.
#[rustfmt::skip]
pub(super) type GemmBatch<E> = unsafe extern "C" fn(
    c_int, *const c_int, *const c_int, *const c_int, *const c_int, *const c_int,
    *const E, *const *const E, *const c_int, *const *const E, *const c_int,
    *const E, *const *mut E, *const c_int, c_int, *const c_int,
);

/// `cblas_sdot`, `cblas_ddot` as a library with 64-bit integers declares them. One with 32-bit
/// integers takes the lower halves of the same registers.
pub(super) type WideDot<E> = unsafe extern "C" fn(i64, *const E, i64, *const E, i64) -> E;

/// Functions of a library for one element type.
#[derive(Clone, Copy)]
pub(super) struct Functions<E> {
    pub gemm: Gemm<E>,
    pub gemv: Gemv<E>,
    /// Called on x86-64 and AArch64 alone, see [`self_test`](super::self_test).
    pub dot: WideDot<E>,
    /// Not every library has it.
    pub gemm_batch: Option<GemmBatch<E>>,
}

/// The products of a library.
#[derive(Clone, Copy)]
pub(super) struct Products {
    pub f32: Functions<f32>,
    pub f64: Functions<f64>,
}

/// Where functions are looked up by name.
pub(super) trait Symbols {
    /// The function of this name.
    ///
    /// # Safety
    /// `T` is a pointer of the symbol's type.
    unsafe fn find<T: Copy>(&self, name: &str) -> Option<T>;
}

impl Products {
    /// The products among these symbols; `None` if one is missing.
    pub fn find(symbols: &impl Symbols) -> Option<Products> {
        // SAFETY: the types of the letters.
        unsafe { Some(Products { f32: functions(symbols, 's')?, f64: functions(symbols, 'd')? }) }
    }

    /// The functions for `E`; none for types other than `f32` and `f64`.
    pub fn of<E: 'static>(&self) -> Option<&Functions<E>> {
        let (f32, f64): (&dyn Any, &dyn Any) = (&self.f32, &self.f64);
        f32.downcast_ref().or_else(|| f64.downcast_ref())
    }
}

/// # Safety
/// `E` is the type that BLAS calls `letter`.
unsafe fn functions<E>(symbols: &impl Symbols, letter: char) -> Option<Functions<E>> {
    let name = |function: &str| format!("cblas_{letter}{function}");
    // SAFETY: each with the type of the CBLAS header.
    unsafe {
        Some(Functions {
            gemm: symbols.find(&name("gemm"))?,
            gemv: symbols.find(&name("gemv"))?,
            dot: symbols.find(&name("dot"))?,
            gemm_batch: symbols.find(&name("gemm_batch")),
        })
    }
}

pub(super) type GetThreads = unsafe extern "C" fn() -> c_int;

/// The control of a library's threads: how calls are kept to the thread that makes them.
pub(super) enum ThreadControl {
    /// The library offers none that swath knows.
    Unknown,
    /// A number for the calling thread, set around each call by a function that returns the number before.
    Swapped { get: GetThreads, set: unsafe extern "C" fn(c_int) -> c_int },
    /// A number or a mode of the calling thread, set around each call.
    Around { get: GetThreads, set: unsafe extern "C" fn(c_int) },
    /// A number for the whole process, which stays at 1: other threads may be in a call when this one's ends.
    Kept { get: GetThreads, set_one: Box<dyn Fn() + Send + Sync> },
}

impl ThreadControl {
    /// Runs `calls`, during which calls from this thread use this thread alone.
    pub fn on_one_thread<T>(&self, calls: impl FnOnce() -> T) -> T {
        // SAFETY: the library's own functions, whose arguments are numbers of threads or modes.
        unsafe {
            match *self {
                ThreadControl::Unknown => calls(),
                ThreadControl::Swapped { set, .. } => {
                    let before = set(1);
                    let result = calls();
                    set(before);
                    result
                }
                ThreadControl::Around { get, set } => {
                    let before = get();
                    set(1);
                    let result = calls();
                    set(before);
                    result
                }
                ThreadControl::Kept { get, ref set_one } => {
                    if get() != 1 {
                        set_one();
                    }
                    calls()
                }
            }
        }
    }

    /// Number of threads that a call uses: the number that the library's calls follow, read where swath would
    /// make one. 1 is assumed for a library without a control.
    pub fn count(&self) -> usize {
        use ThreadControl::*;
        let (Swapped { get, .. } | Around { get, .. } | Kept { get, .. }) = *self else { return 1 };
        // SAFETY: the library's own function without arguments.
        self.on_one_thread(|| usize::try_from(unsafe { get() }).unwrap_or(1))
    }
}

/// A BLAS library that may compute products.
pub(super) struct Provider {
    pub products: Products,
    pub threads: ThreadControl,
    /// What is told of it, but for its threads.
    pub about: BlasInfo,
    /// Tiles that a product is cut into at most: the cores that the process may use, however many
    /// threads swath has.
    pub tiles: usize,
    /// Why it is called no more.
    pub failure: OnceLock<String>,
}

impl Provider {
    /// The library that `feature` chose, with these products. What else it offers is found among `symbols`.
    pub fn new(feature: &'static str, symbols: &impl Symbols, products: Products) -> Provider {
        let (threads, about) = vendor::identify(feature, symbols);
        let tiles = std::thread::available_parallelism().map_or(1, usize::from);
        Provider { products, threads, about, tiles, failure: OnceLock::new() }
    }

    /// What is told of it.
    pub fn info(&self) -> BlasInfo {
        let warning = joined(self.failure.get().into_iter().chain(&self.about.warning));
        BlasInfo { threads: self.threads.count(), warning, ..self.about.clone() }
    }

    /// True if a product was computed. A library that did not write its result is not called again.
    pub fn has_done(&self, result: Result<(), Failure>) -> bool {
        if result == Err(Failure::NotWritten) {
            let text =
                "returned without writing a product; the embedded product is used from now on";
            self.failure.get_or_init(|| told(format!("{} {text}", self.about.library)));
        }
        result.is_ok()
    }
}

/// Warnings as one text, if there are any.
pub(super) fn joined(warnings: impl Iterator<Item = impl AsRef<str>>) -> Option<String> {
    warnings.map(|it| it.as_ref().to_owned()).reduce(|all, next| format!("{all}; {next}"))
}

/// A line that has been written to the standard error stream.
pub(super) fn told(line: String) -> String {
    // Where it cannot be written, nobody reads it; that is no reason to end a product.
    let _ = writeln!(std::io::stderr(), "swath: {line}");
    line
}

/// What computes the products of this process.
#[allow(clippy::large_enum_variant, reason = "there is one in a process")]
pub(super) enum Found {
    Library(Provider),
    /// The embedded product, and why there is no library, if the build has a provider.
    Embedded(Option<String>),
    /// The library that the user named cannot be used, for this reason.
    Error(String),
}

impl Found {
    /// What was found by the search, which the first call makes.
    pub fn get() -> &'static Found {
        #[cfg(test)]
        if let Some(found) = super::mock::current() {
            return found;
        }
        #[cfg(blas)]
        return super::open::found();
        #[cfg(not(blas))]
        &Found::Embedded(None)
    }
}

/// Who computes products in this process.
pub(crate) fn info() -> BlasInfo {
    match Found::get() {
        Found::Library(provider) => provider.info(),
        Found::Embedded(reason) => BlasInfo::embedded(reason.clone()),
        Found::Error(reason) => {
            BlasInfo::embedded(Some(format!("{reason}; every product is an error")))
        }
    }
}

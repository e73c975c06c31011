//! A BLAS library as swath calls it: its products, and the control of its threads.

use std::any::Any;
use std::ffi::c_int;
use std::io::Write;
use std::sync::OnceLock;

use cblas_sys::{CBLAS_LAYOUT, CBLAS_TRANSPOSE};

use super::call::Failure;
use super::vendor;
use crate::blas::BlasInfo;

/// The declarations of `cblas_sgemm` and `cblas_dgemm`, which [`declared`] compares it with: layout, transposes,
/// m, n, k, then alpha, A, lda, B, ldb, beta, C, ldc.
#[rustfmt::skip]
pub(super) type Gemm<E> = unsafe extern "C" fn(
    CBLAS_LAYOUT, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, c_int, c_int, c_int,
    E, *const E, c_int, *const E, c_int, E, *mut E, c_int,
);

/// The declarations of `cblas_sgemv` and `cblas_dgemv`, as above: layout, transpose, m, n, then alpha, A, lda, x,
/// incx, beta, y, incy.
#[rustfmt::skip]
pub(super) type Gemv<E> = unsafe extern "C" fn(
    CBLAS_LAYOUT, CBLAS_TRANSPOSE, c_int, c_int,
    E, *const E, c_int, *const E, c_int, E, *mut E, c_int,
);

/// The declarations of `cblas_sdot` and `cblas_ddot`.
pub(super) type Dot<E> = unsafe extern "C" fn(c_int, *const E, c_int, *const E, c_int) -> E;

/// [`Dot`] as declared by a library with 64-bit integers. A library with 32-bit integers reads the lower halves
/// of the same registers.
pub(super) type WideDot<E> = unsafe extern "C" fn(i64, *const E, i64, *const E, i64) -> E;

/// Functions of a library for one element type.
#[derive(Clone, Copy)]
pub(super) struct Functions<E> {
    pub gemm: Gemm<E>,
    pub gemv: Gemv<E>,
    /// Called only on x86-64 and AArch64, see [`self_test`](super::self_test).
    pub dot: WideDot<E>,
}

/// Functions of a library for both element types.
#[derive(Clone, Copy)]
pub(super) struct Products {
    pub f32: Functions<f32>,
    pub f64: Functions<f64>,
}

/// A source of functions by name.
pub(super) trait Symbols {
    /// Looks up the function of this name.
    ///
    /// # Safety
    /// `T` is a pointer type that matches the symbol.
    unsafe fn find<T: Copy>(&self, name: &str) -> Option<T>;
}

/// Looks up the functions of an element type under the names of their declarations.
macro_rules! functions {
    ($symbols:ident, $E:ident: $gemm:ident $gemv:ident $dot:ident) => {{
        // SAFETY: each name is that of the declaration beside it.
        unsafe {
            let dot: Dot<$E> = declared($symbols, stringify!($dot), || cblas_sys::$dot as Dot<$E>)?;
            Functions {
                gemm: declared($symbols, stringify!($gemm), || cblas_sys::$gemm as Gemm<$E>)?,
                gemv: declared($symbols, stringify!($gemv), || cblas_sys::$gemv as Gemv<$E>)?,
                // SAFETY: a pointer to a function of either type; see `WideDot` for its calls.
                dot: std::mem::transmute::<Dot<$E>, WideDot<$E>>(dot),
            }
        }
    }};
}

impl Products {
    /// Looks up all products; `None` if one is missing.
    pub fn find(symbols: &impl Symbols) -> Option<Products> {
        let f32 = functions!(symbols, f32: cblas_sgemm cblas_sgemv cblas_sdot);
        let f64 = functions!(symbols, f64: cblas_dgemm cblas_dgemv cblas_ddot);
        Some(Products { f32, f64 })
    }

    /// Functions for `E`; `None` for types other than `f32` and `f64`.
    pub fn of<E: 'static>(&self) -> Option<&Functions<E>> {
        let (f32, f64): (&dyn Any, &dyn Any) = (&self.f32, &self.f64);
        f32.downcast_ref().or_else(|| f64.downcast_ref())
    }
}

/// Looks up a function that cblas-sys declares, as a pointer of type `F`, to which `declaration` converts it: the
/// types must be equal.
///
/// The closure is never called and never made a function pointer, so no code is generated for it, optimised or
/// not, and the linker sees no reference to a library that may not be linked.
///
/// # Safety
/// `name` is that of the declaration.
unsafe fn declared<F: Copy>(
    symbols: &impl Symbols,
    name: &str,
    _declaration: impl FnOnce() -> F,
) -> Option<F> {
    // SAFETY: the symbol has the type that cblas-sys, which follows the CBLAS header, declares for this name.
    unsafe { symbols.find(name) }
}

pub(super) type GetThreads = unsafe extern "C" fn() -> c_int;

/// Control of a library's threads, which limits calls to the calling thread.
pub(super) enum ThreadControl {
    /// The library has no control known to swath.
    Unknown,
    /// A number per calling thread, set around each call by a function that returns the previous number.
    Swapped { get: GetThreads, set: unsafe extern "C" fn(c_int) -> c_int },
    /// A number or a mode per calling thread, set around each call.
    Around { get: GetThreads, set: unsafe extern "C" fn(c_int) },
    /// A number for the whole process. It stays at 1, because other threads may be inside calls.
    Kept { get: GetThreads, set_one: Box<dyn Fn() + Send + Sync> },
}

impl ThreadControl {
    /// Runs `calls`, whose library calls use this thread alone.
    pub fn on_one_thread<T>(&self, calls: impl FnOnce() -> T) -> T {
        // SAFETY: these functions of the library take a number of threads or a mode.
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

    /// Number of threads of a call, as reported by the library while limited to one; 1 for a library without
    /// a control.
    pub fn count(&self) -> usize {
        use ThreadControl::*;
        let (Swapped { get, .. } | Around { get, .. } | Kept { get, .. }) = *self else { return 1 };
        // SAFETY: this function of the library takes no arguments.
        self.on_one_thread(|| usize::try_from(unsafe { get() }).unwrap_or(1))
    }
}

/// A BLAS library.
pub(super) struct Provider {
    pub products: Products,
    pub threads: ThreadControl,
    /// Description of the library, without its number of threads.
    pub about: BlasInfo,
    /// Maximum number of tiles of a product: the number of cores available to the process, whatever swath's
    /// number of threads.
    pub tiles: usize,
    /// Reason why the library is not called any more.
    pub failure: OnceLock<String>,
}

impl Provider {
    /// The library selected by `feature`, with these products. Its other functions are looked up in `symbols`.
    pub fn new(feature: &'static str, symbols: &impl Symbols, products: Products) -> Provider {
        let (threads, about) = vendor::identify(feature, symbols);
        let tiles = std::thread::available_parallelism().map_or(1, usize::from);
        Provider { products, threads, about, tiles, failure: OnceLock::new() }
    }

    /// Description of the library.
    pub fn info(&self) -> BlasInfo {
        let warning = joined(self.failure.get().into_iter().chain(&self.about.warning));
        BlasInfo { threads: self.threads.count(), warning, ..self.about.clone() }
    }

    /// True if a product was computed. A library that did not write its result is not called again.
    pub fn is_done(&self, result: Result<(), Failure>) -> bool {
        if result == Err(Failure::NotWritten) {
            let text =
                "returned without writing a product; the embedded product is used from now on";
            self.failure.get_or_init(|| report(format!("{} {text}", self.about.library)));
        }
        result.is_ok()
    }
}

/// Joins warnings into one text; `None` if there are none.
pub(super) fn joined(warnings: impl Iterator<Item = impl AsRef<str>>) -> Option<String> {
    warnings.map(|it| it.as_ref().to_owned()).reduce(|all, next| format!("{all}; {next}"))
}

/// Writes a line to the standard error stream and returns it.
pub(super) fn report(line: String) -> String {
    // A failed write must not fail a product.
    let _ = writeln!(std::io::stderr(), "swath: {line}");
    line
}

/// Result of the search for a library.
#[allow(clippy::large_enum_variant, reason = "there is one in a process")]
pub(super) enum Found {
    Library(Provider),
    /// No library; the reason, if the build has a provider.
    Embedded(Option<String>),
    /// The library selected by the user is not usable, for this reason.
    Error(String),
}

impl Found {
    /// Returns the result of the search, which the first call makes.
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

/// Returns the provider of products in this process.
pub(crate) fn info() -> BlasInfo {
    match Found::get() {
        Found::Library(provider) => provider.info(),
        Found::Embedded(reason) => BlasInfo::embedded(reason.clone()),
        Found::Error(reason) => {
            BlasInfo::embedded(Some(format!("{reason}; every product is an error")))
        }
    }
}

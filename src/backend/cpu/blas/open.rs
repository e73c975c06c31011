//! The library of this process: linked by the build, or opened at run time. It is found, identified and
//! tested before the first product.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library as Handle;

use super::provider::{Found, Products, Provider, Symbols, report};
use super::self_test;

/// The feature that `build.rs` chose.
const FEATURE: &str = env!("SWATH_BLAS_PROVIDER");

/// Returns the result of the search for a library. The first call searches and reports warnings.
pub(super) fn found() -> &'static Found {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(find)
}

impl Symbols for Handle {
    unsafe fn find<T: Copy>(&self, name: &str) -> Option<T> {
        // SAFETY: the caller guarantees the type.
        unsafe { self.get::<T>(name) }.ok().map(|symbol| *symbol)
    }
}

/// Returns the library with these symbols, from this file, if it is usable.
///
/// # Errors
/// The reason why it is not, as the rest of a sentence that begins with the library's name.
fn usable(symbols: &impl Symbols, file: Option<PathBuf>) -> Result<Provider, String> {
    if file.as_deref().is_some_and(lacks_open_mp) {
        return Err("needs Intel's OpenMP, libiomp5.so, or MKL_THREADING_LAYER=SEQUENTIAL".into());
    }
    let products = Products::find(symbols).ok_or("has no cblas_sgemm, or lacks another product")?;
    let mut provider = Provider::new(FEATURE, symbols, products);
    provider.about.path = file.map(|file| file.display().to_string());
    self_test::run(&provider)?;
    provider.about.warning = provider.about.warning.map(report);
    Ok(provider)
}

/// File that contains a function; `None` if the system does not report it.
#[cfg(target_os = "linux")]
fn file_of(function: *const ()) -> Option<PathBuf> {
    use std::ffi::{CStr, OsStr};
    use std::os::unix::ffi::OsStrExt;

    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `dladdr` only reads the address and writes `info`, which is valid as zeros.
    let found = unsafe { libc::dladdr(function.cast(), info.as_mut_ptr()) != 0 };
    // SAFETY: after success `dli_fname` is a terminated string that lives as long as the library; it is copied.
    let name = found.then(|| unsafe { CStr::from_ptr(info.assume_init().dli_fname) })?;
    Path::new(OsStr::from_bytes(name.to_bytes())).canonicalize().ok()
}

#[cfg(not(target_os = "linux"))]
fn file_of(_: *const ()) -> Option<PathBuf> {
    None
}

/// True if this is MKL's single library and Intel's OpenMP is missing. It would end the process at its first
/// call, which opens that library unless `MKL_THREADING_LAYER` selects another threading layer.
fn lacks_open_mp(file: &Path) -> bool {
    let open_mp = ["libiomp5.so".into(), file.with_file_name("libiomp5.so")];
    // SAFETY: MKL itself would open the same library.
    let opens = |file: &PathBuf| unsafe { Handle::new(file) }.map(std::mem::forget).is_ok();
    let is_selected =
        std::env::var_os("MKL_THREADING_LAYER").is_some_and(|layer| !layer.is_empty());
    let is_single = file.to_string_lossy().contains("/libmkl_rt.");
    is_single && !is_selected && !open_mp.iter().any(opens)
}

#[cfg(blas = "blas-dynamic")]
use dynamic::find;
#[cfg(not(blas = "blas-dynamic"))]
use linked::find;

/// A library linked at build time.
#[cfg(not(blas = "blas-dynamic"))]
mod linked {
    #[cfg(blas = "accelerate")]
    use accelerate_src as _;
    #[cfg(blas = "openblas-static")]
    use openblas_src as _;

    use super::*;

    /// Lists functions of the linked library, which `$declared` declares, with their addresses.
    macro_rules! functions {
        ($declared:ident: $($name:ident)*) => {
            &[$((stringify!($name), $declared::$name as *const ())),*]
        };
    }

    const PRODUCTS: &[(&str, *const ())] = functions! {
        cblas_sys: cblas_sgemm cblas_dgemm cblas_sgemv cblas_dgemv cblas_sdot cblas_ddot
    };

    /// Further functions of an OpenBLAS that is linked statically, or on a system that does not look up
    /// functions in all linked libraries. In a shared library on Linux they are looked up by name, because
    /// another library may be installed in its place.
    #[cfg(any(blas = "openblas-static", all(blas = "openblas", not(target_os = "linux"))))]
    const OTHERS: &[(&str, *const ())] = {
        mod openblas {
            unsafe extern "C" {
                pub fn openblas_get_config();
                pub fn openblas_get_corename();
                pub fn openblas_get_num_threads();
                pub fn openblas_set_num_threads();
            }
        }
        functions! {
            openblas: openblas_get_config openblas_get_corename openblas_get_num_threads
            openblas_set_num_threads
        }
    };
    #[cfg(not(any(blas = "openblas-static", all(blas = "openblas", not(target_os = "linux")))))]
    const OTHERS: &[(&str, *const ())] = &[];

    /// The linked library, with the handle in which its other functions are looked up.
    struct Linked(Option<Handle>);

    impl Symbols for Linked {
        unsafe fn find<T: Copy>(&self, name: &str) -> Option<T> {
            const { assert!(size_of::<T>() == size_of::<*const ()>()) };
            match PRODUCTS.iter().chain(OTHERS).find(|function| function.0 == name) {
                // SAFETY: reads a pointer as a pointer; the caller guarantees the type.
                Some((_, function)) => Some(unsafe { std::mem::transmute_copy(function) }),
                // SAFETY: as the caller guarantees.
                None => unsafe { self.0.as_ref()?.find(name) },
            }
        }
    }

    /// The library that contains the products, and its file. In a program at a fixed address, `cblas_sgemm`
    /// resolves to the program itself; the library is then the next object that has the symbol.
    #[cfg(target_os = "linux")]
    fn opened() -> Option<(Handle, Option<PathBuf>)> {
        use libloading::os::unix::{Library, RTLD_LAZY};
        // SAFETY: the name is a terminated string.
        let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"cblas_sgemm".as_ptr()) };
        let mut files = [PRODUCTS[0].1, next.cast_const().cast()].into_iter().filter_map(file_of);
        let flags = RTLD_LAZY | libc::RTLD_NOLOAD;
        // SAFETY: with RTLD_NOLOAD no library is loaded, so no initialiser runs.
        let open = |file: &PathBuf| unsafe { Library::open(Some(file), flags) }.ok();
        files.find_map(|file| Some((open(&file)?.into(), Some(file))))
    }

    /// The program and all linked libraries.
    #[cfg(all(unix, not(target_os = "linux")))]
    fn opened() -> Option<(Handle, Option<PathBuf>)> {
        Some((libloading::os::unix::Library::this().into(), None))
    }

    #[cfg(windows)]
    fn opened() -> Option<(Handle, Option<PathBuf>)> {
        Some((libloading::os::windows::Library::this().ok()?.into(), None))
    }

    pub(super) fn find() -> Found {
        let (handle, file) = opened().unzip();
        let refused = |reason| {
            let used = "the embedded product is used";
            Found::Embedded(Some(report(format!(
                "the BLAS linked by `{FEATURE}` {reason}; {used}"
            ))))
        };
        usable(&Linked(handle), file.flatten()).map_or_else(refused, Found::Library)
    }
}

/// A library opened at run time.
#[cfg(blas = "blas-dynamic")]
mod dynamic {
    use std::env;
    use std::error::Error as _;
    use std::ffi::OsStr;

    use super::super::provider::joined;
    use super::*;

    /// Environment variable with the path of the library to open.
    const PATH: &str = "SWATH_BLAS";

    /// Libraries to search for, in this order, if `SWATH_BLAS` is not set or empty. The reference BLAS, which is
    /// not optimised, comes last.
    const WELL_KNOWN: &str = if cfg!(target_vendor = "apple") {
        "/System/Library/Frameworks/Accelerate.framework/Accelerate libopenblas.dylib libblis.dylib"
    } else if cfg!(windows) {
        "mkl_rt.2.dll libopenblas.dll openblas.dll libblis.dll"
    } else {
        "libmkl_rt.so.3 libmkl_rt.so.2 libopenblas.so.0 libopenblas.so libblis.so.4 libblis.so \
         libcblas.so.3 libblas.so.3"
    };

    pub(super) fn find() -> Found {
        if let Some(path) = env::var_os(PATH).filter(|path| !path.is_empty()) {
            let found = opened(&path).and_then(|handle| tested(handle, &path));
            let named = |reason| Found::Error(format!("{PATH}={}: {reason}", path.display()));
            return found.map_or_else(named, Found::Library);
        }
        let mut refused = Vec::new();
        for name in WELL_KNOWN.split(' ') {
            let Ok(handle) = opened(name.as_ref()) else { continue };
            match tested(handle, name.as_ref()) {
                Err(reason) => refused.push(report(format!("{name} is not used: {reason}"))),
                Ok(mut provider) => {
                    provider.about.warning =
                        joined(refused.into_iter().chain(provider.about.warning));
                    return Found::Library(provider);
                }
            }
        }
        refused.push(report("no BLAS library was found; the embedded product is used".to_owned()));
        Found::Embedded(joined(refused.into_iter()))
    }

    fn opened(path: &OsStr) -> Result<Handle, String> {
        // SAFETY: loading runs the initialisers of a library that the user, or a well-known name, selected.
        unsafe { Handle::new(path) }
            .map_err(|error| format!("it cannot be opened: {}", error.source().unwrap_or(&error)))
    }

    fn tested(handle: Handle, path: &OsStr) -> Result<Provider, String> {
        // SAFETY: the address is not dereferenced.
        let product = unsafe { handle.find::<*const ()>("cblas_sgemm") };
        let file = product.and_then(file_of).unwrap_or_else(|| path.into());
        let provider = usable(&handle, Some(file)).map_err(|reason| format!("it {reason}"))?;
        // The functions are used until the process ends.
        std::mem::forget(handle);
        Ok(provider)
    }
}

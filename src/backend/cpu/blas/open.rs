//! The library of this process: the one that the build linked, or one opened at run time. It is found,
//! identified and tested before the first product.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library as Handle;

use super::provider::{Found, Products, Provider, Symbols, told};
use super::self_test;

/// The feature that `build.rs` chose.
const FEATURE: &str = env!("SWATH_BLAS_PROVIDER");

/// The outcome of the search, which the first call makes. What should be known of it is told then.
pub(super) fn found() -> &'static Found {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(find)
}

impl Symbols for Handle {
    unsafe fn find<T: Copy>(&self, name: &str) -> Option<T> {
        // SAFETY: the caller names the type.
        unsafe { self.get::<T>(name) }.ok().map(|symbol| *symbol)
    }
}

/// The library with these symbols, in this file, if it may be used.
///
/// # Errors
/// What it lacks or did, as the end of a sentence that begins with its name.
fn usable(symbols: &impl Symbols, file: Option<PathBuf>) -> Result<Provider, String> {
    if file.as_deref().is_some_and(lacks_open_mp) {
        return Err("needs Intel's OpenMP, libiomp5.so, or MKL_THREADING_LAYER=SEQUENTIAL".into());
    }
    let products = Products::find(symbols).ok_or("has no cblas_sgemm, or lacks another product")?;
    let mut provider = Provider::new(FEATURE, symbols, products);
    provider.about.path = file.map(|file| file.display().to_string());
    self_test::run(&provider)?;
    provider.about.warning = provider.about.warning.map(told);
    Ok(provider)
}

/// The file that holds a function, where the system tells it.
#[cfg(target_os = "linux")]
fn file_of(function: *const ()) -> Option<PathBuf> {
    use std::ffi::{CStr, OsStr};
    use std::os::unix::ffi::OsStrExt;

    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: it looks the address up and writes `info`, whose zeros are null pointers.
    let found = unsafe { libc::dladdr(function.cast(), info.as_mut_ptr()) != 0 };
    // SAFETY: the name of what was found is terminated; it stays as long as the function, and is copied.
    let name = found.then(|| unsafe { CStr::from_ptr(info.assume_init().dli_fname) })?;
    Path::new(OsStr::from_bytes(name.to_bytes())).canonicalize().ok()
}

#[cfg(not(target_os = "linux"))]
fn file_of(_: *const ()) -> Option<PathBuf> {
    None
}

/// True if this is an MKL that would end the process at its first call: its single library opens Intel's
/// OpenMP then, unless the variable names another kind of threads.
fn lacks_open_mp(file: &Path) -> bool {
    let open_mp = ["libiomp5.so".into(), file.with_file_name("libiomp5.so")];
    // SAFETY: it is what MKL itself would open.
    let opens = |file: &PathBuf| unsafe { Handle::new(file) }.map(std::mem::forget).is_ok();
    let is_told = std::env::var_os("MKL_THREADING_LAYER").is_some_and(|layer| !layer.is_empty());
    let is_single = file.to_string_lossy().contains("/libmkl_rt.");
    is_single && !is_told && !open_mp.iter().any(opens)
}

#[cfg(blas = "blas-dynamic")]
use dynamic::find;
#[cfg(not(blas = "blas-dynamic"))]
use linked::find;

/// A library that the linker found.
#[cfg(not(blas = "blas-dynamic"))]
mod linked {
    #[cfg(blas = "accelerate")]
    use accelerate_src as _;
    #[cfg(any(blas = "openblas", blas = "openblas-static"))]
    use openblas_src as _;

    use super::*;

    /// Functions that the linker knows.
    macro_rules! functions {
        ($($name:ident)*) => {{
            unsafe extern "C" {
                $(fn $name();)*
            }
            &[$((stringify!($name), $name as *const ())),*]
        }};
    }

    const PRODUCTS: &[(&str, *const ())] =
        functions!(cblas_sgemm cblas_dgemm cblas_sgemv cblas_dgemv cblas_sdot cblas_ddot);

    /// An OpenBLAS that is a part of the program, or of a system that does not look functions up in all that
    /// is linked. A shared library on Linux is asked by name: another one may have been put in its place.
    #[cfg(any(blas = "openblas-static", all(blas = "openblas", not(target_os = "linux"))))]
    const OTHERS: &[(&str, *const ())] = functions!(
        openblas_get_config openblas_get_corename openblas_get_num_threads openblas_set_num_threads
    );
    #[cfg(not(any(blas = "openblas-static", all(blas = "openblas", not(target_os = "linux")))))]
    const OTHERS: &[(&str, *const ())] = &[];

    /// The library that was linked, and the place where its other functions are looked up.
    struct Linked(Option<Handle>);

    impl Symbols for Linked {
        unsafe fn find<T: Copy>(&self, name: &str) -> Option<T> {
            const { assert!(size_of::<T>() == size_of::<*const ()>()) };
            match PRODUCTS.iter().chain(OTHERS).find(|function| function.0 == name) {
                // SAFETY: a pointer read as a pointer; the caller names the type.
                Some((_, function)) => Some(unsafe { std::mem::transmute_copy(function) }),
                // SAFETY: as the caller promises.
                None => unsafe { self.0.as_ref()?.find(name) },
            }
        }
    }

    /// The library that holds the products, and its file. Where functions of a library have entries in the program,
    /// as in one that cannot be moved in memory, it is the next one that has them.
    #[cfg(target_os = "linux")]
    fn opened() -> Option<(Handle, Option<PathBuf>)> {
        use libloading::os::unix::{Library, RTLD_LAZY};
        // SAFETY: the name is terminated.
        let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"cblas_sgemm".as_ptr()) };
        let mut files = [PRODUCTS[0].1, next.cast_const().cast()].into_iter().filter_map(file_of);
        let flags = RTLD_LAZY | libc::RTLD_NOLOAD;
        // SAFETY: nothing is loaded, so nothing runs.
        let open = |file: &PathBuf| unsafe { Library::open(Some(file), flags) }.ok();
        files.find_map(|file| Some((open(&file)?.into(), Some(file))))
    }

    /// The program and all that it was linked with.
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
            Found::Embedded(Some(told(format!("the BLAS linked by `{FEATURE}` {reason}; {used}"))))
        };
        usable(&Linked(handle), file.flatten()).map_or_else(refused, Found::Library)
    }
}

/// A library that is opened by its path.
#[cfg(blas = "blas-dynamic")]
mod dynamic {
    use std::env;
    use std::error::Error as _;
    use std::ffi::OsStr;

    use super::super::provider::joined;
    use super::*;

    /// Names the library to open.
    const PATH: &str = "SWATH_BLAS";

    /// Looked for in this order where `SWATH_BLAS` is not set or empty: those with kernels for many
    /// processors before the reference.
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
                Err(reason) => refused.push(told(format!("{name} is not used: {reason}"))),
                Ok(mut provider) => {
                    provider.about.warning =
                        joined(refused.into_iter().chain(provider.about.warning));
                    return Found::Library(provider);
                }
            }
        }
        refused.push(told("no BLAS library was found; the embedded product is used".to_owned()));
        Found::Embedded(joined(refused.into_iter()))
    }

    fn opened(path: &OsStr) -> Result<Handle, String> {
        // SAFETY: what runs when a library is loaded is the library's own; the user, or the system's
        // names of BLAS libraries, chose it.
        unsafe { Handle::new(path) }
            .map_err(|error| format!("it cannot be opened: {}", error.source().unwrap_or(&error)))
    }

    fn tested(handle: Handle, path: &OsStr) -> Result<Provider, String> {
        // SAFETY: only its address is looked at.
        let product = unsafe { handle.find::<*const ()>("cblas_sgemm") };
        let file = product.and_then(file_of).unwrap_or_else(|| path.into());
        let provider = usable(&handle, Some(file)).map_err(|reason| format!("it {reason}"))?;
        // Its functions are called until the process ends.
        std::mem::forget(handle);
        Ok(provider)
    }
}

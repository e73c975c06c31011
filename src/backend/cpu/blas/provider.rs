//! The library of this process: the one that the build linked, or one opened at run time. It is
//! found, asked who it is, and tested before the first product.

use std::sync::OnceLock;

use libloading::Library as Handle;

#[cfg(target_os = "linux")]
use super::library::Vendor;
use super::library::{Entries, Library, Symbols};
#[cfg(target_os = "linux")]
use super::object;
use super::{core_type, self_test};

/// The feature that `build.rs` chose.
const PROVIDER: &str = env!("SWATH_BLAS_PROVIDER");

/// What was found.
pub(super) struct Provider {
    /// `None`: there is none that may be used, and the embedded product runs.
    pub library: Option<Library>,
    /// What was opened at run time.
    pub path: Option<String>,
    /// What the user should know.
    pub warning: Option<String>,
}

/// The provider, found by the first call.
///
/// # Errors
/// Why the library that the user named cannot be used.
pub(super) fn provider() -> Result<&'static Provider, &'static str> {
    static PROVIDER: OnceLock<Result<Provider, String>> = OnceLock::new();
    PROVIDER.get_or_init(find).as_ref().map_err(String::as_str)
}

impl Provider {
    /// None, for a reason that is told once.
    fn none(reason: String) -> Provider {
        let warning = format!("{reason}; the embedded product is used");
        super::tell(&warning);
        Provider { library: None, path: None, warning: Some(warning) }
    }

    /// A library that passed its test, after others that did not.
    fn of(library: Library, path: Option<String>, refused: Vec<String>) -> Provider {
        let slow = core_type::warning(library.vendor, &library.core(), swath_kernels::isa());
        let warnings = refused.into_iter().chain(library.threads_warning()).chain(slow);
        let warnings: Vec<String> = warnings.inspect(|warning| super::tell(warning)).collect();
        let warning = (!warnings.is_empty()).then(|| warnings.join("; "));
        Provider { library: Some(library), path, warning }
    }
}

impl Symbols for Handle {
    unsafe fn find<T: Copy>(&self, name: &[u8]) -> Option<T> {
        // SAFETY: the caller names the type.
        unsafe { self.get::<T>(name) }.ok().map(|symbol| *symbol)
    }
}

/// Suffixes of entry points: Accelerate's from macOS 13.3 on, whose plain names are the old ones.
const SUFFIXES: [&str; 2] = ["$NEWLAPACK", ""];

/// The entry points for the type that BLAS calls `letter`.
///
/// # Errors
/// The entry point that is missing.
///
/// # Safety
/// `E` is the type of that letter.
unsafe fn entries<E>(symbols: &impl Symbols, letter: char) -> Result<Entries<E>, String> {
    let name = |function: &str, suffix: &str| format!("cblas_{letter}{function}{suffix}\0");
    let suffix = SUFFIXES.into_iter().find(|suffix| {
        // SAFETY: only whether it is there is looked at.
        unsafe { symbols.find::<*const ()>(name("gemm", suffix).as_bytes()) }.is_some()
    });
    let suffix = suffix.unwrap_or_default();
    let missing = |function: &str| format!("it has no cblas_{letter}{function}");
    // SAFETY: each with the type of the CBLAS header.
    unsafe {
        let find = |function| name(function, suffix);
        Ok(Entries {
            gemm: symbols.find(find("gemm").as_bytes()).ok_or_else(|| missing("gemm"))?,
            gemv: symbols.find(find("gemv").as_bytes()).ok_or_else(|| missing("gemv"))?,
            dot: symbols.find(find("dot").as_bytes()).ok_or_else(|| missing("dot"))?,
            gemm_batch: symbols.find(find("gemm_batch").as_bytes()),
        })
    }
}

#[cfg(not(blas = "blas-dynamic"))]
fn find() -> Result<Provider, String> {
    let library = linked::library();
    Ok(match tested(&library) {
        Ok(()) => Provider::of(library, None, Vec::new()),
        Err(reason) => Provider::none(format!("the BLAS linked by `{PROVIDER}` {reason}")),
    })
}

/// A library that the linker found.
#[cfg(not(blas = "blas-dynamic"))]
mod linked {
    use std::mem::transmute;

    #[cfg(blas = "accelerate")]
    use accelerate_src as _;
    #[cfg(any(blas = "openblas", blas = "openblas-static"))]
    use openblas_src as _;

    use super::super::library::WideDot;
    use super::*;

    /// The library whose CBLAS functions this process calls, and where its others are looked up.
    struct Process {
        /// None where it is a part of what swath is a part of: that has no names for its functions, and those
        /// of another library of the same kind would be no control of this one.
        handle: Option<Handle>,
        is_static: bool,
    }

    impl Process {
        fn new() -> Process {
            #[cfg(target_os = "linux")]
            return match object::of(object::cblas()) {
                own if own.base == object::of(library as *const ()).base => {
                    Process { handle: None, is_static: true }
                }
                other => Process { handle: other.opened(), is_static: false },
            };
            #[cfg(all(unix, not(target_os = "linux")))]
            let handle = Some(libloading::os::unix::Library::this().into());
            #[cfg(windows)]
            let handle = libloading::os::windows::Library::this().ok().map(Handle::from);
            #[cfg(not(target_os = "linux"))]
            return Process { handle, is_static: false };
        }
    }

    impl Symbols for Process {
        unsafe fn find<T: Copy>(&self, name: &[u8]) -> Option<T> {
            const { assert!(size_of::<T>() == size_of::<*const ()>()) };
            // They are known when this is compiled. On Linux a shared library may be called in their place.
            #[cfg(any(blas = "openblas", blas = "openblas-static"))]
            if self.is_static || cfg!(not(target_os = "linux")) {
                use std::ffi::{c_char, c_int};
                unsafe extern "C" {
                    fn openblas_get_config() -> *const c_char;
                    fn openblas_get_corename() -> *const c_char;
                    fn openblas_get_num_threads() -> c_int;
                    fn openblas_set_num_threads(threads: c_int);
                }
                let own = match name {
                    b"openblas_get_config\0" => openblas_get_config as *const (),
                    b"openblas_get_corename\0" => openblas_get_corename as *const (),
                    b"openblas_get_num_threads\0" => openblas_get_num_threads as *const (),
                    b"openblas_set_num_threads\0" => openblas_set_num_threads as *const (),
                    _ => std::ptr::null(),
                };
                if !own.is_null() {
                    // SAFETY: a pointer read as a pointer; the caller names the function's type.
                    return Some(unsafe { std::mem::transmute_copy(&own) });
                }
            }
            // SAFETY: as the caller promises.
            unsafe { self.handle.as_ref()?.find(name) }
        }
    }

    pub(super) fn library() -> Library {
        let process = Process::new();
        let mut library = with(&process);
        library.is_static = process.is_static;
        library
    }

    /// A function that the library need not have: another library in the process may have it.
    ///
    /// # Safety
    /// `T` is a function pointer of the symbol's type.
    unsafe fn beside<T: Copy>(symbols: &impl Symbols, name: &[u8]) -> Option<T> {
        #[cfg(target_os = "linux")]
        {
            // SAFETY: only its address is looked at.
            let function = unsafe { symbols.find::<*const ()>(name) }?;
            if object::of(function).base != object::of(object::cblas()).base {
                return None;
            }
        }
        // SAFETY: as the caller promises.
        unsafe { symbols.find(name) }
    }

    fn with(symbols: &impl Symbols) -> Library {
        // SAFETY: the types of the letters; `dot` is called on x86-64 and AArch64 alone, where a `c_int`
        // argument is the lower half of an `i64` one: in a register, or (the fifth one on Windows) in
        // the eight bytes that it has on the stack.
        let (mut s, mut d) = unsafe {
            (
                Entries {
                    gemm: cblas_sys::cblas_sgemm,
                    gemv: cblas_sys::cblas_sgemv,
                    dot: transmute::<*const (), WideDot<_>>(cblas_sys::cblas_sdot as *const ()),
                    gemm_batch: beside(symbols, b"cblas_sgemm_batch\0"),
                },
                Entries {
                    gemm: cblas_sys::cblas_dgemm,
                    gemv: cblas_sys::cblas_dgemv,
                    dot: transmute::<*const (), WideDot<_>>(cblas_sys::cblas_ddot as *const ()),
                    gemm_batch: beside(symbols, b"cblas_dgemm_batch\0"),
                },
            )
        };
        // The modern entry points of the same library, where the system has them.
        if PROVIDER == "accelerate" {
            // SAFETY: the types of the letters.
            let modern = unsafe { (entries(symbols, 's'), entries(symbols, 'd')) };
            if let (Ok(modern_s), Ok(modern_d)) = modern {
                (s, d) = (modern_s, modern_d);
            }
        }
        Library::new(PROVIDER, symbols, s, d)
    }
}

/// Why this MKL would end the process at its first call: the single library opens Intel's OpenMP then, unless it
/// is told of another kind of threads.
#[cfg(target_os = "linux")]
fn lacks_open_mp(library: &Library) -> Option<&'static str> {
    use std::path::Path;
    #[cfg(blas = "blas-dynamic")]
    let function = library.f32.gemm as *const ();
    #[cfg(not(blas = "blas-dynamic"))]
    let function = object::cblas();
    let is_told = std::env::var_os("MKL_THREADING_LAYER").is_some_and(|layer| !layer.is_empty());
    if library.vendor != Vendor::Mkl || is_told {
        return None;
    }
    // It may have been opened by another name.
    let mkl = object::of(function).path.canonicalize().ok()?;
    if !mkl.file_name()?.to_str()?.starts_with("libmkl_rt.") {
        return None;
    }
    let name = Path::new("libiomp5.so");
    let found = [name.to_owned(), mkl.parent()?.join(name)].iter().any(|path| {
        // SAFETY: it is what MKL itself would open.
        unsafe { Handle::new(path) }.map(std::mem::forget).is_ok()
    });
    (!found).then_some(
        "needs Intel's OpenMP, libiomp5.so (`intel-openmp` of PyPI), and would end the process without it; \
         MKL_THREADING_LAYER=SEQUENTIAL does without",
    )
}

#[cfg(not(target_os = "linux"))]
fn lacks_open_mp(_library: &Library) -> Option<&'static str> {
    None
}

/// # Errors
/// What the library lacks or did, as the end of a sentence that begins with its name.
fn tested(library: &Library) -> Result<(), String> {
    lacks_open_mp(library).map_or_else(|| self_test::run(library), |reason| Err(reason.to_owned()))
}

#[cfg(blas = "blas-dynamic")]
use dynamic::find;

/// A library that is opened by its path.
#[cfg(blas = "blas-dynamic")]
mod dynamic {
    use std::env;
    use std::ffi::OsStr;

    use super::super::library::Vendor;
    use super::*;

    /// Names the library to open.
    const PATH: &str = "SWATH_BLAS";

    /// What OpenBLAS chooses its kernels by, when it is loaded.
    const CORE_TYPE: &str = "OPENBLAS_CORETYPE";

    /// Looked for in this order where `SWATH_BLAS` is not set or empty: those with kernels for many
    /// processors before the reference. Who is the fastest depends on the processor, which is not asked: MKL
    /// goes first, which is seldom there unasked; on AMD's processors it takes AVX2 kernels.
    const WELL_KNOWN: &[&str] = if cfg!(target_vendor = "apple") {
        &[
            "/System/Library/Frameworks/Accelerate.framework/Accelerate",
            "libopenblas.dylib",
            "libblis.dylib",
        ]
    } else if cfg!(windows) {
        &["mkl_rt.2.dll", "libopenblas.dll", "openblas.dll", "libblis.dll"]
    } else {
        &[
            "libmkl_rt.so.3",
            "libmkl_rt.so.2",
            "libopenblas.so.0",
            "libopenblas.so",
            "libblis.so.4",
            "libblis.so",
            "libcblas.so.3",
            "libblas.so.3",
        ]
    };

    pub(super) fn find() -> Result<Provider, String> {
        if let Some(path) = env::var_os(PATH).filter(|path| !path.is_empty()) {
            let path_text = path.to_string_lossy().into_owned();
            return match open(&path) {
                Ok(library) => Ok(Provider::of(library, Some(path_text), Vec::new())),
                Err(Refused::Absent(reason) | Refused::Unfit(reason)) => {
                    Err(format!("{PATH}={path_text}: {reason}"))
                }
            };
        }
        let (mut reasons, mut unfit) = (Vec::new(), Vec::new());
        for name in WELL_KNOWN {
            match open(OsStr::new(name)) {
                Ok(library) => return Ok(Provider::of(library, Some((*name).to_owned()), unfit)),
                Err(Refused::Absent(reason)) => reasons.push(reason),
                Err(Refused::Unfit(reason)) => {
                    reasons.push(format!("{name}: {reason}"));
                    unfit.push(format!("{name} is not used: {reason}"));
                }
            }
        }
        Ok(Provider::none(format!("no BLAS library could be opened ({})", reasons.join("; "))))
    }

    /// Why a library cannot be used.
    enum Refused {
        /// It could not be opened.
        Absent(String),
        /// It was opened, and is none or does not compute rightly.
        Unfit(String),
    }

    fn open(path: &OsStr) -> Result<Library, Refused> {
        let (mut handle, mut library) = load(path)?;
        let better = match library.vendor {
            Vendor::OpenBlas if env::var_os(CORE_TYPE).is_none() => {
                core_type::better(&library.core(), swath_kernels::isa())
            }
            _ => None,
        };
        if let Some(core) = better {
            drop(handle);
            // SAFETY: a thread that reads the environment past Rust's lock at this moment is a race
            // that the guide of the feature warns of; it can only be met before the first product,
            // and not at all by programs that set the variable themselves.
            unsafe { env::set_var(CORE_TYPE, core) };
            let again = load(path);
            // SAFETY: as above.
            unsafe { env::remove_var(CORE_TYPE) };
            (handle, library) = again?;
        }
        tested(&library).map_err(|reason| Refused::Unfit(format!("it {reason}")))?;
        // Its functions are called until the process ends.
        std::mem::forget(handle);
        Ok(library)
    }

    fn load(path: &OsStr) -> Result<(Handle, Library), Refused> {
        // SAFETY: what runs when a library is loaded is the library's own; the user, or the system's
        // names of BLAS libraries, chose it.
        let handle = unsafe { Handle::new(path) }.map_err(|error| {
            let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
            Refused::Absent(format!("{error}{}", source.unwrap_or_default()))
        })?;
        // SAFETY: the types of the letters.
        let found = unsafe { (entries(&handle, 's'), entries(&handle, 'd')) };
        let (s, d) = (found.0.map_err(Refused::Unfit)?, found.1.map_err(Refused::Unfit)?);
        let library = Library::new(PROVIDER, &handle, s, d);
        Ok((handle, library))
    }
}

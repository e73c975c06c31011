//! A BLAS library as swath holds it: its entry points, and how it is kept to one thread.

use std::any::Any;
use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

use cblas_sys::{CBLAS_LAYOUT, CBLAS_TRANSPOSE};

use crate::blas::BlasInfo;

/// `cblas_sgemm`, `cblas_dgemm`.
pub(super) type Gemm<E> = unsafe extern "C" fn(
    CBLAS_LAYOUT,
    CBLAS_TRANSPOSE,
    CBLAS_TRANSPOSE,
    c_int,
    c_int,
    c_int,
    E,
    *const E,
    c_int,
    *const E,
    c_int,
    E,
    *mut E,
    c_int,
);

/// `cblas_sgemv`, `cblas_dgemv`.
pub(super) type Gemv<E> = unsafe extern "C" fn(
    CBLAS_LAYOUT,
    CBLAS_TRANSPOSE,
    c_int,
    c_int,
    E,
    *const E,
    c_int,
    *const E,
    c_int,
    E,
    *mut E,
    c_int,
);

/// `cblas_sgemm_batch`, `cblas_dgemm_batch` of MKL, BLIS and OpenBLAS (from 0.3.27): groups of
/// products that share all arguments but their operands' addresses.
pub(super) type GemmBatch<E> = unsafe extern "C" fn(
    CBLAS_LAYOUT,
    *const CBLAS_TRANSPOSE,
    *const CBLAS_TRANSPOSE,
    *const c_int,
    *const c_int,
    *const c_int,
    *const E,
    *const *const E,
    *const c_int,
    *const *const E,
    *const c_int,
    *const E,
    *const *mut E,
    *const c_int,
    c_int,
    *const c_int,
);

/// `cblas_sdot`, `cblas_ddot` as a library with 64-bit integers declares them. One with 32-bit
/// integers takes the lower halves of the same registers.
pub(super) type WideDot<E> = unsafe extern "C" fn(i64, *const E, i64, *const E, i64) -> E;

/// The entry points for one element type.
#[derive(Clone, Copy)]
pub(super) struct Entries<E> {
    pub gemm: Gemm<E>,
    pub gemv: Gemv<E>,
    pub dot: WideDot<E>,
    /// Not every library has it.
    pub gemm_batch: Option<GemmBatch<E>>,
}

/// Who made the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vendor {
    Mkl,
    OpenBlas,
    Blis,
    Accelerate,
    /// The reference BLAS, or one that does not say who it is.
    Unknown,
}

impl Vendor {
    /// As the feature is called that links it.
    pub fn name(self) -> &'static str {
        match self {
            Vendor::Mkl => "mkl",
            Vendor::OpenBlas => "openblas",
            Vendor::Blis => "blis",
            Vendor::Accelerate => "accelerate",
            Vendor::Unknown => "unknown",
        }
    }
}

/// How calls are kept to the thread that makes them.
#[derive(Clone, Copy)]
enum Control {
    Nothing,
    /// MKL's number of threads for this thread, set around a call; returns the one before.
    Mkl(unsafe extern "C" fn(c_int) -> c_int),
    /// A setting of this thread, set around a call: OpenMP's number of threads, which an OpenBLAS built
    /// with it follows, and Accelerate's mode, 1 being BLAS_THREADING_SINGLE_THREADED.
    Around {
        get: GetThreads,
        set: unsafe extern "C" fn(c_int),
    },
    /// A setting of all threads, which stays at 1: others may be in a call when this one's ends.
    Kept {
        get: GetThreads,
        set: unsafe extern "C" fn(c_int),
    },
    /// The same of BLIS, whose integers are as wide as pointers. Numbers for its loops go before the
    /// number for all.
    Blis {
        get: GetThreads,
        set: unsafe extern "C" fn(isize),
        set_loops: unsafe extern "C" fn(isize, isize, isize, isize, isize),
    },
}

type GetThreads = unsafe extern "C" fn() -> c_int;

/// A library whose entry points were found.
pub(super) struct Library {
    /// The feature that chose it.
    pub provider: &'static str,
    pub vendor: Vendor,
    pub f32: Entries<f32>,
    pub f64: Entries<f64>,
    /// The greatest number that its integers hold.
    pub max_int: usize,
    /// Tiles that a product is cut into at most: the cores that the process may use, however many
    /// threads swath has.
    pub tiles: usize,
    /// Whether it is a part of the program, whose functions cannot be looked up by name.
    pub is_static: bool,
    /// Why it is called no more.
    pub failure: OnceLock<String>,
    control: Control,
    /// The number of threads it would use.
    get_threads: Option<GetThreads>,
    core: Option<Core>,
    version: Option<Version>,
}

/// How a library says whose kernels it has chosen.
#[derive(Clone, Copy)]
enum Core {
    Name(unsafe extern "C" fn() -> *const c_char),
    /// The name of a number.
    Numbered {
        number: unsafe extern "C" fn() -> c_int,
        name: unsafe extern "C" fn(c_int) -> *const c_char,
    },
    Mkl(unsafe extern "C" fn(*mut MklVersion)),
}

/// `MKLVersion`: before 2024 it had three numbers, and a gap, which is the same with 64-bit pointers.
#[repr(C)]
struct MklVersion {
    _numbers: [c_int; 4],
    _status_and_build: [*const c_char; 2],
    processor: *const c_char,
    _platform: *const c_char,
}

/// How a library says its version.
#[derive(Clone, Copy)]
enum Version {
    Text(unsafe extern "C" fn() -> *const c_char),
    /// Writes into a buffer of the given length.
    Buffer(unsafe extern "C" fn(*mut c_char, c_int)),
}

/// Where symbols are looked up by name.
pub(super) trait Symbols {
    /// The address of a symbol. `name` ends with a zero byte.
    ///
    /// # Safety
    /// `T` is a function pointer of the symbol's type.
    unsafe fn find<T: Copy>(&self, name: &[u8]) -> Option<T>;
}

impl Library {
    /// With what `symbols` knows of thread control, version and core type.
    pub fn new(
        provider: &'static str,
        symbols: &impl Symbols,
        f32: Entries<f32>,
        f64: Entries<f64>,
    ) -> Library {
        let mut library = Library::plain(provider, f32, f64);
        // Other libraries may be in the process too: the one that was asked for goes first.
        let mut vendors = [Vendor::Mkl, Vendor::OpenBlas, Vendor::Blis, Vendor::Accelerate];
        vendors.sort_by_key(|vendor| !provider.starts_with(vendor.name()));
        vendors.into_iter().any(|vendor| library.made_by(vendor, symbols));
        library
    }

    /// Takes what `vendor`'s libraries offer, if this is one of them.
    fn made_by(&mut self, vendor: Vendor, symbols: &impl Symbols) -> bool {
        // SAFETY: each symbol is asked for by the name and with the type of the vendor's header, but that BLIS's
        // number of threads, which is 64 bits wide, is read as its lower half, and that what Accelerate's
        // function returns is not looked at.
        unsafe {
            match vendor {
                Vendor::Mkl => {
                    let Some(set) = symbols.find(b"MKL_Set_Num_Threads_Local\0") else {
                        return false;
                    };
                    self.control = Control::Mkl(set);
                    self.get_threads = symbols.find(b"MKL_Get_Max_Threads\0");
                    self.version = symbols.find(b"MKL_Get_Version_String\0").map(Version::Buffer);
                    if cfg!(target_pointer_width = "64") {
                        self.core = symbols.find(b"MKL_Get_Version\0").map(Core::Mkl);
                    }
                }
                Vendor::OpenBlas => {
                    let Some(config) = symbols.find(b"openblas_get_config\0") else {
                        return false;
                    };
                    self.version = Some(Version::Text(config));
                    self.get_threads = symbols.find(b"openblas_get_num_threads\0");
                    self.core = symbols.find(b"openblas_get_corename\0").map(Core::Name);
                    let open_mp = self.version().contains("USE_OPENMP");
                    let get = symbols.find(b"omp_get_max_threads\0");
                    let set = symbols.find(b"omp_set_num_threads\0");
                    if let (true, Some(get), Some(set)) = (open_mp, get, set) {
                        self.control = Control::Around { get, set };
                    } else if let Some(get) = self.get_threads
                        && let Some(set) = symbols.find(b"openblas_set_num_threads\0")
                    {
                        self.control = Control::Kept { get, set };
                    }
                }
                Vendor::Blis => {
                    let Some(version) = symbols.find(b"bli_info_get_version_str\0") else {
                        return false;
                    };
                    self.version = Some(Version::Text(version));
                    let number = symbols.find(b"bli_arch_query_id\0");
                    let name = symbols.find(b"bli_arch_string\0");
                    self.core =
                        number.zip(name).map(|(number, name)| Core::Numbered { number, name });
                    self.get_threads = symbols.find(b"bli_thread_get_num_threads\0");
                    let set = symbols.find(b"bli_thread_set_num_threads\0");
                    let set_loops = symbols.find(b"bli_thread_set_ways\0");
                    if let (Some(get), Some(set), Some(set_loops)) =
                        (self.get_threads, set, set_loops)
                    {
                        self.control = Control::Blis { get, set, set_loops };
                    }
                }
                Vendor::Accelerate => {
                    // The number from macOS 15 on, the name from 13.3 on.
                    let get = symbols.find(b"BLASGetThreading\0");
                    let set = symbols.find(b"BLASSetThreading\0");
                    let modern = symbols.find::<*const ()>(b"cblas_sgemm$NEWLAPACK\0");
                    if let (Some(get), Some(set)) = (get, set) {
                        self.control = Control::Around { get, set };
                    } else if self.provider != vendor.name() && modern.is_none() {
                        return false;
                    }
                }
                Vendor::Unknown => return false,
            }
        }
        self.vendor = vendor;
        true
    }

    /// Of which no more is known than its entry points.
    pub fn plain(provider: &'static str, f32: Entries<f32>, f64: Entries<f64>) -> Library {
        Library {
            provider,
            vendor: Vendor::Unknown,
            f32,
            f64,
            max_int: c_int::MAX as usize,
            tiles: std::thread::available_parallelism().map_or(1, usize::from),
            is_static: false,
            failure: OnceLock::new(),
            control: Control::Nothing,
            get_threads: None,
            core: None,
            version: None,
        }
    }

    /// The entry points for `E`; none for types other than `f32` and `f64`.
    pub fn entries<E: 'static>(&self) -> Option<&Entries<E>> {
        let (f32, f64): (&dyn Any, &dyn Any) = (&self.f32, &self.f64);
        f32.downcast_ref().or_else(|| f64.downcast_ref())
    }

    /// Runs `calls`, during which calls from this thread use this thread alone.
    pub fn on_one_thread<T>(&self, calls: impl FnOnce() -> T) -> T {
        // SAFETY: the library's own functions, whose arguments are numbers of threads or modes.
        unsafe {
            match self.control {
                Control::Nothing => calls(),
                Control::Kept { get, set } => {
                    if get() != 1 {
                        set(1);
                    }
                    calls()
                }
                Control::Blis { get, set, set_loops } => {
                    if get() != 1 {
                        set_loops(1, 1, 1, 1, 1);
                        set(1);
                    }
                    calls()
                }
                Control::Mkl(set) => {
                    let before = set(1);
                    let result = calls();
                    set(before);
                    result
                }
                Control::Around { get, set } => {
                    let before = get();
                    set(1);
                    let result = calls();
                    set(before);
                    result
                }
            }
        }
    }

    /// What the user should know of a library that may use threads of its own, for all that swath can do.
    pub fn threads_warning(&self) -> Option<String> {
        let Control::Nothing = self.control else { return None };
        match self.vendor {
            Vendor::Accelerate => Some(
                "Accelerate can be kept to one thread from macOS 15 on: set \
                 VECLIB_MAXIMUM_THREADS=1 before the program starts"
                    .to_owned(),
            ),
            Vendor::Unknown if self.is_static => Some(format!(
                "the BLAS linked by `{}` is a static library, which cannot be asked who it is: where it has \
                 threads, set its number of them to 1 before the program starts, or link the shared one",
                self.provider
            )),
            Vendor::Unknown if ["mkl", "openblas", "blis"].contains(&self.provider) => {
                Some(format!(
                    "the BLAS linked by `{}` does not say who it is and cannot be kept to one thread: where it has \
                 threads, set its number of them to 1 before the program starts",
                    self.provider
                ))
            }
            _ => None,
        }
    }

    /// What it says of itself.
    pub fn info(&self) -> BlasInfo {
        BlasInfo {
            provider: self.provider,
            library: self.vendor.name(),
            path: None,
            version: self.version(),
            core: self.core(),
            threads: self.threads(),
            warning: self.failure.get().cloned(),
        }
    }

    /// Threads that a call uses.
    fn threads(&self) -> usize {
        // SAFETY: a function without arguments.
        let get = |get: GetThreads| unsafe { get() };
        self.on_one_thread(|| self.get_threads.map_or(1, |f| usize::try_from(get(f)).unwrap_or(1)))
    }

    /// What the library says of its version and configuration; empty if it says nothing.
    fn version(&self) -> String {
        match self.version {
            None => String::new(),
            // SAFETY: a function without arguments that returns a terminated string or null.
            Some(Version::Text(text)) => text_of(unsafe { text() }),
            Some(Version::Buffer(write)) => {
                let mut buffer = [0 as c_char; 256];
                // SAFETY: it writes a terminated string of at most the given length, which leaves
                // the last byte zero.
                unsafe { write(buffer.as_mut_ptr(), 255) };
                text_of(buffer.as_ptr())
            }
        }
    }

    /// The processor type whose kernels it has chosen; empty if it does not say.
    pub fn core(&self) -> String {
        // SAFETY: functions without arguments but the number that one of them returned, and one that
        // fills a struct of which null pointers are values; their texts are terminated or null.
        let text = self.core.map(|core| unsafe {
            match core {
                Core::Name(name) => name(),
                Core::Numbered { number, name } => name(number()),
                Core::Mkl(fill) => {
                    let mut version = std::mem::zeroed::<MklVersion>();
                    fill(&mut version);
                    version.processor
                }
            }
        });
        text.map_or(String::new(), text_of)
    }
}

/// A string that the library owns and never frees, or a buffer of ours.
fn text_of(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: not null, and terminated by a zero, as both callers say.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_string_lossy().trim().to_owned()
}

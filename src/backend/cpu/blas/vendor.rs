//! Detection of a library's vendor, the control of its threads, its version and the processor type whose
//! kernels it has selected.

use std::ffi::{CStr, c_char, c_int};

use super::provider::{GetThreads, Symbols, ThreadControl};
use crate::blas::BlasInfo;

type Text = unsafe extern "C" fn() -> *const c_char;
type TextOf = unsafe extern "C" fn(c_int) -> *const c_char;
type WriteText = unsafe extern "C" fn(*mut c_char, c_int);
/// Fills an `MKLVersion`: 16 bytes of integers, then pointers to strings, the third of which is the processor.
type FillVersion = unsafe extern "C" fn(*mut [*const c_char; 8]);
type SetLoops = unsafe extern "C" fn(isize, isize, isize, isize, isize);

/// Functions that identify a vendor; those of Accelerate exist from macOS 15 and 13.3 on.
const MARKS: [(&str, &str); 5] = [
    ("mkl", "MKL_Set_Num_Threads_Local"),
    ("openblas", "openblas_get_config"),
    ("blis", "bli_info_get_version_str"),
    ("accelerate", "BLASSetThreading"),
    ("accelerate", "cblas_sgemm$NEWLAPACK"),
];

/// Detects the vendor of the library with these symbols; "unknown" for the reference BLAS. Other libraries
/// may be loaded too, so the vendor that `feature` selects is checked first.
fn vendor(feature: &str, symbols: &impl Symbols) -> &'static str {
    let selected = MARKS.iter().filter(|(vendor, _)| feature.starts_with(vendor));
    // SAFETY: the address is not dereferenced.
    let has = |mark: &str| unsafe { symbols.find::<*const ()>(mark) }.is_some();
    selected.chain(&MARKS).find(|(_, mark)| has(mark)).map_or("unknown", |(vendor, _)| vendor)
}

/// The control of the library's threads; `None` if it has none known to swath.
fn threads(vendor: &str, version: &str, symbols: &impl Symbols) -> Option<ThreadControl> {
    use ThreadControl::{Around, Kept, Swapped};
    let has_open_mp = version.contains("USE_OPENMP");
    // SAFETY: each symbol has the type of the vendor's header, with two exceptions: of BLIS's 64-bit number
    // of threads only the lower half is read, and the return value of Accelerate's setter is ignored.
    unsafe {
        let get = symbols.find(match vendor {
            "mkl" => "MKL_Get_Max_Threads",
            // Calls use OpenMP's number; OpenBLAS's own is that of its last multi-threaded call.
            "openblas" if has_open_mp => "omp_get_max_threads",
            "openblas" => "openblas_get_num_threads",
            "blis" => "bli_thread_get_num_threads",
            _ => "BLASGetThreading",
        })?;
        Some(match vendor {
            "mkl" => Swapped { get, set: symbols.find("MKL_Set_Num_Threads_Local")? },
            "openblas" if has_open_mp => Around { get, set: symbols.find("omp_set_num_threads")? },
            "openblas" => {
                let set: unsafe extern "C" fn(c_int) = symbols.find("openblas_set_num_threads")?;
                Kept { get, set_one: Box::new(move || set(1)) }
            }
            "blis" => {
                let set: unsafe extern "C" fn(isize) =
                    symbols.find("bli_thread_set_num_threads")?;
                let set_loops: SetLoops = symbols.find("bli_thread_set_ways")?;
                // The numbers for the individual loops take precedence over the total.
                let set_one = Box::new(move || {
                    set_loops(1, 1, 1, 1, 1);
                    set(1);
                });
                Kept { get, set_one }
            }
            // Mode 1 is BLAS_THREADING_SINGLE_THREADED.
            _ => Around { get, set: symbols.find("BLASSetThreading")? },
        })
    }
}

/// The library's version, and the processor type whose kernels it has selected; empty if not reported.
fn version_and_core(vendor: &str, symbols: &impl Symbols) -> [String; 2] {
    // SAFETY: each symbol has the type of the vendor's header. All strings are null or terminated; the one
    // written by MKL leaves the last of 256 bytes zero. BLIS receives an id that it returned itself.
    unsafe {
        let text = |name| symbols.find::<Text>(name).map(|text| owned(text())).unwrap_or_default();
        match vendor {
            "openblas" => [text("openblas_get_config"), text("openblas_get_corename")],
            "blis" => {
                let number = symbols.find::<GetThreads>("bli_arch_query_id");
                let name = symbols.find::<TextOf>("bli_arch_string");
                let core = number.zip(name).map(|(number, name)| owned(name(number())));
                [text("bli_info_get_version_str"), core.unwrap_or_default()]
            }
            "mkl" => {
                let (mut version, mut about) = ([0; 256], [std::ptr::null(); 8]);
                let write = symbols.find::<WriteText>("MKL_Get_Version_String");
                write.inspect(|write| write(version.as_mut_ptr(), 255));
                let fill = symbols.find::<FillVersion>("MKL_Get_Version");
                fill.inspect(|fill| fill(&mut about));
                [owned(version.as_ptr()), owned(about[16 / size_of::<usize>() + 2])]
            }
            _ => Default::default(),
        }
    }
}

/// Copies a C string; empty if null.
///
/// # Safety
/// `text` is null or terminated.
unsafe fn owned(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and terminated as the caller guarantees.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned()
}

/// Detects the control of a library's threads and its description.
pub(super) fn identify(feature: &'static str, symbols: &impl Symbols) -> (ThreadControl, BlasInfo) {
    let library = vendor(feature, symbols);
    let [version, core] = version_and_core(library, symbols);
    let threads = threads(library, &version, symbols).unwrap_or(ThreadControl::Unknown);
    // The reference BLAS has no threads.
    let is_reference = library == "unknown" && ["netlib", "blas-dynamic"].contains(&feature);
    let may_have_threads = matches!(threads, ThreadControl::Unknown) && !is_reference;
    let text = "cannot be kept to one thread by swath: set its number of threads to 1 beforehand";
    let warning = may_have_threads.then(|| format!("the BLAS of `{feature}` ({library}) {text}"));
    let embedded = BlasInfo::embedded(warning);
    (threads, BlasInfo { provider: feature, library, version, core, ..embedded })
}

//! Who made a library: how its threads are controlled, what it says of itself, and whether the kernels that
//! it has chosen are too old for this processor.
//!
//! Libraries know processors by their model numbers: one that is newer than OpenBLAS gets the kernels of an
//! ancestor, which may be half as fast (0.3.21 takes those for AVX2 on processors with AVX-512 that it does
//! not know). `OPENBLAS_CORETYPE`, read when the library is loaded, chooses others. BLIS takes an ancestor's
//! too, or kernels in plain C, a sixth as fast. MKL knows Intel's processors alone.

use std::ffi::{CStr, c_char, c_int};

use swath_kernels::Isa;

use super::provider::{GetThreads, Symbols, ThreadControl, joined};
use crate::blas::BlasInfo;

/// Core types of OpenBLAS and BLIS on x86-64 whose kernels use less than AVX2.
const BEFORE_AVX2: &str = "Katmai Coppermine Northwood Prescott Banias Core2 Penryn Dunnington Nehalem \
    Sandybridge Atom Nano Athlon Opteron Opteron_SSE3 Barcelona Bobcat Bulldozer Piledriver Steamroller";

/// Those whose kernels use AVX2 but not AVX-512.
const AVX2: &str = "Haswell Zen Zen2 Zen3 Excavator";

/// The name that MKL gives to processors that it does not know: it has kernels for AVX2 at best for them.
pub(super) const UNKNOWN_TO_MKL: &str = "Intel(R) Architecture processors";

type Text = unsafe extern "C" fn() -> *const c_char;
type TextOf = unsafe extern "C" fn(c_int) -> *const c_char;
type WriteText = unsafe extern "C" fn(*mut c_char, c_int);
/// Fills an `MKLVersion`: 16 bytes of numbers, then addresses of texts, the third of which is the processor.
type FillVersion = unsafe extern "C" fn(*mut [*const c_char; 8]);
type SetLoops = unsafe extern "C" fn(isize, isize, isize, isize, isize);

/// Functions that the libraries of one vendor alone have, those of Accelerate from macOS 15 and 13.3 on.
const MARKS: [(&str, &str); 5] = [
    ("mkl", "MKL_Set_Num_Threads_Local"),
    ("openblas", "openblas_get_config"),
    ("blis", "bli_info_get_version_str"),
    ("accelerate", "BLASSetThreading"),
    ("accelerate", "cblas_sgemm$NEWLAPACK"),
];

/// The vendor of the library with these symbols, by the name of its feature; the reference BLAS does not say
/// who it is. There may be other libraries in the process: the one that `feature` asks for goes first.
fn vendor(feature: &str, symbols: &impl Symbols) -> &'static str {
    let asked_for = MARKS.iter().filter(|(vendor, _)| feature.starts_with(vendor));
    // SAFETY: only whether it is there is looked at.
    let has = |mark: &str| unsafe { symbols.find::<*const ()>(mark) }.is_some();
    asked_for.chain(&MARKS).find(|(_, mark)| has(mark)).map_or("unknown", |(vendor, _)| vendor)
}

/// The control of its threads.
fn threads(vendor: &str, version: &str, symbols: &impl Symbols) -> Option<ThreadControl> {
    use ThreadControl::{Around, Kept, Swapped};
    let has_open_mp = version.contains("USE_OPENMP");
    // SAFETY: each symbol with the type of the vendor's header, but that BLIS's number of threads, which
    // is 64 bits wide, is read as its lower half, and that what Accelerate's setter returns is ignored.
    unsafe {
        let get = symbols.find(match vendor {
            "mkl" => "MKL_Get_Max_Threads",
            // Calls follow OpenMP's number; OpenBLAS's own is that of its last call on many threads.
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
                // Numbers for its loops go before the number for all.
                let set_one = Box::new(move || {
                    set_loops(1, 1, 1, 1, 1);
                    set(1);
                });
                Kept { get, set_one }
            }
            // The mode 1 is BLAS_THREADING_SINGLE_THREADED.
            _ => Around { get, set: symbols.find("BLASSetThreading")? },
        })
    }
}

/// Its version, and the processor type whose kernels it has chosen; empty where it does not say.
fn version_and_core(vendor: &str, symbols: &impl Symbols) -> [String; 2] {
    // SAFETY: each symbol with the type of the vendor's header. All texts are terminated or null, as is the
    // one that is written into 256 bytes, of which it leaves the last one zero; BLIS names a number of its own.
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

/// A copy of a text.
///
/// # Safety
/// `text` is null, or ends with a zero.
unsafe fn owned(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and terminated as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned()
}

/// The control of a library's threads, and what is told of it.
pub(super) fn identify(feature: &'static str, symbols: &impl Symbols) -> (ThreadControl, BlasInfo) {
    let library = vendor(feature, symbols);
    let [version, core] = version_and_core(library, symbols);
    let threads = threads(library, &version, symbols).unwrap_or(ThreadControl::Unknown);
    // The reference BLAS has no threads.
    let is_reference = library == "unknown" && ["netlib", "blas-dynamic"].contains(&feature);
    let may_have_threads = matches!(threads, ThreadControl::Unknown) && !is_reference;
    let text = "cannot be kept to one thread by swath: set its number of threads to 1 beforehand";
    let of_threads =
        may_have_threads.then(|| format!("the BLAS of `{feature}` ({library}) {text}"));
    let warning =
        joined(of_threads.into_iter().chain(old_kernels(library, &core, swath_kernels::isa())));
    let embedded = BlasInfo::embedded(warning);
    (threads, BlasInfo { provider: feature, library, version, core, ..embedded })
}

/// The core type of OpenBLAS to choose instead of `chosen` on a processor with the instruction set `isa`.
pub(super) fn better(chosen: &str, isa: Isa) -> Option<&'static str> {
    let is_one_of = |types: &str| types.split(' ').any(|name| chosen.eq_ignore_ascii_case(name));
    match isa {
        Isa::Avx512 if is_one_of(BEFORE_AVX2) || is_one_of(AVX2) => Some("SkylakeX"),
        Isa::Avx2 if is_one_of(BEFORE_AVX2) => Some("Haswell"),
        _ => None,
    }
}

/// What should be known of the kernels that a library has chosen, if they are too old.
pub(super) fn old_kernels(library: &str, core: &str, isa: Isa) -> Option<String> {
    let better = better(core, isa);
    let remedy = match library {
        "openblas" => format!("set OPENBLAS_CORETYPE={} before the program starts", better?),
        "blis" if better.is_some() || core == "generic" && isa != Isa::Scalar => {
            "take a newer build of it, another library or the embedded product".to_owned()
        }
        "mkl" if core == UNKNOWN_TO_MKL && isa == Isa::Avx512 => {
            "take another library or the embedded product".to_owned()
        }
        _ => return None,
    };
    Some(format!("{library} runs kernels for {core} on a processor with {isa}: {remedy}"))
}

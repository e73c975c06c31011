//! Tests of the detection of vendors and of the control of their threads.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::backend::cpu::blas::mock::{Header, products};
use crate::backend::cpu::blas::provider::Provider;

/// Number of threads of the fake libraries, and that of BLIS's loops.
static THREADS: AtomicI32 = AtomicI32::new(8);
static LOOPS: AtomicI32 = AtomicI32::new(8);

/// True if the fake libraries ignore changes of their number of threads.
static IGNORE_CHANGES: AtomicBool = AtomicBool::new(false);

extern "C" fn set_and_return(threads: c_int) -> c_int {
    let before = get();
    set(threads);
    before
}
extern "C" fn set(threads: c_int) {
    if !IGNORE_CHANGES.load(Ordering::Relaxed) {
        THREADS.store(threads, Ordering::Relaxed);
    }
}
extern "C" fn set_wide(threads: isize) {
    set(threads as c_int);
}
/// Sets the loops; the total then reads as -1.
extern "C" fn set_loops(jc: isize, pc: isize, ic: isize, jr: isize, ir: isize) {
    LOOPS.store((jc * pc * ic * jr * ir) as i32, Ordering::Relaxed);
    set(-1);
}
extern "C" fn get() -> c_int {
    THREADS.load(Ordering::Relaxed)
}
/// OpenBLAS's own number of threads if OpenMP's number applies; setting it has no effect.
extern "C" fn stale() -> c_int {
    8
}
extern "C" fn ignored(_threads: c_int) {}
extern "C" fn config() -> *const c_char {
    c"OpenBLAS 0.3.99 USE_OPENMP".as_ptr()
}
extern "C" fn core() -> *const c_char {
    c"Haswell".as_ptr()
}

#[test]
fn each_vendor_is_recognised_and_kept_to_one_thread() {
    let threads = || THREADS.load(Ordering::Relaxed);
    let made = |header: Header| {
        THREADS.store(8, Ordering::Relaxed);
        Provider::new("blas-dynamic", &header, products())
    };
    let mkl = made(Header(&[
        ("MKL_Set_Num_Threads_Local", set_and_return as *const ()),
        ("MKL_Get_Max_Threads", get as *const ()),
    ]));
    assert_eq!(mkl.about.library, "mkl");
    // Calls do not use OpenBLAS's own number.
    let open_mp = made(Header(&[
        ("openblas_get_config", config as *const ()),
        ("openblas_get_corename", core as *const ()),
        ("openblas_get_num_threads", stale as *const ()),
        ("openblas_set_num_threads", ignored as *const ()),
        ("omp_get_max_threads", get as *const ()),
        ("omp_set_num_threads", set as *const ()),
    ]));
    assert_eq!((open_mp.about.library, open_mp.about.core.as_str()), ("openblas", "Haswell"));
    assert!(open_mp.about.version.contains("0.3.99"));
    let apple = made(Header(&[
        ("BLASGetThreading", get as *const ()),
        ("BLASSetThreading", set as *const ()),
    ]));
    assert_eq!(apple.about.library, "accelerate");
    for library in [&mkl, &open_mp, &apple] {
        THREADS.store(8, Ordering::Relaxed);
        assert_eq!(library.threads.on_one_thread(threads), 1);
        assert_eq!(threads(), 8, "the user's setting is restored");
    }

    let blis = made(Header(&[
        ("bli_info_get_version_str", core as *const ()),
        ("bli_thread_get_num_threads", get as *const ()),
        ("bli_thread_set_num_threads", set_wide as *const ()),
        ("bli_thread_set_ways", set_loops as *const ()),
    ]));
    assert_eq!(blis.about.library, "blis");
    let plain = made(Header(&[
        ("openblas_get_config", core as *const ()),
        ("openblas_get_num_threads", get as *const ()),
        ("openblas_set_num_threads", set as *const ()),
    ]));
    assert_eq!(plain.about.library, "openblas");
    // Also after the program has set another number.
    for (library, loops) in [(&blis, 1), (&plain, 8)] {
        for _ in 0..2 {
            THREADS.store(8, Ordering::Relaxed);
            LOOPS.store(8, Ordering::Relaxed);
            assert_eq!(library.threads.on_one_thread(threads), 1);
            assert_eq!(threads(), 1, "the number stays");
            assert_eq!(LOOPS.load(Ordering::Relaxed), loops);
        }
    }
    // The reported number is the one that calls use.
    for (ignore_changes, reported) in [(false, 1), (true, 8)] {
        IGNORE_CHANGES.store(ignore_changes, Ordering::Relaxed);
        for library in [&mkl, &open_mp, &apple, &blis, &plain] {
            THREADS.store(8, Ordering::Relaxed);
            assert_eq!(library.info().threads, reported, "{}", library.about.library);
        }
    }
    IGNORE_CHANGES.store(false, Ordering::Relaxed);
    assert_eq!(made(Header(&[])).about.library, "unknown");
}

#[test]
fn of_two_loaded_libraries_the_selected_one_is_detected() {
    let both = [
        ("MKL_Set_Num_Threads_Local", set_and_return as *const ()),
        ("openblas_get_config", config as *const ()),
    ];
    let header = Header(Box::leak(Box::new(both)));
    for (feature, library) in
        [("mkl", "mkl"), ("openblas", "openblas"), ("openblas-static", "openblas")]
    {
        assert_eq!(Provider::new(feature, &header, products()).about.library, library);
    }
}

#[test]
fn a_library_without_thread_control_gives_a_warning() {
    let none = Header(&[]);
    let modern = Header(&[("cblas_sgemm$NEWLAPACK", set as *const ())]);
    let open_mp = Header(&[("openblas_get_config", config as *const ())]);
    let told = "cannot be kept to one thread";
    for (feature, header, library, told) in [
        ("accelerate", &none, "unknown", told),
        ("blas-dynamic", &modern, "accelerate", told),
        ("blas-dynamic", &open_mp, "openblas", told),
        ("blis", &none, "unknown", told),
        ("netlib", &none, "unknown", ""),
    ] {
        let info = Provider::new(feature, header, products()).info();
        assert_eq!(info.library, library, "{feature}");
        let warning = info.warning.unwrap_or_default();
        assert!(warning.contains(told) && warning.is_empty() == told.is_empty(), "{warning}");
    }
}

//! Who a library is taken for, and how it is kept to one thread.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::backend::cpu::blas::library::{Library, Vendor};
use crate::backend::cpu::blas::mock::{Header, entries};

/// Threads that the pretended libraries are set to, and those of BLIS's loops.
static THREADS: AtomicI32 = AtomicI32::new(8);
static LOOPS: AtomicI32 = AtomicI32::new(8);

/// Whether they stay at what they are, whatever they are told.
static ARE_DEAF: AtomicBool = AtomicBool::new(false);

extern "C" fn set_and_return(threads: c_int) -> c_int {
    let before = get();
    set(threads);
    before
}
extern "C" fn set(threads: c_int) {
    if !ARE_DEAF.load(Ordering::Relaxed) {
        THREADS.store(threads, Ordering::Relaxed);
    }
}
extern "C" fn set_wide(threads: isize) {
    set(threads as c_int);
}
/// No number for all holds from here on.
extern "C" fn set_loops(jc: isize, pc: isize, ic: isize, jr: isize, ir: isize) {
    LOOPS.store((jc * pc * ic * jr * ir) as i32, Ordering::Relaxed);
    set(-1);
}
extern "C" fn get() -> c_int {
    THREADS.load(Ordering::Relaxed)
}
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
        Library::new("blas-dynamic", &header, entries(), entries())
    };
    let mkl = made(Header(&[
        ("MKL_Set_Num_Threads_Local", set_and_return as *const ()),
        ("MKL_Get_Max_Threads", get as *const ()),
    ]));
    assert_eq!(mkl.vendor, Vendor::Mkl);
    assert_eq!(mkl.on_one_thread(threads), 1);
    assert_eq!(threads(), 8, "the user's setting is back");

    let open_mp = made(Header(&[
        ("openblas_get_config", config as *const ()),
        ("openblas_get_corename", core as *const ()),
        ("openblas_get_num_threads", get as *const ()),
        ("openblas_set_num_threads", set as *const ()),
        ("omp_get_max_threads", get as *const ()),
        ("omp_set_num_threads", set as *const ()),
    ]));
    assert_eq!(open_mp.vendor, Vendor::OpenBlas);
    assert_eq!(open_mp.on_one_thread(threads), 1);
    assert_eq!(threads(), 8, "the user's setting is back");
    let info = open_mp.info();
    assert_eq!((info.library, info.core.as_str()), ("openblas", "Haswell"));
    assert!(info.version.contains("0.3.99"));

    let apple = made(Header(&[
        ("BLASGetThreading", get as *const ()),
        ("BLASSetThreading", set as *const ()),
    ]));
    assert_eq!(apple.vendor, Vendor::Accelerate);
    assert_eq!(apple.on_one_thread(threads), 1);
    assert_eq!(threads(), 8, "the user's setting is back");

    let blis = made(Header(&[
        ("bli_info_get_version_str", core as *const ()),
        ("bli_thread_get_num_threads", get as *const ()),
        ("bli_thread_set_num_threads", set_wide as *const ()),
        ("bli_thread_set_ways", set_loops as *const ()),
    ]));
    assert_eq!(blis.vendor, Vendor::Blis);
    let plain = made(Header(&[
        ("openblas_get_config", core as *const ()),
        ("openblas_get_num_threads", get as *const ()),
        ("openblas_set_num_threads", set as *const ()),
    ]));
    assert_eq!(plain.vendor, Vendor::OpenBlas);
    // Also where the program has set another number since.
    for library in [&blis, &plain] {
        for _ in 0..2 {
            THREADS.store(8, Ordering::Relaxed);
            LOOPS.store(8, Ordering::Relaxed);
            assert_eq!(library.on_one_thread(threads), 1);
            assert_eq!(threads(), 1, "it stays");
            let loops = if library.vendor == Vendor::Blis { 1 } else { 8 };
            assert_eq!(LOOPS.load(Ordering::Relaxed), loops);
        }
    }
    // What is told of the threads is what the library says.
    for (are_deaf, told) in [(false, 1), (true, 8)] {
        ARE_DEAF.store(are_deaf, Ordering::Relaxed);
        for library in [&mkl, &open_mp, &blis, &plain] {
            THREADS.store(8, Ordering::Relaxed);
            assert_eq!(library.info().threads, told, "{:?}", library.vendor);
        }
    }
    ARE_DEAF.store(false, Ordering::Relaxed);
    assert_eq!(made(Header(&[])).vendor, Vendor::Unknown);
}

#[test]
fn of_two_libraries_in_a_process_the_provider_s_is_asked() {
    let both = [
        ("MKL_Set_Num_Threads_Local", set_and_return as *const ()),
        ("openblas_get_config", config as *const ()),
    ];
    let header = Header(Box::leak(Box::new(both)));
    for (provider, vendor) in [
        ("mkl", Vendor::Mkl),
        ("openblas", Vendor::OpenBlas),
        ("openblas-static", Vendor::OpenBlas),
    ] {
        assert_eq!(Library::new(provider, &header, entries(), entries()).vendor, vendor);
    }
}

#[test]
fn a_library_that_cannot_be_kept_to_one_thread_is_told_of() {
    let none = Header(&[]);
    let modern = Header(&[("cblas_sgemm$NEWLAPACK", set as *const ())]);
    for (provider, header) in [("accelerate", &none), ("blas-dynamic", &modern)] {
        let library = Library::new(provider, header, entries(), entries());
        assert_eq!(library.vendor, Vendor::Accelerate);
        assert!(library.threads_warning().unwrap().contains("VECLIB_MAXIMUM_THREADS=1"));
    }
    let mut library = Library::new("netlib", &none, entries(), entries());
    assert_eq!((library.vendor, library.threads_warning()), (Vendor::Unknown, None));
    library.is_static = true;
    assert!(library.threads_warning().unwrap().contains("a static library"));
    let library = Library::new("blis", &none, entries(), entries());
    assert!(library.threads_warning().unwrap().contains("does not say who it is"));
    let with_control = Header(&[("MKL_Set_Num_Threads_Local", set_and_return as *const ())]);
    let mut library = Library::new("mkl", &with_control, entries(), entries());
    library.is_static = true;
    assert_eq!(library.threads_warning(), None);
}

//! BLAS libraries, opened at run time and called as their users call them.

use std::path::Path;

pub const ROW_MAJOR: i32 = 101;
pub const PLAIN: i32 = 111;
pub const TRANSPOSED: i32 = 112;

/// `cblas_sgemm` or `cblas_dgemm` with 32-bit integers.
pub type Gemm<E> = unsafe extern "C" fn(
    i32,
    i32,
    i32,
    i32,
    i32,
    i32,
    E,
    *const E,
    i32,
    *const E,
    i32,
    E,
    *mut E,
    i32,
);

pub struct Library {
    pub name: String,
    pub sgemm: Gemm<f32>,
    pub dgemm: Gemm<f64>,
    /// Keeps the functions where they are.
    _library: libloading::Library,
}

impl Library {
    /// Opens a library and gives it so many threads; the program ends if that is impossible.
    pub fn open(path: &str, threads: usize) -> Library {
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
        let name = name.trim_start_matches("lib").split('.').next().unwrap_or("").to_owned();
        // SAFETY: a BLAS library does nothing in particular when it is loaded, and its functions have
        // the types that CBLAS says.
        unsafe {
            let library =
                libloading::Library::new(path).unwrap_or_else(|error| panic!("{path}: {error}"));
            let sgemm = *library.get::<Gemm<f32>>(b"cblas_sgemm").expect("a library with CBLAS");
            let dgemm = *library.get::<Gemm<f64>>(b"cblas_dgemm").expect("a library with CBLAS");
            let threads = threads as i32;
            if let Ok(set) = library.get::<unsafe extern "C" fn(i32)>(b"openblas_set_num_threads") {
                set(threads);
            } else if let Ok(set) = library.get::<unsafe extern "C" fn(i32)>(b"MKL_Set_Num_Threads")
            {
                set(threads);
            } else if let Ok(set) =
                library.get::<unsafe extern "C" fn(i64)>(b"bli_thread_set_num_threads")
            {
                set(threads.into());
            }
            Library { name, sgemm, dgemm, _library: library }
        }
    }
}

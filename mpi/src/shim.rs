//! The functions of `shim.c`. Each returns an MPI error code, 0 for success.

use std::ffi::{c_char, c_int, c_void};

/// True if the crate was built with MPI. Otherwise all functions return an error code.
pub const IS_BUILT: bool = cfg!(not(no_mpi));

macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        #[cfg(not(no_mpi))]
        unsafe extern "C" {
            $(pub fn $name($($argument: $type),*) -> c_int;)*
        }

        $(
            #[cfg(no_mpi)]
            pub unsafe fn $name($(_: $type),*) -> c_int {
                1
            }
        )*
    };
}

functions! {
    fn swath_mpi_init(is_finalized: *mut c_int, is_serialized: *mut c_int);
    fn swath_mpi_duplicate(rank: *mut c_int, size: *mut c_int);
    fn swath_mpi_send(bytes: *const c_void, length: c_int, to: c_int);
    fn swath_mpi_receive(bytes: *mut c_void, length: c_int, from: c_int);
    fn swath_mpi_test(is_done: *mut c_int);
    fn swath_mpi_received(i: c_int, bytes: *mut c_int);
    fn swath_mpi_is_done(i: c_int, is_done: *mut c_int);
    fn swath_mpi_finish();
    fn swath_mpi_abort(code: c_int);
    fn swath_mpi_error(code: c_int, text: *mut c_char, length: c_int);
    fn swath_mpi_library(text: *mut c_char, length: c_int);
}

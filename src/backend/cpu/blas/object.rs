//! Which program or library a function is a part of, on Linux.

use std::ffi::{CStr, OsStr, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

#[cfg(not(blas = "blas-dynamic"))]
pub(super) use linked::cblas;

pub(super) struct Object {
    /// Where it lies.
    #[cfg(not(blas = "blas-dynamic"))]
    pub base: *mut c_void,
    /// As it was opened.
    pub path: PathBuf,
}

/// The one that has this function.
pub(super) fn of(function: *const ()) -> Object {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: it looks the address up and writes `info`, whose zeros are null pointers.
    let info = unsafe {
        libc::dladdr(function.cast::<c_void>(), info.as_mut_ptr());
        info.assume_init()
    };
    let path = match info.dli_fname.is_null() {
        true => c"",
        // SAFETY: a terminated name, which stays as long as the function, and is copied below.
        false => unsafe { CStr::from_ptr(info.dli_fname) },
    };
    Object {
        #[cfg(not(blas = "blas-dynamic"))]
        base: info.dli_fbase,
        path: PathBuf::from(OsStr::from_bytes(path.to_bytes())),
    }
}

/// Of a library that the program was linked with.
#[cfg(not(blas = "blas-dynamic"))]
mod linked {
    use libloading::{Library as Handle, os::unix};

    use super::*;

    impl Object {
        /// To look functions up in it and in what it was linked with.
        pub fn opened(&self) -> Option<Handle> {
            let as_it_is = unix::RTLD_LAZY | libc::RTLD_NOLOAD;
            // SAFETY: nothing is loaded, so nothing runs.
            unsafe { unix::Library::open(Some(&self.path), as_it_is) }.ok().map(Handle::from)
        }
    }

    /// The function that a call of `cblas_sgemm` reaches.
    pub fn cblas() -> *const () {
        let address = cblas_sys::cblas_sgemm as *const ();
        if !is_stub(address) {
            return address;
        }
        // SAFETY: the name is terminated.
        let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"cblas_sgemm".as_ptr()) };
        if next.is_null() { address } else { next.cast_const().cast() }
    }

    /// Whether a program that cannot be moved in memory has this in place of a library's function: its
    /// address is known before the library's.
    #[cfg(target_env = "gnu")]
    fn is_stub(address: *const ()) -> bool {
        use std::ffi::c_int;

        #[cfg(target_pointer_width = "32")]
        use libc::Elf32_Sym as Symbol;
        #[cfg(target_pointer_width = "64")]
        use libc::Elf64_Sym as Symbol;

        unsafe extern "C" {
            fn dladdr1(
                address: *const c_void,
                info: *mut libc::Dl_info,
                symbol: *mut *const Symbol,
                what: c_int,
            ) -> c_int;
        }
        /// `RTLD_DL_SYMENT`.
        const SYMBOL: c_int = 1;
        /// `SHN_UNDEF`.
        const UNDEFINED: u16 = 0;

        let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
        let mut symbol: *const Symbol = std::ptr::null();
        // SAFETY: it looks the address up and writes `info` and, as asked, the symbol's entry, or null.
        unsafe {
            dladdr1(address.cast(), info.as_mut_ptr(), &mut symbol, SYMBOL);
            symbol.as_ref().is_some_and(|symbol| symbol.st_shndx == UNDEFINED)
        }
    }

    /// It cannot be found out. Most programs for musl are linked as a whole.
    #[cfg(not(target_env = "gnu"))]
    fn is_stub(_address: *const ()) -> bool {
        false
    }
}

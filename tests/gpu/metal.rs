//! The GPU by Metal: `cargo test --features metal --test gpu metal::`.
//!
//! On Apple's systems the tests of all backends run on the device. On Linux they run on a *shim* of Metal's calls that
//! compiles the kernels by g++ and runs them on the CPU, a group at a time; without g++ they are skipped. Everywhere a
//! *fake* of the calls records them, and fails where a test says.

mod calls;
mod failures;
mod fake;
mod translation;

#[cfg(target_os = "linux")]
mod build;
#[cfg(target_os = "linux")]
mod on_purpose;
#[cfg(target_os = "linux")]
mod shim;

#[cfg(target_os = "linux")]
mod on_the_shim {
    crate::testing::backend_suite!(crate::metal::shim::ShimBackend);
}

#[cfg(target_vendor = "apple")]
mod on_the_device {
    crate::testing::backend_suite!(swath::MetalBackend);
}

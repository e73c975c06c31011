//! The GPU by Metal: `cargo test --features metal --test suite metal::`.
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

/// The tests of all backends.
macro_rules! tests_on {
    ($backend:ty) => {
        mod required {
            crate::backends::required_tests!($backend);
        }
        mod provided {
            crate::backends::provided_tests!($backend);
        }
        mod fused {
            crate::fused::fused_tests!($backend);
        }
    };
}

#[cfg(target_os = "linux")]
mod on_the_shim {
    tests_on!(crate::metal::shim::ShimBackend);
}

#[cfg(target_vendor = "apple")]
mod on_the_device {
    use swath::{DType, MetalBackend};

    use crate::support::agree::Tested;

    impl Tested for MetalBackend {
        const DTYPES: &'static [DType] = super::DTYPES;
        const SLACK: f64 = super::SLACK;
    }

    tests_on!(swath::MetalBackend);
}

/// The dtypes that shaders have.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
const DTYPES: &[swath::DType] = {
    use swath::DType::{Bool, F16, F32, I32, I64, U8, U32};
    &[F16, F32, I64, I32, U32, U8, Bool]
};

/// Functions have errors of a few ULP.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
const SLACK: f64 = 4.0;

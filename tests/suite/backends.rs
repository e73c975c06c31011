//! The CPU backend by the tests of all backends, `crate::testing::backend_suite!`, and its own.

mod large;
mod reference;

mod cpu {
    crate::testing::backend_suite!(swath::CpuBackend);
}

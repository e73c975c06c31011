//! The CPU backend by the tests of all backends, `swath::testing::backend_suite!`, and its own.

mod large;
mod reference;

mod cpu {
    swath::testing::backend_suite!(swath::CpuBackend);
}

//! Compares the GPU backends that are built with the CPU's on this machine's device: every function, reduction and
//! arithmetic operation, and one or two of each other kind, in `f32` with gradients, in `f16` and in `i64`. Measures from
//! how many elements on the device is faster. The tests, `cargo test --test gpu`, compare all else.
//!
//! ```text
//! cargo run --release --example gpu_check --features wgpu [-- --quick]
//! cargo run --release --example gpu_check --features metal [-- --quick]      on Apple's systems
//! ```
//!
//! The error is the largest distance between the two results, over the largest magnitude of the CPU's. Times are
//! medians, the device's of a call and of waiting until it has run, without copying the result. The crossover is the
//! smallest size measured from which on the device is faster.

#[cfg(any(feature = "wgpu", all(feature = "metal", target_vendor = "apple")))]
mod check;

use std::process::ExitCode;

use swath::Result;

/// Checks the backends that are built, and returns the number of operations with wrong results of each.
#[cfg(any(feature = "wgpu", all(feature = "metal", target_vendor = "apple")))]
fn checked() -> Vec<Result<usize>> {
    let quick = std::env::args().any(|argument| argument == "--quick");
    vec![
        #[cfg(all(feature = "metal", target_vendor = "apple"))]
        check::run(swath::MetalBackend::device, quick),
        #[cfg(feature = "wgpu")]
        check::run(swath::WgpuBackend::device, quick),
    ]
}

#[cfg(not(any(feature = "wgpu", all(feature = "metal", target_vendor = "apple"))))]
fn checked() -> Vec<Result<usize>> {
    Vec::new()
}

fn main() -> ExitCode {
    let results = checked();
    if results.is_empty() {
        eprintln!(
            "gpu_check: built without a GPU; use --features wgpu, or metal on Apple's systems"
        );
    }
    let mut is_right = !results.is_empty();
    for result in results {
        match result {
            Ok(0) => continue,
            Ok(wrong) => eprintln!("gpu_check: {wrong} operations differ from the CPU's"),
            Err(error) => eprintln!("gpu_check: {error}"),
        }
        is_right = false;
    }
    if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

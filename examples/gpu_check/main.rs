//! Compares each GPU backend of this build with the CPU: every function, reduction and arithmetic operation, and one or
//! two of each other kind, in `f32` with gradients, in `f16` and in `i64`. Measures the size from which the device is
//! faster. The tests, `cargo test --test gpu`, compare everything else.
//!
//! ```text
//! cargo run --release --example gpu_check --features wgpu [-- --quick]
//! cargo run --release --example gpu_check --features metal [-- --quick]      on Apple's systems
//! ```
//!
//! The error is the largest difference of the two results, relative to the largest magnitude of the CPU's. Times are
//! medians. The device's time includes waiting for the call, but not copying the result. The crossover is the smallest
//! measured size from which on the device is always faster.

#[cfg(any(feature = "wgpu", all(feature = "metal", target_vendor = "apple")))]
mod check;

use std::process::ExitCode;

use swath::Result;

/// Checks each backend of this build. Returns the number of operations with wrong results for each.
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
            Ok(wrong) => eprintln!("gpu_check: {wrong} operations differ from the CPU"),
            Err(error) => eprintln!("gpu_check: {error}"),
        }
        is_right = false;
    }
    if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

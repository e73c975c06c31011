//! Kernels with drawn arguments (`Geometry` and `Windows`, `Indirect`, `Permute`, `BlockArg`, poolings, transposes) with
//! other numbers around every slice: a call panics exactly where an element would be outside, and otherwise gives what
//! its definition gives.

#![no_main]

#[path = "../../kernels/tests/suite/unfit/arguments.rs"]
mod arguments;
mod input;

use std::sync::Once;

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    static HOOK: Once = Once::new();
    // libFuzzer's hook aborts at a panic that the target catches, too.
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            if !arguments::is_expected() {
                eprintln!("{info}");
            }
        }));
    });
    let mut u = Unstructured::new(bytes);
    arguments::run(arguments::Draw(Box::new(|n| input::below(&mut u, n))));
});

//! Calls of the CPU backend, fused ops among them, on drawn operands of which some do not fit: the same bits whatever
//! lies around the operands, or an error, and no panic.

#![no_main]

#[path = "../../tests/suite/drawn_operands/calls.rs"]
mod calls;
#[path = "../../tests/suite/drawn_programs/draw.rs"]
#[allow(dead_code, reason = "programs draw shapes and values too")]
mod draw;
#[path = "../../tests/suite/drawn_operands/fused.rs"]
mod fused;
#[path = "../../tests/suite/drawn_operands/operand.rs"]
mod operand;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| match bytes.split_first() {
    Some((0..128, rest)) => _ = fused::run(rest),
    Some((_, rest)) => _ = calls::run::<swath::CpuBackend>(rest),
    None => {}
});

//! Programs of drawn operations, shapes, dtypes, layouts and arguments: a value equal to the reference backend's, or
//! an error that names the operation, and no panic.

#![no_main]

#[path = "../../tests/suite/drawn_programs/calls.rs"]
mod calls;
#[path = "../../tests/suite/drawn_programs/draw.rs"]
mod draw;
#[path = "../../tests/suite/drawn_programs/program.rs"]
mod program;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| program::run(bytes, &mut program::Seen::default()));

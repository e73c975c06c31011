//! Poison: memory that is handed out is first filled with NaN, so that a missing write shows in the results.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Fills memory of floats, repeated: a NaN as `f16`, `bf16`, `f32` and `f64`. No operation produces its payload, and
/// since it is quiet, arithmetic keeps it.
pub const POISON: u16 = 0x7FFD;

/// On from the start in debug builds.
static POISONS: AtomicBool = AtomicBool::new(cfg!(debug_assertions));

/// True if memory is filled with [`POISON`] whenever it is handed out.
#[inline(always)]
pub fn poisons() -> bool {
    POISONS.load(Relaxed)
}

/// Switches poison on or off.
pub fn set_poisons(poisons: bool) {
    POISONS.store(poisons, Relaxed);
}

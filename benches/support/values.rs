//! Input values.

use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns `n` different values in [-4, 4), without a pattern that a branch predictor could learn.
pub fn values(n: usize) -> Values {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 21) as f32 - 4.0
    };
    // Slices start on a cache line, each at another offset in its page: a load has to wait for an earlier
    // store to the same offset of another page (4 KiB aliasing).
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let line = COUNT.fetch_add(5, Ordering::Relaxed) % 64;
    let memory: Vec<f32> = (0..n + 65 * 16).map(|_| next()).collect();
    let start = memory.as_ptr().align_offset(64) + line * 16;
    Values { memory, range: start..start + n }
}

/// A slice that starts on a cache line.
pub struct Values {
    memory: Vec<f32>,
    range: Range<usize>,
}

impl Deref for Values {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.memory[self.range.clone()]
    }
}

impl DerefMut for Values {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.memory[self.range.clone()]
    }
}

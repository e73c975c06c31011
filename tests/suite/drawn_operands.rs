//! Calls of backends on drawn operands, of which some do not fit: each runs twice, with other numbers around the
//! operands in their storage, and gives the same bits or an error that names the op. The fuzz target `operands` draws
//! more of them.

mod calls;
mod fused;
mod operand;

use std::panic::{AssertUnwindSafe, catch_unwind};

use swath::{CpuBackend, ReferenceBackend, Rng};

use crate::drawn_programs::draw;
use crate::support::is_full;

/// Runs a call on so many draws of bytes. Fails if any panics, or if fewer than a third were computed or an eighth
/// refused. Returns how often each kind of call was computed.
fn draws(count: u64, kinds: usize, run: impl Fn(&[u8]) -> (usize, bool)) -> Vec<u64> {
    let (mut computed, mut failed) = (vec![0; kinds], 0);
    for seed in 0..count {
        let mut rng = Rng::seed(seed);
        let bytes: Vec<u8> = (0..32).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
        match catch_unwind(AssertUnwindSafe(|| run(&bytes))) {
            Ok((kind, is_computed)) => computed[kind] += u64::from(is_computed),
            Err(_) => failed += 1,
        }
    }
    assert_eq!(failed, 0, "calls failed, of {count}");
    let all: u64 = computed.iter().sum();
    assert!(all * 3 > count && all * 8 < count * 7, "{all} computed, of {count}");
    computed
}

#[test]
fn drawn_fused_ops_read_their_operands_alone() {
    let count = if is_full() { 400_000 } else { 20_000 };
    let computed = draws(count, fused::KINDS, fused::run);
    assert!(computed.iter().all(|&n| n > 0), "never computed: {computed:?}");
}

#[test]
fn drawn_calls_read_their_operands_alone() {
    let count = if is_full() { 400_000 } else { 20_000 };
    let computed = draws(count, calls::KINDS, calls::run::<CpuBackend>);
    assert!(computed.iter().all(|&n| n > 0), "never computed: {computed:?}");
    let computed = draws(count / 20, calls::KINDS, calls::run::<ReferenceBackend>);
    // It has no steps of optimizers.
    let never = computed.iter().filter(|&&n| n == 0).count();
    assert_eq!(never, calls::UPDATES.len(), "never computed: {computed:?}");
}

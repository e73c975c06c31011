//! Memory is full of poison whenever it is handed out, unless that is switched off.

use std::hint::black_box;

use swath::prelude::*;
use swath::testing::unwritten;

use crate::support::alone_with;

/// Byte of poisoned memory of a dtype; scratch memory has none.
fn poison(dtype: Option<DType>, i: usize) -> u8 {
    match dtype.is_none_or(DType::is_float) {
        true => 0x7FFDu16.to_ne_bytes()[i % 2],
        false => 0xA5,
    }
}

/// True if new and recycled memory is full of poison for every dtype and size; false if it is for none.
fn is_poisoned() -> bool {
    // Sizes of the lists of a thread, of the list that threads share, and no whole number of cache lines.
    let sizes = [8, 24, 1000, 1 << 14, 3 << 17];
    let dtypes = DType::ALL.map(Some).into_iter().chain([None]);
    let full = dtypes.flat_map(|dtype| sizes.map(|bytes| (dtype, bytes))).map(|(dtype, bytes)| {
        // The first block is new or recycled; it is dirty when it is recycled for the second.
        drop(Tensor::<CpuBackend>::full(bytes / 4, 1.0f32));
        let rounds = [0, 1].map(|_| unwritten(bytes, dtype).unwrap());
        rounds.iter().all(|memory| {
            memory.len() == bytes && (0..bytes).all(|i| memory[i] == poison(dtype, i))
        })
    });
    let full: Vec<bool> = full.collect();
    assert!(full.iter().all(|&is_full| is_full == full[0]), "poison in a part of the memory");
    full[0]
}

#[test]
fn memory_is_poisoned_in_debug_builds() {
    let name = "poison::memory_is_poisoned_in_debug_builds";
    alone_with(name, &[("SWATH_POOL_POISON", "")], || {
        assert_eq!(is_poisoned(), cfg!(debug_assertions));
    });
}

#[test]
fn the_variable_poisons_memory_in_any_build() {
    let name = "poison::the_variable_poisons_memory_in_any_build";
    alone_with(name, &[("SWATH_POOL_POISON", "1")], || assert!(is_poisoned()));
}

#[test]
fn the_variable_switches_poison_off() {
    let name = "poison::the_variable_switches_poison_off";
    alone_with(name, &[("SWATH_POOL_POISON", "0")], || assert!(!is_poisoned()));
}

#[test]
fn another_value_of_the_variable_is_an_error() {
    let name = "poison::another_value_of_the_variable_is_an_error";
    alone_with(name, &[("SWATH_POOL_POISON", "yes")], || {
        let error = Tensor::<CpuBackend>::zeros(3, DType::F32).unwrap_err().to_string();
        assert!(error.contains("SWATH_POOL_POISON=yes: expected 0 or 1"), "{error}");
    });
}

/// Poison is a NaN in each float type that arithmetic does not change, so that it is found in results.
#[test]
fn poison_survives_arithmetic() {
    // The compiler may give another NaN where it computes the operation itself.
    let (single, double) = black_box((0x7FFD_7FFD, 0x7FFD_7FFD_7FFD_7FFD));
    assert!(f32::from_bits(single).is_nan());
    assert_eq!((black_box(f32::from_bits(single)) + 1.0).to_bits(), single);
    assert_eq!((black_box(f64::from_bits(double)) * 2.0).to_bits(), double);
}

//! No function accesses memory outside of its slices. Each slice starts after a protected page or ends before
//! one, at every length from 0 to 130 and some that are split at an aligned address, on every instruction set.
//!
//! Functions of one and two arguments come from `functions/`, all others from `calls/`;
//! `every_public_function_is_called` of `lengths.rs` checks that none is missing.
#![cfg(all(target_os = "linux", not(miri)))]

use crate::calls;
use crate::calls::{Call, Part, Role};
use crate::functions::{Real, of_gradients, of_one_argument, of_two_arguments};
use crate::guarded::{Against, Guarded};
use swath_kernels::testing::{ALIGNED_FROM, levels, levels_for, with_isa};
use swath_kernels::{Arg, Isa, Kernel};

const LONGEST: usize = ALIGNED_FROM + 88;

fn lengths() -> impl Iterator<Item = usize> {
    (0..=130).chain([ALIGNED_FROM, ALIGNED_FROM + 33, LONGEST])
}

/// Runs a test at every length, with the protected page at either end, on every instruction set. Each of the
/// three slices has separate memory.
fn at_every_length<E: Real>(name: &str, f: impl Fn(&mut [E], &mut [E], &mut [E])) {
    for isa in levels() {
        for against in Against::BOTH {
            let mut memory = [0; 3].map(|_| Guarded::<E>::new(LONGEST, against));
            for len in lengths() {
                let [a, b, y] = &mut memory;
                let range = match against {
                    Against::Start => 0..len,
                    Against::End => LONGEST - len..LONGEST,
                };
                for (i, memory) in [&mut *a, &mut *b, &mut *y].into_iter().enumerate() {
                    memory.elements().fill(E::from_f64(0.25 + i as f64));
                }
                // A length of 0 may enter no kernel, which `with_isa` would report.
                let mut run = || {
                    f(
                        &mut a.elements()[range.clone()],
                        &mut b.elements()[range.clone()],
                        &mut y.elements()[range.clone()],
                    )
                };
                if len == 0 {
                    run()
                } else {
                    with_isa(isa, run).expect("it is available")
                }
                // The memory at the other end of the slices is writable, but must not change.
                for (i, memory) in memory.iter_mut().enumerate() {
                    let outside = memory.elements().iter().enumerate();
                    let outside = outside.filter(|(at, _)| !range.contains(at));
                    let untouched = E::from_f64(0.25 + i as f64);
                    for (_, &x) in outside {
                        assert!(x == untouched, "{name}, {isa}: wrote outside of {len} elements");
                    }
                }
            }
        }
    }
}

fn check1<E: Real>(kernel: &Kernel<1>) {
    at_every_length::<E>(kernel.name(), |x, in_place, y| {
        kernel.run([Arg::Slice(x)], y);
        kernel.run_in_place([None], in_place);
    });
}

fn check2<E: Real>(kernel: &Kernel<2>) {
    at_every_length::<E>(kernel.name(), |a, b, y| {
        let number = Arg::Scalar(E::ONE);
        kernel.run([Arg::Slice(a), Arg::Slice(b)], y);
        kernel.run([number, Arg::Slice(b)], y);
        kernel.run([Arg::Slice(a), number], y);
        kernel.run_in_place([None, Some(Arg::Slice(b))], a);
        kernel.run_in_place([None, Some(number)], a);
        kernel.run_in_place([Some(Arg::Slice(a)), None], b);
        kernel.run_in_place([Some(number), None], b);
    });
}

#[test]
fn functions_of_one_argument() {
    for function in of_one_argument() {
        check1::<f32>(function.kernel);
        check1::<f64>(function.kernel);
    }
}

#[test]
fn functions_of_two_arguments() {
    for function in of_two_arguments() {
        check2::<f32>(function.kernel);
        check2::<f64>(function.kernel);
    }
    for function in of_gradients() {
        check2::<f32>(function.kernel);
        check2::<f64>(function.kernel);
    }
}

/// More than the largest slice of a call.
const BYTES: usize = 1 << 20;
/// Bytes at the other end of a slice that must not change.
const MARGIN: usize = 256;
const UNTOUCHED: u8 = 0x5a;

/// Runs a call with every slice at a protected page, and checks the bytes at their other ends.
fn check_call(call: &Call, isa: Isa, against: Against, memory: &mut [Guarded<u8>]) {
    let place = |slot: &calls::Slot| {
        let len = slot.content.len();
        match against {
            Against::Start => (0..len, len..len + MARGIN),
            Against::End => (BYTES - len..BYTES, BYTES - len - MARGIN..BYTES - len),
        }
    };
    let mut parts = Vec::new();
    for (slot, memory) in call.slots.iter().zip(memory.iter_mut()) {
        let (inside, outside) = place(slot);
        memory.elements()[outside].fill(UNTOUCHED);
        let part = &mut memory.elements()[inside];
        part.copy_from_slice(&slot.content);
        parts.push(Part(part));
    }
    call.run_on(isa, &mut parts);
    for (slot, memory) in call.slots.iter().zip(memory) {
        let (inside, outside) = place(slot);
        let untouched = memory.elements()[outside].iter().all(|&byte| byte == UNTOUCHED);
        assert!(untouched, "{}, {isa}: wrote outside of a slice", call.name());
        let same = slot.role != Role::Input || memory.elements()[inside] == slot.content;
        assert!(same, "{}, {isa}: wrote to an input", call.name());
    }
}

/// By default a quarter of the calls at each length, rotating with the length, also run on the portable
/// level, which is many times slower.
fn check_calls(lengths: impl Iterator<Item = usize>) {
    let mut memory =
        Against::BOTH.map(|against| (against, [0; 8].map(|_| Guarded::<u8>::new(BYTES, against))));
    let calls = lengths.flat_map(|len| {
        calls::every(len).into_iter().enumerate().map(move |(i, call)| (i + len / 2, call))
    });
    for (case, call) in calls {
        for isa in levels_for(case, 4) {
            for (against, memory) in &mut memory {
                check_call(&call, isa, *against, memory);
            }
        }
    }
}

#[test]
fn other_functions_at_even_lengths() {
    check_calls(lengths().filter(|len| len % 2 == 0));
}

#[test]
fn other_functions_at_odd_lengths() {
    check_calls(lengths().filter(|len| len % 2 == 1));
}

#[test]
#[should_panic(expected = "wrote outside")]
fn writes_outside_of_a_slice_are_detected() {
    at_every_length::<f32>("a test", |x, _, y| {
        swath_kernels::neg(x, y);
        // The element before the slice, in the same memory.
        let front = y.as_mut_ptr().wrapping_sub(1);
        if y.len() == 3 && front.addr() % 4096 != 4092 {
            // SAFETY: the slice is not at the start of its page: the element before it is writable.
            unsafe { *front = 7.0 };
        }
    });
}

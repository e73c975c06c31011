//! Failures of the device, each of which is an error of a call: nothing that is read is silently wrong.

use swath::backend::gpu::testing::{CommandError, Status};
use swath::{DType, Error, Result};

use super::fake::{
    Call, FakeTensor, Script, calls, check_all_were_looked_at, committed, on_a_device,
};

fn ones(n: usize) -> Result<FakeTensor> {
    FakeTensor::ones(n, DType::F32)
}

fn fault(description: &str) -> Option<CommandError> {
    Some(CommandError { code: 3, description: description.to_owned() })
}

fn reason_of<T: std::fmt::Debug>(result: Result<T>) -> (&'static str, String) {
    match result {
        Err(Error::Device { op, backend: "metal", reason }) => (op, reason),
        other => panic!("expected an error of the device, got {other:?}"),
    }
}

/// A chain of `count` dispatches, and the error of encoding it or of reading its end.
fn chain(count: usize) -> Result<Vec<f32>> {
    let mut x = ones(8)?;
    for _ in 1..count {
        x = x.exp()?;
    }
    x.to_vec::<f32>()
}

#[test]
fn a_command_buffer_that_fails_is_the_error_of_the_read() {
    let outcomes = vec![(0, Status::Failed, fault("page fault"))];
    on_a_device(Script { outcomes, ..Script::default() }, || {
        let (op, reason) = reason_of(ones(8).unwrap().exp().unwrap().to_vec::<f32>());
        assert_eq!(op, "to_host");
        assert_eq!(
            reason,
            "a command buffer of 2 kernels, from fill_f32 to exp_f32, failed: page fault (code 3)"
        );
        assert!(!calls().iter().any(|call| matches!(call, Call::Read { .. })));
    });
}

/// Each of three command buffers in turn, seen at once or when the read waits.
#[test]
fn no_failure_of_an_earlier_command_buffer_is_lost() {
    for failing in 0..3 {
        for is_slow in [false, true] {
            for outcome in [
                (failing, Status::Failed, fault("hang")),
                (failing, Status::Failed, None),
                (failing, Status::Completed, fault("hang")),
                // It was waited for, and has neither run nor failed.
                (failing, Status::Running, None),
            ] {
                let is_known = outcome.2.is_some();
                let script = Script { outcomes: vec![outcome], is_slow, ..Script::default() };
                on_a_device(script, || {
                    let (op, reason) = reason_of(chain(2400));
                    assert!(["to_host", "exp"].contains(&op), "{op}");
                    let expected = if is_known { "hang (code 3)" } else { "without an error" };
                    assert!(reason.contains(expected), "{reason}");
                    assert!(reason.contains("exp_f32"), "{reason}");
                    // What was encoded since is committed by the next read, and looked at.
                    let (_, again) = reason_of(chain(1));
                    assert!(again.starts_with("values were lost: "), "{again}");
                });
            }
        }
    }
}

#[test]
fn after_a_failure_nothing_is_read_and_nothing_encoded() {
    let outcomes = vec![(0, Status::Failed, fault("page fault"))];
    on_a_device(Script { outcomes, ..Script::default() }, || {
        let (x, y) = (ones(8).unwrap(), FakeTensor::from_vec(vec![1.0f32], 1).unwrap());
        reason_of(x.to_vec::<f32>());
        let before = calls().len();
        for _ in 0..3 {
            for (op, reason) in [
                reason_of(x.to_vec::<f32>()),
                reason_of(y.to_vec::<f32>()),
                reason_of(x.exp()),
                reason_of(y.add(&y)),
            ] {
                assert!(["to_host", "exp", "add"].contains(&op));
                assert!(reason.starts_with("values were lost: a command buffer"), "{reason}");
            }
        }
        let encodes = |call: &Call| {
            matches!(call, Call::Begin(_) | Call::Dispatch { .. } | Call::Read { .. })
        };
        assert!(!calls()[before..].iter().any(encodes));
    });
}

#[test]
fn all_command_buffers_are_looked_at_after_the_first_failure() {
    let outcomes = vec![
        (0, Status::Failed, fault("the first")),
        (1, Status::Failed, fault("the second")),
        (2, Status::Failed, fault("the third")),
    ];
    on_a_device(Script { outcomes, is_slow: true, ..Script::default() }, || {
        let (_, reason) = reason_of(chain(2400));
        assert!(reason.contains("the first"), "{reason}");
        assert_eq!(committed(), [0, 1, 2]);
        check_all_were_looked_at();
    });
}

#[test]
fn a_command_buffer_without_memory_is_out_of_memory() {
    let error = CommandError { code: 8, description: "insufficient memory".to_owned() };
    let outcomes = vec![(0, Status::Failed, Some(error))];
    on_a_device(Script { outcomes, ..Script::default() }, || {
        let x = ones(8).unwrap();
        let first = x.to_vec::<f32>().unwrap_err();
        assert!(matches!(first, Error::OutOfMemory { op: "to_host", bytes: 32, .. }), "{first:?}");
        let (op, reason) = reason_of(x.to_vec::<f32>());
        assert_eq!(op, "to_host");
        assert_eq!(reason, "values were lost when a command buffer ran out of memory");
    });
}

#[test]
fn memory_that_cannot_be_allocated_is_out_of_memory() {
    on_a_device(Script { memory: 1 << 20, ..Script::default() }, || {
        let kept = ones(1 << 17).unwrap();
        let error = ones(1 << 18).unwrap_err();
        assert!(
            matches!(error, Error::OutOfMemory { op: "full", bytes: 0x10_0000, .. }),
            "{error:?}"
        );
        let error = FakeTensor::from_vec(vec![0f32; 1 << 18], 1 << 18).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { bytes: 0x10_0000, .. }), "{error:?}");
        // The device goes on.
        kept.exp().unwrap().to_vec::<f32>().unwrap();
    });
}

/// Memory that only dispatches in flight or unused buffers have is waited for or dropped.
#[test]
fn memory_is_found_before_an_allocation_fails() {
    on_a_device(Script { memory: 1 << 20, ..Script::default() }, || {
        let half = ones(1 << 17).unwrap();
        drop(half.exp().unwrap());
        drop(half);
        // Both halves are unused and kept, and the command buffer that is being encoded has them, too.
        assert!(committed().is_empty());
        let all = ones(1 << 18).unwrap();
        assert_eq!(committed(), [0]);
        drop(all);
        // An upload does the same.
        FakeTensor::from_vec(vec![0f32; 1 << 18], 1 << 18).unwrap();
    });
}

#[test]
fn a_kernel_that_does_not_compile_is_an_error_that_names_it() {
    let compiler = Some("program_source:1:1: error".to_owned());
    on_a_device(Script { compiler, ..Script::default() }, || {
        let (op, reason) = reason_of(ones(8));
        assert_eq!(op, "full");
        assert_eq!(reason, "the kernel fill_f32: program_source:1:1: error");
    });
}

#[test]
fn a_device_with_smaller_groups_is_an_error() {
    on_a_device(Script { max_threads: 128, ..Script::default() }, || {
        let (op, reason) = reason_of(ones(8));
        assert_eq!(op, "full");
        assert_eq!(reason, "the kernel fill_f32: expected groups of at most 128 threads, got 256");
    });
}

#[test]
fn a_device_that_does_not_open_is_an_error_of_every_call() {
    let closed = Some("no device".to_owned());
    on_a_device(Script { closed, ..Script::default() }, || {
        for _ in 0..2 {
            let (op, reason) = reason_of(ones(8));
            assert_eq!((op, reason.as_str()), ("open", "no device"));
        }
    });
}
